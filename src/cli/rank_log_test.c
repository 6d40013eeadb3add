#include "cli/rank_log.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <string.h>

struct page {
    char *text;
    size_t size;
    FILE *file;
    struct rank_log *log;
};

static void open_page(struct page *page, bool is_plain, bool is_single)
{
    *page = (struct page){0};
    page->file = open_memstream(&page->text, &page->size);
    assert_non_null(page->file);
    const struct rank_log_options options = {
        .file = page->file, .is_plain = is_plain, .is_single = is_single};
    page->log = rank_log_new(&options);
}

static void close_page(struct page *page)
{
    rank_log_free(page->log);
    fclose(page->file);
    free(page->text);
}
#define AUTO_PAGE __attribute__((cleanup(close_page)))

TEST(lines_are_whole_and_carry_their_rank)
{
    AUTO_PAGE struct page page;
    open_page(&page, false, false);
    assert_true(rank_log_take(page.log, 7, 0, 0, TEXT("one\ntw")));
    assert_true(rank_log_take(page.log, 8, 1, 0, TEXT("other\n")));
    assert_true(rank_log_take(page.log, 7, 0, 6, TEXT("o\n\nthree")));
    assert_string_equal(page.text, "rank 0 | one\nrank 1 | other\nrank 0 | two\nrank 0 | \n");
    rank_log_finish(page.log);
    assert_string_equal(page.text, "rank 0 | one\nrank 1 | other\nrank 0 | two\nrank 0 | \n"
                                   "rank 0 | three\n");
}

TEST(what_comes_twice_is_printed_once_and_gaps_are_told)
{
    AUTO_PAGE struct page page;
    open_page(&page, false, true);
    assert_true(rank_log_take(page.log, 7, 0, 0, TEXT("abc\n")));
    assert_true(rank_log_take(page.log, 7, 0, 0, TEXT("abc\n")));
    assert_true(rank_log_take(page.log, 7, 0, 2, TEXT("c\nde\n")));
    assert_false(rank_log_take(page.log, 7, 0, 9, TEXT("later\n")));
    assert_int_equal(rank_log_next(page.log, 7), 7);
    assert_int_equal(rank_log_next(page.log, 99), 0);
    assert_string_equal(page.text, "abc\nde\n");
}

TEST(what_comes_ahead_is_held_until_its_time)
{
    AUTO_PAGE struct page page;
    open_page(&page, false, true);
    assert_true(rank_log_take_ahead(page.log, 7, 0, 4, TEXT("two\n")));
    assert_true(rank_log_take_ahead(page.log, 7, 0, 8, TEXT("three\n")));
    assert_true(rank_log_is_waiting(page.log, 7));
    assert_int_equal(rank_log_next(page.log, 7), 0);
    assert_true(rank_log_take(page.log, 7, 0, 0, TEXT("one\ntw")));
    assert_false(rank_log_is_waiting(page.log, 7));
    assert_int_equal(rank_log_next(page.log, 7), 14);
    /* whichever is first: the other's copy is left out */
    assert_true(rank_log_take(page.log, 7, 0, 4, TEXT("two\nthree\nfo")));
    assert_true(rank_log_take_ahead(page.log, 7, 0, 14, TEXT("four\n")));
    assert_true(rank_log_take(page.log, 7, 0, 14, TEXT("four\n")));
    assert_string_equal(page.text, "one\ntwo\nthree\nfour\n");
}

