/*
 * Holdings, inside: rows on their way to the store, and what each account uses.
 */
#pragma once

#include "base/map.h"
#include "server/engine.h"
#include "server/holdings.h"

#include <stddef.h>

enum { HOLDINGS_CHANGE_ROWS = HOLDINGS_ADD_MAX, HOLDINGS_KEY_SIZE = 8 + BLOB_HASH_SIZE };

struct holdings_usage {
    int64_t bytes;
};

/* Rows on their way to the store. */
struct holdings_change {
    struct engine_request request;
    struct holdings *holdings;
    holdings_done *done; /* NULL: nobody waits */
    void *context;
    bool is_expiry;
    size_t count;
    struct {
        uint64_t account;
        struct blob_hash hash;
        int64_t size_bytes;
        int64_t stored_ms;
        uint64_t job;        /* as struct holder's */
        int64_t added_bytes; /* to what its account uses */
        bool is_gone;
    } rows[HOLDINGS_CHANGE_ROWS];
    size_t usage_count;
    struct {
        uint64_t account;
        int64_t bytes;
    } usages[HOLDINGS_CHANGE_ROWS];
};

struct holdings {
    struct server *server;
    struct map usages; /* account -> struct holdings_usage, owned */
    struct map fresh;  /* account and hash -> the change that writes or drops it */
    bool is_expiring;  /* old rows are on their way: none is dropped twice */
};

struct text holdings_key(uint64_t account, const struct blob_hash *hash,
                         char out[HOLDINGS_KEY_SIZE]);

struct holdings_change *holdings_change_new(void);
/* Takes the change over. */
void holdings_change_submit(struct holdings *holdings, struct holdings_change *change);
/* The row at `at` adds so many bytes to what its account uses, or takes them off. */
void holdings_change_usage(struct holdings *holdings, struct holdings_change *change, size_t at,
                           int64_t added_bytes);

/* From its row at first use. */
struct holdings_usage *holdings_usage_of(struct holdings *holdings, uint64_t account,
                                         struct error *error);

/* Of an account's chunk: the row on its way, or else the one in the store. */
struct holding {
    bool exists;
    bool is_fresh; /* on its way */
    uint64_t job;
    int64_t size_bytes, stored_ms;
};
MUST_CHECK int holdings_find(struct holdings *holdings, uint64_t account,
                             const struct blob_hash *hash, struct holding *out_holding,
                             struct error *error);
/* The change's row `at` is found by holdings_find() until it is written. */
void holdings_change_announce(struct holdings *holdings, struct holdings_change *change, size_t at);
/* Whether any account's row of the chunk is on its way: the store does not know of it yet. */
bool holdings_are_coming(const struct holdings *holdings, const struct blob_hash *hash);

/* Rows older than the retention, some at a time; logs when it cannot. */
void holdings_drop_old_rows(struct holdings *holdings);
