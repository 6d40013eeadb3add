#include "server/verify.h"
#include "testing/testing.h"

static struct verified_tick out[VERIFY_PENDING_MAX + 1];

static uint32_t meter(struct verify_lease *lease, uint64_t index, int64_t wall_ms, int64_t now_ms)
{
    struct error error;
    uint32_t count = 0;
    const struct verify_meter report = {.index = index, .wall_ms = wall_ms, .cpu_ms = wall_ms / 2};
    ASSERT_OK(verify_meter(lease, &report, now_ms, out, &count, &error));
    return count;
}

TEST(a_push_confirms_every_metered_tick_before_it)
{
    struct verify_lease lease;
    verify_lease_init(&lease, false, 0, 0, 0);
    assert_int_equal(meter(&lease, 0, 1000, 1000), 0);
    assert_int_equal(meter(&lease, 1, 1000, 2000), 0);
    assert_int_equal(verify_push(&lease, out), 2);
    assert_int_equal(out[0].index, 0);
    assert_int_equal(out[1].index, 1);
    assert_int_equal(verify_push(&lease, out), 0);
}

TEST(a_push_within_a_tick_confirms_it_when_its_meter_report_comes)
{
    struct verify_lease lease;
    verify_lease_init(&lease, false, 0, 0, 0);
    assert_int_equal(verify_push(&lease, out), 0);
    assert_int_equal(meter(&lease, 0, 1000, 1000), 1);
    /* The push does not confirm the tick after it. */
    assert_int_equal(meter(&lease, 1, 1000, 2000), 0);
}

TEST(a_parameter_server_is_paid_for_ticks_with_cpu_only)
{
    struct error error;
    struct verify_lease lease;
    verify_lease_init(&lease, true, 0, 0, 0);
    assert_int_equal(meter(&lease, 0, 1000, 1000), 1);
    uint32_t count = 9;
    const struct verify_meter idle = {.index = 1, .wall_ms = 1000, .cpu_ms = 0};
    ASSERT_OK(verify_meter(&lease, &idle, 2000, out, &count, &error));
    assert_int_equal(count, 0);
    /* An idle tick does not wait for a later one. */
    assert_int_equal(meter(&lease, 2, 1000, 3000), 1);
}

TEST(a_server_besides_the_lead_is_paid_while_it_is_there)
{
    struct error error;
    struct verify_lease lease;
    uint32_t count = 9;
    const struct verify_meter idle = {.index = 0, .wall_ms = 1000, .cpu_ms = 0};
    const struct verify_meter held = {.index = 1, .wall_ms = 1000, .is_held = true};
    const struct verify_meter leads = {.index = 2, .wall_ms = 1000, .cpu_ms = 0};
    verify_lease_init(&lease, true, 0, 0, 0);
    lease.is_standby = true;
    ASSERT_OK(verify_meter(&lease, &idle, 1000, out, &count, &error));
    assert_int_equal(count, 1);
    ASSERT_OK(verify_meter(&lease, &held, 2000, out, &count, &error));
    assert_int_equal(count, 0);
    lease.is_standby = false; /* it took the lead */
    ASSERT_OK(verify_meter(&lease, &leads, 3000, out, &count, &error));
    assert_int_equal(count, 0);
}

TEST(a_tick_that_the_owner_held_still_is_never_paid)
{
    struct error error;
    for (int is_alone = 0; is_alone <= 1; is_alone++) {
        struct verify_lease lease;
        verify_lease_init(&lease, is_alone, 0, 0, 0);
        verify_push(&lease, out);
        uint32_t count = 9;
        const struct verify_meter held = {
            .index = 0, .wall_ms = 1000, .cpu_ms = 10, .is_held = true};
        ASSERT_OK(verify_meter(&lease, &held, 1000, out, &count, &error));
        assert_int_equal(count, 0);
        /* Neither by a push that comes later. */
        assert_int_equal(verify_push(&lease, out), 0);
        assert_int_equal(meter(&lease, 1, 1000, 2000), 1);
        assert_int_equal(out[0].index, 1);
    }
}

TEST(the_tick_that_the_end_of_the_training_cut_short_is_verified_with_the_one_before)
{
    struct verify_lease lease;
    verify_lease_init(&lease, false, 0, 0, 0);
    verify_push(&lease, out);
    assert_int_equal(meter(&lease, 0, 1000, 1000), 1);
    struct verify_lease metered_first = lease;
    /* The end comes first, then the last meter report. */
    assert_int_equal(verify_training_over(&lease, out), 0);
    assert_int_equal(meter(&lease, 1, 300, 1300), 1);
    assert_int_equal(meter(&lease, 2, 300, 1600), 0); /* only one */
    /* The other way round. */
    assert_int_equal(meter(&metered_first, 1, 300, 1300), 0);
    assert_int_equal(verify_training_over(&metered_first, out), 1);
    assert_int_equal(out[0].index, 1);
    assert_int_equal(verify_training_over(&metered_first, out), 0);
}

