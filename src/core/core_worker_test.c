/*
 * Workers that come to a job under way: successors of those that were lost, and growth.
 * covers decide_worker.c
 */
#include "core/testing_internal.h"

/* Three workers of a quarter core each, no more, with a server; `max_total` 0: what the account
 * has. */
static const struct job *submit(struct market *market, int64_t max_total_micro)
{
    struct command command = market_job(market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.replaces_lost = true;
    command.submit_job.max_total_micro = max_total_micro;
    return core_job(market->core, market_do(market, &command));
}

static void run_all(struct market *market, const struct job *job)
{
    for (size_t i = 0; i < job->lease_count; i++)
        if (job->leases[i]->state == LEASE_STATE_OFFERED)
            market_run_lease(market, job->leases[i]);
}

static void take_away(struct market *market, uint64_t machine)
{
    market_do(market, &(struct command){.kind = COMMAND_MACHINE_GONE,
                                        .machine_gone = {.machine = machine}});
}

static void crash(struct market *market, const struct lease *lease)
{
    market_end_lease(market, lease, LEASE_OUTCOME_FAILED, "out of memory");
}

static int64_t open_count(const struct job *job)
{
    int64_t count = 0;
    for (size_t i = 0; i < job->worker_count; i++)
        count += lease_is_open(job->workers[i]);
    return count;
}

TEST(a_lost_worker_gets_a_successor_under_its_rank_with_a_fence_of_its_own)
{
    struct market market;
    market_init_demo(&market);
    const uint64_t spare = market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    const struct job *job = submit(&market, 0);
    run_all(&market, job);
    const struct lease *lost = job->workers[1];
    const uint64_t fence = job->leases[job->lease_count - 1]->fence;
    market.now_ms += 60000;
    crash(&market, lost);
    const struct lease *successor = job->workers[1];
    assert_ptr_not_equal(successor, lost);
    assert_int_equal(successor->machine, spare);
    assert_int_equal(successor->rank, 1);
    assert_int_equal(successor->fence, fence + 1);
    assert_true(successor->id > lost->id);
    assert_int_equal(successor->state, LEASE_STATE_OFFERED);
    assert_int_equal(successor->max_run_ms, 120000); /* what is left of three minutes */
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_int_equal(job->lease_count, 5);
    market_done(&market);
}

TEST(a_worker_without_a_successor_is_said_until_its_machine_is_back)
{
    struct market market;
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 4096);
    market_init_demo(&market);
    const struct job *job = submit(&market, 0);
    run_all(&market, job);
    const uint64_t machine = job->workers[1]->machine;
    market.now_ms += 1000;
    take_away(&market, machine);
    assert_int_equal(market_new_events(&market, EVENT_JOB_NOTED), 1);
    assert_string_equal(job->reason, "worker 1 is gone and has no successor yet: no other machine "
                                     "has room for it");
    core_explain(market.core, job, &words);
    assert_non_null(strstr(buffer_string(&words), "; worker 1 is gone"));
    market_pass_time(&market, 1000);
    assert_int_equal(market_new_events(&market, EVENT_JOB_NOTED), 0); /* once */

    market.now_ms += 1000;
    market_connect(&market, machine);
    assert_int_equal(open_count(job), 3);
    assert_int_equal(job->workers[1]->machine, machine);
    assert_string_equal(job->reason, "");
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_done(&market);
}

TEST(a_machine_whose_owner_took_a_lease_back_and_stayed_is_not_asked_again)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = submit(&market, 0);
    run_all(&market, job);
    market.now_ms += 1000;
    const struct lease *lease = job->workers[1];
    market_do(&market,
              &(struct command){.kind = COMMAND_RECLAIM_LEASES,
                                .reclaim_leases = {.account = market.lender, .lease = lease->id}});
    market_end_lease(&market, lease, LEASE_OUTCOME_STOPPED, "");
    assert_int_equal(lease->outcome, LEASE_OUTCOME_RECLAIMED);
    assert_int_equal(open_count(job), 2);
    market_connect(&market, lease->machine); /* it was there all the time */
    assert_int_equal(open_count(job), 2);
    market_done(&market);
}

