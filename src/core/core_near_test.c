/* Jobs that may only have machines near each other; covers near.c. */
#include "core/testing_internal.h"
#include "market/pair.h"

static uint64_t add_machine(struct market *market, const char *name, int64_t rtt_us)
{
    struct command enrol = market_enrolment(market, market->lender, name, 250, MACHINE_ROLE_WORKER);
    enrol.enrol_machine.probe.rtt_us = rtt_us;
    const uint64_t machine = market_do(market, &enrol);
    market_connect(market, machine);
    return machine;
}

static struct command pair_command(uint64_t low, uint64_t high, int64_t rtt_us)
{
    return (struct command){.kind = COMMAND_REPORT_PAIR, .report_pair = {low, high, rtt_us}};
}

static void measure(struct market *market, uint64_t low, uint64_t high, int64_t rtt_us)
{
    const struct command command = pair_command(low, high, rtt_us);
    market_do(market, &command);
}

static struct command near_job(const struct market *market, int64_t num_nodes)
{
    struct command command = market_job(market);
    command.submit_job.num_nodes = num_nodes;
    command.submit_job.server = (struct resources){0};
    command.submit_job.replaces_lost = true;
    command.submit_job.wishes.max_rtt_us = 20000;
    return command;
}

static bool has_worker_at(const struct job *job, uint64_t machine)
{
    for (size_t i = 0; i < job->worker_count; i++)
        if (lease_is_open(job->workers[i]) && job->workers[i]->machine == machine)
            return true;
    return false;
}

TEST(a_job_that_waits_starts_when_machines_turn_out_to_be_near_each_other)
{
    struct market market;
    market_init(&market);
    const uint64_t a = add_machine(&market, "a", 60000), b = add_machine(&market, "b", 61000);
    const uint64_t far = add_machine(&market, "far", 50000);
    const struct command command = near_job(&market, 2);
    const struct job *job = core_job(market.core, market_do(&market, &command));
    assert_int_equal(job->state, JOB_STATE_PENDING);
    assert_int_equal(core_seeker_count(market.core), 1);
    struct core_seeker seeker;
    core_seeker(market.core, 0, &seeker);
    assert_int_equal(seeker.job, job->id);
    assert_int_equal(seeker.machine_count, 3);
    measure(&market, a, far, 110000);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    measure(&market, a, b, 700);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    assert_true(has_worker_at(job, a) && has_worker_at(job, b));
    assert_int_equal(core_seeker_count(market.core), 0);
    market_done(&market);
}

TEST(a_set_is_found_whichever_pair_of_it_comes_last)
{
    static const int orders[2][3][2] = {{{0, 1}, {1, 2}, {0, 2}}, {{1, 2}, {0, 2}, {0, 1}}};
    for (size_t k = 0; k < 2; k++) {
        struct market market;
        market_init(&market);
        const uint64_t machines[] = {add_machine(&market, "a", 60000),
                                     add_machine(&market, "b", 61000),
                                     add_machine(&market, "c", 62000)};
        const struct command command = near_job(&market, 3);
        const struct job *job = core_job(market.core, market_do(&market, &command));
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(job->state, JOB_STATE_PENDING);
            measure(&market, machines[orders[k][i][0]], machines[orders[k][i][1]], 900);
        }
        assert_int_equal(job->state, JOB_STATE_STARTING);
        market_done(&market);
    }
}

