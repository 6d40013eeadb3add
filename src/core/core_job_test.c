/*
 * The life of a job, from its hold to its last microcredit.
 * covers decide_job.c, decide_lease.c, decide_match.c, apply_job.c, apply_lease.c
 */
#include "core/testing_internal.h"

static void run_all(struct market *market, const struct job *job)
{
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(market, job->leases[i]);
}

static const char *explain(const struct market *market, const struct job *job, struct buffer *words)
{
    buffer_clear(words);
    core_explain(market->core, job, words);
    return buffer_string(words);
}

TEST(a_job_is_matched_at_once_and_held_for_exactly_its_quote)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    assert_int_equal(job->lease_count, 4);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_OFFERED), 4);
    assert_int_equal(job->leases[0]->role, LEASE_ROLE_SERVER);
    assert_string_equal(core_machine(market.core, job->leases[0]->machine)->name, "market");
    assert_int_equal(job->leases[1]->resources.cores_milli, 1000);
    assert_int_equal(job->leases[2]->resources.cores_milli, 500);
    assert_int_equal(job->leases[3]->resources.cores_milli, 250);
    /* 2.25 cores and 1 GiB over three minutes, each lease rounded down. */
    assert_int_equal(job->quote_micro, 525 + 1025 + 525 + 275);
    assert_int_equal(core_held_micro(market.core, job->id), job->quote_micro);
    assert_int_equal(market_balance(&market, market.borrower), 10000000);
    market_done(&market);
}

TEST(a_whole_job_pays_its_lenders_and_gives_back_the_rest)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    for (uint64_t tick = 1; tick <= 20; tick++) {
        market.now_ms += 3000;
        for (size_t i = 0; i < job->lease_count; i++) {
            const struct command command = market_tick(job->leases[i], tick, (int64_t)tick * 3000);
            market_do(&market, &command);
        }
    }
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_STOP_WANTED), 3);
    for (size_t i = 1; i < job->lease_count; i++)
        market_end_lease(&market, job->leases[i], LEASE_OUTCOME_STOPPED, "asked to");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_int_equal(core_held_micro(market.core, job->id), 0);
    /* A third of the quote: one minute of three, each lease rounded down. */
    assert_int_equal(job->posted_micro, 175 + 341 + 175 + 91);
    assert_int_equal(market_balance(&market, market.borrower), 10000000 - job->posted_micro);
    assert_int_equal(core_balance(market.core, market.lender)->earned_total_micro, 341 + 175 + 91);
    assert_int_equal(core_balance(market.core, ACCOUNT_OPERATOR)->earned_total_micro, 175);
    market_done(&market);
}

TEST(a_tick_is_billed_once_under_the_right_fence_while_the_lease_runs)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    const struct lease *lease = job->leases[1];
    struct command tick = market_tick(lease, 1, 3000);
    market_refuses(&market, &tick, ERROR_CONFLICT); /* not running yet */
    run_all(&market, job);
    market.now_ms += 10000;
    market_do(&market, &tick);
    assert_int_equal(lease->posted_micro, 17);
    market_refuses(&market, &tick, ERROR_CONFLICT);
    tick = market_tick(lease, 2, 6000);
    tick.tick_lease.fence++;
    market_refuses(&market, &tick, ERROR_CONFLICT);
    tick = market_tick(lease, 2, -1);
    market_refuses(&market, &tick, ERROR_INVALID);
    tick = market_tick(lease, 3, 6000); /* a tick may be left out */
    market_do(&market, &tick);
    tick = market_tick(lease, 4, 5000); /* time that goes back costs nothing */
    market_do(&market, &tick);
    assert_int_equal(lease->posted_micro, 34);
    assert_int_equal(market_new_events(&market, EVENT_ENTRY_POSTED), 0);
    market_end_lease(&market, lease, LEASE_OUTCOME_FAILED, "out of memory");
    tick = market_tick(lease, 5, 9000);
    market_refuses(&market, &tick, ERROR_CONFLICT);
    market_done(&market);
}

