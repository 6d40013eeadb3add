#include "base/assert.h"
#include "store/store_sqlite_internal.h"

#include <inttypes.h>

enum { APPLICATION_ID = 0x736f756b /* "souk" */, FORMAT_VERSION = 1, SQL_BYTES_MAX = 1 << 16 };

static const char own_tables[] =
    "CREATE TABLE store_events(sequence INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL,"
    " kind TEXT NOT NULL, body TEXT NOT NULL, hash BLOB NOT NULL) STRICT;"
    "CREATE TRIGGER store_events_keep BEFORE DELETE ON store_events"
    " BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;"
    "CREATE TRIGGER store_events_hold BEFORE UPDATE ON store_events"
    " BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;"
    "CREATE TABLE store_meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE store_snapshots(sequence INTEGER PRIMARY KEY, event_hash BLOB NOT NULL,"
    " checksum BLOB NOT NULL, bytes BLOB NOT NULL) STRICT;";

static const char *const type_names[STORE_TYPE_COUNT] = {
    [STORE_INTEGER] = "INTEGER",
    [STORE_REAL] = "REAL",
    [STORE_TEXT] = "TEXT",
    [STORE_BLOB] = "BLOB",
};

static int pragma_number(struct sqlite_connection *connection, const char *sql, int64_t *out_number,
                         struct error *error)
{
    sqlite3_stmt *statement;
    if (sqlite_prepare(connection, sql, &statement, error) < 0)
        return -1;
    const int result = sqlite_step(connection, statement, error);
    if (result < 0)
        return -1;
    *out_number = result == 1 ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    return 0;
}

int sqlite_format_check(struct sqlite_connection *connection, bool *out_is_empty,
                        struct error *error)
{
    int64_t application;
    int64_t version;
    int64_t table_count;
    if (pragma_number(connection, "PRAGMA application_id", &application, error) < 0 ||
        pragma_number(connection, "PRAGMA user_version", &version, error) < 0 ||
        pragma_number(connection, "SELECT count(*) FROM sqlite_schema", &table_count, error) < 0)
        return -1;
    *out_is_empty = application == 0 && table_count == 0;
    if (*out_is_empty)
        return 0;
    if (application != APPLICATION_ID)
        return error_set(error, ERROR_CORRUPT, "\"%.150s\" is a database, but not a store",
                         connection->path);
    if (version != FORMAT_VERSION)
        return error_set(error, ERROR_INVALID,
                         "\"%.120s\" has store format %" PRId64 ", this program knows %d: use the "
                         "program that wrote it",
                         connection->path, version, FORMAT_VERSION);
    return 0;
}

/* Logs without a version are older than any that has one. */
int sqlite_log_version_check(struct sqlite_connection *connection, uint32_t log_version,
                             struct error *error)
{
    struct store_head head;
    uint64_t version;
    if (sqlite_head_get(connection, &head, error) < 0 ||
        sqlite_meta_number(connection, SQLITE_META_LOG_VERSION, &version, error) < 0)
        return -1;
    if (head.sequence == 0 || version == log_version)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "the log in \"%.90s\" is of version %" PRIu64 ", this program reads %" PRIu32
                     ": open it with the %s program that wrote it, or begin with an empty folder",
                     connection->path, version, log_version,
                     version < log_version ? "older" : "newer");
}

static int stamp_log_version(struct sqlite_connection *connection, uint32_t log_version,
                             struct error *error)
{
    char version[24];
    snprintf(version, sizeof(version), "%" PRIu32, log_version);
    return sqlite_meta_set(connection, SQLITE_META_LOG_VERSION, text_of(version), error);
}

/* ---- SQL for a table ------------------------------------------------------------------------- */

static void append_column(struct buffer *sql, const struct store_column *column)
{
    static const char *const zero[STORE_TYPE_COUNT] = {
        [STORE_INTEGER] = "0", [STORE_REAL] = "0.0", [STORE_TEXT] = "''", [STORE_BLOB] = "x''"};
    buffer_append_format(sql, "\"%s\" %s", column->name, type_names[column->type]);
    if (!column->is_optional)
        buffer_append_format(sql, " NOT NULL DEFAULT %s", zero[column->type]);
}

static int execute_buffer(struct sqlite_connection *connection, struct buffer *sql,
                          struct error *error)
{
    const char *string = buffer_string(sql);
    if (buffer_check(sql, error) < 0)
        return -1;
    return sqlite_execute(connection, string, error);
}

/* Rows without a value are in no index: a filter never looks for them there. */
static void append_index(struct buffer *sql, const struct store_table *table,
                         const struct store_column *column)
{
    buffer_append_format(sql, "CREATE INDEX IF NOT EXISTS \"%s.%s\" ON \"%s\"(\"%s\")", table->name,
                         column->name, table->name, column->name);
    if (column->is_optional)
        buffer_append_format(sql, " WHERE \"%s\" IS NOT NULL", column->name);
    buffer_append_string(sql, ";");
}

