/*
 * Leases that run for longer than their price lock.
 * covers decide_renew.c, lease_terms.c
 */
#include "core/testing_internal.h"

#define HOUR_MS INT64_C(3600000)
#define LOCK_MS (PRICE_LOCK_SLOTS * SLOT_MS)

struct long_run {
    struct market market;
    const struct job *job;
    const struct lease *lease;
};

static struct command long_job(const struct market *market)
{
    return (struct command){.kind = COMMAND_SUBMIT_JOB,
                            .submit_job = {.account = market->borrower,
                                           .name = "long",
                                           .spec = TEXT("{}"),
                                           .num_nodes = 1,
                                           .worker = {.cores_milli = 1000},
                                           .max_run_ms = 2 * LOCK_MS + HOUR_MS,
                                           .tick_ms = 1000}};
}

/* A job of one worker begins where a slot does. More is wanted than there is, so prices rise. */
static void start(struct long_run *run, int64_t max_hourly_micro, int64_t max_total_micro)
{
    struct market *market = &run->market;
    market_init(market);
    market->now_ms = slot_start_ms(slot_index(market->now_ms, 0) + 1, 0);
    market_add_machine(market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct command submit = long_job(market);
    submit.submit_job.max_hourly_micro = max_hourly_micro;
    submit.submit_job.max_total_micro = max_total_micro;
    run->job = core_job(market->core, market_do(market, &submit));
    run->lease = run->job->leases[0];
    market_run_lease(market, run->lease);
    submit = long_job(market);
    submit.submit_job.account = market->lender;
    submit.submit_job.num_nodes = 3;
    market_do(market, &submit);
}

/* To an instant after the start of the run, all of it verified by one tick in each slot. */
static void work_until(struct long_run *run, int64_t wall_ms)
{
    while (run->lease->wall_ms < wall_ms && lease_is_open(run->lease)) {
        const int64_t left_ms = wall_ms - run->lease->wall_ms;
        const int64_t step_ms = left_ms < SLOT_MS ? left_ms : SLOT_MS;
        run->market.now_ms += step_ms;
        const struct command tick =
            market_tick(run->lease, run->lease->tick_index + 1, run->lease->wall_ms + step_ms);
        market_do(&run->market, &tick);
    }
}

static size_t count_events(const struct market *market, enum event_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < market->events.count; i++)
        count += market->events.items[i].kind == kind;
    return count;
}

TEST(a_lease_goes_on_at_the_prices_of_the_next_slots)
{
    struct long_run run;
    start(&run, 0, 0);
    const struct price_lock before = *run.lease->lock;
    assert_int_equal(before.slot_count, PRICE_LOCK_SLOTS);
    work_until(&run, LOCK_MS - HOUR_MS);
    const int64_t posted_micro = run.lease->posted_micro;
    assert_int_equal(count_events(&run.market, EVENT_LEASE_RENEWED), 0);
    market_pass_time(&run.market, HOUR_MS);
    assert_int_equal(count_events(&run.market, EVENT_LEASE_RENEWED), 1);

    const struct price_lock *after = run.lease->lock;
    assert_int_equal(after->from_ms, run.lease->started_ms + LOCK_MS - HOUR_MS);
    assert_int_equal(after->before_micro, posted_micro);
    assert_int_equal(after->first_slot, before.first_slot + PRICE_LOCK_SLOTS - 1);
    assert_true(price_vector_equal(&after->slots[0], &before.slots[PRICE_LOCK_SLOTS - 1]));
    assert_int_equal(after->slot_count, PRICE_LOCK_SLOTS);
    for (int64_t i = 1; i < after->slot_count; i++) {
        const struct price_vector price =
            core_price_of_slot(run.market.core, after->first_slot + i);
        assert_true(price_vector_equal(&after->slots[i], &price));
        assert_true(price.core_micro > before.slots[0].core_micro);
    }
    /* The hour before the lock ended is billed at the old price, whenever its tick comes. */
    work_until(&run, LOCK_MS + HOUR_MS);
    assert_int_equal(run.lease->posted_micro, posted_micro +
                                                  before.slots[PRICE_LOCK_SLOTS - 1].core_micro +
                                                  after->slots[1].core_micro);
    market_done(&run.market);
}

TEST(it_is_renewed_again_and_billed_to_its_end)
{
    struct long_run run;
    start(&run, 0, 0);
    work_until(&run, 2 * LOCK_MS + HOUR_MS);
    assert_int_equal(count_events(&run.market, EVENT_LEASE_RENEWED), 2);
    assert_int_equal(run.lease->wall_ms, 2 * LOCK_MS + HOUR_MS);
    assert_true(run.lease->posted_micro <= run.lease->quote_micro);
    market_done(&run.market);
}

