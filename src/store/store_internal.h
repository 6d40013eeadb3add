/*
 * Store, inside: what a kind of database implements, and what all kinds share.
 *
 * To add one: write store_NAME.c with a `const struct store_ops store_ops_NAME`, declare it in
 * store.h, and run store_test's suite over it. The shared part has checked schemas, batches and
 * queries before an operation sees them, builds the hash chain and checks it; the database keeps
 * rows. A database's own store and reader structs begin with the structs below.
 */
#pragma once

#include "base/arena.h"
#include "store/store.h"

struct store {
    const struct store_ops *ops;
    const struct store_schema *schema;
    struct store_head head;
    bool needs_rebuild;
};

struct store_reader {
    const struct store_ops *ops;
    const struct store_schema *schema; /* NULL: no tables */
    uint32_t begin_count;              /* store_reader_begin without store_reader_end */
};

/* ---- Batches --------------------------------------------------------------------------------- */

enum store_change_kind {
    STORE_CHANGE_EVENT,
    STORE_CHANGE_PUT,
    STORE_CHANGE_DELETE,
    STORE_CHANGE_META,
};

struct store_change {
    struct store_change *next;
    enum store_change_kind kind;
    int64_t time_ms;                 /* event */
    struct text name;                /* event: its kind; meta: the key */
    struct text body;                /* event, meta */
    const struct store_table *table; /* put, delete */
    struct store_value *values;      /* put: one per column; delete: one per key column */
    size_t value_count;
};

struct store_batch {
    struct arena *arena;
    size_t bytes_max;
    struct store_change *first;
    struct store_change **end;
    size_t event_count;
    struct error error; /* the first thing that went wrong; code NONE when nothing did */
};

/* ---- Queries --------------------------------------------------------------------------------- */

struct store_plan_filter {
    size_t column_index;
    enum store_compare compare;
    struct store_value value;
};

/* A query that was found valid. */
struct store_plan {
    const struct store_table *table;
    struct store_plan_filter filters[STORE_FILTER_MAX];
    size_t filter_count;
    bool has_order; /* by order_index and then the key; else by the key alone */
    size_t order_index;
    bool is_descending;
    uint32_t limit;
    bool has_cursor; /* only rows after (order_value,) key_values */
    struct store_value order_value;
    struct store_value key_values[STORE_COLUMN_MAX];
};

/* Index of the n-th key column, and how many there are. */
size_t store_table_key_index(const struct store_table *table, size_t key_number);
size_t store_table_key_count(const struct store_table *table);

/* Cursors (format in store_cursor.c). Decoded values borrow from the arena. */
MUST_CHECK int store_cursor_encode(const struct store_plan *plan, const struct store_row *row,
                                   struct buffer *out, struct error *error);
MUST_CHECK int store_cursor_decode(struct arena *arena, struct text cursor, struct store_plan *plan,
                                   struct error *error);

/* ---- The chain ------------------------------------------------------------------------------- */

/* Moves the head over one more event. */
void store_chain_next(struct store_head *head, int64_t time_ms, struct text kind, struct text body);

/* What a snapshot is stored with. */
void store_snapshot_checksum(const struct store_snapshot *snapshot, uint8_t out[STORE_HASH_SIZE]);

/* ---- What a database does -------------------------------------------------------------------- */

struct store_stored_snapshot {
    struct store_snapshot snapshot;
    uint8_t checksum[STORE_HASH_SIZE];
    uint8_t log_hash[STORE_HASH_SIZE]; /* what the log holds at its sequence; zero: nothing */
};

typedef int store_snapshot_callback(const struct store_stored_snapshot *stored, void *context,
                                    struct error *error);

struct store_ops {
    const char *name;

    /* Fills the shared part, with the head of the log. */
    int (*open)(const struct store_options *options, struct store **out_store, struct error *error);
    void (*close)(struct store *store);
    /* In one transaction; moves *head over each event with store_chain_next as it writes it. */
    int (*commit)(struct store *store, const struct store_batch *batch, struct store_head *head,
                  struct error *error);
    int (*tables_clear)(struct store *store, struct error *error);
    int (*tables_built)(struct store *store, struct error *error);
    int (*snapshot_save)(struct store *store, const struct store_snapshot *snapshot,
                         const uint8_t checksum[STORE_HASH_SIZE], struct error *error);

    int (*reader_open)(const struct store_options *options, struct store_reader **out_reader,
                       struct error *error);
    void (*reader_close)(struct store_reader *reader);
    /* Between these all reads see the same state. */
    int (*read_begin)(struct store_reader *reader, struct error *error);
    void (*read_end)(struct store_reader *reader);
    /* The rest is called between them, but for read_rows, which may stand alone. Events as they are
     * stored, unchecked. */
    int (*read_events)(struct store_reader *reader, uint64_t from_sequence,
                       store_event_callback *callback, void *context, struct error *error);
    int (*read_listed)(struct store_reader *reader, const uint64_t *sequences, size_t count,
                       store_event_callback *callback, void *context, struct error *error);
    /* As the last commit left it, kept apart from the events. */
    int (*read_head)(struct store_reader *reader, struct store_head *out_head, struct error *error);
    int (*read_meta)(struct store_reader *reader, struct text key, struct buffer *out,
                     bool *out_is_found, struct error *error);
    int (*read_rows)(struct store_reader *reader, const struct store_plan *plan,
                     store_row_callback *callback, void *context, struct error *error);
    /* Newest first. */
    int (*read_snapshots)(struct store_reader *reader, store_snapshot_callback *callback,
                          void *context, struct error *error);
};
