#include "sim/siren_search.h"

#include "base/assert.h"
#include "base/memory.h"
#include "learn/plan.h"
#include "sim/siren_path.h"

#include <math.h>
#include <stdlib.h>

static const int64_t budget_unbounded_micro = INT64_C(1000000000000000000);

struct siren siren_run(const struct siren_options *options, struct scheduler *scheduler,
                       struct epoch_state *states)
{
    struct siren siren;
    siren_begin(&siren, options);
    while (siren.end == SIREN_RUNNING) {
        const uint32_t epoch = siren.state.epoch;
        siren_step(&siren, scheduler_choose(scheduler, &siren.state));
        if (siren.state.epoch == epoch)
            break;
        scheduler_see(scheduler, &siren.state.last);
        if (states)
            states[epoch] = siren.state;
    }
    return siren;
}

bool siren_score_is_better(const struct siren_score *one, const struct siren_score *other)
{
    if (one->reached_count != other->reached_count)
        return one->reached_count > other->reached_count;
    return one->time_s < other->time_s;
}

static void add_run(struct siren_score *score, const struct siren *siren,
                    const struct epoch_state *states, double share)
{
    const int64_t passed_micro = siren_spent_micro(siren) - siren->task.budget_micro;
    score->reached_count += siren->end == SIREN_REACHED;
    score->time_s += share * siren->state.elapsed_s;
    score->cost += share * 1e-6 * (double)siren_spent_micro(siren);
    score->epoch_count += share * siren->state.epoch;
    if (passed_micro > score->passed_micro)
        score->passed_micro = passed_micro;
    for (uint32_t i = 0; i < siren->state.epoch; i++) {
        const uint32_t n = states[i].last.choice.function_count;
        if (score->function_min == 0 || n < score->function_min)
            score->function_min = n;
        if (n > score->function_max)
            score->function_max = n;
    }
}

struct siren_score siren_score(const struct siren_episodes *episodes,
                               struct scheduler *(*make)(const void *context), const void *context)
{
    struct siren_score score = {.passed_micro = INT64_MIN};
    struct epoch_state *states = memory_zeroed(EPOCH_COUNT_MAX, sizeof(*states));
    for (uint32_t i = 0; i < episodes->count; i++) {
        AUTO(scheduler) struct scheduler *scheduler = make(context);
        const struct siren siren =
            siren_run(&(struct siren_options){.world = episodes->world,
                                              .budget_micro = episodes->budget_micro,
                                              .is_noisy = episodes->is_noisy,
                                              .episode = episodes->first + i},
                      scheduler, states);
        score.times_s[i] = siren.end == SIREN_REACHED ? siren.state.elapsed_s : (double)NAN;
        add_run(&score, &siren, states, 1.0 / episodes->count);
    }
    free(states);
    return score;
}

/* What the episodes make of one number of functions, whatever the memory: the sum of their epochs'
 * times over the time without noise. */
struct lengths {
    double sum[SIREN_EPISODES_MAX];
    bool is_reached[SIREN_EPISODES_MAX];
};

static void measure_lengths(const struct siren_episodes *episodes, uint32_t function_count,
                            struct lengths *out)
{
    const struct epoch_choice choice = {function_count, episodes->world->task.space.memory_max_mb};
    const double epoch_s = epoch_model_total_s(&episodes->world->truth, choice);
    for (uint32_t i = 0; i < episodes->count; i++) {
        AUTO(scheduler) struct scheduler *constant = scheduler_new_constant(choice);
        const struct siren siren =
            siren_run(&(struct siren_options){.world = episodes->world,
                                              .budget_micro = budget_unbounded_micro,
                                              .is_noisy = episodes->is_noisy,
                                              .episode = episodes->first + i},
                      constant, NULL);
        out->sum[i] = siren.state.elapsed_s / epoch_s;
        out->is_reached[i] = siren.end == SIREN_REACHED;
    }
}

