/*
 * Jobs with several servers, and replicas that take the lead.
 * covers decide_worker.c apply_lease.c
 */
#include "core/testing_internal.h"

/* Three machines for servers, of room for two each, and two for workers. */
static void set_up(struct market *market)
{
    market_init(market);
    market_add_machine(market, "market", 1000, MACHINE_ROLE_SERVER);
    market_add_machine(market, "crane", 1000, MACHINE_ROLE_SERVER);
    market_add_machine(market, "stork", 1000, MACHINE_ROLE_SERVER);
    market_add_machine(market, "heron", 1000, MACHINE_ROLE_WORKER);
    market_add_machine(market, "owl", 1000, MACHINE_ROLE_WORKER);
}

static struct command ask_for(const struct market *market, int64_t servers, bool has_replica)
{
    struct command command = market_job(market);
    command.submit_job.num_nodes = 2;
    command.submit_job.takes_more_cores = false;
    command.submit_job.replaces_lost = true;
    command.submit_job.server_count = servers;
    command.submit_job.has_replica = has_replica;
    return command;
}

static const struct job *submit(struct market *market, int64_t servers, bool has_replica)
{
    const struct command command = ask_for(market, servers, has_replica);
    return core_job(market->core, market_do(market, &command));
}

static const struct job *start(struct market *market, int64_t servers, bool has_replica)
{
    const struct job *job = submit(market, servers, has_replica);
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(market, job->leases[i]);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    return job;
}

static void lose(struct market *market, const struct lease *lease)
{
    market_end_lease(market, lease, LEASE_OUTCOME_LOST, "its machine is gone");
}

static void take_offline(struct market *market, uint64_t machine)
{
    market_do(market, &(struct command){.kind = COMMAND_MACHINE_GONE,
                                        .machine_gone = {.machine = machine}});
}

static uint64_t machine_named(const struct market *market, const char *name)
{
    for (size_t i = 0; i < core_machine_count(market->core); i++)
        if (strcmp(core_machine_at(market->core, i)->name, name) == 0)
            return core_machine_at(market->core, i)->id;
    fail_msg("there is no %s", name);
    return 0;
}

TEST(servers_go_to_different_machines_while_there_are_any)
{
    struct market market;
    set_up(&market);
    const struct job *job = submit(&market, 3, false);
    assert_int_equal(job->lease_count, 5);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(job->servers[i]->role, LEASE_ROLE_SERVER);
        assert_int_equal(job->servers[i]->rank, i);
        assert_ptr_equal(job->leases[i], job->servers[i]);
    }
    assert_int_not_equal(job->servers[0]->machine, job->servers[1]->machine);
    assert_int_not_equal(job->servers[0]->machine, job->servers[2]->machine);
    assert_int_not_equal(job->servers[1]->machine, job->servers[2]->machine);
    market_done(&market);
}

TEST(more_servers_than_machines_share_them_and_all_or_none_start)
{
    struct market market;
    set_up(&market);
    const struct job *job = submit(&market, 6, false);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(core_machine(market.core, job->servers[i]->machine)->lease_count, 2);
    const struct job *other = submit(&market, 1, false);
    assert_int_equal(other->state, JOB_STATE_PENDING); /* they are full */
    market_done(&market);

    set_up(&market);
    assert_int_equal(submit(&market, 7, false)->state, JOB_STATE_PENDING);
    market_done(&market);
}

