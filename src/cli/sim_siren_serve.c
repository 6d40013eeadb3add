/*
 * The world of `souk sim siren` epoch by epoch: a line of JSON in, a line of JSON out.
 *
 *     {"command": "reset", "seed": 7, "episode": 0}      another world, or another noise of it
 *     {"command": "step", "functions": 400, "memory_mb": 1536}
 *
 * Both are answered by
 *
 *     {"observation": [9 numbers], "reward": -0.02, "terminated": false, "truncated": false,
 *      "epoch": 1, "loss": 0.98, "elapsed_s": 6.1, "spent": 0.31,
 *      "functions_max": 3000, "memory_min_mb": 128, "memory_step_mb": 64, "memory_max_mb": 3008}
 *
 * and what is wrong by {"error": "..."}; the run stays as it was. The observation is Siren's state
 * as in learn/agent.h, not scaled. The reward is the paper's: -time/300, and 100 more at the end
 * when the target is reached, 100 less when the budget is spent; after epoch_max epochs the run is
 * truncated. A line has at most 4096 bytes; without one the program ends.
 */
#include "base/json_schema.h"
#include "cli/output.h"
#include "cli/sim_siren.h"

#include <stdio.h>
#include <string.h>

enum { LINE_BYTES_MAX = 4096 };
static const double time_reward_s = 300, end_reward = 100;

enum serve_command { SERVE_RESET, SERVE_STEP };
static const char *const command_names[] = {"reset", "step", NULL};

struct request {
    int command;
    uint64_t seed, episode;
    int64_t functions, memory_mb;
};

#define FIELD(name_) offsetof(struct request, name_)

static const struct json_field request_fields[] = {
    {"command", JSON_CHOICE, FIELD(command), .is_required = true, .choices = command_names},
    {"seed", JSON_U64, FIELD(seed)},
    {"episode", JSON_U64, FIELD(episode)},
    {"functions", JSON_I64, FIELD(functions), .minimum = 0, .maximum = EPOCH_FUNCTIONS_MAX},
    {"memory_mb", JSON_I64, FIELD(memory_mb), .minimum = 0, .maximum = 1 << 20},
};
static const struct json_schema request_schema =
    JSON_SCHEMA("request", request_fields, struct request);

struct served {
    const struct sim_siren *plan;
    struct siren_world world;
    struct siren siren;
    bool has_begun;
};

static void begin(struct served *served, const struct request *request)
{
    const struct sim_siren_options *wanted = served->plan->wanted;
    served->world = sim_siren_world(served->plan, request->seed);
    siren_begin(&served->siren,
                &(struct siren_options){.world = &served->world,
                                        .budget_micro = served->plan->budgets_micro[0],
                                        .is_noisy = wanted->noise,
                                        .episode = request->episode});
    served->has_begun = true;
}

static int step(struct served *served, const struct request *request, double *out_reward,
                struct error *error)
{
    struct siren *siren = &served->siren;
    if (!served->has_begun || siren->end != SIREN_RUNNING)
        return error_set(error, ERROR_INVALID, "no run is under way: reset first");
    const struct epoch_choice choice =
        epoch_round(&siren->task.space, (double)request->functions, (double)request->memory_mb);
    if (choice.function_count != (uint64_t)request->functions ||
        choice.memory_mb != (uint64_t)request->memory_mb)
        return error_set(error, ERROR_INVALID,
                         "functions are 1 to %u, memory_mb %u to %u in steps of %u",
                         siren->task.space.function_max, siren->task.space.memory_min_mb,
                         siren->task.space.memory_max_mb, siren->task.space.memory_step_mb);
    const double before_s = siren->state.elapsed_s;
    siren_step(siren, choice);
    *out_reward = -(siren->state.elapsed_s - before_s) / time_reward_s;
    if (siren->end == SIREN_REACHED)
        *out_reward += end_reward;
    else if (siren->end == SIREN_EXHAUSTED)
        *out_reward -= end_reward;
    return 0;
}

static void write_answer(const struct served *served, double reward, struct json_writer *writer)
{
    const struct siren *siren = &served->siren;
    const struct epoch_space *space = &siren->task.space;
    double input[AGENT_INPUTS];
    agent_input(&siren->task, &siren->state, input);
    json_object_begin(writer);
    json_key(writer, "observation");
    json_array_begin(writer);
    for (int i = 0; i < AGENT_INPUTS; i++)
        json_double(writer, input[i]);
    json_array_end(writer);
    json_field_double(writer, "reward", reward);
    json_field_bool(writer, "terminated",
                    siren->end == SIREN_REACHED || siren->end == SIREN_EXHAUSTED);
    json_field_bool(writer, "truncated", siren->end == SIREN_TOO_LONG);
    json_field_u64(writer, "epoch", siren->state.epoch);
    json_field_double(writer, "loss", siren->state.loss);
    json_field_double(writer, "elapsed_s", siren->state.elapsed_s);
    json_field_double(writer, "spent", 1e-6 * (double)siren_spent_micro(siren));
    json_field_u64(writer, "functions_max", space->function_max);
    json_field_u64(writer, "memory_min_mb", space->memory_min_mb);
    json_field_u64(writer, "memory_step_mb", space->memory_step_mb);
    json_field_u64(writer, "memory_max_mb", space->memory_max_mb);
    json_object_end(writer);
}

static void answer(struct served *served, struct arena *arena, struct text line, struct buffer *out)
{
    struct error error;
    struct request request = {0};
    double reward = 0;
    int result = json_read(arena, line, &request_schema, &request, &error);
    if (result == 0 && request.command == SERVE_RESET)
        begin(served, &request);
    else if (result == 0)
        result = step(served, &request, &reward, &error);
    struct json_writer writer;
    json_writer_init(&writer, out);
    if (result == 0) {
        write_answer(served, reward, &writer);
        return;
    }
    json_object_begin(&writer);
    json_field_string(&writer, "error", error.message);
    json_object_end(&writer);
}

int sim_siren_serve(const struct sim_siren *plan, struct error *error)
{
    struct served served = {.plan = plan};
    char line[LINE_BYTES_MAX + 2];
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 16);
    AUTO(arena) struct arena *arena = arena_new(1 << 20);
    if (plan->budget_count != 1)
        return error_set(error, ERROR_INVALID, "--serve runs with one --budget");
    while (fgets(line, sizeof(line), stdin)) {
        struct text text = text_of(line);
        if (!text_ends_with(text, TEXT("\n")))
            return error_set(error, ERROR_INVALID, "a line has at most %d bytes and an end",
                             LINE_BYTES_MAX);
        text.size--;
        arena_clear(arena);
        buffer_clear(&out);
        answer(&served, arena, text, &out);
        output_json(buffer_text(&out));
        if (output_finish(error) < 0)
            return -1;
    }
    return ferror(stdin) ? error_set(error, ERROR_UNAVAILABLE, "standard input cannot be read") : 0;
}
