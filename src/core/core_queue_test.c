/*
 * Who waits and for how long: fair turns, backfill and deadlines.
 * covers decide_match.c, decide_ahead.c, expect.c
 */
#include "core/testing_queue_internal.h"

/* Four machines, and every minute a small job: without a reservation four are never free at once.
 */
TEST(a_big_job_starts_by_its_reservation_behind_an_endless_stream_of_small_ones)
{
    enum { SMALL_MS = 8 * MINUTE };
    struct market market;
    market_init(&market);
    add_machines(&market, 4);
    struct job *big = NULL;
    int64_t submitted_ms = 0;
    size_t small_after = 0;
    for (int minute = 0; minute < 60 && !(big && big->state != JOB_STATE_PENDING); minute++) {
        pass_to(&market, market.now_ms + MINUTE);
        work(&market, SMALL_MS);
        const struct command small = some_job(market.borrower, 1, SMALL_MS);
        const struct job *job = submit(&market, &small);
        small_after += big && job->state != JOB_STATE_PENDING;
        if (minute == 12) {
            const struct command command = some_job(market.lender, 4, SMALL_MS);
            big = submit(&market, &command);
            submitted_ms = market.now_ms;
            assert_int_equal(big->state, JOB_STATE_PENDING);
        }
    }
    assert_non_null(big);
    assert_int_not_equal(big->state, JOB_STATE_PENDING);
    /* The last small one before it ends 8 minutes later; the grace and the start come on top. */
    assert_true(big->matched_ms - submitted_ms <= SMALL_MS + 2 * MINUTE);
    assert_true(small_after <= 4);
    market_done(&market);
}

TEST(a_short_job_passes_a_blocked_one_that_it_does_not_put_off)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 2);
    const struct command busy = some_job(market.borrower, 1, 30 * MINUTE);
    assert_int_equal(submit(&market, &busy)->state, JOB_STATE_STARTING);
    work(&market, 30 * MINUTE);
    const struct command blocked = some_job(market.lender, 2, 10 * MINUTE);
    assert_int_equal(submit(&market, &blocked)->state, JOB_STATE_PENDING);
    const struct command too_long = some_job(market.borrower, 1, 40 * MINUTE);
    assert_int_equal(submit(&market, &too_long)->state, JOB_STATE_PENDING);
    const struct command is_short = some_job(market.borrower, 1, 10 * MINUTE);
    assert_int_equal(submit(&market, &is_short)->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(a_waiting_job_is_explained_with_when_it_is_expected_to_start)
{
    struct market market;
    struct match_explanation why;
    struct buffer words AUTO_BUFFER, same AUTO_BUFFER;
    buffer_init(&words, 4096);
    buffer_init(&same, 4096);
    market_init(&market);
    add_machines(&market, 2);
    const struct command busy = some_job(market.borrower, 1, 30 * MINUTE);
    const struct job *running = submit(&market, &busy);
    assert_false(core_explain_wait(market.core, running, &why, &words));
    work(&market, 30 * MINUTE);
    const struct command blocked = some_job(market.lender, 2, 10 * MINUTE);
    const struct job *job = submit(&market, &blocked);
    assert_true(core_explain_wait(market.core, job, &why, &words));
    assert_int_equal(why.result, MATCH_FEW_MACHINES);
    assert_int_equal(why.machine_count, 2);
    assert_int_equal(why.rows[why.row_count - 1].test, WISH_TEST_ROOM);
    assert_int_equal(why.rows[why.row_count - 1].machines_left, 1);
    assert_string_equal(why.nearest, "with 1 worker instead of 2 it would start now");
    core_explain(market.core, job, &same);
    assert_string_equal(buffer_string(&words), buffer_string(&same));
    assert_int_equal(why.expected_start_ms, running->leases[0]->ends_ms);
    market_done(&market);
}

static int64_t expected_ms(struct market *market, const struct job *job)
{
    struct match_explanation why;
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 4096);
    assert_true(core_explain_wait(market->core, job, &why, &words));
    return why.expected_start_ms;
}

