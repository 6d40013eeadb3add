#include "store/store.h"

#include "base/assert.h"
#include "store/store_internal.h"

#include <inttypes.h>
#include <sodium.h>

/* ---- The schema ------------------------------------------------------------------------------ */

/* Names go into SQL as they are, so they may hold nothing that needs quoting. */
static bool is_name(const char *name)
{
    const size_t size = strlen(name);
    return size > 0 && size <= STORE_NAME_BYTES_MAX && name[0] >= 'a' && name[0] <= 'z' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == size;
}

static int check_table(const struct store_table *table, struct error *error)
{
    if (!is_name(table->name) || text_starts_with(text_of(table->name), TEXT("store_")) ||
        text_starts_with(text_of(table->name), TEXT("sqlite_")))
        return error_set(error, ERROR_INVALID, "\"%.64s\" cannot be a table's name", table->name);
    if (table->column_count == 0 || table->column_count > STORE_COLUMN_MAX)
        return error_set(error, ERROR_INVALID, "table \"%s\" needs 1 to %d columns", table->name,
                         STORE_COLUMN_MAX);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct store_column *column = &table->columns[i];
        if (!is_name(column->name))
            return error_set(error, ERROR_INVALID, "\"%.64s\" cannot be a column's name",
                             column->name);
        if (column->is_key && column->is_optional)
            return error_set(error, ERROR_INVALID, "column \"%s\" is a key and cannot be optional",
                             column->name);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(table->columns[k].name, column->name))
                return error_set(error, ERROR_INVALID, "table \"%s\" has two columns \"%s\"",
                                 table->name, column->name);
    }
    if (store_table_key_count(table) == 0)
        return error_set(error, ERROR_INVALID, "table \"%s\" has no key column", table->name);
    return 0;
}

static int check_schema(const struct store_schema *schema, struct error *error)
{
    if (schema->table_count > STORE_TABLE_MAX)
        return error_set(error, ERROR_INVALID, "more than %d tables", STORE_TABLE_MAX);
    for (size_t i = 0; i < schema->table_count; i++) {
        if (check_table(&schema->tables[i], error) < 0)
            return -1;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(schema->tables[k].name, schema->tables[i].name))
                return error_set(error, ERROR_INVALID, "two tables are named \"%s\"",
                                 schema->tables[i].name);
    }
    return 0;
}

static const struct store_ops *options_ops(const struct store_options *options)
{
    return options->ops ? options->ops : &store_ops_sqlite;
}

/* ---- The writer ------------------------------------------------------------------------------ */

int store_open(const struct store_options *options, struct store **out_store, struct error *error)
{
    ASSERT(options->schema && options->location);
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "libsodium cannot start");
    if (check_schema(options->schema, error) < 0)
        return -1;
    return options_ops(options)->open(options, out_store, error);
}

void store_free(struct store *store)
{
    if (store)
        store->ops->close(store);
}

struct store_head store_head(const struct store *store)
{
    return store->head;
}

bool store_needs_rebuild(const struct store *store)
{
    return store->needs_rebuild;
}

int store_tables_clear(struct store *store, struct error *error)
{
    if (store->ops->tables_clear(store, error) < 0)
        return -1;
    store->needs_rebuild = true;
    return 0;
}

int store_tables_built(struct store *store, struct error *error)
{
    if (store->ops->tables_built(store, error) < 0)
        return -1;
    store->needs_rebuild = false;
    return 0;
}

int store_commit(struct store *store, const struct store_batch *batch, struct error *error)
{
    if (batch->error.code != ERROR_NONE) {
        *error = batch->error;
        return -1;
    }
    if (store_batch_is_empty(batch))
        return 0;
    struct store_head head = store->head;
    if (store->ops->commit(store, batch, &head, error) < 0)
        return -1;
    ASSERT(head.sequence == store->head.sequence + batch->event_count);
    store->head = head;
    return 0;
}

/* ---- Readers --------------------------------------------------------------------------------- */

