/*
 * Store: an append-only, hash-chained event log, query tables changed in the same transaction, and
 * snapshots; over SQLite now, over other databases through the same calls.
 *
 * Every event has a sequence (from 1, without gaps) and a hash over itself and the hash before it:
 *
 *     hash = BLAKE2b-256(previous hash || sequence u64 || time_ms i64 || kind size u32 || kind ||
 * body)
 *
 * with integers little-endian; before the first event stand 32 zero bytes.
 *
 * Threads: a store (the writer) and its batches belong to one thread at a time. A reader has its
 * own connection and belongs to one thread at a time; readers and the writer work side by side, and
 * every read call sees one consistent, committed state. Nothing here may be used after fork().
 *
 * One process at a time holds a store: a second store_open of the same location fails with
 * CONFLICT. Readers are not counted; they may be in other processes (an audit of a live store).
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STORE_HASH_SIZE = 32,
    STORE_KIND_BYTES_MAX = 64,
    STORE_BODY_BYTES_MAX = 1 << 20,
    STORE_NAME_BYTES_MAX = 48, /* of a table or a column: a-z, 0-9 and '_', a letter first */
    STORE_TABLE_MAX = 64,
    STORE_COLUMN_MAX = 64,
    STORE_FILTER_MAX = 8,
    STORE_ROW_LIMIT_MAX = 10000,
    STORE_SNAPSHOT_BYTES_MAX = 512 << 20,
    STORE_SNAPSHOTS_KEPT = 2,
};

/* ---- Tables ---------------------------------------------------------------------------------- */

enum store_type { STORE_INTEGER, STORE_REAL, STORE_TEXT, STORE_BLOB, STORE_TYPE_COUNT };
const char *store_type_name(enum store_type type);

struct store_column {
    const char *name;
    enum store_type type;
    bool is_key;      /* all key columns together name a row, in the order given */
    bool is_indexed;  /* for filters and orders by this column; rows where it is null are left out,
                         and cost nothing */
    bool is_optional; /* may be null; other columns of rows older than the column hold 0 or "" */
    const char *indexed_with; /* another column: for filters on both at once; may be NULL */
};

/* Each table has at least one key column; key columns are not optional. */
struct store_table {
    const char *name; /* not beginning with "store_" or "sqlite_" */
    const struct store_column *columns;
    size_t column_count;
};

/* The caller's tables; lives as long as every store, reader, batch and query that was given it. */
struct store_schema {
    uint32_t version; /* raise it when the meaning of any row changes */
    const struct store_table *tables;
    size_t table_count;
    uint32_t log_version; /* of what events say: a log of another one is not opened at all */
};

struct store_value {
    enum store_type type;
    bool is_null;
    union {
        int64_t integer;
        double real;
        struct text bytes; /* text and blob */
    };
};

static inline struct store_value store_integer(int64_t value)
{
    return (struct store_value){.type = STORE_INTEGER, .integer = value};
}

static inline struct store_value store_real(double value)
{
    return (struct store_value){.type = STORE_REAL, .real = value};
}

static inline struct store_value store_text(struct text value)
{
    return (struct store_value){.type = STORE_TEXT, .bytes = value};
}

static inline struct store_value store_blob(const void *data, size_t size)
{
    return (struct store_value){.type = STORE_BLOB, .bytes = {data, size}};
}

