#include "base/assert.h"
#include "store/store_sqlite_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>

enum { CHECKPOINT_PAGES = 2000, LOG_PAGES_MAX = 16000 };

struct table_statements {
    sqlite3_stmt *put;
    sqlite3_stmt *delete;
};

struct sqlite_store {
    struct store store; /* first: a struct store pointer is one to this */
    struct sqlite_connection connection;
    int lock_fd;
    struct sqlite_checkpointer *checkpointer;
    sqlite3_stmt *append;
    struct table_statements tables[STORE_TABLE_MAX]; /* by their index in the schema */
    /* A COMMIT failed after its frames may have been written whole to the write-ahead log: until
     * another commit overwrites them, a restart could take them for committed. */
    bool must_settle;
};

static struct sqlite_store *sqlite_store_of(struct store *store)
{
    return (struct sqlite_store *)(void *)store;
}

/* ---- One process at a time ------------------------------------------------------------------- */

/* SQLite's own locks come and go with transactions; this one is held while the store is open, and
 * the kernel lets go of it however the process ends. */
static int lock_location(const char *location, int *out_fd, struct error *error)
{
    char path[4096];
    const int length = snprintf(path, sizeof(path), "%s.lock", location);
    if (length < 0 || (size_t)length >= sizeof(path))
        return error_set(error, ERROR_INVALID, "the path \"%.100s...\" is too long", location);
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%.200s\"", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return error_set_errno(error, errno, "lock \"%.200s\"", path);
        char holder[24] = "";
        const ssize_t size = pread(fd, holder, sizeof(holder) - 1, 0);
        const bool is_known = size > 0 && strspn(holder, "0123456789") == (size_t)size;
        return error_set(error, ERROR_CONFLICT,
                         "\"%.120s\" is in use by another server%s%s: stop it first", location,
                         is_known ? ", process " : "", is_known ? holder : "");
    }
    char holder[24];
    const int size = snprintf(holder, sizeof(holder), "%d", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, holder, (size_t)size, 0) < 0)
        return error_set_errno(error, errno, "write \"%.200s\"", path);
    *out_fd = TAKE_FD(fd);
    return 0;
}

/* ---- Transactions ---------------------------------------------------------------------------- */

/* Any commit overwrites what a failed one left in the write-ahead log. */
static int settle(struct sqlite_store *self, struct error *error)
{
    if (!self->must_settle)
        return 0;
    if (sqlite_meta_set(&self->connection, SQLITE_META_SETTLED, TEXT("1"), error) < 0)
        return -1;
    self->must_settle = false;
    return 0;
}

static int begin(struct sqlite_store *self, struct error *error)
{
    if (settle(self, error) < 0)
        return -1;
    return sqlite_execute(&self->connection, "BEGIN IMMEDIATE", error);
}

static void rollback(struct sqlite_store *self)
{
    struct error error;
    /* The transaction is gone already after some errors. That the rollback itself fails means that
     * the connection is beyond use, and then the next BEGIN says so. */
    if (!sqlite3_get_autocommit(self->connection.handle))
        (void)!sqlite_execute(&self->connection, "ROLLBACK", &error);
}

