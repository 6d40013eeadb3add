#include "market/match.h"

#include "base/assert.h"

#include <stdlib.h>

enum { SCALE_MAX = 1024 }; /* steps between the least cores and all that are free */

/* A machine with room for a worker, or for the server lease. */
struct candidate {
    struct machine *machine;
    struct offer *offer;
    struct resources free;
    int64_t surplus_milli; /* cores a worker may take on top of its wish */
    bool is_dedicated;     /* server: it offers no other role */
    bool is_wanted;        /* server: it is among the machines the workers would take */
};

struct candidates {
    struct candidate *items;
    size_t count;
};

typedef int candidate_order(const void *left, const void *right);

static int compare_numbers(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

static int compare_ids(const struct candidate *left, const struct candidate *right)
{
    return (left->machine->id > right->machine->id) - (left->machine->id < right->machine->id);
}

static int order_biggest(const void *left_item, const void *right_item)
{
    const struct candidate *left = left_item, *right = right_item;
    int order = compare_numbers(right->free.cores_milli, left->free.cores_milli);
    if (!order)
        order = compare_numbers(right->machine->probe.speed_weight_milli,
                                left->machine->probe.speed_weight_milli);
    return order ? order : compare_ids(left, right);
}

static int order_cheapest(const void *left_item, const void *right_item)
{
    const struct candidate *left = left_item, *right = right_item;
    const int order = compare_numbers(left->machine->probe.speed_weight_milli,
                                      right->machine->probe.speed_weight_milli);
    return order ? order : compare_ids(left, right);
}

static int order_server(const struct candidate *left, const struct candidate *right,
                        candidate_order *then)
{
    if (left->is_dedicated != right->is_dedicated)
        return left->is_dedicated ? -1 : 1;
    if (left->is_wanted != right->is_wanted)
        return left->is_wanted ? 1 : -1;
    return then(left, right);
}

static int order_server_biggest(const void *left, const void *right)
{
    return order_server(left, right, order_biggest);
}

static int order_server_cheapest(const void *left, const void *right)
{
    return order_server(left, right, order_cheapest);
}

static void sort(struct candidates *candidates, candidate_order *order)
{
    if (candidates->count > 1)
        qsort(candidates->items, candidates->count, sizeof(*candidates->items), order);
}

/* Over the whole run: the lender gets at least what its own rates come to. */
static bool accepts(const struct offer *offer, struct resources resources,
                    const struct match_wish *wish)
{
    const struct price_units units =
        price_units(resources, offer->machine->probe.speed_weight_milli);
    const int64_t run_ms = wish->request->max_run_ms;
    return price_bill_lock_micro(units, &wish->lock, wish->now_ms, run_ms) >=
           price_bill_micro(units, offer->terms.minimum, run_ms);
}

/* Open, admitting the borrower, for the role, and for as long as the job may run. */
static bool admits(const struct offer *offer, enum machine_role role, const struct match_wish *wish)
{
    const int64_t run_ms = wish->request->max_run_ms;
    return offer->machine->state == MACHINE_STATE_ONLINE && !offer->machine->is_barred &&
           (offer->terms.roles & role) && offer_is_open(offer, wish->now_ms) &&
           window_open_until_ms(offer_window(offer), wish->now_ms) - wish->now_ms >= run_ms &&
           (offer->terms.max_lease_ms == 0 || offer->terms.max_lease_ms >= run_ms) &&
           offer_admits(offer, wish->request->account, wish->group);
}

static bool fits(const struct offer *offer, struct resources free, enum machine_role role,
                 const struct match_wish *wish)
{
    const struct resources wanted =
        role == MACHINE_ROLE_SERVER ? wish->request->server : wish->request->worker;
    return admits(offer, role, wish) && resources_fit(wanted, free) && accepts(offer, wanted, wish);
}

/* Of a machine's offers that fit, the one with the most free cores; NULL: none does. */
static struct offer *best_offer(const struct machine *machine, struct resources taken,
                                enum machine_role role, const struct match_wish *wish)
{
    struct offer *best = NULL;
    int64_t best_milli = -1;
    for (size_t i = 0; i < machine->offer_count; i++) {
        struct offer *offer = machine->offers[i];
        const struct resources free = resources_subtract(offer_free(offer), taken);
        if (free.cores_milli > best_milli && fits(offer, free, role, wish)) {
            best = offer;
            best_milli = free.cores_milli;
        }
    }
    return best;
}

/* Rates are linear in cores, so a lender content with the least and the most is with all between.
 */
static int64_t surplus_milli(const struct offer *offer, struct resources free,
                             const struct match_wish *wish)
{
    if (!wish->request->takes_more_cores)
        return 0;
    struct resources most = wish->request->worker;
    most.cores_milli = free.cores_milli;
    return accepts(offer, most, wish) ? free.cores_milli - wish->request->worker.cores_milli : 0;
}

static struct candidates find_workers(struct arena *arena, struct machine *const *machines,
                                      size_t machine_count, const struct match_wish *wish)
{
    struct candidates found = {arena_alloc(arena, machine_count * sizeof(struct candidate)), 0};
    for (size_t i = 0; i < machine_count; i++) {
        struct offer *offer =
            best_offer(machines[i], (struct resources){0}, MACHINE_ROLE_WORKER, wish);
        if (offer)
            found.items[found.count++] =
                (struct candidate){.machine = machines[i],
                                   .offer = offer,
                                   .free = offer_free(offer),
                                   .surplus_milli = surplus_milli(offer, offer_free(offer), wish)};
    }
    return found;
}

static struct candidates find_servers(struct arena *arena, struct machine *const *machines,
                                      size_t machine_count, const struct match_wish *wish)
{
    struct candidates found = {arena_alloc(arena, machine_count * sizeof(struct candidate)), 0};
    for (size_t i = 0; i < machine_count; i++) {
        struct offer *offer =
            best_offer(machines[i], (struct resources){0}, MACHINE_ROLE_SERVER, wish);
        if (offer)
            found.items[found.count++] =
                (struct candidate){.machine = machines[i],
                                   .offer = offer,
                                   .free = offer_free(offer),
                                   .is_dedicated = offer->terms.roles == MACHINE_ROLE_SERVER};
    }
    return found;
}

static struct candidate *find_machine(const struct candidates *candidates,
                                      const struct machine *machine)
{
    for (size_t i = 0; i < candidates->count; i++)
        if (candidates->items[i].machine == machine)
            return &candidates->items[i];
    return NULL;
}

/* The workers' machines after the server lease took its part of `server`. */
static void take_server_room(struct candidates *workers, const struct candidate *server,
                             const struct match_wish *wish)
{
    struct candidate *shared = find_machine(workers, server->machine);
    if (!shared)
        return;
    struct offer *offer =
        best_offer(shared->machine, wish->request->server, MACHINE_ROLE_WORKER, wish);
    if (offer) {
        shared->offer = offer;
        shared->free = resources_subtract(offer_free(offer), wish->request->server);
        shared->surplus_milli = surplus_milli(offer, shared->free, wish);
        return;
    }
    *shared = workers->items[--workers->count];
}

/* Chooses the server's machine and leaves in *workers those that still fit, in order. */
static enum match_result choose_server(struct candidates *workers, struct candidates *servers,
                                       const struct match_wish *wish, bool is_cheapest,
                                       const struct candidate **out_server)
{
    const size_t wanted = (size_t)wish->request->num_nodes;
    for (size_t i = 0; i < servers->count; i++) {
        const struct candidate *worker = find_machine(workers, servers->items[i].machine);
        servers->items[i].is_wanted = worker && (size_t)(worker - workers->items) < wanted;
    }
    sort(servers, is_cheapest ? order_server_cheapest : order_server_biggest);
    for (size_t i = 0; i < servers->count; i++) {
        const struct candidate *server = &servers->items[i];
        const struct candidate *worker = find_machine(workers, server->machine);
        const bool keeps_worker = !worker || best_offer(server->machine, wish->request->server,
                                                        MACHINE_ROLE_WORKER, wish) != NULL;
        if (workers->count - !keeps_worker < wanted)
            continue;
        take_server_room(workers, server, wish);
        sort(workers, is_cheapest ? order_cheapest : order_biggest);
        *out_server = server;
        return MATCH_PLACED;
    }
    return servers->count ? MATCH_FEW_MACHINES : MATCH_NO_SERVER;
}

static int64_t quote_micro(struct price_units units, const struct match_wish *wish)
{
    return price_quote_lock_micro(units, &wish->lock, wish->now_ms, wish->latest_start_ms,
                                  wish->request->max_run_ms);
}

static void set_part(struct match_part *part, const struct match_wish *wish)
{
    part->units = price_units(part->resources, part->machine->probe.speed_weight_milli);
    part->quote_micro = quote_micro(part->units, wish);
}

/* Gives each worker its wish and `scale` of SCALE_MAX of its surplus, and adds up the cost. */
static void size_parts(struct match_placement *placement, const struct candidates *workers,
                       const struct match_wish *wish, int64_t scale)
{
    size_t at = 0;
    placement->quote_micro = placement->hourly_micro = 0;
    for (size_t i = 0; i < placement->part_count; i++) {
        struct match_part *part = &placement->parts[i];
        if (part->role == LEASE_ROLE_WORKER) {
            part->resources = wish->request->worker;
            part->resources.cores_milli += workers->items[at++].surplus_milli * scale / SCALE_MAX;
            set_part(part, wish);
        }
        placement->quote_micro = price_add_micro(placement->quote_micro, part->quote_micro);
        placement->hourly_micro = price_add_micro(
            placement->hourly_micro, price_hourly_lock_micro(part->units, &wish->lock));
    }
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

/* The cost grows with the scale, so the largest that is allowed is found by halving. */
static enum match_result fit_cost(struct match_placement *placement,
                                  const struct candidates *workers, const struct match_wish *wish)
{
    int64_t allowed = SCALE_MAX, refused = SCALE_MAX + 1;
    size_parts(placement, workers, wish, SCALE_MAX);
    if (judge_cost(placement, wish) == MATCH_PLACED)
        return MATCH_PLACED;
    size_parts(placement, workers, wish, 0);
    const enum match_result least = judge_cost(placement, wish);
    if (least != MATCH_PLACED)
        return least;
    for (allowed = 0, refused = SCALE_MAX; refused - allowed > 1;) {
        const int64_t middle = (allowed + refused) / 2;
        size_parts(placement, workers, wish, middle);
        if (judge_cost(placement, wish) == MATCH_PLACED)
            allowed = middle;
        else
            refused = middle;
    }
    size_parts(placement, workers, wish, allowed);
    return MATCH_PLACED;
}

static struct match_placement make_parts(struct arena *arena, const struct candidate *server,
                                         const struct candidates *workers,
                                         const struct match_wish *wish)
{
    const size_t worker_count = (size_t)wish->request->num_nodes;
    struct match_placement placement = {0};
    placement.parts = arena_alloc(arena, (worker_count + 1) * sizeof(struct match_part));
    if (server) {
        struct match_part *part = &placement.parts[placement.part_count++];
        *part = (struct match_part){.machine = server->machine,
                                    .offer = server->offer,
                                    .role = LEASE_ROLE_SERVER,
                                    .resources = wish->request->server};
        set_part(part, wish);
    }
    for (size_t i = 0; i < worker_count; i++)
        placement.parts[placement.part_count++] =
            (struct match_part){.machine = workers->items[i].machine,
                                .offer = workers->items[i].offer,
                                .role = LEASE_ROLE_WORKER,
                                .rank = i};
    return placement;
}

static enum match_result place(struct arena *arena, struct machine *const *machines,
                               size_t machine_count, const struct match_wish *wish,
                               bool is_cheapest, struct match_placement *out_placement)
{
    struct candidates workers = find_workers(arena, machines, machine_count, wish);
    if (workers.count < (size_t)wish->request->num_nodes)
        return MATCH_FEW_MACHINES;
    sort(&workers, is_cheapest ? order_cheapest : order_biggest);
    const struct candidate *server = NULL;
    struct candidates servers = {0};
    if (wish->request->server.cores_milli > 0) {
        servers = find_servers(arena, machines, machine_count, wish);
        const enum match_result found =
            choose_server(&workers, &servers, wish, is_cheapest, &server);
        if (found != MATCH_PLACED)
            return found;
    }
    struct match_placement placement = make_parts(arena, server, &workers, wish);
    const enum match_result result = fit_cost(&placement, &workers, wish);
    if (result == MATCH_PLACED)
        *out_placement = placement;
    return result;
}

enum match_result match_place(struct arena *arena, struct machine *const *machines,
                              size_t machine_count, const struct match_wish *wish,
                              struct match_placement *out_placement)
{
    ASSERT(wish->request->num_nodes > 0);
    const enum match_result biggest =
        place(arena, machines, machine_count, wish, /* is_cheapest= */ false, out_placement);
    if (biggest != MATCH_OVER_BUDGET && biggest != MATCH_OVER_HOURLY)
        return biggest;
    return place(arena, machines, machine_count, wish, /* is_cheapest= */ true, out_placement);
}

struct match_quote match_quote_wish(const struct match_wish *wish)
{
    const struct price_units worker = price_units(wish->request->worker, 1000);
    const struct price_units server = price_units(wish->request->server, 1000);
    const int64_t worker_micro = quote_micro(worker, wish);
    const int64_t worker_hourly_micro = price_hourly_lock_micro(worker, &wish->lock);
    struct match_quote quote = {
        .total_micro = quote_micro(server, wish),
        .hourly_micro = price_hourly_lock_micro(server, &wish->lock),
    };
    for (int64_t i = 0; i < wish->request->num_nodes; i++) {
        quote.total_micro = price_add_micro(quote.total_micro, worker_micro);
        quote.hourly_micro = price_add_micro(quote.hourly_micro, worker_hourly_micro);
    }
    return quote;
}
