/* covers store_query.c, store_cursor.c, store_sqlite_rows.c */
#include "base/random.h"
#include "store/store_internal.h"
#include "store/store_testing.h"

#include <stdlib.h>

enum { JOB_COUNT = 200, ID_MAX = 2 * JOB_COUNT };

struct fixture {
    struct place place;
    struct store *store;
    struct store_reader *reader;
};

/* 200 jobs of three accounts; every fourth has not ended, the others end at 7 different times. */
static int set_up(void **state)
{
    struct error error;
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    place_make(&fixture->place);
    fixture->store = place_open(&fixture->place);
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    static const char *const accounts[] = {"ada", "bob", "eve"};
    for (int64_t id = 1; id <= JOB_COUNT; id++) {
        batch_add_job(batch, id, accounts[id % 3], id % 4 == 0 ? -1 : id % 7);
        const struct store_value lease[] = {store_text(text_of(accounts[id % 3])),
                                            store_integer(id), store_text(TEXT("running"))};
        store_batch_put(batch, &test_tables[1], lease, 3);
    }
    ASSERT_OK(store_commit(fixture->store, batch, &error));
    fixture->reader = place_read(&fixture->place);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    store_reader_free(fixture->reader);
    store_free(fixture->store);
    place_remove(&fixture->place);
    free(fixture);
    return 0;
}

struct ids {
    int64_t ids[ID_MAX];
    size_t count;
    size_t stop_after;
};

static int add_id(const struct store_row *row, void *context,
                  struct error *error __attribute__((unused)))
{
    struct ids *ids = context;
    assert_true(ids->count < ID_MAX);
    ids->ids[ids->count++] = store_row_integer(row, row->table == &test_tables[0] ? 0 : 1);
    return ids->count == ids->stop_after;
}

static void expect_ids(struct fixture *fixture, const struct store_query *query, size_t count,
                       const int64_t *expected)
{
    struct error error;
    struct ids ids = {0};
    ASSERT_OK(store_read_rows(fixture->reader, query, add_id, &ids, NULL, &error));
    assert_int_equal(ids.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids.ids[i], expected[i]);
}

static void filters_all_hold(void **state)
{
    const struct store_filter filters[] = {
        {"account", STORE_EQUAL, store_text(TEXT("bob"))},
        {"id", STORE_GREATER, store_integer(10)},
        {"id", STORE_LESS_OR_EQUAL, store_integer(22)},
        {"ended_ms", STORE_GREATER_OR_EQUAL, store_integer(2)},
        {"cost", STORE_LESS, store_real(5.5)}, /* id < 22 */
    };
    const struct store_query query = {
        .table = &test_tables[0], .filters = filters, .filter_count = 5};
    /* bob has 1, 4, 7 ... : of 13, 16, 19, 22 the second has not ended and the last costs 5.5 */
    expect_ids(*state, &query, 2, (const int64_t[]){13, 19});
}

static void null_is_found_by_equality_only(void **state)
{
    const struct store_filter is_null[] = {
        {"ended_ms", STORE_EQUAL, store_null(STORE_INTEGER)},
        {"id", STORE_LESS, store_integer(13)},
    };
    struct store_query query = {.table = &test_tables[0], .filters = is_null, .filter_count = 2};
    expect_ids(*state, &query, 3, (const int64_t[]){4, 8, 12});
    const struct store_filter less[] = {{"ended_ms", STORE_LESS, store_null(STORE_INTEGER)}};
    query.filters = less;
    query.filter_count = 1;
    expect_ids(*state, &query, 0, NULL);
}

static void order_and_limit_hold(void **state)
{
    const struct store_query query = {
        .table = &test_tables[0], .order_column = "cost", .is_descending = true, .limit = 3};
    expect_ids(*state, &query, 3, (const int64_t[]){200, 199, 198});
}

/* Reads all pages and checks that no row is lost or doubled and that the order is that of one
 * large query. */
