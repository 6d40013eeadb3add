#include "cli/output.h"
#include "cli/table.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <string.h>

/* What is printed in `width_max`; the caller frees it. */
static char *print(const struct table *table, size_t width_max, const char **left_out)
{
    char *printed = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&printed, &size);
    table_print(table, file, width_max, false, left_out);
    fclose(file);
    return printed;
}

static void assert_prints(const struct table *table, size_t width_max, const char *expected,
                          const char *expected_left_out)
{
    const char *left_out;
    char *printed = print(table, width_max, &left_out);
    assert_string_equal(printed, expected);
    assert_string_equal(left_out, expected_left_out);
    free(printed);
}

TEST(columns_are_as_wide_as_their_widest_cell)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct table table;
    table_init(&table, arena, (const char *const[]){">ID", "NAME", ">COST", NULL});
    TABLE_ROW(&table, "1", "Zoë", "0.5");
    TABLE_ROW(&table, "200", "al", "12.25");
    assert_prints(&table, 0,
                  " ID  NAME   COST\n"
                  "  1  Zoë     0.5\n"
                  "200  al    12.25\n",
                  "");
}

TEST(many_rows_are_kept)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct table table;
    table_init(&table, arena, (const char *const[]){"N", NULL});
    for (uint64_t i = 0; i < 100; i++)
        TABLE_ROW(&table, output_number(arena, i));
    assert_int_equal(table.row_count, 100);
    assert_string_equal(table.cells[99], "99");
    assert_string_equal(table.cells[0], "0");
}

TEST(text_is_cut_before_columns_are_left_out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct table table;
    table_init(&table, arena,
               (const char *const[]){">ID", "~NAME", ">/2STEPS", "/7MADE", ">COST", NULL});
    TABLE_ROW(&table, "1", "fünfzehn Zeichen", "100", "monday", "0.5");
    TABLE_ROW(&table, "2", "short", "7", "friday", "12.25");
    assert_prints(&table, 43,
                  "ID  NAME              STEPS  MADE     COST\n"
                  " 1  fünfzehn Zeichen    100  monday    0.5\n"
                  " 2  short                 7  friday  12.25\n",
                  "");
    assert_prints(&table, 39,
                  "ID  NAME           STEPS  MADE     COST\n"
                  " 1  fünfzehn Zei…    100  monday    0.5\n"
                  " 2  short              7  friday  12.25\n",
                  "");
    assert_prints(&table, 35,
                  "ID  NAME              STEPS   COST\n"
                  " 1  fünfzehn Zeichen    100    0.5\n"
                  " 2  short                 7  12.25\n",
                  "MADE");
    assert_prints(&table, 21,
                  "ID  NAME         COST\n"
                  " 1  fünfzehn …    0.5\n"
                  " 2  short       12.25\n",
                  "STEPS, MADE");
}

TEST(numbers_are_never_cut)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct table table;
    table_init(&table, arena, (const char *const[]){">ID", "~NAME", NULL});
    TABLE_ROW(&table, "12345678", "heron");
    assert_prints(&table, 5, "      ID  NAME\n12345678  heron\n", "");
}

TEST(prose_flows_over_several_lines)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct table table;
    table_init(&table, arena, (const char *const[]){"NAME", "+WHAT IT IS", NULL});
    TABLE_ROW(&table, "lost", "unreachable for so long, its leases are lost");
    TABLE_ROW(&table, "start", "a lease has to run by then");
    assert_prints(&table, 33,
                  "NAME   WHAT IT IS\n"
                  "lost   unreachable for so long,\n"
                  "       its leases are lost\n"
                  "start  a lease has to run by then\n",
                  "");
}

TEST(no_line_ends_with_spaces)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct table table;
    table_init(&table, arena, (const char *const[]){">ID", "MEMBER", "", NULL});
    TABLE_ROW(&table, "8", "ada", "");
    TABLE_ROW(&table, "37", "robert", "owner");
    assert_prints(&table, 0,
                  "ID  MEMBER\n"
                  " 8  ada\n"
                  "37  robert  owner\n",
                  "");
}

TEST(no_line_is_wider_than_asked)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct table table;
    table_init(&table, arena,
               (const char *const[]){">ID", "~NAME", "/3STATE", ">/9SPEED", "+REASON", NULL});
    TABLE_ROW(&table, "17", "a-name-that-is-rather-long-for-a-job", "running", "1.25",
              "waits for other jobs of this account, which were submitted before it");
    for (size_t width = 40; width < 140; width++) {
        const char *left_out;
        char *printed = print(&table, width, &left_out);
        char *rest = printed;
        for (char *line; (line = strsep(&rest, "\n"));)
            assert_true(output_width(line) <= width);
        free(printed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(many_rows_are_kept),
        cmocka_unit_test(text_is_cut_before_columns_are_left_out),
        cmocka_unit_test(numbers_are_never_cut),
        cmocka_unit_test(prose_flows_over_several_lines),
        cmocka_unit_test(no_line_ends_with_spaces),
        cmocka_unit_test(no_line_is_wider_than_asked),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