TEST(all_servers_are_quoted_held_and_billed)
{
    struct market market;
    set_up(&market);
    struct core_quote one, four;
    struct error error;
    const struct command plain = ask_for(&market, 1, false), large = ask_for(&market, 3, true);
    ASSERT_OK(core_quote(market.core, &plain.submit_job, &one, &error));
    ASSERT_OK(core_quote(market.core, &large.submit_job, &four, &error));
    const struct job *job = start(&market, 3, true);
    const int64_t server_micro = job_lead(job)->quote_micro;
    assert_int_equal(four.wish.total_micro, one.wish.total_micro + 3 * server_micro);
    assert_int_equal(four.placed.total_micro, one.placed.total_micro + 3 * server_micro);
    assert_int_equal(job->quote_micro, four.placed.total_micro);
    market.now_ms += 60000;
    int64_t posted_micro = 0;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct command tick = market_tick(job->leases[i], 1, 60000);
        market_do(&market, &tick);
        assert_true(job->leases[i]->posted_micro > 0);
        posted_micro += job->leases[i]->posted_micro;
    }
    assert_int_equal(job->posted_micro, posted_micro);
    market_done(&market);
}

TEST(a_quote_says_on_how_many_machines_servers_would_be)
{
    struct market market;
    struct core_quote quote;
    struct error error;
    set_up(&market);
    struct command command = ask_for(&market, 2, true);
    ASSERT_OK(core_quote(market.core, &command.submit_job, &quote, &error));
    assert_int_equal(quote.server_machines, 2);
    assert_true(quote.has_replica_room);
    take_offline(&market, machine_named(&market, "stork"));
    take_offline(&market, machine_named(&market, "crane"));
    ASSERT_OK(core_quote(market.core, &command.submit_job, &quote, &error));
    assert_int_equal(quote.result, MATCH_PLACED);
    assert_int_equal(quote.server_machines, 1);
    assert_false(quote.has_replica_room);
    command.submit_job.has_replica = false;
    ASSERT_OK(core_quote(market.core, &command.submit_job, &quote, &error));
    assert_true(quote.has_replica_room);
    market_done(&market);
}

TEST(a_range_server_that_is_lost_gets_a_successor_of_its_rank)
{
    struct market market;
    set_up(&market);
    const struct job *job = start(&market, 2, false);
    const struct lease *lead = job_lead(job), *old = job->servers[1];
    lose(&market, old);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_ptr_equal(job_lead(job), lead);
    assert_ptr_not_equal(job->servers[1], old);
    assert_int_equal(job->servers[1]->rank, 1);
    assert_true(job->servers[1]->fence > old->fence);
    assert_int_not_equal(job->servers[1]->machine, lead->machine);
    market_done(&market);
}

