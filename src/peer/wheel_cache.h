/*
 * Wheel cache: single wheels that were fetched from the owner's index, by the hash of their bytes,
 * in the image cache: each is a folder whose root/ has one file.
 *
 * What fetched them said which is which, and is not believed: whoever installs one of them looks
 * whether its bytes have that hash.
 */
#pragma once

#include "runtime/package_lock.h"

/* Those of the list that are there, as FOLDER/SHA256/root/NAME.whl: links to the cache's own, to be
 * shown to others for reading alone. */
MUST_CHECK int wheel_cache_give(const char *cache, const struct package_lock *lock,
                                const char *folder, size_t *out_count, struct error *error);

/* Moves what was fetched, FOLDER/SHA256/root/NAME.whl, into the cache, as far as there is room:
 * what cannot be kept is left behind. */
void wheel_cache_keep(const char *cache, const char *folder, uint64_t bytes_max);
