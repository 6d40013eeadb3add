#include "cli/lend_questions.h"
#include "testing/testing.h"

static struct lend_answers market(struct arena *arena, const char *line)
{
    struct error error = {0};
    struct lend_answers answers = {0};
    ASSERT_OK(lend_answer_market(arena, text_of(line), &answers, &error));
    return answers;
}

TEST(market_is_an_address_as_people_type_it)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_string_equal(market(arena, "market.example:7600").server, "https://market.example:7600");
    assert_string_equal(market(arena, " https://m.example ").server, "https://m.example");
    assert_string_equal(market(arena, "localhost:7600").server, "http://localhost:7600");
    assert_string_equal(market(arena, "127.0.0.1:7600").server, "http://127.0.0.1:7600");
}

TEST(market_is_a_whole_command)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct lend_answers answers = market(
        arena, "  souk lend --server https://m.example:7600  --fingerprint abcd --code=c0de");
    assert_string_equal(answers.server, "https://m.example:7600");
    assert_string_equal(answers.fingerprint, "abcd");
    assert_string_equal(answers.code, "c0de");
}

TEST(other_lines_are_no_market)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct lend_answers answers = {0};
    ASSERT_FAILS(lend_answer_market(arena, TEXT(""), &answers, &error), ERROR_INVALID);
    ASSERT_FAILS(lend_answer_market(arena, TEXT("the one I know"), &answers, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(lend_answer_market(arena, TEXT("ftp://x"), &answers, &error), ERROR_INVALID);
    ASSERT_FAILS(lend_answer_market(arena, TEXT("http://10.1.2.3:7600"), &answers, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(lend_answer_market(arena, TEXT("souk lend --code x --server"), &answers, &error),
                 ERROR_INVALID);
    assert_null(answers.server);
}

static void assert_share(const char *line, const char *cores, const char *share)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct lend_answers answers = {0};
    if (!share) {
        ASSERT_FAILS(lend_answer_share(arena, text_of(line), 8000, &answers, &error),
                     ERROR_INVALID);
        assert_null(answers.share);
        return;
    }
    ASSERT_OK(lend_answer_share(arena, text_of(line), 8000, &answers, &error));
    assert_string_equal(answers.cores, cores);
    assert_string_equal(answers.share, share);
}

TEST(share_is_a_part_of_the_machine)
{
    assert_share("50%", "50%", "50%");
    assert_share(" 30 ", "30%", "30%");
    assert_share("Half", "50%", "50%");
    assert_share("ALL", "100%", "100%");
    assert_share("12.5%", "12.5%", "12.5%");
    assert_share("0", NULL, NULL);
    assert_share("150%", NULL, NULL);
    assert_share("500", NULL, NULL);
    assert_share("some", NULL, NULL);
    assert_share("", NULL, NULL);
}

TEST(a_number_that_may_be_cores_is_asked_for_again)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct lend_answers answers = {0};
    ASSERT_FAILS(lend_answer_share(arena, TEXT("3"), 8000, &answers, &error), ERROR_INVALID);
    assert_string_equal(error.message, "3 cores or 3%? write the one you mean");
    assert_share("8", NULL, NULL);
    assert_share("9", "9%", "9%");
    assert_share("3%", "3%", "3%");
    assert_share("3 cores", "3", "37.5%");
    assert_share("1 core", "1", "12.5%");
    assert_share("0.5 cores", "0.5", "6.2%");
    assert_share("9 cores", NULL, NULL);
    assert_share("0 cores", NULL, NULL);
    assert_share("3 apples", NULL, NULL);
}

TEST(the_next_name_counts_on)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_string_equal(lend_next_name(arena, "vm"), "vm-2");
    assert_string_equal(lend_next_name(arena, "vm-2"), "vm-3");
    assert_string_equal(lend_next_name(arena, "my-vm"), "my-vm-2");
    assert_string_equal(lend_next_name(arena, "vm-"), "vm--2");
}

TEST(when_is_a_schedule_or_a_word_for_one)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct lend_answers answers = {0};
    ASSERT_OK(lend_answer_when(arena, TEXT("always"), &answers, &error));
    assert_string_equal(answers.when, "always");
    ASSERT_OK(lend_answer_when(arena, TEXT("Nights"), &answers, &error));
    assert_string_equal(answers.when, "Mon-Sun 22:00-07:00");
    ASSERT_OK(lend_answer_when(arena, TEXT("off-hours"), &answers, &error));
    ASSERT_OK(lend_answer_when(arena, TEXT("Mon-Fri 18:00-08:00"), &answers, &error));
    ASSERT_FAILS(lend_answer_when(arena, TEXT("sometimes"), &answers, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(market_is_an_address_as_people_type_it),
        cmocka_unit_test(market_is_a_whole_command),
        cmocka_unit_test(other_lines_are_no_market),
        cmocka_unit_test(share_is_a_part_of_the_machine),
        cmocka_unit_test(a_number_that_may_be_cores_is_asked_for_again),
        cmocka_unit_test(the_next_name_counts_on),
        cmocka_unit_test(when_is_a_schedule_or_a_word_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
