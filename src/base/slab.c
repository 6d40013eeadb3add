#include "base/slab.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_MIN = 1 << 12, CHUNK_MAX = 1 << 24, HUGE_MIN = 1 << 22, GROWTH = 16, ALIGNMENT = 16 };

struct slab_chunk {
    struct slab_chunk *next;
};

enum { HEADER = 64 }; /* items of whole cache lines begin with one */
_Static_assert(sizeof(struct slab_chunk) <= HEADER, "the header has room");

void slab_init(struct slab *slab, size_t item_size)
{
    ASSERT(item_size >= sizeof(void *) && item_size <= CHUNK_MIN / 2);
    *slab = (struct slab){.item_size = (item_size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT};
}

void slab_done(struct slab *slab)
{
    for (struct slab_chunk *chunk = slab->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    *slab = (struct slab){.item_size = slab->item_size};
}

/* A sixteenth of what there is, so that little is unused. */
static void grow(struct slab *slab)
{
    size_t size = slab->bytes / GROWTH / CHUNK_MIN * CHUNK_MIN;
    size = size < CHUNK_MIN ? CHUNK_MIN : size > CHUNK_MAX ? CHUNK_MAX : size;
    struct slab_chunk *chunk = aligned_alloc(HEADER, size);
    ASSERT(chunk);
    if (size >= HUGE_MIN)
        memory_want_huge(chunk, size);
    chunk->next = slab->chunks;
    slab->chunks = chunk;
    slab->bytes += size;
    slab->next = (char *)chunk + HEADER;
    slab->end = slab->next + (size - HEADER) / slab->item_size * slab->item_size;
}

void *slab_take(struct slab *slab)
{
    void *item = slab->free;
    if (item) {
        memcpy(&slab->free, item, sizeof(slab->free));
    } else {
        if (slab->next == slab->end)
            grow(slab);
        item = slab->next;
        slab->next += slab->item_size;
    }
    memset(item, 0, slab->item_size);
    return item;
}

void slab_give(struct slab *slab, void *item)
{
    if (!item)
        return;
    memcpy(item, &slab->free, sizeof(slab->free));
    slab->free = item;
}
