/*
 * Match: the nearest change of the job file with which a job that waits would start now.
 *
 * Changes are found by looking at what machines lack; each is then tried as a whole, workers and
 * server together, and only one that is placed is named. The server's size is no field of the job
 * file: when that is what lacks, it is said.
 */
#include "base/assert.h"
#include "base/units.h"
#include "market/match_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHANGES_MAX = 3 * WISH_TEST_COUNT + 2 };

/* What those machines have that fail one test only. */
struct misses {
    int64_t *values;
    size_t count;
};

struct nearest {
    struct arena *arena;
    struct matcher *matcher;
    struct machine *const *machines;
    size_t machine_count;
    const struct match_wish *wish;
    const struct match_reservation *ahead;
    struct job_request asked; /* a copy */
    bool has_server;
    size_t fitting; /* machines that pass every test of a worker */
    struct misses misses[WISH_TEST_COUNT];
    struct match_change changes[CHANGES_MAX];
    size_t change_count;
};

/* ---- What machines lack ---------------------------------------------------------------------- */

static int64_t run_ms_allowed(const struct match_wish *wish, const struct offer *offer)
{
    const int64_t open_ms =
        window_open_until_ms(offer_window(offer), wish->now_ms) - wish->latest_start_ms;
    const int64_t lease_ms = offer->terms.max_lease_ms ? offer->terms.max_lease_ms : INT64_MAX;
    const int64_t run_ms = open_ms < lease_ms ? open_ms : lease_ms;
    return run_ms > 0 ? run_ms : 0;
}

/* What the offer has of what the test asks for, counting only what is free. */
static int64_t value_at(const struct match_wish *wish, enum wish_test test,
                        const struct offer *offer)
{
    const struct resources free = offer_free(offer);
    switch (test) {
    case WISH_TEST_RUN_TIME:
        return run_ms_allowed(wish, offer);
    case WISH_TEST_CORES:
        return free.cores_milli;
    case WISH_TEST_RAM:
        return free.ram_bytes;
    case WISH_TEST_GPUS:
        return free.gpus_milli;
    case WISH_TEST_GPU_RAM:
        return offer->terms.gpu_ram_bytes ? offer->terms.gpu_ram_bytes
                                          : offer->machine->probe.gpu_ram_bytes;
    case WISH_TEST_DISK:
        return free.disk_bytes;
    case WISH_TEST_BANDWIDTH:
        return free.bandwidth_kbit;
    case WISH_TEST_SPEED:
        return machine_speed_milli(offer->machine);
    case WISH_TEST_RELIABILITY:
        return machine_reliability_milli(offer->machine);
    default:
        return 0;
    }
}

/* The one test it fails; WISH_TEST_COUNT: none; -1: several. */
static int only_miss(struct nearest *nearest, const struct offer *offer)
{
    int miss = WISH_TEST_COUNT;
    for (enum wish_test test = 0; test < WISH_TEST_ROOM; test++) {
        const int64_t *wanted = match_change_field(&nearest->asked, test);
        if (wish_passes(nearest->wish, MACHINE_ROLE_WORKER, test, offer) &&
            (!wanted || value_at(nearest->wish, test, offer) >= *wanted))
            continue;
        if (miss != WISH_TEST_COUNT)
            return -1;
        miss = (int)test;
    }
    return miss;
}

static void add_miss(struct nearest *nearest, enum wish_test test, int64_t value)
{
    struct misses *misses = &nearest->misses[test];
    if (!misses->values)
        misses->values =
            arena_alloc(nearest->arena, nearest->machine_count * sizeof(*misses->values));
    misses->values[misses->count++] = value;
}

/* Counts a machine once: as fitting, or as missing one thing. */
static void look_at(struct nearest *nearest, const struct machine *machine)
{
    int found = -1;
    int64_t value = 0;
    for (size_t i = 0; i < machine->offer_count; i++) {
        const int miss = only_miss(nearest, machine->offers[i]);
        if (miss > found) {
            found = miss;
            value = miss < WISH_TEST_COUNT
                        ? value_at(nearest->wish, (enum wish_test)miss, machine->offers[i])
                        : 0;
        }
    }
    if (found == WISH_TEST_COUNT)
        nearest->fitting++;
    else if (found >= 0)
        add_miss(nearest, (enum wish_test)found, value);
}