static void yield(struct market *market, uint64_t machine, enum machine_yield level)
{
    market_do(market, &(struct command){.kind = COMMAND_MACHINE_YIELDS,
                                        .machine_yields = {.machine = machine, .yield = level}});
}

TEST(a_job_without_a_worker_waits_for_the_owners_who_took_theirs_back)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = submit(&market, 0);
    run_all(&market, job);
    const uint64_t machine = job->workers[0]->machine;
    for (size_t rank = 0; rank < 3; rank++) {
        yield(&market, job->workers[rank]->machine, MACHINE_YIELD_FROZEN);
        market.now_ms += 1000;
        market_end_lease(&market, job->workers[rank], LEASE_OUTCOME_RECLAIMED, "memory");
    }
    assert_int_equal(open_count(job), 0);
    assert_true(lease_is_open(job->leases[0])); /* the parameter server, which has the model */
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_non_null(strstr(job->reason, "has no successor yet"));
    market.now_ms += 1000;
    yield(&market, machine, MACHINE_YIELD_NONE);
    assert_int_equal(open_count(job), 1);
    assert_int_equal(job->workers[0]->machine, machine);
    market_end_lease(&market, job->workers[0], LEASE_OUTCOME_RECLAIMED, "memory");
    assert_int_equal(open_count(job), 0); /* it was lent again before that, not since */
    /* The parameter server has waited long enough. */
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_FAILED, "nobody came");
    assert_int_equal(job->state, JOB_STATE_FAILED);
    market_done(&market);
}

TEST(what_the_lost_worker_did_not_use_pays_for_its_successor)
{
    struct market market;
    market_init_demo(&market);
    market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    const struct job *job = submit(&market, 0);
    const int64_t quote_micro = job->quote_micro;
    run_all(&market, job);
    market.now_ms += 60000;
    const struct command tick = market_tick(job->workers[2], 1, 60000);
    market_do(&market, &tick);
    const int64_t balance_micro = market_balance(&market, market.borrower);
    crash(&market, job->workers[2]);
    /* A minute was paid of three; the two that are left cost what was left, or one micro less. */
    assert_int_equal(job->quote_micro, quote_micro);
    assert_int_equal(market_balance(&market, market.borrower), balance_micro);
    assert_int_equal(core_held_micro(market.core, job->id), quote_micro - job->posted_micro);
    run_all(&market, job);
    market.now_ms += 120000;
    for (size_t i = 0; i < job->lease_count; i++)
        if (lease_is_open(job->leases[i])) {
            const struct command last = market_tick(job->leases[i], 9, 180000);
            market_do(&market, &last);
        }
    assert_true(job->posted_micro <= quote_micro);
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    while (open_count(job) > 0)
        for (size_t i = 0; i < job->worker_count; i++)
            if (lease_is_open(job->workers[i]))
                market_end_lease(&market, job->workers[i], LEASE_OUTCOME_STOPPED, "asked to");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_int_equal(core_held_micro(market.core, job->id), 0);
    assert_int_equal(market_balance(&market, market.borrower), 10000000 - job->posted_micro);
    market_done(&market);
}

TEST(a_successor_never_passes_the_maximum)
{
    struct market market;
    market_init_demo(&market);
    market_set_proving(&market, 0);
    const struct job *first = submit(&market, 0);
    const int64_t quote_micro = first->quote_micro;
    market_do(&market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                         .cancel_job = {market.borrower, first->id}});
    for (size_t i = 0; i < first->lease_count; i++)
        market_end_lease(&market, first->leases[i], LEASE_OUTCOME_STOPPED, "");
    /* A machine twice as fast costs twice as much: too much at first, then there is time for less.
     */
    struct command fast =
        market_enrolment(&market, market.lender, "fast", 250, MACHINE_ROLE_WORKER);
    fast.enrol_machine.probe.speed_weight_milli = 4000;
    const struct job *job = submit(&market, quote_micro);
    run_all(&market, job);
    const uint64_t machine = market_do(&market, &fast);
    market_connect(&market, machine);
    crash(&market, job->workers[0]);
    assert_int_equal(open_count(job), 2);
    assert_int_equal(job->quote_micro, quote_micro);
    market.now_ms +=
        160000; /* twenty seconds of it are no dearer than three minutes of the other */
    market_pass_time(&market, 0);
    market_connect(&market, machine);
    crash(&market, job->workers[1]);
    assert_int_equal(open_count(job), 2);
    assert_true(job->quote_micro <= quote_micro);
    market_done(&market);
}