static void expect_pages_add_up(struct fixture *fixture, struct store_query query, uint32_t limit)
{
    struct error error;
    struct ids whole = {0};
    struct ids paged = {0};
    query.limit = 0;
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &whole, NULL, &error));
    assert_true(whole.count > 0);

    query.limit = limit;
    struct buffer cursor AUTO_BUFFER;
    struct buffer next AUTO_BUFFER;
    buffer_init(&cursor, 1000);
    buffer_init(&next, 1000);
    size_t page_count = 0;
    do {
        query.after = buffer_text(&cursor);
        buffer_clear(&next);
        const size_t before = paged.count;
        ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &paged, &next, &error));
        assert_true(paged.count > before && paged.count - before <= limit);
        buffer_clear(&cursor);
        buffer_append_text(&cursor, buffer_text(&next));
        page_count++;
    } while (cursor.size > 0);
    assert_int_equal(page_count, (whole.count + limit - 1) / limit);
    assert_int_equal(whole.count, paged.count);
    assert_memory_equal(whole.ids, paged.ids, whole.count * sizeof(whole.ids[0]));
}

static void pages_add_up_in_every_order(void **state)
{
    const struct store_filter filter = {"account", STORE_EQUAL, store_text(TEXT("eve"))};
    static const char *const orders[] = {NULL, "id", "account", "cost", "ended_ms", "proof"};
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        for (int direction = 0; direction < 2; direction++)
            for (int has_filter = 0; has_filter < 2; has_filter++) {
                const struct store_query query = {.table = &test_tables[0],
                                                  .filters = &filter,
                                                  .filter_count = (size_t)has_filter,
                                                  .order_column = orders[i],
                                                  .is_descending = direction == 1};
                expect_pages_add_up(*state, query, 7);
                expect_pages_add_up(*state, query, JOB_COUNT);
            }
}

static void pages_of_a_table_with_two_keys_add_up(void **state)
{
    static const char *const orders[] = {NULL, "job", "rank", "state"};
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        for (int direction = 0; direction < 2; direction++) {
            const struct store_query query = {.table = &test_tables[1],
                                              .order_column = orders[i],
                                              .is_descending = direction == 1};
            expect_pages_add_up(*state, query, 9);
        }
}

static void pages_of_one_value_of_the_first_key_add_up(void **state)
{
    const struct store_filter filter = {test_tables[1].columns[0].name, STORE_EQUAL,
                                        store_text(TEXT("ada"))};
    static const char *const orders[] = {NULL, "rank", "state"};
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        for (int direction = 0; direction < 2; direction++) {
            const struct store_query query = {.table = &test_tables[1],
                                              .filters = &filter,
                                              .filter_count = 1,
                                              .order_column = orders[i],
                                              .is_descending = direction == 1};
            expect_pages_add_up(*state, query, 9);
        }
}

static void nothing_comes_after_the_one_row_of_a_whole_key(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    struct ids ids = {.stop_after = 1};
    struct buffer cursor AUTO_BUFFER;
    buffer_init(&cursor, 1000);
    struct store_query query = {.table = &test_tables[0], .limit = 1};
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, &cursor, &error));
    assert_true(cursor.size > 0);
    const struct store_filter filter = {"id", STORE_EQUAL, store_integer(ids.ids[0])};
    query.filters = &filter;
    query.filter_count = 1;
    query.after = buffer_text(&cursor);
    ids = (struct ids){0};
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error));
    assert_int_equal(ids.count, 0);
}

static size_t count_jobs(struct fixture *fixture)
{
    struct error error;
    struct ids ids = {0};
    const struct store_query query = {.table = &test_tables[0]};
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error));
    return ids.count;
}