TEST(the_end_of_a_lease_bills_what_was_verified_and_not_billed_before)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    market.now_ms += 10000;
    const struct lease *lease = job->leases[1];
    const struct command tick = market_tick(lease, 1, 3000);
    market_do(&market, &tick);
    struct command end = {.kind = COMMAND_END_LEASE,
                          .end_lease = {.lease = lease->id,
                                        .fence = lease->fence,
                                        .outcome = LEASE_OUTCOME_SUCCEEDED,
                                        .tick_index = 2,
                                        .wall_ms = -1}};
    market_refuses(&market, &end, ERROR_INVALID);
    end.end_lease.wall_ms = 6000;
    end.end_lease.exit_code = LEASE_EXIT_CODE_MAX + 1;
    market_refuses(&market, &end, ERROR_INVALID);
    end.end_lease.exit_code = -1;
    market_refuses(&market, &end, ERROR_INVALID);
    end.end_lease.exit_code = 3;
    market_do(&market, &end);
    assert_int_equal(lease->exit_code, 3);
    assert_int_equal(lease->wall_ms, 6000);
    assert_int_equal(lease->posted_micro, 34);
    /* One that names the tick billed last adds nothing. */
    const struct lease *other = job->leases[2];
    const struct command other_tick = market_tick(other, 1, 3000);
    market_do(&market, &other_tick);
    end.end_lease.lease = other->id;
    end.end_lease.fence = other->fence;
    end.end_lease.tick_index = 1;
    market_do(&market, &end);
    assert_int_equal(other->wall_ms, 3000);
    market_done(&market);
}

TEST(a_lease_is_never_billed_past_the_clock_or_its_quote)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    const struct lease *lease = job->leases[1];
    market.now_ms += 6000;
    struct command tick = market_tick(lease, 1, 100000);
    market_do(&market, &tick);
    assert_int_equal(lease->wall_ms, 6000);
    market.now_ms += 1000000;
    tick = market_tick(lease, 2, 1000000);
    market_do(&market, &tick);
    assert_int_equal(lease->wall_ms, 180000);
    assert_int_equal(lease->posted_micro, lease->quote_micro);
    market_done(&market);
}

TEST(the_fee_goes_to_the_operator_out_of_the_bill)
{
    struct market market;
    market_init_demo(&market);
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = core_default_settings()};
    change.change_settings.fee_basis_points = 500;
    market_do(&market, &change);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    market.now_ms += 180000;
    const struct command tick = market_tick(job->leases[1], 1, 180000);
    market_do(&market, &tick);
    assert_int_equal(job->posted_micro, 1025);
    assert_int_equal(job->fee_micro, 51);
    assert_int_equal(core_balance(market.core, market.lender)->earned_total_micro, 974);
    assert_int_equal(core_balance(market.core, ACCOUNT_OPERATOR)->earned_total_micro, 51);
    market_done(&market);
}

TEST(a_job_waits_funded_until_its_machines_are_there)
{
    struct market market;
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 4096);
    market_init(&market);
    market_add_machine(&market, "market", 1000, MACHINE_ROLE_SERVER);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    market_add_machine(&market, "wren", 250, MACHINE_ROLE_WORKER);
    const struct job *job = market_submit(&market);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    assert_int_equal(core_held_micro(market.core, job->id), job->quote_micro);
    assert_true(job->quote_micro > 0);
    assert_string_equal(explain(&market, job, &words),
                        "it asks for 3 machines, and only 2 here take workers");
    market_add_machine(&market, "owl", 500, MACHINE_ROLE_WORKER);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    assert_string_equal(explain(&market, job, &words),
                        "waiting for its leases to start at market (server), heron (worker), owl "
                        "(worker), wren (worker)");
    market_done(&market);
}

TEST(a_job_beyond_its_maximum_or_the_balance_is_refused)
{
    struct market market;
    market_init_demo(&market);
    struct command submit = market_job(&market);
    submit.submit_job.max_total_micro = 100;
    market_refuses(&market, &submit, ERROR_EXHAUSTED);
    submit.submit_job.max_total_micro = 0;
    submit.submit_job.max_hourly_micro = 100;
    market_refuses(&market, &submit, ERROR_EXHAUSTED);
    submit.submit_job.max_hourly_micro = 0;
    submit.submit_job.max_run_ms = PRICE_RUN_MS_MAX;
    market_refuses(&market, &submit, ERROR_EXHAUSTED);
    submit = market_job(&market);
    submit.submit_job.num_nodes = 0;
    market_refuses(&market, &submit, ERROR_INVALID);
    submit = market_job(&market);
    snprintf(submit.submit_job.name, sizeof(submit.submit_job.name), "two\nlines");
    market_refuses(&market, &submit, ERROR_INVALID);
    submit = market_job(&market);
    submit.submit_job.account = ACCOUNT_MINT;
    market_refuses(&market, &submit, ERROR_NOT_FOUND);
    market_done(&market);
}

