#include "base/assert.h"
#include "store/store_sqlite_internal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

enum { STATEMENTS_MAX = 128, BUSY_TIMEOUT_MS = 2000 };

/* ---- Errors ---------------------------------------------------------------------------------- */

int sqlite_fail(const struct sqlite_connection *connection, int result, struct error *error)
{
    const char *path = connection->path;
    sqlite3 *handle = connection->handle;
    const int errno_value = handle ? sqlite3_system_errno(handle) : 0;
    const bool is_full = errno_value == ENOSPC || errno_value == EDQUOT || errno_value == EFBIG;
    switch (result & 0xff) {
    case SQLITE_FULL:
        return error_set(error, ERROR_EXHAUSTED,
                         "the disk holding \"%.150s\" is full: nothing was written", path);
    case SQLITE_IOERR:
        if (is_full)
            return error_set(error, ERROR_EXHAUSTED,
                             "the disk holding \"%.150s\" is full: nothing was written", path);
        if (result == SQLITE_IOERR_NOMEM)
            return error_set(error, ERROR_EXHAUSTED, "out of memory");
        return error_set(error, ERROR_UNAVAILABLE,
                         "the disk holding \"%.130s\" failed (%s, SQLite code %d)", path,
                         errno_value ? strerrordesc_np(errno_value) : "I/O error", result);
    case SQLITE_READONLY:
        return error_set(error, ERROR_REFUSED, "\"%.150s\" or its disk is read-only", path);
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return error_set(error, ERROR_REFUSED, "no permission to use \"%.150s\"", path);
    case SQLITE_CANTOPEN:
        return error_set_errno(error, errno_value ? errno_value : EACCES, "open \"%.150s\"", path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(error, ERROR_UNAVAILABLE,
                         "\"%.150s\" is locked by another program: try again when it is done",
                         path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_set(error, ERROR_CORRUPT,
                         "\"%.120s\" is damaged (%s): restore it from a backup", path,
                         sqlite3_errstr(result));
    case SQLITE_NOMEM:
        return error_set(error, ERROR_EXHAUSTED, "out of memory");
    case SQLITE_TOOBIG:
        return error_set(error, ERROR_EXHAUSTED, "a value is too long for \"%.150s\"", path);
    default:
        return error_set(error, ERROR_UNAVAILABLE, "\"%.120s\": %.100s", path,
                         handle ? sqlite3_errmsg(handle) : sqlite3_errstr(result));
    }
}

/* ---- Statements ------------------------------------------------------------------------------ */

int sqlite_execute(struct sqlite_connection *connection, const char *sql, struct error *error)
{
    const int result = sqlite3_exec(connection->handle, sql, NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : sqlite_fail(connection, result, error);
}

static void statements_clear(struct sqlite_connection *connection)
{
    for (size_t i = 0; i < connection->statements.count; i++)
        sqlite3_finalize(connection->statements.entries[i].value);
    map_done(&connection->statements);
    map_init(&connection->statements);
}

int sqlite_prepare_as(struct sqlite_connection *connection, struct text key, const char *sql,
                      sqlite3_stmt **out_statement, struct error *error)
{
    sqlite3_stmt *statement = map_get_text(&connection->statements, key);
    if (!statement && sql) {
        /* Few shapes of query exist; should a caller make many, starting over bounds the memory. */
        if (connection->statements.count >= STATEMENTS_MAX)
            statements_clear(connection);
        const int result = sqlite3_prepare_v3(connection->handle, sql, -1,
                                              SQLITE_PREPARE_PERSISTENT, &statement, NULL);
        if (result != SQLITE_OK)
            return sqlite_fail(connection, result, error);
        map_put_text(&connection->statements, key, statement);
    }
    *out_statement = statement;
    return 0;
}

int sqlite_prepare(struct sqlite_connection *connection, const char *sql,
                   sqlite3_stmt **out_statement, struct error *error)
{
    if (sqlite_prepare_as(connection, text_of(sql), sql, out_statement, error) < 0)
        return -1;
    sqlite3_reset(*out_statement);
    sqlite3_clear_bindings(*out_statement);
    return 0;
}

int sqlite_step(struct sqlite_connection *connection, sqlite3_stmt *statement, struct error *error)
{
    const int result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        return 1;
    if (result == SQLITE_DONE) {
        sqlite3_reset(statement);
        return 0;
    }
    (void)sqlite_fail(connection, result, error);
    sqlite3_reset(statement); /* gives the same code again, already told */
    return -1;
}

int sqlite_bind(struct sqlite_connection *connection, sqlite3_stmt *statement, int index,
                const struct store_value *value, struct error *error)
{
    int result;
    /* A NULL pointer would bind null instead of an empty value. */
    const char *bytes = value->type == STORE_TEXT || value->type == STORE_BLOB
                            ? (value->bytes.data ? value->bytes.data : "")
                            : NULL;
    if (value->is_null)
        result = sqlite3_bind_null(statement, index);
    else if (value->type == STORE_INTEGER)
        result = sqlite3_bind_int64(statement, index, value->integer);
    else if (value->type == STORE_REAL)
        result = sqlite3_bind_double(statement, index, value->real);
    else if (value->type == STORE_TEXT)
        result = sqlite3_bind_text64(statement, index, bytes, value->bytes.size, SQLITE_STATIC,
                                     SQLITE_UTF8);
    else
        result = sqlite3_bind_blob64(statement, index, bytes, value->bytes.size, SQLITE_STATIC);
    return result == SQLITE_OK ? 0 : sqlite_fail(connection, result, error);
}

struct text sqlite_column(sqlite3_stmt *statement, int index)
{
    const void *data = sqlite3_column_type(statement, index) == SQLITE_TEXT
                           ? sqlite3_column_text(statement, index)
                           : sqlite3_column_blob(statement, index);
    const int size = sqlite3_column_bytes(statement, index);
    return data ? (struct text){data, (size_t)size} : TEXT("");
}

/* ---- Meta ------------------------------------------------------------------------------------ */

int sqlite_meta_get(struct sqlite_connection *connection, struct text key, struct buffer *out,
                    bool *out_is_found, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    const struct store_value value = store_text(key);
    if (sqlite_prepare(connection, "SELECT value FROM store_meta WHERE key = ?1", &statement,
                       error) < 0 ||
        sqlite_bind(connection, statement, 1, &value, error) < 0)
        return -1;
    const int result = sqlite_step(connection, statement, error);
    if (result < 0)
        return -1;
    *out_is_found = result == 1;
    if (result == 1)
        buffer_append_text(out, sqlite_column(statement, 0));
    sqlite3_reset(statement);
    return 0;
}

int sqlite_meta_set(struct sqlite_connection *connection, struct text key, struct text value,
                    struct error *error)
{
    sqlite3_stmt *statement;
    const struct store_value bound[] = {store_text(key), store_blob(value.data, value.size)};
    if (sqlite_prepare(connection, "INSERT OR REPLACE INTO store_meta(key, value) VALUES(?1, ?2)",
                       &statement, error) < 0 ||
        sqlite_bind(connection, statement, 1, &bound[0], error) < 0 ||
        sqlite_bind(connection, statement, 2, &bound[1], error) < 0)
        return -1;
    return sqlite_step(connection, statement, error);
}

int sqlite_meta_number(struct sqlite_connection *connection, struct text key, uint64_t *out_number,
                       struct error *error)
{
    struct buffer value AUTO_BUFFER;
    buffer_init(&value, 64);
    bool is_found;
    *out_number = 0;
    if (sqlite_meta_get(connection, key, &value, &is_found, error) < 0)
        return -1;
    if (is_found && text_parse_u64(buffer_text(&value), out_number, error) < 0)
        return error_set(error, ERROR_CORRUPT, "\"%.150s\" is damaged: " TEXT_FORMAT,
                         connection->path, TEXT_ARGS(key));
    return 0;
}

/* Stored as sequence u64 little-endian, then the hash. */
int sqlite_head_get(struct sqlite_connection *connection, struct store_head *out_head,
                    struct error *error)
{
    struct buffer value AUTO_BUFFER;
    buffer_init(&value, 64);
    bool is_found;
    if (sqlite_meta_get(connection, SQLITE_META_HEAD, &value, &is_found, error) < 0)
        return -1;
    struct store_head head = {0};
    if (is_found) {
        if (value.size != sizeof(uint64_t) + STORE_HASH_SIZE)
            return error_set(error, ERROR_CORRUPT, "\"%.150s\" is damaged: the mark of its end",
                             connection->path);
        memcpy(&head.sequence, value.data, sizeof(uint64_t));
        head.sequence = le64toh(head.sequence);
        memcpy(head.hash, value.data + sizeof(uint64_t), STORE_HASH_SIZE);
    }
    *out_head = head;
    return 0;
}

int sqlite_head_set(struct sqlite_connection *connection, const struct store_head *head,
                    struct error *error)
{
    uint8_t value[sizeof(uint64_t) + STORE_HASH_SIZE];
    const uint64_t sequence = htole64(head->sequence);
    memcpy(value, &sequence, sizeof(sequence));
    memcpy(value + sizeof(sequence), head->hash, STORE_HASH_SIZE);
    return sqlite_meta_set(connection, SQLITE_META_HEAD,
                           (struct text){(const char *)value, sizeof(value)}, error);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The log holds what accounts did: nobody else's to read. SQLite gives its other files the same
 * mode. Never done to a file that exists, because closing a descriptor of it would drop the locks
 * this process's other connections hold. */
static int create_private_file(const char *path, struct error *error)
{
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "create \"%s\"", path);
    return 0;
}

static int configure(struct sqlite_connection *connection, enum connection_access access,
                     struct error *error)
{
    sqlite3_extended_result_codes(connection->handle, 1);
    sqlite3_busy_timeout(connection->handle, BUSY_TIMEOUT_MS);
    sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (sqlite_execute(connection, "PRAGMA trusted_schema = OFF;", error) < 0)
        return -1;
    /* A reader would check a page at every look, since it keeps none; `souk audit` proves what it
     * reads by the chain. */
    if (access != CONNECTION_READ &&
        sqlite_execute(connection, "PRAGMA cell_size_check = ON;", error) < 0)
        return -1;
    /* Mapped, a page is neither copied nor read again after every commit of the writer. */
    if (access == CONNECTION_READ)
        return sqlite_execute(connection, "PRAGMA query_only = ON; PRAGMA mmap_size = 1073741824;",
                              error);
    if (access == CONNECTION_READ_ALONE) {
        /* Alone, the index of the write-ahead log is kept in memory; the log itself stays. */
        sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        return sqlite_execute(connection,
                              "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON;", error);
    }
    /* FULL: a commit has reached the disk when it returns, not only when a checkpoint ran. */
    return sqlite_execute(connection,
                          "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                          "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;",
                          error);
}

static bool has_write_ahead_log(const char *path)
{
    char name[4096 + 8];
    struct stat status;
    const int size = snprintf(name, sizeof(name), "%s-wal", path);
    return size > 0 && (size_t)size < sizeof(name) && stat(name, &status) == 0 &&
           status.st_size > 0;
}

/* "file:PATH?immutable=1": not even locks are taken. */
static void append_immutable_name(struct buffer *out, const char *path)
{
    buffer_append_string(out, "file:");
    for (const char *at = path; *at; at++) {
        if (*at == '%' || *at == '?' || *at == '#')
            buffer_append_format(out, "%%%02X", (unsigned)(unsigned char)*at);
        else
            buffer_append_format(out, "%c", *at);
    }
    buffer_append_string(out, "?immutable=1");
}

static int open_handle(struct sqlite_connection *connection, const struct store_options *options,
                       enum connection_access access, struct error *error)
{
    struct buffer name AUTO_BUFFER;
    buffer_init(&name, 1 << 16);
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (access == CONNECTION_READ_ALONE && !has_write_ahead_log(connection->path)) {
        append_immutable_name(&name, connection->path);
        flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    } else {
        buffer_append_string(&name, connection->path);
        /* To be alone takes a lock that a descriptor for reading cannot have. */
        flags |= access == CONNECTION_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    }
    const char *text = buffer_string(&name);
    if (buffer_check(&name, error) < 0)
        return -1;
    const int result = sqlite3_open_v2(text, &connection->handle, flags, options->file_system);
    return result == SQLITE_OK ? 0 : sqlite_fail(connection, result, error);
}

int sqlite_connection_open(struct sqlite_connection *connection,
                           const struct store_options *options, enum connection_access access,
                           struct error *error)
{
    *connection = (struct sqlite_connection){.path = strdup(options->location)};
    ASSERT(connection->path);
    map_init(&connection->statements);
    struct stat status;
    if (access == CONNECTION_WRITE) {
        if (create_private_file(connection->path, error) < 0)
            goto fail;
    } else if (stat(connection->path, &status) < 0) {
        (void)error_set_errno(error, errno, "open \"%s\"", connection->path);
        goto fail;
    }
    if (open_handle(connection, options, access, error) < 0 ||
        configure(connection, access, error) < 0)
        goto fail;
    return 0;
fail:
    sqlite_connection_close(connection);
    return -1;
}

void sqlite_connection_close(struct sqlite_connection *connection)
{
    statements_clear(connection);
    map_done(&connection->statements);
    const int result = sqlite3_close(connection->handle);
    ASSERT(result == SQLITE_OK); /* every statement is finalized */
    free(connection->path);
    *connection = (struct sqlite_connection){0};
}
