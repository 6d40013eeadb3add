#include "base/memory.h"
#include "sim/pool_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *pool_rule_name(enum pool_rule rule)
{
    static const char *const names[] = {"fixed", "random", "souk",  "first come",
                                        "karma", "k-DA",   "McAfee"};
    _Static_assert(sizeof(names) / sizeof(*names) == POOL_RULE_COUNT, "a name for each");
    return names[rule];
}

static void set_units(struct resources resources, double out_units[OUTCOME_RESOURCES])
{
    out_units[0] = (double)resources.cores_milli / 1000;
    out_units[1] = (double)resources.ram_bytes / (double)(INT64_C(1) << 30);
    out_units[2] = (double)resources.gpus_milli / 1000;
}

static double cold_micro(struct resources resources)
{
    struct resources counted = resources;
    counted.disk_bytes = 0; /* of which no job here wants any */
    return (double)sim_rate_micro(counted, price_cold_start());
}

double pool_hour_share(const struct pool_job *job)
{
    return fmin(1, job->remaining_h);
}

double pool_rate_micro(const struct pool *pool, uint32_t job, int64_t hour)
{
    double rate = 0;
    for (int i = 0; i < OUTCOME_RESOURCES; i++)
        if (pool->jobs[job].units[i] > 0)
            rate += pool->jobs[job].units[i] * pool_price_at(&pool->price, i, hour);
    return rate;
}

bool pool_take(struct pool *pool, uint32_t job)
{
    const struct pool_job *state = &pool->jobs[job];
    const double share = pool_hour_share(state);
    for (int i = 0; i < OUTCOME_RESOURCES; i++)
        if (state->units[i] * share > pool->free[i] + 1e-9)
            return false;
    for (int i = 0; i < OUTCOME_RESOURCES; i++)
        pool->free[i] -= state->units[i] * share;
    return true;
}

/* Lenders that serve an hour share its income and its work by their size. */
static void pay_lenders(struct pool *pool, double income_micro, double cold)
{
    for (size_t i = 0; i < pool->workload->lender_count; i++) {
        if (!pool->is_willing[i])
            continue;
        const struct sim_lender *lender = &pool->workload->lenders[i];
        const double part = cold_micro(lender->resources) / pool->willing_cold_micro;
        pool->outcome->lender_income_micro[i] += part * income_micro;
        pool->outcome->lent_micro[lender->member] += part * income_micro;
        pool->outcome->lender_cost_micro[i] += part * cold * (double)lender->cost_milli / 1000;
    }
}

void pool_run_job(struct pool *pool, uint32_t job, double rate_micro, double cost)
{
    struct pool_job *state = &pool->jobs[job];
    const struct sim_job *wish = &pool->workload->jobs[job];
    struct job_fate *fate = &pool->outcome->fates[job];
    const double share = pool_hour_share(state);
    if (!fate->has_started) {
        fate->has_started = true;
        fate->wait_h = fmax(0, (double)pool->hour - (double)wish->arrival_s / 3600);
    }
    fate->paid_micro += rate_micro * share;
    fate->run_h += share;
    pool->outcome->spent_micro[wish->member] += rate_micro * share;
    pool->outcome->cost_micro += cost * (double)wish->cold_micro * share;
    for (int i = 0; i < OUTCOME_RESOURCES; i++)
        pool->outcome->used_hours[i] += state->units[i] * share;
    pay_lenders(pool, rate_micro * share, (double)wish->cold_micro * share);
    state->ran = true;
    state->remaining_h -= share;
    if (state->remaining_h > 1e-9)
        return;
    state->has_left = true;
    fate->is_finished = true;
    pool->outcome->worth_micro += (double)wish->worth_micro * (double)wish->run_s / 3600;
}

/* ---- The hour -------------------------------------------------------------------------------- */

static void admit_arrivals(struct pool *pool)
{
    const struct workload *workload = pool->workload;
    while (pool->arrived_count < workload->job_count &&
           workload->jobs[pool->arrived_count].arrival_s < (pool->hour + 1) * 3600) {
        const uint32_t job = (uint32_t)pool->arrived_count++;
        struct pool_job *state = &pool->jobs[job];
        set_units(sim_job_resources(&workload->jobs[job]), state->units);
        state->remaining_h = (double)workload->jobs[job].run_s / 3600;
        state->planned_hour = pool->hour;
        pool->active[pool->active_count++] = job;
        if (workload->jobs[job].start != JOB_START_CHEAPEST)
            continue;
        pool->flexible[pool->flexible_count++] = job;
        if (pool->options.rule <= POOL_SOUK)
            pool_plan_cheapest(pool, job);
    }
}

