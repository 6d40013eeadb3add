/* How an hour of a pool is filled: at a posted price, by auction, by karma. */
#include "base/assert.h"
#include "sim/auction.h"
#include "sim/pool_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Posted prices, and no price ------------------------------------------------------------- */

/* The slot with the lowest forecast among those with room; the earlier of equals. */
void pool_plan_cheapest(struct pool *pool, uint32_t job)
{
    const struct sim_job *wish = &pool->workload->jobs[job];
    struct pool_job *state = &pool->jobs[job];
    const int64_t last_hour = (wish->latest_s - wish->run_s) / 3600;
    const int64_t first_slot = pool->hour / POOL_SLOT_HOURS;
    double best = (double)INFINITY;
    int64_t best_slot = -1;
    for (int64_t slot = first_slot; slot * POOL_SLOT_HOURS <= last_hour; slot++) {
        const int64_t hour = slot == first_slot ? pool->hour : slot * POOL_SLOT_HOURS;
        const double rate = pool_rate_micro(pool, job, hour);
        double usual = 0, days = 0;
        for (int64_t day = 1; day <= 7 && slot - 4 * day >= 0; day++)
            if (slot - 4 * day < first_slot) {
                usual += pool->supplied_micro[slot - 4 * day];
                days++;
            }
        const bool has_room = days < 1 || pool->booked_micro[slot] < 0.9 * usual / days;
        if (has_room && rate < best - 1e-9) {
            best = rate;
            best_slot = slot;
        }
    }
    if (best_slot < 0)
        return;
    state->planned_hour = best_slot == first_slot ? pool->hour : best_slot * POOL_SLOT_HOURS;
    double left_h = state->remaining_h;
    for (int64_t slot = best_slot; left_h > 0 && slot < best_slot + 8; slot++) {
        pool->booked_micro[slot] += (double)wish->cold_micro * fmin(left_h, POOL_SLOT_HOURS);
        left_h -= POOL_SLOT_HOURS;
    }
}

static void continue_running(struct pool *pool)
{
    size_t count = 0;
    for (size_t i = 0; i < pool->active_count; i++)
        if (pool->jobs[pool->active[i]].start_order > 0)
            pool->order[count++] = pool->active[i];
    /* By start: when lenders go, those who came last stop. Insertion: nearly sorted already. */
    for (size_t i = 1; i < count; i++) {
        const uint32_t job = pool->order[i];
        size_t at = i;
        while (at > 0 &&
               pool->jobs[pool->order[at - 1]].start_order > pool->jobs[job].start_order) {
            pool->order[at] = pool->order[at - 1];
            at--;
        }
        pool->order[at] = job;
    }
    for (size_t i = 0; i < count; i++) {
        struct pool_job *state = &pool->jobs[pool->order[i]];
        if (pool_take(pool, pool->order[i]))
            pool_run_job(pool, pool->order[i], state->rate_micro, pool->mean_cost);
        else
            state->start_order = 0;
    }
}

/* What was done is lost unless the job finishes, so the rest is worth all of it. */
static double maximum_micro(const struct pool *pool, uint32_t job)
{
    const struct sim_job *wish = &pool->workload->jobs[job];
    return (double)wish->maximum_micro * (double)wish->run_s / 3600 / pool->jobs[job].remaining_h;
}

static bool would_start(const struct pool *pool, uint32_t job)
{
    const struct pool_job *state = &pool->jobs[job];
    if (state->has_left || state->start_order > 0 || state->ran || state->planned_hour > pool->hour)
        return false;
    return pool->options.rule == POOL_FIRST_COME ||
           maximum_micro(pool, job) >= pool_rate_micro(pool, job, pool->hour);
}

static bool all_fit(const struct pool *pool)
{
    double wanted[OUTCOME_RESOURCES] = {0};
    for (size_t i = 0; i < pool->active_count; i++)
        if (would_start(pool, pool->active[i]))
            for (int k = 0; k < OUTCOME_RESOURCES; k++)
                wanted[k] += pool->jobs[pool->active[i]].units[k] *
                             pool_hour_share(&pool->jobs[pool->active[i]]);
    for (int k = 0; k < OUTCOME_RESOURCES; k++)
        if (wanted[k] > pool->free[k])
            return false;
    return true;
}

static void start_waiting(struct pool *pool, bool is_rush)
{
    for (size_t i = 0; i < pool->active_count; i++) {
        const uint32_t job = pool->active[i];
        if (!would_start(pool, job))
            continue;
        const double rate =
            pool->options.rule == POOL_FIRST_COME ? 0 : pool_rate_micro(pool, job, pool->hour);
        if (is_rush && maximum_micro(pool, job) < 2 * rate)
            continue;
        struct pool_job *state = &pool->jobs[job];
        state->waited = true;
        if (!pool_take(pool, job))
            continue;
        state->waited = false;
        state->start_order = ++pool->start_count;
        state->rate_micro = rate;
        pool_run_job(pool, job, is_rush ? 2 * rate : rate, pool->mean_cost);
    }
}

