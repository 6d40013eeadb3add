/*
 * Accounts, tokens, codes and machines.
 * covers core.c, index.c, lookup.c, explain.c, decide.c, decide_account.c, decide_machine.c
 * covers decide_offer.c, apply.c, apply_account.c, apply_machine.c, apply_offer.c, check.c
 * covers command.c, id_list.c
 */
#include "core/core_internal.h"
#include "core/testing_internal.h"

TEST(a_new_account_gets_its_grant_from_mint)
{
    struct market market;
    market_init(&market);
    assert_int_equal(market_balance(&market, market.borrower), 10000000);
    assert_int_equal(market_balance(&market, ACCOUNT_MINT), -20000000);
    assert_string_equal(core_account(market.core, market.borrower)->name, "borrower");
    assert_ptr_equal(core_account_by_name(market.core, TEXT("lender")),
                     core_account(market.core, market.lender));
    assert_int_equal(core_account_count(market.core), 4);
    market_done(&market);
}

TEST(names_of_accounts_are_unique_and_some_reserved)
{
    struct market market;
    market_init(&market);
    struct command open = {.kind = COMMAND_OPEN_ACCOUNT, .open_account = {TEXT("borrower")}};
    market_refuses(&market, &open, ERROR_CONFLICT);
    open.open_account.name = TEXT("mint");
    market_refuses(&market, &open, ERROR_CONFLICT);
    open.open_account.name = TEXT("No Name");
    market_refuses(&market, &open, ERROR_INVALID);
    market_done(&market);
}

TEST(a_token_is_found_by_its_hash_until_revoked)
{
    struct market market;
    market_init(&market);
    struct command add = {.kind = COMMAND_ADD_TOKEN,
                          .add_token = {.account = market.borrower,
                                        .scopes = TOKEN_SCOPE_BORROW,
                                        .label = TEXT("laptop")}};
    market_hash(&market, add.add_token.hash);
    const uint64_t token = market_do(&market, &add);
    const struct token *found = core_token_by_hash(market.core, add.add_token.hash);
    assert_int_equal(found->id, token);
    assert_string_equal(found->label, "laptop");
    assert_true(token_allows(found, TOKEN_SCOPE_BORROW, market.now_ms));
    market_refuses(&market, &add, ERROR_CONFLICT);

    struct command revoke = {.kind = COMMAND_REVOKE_TOKEN,
                             .revoke_token = {.account = market.lender, .token = token}};
    market_refuses(&market, &revoke, ERROR_NOT_FOUND);
    revoke.revoke_token.account = market.borrower;
    market_do(&market, &revoke);
    assert_false(token_allows(found, TOKEN_SCOPE_BORROW, market.now_ms));
    market_do(&market, &revoke);
    assert_int_equal(market_new_events(&market, EVENT_TOKEN_REVOKED), 0);

    market_hash(&market, add.add_token.hash);
    add.add_token.scopes = 0;
    market_refuses(&market, &add, ERROR_INVALID);
    add.add_token.scopes = TOKEN_SCOPE_READ;
    add.add_token.label = TEXT("\xff");
    market_refuses(&market, &add, ERROR_INVALID);
    market_done(&market);
}

TEST(a_code_is_good_once_and_not_after_it_expires)
{
    struct market market;
    market_init(&market);
    struct command add = {.kind = COMMAND_ADD_CODE,
                          .add_code = {.kind = CODE_KIND_PAGE,
                                       .account = market.borrower,
                                       .expires_ms = market.now_ms + 60000}};
    market_hash(&market, add.add_code.hash);
    struct command use = {.kind = COMMAND_USE_CODE, .use_code = {.kind = CODE_KIND_PAGE}};
    memcpy(use.use_code.hash, add.add_code.hash, MARKET_HASH_SIZE);
    market_do(&market, &add);
    assert_int_equal(market_do(&market, &use), market.borrower);
    market_refuses(&market, &use, ERROR_REFUSED);

    market_do(&market, &add);
    assert_int_equal(core_next_wake_ms(market.core), market.now_ms + 60000);
    market.now_ms += 60000;
    market_refuses(&market, &use, ERROR_REFUSED);
    market_pass_time(&market, 0);
    assert_int_equal(market_new_events(&market, EVENT_CODE_REMOVED), 1);
    assert_null(core_code_by_hash(market.core, add.add_code.hash));
    assert_true(core_next_wake_ms(market.core) > market.now_ms + 60000);
    market_done(&market);
}

