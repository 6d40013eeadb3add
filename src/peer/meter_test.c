#include "peer/meter.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <sodium.h>

static int64_t at_ms(int64_t ms)
{
    return 5000000000 + ms * 1000000;
}

static struct identity *open_identity(void)
{
    struct error error = {0};
    struct identity *identity = NULL;
    char folder[] = "/tmp/souk-meter-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    ASSERT_OK(identity_open(folder, &identity, &error));
    ASSERT_OK(folder_remove(folder, &error));
    return identity;
}

TEST(ticks_are_aligned_to_the_start_and_lose_no_time)
{
    struct meter meter;
    struct meter_message message;
    const struct lease_fence lease = {.lease = 3, .fence = 9};
    meter_start(&meter, &lease, 1000, at_ms(0), &(struct meter_usage){.cpu_ms = 50});
    assert_int_equal(meter_wait_ms(&meter, at_ms(0)), 1000);
    assert_int_equal(meter_wait_ms(&meter, at_ms(400)), 600);

    struct meter_usage usage = {
        .cpu_ms = 250, .memory_peak_bytes = 4096, .bytes_in = 10, .bytes_out = 20};
    assert_true(meter_take(&meter, at_ms(1030), &usage, &message));
    assert_int_equal(message.lease, 3);
    assert_int_equal(message.fence, 9);
    assert_int_equal(message.tick_index, 0);
    assert_int_equal(message.wall_ms, 1030);
    assert_int_equal(message.cpu_ms, 200);
    assert_int_equal(message.memory_peak_bytes, 4096);
    assert_int_equal(message.bytes_in, 10);
    assert_int_equal(message.bytes_out, 20);
    assert_int_equal(meter_wait_ms(&meter, at_ms(1030)), 970);

    usage.cpu_ms = 400;
    usage.bytes_in = 11;
    assert_true(meter_take(&meter, at_ms(2000), &usage, &message));
    assert_int_equal(message.tick_index, 1);
    assert_int_equal(message.wall_ms, 970);
    assert_int_equal(message.cpu_ms, 150);
    assert_int_equal(message.bytes_in, 1);
    assert_int_equal(message.bytes_out, 0);
}

TEST(by_calls_a_tick_has_the_time_of_its_calls_and_no_more_than_passed)
{
    struct meter meter;
    struct meter_message message;
    const struct lease_fence lease = {.lease = 3, .fence = 9};
    meter_start(&meter, &lease, 1000, at_ms(0), &(struct meter_usage){0});
    meter.is_by_calls = true;
    assert_true(meter_take(&meter, at_ms(1000), &(struct meter_usage){.called_ms = 300}, &message));
    assert_int_equal(message.tick_index, 0);
    assert_int_equal(message.wall_ms, 300);
    /* A tick without calls is left out, and has no number. */
    assert_false(
        meter_take(&meter, at_ms(2000), &(struct meter_usage){.called_ms = 300}, &message));
    assert_int_equal(meter_wait_ms(&meter, at_ms(2000)), 1000);
    assert_false(
        meter_take(&meter, at_ms(2400), &(struct meter_usage){.called_ms = 300}, &message));
    assert_int_equal(meter_wait_ms(&meter, at_ms(2400)), 600);
    assert_true(
        meter_take(&meter, at_ms(3000), &(struct meter_usage){.called_ms = 2900}, &message));
    assert_int_equal(message.tick_index, 1);
    assert_int_equal(message.wall_ms, 2600);
    /* Rounded up, calls may come to more than the time there was: it is told as it passes. */
    assert_true(
        meter_take(&meter, at_ms(4000), &(struct meter_usage){.called_ms = 4010}, &message));
    assert_int_equal(message.wall_ms, 1100);
    assert_true(
        meter_take(&meter, at_ms(5000), &(struct meter_usage){.called_ms = 4010}, &message));
    assert_int_equal(message.wall_ms, 10);
}

TEST(last_tick_may_be_short_and_an_empty_one_is_not_given)
{
    struct meter meter;
    struct meter_message message;
    const struct lease_fence lease = {.lease = 1, .fence = 1};
    const struct meter_usage none = {0};
    meter_start(&meter, &lease, 1000, at_ms(0), &none);
    assert_false(meter_take(&meter, at_ms(0), &none, &message));
    assert_true(meter_take(&meter, at_ms(300), &none, &message));
    assert_int_equal(message.wall_ms, 300);
    assert_false(meter_take(&meter, at_ms(300), &none, &message));
}

TEST(signature_covers_what_is_claimed)
{
    AUTO(identity) struct identity *identity = open_identity();
    struct meter meter;
    struct meter_message message;
    const struct lease_fence lease = {.lease = 1, .fence = 1};
    meter_start(&meter, &lease, 1000, at_ms(0), &(struct meter_usage){0});
    assert_true(meter_take(&meter, at_ms(1000), &(struct meter_usage){.cpu_ms = 1}, &message));
    meter_sign(&message, identity);
    uint8_t bytes[METER_SIGNED_SIZE];
    meter_message_signed(&message, bytes);
    const uint8_t *key = identity_public_key(identity);
    assert_int_equal(crypto_sign_verify_detached(message.signature, bytes, sizeof(bytes), key), 0);
    message.cpu_ms++;
    meter_message_signed(&message, bytes);
    assert_int_equal(crypto_sign_verify_detached(message.signature, bytes, sizeof(bytes), key), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_aligned_to_the_start_and_lose_no_time),
        cmocka_unit_test(by_calls_a_tick_has_the_time_of_its_calls_and_no_more_than_passed),
        cmocka_unit_test(last_tick_may_be_short_and_an_empty_one_is_not_given),
        cmocka_unit_test(signature_covers_what_is_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
