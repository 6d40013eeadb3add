#include "cli/lend_function_price.h"
#include "testing/testing.h"

static const struct catalogue_function *of(const struct catalogue *catalogue,
                                           enum cloud_architecture architecture)
{
    return catalogue_find_function(catalogue, "lambda", "us-east-1", architecture);
}

TEST(a_price_is_of_credits_or_of_dollars)
{
    struct error error = {0};
    struct lend_function_price price;
    ASSERT_OK(lend_function_price_read(TEXT("0.06"), &price, &error));
    assert_true(price.micro == 60000 && !price.is_dollars);
    ASSERT_OK(lend_function_price_read(TEXT("$0.06"), &price, &error));
    assert_true(price.micro == 60000 && price.is_dollars);
    ASSERT_OK(lend_function_price_read(TEXT("0"), &price, &error));
    assert_true(price.micro == 0 && !price.is_dollars);
}

TEST(what_is_no_price_is_refused)
{
    const char *wrong[] = {"", "$", "$$1", "-1", "$-1", "cheap", "1$", "1000001", "0.06/h"};
    struct error error = {0};
    struct lend_function_price price;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(lend_function_price_read(text_of(wrong[i]), &price, &error), ERROR_INVALID);
}

TEST(a_gib_hour_costs_its_seconds_and_its_calls)
{
    AUTO(catalogue) struct catalogue *catalogue = catalogue_built_in();
    /* 3600 x $0.0000166667, and 7200 calls of each of two functions at $0.20 for a million. */
    struct lend_function_cost cost = lend_function_cost(of(catalogue, CLOUD_X86_64), 512);
    assert_int_equal(cost.seconds_usd_micro, 60001);
    assert_int_equal(cost.calls_usd_micro, 2880);
    cost = lend_function_cost(of(catalogue, CLOUD_ARM64), 128);
    assert_int_equal(cost.seconds_usd_micro, 48001);
    assert_int_equal(cost.calls_usd_micro, 11520);
}

TEST(dollars_become_credits_by_the_rate_and_never_too_few)
{
    assert_int_equal(lend_function_credits_micro(62881, 5000000), 314405);
    assert_int_equal(lend_function_credits_micro(1, 416667), 1);
    assert_int_equal(lend_function_credits_micro(0, 5000000), 0);
    assert_int_equal(lend_function_credits_micro(INT64_C(1000000000000), INT64_C(1000000000000)),
                     INT64_C(1000000000000));
}

TEST(an_offer_s_least_adds_up_to_the_price)
{
    struct peer_options peer;
    peer_options_init(&peer);
    lend_function_price_set(314405, &peer);
    const int64_t gib_micro = peer.minimum_core_micro * 1024 / 1769 + peer.minimum_ram_micro;
    assert_true(gib_micro >= 314404 && gib_micro <= 314407);
    lend_function_price_set(0, &peer);
    assert_true(peer.minimum_core_micro == 0 && peer.minimum_ram_micro == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_price_is_of_credits_or_of_dollars),
        cmocka_unit_test(what_is_no_price_is_refused),
        cmocka_unit_test(a_gib_hour_costs_its_seconds_and_its_calls),
        cmocka_unit_test(dollars_become_credits_by_the_rate_and_never_too_few),
        cmocka_unit_test(an_offer_s_least_adds_up_to_the_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