static int create_indexes(struct sqlite_connection *connection, const struct store_table *table,
                          struct error *error)
{
    struct buffer sql AUTO_BUFFER;
    buffer_init(&sql, SQL_BYTES_MAX);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct store_column *column = &table->columns[i];
        if (column->is_indexed)
            append_index(&sql, table, column);
        if (column->indexed_with)
            buffer_append_format(
                &sql, "CREATE INDEX IF NOT EXISTS \"%s.%s.%s\" ON \"%s\"(\"%s\", \"%s\");",
                table->name, column->name, column->indexed_with, table->name, column->name,
                column->indexed_with);
    }
    return execute_buffer(connection, &sql, error);
}

static int create_table(struct sqlite_connection *connection, const struct store_table *table,
                        struct error *error)
{
    struct buffer sql AUTO_BUFFER;
    buffer_init(&sql, SQL_BYTES_MAX);
    buffer_append_format(&sql, "CREATE TABLE \"%s\"(", table->name);
    for (size_t i = 0; i < table->column_count; i++) {
        append_column(&sql, &table->columns[i]);
        buffer_append_string(&sql, ", ");
    }
    buffer_append_string(&sql, "PRIMARY KEY(");
    const size_t key_count = store_table_key_count(table);
    for (size_t i = 0; i < key_count; i++)
        buffer_append_format(&sql, "%s\"%s\"", i ? ", " : "",
                             table->columns[store_table_key_index(table, i)].name);
    /* One integer is SQLite's own row number; any other key orders the rows itself. */
    const bool is_rowid =
        key_count == 1 && table->columns[store_table_key_index(table, 0)].type == STORE_INTEGER;
    buffer_append_format(&sql, ")) STRICT%s;", is_rowid ? "" : ", WITHOUT ROWID");
    if (execute_buffer(connection, &sql, error) < 0)
        return -1;
    return create_indexes(connection, table, error);
}

/* ---- Comparing with what is there ------------------------------------------------------------ */

struct table_shape {
    bool exists;
    bool fits; /* what is there is right; columns may be missing */
    bool has_column[STORE_COLUMN_MAX];
    size_t column_count; /* seen so far */
};

static const struct store_column *shape_find(const struct store_table *table, struct text name,
                                             size_t *out_index)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (text_equal(text_of(table->columns[i].name), name)) {
            *out_index = i;
            return &table->columns[i];
        }
    return NULL;
}

/* 0 when the column is no key, else its place in the key, as SQLite counts it. */
static int64_t key_place(const struct store_table *table, size_t index)
{
    int64_t place = 0;
    for (size_t i = 0; i <= index; i++)
        place += table->columns[i].is_key;
    return table->columns[index].is_key ? place : 0;
}

static int read_shape(struct sqlite_connection *connection, const struct store_table *table,
                      struct table_shape *out_shape, struct error *error)
{
    *out_shape = (struct table_shape){.fits = true};
    sqlite3_stmt *statement;
    const struct store_value name = store_text(text_of(table->name));
    if (sqlite_prepare(connection, "SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1)",
                       &statement, error) < 0 ||
        sqlite_bind(connection, statement, 1, &name, error) < 0)
        return -1;
    int result;
    while ((result = sqlite_step(connection, statement, error)) == 1) {
        out_shape->exists = true;
        size_t index = 0;
        const struct store_column *column = shape_find(table, sqlite_column(statement, 0), &index);
        if (!column ||
            !text_equal(sqlite_column(statement, 1), text_of(type_names[column->type])) ||
            sqlite3_column_int(statement, 2) == column->is_optional ||
            sqlite3_column_int64(statement, 3) != key_place(table, index)) {
            out_shape->fits = false;
            continue;
        }
        out_shape->has_column[index] = true;
    }
    if (result < 0)
        return -1;
    for (size_t i = 0; out_shape->exists && i < table->column_count; i++)
        if (!out_shape->has_column[i] && table->columns[i].is_key)
            out_shape->fits = false;
    return 0;
}

static int add_columns(struct sqlite_connection *connection, const struct store_table *table,
                       const struct table_shape *shape, struct error *error)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (shape->has_column[i])
            continue;
        struct buffer sql AUTO_BUFFER;
        buffer_init(&sql, SQL_BYTES_MAX);
        buffer_append_format(&sql, "ALTER TABLE \"%s\" ADD COLUMN ", table->name);
        append_column(&sql, &table->columns[i]);
        if (execute_buffer(connection, &sql, error) < 0)
            return -1;
    }
    return create_indexes(connection, table, error);
}

static bool schema_names(const struct store_schema *schema, struct text name)
{
    for (size_t i = 0; schema && i < schema->table_count; i++)
        if (text_equal(text_of(schema->tables[i].name), name))
            return true;
    return false;
}