TEST(a_range_server_that_ended_well_leaves_the_verdict_to_the_lead)
{
    struct market market;
    set_up(&market);
    const struct job *job = start(&market, 2, false);
    market_end_lease(&market, job->servers[1], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_end_lease(&market, job_lead(job), LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_STOPPING);
    assert_int_equal(job->outcome, JOB_STATE_SUCCEEDED);
    market_done(&market);
}

TEST(a_server_that_ended_well_is_needed_again_when_its_lead_is_lost)
{
    struct market market;
    set_up(&market);
    const struct job *job = start(&market, 2, false);
    const struct lease *lead = job_lead(job), *range = job->servers[1];
    market_end_lease(&market, range, LEASE_OUTCOME_SUCCEEDED, "");
    assert_ptr_equal(job->servers[1], range); /* as long as the lead may end well, too */
    market.now_ms += 1000;
    lose(&market, lead);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_true(lease_is_open(job_lead(job)));
    const struct lease *next = job->servers[1];
    assert_true(lease_is_open(next));
    assert_true(next->fence > range->fence);
    /* What ended well under the new lead is not needed again. */
    market_run_lease(&market, job_lead(job));
    market_run_lease(&market, next);
    market.now_ms += 1000;
    market_end_lease(&market, next, LEASE_OUTCOME_SUCCEEDED, "");
    assert_ptr_equal(job->servers[1], next);
    market_end_lease(&market, job_lead(job), LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->outcome, JOB_STATE_SUCCEEDED);
    market_done(&market);
}

TEST(a_replica_that_ended_well_is_needed_again_when_its_lead_is_lost)
{
    struct market market;
    set_up(&market);
    const struct job *job = start(&market, 1, true);
    const struct lease *lead = job_lead(job), *replica = job->servers[1];
    market_end_lease(&market, replica, LEASE_OUTCOME_SUCCEEDED, "");
    assert_ptr_equal(job->servers[1], replica);
    lose(&market, lead);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_true(lease_is_open(job_lead(job)) && lease_is_open(job->servers[1]));
    assert_true(job->servers[1]->fence > job_lead(job)->fence);
    market_done(&market);
}

TEST(a_range_server_that_says_what_is_wrong_fails_its_job)
{
    struct market market;
    set_up(&market);
    const struct job *job = start(&market, 2, false);
    market_do(&market, &(struct command){.kind = COMMAND_END_LEASE,
                                         .end_lease = {.lease = job->servers[1]->id,
                                                       .fence = job->servers[1]->fence,
                                                       .outcome = LEASE_OUTCOME_FAILED,
                                                       .exit_code = 1,
                                                       .reason = TEXT("no such model")}});
    assert_int_equal(job->outcome, JOB_STATE_FAILED);
    assert_string_equal(job->reason, "the parameter server failed: no such model");
    market_done(&market);
}

TEST(a_replica_is_younger_than_its_lead_and_elsewhere)
{
    struct market market;
    set_up(&market);
    const struct job *job = submit(&market, 1, true);
    assert_int_equal(job->lease_count, 4);
    const struct lease *replica = job->servers[1];
    assert_int_equal(replica->role, LEASE_ROLE_SERVER);
    assert_int_equal(replica->rank, 1);
    assert_true(replica->fence > job_lead(job)->fence);
    assert_int_not_equal(replica->machine, job_lead(job)->machine);
    market_done(&market);
}

TEST(no_job_waits_for_a_replica_which_comes_when_there_is_room)
{
    struct market market;
    set_up(&market);
    take_offline(&market, machine_named(&market, "crane"));
    take_offline(&market, machine_named(&market, "stork"));
    const struct job *job = start(&market, 1, true); /* there is room beside the lead */
    assert_int_equal(job->lease_count, 3);
    assert_null(job->servers[1]);
    assert_string_equal(job->reason, "the parameter server has no replica yet: no other machine "
                                     "has room for it");
    market_connect(&market, machine_named(&market, "stork"));
    assert_non_null(job->servers[1]);
    assert_int_equal(job->servers[1]->machine, machine_named(&market, "stork"));
    assert_string_equal(job->reason, "");
    market_done(&market);
}

TEST(the_replica_of_a_lead_that_is_lost_takes_its_rank_and_gets_a_replica)
{
    struct market market;
    set_up(&market);
    const struct job *job = start(&market, 2, true);
    const struct lease *old = job_lead(job), *other = job->servers[1], *replica = job->servers[2];
    lose(&market, old);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_PROMOTED), 1);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_ptr_equal(job_lead(job), replica);
    assert_int_equal(replica->rank, 0);
    assert_int_equal(replica->state, LEASE_STATE_RUNNING);
    assert_true(replica->fence > old->fence);
    assert_ptr_equal(job->servers[1], other);
    const struct lease *next = job->servers[2];
    assert_non_null(next);
    assert_true(next->fence > replica->fence);
    assert_int_not_equal(next->machine, replica->machine);
    /* And so on. */
    market_run_lease(&market, next);
    lose(&market, replica);
    assert_ptr_equal(job_lead(job), next);
    market_end_lease(&market, next, LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->outcome, JOB_STATE_SUCCEEDED);
    market_done(&market);
}

TEST(a_silent_lead_gives_way_to_its_replica_though_nobody_else_has_room)
{
    struct market market;
    set_up(&market);
    take_offline(&market, machine_named(&market, "stork"));
    const struct job *job = start(&market, 1, true);
    const struct lease *old = job_lead(job), *replica = job->servers[1];
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {.machine = old->machine}});
    assert_int_equal(old->outcome, LEASE_OUTCOME_LOST);
    assert_ptr_equal(job_lead(job), replica);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_done(&market);
}