TEST(a_price_past_the_maximum_per_hour_ends_the_lease_with_the_reason)
{
    struct long_run run;
    start(&run, 20000, 0);
    assert_int_equal(job_hourly_micro(run.job), 20000);
    work_until(&run, LOCK_MS - HOUR_MS);
    market_pass_time(&run.market, HOUR_MS);
    assert_int_equal(count_events(&run.market, EVENT_LEASE_RENEWED), 0);
    assert_int_equal(run.job->state, JOB_STATE_STOPPING);
    assert_int_equal(run.job->outcome, JOB_STATE_FAILED);
    assert_non_null(strstr(run.job->reason, "an hour, more than its maximum of 0.02"));
    assert_true(run.lease->stop_wanted_ms > 0);
    market_end_lease(&run.market, run.lease, LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(run.job->state, JOB_STATE_FAILED);
    assert_int_equal(core_held_micro(run.market.core, run.job->id), 0);
    market_done(&run.market);
}

TEST(a_price_past_the_budget_ends_the_lease_with_the_reason)
{
    struct long_run run;
    start(&run, 0, INT64_C(20000) * 97); /* to the microcredit what it was quoted */
    assert_int_equal(run.job->quote_micro, 20000 * 97);
    work_until(&run, LOCK_MS);
    assert_int_equal(run.job->state, JOB_STATE_STOPPING);
    assert_non_null(strstr(run.job->reason, "more than its maximum of 1.94"));
    assert_int_equal(run.job->quote_micro, 20000 * 97);
    market_done(&run.market);
}

TEST(a_budget_that_reaches_is_held_for_the_new_prices)
{
    struct long_run run;
    start(&run, 0, INT64_C(20000) * 97 * 3);
    work_until(&run, LOCK_MS);
    assert_int_equal(count_events(&run.market, EVENT_LEASE_RENEWED), 1);
    assert_true(run.job->quote_micro > INT64_C(20000) * 97);
    assert_int_equal(core_held_micro(run.market.core, run.job->id),
                     run.job->quote_micro - run.job->posted_micro);
    market_done(&run.market);
}

/* Until its locks run out, while others want more machines than there are: prices rise. */
static void work_while_others_wait(struct market *market, const struct job *job)
{
    struct command others = long_job(market);
    others.submit_job.account = market->lender;
    others.submit_job.num_nodes = 5;
    market_do(market, &others);
    for (int i = 0; i < PRICE_LOCK_SLOTS; i++) {
        market->now_ms += SLOT_MS - HOUR_MS;
        for (size_t l = 0; l < job->lease_count; l++) {
            const struct command tick =
                market_tick(job->leases[l], (uint64_t)i + 1, market->now_ms - job->started_ms);
            if (lease_is_open(job->leases[l]))
                market_do(market, &tick);
        }
        market_pass_time(market, HOUR_MS);
    }
}

TEST(of_two_workers_the_one_the_maximum_does_not_reach_for_is_let_go)
{
    struct market market;
    market_init(&market);
    market.now_ms = slot_start_ms(slot_index(market.now_ms, 0) + 1, 0);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    market_add_machine(&market, "owl", 1000, MACHINE_ROLE_WORKER);
    struct command submit = long_job(&market);
    submit.submit_job.num_nodes = 2;
    submit.submit_job.replaces_lost = true;
    submit.submit_job.max_hourly_micro = 100000; /* prices treble meanwhile */
    const struct job *job = core_job(market.core, market_do(&market, &submit));
    for (size_t i = 0; i < 2; i++)
        market_run_lease(&market, job->leases[i]);
    work_while_others_wait(&market, job);
    assert_int_equal(count_events(&market, EVENT_LEASE_RENEWED), 1);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_true(lease_is_open(job->leases[0]) && job->leases[0]->stop_wanted_ms == 0);
    assert_true(job->leases[1]->stop_wanted_ms > 0);
    assert_true(job_hourly_micro(job) <= 100000);
    market_end_lease(&market, job->leases[1], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->lease_count, 2); /* nobody follows it */
    market_done(&market);
}

/* Its lease was made after the workers', but without it there is no job. */
TEST(a_replica_that_leads_is_renewed_before_workers)
{
    struct market market;
    market_init(&market);
    market.now_ms = slot_start_ms(slot_index(market.now_ms, 0) + 1, 0);
    market_add_machine(&market, "crane", 500, MACHINE_ROLE_SERVER);
    market_add_machine(&market, "stork", 500, MACHINE_ROLE_SERVER);
    market_add_machine(&market, "heron", 500, MACHINE_ROLE_WORKER);
    market_add_machine(&market, "owl", 500, MACHINE_ROLE_WORKER);
    struct command submit = long_job(&market);
    submit.submit_job.num_nodes = 2;
    submit.submit_job.worker.cores_milli = submit.submit_job.server.cores_milli = 500;
    submit.submit_job.has_replica = true;
    submit.submit_job.max_hourly_micro = 60000; /* prices rise: for two of three */
    const struct job *job = core_job(market.core, market_do(&market, &submit));
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(&market, job->leases[i]);
    const struct command gone = {.kind = COMMAND_MACHINE_GONE,
                                 .machine_gone = {.machine = job_lead(job)->machine}};
    market_do(&market, &gone);
    assert_int_equal(job->lease_count, 4);
    assert_ptr_equal(job_lead(job), job->leases[3]);
    work_while_others_wait(&market, job);
    assert_int_equal(count_events(&market, EVENT_LEASE_RENEWED), 2);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_int_equal(job_lead(job)->stop_wanted_ms, 0);
    assert_int_equal(job->workers[0]->stop_wanted_ms, 0);
    assert_true(job->workers[1]->stop_wanted_ms > 0);
    market_done(&market);
}

TEST(a_lease_of_which_nothing_is_verified_is_not_renewed)
{
    struct long_run run;
    start(&run, 0, 0);
    for (int i = 0; i < PRICE_LOCK_SLOTS; i++)
        market_pass_time(&run.market, SLOT_MS);
    assert_int_equal(run.job->state, JOB_STATE_STOPPING);
    assert_non_null(strstr(run.job->reason, "too little of its time was verified"));
    market_done(&run.market);
}

TEST(a_log_with_other_renewed_prices_is_refused)
{
    struct long_run run;
    struct error error = {0};
    start(&run, 0, 0);
    work_until(&run, LOCK_MS);
    AUTO(core) struct core *replayed = core_new();
    bool is_found = false;
    for (size_t i = 0; i < run.market.events.count; i++) {
        struct event event = run.market.events.items[i];
        if (event.kind == EVENT_LEASE_RENEWED) {
            is_found = true;
            event.lease_renewed.lock.slots[2].core_micro--;
            ASSERT_FAILS(core_apply(replayed, &event, &error), ERROR_CORRUPT);
            event = run.market.events.items[i];
            event.lease_renewed.lock.before_rest++;
            ASSERT_FAILS(core_apply(replayed, &event, &error), ERROR_CORRUPT);
        }
        ASSERT_OK(core_apply(replayed, &run.market.events.items[i], &error));
    }
    assert_true(is_found);
    market_done(&run.market);
}

/* A slot may end with a command of which nothing else is to be told. */
TEST(what_a_lease_that_is_not_renewed_held_is_there_for_who_waits_at_once)
{
    struct market market;
    market_init(&market);
    market_set_proving(&market, 0);
    market.now_ms = slot_start_ms(slot_index(market.now_ms, 0) + 1, 0);
    const uint64_t large = market_add_machine(&market, "large", 4000, MACHINE_ROLE_WORKER);
    struct command submit = long_job(&market);
    submit.submit_job.worker.cores_milli = 4000;
    const struct job *job = core_job(market.core, market_do(&market, &submit));
    market_run_lease(&market, job->leases[0]);
    for (int i = 1; i < PRICE_LOCK_SLOTS; i++)
        market_pass_time(&market, SLOT_MS);
    market_pass_time(&market, SLOT_MS - 10000);
    struct command fast =
        market_enrolment(&market, market.lender, "fast", 1000, MACHINE_ROLE_WORKER);
    fast.enrol_machine.probe.speed_weight_milli = 4000;
    market_connect(&market, market_do(&market, &fast));
    submit.submit_job.worker.cores_milli = 1000;
    submit.submit_job.max_run_ms =
        ledger_available_micro(core_balance(market.core, market.borrower)) * HOUR_MS /
        core_price(market.core).core_micro * 9 / 10;
    const struct job *waiting = core_job(market.core, market_do(&market, &submit));
    assert_true(waiting->is_short); /* four times as fast, four times as dear */
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {.machine = large}});
    const struct command seen = {.kind = COMMAND_SEE_ACCOUNT,
                                 .see_account = {.account = market.borrower}};
    market_do(&market, &seen);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market.now_ms += 10000;
    market_do(&market, &seen);
    assert_true(job_state_is_final(job->state));
    assert_int_equal(waiting->state, JOB_STATE_STARTING);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_goes_on_at_the_prices_of_the_next_slots),
        cmocka_unit_test(it_is_renewed_again_and_billed_to_its_end),
        cmocka_unit_test(a_price_past_the_maximum_per_hour_ends_the_lease_with_the_reason),
        cmocka_unit_test(a_price_past_the_budget_ends_the_lease_with_the_reason),
        cmocka_unit_test(a_budget_that_reaches_is_held_for_the_new_prices),
        cmocka_unit_test(of_two_workers_the_one_the_maximum_does_not_reach_for_is_let_go),
        cmocka_unit_test(a_replica_that_leads_is_renewed_before_workers),
        cmocka_unit_test(a_lease_of_which_nothing_is_verified_is_not_renewed),
        cmocka_unit_test(what_a_lease_that_is_not_renewed_held_is_there_for_who_waits_at_once),
        cmocka_unit_test(a_log_with_other_renewed_prices_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