static void drop_the_late(struct pool *pool)
{
    size_t kept = 0;
    for (size_t i = 0; i < pool->active_count; i++) {
        const uint32_t job = pool->active[i];
        struct pool_job *state = &pool->jobs[job];
        const double end_s = 3600 * ((double)pool->hour + state->remaining_h);
        const bool is_late = end_s > (double)pool->workload->jobs[job].latest_s ||
                             (!pool->outcome->fates[job].has_started &&
                              pool->hour * 3600 > pool->workload->jobs[job].start_s);
        if (!state->has_left && is_late) {
            state->has_left = true;
            if (!pool->outcome->fates[job].has_started)
                pool->outcome->fates[job].wait_h =
                    (double)pool->hour - (double)pool->workload->jobs[job].arrival_s / 3600;
        }
        state->ran = state->waited = false;
        if (!state->has_left)
            pool->active[kept++] = job;
    }
    pool->active_count = kept;
    kept = 0;
    for (size_t i = 0; i < pool->flexible_count; i++)
        if (pool->workload->jobs[pool->flexible[i]].latest_s > pool->hour * 3600)
            pool->flexible[kept++] = pool->flexible[i];
    pool->flexible_count = kept;
}

static bool has_posted_price(const struct pool *pool)
{
    return pool->options.rule <= POOL_SOUK;
}

/* A lender is willing when what it lends earns its minimum, all resources together. */
static bool is_willing(const struct pool *pool, const struct sim_lender *lender)
{
    if (!has_posted_price(pool))
        return true;
    double units[OUTCOME_RESOURCES], rate = 0;
    set_units(lender->resources, units);
    for (int i = 0; i < OUTCOME_RESOURCES; i++)
        rate += units[i] * pool_price_at(&pool->price, i, pool->hour);
    return rate >= cold_micro(lender->resources) * (double)lender->minimum_milli / 1000;
}

static void count_wash(struct pool *pool, const struct sim_lender *lender)
{
    double units[OUTCOME_RESOURCES];
    set_units(lender->resources, units);
    pool_price_offer(&pool->price, units);
    pool_price_want(&pool->price, lender->washed_by, units);
}

void pool_weigh_lenders(struct pool *pool)
{
    double cost = 0;
    pool->willing_cold_micro = 0;
    for (size_t i = 0; i < pool->workload->lender_count; i++) {
        const struct sim_lender *lender = &pool->workload->lenders[i];
        if (!pool->is_willing[i])
            continue;
        pool->willing_cold_micro += cold_micro(lender->resources);
        cost += cold_micro(lender->resources) * (double)lender->cost_milli / 1000;
    }
    pool->mean_cost = pool->willing_cold_micro > 0 ? cost / pool->willing_cold_micro : 0;
}

static void gather_supply(struct pool *pool)
{
    memset(pool->capacity, 0, sizeof(pool->capacity));
    for (size_t i = 0; i < pool->workload->lender_count; i++) {
        const struct sim_lender *lender = &pool->workload->lenders[i];
        double units[OUTCOME_RESOURCES];
        set_units(lender->resources, units);
        const bool is_online = sim_lender_is_online(lender, pool->hour);
        for (int k = 0; k < OUTCOME_RESOURCES && is_online; k++)
            pool->outcome->there_hours[k] += units[k];
        pool->is_willing[i] = is_online && is_willing(pool, lender);
        if (pool->is_willing[i] && sim_lender_is_washing(lender, pool->hour)) {
            pool->is_willing[i] = false;
            count_wash(pool, lender);
        }
        if (!pool->is_willing[i])
            continue;
        for (int k = 0; k < OUTCOME_RESOURCES; k++)
            pool->capacity[k] += units[k];
        pool_price_offer(&pool->price, units);
    }
    pool_weigh_lenders(pool);
    memcpy(pool->free, pool->capacity, sizeof(pool->free));
    pool->supplied_micro[pool->hour / POOL_SLOT_HOURS] += pool->willing_cold_micro;
}

