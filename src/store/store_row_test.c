#include "store/store.h"
#include "testing/testing.h"

static const struct store_column columns[] = {
    {"id", STORE_INTEGER, .is_key = true},
    {"price", STORE_REAL},
    {"name", STORE_TEXT, .is_optional = true},
    {"key", STORE_BLOB},
};
static const struct store_table table = {"things", columns, 4};

TEST(fields_are_read_by_their_type)
{
    const struct store_value values[] = {store_integer(7), store_real(0.5),
                                         store_text(TEXT("lamp")), store_blob("\0\1", 2)};
    const struct store_row row = {&table, values};
    assert_int_equal(store_row_integer(&row, 0), 7);
    assert_true(store_row_real(&row, 1) == 0.5);
    assert_true(text_equal(store_row_text(&row, 2), TEXT("lamp")));
    assert_int_equal(store_row_blob(&row, 3).size, 2);
    assert_false(store_row_is_null(&row, 2));
}

TEST(null_reads_as_empty)
{
    const struct store_value values[] = {store_integer(7), store_null(STORE_REAL),
                                         store_null(STORE_TEXT), store_null(STORE_BLOB)};
    const struct store_row row = {&table, values};
    assert_true(store_row_is_null(&row, 2));
    assert_int_equal(store_row_text(&row, 2).size, 0);
    assert_true(store_row_real(&row, 1) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read_by_their_type),
        cmocka_unit_test(null_reads_as_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
