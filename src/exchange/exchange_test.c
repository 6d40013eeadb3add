/*
 * A parameter server and workers of unequal speed, each with its own threads and loop, train a
 * seeded logistic regression over encrypted socket pairs.
 *
 * covers client.c, client_link.c, server.c, server_diverge.c, server_epoch.c, server_link.c,
 *        server_member.c
 */
#include "exchange/exchange_trainer_internal.h"

#include <inttypes.h>

static void worker_open(struct bench *bench, uint32_t rank, const char *policy, uint64_t epochs)
{
    struct error error;
    struct worker *worker = &bench->workers[rank];
    worker->rank = rank;
    worker->data = &bench->data;
    ASSERT_OK(loop_open(&clock_system, &worker->loop, &error));
    struct exchange_client_options options = {
        .loop = worker->loop,
        .lease = lease_of(rank),
        .fence = FENCE,
        .rank = rank,
        .shard_samples = SAMPLES / WORKERS,
        .samples_max = epochs * SAMPLES / WORKERS / EXCHANGE_SHARES,
        .parameter_count = FEATURES,
        .local_steps = strcmp(policy, "adsp") == 0 ? 0 : 1,
    };
    key_of(options.lease, options.key);
    ASSERT_OK(exchange_client_open(&options, &worker->client, &error));
    int fd;
    stream_open(bench, &fd);
    ASSERT_OK(exchange_client_attach_take(worker->client, 0, fd, 0, &error));
    if (worker->rejoin_at_step > 0)
        stream_open(bench, &worker->second_fd);
    if (worker->is_cut_off)
        shutdown(worker->second_fd, SHUT_RDWR);
}

static void bench_run(struct bench *bench, const struct exchange_server_options *options)
{
    struct error error;
    char policy[16];
    assert_int_equal(text_copy(options->policy, policy, sizeof policy, &error), 0);
    ASSERT_OK(exchange_server_open(options, &bench->server, &error));
    for (uint32_t i = 0; i < bench->worker_count; i++)
        worker_open(bench, i, policy, options->epochs);
    bench_finish(bench);
}

static const struct exchange_worker_status *status_of(const struct bench *bench, uint32_t rank)
{
    for (uint32_t i = 0; i < bench->status.worker_count; i++)
        if (bench->worker_statuses[i].lease == lease_of(rank))
            return &bench->worker_statuses[i];
    fail_msg("no status of rank %d", (int)rank);
    return NULL;
}

static void assert_target_reached(struct bench *bench)
{
    assert_string_equal(exchange_end_name(bench->outcome.end), "target");
    assert_true(bench->outcome.has_accuracy && bench->outcome.test_accuracy >= 0.96);
    struct evaluation_report again = {.parameters = bench->final};
    struct error error;
    ASSERT_OK(measure(bench, &again, &error));
    assert_true(again.accuracy == bench->outcome.test_accuracy); /* the very model measured */
}

TEST(adsp_trains_on_unequal_workers_and_nobody_waits)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "adsp");
    options.min_time_ms = 1500;
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_true(bench->status.elapsed_ms >= 1500);
    assert_int_equal(bench->drops, 0);
    assert_true(bench->status.sync.commit_rate >= 1);
    assert_true(bench->status.loss_evaluations > 0);
    uint64_t samples = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_int_equal(bench->workers[i].status.waiting_ns, 0);
        assert_int_equal(bench->workers[i].status.state, EXCHANGE_CLIENT_STOPPED);
        assert_true(status_of(bench, i)->commits >= 5);
        /* All that was learnt was pushed, to the last step. */
        assert_int_equal(status_of(bench, i)->steps, bench->workers[i].status.steps);
        samples += status_of(bench, i)->samples;
    }
    assert_int_equal(samples, bench->status.samples);
    assert_true(status_of(bench, 0)->steps > status_of(bench, 2)->steps * 3 / 2);
}

TEST(bsp_keeps_all_workers_in_step)
{
    AUTO(bench) struct bench *bench = bench_new();
    const struct exchange_server_options options = server_options(bench, "bsp");
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, WORKERS), 0);
    for (uint32_t i = 0; i < WORKERS; i++)
        bench->workers[i].start = &start;
    bench_run(bench, &options);
    pthread_barrier_destroy(&start);
    assert_target_reached(bench);
    const uint64_t first = bench->workers[0].status.steps;
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_in_range(bench->workers[i].status.steps + 1 - first, 0, 2);
    const struct exchange_client_status *fastest = &bench->workers[0].status;
    assert_true(fastest->transfer_ns > 0 && fastest->transfer_ns < fastest->waiting_ns);
}

