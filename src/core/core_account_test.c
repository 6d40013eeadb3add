/*
 * Passwords, freezing, deleting, groups, grants and dormancy.
 * covers decide_account.c, decide_token.c, decide_group.c, decide_grant.c
 * covers apply_account.c, apply_token.c, apply_group.c
 */
#include "core/core_internal.h"
#include "core/testing_internal.h"

#define CREDIT  INT64_C(1000000)
#define BLOCK_A (ACCOUNT_BLOCK_BIT | 7)
#define BLOCK_B (ACCOUNT_BLOCK_BIT | 8)

static uint64_t open_from(struct market *market, const char *name, uint64_t block)
{
    const struct command open = {.kind = COMMAND_OPEN_ACCOUNT,
                                 .open_account = {.name = text_of(name), .address_block = block}};
    return market_do(market, &open);
}

static void change(struct market *market, struct core_settings settings)
{
    const struct command command = {.kind = COMMAND_CHANGE_SETTINGS, .change_settings = settings};
    market_do(market, &command);
}

static void freeze(struct market *market, uint64_t account)
{
    const struct command command = {
        .kind = COMMAND_FREEZE_ACCOUNT,
        .freeze_account = {.account = account, .reason = TEXT("asked by its owner")}};
    market_do(market, &command);
}

static void unfreeze(struct market *market, uint64_t account)
{
    const struct command command = {.kind = COMMAND_UNFREEZE_ACCOUNT,
                                    .unfreeze_account = {.account = account}};
    market_do(market, &command);
}

static uint64_t add_token(struct market *market, uint64_t account, bool is_session)
{
    struct command add = {.kind = COMMAND_ADD_TOKEN,
                          .add_token = {.account = account,
                                        .scopes = TOKEN_SCOPE_ALL,
                                        .label = TEXT("page"),
                                        .is_session = is_session}};
    market_hash(market, add.add_token.hash);
    return market_do(market, &add);
}

static void add_code(struct market *market, enum code_kind kind, uint64_t account,
                     uint8_t out_hash[MARKET_HASH_SIZE])
{
    struct command add = {
        .kind = COMMAND_ADD_CODE,
        .add_code = {.kind = kind, .account = account, .expires_ms = market->now_ms + 600000}};
    market_hash(market, add.add_code.hash);
    memcpy(out_hash, add.add_code.hash, MARKET_HASH_SIZE);
    market_do(market, &add);
}

static int64_t granted(const struct market *market, uint64_t account)
{
    return core_balance(market->core, account)->granted_micro;
}

/* ---- Passwords and tokens -------------------------------------------------------------------- */

TEST(a_token_for_functions_has_no_other_scope)
{
    struct market market;
    market_init(&market);
    struct command add = {.kind = COMMAND_ADD_TOKEN,
                          .add_token = {.account = market.borrower,
                                        .scopes = TOKEN_SCOPE_OBJECTS | TOKEN_SCOPE_READ,
                                        .label = TEXT("digits-1")}};
    market_hash(&market, add.add_token.hash);
    market_refuses(&market, &add, ERROR_INVALID);
    add.add_token.scopes = TOKEN_SCOPE_OBJECTS;
    const struct token *token = core_token(market.core, market_do(&market, &add));
    assert_int_equal(token->scopes, TOKEN_SCOPE_OBJECTS);
    assert_string_equal(token->label, "digits-1");
    assert_false(token_allows(token, TOKEN_SCOPE_READ, market.now_ms));
    market_done(&market);
}

