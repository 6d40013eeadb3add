/*
 * Candidate: a kind of machine on offer, and a cluster made of some.
 *
 * A market lender, an EC2 type on demand or spot and a function differ in figures only: what they
 * cost, how fast they are, how soon they start, how often they go and how many there are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLUSTER_KINDS_MAX = 16,
    CLUSTER_WORKERS_MAX = 256,
};

enum candidate_source {
    CANDIDATE_MARKET,
    CANDIDATE_ON_DEMAND,
    CANDIDATE_SPOT,
    CANDIDATE_FUNCTION,
    CANDIDATE_SOURCE_COUNT,
};
const char *
candidate_source_name(enum candidate_source source); /* market, ec2, ec2-spot, function */

struct candidate {
    const char *name; /* borrowed; memory of measured speeds is kept by it */
    enum candidate_source source;
    uint32_t speed_weight; /* thousandths of the reference speed, of one core; > 0 */
    uint32_t cores_milli;  /* > 0; a vCPU counts as half a core */
    uint32_t gpu_count;
    uint32_t gpu_weight;          /* thousandths of the reference core, of one GPU; 0: not known */
    int64_t price_micro_per_hour; /* >= 0 */
    uint32_t count_max;           /* how many may be had; 0: as many as are wanted */
    double bytes_per_s;           /* of its link, each way; 0: not known */
    double rtt_s;                 /* to the parameter server */
    double start_s;               /* until it can step */
    double losses_per_hour;       /* of one machine */
    double lifetime_s;            /* of a function's call; 0: none */
};

/* The figures of a function of `memory_mb`: cores are memory / 1769, the price per GB-second. */
struct candidate_function {
    const char *name;
    uint32_t memory_mb;
    uint32_t speed_weight;
    double price_micro_per_gb_s;
    double lifetime_s, start_s, bytes_per_s, rtt_s;
    uint32_t concurrent_max;
};
struct candidate candidate_of_function(const struct candidate_function *function);

struct cluster_part {
    const struct candidate *candidate;
    uint32_t count;
};

struct cluster_plan {
    struct cluster_part parts[CLUSTER_KINDS_MAX];
    uint32_t part_count;
};
uint32_t cluster_plan_workers(const struct cluster_plan *plan);
/* Of the workers; without the parameter server. */
int64_t cluster_plan_price_micro_per_hour(const struct cluster_plan *plan);

/* Where the parameter server runs. */
struct server_place {
    const char *name;
    int64_t price_micro_per_hour;
    double bytes_per_s; /* of its link, each way; 0: never full */
};
