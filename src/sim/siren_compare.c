#include "sim/siren_compare.h"

#include "learn/plan.h"
#include "sim/siren_lines.h"
#include "sim/siren_rehearse.h"

#include <math.h>

const char *const siren_scheduler_names[SIREN_SCHEDULER_COUNT + 1] = {
    "constant", "bound", "decay", "growth", "agent", "planner", "auto", NULL};

static const double margin = 0.05;           /* of auto */
static const double reduction_least = 0.005; /* of the bound: below there is nothing to share */
static const uint32_t bound_cells = 3000;    /* more change the bound by less than 1e-5 */
/* Episodes of a seed: each scheduler's own rehearsals, so that none depends on who else is there;
 * those that constants and decays are found on; then those that count. */
static const uint64_t episodes_of_seed = 1 << 20, agent_from = 0, auto_from = 1 << 17,
                      trials_from = 1 << 18, evaluations_from = 1 << 19;

struct comparison {
    const struct siren_compare_options *options;
    struct epoch_task task;
    struct siren_episodes trials, evaluations; /* without noise the same */
    struct siren_experience experience;        /* auto's */
    struct scheduler_decay line;               /* auto's, in `sgd`; 0 functions: none */
};

static bool wants(const struct comparison *comparison, enum siren_scheduler scheduler)
{
    return comparison->options->wanted_mask >> scheduler & 1;
}

static struct scheduler *make_constant(const void *context)
{
    return scheduler_new_constant(*(const struct epoch_choice *)context);
}

static struct scheduler *make_decay(const void *context)
{
    return scheduler_new_decay(context);
}

static struct scheduler *make_planner(const void *context)
{
    return scheduler_new_planner(&((const struct comparison *)context)->task, NULL);
}

static struct scheduler *make_auto(const void *context)
{
    const struct comparison *comparison = context;
    const struct siren_experience *experience = &comparison->experience;
    if (comparison->line.function_first > 0)
        return scheduler_new_decay(&comparison->line);
    return scheduler_new_auto(&(struct scheduler_guard){
        .task = &comparison->task,
        .history = experience->history.seen_count > 0 ? &experience->history : NULL,
        .constant_run = experience->constant_run,
        .constant_epochs = experience->constant_epochs,
        .margin = margin,
    });
}

struct with_agent {
    const struct comparison *comparison;
    const struct agent *agent;
};

static struct scheduler *make_agent(const void *context)
{
    const struct with_agent *with = context;
    return scheduler_new_agent(&with->comparison->task, with->agent);
}

static void put(struct siren_result *result, enum siren_scheduler scheduler,
                struct siren_score score)
{
    result->is_run[scheduler] = true;
    result->scores[scheduler] = score;
}

static struct siren_score bound_of(const struct comparison *comparison)
{
    AUTO(plan)
    struct plan *plan = plan_new(
        &comparison->task, (struct plan_options){comparison->task.space.function_max, bound_cells});
    plan_set_model(plan, &comparison->options->world->truth);
    const struct plan_outlook outlook =
        plan_make(plan, comparison->task.loss_start, 1e-6 * (double)comparison->task.budget_micro);
    struct siren_score bound = {.time_s = outlook.bound_s, .cost = (double)NAN};
    for (uint32_t i = 0; i < comparison->evaluations.count; i++)
        bound.times_s[i] = outlook.bound_s;
    return bound;
}

static void compare_found(struct comparison *comparison, struct siren_result *result)
{
    const struct siren_episodes *evaluations = &comparison->evaluations;
    if (comparison->options->world->mode != SIREN_SGD)
        put(result, SIREN_BOUND, bound_of(comparison));
    put(result, SIREN_CONSTANT, siren_score(evaluations, make_constant, &result->constant));
    const double epochs = result->scores[SIREN_CONSTANT].epoch_count;
    if (wants(comparison, SIREN_DECAY)) {
        const struct scheduler_decay decay =
            siren_best_decay(&comparison->trials, result->constant, epochs);
        put(result, SIREN_DECAY, siren_score(evaluations, make_decay, &decay));
    }
    if (wants(comparison, SIREN_GROWTH)) {
        const struct scheduler_decay growth =
            siren_best_growth(&comparison->trials, result->constant, epochs);
        put(result, SIREN_GROWTH, siren_score(evaluations, make_decay, &growth));
    }
}

