/*
 * Sync messages: what a rank and rank 0 say to each other when they meet: who is there, and the
 * rounds of broadcast, allreduce and barrier. Training itself is the exchange's (exchange/message).
 *
 * rank -> host: HELLO first, then CALL (and its DATA where the rank has values to give), MODEL and
 * its DATA when asked for it, ALIVE each half second, BYE last.
 * host -> rank: WELCOME, RESULT (and its DATA), REFUSED in place of a result, OPENED once a
 * parameter server stands, WANT_MODEL, ALIVE, BYE once rank 0 has left: no server will stand.
 *
 * Rounds have numbers, 1, 2, ... from the start of each rank's program; ranks run the same program,
 * so the same number is the same call. DATA come in order and without gaps.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SYNC_MESSAGE_VERSION = 1,
    SYNC_WORLD_MAX = 1024,
    SYNC_ROUND_MAX_BYTES = 4 << 20, /* of one round: longer calls are several */
    SYNC_DATA_MAX_BYTES = 128 << 10,
    SYNC_PAYLOAD_MAX = 64 + SYNC_DATA_MAX_BYTES,
    SYNC_REASON_MAX = 240,
    SYNC_MODEL_MAX = 64 << 20, /* floats, as EXCHANGE_PARAMETERS_MAX */
};

enum sync_message_type {
    SYNC_HELLO = 1,
    SYNC_CALL = 2,
    SYNC_MODEL = 3,
    SYNC_BYE = 4,
    SYNC_ALIVE = 32, /* both ways */
    SYNC_DATA = 33,  /* both ways */
    SYNC_WELCOME = 64,
    SYNC_RESULT = 65,
    SYNC_REFUSED = 66,
    SYNC_OPENED = 67,
    SYNC_WANT_MODEL = 68,
};

struct sync_hello {
    uint32_t rank, world;
    uint64_t process; /* a number of this process's own */
    uint64_t done;    /* rounds behind it */
    uint64_t term;    /* of the parameter server it knew last; 0: none */
    uint64_t steps;   /* made under it */
};

enum sync_call_kind {
    SYNC_CALL_BARRIER,
    SYNC_CALL_BROADCAST,
    SYNC_CALL_ALLREDUCE,
    SYNC_CALL_KIND_COUNT,
};

/* Of ALLREDUCE the bytes are floats; of BROADCAST the root's alone are sent. */
struct sync_call {
    uint64_t round;
    enum sync_call_kind kind;
    uint32_t root;
    uint32_t size; /* bytes */
};

struct sync_result {
    uint64_t round;
    uint32_t size;         /* bytes; 0: there are none, or the rank has them */
    uint32_t contributors; /* of ALLREDUCE */
};

struct sync_refused {
    uint64_t round; /* 0: the rank itself is */
    struct text reason;
};

struct sync_opened {
    uint64_t term;
    uint16_t port; /* of the parameter server, at rank 0's address; 0: rank 0 is alone */
    uint64_t parameter_count;
};

/* Its DATA are floats. */
struct sync_model {
    uint64_t parameter_count; /* 0: it has none */
    uint64_t steps;
};

struct sync_message {
    enum sync_message_type type;
    union {
        struct sync_hello hello;
        struct sync_call call;
        struct sync_model model;
        uint64_t welcome_host; /* the host's process: another one is a successor */
        struct sync_result result;
        struct sync_refused refused;
        struct sync_opened opened;
        struct text data;
    };
};

/* Appends the payload. */
void sync_message_encode(struct buffer *payload, const struct sync_message *message);
/* CORRUPT for what is no such message. Text points into the payload. */
MUST_CHECK int sync_message_decode(uint16_t type, struct text payload,
                                   struct sync_message *out_message, struct error *error);

const char *sync_call_name(enum sync_call_kind kind);
