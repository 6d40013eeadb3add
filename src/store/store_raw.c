#include "store/store_raw.h"

#include "base/assert.h"
#include "base/clock.h"
#include "store/store_sqlite_internal.h"

#include <stdlib.h>
#include <time.h>

enum { PARTS_MAX = 8, COLUMNS_MAX = STORE_COLUMN_MAX };

struct raw_table {
    const struct store_raw_part *part;
    sqlite3_stmt *insert;
    struct store_value *values; /* row by row */
    size_t column_count;
    size_t row_count, row_capacity;
};

struct raw {
    const struct store_raw_options *options;
    struct arena *arena;
    struct sqlite_connection source, target;
    struct raw_table tables[PARTS_MAX];
};

/* ---- Reading --------------------------------------------------------------------------------- */

static struct store_value copy_column(struct raw *raw, sqlite3_stmt *statement, int index)
{
    switch (sqlite3_column_type(statement, index)) {
    case SQLITE_INTEGER:
        return store_integer(sqlite3_column_int64(statement, index));
    case SQLITE_FLOAT:
        return store_real(sqlite3_column_double(statement, index));
    case SQLITE_TEXT:
        return store_text(arena_copy_text(raw->arena, sqlite_column(statement, index)));
    case SQLITE_BLOB: {
        const struct text bytes = arena_copy_text(raw->arena, sqlite_column(statement, index));
        return store_blob(bytes.data, bytes.size);
    }
    default:
        return store_null(STORE_INTEGER);
    }
}

static void add_row(struct raw *raw, struct raw_table *table, sqlite3_stmt *statement)
{
    if (table->row_count == table->row_capacity) {
        table->row_capacity = table->row_capacity ? 2 * table->row_capacity : 1024;
        table->values = realloc(table->values,
                                table->row_capacity * table->column_count * sizeof(*table->values));
        ASSERT(table->values);
    }
    struct store_value *row = table->values + table->row_count++ * table->column_count;
    for (size_t i = 0; i < table->column_count; i++)
        row[i] = copy_column(raw, statement, (int)i);
}

static int read_table(struct raw *raw, struct raw_table *table, struct error *error)
{
    const char *sql = arena_format(raw->arena, "SELECT * FROM \"%s\" ORDER BY %s",
                                   table->part->table, table->part->order);
    sqlite3_stmt *statement;
    if (sqlite_prepare(&raw->source, sql, &statement, error) < 0)
        return -1;
    table->column_count = (size_t)sqlite3_column_count(statement);
    ASSERT(table->column_count <= COLUMNS_MAX);
    int result;
    while ((result = sqlite_step(&raw->source, statement, error)) == 1)
        add_row(raw, table, statement);
    return result;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The table and its indices, as they are in the source. */
static int create_table(struct raw *raw, const char *name, struct error *error)
{
    sqlite3_stmt *statement;
    const struct store_value value = store_text(text_of(name));
    if (sqlite_prepare(&raw->source,
                       "SELECT sql FROM sqlite_schema WHERE tbl_name = ?1 AND type IN"
                       " ('table', 'index') AND sql IS NOT NULL ORDER BY type DESC",
                       &statement, error) < 0 ||
        sqlite_bind(&raw->source, statement, 1, &value, error) < 0)
        return -1;
    int result;
    while ((result = sqlite_step(&raw->source, statement, error)) == 1)
        if (sqlite_execute(&raw->target, (const char *)sqlite3_column_text(statement, 0), error) <
            0)
            return -1;
    return result;
}

static int prepare_insert(struct raw *raw, struct raw_table *table, struct error *error)
{
    struct buffer sql AUTO_BUFFER;
    buffer_init(&sql, 1 << 14);
    buffer_append_format(&sql, "INSERT%s INTO \"%s\" VALUES(?1",
                         table->part->is_repeated ? " OR REPLACE" : "", table->part->table);
    for (size_t i = 1; i < table->column_count; i++)
        buffer_append_format(&sql, ", ?%zu", i + 1);
    buffer_append_string(&sql, ")");
    return sqlite_prepare(&raw->target, buffer_string(&sql), &table->insert, error);
}

static int insert_row(struct raw *raw, struct raw_table *table, size_t index, struct error *error)
{
    const struct store_value *row = table->values + index * table->column_count;
    for (size_t i = 0; i < table->column_count; i++)
        if (sqlite_bind(&raw->target, table->insert, (int)i + 1, &row[i], error) < 0)
            return -1;
    return sqlite_step(&raw->target, table->insert, error);
}

static int insert_batch(struct raw *raw, uint64_t index, struct error *error)
{
    const uint64_t count = raw->options->batch_count;
    if (sqlite_execute(&raw->target, "BEGIN IMMEDIATE", error) < 0)
        return -1;
    for (size_t t = 0; t < raw->options->part_count; t++) {
        struct raw_table *table = &raw->tables[t];
        const bool is_repeated = table->part->is_repeated;
        const size_t end = is_repeated ? table->row_count : table->row_count * (index + 1) / count;
        for (size_t i = is_repeated ? 0 : table->row_count * index / count; i < end; i++)
            if (insert_row(raw, table, i, error) < 0)
                return -1;
    }
    return sqlite_execute(&raw->target, "COMMIT", error);
}

static int64_t cpu_ns(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return spent.tv_sec * INT64_C(1000000000) + spent.tv_nsec;
}

static int run(struct raw *raw, struct store_raw_result *out_result, struct error *error)
{
    const struct store_raw_options *options = raw->options;
    for (size_t i = 0; i < options->part_count; i++) {
        raw->tables[i].part = &options->parts[i];
        if (read_table(raw, &raw->tables[i], error) < 0 ||
            create_table(raw, options->parts[i].table, error) < 0 ||
            prepare_insert(raw, &raw->tables[i], error) < 0)
            return -1;
    }
    const int64_t wall_start = clock_monotonic_ns(&clock_system), cpu_start = cpu_ns();
    for (uint64_t i = 0; i < options->batch_count; i++)
        if (insert_batch(raw, i, error) < 0)
            return -1;
    *out_result = (struct store_raw_result){
        .wall_ns = clock_monotonic_ns(&clock_system) - wall_start,
        .cpu_ns = cpu_ns() - cpu_start,
    };
    return 0;
}

int store_raw_insert(const struct store_raw_options *options, struct store_raw_result *out_result,
                     struct error *error)
{
    ASSERT(options->part_count <= PARTS_MAX && options->batch_count > 0);
    const struct store_options source = {.location = options->source};
    const struct store_options target = {.location = options->target};
    struct raw raw = {.options = options};
    if (sqlite_connection_open(&raw.source, &source, CONNECTION_READ, error) < 0)
        return -1;
    if (sqlite_connection_open(&raw.target, &target, CONNECTION_WRITE, error) < 0) {
        sqlite_connection_close(&raw.source);
        return -1;
    }
    raw.arena = arena_new((size_t)4 << 30);
    const int result = run(&raw, out_result, error);
    sqlite_connection_close(&raw.source);
    sqlite_connection_close(&raw.target);
    for (size_t i = 0; i < options->part_count; i++)
        free(raw.tables[i].values);
    arena_free(raw.arena);
    return result;
}