TEST(tap_lets_the_fast_run_ahead)
{
    AUTO(bench) struct bench *bench = bench_new();
    const struct exchange_server_options options = server_options(bench, "tap");
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_true(status_of(bench, 0)->steps > status_of(bench, 2)->steps);
    assert_int_equal(status_of(bench, 0)->steps, status_of(bench, 0)->commits);
}

TEST(workers_hear_whose_their_momentum_is)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        AUTO(bench) struct bench *bench = bench_new();
        struct exchange_server_options options = server_options(bench, "pace");
        options.sync.momentum = 0.2; /* so little that it is left even by one alone */
        options.sync.keeps_momentum = keeps;
        bench_run(bench, &options);
        assert_target_reached(bench);
        for (uint32_t i = 0; i < WORKERS; i++)
            assert_int_equal(bench->workers[i].status.settings.is_plain, !keeps);
    }
}

TEST(vectors_made_smaller_train_as_well)
{
    for (enum codec codec = CODEC_F16; codec < CODEC_COUNT; codec++) {
        AUTO(bench) struct bench *bench = bench_new();
        struct exchange_server_options options = server_options(bench, "bsp");
        options.compress = (struct exchange_compress){.codec = codec, .density = 0.3};
        bench_run(bench, &options);
        assert_target_reached(bench);
        assert_int_equal(bench->drops, 0);
        for (uint32_t i = 0; i < WORKERS; i++)
            assert_int_equal(status_of(bench, i)->codec, codec);
        const uint64_t whole = bench->status.commits * FEATURES * sizeof(float);
        assert_true(bench->status.received_bytes < whole + 8 * bench->status.commits);
    }
}

TEST(auto_leaves_small_vectors_as_they_are)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "tap");
    options.compress.is_auto = true;
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_int_equal(status_of(bench, 0)->codec, CODEC_F32);
}

static void a_death_stops_nobody(const char *policy)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, policy);
    options.min_time_ms = 600;
    bench->workers[1].die_at_step = TURN_STEP;
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_int_equal(bench->drops, 1);
    assert_int_equal(bench->workers[1].status.steps, TURN_STEP);
    assert_true(bench->workers[0].status.steps > TURN_STEP);
    assert_true(bench->workers[2].status.steps > TURN_STEP);
}

TEST(a_worker_that_dies_stops_nobody_under_any_policy)
{
    a_death_stops_nobody("adsp");
    a_death_stops_nobody("tap");
    a_death_stops_nobody("bsp");
}

TEST(a_worker_that_leaves_in_good_order_has_pushed_all_it_learnt)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "adsp");
    options.min_time_ms = 800;
    bench->workers[2].leave_at_step = 37;
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_int_equal(bench->drops, 0);
    assert_int_equal(status_of(bench, 2)->steps, 37);
    assert_false(status_of(bench, 2)->is_member);
}

static void a_new_stream_goes_on(const char *policy)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, policy);
    options.min_time_ms = 600;
    bench->workers[0].rejoin_at_step = TURN_STEP;
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_int_equal(bench->status.worker_count, WORKERS);
    const struct exchange_worker_status *status = status_of(bench, 0);
    assert_true(bench->workers[0].status.steps > TURN_STEP);
    /* Nothing counts twice; at most the push that was under way is lost. */
    assert_true(status->steps <= bench->workers[0].status.steps);
    assert_true(status->steps + 200 > bench->workers[0].status.steps);
}

TEST(a_worker_with_a_new_stream_goes_on_under_any_policy)
{
    a_new_stream_goes_on("adsp");
    a_new_stream_goes_on("bsp");
    a_new_stream_goes_on("tap");
}

TEST(a_worker_whose_update_is_not_finite_leaves_alone)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "adsp");
    options.min_time_ms = 600;
    bench->workers[0].bad_at_step = 30;
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_int_equal(bench->drops, 0);
    assert_true(status_of(bench, 0)->has_diverged);
    assert_non_null(strstr(bench->workers[0].status.reason, "not finite"));
    for (int k = 0; k < FEATURES; k++)
        assert_true(isfinite(bench->final[k]));
}

/* Every policy on real links, also those whose first push would come long after them. */
TEST(training_ends_after_its_epochs)
{
    const char *policy;
    for (uint32_t i = 0; (policy = sync_policy_name_at(i)); i++) {
        AUTO(bench) struct bench *bench = bench_new();
        struct exchange_server_options options = server_options(bench, policy);
        options.sync.gamma_ms = 60000;
        bench->target_accuracy = 0;
        options.epochs = EPOCHS;
        bench_run(bench, &options);
        assert_string_equal(exchange_end_name(bench->outcome.end), "epochs");
        /* Beyond them lies what others may have had under way, and a step of each. */
        const double share = (double)EPOCHS / WORKERS / EXCHANGE_SHARES + (double)BATCH / SAMPLES;
        assert_true(bench->status.epochs >= EPOCHS);
        assert_true(bench->status.epochs < EPOCHS + WORKERS * share);
        assert_true(bench->outcome.has_accuracy); /* the last model is measured too */
    }
}

