#include "base/assert.h"
#include "base/memory.h"
#include "learn/plan_internal.h"

#include <math.h>
#include <stdlib.h>

/* Seconds for a credit: beyond these a plan is the quickest or the cheapest there is. */
static const double lambda_min = 1e-3, lambda_max = 1e7;
static const double lambda_exact = 1e-3; /* relative */

static uint32_t spread_at(const struct plan *plan, uint32_t index)
{
    const uint32_t most = plan->task.space.function_max;
    const uint32_t count = plan->options.candidate_max;
    if (count == most)
        return index + 1; /* all of them */
    const double share = count > 1 ? (double)index / (count - 1) : 1;
    return (uint32_t)lround(exp(share * log(most)));
}

static int compare_counts(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Beside those that are spread, for every memory the fewest functions it suffices for: time jumps
 * there. */
static void fill_candidates(struct plan *plan)
{
    const uint32_t most = plan->task.space.function_max;
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->options.candidate_max; i++)
        plan->counts[count++] = spread_at(plan, i);
    for (uint32_t level = 0; level < plan->level_count; level++) {
        const double room = epoch_memory_at(&plan->task.space, level) - plan->model.memory_base_mb;
        const double fewest = ceil(plan->model.memory_spread_mb / room);
        if (room > 0 && fewest >= 1 && fewest <= most)
            plan->counts[count++] = (uint32_t)fewest;
    }
    qsort(plan->counts, count, sizeof(*plan->counts), compare_counts);
    plan->candidate_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || plan->counts[i] != plan->counts[i - 1])
            plan->candidates[plan->candidate_count++].function_count = plan->counts[i];
}

struct plan *plan_new(const struct epoch_task *task, struct plan_options options)
{
    ASSERT(options.candidate_max >= 1 && options.cell_count >= 1);
    ASSERT(task->space.function_max <= EPOCH_FUNCTIONS_MAX);
    struct plan *plan = memory_zeroed(1, sizeof(*plan));
    *plan = (struct plan){.task = *task, .options = options, .lambda = 1};
    if (plan->options.candidate_max > task->space.function_max)
        plan->options.candidate_max = task->space.function_max;
    plan->level_count = epoch_memory_level_count(&task->space);
    const size_t room = (size_t)plan->options.candidate_max + plan->level_count;
    const size_t cells = room * plan->level_count;
    plan->counts = memory_zeroed(room, sizeof(*plan->counts));
    plan->candidates = memory_zeroed(room, sizeof(*plan->candidates));
    plan->time_s = memory_zeroed(cells, sizeof(*plan->time_s));
    plan->cost = memory_zeroed(cells, sizeof(*plan->cost));
    return plan;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    free(plan->counts);
    free(plan->candidates);
    free(plan->time_s);
    free(plan->cost);
    free(plan);
}

void plan_set_price(struct plan *plan, double price)
{
    plan->task.price = price;
}

void plan_set_model(struct plan *plan, const struct epoch_model *model)
{
    plan->model = *model;
    fill_candidates(plan);
    for (uint32_t i = 0; i < plan->candidate_count; i++) {
        struct candidate *candidate = &plan->candidates[i];
        candidate->floor = epoch_model_floor(model, candidate->function_count);
        for (uint32_t level = 0; level < plan->level_count; level++) {
            const struct epoch_choice choice = {candidate->function_count,
                                                epoch_memory_at(&plan->task.space, level)};
            const double time_s = epoch_model_total_s(model, choice);
            const size_t at = (size_t)i * plan->level_count + level;
            plan->time_s[at] = time_s;
            plan->cost[at] = 1e-6 * (double)epoch_cost_micro(&plan->task, choice, time_s);
        }
    }
}

void plan_set_risk(struct plan *plan, struct plan_risk risk)
{
    plan->risk = risk;
}

static void set_lambda(struct plan *plan, double lambda)
{
    plan->lambda = lambda;
    for (uint32_t i = 0; i < plan->candidate_count; i++) {
        struct candidate *candidate = &plan->candidates[i];
        const double *time_s = plan->time_s + (size_t)i * plan->level_count;
        const double *cost = plan->cost + (size_t)i * plan->level_count;
        candidate->value = HUGE_VAL;
        for (uint32_t level = 0; level < plan->level_count; level++) {
            const double value = time_s[level] + lambda * cost[level];
            if (value < candidate->value) {
                candidate->value = value;
                candidate->level = level;
            }
        }
        candidate->time_s = time_s[candidate->level];
        candidate->cost = cost[candidate->level];
    }
}

/* The best candidate for the losses from `low` to `high`, around `middle`. The lower the loss, the
 * fewer functions: a rising floor weighs more. So only those up to the last best are looked at. */
static const struct candidate *best_at(const struct plan *plan, double low, double middle,
                                       uint32_t *last)
{
    const struct candidate *best = NULL;
    double least = HUGE_VAL;
    uint32_t found = *last;
    for (uint32_t i = 0; i <= *last; i++) {
        const struct candidate *candidate = &plan->candidates[i];
        if (candidate->floor >= low)
            break;
        const double value = candidate->value / (middle - candidate->floor);
        if (value < least) {
            least = value;
            best = candidate;
            found = i;
        }
    }
    *last = found;
    return best;
}