TEST(surplus_cores_keep_to_the_maximum)
{
    struct market market;
    market_init_demo(&market);
    struct command submit = market_job(&market);
    submit.submit_job.max_total_micro = 1800; /* everything would be 2350 */
    const struct job *job = core_job(market.core, market_do(&market, &submit));
    assert_int_equal(job->state, JOB_STATE_STARTING);
    assert_true(job->quote_micro <= 1800);
    assert_true(job->quote_micro > 1780);
    market_done(&market);
}

TEST(a_repeated_submit_finds_the_job_it_made)
{
    struct market market;
    market_init_demo(&market);
    struct command submit = market_job(&market);
    memset(submit.submit_job.idempotency_hash, 0xab, MARKET_HASH_SIZE);
    const uint64_t job = market_do(&market, &submit);
    assert_int_equal(market_do(&market, &submit), job);
    assert_int_equal(market.events.count, market.seen);
    submit.submit_job.spec = TEXT("{}");
    market_refuses(&market, &submit, ERROR_CONFLICT);
    market_done(&market);
}

TEST(a_lost_worker_leaves_the_job_running)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    const uint64_t machine = job->leases[3]->machine;
    market_do(&market,
              &(struct command){.kind = COMMAND_MACHINE_SILENT, .machine_silent = {machine}});
    assert_true(core_lease_is_unreachable(market.core, job->leases[3]));
    assert_int_equal(job->leases[3]->state, LEASE_STATE_RUNNING);
    market_pass_time(&market, 30000);
    assert_int_equal(job->leases[3]->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_end_lease(&market, job->leases[2], LEASE_OUTCOME_FAILED, "crashed");
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market.now_ms += 1000;
    market_end_lease(&market, job->leases[1], LEASE_OUTCOME_FAILED, "crashed \xff\n too");
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    assert_int_equal(job->outcome, JOB_STATE_FAILED);
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_STOPPED, "");
    assert_int_equal(job->state, JOB_STATE_FAILED);
    assert_string_equal(job->reason, "no worker is left: crashed ?  too");
    assert_int_equal(core_held_micro(market.core, job->id), 0);
    market_done(&market);
}

TEST(a_job_fails_when_its_server_is_gone)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_GONE,
                                         .machine_gone = {job->leases[0]->machine}});
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    market_pass_time(&market, 30000);
    assert_int_equal(job->state, JOB_STATE_FAILED);
    assert_string_equal(job->reason,
                        "the parameter server was taken back: its machine left the market; "
                        "submit it again: what was not used was given back");
    assert_int_equal(job->leases[1]->outcome, LEASE_OUTCOME_LOST);
    market_done(&market);
}

TEST(a_worker_of_a_failed_job_that_ends_as_asked_was_stopped)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_FAILED, "out of memory");
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    market_end_lease(&market, job->leases[1], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->leases[1]->outcome, LEASE_OUTCOME_STOPPED);
    market_done(&market);
}

TEST(stopping_does_not_wait_for_an_unreachable_machine)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    for (size_t i = 1; i < 4; i++)
        market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                             .machine_silent = {job->leases[i]->machine}});
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    market_done(&market);
}

TEST(the_longest_run_ends_in_a_grace_for_the_server_then_the_workers)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    market_pass_time(&market, 179999);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_pass_time(&market, 1);
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_STOP_WANTED), 1);
    assert_true(job->leases[0]->stop_wanted_ms > 0);
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(market_new_events(&market, EVENT_LEASE_STOP_WANTED), 3);
    assert_int_equal(core_next_wake_ms(market.core), market.now_ms + 30000);
    market_pass_time(&market, 30000);
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_string_equal(job->reason, "max_run_time reached");
    market_done(&market);
}

