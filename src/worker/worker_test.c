/*
 * The program as its daemon runs it: forked processes with a control socket, streams between them,
 * data in a folder, without the sandbox around it.
 *
 * covers control.c, role_server.c, role_worker.c, worker_main.c
 */
#include "worker/worker_fixture_internal.h"

static void job_stop_all(struct work_job *job)
{
    struct error error;
    const struct child_message stop = {.kind = CHILD_STOP,
                                       .stop = {.grace_ms = 4000, .reason = TEXT("cancelled")}};
    for (uint32_t i = 0; i < PROCESSES; i++)
        if (job->processes[i].pid > 0)
            ASSERT_OK(child_message_send(job->processes[i].control, &stop, 1000, &error));
    job_finish(job);
}

static void assert_model_saved(const struct work_job *job)
{
    const struct process *server = &job->processes[SERVER];
    struct error error;
    char path[160];
    assert_true(server->artifacts >= 2);
    AUTO(safetensors) struct safetensors *file = NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", server->out);
    ASSERT_OK(safetensors_read(path, &file, &error));
    assert_true(file->float_count > 0);
    snprintf(path, sizeof path, "%s/card.json", server->out);
    struct buffer card AUTO_BUFFER;
    buffer_init(&card, 1 << 16);
    ASSERT_OK(file_read(path, &card, &error));
    assert_non_null(memmem(card.data, card.size, "\"name\":\"t\"", 10));
}

static void a_job_reaches_its_target(const char *policy)
{
    char sync[80];
    snprintf(sync, sizeof sync, "\"policy\":\"%s\",\"gamma\":\"300ms\"", policy);
    AUTO(work_job)
    struct work_job *job =
        job_start("\"model\":\"logistic\",\"batch\":16,\"epochs\":100000,"
                  "\"optimizer\":{\"lr\":0.02},\"target\":{\"accuracy\":0.9,\"min_time\":\"1s\"}",
                  sync);
    job_finish(job);
    const struct process *server = &job->processes[SERVER];
    assert_string_equal(server->message, arena_format(job->arena, "the test accuracy reached %.4f",
                                                      server->server.test_accuracy));
    assert_true(server->is_ready && server->is_done && server->is_ok);
    assert_int_equal(server->status, 0);
    assert_true(server->server.is_final && server->server.test_accuracy >= 0.9);
    assert_string_equal(server->server.policy, policy);
    assert_model_saved(job);
    double share = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        const struct process *worker = &job->processes[i];
        assert_true(worker->is_ready && worker->is_done && worker->is_ok);
        assert_int_equal(worker->status, 0);
        assert_true(worker->worker.commits >= 3);
        assert_int_equal(worker->worker.commits, server->accepted[i]);
        assert_in_range(worker->worker.first_step_ms, job->started_ms, job->started_ms + 10000);
        share += server->workers[i].share;
    }
    assert_true(share > 0.999 && share < 1.001);
}

TEST(a_job_stops_at_a_loss)
{
    AUTO(work_job)
    struct work_job *job = job_start("\"model\":\"logistic\",\"batch\":16,\"epochs\":100000,"
                                     "\"optimizer\":{\"lr\":0.02},\"target\":{\"loss\":0.9}",
                                     "\"policy\":\"tap\",\"gamma\":\"300ms\"");
    job_finish(job);
    const struct process *server = &job->processes[SERVER];
    assert_true(server->is_done && server->is_ok);
    assert_true(server->server.is_final && server->server.test_loss <= 0.9);
    assert_string_equal(server->message, arena_format(job->arena, "the test loss reached %.4f",
                                                      server->server.test_loss));
}

TEST(a_server_that_cannot_read_the_newest_checkpoint_goes_on_from_the_one_before)
{
    AUTO(work_job)
    struct work_job *job = job_start_from("\"model\":\"logistic\",\"batch\":16,\"epochs\":100000,"
                                          "\"optimizer\":{\"lr\":0.02},\"target\":{\"loss\":0.9}",
                                          "\"policy\":\"tap\",\"gamma\":\"300ms\"",
                                          /* is_resumed= */ true);
    job_finish(job);
    const struct process *server = &job->processes[SERVER];
    assert_true(server->is_done && server->is_ok);
    assert_true(server->server.steps > STEPS_BEFORE);
}

TEST(a_job_that_goes_on_from_a_checkpoint_with_all_its_epochs_says_so)
{
    AUTO(work_job)
    struct work_job *job = job_start_from("\"model\":\"logistic\",\"batch\":16,\"epochs\":20,"
                                          "\"optimizer\":{\"lr\":0.02}",
                                          "\"policy\":\"tap\",\"gamma\":\"300ms\"",
                                          /* is_resumed= */ true);
    job_finish(job);
    const struct process *server = &job->processes[SERVER];
    assert_true(server->is_done && server->is_ok);
    assert_string_equal(server->message,
                        "its checkpoint had learnt all 20 epochs before: raise train.epochs");
}

