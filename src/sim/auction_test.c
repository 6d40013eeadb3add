#include "sim/auction.h"
#include "testing/testing.h"

static struct auction_bid bid(double worth, double cores, uint32_t tag)
{
    return (struct auction_bid){.worth = worth, .units = {cores}, .tag = tag};
}

static struct auction_ask ask(double cost, double cores)
{
    return (struct auction_ask){.cost = cost, .units = {cores}};
}

TEST(the_highest_bids_win_at_a_price_between_the_marginal_pair)
{
    struct auction_bid bids[] = {bid(0.5, 1, 0), bid(3, 1, 1), bid(2, 1, 2)};
    struct auction_ask asks[] = {ask(1, 1), ask(0.2, 1), ask(5, 1)};
    const struct auction_outcome outcome = auction_clear(AUCTION_KDA, bids, 3, asks, 3);
    assert_int_equal(outcome.served_count, 2);
    assert_true(bids[0].is_served && bids[0].tag == 1);
    assert_true(bids[1].is_served && bids[1].tag == 2);
    assert_false(bids[2].is_served);
    assert_true(outcome.price == 1.5);
    assert_true(outcome.mean_cost == 0.6);
    assert_true(asks[0].is_serving && asks[1].is_serving && !asks[2].is_serving);
    assert_true(outcome.used[AUCTION_CORE] == 2);
}

TEST(a_bid_that_does_not_fit_lets_smaller_ones_pass)
{
    struct auction_bid bids[] = {bid(3, 4, 0), bid(2, 1, 1)};
    struct auction_ask asks[] = {ask(0.1, 2)};
    const struct auction_outcome outcome = auction_clear(AUCTION_KDA, bids, 2, asks, 1);
    assert_false(bids[0].is_served);
    assert_true(bids[1].is_served);
    assert_int_equal(outcome.served_count, 1);
}

TEST(mcafee_gives_up_the_marginal_trade_unless_the_next_pair_names_a_price_both_take)
{
    /* The next pair (1.0, 1.2) names 1.1: all trade. */
    struct auction_bid bids[] = {bid(3, 1, 0), bid(2, 1, 1), bid(1, 1, 2)};
    struct auction_ask asks[] = {ask(0.1, 1), ask(0.5, 1), ask(1.2, 1)};
    struct auction_outcome outcome = auction_clear(AUCTION_MCAFEE, bids, 3, asks, 3);
    assert_int_equal(outcome.served_count, 2);
    assert_true(outcome.price > 1.09 && outcome.price < 1.11);
    /* The next pair (0.1, 6) names 3.05, more than the marginal bid: one trade less. */
    struct auction_bid others[] = {bid(3, 1, 0), bid(2, 1, 1), bid(0.1, 1, 2)};
    struct auction_ask dear[] = {ask(0.1, 1), ask(0.5, 1), ask(6, 1)};
    outcome = auction_clear(AUCTION_MCAFEE, others, 3, dear, 3);
    assert_int_equal(outcome.served_count, 1);
    assert_true(others[0].is_served);
    assert_false(others[1].is_served);
}

TEST(nothing_is_traded_below_cost)
{
    struct auction_bid bids[] = {bid(0.3, 1, 0)};
    struct auction_ask asks[] = {ask(0.4, 1)};
    assert_int_equal(auction_clear(AUCTION_KDA, bids, 1, asks, 1).served_count, 0);
    assert_int_equal(auction_clear(AUCTION_KDA, bids, 0, asks, 1).served_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_bids_win_at_a_price_between_the_marginal_pair),
        cmocka_unit_test(a_bid_that_does_not_fit_lets_smaller_ones_pass),
        cmocka_unit_test(
            mcafee_gives_up_the_marginal_trade_unless_the_next_pair_names_a_price_both_take),
        cmocka_unit_test(nothing_is_traded_below_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
