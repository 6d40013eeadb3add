#include "server/import_classes.h"
#include "testing/testing.h"

static struct error error;

#define CLASSES(names) "{\"form\":\"bytes\",\"target\":\"class\",\"width\":4" names "}"
static const struct text named = TEXT(CLASSES(",\"classes\":[\"cat\",\"d\xc3\xb6g\"]"));

TEST(records_are_counted_by_the_names_of_their_classes)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct import_classes classes;
    const struct import_labels labels = {.train = TEXT("\0\0\x08\x01\0\0\0\3\0\1\0"),
                                         .test = TEXT("\0\0\x0c\x01\0\0\0\1\0\0\0\1"),
                                         .columns = named};
    ASSERT_OK(import_classes_read(arena, &labels, &classes, &error));
    assert_int_equal(classes.count, 2);
    assert_true(text_equal(classes.items[0].name, TEXT("cat")));
    assert_true(text_equal(classes.items[1].name, TEXT("d\xc3\xb6g")));
    assert_int_equal(classes.items[0].records, 2);
    assert_int_equal(classes.items[1].records, 2);
}

TEST(classes_without_names_go_by_their_numbers_and_only_the_first_are_shown)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct import_classes classes;
    const struct import_labels labels = {.test = TEXT("\0\0\x08\x01\0\0\0\3\0\x63\xfa"),
                                         .columns = TEXT(CLASSES("")),
                                         .classes = 251};
    ASSERT_OK(import_classes_read(arena, &labels, &classes, &error));
    assert_int_equal(classes.count, IMPORT_CLASSES_SHOWN);
    assert_true(text_equal(classes.items[99].name, TEXT("99")));
    assert_int_equal(classes.items[99].records, 1);
    assert_int_equal(classes.items[98].records, 0);
}

TEST(where_a_number_is_told_there_are_none)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct import_classes classes;
    const struct import_labels labels = {
        .train = TEXT("\0\0\x0d\x01\0\0\0\1\0\0\0\0"),
        .columns = TEXT("{\"form\":\"floats\",\"target\":\"number\",\"width\":4}")};
    ASSERT_OK(import_classes_read(arena, &labels, &classes, &error));
    assert_int_equal(classes.count, 0);
}

TEST(what_no_reader_writes_is_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct import_classes classes;
    static const struct text wrong[] = {
        {"no idx", 6},
        {"\0\0\x08\x01\0\0\0\3\0\1", 10},                  /* cut short */
        {"\0\0\x0d\x01\0\0\0\1\0\0\0\0", 12},              /* floats */
        {"\0\0\x08\x02\0\0\0\1\0\0\0\2\0\1", 14},          /* two of each */
        {"\0\0\x0c\x01\xff\xff\xff\xff\0\0\0\0\0\0", 14}}; /* more than there can be */
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        const struct import_labels labels = {.train = wrong[i], .columns = named};
        ASSERT_FAILS(import_classes_read(arena, &labels, &classes, &error), ERROR_CORRUPT);
    }
    const struct import_labels labels = {.columns = TEXT("{}")};
    assert_int_equal(import_classes_read(arena, &labels, &classes, &error), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_counted_by_the_names_of_their_classes),
        cmocka_unit_test(classes_without_names_go_by_their_numbers_and_only_the_first_are_shown),
        cmocka_unit_test(where_a_number_is_told_there_are_none),
        cmocka_unit_test(what_no_reader_writes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
