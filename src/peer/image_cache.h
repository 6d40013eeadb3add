/*
 * Image cache: what leases brought, unpacked, in the state folder: one folder each, HASH-BYTES,
 * shared read-only by the leases that use it. Of an image it has root/ and start.json
 * (blob/image.h), of packages the virtual environment they are installed in as root/, of a wheel
 * (wheel_cache.h) root/ with that file.
 *
 * Whoever uses one holds a lock on its folder. When there is no room for another, what was used
 * longest ago goes first; what nobody has used for a month goes anyway; nothing that is in use
 * does.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { IMAGE_HASH_SIZE = 32, IMAGE_UNUSED_MAX_S = 30 * 24 * 3600 };

enum image_kind { IMAGE_KIND_IMAGE, IMAGE_KIND_PACKAGES, IMAGE_KIND_WHEEL };

struct image_hold {
    int fd; /* -1: none is held */
    char folder[PATH_MAX];
};

/* False when it is not there. */
MUST_CHECK int image_cache_take(const char *cache, const uint8_t hash[IMAGE_HASH_SIZE],
                                struct image_hold *out_hold, bool *out_is_there,
                                struct error *error);

/* For one that is not there: whoever gets this makes it, and all others wait. *out_fd is -1 while
 * another has it; closing it gives it back. */
MUST_CHECK int image_cache_reserve(const char *cache, const uint8_t hash[IMAGE_HASH_SIZE],
                                   int *out_fd, struct error *error);

/*
 * Moves the folder, which a foreign process has filled, into the cache and takes it; another that
 * came first is taken instead. CORRUPT when it is not what such a folder is; EXHAUSTED when
 * those in use leave no room.
 */
MUST_CHECK int image_cache_keep(const char *cache, const uint8_t hash[IMAGE_HASH_SIZE],
                                enum image_kind kind, const char *folder, uint64_t bytes_max,
                                struct image_hold *out_hold, struct error *error);

void image_hold_release(struct image_hold *hold); /* fine when none is held */
