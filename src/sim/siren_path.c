#include "sim/siren_path.h"

#include "base/assert.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

enum { KEPT_LEAST = 3 };
static const int64_t budget_unbounded_micro = INT64_C(1000000000000000000);

struct tried {
    struct scheduler_decay path;
    struct siren_score levels[EPOCH_MEMORY_LEVELS_MAX]; /* sums, of each memory */
    uint32_t best_level;
};

/* An epoch takes the same multiple of what the model has, whatever its memory. */
void siren_path_with_memory(const struct epoch_task *task, const struct epoch_model *model,
                            const struct epoch_state *states, uint32_t epoch_count,
                            uint32_t memory_mb, double *out_time_s, double *out_cost_micro)
{
    *out_time_s = *out_cost_micro = 0;
    for (uint32_t i = 0; i < epoch_count; i++) {
        const struct epoch_seen *seen = &states[i].last;
        const struct epoch_choice choice = {seen->choice.function_count, memory_mb};
        const double epoch_s = epoch_model_total_s(model, choice) * seen->total_s /
                               epoch_model_total_s(model, seen->choice);
        *out_time_s += epoch_s;
        *out_cost_micro += (double)epoch_cost_micro(task, choice, epoch_s);
    }
}

static void try_once(const struct siren_episodes *episodes, uint64_t episode, struct tried *tried,
                     struct epoch_state *states)
{
    const struct siren_world *world = episodes->world;
    const uint32_t levels = epoch_memory_level_count(&world->task.space);
    AUTO(scheduler) struct scheduler *scheduler = scheduler_new_decay(&tried->path);
    const struct siren run =
        siren_run(&(struct siren_options){.world = world,
                                          .budget_micro = budget_unbounded_micro,
                                          .is_noisy = episodes->is_noisy,
                                          .episode = episode},
                  scheduler, states);
    for (uint32_t level = 0; level < levels; level++) {
        struct siren_score *score = &tried->levels[level];
        double time_s, cost_micro;
        siren_path_with_memory(&world->task, &world->truth, states, run.state.epoch,
                               epoch_memory_at(&world->task.space, level), &time_s, &cost_micro);
        score->time_s += time_s;
        score->reached_count +=
            run.end == SIREN_REACHED && cost_micro <= (double)episodes->budget_micro;
    }
    for (uint32_t level = 0; level < levels; level++)
        if (siren_score_is_better(&tried->levels[level], &tried->levels[tried->best_level]))
            tried->best_level = level;
}

static int compare_tried(const void *left, const void *right)
{
    const struct tried *const *a = left, *const *b = right;
    const struct siren_score *ours = &(*a)->levels[(*a)->best_level];
    const struct siren_score *theirs = &(*b)->levels[(*b)->best_level];
    if (siren_score_is_better(ours, theirs))
        return -1;
    return siren_score_is_better(theirs, ours);
}

struct scheduler_decay siren_best_path(const struct siren_episodes *episodes,
                                       const struct scheduler_decay *paths, size_t path_count)
{
    const struct epoch_space *space = &episodes->world->task.space;
    struct epoch_state *states = memory_zeroed(EPOCH_COUNT_MAX, sizeof(*states));
    struct tried *tried = memory_zeroed(path_count, sizeof(*tried));
    struct tried *order[SIREN_PATHS_MAX];
    size_t kept = path_count;
    ASSERT(path_count >= 1 && path_count <= SIREN_PATHS_MAX);
    for (size_t i = 0; i < path_count; i++) {
        order[i] = &tried[i];
        tried[i].path = paths[i];
        tried[i].path.memory_mb = space->memory_max_mb;
    }
    for (uint32_t episode = 0; episode < episodes->count; episode++) {
        for (size_t i = 0; i < kept; i++)
            try_once(episodes, episodes->first + episode, order[i], states);
        qsort(order, kept, sizeof(struct tried *), compare_tried);
        if (kept / 2 >= KEPT_LEAST)
            kept /= 2;
    }
    struct scheduler_decay best = order[0]->path;
    best.memory_mb = epoch_memory_at(space, order[0]->best_level);
    if (order[0]->levels[order[0]->best_level].reached_count == 0)
        best = (struct scheduler_decay){0};
    free(tried);
    free(states);
    return best;
}
