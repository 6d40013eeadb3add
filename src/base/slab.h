/*
 * Slab: many things of one size, side by side.
 *
 * They have no header each and lie in chunks that grow with the slab and ask for huge pages when
 * they are large. Addresses never change.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct slab {
    size_t item_size;
    struct slab_chunk *chunks; /* the newest first */
    size_t bytes;              /* of all chunks */
    char *next;                /* never used so far, in the newest */
    char *end;
    void *free; /* given back; each begins with the next */
};

/* `item_size` at least that of a pointer. */
void slab_init(struct slab *slab, size_t item_size);
/* Frees every item, given back or not. */
void slab_done(struct slab *slab);

void *slab_take(struct slab *slab);            /* zeroed */
void slab_give(struct slab *slab, void *item); /* NULL is fine */