TEST(those_who_wait_for_one_place_are_expected_to_start_one_after_another)
{
    enum { JOBS = 6 };
    struct market market;
    const struct job *jobs[JOBS];
    market_init(&market);
    add_machines(&market, 1);
    const struct command command = some_job(market.borrower, 1, 10 * MINUTE);
    const struct job *running = submit(&market, &command);
    work(&market, 10 * MINUTE);
    for (int i = 0; i < JOBS; i++)
        jobs[i] = submit(&market, &command);
    int64_t before_ms = expected_ms(&market, jobs[0]);
    assert_int_equal(before_ms, running->leases[0]->ends_ms);
    for (int i = 1; i < JOBS; i++) {
        const int64_t start_ms = expected_ms(&market, jobs[i]);
        assert_true(start_ms >= before_ms + 10 * MINUTE);
        before_ms = start_ms;
    }
    /* And one that is only asked about comes last. */
    struct match_explanation why;
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 4096);
    core_explain_request(market.core, &command.submit_job, MATCH_FEW_MACHINES, &why, &words);
    assert_true(why.expected_start_ms >= before_ms + 10 * MINUTE);
    market_done(&market);
}

TEST(who_would_put_off_another_is_not_expected_to_start_now)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 2);
    const struct command busy = some_job(market.borrower, 1, 30 * MINUTE);
    const struct job *running = submit(&market, &busy);
    work(&market, 30 * MINUTE);
    const struct command blocked = some_job(market.lender, 2, 10 * MINUTE);
    const struct job *first = submit(&market, &blocked);
    const struct command too_long = some_job(market.borrower, 1, 40 * MINUTE);
    const struct job *behind = submit(&market, &too_long);
    assert_int_equal(behind->state, JOB_STATE_PENDING);
    assert_int_equal(expected_ms(&market, first), running->leases[0]->ends_ms);
    assert_true(expected_ms(&market, behind) >= running->leases[0]->ends_ms + 10 * MINUTE);
    market_done(&market);
}

TEST(one_machine_that_never_has_room_for_worker_and_server_gives_no_expectation)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "both", 1000, MACHINE_ROLE_ALL);
    struct command command = some_job(market.borrower, 1, 10 * MINUTE);
    command.submit_job.server = (struct resources){.cores_milli = 500, .ram_bytes = MIB};
    const struct job *job = submit(&market, &command);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    assert_int_equal(expected_ms(&market, job), 0);
    market_done(&market);
}

TEST(a_light_account_does_not_wait_behind_all_of_a_heavy_one)
{
    enum { HEAVY = 30, LIGHT = 4, RUN_MS = 5 * MINUTE };
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    const struct command heavy = some_job(market.borrower, 1, RUN_MS);
    const struct command light = some_job(market.lender, 1, RUN_MS);
    for (int i = 0; i < HEAVY; i++)
        submit(&market, &heavy);
    for (int i = 0; i < LIGHT; i++)
        submit(&market, &light);
    int started = 0, light_started = 0;
    for (size_t seen = market.events.count; light_started < LIGHT && started < HEAVY;) {
        work(&market, RUN_MS);
        pass_to(&market, market.now_ms + RUN_MS);
        work(&market, RUN_MS);
        for (; seen < market.events.count; seen++) {
            const struct event *event = &market.events.items[seen];
            if (event->kind != EVENT_LEASE_OFFERED)
                continue;
            started++;
            light_started +=
                core_job(market.core, event->lease_offered.job)->request.account == market.lender;
        }
    }
    assert_int_equal(light_started, LIGHT);
    assert_true(started <= 2 * LIGHT + 2);
    market_done(&market);
}

