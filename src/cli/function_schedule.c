#include "cli/function_schedule.h"

#include "base/file.h"
#include "base/memory.h"
#include "cli/agent_store.h"
#include "cli/output.h"
#include "function/chooser_scheduler.h"
#include "function/earlier.h"
#include "learn/agent.h"

#include <inttypes.h>
#include <stdlib.h>

const char *const function_schedule_names[] = {"auto",    "constant", "decay", "grow",
                                               "planner", "agent",    NULL};

enum { MEMORY_STEP_MB = 64, GROWTH = 8 /* times, from the first epoch to the last */ };

struct function_schedule {
    struct function_schedule_options options;
    struct epoch_task task;
    struct earlier earlier;
    struct agent *agent; /* or NULL */
    struct chooser_scheduler chooser;
    const char *plan;
};

/* From the most memory down in whole steps. */
static uint32_t least_memory(const struct function_schedule_options *options)
{
    const uint32_t most = options->first.memory_mb, least = options->memory_least_mb;
    return least > 0 && least < most ? most - (most - least) / MEMORY_STEP_MB * MEMORY_STEP_MB
                                     : most;
}

static struct epoch_task task_of(const struct function_schedule_options *options)
{
    return (struct epoch_task){
        .space = {options->first.function_count, least_memory(options), MEMORY_STEP_MB,
                  options->first.memory_mb},
        .loss_form = EPOCH_LOSS_WORK,
        .loss_start = options->loss_start,
        .loss_target = options->loss_target,
        .price = options->price,
        .budget_micro = options->budget_micro > 0 ? options->budget_micro : INT64_MAX,
        .epoch_max =
            options->epochs < EPOCH_COUNT_MAX ? (uint32_t)options->epochs : EPOCH_COUNT_MAX,
    };
}

static int read_earlier(struct function_schedule *schedule, struct error *error)
{
    const struct option_list *files = &schedule->options.earlier;
    earlier_init(&schedule->earlier, &schedule->task);
    for (size_t i = 0; i < files->count; i++) {
        struct buffer bytes AUTO_BUFFER;
        buffer_init(&bytes, EARLIER_BYTES_MAX);
        if (file_read(files->items[i], &bytes, error) < 0 ||
            earlier_add(&schedule->earlier, buffer_text(&bytes), text_of(schedule->options.job),
                        error) < 0)
            return error_wrap(error, "--earlier: %.150s", files->items[i]);
    }
    return 0;
}

static int open_agent(struct function_schedule *schedule, struct error *error)
{
    const struct function_schedule_options *options = &schedule->options;
    if (options->agent_file)
        return agent_store_read(options->agent_file, &schedule->agent, error);
    schedule->agent = agent_new(
        (struct epoch_choice){(options->first.function_count + 1) / 2, options->first.memory_mb},
        options->seed);
    return 0;
}

/* Of a planned schedule, after what it follows: "; held to 8 functions, ...". */
static const char *guard_words(const struct function_schedule *schedule)
{
    const struct earlier *earlier = &schedule->earlier;
    struct arena *arena = schedule->options.cli->arena;
    if (earlier->constant_epochs == 0)
        return "";
    const struct epoch_state *end = &earlier->constant_run[earlier->constant_epochs - 1];
    return arena_format(arena,
                        ", held to %u functions in every epoch, which took %.1f s to the target, "
                        "once it is more than %.0f %% later",
                        end->last.choice.function_count, end->elapsed_s,
                        100 * schedule->options.margin);
}

static void plan_learned(struct function_schedule *schedule, struct scheduler *inner,
                         const char *words)
{
    const struct function_schedule_options *options = &schedule->options;
    const struct scheduler_guard guard =
        earlier_guard(&schedule->earlier, &schedule->task, options->margin);
    schedule->chooser.scheduler = scheduler_new_guarded_take(inner, &guard);
    struct arena *arena = options->cli->arena;
    const struct epoch_space *space = &schedule->task.space;
    const char *memory =
        space->memory_min_mb < space->memory_max_mb
            ? arena_format(arena, "%u to %u", space->memory_min_mb, space->memory_max_mb)
            : arena_format(arena, "%u", space->memory_max_mb);
    const char *within =
        options->budget_micro > 0
            ? arena_format(arena, " within %s", output_amount(options->cli, options->budget_micro))
            : "";
    const uint64_t seen = schedule->earlier.history.seen_count;
    const char *known =
        seen > 0 ? arena_format(arena, ", from %" PRIu64 " epochs of earlier runs", seen) : "";
    schedule->plan = arena_format(arena, "%s at most %u functions of %s MB to a loss of %g%s%s%s",
                                  words, space->function_max, memory, options->loss_target, within,
                                  known, guard_words(schedule));
}

static int plan_agent(struct function_schedule *schedule, struct error *error)
{
    if (open_agent(schedule, error) < 0)
        return error_wrap(error, "--agent");
    const struct earlier *earlier = &schedule->earlier;
    struct scheduler *refined = scheduler_new_refined(&(struct scheduler_refined){
        .task = &schedule->task,
        .history = earlier->history.seen_count > 0 ? &earlier->history : NULL,
        .agent = schedule->agent,
        .seed = schedule->options.seed,
    });
    plan_learned(schedule, refined,
                 schedule->options.agent_file ? "the agent of the file, refined on the job, chooses"
                                              : "a new agent, refined on the job, chooses");
    return 0;
}

