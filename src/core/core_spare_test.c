/*
 * Spare time: free, last in line, and over as soon as one who pays needs the machine.
 * covers decide_spare.c, ways_out.c
 */
#include "core/match_rounds.h"
#include "core/testing_queue_internal.h"

static void set_grant(struct market *market, int64_t grant_micro)
{
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = *core_settings(market->core)};
    change.change_settings.grant_micro = grant_micro;
    market_do(market, &change);
}

/* With so many credits. */
static uint64_t open_poor(struct market *market, const char *name, int64_t micro)
{
    const int64_t grant_micro = core_settings(market->core)->grant_micro;
    set_grant(market, micro);
    const uint64_t account = market_open_account(market, name);
    set_grant(market, grant_micro);
    return account;
}

/* A machine whose only offer gives its unsold time away. */
static struct machine *add_spare_machine(struct market *market, const char *name,
                                         int64_t cores_milli)
{
    struct command enrol = market_enrolment(market, market->lender, name, cores_milli,
                                            MACHINE_ROLE_WORKER | MACHINE_ROLE_SERVER);
    enrol.enrol_machine.offer.is_spare = true;
    const uint64_t machine = market_do(market, &enrol);
    market_connect(market, machine);
    return map_get(&market->core->machines, machine);
}

static struct command spare_job(uint64_t account, int64_t num_nodes)
{
    struct command command = some_job(account, num_nodes, 30 * MINUTE);
    command.submit_job.is_spare = true;
    return command;
}

static struct job *submit_spare(struct market *market, uint64_t account, int64_t num_nodes)
{
    const struct command command = spare_job(account, num_nodes);
    return submit(market, &command);
}

static struct job *submit_paying(struct market *market, int64_t num_nodes)
{
    const struct command command = some_job(market->borrower, num_nodes, 5 * MINUTE);
    return submit(market, &command);
}

/* Read back, the state is the same to the byte. */
static void assert_snapshot_holds(const struct market *market)
{
    struct error error = {0};
    AUTO(core) struct core *copy = NULL;
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 1 << 22);
    buffer_init(&second, 1 << 22);
    core_snapshot_write(market->core, &first);
    ASSERT_OK(core_snapshot_read(buffer_text(&first), &copy, &error));
    ASSERT_OK(core_check(copy, &error));
    core_snapshot_write(copy, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
}

static void assert_replays(const struct market *market)
{
    struct error error = {0};
    AUTO(core) struct core *copy = core_new();
    for (size_t i = 0; i < market->events.count; i++)
        ASSERT_OK(core_apply(copy, &market->events.items[i], &error));
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 1 << 22);
    buffer_init(&second, 1 << 22);
    core_snapshot_write(market->core, &first);
    core_snapshot_write(copy, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
}

TEST(a_member_with_next_to_nothing_has_unsold_time_for_free)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 999999);
    const struct machine *machine = add_spare_machine(&market, "wren", 1000);
    const int64_t earned_micro = market_balance(&market, market.lender);
    const struct job *job = submit_spare(&market, poor, 1);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    assert_true(job->leases[0]->is_spare);
    market_run_lease(&market, job->leases[0]);
    market.now_ms += 10 * MINUTE;
    const struct command tick = market_tick(job->leases[0], 1, 10 * MINUTE);
    market_do(&market, &tick);
    assert_int_equal(job->leases[0]->wall_ms, 10 * MINUTE);
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
    assert_int_equal(job->posted_micro, 0);
    assert_int_equal(market_balance(&market, poor), 999999);
    assert_int_equal(market_balance(&market, market.lender), earned_micro);
    /* Nor does it make a name: accounts are free. */
    assert_int_equal(machine->reputation.completed, 0);
    assert_int_equal(machine->reputation.earned_micro, 0);
    assert_int_equal(core_account(market.core, poor)->queue_finish_tag, 0);
    assert_replays(&market);
    market_done(&market);
}

TEST(whoever_has_a_credit_held_or_not_pays)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 1000000);
    add_spare_machine(&market, "wren", 1000);
    const struct command spare = spare_job(poor, 1);
    market_refuses(&market, &spare, ERROR_REFUSED);
    submit_paying(&market, 1);
    const struct command held = spare_job(market.borrower, 1);
    market_refuses(&market, &held, ERROR_REFUSED);
    market_done(&market);
}

TEST(spare_time_goes_with_neither_deadline_nor_rush)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 0);
    struct command spare = spare_job(poor, 1);
    spare.submit_job.is_rush = true;
    market_refuses(&market, &spare, ERROR_INVALID);
    spare.submit_job.is_rush = false;
    spare.submit_job.start = JOB_START_CHEAPEST;
    spare.submit_job.deadline_ms = market.now_ms + SLOT_MS;
    market_refuses(&market, &spare, ERROR_INVALID);
    market_done(&market);
}

