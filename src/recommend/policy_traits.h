/*
 * Policy traits: how a synchronisation policy spends the time of workers and what their pushes
 * bring, in figures.
 *
 * Rules are those of sync/; how much a policy learns from a sample beside bsp was measured in
 * `souk sim sync`, is where a fit begins and is moved by what is observed.
 *
 * To add one: a row in policy_traits.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum traits_flow {
    FLOW_ROUND,   /* a round ends with the slowest and its answers */
    FLOW_FIRST,   /* a round ends with the first of them, the rest is dropped */
    FLOW_BOUNDED, /* nobody waits, but no one gets far ahead of the slowest */
    FLOW_FREE,    /* each waits for its own answer only */
    FLOW_PACED,   /* rounds of equal time, computing on where answers take long */
    FLOW_OVERLAP, /* computes on while a push is under way */
};

struct policy_traits {
    const char *name;
    enum traits_flow flow;
    bool trims;            /* batches follow speed: steps take equally long */
    double steps_per_push; /* where the job does not say */
    uint32_t slack;        /* steps ahead of the slowest, of FLOW_BOUNDED */
    double gain_most;      /* of the rate: as many as there are workers, at most so many */
    double gain_alone;     /* with one worker */
    double growth;         /* power of the workers by which samples grow beyond that */
};

/* Of an unknown name those of bsp. */
const struct policy_traits *policy_traits_find(const char *name);
const struct policy_traits *policy_traits_at(uint32_t index); /* NULL past the end */
/* Below policy_traits_count. */
uint32_t policy_traits_index(const struct policy_traits *traits);
uint32_t policy_traits_count(void);
/* How much more of the rate than bsp's a round brings with so many workers. */
double policy_traits_gain(const struct policy_traits *traits, double workers);
