/*
 * Muster: gathers the ranks of a job and decides its rounds: when all start, and when all start
 * anew because one failed, was lost, or came.
 *
 * Rank 0 keeps it; the others come to rank 0. Pure: what happened and `now` in, orders out. A rank
 * that is not heard for MUSTER_SILENCE_MS is lost, and named. Losses and newcomers begin as many
 * rounds as they like; a script that fails is started again max_restarts times.
 *
 * A round begins once `least` are there, and those that may still come, up to `most`, have been
 * waited for a moment. Who decides that the job has ended well: all ranks, or the first alone.
 */
#pragma once

#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MUSTER_SILENCE_MS = 6000,
    MUSTER_QUIET_MS = 2000, /* since the last that came */
    MUSTER_NAME_SIZE = 64,
    MUSTER_TEXT_SIZE = 192,
    MUSTER_RANKS_MAX = 1024,
};

enum muster_restart {
    MUSTER_RESTART_JOB,   /* all ranks together */
    MUSTER_RESTART_RANK,  /* each alone: the others go on */
    MUSTER_RESTART_NEVER, /* the job fails with the first that fails or is lost */
    MUSTER_RESTART_COUNT,
};
extern const char *const muster_restart_names[]; /* ends with NULL */

struct muster_options {
    uint64_t least, most; /* ranks of a round */
    enum muster_restart restart;
    uint64_t max_restarts; /* of scripts that failed; of MUSTER_RESTART_JOB */
    bool is_led;           /* it is over when the first member of the round is done */
};

enum muster_order_kind {
    MUSTER_START, /* its script, in the round of muster_round */
    MUSTER_STOP,  /* its script, then say how it ended */
    MUSTER_END,   /* itself: well, or as its script did */
    MUSTER_SAY,   /* to whoever reads rank 0's log */
    MUSTER_DONE,  /* to all: the ranks of muster_list_done are others now */
};

struct muster_order {
    enum muster_order_kind kind;
    uint64_t rank;
    bool is_ok;                  /* END: the job is done */
    char text[MUSTER_TEXT_SIZE]; /* SAY; END of rank 0 when another was lost */
};

struct muster_rank {
    uint64_t rank; /* of its lease */
    int64_t cores_milli, gpus_milli;
    char name[MUSTER_NAME_SIZE]; /* of its machine; "" unknown */
    /* As it comes: */
    uint64_t rounds; /* that it has been in: a new rank 0 counts on from there */
    bool is_running; /* its script, still, though rank 0 is another; of MUSTER_RESTART_RANK */
};

struct muster;

/* on_order must not call the muster. */
struct muster *muster_new(const struct muster_options *options,
                          void (*on_order)(void *context, const struct muster_order *order),
                          void *context);
void muster_free(struct muster *muster); /* NULL is fine */
DEFINE_AUTO(muster);

/* A rank that is there already is gone with what it ran: this is its successor. */
void muster_join(struct muster *muster, const struct muster_rank *rank, int64_t now_ms);
void muster_heard(struct muster *muster, uint64_t rank, int64_t now_ms);
/* `why`: "its connection was closed". */
void muster_leave(struct muster *muster, uint64_t rank, const char *why, int64_t now_ms);
/* How its script ended: 128 + n by signal n. */
void muster_exit(struct muster *muster, uint64_t rank, uint64_t round, int status, int64_t now_ms);
/* Each second; rank 0 itself is always heard. */
void muster_tick(struct muster *muster, int64_t now_ms);

bool muster_has(const struct muster *muster, uint64_t rank);
/* Those whose scripts have ended well while others go on; `out` has room for the most of a round.
 * Of MUSTER_RESTART_RANK: who comes after that finds nobody there any more. */
size_t muster_list_done(const struct muster *muster, struct muster_rank *out);

/* Whether a rank may believe that these are the members of a round and it is to start: as many as
 * the options say, by rank, `own` among them. Rank 0 is another's machine, and may say anything. */
bool muster_is_round(const struct muster_options *options, uint64_t own,
                     const struct muster_rank *members, size_t count);

/* The members of the newest round, by rank, and its index. */
const struct muster_rank *muster_round(const struct muster *muster, size_t *out_count,
                                       uint64_t *out_index);