/* As of functions, which nobody calls between. */
TEST(the_last_tick_is_verified_however_long_the_lease_was_idle_before)
{
    struct verify_lease lease;
    verify_lease_init(&lease, false, 0, 0, 0);
    verify_push(&lease, out);
    assert_int_equal(meter(&lease, 0, 700, 1000), 1);
    struct verify_lease metered_first = lease;
    assert_int_equal(verify_training_over(&lease, out), 0);
    assert_int_equal(meter(&lease, 1, 300, 9300), 1);
    assert_int_equal(meter(&metered_first, 1, 300, 9300), 0);
    assert_int_equal(verify_training_over(&metered_first, out), 1);
}

TEST(the_end_of_the_training_verifies_nothing_for_a_worker_that_did_not_push)
{
    struct verify_lease lease;
    verify_lease_init(&lease, false, 0, 0, 0);
    assert_int_equal(verify_training_over(&lease, out), 0);
    assert_int_equal(meter(&lease, 0, 1000, 1000), 0);
    assert_int_equal(verify_training_over(&lease, out), 0);
    verify_lease_init(&lease, false, 0, 0, 0);
    verify_push(&lease, out);
    assert_int_equal(meter(&lease, 0, 1000, 1000), 1);
    assert_int_equal(meter(&lease, 1, 1000, 2000), 0); /* a whole tick without a push, */
    assert_int_equal(meter(&lease, 2, 300, 2300), 0);  /* and the last one after it */
    assert_int_equal(verify_training_over(&lease, out), 0);
}

TEST(a_tick_is_taken_once)
{
    struct error error;
    struct verify_lease lease;
    verify_lease_init(&lease, true, 0, 5, 5000);
    uint32_t count = 0;
    const struct verify_meter old = {.index = 4, .wall_ms = 1000, .cpu_ms = 1};
    ASSERT_FAILS(verify_meter(&lease, &old, 9000, out, &count, &error), ERROR_CONFLICT);
    assert_int_equal(meter(&lease, 5, 1000, 9000), 1);
}

TEST(time_beyond_what_passed_is_cut_off)
{
    struct error error;
    struct verify_lease lease;
    verify_lease_init(&lease, true, 10000, 0, 0);
    assert_int_equal(meter(&lease, 0, 3600000, 12000), 1);
    assert_int_equal(out[0].wall_ms, 2000 + VERIFY_SLACK_MS);
    uint32_t count = 0;
    const struct verify_meter more = {.index = 1, .wall_ms = 1000, .cpu_ms = 1};
    ASSERT_FAILS(verify_meter(&lease, &more, 12000, out, &count, &error), ERROR_INVALID);
    const struct verify_meter negative = {.index = 1, .wall_ms = -5, .cpu_ms = 1};
    ASSERT_FAILS(verify_meter(&lease, &negative, 20000, out, &count, &error), ERROR_INVALID);
    const struct verify_meter far = {.index = UINT64_MAX, .wall_ms = 1000, .cpu_ms = 1};
    ASSERT_FAILS(verify_meter(&lease, &far, 20000, out, &count, &error), ERROR_INVALID);
}

TEST(a_worker_that_never_pushes_keeps_a_bounded_number_of_ticks)
{
    struct verify_lease lease;
    verify_lease_init(&lease, false, 0, 0, 0);
    for (uint64_t i = 0; i < VERIFY_PENDING_MAX + 3; i++)
        assert_int_equal(meter(&lease, i, 10, (int64_t)i * 10), 0);
    assert_int_equal(verify_push(&lease, out), VERIFY_PENDING_MAX);
    assert_int_equal(out[0].index, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_confirms_every_metered_tick_before_it),
        cmocka_unit_test(a_push_within_a_tick_confirms_it_when_its_meter_report_comes),
        cmocka_unit_test(a_parameter_server_is_paid_for_ticks_with_cpu_only),
        cmocka_unit_test(a_server_besides_the_lead_is_paid_while_it_is_there),
        cmocka_unit_test(a_tick_that_the_owner_held_still_is_never_paid),
        cmocka_unit_test(
            the_tick_that_the_end_of_the_training_cut_short_is_verified_with_the_one_before),
        cmocka_unit_test(the_last_tick_is_verified_however_long_the_lease_was_idle_before),
        cmocka_unit_test(the_end_of_the_training_verifies_nothing_for_a_worker_that_did_not_push),
        cmocka_unit_test(a_tick_is_taken_once),
        cmocka_unit_test(time_beyond_what_passed_is_cut_off),
        cmocka_unit_test(a_worker_that_never_pushes_keeps_a_bounded_number_of_ticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