static void reads_between_begin_and_end_see_one_state(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    batch_add_job(batch, JOB_COUNT + 1, "zoe", 1);
    ASSERT_OK(store_reader_begin(fixture->reader, &error));
    const size_t before = count_jobs(fixture);
    ASSERT_OK(store_reader_begin(fixture->reader, &error));
    ASSERT_OK(store_commit(fixture->store, batch, &error));
    assert_int_equal(count_jobs(fixture), before);
    store_reader_end(fixture->reader);
    assert_int_equal(count_jobs(fixture), before);
    store_reader_end(fixture->reader);
    assert_int_equal(count_jobs(fixture), before + 1);

    store_batch_clear(batch);
    const struct store_value key = store_integer(JOB_COUNT + 1);
    store_batch_delete(batch, &test_tables[0], &key, 1);
    ASSERT_OK(store_commit(fixture->store, batch, &error));
    assert_int_equal(count_jobs(fixture), before);
}

struct changes {
    int put_count, delete_count;
    int64_t last_key;
};

static void note_change(void *context, const struct store_table *table,
                        const struct store_value *values, bool is_deleted)
{
    struct changes *changes = context;
    assert_ptr_equal(table, &test_tables[0]);
    changes->put_count += !is_deleted;
    changes->delete_count += is_deleted;
    changes->last_key = values[0].integer;
}

static void a_batch_tells_its_rows_in_order(void **state)
{
    (void)state;
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    batch_add_job(batch, 501, "ada", 1);
    batch_add_events(batch, 1, 2);
    batch_add_job(batch, 502, "ada", 1);
    const struct store_value key = store_integer(503);
    store_batch_delete(batch, &test_tables[0], &key, 1);
    struct changes changes = {0};
    store_batch_each_row(batch, note_change, &changes);
    assert_int_equal(changes.put_count, 2);
    assert_int_equal(changes.delete_count, 1);
    assert_int_equal(changes.last_key, 503);
}

static void nulls_come_first_going_up_and_last_going_down(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    struct store_query query = {.table = &test_tables[0], .order_column = "ended_ms"};
    struct ids ids = {0};
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error));
    assert_int_equal(ids.ids[0], 4);
    query.is_descending = true;
    ids.count = 0;
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error));
    assert_int_equal(ids.ids[JOB_COUNT - 1], 4);
}

static void a_page_the_callback_ended_goes_on_behind_it(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    struct buffer cursor AUTO_BUFFER;
    buffer_init(&cursor, 1000);
    struct store_query query = {.table = &test_tables[0]};
    struct ids ids = {.stop_after = 5};
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, &cursor, &error));
    assert_int_equal(ids.count, 5);
    query.after = buffer_text(&cursor);
    query.limit = 1;
    expect_ids(fixture, &query, 1, (const int64_t[]){6});
}

static int refuse_row(const struct store_row *row __attribute__((unused)),
                      void *context __attribute__((unused)), struct error *error)
{
    return error_set(error, ERROR_REFUSED, "no");
}

static void a_failing_callback_fails_the_read(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    const struct store_query query = {.table = &test_tables[0]};
    ASSERT_FAILS(store_read_rows(fixture->reader, &query, refuse_row, NULL, NULL, &error),
                 ERROR_REFUSED);
    struct ids ids = {0};
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error));
    assert_int_equal(ids.count, JOB_COUNT);
}

static void what_outsiders_may_get_wrong_is_refused(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    struct ids ids = {0};
    struct store_filter filter = {"account\" OR 1", STORE_EQUAL, store_text(TEXT("x"))};
    struct store_query query = {.table = &test_tables[0], .filters = &filter, .filter_count = 1};
    ASSERT_FAILS(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error),
                 ERROR_INVALID);
    filter = (struct store_filter){"id", STORE_EQUAL, store_text(TEXT("1"))};
    ASSERT_FAILS(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error),
                 ERROR_INVALID);
    query = (struct store_query){.table = &test_tables[0], .limit = STORE_ROW_LIMIT_MAX + 1};
    ASSERT_FAILS(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error),
                 ERROR_INVALID);
    query = (struct store_query){.table = &test_tables[0], .order_column = "nothing"};
    ASSERT_FAILS(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error),
                 ERROR_INVALID);
    query = (struct store_query){.table = &test_tables[0], .after = TEXT("AAAAAAAAAAAAAAAAAA")};
    ASSERT_FAILS(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error),
                 ERROR_INVALID);
}

