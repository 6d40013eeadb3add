/*
 * Leases that end early, by either side, and jobs that get more time.
 * covers decide_extend.c
 */
#include "core/testing_internal.h"

static const struct job *submit_and_run(struct market *market, bool replaces_lost)
{
    struct command command = market_job(market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.replaces_lost = replaces_lost;
    command.submit_job.max_total_micro = 0;
    const struct job *job = core_job(market->core, market_do(market, &command));
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(market, job->leases[i]);
    return job;
}

static struct command extension(const struct market *market, const struct job *job, int64_t run_ms)
{
    return (struct command){
        .kind = COMMAND_EXTEND_JOB,
        .extend_job = {.account = market->borrower, .job = job->id, .max_run_ms = run_ms}};
}

TEST(an_extended_job_is_held_for_quoted_and_ends_later)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = submit_and_run(&market, false);
    const int64_t quote_micro = job->quote_micro;
    market.now_ms += 100000;
    const struct command more = extension(&market, job, 360000);
    market_do(&market, &more);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_EXTENDED), 4);
    assert_int_equal(job->request.max_run_ms, 360000);
    /* Twice the time, each lease rounded down by itself. */
    assert_in_range(job->quote_micro, 2 * quote_micro, 2 * quote_micro + 4);
    assert_int_equal(core_held_micro(market.core, job->id), job->quote_micro);
    for (size_t i = 0; i < job->lease_count; i++)
        assert_int_equal(job->leases[i]->max_run_ms, 360000);
    market_pass_time(&market, 100000); /* past its first end */
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_pass_time(&market, 160000);
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    market_done(&market);
}

TEST(an_extension_that_cannot_be_is_refused_and_changes_nothing)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = submit_and_run(&market, false);
    struct command more = extension(&market, job, 180000);
    market_refuses(&market, &more, ERROR_INVALID); /* no longer than it is */
    more.extend_job.max_run_ms = PRICE_RUN_MS_MAX + 1;
    market_refuses(&market, &more, ERROR_INVALID);
    more.extend_job.max_run_ms = PRICE_RUN_MS_MAX;
    market_refuses(&market, &more, ERROR_EXHAUSTED); /* dearer than what is there */
    more = extension(&market, job, 360000);
    more.extend_job.account = market.lender;
    market_refuses(&market, &more, ERROR_REFUSED);
    more.extend_job.job = 999;
    market_refuses(&market, &more, ERROR_NOT_FOUND);

    const struct offer *offer = core_offer(market.core, job->leases[1]->offer);
    struct command terms = {.kind = COMMAND_SET_OFFER,
                            .set_offer = {.account = market.lender,
                                          .machine = offer->machine->id,
                                          .offer = offer->id,
                                          .terms = offer_terms(offer)}};
    terms.set_offer.terms.max_lease_ms = 300000;
    market_do(&market, &terms);
    more = extension(&market, job, 360000);
    market_refuses(&market, &more, ERROR_REFUSED); /* lent for five minutes at most */
    more.extend_job.max_run_ms = 300000;
    market_do(&market, &more);
    struct span span = {market.now_ms - 1000, market.now_ms + 310000};
    terms.set_offer.terms.max_lease_ms = 0;
    terms.set_offer.terms.spans = (struct json_array){&span, 1};
    market_do(&market, &terms);
    more.extend_job.max_run_ms = 320000;
    market_refuses(&market, &more, ERROR_REFUSED); /* its window closes before */
    market_do(&market, &(struct command){.kind = COMMAND_WITHDRAW_OFFER,
                                         .withdraw_offer = {market.lender, offer->id}});
    more.extend_job.max_run_ms = 305000;
    market_refuses(&market, &more, ERROR_REFUSED);
    market_done(&market);
}

TEST(an_extension_never_passes_the_maxima)
{
    struct market market;
    market_init_demo(&market);
    struct command command = market_job(&market);
    command.submit_job.takes_more_cores = false;
    command.submit_job.max_total_micro = 2000;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    struct command more = extension(&market, job, 3600000);
    market_refuses(&market, &more, ERROR_EXHAUSTED);
    assert_true(job->quote_micro <= 2000);
    market_done(&market);
}