TEST(a_server_that_ignores_the_stop_fails_its_job)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    market_pass_time(&market, 180000);
    market_pass_time(&market, 30000);
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    market_pass_time(&market, 30000);
    assert_int_equal(job->state, JOB_STATE_FAILED);
    assert_string_equal(job->reason, "max_run_time reached, but it did not finish: it did not stop "
                                     "when asked to");
    market_done(&market);
}

TEST(a_lease_that_does_not_start_in_time_is_lost)
{
    struct market market;
    market_init_demo(&market);
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = core_default_settings()};
    change.change_settings.start_ms = 10000;
    market_do(&market, &change);
    const struct job *job = market_submit(&market);
    market_run_lease(&market, job->leases[0]);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    market_run_lease(&market, job->leases[1]);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    change.change_settings.start_ms = 20000; /* too late for those that are quoted */
    market_do(&market, &change);
    assert_int_equal(core_next_wake_ms(market.core), market.now_ms + 10000);
    market.now_ms += 10001;
    const struct command late = {
        .kind = COMMAND_LEASE_RUNNING,
        .lease_running = {.lease = job->leases[2]->id, .fence = job->leases[2]->fence}};
    market_refuses(&market, &late, ERROR_CONFLICT);
    market_pass_time(&market, 0);
    assert_int_equal(job->leases[2]->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_done(&market);
}

TEST(a_pending_job_is_cancelled_at_once_and_a_running_one_stopped)
{
    struct market market;
    market_init_demo(&market);
    const struct job *running = market_submit(&market);
    const struct job *pending = market_submit(&market);
    assert_int_equal(pending->state, JOB_STATE_PENDING);
    struct command cancel = {.kind = COMMAND_CANCEL_JOB,
                             .cancel_job = {.account = market.lender, .job = pending->id}};
    market_refuses(&market, &cancel, ERROR_REFUSED);
    cancel.cancel_job.account = market.borrower;
    market_do(&market, &cancel);
    assert_int_equal(pending->state, JOB_STATE_CANCELLED);
    assert_int_equal(core_held_micro(market.core, pending->id), 0);
    market_refuses(&market, &cancel, ERROR_CONFLICT);

    run_all(&market, running);
    cancel.cancel_job.job = running->id;
    market_do(&market, &cancel);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_STOP_WANTED), 4);
    market_do(&market, &cancel);
    assert_int_equal(market.events.count, market.seen);
    for (size_t i = 0; i < 4; i++)
        market_end_lease(&market, running->leases[i], LEASE_OUTCOME_STOPPED, "");
    assert_int_equal(running->state, JOB_STATE_CANCELLED);
    market_done(&market);
}

TEST(the_next_job_takes_what_an_ended_one_leaves)
{
    struct market market;
    market_init_demo(&market);
    const struct job *first = market_submit(&market);
    const struct job *second = market_submit(&market);
    run_all(&market, first);
    market_end_lease(&market, first->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    for (size_t i = 1; i < 4; i++)
        market_end_lease(&market, first->leases[i], LEASE_OUTCOME_STOPPED, "");
    assert_int_equal(second->state, JOB_STATE_STARTING);
    assert_true(second->leases[0]->fence > first->leases[3]->fence);
    market_done(&market);
}

TEST(enrolling_a_machine_again_takes_it_back)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    run_all(&market, job);
    const struct machine *machine = core_machine(market.core, job->leases[1]->machine);
    struct command again = market_enrolment(&market, market.lender, "", 1000, MACHINE_ROLE_WORKER);
    memcpy(again.enrol_machine.public_key, machine->public_key, MACHINE_KEY_SIZE);
    market_do(&market, &again);
    assert_int_equal(job->leases[1]->outcome, LEASE_OUTCOME_RECLAIMED);
    assert_int_equal(machine->lease_count, 0);
    market_done(&market);
}