TEST(a_machine_enrols_with_a_code_and_is_offline_until_its_link_is_up)
{
    struct market market;
    market_init(&market);
    const struct command enrol =
        market_enrolment(&market, market.lender, "heron", 1000, MACHINE_ROLE_WORKER);
    const uint64_t id = market_do(&market, &enrol);
    const struct machine *machine = core_machine(market.core, id);
    assert_int_equal(machine->owner, market.lender);
    assert_int_equal(machine->state, MACHINE_STATE_OFFLINE);
    assert_int_equal(machine->generation, 1);
    assert_ptr_equal(core_machine_by_key(market.core, enrol.enrol_machine.public_key), machine);
    assert_ptr_equal(core_machine_by_name(market.core, TEXT("heron")), machine);
    market_refuses(&market, &enrol, ERROR_REFUSED); /* the code is used */
    market_connect(&market, id);
    assert_int_equal(machine->state, MACHINE_STATE_ONLINE);
    market_done(&market);
}

TEST(enrolling_a_known_key_again_raises_the_generation)
{
    struct market market;
    market_init(&market);
    struct command enrol =
        market_enrolment(&market, market.lender, "heron", 1000, MACHINE_ROLE_WORKER);
    const uint64_t id = market_do(&market, &enrol);
    struct command again = market_enrolment(&market, market.lender, "", 2000, MACHINE_ROLE_WORKER);
    memcpy(again.enrol_machine.public_key, enrol.enrol_machine.public_key, MACHINE_KEY_SIZE);
    assert_int_equal(market_do(&market, &again), id);
    const struct machine *machine = core_machine(market.core, id);
    assert_int_equal(machine->generation, 2);
    assert_string_equal(machine->name, "heron");
    assert_int_equal(machine->offers[0]->terms.resources.cores_milli, 2000);
    const struct command old_link = {.kind = COMMAND_MACHINE_CONNECTED,
                                     .machine_connected = {.machine = id, .generation = 1}};
    market_refuses(&market, &old_link, ERROR_REFUSED);

    struct command stranger =
        market_enrolment(&market, market.borrower, "other", 2000, MACHINE_ROLE_WORKER);
    memcpy(stranger.enrol_machine.public_key, enrol.enrol_machine.public_key, MACHINE_KEY_SIZE);
    market_refuses(&market, &stranger, ERROR_REFUSED);
    market_done(&market);
}

TEST(the_name_market_is_the_operators_and_names_are_unique)
{
    struct market market;
    market_init(&market);
    struct command enrol =
        market_enrolment(&market, market.lender, "market", 1000, MACHINE_ROLE_SERVER);
    market_refuses(&market, &enrol, ERROR_CONFLICT);
    enrol.enrol_machine.name = TEXT("heron");
    market_do(&market, &enrol);
    enrol = market_enrolment(&market, market.borrower, "heron", 1000, MACHINE_ROLE_WORKER);
    market_refuses(&market, &enrol, ERROR_CONFLICT);
    market_add_machine(&market, "market", 1000, MACHINE_ROLE_SERVER);
    market_done(&market);
}

TEST(only_the_owner_changes_an_offer)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct command set = {
        .kind = COMMAND_SET_OFFER,
        .set_offer = {.account = market.borrower,
                      .machine = id,
                      .offer = core_machine(market.core, id)->offers[0]->id,
                      .terms = offer_terms(core_machine(market.core, id)->offers[0])}};
    set.set_offer.terms.resources.cores_milli = 500;
    market_refuses(&market, &set, ERROR_REFUSED);
    set.set_offer.account = market.lender;
    market_do(&market, &set);
    assert_int_equal(offer_free(core_machine(market.core, id)->offers[0]).cores_milli, 500);
    set.set_offer.terms.resources.cores_milli = 1001;
    market_refuses(&market, &set, ERROR_INVALID);
    const struct command withdraw = {
        .kind = COMMAND_WITHDRAW_OFFER,
        .withdraw_offer = {.account = market.lender, .offer = set.set_offer.offer}};
    market_do(&market, &withdraw);
    assert_int_equal(core_machine(market.core, id)->offer_count, 0);
    market_refuses(&market, &withdraw, ERROR_NOT_FOUND);
    set.set_offer.machine = 999;
    market_refuses(&market, &set, ERROR_NOT_FOUND);
    market_done(&market);
}

TEST(a_smaller_probe_shrinks_the_offer)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct command report = {
        .kind = COMMAND_REPORT_PROBE,
        .report_probe = {.machine = id, .probe = core_machine(market.core, id)->probe}};
    report.report_probe.probe.resources.cores_milli = 600;
    market_do(&market, &report);
    assert_int_equal(core_machine(market.core, id)->offers[0]->terms.resources.cores_milli, 600);
    assert_int_equal(core_machine(market.core, id)->probe.resources.cores_milli, 600);
    market_done(&market);
}

