#include "peer/logbook.h"
#include "testing/testing.h"

#include <string.h>

static void assert_next(struct logbook *book, uint64_t offset, const char *bytes)
{
    struct log_message log;
    assert_true(logbook_next(book, &log));
    assert_int_equal(log.offset, offset);
    assert_true(text_equal(log.bytes, text_of(bytes)));
}

TEST(what_is_not_kept_is_sent_again_on_a_new_link_and_nothing_else)
{
    struct logbook book;
    struct log_message log;
    logbook_init(&book);
    logbook_add(&book, TEXT("one two "));
    assert_true(logbook_next(&book, &log));
    assert_true(log.is_resumed && !log.is_last);
    assert_false(logbook_next(&book, &log));
    logbook_add(&book, TEXT("three"));
    assert_true(logbook_next(&book, &log));
    assert_true(log.offset == 8 && !log.is_resumed);
    logbook_kept(&book, 4);
    assert_false(logbook_next(&book, &log));
    logbook_rewind(&book);
    assert_next(&book, 4, "two three");
    logbook_kept(&book, 2); /* said late: nothing comes back */
    assert_false(logbook_next(&book, &log));
    logbook_done(&book);
}

TEST(what_was_kept_before_it_was_sent_again_is_not_sent)
{
    struct logbook book;
    struct log_message log;
    logbook_init(&book);
    logbook_add(&book, TEXT("abcdef"));
    assert_true(logbook_next(&book, &log));
    logbook_rewind(&book);
    logbook_kept(&book, 4);
    assert_next(&book, 4, "ef");
    logbook_kept(&book, LEASE_LOG_ALL);
    logbook_add(&book, TEXT("gh"));
    assert_next(&book, 6, "gh");
    logbook_done(&book);
}

TEST(the_end_is_told_once_on_each_link_and_settled_when_all_is_kept)
{
    struct logbook book;
    struct log_message log;
    logbook_init(&book);
    logbook_add(&book, TEXT("abc"));
    assert_true(logbook_next(&book, &log) && !log.is_last);
    logbook_end(&book);
    assert_true(logbook_next(&book, &log));
    assert_true(log.is_last && log.offset == 3 && log.bytes.size == 0);
    assert_false(logbook_next(&book, &log));
    assert_false(logbook_is_settled(&book));
    logbook_rewind(&book);
    assert_true(logbook_next(&book, &log));
    assert_true(log.is_last && log.is_resumed && log.bytes.size == 3);
    assert_false(logbook_next(&book, &log));
    logbook_kept(&book, 3);
    assert_true(logbook_is_settled(&book));
    logbook_rewind(&book);
    assert_false(logbook_next(&book, &log));
    logbook_done(&book);
}

TEST(who_said_nothing_is_settled_at_its_end)
{
    struct logbook book;
    struct log_message log;
    logbook_init(&book);
    assert_false(logbook_is_settled(&book));
    logbook_end(&book);
    assert_true(logbook_is_settled(&book));
    assert_false(logbook_next(&book, &log));
    logbook_done(&book);
}

TEST(a_full_book_has_no_room_until_something_is_kept_and_a_lease_has_a_limit)
{
    static char piece[LOGBOOK_PIECE_BYTES];
    struct logbook book;
    struct log_message log;
    logbook_init(&book);
    uint64_t added = 0;
    while (logbook_has_room(&book)) {
        logbook_add(&book, (struct text){piece, sizeof(piece)});
        added += sizeof(piece);
    }
    assert_int_equal(added, LOGBOOK_BYTES_MAX);
    logbook_kept(&book, 1);
    assert_true(logbook_has_room(&book));
    while (added < LOGBOOK_LEASE_MAX + 3 * sizeof(piece)) {
        logbook_kept(&book, LEASE_LOG_ALL);
        logbook_add(&book, (struct text){piece, sizeof(piece)});
        added += sizeof(piece);
    }
    assert_int_equal(book.start + book.bytes.size, LOGBOOK_LEASE_MAX);
    assert_false(logbook_next(&book, &log));
    logbook_done(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_kept_is_sent_again_on_a_new_link_and_nothing_else),
        cmocka_unit_test(what_was_kept_before_it_was_sent_again_is_not_sent),
        cmocka_unit_test(the_end_is_told_once_on_each_link_and_settled_when_all_is_kept),
        cmocka_unit_test(who_said_nothing_is_settled_at_its_end),
        cmocka_unit_test(a_full_book_has_no_room_until_something_is_kept_and_a_lease_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