static inline struct store_value store_null(enum store_type type)
{
    return (struct store_value){.type = type, .is_null = true};
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* One kind of database. */
struct store_ops;
extern const struct store_ops store_ops_sqlite;

struct store_options {
    const struct store_ops *ops; /* NULL: SQLite */
    const char *location; /* SQLite: the path of the database file, in a folder that exists */
    const struct store_schema *schema; /* required */
    const char *file_system; /* SQLite: name of the VFS, for fault injection; NULL: the usual */
};

struct store;

/* Opens, or creates, the store and its tables. Tables and columns that `schema` adds under the same
 * version are created (empty, or zero); when the version differs, or a column is gone, has another
 * type or another key, all tables are dropped, created anew, and the store needs a rebuild.
 * CONFLICT: another process (or this one) holds it. CORRUPT: not a store, or damaged. INVALID: the
 * schema breaks its rules, or another program wrote the store, in a format or with a log of another
 * version; then nothing is changed. */
MUST_CHECK int store_open(const struct store_options *options, struct store **out_store,
                          struct error *error);
void store_free(struct store *store); /* closes; NULL is fine */
DEFINE_AUTO(store);

/* The last committed event; sequence 0 and a zero hash when there is none. */
struct store_head {
    uint64_t sequence;
    uint8_t hash[STORE_HASH_SIZE];
};
struct store_head store_head(const struct store *store);

/* True from store_open or store_tables_clear until store_tables_built: the tables do not show all
 * events. The caller reads the events from the first, commits the rows, and says it is done. The
 * mark is stored: a rebuild cut short is asked for again by the next store_open. */
bool store_needs_rebuild(const struct store *store);
/* Empties all tables of the schema and sets the mark. */
MUST_CHECK int store_tables_clear(struct store *store, struct error *error);
MUST_CHECK int store_tables_built(struct store *store, struct error *error);

/* ---- Writing --------------------------------------------------------------------------------- */

/* What one commit will do, in the order added. Everything given is copied. When `bytes_max` is
 * passed, the batch is marked and store_commit refuses it with EXHAUSTED, as a buffer does. */
struct store_batch;

struct store_batch *store_batch_new(size_t bytes_max); /* 0: 64 MiB */
void store_batch_free(struct store_batch *batch);      /* NULL is fine */
DEFINE_AUTO(store_batch);
void store_batch_clear(struct store_batch *batch);

/* `kind` is 1 to STORE_KIND_BYTES_MAX bytes. A body that is too long marks the batch. The first
 * event of a batch gets the sequence after store_head, the next one the next, and so on. */
void store_batch_event(struct store_batch *batch, int64_t time_ms, struct text kind,
                       struct text body);
/* Inserts the row, or replaces the one with the same key. One value per column, in their order,
 * each of the column's type. */
void store_batch_put(struct store_batch *batch, const struct store_table *table,
                     const struct store_value *values, size_t value_count);
/* Deletes the row with this key if there is one. One value per key column, in their order. */
void store_batch_delete(struct store_batch *batch, const struct store_table *table,
                        const struct store_value *keys, size_t key_count);
/* Sets a small fact of the caller's; keys beginning with "store." are the store's own. */
void store_batch_meta(struct store_batch *batch, const char *key, struct text value);

/* The rows that were put (one value per column) and deleted (one per key column), in order. */
typedef void store_change_callback(void *context, const struct store_table *table,
                                   const struct store_value *values, bool is_deleted);
void store_batch_each_row(const struct store_batch *batch, store_change_callback *callback,
                          void *context);

size_t store_batch_event_count(const struct store_batch *batch);
bool store_batch_is_empty(const struct store_batch *batch);

/* Writes the whole batch in one transaction with one fsync; once it returns 0, neither SIGKILL nor
 * a power cut undoes it. On failure nothing is written, store_head is as before, and the same batch
 * may be tried again. EXHAUSTED: the disk is full or the batch too big. REFUSED: read-only.
 * UNAVAILABLE: an I/O error, or locked by a foreign program. CORRUPT: the database is damaged.
 * An empty batch succeeds without writing. The batch is left for the caller to clear. */
MUST_CHECK int store_commit(struct store *store, const struct store_batch *batch,
                            struct error *error);

/* ---- Reading --------------------------------------------------------------------------------- */

struct store_reader;

/* Opens a read-only connection to a store that was opened before with the same schema. NOT_FOUND:
 * there is none. INVALID: its log, CONFLICT: its tables are of another version (schema NULL:
 * events, snapshots and meta only, whatever the log and the tables are). */
MUST_CHECK int store_reader_open(const struct store_options *options,
                                 struct store_reader **out_reader, struct error *error);
void store_reader_free(struct store_reader *reader); /* NULL is fine */
DEFINE_AUTO(store_reader);

/* Between these all calls see one committed state, and several cost less; may be nested. Not for
 * long: the log of what is written meanwhile cannot be folded into the store. */
MUST_CHECK int store_reader_begin(struct store_reader *reader, struct error *error);
void store_reader_end(struct store_reader *reader);
/* Whether it is between the two: what it sees may be older than the last commit. */
bool store_reader_is_begun(const struct store_reader *reader);

struct store_event {
    uint64_t sequence;
    int64_t time_ms;
    struct text kind;
    struct text body;
    uint8_t hash[STORE_HASH_SIZE];
};

/* What is passed lives until the callback returns. 0: go on. 1: enough. -1: failed, *error is set,
 * and the reading call returns -1 with it. A callback may not use the reader that called it. */
typedef int store_event_callback(const struct store_event *event, void *context,
                                 struct error *error);

/* Calls back for every event from `from_sequence` (1 is the first) on, in order. The chain is
 * checked on the way: at a gap or a wrong hash it fails with CORRUPT, before the callback sees that
 * event. A start past the end calls nothing. */
MUST_CHECK int store_read_events(struct store_reader *reader, uint64_t from_sequence,
                                 store_event_callback *callback, void *context,
                                 struct error *error);

/* Calls back for these events, in the order given; those that are not there are passed over. The
 * chain is not checked. */
MUST_CHECK int store_read_listed(struct store_reader *reader, const uint64_t *sequences,
                                 size_t count, store_event_callback *callback, void *context,
                                 struct error *error);

/* Walks the log from `from_sequence` to its end, and compares the end with what the last commit
 * left. CORRUPT: the chain is broken; *out_sequence is the first event that is missing or wrong
 * (set on this failure too). On success it is the last sequence. */
MUST_CHECK int store_verify(struct store_reader *reader, uint64_t from_sequence,
                            uint64_t *out_sequence, struct error *error);

/* The end of the log as committed now. */
MUST_CHECK int store_read_head(struct store_reader *reader, struct store_head *out_head,
                               struct error *error);

/* Appends the value to `out`; *out_is_found tells whether there is one. */
MUST_CHECK int store_read_meta(struct store_reader *reader, const char *key, struct buffer *out,
                               bool *out_is_found, struct error *error);

enum store_compare {
    STORE_EQUAL,
    STORE_LESS,
    STORE_GREATER,
    STORE_LESS_OR_EQUAL,
    STORE_GREATER_OR_EQUAL,
    STORE_COMPARE_COUNT,
};

/* Text and blobs compare byte by byte. A null value with STORE_EQUAL finds nulls; in every other
 * comparison null is on neither side. */
struct store_filter {
    const char *column;
    enum store_compare compare;
    struct store_value value;
};

struct store_query {
    const struct store_table *table;
    const struct store_filter *filters; /* all must hold; at most STORE_FILTER_MAX */
    size_t filter_count;
    const char *order_column; /* NULL: by key. Equal values are ordered by key, nulls come first */
    bool is_descending;
    uint32_t limit;    /* 0: STORE_ROW_LIMIT_MAX, which is also the most allowed */
    struct text after; /* the cursor a page before this one ended with; empty: from the start */
};

struct store_row {
    const struct store_table *table;
    const struct store_value *values; /* one per column, in their order */
};

/* As store_event_callback. */
typedef int store_row_callback(const struct store_row *row, void *context, struct error *error);

/* Calls back for each row. When rows are left behind the limit (or behind the row at which the
 * callback said enough), appends to `out_next_cursor` (NULL: not wanted) the text to give as
 * `after` for the page that follows; else appends nothing. Cursors are printable ASCII, and
 * stay good while rows come and go. INVALID: an unknown column, a value of the wrong type, a limit
 * too high, or a cursor that is not of this table and order: all of these may come from outside. */
MUST_CHECK int store_read_rows(struct store_reader *reader, const struct store_query *query,
                               store_row_callback *callback, void *context,
                               struct buffer *out_next_cursor, struct error *error);

/* A row's fields by index. Null reads as 0, 0.0 or empty; reading another type is our mistake. */
bool store_row_is_null(const struct store_row *row, size_t column_index);
int64_t store_row_integer(const struct store_row *row, size_t column_index);
double store_row_real(const struct store_row *row, size_t column_index);
struct text store_row_text(const struct store_row *row, size_t column_index);
struct text store_row_blob(const struct store_row *row, size_t column_index);

/* ---- Snapshots ------------------------------------------------------------------------------- */

/* The caller's state after the event `head.sequence`. */
struct store_snapshot {
    struct store_head head; /* sequence 0: no snapshot */
    struct text bytes;
};

/* Keeps it and the newest one before it; older ones go. INVALID when the log does not hold
 * `head.hash` at `head.sequence`. */
MUST_CHECK int store_snapshot_save(struct store *store, const struct store_snapshot *snapshot,
                                   struct error *error);

/* Reads the newest snapshot that is whole and belongs to the log, passing over broken ones.
 * *out_head has sequence 0 when there is none; `out` (cleared first) gets the bytes. */
MUST_CHECK int store_snapshot_load(struct store_reader *reader, struct store_head *out_head,
                                   struct buffer *out, struct error *error);
