/*
 * Match rounds: whom matching has still to try, and what is reserved. Follows from commands only:
 * a market that was loaded tries all who wait with its first decision, and reserves anew.
 *
 * A *touch* says that a machine may have become better for somebody. Touches are counted, and each
 * job knows at which count it was tried: a machine need not try a job again that was tried after
 * its touch, and one touch gives a job at most one more worker.
 */
#pragma once

#include "core/core_internal.h"

/* A machine whose jobs have to be tried. */
struct match_touched {
    struct machine *machine;
    uint64_t at;           /* jobs tried since then know it already; 0: not looked at yet */
    uint64_t offer;        /* the one under way, and */
    struct book_mark mark; /* the job it was last compared with */
};

struct match_try {
    struct job *job;
    uint64_t at; /* unless it was tried since; UINT64_MAX: in any case */
};

enum match_sweep { MATCH_SWEEP_NONE, MATCH_SWEEP_SHORT, MATCH_SWEEP_ALL };

struct match_rounds {
    uint64_t clock;   /* touches so far */
    bool is_deciding; /* only then is anything remembered */
    struct match_touched *touched;
    size_t touched_count;
    size_t touched_capacity;
    struct match_try *tries;
    size_t try_count;
    size_t try_capacity;
    struct job *expected; /* new in this decision, and not yet among those who wait; NULL: none */
    enum match_sweep
        sweep; /* over pending jobs from this id on; ALL from 0: nobody was tried yet */
    uint64_t sweep_from;
    struct book_search search;
    struct arena *arenas[2]; /* of the reservation, and of the one before */
    struct match_reservation ahead;
    bool has_ahead;           /* it holds */
    bool is_spare_due;        /* those who wait for spare time are to be tried */
    struct id_list preempted; /* jobs of it that lost some in this decision */
    /* For tests: jobs that machines were compared with, and reservations looked for. */
    uint64_t looked_at;
    uint64_t reserved_count;
};

/* Tries its jobs; what is reserved there stays. */
void match_rounds_remember(struct match_rounds *rounds, struct machine *machine);
void match_rounds_give_up(struct match_rounds *rounds); /* what is reserved */
void match_rounds_add_try(struct match_rounds *rounds, struct job *job, uint64_t at);

/* decide_ahead.c */
/* The reservation that a job must respect: of the first in the line, if that is before it. NULL:
 * one that comes after all who stand there. */
const struct match_reservation *decide_ahead(struct decision *decision, const struct job *job);
/* When it is of one who is not the first any more, or its machines changed: reserves anew. Whether
 * that leaves more to others. */
bool decide_renew_ahead(struct decision *decision);
/* As asked of the market now, of one that rushes as if it had to pay for it. */
struct match_wish decide_wish_in_line(const struct decision *decision, const struct job *job);
/* The same, but who rushes pays for it only if there is somebody to go ahead of. */
struct match_wish decide_wish(struct decision *decision, const struct job *job);
/* At new prices: those who could not pay for their rush may now. */
void decide_hurry_again(struct decision *decision);
