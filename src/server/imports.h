/*
 * Imports: data that the market reads for its borrowers, who have no program of ours: what they
 * sent becomes the inputs of a job, as `souk job submit` makes them on a machine of their own.
 *
 * They are kept in memory, an hour after their end. One of an account is read at a time, and
 * IMPORTS_READ_MAX in all; others wait in the order they came.
 *
 * Main thread.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "blob/blob_store.h"
#include "server/keys.h"

#include <stdbool.h>
#include <stdint.h>

struct server;
struct imports;
struct import_order;

enum {
    IMPORTS_READ_MAX = 2,
    IMPORTS_OPEN_MAX = 4,  /* of one account that have not ended */
    IMPORTS_KEPT_MAX = 16, /* of one account; then the one that ended first goes */
    IMPORTS_COUNT_MAX = 1024,
    IMPORTS_KEEP_MS = 3600000,
    IMPORTS_NAME_SIZE = 201,
    IMPORTS_REQUEST_MAX = 64 << 10,
};

#define IMPORTS_SIZE_BYTES (INT64_C(4) << 30) /* of what is sent, unless the operator says */

struct imports *imports_new(struct server *server);
/* Clears what a former process left, in the market's data folder. */
MUST_CHECK int imports_open(struct imports *imports, struct error *error);
/* Ends what runs. NULL is fine. */
void imports_stop(struct imports *imports);
/* Once the loop is gone. NULL is fine. */
void imports_free(struct imports *imports);

/* Bytes of one that is sent or fetched, at most. */
uint64_t imports_size_max(const struct imports *imports);

struct import_wish {
    uint64_t account;
    struct text name;          /* of the file, without a folder: import_name_check */
    struct text spec;          /* JSON of the job to be, without its inputs; of a mount "{}" */
    struct blob_hash manifest; /* of what was sent; unless: */
    struct text fetch;         /* JSON of import_fetch.h: what to fetch instead; has secrets */
    bool is_folder_fetched;    /* it is all below the address */
    bool is_mount;             /* it becomes one of a job's file_mounts, as it is */
    bool is_peer;              /* it tests what is learnt from data that lie at lenders */
    /* The same key and request again is the same import. */
    bool has_key;
    uint8_t key_hash[KEYS_HASH_SIZE], request_hash[KEYS_HASH_SIZE];
};

/* INVALID unless it can name a file in a folder: no slash, no dot first, plain UTF-8. */
MUST_CHECK int import_name_check(struct text name, struct error *error);

/* NOT_FOUND: what was sent is not here. EXHAUSTED: the account has too many open. UNAVAILABLE: the
 * market has. CONFLICT: the key was used for another request. */
MUST_CHECK int imports_add(struct imports *imports, const struct import_wish *wish,
                           struct import_order **out_order, struct error *error);
/* NULL: there is none, or it is another's. */
struct import_order *imports_find(const struct imports *imports, uint64_t account, uint64_t id);
/* False: there is none. */
bool imports_remove(struct imports *imports, uint64_t account, uint64_t id);

uint64_t import_order_id(const struct import_order *order);
void import_order_write(struct import_order *order, struct json_writer *writer);