TEST(a_password_is_kept_as_its_hash_and_ends_other_sessions)
{
    struct market market;
    market_init(&market);
    const uint64_t api = add_token(&market, market.borrower, false);
    const uint64_t own = add_token(&market, market.borrower, true);
    const uint64_t other = add_token(&market, market.borrower, true);
    struct command set = {.kind = COMMAND_SET_PASSWORD,
                          .set_password = {.account = market.borrower,
                                           .password = TEXT("$argon2id$v=19$m=65536$x$y"),
                                           .token = own}};
    market_do(&market, &set);
    assert_string_equal(core_account(market.core, market.borrower)->password,
                        "$argon2id$v=19$m=65536$x$y");
    assert_false(core_token(market.core, api)->is_revoked);
    assert_false(core_token(market.core, own)->is_revoked);
    assert_true(core_token(market.core, other)->is_revoked);

    set.set_password.password = TEXT("correct horse battery");
    market_refuses(&market, &set, ERROR_INVALID);
    set.set_password.account = 9999;
    market_refuses(&market, &set, ERROR_NOT_FOUND);
    market_done(&market);
}

TEST(tokens_are_limited_and_expired_ones_make_room)
{
    struct market market;
    market_init(&market);
    struct command add = {.kind = COMMAND_ADD_TOKEN,
                          .add_token = {.account = market.borrower,
                                        .scopes = TOKEN_SCOPE_READ,
                                        .expires_ms = market.now_ms + 1000,
                                        .label = TEXT("short")}};
    for (int i = 0; i < ACCOUNT_TOKENS_MAX; i++) {
        market_hash(&market, add.add_token.hash);
        market_do(&market, &add);
    }
    market_hash(&market, add.add_token.hash);
    market_refuses(&market, &add, ERROR_EXHAUSTED);
    add.add_token.is_session = true;
    market_refuses(&market, &add, ERROR_EXHAUSTED); /* no other session gives way */
    add.add_token.is_session = false;
    market.now_ms += 1000;
    add.add_token.expires_ms = 0;
    market_do(&market, &add);
    assert_int_equal(market_new_events(&market, EVENT_TOKEN_REVOKED), ACCOUNT_TOKENS_MAX);
    assert_int_equal(core_account(market.core, market.borrower)->token_count, 1);
    market_done(&market);
}

/* ---- Freezing -------------------------------------------------------------------------------- */

