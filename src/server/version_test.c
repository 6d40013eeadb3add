/* covers row_cache.c */
#include "server/query.h"
#include "server/row_cache.h"
#include "server/version.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fixture {
    struct versions *versions;
    struct store_batch *batch;
    struct version_marks marks;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->versions = versions_new();
    fixture->batch = store_batch_new(0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    store_batch_free(fixture->batch);
    versions_free(fixture->versions);
    free(fixture);
    return 0;
}

static void zero_row(enum table table, struct store_value *out)
{
    for (size_t i = 0; i < tables[table].column_count; i++) {
        const enum store_type type = tables[table].columns[i].type;
        out[i] = type == STORE_INTEGER ? store_integer(0)
                 : type == STORE_REAL  ? store_real(0)
                 : type == STORE_TEXT  ? store_text(TEXT(""))
                                       : store_blob("", 0);
    }
}

static void commit_job(struct fixture *fixture, int64_t job, int64_t account)
{
    struct store_value row[STORE_COLUMN_MAX];
    zero_row(TABLE_JOBS, row);
    row[JOBS_ID] = store_integer(job);
    row[JOBS_ACCOUNT] = store_integer(account);
    store_batch_clear(fixture->batch);
    store_batch_put(fixture->batch, &tables[TABLE_JOBS], row, tables[TABLE_JOBS].column_count);
    versions_commit(fixture->versions, fixture->batch);
}

static void read_by(struct fixture *fixture, enum table table, const char *column, int64_t value)
{
    const struct store_filter filter = {column, STORE_EQUAL, store_integer(value)};
    const struct store_query query = {
        .table = &tables[table], .filters = &filter, .filter_count = column ? 1 : 0};
    version_marks_clear(&fixture->marks, fixture->versions);
    version_marks_add(&fixture->marks, fixture->versions, &query);
}

static bool still_holds(struct fixture *fixture)
{
    return versions_hold(fixture->versions, fixture->marks.items, fixture->marks.count);
}

TEST(a_row_changes_what_was_read_of_it_and_nothing_else)
{
    struct fixture *fixture = *state;
    read_by(fixture, TABLE_JOBS, "account", 3);
    commit_job(fixture, 7, 4);
    assert_true(still_holds(fixture));
    commit_job(fixture, 8, 3);
    assert_false(still_holds(fixture));

    read_by(fixture, TABLE_JOBS, "id", 8);
    commit_job(fixture, 9, 3);
    assert_true(still_holds(fixture));
    commit_job(fixture, 8, 3);
    assert_false(still_holds(fixture));
}

TEST(a_filter_on_what_may_change_is_a_read_of_the_whole_table)
{
    struct fixture *fixture = *state;
    read_by(fixture, TABLE_JOBS, "state", 2);
    commit_job(fixture, 7, 4); /* in whatever state: it may have left this one */
    assert_false(still_holds(fixture));
    read_by(fixture, TABLE_JOBS, NULL, 0);
    commit_job(fixture, 7, 4);
    assert_false(still_holds(fixture));
    read_by(fixture, TABLE_MACHINES, NULL, 0);
    commit_job(fixture, 7, 4);
    assert_true(still_holds(fixture));
}

TEST(a_deleted_row_changes_everything_found_by_its_other_columns)
{
    struct fixture *fixture = *state;
    read_by(fixture, TABLE_JOBS, "account", 3);
    const struct store_value key = store_integer(7);
    store_batch_delete(fixture->batch, &tables[TABLE_JOBS], &key, 1);
    versions_commit(fixture->versions, fixture->batch);
    assert_false(still_holds(fixture));
}

TEST(a_reload_changes_everything)
{
    struct fixture *fixture = *state;
    read_by(fixture, TABLE_MACHINES, "id", 1);
    versions_move_all(fixture->versions);
    assert_false(still_holds(fixture));
}

