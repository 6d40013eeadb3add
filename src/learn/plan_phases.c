#include "learn/plan_internal.h"

#include <math.h>

static const double thrift = 0.05;    /* how much later the end may be for less */
static const double aim_share = 0.98; /* of the target: a loss just above it costs an epoch */

struct phase {
    double time_s, cost, work; /* of an epoch */
    double needed;             /* work at the target, where it is the last; or infinite */
    struct epoch_choice choice;
};

static struct phase phase_at(const struct plan *plan, uint32_t index, uint32_t level)
{
    const struct work_fitted *fitted = &plan->model.work;
    const uint32_t n = plan->candidates[index].function_count;
    const size_t at = (size_t)index * plan->level_count + level;
    return (struct phase){
        .time_s = plan->time_s[at],
        .cost = plan->cost[at],
        .work = work_of_epoch(fitted, n),
        .needed =
            work_of_signal(fitted, aim_share * plan->task.loss_target - work_noise(fitted, n)),
        .choice = {n, epoch_memory_at(&plan->task.space, level)},
    };
}

static double whole_epochs(double work, const struct phase *phase, double doubt)
{
    return fmax(ceil(work / phase->work + doubt), 0);
}

/* `count` epochs of one, then the others. */
static struct plan_outlook look(const struct plan_stand *stand, const struct phase *first,
                                const struct phase *last, double count)
{
    const double reached = stand->work + count * first->work;
    const double rest = fmax(whole_epochs(last->needed - reached, last, stand->doubt), 1);
    const double cost = count * first->cost + rest * last->cost;
    return (struct plan_outlook){
        .choice = count > 0 ? first->choice : last->choice,
        .time_s = count * first->time_s + rest * last->time_s,
        .cost = cost,
        .cost_high = cost,
        .epoch_count = count + rest,
        .is_within = cost <= stand->left && count + rest <= stand->epochs_left,
    };
}

/* What is better so far: the soonest there is; then, of those that are little later, the cheapest.
 */
struct search {
    struct plan_outlook soonest, best;
    bool is_soon; /* the best is */
};

static void consider(struct search *search, const struct plan_outlook *tried, bool is_second)
{
    if (!is_second) {
        if (tried->is_within && !(tried->time_s >= search->soonest.time_s))
            search->soonest = *tried;
        return;
    }
    const double latest_s = (1 + thrift) * search->soonest.time_s;
    const bool is_soon = tried->is_within && tried->time_s <= latest_s;
    if (is_soon < search->is_soon ||
        (is_soon == search->is_soon && tried->cost >= search->best.cost))
        return;
    search->best = *tried;
    search->is_soon = is_soon;
}

static void look_at_pair(const struct plan_stand *stand, const struct phase *first,
                         const struct phase *last, struct search *search, bool is_second)
{
    if (!isfinite(last->needed) || !(first->work > 0))
        return;
    const double most = first->choice.function_count == last->choice.function_count
                            ? 0
                            : whole_epochs(last->needed - stand->work, first, stand->doubt);
    const uint32_t count_max = (uint32_t)fmin(most, stand->epochs_left);
    for (uint32_t count = 0; count <= count_max; count++) {
        const struct plan_outlook tried = look(stand, first, last, count);
        consider(search, &tried, is_second);
    }
}

struct plan_outlook plan_phases(const struct plan *plan, const struct plan_stand *stand)
{
    struct search search = {.soonest = {.time_s = HUGE_VAL}, .best = {.cost = HUGE_VAL}};
    for (int round = 0; round < 2; round++)
        for (uint32_t level = 0; level < plan->level_count; level++)
            for (uint32_t i = 0; i < plan->candidate_count; i++) {
                const struct phase first = phase_at(plan, i, level);
                for (uint32_t k = i; k < plan->candidate_count; k++) {
                    const struct phase last = phase_at(plan, k, level);
                    look_at_pair(stand, &first, &last, &search, round == 1);
                }
            }
    return search.best;
}
