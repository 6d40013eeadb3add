#include "train/predict_lines.h"

#include "base/csv.h"
#include "base/memory.h"
#include "train/csv_record.h"
#include "train/predict_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 256, BATCH_FLOATS_MAX = 1 << 20, LINES_SIZE_MAX = 256 << 20 };

struct predict_lines {
    struct predict_lines_options options;
    bool has_classes, has_probabilities;
    size_t input_size;
    uint32_t width;       /* numbers told of a record */
    uint32_t class_count; /* told apart */
    uint32_t room, count; /* of the batch */
    uint64_t seen;        /* records, of other shards too */
    float *inputs;        /* [room, input_size] */
    float *outputs;       /* [room, width] */
    uint64_t *indices;
    struct predict_label *labels;
    struct buffer text;
    struct predict_score score;
    double squared_error;
    double label_mean, label_squares; /* Welford's */
};

/* ---- Lines ------------------------------------------------------------------------------------
 */

static const char *class_name(const struct predict_lines *lines, uint32_t index, char number[16])
{
    const char *name = predictor_class_name(lines->options.predictor, index);
    snprintf(number, 16, "%u", index);
    return name ? name : number;
}

/* Of two classes by one output the number is that of the second. */
static float probability_of(const struct predict_lines *lines, const float *row, uint32_t class)
{
    return lines->width > 1 ? row[class] : class == 1 ? row[0] : 1 - row[0];
}

static void csv_heading(struct predict_lines *lines)
{
    struct csv_writer writer;
    char number[16], name[IMPORT_NAME_SIZE + 16];
    csv_writer_init(&writer, &lines->text);
    csv_string(&writer, "index");
    for (uint32_t i = 0; i < (lines->has_classes ? 1 : lines->width); i++) {
        snprintf(name, sizeof(name), "prediction_%u", i + 1);
        csv_string(&writer, lines->has_classes || lines->width == 1 ? "prediction" : name);
    }
    if (lines->has_probabilities)
        csv_string(&writer, "probability");
    for (uint32_t i = 0; lines->options.has_all && i < lines->class_count; i++) {
        snprintf(name, sizeof(name), "p(%.64s)", class_name(lines, i, number));
        csv_string(&writer, name);
    }
    csv_row_end(&writer);
}

static void csv_float(struct csv_writer *writer, float value)
{
    char digits[PREDICT_FLOAT_SIZE];
    csv_number(writer, predict_float_text(value, digits));
}

static void csv_class(struct csv_writer *writer, const struct predict_lines *lines, uint32_t class)
{
    char number[16];
    double ignored;
    const char *name = class_name(lines, class, number);
    if (csv_number_parse(text_of(name), &ignored)) /* "-1" is no formula */
        csv_number(writer, name);
    else
        csv_string(writer, name);
}

static void csv_line(struct predict_lines *lines, uint64_t index, const float *row, uint32_t class)
{
    struct csv_writer writer;
    csv_writer_init(&writer, &lines->text);
    csv_i64(&writer, (int64_t)index);
    if (lines->has_classes)
        csv_class(&writer, lines, class);
    for (uint32_t i = 0; !lines->has_classes && i < lines->width; i++)
        csv_float(&writer, row[i]);
    if (lines->has_probabilities)
        csv_float(&writer, probability_of(lines, row, class));
    for (uint32_t i = 0; lines->options.has_all && i < lines->class_count; i++)
        csv_float(&writer, probability_of(lines, row, i));
    csv_row_end(&writer);
}

static void json_float(struct json_writer *writer, float value)
{
    char digits[PREDICT_FLOAT_SIZE];
    if (isfinite(value))
        json_raw(writer, text_of(predict_float_text(value, digits)));
    else
        json_null(writer);
}

static void json_prediction(struct json_writer *writer, const struct predict_lines *lines,
                            const float *row, uint32_t class)
{
    const char *name = predictor_class_name(lines->options.predictor, class);
    json_key(writer, "prediction");
    if (lines->has_classes && name) {
        json_string(writer, name);
    } else if (lines->has_classes) {
        json_u64(writer, class);
    } else if (lines->width == 1) {
        json_float(writer, row[0]);
    } else {
        json_array_begin(writer);
        for (uint32_t i = 0; i < lines->width; i++)
            json_float(writer, row[i]);
        json_array_end(writer);
    }
}

static void json_line(struct predict_lines *lines, uint64_t index, const float *row, uint32_t class)
{
    struct json_writer writer;
    char number[16];
    json_writer_init(&writer, &lines->text);
    json_object_begin(&writer);
    json_field_u64(&writer, "index", index);
    json_prediction(&writer, lines, row, class);
    if (lines->has_probabilities) {
        json_key(&writer, "probability");
        json_float(&writer, probability_of(lines, row, class));
    }
    if (lines->options.has_all) {
        json_key(&writer, "probabilities");
        json_object_begin(&writer);
        for (uint32_t i = 0; i < lines->class_count; i++) {
            json_key(&writer, class_name(lines, i, number));
            json_float(&writer, probability_of(lines, row, i));
        }
        json_object_end(&writer);
    }
    json_object_end(&writer);
    buffer_append_byte(&lines->text, '\n');
}

