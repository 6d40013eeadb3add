/*
 * Holdings: which account has which chunks in the market's store, and for how long.
 *
 * An account holds a chunk once it has sent it, itself or by one of its leases; another account
 * that knows the hash alone gets nothing. What each holds counts against its quota. Chunks that
 * nobody used for the market's retention go, unless a job that has not ended names them, and then
 * no longer count.
 *
 * Main thread.
 */
#pragma once

#include "base/error.h"
#include "blob/blob_store.h"
#include "blob/manifest.h"

#include <stdbool.h>
#include <stdint.h>

#define HOLDINGS_KEEP_MS (INT64_C(30) * 24 * 3600 * 1000)

struct server;
struct holdings;

struct holdings *holdings_new(struct server *server);
void holdings_free(struct holdings *holdings); /* NULL is fine */

/* Where a market has no holdings, as before there were any: an account has the data its jobs name
 * and what they left. Once, before anything is asked. */
MUST_CHECK int holdings_adopt(struct holdings *holdings, struct error *error);

/* Who sent a chunk: an account, or for it the parameter servers of one of its jobs. What only those
 * sent may go with a checkpoint of the job; what somebody else sent, too, or a job has for its
 * input, stays for the retention. */
struct holder {
    uint64_t account;
    uint64_t job; /* 0: the account, or any other lease of it */
};

/* Whether the account holds the chunk and it is there. */
MUST_CHECK int holdings_has(struct holdings *holdings, uint64_t account,
                            const struct blob_hash *hash, bool *out_has, struct error *error);
/* The same, and no checkpoint takes it along: who is told so need not send it. */
MUST_CHECK int holdings_keeps(struct holdings *holdings, uint64_t account,
                              const struct blob_hash *hash, bool *out_keeps, struct error *error);
/* The same as holdings_has(), and from now on no checkpoint takes it along. */
MUST_CHECK int holdings_claim(struct holdings *holdings, uint64_t account,
                              const struct blob_hash *hash, bool *out_has, struct error *error);
/* The same of a manifest and all its chunks. NOT_FOUND: one of them is not here. */
MUST_CHECK int holdings_claim_file(struct holdings *holdings, struct arena *arena, uint64_t account,
                                   const struct blob_hash *hash, struct manifest *out_manifest,
                                   struct error *error);
/* EXHAUSTED when the chunk, of so many bytes, is too much for the account. */
MUST_CHECK int holdings_check_room(struct holdings *holdings, uint64_t account,
                                   const struct blob_hash *hash, uint64_t bytes,
                                   struct error *error);
/* The same of bytes that are no chunk's. */
MUST_CHECK int holdings_check_bytes(struct holdings *holdings, uint64_t account,
                                    int64_t added_bytes, struct error *error);
struct holdings_chunk {
    struct blob_hash hash;
    uint64_t size_bytes;
};
/* The same of several together, of which those count that the account does not hold;
 * *out_missing_bytes is theirs. */
MUST_CHECK int holdings_check_room_of(struct holdings *holdings, uint64_t account,
                                      const struct holdings_chunk *chunks, size_t count,
                                      uint64_t *out_missing_bytes, struct error *error);
/* The chunk is stored, and the account has shown that it has it. `done` comes once that is on disk,
 * or cannot be (`error`). */
typedef void holdings_done(void *context, const struct error *error);
void holdings_add(struct holdings *holdings, struct holder holder, const struct blob_hash *hash,
                  uint64_t bytes, holdings_done *done, void *context);
/* The same of several, HOLDINGS_ADD_MAX at most: all or none. */
enum { HOLDINGS_ADD_MAX = 500 };
void holdings_add_all(struct holdings *holdings, struct holder holder,
                      const struct holdings_chunk *chunks, size_t count, holdings_done *done,
                      void *context);
MUST_CHECK int holdings_bytes(struct holdings *holdings, uint64_t account, int64_t *out_bytes,
                              struct error *error);

/* A checkpoint that its account need not hold any more, as there are later ones. What those have of
 * it stays; so does what others than the job's parameter servers sent: a machine that calls the
 * borrower's data a checkpoint of its own must not make them go. And so does what was sent again
 * since: it is for a checkpoint that is on its way. */
enum { HOLDINGS_LATER = 2 };
struct holdings_replaced {
    struct holder holder;
    int64_t left_ms;                             /* when the old one had been sent */
    struct blob_hash old, later[HOLDINGS_LATER]; /* manifests */
    const struct blob_hash *others;              /* that stay, too: of the job's other ranks */
    size_t other_count;
};
void holdings_replace(struct holdings *holdings, const struct holdings_replaced *replaced);

/* The retention. */
int64_t holdings_keep_ms(const struct holdings *holdings);
/* What was not used for the retention goes. Called now and then: a part of the rows each time. */
void holdings_expire(struct holdings *holdings);
