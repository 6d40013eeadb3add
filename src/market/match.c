#include "market/match.h"

#include "base/assert.h"
#include "market/match_internal.h"

#include <stdlib.h>
#include <string.h>

/* The book's keys are rounded, so by a key a few more are taken, and the best of them kept. */
enum { EXTRA = 32 };

static const struct book_sort by_score = {.by = BOOK_BY_SCORE};
static const struct book_sort by_size = {
    .by = BOOK_BY_KEYS, .first_key = LISTING_CORES, .second_key = LISTING_SPEED};
static const struct book_sort by_slowness = {
    .by = BOOK_BY_KEYS, .first_key = LISTING_SLOWNESS, .second_key = LISTING_NEARNESS};
static const struct book_sort by_core_minimum = {
    .by = BOOK_BY_KEYS, .first_key = LISTING_CORE_CHEAPNESS, .second_key = LISTING_SPEED};
static const struct book_sort by_gpu_minimum = {
    .by = BOOK_BY_KEYS, .first_key = LISTING_GPU_CHEAPNESS, .second_key = LISTING_SPEED};

void matcher_init(struct matcher *matcher, struct listing *listing)
{
    *matcher = (struct matcher){.listing = listing, .arena = arena_new(0)};
}

void matcher_done(struct matcher *matcher)
{
    arena_free(matcher->arena);
    book_search_done(&matcher->search);
}

/* ---- Machines taken -------------------------------------------------------------------------- */

