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

static void assert_share(const char *line, const char *share)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct lend_answers answers = {0};
    if (!share) {
        ASSERT_FAILS(lend_answer_share(arena, text_of(line), &answers, &error), ERROR_INVALID);
        return;
    }
    ASSERT_OK(lend_answer_share(arena, text_of(line), &answers, &error));
    assert_string_equal(answers.share, share);
}

TEST(share_is_a_part_of_the_machine)
{
    assert_share("50%", "50%");
    assert_share(" 30 ", "30%");
    assert_share("Half", "50%");
    assert_share("ALL", "100%");
    assert_share("12.5%", "12.5%");
    assert_share("0", NULL);
    assert_share("150%", NULL);
    assert_share("500", NULL);
    assert_share("some", NULL);
    assert_share("", NULL);
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
        cmocka_unit_test(when_is_a_schedule_or_a_word_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
