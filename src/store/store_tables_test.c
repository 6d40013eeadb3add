/* covers store_sqlite_tables.c: how tables follow the schema from one version to the next. */
#include "store/store_testing.h"

static int set_up(void **state)
{
    struct error error;
    struct place *place = calloc(1, sizeof(*place));
    place_make(place);
    struct store *store = place_open(place);
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    batch_add_events(batch, 1, 3);
    batch_add_job(batch, 1, "ada", 5);
    batch_add_job(batch, 2, "bob", -1);
    ASSERT_OK(store_commit(store, batch, &error));
    store_free(store);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    place_remove(*state);
    free(*state);
    return 0;
}

static int expect_zero_and_null(const struct store_row *row, void *context __attribute__((unused)),
                                struct error *error __attribute__((unused)))
{
    assert_false(store_row_is_null(row, 5));
    assert_int_equal(store_row_text(row, 5).size, 0);
    assert_true(store_row_is_null(row, 6));
    return 0;
}

static void columns_and_tables_are_added_under_the_same_version(void **state)
{
    struct error error;
    struct place *place = *state;
    struct store_column columns[7];
    memcpy(columns, job_columns, sizeof(job_columns));
    columns[5] = (struct store_column){"note", STORE_TEXT, .is_indexed = true};
    columns[6] = (struct store_column){"score", STORE_REAL, .is_optional = true};
    const struct store_table tables[] = {
        {"jobs", columns, 7}, test_tables[1], {"more", lease_columns, 3}};
    const struct store_schema schema = {1, tables, 3};
    place->options.schema = &schema;
    AUTO(store) struct store *store = place_open(place);
    assert_false(store_needs_rebuild(store));
    assert_int_equal(count_rows(place, 0), 2);
    assert_int_equal(count_rows(place, 2), 0);
    AUTO(store_reader) struct store_reader *reader = place_read(place);
    const struct store_query query = {.table = &tables[0], .order_column = "note"};
    ASSERT_OK(store_read_rows(reader, &query, expect_zero_and_null, NULL, NULL, &error));
    place->options.schema = NULL;
}

static void expect_rebuild(struct place *place, const struct store_schema *schema)
{
    struct error error;
    place->options.schema = schema;
    struct store *store = place_open(place);
    assert_true(store_needs_rebuild(store));
    assert_int_equal(count_rows(place, 0), 0);
    assert_int_equal(store_head(store).sequence, 3);
    store_free(store);

    /* Not done is not forgotten. */
    store = place_open(place);
    assert_true(store_needs_rebuild(store));
    ASSERT_OK(store_tables_built(store, &error));
    assert_false(store_needs_rebuild(store));
    store_free(store);
    store = place_open(place);
    assert_false(store_needs_rebuild(store));
    store_free(store);
    assert_int_equal(verify_log(place), 3);
    place->options.schema = NULL;
}

static void another_version_asks_for_a_rebuild(void **state)
{
    const struct store_schema schema = {2, test_tables, 2};
    expect_rebuild(*state, &schema);
}

static void a_column_that_is_gone_asks_for_a_rebuild(void **state)
{
    const struct store_table tables[] = {{"jobs", job_columns, 4}, test_tables[1]};
    const struct store_schema schema = {1, tables, 2};
    expect_rebuild(*state, &schema);
}

static void another_type_or_key_asks_for_a_rebuild(void **state)
{
    struct store_column columns[5];
    memcpy(columns, job_columns, sizeof(columns));
    columns[2].type = STORE_INTEGER;
    const struct store_table tables[] = {{"jobs", columns, 5}, test_tables[1]};
    const struct store_schema schema = {1, tables, 2};
    expect_rebuild(*state, &schema);
    columns[1].is_key = true;
    ((struct place *)*state)->options.schema = &schema;
    AUTO(store) struct store *store = place_open(*state);
    assert_true(store_needs_rebuild(store));
    ((struct place *)*state)->options.schema = NULL;
}

static void clearing_empties_every_table_and_asks_for_a_rebuild(void **state)
{
    struct error error;
    struct place *place = *state;
    struct store *store = place_open(place);
    ASSERT_OK(store_tables_clear(store, &error));
    assert_true(store_needs_rebuild(store));
    store_free(store);
    store = place_open(place);
    assert_true(store_needs_rebuild(store));
    assert_int_equal(count_rows(place, 0), 0);
    assert_int_equal(verify_log(place), 3);
    store_free(store);
}

static void a_reader_of_other_tables_is_refused_but_may_audit(void **state)
{
    struct error error;
    struct place *place = *state;
    const struct store_schema schema = {2, test_tables, 2};
    place->options.schema = &schema;
    struct store_reader *reader = NULL;
    ASSERT_FAILS(store_reader_open(&place->options, &reader, &error), ERROR_CONFLICT);
    place->options.schema = NULL;
    assert_int_equal(verify_log(place), 3);
}

static void expect_refused(struct place *place, struct store_table table)
{
    struct error error;
    const struct store_schema schema = {1, &table, 1};
    place->options.schema = &schema;
    struct store *store = NULL;
    ASSERT_FAILS(store_open(&place->options, &store, &error), ERROR_INVALID);
}

static void schemas_that_break_the_rules_are_refused(void **state)
{
    struct place *place = *state;
    expect_refused(place, (struct store_table){"store_events", job_columns, 5});
    expect_refused(place, (struct store_table){"sqlite_things", job_columns, 5});
    expect_refused(place,
                   (struct store_table){"jobs\"; DROP TABLE store_events; --", job_columns, 5});
    expect_refused(place, (struct store_table){"", job_columns, 5});
    expect_refused(place, (struct store_table){"jobs", job_columns, 0});
    expect_refused(place, (struct store_table){"jobs", job_columns + 1, 4}); /* no key */
    const struct store_column twice[] = {{"a", STORE_TEXT, .is_key = true}, {"a", STORE_TEXT}};
    expect_refused(place, (struct store_table){"jobs", twice, 2});
    const struct store_column optional[] = {{"a", STORE_TEXT, .is_key = true, .is_optional = true}};
    expect_refused(place, (struct store_table){"jobs", optional, 1});
    const struct store_column upper[] = {{"Name", STORE_TEXT, .is_key = true}};
    expect_refused(place, (struct store_table){"jobs", upper, 1});
}

#define TEST_WITH_PLACE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_WITH_PLACE(columns_and_tables_are_added_under_the_same_version),
        TEST_WITH_PLACE(another_version_asks_for_a_rebuild),
        TEST_WITH_PLACE(a_column_that_is_gone_asks_for_a_rebuild),
        TEST_WITH_PLACE(another_type_or_key_asks_for_a_rebuild),
        TEST_WITH_PLACE(clearing_empties_every_table_and_asks_for_a_rebuild),
        TEST_WITH_PLACE(a_reader_of_other_tables_is_refused_but_may_audit),
        TEST_WITH_PLACE(schemas_that_break_the_rules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
