/*
 * Muster messages: what the ranks of a job say to rank 0 and it to them, over the job's network:
 * one JSON object a line.
 *
 * rank to rank 0: JOIN first; ALIVE each second; EXIT when its script ended; LAUNCHED.
 * rank 0 to rank: START, STOP, END; ALIVE each second; LAUNCH, a command for runtime mpi; DONE,
 * which ranks' scripts have ended well, whenever that has changed and after a START. What a
 * launcher on rank 0 asks for: LAUNCH with the secret of its environment; LAUNCHED is the answer.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json_schema.h"
#include "runtime/muster.h"
#include "runtime/ports.h"

enum {
    MUSTER_PORT = PORT_MUSTER,
    MUSTER_LINE_MAX = 512 << 10,
    MUSTER_COMMAND_MAX = 64 << 10,
    MUSTER_SECRET_SIZE = 32,
};
#define MUSTER_SECRET_NAME "SOUK_LAUNCH_SECRET" /* of the variable, in hex */

enum muster_message_kind {
    MUSTER_MESSAGE_JOIN,
    MUSTER_MESSAGE_ALIVE,
    MUSTER_MESSAGE_EXIT,
    MUSTER_MESSAGE_START,
    MUSTER_MESSAGE_STOP,
    MUSTER_MESSAGE_END,
    MUSTER_MESSAGE_LAUNCH,
    MUSTER_MESSAGE_LAUNCHED,
    MUSTER_MESSAGE_DONE,
};

struct muster_message {
    int kind;                           /* enum muster_message_kind */
    struct muster_rank rank;            /* JOIN */
    uint64_t round;                     /* START, STOP, EXIT */
    int64_t status;                     /* EXIT, LAUNCHED: 0 to 255 */
    bool is_ok;                         /* END */
    struct json_array members;          /* START, DONE: struct muster_rank */
    uint64_t id;                        /* LAUNCH, LAUNCHED */
    uint8_t secret[MUSTER_SECRET_SIZE]; /* LAUNCH of a launcher */
    struct text host;                   /* LAUNCH of a launcher: an address of the job's network */
    struct text command;                /* LAUNCH: for the shell */
};

/* With the line's end. */
void muster_message_encode(const struct muster_message *message, struct buffer *out);
/* Without the line's end. */
MUST_CHECK int muster_message_decode(struct arena *arena, struct text line,
                                     struct muster_message *out, struct error *error);