/* Its texts are the offer's own, which is set anew meanwhile. */
TEST(enrolling_a_machine_again_keeps_what_its_owner_offered)
{
    struct market market;
    market_init_demo(&market);
    struct command enrol =
        market_enrolment(&market, market.lender, "gpu", 1000, MACHINE_ROLE_WORKER);
    enrol.enrol_machine.probe.resources.gpus_milli = 1000;
    const struct machine *machine = core_machine(market.core, market_do(&market, &enrol));
    struct offer_terms terms = offer_terms(machine->offers[0]);
    terms.resources.gpus_milli = 1000;
    terms.resources.cores_milli = 500;
    terms.gpu_model = TEXT("T4");
    terms.labels = TEXT("quiet-room");
    const struct command set = {.kind = COMMAND_SET_OFFER,
                                .set_offer = {.account = market.lender,
                                              .machine = machine->id,
                                              .offer = machine->offers[0]->id,
                                              .terms = terms}};
    market_do(&market, &set);
    struct command again = market_enrolment(&market, market.lender, "", 1000, MACHINE_ROLE_WORKER);
    memcpy(again.enrol_machine.public_key, machine->public_key, MACHINE_KEY_SIZE);
    again.enrol_machine.probe.resources.gpus_milli = 1000;
    again.enrol_machine.probe.resources.ram_bytes = GIB;
    again.enrol_machine.offer.resources.ram_bytes = GIB;
    market_do(&market, &again);
    assert_int_equal(machine->offer_count, 1);
    terms = offer_terms(machine->offers[0]);
    assert_int_equal(terms.resources.gpus_milli, 1000);
    assert_int_equal(terms.resources.cores_milli, 500);
    assert_int_equal(terms.resources.ram_bytes, GIB);
    assert_true(text_equal(terms.gpu_model, TEXT("T4")));
    assert_true(text_equal(terms.labels, TEXT("quiet-room")));
    market_done(&market);
}

TEST(a_job_without_a_server_succeeds_when_its_workers_do)
{
    struct market market;
    market_init_demo(&market);
    struct command submit = market_job(&market);
    submit.submit_job.server = (struct resources){0};
    submit.submit_job.num_nodes = 2;
    const struct job *job = core_job(market.core, market_do(&market, &submit));
    assert_int_equal(job->lease_count, 2);
    run_all(&market, job);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_end_lease(&market, job->leases[1], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    market_done(&market);
}

TEST(a_quote_says_the_wish_and_where_it_would_go)
{
    struct market market;
    struct error error = {0};
    market_init_demo(&market);
    struct command submit = market_job(&market);
    struct core_quote quote;
    ASSERT_OK(core_quote(market.core, &submit.submit_job, &quote, &error));
    assert_int_equal(quote.result, MATCH_PLACED);
    assert_int_equal(quote.placed.total_micro, 2350);
    assert_int_equal(quote.wish.total_micro, 525 + 3 * 275);
    submit.submit_job.num_nodes = 4;
    ASSERT_OK(core_quote(market.core, &submit.submit_job, &quote, &error));
    assert_int_equal(quote.result, MATCH_FEW_MACHINES);
    submit.submit_job.account = 999;
    ASSERT_FAILS(core_quote(market.core, &submit.submit_job, &quote, &error), ERROR_NOT_FOUND);
    market_done(&market);
}

/* One worker of a whole core for an hour and a half, at 20 000 an hour. */
static struct command whole_core(const struct market *market, bool is_rush)
{
    struct command submit = market_job(market);
    submit.submit_job.num_nodes = 1;
    submit.submit_job.takes_more_cores = false;
    submit.submit_job.worker = (struct resources){.cores_milli = 1000};
    submit.submit_job.server = (struct resources){0};
    submit.submit_job.max_run_ms = 5400000;
    submit.submit_job.is_rush = is_rush;
    return submit;
}

TEST(who_rushes_goes_ahead_and_pays_double_for_the_first_hour)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const struct command calm = whole_core(&market, false), rushed = whole_core(&market, true);
    const struct job *first = core_job(market.core, market_do(&market, &calm));
    const struct job *waits = core_job(market.core, market_do(&market, &calm));
    const struct job *rushes = core_job(market.core, market_do(&market, &rushed));
    assert_int_equal(core_held_micro(market.core, waits->id), 30000);
    assert_int_equal(core_held_micro(market.core, rushes->id), 50000);
    market_run_lease(&market, first->leases[0]);
    market_end_lease(&market, first->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(waits->state, JOB_STATE_PENDING);
    assert_int_equal(rushes->state, JOB_STATE_STARTING);
    assert_int_equal(rushes->quote_micro, 50000);
    market_run_lease(&market, rushes->leases[0]);
    market.now_ms += 5400000;
    const struct command tick = market_tick(rushes->leases[0], 1, 5400000);
    market_do(&market, &tick);
    assert_int_equal(rushes->posted_micro, 50000);
    market_done(&market);
}

TEST(who_rushes_past_nobody_pays_nothing_more)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const struct command rushed = whole_core(&market, true);
    const struct job *job = core_job(market.core, market_do(&market, &rushed));
    assert_int_equal(job->state, JOB_STATE_STARTING);
    assert_int_equal(job->quote_micro, 30000);
    assert_int_equal(core_held_micro(market.core, job->id), 30000);
    market_done(&market);
}