TEST(an_owner_who_takes_the_leads_machine_back_hands_over_to_the_replica)
{
    struct market market;
    set_up(&market);
    const struct job *job = start(&market, 1, true);
    const struct lease *old = job_lead(job), *replica = job->servers[1];
    market_do(&market,
              &(struct command){.kind = COMMAND_RECLAIM_LEASES,
                                .reclaim_leases = {.account = old->payee, .lease = old->id}});
    assert_ptr_equal(job_lead(job), old); /* it is asked to stop first */
    market_end_lease(&market, old, LEASE_OUTCOME_RECLAIMED, "");
    assert_ptr_equal(job_lead(job), replica);
    market_done(&market);
}

TEST(a_replica_that_does_not_run_yet_goes_with_its_lead)
{
    struct market market;
    set_up(&market);
    const struct job *job = submit(&market, 1, true);
    const struct lease *old = job_lead(job), *replica = job->servers[1];
    for (size_t i = 0; i < job->lease_count; i++)
        if (job->leases[i] != replica)
            market_run_lease(&market, job->leases[i]);
    lose(&market, old);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_PROMOTED), 0);
    assert_true(replica->stop_wanted_ms > 0);
    assert_int_equal(job_lead(job)->state, LEASE_STATE_OFFERED);
    market_end_lease(&market, replica, LEASE_OUTCOME_STOPPED, "");
    assert_ptr_not_equal(job->servers[1], replica);
    assert_true(job->servers[1]->fence > job_lead(job)->fence);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    market_done(&market);
}

TEST(a_lead_that_says_what_is_wrong_is_not_followed)
{
    struct market market;
    set_up(&market);
    const struct job *job = start(&market, 1, true);
    market_do(&market, &(struct command){.kind = COMMAND_END_LEASE,
                                         .end_lease = {.lease = job_lead(job)->id,
                                                       .fence = job_lead(job)->fence,
                                                       .outcome = LEASE_OUTCOME_FAILED,
                                                       .exit_code = 1,
                                                       .reason = TEXT("no such model")}});
    assert_int_equal(job->outcome, JOB_STATE_FAILED);
    assert_int_equal(market_new_events(&market, EVENT_LEASE_PROMOTED), 0);
    market_done(&market);
}

TEST(workers_that_take_more_cores_leave_room_for_the_replica)
{
    const uint32_t roles = MACHINE_ROLE_WORKER | MACHINE_ROLE_SERVER;
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, roles);
    market_add_machine(&market, "owl", 1000, roles);
    struct command command = ask_for(&market, 1, true);
    command.submit_job.takes_more_cores = true;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    assert_int_equal(job->state, JOB_STATE_STARTING);
    const struct lease *lead = job_lead(job), *replica = job->servers[1];
    assert_non_null(replica);
    assert_int_not_equal(replica->machine, lead->machine);
    /* And the rest is theirs. */
    for (size_t i = 0; i < core_machine_count(market.core); i++)
        assert_int_equal(machine_free(core_machine_at(market.core, i)).cores_milli, 0);
    market_done(&market);
}

TEST(a_job_goes_on_without_its_replica)
{
    struct market market;
    set_up(&market);
    take_offline(&market, machine_named(&market, "stork"));
    const struct job *job = start(&market, 1, true);
    const struct lease *lead = job_lead(job), *replica = job->servers[1];
    const uint64_t at = replica->machine;
    take_offline(&market, at);
    assert_false(lease_is_open(replica));
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_ptr_equal(job_lead(job), lead);
    market.now_ms += 1000;
    market_connect(&market, at);
    assert_true(lease_is_open(job->servers[1])); /* another */
    market_done(&market);
}

