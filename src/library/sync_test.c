/*
 * The engine whole: ranks in threads of one process, over loopback.
 * covers sync_call.c, sync_host.c, sync_host_train.c, sync_init.c, sync_member.c, sync_place.c
 * covers sync_train.c, sync_worker.c
 */
#include "testing/testing.h"

#include <pthread.h>
#include <souk/sync.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORLD = 3, FEATURES = 8, MANY = (1 << 20) + 1000, STEPS = 60 };

/* Of this process alone, on the engine's own port: so tests beside it do not meet it. */
static char peers[64];

static int peers_name(void **state)
{
    (void)state;
    const int pid = getpid();
    snprintf(peers, sizeof peers, "127.%d.%d.%d", 2 + (pid >> 16) % 250, pid >> 8 & 255,
             1 + (pid & 255) % 254);
    return 0;
}

struct rank {
    pthread_t thread;
    int rank;
    const char *policy, *compress;
    float rate;                  /* how far a step goes towards the rank's place */
    pthread_barrier_t *together; /* every step of all ranks */
    float model[FEATURES];
    int result;
    char error[256];
};

static int begin(struct rank *rank, struct souk_sync **out)
{
    const struct souk_sync_options options = {.size = sizeof options,
                                              .peers = peers,
                                              .rank = rank->rank,
                                              .world_size = WORLD,
                                              .key = "test"};
    return souk_sync_init(&options, out, rank->error, sizeof rank->error);
}

static void ranks_run(struct rank ranks[WORLD], void *(*function)(void *))
{
    for (int i = 0; i < WORLD; i++) {
        ranks[i].rank = i;
        ranks[i].result = -1;
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, function, &ranks[i]), 0);
    }
    for (int i = 0; i < WORLD; i++)
        pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < WORLD; i++)
        if (ranks[i].result < 0)
            fail_msg("rank %d: %s", i, ranks[i].error);
}

static int say(struct rank *rank, struct souk_sync *sync, int result)
{
    if (result < 0 && rank->error[0] == '\0')
        snprintf(rank->error, sizeof rank->error, "%s", souk_sync_error(sync));
    return result;
}

static float many[WORLD][MANY];

static void *meet(void *context)
{
    struct rank *rank = context;
    struct souk_sync *sync;
    if (begin(rank, &sync) < 0)
        return NULL;
    float *values = many[rank->rank];
    for (int i = 0; i < MANY; i++)
        values[i] = (float)(rank->rank + 1);
    int32_t number = rank->rank == 1 ? 42 : 0;
    const bool is_well =
        say(rank, sync, souk_sync_barrier(sync)) == 0 &&
        say(rank, sync, souk_sync_broadcast(sync, &number, sizeof number, 1)) == 0 &&
        number == 42 &&
        say(rank, sync, souk_sync_allreduce(sync, values, MANY, SOUK_SYNC_MEAN)) == WORLD;
    rank->result = is_well && values[0] == 2 && values[MANY - 1] == 2 ? 0 : -1;
    souk_sync_finish(sync);
    return NULL;
}

TEST(ranks_meet)
{
    struct rank ranks[WORLD] = {0};
    ranks_run(ranks, meet);
}

/* Each pulls the model to its own place: the mean of them is where all must end. */
static void *train(void *context)
{
    struct rank *rank = context;
    struct souk_sync *sync;
    if (begin(rank, &sync) < 0)
        return NULL;
    for (int i = 0; i < FEATURES; i++)
        rank->model[i] = (float)(10 * rank->rank);
    const struct souk_sync_buffer buffers[] = {{rank->model, 3}, {rank->model + 3, FEATURES - 3}};
    const struct souk_sync_training training = {.size = sizeof training,
                                                .policy = rank->policy,
                                                .compress = rank->compress,
                                                .buffers = buffers,
                                                .buffer_count = 2,
                                                .gamma_ms = 200,
                                                .reports_loss = 1};
    int result = say(rank, sync, souk_sync_train(sync, &training));
    if (result == 0 && rank->model[5] != 0)
        snprintf(rank->error, sizeof rank->error, "not rank 0's first model");
    for (int step = 0; step < STEPS && result >= 0; step++) {
        for (int i = 0; i < FEATURES; i++)
            rank->model[i] += rank->rate * ((float)(rank->rank + i) - rank->model[i]);
        usleep((useconds_t)(1000 << rank->rank)); /* clock: makes the ranks unequally fast */
        result = say(rank, sync, souk_sync_step(sync, 4, 1.0 / (step + 1)));
    }
    if (result >= 0)
        result = say(rank, sync, souk_sync_settle(sync));
    rank->result = rank->error[0] ? -1 : result;
    souk_sync_finish(sync);
    return NULL;
}

