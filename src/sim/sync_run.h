/*
 * Sync run: one training of one policy, real gradients in virtual time.
 *
 * Steps, pushes and answers take the time the profile gives them; what they compute is computed.
 * The policy is the parameter server's own code, the outer step too (exchange/global_model), and
 * workers keep to the rules of sync/policy.h as exchange/client.h does. The same options give the
 * same result to the last bit on one machine, whatever else runs.
 *
 * The loss is measured now and then on the same held-out records. The curve is the mean of five
 * measurements, told at the time of the middle one; the target counts as reached where the curve
 * crosses it.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "exchange/robust.h"
#include "sim/sync_data.h"
#include "sim/sync_engine.h"
#include "sim/sync_presence.h"
#include "sim/sync_profile.h"
#include "sync/policy.h"
#include "tensor/kernel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sync_run_options {
    const struct sync_profile *profile;
    const struct sync_presence *presence;
    const struct sync_data *data; /* a shard for each machine */
    struct text policy;
    struct sync_settings settings;
    struct sgd_rule sgd;
    uint32_t batch; /* the engine's */
    uint64_t seed;
    double jitter;              /* deviation of the logarithm of each step's and each way's time */
    double compression;         /* bytes sent of each byte of the model; 0: 1 */
    double push_share;          /* bytes of a push for each of an answer; 0: 1 */
    double target_loss;         /* 0: none, until time_max_ns */
    uint64_t sample_max;        /* of all workers together; 0: none */
    int64_t server_bytes_per_s; /* of the server's link, each way, which all share; 0: no limit */
    int64_t measure_ns;         /* between measurements at first, then a 25th of the time passed */
    int64_t time_max_ns;        /* of virtual time */
    struct robust_options robust;
    uint32_t liar_count; /* the first so many machines push noise, one deviation 1 for each value */
};

enum sync_run_end {
    SYNC_RUN_TARGET,   /* the curve crossed the target */
    SYNC_RUN_SAMPLES,  /* sample_max are done */
    SYNC_RUN_TIME,     /* time_max_ns has passed */
    SYNC_RUN_STOPPED,  /* by the policy */
    SYNC_RUN_DIVERGED, /* a loss was not finite, or far above the first */
    SYNC_RUN_END_COUNT,
};
const char *sync_run_end_name(enum sync_run_end end);

struct sync_point {
    double at_s;
    double loss;    /* the mean of five measurements around this time */
    double samples; /* of all workers until then */
};

/* What one machine did. */
struct sync_run_machine {
    uint64_t steps, samples, commits;
    double there_s, compute_s;
    double commit_s; /* mean of a push and its answer, without the time it was held */
};

struct sync_run_result {
    enum sync_run_end end;
    double target_s;       /* NaN unless the target was reached */
    double elapsed_s;      /* when the run ended */
    double loss, accuracy; /* of the last measurement */
    uint64_t steps, samples, commits;
    uint64_t bytes; /* both ways */
    uint64_t joins, leaves;
    uint64_t clipped;        /* pushes that were shortened */
    uint64_t honest_clipped; /* of them by machines that do not lie */
    double waiting_share;    /* of the time that workers were there */
    uint64_t fingerprint;    /* of the final model */
    struct sync_status status;
    struct sync_point *points;
    size_t point_count, point_capacity;
    struct sync_run_machine *machines; /* [the profile's] */
};
void sync_run_result_done(struct sync_run_result *result);

/* The engine is of the same batch and of a model that fits the data. */
MUST_CHECK int sync_run(struct sync_engine *engine, const struct sync_run_options *options,
                        struct sync_run_result *out_result, struct error *error);