TEST(an_extension_lets_a_replica_go_that_is_not_lent_for_that_long)
{
    struct market market;
    set_up(&market);
    const struct job *job = start(&market, 1, true);
    const struct lease *lead = job_lead(job), *replica = job->servers[1];
    const int64_t run_ms = job->request.max_run_ms;
    const struct offer *offer = core_offer(market.core, replica->offer);
    struct command terms = {.kind = COMMAND_SET_OFFER,
                            .set_offer = {.account = replica->payee,
                                          .machine = offer->machine->id,
                                          .offer = offer->id,
                                          .terms = offer_terms(offer)}};
    terms.set_offer.terms.max_lease_ms = run_ms;
    market_do(&market, &terms);
    const struct command more = {
        .kind = COMMAND_EXTEND_JOB,
        .extend_job = {.account = market.borrower, .job = job->id, .max_run_ms = run_ms + 60000}};
    market_do(&market, &more);
    assert_int_equal(job->request.max_run_ms, run_ms + 60000);
    assert_int_equal(lead->max_run_ms, run_ms + 60000);
    assert_int_equal(replica->max_run_ms, run_ms);
    assert_true(replica->stop_wanted_ms > 0);
    market_end_lease(&market, replica, LEASE_OUTCOME_STOPPED, "");
    const struct lease *next = job->servers[1];
    assert_true(lease_is_open(next));
    assert_int_not_equal(next->machine, replica->machine);
    assert_int_not_equal(next->machine, lead->machine);
    market_done(&market);
}

TEST(a_promotion_is_in_the_snapshot)
{
    struct market market;
    struct error error;
    set_up(&market);
    const struct job *job = start(&market, 2, true);
    const struct lease *replica = job->servers[2];
    lose(&market, job_lead(job));
    struct buffer bytes AUTO_BUFFER, again AUTO_BUFFER;
    buffer_init(&bytes, 1 << 24);
    buffer_init(&again, 1 << 24);
    core_snapshot_write(market.core, &bytes);
    AUTO(core) struct core *restored = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&bytes), &restored, &error));
    ASSERT_OK(core_check(restored, &error));
    const struct job *same = core_job(restored, job->id);
    assert_int_equal(job_lead(same)->id, replica->id);
    assert_int_equal(same->servers[2]->id, job->servers[2]->id);
    core_snapshot_write(restored, &again);
    assert_true(text_equal(buffer_text(&bytes), buffer_text(&again)));
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_go_to_different_machines_while_there_are_any),
        cmocka_unit_test(more_servers_than_machines_share_them_and_all_or_none_start),
        cmocka_unit_test(all_servers_are_quoted_held_and_billed),
        cmocka_unit_test(a_quote_says_on_how_many_machines_servers_would_be),
        cmocka_unit_test(a_range_server_that_is_lost_gets_a_successor_of_its_rank),
        cmocka_unit_test(a_range_server_that_ended_well_leaves_the_verdict_to_the_lead),
        cmocka_unit_test(a_server_that_ended_well_is_needed_again_when_its_lead_is_lost),
        cmocka_unit_test(a_replica_that_ended_well_is_needed_again_when_its_lead_is_lost),
        cmocka_unit_test(a_range_server_that_says_what_is_wrong_fails_its_job),
        cmocka_unit_test(a_replica_is_younger_than_its_lead_and_elsewhere),
        cmocka_unit_test(no_job_waits_for_a_replica_which_comes_when_there_is_room),
        cmocka_unit_test(the_replica_of_a_lead_that_is_lost_takes_its_rank_and_gets_a_replica),
        cmocka_unit_test(a_silent_lead_gives_way_to_its_replica_though_nobody_else_has_room),
        cmocka_unit_test(an_owner_who_takes_the_leads_machine_back_hands_over_to_the_replica),
        cmocka_unit_test(a_replica_that_does_not_run_yet_goes_with_its_lead),
        cmocka_unit_test(a_lead_that_says_what_is_wrong_is_not_followed),
        cmocka_unit_test(workers_that_take_more_cores_leave_room_for_the_replica),
        cmocka_unit_test(a_job_goes_on_without_its_replica),
        cmocka_unit_test(an_extension_lets_a_replica_go_that_is_not_lent_for_that_long),
        cmocka_unit_test(a_promotion_is_in_the_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