TEST(only_offers_that_give_it_away_are_taken_whatever_they_ask_of_others)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 0);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const struct job *job = submit_spare(&market, poor, 1);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    struct command enrol =
        market_enrolment(&market, market.lender, "wren", 1000, MACHINE_ROLE_WORKER);
    enrol.enrol_machine.offer.is_spare = true;
    enrol.enrol_machine.offer.minimum.core_micro = 900000;
    market_connect(&market, market_do(&market, &enrol));
    assert_int_equal(job->state, JOB_STATE_STARTING);
    assert_int_equal(job->leases[0]->quote_micro, 0);
    market_done(&market);
}

TEST(who_pays_ends_it_at_once_and_it_resumes_when_they_have_gone)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 0);
    add_spare_machine(&market, "wren", 1000);
    const struct job *spare = submit_spare(&market, poor, 1);
    const struct lease *first = spare->leases[0];
    market_run_lease(&market, first);
    const struct job *paying = submit_paying(&market, 1);
    assert_int_equal(paying->state, JOB_STATE_STARTING);
    assert_int_equal(first->outcome, LEASE_OUTCOME_PREEMPTED);
    assert_string_equal(first->reason, "a paying job needs the machine");
    assert_int_equal(spare->state, JOB_STATE_PENDING);
    assert_string_equal(spare->reason, "waits again: a paying job needs the machine");
    assert_int_equal(spare->started_ms, 0);
    assert_int_equal(spare->former_count, 1);
    /* The machine is told to let go before it is given the next. */
    size_t ended_at = 0, offered_at = 0;
    for (size_t i = market.seen; i < market.events.count; i++) {
        ended_at = market.events.items[i].kind == EVENT_LEASE_ENDED ? i : ended_at;
        offered_at = market.events.items[i].kind == EVENT_LEASE_OFFERED ? i : offered_at;
    }
    assert_true(ended_at > 0 && ended_at < offered_at);
    assert_snapshot_holds(&market);

    market_run_lease(&market, paying->leases[0]);
    market_end_lease(&market, paying->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(spare->state, JOB_STATE_STARTING);
    assert_int_equal(spare->lease_count, 1);
    assert_true(spare->leases[0] != first);
    assert_snapshot_holds(&market);
    assert_replays(&market);
    market_done(&market);
}

TEST(only_what_is_in_the_way_ends_the_newest_first)
{
    struct market market;
    market_init(&market);
    const uint64_t ada = open_poor(&market, "ada", 0), bob = open_poor(&market, "bob", 0);
    add_spare_machine(&market, "wren", 3000);
    const struct job *older = submit_spare(&market, ada, 1);
    const struct job *newer = submit_spare(&market, bob, 1);
    assert_int_equal(submit_paying(&market, 1)->state, JOB_STATE_STARTING);
    assert_int_equal(older->state, JOB_STATE_STARTING);
    assert_int_equal(newer->state, JOB_STATE_STARTING);
    const struct command second = some_job(market.borrower, 1, 5 * MINUTE);
    assert_int_equal(submit(&market, &second)->state, JOB_STATE_STARTING);
    assert_int_equal(older->state, JOB_STATE_STARTING);
    assert_int_equal(newer->state, JOB_STATE_PENDING);
    market_done(&market);
}

TEST(a_worker_that_is_ended_gets_another_place_if_there_is_one)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 0);
    struct machine *both = add_spare_machine(&market, "heron", 1000);
    struct command command = spare_job(poor, 2);
    command.submit_job.worker.cores_milli = 500;
    command.submit_job.server = (struct resources){.cores_milli = 500, .ram_bytes = MIB};
    command.submit_job.replaces_lost = true;
    add_spare_machine(&market, "owl", 500);
    const struct job *job = submit(&market, &command);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    const struct lease *owls =
        job->workers[0]->machine == both->id ? job->workers[1] : job->workers[0];
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(&market, job->leases[i]);
    add_spare_machine(&market, "wren", 500);
    /* The fastest is asked first: whichever it is, the job goes on there or at the other one. */
    struct command paying = some_job(market.borrower, 2, 5 * MINUTE);
    paying.submit_job.worker.cores_milli = 500;
    paying.submit_job.num_nodes = 1;
    for (int i = 0; i < 2 && owls->outcome == LEASE_OUTCOME_NONE; i++)
        submit(&market, &paying);
    assert_int_equal(owls->outcome, LEASE_OUTCOME_PREEMPTED);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_replays(&market);
    market_done(&market);
}