static size_t find_slot(const struct attempt *attempt, const struct machine *machine)
{
    size_t slot = (size_t)(machine->id * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    for (;; slot++) {
        slot &= attempt->machine_mask;
        if (!attempt->machines[slot] || attempt->machines[slot] == machine)
            return slot;
    }
}

bool match_is_taken(const struct attempt *attempt, const struct machine *machine)
{
    return attempt->machines[find_slot(attempt, machine)] != NULL;
}

static void take_machine(struct attempt *attempt, const struct machine *machine)
{
    attempt->machines[find_slot(attempt, machine)] = machine;
}

/* Leaves a mark in its place, so that those behind it are still found. */
void match_leave_machine(struct attempt *attempt, const struct machine *machine)
{
    static const char left;
    attempt->machines[find_slot(attempt, machine)] = &left;
}

void match_start_attempt(struct attempt *attempt)
{
    struct arena *arena = attempt->matcher->arena;
    const int64_t most = job_request_nodes_first(attempt->wish->request);
    attempt->worker_count = 0;
    attempt->worker_max = (size_t)most + job_request_servers(attempt->wish->request);
    const size_t most_taken =
        attempt->pool_max > attempt->worker_max ? attempt->pool_max : attempt->worker_max;
    const size_t room = most_taken + EXTRA;
    attempt->workers = arena_alloc(arena, room * sizeof(*attempt->workers));
    size_t slot_count = 8;
    while (slot_count < 2 * room)
        slot_count *= 2;
    attempt->machines = arena_alloc(arena, slot_count * sizeof(*attempt->machines));
    attempt->machine_mask = slot_count - 1;
    attempt->server_count = 0;
    attempt->needs_worker = false;
}

/* ---- Who fits -------------------------------------------------------------------------------- */

bool match_names_maximum(const struct job_request *request)
{
    return request->max_total_micro > 0 || request->max_hourly_micro > 0;
}

/* One goes first that the job, which ends later, must not put off. */
static bool must_leave_room(const struct attempt *attempt)
{
    return attempt->ahead && attempt->wish->latest_end_ms > attempt->ahead->start_ms;
}

/* What the servers that were found have of the machine, or of one of its offers alone. */
static struct resources server_part(const struct attempt *attempt, const struct machine *machine,
                                    const struct offer *offer)
{
    struct resources part = {0};
    for (size_t i = 0; i < attempt->server_count; i++)
        if (attempt->servers[i].offer->machine == machine &&
            (!offer || attempt->servers[i].offer == offer))
            part = resources_add(part, attempt->wish->request->server);
    return part;
}

struct resources match_machine_free_for(const struct attempt *attempt,
                                        const struct machine *machine)
{
    struct resources free = must_leave_room(attempt)
                                ? match_machine_free_beside(attempt->ahead, machine)
                                : machine_free(machine);
    if (attempt->wish->request->is_spare)
        free = resources_smaller(free, machine_spare_free(machine));
    return resources_subtract(free, server_part(attempt, machine, NULL));
}

/* What is free there for this job. */
static struct resources free_for(const struct attempt *attempt, const struct offer *offer)
{
    struct resources free =
        must_leave_room(attempt) ? match_free_beside(attempt->ahead, offer) : offer_free(offer);
    if (attempt->wish->request->is_spare)
        free = resources_smaller(free, offer_spare_free(offer));
    if (attempt->server_count == 0)
        return free;
    return resources_smaller(resources_subtract(free, server_part(attempt, offer->machine, offer)),
                             match_machine_free_for(attempt, offer->machine));
}

/* Rates are linear in cores, so a lender content with the least and the most is with all between.
 */
int64_t match_surplus_milli(const struct attempt *attempt, const struct candidate *candidate)
{
    const struct job_request *request = attempt->wish->request;
    if (!request->takes_more_cores)
        return 0;
    struct resources most = request->worker;
    most.cores_milli = candidate->free.cores_milli;
    return candidate->is_at_minimum || wish_is_accepted(attempt->wish, candidate->offer, most)
               ? candidate->free.cores_milli - request->worker.cores_milli
               : 0;
}

bool match_could_use(const struct match_wish *wish, const struct offer *offer,
                     const struct match_reservation *ahead)
{
    static const enum machine_role roles[] = {MACHINE_ROLE_WORKER, MACHINE_ROLE_SERVER};
    const struct attempt attempt = {.wish = wish, .ahead = ahead};
    const struct resources free = free_for(&attempt, offer);
    for (int i = 0; i < 2; i++) {
        const struct resources wanted = wish_resources(wish, roles[i]);
        if (wanted.cores_milli > 0 && resources_fit(wanted, free) &&
            wish_suits(wish, roles[i], offer) &&
            (match_names_maximum(wish->request) || wish_is_accepted(wish, offer, wanted)))
            return true;
    }
    return false;
}

bool match_fits(const struct attempt *attempt, enum machine_role role, struct offer *offer,
                bool with_dearer, struct candidate *out_candidate)
{
    const struct match_wish *wish = attempt->wish;
    const struct resources wanted = wish_resources(wish, role);
    struct candidate candidate = {.offer = offer, .free = free_for(attempt, offer)};
    if (!resources_fit(wanted, candidate.free) || !wish_suits(wish, role, offer))
        return false;
    const int64_t rtt_us = offer->machine->probe.rtt_us;
    if (role == MACHINE_ROLE_WORKER && attempt->max_rtt_us > 0 &&
        (rtt_us == 0 || rtt_us > attempt->max_rtt_us))
        return false;
    candidate.is_at_minimum = !wish_is_accepted(wish, offer, wanted);
    if (candidate.is_at_minimum && !with_dearer)
        return false;
    if (role == MACHINE_ROLE_WORKER)
        candidate.surplus_milli = match_surplus_milli(attempt, &candidate);
    *out_candidate = candidate;
    return true;
}

/* ---- Workers --------------------------------------------------------------------------------- */

static bool is_avoided(const struct match_wish *wish, enum lease_role role,
                       const struct machine *machine)
{
    return wish->beside && job_avoids(wish->beside, role, machine);
}

static int compare_numbers(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

static int compare_by_key(const struct candidate *left, const struct candidate *right, int key)
{
    const struct machine *a = left->offer->machine, *b = right->offer->machine;
    switch (key) {
    case LISTING_CORES:
        return compare_numbers(right->free.cores_milli, left->free.cores_milli);
    case LISTING_SPEED:
        return compare_numbers(machine_speed_milli(b), machine_speed_milli(a));
    case LISTING_SLOWNESS:
        return compare_numbers(machine_speed_milli(a), machine_speed_milli(b));
    case LISTING_NEARNESS:
        return compare_numbers(a->probe.rtt_us, b->probe.rtt_us);
    case LISTING_CORE_CHEAPNESS:
        return compare_numbers(left->offer->terms.minimum.core_micro,
                               right->offer->terms.minimum.core_micro);
    case LISTING_GPU_CHEAPNESS:
        return compare_numbers(left->offer->terms.minimum.gpu_micro,
                               right->offer->terms.minimum.gpu_micro);
    default:
        UNREACHABLE("a key nobody is sorted by");
    }
}

static int compare_candidates(const void *left_item, const void *right_item, void *context)
{
    const struct candidate *left = left_item, *right = right_item;
    const struct book_sort *sort = context;
    int order = compare_by_key(left, right, sort->first_key);
    if (!order)
        order = compare_by_key(left, right, sort->second_key);
    return order ? order
                 : (left->offer->id > right->offer->id) - (left->offer->id < right->offer->id);
}

void match_collect_workers(struct attempt *attempt, const struct book_wish *wish,
                           struct book_sort sort, size_t most, bool with_dearer)
{
    struct book_search *search = &attempt->matcher->search;
    struct offer *offer;
    const size_t first = attempt->worker_count;
    const size_t taken_max = sort.by == BOOK_BY_KEYS ? most + EXTRA : most;
    book_search_start(search, attempt->matcher->listing->book, wish, sort);
    while (attempt->worker_count < taken_max && (offer = book_search_next(search)))
        if (!match_is_taken(attempt, offer->machine) &&
            !is_avoided(attempt->wish, LEASE_ROLE_WORKER, offer->machine) &&
            match_fits(attempt, MACHINE_ROLE_WORKER, offer, with_dearer,
                       &attempt->workers[attempt->worker_count])) {
            take_machine(attempt, offer->machine);
            attempt->worker_count++;
        }
    if (sort.by == BOOK_BY_KEYS)
        qsort_r(attempt->workers + first, attempt->worker_count - first, sizeof(*attempt->workers),
                compare_candidates, &sort);
    match_keep_workers(attempt, most);
}

struct book_sort match_by_minimum(struct resources wanted)
{
    return wanted.gpus_milli > 0 ? by_gpu_minimum : by_core_minimum;
}

/*
 * Whether lenders content with the posted price could serve it once their leases have ended. Then
 * it waits for them: who asked more would otherwise be let whenever the others are busy, and a high
 * minimum would pay.
 */
static bool content_lenders_would_do(const struct attempt *attempt)
{
    const struct match_wish *wish = attempt->wish;
    const size_t least = (size_t)wish->request->num_nodes;
    struct attempt counted = {.matcher = attempt->matcher, .wish = wish};
    struct book_search *search = &attempt->matcher->search;
    struct listing *listing = attempt->matcher->listing;
    const struct book_wish found =
        listing_wish(listing, wish, MACHINE_ROLE_WORKER, LISTING_ALL, /* with_dearer= */ false);
    struct offer *offer;
    size_t count = 0;
    match_start_attempt(&counted);
    book_search_start(search, listing->book, &found, attempt->sort);
    while (count < least && (offer = book_search_next(search))) {
        if (match_is_taken(&counted, offer->machine) ||
            !resources_fit(wish->request->worker, offer->terms.resources) ||
            !wish_suits(wish, MACHINE_ROLE_WORKER, offer) ||
            !wish_is_accepted(wish, offer, wish->request->worker))
            continue;
        take_machine(&counted, offer->machine);
        count++;
    }
    return count >= least;
}

void match_keep_workers(struct attempt *attempt, size_t count)
{
    while (attempt->worker_count > count)
        match_leave_machine(attempt, attempt->workers[--attempt->worker_count].offer->machine);
}

static bool find_workers(struct attempt *attempt)
{
    const struct match_wish *wish = attempt->wish;
    const size_t least = (size_t)wish->request->num_nodes;
    const int64_t max_us = wish_max_rtt_us(wish, MACHINE_ROLE_WORKER);
    struct listing *listing = attempt->matcher->listing;
    struct book_wish found =
        listing_wish(listing, wish, MACHINE_ROLE_WORKER, LISTING_FREE, /* with_dearer= */ false);
    if (max_us > 0)
        return match_find_near(attempt, &found, max_us);
    match_collect_workers(attempt, &found, attempt->sort, attempt->worker_max, false);
    if (attempt->worker_count >= least)
        return true;
    if (match_names_maximum(wish->request) && !content_lenders_would_do(attempt)) {
        found = listing_wish(listing, wish, MACHINE_ROLE_WORKER, LISTING_FREE, true);
        match_collect_workers(attempt, &found, match_by_minimum(wish->request->worker), least,
                              true);
    }
    return attempt->worker_count >= least;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* Those who ask more than is posted may all come at once, and two machines that were tried with one
 * another may be near to many: then nothing is known. */
static enum match_result find_too_few(const struct attempt *attempt)
{
    const struct job_request *request = attempt->wish->request;
    const int64_t lacking = request->num_nodes - (int64_t)attempt->worker_count;
    const bool is_known =
        !match_names_maximum(request) && wish_max_rtt_us(attempt->wish, MACHINE_ROLE_WORKER) == 0;
    attempt->matcher->lacking = lacking > 1 && is_known ? lacking : 1;
    return MATCH_FEW_MACHINES;
}

static enum match_result place(struct attempt *attempt, struct match_placement *out_placement)
{
    match_start_attempt(attempt);
    if (!find_workers(attempt))
        return find_too_few(attempt);
    if (!match_find_servers(attempt))
        return attempt->needs_worker ? find_too_few(attempt) : MATCH_NO_SERVER;
    struct match_placement placement;
    match_make_parts(attempt, &placement);
    const enum match_result result = match_fit_cost(&placement, attempt);
    if (result == MATCH_PLACED)
        *out_placement = placement;
    return result;
}

enum match_result match_place_server(struct matcher *matcher, const struct match_wish *wish,
                                     const struct match_reservation *ahead,
                                     struct match_placement *out_placement)
{
    ASSERT(wish->request->num_nodes == 0 && wish->request->server.cores_milli > 0);
    arena_clear(matcher->arena);
    struct attempt attempt = {.matcher = matcher, .wish = wish, .ahead = ahead, .sort = by_score};
    match_start_attempt(&attempt);
    if (!match_find_servers(&attempt))
        return MATCH_NO_SERVER;
    struct match_placement placement;
    match_make_parts(&attempt, &placement);
    const enum match_result result = match_fit_cost(&placement, &attempt);
    if (result == MATCH_PLACED)
        *out_placement = placement;
    return result;
}

enum match_result match_place(struct matcher *matcher, const struct match_wish *wish,
                              const struct match_reservation *ahead,
                              struct match_placement *out_placement)
{
    ASSERT(wish->request->num_nodes > 0);
    arena_clear(matcher->arena);
    struct attempt attempt = {.matcher = matcher,
                              .wish = wish,
                              .ahead = ahead,
                              .sort = wish->request->takes_more_cores ? by_size : by_score};
    const enum match_result first = place(&attempt, out_placement);
    if (first != MATCH_OVER_BUDGET && first != MATCH_OVER_HOURLY)
        return first;
    attempt.sort = by_slowness;
    return place(&attempt, out_placement);
}
