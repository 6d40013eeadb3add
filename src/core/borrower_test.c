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

/* The lender's group, with the borrower in it. */
static void join_lender(struct market *market)
{
    market_do(market,
              &(struct command){.kind = COMMAND_CREATE_GROUP,
                                .create_group = {.account = market->lender, .name = TEXT("lab")}});
    struct command code = {.kind = COMMAND_ADD_CODE,
                           .add_code = {.kind = CODE_KIND_GROUP,
                                        .account = market->lender,
                                        .expires_ms = market->now_ms + 60000}};
    market_hash(market, code.add_code.hash);
    market_do(market, &code);
    struct command join = {.kind = COMMAND_JOIN_GROUP, .join_group = {.account = market->borrower}};
    memcpy(join.join_group.code_hash, code.add_code.hash, MARKET_HASH_SIZE);
    market_do(market, &join);
}

static void work_and_end(struct market *market, const struct job *job)
{
    const struct lease *lease = job->leases[1];
    market_run_lease(market, lease);
    market->now_ms += 60000;
    const struct command tick = market_tick(lease, 1, 60000);
    market_do(market, &tick);
    market_end_lease(market, lease, LEASE_OUTCOME_SUCCEEDED, "");
}

TEST(who_joins_its_lender_later_has_still_rented_from_another)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    join_lender(&market);
    work_and_end(&market, job);
    const struct lease *lease = job->leases[1];
    assert_false(lease->is_self_trade);
    assert_int_equal(core_machine(market.core, lease->machine)->reputation.completed, 1);
    assert_int_equal(market_new_events(&market, EVENT_GRANT_RELEASED), 1);
    market_done(&market);
}

TEST(who_leaves_its_lender_later_has_still_rented_from_itself)
{
    struct market market;
    market_init_demo(&market);
    join_lender(&market);
    const struct job *job = market_submit(&market);
    market_do(&market,
              &(struct command){.kind = COMMAND_LEAVE_GROUP, .leave_group = {market.borrower}});
    work_and_end(&market, job);
    const struct lease *lease = job->leases[1];
    assert_true(lease->is_self_trade);
    assert_true(lease->posted_micro > 0);
    assert_int_equal(core_machine(market.core, lease->machine)->reputation.completed, 0);
    assert_int_equal(market_new_events(&market, EVENT_GRANT_RELEASED), 0);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accounts_of_one_address_block_are_one_borrower),
        cmocka_unit_test(accounts_without_a_known_block_are_each_their_own),
        cmocka_unit_test(an_address_block_that_could_be_an_id_is_refused),
        cmocka_unit_test(who_joins_its_lender_later_has_still_rented_from_another),
        cmocka_unit_test(who_leaves_its_lender_later_has_still_rented_from_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
