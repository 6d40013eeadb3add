/*
 * Servers of jobs that are under way: their successors, and jobs that have to do without.
 * covers decide_worker.c
 */
#include "core/testing_internal.h"

static const struct job *start_within(struct market *market, bool replaces_lost,
                                      int64_t max_hourly_micro)
{
    struct command command = market_job(market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.replaces_lost = replaces_lost;
    command.submit_job.max_hourly_micro = max_hourly_micro;
    const struct job *job = core_job(market->core, market_do(market, &command));
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(market, job->leases[i]);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    return job;
}

static const struct job *start(struct market *market, bool replaces_lost)
{
    return start_within(market, replaces_lost, 0);
}

static void end_with_code(struct market *market, const struct lease *lease, int64_t exit_code)
{
    market_do(market, &(struct command){.kind = COMMAND_END_LEASE,
                                        .end_lease = {.lease = lease->id,
                                                      .fence = lease->fence,
                                                      .outcome = LEASE_OUTCOME_FAILED,
                                                      .exit_code = exit_code,
                                                      .reason = TEXT("it ended")}});
}

static void fall_silent(struct market *market, uint64_t machine)
{
    market_do(market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                        .machine_silent = {.machine = machine}});
}

TEST(a_server_that_was_killed_gets_a_successor_and_its_workers_stay)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = start(&market, true);
    const struct lease *old = job_lead(job);
    const struct lease *worker = job->workers[0];
    market.now_ms += 60000;
    const struct command tick = market_tick(old, 1, 60000);
    market_do(&market, &tick);
    const int64_t paid = old->posted_micro;
    assert_true(paid > 0);
    end_with_code(&market, old, 137);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_ptr_not_equal(job_lead(job), old);
    assert_int_equal(job_lead(job)->role, LEASE_ROLE_SERVER);
    assert_int_equal(job_lead(job)->rank, 0);
    assert_int_equal(job_lead(job)->state, LEASE_STATE_OFFERED);
    assert_true(job_lead(job)->fence > old->fence);
    assert_int_equal(job_lead(job)->max_run_ms, 120000); /* what is left of three minutes */
    assert_ptr_equal(job->workers[0], worker);
    assert_true(lease_is_open(worker));
    /* The old one is paid to its last tick, and the job pays no more than it was quoted. */
    assert_int_equal(old->posted_micro, paid);
    assert_true(job_committed_micro(job) <= job->quote_micro);
    market_run_lease(&market, job_lead(job));
    market_end_lease(&market, job_lead(job), LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->outcome, JOB_STATE_SUCCEEDED);
    market_done(&market);
}

TEST(a_server_that_says_itself_what_is_wrong_fails_its_job)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = start(&market, true);
    end_with_code(&market, job_lead(job), 1);
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    assert_int_equal(job->outcome, JOB_STATE_FAILED);
    market_done(&market);
}

TEST(a_server_that_is_killed_again_and_again_is_given_up)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = start(&market, true);
    for (int i = 0; i < JOB_FAILURES_MAX; i++) {
        assert_int_equal(job->state, JOB_STATE_RUNNING);
        end_with_code(&market, job_lead(job), 137);
    }
    assert_int_equal(job->outcome, JOB_STATE_FAILED);
    market_done(&market);
}

TEST(without_room_for_a_server_its_job_waits_and_says_so)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = start(&market, true);
    const struct lease *old = job_lead(job);
    fall_silent(&market, old->machine);
    assert_true(lease_is_open(old)); /* nobody else would do it: it may come back */
    market_pass_time(&market, core_settings(market.core)->lost_ms);
    assert_int_equal(old->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_string_equal(job->reason, "the parameter server is gone and has no successor yet: no "
                                     "other machine has room for it");
    market_connect(&market, old->machine);
    assert_ptr_not_equal(job_lead(job), old);
    assert_int_equal(job_lead(job)->machine, old->machine);
    assert_string_equal(job->reason, "");
    market_done(&market);
}