/* Ends what begin began: commits when `result` is 0, else rolls back and keeps the first error. */
static int end(struct sqlite_store *self, int result, struct error *error)
{
    if (result < 0) {
        rollback(self);
        return -1;
    }
    if (sqlite_execute(&self->connection, "COMMIT", error) == 0)
        return 0;
    rollback(self);
    self->must_settle = true;
    struct error second;
    (void)!settle(self, &second); /* tried again before the next transaction */
    return -1;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int prepare_kept(struct sqlite_store *self, struct buffer *sql, sqlite3_stmt **out_statement,
                        struct error *error)
{
    const char *string = buffer_string(sql);
    if (buffer_check(sql, error) < 0)
        return -1;
    const int result = sqlite3_prepare_v3(self->connection.handle, string, -1,
                                          SQLITE_PREPARE_PERSISTENT, out_statement, NULL);
    buffer_clear(sql);
    return result == SQLITE_OK ? 0 : sqlite_fail(&self->connection, result, error);
}

/* The statements of every commit stand ready, apart from the cache. */
static int prepare_statements(struct sqlite_store *self, struct error *error)
{
    struct buffer sql AUTO_BUFFER;
    buffer_init(&sql, 1 << 16);
    buffer_append_string(&sql, "INSERT INTO store_events(sequence, time_ms, kind, body, hash)"
                               " VALUES(?1, ?2, ?3, ?4, ?5)");
    if (prepare_kept(self, &sql, &self->append, error) < 0)
        return -1;
    for (size_t i = 0; i < self->store.schema->table_count; i++) {
        const struct store_table *table = &self->store.schema->tables[i];
        buffer_append_format(&sql, "INSERT OR REPLACE INTO \"%s\"(", table->name);
        for (size_t k = 0; k < table->column_count; k++)
            buffer_append_format(&sql, "%s\"%s\"", k ? ", " : "", table->columns[k].name);
        buffer_append_string(&sql, ") VALUES(");
        for (size_t k = 0; k < table->column_count; k++)
            buffer_append_format(&sql, "%s?%zu", k ? ", " : "", k + 1);
        buffer_append_string(&sql, ")");
        if (prepare_kept(self, &sql, &self->tables[i].put, error) < 0)
            return -1;
        buffer_append_format(&sql, "DELETE FROM \"%s\" WHERE ", table->name);
        for (size_t k = 0; k < store_table_key_count(table); k++)
            buffer_append_format(&sql, "%s\"%s\" = ?%zu", k ? " AND " : "",
                                 table->columns[store_table_key_index(table, k)].name, k + 1);
        if (prepare_kept(self, &sql, &self->tables[i].delete, error) < 0)
            return -1;
    }
    return 0;
}

/* The log must end where the last commit left it, or events that were acknowledged are gone. */
static int check_head(struct sqlite_store *self, struct error *error)
{
    struct store_head head = {0};
    sqlite3_stmt *statement;
    if (sqlite_head_get(&self->connection, &self->store.head, error) < 0 ||
        sqlite_prepare(&self->connection,
                       "SELECT sequence, hash FROM store_events ORDER BY sequence DESC LIMIT 1",
                       &statement, error) < 0)
        return -1;
    const int result = sqlite_step(&self->connection, statement, error);
    if (result < 0)
        return -1;
    if (result == 1) {
        const struct text hash = sqlite_column(statement, 1);
        head.sequence = (uint64_t)sqlite3_column_int64(statement, 0);
        if (hash.size == STORE_HASH_SIZE)
            memcpy(head.hash, hash.data, STORE_HASH_SIZE);
    }
    sqlite3_reset(statement);
    if (memcmp(&head, &self->store.head, sizeof(head)) != 0)
        return error_set(error, ERROR_CORRUPT,
                         "the log in \"%.120s\" ends at event %" PRIu64
                         ", not as committed at event %" PRIu64,
                         self->connection.path, head.sequence, self->store.head.sequence);
    return 0;
}

static int prepare_tables(struct sqlite_store *self, struct error *error)
{
    if (begin(self, error) < 0)
        return -1;
    const int result = sqlite_tables_prepare(&self->connection, self->store.schema,
                                             &self->store.needs_rebuild, error);
    return end(self, result, error);
}

/* Half built is fine. */
static void sqlite_store_free(struct sqlite_store *self)
{
    sqlite_checkpointer_free(self->checkpointer);
    sqlite3_finalize(self->append);
    for (size_t i = 0; i < STORE_TABLE_MAX; i++) {
        sqlite3_finalize(self->tables[i].put);
        sqlite3_finalize(self->tables[i].delete);
    }
    if (self->connection.handle)
        sqlite_connection_close(&self->connection);
    if (self->lock_fd >= 0)
        close(self->lock_fd);
    free(self);
}

static void sqlite_close(struct store *store)
{
    sqlite_store_free(sqlite_store_of(store));
}

static int sqlite_open(const struct store_options *options, struct store **out_store,
                       struct error *error)
{
    struct sqlite_store *self = calloc(1, sizeof(*self));
    ASSERT(self);
    self->store = (struct store){.ops = &store_ops_sqlite, .schema = options->schema};
    self->lock_fd = -1;
    if (lock_location(options->location, &self->lock_fd, error) < 0 ||
        sqlite_connection_open(&self->connection, options, CONNECTION_WRITE, error) < 0 ||
        prepare_tables(self, error) < 0 || check_head(self, error) < 0 ||
        prepare_statements(self, error) < 0) {
        sqlite_store_free(self);
        return -1;
    }
    const struct sqlite_checkpoint_limits limits = {
        .pages_wanted = CHECKPOINT_PAGES,
        .pages_max = LOG_PAGES_MAX,
        .is_alone = options->file_system, /* one that fails on purpose serves one thread */
    };
    self->checkpointer = sqlite_checkpointer_new(&self->connection, &limits);
    *out_store = &self->store;
    return 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int run(struct sqlite_store *self, sqlite3_stmt *statement, const struct store_value *values,
               size_t value_count, struct error *error)
{
    for (size_t i = 0; i < value_count; i++)
        if (sqlite_bind(&self->connection, statement, (int)i + 1, &values[i], error) < 0)
            return -1;
    return sqlite_step(&self->connection, statement, error);
}

static int apply(struct sqlite_store *self, const struct store_change *change,
                 struct store_head *head, struct error *error)
{
    const struct store_schema *schema = self->store.schema;
    size_t table_index = 0;
    if (change->table) {
        ASSERT(change->table >= schema->tables &&
               change->table < schema->tables + schema->table_count);
        table_index = (size_t)(change->table - schema->tables);
    }
    switch (change->kind) {
    case STORE_CHANGE_EVENT: {
        store_chain_next(head, change->time_ms, change->name, change->body);
        const struct store_value values[] = {store_integer((int64_t)head->sequence),
                                             store_integer(change->time_ms),
                                             store_text(change->name), store_text(change->body),
                                             store_blob(head->hash, STORE_HASH_SIZE)};
        return run(self, self->append, values, sizeof(values) / sizeof(*values), error);
    }
    case STORE_CHANGE_PUT:
        return run(self, self->tables[table_index].put, change->values, change->value_count, error);
    case STORE_CHANGE_DELETE:
        return run(self, self->tables[table_index].delete, change->values, change->value_count,
                   error);
    case STORE_CHANGE_META:
        return sqlite_meta_set(&self->connection, change->name, change->body, error);
    }
    return error_set(error, ERROR_INVALID, "a change of kind %d", (int)change->kind);
}

static int sqlite_commit(struct store *store, const struct store_batch *batch,
                         struct store_head *head, struct error *error)
{
    struct sqlite_store *self = sqlite_store_of(store);
    if (begin(self, error) < 0)
        return -1;
    int result = 0;
    for (const struct store_change *change = batch->first; change && result == 0;
         change = change->next)
        result = apply(self, change, head, error);
    if (result == 0 && batch->event_count > 0)
        result = sqlite_head_set(&self->connection, head, error);
    return end(self, result, error);
}

static int sqlite_clear(struct store *store, struct error *error)
{
    struct sqlite_store *self = sqlite_store_of(store);
    if (begin(self, error) < 0)
        return -1;
    return end(self, sqlite_tables_clear(&self->connection, store->schema, error), error);
}

static int sqlite_built(struct store *store, struct error *error)
{
    struct sqlite_store *self = sqlite_store_of(store);
    if (begin(self, error) < 0)
        return -1;
    return end(self, sqlite_meta_set(&self->connection, SQLITE_META_REBUILD, TEXT("0"), error),
               error);
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static int check_snapshot_hash(struct sqlite_store *self, const struct store_head *head,
                               struct error *error)
{
    sqlite3_stmt *statement;
    const struct store_value values[] = {store_integer((int64_t)head->sequence),
                                         store_blob(head->hash, STORE_HASH_SIZE)};
    if (sqlite_prepare(&self->connection,
                       "SELECT 1 FROM store_events WHERE sequence = ?1 AND hash = ?2", &statement,
                       error) < 0)
        return -1;
    const int result = run(self, statement, values, 2, error);
    sqlite3_reset(statement);
    if (result == 0)
        return error_set(error, ERROR_INVALID,
                         "the snapshot at event %" PRIu64 " does not belong to this log",
                         head->sequence);
    return result < 0 ? -1 : 0;
}

static int save_snapshot(struct sqlite_store *self, const struct store_snapshot *snapshot,
                         const uint8_t checksum[STORE_HASH_SIZE], struct error *error)
{
    if (check_snapshot_hash(self, &snapshot->head, error) < 0)
        return -1;
    const struct store_value values[] = {store_integer((int64_t)snapshot->head.sequence),
                                         store_blob(snapshot->head.hash, STORE_HASH_SIZE),
                                         store_blob(checksum, STORE_HASH_SIZE),
                                         store_blob(snapshot->bytes.data, snapshot->bytes.size)};
    sqlite3_stmt *statement;
    if (sqlite_prepare(&self->connection,
                       "INSERT OR REPLACE INTO"
                       " store_snapshots(sequence, event_hash, checksum, bytes)"
                       " VALUES(?1, ?2, ?3, ?4)",
                       &statement, error) < 0 ||
        run(self, statement, values, 4, error) < 0)
        return -1;
    const struct store_value kept = store_integer(STORE_SNAPSHOTS_KEPT);
    if (sqlite_prepare(&self->connection,
                       "DELETE FROM store_snapshots WHERE sequence NOT IN (SELECT sequence"
                       " FROM store_snapshots ORDER BY sequence DESC LIMIT ?1)",
                       &statement, error) < 0)
        return -1;
    return run(self, statement, &kept, 1, error);
}

static int sqlite_snapshot_save(struct store *store, const struct store_snapshot *snapshot,
                                const uint8_t checksum[STORE_HASH_SIZE], struct error *error)
{
    struct sqlite_store *self = sqlite_store_of(store);
    if (begin(self, error) < 0)
        return -1;
    return end(self, save_snapshot(self, snapshot, checksum, error), error);
}

const struct store_ops store_ops_sqlite = {
    .name = "sqlite",
    .open = sqlite_open,
    .close = sqlite_close,
    .commit = sqlite_commit,
    .tables_clear = sqlite_clear,
    .tables_built = sqlite_built,
    .snapshot_save = sqlite_snapshot_save,
    .reader_open = sqlite_reader_open,
    .reader_close = sqlite_reader_close,
    .read_begin = sqlite_read_begin,
    .read_end = sqlite_read_end,
    .read_events = sqlite_read_events,
    .read_listed = sqlite_read_listed,
    .read_head = sqlite_read_head,
    .read_meta = sqlite_read_meta,
    .read_rows = sqlite_read_rows,
    .read_snapshots = sqlite_read_snapshots,
};