void pool_hour_posted(struct pool *pool)
{
    continue_running(pool);
    if (pool->options.has_rush && !all_fit(pool))
        start_waiting(pool, true);
    start_waiting(pool, false);
}

/* ---- Auctions -------------------------------------------------------------------------------- */

/* Only those whose asks were taken serve and are paid. */
static void choose_lenders(struct pool *pool, const struct auction_ask *asks, size_t ask_count)
{
    for (size_t i = 0; i < ask_count; i++)
        pool->is_willing[asks[i].tag] = asks[i].is_serving;
    pool_weigh_lenders(pool);
}

void pool_hour_auction(struct pool *pool)
{
    const struct workload *workload = pool->workload;
    struct auction_bid *bids = calloc(pool->active_count + 1, sizeof(*bids));
    struct auction_ask *asks = calloc(workload->lender_count + 1, sizeof(*asks));
    ASSERT(bids && asks);
    size_t ask_count = 0;
    for (size_t i = 0; i < workload->lender_count; i++) {
        if (!pool->is_willing[i])
            continue;
        const struct sim_lender *lender = &workload->lenders[i];
        asks[ask_count++] = (struct auction_ask){
            .cost = (double)lender->minimum_milli / 1000,
            .tag = (uint32_t)i,
            .units = {(double)lender->resources.cores_milli / 1000,
                      (double)lender->resources.ram_bytes / (double)(INT64_C(1) << 30),
                      (double)lender->resources.gpus_milli / 1000}};
    }
    for (size_t i = 0; i < pool->active_count; i++) {
        const uint32_t job = pool->active[i];
        const struct pool_job *state = &pool->jobs[job];
        const double share = pool_hour_share(state);
        bids[i] = (struct auction_bid){
            .worth = maximum_micro(pool, job) / (double)workload->jobs[job].cold_micro, .tag = job};
        for (int k = 0; k < OUTCOME_RESOURCES; k++)
            bids[i].units[k] = state->units[k] * share;
    }
    const struct auction_outcome cleared =
        auction_clear(pool->options.rule == POOL_KDA ? AUCTION_KDA : AUCTION_MCAFEE, bids,
                      pool->active_count, asks, ask_count);
    choose_lenders(pool, asks, ask_count);
    for (size_t i = 0; i < pool->active_count; i++)
        if (bids[i].is_served)
            pool_run_job(pool, bids[i].tag,
                         cleared.price * (double)workload->jobs[bids[i].tag].cold_micro,
                         pool->mean_cost);
    free(bids);
    free(asks);
}

/* ---- Karma ----------------------------------------------------------------------------------- */

static const double KARMA_GUARANTEE = 0.5; /* of an equal share */

/* In hours of a reference core. */
static double karma_units(const struct pool *pool, uint32_t job)
{
    return (double)pool->workload->jobs[job].cold_micro / (double)price_cold_start().core_micro;
}

/* The richest member first; what is within a member's guarantee before all else. */
static void serve_karma(struct pool *pool, double guarantee, bool is_guarantee)
{
    for (size_t i = 0; i < pool->active_count; i++) {
        const uint32_t job = pool->order[i];
        const uint32_t member = pool->workload->jobs[job].member;
        const double units = karma_units(pool, job) * pool_hour_share(&pool->jobs[job]);
        if (pool->jobs[job].ran || (is_guarantee && pool->karma_used[member] + units > guarantee))
            continue;
        if (!pool_take(pool, job))
            continue;
        pool->karma_used[member] += units;
        pool_run_job(pool, job, 0, pool->mean_cost);
    }
}

void pool_hour_karma(struct pool *pool)
{
    const struct workload *workload = pool->workload;
    const double share =
        pool->willing_cold_micro / (double)price_cold_start().core_micro / workload->member_count;
    const double guarantee = KARMA_GUARANTEE * share;
    memset(pool->karma_used, 0, workload->member_count * sizeof(double));
    memcpy(pool->order, pool->active, pool->active_count * sizeof(*pool->order));
    for (size_t i = 1; i < pool->active_count; i++) {
        const uint32_t job = pool->order[i];
        const double credits = pool->karma_credits[workload->jobs[job].member];
        size_t at = i;
        while (at > 0 &&
               pool->karma_credits[workload->jobs[pool->order[at - 1]].member] < credits) {
            pool->order[at] = pool->order[at - 1];
            at--;
        }
        pool->order[at] = job;
    }
    serve_karma(pool, guarantee, true);
    serve_karma(pool, guarantee, false);
    double used = 0;
    for (uint32_t i = 0; i < workload->member_count; i++) {
        used += pool->karma_used[i];
        pool->karma_credits[i] +=
            (1 - KARMA_GUARANTEE) * share - fmax(0, pool->karma_used[i] - guarantee);
    }
    for (size_t i = 0; i < workload->lender_count && pool->willing_cold_micro > 0; i++)
        if (pool->is_willing[i])
            pool->karma_credits[workload->lenders[i].member] +=
                used * (double)sim_rate_micro(workload->lenders[i].resources, price_cold_start()) /
                pool->willing_cold_micro;
}