/* A successor that forgot would train an hour more, or repeat all epochs. */
TEST(a_successor_ends_by_what_was_done_before_it_too)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "bsp");
    options.done = (struct exchange_progress_made){.elapsed_ms = 3600000,
                                                   .samples = (uint64_t)(EPOCHS - 1) * SAMPLES};
    options.min_time_ms = 3600000;
    bench_run(bench, &options);
    assert_target_reached(bench);

    AUTO(bench) struct bench *other = bench_new();
    options = server_options(other, "bsp");
    options.done.samples = (uint64_t)(EPOCHS - 1) * SAMPLES;
    options.epochs = EPOCHS;
    other->target_accuracy = 0;
    bench_run(other, &options);
    assert_string_equal(exchange_end_name(other->outcome.end), "epochs");
    uint64_t samples = 0;
    for (uint32_t rank = 0; rank < WORKERS; rank++)
        samples += status_of(other, rank)->samples;
    assert_in_range(samples, SAMPLES, 2 * SAMPLES - 1);
}

/* At its beginning, at its end and between, however long gamma is. */
TEST(a_short_training_is_measured_more_than_once)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "tap");
    options.sync.gamma_ms = 60000;
    options.min_time_ms = 900;
    bench->target_after = 1; /* where the first measurement was left out, a later one is between */
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_true(bench->status.elapsed_ms < 60000); /* clock: no whole gamma has passed */
    assert_true(bench->status.loss_evaluations >= 2);
    assert_true(bench->status.accuracy_evaluations >= 2);

    AUTO(bench) struct bench *other = bench_new();
    options = server_options(other, "tap");
    options.evaluate_ms = 60000; /* who says how often gets just that */
    options.epochs = EPOCHS;
    other->target_accuracy = 0;
    bench_run(other, &options);
    assert_int_equal(other->status.accuracy_evaluations, 1);
}

/* Two workers after the first epoch, one after the second, then all again. */
static uint32_t shrink_and_grow(void *context, const struct exchange_epoch *epoch)
{
    static const uint32_t wanted[] = {2, 1, WORKERS};
    struct bench *bench = context;
    assert_true(epoch->index >= 1 && epoch->passes > 0);
    const uint32_t told = bench->epoch_count < 15 ? bench->epoch_count++ : 15;
    bench->epoch_workers[told] = epoch->workers;
    return told < 3 ? wanted[told] : WORKERS;
}

static void workers_change_at_the_barrier(uint64_t epoch_steps)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "hsp");
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, WORKERS), 0);
    for (uint32_t i = 0; i < WORKERS; i++)
        bench->workers[i].start = &start;
    options.sync.epoch_steps = epoch_steps;
    options.epochs = 20;
    options.on_epoch = shrink_and_grow;
    bench->target_accuracy = 0;
    bench_run(bench, &options);
    pthread_barrier_destroy(&start);
    assert_int_equal(bench->outcome.end, EXCHANGE_END_EPOCHS);
    assert_int_equal(bench->drops, 0);
    assert_int_equal(bench->epoch_workers[0], WORKERS);
    assert_int_equal(bench->epoch_workers[1], 2);
    assert_int_equal(bench->epoch_workers[2], 1);
    assert_int_equal(bench->epoch_workers[15], WORKERS);
    assert_int_equal(bench->status.workers_wanted, WORKERS);
    assert_true(bench->status.sync.staleness <= UINT64_C(2) * WORKERS);
    uint64_t samples = 0;
    for (uint32_t i = 0; i < WORKERS; i++)
        samples += status_of(bench, i)->samples;
    assert_int_equal(bench->status.samples, samples);
}

TEST(who_is_not_wanted_waits_at_the_barrier_and_comes_back_when_it_is)
{
    workers_change_at_the_barrier(0);
    workers_change_at_the_barrier(60);
}

TEST(training_ends_when_nobody_is_left)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "adsp");
    bench->target_accuracy = 2;
    options.lonely_ms = 200;
    for (uint32_t i = 0; i < WORKERS; i++)
        bench->workers[i].die_at_step = 10 + i;
    bench_run(bench, &options);
    assert_string_equal(exchange_end_name(bench->outcome.end), "lost");
}