TEST(what_is_held_has_no_gaps_and_an_end)
{
    AUTO_PAGE struct page page;
    static char flood[RANK_LOG_AHEAD_MAX];
    memset(flood, 'x', sizeof(flood));
    open_page(&page, false, true);
    assert_true(rank_log_take_ahead(page.log, 7, 0, 4, TEXT("two\n")));
    assert_false(rank_log_take_ahead(page.log, 7, 0, 9, TEXT("gap\n")));
    assert_false(rank_log_is_waiting(page.log, 7));
    assert_true(rank_log_take_ahead(page.log, 7, 0, 4, TEXT("two\n")));
    assert_false(rank_log_take_ahead(page.log, 7, 0, 8, (struct text){flood, sizeof(flood)}));
    assert_false(rank_log_take_ahead(page.log, 7, 0, UINT64_MAX, TEXT("two\n")));
    assert_false(rank_log_is_waiting(page.log, 7));
    assert_true(rank_log_take(page.log, 7, 0, 0, TEXT("one\nTWO\n")));
    assert_string_equal(page.text, "one\nTWO\n");
}

/* The market's JSON has U+FFFD for each byte that is none of UTF-8. */
TEST(text_that_was_changed_stands_for_the_bytes_it_was)
{
    AUTO_PAGE struct page page;
    open_page(&page, false, true);
    const struct rank_log_text changed = {0, 4,
                                          TEXT("a\xef\xbf\xbd"
                                               "b\n")};
    assert_true(rank_log_take_text(page.log, 7, 0, &changed));
    assert_true(rank_log_take_text(page.log, 7, 0, &changed));
    assert_int_equal(rank_log_next(page.log, 7), 4);
    assert_true(rank_log_take_ahead(page.log, 7, 0, 4, TEXT("c\n")));
    /* It overlaps what was printed and cannot be cut: it is asked for from there. */
    const struct rank_log_text late = {4, 9,
                                       TEXT("c\n\xef\xbf\xbd"
                                            "d\n")};
    assert_false(rank_log_take_text(page.log, 7, 0, &late));
    const struct rank_log_text rest = {6, 9,
                                       TEXT("\xef\xbf\xbd"
                                            "d\n")};
    assert_true(rank_log_take_text(page.log, 7, 0, &rest));
    assert_string_equal(page.text, "a\xef\xbf\xbd"
                                   "b\nc\n\xef\xbf\xbd"
                                   "d\n");
}

TEST(ranks_of_many_digits_stand_in_one_column)
{
    AUTO_PAGE struct page page;
    open_page(&page, false, false);
    rank_log_add(page.log, 20, 10);
    assert_true(rank_log_take(page.log, 7, 3, 0, TEXT("x\n")));
    assert_true(rank_log_take(page.log, 20, 10, 0, TEXT("y\n")));
    assert_string_equal(page.text, "rank  3 | x\nrank 10 | y\n");
}

TEST(a_terminal_is_not_steered)
{
    AUTO_PAGE struct page page;
    open_page(&page, true, true);
    assert_true(rank_log_take(page.log, 7, 0, 0, TEXT("\033[2Jgone\ttab\a\r\n")));
    assert_string_equal(page.text, "?[2Jgone\ttab??\n");
}

TEST(a_line_without_end_is_cut)
{
    AUTO_PAGE struct page page;
    open_page(&page, false, true);
    static char flood[(64 << 10) + 10];
    for (size_t i = 0; i < sizeof(flood); i++)
        flood[i] = 'x';
    assert_true(rank_log_take(page.log, 7, 0, 0, (struct text){flood, sizeof(flood)}));
    assert_int_equal(page.size, (64 << 10) + 1);
    rank_log_finish(page.log);
    assert_int_equal(page.size, sizeof(flood) + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_whole_and_carry_their_rank),
        cmocka_unit_test(what_comes_twice_is_printed_once_and_gaps_are_told),
        cmocka_unit_test(what_comes_ahead_is_held_until_its_time),
        cmocka_unit_test(what_is_held_has_no_gaps_and_an_end),
        cmocka_unit_test(text_that_was_changed_stands_for_the_bytes_it_was),
        cmocka_unit_test(ranks_of_many_digits_stand_in_one_column),
        cmocka_unit_test(a_terminal_is_not_steered),
        cmocka_unit_test(a_line_without_end_is_cut),
    };
    return cmocka_run_group_tests_name("rank_log", tests, NULL, NULL);
}
