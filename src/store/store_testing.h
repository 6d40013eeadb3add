/* What the tests of this folder share: a place to keep a store, and a schema to keep in it. */
#pragma once

#include "store/store.h"
#include "testing/testing.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/stat.h>

struct place {
    char folder[64];
    char location[96];
    struct store_options options;
};

static const struct store_column job_columns[] = {
    {"id", STORE_INTEGER, .is_key = true},
    {"account", STORE_TEXT, .is_indexed = true},
    {"cost", STORE_REAL},
    {"ended_ms", STORE_INTEGER, .is_indexed = true, .is_optional = true},
    {"proof", STORE_BLOB, .is_optional = true},
};
static const struct store_column lease_columns[] = {
    {"job", STORE_TEXT, .is_key = true},
    {"rank", STORE_INTEGER, .is_key = true},
    {"state", STORE_TEXT, .is_indexed = true},
};
static const struct store_table test_tables[] = {
    {"jobs", job_columns, 5},
    {"leases", lease_columns, 3},
};
static const struct store_schema test_schema = {1, test_tables, 2};

static inline void place_make(struct place *place)
{
    snprintf(place->folder, sizeof(place->folder), "/tmp/souk-store-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->location, sizeof(place->location), "%s/test.db", place->folder);
    place->options = (struct store_options){.location = place->location, .schema = &test_schema};
}

static inline void place_remove(struct place *place)
{
    struct dirent **entries = NULL;
    const int count = scandir(place->folder, &entries, NULL, NULL);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", place->folder, entries[i]->d_name);
        (void)!unlink(path); /* "." and ".." stay */
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(rmdir(place->folder), 0);
}

static inline struct store *place_open(struct place *place)
{
    struct error error;
    struct store *store = NULL;
    ASSERT_OK(store_open(&place->options, &store, &error));
    return store;
}

static inline struct store_reader *place_read(struct place *place)
{
    struct error error;
    struct store_reader *reader = NULL;
    ASSERT_OK(store_reader_open(&place->options, &reader, &error));
    return reader;
}

static inline void batch_add_events(struct store_batch *batch, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char body[64];
        snprintf(body, sizeof(body), "{\"number\":%" PRIu64 "}", first + i);
        store_batch_event(batch, (int64_t)(1000 + first + i), TEXT("test_happened"), text_of(body));
    }
}

static inline void batch_add_job(struct store_batch *batch, int64_t id, const char *account,
                                 int64_t ended_ms /* < 0: not ended */)
{
    const struct store_value values[] = {
        store_integer(id),
        store_text(text_of(account)),
        store_real((double)id / 4),
        ended_ms < 0 ? store_null(STORE_INTEGER) : store_integer(ended_ms),
        store_blob("\0\xff", 2),
    };
    store_batch_put(batch, &test_tables[0], values, 5);
}

static inline void commit_events(struct store *store, uint64_t count)
{
    struct error error;
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    batch_add_events(batch, store_head(store).sequence + 1, count);
    ASSERT_OK(store_commit(store, batch, &error));
}

static inline int count_row(const struct store_row *row __attribute__((unused)), void *context,
                            struct error *error __attribute__((unused)))
{
    ++*(uint64_t *)context;
    return 0;
}

static inline uint64_t count_rows(struct place *place, size_t table_index)
{
    struct error error;
    uint64_t count = 0;
    AUTO(store_reader) struct store_reader *reader = place_read(place);
    const struct store_query query = {.table = &place->options.schema->tables[table_index]};
    ASSERT_OK(store_read_rows(reader, &query, count_row, &count, NULL, &error));
    return count;
}

/* The last sequence of a log that must be whole. */
static inline uint64_t verify_log(struct place *place)
{
    struct error error;
    uint64_t sequence = 0;
    AUTO(store_reader) struct store_reader *reader = place_read(place);
    ASSERT_OK(store_verify(reader, 1, &sequence, &error));
    return sequence;
}