static void plan_planner(struct function_schedule *schedule)
{
    const struct earlier *earlier = &schedule->earlier;
    plan_learned(schedule,
                 scheduler_new_planner(&schedule->task,
                                       earlier->history.seen_count > 0 ? &earlier->history : NULL),
                 "fits the epochs it sees and plans");
}

static void plan_constant(struct function_schedule *schedule)
{
    const struct function_choice first = schedule->options.first;
    schedule->chooser.scheduler =
        scheduler_new_constant((struct epoch_choice){first.function_count, first.memory_mb});
    schedule->plan =
        arena_format(schedule->options.cli->arena, "%u function%s of %u MB in every epoch",
                     first.function_count, first.function_count == 1 ? "" : "s", first.memory_mb);
}

static void plan_decay(struct function_schedule *schedule)
{
    const struct function_schedule_options *options = &schedule->options;
    schedule->chooser.scheduler = scheduler_new_decay(&(struct scheduler_decay){
        .function_first = options->first.function_count,
        .function_last = options->last.function_count,
        .epoch_count = schedule->task.epoch_max - 1,
        .memory_mb = options->first.memory_mb,
        .memory_last_mb = options->last.memory_mb,
    });
    schedule->plan = arena_format(
        options->cli->arena, "%u functions of %u MB in the first epoch, %u of %u MB in the last",
        options->first.function_count, options->first.memory_mb, options->last.function_count,
        options->last.memory_mb);
}

static void plan_grow(struct function_schedule *schedule)
{
    const struct function_schedule_options *options = &schedule->options;
    const uint32_t most = options->first.function_count;
    const uint32_t least = most > GROWTH ? most / GROWTH : 1;
    schedule->chooser.scheduler =
        scheduler_new_grow((struct epoch_choice){least, options->first.memory_mb},
                           (struct epoch_choice){most, options->first.memory_mb});
    schedule->plan = arena_format(
        options->cli->arena,
        "%u function%s of %u MB in the first epoch, twice as many in every next, %u at "
        "most",
        least, least == 1 ? "" : "s", options->first.memory_mb, most);
}

static int check_memory(const struct function_schedule_options *options, struct error *error)
{
    if (options->memory_least_mb <= options->first.memory_mb)
        return 0;
    return error_set(error, ERROR_INVALID, "--memory-least: is %u, above --memory, which is %u",
                     options->memory_least_mb, options->first.memory_mb);
}

static int check_aim(const struct function_schedule_options *options, struct error *error)
{
    const char *name = function_schedule_names[options->kind];
    if (!(options->loss_target > 0))
        return error_set(error, ERROR_INVALID, "--schedule %s: the job needs train.target.loss",
                         name);
    if (options->kind == FUNCTION_SCHEDULE_AGENT && options->budget_micro <= 0)
        return error_set(error, ERROR_INVALID, "--schedule %s: needs --budget", name);
    if (!(options->loss_start > options->loss_target))
        return error_set(error, ERROR_INVALID,
                         "--schedule %s: the loss is %g where it begins, and the target is %g",
                         name, options->loss_start, options->loss_target);
    return 0;
}

static int plan(struct function_schedule *schedule, struct error *error)
{
    const struct function_schedule_options *options = &schedule->options;
    switch (options->kind) {
    case FUNCTION_SCHEDULE_CONSTANT:
        plan_constant(schedule);
        return 0;
    case FUNCTION_SCHEDULE_DECAY:
        plan_decay(schedule);
        return 0;
    case FUNCTION_SCHEDULE_GROW:
        plan_grow(schedule);
        return 0;
    case FUNCTION_SCHEDULE_AUTO:
        if (options->loss_target > 0 && options->loss_start > options->loss_target)
            break;
        plan_constant(schedule);
        return 0;
    case FUNCTION_SCHEDULE_PLANNER:
    case FUNCTION_SCHEDULE_AGENT:
        if (check_aim(options, error) < 0)
            return -1;
        break;
    }
    if (read_earlier(schedule, error) < 0)
        return -1;
    if (options->kind == FUNCTION_SCHEDULE_AGENT)
        return plan_agent(schedule, error);
    plan_planner(schedule);
    return 0;
}

int function_schedule_open(const struct function_schedule_options *options,
                           struct function_schedule **out_schedule, struct error *error)
{
    AUTO(function_schedule)
    struct function_schedule *schedule = memory_zeroed(1, sizeof(*schedule));
    schedule->options = *options;
    schedule->task = task_of(options);
    if (check_memory(options, error) < 0 || plan(schedule, error) < 0)
        return -1;
    *out_schedule = TAKE(schedule);
    return 0;
}

void function_schedule_free(struct function_schedule *schedule)
{
    if (!schedule)
        return;
    scheduler_free(schedule->chooser.scheduler);
    agent_free(schedule->agent);
    free(schedule);
}

const char *function_schedule_plan(const struct function_schedule *schedule)
{
    return schedule->plan;
}

struct function_choice function_schedule_choose(void *context, const struct function_state *state)
{
    return chooser_scheduler(&((struct function_schedule *)context)->chooser, state);
}

int function_schedule_save_agent(const struct function_schedule *schedule, const char *path,
                                 struct error *error)
{
    return agent_store_write(path, schedule->agent, error);
}
