/*
 * Objects: what an account's functions and who leads them leave for each other, by name.
 *
 * The bytes of an object are one or more blobs of the market's store. Each blob begins with
 * OBJECTS_SALT_SIZE random bytes: no two are the same, so that each is one object's alone, goes
 * with it, and tells nobody what another account has. The names are a table of the server's own
 * (docs/decisions/0020-objects-of-functions.md): what a function left is no event of the market.
 *
 * A change is on disk before it is told; threads of its own wait for the disk with the bytes. Of
 * those that change one name at a time one goes first; the others' handlers are called again after
 * it. Objects count against their account's quota together with its chunks, and go as those do when
 * nobody has read them for the retention.
 *
 * Main thread.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "blob/blob_store.h"
#include "net/http_server.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    OBJECTS_NAME_SIZE = 256,
    OBJECTS_SALT_SIZE = 16,
    OBJECTS_PART_BYTES = 4000000, /* of one request; more is put in parts */
    OBJECTS_PARTS_MAX = 512,
    OBJECTS_COUNT_MAX = 100000, /* of an account */
};

struct server;
struct objects;

struct objects *objects_new(struct server *server);
void objects_free(struct objects *objects); /* NULL is fine */
/* Nothing is written any more; before the loop ends, which is told of what was. */
void objects_stop(struct objects *objects);
/* Counts what each account has. Once, before anything is asked. */
MUST_CHECK int objects_open(struct objects *objects, struct error *error);

/* Letters, digits, '.', '-', '_' and '/' between names that do not begin with a dot; else INVALID.
 */
MUST_CHECK int objects_check_name(struct text name, struct error *error);

struct object_name {
    uint64_t account;
    struct text name;
};

struct object {
    bool exists;
    uint64_t size_bytes;
    size_t blob_count;
    const struct blob_hash *blobs; /* [blob_count], in the arena */
};

/* As it is on disk, with all its bytes; one that has lost some does not exist. */
MUST_CHECK int objects_find(struct objects *objects, struct arena *arena,
                            const struct object_name *name, struct object *out_object,
                            struct error *error);
/* True: a change of it is on its way, and the request's handler is called again after it. */
bool objects_wait(struct objects *objects, const struct object_name *name,
                  const struct http_request *request);

/* EXHAUSTED when `added_bytes` more are too much for the account. */
MUST_CHECK int objects_check_room(struct objects *objects, uint64_t account, int64_t added_bytes,
                                  struct error *error);
int64_t objects_bytes(const struct objects *objects, uint64_t account);

/* Begins to store bytes that no object has yet, for objects_change's `writer`. */
MUST_CHECK int objects_write(struct objects *objects, struct text bytes,
                             struct blob_writer **out_writer, struct error *error);

/* What a request does to an object, which nobody else changes now. */
struct objects_change {
    struct object_name name;
    struct object before; /* what objects_find said */
    bool is_gone;         /* it is deleted; else it becomes `now` */
    struct object now;
    struct blob_writer *writer; /* of the one blob of `now`, taken over; NULL: they are stored */
    size_t part_count;          /* objects whose blobs become this one's, and which are gone then */
    const struct text *parts;
};
/* Answers the request with 204, 200 or 201 once that is on disk, or with what went wrong. */
void objects_apply(struct objects *objects, struct http_request *request,
                   const struct objects_change *wanted);

/* What nobody read for the retention no longer counts. Called after holdings_expire. */
void objects_expire(struct objects *objects);
