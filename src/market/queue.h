/*
 * Queue: in which order jobs that wait for room are served, fair between accounts.
 *
 * Start-time fair queueing (Goyal, Vin and Cheng, 1996). A job's tag is
 *
 *     tag = max(the queue's clock, the finish of the account's job before it)
 *     finish = tag + cost
 *
 * and the clock is the largest tag of a job that has started, moved on by a small part of each
 * cost served. So an account that asks for little is served soon, and one that asks for much takes
 * turns with the others in proportion to cost. Tags do not change, and the clock passes each of
 * them after finitely many starts, even if every one is of an account never seen before: then all
 * who come later stand behind it, and every job's turn comes.
 * Those who rush go first, then the smaller tag, then the smaller id.
 *
 * Tags are whole microcredits and stop at QUEUE_TAG_MAX; jobs beyond go by id.
 */
#pragma once

#include "market/book.h"

#define QUEUE_TAG_MAX ((INT64_C(1) << 62) - 1)

/* What the queue remembers besides those who wait. */
struct queue_clock {
    int64_t now_tag;
};

struct queue_turn {
    int64_t tag;
    int64_t finish_tag;
};

/* The turn of a job that costs so much, after the account's last finish. */
struct queue_turn queue_take_turn(const struct queue_clock *clock, int64_t account_finish_tag,
                                  int64_t cost_micro);
void queue_serve(struct queue_clock *clock, struct queue_turn turn);

/* The larger goes first; equal ones by id. */
int64_t queue_score(bool is_rush, int64_t tag);