TEST(a_frozen_account_keeps_every_credit_and_starts_nothing)
{
    struct market market;
    market_init_demo(&market);
    freeze(&market, market.borrower);
    assert_int_equal(market_balance(&market, market.borrower), 10 * CREDIT);
    const struct command submit = market_job(&market);
    market_refuses(&market, &submit, ERROR_REFUSED);
    struct command add = {.kind = COMMAND_ADD_CODE,
                          .add_code = {.kind = CODE_KIND_ENROL,
                                       .account = market.borrower,
                                       .expires_ms = market.now_ms + 1000}};
    market_hash(&market, add.add_code.hash);
    market_refuses(&market, &add, ERROR_REFUSED);
    const struct command delete = {.kind = COMMAND_DELETE_ACCOUNT,
                                   .delete_account = {market.borrower}};
    market_refuses(&market, &delete, ERROR_REFUSED);
    add_token(&market, market.borrower, true); /* its owner may look */

    unfreeze(&market, market.borrower);
    assert_int_equal(market_balance(&market, market.borrower), 10 * CREDIT);
    assert_int_equal(market_submit(&market)->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(a_job_that_runs_when_its_account_is_frozen_is_paid_for_to_its_end)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(&market, job->leases[i]);
    freeze(&market, market.borrower);
    market.now_ms += 3000;
    const struct command tick = market_tick(job->leases[1], 1, 3000);
    market_do(&market, &tick);
    assert_true(core_balance(market.core, market.lender)->earned_micro > 0);
    for (size_t i = job->lease_count; i-- > 0;)
        market_end_lease(&market, job->leases[i], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_int_equal(market_balance(&market, market.borrower), 10 * CREDIT - job->posted_micro);
    market_done(&market);
}

TEST(machines_of_a_frozen_account_get_no_leases_until_it_is_unfrozen)
{
    struct market market;
    market_init_demo(&market);
    freeze(&market, market.lender);
    const struct job *job = market_submit(&market);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    unfreeze(&market, market.lender);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(a_waiting_job_of_a_frozen_account_waits_on)
{
    struct market market;
    market_init(&market);
    const struct job *job = market_submit(&market);
    freeze(&market, market.borrower);
    market_add_machine(&market, "market", 1000, MACHINE_ROLE_SERVER);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    market_add_machine(&market, "owl", 500, MACHINE_ROLE_WORKER);
    market_add_machine(&market, "wren", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    unfreeze(&market, market.borrower);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(freezing_needs_a_reason_and_an_account_that_may_be)
{
    struct market market;
    market_init(&market);
    struct command command = {.kind = COMMAND_FREEZE_ACCOUNT,
                              .freeze_account = {.account = market.borrower}};
    market_refuses(&market, &command, ERROR_INVALID);
    command.freeze_account.reason = TEXT("because");
    command.freeze_account.account = ACCOUNT_OPERATOR;
    market_refuses(&market, &command, ERROR_INVALID);
    command.freeze_account.account = ACCOUNT_MINT;
    market_refuses(&market, &command, ERROR_NOT_FOUND);
    command.freeze_account.account = market.borrower;
    market_do(&market, &command);
    market_refuses(&market, &command, ERROR_CONFLICT);
    const struct command thaw = {.kind = COMMAND_UNFREEZE_ACCOUNT,
                                 .unfreeze_account = {market.lender}};
    market_refuses(&market, &thaw, ERROR_CONFLICT);
    market_done(&market);
}

/* ---- Deleting -------------------------------------------------------------------------------- */

TEST(a_deleted_account_gives_its_credits_back_and_its_name_is_not_reused)
{
    struct market market;
    market_init(&market);
    const uint64_t token = add_token(&market, market.borrower, false);
    uint8_t code[MARKET_HASH_SIZE];
    add_code(&market, CODE_KIND_PAGE, market.borrower, code);
    const int64_t mint = market_balance(&market, ACCOUNT_MINT);
    const struct command delete = {.kind = COMMAND_DELETE_ACCOUNT,
                                   .delete_account = {market.borrower}};
    market_do(&market, &delete);
    assert_int_equal(market_balance(&market, ACCOUNT_MINT), mint + 10 * CREDIT);
    assert_int_equal(market_balance(&market, market.borrower), 0);
    assert_string_equal(core_account(market.core, market.borrower)->name, "deleted-3");
    assert_true(core_token(market.core, token)->is_revoked);
    assert_null(core_code_by_hash(market.core, code));
    market_refuses(&market, &delete, ERROR_NOT_FOUND);
    const struct command open = {.kind = COMMAND_OPEN_ACCOUNT,
                                 .open_account = {.name = TEXT("borrower")}};
    market_refuses(&market, &open, ERROR_CONFLICT);
    const struct command disguise = {.kind = COMMAND_OPEN_ACCOUNT,
                                     .open_account = {.name = TEXT("deleted-3")}};
    market_refuses(&market, &disguise, ERROR_CONFLICT);
    const struct command submit = market_job(&market);
    market_refuses(&market, &submit, ERROR_NOT_FOUND);
    market_done(&market);
}

TEST(an_account_with_a_job_or_a_lending_machine_is_not_deleted)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    const struct command borrower = {.kind = COMMAND_DELETE_ACCOUNT,
                                     .delete_account = {market.borrower}};
    const struct command lender = {.kind = COMMAND_DELETE_ACCOUNT,
                                   .delete_account = {market.lender}};
    market_refuses(&market, &borrower, ERROR_CONFLICT);
    market_refuses(&market, &lender, ERROR_CONFLICT);
    for (size_t i = job->lease_count; i-- > 0;)
        market_end_lease(&market, job->leases[i], LEASE_OUTCOME_FAILED, "");
    market_do(&market, &borrower);
    market_refuses(&market, &lender, ERROR_CONFLICT);
    for (size_t i = 0; i < core_machine_count(market.core); i++) {
        const struct machine *machine = core_machine_at(market.core, i);
        if (machine->owner == market.lender)
            market_do(&market, &(struct command){.kind = COMMAND_MACHINE_GONE,
                                                 .machine_gone = {machine->id}});
    }
    market_do(&market, &lender);
    const struct machine *heron = core_machine_by_name(market.core, TEXT("heron"));
    const struct command back = {
        .kind = COMMAND_MACHINE_CONNECTED,
        .machine_connected = {.machine = heron->id, .generation = heron->generation}};
    market_refuses(&market, &back, ERROR_NOT_FOUND);
    market_done(&market);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static uint64_t create_group(struct market *market, uint64_t owner, const char *name)
{
    const struct command create = {.kind = COMMAND_CREATE_GROUP,
                                   .create_group = {.account = owner, .name = text_of(name)}};
    return market_do(market, &create);
}

static struct command join_command(struct market *market, uint64_t owner, uint64_t account)
{
    struct command join = {.kind = COMMAND_JOIN_GROUP, .join_group = {.account = account}};
    add_code(market, CODE_KIND_GROUP, owner, join.join_group.code_hash);
    return join;
}

TEST(members_of_a_group_are_one_borrower)
{
    struct market market;
    market_init(&market);
    const uint64_t lab = create_group(&market, market.lender, "lab");
    const struct command join = join_command(&market, market.lender, market.borrower);
    assert_int_equal(market_do(&market, &join), lab);
    assert_int_equal(core_borrower(market.core, market.borrower), lab);
    assert_true(core_is_self_trade(market.core, market.borrower, market.lender));
    assert_int_equal(core_group(market.core, lab)->member_count, 2);
    market_refuses(&market, &join, ERROR_REFUSED); /* the code is used */

    const struct command leave = {.kind = COMMAND_LEAVE_GROUP, .leave_group = {market.borrower}};
    market_do(&market, &leave);
    assert_false(core_is_self_trade(market.core, market.borrower, market.lender));
    market_refuses(&market, &leave, ERROR_CONFLICT);
    market_done(&market);
}

TEST(only_the_owner_invites_and_an_account_is_in_one_group_at_most)
{
    struct market market;
    market_init(&market);
    const uint64_t carol = open_from(&market, "carol", 0);
    create_group(&market, market.lender, "lab");
    struct command join = join_command(&market, market.lender, market.borrower);
    market_do(&market, &join);
    struct command add = {.kind = COMMAND_ADD_CODE,
                          .add_code = {.kind = CODE_KIND_GROUP,
                                       .account = market.borrower,
                                       .expires_ms = market.now_ms + 1000}};
    market_hash(&market, add.add_code.hash);
    market_refuses(&market, &add, ERROR_REFUSED);
    add.add_code.account = carol;
    market_refuses(&market, &add, ERROR_CONFLICT);

    create_group(&market, carol, "club");
    join = join_command(&market, carol, market.borrower);
    market_refuses(&market, &join, ERROR_CONFLICT);
    const struct command again = {.kind = COMMAND_CREATE_GROUP,
                                  .create_group = {.account = carol, .name = TEXT("third")}};
    market_refuses(&market, &again, ERROR_CONFLICT);
    market_done(&market);
}

TEST(a_group_outlives_its_owner)
{
    struct market market;
    market_init(&market);
    const uint64_t lab = create_group(&market, market.lender, "lab");
    struct command join = join_command(&market, market.lender, market.borrower);
    const struct command late = join_command(&market, market.lender, open_from(&market, "eve", 0));
    market_do(&market, &join);
    market_do(&market,
              &(struct command){.kind = COMMAND_DELETE_ACCOUNT, .delete_account = {market.lender}});
    assert_int_equal(core_group(market.core, lab)->owner, market.borrower);
    market_refuses(&market, &late, ERROR_REFUSED); /* who invited is gone */
    market_do(&market,
              &(struct command){.kind = COMMAND_LEAVE_GROUP, .leave_group = {market.borrower}});
    assert_int_equal(core_group(market.core, lab)->owner, 0);
    assert_int_equal(core_group(market.core, lab)->member_count, 0);
    /* An empty group keeps its number, not its name. */
    assert_null(core_group_by_name(market.core, TEXT("lab")));
    const uint64_t again = create_group(&market, market.borrower, "lab");
    assert_true(again != lab);
    assert_ptr_equal(core_group_by_name(market.core, TEXT("lab")), core_group(market.core, again));
    market_done(&market);
}

TEST(an_owner_takes_members_out_and_nobody_else_does)
{
    struct market market;
    market_init(&market);
    const uint64_t carol = open_from(&market, "carol", 0);
    const uint64_t lab = create_group(&market, market.lender, "lab");
    struct command join = join_command(&market, market.lender, market.borrower);
    market_do(&market, &join);
    join = join_command(&market, market.lender, carol);
    market_do(&market, &join);
    struct command take_out = {.kind = COMMAND_LEAVE_GROUP,
                               .leave_group = {.account = market.borrower, .member = carol}};
    market_refuses(&market, &take_out, ERROR_REFUSED);
    take_out.leave_group.account = market.lender;
    assert_int_equal(market_do(&market, &take_out), lab);
    assert_int_equal(core_account(market.core, carol)->group, 0);
    assert_int_equal(core_group(market.core, lab)->owner, market.lender);
    market_refuses(&market, &take_out, ERROR_NOT_FOUND);
    take_out.leave_group.member = 999999;
    market_refuses(&market, &take_out, ERROR_NOT_FOUND);
    take_out.leave_group.member = market.lender; /* itself */
    market_do(&market, &take_out);
    assert_int_equal(core_group(market.core, lab)->owner, market.borrower);
    market_done(&market);
}

/* ---- Grants ---------------------------------------------------------------------------------- */

TEST(one_grant_a_day_comes_to_an_address_block)
{
    struct market market;
    market_init(&market);
    const uint64_t ada = open_from(&market, "ada", BLOCK_A);
    const uint64_t bob = open_from(&market, "bob", BLOCK_A);
    const uint64_t carol = open_from(&market, "carol", BLOCK_A);
    const uint64_t eve = open_from(&market, "eve", BLOCK_B);
    assert_int_equal(granted(&market, ada), 10 * CREDIT);
    assert_int_equal(granted(&market, bob), 0);
    assert_int_equal(granted(&market, eve), 10 * CREDIT);
    assert_int_equal(core_account(market.core, bob)->grant, GRANT_STATE_WAITING);

    market.now_ms = core_next_wake_ms(market.core);
    market_pass_time(&market, 0);
    assert_int_equal(granted(&market, bob), 10 * CREDIT);
    assert_int_equal(granted(&market, carol), 0);
    market_pass_time(&market, 0);
    assert_int_equal(market_new_events(&market, EVENT_DAY_BEGAN), 0);
    market.now_ms = core_next_wake_ms(market.core);
    market_pass_time(&market, 0);
    assert_int_equal(granted(&market, carol), 10 * CREDIT);
    market_done(&market);
}

TEST(a_days_grants_are_limited_and_the_others_wait_in_order)
{
    struct market market;
    market_init(&market); /* two accounts, two grants */
    struct core_settings settings = *core_settings(market.core);
    settings.grant_daily_micro = 30 * CREDIT;
    change(&market, settings);
    const uint64_t third = open_from(&market, "third", 0);
    const uint64_t fourth = open_from(&market, "fourth", 0);
    const uint64_t fifth = open_from(&market, "fifth", 0);
    assert_int_equal(granted(&market, third), 10 * CREDIT);
    assert_int_equal(granted(&market, fourth), 0);
    assert_int_equal(granted(&market, fifth), 0);

    settings.grant_daily_micro = 40 * CREDIT; /* a change of mind is felt at once */
    change(&market, settings);
    assert_int_equal(granted(&market, fourth), 10 * CREDIT);
    assert_int_equal(granted(&market, fifth), 0);
    settings.grant_daily_micro = 1; /* still one a day */
    change(&market, settings);
    market.now_ms = core_next_wake_ms(market.core);
    market_pass_time(&market, 0);
    assert_int_equal(granted(&market, fifth), 10 * CREDIT);
    market_done(&market);
}

TEST(an_invitation_is_good_for_one_grant_whatever_the_limits)
{
    struct market market;
    market_init(&market);
    struct core_settings settings = *core_settings(market.core);
    settings.grant_daily_micro = 0;
    change(&market, settings);
    assert_int_equal(granted(&market, open_from(&market, "stranger", 0)), 0);

    struct command open = {
        .kind = COMMAND_OPEN_ACCOUNT,
        .open_account = {.name = TEXT("guest"), .address_block = BLOCK_A, .has_invite = true}};
    market_refuses(&market, &open, ERROR_REFUSED);
    add_code(&market, CODE_KIND_INVITE, ACCOUNT_OPERATOR, open.open_account.invite_hash);
    assert_int_equal(granted(&market, market_do(&market, &open)), 10 * CREDIT);
    open.open_account.name = TEXT("second-guest");
    market_refuses(&market, &open, ERROR_REFUSED);

    struct command add = {.kind = COMMAND_ADD_CODE,
                          .add_code = {.kind = CODE_KIND_INVITE,
                                       .account = market.lender,
                                       .expires_ms = market.now_ms + 1000}};
    market_hash(&market, add.add_code.hash);
    market_refuses(&market, &add, ERROR_REFUSED);
    market_done(&market);
}

TEST(the_operator_gives_one_account_its_grant_before_its_turn)
{
    struct market market;
    market_init(&market);
    struct core_settings settings = *core_settings(market.core);
    settings.grant_daily_micro = 1; /* the day's are given: two accounts have had theirs */
    change(&market, settings);
    const uint64_t ada = open_from(&market, "ada", BLOCK_A);
    const uint64_t bob = open_from(&market, "bob", BLOCK_B);
    struct command give = {.kind = COMMAND_GIVE_GRANT, .give_grant = {.account = ada}};
    const int64_t supply = core_balance(market.core, ACCOUNT_MINT)->granted_micro;
    assert_int_equal(market_do(&market, &give), ada);
    assert_int_equal(granted(&market, ada), 10 * CREDIT);
    assert_int_equal(core_account(market.core, ada)->to_earn_micro, 40 * CREDIT);
    assert_int_equal(core_balance(market.core, ACCOUNT_MINT)->granted_micro, supply - 10 * CREDIT);
    assert_int_equal(granted(&market, bob), 0);
    market_refuses(&market, &give, ERROR_CONFLICT); /* once */
    give.give_grant.account = market.lender;        /* had its own */
    market_refuses(&market, &give, ERROR_CONFLICT);
    give.give_grant.account = ACCOUNT_OPERATOR; /* gets none */
    market_refuses(&market, &give, ERROR_CONFLICT);
    give.give_grant.account = 4711;
    market_refuses(&market, &give, ERROR_NOT_FOUND);

    give.give_grant.account = bob;
    freeze(&market, bob);
    market_refuses(&market, &give, ERROR_REFUSED);
    assert_int_equal(granted(&market, bob), 0);
    unfreeze(&market, bob);
    settings.grant_micro = 0;
    change(&market, settings);
    market_refuses(&market, &give, ERROR_CONFLICT);
    market_done(&market);
}

/* Runs the demo's job for a while and ends it; the lender's three workers earn. */
static const struct job *run_job(struct market *market)
{
    const struct job *job = market_submit(market);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(market, job->leases[i]);
    market->now_ms += 60000;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct command tick = market_tick(job->leases[i], 1, 60000);
        market_do(market, &tick);
    }
    for (size_t i = job->lease_count; i-- > 0;)
        market_end_lease(market, job->leases[i], LEASE_OUTCOME_SUCCEEDED, "");
    return job;
}

TEST(the_rest_of_a_grant_is_released_by_what_lending_earned)
{
    struct market market;
    market_init_demo(&market);
    run_job(&market);
    const struct ledger_account *lender = core_balance(market.core, market.lender);
    assert_true(lender->earned_micro > 0);
    assert_int_equal(lender->granted_micro, 10 * CREDIT + lender->earned_micro);
    assert_int_equal(core_account(market.core, market.lender)->to_earn_micro,
                     40 * CREDIT - lender->earned_micro);
    market_done(&market);
}

TEST(no_more_is_released_than_there_is_to_earn)
{
    struct market market;
    market_init(&market);
    struct core_settings settings = *core_settings(market.core);
    settings.grant_earned_micro = 5;
    change(&market, settings);
    market.lender = open_from(&market, "small", 0);
    market_add_machine(&market, "market", 1000, MACHINE_ROLE_SERVER);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    market_add_machine(&market, "owl", 500, MACHINE_ROLE_WORKER);
    market_add_machine(&market, "wren", 250, MACHINE_ROLE_WORKER);
    run_job(&market);
    assert_int_equal(granted(&market, market.lender), 10 * CREDIT + 5);
    assert_int_equal(core_account(market.core, market.lender)->to_earn_micro, 0);
    market_done(&market);
}

TEST(renting_from_oneself_earns_and_releases_nothing_of_the_grant)
{
    struct market market;
    market_init_demo(&market);
    create_group(&market, market.lender, "lab");
    const struct command join = join_command(&market, market.lender, market.borrower);
    market_do(&market, &join);
    run_job(&market);
    assert_true(core_balance(market.core, market.lender)->earned_micro > 0);
    assert_int_equal(granted(&market, market.lender), 10 * CREDIT);
    market_done(&market);
}

/* ---- Dormancy -------------------------------------------------------------------------------- */

static void pass_days(struct market *market, int64_t days)
{
    market_pass_time(market, days * CORE_DAY_MS);
}

TEST(credits_of_an_account_not_seen_for_long_go_back_after_two_notices)
{
    struct market market;
    market_init(&market);
    pass_days(&market, 179);
    assert_int_equal(market_new_events(&market, EVENT_DORMANCY_ADVANCED), 0);
    pass_days(&market, 1);
    assert_int_equal(market_new_events(&market, EVENT_DORMANCY_ADVANCED), 2);
    pass_days(&market, 27);
    assert_int_equal(market_new_events(&market, EVENT_DORMANCY_ADVANCED), 0);
    pass_days(&market, 1);
    assert_int_equal(market_new_events(&market, EVENT_DORMANCY_ADVANCED), 2);
    assert_int_equal(market_balance(&market, market.borrower), 10 * CREDIT);
    const struct command see = {.kind = COMMAND_SEE_ACCOUNT, .see_account = {market.lender}};
    market_do(&market, &see);
    const struct account *back = core_account(market.core, market.lender);
    assert_int_equal(back->dormant_steps, 0);
    assert_int_equal(back->dormant_step_ms, market.now_ms); /* told to its owner */
    pass_days(&market, 28);
    assert_int_equal(market_balance(&market, market.borrower), 9 * CREDIT);
    assert_int_equal(market_balance(&market, market.lender), 10 * CREDIT);
    pass_days(&market, 28);
    assert_int_equal(market_balance(&market, market.borrower), 8100000);
    assert_int_equal(market_balance(&market, market.lender), 10 * CREDIT);
    market_done(&market);
}

TEST(being_seen_is_an_event_once_a_day)
{
    struct market market;
    market_init(&market);
    const struct command see = {.kind = COMMAND_SEE_ACCOUNT, .see_account = {market.lender}};
    market_do(&market, &see);
    assert_int_equal(market_new_events(&market, EVENT_ACCOUNT_SEEN), 0); /* opened today */
    market.now_ms += CORE_DAY_MS;
    market_do(&market, &see);
    assert_int_equal(market_new_events(&market, EVENT_ACCOUNT_SEEN), 1);
    market_do(&market, &see);
    assert_int_equal(market_new_events(&market, EVENT_ACCOUNT_SEEN), 0);
    market_done(&market);
}

TEST(a_snapshot_keeps_all_of_it)
{
    struct market market;
    market_init_demo(&market);
    create_group(&market, market.lender, "lab");
    const struct command join =
        join_command(&market, market.lender, open_from(&market, "ada", BLOCK_A));
    market_do(&market, &join);
    const struct command waiting = join_command(&market, market.lender, market.borrower);
    (void)waiting; /* a code of the group that nobody used */
    open_from(&market, "bob", BLOCK_A);
    add_token(&market, market.borrower, true);
    freeze(&market, market.lender);
    market_do(&market, &(struct command){.kind = COMMAND_DELETE_ACCOUNT,
                                         .delete_account = {open_from(&market, "gone", BLOCK_B)}});
    struct error error = {0};
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 1 << 20);
    buffer_init(&second, 1 << 20);
    core_snapshot_write(market.core, &first);
    AUTO(core) struct core *restored = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&first), &restored, &error));
    core_snapshot_write(restored, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
    assert_true(account_is_frozen(core_account(restored, market.lender)));
    assert_true(core_machine_by_name(restored, TEXT("heron"))->is_barred);
    assert_int_equal(core_group_by_name(restored, TEXT("lab"))->member_count, 2);
    assert_int_equal(core_account_by_name(restored, TEXT("bob"))->grant, GRANT_STATE_WAITING);

    struct event_list events;
    event_list_init(&events);
    const struct command open = {.kind = COMMAND_OPEN_ACCOUNT,
                                 .open_account = {.name = TEXT("eve"), .address_block = BLOCK_B}};
    ASSERT_OK(core_decide(restored, &open, market.now_ms, &events, &error));
    assert_int_equal(core_account_by_name(restored, TEXT("eve"))->grant, GRANT_STATE_WAITING);
    const struct command reopen = {.kind = COMMAND_OPEN_ACCOUNT,
                                   .open_account = {.name = TEXT("gone")}};
    ASSERT_FAILS(core_decide(restored, &reopen, market.now_ms, &events, &error), ERROR_CONFLICT);
    event_list_done(&events);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_for_functions_has_no_other_scope),
        cmocka_unit_test(a_password_is_kept_as_its_hash_and_ends_other_sessions),
        cmocka_unit_test(tokens_are_limited_and_expired_ones_make_room),
        cmocka_unit_test(a_frozen_account_keeps_every_credit_and_starts_nothing),
        cmocka_unit_test(a_job_that_runs_when_its_account_is_frozen_is_paid_for_to_its_end),
        cmocka_unit_test(machines_of_a_frozen_account_get_no_leases_until_it_is_unfrozen),
        cmocka_unit_test(a_waiting_job_of_a_frozen_account_waits_on),
        cmocka_unit_test(freezing_needs_a_reason_and_an_account_that_may_be),
        cmocka_unit_test(a_deleted_account_gives_its_credits_back_and_its_name_is_not_reused),
        cmocka_unit_test(an_account_with_a_job_or_a_lending_machine_is_not_deleted),
        cmocka_unit_test(members_of_a_group_are_one_borrower),
        cmocka_unit_test(only_the_owner_invites_and_an_account_is_in_one_group_at_most),
        cmocka_unit_test(a_group_outlives_its_owner),
        cmocka_unit_test(an_owner_takes_members_out_and_nobody_else_does),
        cmocka_unit_test(one_grant_a_day_comes_to_an_address_block),
        cmocka_unit_test(a_days_grants_are_limited_and_the_others_wait_in_order),
        cmocka_unit_test(an_invitation_is_good_for_one_grant_whatever_the_limits),
        cmocka_unit_test(the_operator_gives_one_account_its_grant_before_its_turn),
        cmocka_unit_test(the_rest_of_a_grant_is_released_by_what_lending_earned),
        cmocka_unit_test(no_more_is_released_than_there_is_to_earn),
        cmocka_unit_test(renting_from_oneself_earns_and_releases_nothing_of_the_grant),
        cmocka_unit_test(credits_of_an_account_not_seen_for_long_go_back_after_two_notices),
        cmocka_unit_test(being_seen_is_an_event_once_a_day),
        cmocka_unit_test(a_snapshot_keeps_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
