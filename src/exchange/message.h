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
 * answered by RECOMPUTED and CHECK_DATA.
 *
 * Where the model is split among servers (range.h) a worker has a link to each, on which it speaks
 * of that range: JOIN, PUSH and DATA go to all of them, and each answers with its part. A joining
 * has a number, the session: once a link breaks, or the lead says AGAIN, it is over on all links,
 * and the next JOIN begins another on those that stand.
 * A server of a range speaks to the lead, the server of the first range: SERVE, answered by STATE
 * and its DATA; ARRIVED for each join and push that is whole, GONE for a worker that is lost,
 * SERVED each second. The lead has it do what the policy asks for by ACT, in one order for all; a
 * cut is answered by STATE and DATA. A replica sends SERVE too, and gets the whole model from time
 * to time.
 *
 * The bytes of each are described in message.c and message_range.c. All of it is foreign to the
 * other end.
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
    EXCHANGE_VERSION = 11,
    EXCHANGE_PARAMETERS_MAX = 64 << 20, /* floats: 256 MiB */
    EXCHANGE_DATA_FLOATS = 32 << 10,    /* in one DATA frame, the last may have fewer */
    EXCHANGE_PAYLOAD_MAX = 64 + 4 * EXCHANGE_DATA_FLOATS,
    EXCHANGE_QUEUE_MAX = 8 * EXCHANGE_PAYLOAD_MAX,
    EXCHANGE_QUEUE_FULL = EXCHANGE_PAYLOAD_MAX, /* data waits; other messages still fit */
    EXCHANGE_REASON_MAX = 512,
    EXCHANGE_BATCH_MAX = 65536,
    EXCHANGE_IDENTITY_SIZE = 64,
    EXCHANGE_SERVERS_MAX = 8,
    EXCHANGE_SHARES = 4, /* pushes at least in which a worker tells its share of all epochs */
};

enum exchange_message_type {
    EXCHANGE_JOIN = 1,
    EXCHANGE_PUSH = 2,
    EXCHANGE_PROGRESS = 3,
    EXCHANGE_LEAVE = 4,
    EXCHANGE_WANT = 5,
    EXCHANGE_RECOMPUTED = 6,
    EXCHANGE_SERVE = 16, /* of a range's server, to the lead */
    EXCHANGE_ARRIVED = 17,
    EXCHANGE_GONE = 18,
    EXCHANGE_SERVED = 19,
    EXCHANGE_DATA = 32,       /* both ways */
    EXCHANGE_CHECK_DATA = 33, /* both ways, as DATA: of RECOMPUTE and RECOMPUTED */
    EXCHANGE_STATE = 34,      /* both ways, between servers; its DATA follow */
    EXCHANGE_MODEL = 64,
    EXCHANGE_SETTINGS = 65,
    EXCHANGE_ACCEPTED = 66,
    EXCHANGE_STOP = 67,
    EXCHANGE_OFFER = 68,
    EXCHANGE_RECOMPUTE = 69,
    EXCHANGE_AGAIN = 70,
    EXCHANGE_ACT = 71, /* of the lead, to a range's server */
};

struct exchange_join {
    uint32_t rank;
    uint64_t shard_samples;   /* records the worker trains on */
    uint64_t parameter_count; /* of the whole model; must be the server's */
    uint64_t term;            /* of the server it is for */
    uint64_t session;         /* 1, 2, ... of this worker */
    uint32_t server;          /* whose range the link is about ... */
    uint32_t servers;         /* ... of so many */
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
    uint64_t session;     /* of the join */
    bool is_base;         /* later ones may be differences to it */
    int64_t held_ns;      /* from the push being whole to this answer; 0 for a join */
};

/* Of the first model. */
struct exchange_offer {
    uint64_t term;        /* of the server */
    uint64_t digest;      /* vector_digest of it */
    uint64_t samples_max; /* as a model's */
    uint64_t session;
    bool is_base;
};

/* Exactly one of the first two is not 0. */
struct exchange_settings {
    uint32_t local_steps; /* push after so many */
    int64_t period_ns;    /* push so long after the last answer */
    uint32_t overlap;     /* steps made at most between a push and its answer */
    uint32_t batch;       /* samples a step; 0: the job's */
    bool is_plain;        /* steps without momentum, at the rate / (1 - momentum) */
    enum codec codec;     /* of pushes */
    float density;        /* that top-k keeps, in (0, 1] */
    float momentum;       /* of what top-k holds back, in [0, 1) */
};

struct exchange_serve {
    uint32_t server, servers; /* the replica's `server` is `servers` */
    uint64_t parameter_count; /* of the whole model */
    uint64_t term;            /* of the lead */
};

/* A worker's join or its slice of a push is whole at a range's server. */
struct exchange_arrived {
    uint32_t rank;
    uint64_t lease, fence, session;
    uint64_t push;     /* 0: the join */
    double square_sum; /* of the slice; 0 where nobody asks for it */
};

/* Its link is lost. */
struct exchange_gone {
    uint32_t rank;
    uint64_t lease, fence, session;
    bool is_refused; /* a value was not finite */
};

/* Since the server of the range began; of vectors to and from workers. */
struct exchange_served {
    uint64_t received_bytes, sent_bytes;
};

/* A model, or a range of it, at one point of the acts; its DATA are the parameters, whole, and then
 * the outer momentum. */
struct exchange_state {
    uint64_t cut; /* which one it answers; 0: none */
    uint64_t version;
    uint64_t steps, samples;
    int64_t elapsed_ms;
    bool has_momentum; /* else it is zero, and not sent */
};

enum exchange_act_kind {
    EXCHANGE_ACT_ADMIT,   /* from now on this is worker `worker` */
    EXCHANGE_ACT_PART,    /* no act will name it any more */
    EXCHANGE_ACT_RESTART, /* nor any; the round and what was kept are given up */
    EXCHANGE_ACT_SCALE,   /* U_worker *= weight */
    EXCHANGE_ACT_APPLY,   /* the next five as in sync/policy.h */
    EXCHANGE_ACT_GATHER,
    EXCHANGE_ACT_FOLD,
    EXCHANGE_ACT_KEEP,
    EXCHANGE_ACT_RETURN,
    EXCHANGE_ACT_ANSWER, /* the worker gets W */
    EXCHANGE_ACT_CUT,    /* the lead gets W, as it is now */
    EXCHANGE_ACT_COUNT,
};

/* Fields that a kind does not need are 0. */
struct exchange_act {
    enum exchange_act_kind kind;
    uint32_t worker;
    uint64_t number; /* of the push; ADMIT: the session; CUT: its number */
    uint64_t lease, fence;
    double weight;
    double rate, momentum, direct, carried; /* struct sync_outer */
    enum codec codec;
    float density;
    bool is_offer;
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
        uint64_t again_session; /* which is over */
        struct exchange_serve serve;
        struct exchange_arrived arrived;
        struct exchange_gone gone;
        struct exchange_served served;
        struct exchange_state state;
        struct exchange_act act;
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

/* REFUSED for a stream that came up late, to a server of an earlier term than one known already. */
MUST_CHECK int exchange_check_term(uint64_t term, uint64_t known, struct error *error);
