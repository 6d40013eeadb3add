/*
 * What matching costs those who can be served, and that nobody who can be is passed over.
 * covers decide_match.c, decide_ahead.c, match_rounds.c, wakes.c
 */
#include "core/match_rounds.h"
#include "core/testing_internal.h"

#define MINUTE INT64_C(60000)

static struct command some_job(uint64_t account, int64_t num_nodes)
{
    return (struct command){.kind = COMMAND_SUBMIT_JOB,
                            .submit_job = {.account = account,
                                           .name = "job",
                                           .spec = TEXT("{}"),
                                           .num_nodes = num_nodes,
                                           .worker = {.cores_milli = 1000, .ram_bytes = MIB},
                                           .max_run_ms = 5 * MINUTE,
                                           .expected_run_ms = 5 * MINUTE,
                                           .tick_ms = 10000}};
}

static const struct job *submit(struct market *market, const struct command *command)
{
    return core_job(market->core, market_do(market, command));
}

/* More than there are different hashes of a market_hash. */
static uint64_t add_machine(struct market *market, int number)
{
    char name[32];
    snprintf(name, sizeof(name), "machine-%d", number);
    struct command enrol =
        market_enrolment(market, market->lender, name, 1000, MACHINE_ROLE_WORKER);
    memcpy(enrol.enrol_machine.public_key, &number, sizeof(number));
    enrol.enrol_machine.public_key[31] = 1;
    const uint64_t machine = market_do(market, &enrol);
    market_connect(market, machine);
    return machine;
}

static void add_machines(struct market *market, int count)
{
    for (int i = 0; i < count; i++)
        add_machine(market, i + 1);
}

static void set_lender_frozen(struct market *market, bool is_frozen)
{
    struct command command = {.kind = COMMAND_UNFREEZE_ACCOUNT,
                              .unfreeze_account = {market->lender}};
    if (is_frozen)
        command = (struct command){.kind = COMMAND_FREEZE_ACCOUNT,
                                   .freeze_account = {market->lender, TEXT("test")}};
    market_do(market, &command);
}

/* Time stands still until the core has tried all it has to; how often it woke. */
static int wake_at_once(struct market *market)
{
    int wakes = 0;
    for (; core_next_wake_ms(market->core) <= market->now_ms; wakes++)
        market_pass_time(market, 0);
    return wakes;
}

static size_t count_pending(const struct market *market)
{
    size_t count = 0;
    for (size_t i = 0; i < core_job_count(market->core); i++)
        count += core_job_at(market->core, i)->state == JOB_STATE_PENDING;
    return count;
}

/* Asks for what no machine has, and waits. */
static void add_stuck_jobs(struct market *market, int count)
{
    struct command command = some_job(market->borrower, 1);
    command.submit_job.wishes.min_reliability_milli = 990;
    for (int i = 0; i < count; i++)
        assert_int_equal(submit(market, &command)->state, JOB_STATE_PENDING);
}

