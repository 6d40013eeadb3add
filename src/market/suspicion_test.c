#include "market/suspicion.h"
#include "testing/testing.h"

enum { SILENCE_MS = 6000, ASKED_MS = 100000 };

static bool report(struct suspicion *suspicion, uint64_t job, int64_t now_ms)
{
    /* Jobs 10 to 19 are account 1's, 20 to 29 account 2's. */
    const struct suspicion_reporter reporter = {
        .account = job / 10, .job = job, .can_testify = true};
    return suspicion_report(suspicion, &reporter, now_ms);
}

static enum suspicion_verdict judge(struct suspicion *suspicion, int64_t heard_ms, int64_t now_ms)
{
    return suspicion_judge(suspicion, &(struct suspicion_facts){.now_ms = now_ms,
                                                                .heard_ms = heard_ms,
                                                                .silence_ms = SILENCE_MS});
}

TEST(a_false_report_is_refuted_by_a_sign_of_life_and_leaves_nothing)
{
    struct suspicion suspicion = {0};
    assert_int_equal(judge(&suspicion, 0, ASKED_MS), SUSPICION_NONE);
    assert_true(report(&suspicion, 10, ASKED_MS));
    assert_int_equal(judge(&suspicion, ASKED_MS - 1, ASKED_MS + 10), SUSPICION_WAITS);
    assert_int_equal(judge(&suspicion, ASKED_MS + 5, ASKED_MS + 10), SUSPICION_REFUTED);
    assert_int_equal(judge(&suspicion, ASKED_MS + 5, ASKED_MS + 99999), SUSPICION_NONE);
}

TEST(a_machine_that_gives_no_sign_is_silent_after_half_the_time)
{
    struct suspicion suspicion = {0};
    const int64_t heard_ms = ASKED_MS - 500;
    assert_true(report(&suspicion, 10, ASKED_MS));
    assert_int_equal(judge(&suspicion, heard_ms, ASKED_MS + SILENCE_MS / 2 - 1), SUSPICION_WAITS);
    assert_int_equal(judge(&suspicion, heard_ms, ASKED_MS + SILENCE_MS / 2), SUSPICION_SILENT);
    assert_int_equal(judge(&suspicion, heard_ms, ASKED_MS + SILENCE_MS / 2), SUSPICION_NONE);
}

TEST(reports_one_after_the_other_ask_once_and_not_all_the_time)
{
    struct suspicion suspicion = {0};
    assert_true(report(&suspicion, 10, ASKED_MS));
    assert_false(report(&suspicion, 20, ASKED_MS + 1)); /* asked already */
    assert_int_equal(judge(&suspicion, ASKED_MS + 2, ASKED_MS + 2), SUSPICION_REFUTED);
    assert_false(report(&suspicion, 10, ASKED_MS + SUSPICION_AGAIN_MS - 1));
    assert_true(report(&suspicion, 10, ASKED_MS + SUSPICION_AGAIN_MS));
}

TEST(one_account_never_makes_a_machine_mute_however_many_jobs_it_has)
{
    struct suspicion suspicion = {0};
    for (uint64_t job = 10; job < 10 + 2 * SUSPICION_REPORTS_MAX; job++)
        report(&suspicion, job < 20 ? job : 10, ASKED_MS + (int64_t)job);
    assert_int_equal(suspicion.report_count, SUSPICION_REPORTS_MAX);
    const int64_t now_ms = ASKED_MS + 2 * SILENCE_MS;
    assert_int_equal(judge(&suspicion, now_ms, now_ms), SUSPICION_REFUTED);
    assert_int_equal(judge(&suspicion, now_ms, now_ms), SUSPICION_NONE);
}

TEST(two_accounts_without_pushes_since_they_reported_make_it_mute)
{
    struct suspicion suspicion = {0};
    report(&suspicion, 10, ASKED_MS);
    report(&suspicion, 20, ASKED_MS + 1000);
    int64_t now_ms = ASKED_MS + 999 + SILENCE_MS; /* the second may still get one */
    assert_int_equal(judge(&suspicion, now_ms, now_ms), SUSPICION_REFUTED);
    now_ms++;
    struct suspicion pushed = suspicion, held = suspicion, strange = suspicion;
    assert_int_equal(judge(&suspicion, now_ms, now_ms), SUSPICION_MUTE);
    assert_int_equal(judge(&suspicion, now_ms, now_ms), SUSPICION_NONE);

    suspicion_withdraw(&pushed, 20);
    assert_int_equal(judge(&pushed, now_ms, now_ms), SUSPICION_NONE);

    const struct suspicion_facts facts = {now_ms, now_ms, SILENCE_MS, .is_held = true};
    assert_int_equal(suspicion_judge(&held, &facts), SUSPICION_NONE);

    strange.reports[0].reporter.can_testify = false; /* its job never had a push of it */
    assert_int_equal(judge(&strange, now_ms, now_ms), SUSPICION_NONE);
}

TEST(what_was_reported_long_ago_is_forgotten)
{
    struct suspicion suspicion = {0};
    report(&suspicion, 10, ASKED_MS);
    const int64_t now_ms = ASKED_MS + SUSPICION_KEPT_MS + 1;
    report(&suspicion, 20, now_ms);
    assert_int_equal(suspicion.report_count, 1);
    assert_int_equal(judge(&suspicion, now_ms + SILENCE_MS, now_ms + SILENCE_MS),
                     SUSPICION_REFUTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_false_report_is_refuted_by_a_sign_of_life_and_leaves_nothing),
        cmocka_unit_test(a_machine_that_gives_no_sign_is_silent_after_half_the_time),
        cmocka_unit_test(reports_one_after_the_other_ask_once_and_not_all_the_time),
        cmocka_unit_test(one_account_never_makes_a_machine_mute_however_many_jobs_it_has),
        cmocka_unit_test(two_accounts_without_pushes_since_they_reported_make_it_mute),
        cmocka_unit_test(what_was_reported_long_ago_is_forgotten),
    };
    return cmocka_run_group_tests_name("suspicion", tests, NULL, NULL);
}