static struct siren_rehearsals rehearsals(const struct comparison *comparison, uint64_t from,
                                          uint32_t count)
{
    const struct siren_compare_options *options = comparison->options;
    return (struct siren_rehearsals){
        .world = options->world,
        .budget_micro = options->budget_micro,
        .is_noisy = options->is_noisy,
        .seed = options->seed,
        .first = options->seed * episodes_of_seed + from,
        .count = count,
    };
}

static void rehearse_auto(struct comparison *comparison)
{
    const uint32_t count = comparison->options->auto_rehearsals;
    if (!wants(comparison, SIREN_AUTO) || count == 0)
        return;
    const struct siren_rehearsals own = rehearsals(comparison, auto_from, count);
    if (own.world->mode == SIREN_SGD)
        comparison->line = siren_rehearse_lines(&own, &comparison->experience.history);
    else
        siren_rehearse_auto(own, &comparison->experience);
}

static void compare_ours(struct comparison *comparison, struct siren_result *result)
{
    const struct siren_compare_options *options = comparison->options;
    const struct siren_episodes *evaluations = &comparison->evaluations;
    if (wants(comparison, SIREN_AGENT) && options->agent_rehearsals > 0)
        result->agent =
            siren_rehearse_agent(rehearsals(comparison, agent_from, options->agent_rehearsals));
    rehearse_auto(comparison);
    const struct with_agent with = {comparison, options->agent ? options->agent : result->agent};
    if (wants(comparison, SIREN_AGENT) && with.agent)
        put(result, SIREN_AGENT, siren_score(evaluations, make_agent, &with));
    if (wants(comparison, SIREN_PLANNER))
        put(result, SIREN_PLANNER, siren_score(evaluations, make_planner, comparison));
    if (wants(comparison, SIREN_AUTO))
        put(result, SIREN_AUTO, siren_score(evaluations, make_auto, comparison));
}

void siren_compare(const struct siren_compare_options *options, struct siren_result *out_result)
{
    const bool varies = siren_world_varies(options->world, options->is_noisy);
    struct comparison comparison = {
        .options = options,
        .task = options->world->task,
        .evaluations = {.world = options->world,
                        .budget_micro = options->budget_micro,
                        .is_noisy = options->is_noisy,
                        .first = options->seed * episodes_of_seed + evaluations_from,
                        .count = varies ? options->evaluation_count : 1},
    };
    comparison.task.budget_micro = options->budget_micro;
    siren_experience_init(&comparison.experience, &comparison.task);
    *out_result =
        (struct siren_result){.is_noisy = varies, .evaluation_count = comparison.evaluations.count};
    comparison.trials = comparison.evaluations;
    comparison.trials.first = options->seed * episodes_of_seed + trials_from;
    out_result->constant = siren_best_constant(&comparison.trials);
    if (out_result->constant.function_count > 0) {
        compare_found(&comparison, out_result);
        compare_ours(&comparison, out_result);
    }
    siren_experience_done(&comparison.experience);
}

void siren_result_done(struct siren_result *result)
{
    agent_free(result->agent);
    result->agent = NULL;
}

double siren_reduction(const struct siren_result *result, enum siren_scheduler scheduler)
{
    const struct siren_score *score = &result->scores[scheduler];
    const struct siren_score *constant = &result->scores[SIREN_CONSTANT];
    double ours_s = 0, constants_s = 0;
    if (!result->is_run[scheduler])
        return (double)NAN;
    for (uint32_t i = 0; i < result->evaluation_count; i++) {
        if (isnan(score->times_s[i]) || isnan(constant->times_s[i]))
            continue;
        ours_s += score->times_s[i];
        constants_s += constant->times_s[i];
    }
    return 1 - ours_s / constants_s;
}

double siren_share(const struct siren_result *result, enum siren_scheduler scheduler)
{
    const double most = siren_reduction(result, SIREN_BOUND);
    if (result->is_noisy || !(most >= reduction_least))
        return (double)NAN;
    return siren_reduction(result, scheduler) / most;
}
