/* Match: what a placement costs, and how much of it the limits allow. */
#include "base/assert.h"
#include "market/match_internal.h"

enum { SCALE_MAX = 1024 }; /* steps between the least cores and all that are free */

struct price_lock match_part_lock(const struct match_part *part, const struct match_wish *wish)
{
    if (!part->is_at_minimum)
        return wish->lock;
    struct price_lock lock = price_lock_flat(part->offer->terms.minimum);
    lock.rush_ms = wish->lock.rush_ms;
    return lock;
}

static int64_t quote_micro(struct price_units units, const struct price_lock *lock,
                           const struct match_wish *wish)
{
    return price_quote_lock_micro(units, lock, wish->now_ms, wish->latest_start_ms,
                                  wish->request->max_run_ms);
}

static void set_part(struct match_part *part, const struct match_wish *wish)
{
    const struct price_lock *lock = &wish->lock;
    struct price_lock own;
    if (part->is_at_minimum) {
        own = match_part_lock(part, wish);
        lock = &own;
    }
    part->units = price_units(part->resources, machine_speed_milli(part->machine));
    part->quote_micro = quote_micro(part->units, lock, wish);
    part->hourly_micro = price_hourly_lock_micro(part->units, lock);
}

static struct match_part part_of(const struct candidate *candidate, enum lease_role role,
                                 uint64_t rank)
{
    ASSERT(candidate->offer);
    return (struct match_part){.machine = candidate->offer->machine,
                               .offer = candidate->offer,
                               .role = role,
                               .rank = rank,
                               .is_at_minimum = candidate->is_at_minimum};
}

void match_make_parts(struct attempt *attempt, struct match_placement *out_placement)
{
    struct match_placement placement = {
        .parts = arena_alloc(attempt->matcher->arena,
                             (attempt->worker_count + attempt->server_count + 1) *
                                 sizeof(struct match_part))};
    for (size_t i = 0; i < attempt->server_count; i++) {
        struct match_part *part = &placement.parts[placement.part_count++];
        *part = part_of(&attempt->servers[i], LEASE_ROLE_SERVER, i);
        part->resources = attempt->wish->request->server;
        set_part(part, attempt->wish);
    }
    for (size_t i = 0; i < attempt->worker_count; i++)
        placement.parts[placement.part_count++] =
            part_of(&attempt->workers[i], LEASE_ROLE_WORKER, i);
    *out_placement = placement;
}

static void add_up(struct match_placement *placement)
{
    placement->quote_micro = placement->hourly_micro = 0;
    for (size_t i = 0; i < placement->part_count; i++) {
        const struct match_part *part = &placement->parts[i];
        placement->quote_micro = price_add_micro(placement->quote_micro, part->quote_micro);
        placement->hourly_micro = price_add_micro(placement->hourly_micro, part->hourly_micro);
    }
}

/* Gives each worker its wish and `scale` of SCALE_MAX of its surplus. */
static void size_parts(struct match_placement *placement, const struct attempt *attempt,
                       int64_t scale)
{
    for (size_t i = attempt->server_count; i < placement->part_count; i++) {
        struct match_part *part = &placement->parts[i];
        part->resources = attempt->wish->request->worker;
        part->resources.cores_milli +=
            attempt->workers[part->rank].surplus_milli * scale / SCALE_MAX;
        set_part(part, attempt->wish);
    }
    add_up(placement);
}

static enum match_result judge_cost(const struct match_placement *placement,
                                    const struct match_wish *wish)
{
    if (placement->quote_micro > wish->budget_micro)
        return MATCH_OVER_BUDGET;
    if (wish->request->max_hourly_micro > 0 &&
        placement->hourly_micro > wish->request->max_hourly_micro)
        return MATCH_OVER_HOURLY;
    return MATCH_PLACED;
}

/* Workers beyond the least go, the last taken first, until the rest is within the limits. */
static enum match_result drop_workers(struct match_placement *placement,
                                      const struct attempt *attempt)
{
    size_t allowed = (size_t)attempt->wish->request->num_nodes + attempt->server_count;
    size_t refused = placement->part_count + 1;
    placement->part_count = allowed;
    add_up(placement);
    const enum match_result least = judge_cost(placement, attempt->wish);
    if (least != MATCH_PLACED)
        return least;
    while (refused - allowed > 1) {
        const size_t middle = allowed + (refused - allowed) / 2;
        placement->part_count = middle;
        add_up(placement);
        if (judge_cost(placement, attempt->wish) == MATCH_PLACED)
            allowed = middle;
        else
            refused = middle;
    }
    placement->part_count = allowed;
    add_up(placement);
    return MATCH_PLACED;
}

/* The cost grows with the scale, so the largest that is allowed is found by halving. */
enum match_result match_fit_cost(struct match_placement *placement, const struct attempt *attempt)
{
    const struct match_wish *wish = attempt->wish;
    size_parts(placement, attempt, SCALE_MAX);
    if (judge_cost(placement, wish) == MATCH_PLACED)
        return MATCH_PLACED;
    size_parts(placement, attempt, 0);
    const enum match_result least = drop_workers(placement, attempt);
    if (least != MATCH_PLACED || !wish->request->takes_more_cores)
        return least;
    int64_t allowed = 0, refused = SCALE_MAX;
    while (refused - allowed > 1) {
        const int64_t middle = (allowed + refused) / 2;
        size_parts(placement, attempt, middle);
        if (judge_cost(placement, wish) == MATCH_PLACED)
            allowed = middle;
        else
            refused = middle;
    }
    size_parts(placement, attempt, allowed);
    return MATCH_PLACED;
}

static void add_quotes(struct match_quote *quote, struct resources resources, size_t count,
                       const struct match_wish *wish)
{
    const struct price_units units = price_units(resources, 1000);
    const int64_t one_micro = quote_micro(units, &wish->lock, wish);
    const int64_t one_hourly_micro = price_hourly_lock_micro(units, &wish->lock);
    for (size_t i = 0; i < count; i++) {
        quote->total_micro = price_add_micro(quote->total_micro, one_micro);
        quote->hourly_micro = price_add_micro(quote->hourly_micro, one_hourly_micro);
    }
}

struct match_quote match_quote_replica(const struct match_wish *wish)
{
    struct match_quote quote = {0};
    add_quotes(&quote, wish->request->server, wish->request->has_replica, wish);
    return quote;
}

struct match_quote match_quote_wish(const struct match_wish *wish)
{
    const struct job_request *request = wish->request;
    struct match_quote quote = {0};
    add_quotes(&quote, request->server, job_request_server_ranks(request), wish);
    add_quotes(&quote, request->worker, (size_t)request->num_nodes, wish);
    return quote;
}
