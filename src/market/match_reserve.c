/* Match: by when, and where, a job that waits will have room. */
#include "base/assert.h"
#include "market/match_internal.h"

#include <stdlib.h>
#include <string.h>

/* Of a lease of the job itself, while the rest of it is looked for. */
#define NO_END_MS INT64_MAX

/* An offer, and from when on it has room. */
struct opening {
    const struct offer *offer;
    int64_t at_ms;
};

/* The first part that is of the machine; those of its other offers follow. NULL: none. */
static const struct match_reserved *find_reserved(const struct match_reservation *reservation,
                                                  const struct machine *machine)
{
    size_t low = 0, high = reservation->part_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (reservation->parts[middle].machine->id < machine->id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reservation->part_count && reservation->parts[low].machine == machine
               ? &reservation->parts[low]
               : NULL;
}

/* Of the machine, or of one of its offers alone. */
static struct resources sum_reserved(const struct match_reservation *reservation,
                                     const struct machine *machine, const struct offer *offer)
{
    const struct match_reserved *part = find_reserved(reservation, machine);
    struct resources sum = {0};
    if (!part)
        return sum;
    const struct match_reserved *end = reservation->parts + reservation->part_count;
    for (; part < end && part->machine == machine; part++)
        if (!offer || part->offer == offer)
            sum = resources_add(sum, part->resources);
    return sum;
}

bool match_is_reserved(const struct match_reservation *reservation, const struct machine *machine)
{
    return find_reserved(reservation, machine) != NULL;
}

bool match_leaves_more(const struct match_reservation *reservation,
                       const struct match_reservation *before, size_t part)
{
    const struct match_reserved *old = &before->parts[part];
    return reservation->start_ms > before->start_ms ||
           !resources_fit(sum_reserved(before, old->machine, old->offer),
                          sum_reserved(reservation, old->machine, old->offer)) ||
           !resources_fit(sum_reserved(before, old->machine, NULL),
                          sum_reserved(reservation, old->machine, NULL));
}

struct resources match_machine_free_beside(const struct match_reservation *reservation,
                                           const struct machine *machine)
{
    const struct resources free = machine_free(machine);
    if (!match_is_reserved(reservation, machine))
        return free;
    struct resources then = free;
    for (size_t i = 0; i < machine->lease_count; i++)
        if (machine->leases[i]->ends_ms <= reservation->start_ms)
            then = resources_add(then, machine->leases[i]->resources);
    return resources_smaller(free,
                             resources_subtract(then, sum_reserved(reservation, machine, NULL)));
}

struct resources match_free_beside(const struct match_reservation *reservation,
                                   const struct offer *offer)
{
    const struct machine *machine = offer->machine;
    const struct resources free = offer_free(offer);
    if (!match_is_reserved(reservation, machine))
        return free;
    struct resources then = resources_subtract(offer->terms.resources, offer->leased);
    for (size_t i = 0; i < machine->lease_count; i++) {
        const struct lease *lease = machine->leases[i];
        if (lease->ends_ms <= reservation->start_ms && lease->offer == offer->id)
            then = resources_add(then, lease->resources);
    }
    then = resources_subtract(then, sum_reserved(reservation, machine, offer));
    then = resources_smaller(then, match_machine_free_beside(reservation, machine));
    return resources_smaller(free, then);
}

static int compare_ends(const void *left, const void *right)
{
    const struct lease *a = *(struct lease *const *)left, *b = *(struct lease *const *)right;
    return (a->ends_ms > b->ends_ms) - (a->ends_ms < b->ends_ms);
}

/* The first instant from now on at which the offer has room, as its machine's leases end. */
static bool find_opening(struct arena *arena, const struct match_wish *wish,
                         const struct offer *offer, struct resources wanted,
                         const struct match_line *before, struct opening *out_opening)
{
    const struct machine *machine = offer->machine;
    struct resources of_offer = resources_subtract(offer->terms.resources, offer->leased);
    struct resources of_machine = machine_free(machine);
    int64_t at_ms = wish->now_ms;
    size_t count = machine->lease_count;
    const size_t count_max = count + (before ? before->count : 0);
    const struct lease **leases = arena_alloc(arena, (count_max + 1) * sizeof(*leases));
    for (size_t i = 0; i < count; i++)
        leases[i] = machine->leases[i];
    for (size_t i = 0; before && i < before->count; i++) {
        const struct lease *lease = &before->leases[i];
        if (lease->machine != machine->id)
            continue;
        leases[count++] = lease;
        of_machine = resources_subtract(of_machine, lease->resources);
        if (lease->offer == offer->id)
            of_offer = resources_subtract(of_offer, lease->resources);
    }
    if (count > 1)
        qsort(leases, count, sizeof(*leases), compare_ends);
    size_t ended = 0;
    while (!resources_fit(wanted, resources_smaller(of_offer, of_machine))) {
        if (ended == count || leases[ended]->ends_ms == NO_END_MS)
            return false;
        const struct lease *lease = leases[ended++];
        at_ms = lease->ends_ms > at_ms ? lease->ends_ms : at_ms;
        of_machine = resources_add(of_machine, lease->resources);
        if (lease->offer == offer->id)
            of_offer = resources_add(of_offer, lease->resources);
    }
    *out_opening = (struct opening){offer, at_ms};
    const int64_t latest_start_ms = at_ms + wish->latest_start_ms - wish->now_ms;
    return window_open_until_ms(offer_window(offer), wish->now_ms) - latest_start_ms >=
           wish->request->max_run_ms;
}

static int compare_openings(const void *left, const void *right)
{
    const struct opening *a = left, *b = right;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    return (a->offer->id > b->offer->id) - (a->offer->id < b->offer->id);
}

/* Those that open first, one to a machine; how many there are. */
static size_t keep_first(struct opening *openings, size_t count, size_t wanted)
{
    size_t kept = 0;
    if (count > 1)
        qsort(openings, count, sizeof(*openings), compare_openings);
    for (size_t i = 0; i < count && kept < wanted; i++) {
        bool is_new = true;
        for (size_t k = 0; k < kept && is_new; k++)
            is_new = openings[k].offer->machine != openings[i].offer->machine;
        if (is_new)
            openings[kept++] = openings[i];
    }
    return kept;
}

/* In the order of ids, so that those looked at stay the same while leases come and go. */
static size_t find_openings(struct matcher *matcher, struct arena *arena,
                            const struct match_wish *wish, enum machine_role role, size_t wanted,
                            const struct match_line *before, struct opening **out_openings)
{
    const size_t looks = MATCH_RESERVE_LOOKS + 4 * wanted;
    struct opening *openings = arena_alloc(arena, looks * sizeof(*openings));
    const bool with_dearer =
        wish->request->max_total_micro > 0 || wish->request->max_hourly_micro > 0;
    const struct book_wish found =
        listing_wish(matcher->listing, wish, role, LISTING_ALL, with_dearer);
    const struct resources resources = wish_resources(wish, role);
    size_t count = 0;
    struct offer *offer;
    book_search_start(&matcher->search, matcher->listing->book, &found,
                      (struct book_sort){.by = BOOK_BY_ID});
    while (count < looks && (offer = book_search_next(&matcher->search)))
        if (wish_suits(wish, role, offer) &&
            (with_dearer || wish_is_accepted(wish, offer, resources)) &&
            find_opening(arena, wish, offer, resources, before, &openings[count]))
            count++;
    *out_openings = openings;
    return keep_first(openings, count, wanted);
}

/* ---- Worker and server together -------------------------------------------------------------- */

/* Where a job's leases have room first, beside each other and behind all in a line. */
struct places {
    struct opening *openings[MACHINE_ROLE_SERVER + 1];
    size_t counts[MACHINE_ROLE_SERVER + 1];
    int64_t start_ms; /* from when on all have */
};

/* Adds the leases of one role, without an end, to the line. */
static bool join_line(struct matcher *matcher, struct arena *arena, const struct match_wish *wish,
                      enum machine_role role, struct match_line *line, struct places *places)
{
    const bool is_server = role == MACHINE_ROLE_SERVER;
    const size_t wanted =
        is_server ? job_request_servers(wish->request) : (size_t)wish->request->num_nodes;
    struct opening *places_of_role = arena_alloc(arena, (wanted + 1) * sizeof(*places_of_role));
    ASSERT(line->count + wanted <= line->capacity);
    places->openings[role] = places_of_role;
    places->counts[role] = 0;
    while (places->counts[role] < wanted) {
        /* Servers may share a machine, so each is looked for behind the one before. */
        const size_t at_once = is_server ? 1 : wanted;
        struct opening *openings;
        if (find_openings(matcher, arena, wish, role, at_once, line, &openings) < at_once)
            return false;
        for (size_t i = 0; i < at_once; i++) {
            line->leases[line->count++] = (struct lease){.machine = openings[i].offer->machine->id,
                                                         .offer = openings[i].offer->id,
                                                         .resources = wish_resources(wish, role),
                                                         .ends_ms = NO_END_MS};
            if (openings[i].at_ms > places->start_ms)
                places->start_ms = openings[i].at_ms;
            places_of_role[places->counts[role]++] = openings[i];
        }
    }
    return true;
}

/*
 * Each role takes what opens first, so the other may be left without: then the other goes first.
 * That is enough. If there are more machines for workers than are wanted, the server may have any
 * of them; if there are just as many, all of them have workers and the server what is left.
 */
static bool find_places(struct matcher *matcher, struct arena *arena, const struct match_wish *wish,
                        struct match_line *line, struct places *out_places)
{
    static const enum machine_role orders[2][2] = {{MACHINE_ROLE_WORKER, MACHINE_ROLE_SERVER},
                                                   {MACHINE_ROLE_SERVER, MACHINE_ROLE_WORKER}};
    const size_t before = line->count;
    for (int i = 0; i < 2; i++) {
        *out_places = (struct places){.start_ms = wish->now_ms};
        line->count = before;
        if (join_line(matcher, arena, wish, orders[i][0], line, out_places) &&
            join_line(matcher, arena, wish, orders[i][1], line, out_places))
            return true;
    }
    line->count = before;
    return false;
}

static int compare_parts(const void *left, const void *right)
{
    const struct match_reserved *a = left, *b = right;
    if (a->machine != b->machine)
        return a->machine->id < b->machine->id ? -1 : 1;
    return (a->offer->id > b->offer->id) - (a->offer->id < b->offer->id);
}

bool match_reserve(struct matcher *matcher, struct arena *arena, const struct match_wish *wish,
                   struct match_reservation *out_reservation)
{
    const size_t most = (size_t)wish->request->num_nodes + job_request_servers(wish->request);
    struct match_line line = {.leases = arena_alloc(arena, most * sizeof(*line.leases)),
                              .capacity = most};
    struct places places;
    if (!find_places(matcher, arena, wish, &line, &places))
        return false;
    struct match_reservation reservation = {
        .start_ms = places.start_ms,
        .parts = arena_alloc(arena, most * sizeof(struct match_reserved))};
    for (enum machine_role role = MACHINE_ROLE_WORKER; role <= MACHINE_ROLE_SERVER; role++)
        for (size_t i = 0; i < places.counts[role]; i++)
            reservation.parts[reservation.part_count++] =
                (struct match_reserved){places.openings[role][i].offer->machine,
                                        places.openings[role][i].offer, wish_resources(wish, role)};
    qsort(reservation.parts, reservation.part_count, sizeof(*reservation.parts), compare_parts);
    *out_reservation = reservation;
    return true;
}

int64_t match_expect(struct matcher *matcher, struct arena *arena, const struct match_wish *wish,
                     struct match_line *line)
{
    const size_t before = line->count;
    struct places places;
    if (!find_places(matcher, arena, wish, line, &places))
        return 0;
    for (size_t k = before; k < line->count; k++)
        line->leases[k].ends_ms = places.start_ms + wish->latest_end_ms - wish->now_ms;
    return places.start_ms;
}