static void a_cursor_serves_only_the_list_it_came_from(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    struct buffer cursor AUTO_BUFFER;
    buffer_init(&cursor, 1000);
    struct ids ids = {0};
    struct store_query query = {.table = &test_tables[0], .limit = 5};
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, &cursor, &error));
    query.after = buffer_text(&cursor);
    ids.count = 0;
    query.is_descending = true;
    ASSERT_FAILS(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error),
                 ERROR_INVALID);
    query.is_descending = false;
    query.order_column = "cost";
    ASSERT_FAILS(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error),
                 ERROR_INVALID);
    query.order_column = NULL;
    query.table = &test_tables[1];
    ASSERT_FAILS(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error),
                 ERROR_INVALID);
    assert_int_equal(ids.count, 0);
}

static void a_broken_cursor_is_refused_or_harmless(void **state)
{
    struct error error;
    struct fixture *fixture = *state;
    struct buffer cursor AUTO_BUFFER;
    buffer_init(&cursor, 1000);
    struct ids ids = {0};
    struct store_query query = {.table = &test_tables[0], .order_column = "account", .limit = 5};
    ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, &cursor, &error));
    struct random random;
    random_init(&random, 7);
    size_t refused = 0;
    for (int round = 0; round < 500; round++) {
        char broken[200];
        memcpy(broken, cursor.data, cursor.size);
        broken[random_below(&random, cursor.size)] = (char)random_below(&random, 256);
        query.after = (struct text){broken, 1 + random_below(&random, cursor.size)};
        ids.count = 0;
        if (store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error) < 0) {
            assert_int_equal(error.code, ERROR_INVALID);
            refused++;
        }
    }
    assert_true(refused > 400);
}

static void more_shapes_of_query_than_the_cache_holds_still_work(void **state)
{
    static const char *const columns[] = {"id", "account", "cost", "ended_ms"};
    for (int shape = 0; shape < 200; shape++) {
        struct store_filter filters[4];
        for (int i = 0; i < 4; i++)
            filters[i] = (struct store_filter){
                columns[i], (enum store_compare)((shape >> i) % STORE_COMPARE_COUNT),
                (const struct store_value[]){store_integer(5), store_text(TEXT("m")), store_real(3),
                                             store_integer(3)}[i]};
        struct error error;
        struct ids ids = {0};
        const struct store_query query = {.table = &test_tables[0],
                                          .filters = filters,
                                          .filter_count = (size_t)shape % 5,
                                          .order_column = columns[shape % 3],
                                          .is_descending = shape % 2};
        struct fixture *fixture = *state;
        ASSERT_OK(store_read_rows(fixture->reader, &query, add_id, &ids, NULL, &error));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_all_hold),
        cmocka_unit_test(null_is_found_by_equality_only),
        cmocka_unit_test(order_and_limit_hold),
        cmocka_unit_test(pages_add_up_in_every_order),
        cmocka_unit_test(pages_of_a_table_with_two_keys_add_up),
        cmocka_unit_test(pages_of_one_value_of_the_first_key_add_up),
        cmocka_unit_test(nothing_comes_after_the_one_row_of_a_whole_key),
        cmocka_unit_test(reads_between_begin_and_end_see_one_state),
        cmocka_unit_test(a_batch_tells_its_rows_in_order),
        cmocka_unit_test(nulls_come_first_going_up_and_last_going_down),
        cmocka_unit_test(a_page_the_callback_ended_goes_on_behind_it),
        cmocka_unit_test(a_failing_callback_fails_the_read),
        cmocka_unit_test(what_outsiders_may_get_wrong_is_refused),
        cmocka_unit_test(a_cursor_serves_only_the_list_it_came_from),
        cmocka_unit_test(a_broken_cursor_is_refused_or_harmless),
        cmocka_unit_test(more_shapes_of_query_than_the_cache_holds_still_work),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
