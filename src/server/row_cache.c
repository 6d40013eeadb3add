#include "server/row_cache.h"

#include "base/assert.h"
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE_MAX = 64, MARKS_MAX = 2 };

struct cached_row {
    struct version_mark marks[MARKS_MAX];
    uint32_t mark_count;
    size_t size;                 /* of all this */
    struct store_value values[]; /* then their bytes */
};

struct row_cache {
    const struct versions *versions;
    struct map rows; /* by table and value -> struct cached_row */
    size_t bytes, bytes_max;
};

struct row_cache *row_cache_new(const struct versions *versions, size_t bytes_max)
{
    struct row_cache *cache = calloc(1, sizeof(*cache));
    ASSERT(cache);
    cache->versions = versions;
    cache->bytes_max = bytes_max;
    map_init(&cache->rows);
    return cache;
}

static void forget_all(struct row_cache *cache)
{
    for (size_t i = 0; i < cache->rows.count; i++)
        free(cache->rows.entries[i].value);
    map_done(&cache->rows);
    map_init(&cache->rows);
    cache->bytes = 0;
}

void row_cache_free(struct row_cache *cache)
{
    if (!cache)
        return;
    forget_all(cache);
    map_done(&cache->rows);
    free(cache);
}

/* Each of these columns never changes, so that version.h follows the row by it. */
bool row_cache_takes(enum table table, const struct store_filter *filter)
{
    if (filter->value.is_null || filter->compare != STORE_EQUAL)
        return false;
    if (table == TABLE_TOKENS)
        return !strcmp(filter->column, "hash") && filter->value.bytes.size < KEY_SIZE_MAX;
    return (table == TABLE_ACCOUNTS || table == TABLE_MACHINES) && !strcmp(filter->column, "id");
}

static struct text row_key(enum table table, const struct store_filter *filter,
                           char out[KEY_SIZE_MAX])
{
    const struct store_value *value = &filter->value;
    out[0] = (char)table;
    if (value->type == STORE_INTEGER) {
        memcpy(out + 1, &value->integer, sizeof(value->integer));
        return (struct text){out, 1 + sizeof(value->integer)};
    }
    memcpy(out + 1, value->bytes.data, value->bytes.size);
    return (struct text){out, 1 + value->bytes.size};
}

static bool has_bytes(const struct store_value *value)
{
    return value->type == STORE_TEXT || value->type == STORE_BLOB;
}

const struct store_value *row_cache_find(struct row_cache *cache, struct arena *arena,
                                         enum table table, const struct store_filter *filter)
{
    char key[KEY_SIZE_MAX];
    const struct cached_row *row = map_get_text(&cache->rows, row_key(table, filter, key));
    if (!row || !versions_hold(cache->versions, row->marks, row->mark_count))
        return NULL;
    /* One block with the same layout; the pointers move along. */
    const size_t size = row->size - offsetof(struct cached_row, values);
    struct store_value *values = arena_alloc(arena, size);
    memcpy(values, row->values, size);
    for (size_t i = 0; i < tables[table].column_count; i++)
        if (has_bytes(&values[i]) && values[i].bytes.data)
            values[i].bytes.data =
                (const char *)values + (values[i].bytes.data - (const char *)row->values);
    return values;
}

void row_cache_put(struct row_cache *cache, enum table table, const struct store_filter *filter,
                   const struct version_marks *marks, const struct store_value *values)
{
    if (!version_marks_are_whole(marks, cache->versions) || marks->count > MARKS_MAX)
        return;
    const size_t column_count = tables[table].column_count;
    size_t size = sizeof(struct cached_row) + column_count * sizeof(*values);
    for (size_t i = 0; i < column_count; i++)
        size += has_bytes(&values[i]) ? values[i].bytes.size : 0;
    if (cache->bytes + size > cache->bytes_max)
        forget_all(cache);
    struct cached_row *row = malloc(size);
    ASSERT(row);
    memcpy(row->marks, marks->items, marks->count * sizeof(*row->marks));
    row->mark_count = marks->count;
    row->size = size;
    memcpy(row->values, values, column_count * sizeof(*values));
    char *bytes = (char *)&row->values[column_count];
    for (size_t i = 0; i < column_count; i++) {
        if (!has_bytes(&values[i]))
            continue;
        row->values[i].bytes.data = bytes;
        if (values[i].bytes.size)
            memcpy(bytes, values[i].bytes.data, values[i].bytes.size);
        bytes += values[i].bytes.size;
    }
    char key[KEY_SIZE_MAX];
    const struct text name = row_key(table, filter, key);
    struct cached_row *old = map_get_text(&cache->rows, name);
    map_put_text(&cache->rows, name, row);
    cache->bytes += size - (old ? old->size : 0);
    free(old);
}