static struct siren_score score_lengths(const struct siren_episodes *episodes,
                                        const struct lengths *lengths, struct epoch_choice choice)
{
    struct siren_score score = {0};
    const double epoch_s = epoch_model_total_s(&episodes->world->truth, choice);
    const double cost_micro = (double)epoch_cost_micro(&episodes->world->task, choice, epoch_s);
    for (uint32_t i = 0; i < episodes->count; i++) {
        score.time_s += lengths->sum[i] * epoch_s / episodes->count;
        score.reached_count += lengths->is_reached[i] &&
                               lengths->sum[i] * cost_micro <= (double)episodes->budget_micro;
    }
    return score;
}

static struct epoch_choice best_noisy_constant(const struct siren_episodes *episodes)
{
    enum { COUNTS = 160 };
    const struct epoch_space *space = &episodes->world->task.space;
    struct siren_score best = {.time_s = HUGE_VAL};
    struct epoch_choice choice = {0};
    uint32_t before = 0;
    for (int i = 0; i < COUNTS; i++) {
        const double share = (double)i / (COUNTS - 1);
        const uint32_t n = (uint32_t)lround(exp(share * log(space->function_max)));
        struct lengths lengths;
        if (n == before)
            continue;
        before = n;
        measure_lengths(episodes, n, &lengths);
        for (uint32_t level = 0; level < epoch_memory_level_count(space); level++) {
            const struct epoch_choice tried = {n, epoch_memory_at(space, level)};
            const struct siren_score score = score_lengths(episodes, &lengths, tried);
            if (score.reached_count > 0 && siren_score_is_better(&score, &best)) {
                best = score;
                choice = tried;
            }
        }
    }
    return choice;
}

/* Where every run trains a model: numbers of functions, and lines between some of them. */
static const uint32_t sgd_counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
static const uint32_t sgd_ends[] = {1, 2, 4, 8, 16, 32, 64};
static const uint32_t sgd_lengths[] = {6, 18}; /* epochs */
enum {
    SGD_COUNTS = sizeof(sgd_counts) / sizeof(*sgd_counts),
    SGD_ENDS = sizeof(sgd_ends) / sizeof(*sgd_ends),
    SGD_LENGTHS = sizeof(sgd_lengths) / sizeof(*sgd_lengths),
};

static struct epoch_choice best_trained_constant(const struct siren_episodes *episodes)
{
    struct scheduler_decay paths[SGD_COUNTS];
    for (size_t i = 0; i < SGD_COUNTS; i++)
        paths[i] = (struct scheduler_decay){sgd_counts[i], sgd_counts[i], 1, 0};
    const struct scheduler_decay best = siren_best_path(episodes, paths, SGD_COUNTS);
    return (struct epoch_choice){best.function_first, best.memory_mb};
}

/* Ends that are four times apart or more, and the constant itself. */
static struct scheduler_decay best_trained_line(const struct siren_episodes *episodes,
                                                struct epoch_choice constant, bool is_growing)
{
    struct scheduler_decay paths[SIREN_PATHS_MAX];
    size_t count = 0;
    paths[count++] =
        (struct scheduler_decay){constant.function_count, constant.function_count, 1, 0};
    for (size_t few = 0; few < SGD_ENDS; few++)
        for (size_t many = few + 2; many < SGD_ENDS; many++)
            for (size_t k = 0; k < SGD_LENGTHS; k++)
                paths[count++] = (struct scheduler_decay){
                    .function_first = sgd_ends[is_growing ? few : many],
                    .function_last = sgd_ends[is_growing ? many : few],
                    .epoch_count = sgd_lengths[k],
                };
    return siren_best_path(episodes, paths, count);
}