TEST(a_successor_may_be_near_by_a_direct_path)
{
    struct market market;
    market_init(&market);
    const uint64_t a = add_machine(&market, "a", 60000), b = add_machine(&market, "b", 61000);
    const uint64_t c = add_machine(&market, "c", 62000);
    measure(&market, a, b, 700);
    const struct command command = near_job(&market, 2);
    const struct job *job = core_job(market.core, market_do(&market, &command));
    assert_int_equal(job->state, JOB_STATE_STARTING);
    for (size_t i = 0; i < job->worker_count; i++)
        market_run_lease(&market, job->workers[i]);
    market_do(&market,
              &(struct command){.kind = COMMAND_MACHINE_GONE, .machine_gone = {.machine = b}});
    assert_false(has_worker_at(job, c));
    assert_int_equal(core_seeker_count(market.core), 1);
    struct core_seeker seeker;
    core_seeker(market.core, 0, &seeker);
    assert_int_equal(seeker.machine_count, 2); /* who has room, and who has a worker of it */
    measure(&market, a, c, 800);
    assert_true(has_worker_at(job, a) && has_worker_at(job, c));
    market_done(&market);
}

TEST(a_machine_that_left_is_near_nobody)
{
    struct market market;
    market_init(&market);
    const uint64_t a = add_machine(&market, "a", 60000), b = add_machine(&market, "b", 61000);
    measure(&market, a, b, 700);
    market_do(&market,
              &(struct command){.kind = COMMAND_MACHINE_GONE, .machine_gone = {.machine = b}});
    const struct command late = pair_command(a, b, 700);
    market_refuses(&market, &late, ERROR_CONFLICT);
    market_connect(&market, b);
    const struct command command = near_job(&market, 2);
    const struct job *job = core_job(market.core, market_do(&market, &command));
    assert_int_equal(job->state, JOB_STATE_PENDING);
    market_done(&market);
}

TEST(only_two_machines_that_are_there_have_a_distance)
{
    struct market market;
    market_init(&market);
    const uint64_t a = add_machine(&market, "a", 60000), b = add_machine(&market, "b", 61000);
    const struct command refused[] = {pair_command(b, a, 700), pair_command(a, a, 700),
                                      pair_command(a, b, 0), pair_command(a, b, -5),
                                      pair_command(a, b, MACHINE_RTT_US_MAX + 1)};
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        market_refuses(&market, &refused[i], ERROR_INVALID);
    const struct command unknown = pair_command(a, 9999, 700);
    market_refuses(&market, &unknown, ERROR_NOT_FOUND);
    market_done(&market);
}

TEST(what_is_known_of_pairs_replays_and_survives_a_snapshot)
{
    struct market market;
    market_init(&market);
    const uint64_t a = add_machine(&market, "a", 60000), b = add_machine(&market, "b", 61000);
    const uint64_t c = add_machine(&market, "c", 62000);
    measure(&market, a, b, 700);
    market_pass_time(&market, 5000);
    measure(&market, b, c, 900);
    measure(&market, a, b, 650);
    struct error error;
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER, third AUTO_BUFFER;
    buffer_init(&first, 1 << 20);
    buffer_init(&second, 1 << 20);
    buffer_init(&third, 1 << 20);
    core_snapshot_write(market.core, &first);
    AUTO(core) struct core *copy = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&first), &copy, &error));
    ASSERT_OK(core_check(copy, &error));
    core_snapshot_write(copy, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
    AUTO(core) struct core *replayed = core_new();
    for (size_t i = 0; i < market.events.count; i++)
        ASSERT_OK(core_apply(replayed, &market.events.items[i], &error));
    core_snapshot_write(replayed, &third);
    assert_string_equal(buffer_string(&first), buffer_string(&third));
    assert_int_equal(pair_direct_us(core_machine(copy, b), core_machine(copy, a), market.now_ms),
                     650);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_waits_starts_when_machines_turn_out_to_be_near_each_other),
        cmocka_unit_test(a_set_is_found_whichever_pair_of_it_comes_last),
        cmocka_unit_test(a_successor_may_be_near_by_a_direct_path),
        cmocka_unit_test(a_machine_that_left_is_near_nobody),
        cmocka_unit_test(only_two_machines_that_are_there_have_a_distance),
        cmocka_unit_test(what_is_known_of_pairs_replays_and_survives_a_snapshot),
    };
    return cmocka_run_group_tests_name("core_near", tests, NULL, NULL);
}
