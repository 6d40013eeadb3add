/*
 * Waiting: jobs that wait for room as entries of a book, asked for by what an offer could serve.
 *
 * A job is in it once for its workers and once for its server. Jobs that are stuck, which no offers
 * there are could serve even with nothing leased, are asked for apart: nobody else walks past them.
 */
#pragma once

#include "market/listing.h"

struct waiting_list {
    struct book *book; /* of struct job */
    size_t stuck_count;
};

void waiting_init(struct waiting_list *waiting);
void waiting_done(struct waiting_list *waiting);
void waiting_add(struct waiting_list *waiting, const struct listing *listing, struct job *job);
void waiting_remove(struct waiting_list *waiting, struct job *job);
/* Of a job that waits. */
void waiting_set_stuck(struct waiting_list *waiting, const struct listing *listing, struct job *job,
                       bool is_stuck);

/* The wish that finds the jobs some of whose leases the offer could serve with what is free of it,
 * but for those that are stuck. Whether it does is for the tests to say. */
struct book_wish waiting_wish(struct listing *listing, const struct offer *offer, int64_t now_ms);
/* Those that are stuck, which it could serve with all of it. */
struct book_wish waiting_stuck_wish(struct listing *listing, const struct offer *offer,
                                    int64_t now_ms);
