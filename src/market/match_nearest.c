/* Match: how many machines each wish removed, and the nearest change that would place the job. */
#include "base/assert.h"
#include "base/units.h"
#include "market/match.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Rows ------------------------------------------------------------------------------------ */

/* How many tests the best of the machine's offers passes, in order. */
static int tests_passed(const struct machine *machine, const struct match_wish *wish,
                        enum machine_role role)
{
    int most = 0;
    for (size_t i = 0; i < machine->offer_count; i++) {
        int passed = 0;
        while (passed < WISH_TEST_COUNT &&
               wish_passes(wish, role, (enum wish_test)passed, machine->offers[i]))
            passed++;
        most = passed > most ? passed : most;
    }
    return most;
}

static void add_rows(struct match_explanation *explanation, struct machine *const *machines,
                     size_t machine_count, const struct match_wish *wish, enum machine_role role)
{
    size_t stopped_at[WISH_TEST_COUNT + 1] = {0};
    for (size_t i = 0; i < machine_count; i++)
        stopped_at[tests_passed(machines[i], wish, role)]++;
    size_t left = machine_count;
    for (enum wish_test test = 0; test < WISH_TEST_COUNT; test++) {
        left -= stopped_at[test];
        if (wish_has(wish, role, test))
            explanation->rows[explanation->row_count++] = (struct match_row){role, test, left};
    }
}

/* ---- The nearest change ---------------------------------------------------------------------- */

/* What those machines have that fail one test only. */
struct misses {
    int64_t *values;
    size_t count;
};

struct nearest {
    struct arena *arena;
    const struct match_wish *wish;
    enum machine_role role;
    size_t wanted;
    size_t fitting; /* machines that pass every test */
    size_t machine_count;
    struct misses misses[WISH_TEST_COUNT];
    int64_t change_milli; /* of the nearest so far; INT64_MAX: none */
    char *words;
};

static bool is_number(enum wish_test test)
{
    switch (test) {
    case WISH_TEST_RUN_TIME:
    case WISH_TEST_CORES:
    case WISH_TEST_RAM:
    case WISH_TEST_GPUS:
    case WISH_TEST_GPU_RAM:
    case WISH_TEST_DISK:
    case WISH_TEST_BANDWIDTH:
    case WISH_TEST_SPEED:
    case WISH_TEST_RELIABILITY:
        return true;
    default:
        return false;
    }
}

/* What a borrower can change; the rest is up to the lenders. */
static bool is_choice(enum wish_test test)
{
    return is_number(test) || test == WISH_TEST_GPU_MODEL || test == WISH_TEST_LABELS ||
           test == WISH_TEST_NETWORK || test == WISH_TEST_INSTALL || test == WISH_TEST_RTT;
}

static int64_t run_ms_allowed(const struct nearest *nearest, const struct offer *offer)
{
    const int64_t open_ms = window_open_until_ms(offer_window(offer), nearest->wish->now_ms) -
                            nearest->wish->latest_start_ms;
    const int64_t lease_ms = offer->terms.max_lease_ms ? offer->terms.max_lease_ms : INT64_MAX;
    const int64_t run_ms = open_ms < lease_ms ? open_ms : lease_ms;
    return run_ms > 0 ? run_ms : 0;
}

