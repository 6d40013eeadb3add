/* Whether rows follow what an event changes beside its own subject. */
#include "server/projection.h"
#include "server/projection_internal.h"
#include "server/statement.h"
#include "server/tables.h"
#include "testing/testing.h"

/* What the last command wrote of a machine. */
struct found {
    uint64_t machine;
    int64_t withheld_micro; /* -1: nothing */
    int64_t lent_cores_milli, is_paused;
    uint64_t last_entry; /* of its statement */
};

static void keep_last(void *context, uint64_t event)
{
    struct found *found = context;
    found->last_entry = event;
}

static void look(void *context, const struct store_table *table, const struct store_value *values,
                 bool is_deleted)
{
    struct found *found = context;
    struct error error;
    if (table == &tables[TABLE_STATEMENTS] &&
        (uint64_t)values[STATEMENTS_SUBJECT].integer == found->machine)
        ASSERT_OK(statement_page_read(values, keep_last, found, &error));
    if (table != &tables[TABLE_MACHINES] || is_deleted ||
        (uint64_t)values[MACHINES_ID].integer != found->machine)
        return;
    found->withheld_micro = values[MACHINES_WITHHELD_MICRO].integer;
    found->lent_cores_milli = values[MACHINES_OFFER_CORES_MILLI].integer;
    found->is_paused = values[MACHINES_OFFER_IS_PAUSED].integer;
}

struct market {
    struct core *core;
    struct event_list events; /* of the last command */
    int64_t now_ms;
};

static uint64_t ask(struct market *market, const struct command *command)
{
    struct error error = {0};
    event_list_clear(&market->events);
    ASSERT_OK(core_decide(market->core, command, market->now_ms, &market->events, &error));
    return market->events.subject;
}

static uint64_t open_account(struct market *market, const char *name)
{
    return ask(market, &(struct command){.kind = COMMAND_OPEN_ACCOUNT,
                                         .open_account = {.name = text_of(name)}});
}

static uint64_t add_machine(struct market *market, uint64_t owner)
{
    const struct resources found = {.cores_milli = 1000};
    struct command code = {.kind = COMMAND_ADD_CODE,
                           .add_code = {.kind = CODE_KIND_ENROL,
                                        .account = owner,
                                        .expires_ms = market->now_ms + 1000}};
    struct command enrol = {
        .kind = COMMAND_ENROL_MACHINE,
        .enrol_machine = {.name = TEXT("heron"),
                          .probe = {.resources = found, .speed_weight_milli = 1000},
                          .offer = {.resources = found, .roles = MACHINE_ROLE_WORKER}}};
    code.add_code.hash[0] = enrol.enrol_machine.code_hash[0] = 1;
    ask(market, &code);
    const uint64_t machine = ask(market, &enrol);
    return ask(market, &(struct command){.kind = COMMAND_MACHINE_CONNECTED,
                                         .machine_connected = {machine, .generation = 1}});
}

/* An hour's worth of one core, verified. */
static void work(struct market *market, uint64_t borrower)
{
    const struct command submit = {.kind = COMMAND_SUBMIT_JOB,
                                   .submit_job = {.account = borrower,
                                                  .name = "job",
                                                  .spec = TEXT("{}"),
                                                  .num_nodes = 1,
                                                  .worker = {.cores_milli = 1000},
                                                  .max_run_ms = 3600000,
                                                  .tick_ms = 1000}};
    const struct lease *lease = core_job(market->core, ask(market, &submit))->leases[0];
    ask(market, &(struct command){.kind = COMMAND_LEASE_RUNNING,
                                  .lease_running = {lease->id, lease->fence}});
    market->now_ms += 3600000;
    ask(market, &(struct command){.kind = COMMAND_TICK_LEASE,
                                  .tick_lease = {.lease = lease->id,
                                                 .fence = lease->fence,
                                                 .tick_index = 1,
                                                 .wall_ms = 3600000}});
}

static struct found written(const struct market *market, uint64_t machine)
{
    AUTO(projection) struct projection *projection = projection_new();
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    struct found found = {.machine = machine, .withheld_micro = -1};
    for (size_t i = 0; i < market->events.count; i++)
        projection_event(projection, market->core, &market->events.items[i], batch);
    projection_flush(projection, market->core, batch);
    store_batch_each_row(batch, look, &found);
    return found;
}

static int64_t written_withheld_micro(const struct market *market, uint64_t machine)
{
    return written(market, machine).withheld_micro;
}

