#include "sim/siren_rehearse.h"

#include "base/assert.h"
#include "base/memory.h"
#include "learn/agent_rehearse.h"
#include "learn/plan.h"
#include "sim/siren_search.h"

#include <math.h>
#include <stdlib.h>

enum { CHOICES_MOST = 70 }; /* of a rehearsal: each is kept for some epochs */
/* Around the constant choices are drawn evenly in the logarithm. */
static const double functions_around = 4, memory_around = 1.6;
static const double noisy_share = 0.93;  /* of the budget, that an agent is set to */
static const double search_share = 0.08; /* of the agent's rehearsals */
/* A constant that passes the budget counts as one that takes longer by this power of it. */
static const double passing_power = 6;

/* A run whose budget has no end; the state that is shown tells of the real one. */
struct rehearsal {
    struct siren siren;
    int64_t extra_micro;
};

static void rehearsal_begin(struct siren_rehearsals *left, struct rehearsal *out)
{
    ASSERT(left->count > 0);
    left->count--;
    siren_begin(&out->siren, &(struct siren_options){.world = left->world,
                                                     .budget_micro = left->budget_micro,
                                                     .is_noisy = left->is_noisy,
                                                     .episode = left->first++});
    out->extra_micro = 99 * left->budget_micro;
    out->siren.state.left_micro += out->extra_micro;
}

static struct epoch_state rehearsal_state(const struct rehearsal *rehearsal)
{
    struct epoch_state state = rehearsal->siren.state;
    state.left_micro -= rehearsal->extra_micro;
    return state;
}

static struct epoch_task task_of(const struct siren_rehearsals *rehearsals)
{
    struct epoch_task task = rehearsals->world->task;
    task.budget_micro = rehearsals->budget_micro;
    return task;
}

static uint32_t kept_epochs(const struct siren_rehearsals *rehearsals)
{
    const uint32_t epochs = rehearsals->world->task.epoch_max / CHOICES_MOST;
    return epochs > 0 ? epochs : 1;
}

static double share_of(const struct siren_rehearsals *rehearsals)
{
    return rehearsals->is_noisy ? noisy_share : 1;
}

/* --- agent --- */

/* A number of functions with the memory that is best for it. */
struct tried {
    double functions; /* not rounded */
    struct epoch_choice choice;
    double time_s; /* of a run */
    double score;  /* the less the better */
};

struct memory_seen {
    uint32_t epochs;
    double time_s, cost_micro; /* sums */
};

/* One run, whose epochs take every memory in turn: the loss does not ask for memory, so that time
 * and cost of a run with each are the epochs' means times their number. */
static struct tried try_functions(struct siren_rehearsals *left, double functions)
{
    const struct epoch_space *space = &left->world->task.space;
    const uint32_t levels = epoch_memory_level_count(space);
    const uint32_t n = epoch_round(space, functions, 0).function_count;
    struct memory_seen seen[EPOCH_MEMORY_LEVELS_MAX] = {0};
    struct rehearsal rehearsal;
    rehearsal_begin(left, &rehearsal);
    for (uint32_t epoch = 0; rehearsal.siren.end == SIREN_RUNNING; epoch++) {
        struct memory_seen *memory = &seen[epoch % levels];
        siren_step(&rehearsal.siren,
                   (struct epoch_choice){n, epoch_memory_at(space, epoch % levels)});
        if (rehearsal.siren.state.epoch <= epoch)
            break;
        memory->epochs++;
        memory->time_s += rehearsal.siren.state.last.total_s;
        memory->cost_micro += (double)rehearsal.siren.state.last.cost_micro;
    }
    struct tried best = {
        .functions = functions,
        .choice = {n, epoch_memory_at(space, levels / 2)},
        .time_s = rehearsal.siren.state.elapsed_s,
        .score = 1e12 * rehearsal.siren.state.loss,
    };
    for (uint32_t level = 0; level < levels && rehearsal.siren.end == SIREN_REACHED; level++) {
        if (seen[level].epochs == 0)
            continue;
        const double share = (double)rehearsal.siren.state.epoch / seen[level].epochs;
        const double time_s = share * seen[level].time_s;
        const double spent =
            share * seen[level].cost_micro / (share_of(left) * (double)left->budget_micro);
        const double score = time_s * pow(fmax(spent, 1), passing_power);
        if (score < best.score)
            best = (struct tried){functions, {n, epoch_memory_at(space, level)}, time_s, score};
    }
    return best;
}

/* From the middle of the space, evenly in the logarithm: a step to each side, and on from where it
 * is better; a step that helps on neither side is halved. */
static struct tried search_constants(struct siren_rehearsals *left, uint32_t count)
{
    const double most = left->world->task.space.function_max;
    struct tried best = try_functions(left, sqrt(most));
    double folds = log(most) / 4;
    uint32_t failed = 0;
    for (uint32_t i = 1; i < count; i++) {
        const struct tried tried =
            try_functions(left, fmin(fmax(best.functions * exp(folds), 1), most));
        if (tried.score < best.score) {
            best = tried;
            failed = 1; /* where it comes from is known */
            continue;
        }
        folds = -folds;
        if (++failed < 2)
            continue;
        failed = 0;
        folds /= 2;
    }
    return best;
}

struct agents_world {
    struct siren_rehearsals *left;
    struct rehearsal rehearsal;
};

static void world_begin(void *context, struct epoch_state *out_state)
{
    struct agents_world *world = context;
    rehearsal_begin(world->left, &world->rehearsal);
    *out_state = rehearsal_state(&world->rehearsal);
}