static void train_by(const char *policy, const char *compress)
{
    struct rank ranks[WORLD] = {0};
    for (int i = 0; i < WORLD; i++) {
        ranks[i].policy = policy;
        ranks[i].compress = compress;
        ranks[i].rate =
            0.01F; /* all steps of all ranks from one model lead not far past the place */
    }
    ranks_run(ranks, train);
    for (int i = 1; i < WORLD; i++)
        assert_memory_equal(ranks[0].model, ranks[i].model, sizeof ranks[0].model);
    /* About what the ranks want, wherever a policy leads; of a few parameters topk sends one at a
     * time, and how far the rest swings depends on when ranks come to run. */
    const bool swings = compress && strcmp(compress, "topk") == 0;
    for (int i = 0; i < FEATURES && !swings; i++)
        assert_true(ranks[0].model[i] > -2 && ranks[0].model[i] < (float)(i + 6));
    assert_true(swings || ranks[0].model[FEATURES - 1] > 0.5F);
}

TEST(bsp_is_the_mean)
{
    struct rank ranks[WORLD] = {0};
    for (int i = 0; i < WORLD; i++) {
        ranks[i].policy = "bsp";
        ranks[i].rate = 0.2F;
    }
    ranks_run(ranks, train);
    for (int i = 0; i < WORLD; i++)
        for (int k = 0; k < FEATURES; k++)
            assert_float_equal(ranks[i].model[k], (float)(k + 1), 0.01F);
}

TEST(every_policy_ends_with_one_model)
{
    static const char *const policies[] = {"adsp", "ssp", "tap", "pace", "auto", "hsp", "adacomm"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        train_by(policies[i], NULL);
}

/* All pull the model to the same place, in steps of one sample: a script need not say its batch. */
static void *train_shortly(void *context)
{
    struct rank *rank = context;
    struct souk_sync *sync;
    if (begin(rank, &sync) < 0)
        return NULL;
    const struct souk_sync_buffer buffer = {rank->model, FEATURES};
    const struct souk_sync_training training = {.size = sizeof training,
                                                .policy = rank->policy,
                                                .buffers = &buffer,
                                                .buffer_count = 1,
                                                .reports_loss = 1};
    int result = say(rank, sync, souk_sync_train(sync, &training));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < FEATURES; i++)
            rank->model[i] += 0.02F * (10 - rank->model[i]);
        pthread_barrier_wait(rank->together);
        if (result >= 0)
            result = say(rank, sync, souk_sync_step(sync, 1, 10 - (double)rank->model[0]));
    }
    if (result >= 0)
        result = say(rank, sync, souk_sync_settle(sync));
    rank->result = result;
    souk_sync_finish(sync);
    return NULL;
}

TEST(a_short_training_gets_as_far_as_a_rank_alone)
{
    static const char *const policies[] = {"pace", "auto"};
    float alone = 0;
    for (int step = 0; step < STEPS; step++)
        alone += 0.02F * (10 - alone);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct rank ranks[WORLD] = {0};
        pthread_barrier_t together;
        assert_int_equal(pthread_barrier_init(&together, NULL, WORLD), 0);
        for (int k = 0; k < WORLD; k++) {
            ranks[k].policy = policies[i];
            ranks[k].together = &together;
        }
        ranks_run(ranks, train_shortly);
        pthread_barrier_destroy(&together);
        /* The outer step is 0.7 of what came last; momentum may carry it past the place. */
        if (ranks[0].model[0] < 0.7F * alone || ranks[0].model[0] > 20)
            fail_msg("%s ended at %f, a rank alone at %f", policies[i], (double)ranks[0].model[0],
                     (double)alone);
    }
}