/* ---- Scores -----------------------------------------------------------------------------------
 */

static void score_add(struct predict_lines *lines, const struct predict_label *label,
                      const float *row, uint32_t class)
{
    struct predict_score *score = &lines->score;
    if (!label->is_known || (!lines->has_classes && lines->width > 1))
        return;
    score->labelled++;
    if (lines->has_classes) {
        score->right += label->class == (int32_t) class;
        score->unlearnt += label->class < 0;
        return;
    }
    const double away = (double)row[0] - (double)label->number;
    const double before = (double)label->number - lines->label_mean;
    lines->squared_error += away * away;
    lines->label_mean += before / (double)score->labelled;
    lines->label_squares += before * ((double)label->number - lines->label_mean);
}

struct predict_score predict_lines_score(const struct predict_lines *lines)
{
    struct predict_score score = lines->score;
    if (!lines->has_classes && score.labelled > 0) {
        score.error = sqrt(lines->squared_error / (double)score.labelled);
        score.r2 = lines->label_squares > 0 ? 1 - lines->squared_error / lines->label_squares
                                            : (double)NAN;
    }
    return score;
}

/* ---- The batch --------------------------------------------------------------------------------
 */

static int flush(struct predict_lines *lines, struct error *error)
{
    buffer_clear(&lines->text);
    if (lines->score.records == 0 && !lines->options.is_json)
        csv_heading(lines);
    if (lines->count > 0)
        predictor_run(lines->options.predictor, lines->inputs, lines->count, lines->outputs);
    for (uint32_t i = 0; i < lines->count; i++) {
        float *row = lines->outputs + (size_t)i * lines->width;
        const uint32_t class =
            lines->has_classes ? predictor_class(lines->options.predictor, row) : 0;
        score_add(lines, &lines->labels[i], row, class);
        if (lines->has_probabilities)
            (void)predictor_probabilities(lines->options.predictor, row);
        (lines->options.is_json ? json_line : csv_line)(lines, lines->indices[i], row, class);
        lines->score.records++;
    }
    lines->count = 0;
    if (buffer_check(&lines->text, error) < 0)
        return -1;
    return lines->options.write(lines->options.context, buffer_text(&lines->text), error);
}

int predict_lines_take(void *context, const float *input, const struct predict_label *label,
                       struct error *error)
{
    struct predict_lines *lines = context;
    const uint64_t index = lines->seen++;
    if (lines->options.shard_count > 0 &&
        index % lines->options.shard_count != lines->options.shard)
        return 0;
    memcpy(lines->inputs + lines->count * lines->input_size, input,
           lines->input_size * sizeof(*input));
    lines->indices[lines->count] = index;
    lines->labels[lines->count++] = *label;
    return lines->count == lines->room ? flush(lines, error) : 0;
}

int predict_lines_end(struct predict_lines *lines, struct error *error)
{
    return lines->count > 0 || lines->score.records == 0 ? flush(lines, error) : 0;
}

static uint32_t batch_room(const struct predict_lines *lines)
{
    const size_t each = lines->input_size + lines->width;
    const size_t room = BATCH_FLOATS_MAX / each;
    return room > BATCH_MAX ? BATCH_MAX : room > 0 ? (uint32_t)room : 1;
}

int predict_lines_open(const struct predict_lines_options *options,
                       struct predict_lines **out_lines, struct error *error)
{
    const struct model_spec *spec = predictor_spec(options->predictor);
    const bool has_probabilities = spec->loss == LOSS_CROSS_ENTROPY || spec->loss == LOSS_LOGISTIC;
    if (predictor_steps(options->predictor) > 0)
        return error_set(error, ERROR_INVALID,
                         "the model tells every step of a sequence, and no line of it: ask it "
                         "through souk model serve");
    if (options->has_all && !has_probabilities)
        return error_set(error, ERROR_INVALID, "--probabilities: the model tells %s",
                         spec->loss == LOSS_MSE ? "numbers" : "classes by margins");
    struct predict_lines *lines = memory_zeroed(1, sizeof(*lines));
    lines->options = *options;
    lines->has_classes = spec->loss != LOSS_MSE;
    lines->has_probabilities = has_probabilities;
    lines->input_size = predictor_input_size(options->predictor);
    lines->width = predictor_outputs(options->predictor);
    lines->class_count = lines->width > 1 ? lines->width : 2;
    lines->room = batch_room(lines);
    lines->inputs = memory_zeroed(lines->room * lines->input_size, sizeof(float));
    lines->outputs = memory_zeroed((size_t)lines->room * lines->width, sizeof(float));
    lines->indices = memory_zeroed(lines->room, sizeof(*lines->indices));
    lines->labels = memory_zeroed(lines->room, sizeof(*lines->labels));
    buffer_init(&lines->text, LINES_SIZE_MAX);
    *out_lines = lines;
    return 0;
}

void predict_lines_free(struct predict_lines *lines)
{
    if (!lines)
        return;
    free(lines->inputs);
    free(lines->outputs);
    free(lines->indices);
    free(lines->labels);
    buffer_done(&lines->text);
    free(lines);
}
