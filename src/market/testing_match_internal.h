/*
 * For tests of matching: machines with one offer each, and a job that looks for some.
 */
#pragma once

#include "market/match.h"
#include "market/offer_shared.h"
#include "testing/testing.h"

#define GIB    (INT64_C(1) << 30)
#define MIB    (INT64_C(1) << 20)
#define HELPER __attribute__((unused)) static

enum { MACHINE_MAX = 300 };

struct fixture {
    struct machine machines[MACHINE_MAX];
    struct offer offers[MACHINE_MAX];
    struct offer_shared shared[MACHINE_MAX];
    struct offer *offered[MACHINE_MAX];
    struct machine *pointers[MACHINE_MAX];
    size_t count;
    struct job_request request;
    struct match_wish wish;
    const struct match_reservation *ahead;
    struct listing listing;
    struct matcher matcher;
    struct match_placement placement;
    struct buffer words;
};

HELPER struct machine *add_machine(struct fixture *fixture, const char *name, int64_t cores_milli,
                                   uint64_t roles)
{
    struct machine *machine = &fixture->machines[fixture->count];
    *machine = (struct machine){
        .id = 100 + fixture->count,
        .state = MACHINE_STATE_ONLINE,
        .probe = {.resources = {.cores_milli = 64000, .ram_bytes = 64 * GIB},
                  .speed_weight_milli = 1000},
        .offers = &fixture->offered[fixture->count],
        .offer_count = 1,
    };
    fixture->shared[fixture->count] = (struct offer_shared){0};
    fixture->offers[fixture->count] =
        (struct offer){.id = 200 + fixture->count,
                       .machine = machine,
                       .shared = &fixture->shared[fixture->count],
                       .is_open = true,
                       .terms = {.resources = {.cores_milli = cores_milli, .ram_bytes = GIB},
                                 .roles = (uint8_t)roles}};
    fixture->offered[fixture->count] = &fixture->offers[fixture->count];
    snprintf(machine->name, sizeof(machine->name), "%s", name);
    fixture->pointers[fixture->count++] = machine;
    return machine;
}

HELPER struct offer_shared *shared_of(struct fixture *fixture, const struct machine *machine)
{
    return &fixture->shared[machine - fixture->machines];
}

HELPER void set_up(struct fixture *fixture, int64_t num_nodes)
{
    *fixture = (struct fixture){
        .request = {.name = "job",
                    .num_nodes = num_nodes,
                    .num_nodes_max = num_nodes,
                    .worker = {.cores_milli = 250, .ram_bytes = 256 * MIB},
                    .server = {.cores_milli = 500, .ram_bytes = 128 * MIB},
                    .max_run_ms = 3600000,
                    .tick_ms = 1000},
        .wish = {.lock = price_lock_flat(price_cold_start()), .budget_micro = 10000000},
    };
    fixture->wish.request = &fixture->request;
    fixture->wish.latest_start_ms = fixture->wish.latest_end_ms = 0;
    listing_init(&fixture->listing);
    matcher_init(&fixture->matcher, &fixture->listing);
    buffer_init(&fixture->words, 4096);
}

HELPER void tear_down(struct fixture *fixture)
{
    matcher_done(&fixture->matcher);
    listing_done(&fixture->listing);
    buffer_done(&fixture->words);
}

HELPER enum match_result place(struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->count; i++)
        for (size_t k = 0; k < fixture->machines[i].offer_count; k++)
            listing_update(&fixture->listing, fixture->machines[i].offers[k], fixture->wish.now_ms);
    return match_place(&fixture->matcher, &fixture->wish, fixture->ahead, &fixture->placement);
}

HELPER const char *explain(struct fixture *fixture, enum match_result result)
{
    buffer_clear(&fixture->words);
    match_explain_words(fixture->pointers, fixture->count, &fixture->wish, result, &fixture->words);
    return buffer_string(&fixture->words);
}
