/*
 * Exchange messages: what a worker and the parameter server say to each other on their link.
 *
 * worker -> server: JOIN, then PUSH followed by its DATA frames, one push at a time, PROGRESS each
 * second, LEAVE last. server -> worker: SETTINGS, MODEL followed by its DATA frames (the answer to
 * JOIN and to each PUSH), ACCEPTED (the answer to a push once training has ended), STOP.
 * While nothing has entered the model, JOIN is answered by OFFER: the digest of the first model,
 * which the worker has too, having made it from the job's seed; only who has another one sends
 * WANT, and is answered by MODEL.
 * A parameter server has a term, greater than that of the one it succeeds. A worker never goes back
 * to a lesser one, and a server takes no worker of a greater one.
 * Beside them a worker may be asked to make another's push again: RECOMPUTE and CHECK_DATA,
 * answered by RECOMPUTED and CHECK_DATA. The bytes of each are described in message.c. All of it is
 * foreign to the other end.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "exchange/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EXCHANGE_VERSION = 7,
    EXCHANGE_PARAMETERS_MAX = 64 << 20, /* floats: 256 MiB */
    EXCHANGE_DATA_FLOATS = 32 << 10,    /* in one DATA frame, the last may have fewer */
    EXCHANGE_PAYLOAD_MAX = 64 + 4 * EXCHANGE_DATA_FLOATS,
    EXCHANGE_QUEUE_MAX = 8 * EXCHANGE_PAYLOAD_MAX,
    EXCHANGE_QUEUE_FULL = 6 * EXCHANGE_PAYLOAD_MAX, /* data waits; other messages still fit */
    EXCHANGE_REASON_MAX = 512,
    EXCHANGE_BATCH_MAX = 65536,
    EXCHANGE_IDENTITY_SIZE = 64,
    EXCHANGE_SHARES = 4, /* pushes at least in which a worker tells its share of all epochs */
};

enum exchange_message_type {
    EXCHANGE_JOIN = 1,
    EXCHANGE_PUSH = 2,
    EXCHANGE_PROGRESS = 3,
    EXCHANGE_LEAVE = 4,
    EXCHANGE_WANT = 5,
    EXCHANGE_RECOMPUTED = 6,
    EXCHANGE_DATA = 32,       /* both ways */
    EXCHANGE_CHECK_DATA = 33, /* both ways, as DATA: of RECOMPUTE and RECOMPUTED */
    EXCHANGE_MODEL = 64,
    EXCHANGE_SETTINGS = 65,
    EXCHANGE_ACCEPTED = 66,
    EXCHANGE_STOP = 67,
    EXCHANGE_OFFER = 68,
    EXCHANGE_RECOMPUTE = 69,
};

struct exchange_join {
    uint32_t rank;
    uint64_t shard_samples;   /* records the worker trains on */
    uint64_t parameter_count; /* must be the server's */
    uint64_t term;            /* the greatest it has had a model of; 0: none */
};

struct exchange_push {
    uint64_t term;   /* of the server it is for */
    uint64_t number; /* 1, 2, ... of this worker */
    uint32_t steps;
    uint64_t samples;
    double loss;                       /* mean over the steps */
    int64_t compute_ns;                /* that the steps took */
    int64_t commit_ns;                 /* of the push before, until its answer came; 0: none yet */
    enum codec codec;                  /* of its DATA */
    uint64_t first_step, first_sample; /* steps made and samples drawn before it: check.h */
};

/* What a push is made of: with the model it started from, all that is needed to make it again. */
struct exchange_recompute {
    uint64_t check;
    uint32_t rank; /* whose samples */
    uint64_t first_step, first_sample;
    uint32_t steps, batch;
};

struct exchange_recomputed {
    uint64_t check;
    bool is_done; /* its CHECK_DATA follow; else it could not */
};

/* Since the worker started; what is not pushed yet is in it. */
struct exchange_progress {
    uint64_t steps;
    uint64_t samples;
    double steps_per_second;
};

struct exchange_model {
    uint64_t term; /* of the server */
    uint64_t version;
    uint64_t push;        /* the push it answers; 0: a join */
    uint64_t samples_max; /* the next push comes after so many at the latest; 0: no bound */
    enum codec codec;     /* of its DATA; but for f32 they are differences to the model before */
};

/* Of the first model. */
struct exchange_offer {
    uint64_t term;        /* of the server */
    uint64_t digest;      /* vector_digest of it */
    uint64_t samples_max; /* as a model's */
};

/* Exactly one of the first two is not 0. */
struct exchange_settings {
    uint32_t local_steps; /* push after so many */
    int64_t period_ns;    /* push so long after the last answer */
    uint32_t overlap;     /* steps made at most between a push and its answer */
    uint32_t batch;       /* samples a step; 0: the job's */
    enum codec codec;     /* of pushes */
    float density;        /* that top-k keeps, in (0, 1] */
    float momentum;       /* of what top-k holds back, in [0, 1) */
};

struct exchange_message {
    enum exchange_message_type type;
    union {
        struct exchange_join join;
        struct exchange_push push;
        struct exchange_progress progress;
        struct exchange_model model;
        struct exchange_offer offer;
        struct exchange_settings settings;
        struct exchange_recompute recompute;
        struct exchange_recomputed recomputed;
        bool has_diverged; /* of LEAVE: its loss was not finite any more */
        uint64_t accepted_push;
        struct text stop_reason;
    };
};

/* Appends the payload of any message but DATA. */
void exchange_message_encode(struct buffer *payload, const struct exchange_message *message);
/* Of any message but DATA: CORRUPT for that, an unknown type and bytes that are no such message.
 * Text points into the payload. */
MUST_CHECK int exchange_message_decode(uint16_t type, struct text payload,
                                       struct exchange_message *out_message, struct error *error);

/* "lease:LEASE:FENCE", the identity on the link. */
void exchange_identity_format(uint64_t lease, uint64_t fence, char out[EXCHANGE_IDENTITY_SIZE]);
MUST_CHECK int exchange_identity_parse(struct text identity, uint64_t *out_lease,
                                       uint64_t *out_fence, struct error *error);