/* Drops the caller's tables that `kept` (NULL: none) does not name. */
static int drop_tables(struct sqlite_connection *connection, const struct store_schema *kept,
                       struct error *error)
{
    struct buffer sql AUTO_BUFFER;
    buffer_init(&sql, SQL_BYTES_MAX);
    sqlite3_stmt *statement;
    if (sqlite_prepare(connection,
                       "SELECT name FROM sqlite_schema WHERE type = 'table'"
                       " AND name NOT GLOB 'store_*' AND name NOT GLOB 'sqlite_*'",
                       &statement, error) < 0)
        return -1;
    int result;
    while ((result = sqlite_step(connection, statement, error)) == 1) {
        const struct text name = sqlite_column(statement, 0);
        if (memchr(name.data, '"', name.size)) {
            sqlite3_reset(statement);
            return error_set(error, ERROR_CORRUPT, "\"%.150s\" holds a table that is not ours",
                             connection->path);
        }
        if (!schema_names(kept, name))
            buffer_append_format(&sql, "DROP TABLE \"" TEXT_FORMAT "\";", TEXT_ARGS(name));
    }
    if (result < 0)
        return -1;
    return execute_buffer(connection, &sql, error);
}

static int update_tables(struct sqlite_connection *connection, const struct store_schema *schema,
                         bool *out_fits, struct error *error)
{
    *out_fits = true;
    for (size_t i = 0; i < schema->table_count; i++) {
        const struct store_table *table = &schema->tables[i];
        struct table_shape shape;
        if (read_shape(connection, table, &shape, error) < 0)
            return -1;
        if (!shape.fits) {
            *out_fits = false;
            return 0;
        }
        const int result = shape.exists ? add_columns(connection, table, &shape, error)
                                        : create_table(connection, table, error);
        if (result < 0)
            return -1;
    }
    return drop_tables(connection, schema, error);
}

static int replace_tables(struct sqlite_connection *connection, const struct store_schema *schema,
                          struct error *error)
{
    if (drop_tables(connection, NULL, error) < 0)
        return -1;
    for (size_t i = 0; i < schema->table_count; i++)
        if (create_table(connection, &schema->tables[i], error) < 0)
            return -1;
    struct store_head head;
    if (sqlite_head_get(connection, &head, error) < 0)
        return -1;
    char version[24];
    snprintf(version, sizeof(version), "%" PRIu32, schema->version);
    if (sqlite_meta_set(connection, SQLITE_META_TABLES_VERSION, text_of(version), error) < 0)
        return -1;
    return sqlite_meta_set(connection, SQLITE_META_REBUILD,
                           head.sequence > 0 ? TEXT("1") : TEXT("0"), error);
}

/* ---- For the writer -------------------------------------------------------------------------- */

int sqlite_tables_prepare(struct sqlite_connection *connection, const struct store_schema *schema,
                          bool *out_needs_rebuild, struct error *error)
{
    bool is_empty;
    if (sqlite_format_check(connection, &is_empty, error) < 0)
        return -1;
    if (is_empty) {
        char stamp[96];
        snprintf(stamp, sizeof(stamp), "PRAGMA application_id = %d; PRAGMA user_version = %d;",
                 APPLICATION_ID, FORMAT_VERSION);
        if (sqlite_execute(connection, own_tables, error) < 0 ||
            sqlite_execute(connection, stamp, error) < 0)
            return -1;
    }
    /* Before any table is dropped: who opens the log with the wrong program loses nothing. */
    if (sqlite_log_version_check(connection, schema->log_version, error) < 0 ||
        stamp_log_version(connection, schema->log_version, error) < 0)
        return -1;
    uint64_t version;
    uint64_t mark;
    if (sqlite_meta_number(connection, SQLITE_META_TABLES_VERSION, &version, error) < 0)
        return -1;
    bool fits = !is_empty && version == schema->version;
    if (fits && update_tables(connection, schema, &fits, error) < 0)
        return -1;
    if (!fits && replace_tables(connection, schema, error) < 0)
        return -1;
    if (sqlite_meta_number(connection, SQLITE_META_REBUILD, &mark, error) < 0)
        return -1;
    *out_needs_rebuild = mark != 0;
    return 0;
}

int sqlite_tables_clear(struct sqlite_connection *connection, const struct store_schema *schema,
                        struct error *error)
{
    struct buffer sql AUTO_BUFFER;
    buffer_init(&sql, SQL_BYTES_MAX);
    for (size_t i = 0; i < schema->table_count; i++)
        buffer_append_format(&sql, "DELETE FROM \"%s\";", schema->tables[i].name);
    if (execute_buffer(connection, &sql, error) < 0)
        return -1;
    return sqlite_meta_set(connection, SQLITE_META_REBUILD, TEXT("1"), error);
}