int store_reader_open(const struct store_options *options, struct store_reader **out_reader,
                      struct error *error)
{
    ASSERT(options->location);
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "libsodium cannot start");
    if (options->schema && check_schema(options->schema, error) < 0)
        return -1;
    return options_ops(options)->reader_open(options, out_reader, error);
}

void store_reader_free(struct store_reader *reader)
{
    if (reader)
        reader->ops->reader_close(reader);
}

int store_reader_begin(struct store_reader *reader, struct error *error)
{
    if (reader->begin_count == 0 && reader->ops->read_begin(reader, error) < 0)
        return -1;
    reader->begin_count++;
    return 0;
}

void store_reader_end(struct store_reader *reader)
{
    ASSERT(reader->begin_count > 0);
    if (--reader->begin_count == 0)
        reader->ops->read_end(reader);
}

bool store_reader_is_begun(const struct store_reader *reader)
{
    return reader->begin_count > 0;
}

int store_read_head(struct store_reader *reader, struct store_head *out_head, struct error *error)
{
    if (store_reader_begin(reader, error) < 0)
        return -1;
    const int result = reader->ops->read_head(reader, out_head, error);
    store_reader_end(reader);
    return result;
}

int store_read_listed(struct store_reader *reader, const uint64_t *sequences, size_t count,
                      store_event_callback *callback, void *context, struct error *error)
{
    if (store_reader_begin(reader, error) < 0)
        return -1;
    const int result = reader->ops->read_listed(reader, sequences, count, callback, context, error);
    store_reader_end(reader);
    return result;
}

int store_read_meta(struct store_reader *reader, const char *key, struct buffer *out,
                    bool *out_is_found, struct error *error)
{
    if (store_reader_begin(reader, error) < 0)
        return -1;
    const int result = reader->ops->read_meta(reader, text_of(key), out, out_is_found, error);
    store_reader_end(reader);
    return result < 0 ? -1 : buffer_check(out, error);
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

int store_snapshot_save(struct store *store, const struct store_snapshot *snapshot,
                        struct error *error)
{
    if (snapshot->bytes.size > STORE_SNAPSHOT_BYTES_MAX)
        return error_set(error, ERROR_EXHAUSTED, "a snapshot holds at most %d bytes, not %zu",
                         STORE_SNAPSHOT_BYTES_MAX, snapshot->bytes.size);
    if (snapshot->head.sequence == 0 || snapshot->head.sequence > store->head.sequence)
        return error_set(error, ERROR_INVALID,
                         "a snapshot at event %" PRIu64 " of a log that ends at %" PRIu64,
                         snapshot->head.sequence, store->head.sequence);
    uint8_t checksum[STORE_HASH_SIZE];
    store_snapshot_checksum(snapshot, checksum);
    return store->ops->snapshot_save(store, snapshot, checksum, error);
}

struct snapshot_search {
    struct store_head head;
    struct buffer *out;
};

static int take_whole_snapshot(const struct store_stored_snapshot *stored, void *context,
                               struct error *error)
{
    struct snapshot_search *search = context;
    uint8_t checksum[STORE_HASH_SIZE];
    store_snapshot_checksum(&stored->snapshot, checksum);
    if (memcmp(checksum, stored->checksum, STORE_HASH_SIZE) != 0 ||
        memcmp(stored->snapshot.head.hash, stored->log_hash, STORE_HASH_SIZE) != 0)
        return 0;
    buffer_append_text(search->out, stored->snapshot.bytes);
    if (buffer_check(search->out, error) < 0)
        return error_wrap(error, "snapshot at event %" PRIu64, stored->snapshot.head.sequence);
    search->head = stored->snapshot.head;
    return 1;
}

int store_snapshot_load(struct store_reader *reader, struct store_head *out_head,
                        struct buffer *out, struct error *error)
{
    struct snapshot_search search = {.out = out};
    buffer_clear(out);
    if (store_reader_begin(reader, error) < 0)
        return -1;
    const int result = reader->ops->read_snapshots(reader, take_whole_snapshot, &search, error);
    store_reader_end(reader);
    if (result < 0)
        return -1;
    *out_head = search.head;
    return 0;
}