TEST(a_silent_machine_is_unreachable_then_offline)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const struct machine *machine = core_machine(market.core, id);
    market_pass_time(&market, 60000); /* the enrolment code expires */
    const struct command silent = {.kind = COMMAND_MACHINE_SILENT, .machine_silent = {id}};
    market_do(&market, &silent);
    assert_int_equal(machine->state, MACHINE_STATE_UNREACHABLE);
    assert_int_equal(core_next_wake_ms(market.core), market.now_ms + 30000);
    market_pass_time(&market, 29999);
    assert_int_equal(machine->state, MACHINE_STATE_UNREACHABLE);
    market_connect(&market, id);
    assert_int_equal(machine->state, MACHINE_STATE_ONLINE);
    market_do(&market, &silent);
    market_pass_time(&market, 30000);
    assert_int_equal(machine->state, MACHINE_STATE_OFFLINE);
    assert_true(core_next_wake_ms(market.core) > market.now_ms + 60000);
    market_done(&market);
}

TEST(settings_have_ranges_and_change_what_comes_after)
{
    struct market market;
    market_init(&market);
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = core_default_settings()};
    change.change_settings.fee_basis_points = 501;
    market_refuses(&market, &change, ERROR_INVALID);
    change.change_settings.fee_basis_points = 100;
    change.change_settings.grant_micro = 0;
    market_do(&market, &change);
    assert_int_equal(core_settings(market.core)->fee_basis_points, 100);
    const uint64_t poor = market_open_account(&market, "poor");
    assert_int_equal(market_new_events(&market, EVENT_ENTRY_POSTED), 0);
    assert_int_equal(market_balance(&market, poor), 0);
    market_done(&market);
}

TEST(time_that_goes_back_is_the_time_of_the_last_event)
{
    struct market market;
    market_init(&market);
    market.now_ms -= 5000;
    market_open_account(&market, "late");
    assert_true(market.events.items[market.events.count - 1].time_ms == TEST_NOW);
    struct error error = {0};
    const struct command command = {.kind = COMMAND_TIME_PASSED};
    ASSERT_FAILS(core_decide(market.core, &command, 0, &market.events, &error), ERROR_INVALID);
    market_done(&market);
}

TEST(an_event_out_of_order_is_corrupt_and_changes_nothing)
{
    struct error error = {0};
    AUTO(core) struct core *core = core_new();
    struct event event = {.kind = EVENT_ACCOUNT_OPENED,
                          .sequence = 1,
                          .time_ms = TEST_NOW,
                          .account_opened = {.account = 4, .name = "early"}};
    ASSERT_FAILS(core_apply(core, &event, &error), ERROR_CORRUPT);
    event.account_opened.account = 3;
    event.sequence = 2;
    ASSERT_FAILS(core_apply(core, &event, &error), ERROR_CORRUPT);
    event.sequence = 1;
    event.kind = EVENT_KIND_COUNT;
    ASSERT_FAILS(core_apply(core, &event, &error), ERROR_CORRUPT);
    assert_int_equal(core_sequence(core), 0);
    event.kind = EVENT_ACCOUNT_OPENED;
    ASSERT_OK(core_apply(core, &event, &error));
    assert_int_equal(core_sequence(core), 1);
}

TEST(a_broken_state_is_found_by_the_check)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    struct error error = {0};
    struct machine *machine = map_get(&market.core->machines, job->leases[1]->machine);
    machine->leased.cores_milli--;
    ASSERT_FAILS(core_check(market.core, &error), ERROR_CORRUPT);
    machine->leased.cores_milli++;
    job->leases[1]->posted_micro++;
    ASSERT_FAILS(core_check(market.core, &error), ERROR_CORRUPT);
    job->leases[1]->posted_micro--;
    ((struct job *)map_get(&market.core->jobs, job->id))->quote_micro++;
    ASSERT_FAILS(core_check(market.core, &error), ERROR_CORRUPT);
    market_done(&market);
}

TEST(an_id_list_keeps_its_order_whatever_comes_first)
{
    struct id_list list = {0};
    int values[4];
    id_list_add(&list, 30, &values[3]);
    id_list_add(&list, 10, &values[1]);
    id_list_add(&list, 20, &values[2]);
    id_list_add(&list, 20, &values[0]);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.items[0].id, 10);
    assert_ptr_equal(list.items[1].value, &values[2]);
    id_list_remove(&list, 15);
    id_list_remove(&list, 10);
    assert_false(id_list_contains(&list, 10));
    assert_true(id_list_contains(&list, 30));
    assert_int_equal(list.items[0].id, 20);
    id_list_done(&list);
}