TEST(a_loss_that_is_not_finite_ends_training_with_the_last_good_model)
{
    AUTO(bench) struct bench *bench = bench_new();
    const struct exchange_server_options options = server_options(bench, "tap");
    bench->target_accuracy = 2;
    bench->diverges_after = 2;
    bench_run(bench, &options);
    assert_string_equal(exchange_end_name(bench->outcome.end), "diverged");
    assert_non_null(strstr(bench->reason, "the loss on the test data is not finite"));
    assert_true(bench->outcome.has_accuracy && isfinite(bench->outcome.test_loss));
    struct evaluation_report again = {.parameters = bench->final};
    struct error error;
    bench->diverges_after = 0;
    ASSERT_OK(measure(bench, &again, &error));
    assert_true(again.loss == bench->outcome.test_loss); /* the very model measured */
}

TEST(without_a_good_model_there_is_none)
{
    AUTO(bench) struct bench *bench = bench_new();
    const struct exchange_server_options options = server_options(bench, "bsp");
    bench->target_accuracy = 2;
    bench->is_never_finite = true;
    bench_run(bench, &options);
    assert_string_equal(exchange_end_name(bench->outcome.end), "diverged");
    assert_null(bench->outcome.parameters);
    assert_false(bench->outcome.has_accuracy);
}

TEST(a_last_model_that_is_not_good_is_not_the_outcome)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "tap");
    options.sync.gamma_ms = options.evaluate_ms = 60000; /* only the end is measured */
    options.epochs = EPOCHS;
    bench->target_accuracy = 0;
    bench->is_never_finite = true;
    bench_run(bench, &options);
    assert_string_equal(exchange_end_name(bench->outcome.end), "diverged");
    assert_null(bench->outcome.parameters);
}

TEST(most_workers_must_say_that_they_diverged)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "tap");
    options.min_time_ms = 600;
    bench->workers[1].diverge_at_step = TURN_STEP;
    bench_run(bench, &options);
    assert_target_reached(bench); /* one of three is not believed */
    assert_true(status_of(bench, 1)->has_diverged);
    assert_int_equal(bench->drops, 0);

    AUTO(bench) struct bench *all = bench_new();
    options = server_options(all, "tap");
    all->target_accuracy = 2;
    for (uint32_t i = 0; i < WORKERS; i++)
        all->workers[i].diverge_at_step = TURN_STEP + i;
    bench_run(all, &options);
    assert_string_equal(exchange_end_name(all->outcome.end), "diverged");
    assert_non_null(strstr(all->reason, "the loss of 2 of 3 workers is not finite"));
}

TEST(a_worker_that_is_cut_off_for_good_keeps_nobody_from_the_end)
{
    AUTO(bench) struct bench *bench = bench_new();
    const struct exchange_server_options options = server_options(bench, "bsp");
    bench->workers[0].rejoin_at_step = TURN_STEP;
    bench->workers[0].is_cut_off = true;
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_string_equal(bench->workers[0].status.reason, "training has ended");
}

TEST(a_failed_measurement_ends_training_with_the_reason)
{
    AUTO(bench) struct bench *bench = bench_new();
    const struct exchange_server_options options = server_options(bench, "tap");
    bench->must_fail_measuring = true;
    bench_run(bench, &options);
    assert_string_equal(exchange_end_name(bench->outcome.end), "failed");
    assert_non_null(strstr(bench->reason, "the test data is gone"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adsp_trains_on_unequal_workers_and_nobody_waits),
        cmocka_unit_test(bsp_keeps_all_workers_in_step),
        cmocka_unit_test(tap_lets_the_fast_run_ahead),
        cmocka_unit_test(workers_hear_whose_their_momentum_is),
        cmocka_unit_test(vectors_made_smaller_train_as_well),
        cmocka_unit_test(auto_leaves_small_vectors_as_they_are),
        cmocka_unit_test(a_worker_that_dies_stops_nobody_under_any_policy),
        cmocka_unit_test(a_worker_that_leaves_in_good_order_has_pushed_all_it_learnt),
        cmocka_unit_test(a_worker_with_a_new_stream_goes_on_under_any_policy),
        cmocka_unit_test(a_worker_that_is_cut_off_for_good_keeps_nobody_from_the_end),
        cmocka_unit_test(a_worker_whose_update_is_not_finite_leaves_alone),
        cmocka_unit_test(training_ends_after_its_epochs),
        cmocka_unit_test(a_successor_ends_by_what_was_done_before_it_too),
        cmocka_unit_test(a_short_training_is_measured_more_than_once),
        cmocka_unit_test(who_is_not_wanted_waits_at_the_barrier_and_comes_back_when_it_is),
        cmocka_unit_test(training_ends_when_nobody_is_left),
        cmocka_unit_test(a_loss_that_is_not_finite_ends_training_with_the_last_good_model),
        cmocka_unit_test(without_a_good_model_there_is_none),
        cmocka_unit_test(a_last_model_that_is_not_good_is_not_the_outcome),
        cmocka_unit_test(most_workers_must_say_that_they_diverged),
        cmocka_unit_test(a_failed_measurement_ends_training_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