TEST(jobs_that_nobody_can_serve_cost_the_others_nothing)
{
    enum { STUCK = 200, OTHERS = 20 };
    struct market market;
    market_init(&market);
    add_machines(&market, OTHERS);
    add_stuck_jobs(&market, STUCK);
    const struct command small = some_job(market.borrower, 1);
    const struct match_rounds *rounds = market.core->rounds;
    const struct job *jobs[OTHERS];
    for (int i = 0; i < OTHERS; i++) {
        jobs[i] = submit(&market, &small);
        assert_int_equal(jobs[i]->state, JOB_STATE_STARTING);
    }
    /* Each was found out once, by those behind it. */
    assert_int_equal(market.core->waiting.stuck_count, STUCK);
    assert_int_equal(market.core->line.count, 0);
    const uint64_t reserved = rounds->reserved_count, looked_at = rounds->looked_at;
    for (int i = 0; i < OTHERS; i++) {
        market_run_lease(&market, jobs[i]->leases[0]);
        market_end_lease(&market, jobs[i]->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
        assert_int_equal(submit(&market, &small)->state, JOB_STATE_STARTING);
    }
    assert_int_equal(rounds->reserved_count, reserved);
    assert_int_equal(rounds->looked_at, looked_at);
    market_done(&market);
}

TEST(a_stuck_job_starts_when_the_machine_comes_that_it_waited_for)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    const struct job *big = NULL;
    const struct command two = some_job(market.borrower, 2), one = some_job(market.lender, 1);
    big = submit(&market, &two);
    const struct job *small = submit(&market, &one);
    assert_true(big->is_stuck);
    assert_int_equal(small->state, JOB_STATE_STARTING);
    market_run_lease(&market, small->leases[0]);
    add_machine(&market, 2);
    assert_false(big->is_stuck);
    assert_int_equal(big->state, JOB_STATE_PENDING);
    market_end_lease(&market, small->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(big->state, JOB_STATE_STARTING);
    market_done(&market);
}

/* The reliability of the one machine rises with every lease that ends well. */
TEST(a_stuck_job_starts_when_a_machine_has_become_reliable_enough)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    struct command wary = some_job(market.borrower, 1);
    wary.submit_job.wishes.min_reliability_milli = 790;
    const struct command plain = some_job(market.borrower, 1);
    const struct job *job = submit(&market, &wary);
    for (int i = 0; i < 3; i++) {
        const struct job *before = submit(&market, &plain);
        assert_int_equal(before->state, JOB_STATE_STARTING);
        assert_true(job->is_stuck);
        market_run_lease(&market, before->leases[0]);
        market_end_lease(&market, before->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    }
    assert_int_equal(job->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(a_reservation_holds_behind_any_number_of_stuck_jobs)
{
    enum { STUCK = 150 };
    struct market market;
    market_init(&market);
    add_machines(&market, 2);
    const struct command short_one = some_job(market.lender, 1);
    const struct job *running = submit(&market, &short_one);
    market_run_lease(&market, running->leases[0]);
    add_stuck_jobs(&market, STUCK);
    const struct command both = some_job(market.borrower, 2);
    const struct job *big = submit(&market, &both);
    struct command endless = some_job(market.borrower, 1);
    endless.submit_job.max_run_ms = 60 * MINUTE;
    /* Four are found stuck with each try: then the big one has its reservation. */
    int passed = 0;
    for (int i = 0; i < STUCK / 4 + 2; i++) {
        const struct job *job = submit(&market, &endless);
        if (job->state == JOB_STATE_PENDING)
            continue;
        passed++;
        market_run_lease(&market, job->leases[0]);
        market_end_lease(&market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    }
    assert_true(passed <= STUCK / 4 + 1);
    assert_int_equal(market.core->rounds->ahead.job, big->id);
    assert_int_equal(submit(&market, &endless)->state, JOB_STATE_PENDING);
    market_end_lease(&market, running->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(big->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(all_machines_that_one_event_frees_are_tried)
{
    enum { MACHINES = 300 };
    struct market market;
    market_init(&market);
    add_machines(&market, MACHINES);
    set_lender_frozen(&market, true);
    const struct command small = some_job(market.borrower, 1);
    for (int i = 0; i < MACHINES; i++)
        assert_int_equal(submit(&market, &small)->state, JOB_STATE_PENDING);
    set_lender_frozen(&market, false);
    assert_true(wake_at_once(&market) > 0);
    assert_int_equal(count_pending(&market), 0);
    market_done(&market);
}

/* Every one of them could use the machine if it were not too dear for it. */
TEST(a_job_behind_more_than_one_decision_tries_is_reached_at_the_same_instant)
{
    enum { DEAR = 700 };
    struct market market;
    market_init(&market);
    market_set_proving(&market, 0);
    const uint64_t machine = add_machine(&market, 1);
    struct command dear = some_job(market.borrower, 1);
    const struct job *first = submit(&market, &dear);
    market_run_lease(&market, first->leases[0]);
    dear.submit_job.max_total_micro = first->quote_micro;
    struct command report = {
        .kind = COMMAND_REPORT_PROBE,
        .report_probe = {.machine = machine, .probe = core_machine(market.core, machine)->probe}};
    report.report_probe.probe.speed_weight_milli = 2000;
    market_do(&market, &report);
    for (int i = 0; i < DEAR; i++)
        (void)submit(&market, &dear);
    dear.submit_job.max_total_micro = 0;
    const struct job *last = submit(&market, &dear);
    market_end_lease(&market, first->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(last->state, JOB_STATE_PENDING);
    assert_true(wake_at_once(&market) > 1);
    assert_int_equal(last->state, JOB_STATE_STARTING);
    assert_int_equal(count_pending(&market), DEAR);
    market_done(&market);
}

/* Ten machines are wanted: it takes more than one that becomes free. */
TEST(a_job_that_lacks_many_workers_is_tried_when_so_many_were_freed)
{
    enum { MACHINES = 10 };
    struct market market;
    market_init(&market);
    add_machines(&market, MACHINES);
    const struct command one = some_job(market.lender, 1);
    const struct job *running[MACHINES];
    for (int i = 0; i < MACHINES; i++) {
        running[i] = submit(&market, &one);
        market_run_lease(&market, running[i]->leases[0]);
    }
    const struct command all = some_job(market.borrower, MACHINES);
    const struct job *big = submit(&market, &all);
    assert_int_equal(big->lacking, MACHINES);
    const uint64_t tried_at = big->tried_at;
    for (int i = 0; i < MACHINES; i++) {
        assert_int_equal(big->state, JOB_STATE_PENDING);
        assert_int_equal(big->tried_at, tried_at);
        market_end_lease(&market, running[i]->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    }
    assert_int_equal(big->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(a_market_that_was_loaded_tries_all_who_wait)
{
    enum { JOBS = 300 };
    struct market market;
    struct error error = {0};
    market_init(&market);
    add_machines(&market, JOBS);
    set_lender_frozen(&market, true);
    const struct command small = some_job(market.borrower, 1);
    for (int i = 0; i < JOBS; i++)
        (void)submit(&market, &small);
    set_lender_frozen(&market, false);
    assert_true(count_pending(&market) > 0); /* the rest was to come with the next wake */
    struct buffer snapshot AUTO_BUFFER;
    buffer_init(&snapshot, 1 << 24);
    core_snapshot_write(market.core, &snapshot);
    core_free(market.core);
    market.core = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&snapshot), &market.core, &error));
    assert_true(wake_at_once(&market) > 1);
    assert_int_equal(count_pending(&market), 0);
    market_done(&market);
}

/* Whatever was due before and is no more does not wake it. */
TEST(the_core_wakes_for_the_next_thing_due)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    market_pass_time(&market, 2 * MINUTE); /* the enrolment's code is gone */
    const struct command small = some_job(market.borrower, 1);
    const struct job *job = submit(&market, &small);
    const struct core_settings *settings = core_settings(market.core);
    assert_int_equal(core_next_wake_ms(market.core), market.now_ms + settings->start_ms);
    market.now_ms += 1000;
    market_run_lease(&market, job->leases[0]);
    assert_int_equal(core_next_wake_ms(market.core), market.now_ms + 5 * MINUTE);
    market.now_ms += 1000;
    market_do(&market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                         .cancel_job = {market.borrower, job->id}});
    assert_int_equal(core_next_wake_ms(market.core), market.now_ms + settings->grace_ms);
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_STOPPED, "");
    assert_true(core_next_wake_ms(market.core) > market.now_ms + settings->start_ms);
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {job->leases[0]->machine}});
    assert_int_equal(core_next_wake_ms(market.core), market.now_ms + settings->lost_ms);
    market_connect(&market, job->leases[0]->machine);
    assert_true(core_next_wake_ms(market.core) > market.now_ms + settings->start_ms);
    market_done(&market);
}

static void add_machine_of_speed(struct market *market, const char *name, int64_t speed_milli)
{
    struct command enrol =
        market_enrolment(market, market->lender, name, 1000, MACHINE_ROLE_WORKER);
    enrol.enrol_machine.probe.speed_weight_milli = speed_milli;
    market_connect(market, market_do(market, &enrol));
}

/* One needs the fast machine and half a quote more than there is; the other finds a slow one, which
 * costs half of what was held for it. */
TEST(credits_that_a_placement_frees_serve_a_job_that_was_short_of_them)
{
    struct market market;
    market_init(&market);
    market_set_proving(&market, 0);
    struct core_quote quote;
    struct error error = {0};
    struct command any = some_job(market.borrower, 1), fast = any;
    ASSERT_OK(core_quote(market.core, &any.submit_job, &quote, &error));
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = *core_settings(market.core)};
    change.change_settings.grant_micro = quote.wish.total_micro * 27 / 10;
    market_do(&market, &change);
    any.submit_job.account = fast.submit_job.account = market_open_account(&market, "frugal");
    fast.submit_job.wishes.min_speed_milli = 2000;
    const struct job *waits = submit(&market, &fast);
    const struct job *moves = submit(&market, &any);
    add_machine_of_speed(&market, "fast", 2000);
    assert_true(waits->is_short && moves->is_short);
    add_machine_of_speed(&market, "slow", 500);
    assert_int_equal(moves->state, JOB_STATE_STARTING);
    assert_int_equal(waits->state, JOB_STATE_STARTING);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_that_nobody_can_serve_cost_the_others_nothing),
        cmocka_unit_test(a_stuck_job_starts_when_the_machine_comes_that_it_waited_for),
        cmocka_unit_test(a_stuck_job_starts_when_a_machine_has_become_reliable_enough),
        cmocka_unit_test(a_reservation_holds_behind_any_number_of_stuck_jobs),
        cmocka_unit_test(all_machines_that_one_event_frees_are_tried),
        cmocka_unit_test(a_job_behind_more_than_one_decision_tries_is_reached_at_the_same_instant),
        cmocka_unit_test(a_job_that_lacks_many_workers_is_tried_when_so_many_were_freed),
        cmocka_unit_test(a_market_that_was_loaded_tries_all_who_wait),
        cmocka_unit_test(credits_that_a_placement_frees_serve_a_job_that_was_short_of_them),
        cmocka_unit_test(the_core_wakes_for_the_next_thing_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
