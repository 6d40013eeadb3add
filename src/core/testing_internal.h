/*
 * For the tests of this folder: a small market that commands are put to one by one.
 *
 * After every command the whole state is checked, so each test is a test of the invariants too.
 */
#pragma once

#include "core/core.h"
#include "testing/testing.h"

#define GIB      (INT64_C(1) << 30)
#define MIB      (INT64_C(1) << 20)
#define TEST_NOW INT64_C(1800000000000)
#define HELPER   __attribute__((unused)) static

struct market {
    struct core *core;
    struct event_list events; /* all so far */
    size_t seen;              /* events before the last command */
    int64_t now_ms;
    struct error error;
    uint8_t next_hash;
    uint64_t borrower;
    uint64_t lender;
};

HELPER int market_try(struct market *market, const struct command *command)
{
    struct error error = {0};
    market->seen = market->events.count;
    const int result =
        core_decide(market->core, command, market->now_ms, &market->events, &market->error);
    ASSERT_OK(core_check(market->core, &error));
    assert_int_equal(core_ledger_sum_micro(market->core), 0);
    return result;
}

/* The subject of a command that must succeed. */
HELPER uint64_t market_do(struct market *market, const struct command *command)
{
    if (market_try(market, command) < 0)
        fail_msg("%s: %s", command_kind_name(command->kind), market->error.message);
    return market->events.subject;
}

HELPER void market_refuses(struct market *market, const struct command *command,
                           enum error_code code)
{
    const uint64_t sequence = core_sequence(market->core);
    const size_t count = market->events.count;
    assert_int_equal(market_try(market, command), -1);
    if (market->error.code != code)
        fail_msg("%s: %s", error_code_name(market->error.code), market->error.message);
    assert_int_equal(core_sequence(market->core), sequence);
    assert_int_equal(market->events.count, count);
}

/* How many events of a kind the last command made. */
HELPER size_t market_new_events(const struct market *market, enum event_kind kind)
{
    size_t count = 0;
    for (size_t i = market->seen; i < market->events.count; i++)
        count += market->events.items[i].kind == kind;
    return count;
}

/* Machines enrolled from now on, and those there are, are proven once they earned so much; with 0
 * all are. */
HELPER void market_set_proving(struct market *market, int64_t proving_micro)
{
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = *core_settings(market->core)};
    change.change_settings.proving_micro = proving_micro;
    market_do(market, &change);
}

HELPER uint64_t market_open_account(struct market *market, const char *name)
{
    return market_do(market, &(struct command){.kind = COMMAND_OPEN_ACCOUNT,
                                               .open_account = {.name = text_of(name)}});
}

HELPER void market_hash(struct market *market, uint8_t out_hash[MARKET_HASH_SIZE])
{
    memset(out_hash, ++market->next_hash, MARKET_HASH_SIZE);
}

HELPER struct command market_enrolment(struct market *market, uint64_t owner, const char *name,
                                       int64_t cores_milli, uint64_t roles)
{
    struct command code = {.kind = COMMAND_ADD_CODE,
                           .add_code = {.kind = CODE_KIND_ENROL,
                                        .account = owner,
                                        .expires_ms = market->now_ms + 60000}};
    market_hash(market, code.add_code.hash);
    market_do(market, &code);
    const struct resources found = {
        .cores_milli = cores_milli, .ram_bytes = 4 * GIB, .disk_bytes = 10 * GIB};
    struct command enrol = {
        .kind = COMMAND_ENROL_MACHINE,
        .enrol_machine = {
            .name = text_of(name),
            .probe = {.resources = found, .speed_weight_milli = 1000, .cpu_model = "test"},
            .offer = {.resources = found, .roles = roles}}};
    memcpy(enrol.enrol_machine.code_hash, code.add_code.hash, MARKET_HASH_SIZE);
    market_hash(market, enrol.enrol_machine.public_key);
    return enrol;
}

