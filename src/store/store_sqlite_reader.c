#include "base/assert.h"
#include "store/store_sqlite_internal.h"

#include <inttypes.h>

/* ---- Opening --------------------------------------------------------------------------------- */

static int check_version(struct sqlite_connection *connection, const struct store_schema *schema,
                         struct error *error)
{
    bool is_empty;
    if (sqlite_format_check(connection, &is_empty, error) < 0)
        return -1;
    if (is_empty)
        return error_set(error, ERROR_NOT_FOUND, "\"%.150s\" holds no store yet", connection->path);
    if (schema && sqlite_log_version_check(connection, schema->log_version, error) < 0)
        return -1;
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
    struct sqlite_connection *connection = &sqlite_reader_of(reader)->connection;
    sqlite3_stmt *statement = NULL;
    if (sqlite_prepare(connection, "BEGIN", &statement, error) < 0)
        return -1;
    return sqlite_step(connection, statement, error);
}

void sqlite_read_end(struct store_reader *reader)
{
    struct sqlite_connection *connection = &sqlite_reader_of(reader)->connection;
    struct error error;
    sqlite3_stmt *statement = NULL;
    /* Nothing was written: there is nothing to lose, and a connection beyond use fails to begin. */
    if (sqlite_prepare(connection, "ROLLBACK", &statement, &error) == 0)
        (void)!sqlite_step(connection, statement, &error);
}

/* ---- The log --------------------------------------------------------------------------------- */

/* Texts are good until the next step. */
static struct store_event event_of(sqlite3_stmt *statement)
{
    struct store_event event = {
        .sequence = (uint64_t)sqlite3_column_int64(statement, 0),
        .time_ms = sqlite3_column_int64(statement, 1),
        .kind = sqlite_column(statement, 2),
        .body = sqlite_column(statement, 3),
    };
    const struct text hash = sqlite_column(statement, 4);
    if (hash.size == STORE_HASH_SIZE) /* else it stays zero, and is found wrong */
        memcpy(event.hash, hash.data, STORE_HASH_SIZE);
    return event;
}

/* Calls back for every row of a statement that is bound. 1: the callback had enough. */
static int each_event(struct sqlite_connection *connection, sqlite3_stmt *statement,
                      store_event_callback *callback, void *context, struct error *error)
{
    int result;
    while ((result = sqlite_step(connection, statement, error)) == 1) {
        const struct store_event event = event_of(statement);
        const int answer = callback(&event, context, error);
        if (answer != 0) {
            sqlite3_reset(statement);
            return answer;
        }
    }
    return result;
}

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
    return each_event(connection, statement, callback, context, error) < 0 ? -1 : 0;
}

int sqlite_read_listed(struct store_reader *reader, const uint64_t *sequences, size_t count,
                       store_event_callback *callback, void *context, struct error *error)
{
    struct sqlite_connection *connection = &sqlite_reader_of(reader)->connection;
    sqlite3_stmt *statement;
    if (sqlite_prepare(connection,
                       "SELECT sequence, time_ms, kind, body, hash FROM store_events"
                       " WHERE sequence = ?1",
                       &statement, error) < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const struct store_value sequence = store_integer((int64_t)(sequences[i] & INT64_MAX));
        if (sequences[i] > INT64_MAX)
            continue;
        if (sqlite_bind(connection, statement, 1, &sequence, error) < 0)
            return -1;
        result = each_event(connection, statement, callback, context, error);
    }
    return result < 0 ? -1 : 0;
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