/* What the offer has of what the test asks for, counting only what is free. */
static int64_t value_at(const struct nearest *nearest, enum wish_test test,
                        const struct offer *offer)
{
    const struct resources free = offer_free(offer);
    switch (test) {
    case WISH_TEST_RUN_TIME:
        return run_ms_allowed(nearest, offer);
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

static int64_t value_wanted(const struct nearest *nearest, enum wish_test test)
{
    const struct job_request *request = nearest->wish->request;
    const struct resources wanted = wish_resources(nearest->wish, nearest->role);
    switch (test) {
    case WISH_TEST_RUN_TIME:
        return request->max_run_ms;
    case WISH_TEST_CORES:
        return wanted.cores_milli;
    case WISH_TEST_RAM:
        return wanted.ram_bytes;
    case WISH_TEST_GPUS:
        return wanted.gpus_milli;
    case WISH_TEST_GPU_RAM:
        return request->wishes.gpu_ram_bytes;
    case WISH_TEST_DISK:
        return wanted.disk_bytes;
    case WISH_TEST_BANDWIDTH:
        return wanted.bandwidth_kbit;
    case WISH_TEST_SPEED:
        return request->wishes.min_speed_milli;
    case WISH_TEST_RELIABILITY:
        return request->wishes.min_reliability_milli;
    default:
        return 0;
    }
}

/* The one test it fails; WISH_TEST_COUNT: none; -1: several. */
static int only_miss(const struct nearest *nearest, const struct offer *offer)
{
    int miss = WISH_TEST_COUNT;
    for (enum wish_test test = 0; test < WISH_TEST_ROOM; test++) {
        const bool is_met =
            wish_passes(nearest->wish, nearest->role, test, offer) &&
            (!is_number(test) || value_at(nearest, test, offer) >= value_wanted(nearest, test));
        if (is_met)
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
                        ? value_at(nearest, (enum wish_test)miss, machine->offers[i])
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

static void format_value(enum wish_test test, int64_t value, char *out, size_t out_size)
{
    char units[UNITS_TEXT_SIZE];
    switch (test) {
    case WISH_TEST_RUN_TIME:
        snprintf(out, out_size, "%" PRId64 " s", value / 1000);
        return;
    case WISH_TEST_RAM:
    case WISH_TEST_DISK:
    case WISH_TEST_GPU_RAM:
        snprintf(out, out_size, "%s", units_format_bytes(value, units));
        return;
    case WISH_TEST_BANDWIDTH:
        snprintf(out, out_size, "%" PRId64 " kbit/s", value);
        return;
    default:
        snprintf(out, out_size, "%" PRId64 ".%03" PRId64, value / 1000, value % 1000);
        /* "2.500" is 2.5, "2.000" is 2. */
        for (size_t size = strlen(out); out[size - 1] == '0' || out[size - 1] == '.'; size--) {
            const bool is_point = out[size - 1] == '.';
            out[size - 1] = '\0';
            if (is_point)
                break;
        }
    }
}

static const char *noun_of(enum wish_test test)
{
    switch (test) {
    case WISH_TEST_RUN_TIME:
        return "of run time";
    case WISH_TEST_CORES:
        return "cores";
    case WISH_TEST_RAM:
        return "of RAM";
    case WISH_TEST_GPUS:
        return "GPUs";
    case WISH_TEST_GPU_RAM:
        return "of GPU memory";
    case WISH_TEST_DISK:
        return "of disk";
    case WISH_TEST_BANDWIDTH:
        return "of bandwidth";
    case WISH_TEST_SPEED:
        return "as the smallest speed";
    case WISH_TEST_RELIABILITY:
        return "as the smallest reliability";
    default:
        return wish_test_name(test);
    }
}

/* A number gives way in proportion; a wish given up altogether counts as twice all of it. */
static void consider(struct nearest *nearest, enum wish_test test)
{
    struct misses *misses = &nearest->misses[test];
    const size_t missing = nearest->wanted - nearest->fitting;
    if (misses->count < missing || !is_choice(test))
        return;
    int64_t change_milli = 2000;
    int64_t least = 0;
    const int64_t wanted = value_wanted(nearest, test);
    if (is_number(test)) {
        qsort(misses->values, misses->count, sizeof(*misses->values), compare_values);
        least = misses->values[missing - 1];
        if (least <= 0)
            return;
        change_milli = (int64_t)((__int128)(wanted - least) * 1000 / wanted);
    }
    if (change_milli >= nearest->change_milli)
        return;
    char from[48], to[48];
    nearest->change_milli = change_milli;
    format_value(test, wanted, from, sizeof(from));
    format_value(test, least, to, sizeof(to));
    if (is_number(test))
        snprintf(nearest->words, MATCH_NEAREST_SIZE, "with %s instead of %s %s it would start now",
                 to, from, noun_of(test));
    else
        snprintf(nearest->words, MATCH_NEAREST_SIZE, "without its wish for %s it would start now",
                 wish_test_name(test));
}

static void find_nearest(struct nearest *nearest, struct machine *const *machines)
{
    for (size_t i = 0; i < nearest->machine_count; i++)
        look_at(nearest, machines[i]);
    if (nearest->fitting >= nearest->wanted)
        return;
    if (nearest->fitting > 0) {
        nearest->change_milli =
            (int64_t)((nearest->wanted - nearest->fitting) * 1000 / nearest->wanted);
        snprintf(nearest->words, MATCH_NEAREST_SIZE,
                 "with %zu %s instead of %zu it would start now", nearest->fitting,
                 nearest->fitting == 1 ? "worker" : "workers", nearest->wanted);
    }
    for (enum wish_test test = 0; test < WISH_TEST_COUNT; test++)
        consider(nearest, test);
}

/* What it would cost if money were no object. */
static void find_price(struct matcher *matcher, const struct match_wish *wish, char *words)
{
    struct job_request request = *wish->request;
    struct match_wish rich = *wish;
    struct match_placement placement;
    char total[UNITS_TEXT_SIZE], hourly[UNITS_TEXT_SIZE];
    request.max_hourly_micro = 0;
    rich.request = &request;
    rich.budget_micro = PRICE_MICRO_MAX;
    request.takes_more_cores = false;
    if (match_place(matcher, &rich, NULL, &placement) == MATCH_PLACED)
        snprintf(words, MATCH_NEAREST_SIZE, "with %s in all and %s an hour it would start now",
                 units_format_credits(placement.quote_micro, total),
                 units_format_credits(placement.hourly_micro, hourly));
}

void match_explain(struct matcher *matcher, struct machine *const *machines, size_t machine_count,
                   const struct match_wish *wish, enum match_result result,
                   struct match_explanation *out_explanation)
{
    const struct job_request *request = wish->request;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct match_explanation *explanation = out_explanation;
    *explanation = (struct match_explanation){.result = result, .machine_count = machine_count};
    add_rows(explanation, machines, machine_count, wish, MACHINE_ROLE_WORKER);
    if (request->server.cores_milli > 0)
        add_rows(explanation, machines, machine_count, wish, MACHINE_ROLE_SERVER);
    if (result == MATCH_FEW_MACHINES || result == MATCH_NO_SERVER) {
        const bool is_server = result == MATCH_NO_SERVER;
        struct nearest nearest = {.arena = arena,
                                  .wish = wish,
                                  .role = is_server ? MACHINE_ROLE_SERVER : MACHINE_ROLE_WORKER,
                                  .wanted = is_server ? 1 : (size_t)request->num_nodes,
                                  .machine_count = machine_count,
                                  .change_milli = INT64_MAX,
                                  .words = explanation->nearest};
        find_nearest(&nearest, machines);
    } else if (result == MATCH_OVER_BUDGET || result == MATCH_OVER_HOURLY) {
        find_price(matcher, wish, explanation->nearest);
    }
    struct match_lack lack;
    explanation->is_lacking =
        result != MATCH_PLACED &&
        (match_is_lacking(machines, machine_count, wish, MACHINE_ROLE_WORKER, &lack) ||
         match_is_lacking(machines, machine_count, wish, MACHINE_ROLE_SERVER, &lack));
    struct match_reservation reservation;
    if (result == MATCH_PLACED)
        explanation->expected_start_ms = wish->now_ms;
    else if ((result == MATCH_FEW_MACHINES || result == MATCH_NO_SERVER) &&
             match_reserve(matcher, arena, wish, &reservation))
        explanation->expected_start_ms = reservation.start_ms;
}
