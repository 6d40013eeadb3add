/*
 * An agent as text, a line each, words with one space between them, every line ended:
 *
 *     souk-agent 1                          the form's version
 *     episodes COUNT
 *     centre FUNCTIONS MEMORY_MB
 *     offset NUMBER
 *     mean NUMBER x inputs                  of the inputs, in training
 *     deviation NUMBER x inputs             above 0
 *     layers INPUTS WIDTH... OUTPUTS
 *     weights NUMBER x inputs, bias         a line for each unit, layer after layer
 *     end
 *
 * Numbers have 17 digits: what is read is what was written, to the last bit.
 */
#include "base/assert.h"
#include "learn/agent.h"

#include <math.h>

static const double number_max = 1e6;

static void put_numbers(struct buffer *out, const char *name, const double *numbers, uint32_t count)
{
    buffer_append_string(out, name);
    for (uint32_t i = 0; i < count; i++)
        buffer_append_format(out, " %.17g", numbers[i]);
    buffer_append_byte(out, '\n');
}

static void put_layers(struct buffer *out, struct mlp *mlp)
{
    const struct mlp_shape *shape = mlp_shape(mlp);
    const double *parameters = mlp_parameters(mlp);
    buffer_append_string(out, "layers");
    for (uint32_t i = 0; i <= shape->layer_count; i++)
        buffer_append_format(out, " %u", shape->widths[i]);
    buffer_append_byte(out, '\n');
    for (uint32_t i = 0; i < shape->layer_count; i++) {
        const uint32_t in = shape->widths[i], units = shape->widths[i + 1];
        const double *biases = parameters + (size_t)in * units;
        for (uint32_t k = 0; k < units; k++) {
            double row[MLP_WIDTH_MAX + 1];
            for (uint32_t j = 0; j < in; j++)
                row[j] = parameters[(size_t)k * in + j];
            row[in] = biases[k];
            put_numbers(out, "weights", row, in + 1);
        }
        parameters = biases + units;
    }
}

int agent_encode(const struct agent *agent, struct buffer *out, struct error *error)
{
    buffer_append_format(out, "souk-agent 1\nepisodes %llu\ncentre %u %u\n",
                         (unsigned long long)agent->episode_count, agent->centre.function_count,
                         agent->centre.memory_mb);
    put_numbers(out, "offset", &agent->offset, 1);
    put_numbers(out, "mean", agent->scale.mean, AGENT_INPUTS);
    put_numbers(out, "deviation", agent->scale.deviation, AGENT_INPUTS);
    put_layers(out, agent->mlp);
    buffer_append_string(out, "end\n");
    return buffer_check(out, error);
}

/* Lines are taken from the front. */
struct reader {
    struct text rest;
    uint32_t line;
};

static int take_line(struct reader *reader, const char *name, struct text *out_words,
                     struct error *error)
{
    struct text line, found;
    reader->line++;
    if (!text_cut(reader->rest, '\n', &line, &reader->rest))
        return error_set(error, ERROR_INVALID, "agent, line %u: \"%s\" is missing", reader->line,
                         name);
    if (!text_cut(line, ' ', &found, out_words))
        *out_words = (struct text){line.data + line.size, 0};
    if (!text_is(found, name))
        return error_set(error, ERROR_INVALID, "agent, line %u: not \"%s\"", reader->line, name);
    return 0;
}

static int take_word(const struct reader *reader, struct text *words, struct text *out_word,
                     struct error *error)
{
    if (words->size == 0)
        return error_set(error, ERROR_INVALID, "agent, line %u: too few numbers", reader->line);
    struct text rest = {words->data + words->size, 0};
    if (!text_cut(*words, ' ', out_word, &rest))
        rest = (struct text){words->data + words->size, 0};
    *words = rest;
    return 0;
}

static int take_end(const struct reader *reader, struct text words, struct error *error)
{
    if (words.size > 0)
        return error_set(error, ERROR_INVALID, "agent, line %u: too many numbers", reader->line);
    return 0;
}

static int take_count(const struct reader *reader, struct text *words, uint64_t most,
                      uint64_t *out_count, struct error *error)
{
    struct text word;
    if (take_word(reader, words, &word, error) < 0)
        return -1;
    if (text_parse_u64(word, out_count, error) < 0 || *out_count > most)
        return error_set(error, ERROR_INVALID, "agent, line %u: no whole number up to %llu",
                         reader->line, (unsigned long long)most);
    return 0;
}

static int take_numbers(struct reader *reader, const char *name, double *out, uint32_t count,
                        struct error *error)
{
    struct text words, word;
    if (take_line(reader, name, &words, error) < 0)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        if (take_word(reader, &words, &word, error) < 0)
            return -1;
        if (text_parse_double(word, &out[i], error) < 0 || !(fabs(out[i]) <= number_max))
            return error_set(error, ERROR_INVALID, "agent, line %u: no number within %g",
                             reader->line, number_max);
    }
    return take_end(reader, words, error);
}