TEST(a_successor_never_passes_the_maximum_per_hour)
{
    struct market market;
    market_init_demo(&market);
    market_set_proving(&market, 0);
    struct command command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.replaces_lost = true;
    command.submit_job.max_total_micro = 0;
    const struct job *probe = core_job(market.core, market_do(&market, &command));
    command.submit_job.max_hourly_micro = job_hourly_micro(probe);
    market_do(&market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                         .cancel_job = {market.borrower, probe->id}});
    for (size_t i = 0; i < probe->lease_count; i++)
        market_end_lease(&market, probe->leases[i], LEASE_OUTCOME_STOPPED, "");
    const struct job *job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    struct command fast =
        market_enrolment(&market, market.lender, "fast", 250, MACHINE_ROLE_WORKER);
    fast.enrol_machine.probe.speed_weight_milli = 1100;
    market_connect(&market, market_do(&market, &fast));
    crash(&market, job->workers[0]);
    assert_int_equal(open_count(job), 2);
    market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(open_count(job), 3); /* at the same rate */
    market_done(&market);
}

TEST(without_room_the_job_goes_on_and_a_successor_comes_with_the_room)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = submit(&market, 0);
    run_all(&market, job);
    const uint64_t lost = job->workers[0]->machine;
    take_away(&market, lost);
    assert_int_equal(job->workers[0]->outcome, LEASE_OUTCOME_RECLAIMED);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_int_equal(open_count(job), 2);
    market_connect(&market, lost); /* its owner wanted it back: not that one again */
    assert_int_equal(open_count(job), 2);
    const uint64_t spare = market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(open_count(job), 3);
    assert_int_equal(job->workers[0]->machine, spare);
    market_done(&market);
}

TEST(a_machine_that_was_silent_too_long_may_be_its_own_successor)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = submit(&market, 0);
    run_all(&market, job);
    const struct lease *lost = job->workers[1];
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {.machine = lost->machine}});
    market_pass_time(&market, core_settings(market.core)->lost_ms);
    assert_int_equal(lost->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(open_count(job), 2);
    market_connect(&market, lost->machine);
    assert_int_equal(job->workers[1]->machine, lost->machine);
    assert_true(job->workers[1]->fence > lost->fence);
    market_done(&market);
}

/* Holds all the borrower has left, for what nobody can serve. */
static void hold_the_rest(struct market *market)
{
    struct command command = market_job(market);
    const int64_t left_micro = ledger_available_micro(core_balance(market->core, market->borrower));
    const int64_t cores = 64;
    command.submit_job.worker = (struct resources){.cores_milli = cores * 1000};
    command.submit_job.server = (struct resources){0};
    command.submit_job.num_nodes = 1;
    command.submit_job.max_total_micro = 0;
    command.submit_job.max_run_ms =
        left_micro * 3600000 / (cores * core_price(market->core).core_micro);
    market_do(market, &command);
}

TEST(a_successor_that_was_too_dear_comes_with_the_credits)
{
    struct market market;
    market_init_demo(&market);
    market_set_proving(&market, 0);
    const struct job *job = submit(&market, 0);
    run_all(&market, job);
    struct command fast =
        market_enrolment(&market, market.lender, "fast", 250, MACHINE_ROLE_WORKER);
    fast.enrol_machine.probe.speed_weight_milli = 4000;
    market_connect(&market, market_do(&market, &fast));
    hold_the_rest(&market);
    market.now_ms += 100000;
    for (size_t i = 0; i < job->worker_count; i++) {
        const struct command tick = market_tick(job->workers[i], 1, 100000);
        market_do(&market, &tick);
    }
    crash(&market, job->workers[0]);
    assert_int_equal(open_count(job), 2);
    assert_non_null(strstr(job->reason, "what is left of the job's budget does not reach"));
    const struct ledger_account *earned = core_balance(market.core, market.lender);
    market_do(&market,
              &(struct command){.kind = COMMAND_TRANSFER,
                                .transfer = {.from = market.lender,
                                             .to = market.borrower,
                                             .amount_micro = ledger_transferable_micro(earned)}});
    assert_int_equal(open_count(job), 3);
    assert_string_equal(job->reason, "");
    market_done(&market);
}

