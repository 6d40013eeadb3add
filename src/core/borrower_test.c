#include "core/testing_internal.h"

static uint64_t open_from(struct market *market, const char *name, uint64_t block)
{
    const struct command open = {.kind = COMMAND_OPEN_ACCOUNT,
                                 .open_account = {.name = text_of(name), .address_block = block}};
    return market_do(market, &open);
}

TEST(accounts_of_one_address_block_are_one_borrower)
{
    struct market market;
    market_init(&market);
    const uint64_t block = ACCOUNT_BLOCK_BIT | 7;
    const uint64_t ada = open_from(&market, "ada", block);
    const uint64_t bob = open_from(&market, "bob", block);
    const uint64_t eve = open_from(&market, "eve", ACCOUNT_BLOCK_BIT | 8);
    assert_int_equal(core_borrower(market.core, ada), block);
    assert_int_equal(core_borrower(market.core, bob), block);
    assert_int_not_equal(core_borrower(market.core, eve), block);
    assert_true(core_is_self_trade(market.core, ada, bob));
    assert_false(core_is_self_trade(market.core, ada, eve));
    market_done(&market);
}

TEST(accounts_without_a_known_block_are_each_their_own)
{
    struct market market;
    market_init(&market);
    assert_int_equal(core_borrower(market.core, market.borrower), market.borrower);
    assert_true(core_is_self_trade(market.core, market.borrower, market.borrower));
    assert_false(core_is_self_trade(market.core, market.borrower, market.lender));
    assert_int_equal(core_borrower(market.core, 9999), 0);
    assert_false(core_is_self_trade(market.core, market.borrower, 9999));
    market_done(&market);
}

TEST(an_address_block_that_could_be_an_id_is_refused)
{
    struct market market;
    market_init(&market);
    const struct command open = {.kind = COMMAND_OPEN_ACCOUNT,
                                 .open_account = {.name = TEXT("ada"), .address_block = 3}};
    market_refuses(&market, &open, ERROR_INVALID);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accounts_of_one_address_block_are_one_borrower),
        cmocka_unit_test(accounts_without_a_known_block_are_each_their_own),
        cmocka_unit_test(an_address_block_that_could_be_an_id_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