TEST(a_lease_ends_within_its_window_however_late_it_starts)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const struct offer *offer = core_machine(market.core, id)->offers[0];
    struct command submit = market_job(&market);
    submit.submit_job.num_nodes = 1;
    submit.submit_job.server = (struct resources){0};
    const int64_t start_ms = core_settings(market.core)->start_ms;
    struct span span = {market.now_ms - 1,
                        market.now_ms + submit.submit_job.max_run_ms + start_ms - 1};
    struct command terms = {.kind = COMMAND_SET_OFFER,
                            .set_offer = {.account = market.lender,
                                          .machine = id,
                                          .offer = offer->id,
                                          .terms = offer_terms(offer)}};
    terms.set_offer.terms.spans = (struct json_array){&span, 1};
    market_do(&market, &terms);
    const struct job *job = core_job(market.core, market_do(&market, &submit));
    assert_int_equal(job->state, JOB_STATE_PENDING);
    span.close_ms++;
    market_do(&market, &terms);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_rushes_goes_ahead_and_pays_double_for_the_first_hour),
        cmocka_unit_test(who_rushes_past_nobody_pays_nothing_more),
        cmocka_unit_test(a_job_is_matched_at_once_and_held_for_exactly_its_quote),
        cmocka_unit_test(a_whole_job_pays_its_lenders_and_gives_back_the_rest),
        cmocka_unit_test(a_tick_is_billed_once_under_the_right_fence_while_the_lease_runs),
        cmocka_unit_test(the_end_of_a_lease_bills_what_was_verified_and_not_billed_before),
        cmocka_unit_test(a_lease_is_never_billed_past_the_clock_or_its_quote),
        cmocka_unit_test(the_fee_goes_to_the_operator_out_of_the_bill),
        cmocka_unit_test(a_job_waits_funded_until_its_machines_are_there),
        cmocka_unit_test(a_job_beyond_its_maximum_or_the_balance_is_refused),
        cmocka_unit_test(surplus_cores_keep_to_the_maximum),
        cmocka_unit_test(a_repeated_submit_finds_the_job_it_made),
        cmocka_unit_test(a_lost_worker_leaves_the_job_running),
        cmocka_unit_test(a_job_fails_when_its_server_is_gone),
        cmocka_unit_test(a_worker_of_a_failed_job_that_ends_as_asked_was_stopped),
        cmocka_unit_test(stopping_does_not_wait_for_an_unreachable_machine),
        cmocka_unit_test(the_longest_run_ends_in_a_grace_for_the_server_then_the_workers),
        cmocka_unit_test(a_server_that_ignores_the_stop_fails_its_job),
        cmocka_unit_test(a_lease_that_does_not_start_in_time_is_lost),
        cmocka_unit_test(a_pending_job_is_cancelled_at_once_and_a_running_one_stopped),
        cmocka_unit_test(the_next_job_takes_what_an_ended_one_leaves),
        cmocka_unit_test(enrolling_a_machine_again_takes_it_back),
        cmocka_unit_test(enrolling_a_machine_again_keeps_what_its_owner_offered),
        cmocka_unit_test(a_job_without_a_server_succeeds_when_its_workers_do),
        cmocka_unit_test(a_quote_says_the_wish_and_where_it_would_go),
        cmocka_unit_test(a_lease_ends_within_its_window_however_late_it_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