TEST(a_server_on_a_silent_machine_moves_at_once_where_there_is_room)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 0);
    add_spare_machine(&market, "heron", 1000);
    add_spare_machine(&market, "owl", 1000);
    struct command command = spare_job(poor, 1);
    command.submit_job.server = (struct resources){.cores_milli = 1000, .ram_bytes = MIB};
    command.submit_job.replaces_lost = true;
    const struct job *job = submit(&market, &command);
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(&market, job->leases[i]);
    const struct lease *old = job_lead(job);
    const struct machine *wren = add_spare_machine(&market, "wren", 1000);
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {.machine = old->machine}});
    assert_int_equal(old->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(job_lead(job)->machine, wren->id);
    assert_int_equal(job->state, JOB_STATE_RUNNING);
    assert_replays(&market);
    market_done(&market);
}

TEST(one_job_of_an_account_has_it_at_a_time)
{
    struct market market;
    market_init(&market);
    const uint64_t ada = open_poor(&market, "ada", 0), bob = open_poor(&market, "bob", 0);
    add_spare_machine(&market, "wren", 2000);
    const struct job *first = submit_spare(&market, ada, 1);
    const struct job *second = submit_spare(&market, ada, 1);
    const struct job *other = submit_spare(&market, bob, 1);
    assert_int_equal(first->state, JOB_STATE_STARTING);
    assert_int_equal(second->state, JOB_STATE_PENDING);
    assert_int_equal(other->state, JOB_STATE_STARTING);
    market_run_lease(&market, first->leases[0]);
    market_end_lease(&market, first->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(second->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(an_account_has_only_so_many_jobs_that_wait_for_it)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 0), other = open_poor(&market, "other", 0);
    const struct job *first = submit_spare(&market, poor, 1);
    for (int i = 1; i < CORE_SPARE_WAITING_MAX; i++)
        submit_spare(&market, poor, 1);
    const struct command more = spare_job(poor, 1);
    market_refuses(&market, &more, ERROR_CONFLICT);
    submit_spare(&market, other, 1);
    market_do(&market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                         .cancel_job = {.account = poor, .job = first->id}});
    submit(&market, &more);
    market_refuses(&market, &more, ERROR_CONFLICT);
    market_done(&market);
}

TEST(what_is_reserved_for_the_first_in_the_line_is_left_alone)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 0);
    add_spare_machine(&market, "heron", 1000);
    add_spare_machine(&market, "wren", 1000);
    const struct job *running = submit_paying(&market, 1);
    const struct job *waiting = submit_paying(&market, 2);
    assert_int_equal(waiting->state, JOB_STATE_PENDING);
    const struct job *spare = submit_spare(&market, poor, 1);
    assert_int_equal(spare->state, JOB_STATE_PENDING);
    market_run_lease(&market, running->leases[0]);
    market_end_lease(&market, running->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(waiting->state, JOB_STATE_STARTING);
    assert_int_equal(spare->state, JOB_STATE_PENDING);
    market_done(&market);
}

static struct core_price_close close_with(bool with_spare)
{
    struct market market;
    market_init(&market);
    const uint64_t ada = open_poor(&market, "ada", 0), bob = open_poor(&market, "bob", 0);
    add_spare_machine(&market, "wren", 2000);
    if (with_spare) {
        struct command runs = spare_job(ada, 1), waits = spare_job(bob, 9);
        runs.submit_job.max_run_ms = 2 * SLOT_MS;
        market_run_lease(&market, submit(&market, &runs)->leases[0]);
        assert_int_equal(submit(&market, &waits)->state, JOB_STATE_PENDING);
    }
    struct command paying = some_job(market.borrower, 1, 2 * SLOT_MS);
    market_run_lease(&market, submit(&market, &paying)->leases[0]);
    market_pass_time(&market, SLOT_MS);
    assert_int_equal(core_price_close_count(market.core), 1);
    const struct core_price_close close = *core_price_close_at(market.core, 0);
    market_done(&market);
    return close;
}

TEST(it_is_neither_wanted_nor_lent_in_any_price)
{
    const struct core_price_close with = close_with(true), without = close_with(false);
    assert_true(without.inputs[PRICE_CORE].wanted_milli_s > 0);
    assert_memory_equal(&with.inputs, &without.inputs, sizeof(with.inputs));
}

TEST(a_machine_that_vanishes_with_it_is_known_for_that_one_taken_back_is_not)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 0);
    const struct machine *machine = add_spare_machine(&market, "wren", 1000);
    const struct job *job = submit_spare(&market, poor, 1);
    market_run_lease(&market, job->leases[0]);
    market_do(&market, &(struct command){
                           .kind = COMMAND_RECLAIM_LEASES,
                           .reclaim_leases = {.account = market.lender, .machine = machine->id}});
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_STOPPED, "");
    assert_int_equal(job->state, JOB_STATE_FAILED);
    assert_int_equal(machine->reputation.reclaimed, 0);
    const struct job *next = submit_spare(&market, poor, 1);
    market_run_lease(&market, next->leases[0]);
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                         .machine_silent = {.machine = machine->id}});
    market_pass_time(&market, core_settings(market.core)->lost_ms);
    assert_int_equal(next->state, JOB_STATE_FAILED);
    assert_int_equal(machine->reputation.lost, 1);
    market_done(&market);
}