TEST(the_last_worker_is_replaced_or_the_job_fails)
{
    struct market market;
    market_init_demo(&market);
    struct command command = market_job(&market);
    command.submit_job.replaces_lost = true;
    command.submit_job.num_nodes = 1;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    crash(&market, job->workers[0]);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    crash(&market, job->workers[0]);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    crash(&market, job->workers[0]); /* the third of its rank is the last */
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    assert_int_equal(job->outcome, JOB_STATE_FAILED);
    assert_string_equal(job->reason, "no worker is left: out of memory");
    market_done(&market);
}

TEST(nobody_succeeds_where_the_job_did_not_ask_or_the_time_is_up)
{
    struct market market;
    market_init_demo(&market);
    market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    struct command command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    crash(&market, job->workers[0]);
    assert_int_equal(open_count(job), 2);
    market_done(&market);

    market_init_demo(&market);
    market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    job = submit(&market, 0);
    run_all(&market, job);
    market.now_ms += 178000; /* less than a tick is left */
    crash(&market, job->workers[0]);
    assert_int_equal(open_count(job), 2);
    market_done(&market);
}

TEST(a_worker_that_is_not_heard_is_named_until_it_is)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = submit(&market, 0);
    run_all(&market, job);
    const uint64_t machine = job->workers[1]->machine;
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {.machine = machine}});
    char expected[JOB_REASON_SIZE];
    snprintf(expected, sizeof(expected), "worker 1 on %s: not heard for 6 s",
             core_machine(market.core, machine)->name);
    assert_string_equal(job->reason, expected);
    market_connect(&market, machine);
    assert_string_equal(job->reason, "");
    market_done(&market);
}

