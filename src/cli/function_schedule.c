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

const char *const function_schedule_names[] = {"auto",    "constant", "decay",
                                               "planner", "agent",    NULL};

enum { MEMORY_STEP_MB = 64 };

struct function_schedule {
    struct function_schedule_options options;
    struct epoch_task task;
    struct earlier earlier;
    struct agent *agent; /* or NULL */
    struct chooser_decay decay;
    struct chooser_scheduler chooser; /* its scheduler NULL: the choice is the decay's */
    const char *plan;
};

static struct epoch_task task_of(const struct function_schedule_options *options)
{
    return (struct epoch_task){
        .space = {options->first.function_count, options->first.memory_mb, MEMORY_STEP_MB,
                  options->first.memory_mb},
        .loss_form = EPOCH_LOSS_WORK,
        .loss_start = options->loss_start,
        .loss_target = options->loss_target,
        .price = options->price,
        .budget_micro = options->budget_micro,
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
    const bool is_guarded = options->kind == FUNCTION_SCHEDULE_AGENT;
    schedule->chooser.scheduler = is_guarded ? scheduler_new_guarded_take(inner, &guard) : inner;
    schedule->plan =
        arena_format(options->cli->arena,
                     "%s of at most %u functions of %u MB to a loss of %g within %s, from %" PRIu64
                     " epochs of earlier runs%s",
                     words, options->first.function_count, options->first.memory_mb,
                     options->loss_target, output_amount(options->cli, options->budget_micro),
                     schedule->earlier.history.seen_count, is_guarded ? guard_words(schedule) : "");
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

static void plan_auto(struct function_schedule *schedule)
{
    const struct function_schedule_options *options = &schedule->options;
    const struct earlier *earlier = &schedule->earlier;
    if (earlier->constant_epochs == 0) {
        plan_planner(schedule);
        return;
    }
    const struct epoch_state *end = &earlier->constant_run[earlier->constant_epochs - 1];
    const struct scheduler_guard guard = earlier_guard(earlier, &schedule->task, options->margin);
    schedule->chooser.scheduler = scheduler_new_auto(&guard);
    schedule->plan = arena_format(
        options->cli->arena,
        "%u function%s of %u MB in every epoch, which of %u earlier run%s took the least to a loss "
        "of %g within %s: %.1f s",
        end->last.choice.function_count, end->last.choice.function_count == 1 ? "" : "s",
        end->last.choice.memory_mb, earlier->run_count, earlier->run_count == 1 ? "" : "s",
        options->loss_target, output_amount(options->cli, options->budget_micro), end->elapsed_s);
}

static void plan_fixed(struct function_schedule *schedule, bool is_decay)
{
    const struct function_schedule_options *options = &schedule->options;
    schedule->decay =
        (struct chooser_decay){options->first, is_decay ? options->last : options->first};
    schedule->plan =
        is_decay
            ? arena_format(options->cli->arena,
                           "%u functions of %u MB in the first epoch, %u of %u MB in the last",
                           options->first.function_count, options->first.memory_mb,
                           options->last.function_count, options->last.memory_mb)
            : arena_format(options->cli->arena, "%u function%s of %u MB in every epoch",
                           options->first.function_count,
                           options->first.function_count == 1 ? "" : "s", options->first.memory_mb);
}

static int plan(struct function_schedule *schedule, struct error *error)
{
    const struct function_schedule_options *options = &schedule->options;
    const bool has_aim = options->budget_micro > 0 && options->loss_target > 0;
    switch (options->kind) {
    case FUNCTION_SCHEDULE_CONSTANT:
    case FUNCTION_SCHEDULE_DECAY:
        plan_fixed(schedule, options->kind == FUNCTION_SCHEDULE_DECAY);
        return 0;
    case FUNCTION_SCHEDULE_AUTO:
        if (has_aim && options->loss_start > options->loss_target)
            break;
        plan_fixed(schedule, /* is_decay= */ false);
        return 0;
    case FUNCTION_SCHEDULE_PLANNER:
    case FUNCTION_SCHEDULE_AGENT:
        if (!has_aim)
            return error_set(error, ERROR_INVALID,
                             "--schedule %s: the job needs train.target.loss, and --budget",
                             function_schedule_names[options->kind]);
        if (!(options->loss_start > options->loss_target))
            return error_set(error, ERROR_INVALID,
                             "--schedule %s: the loss is %g where it begins, and the target is %g",
                             function_schedule_names[options->kind], options->loss_start,
                             options->loss_target);
        break;
    }
    if (read_earlier(schedule, error) < 0)
        return -1;
    if (options->kind == FUNCTION_SCHEDULE_AGENT)
        return plan_agent(schedule, error);
    if (options->kind == FUNCTION_SCHEDULE_AUTO)
        plan_auto(schedule);
    else
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
    if (plan(schedule, error) < 0)
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
    struct function_schedule *schedule = context;
    return schedule->chooser.scheduler ? chooser_scheduler(&schedule->chooser, state)
                                       : chooser_decay(&schedule->decay, state);
}

int function_schedule_save_agent(const struct function_schedule *schedule, const char *path,
                                 struct error *error)
{
    return agent_store_write(path, schedule->agent, error);
}
