/*
 * Image cache: images that leases brought, unpacked, in the state folder: one folder each,
 * HASH-BYTES, with root/ and start.json (blob/image.h), shared read-only by the leases that run in
 * it.
 *
 * Whoever uses one holds a lock on its folder. When there is no room for another, what was used
 * longest ago goes first, and nothing that is in use.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { IMAGE_HASH_SIZE = 32 };

struct image_hold {
    int fd; /* -1: none is held */
    char folder[PATH_MAX];
};

/* False when it is not there. */
MUST_CHECK int image_cache_take(const char *cache, const uint8_t hash[IMAGE_HASH_SIZE],
                                struct image_hold *out_hold, bool *out_is_there,
                                struct error *error);

/*
 * Moves the folder, which a foreign process has filled, into the cache and takes it; another that
 * came first is taken instead. CORRUPT when it is not what an image's folder is; EXHAUSTED when
 * those in use leave no room.
 */
MUST_CHECK int image_cache_keep(const char *cache, const uint8_t hash[IMAGE_HASH_SIZE],
                                const char *folder, uint64_t bytes_max, struct image_hold *out_hold,
                                struct error *error);

void image_hold_release(struct image_hold *hold); /* fine when none is held */