TEST(who_rushes_goes_first)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    const struct command first = some_job(market.borrower, 1, 5 * MINUTE);
    submit(&market, &first);
    work(&market, 5 * MINUTE);
    const struct job *waits = submit(&market, &first);
    struct command rush = some_job(market.borrower, 1, 5 * MINUTE);
    rush.submit_job.is_rush = true;
    const struct job *rushes = submit(&market, &rush);
    pass_to(&market, market.now_ms + 5 * MINUTE);
    work(&market, 5 * MINUTE);
    assert_int_equal(waits->state, JOB_STATE_PENDING);
    assert_int_not_equal(rushes->state, JOB_STATE_PENDING);
    market_done(&market);
}

TEST(a_job_that_cannot_start_by_its_deadline_ends_and_gives_its_credits_back)
{
    struct market market;
    market_init(&market);
    const int64_t before_micro = market_balance(&market, market.borrower);
    struct command command = some_job(market.borrower, 1, 5 * MINUTE);
    command.submit_job.start = JOB_START_DEADLINE;
    command.submit_job.deadline_ms = market.now_ms - 1;
    market_refuses(&market, &command, ERROR_INVALID);
    command.submit_job.deadline_ms = market.now_ms + 10 * MINUTE;
    const struct job *job = submit(&market, &command);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    assert_int_equal(core_next_wake_ms(market.core), command.submit_job.deadline_ms + 1);
    pass_to(&market, command.submit_job.deadline_ms);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    pass_to(&market, command.submit_job.deadline_ms + 1);
    assert_int_equal(job->state, JOB_STATE_CANCELLED);
    assert_string_equal(job->reason, "it could not start by its deadline");
    assert_int_equal(market_balance(&market, market.borrower), before_micro);
    const struct job *again;
    command.submit_job.deadline_ms = market.now_ms + 10 * MINUTE;
    again = submit(&market, &command);
    add_machines(&market, 1);
    assert_int_equal(again->state, JOB_STATE_STARTING);
    market_done(&market);
}

/* The borrower's first credits are spent, and its next job waits for a price it can pay. */
static const struct job *wait_for_price(struct market *market)
{
    struct command dear = some_job(market->borrower, 1, 60 * MINUTE);
    dear.submit_job.max_hourly_micro = 25000;
    dear.submit_job.takes_more_cores = false;
    market_set_proving(market, 0);
    const uint64_t machine = market_add_machine(market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct command report = {
        .kind = COMMAND_REPORT_PROBE,
        .report_probe = {.machine = machine, .probe = core_machine(market->core, machine)->probe}};
    report.report_probe.probe.speed_weight_milli = 2000; /* twice the units, twice the rate */
    market_do(market, &report);
    const struct job *job = submit(market, &dear);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    return job;
}

TEST(a_job_too_dear_is_tried_at_the_next_prices_after_a_restart_too)
{
    struct market market;
    struct error error = {0};
    market_init(&market);
    const uint64_t id = wait_for_price(&market)->id;
    struct buffer snapshot AUTO_BUFFER;
    buffer_init(&snapshot, 1 << 20);
    core_snapshot_write(market.core, &snapshot);
    core_free(market.core);
    market.core = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&snapshot), &market.core, &error));
    const struct job *job = core_job(market.core, id);
    for (int slots = 0; slots < 60 && job->state == JOB_STATE_PENDING; slots++)
        pass_to(&market, core_slot_end_ms(market.core)); /* one wants, ten times as much is lent */
    assert_int_equal(job->state, JOB_STATE_STARTING);
    assert_true(job->quote_micro <= 25000);
    market_done(&market);
}