TEST(a_server_on_a_silent_machine_moves_at_once_where_there_is_room)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = start(&market, true);
    const struct lease *old = job_lead(job);
    const uint64_t spare = market_add_machine(&market, "spare", 500, MACHINE_ROLE_SERVER);
    fall_silent(&market, job->workers[0]->machine);
    assert_true(lease_is_open(job->workers[0])); /* a worker is waited for */
    fall_silent(&market, old->machine);
    assert_int_equal(old->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(job_lead(job)->machine, spare);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_done(&market);
}

TEST(a_server_moves_at_once_where_its_job_uses_up_its_maximum_per_hour)
{
    struct market market;
    market_init_demo(&market);
    const int64_t hourly_micro = job_hourly_micro(start(&market, true));
    assert_true(hourly_micro > 0);
    market_done(&market);
    market_init_demo(&market);
    const struct job *job = start_within(&market, true, hourly_micro);
    const struct lease *old = job_lead(job);
    const uint64_t other = market_add_machine(&market, "other", 500, MACHINE_ROLE_SERVER);
    fall_silent(&market, old->machine);
    assert_int_equal(old->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(job_lead(job)->machine, other);
    assert_true(job_hourly_micro(job) <= hourly_micro);
    market_done(&market);
}

TEST(a_machine_that_was_taken_back_or_did_not_start_it_gets_no_server_again)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = start(&market, true);
    const struct lease *first = job_lead(job);
    const uint64_t other = market_add_machine(&market, "other", 500, MACHINE_ROLE_SERVER);
    const uint64_t last = market_add_machine(&market, "last", 500, MACHINE_ROLE_SERVER);
    market_end_lease(&market, first, LEASE_OUTCOME_RECLAIMED, "the lender stopped lending");
    const uint64_t second = job_lead(job)->machine;
    assert_true(second == other || second == last);
    end_with_code(&market, job_lead(job), 0);
    assert_int_equal(job_lead(job)->machine, second == other ? last : other);
    market_done(&market);
}

TEST(a_job_that_did_not_ask_for_successors_fails_with_its_server)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = start(&market, false);
    market_add_machine(&market, "spare", 500, MACHINE_ROLE_SERVER);
    fall_silent(&market, job_lead(job)->machine);
    assert_true(lease_is_open(job_lead(job)));
    end_with_code(&market, job_lead(job), 137);
    assert_int_equal(job->outcome, JOB_STATE_FAILED);
    market_done(&market);
}

TEST(a_server_that_is_gone_while_its_job_stops_gets_no_successor)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = start(&market, true);
    const struct lease *old = job_lead(job);
    market_do(&market,
              &(struct command){.kind = COMMAND_CANCEL_JOB,
                                .cancel_job = {.account = market.borrower, .job = job->id}});
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    end_with_code(&market, old, 137);
    assert_ptr_equal(job_lead(job), old);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_was_killed_gets_a_successor_and_its_workers_stay),
        cmocka_unit_test(a_server_that_says_itself_what_is_wrong_fails_its_job),
        cmocka_unit_test(a_server_that_is_killed_again_and_again_is_given_up),
        cmocka_unit_test(without_room_for_a_server_its_job_waits_and_says_so),
        cmocka_unit_test(a_server_on_a_silent_machine_moves_at_once_where_there_is_room),
        cmocka_unit_test(a_server_moves_at_once_where_its_job_uses_up_its_maximum_per_hour),
        cmocka_unit_test(a_machine_that_was_taken_back_or_did_not_start_it_gets_no_server_again),
        cmocka_unit_test(a_job_that_did_not_ask_for_successors_fails_with_its_server),
        cmocka_unit_test(a_server_that_is_gone_while_its_job_stops_gets_no_successor),
    };
    return cmocka_run_group_tests_name("core_server", tests, NULL, NULL);
}
