/* covers client/api_account.c, client/api_job.c, client/api_machine.c */
#include "cli/output.h"
#include "client/api.h"
#include "testing/testing.h"

#include <math.h>

TEST(amounts_are_written_for_people)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_string_equal(output_credits(arena, 1234567), "1.234567");
    assert_string_equal(output_credits(arena, -5), "-0.000005");
    assert_string_equal(output_credits(arena, INT64_MIN), "-9223372036854.775808");
    assert_string_equal(output_workers(arena, 3, 0), "3");
    assert_string_equal(output_workers(arena, 2, 8), "2–8");
    assert_string_equal(output_cores(arena, 250), "0.25");
    assert_string_equal(output_cores(arena, 16000), "16");
    assert_string_equal(output_core_count(arena, 1000), "1 core");
    assert_string_equal(output_core_count(arena, 1500), "1.5 cores");
    assert_string_equal(output_instant(arena, 0), "-");
    assert_string_equal(output_instant(arena, 1763196295120), "2025-11-15 08:44:55Z");
    assert_string_equal(output_text(arena, TEXT("a\033[31m\nb")), "a?[31m?b");
}

TEST(the_words_of_strange_programs_only_have_colours)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"plain\r\n\tcaf\xc3\xa9\n", "plain\r\n\tcaf\xc3\xa9\n"},
        {"\033[1;31mred\033[m\n", "\033[1;31mred\033[m\n\033[0m"},
        {"\033[2J\033]0;title\a", "?[2J?]0;title?"},
        {"\xc2\x9b"
         "2J\b \033[1;3",
         "?2J? ?[1;3"},
        {"cut \xe2\x82", "cut ??"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char shown[64] = "";
        FILE *file = fmemopen(shown, sizeof(shown), "w");
        assert_non_null(file);
        output_foreign(file, text_of(cases[i].text));
        fclose(file);
        assert_string_equal(shown, cases[i].shown);
    }
}

TEST(answers_of_a_newer_market_are_understood)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct api_job job = api_job_unknown();
    ASSERT_OK(json_read(arena,
                        TEXT("{\"id\":7,\"name\":\"j\",\"state\":\"running\",\"loss\":null,"
                             "\"colour\":\"red\",\"leases\":[{\"id\":1,\"machine_name\":\"m\","
                             "\"steps_per_second\":null,\"steps\":5}],\"spec\":{\"a\":[1]}}"),
                        &api_job_schema, &job, &error));
    assert_int_equal(job.id, 7);
    assert_true(isnan(job.loss));
    assert_int_equal(job.leases.count, 1);
    assert_int_equal(((struct api_lease *)job.leases.items)->steps, 5);
    assert_true(text_equal(job.spec, TEXT("{\"a\":[1]}")));
    assert_true(api_job_is_final(TEXT("failed")));
    assert_false(api_job_is_final(TEXT("stopping")));
}

TEST(a_long_line_breaks_between_words)
{
    char text[64] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    assert_non_null(file);
    output_words(file, "souk: it could not start", 12);
    output_words(file, "as it is", 0);
    output_words(file, "a share of 9 % left", 12);
    fclose(file);
    assert_string_equal(text, "souk: it\ncould not\nstart\nas it is\na share of\n9 % left\n");
}

TEST(without_a_terminal_and_without_yes_nothing_is_done)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct cli cli = {.arena = arena, .common = {.quiet = true}};
    struct error error;
    ASSERT_OK(output_confirm(&cli, true, "plan\n", "Go?", &error));
    FILE *input = freopen("/dev/null", "r", stdin);
    assert_non_null(input);
    ASSERT_FAILS(output_confirm(&cli, false, "", "Go?", &error), ERROR_INVALID);
    assert_int_equal(error_exit_code(error.code), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_written_for_people),
        cmocka_unit_test(the_words_of_strange_programs_only_have_colours),
        cmocka_unit_test(answers_of_a_newer_market_are_understood),
        cmocka_unit_test(a_long_line_breaks_between_words),
        cmocka_unit_test(without_a_terminal_and_without_yes_nothing_is_done),
    };
    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