static struct plan_outlook sum_up(struct plan *plan, double loss, double lambda)
{
    set_lambda(plan, lambda);
    struct plan_outlook outlook = {.lambda = lambda};
    const double step = log(loss / plan->task.loss_target) / plan->options.cell_count;
    uint32_t last = plan->candidate_count - 1;
    double high = loss, variance = 0;
    for (uint32_t cell = 0; cell < plan->options.cell_count; cell++) {
        const double low = loss * exp(-step * (cell + 1));
        const double middle = (low + high) / 2;
        const struct candidate *best = best_at(plan, low, middle, &last);
        if (!best) /* every floor is above the target */
            return (struct plan_outlook){
                .time_s = HUGE_VAL, .cost = HUGE_VAL, .cost_high = HUGE_VAL, .lambda = lambda};
        const double rate = plan->model.loss_rate * (1 - best->floor / middle);
        const double epochs = (high - low) / (middle * rate);
        variance += epochs * best->cost * best->cost *
                    (pow(plan->risk.loss_noise / rate, 2) + pow(plan->risk.time_noise, 2));
        outlook.time_s += epochs * best->time_s;
        outlook.cost += epochs * best->cost;
        outlook.epoch_count += epochs;
        if (cell == 0)
            outlook.choice = (struct epoch_choice){best->function_count,
                                                   epoch_memory_at(&plan->task.space, best->level)};
        high = low;
    }
    outlook.cost_high =
        outlook.cost + fmin(plan->risk.deviations * sqrt(variance), plan->reserve_max);
    return outlook;
}

static struct plan_outlook with_bound(struct plan_outlook outlook, double left)
{
    outlook.is_within = outlook.cost_high <= left;
    outlook.bound_s = outlook.time_s + outlook.lambda * (outlook.cost - left);
    return outlook;
}

/* A share of what the cheapest way would leave. */
static double reserve_max_of(struct plan *plan, double loss, double left)
{
    if (plan->risk.slack_share == 0)
        return HUGE_VAL;
    plan->reserve_max = 0;
    return plan->risk.slack_share * fmax(left - sum_up(plan, loss, lambda_max).cost, 0);
}

/* Costs fall as lambda rises: the least lambda whose cost is within what is left. */
struct plan_outlook plan_make(struct plan *plan, double loss, double left)
{
    ASSERT(loss > plan->task.loss_target);
    const double lambda = plan->lambda;
    plan->reserve_max = reserve_max_of(plan, loss, left);
    plan->lambda = lambda;
    double low = fmax(plan->lambda / 1.2, lambda_min);
    double high = fmin(plan->lambda * 1.2, lambda_max);
    struct plan_outlook least = sum_up(plan, loss, high);
    while (least.cost_high > left && high < lambda_max) {
        low = high;
        high = fmin(high * 4, lambda_max);
        least = sum_up(plan, loss, high);
    }
    if (least.cost_high > left)
        return with_bound(least, left);
    struct plan_outlook tried = sum_up(plan, loss, low);
    while (tried.cost_high <= left && low > lambda_min) {
        least = tried;
        high = low;
        low = fmax(low / 4, lambda_min);
        tried = sum_up(plan, loss, low);
    }
    if (tried.cost_high <= left)
        return with_bound(tried, left);
    while (high / low > 1 + lambda_exact) {
        tried = sum_up(plan, loss, sqrt(low * high));
        if (tried.cost_high <= left) {
            least = tried;
            high = tried.lambda;
        } else {
            low = tried.lambda;
        }
    }
    plan->lambda = least.lambda;
    return with_bound(least, left);
}

/* Whether the first ends better: within what is left, then sooner; or else for less. */
static bool ends_better(const struct plan_outlook *one, const struct plan_outlook *other)
{
    if (one->is_within != other->is_within)
        return one->is_within;
    return one->is_within ? one->time_s < other->time_s : one->cost < other->cost;
}

struct plan_outlook plan_constant(const struct plan *plan, double loss, double left, double doubt)
{
    struct plan_outlook best = {.time_s = HUGE_VAL, .cost = HUGE_VAL};
    for (uint32_t i = 0; i < plan->candidate_count; i++) {
        const uint32_t n = plan->candidates[i].function_count;
        const double epochs =
            ceil(epoch_model_epochs(&plan->model, n, loss, plan->task.loss_target) + doubt);
        if (!(epochs <= plan->task.epoch_max))
            break; /* with more functions it takes longer yet */
        for (uint32_t level = 0; level < plan->level_count; level++) {
            const size_t at = (size_t)i * plan->level_count + level;
            const struct plan_outlook tried = {
                .choice = {n, epoch_memory_at(&plan->task.space, level)},
                .time_s = epochs * plan->time_s[at],
                .cost = epochs * plan->cost[at],
                .cost_high = epochs * plan->cost[at],
                .epoch_count = epochs,
                .is_within = epochs * plan->cost[at] <= left,
            };
            if (ends_better(&tried, &best))
                best = tried;
        }
    }
    return best;
}
