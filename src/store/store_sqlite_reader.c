#include "base/assert.h"
#include "store/store_sqlite_internal.h"

#include <inttypes.h>

struct sqlite_reader {
    struct store_reader reader; /* first */
    struct sqlite_connection connection;
};

static struct sqlite_reader *sqlite_reader_of(struct store_reader *reader)
{
    return (struct sqlite_reader *)(void *)reader;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int check_version(struct sqlite_connection *connection, const struct store_schema *schema,
                         struct error *error)
{
    bool is_empty;
    if (sqlite_format_check(connection, &is_empty, error) < 0)
        return -1;
    if (is_empty)
        return error_set(error, ERROR_NOT_FOUND, "\"%.150s\" holds no store yet", connection->path);
    uint64_t version;
    if (sqlite_meta_number(connection, SQLITE_META_TABLES_VERSION, &version, error) < 0)
        return -1;
    if (schema && version != schema->version)
        return error_set(error, ERROR_CONFLICT,
                         "the tables in \"%.120s\" have version %" PRIu64 ", not %" PRIu32
                         ": a server must open it first",
                         connection->path, version, schema->version);
    return 0;
}

static void sqlite_reader_free(struct sqlite_reader *self)
{
    if (!self)
        return;
    if (self->connection.handle)
        sqlite_connection_close(&self->connection);
    free(self);
}
DEFINE_AUTO(sqlite_reader);

void sqlite_reader_close(struct store_reader *reader)
{
    sqlite_reader_free(sqlite_reader_of(reader));
}

static int open_to_read(struct sqlite_reader *self, const struct store_options *options,
                        enum connection_access access, struct error *error)
{
    if (sqlite_connection_open(&self->connection, options, access, error) < 0)
        return -1;
    if (check_version(&self->connection, options->schema, error) == 0)
        return 0;
    sqlite_connection_close(&self->connection);
    return -1;
}

int sqlite_reader_open(const struct store_options *options, struct store_reader **out_reader,
                       struct error *error)
{
    AUTO(sqlite_reader) struct sqlite_reader *self = calloc(1, sizeof(*self));
    ASSERT(self);
    self->reader = (struct store_reader){.ops = &store_ops_sqlite, .schema = options->schema};
    if (open_to_read(self, options, CONNECTION_READ, error) < 0) {
        /* Reading needs a small file beside the store, for which a full or read-only disk has no
         * place. Nobody else can have it open then, or the file would be there. */
        struct error second;
        if ((error->code != ERROR_EXHAUSTED && error->code != ERROR_REFUSED) ||
            open_to_read(self, options, CONNECTION_READ_ALONE, &second) < 0)
            return -1;
    }
    *out_reader = &TAKE(self)->reader;
    return 0;
}

int sqlite_read_begin(struct store_reader *reader, struct error *error)
{
    return sqlite_execute(&sqlite_reader_of(reader)->connection, "BEGIN", error);
}

void sqlite_read_end(struct store_reader *reader)
{
    struct error error;
    /* Nothing was written: there is nothing to lose, and a connection beyond use fails to begin. */
    (void)!sqlite_execute(&sqlite_reader_of(reader)->connection, "ROLLBACK", &error);
}

/* ---- The log --------------------------------------------------------------------------------- */

int sqlite_read_events(struct store_reader *reader, uint64_t from_sequence,
                       store_event_callback *callback, void *context, struct error *error)
{
    struct sqlite_connection *connection = &sqlite_reader_of(reader)->connection;
    if (from_sequence > INT64_MAX)
        return 0;
    const struct store_value from = store_integer((int64_t)from_sequence);
    sqlite3_stmt *statement;
    if (sqlite_prepare(connection,
                       "SELECT sequence, time_ms, kind, body, hash FROM store_events"
                       " WHERE sequence >= ?1 ORDER BY sequence",
                       &statement, error) < 0 ||
        sqlite_bind(connection, statement, 1, &from, error) < 0)
        return -1;
    int result;
    while ((result = sqlite_step(connection, statement, error)) == 1) {
        struct store_event event = {
            .sequence = (uint64_t)sqlite3_column_int64(statement, 0),
            .time_ms = sqlite3_column_int64(statement, 1),
            .kind = sqlite_column(statement, 2),
            .body = sqlite_column(statement, 3),
        };
        const struct text hash = sqlite_column(statement, 4);
        if (hash.size == STORE_HASH_SIZE) /* else it stays zero, and is found wrong */
            memcpy(event.hash, hash.data, STORE_HASH_SIZE);
        const int answer = callback(&event, context, error);
        if (answer != 0) {
            sqlite3_reset(statement);
            return answer < 0 ? -1 : 0;
        }
    }
    return result;
}

int sqlite_read_head(struct store_reader *reader, struct store_head *out_head, struct error *error)
{
    return sqlite_head_get(&sqlite_reader_of(reader)->connection, out_head, error);
}

int sqlite_read_meta(struct store_reader *reader, struct text key, struct buffer *out,
                     bool *out_is_found, struct error *error)
{
    return sqlite_meta_get(&sqlite_reader_of(reader)->connection, key, out, out_is_found, error);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static const char *const compare_sql[STORE_COMPARE_COUNT] = {
    [STORE_EQUAL] = "=",
    [STORE_LESS] = "<",
    [STORE_GREATER] = ">",
    [STORE_LESS_OR_EQUAL] = "<=",
    [STORE_GREATER_OR_EQUAL] = ">=",
};

/* SQL under construction, with the values its parameters will get. */
struct sqlite_query {
    struct buffer sql;
    struct store_value values[STORE_FILTER_MAX + STORE_COLUMN_MAX + 2];
    size_t value_count;
};

static void add_value(struct sqlite_query *query, const struct store_value *value)
{
    ASSERT(query->value_count < sizeof(query->values) / sizeof(*query->values));
    query->values[query->value_count++] = *value;
    buffer_append_format(&query->sql, "?%zu", query->value_count);
}

/* The tuple rows are ordered by: the order column, when it counts, and the key. */
static void add_order_columns(struct sqlite_query *query, const struct store_plan *plan,
                              bool has_order, const char *suffix)
{
    const struct store_table *table = plan->table;
    if (has_order)
        buffer_append_format(&query->sql, "\"%s\"%s, ", table->columns[plan->order_index].name,
                             suffix);
    const size_t key_count = store_table_key_count(table);
    for (size_t i = 0; i < key_count; i++)
        buffer_append_format(&query->sql, "%s\"%s\"%s", i ? ", " : "",
                             table->columns[store_table_key_index(table, i)].name, suffix);
}

static void add_tuple_compare(struct sqlite_query *query, const struct store_plan *plan,
                              bool has_order)
{
    buffer_append_string(&query->sql, "(");
    add_order_columns(query, plan, has_order, "");
    buffer_append_format(&query->sql, ") %s (", plan->is_descending ? "<" : ">");
    if (has_order) {
        add_value(query, &plan->order_value);
        buffer_append_string(&query->sql, ", ");
    }
    for (size_t i = 0; i < store_table_key_count(plan->table); i++) {
        if (i)
            buffer_append_string(&query->sql, ", ");
        add_value(query, &plan->key_values[i]);
    }
    buffer_append_string(&query->sql, ")");
}

/* Rows after the cursor. Nulls come first going up and last going down, and a comparison with null
 * is never true, so a column that may be null needs its own cases. */
static void add_cursor(struct sqlite_query *query, const struct store_plan *plan)
{
    const struct store_column *order = &plan->table->columns[plan->order_index];
    const bool is_after_null = plan->has_order && plan->order_value.is_null;
    buffer_append_string(&query->sql, " AND (");
    if (is_after_null)
        buffer_append_format(&query->sql, "\"%s\" %s ", order->name,
                             plan->is_descending ? "IS NULL AND" : "IS NOT NULL OR");
    add_tuple_compare(query, plan, plan->has_order && !is_after_null);
    if (plan->has_order && order->is_optional && !is_after_null && plan->is_descending)
        buffer_append_format(&query->sql, " OR \"%s\" IS NULL", order->name);
    buffer_append_string(&query->sql, ")");
}

static void build_query(struct sqlite_query *query, const struct store_plan *plan)
{
    const struct store_table *table = plan->table;
    buffer_append_string(&query->sql, "SELECT ");
    for (size_t i = 0; i < table->column_count; i++)
        buffer_append_format(&query->sql, "%s\"%s\"", i ? ", " : "", table->columns[i].name);
    buffer_append_format(&query->sql, " FROM \"%s\" WHERE 1", table->name);
    for (size_t i = 0; i < plan->filter_count; i++) {
        const struct store_plan_filter *filter = &plan->filters[i];
        const bool is_null_search = filter->value.is_null && filter->compare == STORE_EQUAL;
        buffer_append_format(&query->sql, " AND \"%s\" %s ",
                             table->columns[filter->column_index].name,
                             is_null_search ? "IS" : compare_sql[filter->compare]);
        add_value(query, &filter->value);
    }
    if (plan->has_cursor)
        add_cursor(query, plan);
    buffer_append_string(&query->sql, " ORDER BY ");
    add_order_columns(query, plan, plan->has_order, plan->is_descending ? " DESC" : "");
    buffer_append_string(&query->sql, " LIMIT ");
    const struct store_value limit = store_integer(plan->limit);
    add_value(query, &limit);
}

static struct store_value read_value(sqlite3_stmt *statement, int index, enum store_type type)
{
    if (sqlite3_column_type(statement, index) == SQLITE_NULL)
        return store_null(type);
    if (type == STORE_INTEGER)
        return store_integer(sqlite3_column_int64(statement, index));
    if (type == STORE_REAL)
        return store_real(sqlite3_column_double(statement, index));
    return (struct store_value){.type = type, .bytes = sqlite_column(statement, index)};
}

static int step_rows(struct sqlite_connection *connection, sqlite3_stmt *statement,
                     const struct store_table *table, store_row_callback *callback, void *context,
                     struct error *error)
{
    int result;
    while ((result = sqlite_step(connection, statement, error)) == 1) {
        struct store_value values[STORE_COLUMN_MAX];
        for (size_t i = 0; i < table->column_count; i++)
            values[i] = read_value(statement, (int)i, table->columns[i].type);
        const struct store_row row = {table, values};
        const int answer = callback(&row, context, error);
        if (answer != 0) {
            sqlite3_reset(statement);
            return answer < 0 ? -1 : 0;
        }
    }
    return result;
}

int sqlite_read_rows(struct store_reader *reader, const struct store_plan *plan,
                     store_row_callback *callback, void *context, struct error *error)
{
    struct sqlite_connection *connection = &sqlite_reader_of(reader)->connection;
    struct sqlite_query query = {0};
    buffer_init(&query.sql, 1 << 16);
    build_query(&query, plan);
    sqlite3_stmt *statement = NULL;
    const char *sql = buffer_string(&query.sql);
    int result = buffer_check(&query.sql, error);
    if (result == 0)
        result = sqlite_prepare(connection, sql, &statement, error);
    buffer_done(&query.sql);
    for (size_t i = 0; result == 0 && i < query.value_count; i++)
        result = sqlite_bind(connection, statement, (int)i + 1, &query.values[i], error);
    if (result < 0)
        return -1;
    return step_rows(connection, statement, plan->table, callback, context, error);
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static void copy_hash(uint8_t out[STORE_HASH_SIZE], struct text bytes)
{
    memset(out, 0, STORE_HASH_SIZE);
    if (bytes.size == STORE_HASH_SIZE)
        memcpy(out, bytes.data, STORE_HASH_SIZE);
}

int sqlite_read_snapshots(struct store_reader *reader, store_snapshot_callback *callback,
                          void *context, struct error *error)
{
    struct sqlite_connection *connection = &sqlite_reader_of(reader)->connection;
    sqlite3_stmt *statement;
    if (sqlite_prepare(connection,
                       "SELECT s.sequence, s.event_hash, s.checksum, s.bytes, e.hash"
                       " FROM store_snapshots s LEFT JOIN store_events e USING(sequence)"
                       " ORDER BY s.sequence DESC",
                       &statement, error) < 0)
        return -1;
    int result;
    while ((result = sqlite_step(connection, statement, error)) == 1) {
        struct store_stored_snapshot stored = {
            .snapshot = {.head = {.sequence = (uint64_t)sqlite3_column_int64(statement, 0)},
                         .bytes = sqlite_column(statement, 3)}};
        copy_hash(stored.snapshot.head.hash, sqlite_column(statement, 1));
        copy_hash(stored.checksum, sqlite_column(statement, 2));
        copy_hash(stored.log_hash, sqlite_column(statement, 4));
        const int answer = callback(&stored, context, error);
        if (answer != 0) {
            sqlite3_reset(statement);
            return answer < 0 ? -1 : 0;
        }
    }
    return result;
}