static void meter_demand(struct pool *pool)
{
    double unit_hours[OUTCOME_RESOURCES];
    for (size_t i = 0; i < pool->active_count; i++) {
        const uint32_t job = pool->active[i];
        const struct pool_job *state = &pool->jobs[job];
        const struct sim_job *wish = &pool->workload->jobs[job];
        if (wish->start == JOB_START_CHEAPEST || !(state->ran || state->waited))
            continue;
        const double share = state->ran ? fmin(1, state->remaining_h + 1) : 1;
        for (int k = 0; k < OUTCOME_RESOURCES; k++)
            unit_hours[k] = state->units[k] * share;
        pool_price_want(&pool->price, wish->member, unit_hours);
    }
    /* What may choose its slot counts evenly over its window, wherever it runs: no herding. */
    for (size_t i = 0; i < pool->flexible_count; i++) {
        const uint32_t job = pool->flexible[i];
        const struct sim_job *wish = &pool->workload->jobs[job];
        if ((double)wish->maximum_micro < pool_rate_micro(pool, job, pool->hour))
            continue;
        const double share = (double)wish->run_s / (double)(wish->latest_s - wish->arrival_s);
        for (int k = 0; k < OUTCOME_RESOURCES; k++)
            unit_hours[k] = pool->jobs[job].units[k] * share;
        pool_price_want(&pool->price, wish->member, unit_hours);
    }
}

static void pass_hour(struct pool *pool)
{
    if (pool->hour % POOL_SLOT_HOURS == 0) {
        if (pool->hour > 0)
            pool_price_close(&pool->price, pool->hour);
        const int scarce = pool->workload->kind == WORKLOAD_ALIBABA ? 2 : 0;
        pool->outcome->slot_price[pool->outcome->slot_count++] =
            pool_price_at(&pool->price, scarce, pool->hour) /
            (double)(scarce ? price_cold_start().gpu_micro : price_cold_start().core_micro);
    }
    drop_the_late(pool);
    admit_arrivals(pool);
    gather_supply(pool);
    if (pool->options.rule == POOL_KDA || pool->options.rule == POOL_MCAFEE)
        pool_hour_auction(pool);
    else if (pool->options.rule == POOL_KARMA)
        pool_hour_karma(pool);
    else
        pool_hour_posted(pool);
    meter_demand(pool);
}

/* ---- A run ----------------------------------------------------------------------------------- */

void pool_run(const struct workload *workload, const struct pool_options *options,
              struct outcome *out_outcome)
{
    outcome_init(out_outcome, workload);
    struct pool pool = {.workload = workload, .options = *options, .outcome = out_outcome};
    const enum pool_price_rule rule = options->rule == POOL_RANDOM ? POOL_PRICE_RANDOM
                                      : options->rule == POOL_SOUK ? POOL_PRICE_SOUK
                                                                   : POOL_PRICE_FIXED;
    pool_price_init(&pool.price, rule, options->price_factor > 0 ? options->price_factor : 1,
                    workload, options->seed);
    const size_t slots = (size_t)workload->hour_count / POOL_SLOT_HOURS + 64;
    pool.jobs = memory_zeroed(workload->job_count, sizeof(*pool.jobs));
    pool.active = memory_zeroed(workload->job_count, sizeof(*pool.active));
    pool.flexible = memory_zeroed(workload->job_count, sizeof(*pool.flexible));
    pool.order = memory_zeroed(workload->job_count, sizeof(*pool.order));
    pool.is_willing = memory_zeroed(workload->lender_count, sizeof(*pool.is_willing));
    pool.karma_credits = memory_zeroed(workload->member_count, sizeof(double));
    pool.karma_used = memory_zeroed(workload->member_count, sizeof(double));
    pool.booked_micro = memory_zeroed(slots, sizeof(double));
    pool.supplied_micro = memory_zeroed(slots, sizeof(double));
    for (pool.hour = 0; pool.hour < workload->hour_count; pool.hour++)
        pass_hour(&pool);
    pool_price_done(&pool.price);
    free(pool.jobs);
    free(pool.active);
    free(pool.flexible);
    free(pool.order);
    free(pool.is_willing);
    free(pool.karma_credits);
    free(pool.karma_used);
    free(pool.booked_micro);
    free(pool.supplied_micro);
}