static int compare_values(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a < b) - (a > b);
}

/* ---- Changes --------------------------------------------------------------------------------- */

/* A number gives way in proportion; a wish given up altogether counts as twice all of it. */
static void add_change(struct nearest *nearest, enum wish_test test, int64_t value)
{
    const int64_t *wanted = match_change_field(&nearest->asked, test);
    struct match_change change = {test, match_change_round(test, value), 2000};
    if (wanted) {
        if (change.value <= 0 || change.value >= *wanted)
            return;
        change.size_milli = (int64_t)((__int128)(*wanted - change.value) * 1000 / *wanted);
    }
    ASSERT(nearest->change_count < CHANGES_MAX);
    nearest->changes[nearest->change_count++] = change;
}

/* With which so many more machines fit a worker. */
static void add_changes_for(struct nearest *nearest, size_t missing)
{
    for (enum wish_test test = 0; test < WISH_TEST_COUNT; test++) {
        const struct misses *misses = &nearest->misses[test];
        if (misses->count < missing || !match_change_is_possible(test))
            continue;
        qsort(misses->values, misses->count, sizeof(*misses->values), compare_values);
        add_change(nearest, test, misses->values[missing - 1]);
    }
}

static bool passes_all_but(const struct match_wish *wish, enum machine_role role,
                           enum wish_test but, const struct offer *offer)
{
    for (enum wish_test test = 0; test < WISH_TEST_ROOM; test++)
        if (test != but && !wish_passes(wish, role, test, offer))
            return false;
    return true;
}

static int64_t part_of(struct resources resources, enum wish_test test)
{
    struct job_request of = {.worker = resources};
    return *match_change_field(&of, test);
}

/* The most that a worker may have beside the server at the same offer. */
static void add_shared_change(struct nearest *nearest, enum wish_test test)
{
    const struct match_wish *wish = nearest->wish;
    const struct resources server = wish->request->server;
    int64_t most = 0;
    for (size_t i = 0; i < nearest->machine_count; i++)
        for (size_t k = 0; k < nearest->machines[i]->offer_count; k++) {
            const struct offer *offer = nearest->machines[i]->offers[k];
            const int64_t left = value_at(wish, test, offer) - part_of(server, test);
            if (left > most && resources_fit(server, offer_free(offer)) &&
                passes_all_but(wish, MACHINE_ROLE_SERVER, WISH_TEST_COUNT, offer) &&
                passes_all_but(wish, MACHINE_ROLE_WORKER, test, offer))
                most = left;
        }
    add_change(nearest, test, most);
}

/* The longest run for which some machine would take the server. */
static void add_server_run_time(struct nearest *nearest)
{
    const struct match_wish *wish = nearest->wish;
    int64_t most = 0;
    for (size_t i = 0; i < nearest->machine_count; i++)
        for (size_t k = 0; k < nearest->machines[i]->offer_count; k++) {
            const struct offer *offer = nearest->machines[i]->offers[k];
            const int64_t run_ms = run_ms_allowed(wish, offer);
            if (run_ms > most && resources_fit(wish->request->server, offer_free(offer)) &&
                passes_all_but(wish, MACHINE_ROLE_SERVER, WISH_TEST_RUN_TIME, offer))
                most = run_ms;
        }
    add_change(nearest, WISH_TEST_RUN_TIME, most);
}

static void add_changes(struct nearest *nearest)
{
    const size_t wanted = (size_t)nearest->asked.num_nodes;
    for (size_t i = 0; i < nearest->machine_count; i++)
        look_at(nearest, nearest->machines[i]);
    const size_t enough = nearest->fitting < wanted ? nearest->fitting : wanted;
    /* The server may need a machine of its own. */
    for (size_t more = 0; more <= nearest->has_server; more++) {
        if (wanted + more > nearest->fitting)
            add_changes_for(nearest, wanted + more - nearest->fitting);
        add_change(nearest, WISH_TEST_COUNT, (int64_t)enough - (int64_t)more);
    }
    if (!nearest->has_server)
        return;
    add_shared_change(nearest, WISH_TEST_CORES);
    add_shared_change(nearest, WISH_TEST_RAM);
    add_shared_change(nearest, WISH_TEST_DISK);
    add_shared_change(nearest, WISH_TEST_BANDWIDTH);
    add_server_run_time(nearest);
}

