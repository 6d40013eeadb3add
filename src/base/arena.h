/*
 * Arena: memory that is freed all at once: one per request, tick or parse.
 *
 * arena_alloc aborts when memory is out and is for sizes we choose. For a size that came from
 * outside, arena_try_alloc keeps to the arena's maximum and returns an error.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stddef.h>

struct arena;

struct arena *arena_new(size_t size_max); /* 0: no maximum */
/* What it held is wiped before its memory is used again or goes back. */
struct arena *arena_new_secret(size_t size_max);
void arena_free(struct arena *arena); /* NULL is fine */
DEFINE_AUTO(arena);

/* Forgets everything allocated and keeps the first block for reuse. */
void arena_clear(struct arena *arena);

/* Zeroed, aligned for any type. */
void *arena_alloc(struct arena *arena, size_t size);
MUST_CHECK int arena_try_alloc(struct arena *arena, size_t size, void **out_memory,
                               struct error *error);

struct text arena_copy_text(struct arena *arena, struct text text);
/* Copies and ends with a zero byte. */
char *arena_copy_string(struct arena *arena, struct text text);
char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

size_t arena_size(const struct arena *arena);
