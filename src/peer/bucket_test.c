#include "peer/bucket.h"
#include "testing/testing.h"

#define MS INT64_C(1000000)

static struct bucket full_bucket(int64_t bytes_per_s)
{
    struct bucket bucket;
    bucket_init(&bucket, 0);
    bucket_set_rate(&bucket, bytes_per_s);
    bucket_fill(&bucket, 0);
    return bucket;
}

TEST(the_rate_holds_over_time_whatever_is_offered)
{
    struct bucket bucket = full_bucket(1000000);
    int64_t passed = 0;
    for (int64_t now_ms = 0; now_ms < 10000; now_ms++) {
        bucket_fill(&bucket, now_ms * MS);
        for (; bucket_has_some(&bucket); passed += 1500)
            bucket_take(&bucket, 1500);
    }
    assert_in_range(passed, 9900000, 10000000 + 150000);
}

TEST(a_small_packet_counts_as_a_larger_one)
{
    struct bucket bucket = full_bucket(1000000);
    const int64_t before = bucket.bytes;
    bucket_take(&bucket, 1);
    assert_int_equal(bucket.bytes, before - BUCKET_PACKET_MIN);
}

TEST(a_debt_is_waited_for_until_it_is_paid)
{
    struct bucket bucket = full_bucket(1000000);
    assert_int_equal(bucket_wait_ms(&bucket), -1);
    bucket_take(&bucket, 1100000);
    assert_false(bucket_has_some(&bucket));
    const int wait_ms = bucket_wait_ms(&bucket);
    bucket_fill(&bucket, (wait_ms - 2) * MS);
    assert_false(bucket_has_some(&bucket));
    bucket_fill(&bucket, wait_ms * MS);
    assert_true(bucket_has_some(&bucket));
    assert_int_equal(bucket_wait_ms(&bucket), -1);
}

TEST(a_long_rest_earns_no_more_than_a_burst)
{
    struct bucket bucket = full_bucket(1000000);
    bucket_fill(&bucket, 3600000 * MS);
    assert_int_equal(bucket.bytes, 100000);
}

TEST(a_slow_rate_adds_up_from_many_looks)
{
    struct bucket bucket = full_bucket(1000);
    bucket_take(&bucket, 64 << 10);
    for (int64_t now_us = 0; now_us <= 1000000; now_us += 100)
        bucket_fill(&bucket, now_us * 1000);
    assert_in_range(bucket.bytes, 900, 1000);
}

TEST(another_rate_holds_from_then_on_for_what_was_saved_and_for_a_debt)
{
    struct bucket bucket = full_bucket(10000000);
    bucket_fill(&bucket, 1000 * MS);
    assert_int_equal(bucket.bytes, 1000000);
    bucket_set_rate(&bucket, 1000000);
    bucket_fill(&bucket, 1001 * MS);
    assert_int_equal(bucket.bytes, 100000);
    bucket_take(&bucket, 200000);
    assert_in_range(bucket_wait_ms(&bucket), 100, 102);
    bucket_set_rate(&bucket, 10000000);
    assert_in_range(bucket_wait_ms(&bucket), 10, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_holds_over_time_whatever_is_offered),
        cmocka_unit_test(a_small_packet_counts_as_a_larger_one),
        cmocka_unit_test(a_debt_is_waited_for_until_it_is_paid),
        cmocka_unit_test(a_long_rest_earns_no_more_than_a_burst),
        cmocka_unit_test(a_slow_rate_adds_up_from_many_looks),
        cmocka_unit_test(another_rate_holds_from_then_on_for_what_was_saved_and_for_a_debt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