static int take_head(struct reader *reader, struct agent *agent, struct error *error)
{
    struct text words;
    uint64_t version, functions, memory_mb;
    if (take_line(reader, "souk-agent", &words, error) < 0 ||
        take_count(reader, &words, UINT32_MAX, &version, error) < 0 ||
        take_end(reader, words, error) < 0)
        return -1;
    if (version != 1)
        return error_set(error, ERROR_INVALID,
                         "the agent is of version %llu; this program reads version 1",
                         (unsigned long long)version);
    if (take_line(reader, "episodes", &words, error) < 0 ||
        take_count(reader, &words, UINT32_MAX, &agent->episode_count, error) < 0 ||
        take_end(reader, words, error) < 0 || take_line(reader, "centre", &words, error) < 0 ||
        take_count(reader, &words, EPOCH_FUNCTIONS_MAX, &functions, error) < 0 ||
        take_count(reader, &words, UINT32_MAX, &memory_mb, error) < 0 ||
        take_end(reader, words, error) < 0)
        return -1;
    if (functions == 0 || memory_mb == 0)
        return error_set(error, ERROR_INVALID, "agent, line %u: 0 is no choice", reader->line);
    agent->centre = (struct epoch_choice){(uint32_t)functions, (uint32_t)memory_mb};
    if (take_numbers(reader, "offset", &agent->offset, 1, error) < 0 ||
        take_numbers(reader, "mean", agent->scale.mean, AGENT_INPUTS, error) < 0 ||
        take_numbers(reader, "deviation", agent->scale.deviation, AGENT_INPUTS, error) < 0)
        return -1;
    for (int i = 0; i < AGENT_INPUTS; i++)
        if (!(agent->scale.deviation[i] > 0))
            return error_set(error, ERROR_INVALID, "agent, line %u: a deviation is not above 0",
                             reader->line);
    return 0;
}

static int take_shape(struct reader *reader, struct mlp_shape *out_shape, struct error *error)
{
    struct text words;
    uint32_t count = 0;
    if (take_line(reader, "layers", &words, error) < 0)
        return -1;
    while (words.size > 0) {
        uint64_t width;
        if (count > MLP_LAYERS_MAX)
            return error_set(error, ERROR_INVALID, "agent, line %u: more than %d layers",
                             reader->line, MLP_LAYERS_MAX);
        if (take_count(reader, &words, MLP_WIDTH_MAX, &width, error) < 0)
            return -1;
        if (width == 0)
            return error_set(error, ERROR_INVALID, "agent, line %u: a layer without units",
                             reader->line);
        out_shape->widths[count++] = (uint32_t)width;
    }
    if (count < 2 || out_shape->widths[0] != AGENT_INPUTS ||
        out_shape->widths[count - 1] != 2 * AGENT_ACTIONS)
        return error_set(error, ERROR_INVALID, "agent, line %u: layers lead from %d to %d",
                         reader->line, AGENT_INPUTS, 2 * AGENT_ACTIONS);
    out_shape->layer_count = count - 1;
    return 0;
}

static int take_weights(struct reader *reader, struct mlp *mlp, struct error *error)
{
    const struct mlp_shape *shape = mlp_shape(mlp);
    double *parameters = mlp_parameters(mlp);
    for (uint32_t i = 0; i < shape->layer_count; i++) {
        const uint32_t in = shape->widths[i], units = shape->widths[i + 1];
        double *biases = parameters + (size_t)in * units;
        for (uint32_t k = 0; k < units; k++) {
            double row[MLP_WIDTH_MAX + 1];
            if (take_numbers(reader, "weights", row, in + 1, error) < 0)
                return -1;
            for (uint32_t j = 0; j < in; j++)
                parameters[(size_t)k * in + j] = row[j];
            biases[k] = row[in];
        }
        parameters = biases + units;
    }
    return 0;
}

int agent_decode(struct text text, struct agent **out_agent, struct error *error)
{
    if (text.size > AGENT_FILE_BYTES_MAX)
        return error_set(error, ERROR_INVALID, "an agent has at most %d bytes",
                         AGENT_FILE_BYTES_MAX);
    struct reader reader = {.rest = text};
    struct agent read = {0};
    struct mlp_shape shape = {0};
    struct text words;
    if (take_head(&reader, &read, error) < 0 || take_shape(&reader, &shape, error) < 0)
        return -1;
    struct random random;
    random_init(&random, 0);
    AUTO(agent) struct agent *agent = agent_new(read.centre, 0);
    mlp_free(agent->mlp);
    read.mlp = mlp_new(&shape, &random);
    *agent = read;
    if (take_weights(&reader, agent->mlp, error) < 0 ||
        take_line(&reader, "end", &words, error) < 0 || take_end(&reader, words, error) < 0)
        return -1;
    if (reader.rest.size > 0)
        return error_set(error, ERROR_INVALID, "agent, line %u: nothing comes after the end",
                         reader.line);
    *out_agent = TAKE(agent);
    return 0;
}
