/*
 * Blob pins: what must stay in a store that several processes share while one of them needs it.
 *
 *     FOLDER/pins/NAME   hashes, 32 bytes each; locked while the process that pinned them lives
 *     FOLDER/evict       locked while blobs are evicted or pins are made: never both
 *
 * Pins end with their process, however it ends.
 */
#pragma once

#include "blob/blob_store.h"

struct blob_pins;

MUST_CHECK int blob_pins_open(struct blob_store *store, struct blob_pins **out_pins,
                              struct error *error);
/* Nothing is pinned by it any more. NULL is fine; before the store is freed. */
void blob_pins_free(struct blob_pins *pins);
DEFINE_AUTO(blob_pins);
/* They need not be there yet. */
MUST_CHECK int blob_pins_add(struct blob_pins *pins, const struct blob_hash *hashes, size_t count,
                             struct error *error);