TEST(a_gathered_job_is_done_when_its_rank_0_is_whoever_is_missing)
{
    struct market market;
    market_init_demo(&market);
    struct command command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.replaces_lost = true;
    command.submit_job.server = (struct resources){0};
    command.submit_job.is_gathered = true;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    market_end_lease(&market, job->workers[1], LEASE_OUTCOME_LOST, "");
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_end_lease(&market, job->workers[2], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_end_lease(&market, job->workers[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_STOPPING); /* a successor came too late */
    assert_int_equal(job->outcome, JOB_STATE_SUCCEEDED);
    market_end_lease(&market, job->workers[1], LEASE_OUTCOME_STOPPED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    market_done(&market);
}

/* Three ranks, the second of them on a machine that was not heard when rank 0 ended well. */
static const struct job *end_with_a_silent_rank(struct market *market)
{
    market_init_demo(market);
    struct command command = market_job(market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.server = (struct resources){0};
    command.submit_job.is_gathered = true;
    const struct job *job = core_job(market->core, market_do(market, &command));
    run_all(market, job);
    market_do(market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                        .machine_silent = {job->workers[1]->machine}});
    market_end_lease(market, job->workers[2], LEASE_OUTCOME_SUCCEEDED, "");
    market_end_lease(market, job->workers[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    assert_true(lease_is_open(job->workers[1]));
    return job;
}

TEST(what_a_silent_rank_left_is_waited_for_when_its_job_ends_well)
{
    struct market market;
    const struct job *job = end_with_a_silent_rank(&market);
    const uint64_t machine = job->workers[1]->machine;
    market_pass_time(&market, 29000);
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    market_connect(&market, machine);
    assert_true(job->workers[1]->stop_wanted_ms > 0);
    market_end_lease(&market, job->workers[1], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_string_equal(job->reason, "");
    market_done(&market);
}

TEST(an_owner_takes_back_a_silent_rank_that_is_waited_for)
{
    struct market market;
    const struct job *job = end_with_a_silent_rank(&market);
    market_do(&market, &(struct command){.kind = COMMAND_RECLAIM_LEASES,
                                         .reclaim_leases = {.account = market.lender,
                                                            .lease = job->workers[1]->id}});
    assert_int_equal(job->workers[1]->outcome, LEASE_OUTCOME_RECLAIMED);
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_int_equal(core_held_micro(market.core, job->id), 0);
    market_done(&market);
}

TEST(a_silent_rank_that_never_ran_is_not_waited_for)
{
    struct market market;
    market_init_demo(&market);
    struct command command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.server = (struct resources){0};
    command.submit_job.is_gathered = true;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    market_run_lease(&market, job->workers[0]);
    market_run_lease(&market, job->workers[2]);
    assert_int_equal(job->workers[1]->state, LEASE_STATE_OFFERED);
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {job->workers[1]->machine}});
    market_end_lease(&market, job->workers[2], LEASE_OUTCOME_SUCCEEDED, "");
    market_end_lease(&market, job->workers[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    market_done(&market);
}

TEST(that_what_a_rank_left_is_lost_is_said)
{
    struct market market;
    const struct job *job = end_with_a_silent_rank(&market);
    char lost[128];
    snprintf(lost, sizeof(lost), "the files of rank 1 and the end of its log are lost with %s",
             core_machine(market.core, job->workers[1]->machine)->name);
    market_pass_time(&market, 30000);
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_int_equal(job->workers[1]->outcome, LEASE_OUTCOME_LOST);
    assert_string_equal(job->reason, lost);
    market_done(&market);
}

TEST(what_a_silent_rank_left_is_waited_for_half_a_minute_at_most)
{
    struct market market;
    const struct job *job = end_with_a_silent_rank(&market);
    struct core_settings settings = *core_settings(market.core);
    settings.lost_ms = 600000;
    market_do(&market,
              &(struct command){.kind = COMMAND_CHANGE_SETTINGS, .change_settings = settings});
    const int64_t ended_ms = market.now_ms;
    market_pass_time(&market, 29000);
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    assert_true(core_next_wake_ms(market.core) <= ended_ms + 30000);
    market_pass_time(&market, 1000);
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_int_equal(job->workers[1]->outcome, LEASE_OUTCOME_LOST);
    assert_non_null(strstr(job->reason, "the files of rank 1 and the end of its log are lost"));
    market_done(&market);
}

TEST(a_silent_rank_that_comes_back_late_has_its_grace)
{
    struct market market;
    const struct job *job = end_with_a_silent_rank(&market);
    market_pass_time(&market, 29000);
    market_connect(&market, job->workers[1]->machine);
    market_pass_time(&market, 2000); /* past the wait for it, which is over */
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    assert_true(core_next_wake_ms(market.core) > market.now_ms);
    market_end_lease(&market, job->workers[1], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_string_equal(job->reason, "");
    market_done(&market);
}

/* One rank of an own program on the only machine there is. */
static const struct job *submit_own_program(struct market *market, bool replaces_lost)
{
    market_init(market);
    market_add_machine(market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct command command = market_job(market);
    command.submit_job.num_nodes = 1;
    command.submit_job.takes_more_cores = false;
    command.submit_job.replaces_lost = replaces_lost;
    command.submit_job.server = (struct resources){0};
    const struct job *job = core_job(market->core, market_do(market, &command));
    run_all(market, job);
    market->now_ms += 60000;
    take_away(market, job->workers[0]->machine);
    return job;
}

TEST(an_own_program_whose_only_machine_is_lost_waits_for_another)
{
    struct market market;
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 4096);
    const struct job *job = submit_own_program(&market, /* replaces_lost= */ true);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_int_equal(open_count(job), 0);
    assert_string_equal(job->reason, "rank 0 is gone and has no successor yet: no other machine "
                                     "has room for it");
    core_explain(market.core, job, &words);
    assert_non_null(strstr(buffer_string(&words), "rank 0 is gone"));
    const int64_t quote_micro = job->quote_micro;
    market.now_ms += 60000;
    const uint64_t owl = market_add_machine(&market, "owl", 500, MACHINE_ROLE_WORKER);
    assert_int_equal(open_count(job), 1);
    assert_int_equal(job->workers[0]->machine, owl);
    assert_int_equal(job->workers[0]->max_run_ms, 60000); /* what is left of three minutes */
    assert_int_equal(job->quote_micro, quote_micro);      /* the wait cost nothing */
    assert_string_equal(job->reason, "");
    run_all(&market, job);
    market_end_lease(&market, job->workers[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    market_done(&market);
}

TEST(an_own_program_waits_for_a_machine_no_longer_than_it_may_run)
{
    struct market market;
    const struct job *job = submit_own_program(&market, /* replaces_lost= */ true);
    const int64_t balance_micro = market_balance(&market, market.borrower);
    market_pass_time(&market, 119000);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_pass_time(&market, 1000);
    assert_int_equal(job->state, JOB_STATE_FAILED);
    assert_non_null(strstr(job->reason, "max_run_time reached"));
    assert_int_equal(core_held_micro(market.core, job->id), 0);
    assert_int_equal(market_balance(&market, market.borrower), balance_micro);
    market_done(&market);

    job = submit_own_program(&market, /* replaces_lost= */ true);
    market_do(&market,
              &(struct command){.kind = COMMAND_CANCEL_JOB,
                                .cancel_job = {.account = market.borrower, .job = job->id}});
    assert_int_equal(job->state, JOB_STATE_CANCELLED);
    market_done(&market);

    job = submit_own_program(&market, /* replaces_lost= */ false);
    assert_int_equal(job->state, JOB_STATE_FAILED);
    market_done(&market);
}

TEST(an_elastic_job_grows_while_nobody_waits)
{
    struct market market;
    market_init_demo(&market);
    struct command command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.num_nodes_max = 5;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    assert_int_equal(open_count(job), 3);
    market_add_machine(&market, "fourth", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(open_count(job), 4);
    assert_int_equal(job->workers[3]->rank, 3);
    struct command waiting = market_job(&market);
    waiting.submit_job.worker.cores_milli = 900; /* which heron has when its lease ends */
    waiting.submit_job.num_nodes = 1;
    const struct job *other = core_job(market.core, market_do(&market, &waiting));
    assert_int_equal(other->state, JOB_STATE_PENDING);
    market_add_machine(&market, "fifth", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(open_count(job), 4); /* somebody waits */
    market_do(&market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                         .cancel_job = {market.borrower, other->id}});
    assert_int_equal(open_count(job), 5);
    market_add_machine(&market, "sixth", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(open_count(job), 5);
    market_done(&market);
}

TEST(a_job_that_never_has_room_does_not_keep_others_from_growing)
{
    struct market market;
    market_init_demo(&market);
    struct command command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.num_nodes_max = 5;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    struct command impossible = market_job(&market);
    impossible.submit_job.worker.cores_milli = 64000;
    market_do(&market, &impossible);
    struct command too_dear = market_job(&market);
    too_dear.submit_job.start = JOB_START_DEADLINE;
    too_dear.submit_job.deadline_ms = market.now_ms + 3600000;
    too_dear.submit_job.max_hourly_micro = 1;
    market_do(&market, &too_dear);
    market_add_machine(&market, "fourth", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(open_count(job), 4);
    market_done(&market);
}

TEST(a_machine_that_only_the_last_of_many_could_use_is_taken_by_it)
{
    enum { LARGE = 60 };
    struct market market;
    market_init(&market);
    struct command command = market_job(&market);
    command.submit_job.server = (struct resources){0};
    command.submit_job.takes_more_cores = false;
    command.submit_job.num_nodes = 1;
    command.submit_job.num_nodes_max = 2;
    command.submit_job.max_total_micro = 0;
    command.submit_job.worker.cores_milli = 1000;
    for (int i = 0; i < LARGE; i++) {
        char name[32];
        snprintf(name, sizeof(name), "large-%d", i);
        const uint64_t large = market_do(&market, &command); /* first, or others grow */
        market_add_machine(&market, name, 1000, MACHINE_ROLE_WORKER);
        run_all(&market, core_job(market.core, large));
    }
    command.submit_job.worker.cores_milli = 250;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    market_add_machine(&market, "small", 250, MACHINE_ROLE_WORKER);
    run_all(&market, job);
    assert_int_equal(open_count(job), 1);
    market_add_machine(&market, "other", 250, MACHINE_ROLE_WORKER);
    while (core_next_wake_ms(market.core) <= market.now_ms)
        market_pass_time(&market, 0);
    assert_int_equal(open_count(job), 2);
    market_done(&market);
}

TEST(successors_survive_a_snapshot_bit_for_bit)
{
    struct market market;
    market_init_demo(&market);
    market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    const struct job *job = submit(&market, 0);
    run_all(&market, job);
    crash(&market, job->workers[1]);
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 1 << 20);
    buffer_init(&second, 1 << 20);
    core_snapshot_write(market.core, &first);
    AUTO(core) struct core *copy = NULL;
    struct error error;
    ASSERT_OK(core_snapshot_read(buffer_text(&first), &copy, &error));
    ASSERT_OK(core_check(copy, &error));
    core_snapshot_write(copy, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
    assert_int_equal(core_job(copy, job->id)->workers[1]->id, job->workers[1]->id);
    market_done(&market);
}

static void add_near(struct market *market, const char *name, int64_t rtt_us)
{
    struct command enrol = market_enrolment(market, market->lender, name, 250, MACHINE_ROLE_WORKER);
    enrol.enrol_machine.probe.rtt_us = rtt_us;
    market_connect(market, market_do(market, &enrol));
}

TEST(a_successor_is_as_near_as_the_job_wishes)
{
    struct market market;
    market_init(&market);
    add_near(&market, "one", 1000);
    add_near(&market, "two", 2000);
    struct command command = market_job(&market);
    command.submit_job.num_nodes = 2;
    command.submit_job.server = (struct resources){0};
    command.submit_job.replaces_lost = true;
    command.submit_job.wishes.max_rtt_us = 10000;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    assert_int_equal(job->state, JOB_STATE_STARTING);
    run_all(&market, job);
    add_near(&market, "far", 50000);
    take_away(&market, job->workers[1]->machine);
    assert_int_equal(open_count(job), 1);
    add_near(&market, "three", 3000);
    assert_int_equal(open_count(job), 2);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_worker_gets_a_successor_under_its_rank_with_a_fence_of_its_own),
        cmocka_unit_test(a_worker_without_a_successor_is_said_until_its_machine_is_back),
        cmocka_unit_test(a_machine_whose_owner_took_a_lease_back_and_stayed_is_not_asked_again),
        cmocka_unit_test(a_job_without_a_worker_waits_for_the_owners_who_took_theirs_back),
        cmocka_unit_test(what_the_lost_worker_did_not_use_pays_for_its_successor),
        cmocka_unit_test(a_successor_never_passes_the_maximum),
        cmocka_unit_test(a_successor_never_passes_the_maximum_per_hour),
        cmocka_unit_test(without_room_the_job_goes_on_and_a_successor_comes_with_the_room),
        cmocka_unit_test(a_machine_that_was_silent_too_long_may_be_its_own_successor),
        cmocka_unit_test(a_successor_that_was_too_dear_comes_with_the_credits),
        cmocka_unit_test(the_last_worker_is_replaced_or_the_job_fails),
        cmocka_unit_test(nobody_succeeds_where_the_job_did_not_ask_or_the_time_is_up),
        cmocka_unit_test(a_worker_that_is_not_heard_is_named_until_it_is),
        cmocka_unit_test(a_gathered_job_is_done_when_its_rank_0_is_whoever_is_missing),
        cmocka_unit_test(what_a_silent_rank_left_is_waited_for_when_its_job_ends_well),
        cmocka_unit_test(an_owner_takes_back_a_silent_rank_that_is_waited_for),
        cmocka_unit_test(a_silent_rank_that_never_ran_is_not_waited_for),
        cmocka_unit_test(that_what_a_rank_left_is_lost_is_said),
        cmocka_unit_test(what_a_silent_rank_left_is_waited_for_half_a_minute_at_most),
        cmocka_unit_test(a_silent_rank_that_comes_back_late_has_its_grace),
        cmocka_unit_test(an_own_program_whose_only_machine_is_lost_waits_for_another),
        cmocka_unit_test(an_own_program_waits_for_a_machine_no_longer_than_it_may_run),
        cmocka_unit_test(an_elastic_job_grows_while_nobody_waits),
        cmocka_unit_test(a_job_that_never_has_room_does_not_keep_others_from_growing),
        cmocka_unit_test(a_machine_that_only_the_last_of_many_could_use_is_taken_by_it),
        cmocka_unit_test(successors_survive_a_snapshot_bit_for_bit),
        cmocka_unit_test(a_successor_is_as_near_as_the_job_wishes),
    };
    return cmocka_run_group_tests_name("core_worker", tests, NULL, NULL);
}