static int compare_changes(const void *left, const void *right)
{
    const struct match_change *a = left, *b = right;
    if (a->size_milli != b->size_milli)
        return a->size_milli < b->size_milli ? -1 : 1;
    return (a->test > b->test) - (a->test < b->test);
}

/* How the whole job would fare if it had asked for that. */
static enum match_result try_change(const struct nearest *nearest,
                                    const struct match_change *change)
{
    struct job_request request = nearest->asked;
    struct match_wish wish = *nearest->wish;
    struct match_placement placement;
    struct error error;
    match_change_apply(change, &request);
    wish.request = &request;
    wish.latest_end_ms -= nearest->asked.max_run_ms - request.max_run_ms;
    if (job_request_check(&request, &error) < 0)
        return MATCH_RESULT_COUNT;
    return match_place(nearest->matcher, &wish, nearest->ahead, &placement);
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void say_server(const struct nearest *nearest, enum match_result result, char *words)
{
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, MATCH_NEAREST_SIZE);
    match_append_resources(&buffer, nearest->asked.server);
    snprintf(words, MATCH_NEAREST_SIZE,
             "a machine with the role server and %s free is what it waits for%s",
             buffer_string(&buffer), result == MATCH_FEW_MACHINES ? " too" : "");
}

static void find_change(struct nearest *nearest, enum match_result result, char *words)
{
    bool needs_server = result == MATCH_NO_SERVER;
    add_changes(nearest);
    if (nearest->change_count > 1)
        qsort(nearest->changes, nearest->change_count, sizeof(*nearest->changes), compare_changes);
    for (size_t i = 0; i < nearest->change_count; i++) {
        const enum match_result then = try_change(nearest, &nearest->changes[i]);
        if (then == MATCH_PLACED) {
            match_change_words(&nearest->changes[i], &nearest->asked, words);
            return;
        }
        needs_server |= then == MATCH_NO_SERVER;
    }
    if (needs_server)
        say_server(nearest, result, words);
}

/* What it would cost if money were no object. */
static void find_price(struct matcher *matcher, const struct match_wish *wish,
                       const struct match_reservation *ahead, char *words)
{
    struct job_request request = *wish->request;
    struct match_wish rich = *wish;
    struct match_placement placement;
    char total[UNITS_TEXT_SIZE], hourly[UNITS_TEXT_SIZE];
    request.max_hourly_micro = 0;
    rich.request = &request;
    rich.budget_micro = PRICE_MICRO_MAX;
    request.takes_more_cores = false;
    if (match_place(matcher, &rich, ahead, &placement) == MATCH_PLACED)
        snprintf(words, MATCH_NEAREST_SIZE, "with %s in all and %s an hour it would start now",
                 units_format_credits(placement.quote_micro, total),
                 units_format_credits(placement.hourly_micro, hourly));
}

void match_find_nearest(struct matcher *matcher, struct machine *const *machines,
                        size_t machine_count, const struct match_wish *wish,
                        const struct match_reservation *ahead, enum match_result result,
                        char out_words[MATCH_NEAREST_SIZE])
{
    out_words[0] = '\0';
    if (result == MATCH_OVER_BUDGET || result == MATCH_OVER_HOURLY)
        find_price(matcher, wish, ahead, out_words);
    if (result != MATCH_FEW_MACHINES && result != MATCH_NO_SERVER)
        return;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct nearest nearest = {.arena = arena,
                              .matcher = matcher,
                              .machines = machines,
                              .machine_count = machine_count,
                              .wish = wish,
                              .ahead = ahead,
                              .asked = *wish->request,
                              .has_server = wish->request->server.cores_milli > 0};
    find_change(&nearest, result, out_words);
}
