#include "base/map.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 16 }; /* entries, from which on page tables matter */

void map_init(struct map *map)
{
    *map = (struct map){0};
}

/* The key of a text map is ours, though `struct text` only borrows. */
static void free_name(struct text text)
{
    union {
        const char *borrowed;
        char *owned;
    } name = {text.data};
    free(name.owned);
}

static void free_names(const struct map *map)
{
    for (size_t i = 0; map->names && i < map->count; i++)
        free_name(map->names[i]);
}

void map_done(struct map *map)
{
    free_names(map);
    free(map->entries);
    free(map->names);
    free(map->slots);
    *map = (struct map){0};
}

void map_clear(struct map *map)
{
    if (map->count == 0)
        return;
    free_names(map);
    free(map->names);
    map->names = NULL; /* the next keys may be numbers */
    memset(map->slots, 0, map->slot_count * sizeof(*map->slots));
    map->count = 0;
}

/* The finalizer of MurmurHash3 (Appleby, public domain constants): spreads dense ids. */
static uint64_t mix(uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdULL;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53ULL;
    return key ^ key >> 33;
}

/* FNV-1a, 64 bit. */
static uint64_t hash_text(struct text name)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * 0x100000001b3ULL;
    return hash;
}

static bool matches(const struct map *map, uint32_t index, uint64_t key, const struct text *name)
{
    return map->entries[index].key == key && (!name || text_equal(map->names[index], *name));
}

/* The slot that holds the key, or the free one where it would go. */
static size_t find_slot(const struct map *map, uint64_t key, const struct text *name)
{
    size_t slot = mix(key) & (map->slot_count - 1);
    while (map->slots[slot] && !matches(map, map->slots[slot] - 1, key, name))
        slot = (slot + 1) & (map->slot_count - 1);
    return slot;
}

void map_ask_slot(const struct map *map, uint64_t key)
{
    if (map->count > 0)
        __builtin_prefetch(&map->slots[mix(key) & (map->slot_count - 1)]);
}

void map_ask_entry(const struct map *map, uint64_t key)
{
    const uint32_t index = map->count > 0 ? map->slots[mix(key) & (map->slot_count - 1)] : 0;
    if (index > 0)
        __builtin_prefetch(&map->entries[index - 1]);
}

static void grow(struct map *map)
{
    const size_t slot_count = map->slot_count ? map->slot_count * 2 : 16;
    const size_t capacity = slot_count / 2;
    uint32_t *slots = calloc(slot_count, sizeof(*slots));
    struct map_entry *entries = realloc(map->entries, capacity * sizeof(*entries));
    ASSERT(slots && entries && capacity < UINT32_MAX);
    if (map->names) {
        map->names = realloc(map->names, capacity * sizeof(*map->names));
        ASSERT(map->names);
    }
    if (capacity >= LARGE) {
        memory_want_huge(slots, slot_count * sizeof(*slots));
        memory_want_huge(entries, capacity * sizeof(*entries));
    }
    free(map->slots);
    map->slots = slots;
    map->slot_count = slot_count;
    map->entries = entries;
    map->capacity = capacity;
    for (size_t i = 0; i < map->count; i++) {
        size_t slot = mix(entries[i].key) & (slot_count - 1);
        while (slots[slot])
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = (uint32_t)i + 1;
    }
}

static void *get(const struct map *map, uint64_t key, const struct text *name)
{
    if (map->count == 0)
        return NULL;
    const uint32_t index = map->slots[find_slot(map, key, name)];
    return index ? map->entries[index - 1].value : NULL;
}

static void put(struct map *map, uint64_t key, const struct text *name, void *value)
{
    ASSERT(value);
    if (map->count == map->capacity)
        grow(map);
    const size_t slot = find_slot(map, key, name);
    if (map->slots[slot]) {
        map->entries[map->slots[slot] - 1].value = value;
        return;
    }
    map->entries[map->count] = (struct map_entry){.key = key, .value = value};
    if (name && !map->names) {
        map->names = malloc(map->capacity * sizeof(*map->names));
        ASSERT(map->names);
    }
    if (name) {
        char *copy = malloc(name->size + 1);
        ASSERT(copy);
        if (name->size)
            memcpy(copy, name->data, name->size);
        copy[name->size] = '\0';
        map->names[map->count] = (struct text){copy, name->size};
    }
    map->slots[slot] = (uint32_t)++map->count;
}

/* Closes the gap left at `hole` so that every later key of the run is still found. */
static void close_gap(struct map *map, size_t hole)
{
    const size_t mask = map->slot_count - 1;
    for (size_t slot = (hole + 1) & mask; map->slots[slot]; slot = (slot + 1) & mask) {
        const size_t home = mix(map->entries[map->slots[slot] - 1].key) & mask;
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            map->slots[hole] = map->slots[slot];
            hole = slot;
        }
    }
    map->slots[hole] = 0;
}

static void *take(struct map *map, uint64_t key, const struct text *name)
{
    if (map->count == 0)
        return NULL;
    const size_t slot = find_slot(map, key, name);
    if (!map->slots[slot])
        return NULL;
    const uint32_t index = map->slots[slot] - 1;
    void *removed = map->entries[index].value;
    const struct text removed_name = name ? map->names[index] : (struct text){0};
    close_gap(map, slot);

    const uint32_t last = (uint32_t)map->count - 1;
    if (index != last) {
        const struct text *moved_name = name ? &map->names[last] : NULL;
        const size_t moved_slot = find_slot(map, map->entries[last].key, moved_name);
        ASSERT(map->slots[moved_slot] == last + 1);
        map->slots[moved_slot] = index + 1;
        map->entries[index] = map->entries[last];
        if (name)
            map->names[index] = map->names[last];
    }
    map->count--;
    free_name(removed_name); /* last: it may be the very text asked for */
    return removed;
}

void *map_get(const struct map *map, uint64_t key)
{
    return get(map, key, NULL);
}

void map_put(struct map *map, uint64_t key, void *value)
{
    put(map, key, NULL, value);
}

void *map_remove(struct map *map, uint64_t key)
{
    return take(map, key, NULL);
}

void *map_get_text(const struct map *map, struct text name)
{
    return get(map, hash_text(name), &name);
}

void map_put_text(struct map *map, struct text name, void *value)
{
    put(map, hash_text(name), &name, value);
}

void *map_remove_text(struct map *map, struct text name)
{
    return take(map, hash_text(name), &name);
}