TEST(what_was_withheld_of_a_machine_goes_with_its_owner)
{
    struct market market = {.core = core_new(), .now_ms = INT64_C(1800000000000)};
    event_list_init(&market.events);
    const uint64_t lender = open_account(&market, "lender");
    const uint64_t borrower = open_account(&market, "borrower");
    const uint64_t machine = add_machine(&market, lender);
    work(&market, borrower);
    assert_int_equal(written_withheld_micro(&market, machine), 5000); /* a quarter of 0.02 */
    ask(&market, &(struct command){.kind = COMMAND_MACHINE_GONE, .machine_gone = {machine}});
    ask(&market, &(struct command){.kind = COMMAND_DELETE_ACCOUNT, .delete_account = {lender}});
    assert_int_equal(written_withheld_micro(&market, machine), 0);
    event_list_done(&market.events);
    core_free(market.core);
}

TEST(a_release_of_what_was_withheld_is_in_its_machines_statement)
{
    struct market market = {.core = core_new(), .now_ms = INT64_C(1800000000000)};
    event_list_init(&market.events);
    const uint64_t machine = add_machine(&market, open_account(&market, "lender"));
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = *core_settings(market.core)};
    change.change_settings.proving_micro = 15000; /* less than an hour earns */
    ask(&market, &change);
    work(&market, open_account(&market, "borrower"));
    uint64_t release = 0;
    for (size_t i = 0; i < market.events.count; i++)
        if (market.events.items[i].kind == EVENT_ENTRY_POSTED &&
            market.events.items[i].entry_posted.kind == LEDGER_ENTRY_RELEASE)
            release = market.events.items[i].sequence;
    assert_true(release > 0);
    assert_int_equal(written(&market, machine).last_entry, release);
    event_list_done(&market.events);
    core_free(market.core);
}

static uint64_t offer_more(struct market *market, uint64_t machine, struct span open,
                           int64_t cores_milli)
{
    const struct offer *first = core_machine(market->core, machine)->offers[0];
    struct command make = {.kind = COMMAND_SET_OFFER,
                           .set_offer = {.account = first->machine->owner,
                                         .machine = machine,
                                         .terms = offer_terms(first)}};
    make.set_offer.terms.resources.cores_milli = cores_milli;
    make.set_offer.terms.spans = (struct json_array){&open, open.close_ms ? 1 : 0};
    return ask(market, &make);
}

static void withdraw(struct market *market, uint64_t machine, uint64_t offer)
{
    ask(market,
        &(struct command){.kind = COMMAND_WITHDRAW_OFFER,
                          .withdraw_offer = {core_machine(market->core, machine)->owner, offer}});
}

TEST(a_machine_lends_what_its_open_offers_lend_together)
{
    struct market market = {.core = core_new(), .now_ms = INT64_C(1800000000000)};
    event_list_init(&market.events);
    const uint64_t machine = add_machine(&market, open_account(&market, "lender"));
    assert_int_equal(written(&market, machine).lent_cores_milli, 1000);
    const uint64_t first = core_machine(market.core, machine)->offers[0]->id;
    const struct span tomorrow = {market.now_ms + 86400000, market.now_ms + 90000000};
    offer_more(&market, machine, tomorrow, 750);
    const uint64_t second = offer_more(&market, machine, (struct span){0}, 200);
    assert_int_equal(written(&market, machine).lent_cores_milli, 1000); /* all there is */
    withdraw(&market, machine, first);
    const uint64_t third = offer_more(&market, machine, (struct span){0}, 100);
    assert_int_equal(written(&market, machine).lent_cores_milli, 300);
    withdraw(&market, machine, second);
    assert_int_equal(written(&market, machine).lent_cores_milli, 100);
    withdraw(&market, machine, third);
    assert_int_equal(written(&market, machine).lent_cores_milli, 750); /* from tomorrow on */
    assert_int_equal(written(&market, machine).is_paused, 0);
    event_list_done(&market.events);
    core_free(market.core);
}

TEST(a_pending_job_shows_when_the_slot_it_booked_begins)
{
    struct core *core = core_new();
    struct store_value row[JOBS_COLUMN_COUNT];
    struct job job = {.state = JOB_STATE_PENDING, .start_ms = INT64_C(1800000000000)};
    job.request.spec = TEXT("{}");
    projection_job_row(core, &job, row);
    assert_int_equal(row[JOBS_NOT_BEFORE_MS].integer, job.start_ms);
    job.state = JOB_STATE_CANCELLED;
    projection_job_row(core, &job, row);
    assert_int_equal(row[JOBS_NOT_BEFORE_MS].integer, 0);
    core_free(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_withheld_of_a_machine_goes_with_its_owner),
        cmocka_unit_test(a_release_of_what_was_withheld_is_in_its_machines_statement),
        cmocka_unit_test(a_machine_lends_what_its_open_offers_lend_together),
        cmocka_unit_test(a_pending_job_shows_when_the_slot_it_booked_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
