#include "server/version.h"

#include "base/assert.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTERS = 1 << 16, EVERYTHING = 0, WHOLE_TABLE = 0xffff };

struct versions {
    _Atomic uint64_t commits;            /* moved before the counters of the commit's topics */
    _Atomic uint64_t counters[COUNTERS]; /* the first is for all topics */
};

/*
 * The columns whose value a row keeps for ever; a filter on any other is a read of the whole table.
 * The first column of a key never changes.
 */
static const struct {
    enum table table;
    uint16_t column;
} fixed_columns[] = {
    {TABLE_JOBS, JOBS_ACCOUNT},     {TABLE_LEASES, LEASES_JOB},  {TABLE_LEASES, LEASES_MACHINE},
    {TABLE_TOKENS, TOKENS_ACCOUNT}, {TABLE_TOKENS, TOKENS_HASH},
};
enum { FIXED_COUNT = sizeof(fixed_columns) / sizeof(*fixed_columns) };

static bool is_fixed(enum table table, size_t column)
{
    if (column == 0)
        return tables[table].columns[0].is_key;
    for (size_t i = 0; i < FIXED_COUNT; i++)
        if (fixed_columns[i].table == table && fixed_columns[i].column == column)
            return true;
    return false;
}

/* ---- Topics ---------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0xff51afd7ed558ccdULL;
    return hash ^ hash >> 32;
}

static uint32_t counter_of(uint64_t hash)
{
    return 1 + (uint32_t)(hash % (COUNTERS - 1));
}

static uint32_t table_counter(enum table table)
{
    return counter_of(mix((uint64_t)table, WHOLE_TABLE));
}

static uint32_t value_counter(enum table table, size_t column, const struct store_value *value)
{
    uint64_t hash = mix(mix(1, (uint64_t)table << 16 | column), 0);
    if (value->type == STORE_INTEGER)
        return counter_of(mix(hash, (uint64_t)value->integer));
    ASSERT(value->type == STORE_TEXT || value->type == STORE_BLOB);
    for (size_t at = 0; at < value->bytes.size; at += sizeof(uint64_t)) {
        const size_t left = value->bytes.size - at;
        uint64_t part = 0;
        memcpy(&part, value->bytes.data + at, left < sizeof(part) ? left : sizeof(part));
        hash = mix(hash, part);
    }
    return counter_of(hash);
}

static uint32_t prices_counter(void)
{
    return counter_of(mix(2, 0));
}

static enum table table_of(const struct store_table *table)
{
    ASSERT(table >= tables && table < tables + TABLE_COUNT);
    return (enum table)(table - tables);
}

/* ---- Moving ---------------------------------------------------------------------------------- */

struct versions *versions_new(void)
{
    struct versions *versions = calloc(1, sizeof(*versions));
    ASSERT(versions);
    return versions;
}

void versions_free(struct versions *versions)
{
    free(versions);
}

static void move(struct versions *versions, uint32_t counter)
{
    atomic_fetch_add_explicit(&versions->counters[counter], 1, memory_order_release);
}

static bool has_fixed_columns(enum table table)
{
    for (size_t i = 0; i < FIXED_COUNT; i++)
        if (fixed_columns[i].table == table)
            return true;
    return false;
}

static void move_row(void *context, const struct store_table *store_table,
                     const struct store_value *values, bool is_deleted)
{
    struct versions *versions = context;
    const enum table table = table_of(store_table);
    if (is_deleted && has_fixed_columns(table)) { /* only its key is known */
        versions_move_all(versions);
        return;
    }
    move(versions, table_counter(table));
    if (store_table->columns[0].is_key)
        move(versions, value_counter(table, 0, &values[0]));
    for (size_t i = 0; i < FIXED_COUNT; i++)
        if (fixed_columns[i].table == table)
            move(versions,
                 value_counter(table, fixed_columns[i].column, &values[fixed_columns[i].column]));
}

void versions_commit(struct versions *versions, const struct store_batch *batch)
{
    atomic_fetch_add_explicit(&versions->commits, 1, memory_order_release);
    store_batch_each_row(batch, move_row, versions);
}

void versions_move_all(struct versions *versions)
{
    atomic_fetch_add_explicit(&versions->commits, 1, memory_order_release);
    move(versions, EVERYTHING);
}

void versions_move(struct versions *versions, enum table table, uint64_t key)
{
    const struct store_value value = store_integer((int64_t)key);
    move(versions, table_counter(table));
    move(versions, value_counter(table, 0, &value));
}

void versions_move_prices(struct versions *versions)
{
    move(versions, prices_counter());
}

/* ---- Marking --------------------------------------------------------------------------------- */

static void mark(struct version_marks *marks, const struct versions *versions, uint32_t counter)
{
    for (uint32_t i = marks->count; i-- > 0;)
        if (marks->items[i].counter == counter)
            return; /* the older mark is the stricter one */
    if (marks->count == VERSION_MARKS_MAX) {
        marks->is_overflowed = true;
        return;
    }
    marks->items[marks->count].counter = counter;
    marks->items[marks->count++].version =
        atomic_load_explicit(&versions->counters[counter], memory_order_acquire);
}

void version_marks_clear(struct version_marks *marks, const struct versions *versions)
{
    marks->commits = atomic_load_explicit(&versions->commits, memory_order_acquire);
    marks->count = 0;
    marks->is_overflowed = false;
    mark(marks, versions, EVERYTHING);
}

void version_marks_add(struct version_marks *marks, const struct versions *versions,
                       const struct store_query *query)
{
    const enum table table = table_of(query->table);
    for (size_t i = 0; i < query->filter_count; i++) {
        const struct store_filter *filter = &query->filters[i];
        if (filter->compare != STORE_EQUAL || filter->value.is_null)
            continue;
        for (size_t column = 0; column < query->table->column_count; column++)
            if (!strcmp(query->table->columns[column].name, filter->column) &&
                is_fixed(table, column)) {
                mark(marks, versions, value_counter(table, column, &filter->value));
                return;
            }
    }
    mark(marks, versions, table_counter(table));
}

void version_marks_add_key(struct version_marks *marks, const struct versions *versions,
                           enum table table, uint64_t key)
{
    const struct store_value value = store_integer((int64_t)key);
    mark(marks, versions, value_counter(table, 0, &value));
}

void version_marks_add_prices(struct version_marks *marks, const struct versions *versions)
{
    mark(marks, versions, prices_counter());
}

bool version_marks_are_whole(const struct version_marks *marks, const struct versions *versions)
{
    return !marks->is_overflowed &&
           marks->commits == atomic_load_explicit(&versions->commits, memory_order_acquire);
}

bool versions_hold(const struct versions *versions, const struct version_mark *marks,
                   size_t mark_count)
{
    for (size_t i = 0; i < mark_count; i++)
        if (atomic_load_explicit(&versions->counters[marks[i].counter], memory_order_acquire) !=
            marks[i].version)
            return false;
    return true;
}
