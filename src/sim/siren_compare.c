#include "sim/siren_compare.h"

#include "base/assert.h"
#include "base/memory.h"
#include "learn/agent_rehearse.h"
#include "learn/plan.h"

#include <math.h>
#include <stdlib.h>

const char *const siren_scheduler_names[SIREN_SCHEDULER_COUNT + 1] = {
    "constant", "bound", "decay", "agent", "planner", "auto", NULL};

enum { KEPT_EPOCHS = 10 }; /* of a choice in auto's rehearsals */
/* In auto's rehearsals choices are drawn around the constant, evenly in the logarithm. */
static const double functions_around = 4, memory_around = 1.6;
static const double noisy_share = 0.93;      /* of the budget, that an agent is set to */
static const double margin = 0.05;           /* of auto */
static const double reduction_least = 0.005; /* of the bound: below there is nothing to share */
static const uint32_t bound_cells = 3000;    /* more change the bound by less than 1e-5 */
/* Episodes of a seed: rehearsals, those that constants are found on, then those that count. */
static const uint64_t episodes_of_seed = 1 << 20, trials_from = 1 << 18, evaluations_from = 1 << 19;

struct comparison {
    const struct siren_compare_options *options;
    struct epoch_task task;
    struct siren_episodes trials, evaluations; /* without noise the same */
    uint64_t rehearsals_done;
    double constant_s;
    struct epoch_choice centre; /* the best constant without noise */
    struct epoch_fit history;
    struct epoch_state *constant_run;
    uint32_t constant_epochs;
};

static struct siren_options next_rehearsal(struct comparison *comparison)
{
    const struct siren_compare_options *options = comparison->options;
    return (struct siren_options){
        .world = options->world,
        .budget_micro = options->budget_micro,
        .is_noisy = options->is_noisy,
        .episode = options->seed * episodes_of_seed + comparison->rehearsals_done++,
    };
}

/* The budget does not end a rehearsal: how far it was passed is what is learned from. The state
 * that is shown tells of the real budget. */
struct rehearsal {
    struct siren siren;
    int64_t extra_micro;
};

static void rehearsal_begin(struct comparison *comparison, struct rehearsal *out)
{
    const struct siren_options options = next_rehearsal(comparison);
    siren_begin(&out->siren, &options);
    out->extra_micro = 99 * options.budget_micro;
    out->siren.state.left_micro += out->extra_micro;
}

struct world {
    struct comparison *comparison;
    struct rehearsal rehearsal;
};

static struct epoch_state rehearsal_state(const struct rehearsal *rehearsal)
{
    struct epoch_state state = rehearsal->siren.state;
    state.left_micro -= rehearsal->extra_micro;
    return state;
}

static void world_begin(void *context, struct epoch_state *out_state)
{
    struct world *world = context;
    rehearsal_begin(world->comparison, &world->rehearsal);
    *out_state = rehearsal_state(&world->rehearsal);
}

static bool world_step(void *context, struct epoch_choice choice, struct epoch_state *state)
{
    struct rehearsal *rehearsal = &((struct world *)context)->rehearsal;
    siren_step(&rehearsal->siren, choice);
    const bool is_done = rehearsal->siren.state.epoch > state->epoch;
    *state = rehearsal_state(rehearsal);
    return is_done;
}

/* One run of choices drawn anew every few epochs: a fit needs numbers that do not go with the loss.
 */
static void look_around(struct comparison *comparison, struct random *random)
{
    struct rehearsal rehearsal;
    struct epoch_choice choice = {0};
    rehearsal_begin(comparison, &rehearsal);
    while (rehearsal.siren.end == SIREN_RUNNING) {
        const uint32_t epoch = rehearsal.siren.state.epoch;
        if (epoch % KEPT_EPOCHS == 0)
            choice = epoch_round(&comparison->task.space,
                                 comparison->centre.function_count *
                                     pow(functions_around, 2 * random_unit(random) - 1),
                                 comparison->centre.memory_mb *
                                     pow(memory_around, 2 * random_unit(random) - 1));
        siren_step(&rehearsal.siren, choice);
        if (rehearsal.siren.state.epoch > epoch)
            epoch_fit_add(&comparison->history, &rehearsal.siren.state.last);
    }
}

/* The best constant by what was seen, run once: what auto is held to. */
static void run_constant(struct comparison *comparison)
{
    const struct epoch_fitted fitted = epoch_fit_solve(&comparison->history);
    AUTO(plan)
    struct plan *plan =
        plan_new(&comparison->task, (struct plan_options){.candidate_max = 300, .cell_count = 1});
    plan_set_model(plan, &fitted.model);
    const struct plan_outlook best =
        plan_constant(plan, comparison->task.loss_start,
                      (comparison->options->is_noisy ? noisy_share : 1) * 1e-6 *
                          (double)comparison->task.budget_micro,
                      /* doubt= */ 0);
    if (!best.is_within)
        return;
    AUTO(scheduler) struct scheduler *scheduler = scheduler_new_constant(best.choice);
    const struct siren_options options = next_rehearsal(comparison);
    comparison->constant_run = memory_zeroed(EPOCH_COUNT_MAX, sizeof(*comparison->constant_run));
    const struct siren siren = siren_run(&options, scheduler, comparison->constant_run);
    for (uint32_t i = 0; i < siren.state.epoch; i++)
        epoch_fit_add(&comparison->history, &comparison->constant_run[i].last);
    if (siren.end == SIREN_REACHED)
        comparison->constant_epochs = siren.state.epoch;
}