TEST(a_figure_that_is_not_stored_yet_changes_what_was_read_of_its_key)
{
    struct fixture *fixture = *state;
    version_marks_clear(&fixture->marks, fixture->versions);
    version_marks_add_key(&fixture->marks, fixture->versions, TABLE_METRICS, 7);
    versions_move(fixture->versions, TABLE_METRICS, 8);
    assert_true(still_holds(fixture));
    versions_move(fixture->versions, TABLE_METRICS, 7);
    assert_false(still_holds(fixture));
}

TEST(a_reading_that_a_commit_cut_in_two_is_not_whole)
{
    struct fixture *fixture = *state;
    read_by(fixture, TABLE_JOBS, "account", 3);
    assert_true(version_marks_are_whole(&fixture->marks, fixture->versions));
    commit_job(fixture, 7, 4);
    assert_false(version_marks_are_whole(&fixture->marks, fixture->versions));
}

TEST(more_marks_than_there_is_room_for_are_never_whole)
{
    struct fixture *fixture = *state;
    version_marks_clear(&fixture->marks, fixture->versions);
    for (uint64_t key = 1; key <= (uint64_t)4 * VERSION_MARKS_MAX; key++)
        version_marks_add_key(&fixture->marks, fixture->versions, TABLE_JOBS, key);
    assert_false(version_marks_are_whole(&fixture->marks, fixture->versions));
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void token_row(struct store_value *out, const uint8_t hash[32], const char *label)
{
    zero_row(TABLE_TOKENS, out);
    out[TOKENS_ID] = store_integer(5);
    out[TOKENS_HASH] = store_blob(hash, 32);
    out[TOKENS_LABEL] = store_text(text_of(label));
}

static void keep_token(struct fixture *fixture, struct row_cache *cache,
                       const struct store_filter *filter, const struct store_value *row)
{
    const struct store_query query = {
        .table = &tables[TABLE_TOKENS], .filters = filter, .filter_count = 1};
    version_marks_clear(&fixture->marks, fixture->versions);
    version_marks_add(&fixture->marks, fixture->versions, &query);
    row_cache_put(cache, TABLE_TOKENS, filter, &fixture->marks, row);
}

TEST(a_kept_row_is_found_until_it_changes)
{
    struct fixture *fixture = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct row_cache *cache = row_cache_new(fixture->versions, 1 << 20);
    const uint8_t hash[32] = {1, 2, 3};
    const struct store_filter filter = {"hash", STORE_EQUAL, store_blob(hash, sizeof(hash))};
    struct store_value row[STORE_COLUMN_MAX];
    token_row(row, hash, "laptop");
    assert_true(row_cache_takes(TABLE_TOKENS, &filter));
    assert_null(row_cache_find(cache, arena, TABLE_TOKENS, &filter));
    keep_token(fixture, cache, &filter, row);
    const struct store_value *found = row_cache_find(cache, arena, TABLE_TOKENS, &filter);
    assert_non_null(found);
    assert_int_equal(found[TOKENS_ID].integer, 5);
    assert_true(text_equal(found[TOKENS_LABEL].bytes, TEXT("laptop")));
    assert_true(found[TOKENS_LABEL].bytes.data != row[TOKENS_LABEL].bytes.data);

    row[TOKENS_IS_REVOKED] = store_integer(1);
    store_batch_put(fixture->batch, &tables[TABLE_TOKENS], row, tables[TABLE_TOKENS].column_count);
    versions_commit(fixture->versions, fixture->batch);
    assert_null(row_cache_find(cache, arena, TABLE_TOKENS, &filter));
    row_cache_free(cache);
}

TEST(kept_rows_never_pass_their_limit)
{
    struct fixture *fixture = *state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct row_cache *cache = row_cache_new(fixture->versions, 4096);
    size_t found = 0;
    for (uint8_t i = 0; i < 100; i++) {
        const uint8_t hash[32] = {i};
        const struct store_filter filter = {"hash", STORE_EQUAL, store_blob(hash, sizeof(hash))};
        struct store_value row[STORE_COLUMN_MAX];
        token_row(row, hash, "laptop");
        keep_token(fixture, cache, &filter, row);
    }
    for (uint8_t i = 0; i < 100; i++) {
        const uint8_t hash[32] = {i};
        const struct store_filter filter = {"hash", STORE_EQUAL, store_blob(hash, sizeof(hash))};
        found += row_cache_find(cache, arena, TABLE_TOKENS, &filter) != NULL;
    }
    assert_in_range(found, 1, 4096 / sizeof(struct store_value));
    row_cache_free(cache);
}

TEST(a_row_found_by_what_may_change_is_not_kept)
{
    (void)state;
    const struct store_filter name = {"name", STORE_EQUAL, store_text(TEXT("ada"))};
    const struct store_filter after = {"id", STORE_GREATER, store_integer(1)};
    assert_false(row_cache_takes(TABLE_ACCOUNTS, &name));
    assert_false(row_cache_takes(TABLE_ACCOUNTS, &after));
    assert_false(row_cache_takes(TABLE_JOBS, &after));
}

/* ---- Rows of a store ------------------------------------------------------------------------- */

static void store_token(struct fixture *fixture, struct store *store, bool is_revoked)
{
    struct error error;
    const uint8_t hash[32] = {1, 2, 3};
    struct store_value row[STORE_COLUMN_MAX];
    token_row(row, hash, "laptop");
    row[TOKENS_IS_REVOKED] = store_integer(is_revoked);
    store_batch_clear(fixture->batch);
    store_batch_put(fixture->batch, &tables[TABLE_TOKENS], row, tables[TABLE_TOKENS].column_count);
    ASSERT_OK(store_commit(store, fixture->batch, &error));
    versions_commit(fixture->versions, fixture->batch);
}

static bool finds_revoked(struct server *server)
{
    struct error error;
    AUTO(arena) struct arena *arena = arena_new(0);
    const uint8_t hash[32] = {1, 2, 3};
    const struct store_value *row = NULL;
    ASSERT_OK(query_one(server, arena, TABLE_TOKENS, "hash", store_blob(hash, sizeof(hash)), &row,
                        &error));
    assert_non_null(row);
    return row[TOKENS_IS_REVOKED].integer;
}

TEST(a_row_read_in_an_older_state_is_not_kept)
{
    struct fixture *fixture = *state;
    struct error error;
    AUTO(arena) struct arena *arena = arena_new(0);
    char dir[] = "/tmp/souk-version-XXXXXX", path[96];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/market.db", dir);
    const struct store_options options = {.location = path, .schema = &tables_schema};
    struct store *store = NULL;
    struct server server = {.versions = fixture->versions,
                            .rows = row_cache_new(fixture->versions, 1 << 20)};
    ASSERT_OK(store_open(&options, &store, &error));
    ASSERT_OK(store_reader_open(&options, &server.reader, &error));
    store_token(fixture, store, false);

    const struct store_value *none = NULL;
    ASSERT_OK(store_reader_begin(server.reader, &error));
    ASSERT_OK(query_one(&server, arena, TABLE_JOBS, "id", store_integer(1), &none, &error));
    store_token(fixture, store, true);
    assert_false(finds_revoked(&server)); /* one state: that of the first read */
    store_reader_end(server.reader);
    assert_true(finds_revoked(&server));
    assert_true(finds_revoked(&server));

    row_cache_free(server.rows);
    store_reader_free(server.reader);
    store_free(store);
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        char file[128];
        snprintf(file, sizeof(file), "%s%s", path, ends[i]);
        unlink(file);
    }
    rmdir(dir);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_row_changes_what_was_read_of_it_and_nothing_else),
        T(a_filter_on_what_may_change_is_a_read_of_the_whole_table),
        T(a_deleted_row_changes_everything_found_by_its_other_columns),
        T(a_reload_changes_everything),
        T(a_figure_that_is_not_stored_yet_changes_what_was_read_of_its_key),
        T(a_reading_that_a_commit_cut_in_two_is_not_whole),
        T(more_marks_than_there_is_room_for_are_never_whole),
        T(a_kept_row_is_found_until_it_changes),
        T(kept_rows_never_pass_their_limit),
        T(a_row_found_by_what_may_change_is_not_kept),
        T(a_row_read_in_an_older_state_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