/* As markets let their operators do before. */
static void move_midnight(struct market *market, int64_t offset_ms)
{
    struct error error = {0};
    struct event event = {.sequence = core_sequence(market->core) + 1,
                          .time_ms = market->now_ms,
                          .kind = EVENT_SETTINGS_CHANGED,
                          .settings_changed = *core_settings(market->core)};
    event.settings_changed.slot_offset_ms = offset_ms;
    ASSERT_OK(core_apply(market->core, &event, &error));
}

TEST(a_job_whose_slots_moved_under_it_is_extended_at_prices_there_are)
{
    const int64_t hour_ms = 3600000;
    for (int64_t hours = -14; hours <= 14; hours++) {
        struct market market;
        market_init_demo(&market);
        const struct job *job = submit_and_run(&market, false);
        move_midnight(&market, hours * hour_ms);
        const struct command more = extension(&market, job, 24 * hour_ms);
        market_do(&market, &more);
        const struct price_lock *lock = job->leases[0]->lock;
        assert_int_equal(lock->slot_count, 5);
        for (int64_t i = 0; i < lock->slot_count; i++)
            assert_int_equal(lock->slots[i].core_micro, price_cold_start().core_micro);
        market_done(&market);
    }
}

TEST(more_time_brings_the_successor_there_was_too_little_for)
{
    struct market market;
    market_init_demo(&market);
    const uint64_t spare = market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    const struct job *job = submit_and_run(&market, true);
    market.now_ms += 178000; /* less than a tick is left */
    market_end_lease(&market, job->workers[0], LEASE_OUTCOME_FAILED, "out of memory");
    assert_false(lease_is_open(job->workers[0]));
    const struct command more = extension(&market, job, 360000);
    market_do(&market, &more);
    assert_true(lease_is_open(job->workers[0]));
    assert_int_equal(job->workers[0]->machine, spare);
    market_done(&market);
}

TEST(what_the_owner_takes_back_is_paid_to_its_last_tick_and_replaced)
{
    struct market market;
    market_init_demo(&market);
    const uint64_t spare = market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    const struct job *job = submit_and_run(&market, true);
    const struct lease *lease = job->workers[1];
    market.now_ms += 60000;
    struct command reclaim = {
        .kind = COMMAND_RECLAIM_LEASES,
        .reclaim_leases = {.account = market.borrower, .machine = lease->machine}};
    market_refuses(&market, &reclaim, ERROR_REFUSED);
    reclaim.reclaim_leases.account = market.lender;
    reclaim.reclaim_leases.lease = lease->id;
    market_refuses(&market, &reclaim, ERROR_INVALID); /* one of the three */
    reclaim.reclaim_leases.machine = 0;
    market_do(&market, &reclaim);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_STOP_WANTED), 1);
    assert_true(lease->is_reclaimed);
    market_do(&market, &(struct command){.kind = COMMAND_END_LEASE,
                                         .end_lease = {.lease = lease->id,
                                                       .fence = lease->fence,
                                                       .outcome = LEASE_OUTCOME_STOPPED,
                                                       .tick_index = 20,
                                                       .wall_ms = 60000}});
    assert_int_equal(lease->outcome, LEASE_OUTCOME_RECLAIMED);
    assert_true(lease->posted_micro > 0);
    assert_int_equal(job->workers[1]->machine, spare);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_refuses(&market, &reclaim, ERROR_CONFLICT);
    market_done(&market);
}

TEST(an_owner_takes_back_all_of_a_machine_or_an_offer)
{
    struct market market;
    market_init_demo(&market);
    const struct job *job = submit_and_run(&market, false);
    const struct lease *lease = job->workers[0];
    market_do(&market, &(struct command){
                           .kind = COMMAND_RECLAIM_LEASES,
                           .reclaim_leases = {.account = market.lender, .offer = lease->offer}});
    assert_true(lease->is_reclaimed);
    market_pass_time(&market, core_settings(market.core)->grace_ms);
    assert_int_equal(lease->outcome, LEASE_OUTCOME_RECLAIMED); /* it did not even answer */
    const struct lease *other = job->workers[1];
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {.machine = other->machine}});
    market_do(&market, &(struct command){.kind = COMMAND_RECLAIM_LEASES,
                                         .reclaim_leases = {.account = market.lender,
                                                            .machine = other->machine}});
    assert_int_equal(other->outcome, LEASE_OUTCOME_RECLAIMED);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_done(&market);
}

