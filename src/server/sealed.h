/*
 * Sealed: what the market keeps of a job's secrets, encrypted, for as long as the job goes on.
 *
 * Each job that has some has a file DATA/secrets/NAME, mode 0600: a byte 1, a nonce of 24 bytes and
 * XChaCha20-Poly1305 (libsodium) over the bytes and NAME, under a key that derives from the
 * market's root key and the account. NAME is 32 random hex digits, and all that the job's spec has
 * of it. The file is on the disk before the job is submitted, and goes when the job ends; one whose
 * job never came to be goes when the market starts again.
 *
 * Threads: none of its own; files are named apart, so calls may be made from any.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "server/keys.h"

#include <stdbool.h>
#include <stdint.h>

enum { SEALED_NAME_SIZE = 33, SEALED_BYTES_MAX = 32 << 10 };

struct sealed;

/* Makes the folder DATA_DIR/secrets. The keys outlive it. */
MUST_CHECK int sealed_open(const char *data_dir, const struct keys *keys,
                           struct sealed **out_sealed, struct error *error);
void sealed_free(struct sealed *sealed); /* NULL is fine */
DEFINE_AUTO(sealed);

/* At most SEALED_BYTES_MAX. */
MUST_CHECK int sealed_put(const struct sealed *sealed, uint64_t account, struct text bytes,
                          char out_name[SEALED_NAME_SIZE], struct error *error);
/* Appends them; NOT_FOUND, or CORRUPT when they are not what was put for this account. */
MUST_CHECK int sealed_get(const struct sealed *sealed, uint64_t account, struct text name,
                          struct buffer *bytes, struct error *error);
/* What is not there is gone already. */
MUST_CHECK int sealed_remove(const struct sealed *sealed, struct text name, struct error *error);

/* Removes all but those that are needed; what has no name of sealed secrets is left alone. */
MUST_CHECK int sealed_sweep(const struct sealed *sealed,
                            bool (*is_needed)(void *context, struct text name), void *context,
                            struct error *error);