TEST(jobs_that_nobody_can_pay_for_do_not_stand_in_the_way_of_one_that_somebody_can)
{
    struct market market;
    market_init(&market);
    market_set_proving(&market, 0);
    const uint64_t machine = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct command blocks = some_job(market.borrower, 1, 60 * MINUTE);
    const struct job *first = submit(&market, &blocks);
    market_run_lease(&market, first->leases[0]);
    struct command dear = blocks;
    dear.submit_job.max_total_micro = 20000; /* what it costs at reference speed */
    struct command report = {
        .kind = COMMAND_REPORT_PROBE,
        .report_probe = {.machine = machine, .probe = core_machine(market.core, machine)->probe}};
    report.report_probe.probe.speed_weight_milli = 2000;
    market_do(&market, &report);
    for (int i = 0; i < 100; i++)
        (void)submit(&market, &dear);
    const struct job *last = submit(&market, &blocks);
    market_end_lease(&market, first->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(last->state, JOB_STATE_STARTING);
    market_done(&market);
}

/* One machine is busy; one job waits for both, and one behind it for the free one for too long. */
static struct job *block(struct market *market, struct job **out_blocked)
{
    market_init(market);
    add_machines(market, 2);
    const struct command busy = some_job(market->borrower, 1, 30 * MINUTE);
    submit(market, &busy);
    work(market, 30 * MINUTE);
    const struct command blocked = some_job(market->lender, 2, 10 * MINUTE);
    *out_blocked = submit(market, &blocked);
    const struct command too_long = some_job(market->borrower, 1, 40 * MINUTE);
    struct job *behind = submit(market, &too_long);
    assert_int_equal(behind->state, JOB_STATE_PENDING);
    return behind;
}

TEST(who_waited_behind_a_reservation_starts_when_it_is_given_up)
{
    struct market market;
    struct job *blocked;
    const struct job *behind = block(&market, &blocked);
    market_do(&market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                         .cancel_job = {market.lender, blocked->id}});
    assert_int_equal(behind->state, JOB_STATE_STARTING);
    market_done(&market);
}

