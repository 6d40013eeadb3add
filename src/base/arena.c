#include "base/arena.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SIZE = 16 * 1024 };

struct block {
    struct block *next;
    size_t size;
    size_t used;
    _Alignas(max_align_t) unsigned char data[];
};

struct arena {
    struct block *current; /* newest first; the last in the chain is kept by arena_clear */
    size_t size;
    size_t size_max;
    bool is_secret;
};

static struct block *block_new(size_t size)
{
    struct block *block = malloc(sizeof(*block) + size);
    if (!block)
        return NULL;
    block->next = NULL;
    block->size = size;
    block->used = 0;
    return block;
}

struct arena *arena_new(size_t size_max)
{
    struct arena *arena = calloc(1, sizeof(*arena));
    ASSERT(arena);
    arena->size_max = size_max;
    return arena;
}

struct arena *arena_new_secret(size_t size_max)
{
    struct arena *arena = arena_new(size_max);
    arena->is_secret = true;
    return arena;
}

static void wipe(const struct arena *arena, struct block *block)
{
    if (arena->is_secret)
        explicit_bzero(block->data, block->used);
}

void arena_free(struct arena *arena)
{
    if (!arena)
        return;
    for (struct block *block = arena->current, *next; block; block = next) {
        next = block->next;
        wipe(arena, block);
        free(block);
    }
    free(arena);
}

void arena_clear(struct arena *arena)
{
    while (arena->current && arena->current->next) {
        struct block *block = arena->current;
        arena->current = block->next;
        wipe(arena, block);
        free(block);
    }
    if (arena->current) {
        wipe(arena, arena->current);
        arena->current->used = 0;
    }
    arena->size = 0;
}

/* NULL when memory is out. */
static void *take(struct arena *arena, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    const size_t padded = (size + align - 1) & ~(align - 1);
    if (padded < size)
        return NULL;
    if (!arena->current || arena->current->size - arena->current->used < padded) {
        struct block *block = block_new(padded > BLOCK_SIZE ? padded : BLOCK_SIZE);
        if (!block)
            return NULL;
        block->next = arena->current;
        arena->current = block;
    }
    void *memory = arena->current->data + arena->current->used;
    arena->current->used += padded;
    arena->size += padded;
    memset(memory, 0, size);
    return memory;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    void *memory = take(arena, size);
    ASSERT(memory);
    return memory;
}

int arena_try_alloc(struct arena *arena, size_t size, void **out_memory, struct error *error)
{
    if (arena->size_max && (size > arena->size_max || arena->size > arena->size_max - size))
        return error_set(error, ERROR_EXHAUSTED, "%zu bytes more than the limit of %zu bytes allow",
                         size, arena->size_max);
    void *memory = take(arena, size);
    if (!memory)
        return error_set(error, ERROR_EXHAUSTED, "no memory for %zu bytes", size);
    *out_memory = memory;
    return 0;
}

struct text arena_copy_text(struct arena *arena, struct text text)
{
    return (struct text){arena_copy_string(arena, text), text.size};
}

char *arena_copy_string(struct arena *arena, struct text text)
{
    char *copy = arena_alloc(arena, text.size + 1);
    if (text.size)
        memcpy(copy, text.data, text.size);
    return copy;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    ASSERT(length >= 0);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

size_t arena_size(const struct arena *arena)
{
    return arena->size;
}
