#include "base/assert.h"
#include "store/store_internal.h"

#include <math.h>

enum { BATCH_BYTES_MAX_DEFAULT = 64 << 20 };

struct store_batch *store_batch_new(size_t bytes_max)
{
    struct store_batch *batch = calloc(1, sizeof(*batch));
    ASSERT(batch);
    batch->bytes_max = bytes_max ? bytes_max : BATCH_BYTES_MAX_DEFAULT;
    batch->arena = arena_new(batch->bytes_max);
    batch->end = &batch->first;
    return batch;
}

void store_batch_free(struct store_batch *batch)
{
    if (!batch)
        return;
    arena_free(batch->arena);
    free(batch);
}

void store_batch_clear(struct store_batch *batch)
{
    arena_clear(batch->arena);
    batch->first = NULL;
    batch->end = &batch->first;
    batch->event_count = 0;
    batch->error = (struct error){0};
}

void store_batch_each_row(const struct store_batch *batch, store_change_callback *callback,
                          void *context)
{
    for (const struct store_change *change = batch->first; change; change = change->next)
        if (change->kind == STORE_CHANGE_PUT || change->kind == STORE_CHANGE_DELETE)
            callback(context, change->table, change->values, change->kind == STORE_CHANGE_DELETE);
}

size_t store_batch_event_count(const struct store_batch *batch)
{
    return batch->event_count;
}

bool store_batch_is_empty(const struct store_batch *batch)
{
    return !batch->first && batch->error.code == ERROR_NONE;
}

/* NULL, with the batch marked, when it is full. */
static void *batch_alloc(struct store_batch *batch, size_t size)
{
    void *memory = NULL;
    struct error error;
    if (batch->error.code != ERROR_NONE)
        return NULL;
    if (arena_try_alloc(batch->arena, size, &memory, &error) < 0) {
        (void)error_set(&batch->error, ERROR_EXHAUSTED, "a commit holds at most %zu bytes",
                        batch->bytes_max);
        return NULL;
    }
    return memory;
}

static bool batch_copy(struct store_batch *batch, struct text text, struct text *out)
{
    char *copy = batch_alloc(batch, text.size ? text.size : 1);
    if (!copy)
        return false;
    if (text.size)
        memcpy(copy, text.data, text.size);
    *out = (struct text){copy, text.size};
    return true;
}

static void batch_append(struct store_batch *batch, struct store_change *change)
{
    *batch->end = change;
    batch->end = &change->next;
}

void store_batch_event(struct store_batch *batch, int64_t time_ms, struct text kind,
                       struct text body)
{
    ASSERT(kind.size > 0 && kind.size <= STORE_KIND_BYTES_MAX);
    if (body.size > STORE_BODY_BYTES_MAX && batch->error.code == ERROR_NONE)
        (void)error_set(&batch->error, ERROR_EXHAUSTED, "an event holds at most %d bytes, not %zu",
                        STORE_BODY_BYTES_MAX, body.size);
    struct store_change *change = batch_alloc(batch, sizeof(*change));
    if (!change)
        return;
    *change = (struct store_change){.kind = STORE_CHANGE_EVENT, .time_ms = time_ms};
    if (!batch_copy(batch, kind, &change->name) || !batch_copy(batch, body, &change->body))
        return;
    batch_append(batch, change);
    batch->event_count++;
}

/* Checks a value against its column: a wrong type is our mistake, but a number that is none may
 * have come a long way from outside. */
static bool batch_copy_value(struct store_batch *batch, const struct store_column *column,
                             const struct store_value *value, struct store_value *out)
{
    ASSERT(value->type == column->type);
    ASSERT(!value->is_null || column->is_optional);
    *out = *value;
    if (value->is_null || value->type == STORE_INTEGER)
        return true;
    if (value->type != STORE_REAL)
        return batch_copy(batch, value->bytes, &out->bytes);
    if (!isnan(value->real))
        return true;
    if (column->is_optional) {
        out->is_null = true;
        return true;
    }
    (void)error_set(&batch->error, ERROR_INVALID, "column \"%s\" takes numbers, not NaN",
                    column->name);
    return false;
}

void store_batch_put(struct store_batch *batch, const struct store_table *table,
                     const struct store_value *values, size_t value_count)
{
    ASSERT(value_count == table->column_count);
    struct store_change *change = batch_alloc(batch, sizeof(*change));
    struct store_value *copies = batch_alloc(batch, value_count * sizeof(*copies));
    if (!change || !copies)
        return;
    for (size_t i = 0; i < value_count; i++)
        if (!batch_copy_value(batch, &table->columns[i], &values[i], &copies[i]))
            return;
    *change = (struct store_change){
        .kind = STORE_CHANGE_PUT, .table = table, .values = copies, .value_count = value_count};
    batch_append(batch, change);
}

void store_batch_delete(struct store_batch *batch, const struct store_table *table,
                        const struct store_value *keys, size_t key_count)
{
    ASSERT(key_count == store_table_key_count(table));
    struct store_change *change = batch_alloc(batch, sizeof(*change));
    struct store_value *copies = batch_alloc(batch, key_count * sizeof(*copies));
    if (!change || !copies)
        return;
    for (size_t i = 0; i < key_count; i++)
        if (!batch_copy_value(batch, &table->columns[store_table_key_index(table, i)], &keys[i],
                              &copies[i]))
            return;
    *change = (struct store_change){
        .kind = STORE_CHANGE_DELETE, .table = table, .values = copies, .value_count = key_count};
    batch_append(batch, change);
}

void store_batch_meta(struct store_batch *batch, const char *key, struct text value)
{
    ASSERT(!text_starts_with(text_of(key), TEXT("store.")));
    struct store_change *change = batch_alloc(batch, sizeof(*change));
    if (!change)
        return;
    *change = (struct store_change){.kind = STORE_CHANGE_META};
    if (!batch_copy(batch, text_of(key), &change->name) || !batch_copy(batch, value, &change->body))
        return;
    batch_append(batch, change);
}
