/*
 * Object store: where functions and the lead of a job meet: objects by key in a folder of this
 * machine, in S3, or in the market's own store.
 *
 * Objects are whole or not there. What is put once stays as it was put first: of all who put under
 * a key at the same time one is let in. Calls block; a store belongs to one thread.
 *
 *     jobs/JOB                     the job (function/work.h)
 *     data/JOB/PART                its records, idx as they are
 *     models/JOB/VERSION           the model after so many updates (function/parcel.h)
 *     updates/JOB/EPOCH-RUN-FIRST  what the batches from FIRST on make of it
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { OBJECT_KEY_SIZE = 160 };

struct remote_credentials; /* source/remote.h */

#define OBJECT_STORE_MARKET "market"

/* Whose store it is, and who one is there. */
struct object_market {
    const char *server;      /* "https://market.example:7600"; NULL: none is known */
    const char *fingerprint; /* NULL: not pinned */
    const char *token;       /* of an account, or of the functions of one job; NULL: none */
};

struct object_store_options {
    const char *place; /* a folder, which is there, "s3://bucket/prefix", or OBJECT_STORE_MARKET */
    const struct remote_credentials *credentials; /* of S3; copied; NULL: none */
    const struct object_market *market;           /* copied; NULL: none */
    uint32_t attempts_max; /* of those elsewhere, before they are UNAVAILABLE; 0: 5 or 6 */
    /* Of those elsewhere, about once a second; true: what is asked fails with CONFLICT. May be
     * NULL.
     */
    bool (*is_stopped)(void *context);
    void *context;
};

struct object_store;

/* INVALID for what is none of them. Asks nothing of those elsewhere yet. */
MUST_CHECK int object_store_open(const struct object_store_options *options,
                                 struct object_store **out_store, struct error *error);
void object_store_free(struct object_store *store); /* NULL is fine */
DEFINE_AUTO(object_store);

bool object_store_is_remote(struct text place); /* not a folder */
bool object_store_is_market(struct text place);

/*
 * Keys are letters, digits, '.', '-', '_' and '/' between names that do not begin with a dot;
 * others are INVALID. All fail with UNAVAILABLE when the store is away; whether a put was done is
 * not known then.
 */

/* The object in place of what `out` holds. NOT_FOUND; EXHAUSTED past its maximum. */
MUST_CHECK int object_store_read(struct object_store *store, const char *key, struct buffer *out,
                                 struct error *error);
/* Exactly these bytes. NOT_FOUND; CORRUPT when the object ends before. */
MUST_CHECK int object_store_read_part(struct object_store *store, const char *key, uint64_t offset,
                                      void *out, size_t size, struct error *error);
/* `is_once`: CONFLICT, changing nothing, where there is something; it may be this call's own.
 * EXHAUSTED when there is no room for it. */
MUST_CHECK int object_store_put(struct object_store *store, const char *key, struct text bytes,
                                bool is_once, struct error *error);
/* As read and put, by a file that nobody else writes; so an object takes no memory of its size.
 * `fd` is empty and fetched into, at most `bytes_max`, or all of it is put in place of what is
 * there. */
MUST_CHECK int object_store_fetch(struct object_store *store, const char *key, int fd,
                                  size_t bytes_max, struct error *error);
MUST_CHECK int object_store_put_file(struct object_store *store, const char *key, int fd,
                                     struct error *error);
/* One that is not there is fine. */
MUST_CHECK int object_store_delete(struct object_store *store, const char *key,
                                   struct error *error);