static struct command offer_between(const struct market *market, uint64_t machine,
                                    struct span *spans, size_t span_count)
{
    struct command set = {
        .kind = COMMAND_SET_OFFER,
        .set_offer = {.account = market->lender,
                      .machine = machine,
                      .terms = offer_terms(core_machine(market->core, machine)->offers[0])}};
    set.set_offer.terms.spans = (struct json_array){spans, span_count};
    return set;
}

TEST(an_offer_opens_and_closes_as_its_time_comes)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct span spans[] = {{TEST_NOW + 1000, TEST_NOW + 2000}, {TEST_NOW + 5000, TEST_NOW + 9000}};
    const struct command set = offer_between(&market, id, spans, 2);
    const struct offer *offer = core_offer(market.core, market_do(&market, &set));
    assert_int_equal(core_machine(market.core, id)->offer_count, 2);
    assert_false(offer->is_open);
    assert_true(core_next_wake_ms(market.core) == TEST_NOW + 1000);
    market_pass_time(&market, 1000);
    assert_true(offer->is_open);
    assert_true(core_next_wake_ms(market.core) == TEST_NOW + 2000);
    market_pass_time(&market, 1000);
    assert_false(offer->is_open);
    market_pass_time(&market, 3500); /* late for the opening */
    assert_true(offer->is_open);
    const struct command pause = {.kind = COMMAND_PAUSE_OFFER,
                                  .pause_offer = {market.lender, offer->id, market.now_ms + 700}};
    market_do(&market, &pause);
    assert_false(offer->is_open);
    market_pass_time(&market, 700);
    assert_true(offer->is_open);
    market_pass_time(&market, 60000);
    assert_false(offer->is_open);
    assert_true(core_next_wake_ms(market.core) > market.now_ms + 3600000);
    const struct command renew = {.kind = COMMAND_RENEW_OFFER,
                                  .renew_offer = {offer->id, {spans, 2}}};
    market_refuses(&market, &renew, ERROR_INVALID);
    spans[1].close_ms = market.now_ms + 1;
    market_do(&market, &renew);
    assert_true(offer->is_open);
    market_done(&market);
}

TEST(the_offers_of_a_machine_do_not_lend_the_same_core_twice)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_ALL);
    struct command set = offer_between(&market, id, NULL, 0);
    market_do(&market, &set);
    struct command submit = market_job(&market);
    submit.submit_job.num_nodes = 1;
    submit.submit_job.takes_more_cores = false;
    submit.submit_job.worker.cores_milli = 400;
    const struct job *job = core_job(market.core, market_do(&market, &submit));
    assert_int_equal(job->state, JOB_STATE_STARTING); /* 400 and 500 of 1000 */
    const struct job *second = core_job(market.core, market_do(&market, &submit));
    assert_int_equal(second->state, JOB_STATE_PENDING);
    for (size_t i = 0; i < 17; i++)
        if (core_machine(market.core, id)->offer_count < MACHINE_OFFERS_MAX)
            market_do(&market, &set);
    market_refuses(&market, &set, ERROR_CONFLICT);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_account_gets_its_grant_from_mint),
        cmocka_unit_test(names_of_accounts_are_unique_and_some_reserved),
        cmocka_unit_test(a_token_is_found_by_its_hash_until_revoked),
        cmocka_unit_test(a_code_is_good_once_and_not_after_it_expires),
        cmocka_unit_test(a_machine_enrols_with_a_code_and_is_offline_until_its_link_is_up),
        cmocka_unit_test(enrolling_a_known_key_again_raises_the_generation),
        cmocka_unit_test(the_name_market_is_the_operators_and_names_are_unique),
        cmocka_unit_test(only_the_owner_changes_an_offer),
        cmocka_unit_test(a_smaller_probe_shrinks_the_offer),
        cmocka_unit_test(an_offer_opens_and_closes_as_its_time_comes),
        cmocka_unit_test(the_offers_of_a_machine_do_not_lend_the_same_core_twice),
        cmocka_unit_test(a_silent_machine_is_unreachable_then_offline),
        cmocka_unit_test(settings_have_ranges_and_change_what_comes_after),
        cmocka_unit_test(time_that_goes_back_is_the_time_of_the_last_event),
        cmocka_unit_test(an_event_out_of_order_is_corrupt_and_changes_nothing),
        cmocka_unit_test(a_broken_state_is_found_by_the_check),
        cmocka_unit_test(an_id_list_keeps_its_order_whatever_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
