/*
 * Spool: bytes that grow, in memory while they are few, then in a file without a name that is
 * mapped, so that the system may put aside what does not fit into memory.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define SPOOL_MEMORY_MAX ((size_t)64 << 20) /* above, they lie in a file */

struct spool {
    uint8_t *data; /* moves when it grows */
    size_t size;
    size_t capacity;
    size_t memory_max; /* 0: SPOOL_MEMORY_MAX */
    int file;          /* descriptor + 1; 0: in memory */
};

/* A spool of zeros is empty. Releases all and leaves such a one. */
void spool_done(struct spool *spool);

/* Room for `size` more bytes behind the last, and then spool_advance. EXHAUSTED: neither memory nor
 * disk has it. The file lies in $TMPDIR or else /var/tmp. */
MUST_CHECK int spool_reserve(struct spool *spool, size_t size, void **out_room,
                             struct error *error);
void spool_advance(struct spool *spool, size_t size);
MUST_CHECK int spool_append(struct spool *spool, const void *bytes, size_t size,
                            struct error *error);
