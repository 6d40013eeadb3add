/*
 * Jobs that go by a schedule: growth and shrinking at their lead's word.
 * covers decide_resize.c
 */
#include "core/testing_internal.h"

/* One to four workers of a quarter core each, with a server. */
static const struct job *submit_first(struct market *market, int64_t first)
{
    struct command command = market_job(market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.replaces_lost = true;
    command.submit_job.max_total_micro = 0;
    command.submit_job.num_nodes = 1;
    command.submit_job.num_nodes_max = 4;
    command.submit_job.workers_first = first;
    return core_job(market->core, market_do(market, &command));
}

static void run_all(struct market *market, const struct job *job)
{
    for (size_t i = 0; i < job->lease_count; i++)
        if (job->leases[i]->state == LEASE_STATE_OFFERED)
            market_run_lease(market, job->leases[i]);
}

static struct command resize_of(const struct job *job, int64_t workers)
{
    return (struct command){.kind = COMMAND_RESIZE_JOB,
                            .resize_job = {.lease = job_lead(job)->id,
                                           .fence = job_lead(job)->fence,
                                           .workers = workers}};
}

static void resize(struct market *market, const struct job *job, int64_t workers)
{
    const struct command command = resize_of(job, workers);
    market_do(market, &command);
    assert_int_equal(job->workers_wanted, workers);
}

/* Open and not asked to stop. */
static int64_t kept_count(const struct job *job)
{
    int64_t count = 0;
    for (size_t i = 0; i < job->worker_count; i++)
        count += lease_is_open(job->workers[i]) && job->workers[i]->stop_wanted_ms == 0;
    return count;
}

static int64_t available(const struct market *market)
{
    return ledger_holdable_micro(core_balance(market->core, market->borrower));
}

static void market_of_four(struct market *market)
{
    market_init_demo(market);
    market_add_machine(market, "fourth", 250, MACHINE_ROLE_WORKER);
}

static void copy_is_equal(const struct market *market)
{
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    struct error error;
    AUTO(core) struct core *copy = NULL;
    buffer_init(&first, 1 << 20);
    buffer_init(&second, 1 << 20);
    core_snapshot_write(market->core, &first);
    ASSERT_OK(core_snapshot_read(buffer_text(&first), &copy, &error));
    ASSERT_OK(core_check(copy, &error));
    core_snapshot_write(copy, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
}

TEST(a_job_starts_with_as_many_as_its_schedule_wants_first)
{
    struct market market;
    market_of_four(&market);
    const struct job *job = submit_first(&market, 1);
    run_all(&market, job);
    assert_int_equal(kept_count(job), 1);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_add_machine(&market, "fifth", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(kept_count(job), 1); /* there is room, but it wants no more */
    market_done(&market);
    market_of_four(&market);
    job = submit_first(&market, 4);
    assert_int_equal(kept_count(job), 4);
    market_done(&market);
}

TEST(more_that_are_wanted_come_at_once_or_when_there_is_room)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = submit_first(&market, 1);
    run_all(&market, job);
    const int64_t held_micro = core_held_micro(market.core, job->id);
    resize(&market, job, 4);
    assert_int_equal(kept_count(job), 3); /* all there is */
    assert_true(core_held_micro(market.core, job->id) > held_micro);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_add_machine(&market, "fourth", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(kept_count(job), 4);
    copy_is_equal(&market);
    market_add_machine(&market, "fifth", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(kept_count(job), 4);
    market_done(&market);
}

TEST(the_highest_ranks_are_let_go_and_end_well)
{
    struct market market;
    market_of_four(&market);
    const struct job *job = submit_first(&market, 4);
    run_all(&market, job);
    market.now_ms += 10000;
    const struct lease *third = job->workers[2], *fourth = job->workers[3];
    const struct command tick = market_tick(third, 1, 10000);
    market_do(&market, &tick);
    const int64_t balance_micro = available(&market);
    const int64_t quote_micro = job->quote_micro;
    resize(&market, job, 2);
    assert_int_equal(kept_count(job), 2);
    assert_true(third->stop_wanted_ms > 0 && third->is_surplus && fourth->is_surplus);
    copy_is_equal(&market);
    market_end_lease(&market, third, LEASE_OUTCOME_STOPPED, "");
    market_end_lease(&market, fourth, LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(third->outcome, LEASE_OUTCOME_SUCCEEDED);
    assert_int_equal(fourth->outcome, LEASE_OUTCOME_SUCCEEDED);
    /* What they may not cost any more is the borrower's again. */
    const int64_t back_micro = third->quote_micro - third->posted_micro + fourth->quote_micro;
    assert_true(third->posted_micro > 0);
    assert_int_equal(available(&market), balance_micro + back_micro);
    assert_int_equal(job->quote_micro, quote_micro - back_micro);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_int_equal(kept_count(job), 2); /* nobody follows them */
    assert_string_equal(job->reason, "");
    assert_int_equal(core_machine(market.core, third->machine)->lease_count, 0);
    copy_is_equal(&market);
    market_done(&market);
}

TEST(ranks_that_were_let_go_are_filled_again)
{
    struct market market;
    market_of_four(&market);
    const struct job *job = submit_first(&market, 4);
    run_all(&market, job);
    resize(&market, job, 1);
    const struct lease *second = job->workers[1];
    for (size_t i = 2; i < 4; i++)
        market_end_lease(&market, job->workers[i], LEASE_OUTCOME_STOPPED, "");
    resize(&market, job, 3); /* the second has yet to stop */
    assert_int_equal(kept_count(job), 2);
    assert_ptr_equal(job->workers[1], second);
    market_end_lease(&market, second, LEASE_OUTCOME_STOPPED, "");
    assert_int_equal(kept_count(job), 3);
    assert_ptr_not_equal(job->workers[1], second);
    assert_int_equal(job->workers[1]->rank, 1);
    assert_int_equal(job->worker_count, 4);
    copy_is_equal(&market);
    market_done(&market);
}

TEST(who_is_lost_is_replaced_only_where_it_is_wanted)
{
    struct market market;
    market_of_four(&market);
    const struct job *job = submit_first(&market, 3);
    run_all(&market, job);
    resize(&market, job, 2);
    market_end_lease(&market, job->workers[2], LEASE_OUTCOME_LOST, "");
    assert_int_equal(kept_count(job), 2);
    market_end_lease(&market, job->workers[1], LEASE_OUTCOME_LOST, "");
    assert_int_equal(kept_count(job), 2);
    assert_int_equal(job->workers[1]->state, LEASE_STATE_OFFERED);
    market_done(&market);
}

TEST(a_job_whose_last_workers_are_lost_fails_though_others_were_let_go)
{
    struct market market;
    market_init_demo(&market);
    struct command command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.num_nodes = 1;
    command.submit_job.num_nodes_max = 2;
    command.submit_job.workers_first = 2;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    resize(&market, job, 1);
    market_end_lease(&market, job->workers[1], LEASE_OUTCOME_STOPPED, "");
    market_end_lease(&market, job->workers[0], LEASE_OUTCOME_LOST, "");
    assert_int_equal(job->outcome, JOB_STATE_FAILED);
    market_done(&market);
}

TEST(only_the_leads_word_within_the_jobs_range_counts)
{
    struct market market;
    market_of_four(&market);
    const struct job *job = submit_first(&market, 2);
    struct command command = resize_of(job, 3);
    market_refuses(&market, &command, ERROR_REFUSED); /* or does not run yet */
    run_all(&market, job);
    command.resize_job.fence++;
    market_refuses(&market, &command, ERROR_CONFLICT); /* is under fence */
    command.resize_job.lease = job->workers[0]->id;
    command.resize_job.fence = job->workers[0]->fence;
    market_refuses(&market, &command, ERROR_REFUSED); /* does not lead job */
    command.resize_job.lease = 12345;
    market_refuses(&market, &command, ERROR_NOT_FOUND); /* does not exist */
    command = resize_of(job, 0);
    market_refuses(&market, &command, ERROR_INVALID); /* has 1 to 4 workers */
    command = resize_of(job, 5);
    market_refuses(&market, &command, ERROR_INVALID); /* has 1 to 4 workers */
    assert_int_equal(job->workers_wanted, 2);
    resize(&market, job, 2); /* what is known is no news */
    assert_int_equal(market_new_events(&market, EVENT_JOB_RESIZED), 0);
    market_done(&market);
    market_of_four(&market);
    struct command plain = market_job(&market);
    const struct job *other = core_job(market.core, market_do(&market, &plain));
    run_all(&market, other);
    command = resize_of(other, 3);
    market_refuses(&market, &command, ERROR_CONFLICT); /* has no schedule */
    market_done(&market);
}

TEST(growth_keeps_the_jobs_maxima)
{
    struct market market;
    market_of_four(&market);
    struct command command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.num_nodes = command.submit_job.workers_first = 1;
    command.submit_job.num_nodes_max = 4;
    command.submit_job.max_total_micro = 0;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    resize(&market, job, 2);
    const int64_t two_micro = job->quote_micro, two_hourly_micro = job_hourly_micro(job);
    market_done(&market);

    market_of_four(&market);
    command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.num_nodes = command.submit_job.workers_first = 1;
    command.submit_job.num_nodes_max = 4;
    command.submit_job.max_total_micro = two_micro;
    job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    resize(&market, job, 4);
    assert_int_equal(kept_count(job), 2);
    assert_true(job->quote_micro <= two_micro);
    market_done(&market);

    market_of_four(&market);
    command.submit_job.account = market.borrower;
    command.submit_job.max_total_micro = 0;
    command.submit_job.max_hourly_micro = two_hourly_micro;
    job = core_job(market.core, market_do(&market, &command));
    run_all(&market, job);
    resize(&market, job, 4);
    assert_int_equal(kept_count(job), 2);
    assert_true(job_hourly_micro(job) <= two_hourly_micro);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_starts_with_as_many_as_its_schedule_wants_first),
        cmocka_unit_test(more_that_are_wanted_come_at_once_or_when_there_is_room),
        cmocka_unit_test(the_highest_ranks_are_let_go_and_end_well),
        cmocka_unit_test(ranks_that_were_let_go_are_filled_again),
        cmocka_unit_test(who_is_lost_is_replaced_only_where_it_is_wanted),
        cmocka_unit_test(a_job_whose_last_workers_are_lost_fails_though_others_were_let_go),
        cmocka_unit_test(only_the_leads_word_within_the_jobs_range_counts),
        cmocka_unit_test(growth_keeps_the_jobs_maxima),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