TEST(a_job_that_diverges_fails_and_leaves_its_last_good_model)
{
    /* Once lr passes 2, the decay throws every weight further out than it was. */
    AUTO(work_job)
    struct work_job *job =
        job_start("\"model\":\"logistic\",\"batch\":16,\"epochs\":100000,\"optimizer\":{\"lr\":100,"
                  "\"weight_decay\":1,\"schedule\":{\"warmup\":50000}}",
                  "\"policy\":\"tap\",\"gamma\":\"100ms\"");
    job_finish(job);
    const struct process *server = &job->processes[SERVER];
    assert_true(server->is_done && !server->is_ok);
    assert_non_null(strstr(server->message, "the loss is not finite; the model of loss "));
    assert_non_null(strstr(server->message, "try a lower optimizer.lr than 100, clip_norm: 1"));
    assert_true(strlen(server->message) < LEASE_REASON_SIZE);
    assert_model_saved(job);
    assert_true(server->server.test_loss < 10); /* not one on its way out */
    AUTO(checkpoint) struct checkpoint *checkpoint = NULL;
    struct error error;
    char path[160];
    snprintf(path, sizeof path, "%s/checkpoint", server->out);
    ASSERT_OK(checkpoint_read(path, &checkpoint, &error));
    for (size_t i = 0; i < checkpoint->parameter_count; i++)
        assert_true(isfinite(checkpoint->parameters[i]));
    /* No machine is to blame. */
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_true(job->processes[i].is_done && job->processes[i].is_ok);
}

TEST(a_job_reaches_its_target_under_every_policy)
{
    a_job_reaches_its_target("adsp");
    a_job_reaches_its_target("bsp");
    a_job_reaches_its_target("tap");
}

static const char endless[] = "\"model\":\"mlp\",\"batch\":16,\"epochs\":100000,"
                              "\"optimizer\":{\"lr\":0.02,\"momentum\":0.5}";

TEST(a_killed_worker_stops_nobody_and_sigterm_ends_the_rest_in_good_order)
{
    AUTO(work_job)
    struct work_job *job = job_start(endless, "\"policy\":\"bsp\",\"gamma\":\"300ms\"");
    struct process *server = &job->processes[SERVER];
    while (server->accepted[0] < 5 || server->accepted[1] < 5 || server->accepted[2] < 5)
        job_turn(job);
    assert_int_equal(kill(job->processes[1].pid, SIGKILL), 0);
    while (job->processes[1].pid > 0)
        job_turn(job);
    assert_int_equal(job->processes[1].status, 128 + SIGKILL);
    const uint64_t before = server->accepted[0];
    while (server->accepted[0] < before + 20)
        job_turn(job);

    /* One worker is told to go: it pushes what it has, the other goes on. */
    assert_int_equal(kill(job->processes[0].pid, SIGTERM), 0);
    while (job->processes[0].pid > 0)
        job_turn(job);
    assert_true(job->processes[0].is_ok);
    assert_string_equal(job->processes[0].message, "terminated");

    struct error error;
    const struct child_message stop = {.kind = CHILD_STOP,
                                       .stop = {.grace_ms = 4000, .reason = TEXT("cancelled")}};
    ASSERT_OK(child_message_send(server->control, &stop, 1000, &error));
    job_finish(job);
    assert_true(server->is_ok);
    assert_string_equal(server->message, "cancelled");
    assert_model_saved(job);
    assert_true(job->processes[2].is_ok);
    assert_int_equal(job->processes[2].worker.steps, server->workers[2].steps);
}

TEST(missing_data_fails_with_a_sentence_that_names_the_file)
{
    struct error error;
    AUTO(work_job) struct work_job *job = job_start(endless, "\"policy\":\"adsp\"");
    job_stop_all(job);
    struct process *worker = &job->processes[0];
    char path[160];
    snprintf(path, sizeof path, "%s/train-labels", worker->data);
    assert_int_equal(remove(path), 0);
    int sockets[2];
    ASSERT_OK(child_socket_pair(sockets, &error));
    worker->control = sockets[0];
    worker->is_done = false;
    worker->pid = process_fork(worker, sockets[1]);
    close(sockets[1]);
    send_config(job, 0, &job->spec);
    job_finish(job);
    assert_true(worker->is_done && !worker->is_ok);
    assert_non_null(strstr(worker->message, "train-labels"));
    assert_int_not_equal(worker->status, 0);
}

TEST(a_first_message_that_is_not_the_lease_is_refused)
{
    struct error error;
    int sockets[2];
    ASSERT_OK(child_socket_pair(sockets, &error));
    AUTO_FD int parent = sockets[0];
    AUTO_FD int child = sockets[1];
    struct process process = {.data = "/nowhere", .out = "/nowhere"};
    const struct child_message stop = {.kind = CHILD_STOP, .stop = {.reason = TEXT("x")}};
    ASSERT_OK(child_message_send(parent, &stop, 1000, &error));
    const pid_t pid = process_fork(&process, child);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

TEST(a_wrong_option_is_refused)
{
    char name[] = "worker", option[] = "--colour", value[] = "red";
    char *argv[] = {name, option, value, NULL};
    assert_int_not_equal(worker_main(3, argv), 0);
    assert_int_not_equal(worker_main(2, argv), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_reaches_its_target_under_every_policy),
        cmocka_unit_test(a_job_stops_at_a_loss),
        cmocka_unit_test(
            a_server_that_cannot_read_the_newest_checkpoint_goes_on_from_the_one_before),
        cmocka_unit_test(a_job_that_goes_on_from_a_checkpoint_with_all_its_epochs_says_so),
        cmocka_unit_test(a_job_that_diverges_fails_and_leaves_its_last_good_model),
        cmocka_unit_test(a_killed_worker_stops_nobody_and_sigterm_ends_the_rest_in_good_order),
        cmocka_unit_test(missing_data_fails_with_a_sentence_that_names_the_file),
        cmocka_unit_test(a_first_message_that_is_not_the_lease_is_refused),
        cmocka_unit_test(a_wrong_option_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