/* Room is reserved for when the first lease has ended. The second, once it runs, has ended too. */
TEST(a_lease_that_ends_sooner_than_thought_leaves_room_beside_what_is_reserved)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "large", 3000, MACHINE_ROLE_WORKER);
    const struct command busy = some_job(market.borrower, 1, 30 * MINUTE);
    const struct job *first = submit(&market, &busy);
    market_run_lease(&market, first->leases[0]);
    const struct job *second = submit(&market, &busy);
    struct command big = some_job(market.lender, 1, 10 * MINUTE);
    big.submit_job.worker.cores_milli = 2000;
    assert_int_equal(submit(&market, &big)->state, JOB_STATE_PENDING);
    const struct command longer = some_job(market.borrower, 1, 60 * MINUTE);
    const struct job *behind = submit(&market, &longer);
    assert_int_equal(behind->state, JOB_STATE_PENDING);
    assert_true(second->leases[0]->ends_ms > first->leases[0]->ends_ms);
    market_run_lease(&market, second->leases[0]);
    assert_int_equal(behind->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(a_withdrawn_offer_keeps_no_reservation)
{
    struct market market;
    struct job *blocked;
    const struct job *behind = block(&market, &blocked);
    const struct lease *busy = core_lease_at(market.core, 0);
    market_do(&market, &(struct command){.kind = COMMAND_WITHDRAW_OFFER,
                                         .withdraw_offer = {market.lender, busy->offer}});
    assert_int_equal(blocked->state, JOB_STATE_PENDING);
    assert_int_equal(behind->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(a_machine_is_found_by_the_reliability_it_has_now)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    struct command command = some_job(market.borrower, 1, MINUTE);
    const struct machine *machine = core_machine_at(market.core, 0);
    for (int i = 0; i < 3; i++) {
        const struct job *job = submit(&market, &command);
        assert_int_equal(job->state, JOB_STATE_STARTING);
        market_run_lease(&market, job->leases[0]);
        market_end_lease(&market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
        command.submit_job.wishes.min_reliability_milli = machine_reliability_milli(machine);
    }
    market_done(&market);
}

/* One machine of one core that is busy for ten minutes. */
static const struct job *keep_busy(struct market *market)
{
    add_machines(market, 1);
    const struct command busy = some_job(market->borrower, 1, 10 * MINUTE);
    const struct job *job = submit(market, &busy);
    market_run_lease(market, job->leases[0]);
    return job;
}

TEST(who_cannot_pay_for_its_rush_takes_its_usual_turn_at_the_usual_price)
{
    struct market market;
    market_init(&market);
    const struct job *busy = keep_busy(&market);
    const struct command calm = some_job(market.borrower, 1, 5 * MINUTE);
    const struct job *first = submit(&market, &calm);
    struct command rush = calm;
    rush.submit_job.is_rush = true;
    rush.submit_job.max_hourly_micro = 30000; /* 20000 are posted */
    const struct job *rushes = submit(&market, &rush);
    const struct job *last = submit(&market, &calm);
    market_end_lease(&market, busy->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(first->state, JOB_STATE_STARTING);
    assert_int_equal(rushes->state, JOB_STATE_PENDING);
    market_run_lease(&market, first->leases[0]);
    market_end_lease(&market, first->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(rushes->state, JOB_STATE_STARTING);
    assert_int_equal(rushes->leases[0]->lock->rush_ms, 0);
    assert_int_equal(last->state, JOB_STATE_PENDING);
    market_done(&market);
}

TEST(who_rushes_pays_nothing_for_passing_those_that_have_no_room_anyway_or_stand_behind)
{
    struct market market;
    market_init(&market);
    const struct job *busy = keep_busy(&market);
    struct command other = some_job(market.borrower, 1, 5 * MINUTE);
    other.submit_job.worker.cores_milli = 64000; /* no such machine */
    const struct job *impossible = submit(&market, &other);
    other = some_job(market.borrower, 1, 5 * MINUTE);
    other.submit_job.start = JOB_START_DEADLINE; /* waits for a better price */
    other.submit_job.deadline_ms = market.now_ms + 60 * MINUTE;
    other.submit_job.max_hourly_micro = 1;
    const struct job *too_dear = submit(&market, &other);
    struct command rush = some_job(market.borrower, 1, 5 * MINUTE);
    rush.submit_job.is_rush = true;
    const struct job *rushes = submit(&market, &rush);
    other = some_job(market.borrower, 1, 5 * MINUTE);
    const struct job *behind = submit(&market, &other);
    market_end_lease(&market, busy->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(rushes->state, JOB_STATE_STARTING);
    assert_int_equal(rushes->leases[0]->lock->rush_ms, 0);
    assert_int_equal(impossible->state, JOB_STATE_PENDING);
    assert_int_equal(too_dear->state, JOB_STATE_PENDING);
    assert_int_equal(behind->state, JOB_STATE_PENDING);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_big_job_starts_by_its_reservation_behind_an_endless_stream_of_small_ones),
        cmocka_unit_test(a_short_job_passes_a_blocked_one_that_it_does_not_put_off),
        cmocka_unit_test(a_waiting_job_is_explained_with_when_it_is_expected_to_start),
        cmocka_unit_test(those_who_wait_for_one_place_are_expected_to_start_one_after_another),
        cmocka_unit_test(who_would_put_off_another_is_not_expected_to_start_now),
        cmocka_unit_test(
            one_machine_that_never_has_room_for_worker_and_server_gives_no_expectation),
        cmocka_unit_test(a_light_account_does_not_wait_behind_all_of_a_heavy_one),
        cmocka_unit_test(who_rushes_goes_first),
        cmocka_unit_test(who_cannot_pay_for_its_rush_takes_its_usual_turn_at_the_usual_price),
        cmocka_unit_test(
            who_rushes_pays_nothing_for_passing_those_that_have_no_room_anyway_or_stand_behind),
        cmocka_unit_test(a_job_that_cannot_start_by_its_deadline_ends_and_gives_its_credits_back),
        cmocka_unit_test(a_job_too_dear_is_tried_at_the_next_prices_after_a_restart_too),
        cmocka_unit_test(
            jobs_that_nobody_can_pay_for_do_not_stand_in_the_way_of_one_that_somebody_can),
        cmocka_unit_test(who_waited_behind_a_reservation_starts_when_it_is_given_up),
        cmocka_unit_test(a_lease_that_ends_sooner_than_thought_leaves_room_beside_what_is_reserved),
        cmocka_unit_test(a_withdrawn_offer_keeps_no_reservation),
        cmocka_unit_test(a_machine_is_found_by_the_reliability_it_has_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