TEST(a_borrower_lets_workers_go_but_not_the_last)
{
    struct market market;
    market_init_demo(&market);
    market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    const struct job *job = submit_and_run(&market, true);
    struct command release = {
        .kind = COMMAND_RELEASE_LEASE,
        .release_lease = {.account = market.lender, .lease = job->workers[2]->id}};
    market_refuses(&market, &release, ERROR_REFUSED);
    release.release_lease.account = market.borrower;
    market_do(&market, &release);
    market_refuses(&market, &release, ERROR_CONFLICT);
    market_end_lease(&market, job->workers[2], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->workers[2]->outcome, LEASE_OUTCOME_STOPPED); /* its work was not done */
    assert_int_equal(job->lease_count, 4);                             /* nobody follows */
    release.release_lease.lease = job->leases[0]->id;
    market_refuses(&market, &release, ERROR_CONFLICT); /* the parameter server */
    release.release_lease.lease = job->workers[1]->id;
    market_do(&market, &release);
    release.release_lease.lease = job->workers[0]->id;
    market_refuses(&market, &release, ERROR_CONFLICT); /* the last */
    release.release_lease.lease = 999;
    market_refuses(&market, &release, ERROR_NOT_FOUND);
    market_done(&market);
}

TEST(an_extension_after_a_slot_s_end_is_signed_at_what_was_checked)
{
    struct market market;
    market_init_demo(&market);
    const int64_t slot_ends_ms = (TEST_NOW / SLOT_MS + 1) * SLOT_MS;
    market_pass_time(&market, slot_ends_ms - 60000 - market.now_ms);
    const struct job *job = submit_and_run(&market, false);
    market.now_ms = slot_ends_ms + 60000; /* nobody has said so yet */
    const struct command more = extension(&market, job, INT64_C(46800000));
    market_do(&market, &more);
    assert_int_equal(market_new_events(&market, EVENT_SLOT_CLOSED), 1);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_EXTENDED), 4);
    assert_int_equal(core_held_micro(market.core, job->id), job->quote_micro);
    assert_int_equal(job_committed_micro(job), job->quote_micro);
    market_done(&market);
}

TEST(who_was_let_go_has_no_successor_however_it_stopped)
{
    struct market market;
    market_init_demo(&market);
    market_add_machine(&market, "spare", 250, MACHINE_ROLE_WORKER);
    const struct job *job = submit_and_run(&market, true);
    struct command release = {
        .kind = COMMAND_RELEASE_LEASE,
        .release_lease = {.account = market.borrower, .lease = job->workers[2]->id}};
    market_do(&market, &release);
    market_pass_time(&market, core_settings(market.core)->grace_ms);
    assert_int_equal(job->workers[2]->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(job->lease_count, 4);
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {job->workers[1]->machine}});
    release.release_lease.lease = job->workers[1]->id;
    market_do(&market, &release);
    assert_int_equal(job->workers[1]->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(job->lease_count, 4);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_extended_job_is_held_for_quoted_and_ends_later),
        cmocka_unit_test(an_extension_that_cannot_be_is_refused_and_changes_nothing),
        cmocka_unit_test(an_extension_never_passes_the_maxima),
        cmocka_unit_test(a_job_whose_slots_moved_under_it_is_extended_at_prices_there_are),
        cmocka_unit_test(more_time_brings_the_successor_there_was_too_little_for),
        cmocka_unit_test(what_the_owner_takes_back_is_paid_to_its_last_tick_and_replaced),
        cmocka_unit_test(an_owner_takes_back_all_of_a_machine_or_an_offer),
        cmocka_unit_test(a_borrower_lets_workers_go_but_not_the_last),
        cmocka_unit_test(an_extension_after_a_slot_s_end_is_signed_at_what_was_checked),
        cmocka_unit_test(who_was_let_go_has_no_successor_however_it_stopped),
    };
    return cmocka_run_group_tests_name("core_extend", tests, NULL, NULL);
}