struct scheduler_decay siren_best_growth(const struct siren_episodes *episodes,
                                         struct epoch_choice constant, double constant_epochs)
{
    enum { STEPS = 5, LINES = STEPS * STEPS };
    static const double from[STEPS] = {0.1, 0.25, 0.5, 0.75, 1}, to[STEPS] = {1, 1.25, 1.5, 2, 3};
    const struct epoch_space *space = &episodes->world->task.space;
    struct scheduler_decay paths[LINES];
    if (episodes->world->mode == SIREN_SGD)
        return best_trained_line(episodes, constant, /* is_growing= */ true);
    for (int i = 0; i < LINES; i++)
        paths[i] = (struct scheduler_decay){
            .function_first =
                epoch_round(space, constant.function_count * from[i / STEPS], 0).function_count,
            .function_last =
                epoch_round(space, constant.function_count * to[i % STEPS], 0).function_count,
            .epoch_count = (uint32_t)lround(fmax(constant_epochs, 1)),
        };
    return siren_best_path(episodes, paths, LINES);
}

struct epoch_choice siren_best_constant(const struct siren_episodes *episodes)
{
    ASSERT(episodes->count >= 1 && episodes->count <= SIREN_EPISODES_MAX);
    if (episodes->world->mode == SIREN_SGD)
        return best_trained_constant(episodes);
    if (episodes->is_noisy)
        return best_noisy_constant(episodes);
    const struct epoch_task *task = &episodes->world->task;
    /* All numbers of functions and all memories. */
    AUTO(plan)
    struct plan *plan = plan_new(task, (struct plan_options){task->space.function_max, 1});
    plan_set_model(plan, &episodes->world->truth);
    const struct plan_outlook best = plan_constant(
        plan, task->loss_start, 1e-6 * (double)episodes->budget_micro, /* doubt= */ 1e-9);
    return best.is_within ? best.choice : (struct epoch_choice){0};
}

static struct scheduler *make_decay(const void *context)
{
    return scheduler_new_decay(context);
}

struct decay_search {
    const struct siren_episodes *episodes;
    struct scheduler_decay best;
    struct siren_score score;
};

static void try_decay(struct decay_search *search, double first, double last, double memory_mb)
{
    const struct epoch_space *space = &search->episodes->world->task.space;
    const struct epoch_choice from = epoch_round(space, first, memory_mb);
    const struct scheduler_decay tried = {
        .function_first = from.function_count,
        .function_last = epoch_round(space, last, memory_mb).function_count,
        .epoch_count = search->best.epoch_count,
        .memory_mb = from.memory_mb,
    };
    const struct siren_score score = siren_score(search->episodes, make_decay, &tried);
    if (siren_score_is_better(&score, &search->score)) {
        search->best = tried;
        search->score = score;
    }
}

/* From the constant: a coarse look around, then nearer and nearer. */
struct scheduler_decay siren_best_decay(const struct siren_episodes *episodes,
                                        struct epoch_choice constant, double constant_epochs)
{
    enum { ROUNDS = 6 };
    if (episodes->world->mode == SIREN_SGD)
        return best_trained_line(episodes, constant, /* is_growing= */ false);
    struct decay_search search = {
        .episodes = episodes,
        .best = {constant.function_count, constant.function_count,
                 (uint32_t)lround(fmax(constant_epochs, 1)), constant.memory_mb},
        .score = {.time_s = HUGE_VAL},
    };
    const double n = constant.function_count, m = constant.memory_mb;
    try_decay(&search, n, n, m);
    for (int first = 0; first < 7; first++)
        for (int last = 0; last < 7; last++)
            for (int memory = 0; memory < 7; memory++)
                try_decay(&search, n * pow(1.25, first), n * (0.1 + 0.15 * last),
                          m * (0.6 + 0.1 * memory));
    double step = 0.12;
    for (int round = 0; round < ROUNDS; round++, step *= 0.6) {
        const struct scheduler_decay around = search.best;
        for (int first = -1; first <= 1; first++)
            for (int last = -1; last <= 1; last++)
                for (int memory = -1; memory <= 1; memory++)
                    try_decay(&search, around.function_first * (1 + step * first),
                              around.function_last * (1 + step * last),
                              around.memory_mb * (1 + step * memory));
    }
    return search.best;
}
