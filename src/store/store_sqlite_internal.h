/*
 * SQLite, inside: one connection with its cache of prepared statements, and the tables' shape.
 *
 * SQL stands in the store_sqlite*.c files and nowhere else; names in it come from a checked schema.
 *
 *     store_events(sequence, time_ms, kind, body, hash)    append-only, by triggers too
 *     store_meta(key, value)                               store.head, store.tables_version, ...
 *     store_snapshots(sequence, event_hash, checksum, bytes)
 *     and the caller's tables under their own names, STRICT; the index of a column is
 *     "table.column"
 */
#pragma once

#include "base/map.h"
#include "store/store_internal.h"

#include <sqlite3.h>

struct sqlite_connection {
    sqlite3 *handle;
    char *path;
    struct map statements; /* SQL text, or a query's shape -> sqlite3_stmt */
};

struct sqlite_reader {
    struct store_reader reader; /* first */
    struct sqlite_connection connection;
};

static inline struct sqlite_reader *sqlite_reader_of(struct store_reader *reader)
{
    return (struct sqlite_reader *)(void *)reader;
}

enum connection_access {
    CONNECTION_WRITE,
    CONNECTION_READ,
    /* For a disk without room for the index that connections share: nothing is written at all, and
     * no other program may have the file open. */
    CONNECTION_READ_ALONE,
};

/* Opens the file; a writer creates what is missing, a reader finds NOT_FOUND. On failure there is
 * nothing to close. */
MUST_CHECK int sqlite_connection_open(struct sqlite_connection *connection,
                                      const struct store_options *options,
                                      enum connection_access access, struct error *error);
void sqlite_connection_close(struct sqlite_connection *connection);

/* Says in words what SQLite's result code means for this file. Returns -1. */
int sqlite_fail(const struct sqlite_connection *connection, int result, struct error *error);

/* For statements without parameters and rows. */
MUST_CHECK int sqlite_execute(struct sqlite_connection *connection, const char *sql,
                              struct error *error);
/* A statement from the cache, with nothing bound. It is good until the next sqlite_prepare. */
MUST_CHECK int sqlite_prepare(struct sqlite_connection *connection, const char *sql,
                              sqlite3_stmt **out_statement, struct error *error);
/* The same under a key of the caller's that stands for `sql`, which may be NULL to only look: then
 * *out_statement is NULL when there is none. What was bound is still bound. */
MUST_CHECK int sqlite_prepare_as(struct sqlite_connection *connection, struct text key,
                                 const char *sql, sqlite3_stmt **out_statement,
                                 struct error *error);
/* 1: a row. 0: done, and the statement is reset. -1: failed, and it is reset. */
MUST_CHECK int sqlite_step(struct sqlite_connection *connection, sqlite3_stmt *statement,
                           struct error *error);
/* Values are borrowed until the statement is reset. */
MUST_CHECK int sqlite_bind(struct sqlite_connection *connection, sqlite3_stmt *statement, int index,
                           const struct store_value *value, struct error *error);
/* The bytes of a column; never a NULL pointer. Good until the next step. */
struct text sqlite_column(sqlite3_stmt *statement, int index);

/* Meta values; absent leaves *out_is_found false. */
MUST_CHECK int sqlite_meta_get(struct sqlite_connection *connection, struct text key,
                               struct buffer *out, bool *out_is_found, struct error *error);
MUST_CHECK int sqlite_meta_set(struct sqlite_connection *connection, struct text key,
                               struct text value, struct error *error);
/* 0 when absent. */
MUST_CHECK int sqlite_meta_number(struct sqlite_connection *connection, struct text key,
                                  uint64_t *out_number, struct error *error);

MUST_CHECK int sqlite_head_get(struct sqlite_connection *connection, struct store_head *out_head,
                               struct error *error);
MUST_CHECK int sqlite_head_set(struct sqlite_connection *connection, const struct store_head *head,
                               struct error *error);

/* Brings the file to the schema, inside the caller's transaction. Creates the store's own tables in
 * an empty file. *out_needs_rebuild as store_needs_rebuild. */
MUST_CHECK int sqlite_tables_prepare(struct sqlite_connection *connection,
                                     const struct store_schema *schema, bool *out_needs_rebuild,
                                     struct error *error);
/* Empties the schema's tables and sets the mark, inside the caller's transaction. */
MUST_CHECK int sqlite_tables_clear(struct sqlite_connection *connection,
                                   const struct store_schema *schema, struct error *error);
/* CORRUPT or INVALID unless the file was written by this format of store. */
MUST_CHECK int sqlite_format_check(struct sqlite_connection *connection, bool *out_is_empty,
                                   struct error *error);
/* INVALID unless the log is of that version, or empty. */
MUST_CHECK int sqlite_log_version_check(struct sqlite_connection *connection, uint32_t log_version,
                                        struct error *error);

#define SQLITE_META_TABLES_VERSION TEXT("store.tables_version")
#define SQLITE_META_LOG_VERSION    TEXT("store.log_version")
#define SQLITE_META_REBUILD        TEXT("store.needs_rebuild")
#define SQLITE_META_HEAD           TEXT("store.head")
#define SQLITE_META_SETTLED        TEXT("store.settled")

/* Keeps the writer's log short from now on, in store_sqlite_checkpoint.c. */
struct sqlite_checkpoint_limits {
    int pages_wanted; /* so many more in the log call for a checkpoint */
    int pages_max;    /* so many in all, and the commit makes one itself */
    bool is_alone;    /* no thread: the commits make them, as SQLite does by itself */
};
struct sqlite_checkpointer;
struct sqlite_checkpointer *sqlite_checkpointer_new(struct sqlite_connection *writer,
                                                    const struct sqlite_checkpoint_limits *limits);
void sqlite_checkpointer_free(struct sqlite_checkpointer *self); /* NULL is fine */

/* Reading, in store_sqlite_reader.c. */
int sqlite_reader_open(const struct store_options *options, struct store_reader **out_reader,
                       struct error *error);
void sqlite_reader_close(struct store_reader *reader);
int sqlite_read_begin(struct store_reader *reader, struct error *error);
void sqlite_read_end(struct store_reader *reader);
int sqlite_read_listed(struct store_reader *reader, const uint64_t *sequences, size_t count,
                       store_event_callback *callback, void *context, struct error *error);
int sqlite_read_events(struct store_reader *reader, uint64_t from_sequence,
                       store_event_callback *callback, void *context, struct error *error);
int sqlite_read_head(struct store_reader *reader, struct store_head *out_head, struct error *error);
int sqlite_read_meta(struct store_reader *reader, struct text key, struct buffer *out,
                     bool *out_is_found, struct error *error);
/* in store_sqlite_rows.c */
int sqlite_read_rows(struct store_reader *reader, const struct store_plan *plan,
                     store_row_callback *callback, void *context, struct error *error);
int sqlite_read_snapshots(struct store_reader *reader, store_snapshot_callback *callback,
                          void *context, struct error *error);
