/* covers password.c, password_common.c */
#include "server/password.h"
#include "testing/testing.h"

#include <stdlib.h>

static int check(const char *password, struct error *error)
{
    return password_check(text_of(password), TEXT("ada-lovelace"), error);
}

TEST(a_password_of_a_few_words_is_taken)
{
    struct error error;
    ASSERT_OK(check("correct horse battery staple", &error));
    ASSERT_OK(check("zw\xc3\xb6lf Boxk\xc3\xa4mpfer", &error));
    ASSERT_OK(check("x7#kQ!m2vT", &error));
}

TEST(a_password_is_10_to_256_bytes_of_utf8)
{
    struct error error;
    char longest[PASSWORD_SIZE_MAX + 2];
    for (size_t i = 0; i + 1 < sizeof(longest); i++)
        longest[i] = (char)('!' + i * 7 % 90);
    longest[PASSWORD_SIZE_MAX + 1] = '\0';
    ASSERT_FAILS(check(longest, &error), ERROR_INVALID);
    longest[PASSWORD_SIZE_MAX] = '\0';
    ASSERT_OK(check(longest, &error));
    ASSERT_FAILS(check("x7#kQ!m2v", &error), ERROR_INVALID);
    ASSERT_FAILS(check("", &error), ERROR_INVALID);
    ASSERT_FAILS(check("\xff\xfe\xfd plus words", &error), ERROR_INVALID);
    ASSERT_FAILS(password_check((struct text){"a\0bcdefghijk", 12}, TEXT("ada"), &error),
                 ERROR_INVALID);
}

TEST(what_is_tried_first_is_refused)
{
    struct error error;
    const char *const bad[] = {"ada-lovelace",    "1234567890",   "Password123",  "qwertyuiop",
                               "aaaaaaaaaaaa",    "abcabcabcabc", "1212121212",   "0123456789012",
                               "abcdefghijklm",   "zyxwvutsrq",   "iloveyou1234", "1Q2W3E4R5T",
                               "zxcvbnm,./",      "qwertyuiop[]", "p@ssw0rd1!",   "0123456789",
                               "zxcvbnmasdfghjkl"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (check(bad[i], &error) == 0)
            fail_msg("\"%s\" was taken", bad[i]);
}

/* ---- Hashing --------------------------------------------------------------------------------- */

struct fixture {
    struct loop *loop;
    struct passwords *passwords;
    int done_count;
};

static struct fixture *current; /* of the test that runs */

static void count_done(struct password_request *request)
{
    (void)request;
    current->done_count++;
}

static void open_fixture(struct fixture *fixture, uint32_t queue_max)
{
    struct error error;
    *fixture = (struct fixture){0};
    current = fixture;
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
    const struct passwords_options options = {
        .loop = fixture->loop, .queue_max = queue_max, .passes = 1, .memory_bytes = 1 << 20};
    ASSERT_OK(passwords_open(&options, &fixture->passwords, &error));
}

static void wait_for(struct fixture *fixture, int count)
{
    struct error error;
    while (fixture->done_count < count)
        ASSERT_OK(loop_step(fixture->loop, -1, &error));
}

static void close_fixture(struct fixture *fixture)
{
    passwords_free(fixture->passwords);
    loop_free(fixture->loop);
}

static void run(struct fixture *fixture, struct password_request *request, const char *secret)
{
    struct error error;
    request->on_done = count_done;
    assert_true(password_request_set(request, text_of(secret)));
    const int before = fixture->done_count;
    ASSERT_OK(passwords_submit(fixture->passwords, request, &error));
    wait_for(fixture, before + 1);
}

TEST(a_market_that_stops_takes_no_password)
{
    struct error error;
    struct password_request request = {.on_done = count_done};
    assert_true(password_request_set(&request, TEXT("correct horse")));
    ASSERT_FAILS(passwords_submit(NULL, &request, &error), ERROR_UNAVAILABLE);
}

TEST(only_the_password_that_was_hashed_matches)
{
    struct fixture fixture;
    open_fixture(&fixture, 0);
    struct password_request made = {0};
    run(&fixture, &made, "correct horse");
    assert_false(made.is_exhausted);
    assert_memory_equal(made.hash, "$argon2id$", 10);
    const char wiped[PASSWORD_SIZE_MAX] = {0};
    assert_memory_equal(made.secret, wiped, sizeof(wiped));

    struct password_request right = {.is_check = true}, wrong = {.is_check = true};
    memcpy(right.hash, made.hash, sizeof(made.hash));
    memcpy(wrong.hash, made.hash, sizeof(made.hash));
    run(&fixture, &right, "correct horse");
    run(&fixture, &wrong, "correct horsf");
    assert_true(right.is_match);
    assert_false(wrong.is_match);
    close_fixture(&fixture);
}

TEST(an_unknown_name_is_hashed_too_and_never_matches)
{
    struct fixture fixture;
    open_fixture(&fixture, 0);
    struct password_request unknown = {.is_check = true};
    run(&fixture, &unknown, "");
    assert_false(unknown.is_match);
    close_fixture(&fixture);
}

TEST(a_full_queue_refuses_and_the_rest_is_still_done)
{
    struct fixture fixture;
    open_fixture(&fixture, 2);
    struct error error;
    struct password_request requests[64] = {0};
    int taken = 0, refused = 0;
    for (size_t i = 0; i < 64; i++) {
        requests[i].on_done = count_done;
        assert_true(password_request_set(&requests[i], TEXT("a long enough one")));
        if (passwords_submit(fixture.passwords, &requests[i], &error) == 0) {
            taken++;
        } else {
            assert_int_equal(error.code, ERROR_UNAVAILABLE);
            refused++;
        }
    }
    assert_true(taken >= 2 && refused > 0);
    wait_for(&fixture, taken);
    struct password_request later = {0};
    run(&fixture, &later, "the queue is free again");
    assert_memory_equal(later.hash, "$argon2id$", 10);
    close_fixture(&fixture);
}

TEST(what_waits_when_the_market_stops_is_handed_back)
{
    struct fixture fixture;
    open_fixture(&fixture, 8);
    struct error error;
    struct password_request requests[8] = {0};
    for (size_t i = 0; i < 8; i++) {
        requests[i].on_done = count_done;
        assert_true(password_request_set(&requests[i], TEXT("a long enough one")));
        ASSERT_OK(passwords_submit(fixture.passwords, &requests[i], &error));
    }
    passwords_free(fixture.passwords);
    wait_for(&fixture, 8);
    for (size_t i = 0; i < 8; i++)
        assert_true(requests[i].is_exhausted || requests[i].hash[0] == '$');
    loop_free(fixture.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_password_of_a_few_words_is_taken),
        cmocka_unit_test(a_password_is_10_to_256_bytes_of_utf8),
        cmocka_unit_test(what_is_tried_first_is_refused),
        cmocka_unit_test(a_market_that_stops_takes_no_password),
        cmocka_unit_test(only_the_password_that_was_hashed_matches),
        cmocka_unit_test(an_unknown_name_is_hashed_too_and_never_matches),
        cmocka_unit_test(a_full_queue_refuses_and_the_rest_is_still_done),
        cmocka_unit_test(what_waits_when_the_market_stops_is_handed_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