HELPER void market_connect(struct market *market, uint64_t machine)
{
    const struct command connected = {
        .kind = COMMAND_MACHINE_CONNECTED,
        .machine_connected = {.machine = machine,
                              .generation = core_machine(market->core, machine)->generation}};
    market_do(market, &connected);
}

/* Enrolled and online. */
HELPER uint64_t market_add_machine(struct market *market, const char *name, int64_t cores_milli,
                                   uint64_t roles)
{
    const uint64_t owner = strcmp(name, "market") ? market->lender : ACCOUNT_OPERATOR;
    const struct command enrol = market_enrolment(market, owner, name, cores_milli, roles);
    const uint64_t machine = market_do(market, &enrol);
    market_connect(market, machine);
    return machine;
}

/* The demo's job: three workers with a quarter of a core or more, and a server. */
HELPER struct command market_job(const struct market *market)
{
    return (struct command){.kind = COMMAND_SUBMIT_JOB,
                            .submit_job = {.account = market->borrower,
                                           .name = "fashion-mnist",
                                           .spec = TEXT("{\"train\":{}}"),
                                           .num_nodes = 3,
                                           .worker = {.cores_milli = 250, .ram_bytes = 256 * MIB},
                                           .takes_more_cores = true,
                                           .server = {.cores_milli = 500, .ram_bytes = 256 * MIB},
                                           .max_total_micro = 1000000,
                                           .max_run_ms = 180000,
                                           .expected_run_ms = 60000,
                                           .tick_ms = 3000}};
}

HELPER const struct job *market_submit(struct market *market)
{
    const struct command submit = market_job(market);
    return core_job(market->core, market_do(market, &submit));
}

HELPER void market_run_lease(struct market *market, const struct lease *lease)
{
    market_do(market,
              &(struct command){.kind = COMMAND_LEASE_RUNNING,
                                .lease_running = {.lease = lease->id, .fence = lease->fence}});
}

HELPER struct command market_tick(const struct lease *lease, uint64_t tick_index, int64_t wall_ms)
{
    return (struct command){.kind = COMMAND_TICK_LEASE,
                            .tick_lease = {.lease = lease->id,
                                           .fence = lease->fence,
                                           .tick_index = tick_index,
                                           .wall_ms = wall_ms}};
}

HELPER void market_end_lease(struct market *market, const struct lease *lease,
                             enum lease_outcome outcome, const char *reason)
{
    market_do(market, &(struct command){.kind = COMMAND_END_LEASE,
                                        .end_lease = {.lease = lease->id,
                                                      .fence = lease->fence,
                                                      .outcome = outcome,
                                                      .reason = text_of(reason)}});
}

HELPER void market_pass_time(struct market *market, int64_t span_ms)
{
    market->now_ms += span_ms;
    market_do(market, &(struct command){.kind = COMMAND_TIME_PASSED});
}

HELPER int64_t market_balance(const struct market *market, uint64_t account)
{
    return ledger_balance_micro(core_balance(market->core, account));
}

HELPER void market_init(struct market *market)
{
    *market = (struct market){.core = core_new(), .now_ms = TEST_NOW};
    event_list_init(&market->events);
    market->borrower = market_open_account(market, "borrower");
    market->lender = market_open_account(market, "lender");
}

/* The demo's machines: market for the server, and lenders of a whole, a half, a quarter core. */
HELPER void market_init_demo(struct market *market)
{
    market_init(market);
    market_add_machine(market, "market", 1000, MACHINE_ROLE_SERVER);
    market_add_machine(market, "heron", 1000, MACHINE_ROLE_WORKER);
    market_add_machine(market, "owl", 500, MACHINE_ROLE_WORKER);
    market_add_machine(market, "wren", 250, MACHINE_ROLE_WORKER);
}

HELPER void market_done(struct market *market)
{
    event_list_done(&market->events);
    core_free(market->core);
}
