/*
 * Map: from uint64 or text keys to pointers, in an order that depends only on the calls made.
 *
 * Entries lie densely in `entries`, first come first; removing one moves the last into its place.
 * So a loop over 0..count-1 gives the same order on every run, which the pure core relies on.
 * The map does not own its values. Text keys are copied.
 */
#pragma once

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
    uint64_t key; /* of a text map: the hash */
    void *value;
};

struct map {
    struct map_entry *entries;
    struct text *names; /* of a text map: the keys, owned by the map; else NULL */
    size_t count;
    size_t capacity;
    uint32_t *slots; /* index + 1 into entries; 0 is free */
    size_t slot_count;
};

void map_init(struct map *map);
void map_done(struct map *map);
/* Takes everything out and keeps the memory. */
void map_clear(struct map *map);

/* The value, or NULL. */
void *map_get(const struct map *map, uint64_t key);
/* Adds or replaces. `value` is not NULL. */
void map_put(struct map *map, uint64_t key, void *value);
/* The value removed, or NULL. */
void *map_remove(struct map *map, uint64_t key);

/* Hints before the key is looked up or put into a large map: what is asked for first, and some work
 * later what is found there, comes from memory meanwhile. */
void map_ask_slot(const struct map *map, uint64_t key);
void map_ask_entry(const struct map *map, uint64_t key);

/* The same by text; one map uses one kind of key only. */
void *map_get_text(const struct map *map, struct text name);
void map_put_text(struct map *map, struct text name, void *value);
void *map_remove_text(struct map *map, struct text name);