static bool world_step(void *context, struct epoch_choice choice, struct epoch_state *state)
{
    struct rehearsal *rehearsal = &((struct agents_world *)context)->rehearsal;
    siren_step(&rehearsal->siren, choice);
    const bool is_done = rehearsal->siren.state.epoch > state->epoch;
    *state = rehearsal_state(rehearsal);
    return is_done;
}

struct agent *siren_rehearse_agent(struct siren_rehearsals rehearsals)
{
    ASSERT(rehearsals.count >= SIREN_AGENT_REHEARSALS_MIN);
    const uint32_t search_count = (uint32_t)lround(search_share * rehearsals.count);
    const struct tried best = search_constants(&rehearsals, search_count);
    struct agent *agent = agent_new(best.choice, rehearsals.seed);
    struct agents_world world = {.left = &rehearsals};
    const struct rehearsal_world runs = {world_begin, world_step, &world};
    const struct agent_rehearse_options options = {
        .task = task_of(&rehearsals),
        .time_scale_s = best.time_s,
        .budget_share = share_of(&rehearsals),
        .hold_epochs = kept_epochs(&rehearsals),
        .run_count = rehearsals.count - AGENT_OFFSET_RUNS,
        .seed = rehearsals.seed + 1,
    };
    agent_rehearse(agent, &options, &runs);
    agent_set_offset(agent, &options, &runs);
    agent->episode_count += search_count;
    return agent;
}

/* --- auto --- */

void siren_experience_init(struct siren_experience *experience, const struct epoch_task *task)
{
    *experience = (struct siren_experience){.constant_epochs = 0};
    epoch_fit_init(&experience->history, task);
}

void siren_experience_done(struct siren_experience *experience)
{
    free(experience->constant_run);
    experience->constant_run = NULL;
}

/* By what was seen; 0 functions while none would reach the target. */
static struct epoch_choice constant_by_fit(const struct siren_rehearsals *left,
                                           const struct epoch_fit *history)
{
    if (history->seen_count == 0)
        return (struct epoch_choice){0};
    const struct epoch_task task = task_of(left);
    const struct epoch_fitted fitted = epoch_fit_solve(history);
    AUTO(plan)
    struct plan *plan =
        plan_new(&task, (struct plan_options){.candidate_max = 300, .cell_count = 1});
    plan_set_model(plan, &fitted.model);
    const struct plan_outlook best =
        plan_constant(plan, task.loss_start, share_of(left) * 1e-6 * (double)task.budget_micro,
                      /* doubt= */ 0);
    return best.is_within ? best.choice : (struct epoch_choice){0};
}

static double from_to(double least, double most, double share)
{
    return least * pow(most / least, share);
}

static struct epoch_choice draw(const struct epoch_space *space, struct epoch_choice centre,
                                struct random *random)
{
    const double across = random_unit(random), up = random_unit(random);
    if (centre.function_count == 0)
        return epoch_round(space, from_to(1, space->function_max, across),
                           from_to(space->memory_min_mb, space->memory_max_mb, up));
    return epoch_round(
        space, centre.function_count * from_to(1 / functions_around, functions_around, across),
        centre.memory_mb * from_to(1 / memory_around, memory_around, up));
}

/* A fit needs numbers that do not go with the loss. */
static void look_around(struct siren_rehearsals *left, struct epoch_fit *history,
                        struct random *random)
{
    const struct epoch_choice centre = constant_by_fit(left, history);
    struct rehearsal rehearsal;
    struct epoch_choice choice = {0};
    rehearsal_begin(left, &rehearsal);
    while (rehearsal.siren.end == SIREN_RUNNING) {
        const uint32_t epoch = rehearsal.siren.state.epoch;
        if (epoch % kept_epochs(left) == 0)
            choice = draw(&left->world->task.space, centre, random);
        siren_step(&rehearsal.siren, choice);
        if (rehearsal.siren.state.epoch > epoch)
            epoch_fit_add(history, &rehearsal.siren.state.last);
    }
}

/* The best constant by what was seen, run once: what auto is held to. */
static void run_constant(struct siren_rehearsals *left, struct siren_experience *experience)
{
    const struct epoch_choice choice = constant_by_fit(left, &experience->history);
    if (choice.function_count == 0)
        return;
    AUTO(scheduler) struct scheduler *scheduler = scheduler_new_constant(choice);
    experience->constant_run = memory_zeroed(EPOCH_COUNT_MAX, sizeof(*experience->constant_run));
    const struct siren siren = siren_run(&(struct siren_options){.world = left->world,
                                                                 .budget_micro = left->budget_micro,
                                                                 .is_noisy = left->is_noisy,
                                                                 .episode = left->first},
                                         scheduler, experience->constant_run);
    for (uint32_t i = 0; i < siren.state.epoch; i++)
        epoch_fit_add(&experience->history, &experience->constant_run[i].last);
    if (siren.end == SIREN_REACHED)
        experience->constant_epochs = siren.state.epoch;
}

void siren_rehearse_auto(struct siren_rehearsals rehearsals, struct siren_experience *experience)
{
    struct random random;
    random_init(&random, rehearsals.seed + 2);
    const bool has_constant = rehearsals.count > 1;
    while (rehearsals.count > has_constant)
        look_around(&rehearsals, &experience->history, &random);
    if (has_constant)
        run_constant(&rehearsals, experience);
}
