#include "function/earlier.h"

#include "function/work.h"

#include <math.h>
#include <string.h>

#define EPOCH(member) offsetof(struct run_epoch, member)
static const struct json_field run_epoch_fields[] = {
    {"epoch", JSON_U64, EPOCH(epoch), .is_required = true, .maximum = INT64_MAX},
    {"is_cut_short", JSON_BOOL, EPOCH(is_cut_short), .is_required = true},
    {"functions", JSON_U64, EPOCH(functions), .is_required = true, .minimum = 1,
     .maximum = EPOCH_FUNCTIONS_MAX},
    {"memory_mb", JSON_U64, EPOCH(memory_mb), .is_required = true, .minimum = 1,
     .maximum = INT32_MAX},
    {"seconds", JSON_DOUBLE, EPOCH(seconds), .is_required = true},
    {"fetch_s", JSON_DOUBLE, EPOCH(fetch_s), .is_required = true},
    {"compute_s", JSON_DOUBLE, EPOCH(compute_s), .is_required = true},
    {"update_s", JSON_DOUBLE, EPOCH(update_s), .is_required = true},
    {"memory_use", JSON_DOUBLE, EPOCH(memory_use), .is_required = true},
    {"cpu_use", JSON_DOUBLE, EPOCH(cpu_use), .is_required = true},
    {"calls", JSON_U64, EPOCH(calls), .is_required = true, .maximum = INT32_MAX},
    {"failures", JSON_U64, EPOCH(failures), .is_required = true, .maximum = INT32_MAX},
    {"staleness", JSON_U64, EPOCH(staleness), .is_required = true, .maximum = INT64_MAX},
    {"test_loss", JSON_DOUBLE, EPOCH(test_loss), .is_required = true},
    {"test_accuracy", JSON_DOUBLE, EPOCH(test_accuracy), .is_required = true},
    {"cost_micro", JSON_I64, EPOCH(cost_micro), .is_required = true, .minimum = 0,
     .maximum = INT64_C(1000000000000000)},
};
const struct json_schema run_epoch_schema =
    JSON_SCHEMA("epoch", run_epoch_fields, struct run_epoch);

struct run {
    struct text job;
    double test_loss_start;
    struct json_array epochs; /* of struct run_epoch */
};
#define RUN(member) offsetof(struct run, member)
static const struct json_field run_fields[] = {
    {"job", JSON_TEXT, RUN(job), .is_required = true},
    {"test_loss_start", JSON_DOUBLE, RUN(test_loss_start), .is_required = true},
    {"epochs", JSON_ARRAY, RUN(epochs), .is_required = true, .size_max = EPOCH_COUNT_MAX,
     .schema = &run_epoch_schema},
};
static const struct json_schema run_schema = JSON_SCHEMA_LENIENT("run", run_fields, struct run);

void earlier_init(struct earlier *earlier, const struct epoch_task *task)
{
    *earlier = (struct earlier){0};
    epoch_fit_init(&earlier->history, task);
}

/* A loss is divided by, and its logarithm taken. */
static bool is_loss(double value)
{
    return isfinite(value) && value > 0;
}

static bool is_time(double value)
{
    return isfinite(value) && value >= 0 && value < 1e9;
}

static int check(const struct run *run, struct text job, struct error *error)
{
    if (run->job.size != job.size || job.size < WORK_JOB_CHANCE_SIZE ||
        memcmp(run->job.data, job.data, job.size - WORK_JOB_CHANCE_SIZE) != 0)
        return error_set(error, ERROR_INVALID, "it is of the job \"%.*s\", which is another",
                         (int)run->job.size, run->job.data);
    bool is_sound = is_loss(run->test_loss_start);
    const struct run_epoch *epochs = run->epochs.items;
    for (size_t i = 0; i < run->epochs.count; i++)
        is_sound &= is_loss(epochs[i].test_loss) && is_time(epochs[i].seconds) &&
                    is_time(epochs[i].fetch_s) && is_time(epochs[i].compute_s) &&
                    is_time(epochs[i].update_s) && is_time(epochs[i].memory_use) &&
                    is_time(epochs[i].cpu_use);
    return is_sound ? 0 : error_set(error, ERROR_INVALID, "a loss or a time in it cannot be");
}

static struct epoch_seen seen_of(const struct run_epoch *epoch, double loss_before)
{
    const double calls = (double)epoch->calls / (double)epoch->functions;
    return (struct epoch_seen){
        .choice = {(uint32_t)epoch->functions, (uint32_t)epoch->memory_mb},
        .loss_before = loss_before,
        .loss_after = epoch->test_loss,
        .fetch_s = calls * epoch->fetch_s,
        .compute_s = calls * epoch->compute_s,
        .update_s = calls * epoch->update_s,
        .total_s = epoch->seconds,
        .memory_use = epoch->memory_use,
        .cpu_use = epoch->cpu_use,
        .cost_micro = epoch->cost_micro,
    };
}

static bool has_memory(const struct epoch_space *space, uint64_t memory_mb)
{
    return memory_mb >= space->memory_min_mb && memory_mb <= space->memory_max_mb &&
           (memory_mb - space->memory_min_mb) % space->memory_step_mb == 0;
}

static void keep_if_best(struct earlier *earlier, const struct epoch_state *states, uint32_t count)
{
    const uint32_t before = earlier->constant_epochs;
    if (before > 0 && earlier->constant_run[before - 1].elapsed_s <= states[count - 1].elapsed_s)
        return;
    memcpy(earlier->constant_run, states, count * sizeof(*states));
    earlier->constant_epochs = count;
}

int earlier_add(struct earlier *earlier, struct text json, struct text job, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct run run = {0};
    if (json_read(arena, json, &run_schema, &run, error) < 0 || check(&run, job, error) < 0)
        return -1;
    const struct epoch_task *task = &earlier->history.task;
    const struct run_epoch *epochs = run.epochs.items;
    struct epoch_state *states = arena_alloc(arena, (run.epochs.count + 1) * sizeof(*states));
    struct epoch_state state = {.loss = run.test_loss_start, .left_micro = task->budget_micro};
    bool is_constant = true;
    earlier->run_count++;
    for (size_t i = 0; i < run.epochs.count && !epochs[i].is_cut_short; i++) {
        is_constant &= epochs[i].functions == epochs[0].functions &&
                       epochs[i].memory_mb == epochs[0].memory_mb;
        state.last = seen_of(&epochs[i], state.loss);
        state.epoch++;
        state.loss = epochs[i].test_loss;
        state.elapsed_s += epochs[i].seconds;
        state.left_micro -= epochs[i].cost_micro;
        states[i] = state;
        if (!has_memory(&task->space, epochs[i].memory_mb))
            continue;
        epoch_fit_add(&earlier->history, &state.last);
        if (is_constant && state.loss <= task->loss_target && state.left_micro >= 0 &&
            epochs[i].functions <= task->space.function_max) {
            keep_if_best(earlier, states, state.epoch);
            is_constant = false; /* its way to the target is over */
        }
    }
    return 0;
}

struct scheduler_guard earlier_guard(const struct earlier *earlier, const struct epoch_task *task,
                                     double margin)
{
    return (struct scheduler_guard){
        .task = task,
        .history = earlier->history.seen_count > 0 ? &earlier->history : NULL,
        .constant_run = earlier->constant_run,
        .constant_epochs = earlier->constant_epochs,
        .margin = margin,
    };
}