static bool wants(const struct comparison *comparison, enum siren_scheduler scheduler)
{
    return comparison->options->wanted_mask >> scheduler & 1;
}

static struct agent *rehearse_agent(struct comparison *comparison)
{
    const uint32_t count = comparison->options->agent_rehearsals;
    if (count == 0 || !wants(comparison, SIREN_AGENT))
        return NULL;
    ASSERT(count >= SIREN_AGENT_REHEARSALS_MIN && count <= SIREN_REHEARSALS_MAX);
    struct agent *agent = agent_new(comparison->centre, comparison->options->seed);
    struct world world = {.comparison = comparison};
    const struct rehearsal_world runs = {world_begin, world_step, &world};
    const struct agent_rehearse_options options = {
        .task = comparison->task,
        .time_scale_s = comparison->constant_s,
        .budget_share = comparison->options->is_noisy ? noisy_share : 1,
        .run_count = count - AGENT_OFFSET_RUNS,
        .seed = comparison->options->seed + 1,
    };
    agent_rehearse(agent, &options, &runs);
    agent_set_offset(agent, &options, &runs);
    return agent;
}

/* All but the last look around, the last is of a constant. */
static void rehearse_auto(struct comparison *comparison)
{
    const uint32_t count = comparison->options->auto_rehearsals;
    if (count == 0 || !wants(comparison, SIREN_AUTO))
        return;
    ASSERT(count <= SIREN_REHEARSALS_MAX);
    struct random random;
    random_init(&random, comparison->options->seed + 2);
    for (uint32_t i = 0; i + 1 < count || i == 0; i++)
        look_around(comparison, &random);
    if (count > 1)
        run_constant(comparison);
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
    return scheduler_new_auto(&(struct scheduler_guard){
        .task = &comparison->task,
        .history = comparison->history.seen_count > 0 ? &comparison->history : NULL,
        .constant_run = comparison->constant_run,
        .constant_epochs = comparison->constant_epochs,
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

static void compare_found(struct comparison *comparison, struct siren_result *result)
{
    const struct siren_episodes *evaluations = &comparison->evaluations;
    AUTO(plan)
    struct plan *plan = plan_new(
        &comparison->task, (struct plan_options){comparison->task.space.function_max, bound_cells});
    plan_set_model(plan, &comparison->options->world->truth);
    const struct plan_outlook outlook =
        plan_make(plan, comparison->task.loss_start, 1e-6 * (double)comparison->task.budget_micro);
    struct siren_score bound = {.time_s = outlook.bound_s, .cost = (double)NAN};
    for (uint32_t i = 0; i < evaluations->count; i++)
        bound.times_s[i] = outlook.bound_s;
    put(result, SIREN_BOUND, bound);
    put(result, SIREN_CONSTANT, siren_score(evaluations, make_constant, &result->constant));
    if (wants(comparison, SIREN_DECAY)) {
        const struct scheduler_decay decay = siren_best_decay(
            evaluations, result->constant, result->scores[SIREN_CONSTANT].epoch_count);
        put(result, SIREN_DECAY, siren_score(evaluations, make_decay, &decay));
    }
}

static void compare_ours(struct comparison *comparison, struct siren_result *result)
{
    const struct siren_compare_options *options = comparison->options;
    const struct siren_episodes *evaluations = &comparison->evaluations;
    result->agent = rehearse_agent(comparison);
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
    struct comparison comparison = {
        .options = options,
        .task = options->world->task,
        .evaluations = {.world = options->world,
                        .budget_micro = options->budget_micro,
                        .is_noisy = options->is_noisy,
                        .first = options->seed * episodes_of_seed + evaluations_from,
                        .count = options->is_noisy ? options->evaluation_count : 1},
    };
    comparison.task.budget_micro = options->budget_micro;
    epoch_fit_init(&comparison.history, &comparison.task);
    *out_result = (struct siren_result){.is_noisy = options->is_noisy,
                                        .evaluation_count = comparison.evaluations.count};
    comparison.trials = comparison.evaluations;
    comparison.trials.first = options->seed * episodes_of_seed + trials_from;
    struct siren_episodes plain = comparison.evaluations;
    plain.is_noisy = false;
    plain.count = 1;
    comparison.centre = siren_best_constant(&plain);
    out_result->constant =
        options->is_noisy ? siren_best_constant(&comparison.trials) : comparison.centre;
    if (comparison.centre.function_count == 0 || out_result->constant.function_count == 0)
        return;
    comparison.constant_s = siren_score(&plain, make_constant, &comparison.centre).time_s;
    compare_found(&comparison, out_result);
    compare_ours(&comparison, out_result);
    free(comparison.constant_run);
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
