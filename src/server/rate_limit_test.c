#include "server/rate_limit.h"
#include "testing/testing.h"

#define SECOND INT64_C(1000000000)

struct fixture {
    struct virtual_clock clock;
    struct rate_limits *limits;
};

/* Ten a minute for every class, unless a test says otherwise. */
static void open_fixture(struct fixture *fixture, size_t bucket_max)
{
    virtual_clock_init(&fixture->clock, 1800000000000);
    struct rate_limits_options options = {.clock = &fixture->clock.clock, .bucket_max = bucket_max};
    for (size_t i = 0; i < RATE_CLASS_COUNT; i++)
        options.rules[i] = (struct rate_rule){10, 60000};
    fixture->limits = rate_limits_new(&options);
}

static int take_until_refused(struct fixture *fixture, enum rate_class class, uint64_t key)
{
    int taken = 0;
    while (taken < 1000 && rate_limits_take(fixture->limits, class, key).is_allowed)
        taken++;
    return taken;
}

TEST(a_quota_can_be_used_at_once_and_then_no_more)
{
    struct fixture fixture;
    open_fixture(&fixture, 0);
    assert_int_equal(take_until_refused(&fixture, RATE_WRITE, 1), 10);
    const struct rate_verdict verdict = rate_limits_take(fixture.limits, RATE_WRITE, 1);
    assert_false(verdict.is_allowed);
    assert_int_equal(verdict.remaining, 0);
    assert_int_equal(verdict.retry_after_ms, 6000);
    rate_limits_free(fixture.limits);
}

TEST(it_fills_evenly)
{
    struct fixture fixture;
    open_fixture(&fixture, 0);
    take_until_refused(&fixture, RATE_WRITE, 1);
    virtual_clock_advance(&fixture.clock, 6 * SECOND - 1);
    assert_false(rate_limits_take(fixture.limits, RATE_WRITE, 1).is_allowed);
    virtual_clock_advance(&fixture.clock, 1);
    assert_int_equal(take_until_refused(&fixture, RATE_WRITE, 1), 1);
    virtual_clock_advance(&fixture.clock, 30 * SECOND);
    assert_int_equal(take_until_refused(&fixture, RATE_WRITE, 1), 5);
    virtual_clock_advance(&fixture.clock, 3600 * SECOND);
    assert_int_equal(take_until_refused(&fixture, RATE_WRITE, 1), 10);
    rate_limits_free(fixture.limits);
}

TEST(keys_and_classes_do_not_share)
{
    struct fixture fixture;
    open_fixture(&fixture, 0);
    assert_int_equal(take_until_refused(&fixture, RATE_WRITE, 1), 10);
    assert_int_equal(take_until_refused(&fixture, RATE_WRITE, 2), 10);
    assert_int_equal(take_until_refused(&fixture, RATE_READ, 1), 10);
    rate_limits_free(fixture.limits);
}

TEST(what_is_given_back_can_be_taken_again)
{
    struct fixture fixture;
    open_fixture(&fixture, 0);
    take_until_refused(&fixture, RATE_SIGN_IN, 1);
    rate_limits_give_back(fixture.limits, RATE_SIGN_IN, 1);
    assert_int_equal(take_until_refused(&fixture, RATE_SIGN_IN, 1), 1);
    rate_limits_give_back(fixture.limits, RATE_SIGN_IN, 999); /* nobody: nothing happens */
    rate_limits_free(fixture.limits);
}

TEST(a_limit_of_zero_is_none)
{
    struct virtual_clock clock;
    virtual_clock_init(&clock, 1800000000000);
    const struct rate_limits_options options = {.clock = &clock.clock};
    AUTO(rate_limits) struct rate_limits *limits = rate_limits_new(&options);
    for (int i = 0; i < 100000; i++)
        assert_true(rate_limits_take(limits, RATE_READ, 1).is_allowed);
    assert_int_equal(rate_limits_bucket_count(limits), 0);
}

TEST(memory_is_bounded_and_the_oldest_is_forgotten)
{
    struct fixture fixture;
    open_fixture(&fixture, 100);
    take_until_refused(&fixture, RATE_READ, 1);
    for (uint64_t key = 2; key <= 100; key++)
        rate_limits_take(fixture.limits, RATE_READ, key);
    assert_false(rate_limits_take(fixture.limits, RATE_READ, 1).is_allowed); /* now the newest */
    for (uint64_t key = 101; key <= 199; key++)
        rate_limits_take(fixture.limits, RATE_WRITE, key);
    assert_int_equal(rate_limits_bucket_count(fixture.limits), 100);
    assert_false(rate_limits_take(fixture.limits, RATE_READ, 1).is_allowed);
    for (uint64_t key = 200; key <= 299; key++)
        rate_limits_take(fixture.limits, RATE_WRITE, key);
    assert_true(rate_limits_take(fixture.limits, RATE_READ, 1).is_allowed);
    assert_int_equal(rate_limits_bucket_count(fixture.limits), 100);
    rate_limits_free(fixture.limits);
}

TEST(the_fields_say_quota_window_and_rest)
{
    struct fixture fixture;
    open_fixture(&fixture, 0);
    char field[RATE_FIELD_SIZE];
    struct rate_verdict verdict = rate_limits_take(fixture.limits, RATE_SIGN_UP, 1);
    rate_verdict_policy(&verdict, RATE_SIGN_UP, field);
    assert_string_equal(field, "\"sign-up\";q=10;w=60");
    rate_verdict_state(&verdict, RATE_SIGN_UP, field);
    assert_string_equal(field, "\"sign-up\";r=9;t=0");
    take_until_refused(&fixture, RATE_SIGN_UP, 1);
    virtual_clock_advance(&fixture.clock, SECOND / 2);
    verdict = rate_limits_take(fixture.limits, RATE_SIGN_UP, 1);
    rate_verdict_state(&verdict, RATE_SIGN_UP, field);
    assert_string_equal(field, "\"sign-up\";r=0;t=6");
    assert_int_equal(rate_verdict_retry_after_s(&verdict), 6);
    rate_limits_free(fixture.limits);
}

TEST(every_class_has_a_name_and_a_rule)
{
    for (enum rate_class class = 0; class < RATE_CLASS_COUNT; class ++) {
        assert_non_null(rate_class_name(class));
        assert_true(rate_class_default(class).limit > 0);
        assert_true(rate_class_default(class).window_ms > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quota_can_be_used_at_once_and_then_no_more),
        cmocka_unit_test(it_fills_evenly),
        cmocka_unit_test(keys_and_classes_do_not_share),
        cmocka_unit_test(what_is_given_back_can_be_taken_again),
        cmocka_unit_test(a_limit_of_zero_is_none),
        cmocka_unit_test(memory_is_bounded_and_the_oldest_is_forgotten),
        cmocka_unit_test(the_fields_say_quota_window_and_rest),
        cmocka_unit_test(every_class_has_a_name_and_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
