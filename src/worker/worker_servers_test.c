/*
 * The program as its daemon runs it, with several parameter servers and a replica, and a model
 * whose ranges are of more than one run.
 *
 * covers peer_table.c, role_range.c, role_server.c, role_server_model.c, role_server_report.c
 */
#include "worker/worker_fixture_internal.h"

enum { RANGE = SERVER + 1, REPLICA = SERVER + 3 }; /* of three servers */

static const char goal[] = "\"model\":\"mlp\",\"batch\":16,\"epochs\":100000,"
                           "\"optimizer\":{\"lr\":0.1},"
                           "\"target\":{\"accuracy\":0.95,\"min_time\":\"2s\"}";

static const char endless[] = "\"model\":\"mlp\",\"batch\":16,\"epochs\":100000";

static void assert_model_left(struct work_job *job, uint32_t lead)
{
    const struct process *server = &job->processes[lead];
    job_finish(job);
    if (!server->server.is_final || server->status != 0)
        fail_msg("the server ended with %d: %s", server->status, server->message);
    assert_true(server->artifacts >= 2);
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_int_equal(job->processes[i].status, 0);
        assert_true(job->processes[i].worker.commits > 0);
    }
}

TEST(a_job_with_three_servers_reaches_its_target)
{
    AUTO(work_job)
    struct work_job *job = job_start(goal, "\"policy\":\"bsp\",\"servers\":3,\"gamma\":\"500ms\"");
    assert_model_left(job, SERVER);
    assert_true(job->processes[SERVER].server.test_accuracy >= 0.95);
    for (uint32_t i = RANGE; i < REPLICA; i++) {
        assert_true(job->processes[i].is_ready && job->processes[i].is_ok);
        assert_int_equal(job->processes[i].status, 0);
    }
}

static void kill_hard(struct work_job *job, uint32_t index)
{
    struct process *process = &job->processes[index];
    assert_int_equal(kill(process->pid, SIGKILL), 0);
    while (process->pid > 0)
        job_turn(job);
}

/* Some steps of all workers together are in the model. */
static void wait_for_steps(struct work_job *job, uint64_t steps)
{
    while (job->processes[SERVER].server.steps < steps)
        job_turn(job);
}

TEST(a_replica_takes_the_place_of_a_killed_lead)
{
    AUTO(work_job)
    struct work_job *job =
        job_start(endless, "\"policy\":\"bsp\",\"servers\":3,\"replica\":true,\"gamma\":\"500ms\"");
    wait_for_steps(job, 100);
    /* It has had time to be sent what there is, and reports go on meanwhile. */
    const int64_t seen_ms = job->processes[SERVER].server.elapsed_ms;
    while (job->processes[SERVER].server.elapsed_ms < seen_ms + 1500)
        job_turn(job);
    const uint64_t steps = job->processes[SERVER].server.steps;
    assert_true(job->processes[REPLICA].is_ready); /* it has a model */
    kill_hard(job, SERVER);
    for (uint32_t i = 0; i < WORKERS; i++)
        send_peer(job, REPLICA, i);
    for (uint32_t i = RANGE; i < REPLICA; i++)
        send_peer(job, REPLICA, i);
    for (uint32_t i = 0; i < WORKERS; i++)
        stream_hand_over(job, i, REPLICA, 0);
    for (uint32_t i = RANGE; i < REPLICA; i++)
        stream_hand_over(job, i, REPLICA, 0);
    const struct server_report *report = &job->processes[REPLICA].server;
    while (report->steps <= steps)
        job_turn(job);
    assert_true(report->elapsed_ms >= seen_ms); /* not from the start */
    struct error error;
    const struct child_message stop = {.kind = CHILD_STOP,
                                       .stop = {.grace_ms = 10000, .reason = TEXT("enough")}};
    ASSERT_OK(child_message_send(job->processes[REPLICA].control, &stop, 1000, &error));
    assert_model_left(job, REPLICA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_with_three_servers_reaches_its_target),
        cmocka_unit_test(a_replica_takes_the_place_of_a_killed_lead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
