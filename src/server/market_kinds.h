/*
 * Market kinds: lenders that are alike to a job, taken together as one machine type.
 *
 * A kind is named by what a worker gets there: "2c@1.1" are two cores of 1.1 times the reference's
 * speed, "4c@0.9+1xT4" has a GPU beside four. The name is all that is kept of it from run to run,
 * so it says nothing of whose machines they are.
 */
#pragma once

#include "core/core.h"
#include "recommend/candidate.h"
#include "recommend/observation.h"

enum { MARKET_KINDS_MAX = 256 };

struct kind_figures {
    int64_t cores_milli;
    int64_t speed_weight_milli;
    int64_t gpus_milli;
    struct text gpu_model; /* of those; empty: not known */
};
void kind_name(const struct kind_figures *figures, char out[OBSERVATION_NAME_SIZE]);

/* The sums over its machines. */
struct market_kind {
    char name[OBSERVATION_NAME_SIZE];
    int64_t cores_milli, gpus_milli; /* of one */
    uint32_t count;
    int64_t speed_milli, hourly_micro, bandwidth_kbit, rtt_us;
    uint32_t bandwidth_count, rtt_count; /* of those that were measured */
    int64_t losses, leased_ms;
    int64_t busy_since_ms, busy_until_ms; /* the first and the last of those that others have */
};

struct market_kinds {
    struct market_kind workers[MARKET_KINDS_MAX];
    size_t worker_count;
    struct market_kind servers[MARKET_KINDS_MAX];
    size_t server_count;
    struct market_kind busy[MARKET_KINDS_MAX]; /* workers that others have */
    size_t busy_count;
    int64_t worker_free_ms, server_free_ms; /* the first of those that are busy; 0: there is none */
    uint64_t last_worker, last_server;      /* machines: one is counted once, whatever it offers */
};

/* Of core_each_offered, which names the offers of a machine one after the other; kinds beyond
 * MARKET_KINDS_MAX are left out. A machine that is busy under one offer and free under another may
 * be counted as either. */
void market_kinds_add(struct market_kinds *kinds, const struct core_offered *offered);

/* How long leases take beside training, by what runs showed, those of this model on these data
 * most; to be set in candidates. */
double market_kinds_start_s(const struct observation *observations, size_t count,
                            const struct signature *signature);

/* Means over the kind; the name is the kind's. */
struct candidate market_kind_candidate(const struct market_kind *kind);
int64_t market_kind_bandwidth_kbit(const struct market_kind *kind); /* 0: not measured */
int64_t market_kind_price_micro(const struct market_kind *kind);    /* per hour, of one */