TEST(every_codec_does)
{
    static const char *const codecs[] = {"f16", "int8", "1bit", "topk", "auto"};
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        train_by("adsp", codecs[i]);
}

/* Rank 0 leaves before it trains or broadcasts anything. */
static void *go_on_alone(void *context)
{
    struct rank *rank = context;
    struct souk_sync *sync;
    if (begin(rank, &sync) < 0)
        return NULL;
    const struct souk_sync_buffer buffer = {rank->model, FEATURES};
    const struct souk_sync_training training = {
        .size = sizeof training, .buffers = &buffer, .buffer_count = 1};
    rank->result = 0;
    if (rank->rank > 0) {
        const bool is_told = souk_sync_train(sync, &training) == -1 &&
                             strstr(souk_sync_error(sync), "rank 0 has left") &&
                             souk_sync_broadcast(sync, rank->model, sizeof rank->model, 0) == -1;
        const bool goes_on = souk_sync_barrier(sync) == 0 &&
                             souk_sync_broadcast(sync, rank->model, sizeof rank->model, 1) == 0;
        rank->result = is_told && goes_on ? 0 : -1;
        snprintf(rank->error, sizeof rank->error, "%s", souk_sync_error(sync));
    }
    souk_sync_finish(sync);
    return NULL;
}

TEST(the_others_are_told_when_rank0_leaves)
{
    struct rank ranks[WORLD] = {0};
    ranks_run(ranks, go_on_alone);
}

TEST(mistakes_are_told)
{
    char error[256];
    struct souk_sync *sync;
    float value = 1;
    const struct souk_sync_options wrong = {
        .size = sizeof wrong, .peers = "127.0.0.1", .rank = 4, .world_size = 2};
    assert_int_equal(souk_sync_init(&wrong, &sync, error, sizeof error), -1);
    const struct souk_sync_options alone = {.size = sizeof alone, .world_size = 1};
    assert_int_equal(souk_sync_init(&alone, &sync, error, sizeof error), 0);
    struct souk_sync_buffer buffer = {&value, 1};
    struct souk_sync_training training = {
        .size = sizeof training, .policy = "none", .buffers = &buffer, .buffer_count = 1};
    assert_int_equal(souk_sync_step(sync, 1, 0), -1);
    assert_int_equal(souk_sync_train(sync, &training), -1);
    training.policy = "auto";
    assert_int_equal(souk_sync_train(sync, &training), -1);
    assert_non_null(strstr(souk_sync_error(sync), "needs the loss"));
    training.policy = "bsp";
    training.compress = "zip";
    assert_int_equal(souk_sync_train(sync, &training), -1);
    training.compress = NULL;
    struct souk_sync_status status = {0};
    assert_int_equal(souk_sync_status(sync, &status), -1);
    status.size = sizeof status;
    assert_int_equal(souk_sync_status(sync, &status), 0);
    assert_true(status.is_connected);
    for (int turn = 0; turn < 2; turn++) { /* one model after another */
        assert_int_equal(souk_sync_train(sync, &training), 0);
        value += 1;
        assert_in_range(souk_sync_step(sync, 1, 0), 0, 1);
        assert_int_equal(souk_sync_settle(sync), 0);
        assert_float_equal(value, (float)(2 + turn), 0);
    }
    assert_int_equal(souk_sync_broadcast(sync, &value, sizeof value, 3), -1);
    souk_sync_finish(sync);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(ranks_meet),
        cmocka_unit_test(bsp_is_the_mean),
        cmocka_unit_test(every_policy_ends_with_one_model),
        cmocka_unit_test(a_short_training_gets_as_far_as_a_rank_alone),
        cmocka_unit_test(every_codec_does),
        cmocka_unit_test(the_others_are_told_when_rank0_leaves),
    };
    return cmocka_run_group_tests(tests, peers_name, NULL);
}
