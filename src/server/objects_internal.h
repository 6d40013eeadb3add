/*
 * Objects, inside: what accounts have, and rows that are read.
 */
#pragma once

#include "base/map.h"
#include "server/background.h"
#include "server/objects.h"
#include "server/server_internal.h"

struct object_usage {
    int64_t bytes, count;
};

/* The disk makes one of several syncs that wait together. */
enum { OBJECTS_WRITERS = 4 };

struct objects {
    struct server *server;
    struct background *writers[OBJECTS_WRITERS];
    unsigned next_writer;
    struct map usages;  /* account -> struct object_usage, owned */
    struct map changes; /* account and name -> what changes it */
};

/* Of a row of the table; the blobs lie in the arena. */
MUST_CHECK int objects_read_row(struct arena *arena, const struct store_value *row,
                                struct object *out_object, struct error *error);
/* Whether a change of that name is on its way. */
bool objects_is_changing(const struct objects *objects, const struct object_name *name);
/* As objects_apply; http_id 0: nobody asked, and `now` is what was there. */
void objects_change(struct objects *objects, uint64_t http_id, const struct objects_change *wanted);