TEST(a_machine_cannot_say_that_a_lease_was_preempted)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const struct job *job = submit_paying(&market, 1);
    const struct command end = {.kind = COMMAND_END_LEASE,
                                .end_lease = {.lease = job->leases[0]->id,
                                              .fence = job->leases[0]->fence,
                                              .outcome = LEASE_OUTCOME_PREEMPTED}};
    market_refuses(&market, &end, ERROR_INVALID);
    market_done(&market);
}

TEST(a_log_that_gives_spare_time_to_who_can_pay_does_not_replay)
{
    struct market market;
    market_init(&market);
    const uint64_t poor = open_poor(&market, "poor", 0);
    add_spare_machine(&market, "wren", 1000);
    submit_spare(&market, poor, 1);
    struct error error = {0};
    AUTO(core) struct core *copy = core_new();
    for (size_t i = 0; i < market.events.count; i++) {
        struct event event = market.events.items[i];
        if (event.kind == EVENT_JOB_SUBMITTED)
            event.job_submitted.request.account = market.borrower;
        if (event.kind == EVENT_LEASE_OFFERED) {
            ASSERT_FAILS(core_apply(copy, &event, &error), ERROR_CORRUPT);
            break;
        }
        ASSERT_OK(core_apply(copy, &event, &error));
    }
    market_done(&market);
}

static const char *explain(struct market *market, const struct job_request *request,
                           struct buffer *words)
{
    struct match_explanation why;
    struct core_quote quote;
    struct error error = {0};
    ASSERT_OK(core_quote(market->core, request, &quote, &error));
    buffer_clear(words);
    core_explain_request(market->core, request, quote.result, &why, words);
    return buffer_string(words);
}

TEST(who_cannot_pay_is_told_the_ways_out_with_their_numbers)
{
    struct market market;
    market_init(&market);
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 4096);
    /* A core for an hour costs 0.02, a worker of 1 MiB of memory hardly more. */
    const uint64_t poor = open_poor(&market, "poor", 50000);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof(name), "machine-%d", i);
        market_add_machine(&market, name, 1000, MACHINE_ROLE_WORKER);
    }
    const struct command job = some_job(poor, 4, 60 * MINUTE);
    const char *said = explain(&market, &job.submit_job, &words);
    assert_non_null(
        strstr(said, "\n- lend a plain machine of one core and 1 GiB for 2 hours: "
                     "leased in full at today's prices it earns 0.022000 credits an hour, and "
                     "0.030000 credits are missing"));
    assert_non_null(
        strstr(said, "\n- no slot within two days is cheaper than this one, 0.080000 "));
    assert_non_null(
        strstr(said, "\n- 0.050000 credits pay for 2 workers on machines of the reference speed: "
                     "\"num_nodes: 2\""));
    assert_null(strstr(said, "spare"));

    add_spare_machine(&market, "wren", 1000);
    said = explain(&market, &job.submit_job, &words);
    assert_non_null(strstr(said, "\n- 1 offer gives unsold time away"));
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_with_next_to_nothing_has_unsold_time_for_free),
        cmocka_unit_test(whoever_has_a_credit_held_or_not_pays),
        cmocka_unit_test(spare_time_goes_with_neither_deadline_nor_rush),
        cmocka_unit_test(only_offers_that_give_it_away_are_taken_whatever_they_ask_of_others),
        cmocka_unit_test(who_pays_ends_it_at_once_and_it_resumes_when_they_have_gone),
        cmocka_unit_test(only_what_is_in_the_way_ends_the_newest_first),
        cmocka_unit_test(a_worker_that_is_ended_gets_another_place_if_there_is_one),
        cmocka_unit_test(a_server_on_a_silent_machine_moves_at_once_where_there_is_room),
        cmocka_unit_test(one_job_of_an_account_has_it_at_a_time),
        cmocka_unit_test(an_account_has_only_so_many_jobs_that_wait_for_it),
        cmocka_unit_test(what_is_reserved_for_the_first_in_the_line_is_left_alone),
        cmocka_unit_test(it_is_neither_wanted_nor_lent_in_any_price),
        cmocka_unit_test(a_machine_that_vanishes_with_it_is_known_for_that_one_taken_back_is_not),
        cmocka_unit_test(who_cannot_pay_is_told_the_ways_out_with_their_numbers),
        cmocka_unit_test(a_machine_cannot_say_that_a_lease_was_preempted),
        cmocka_unit_test(a_log_that_gives_spare_time_to_who_can_pay_does_not_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
