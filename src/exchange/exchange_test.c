/*
 * A parameter server and workers of unequal speed, each with its own threads and loop, train a
 * seeded logistic regression over encrypted socket pairs.
 *
 * covers client.c, client_link.c, server.c, server_link.c, server_member.c
 */
#include "base/random.h"
#include "exchange/client.h"
#include "exchange/server.h"
#include "testing/testing.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

enum {
    WORKERS = 3,
    FEATURES = 20,
    SAMPLES = 600,
    BATCH = 8,
    FENCE = 4,
    TURN_STEP = 12,
    EPOCHS = 3
};

struct data {
    float x[SAMPLES][FEATURES];
    float y[SAMPLES]; /* 1 or -1 */
};

struct worker {
    struct loop *loop;
    struct exchange_client *client;
    pthread_t link_thread, training_thread;
    const struct data *data;
    uint32_t rank;
    int64_t step_us;
    uint64_t die_at_step;     /* without a word; 0: never */
    pthread_barrier_t *start; /* the first step waits until all have joined; NULL: it does not */
    uint64_t leave_at_step;   /* in good order; 0: never */
    uint64_t bad_at_step;     /* parameters become not finite; 0: never */
    uint64_t rejoin_at_step;  /* on second_fd */
    int second_fd;
    float parameters[FEATURES];
    struct exchange_client_status status; /* at the end */
};

struct bench {
    struct data data;
    struct loop *loop;
    struct exchange_server *server;
    struct worker workers[WORKERS];
    uint32_t worker_count;
    bool has_ended;
    struct exchange_outcome outcome;
    char reason[256];
    float final[FEATURES];
    uint32_t drops;
    char drop_reason[256];
    struct exchange_status status;
    struct exchange_worker_status worker_statuses[WORKERS];
    bool must_fail_measuring;
    pthread_mutex_t gate; /* locked: measuring stands still */
};

static void data_make(struct data *data, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    double truth[FEATURES];
    for (int k = 0; k < FEATURES; k++)
        truth[k] = random_normal(&random);
    for (int i = 0; i < SAMPLES; i++) {
        double sum = 0;
        for (int k = 0; k < FEATURES; k++) {
            data->x[i][k] = (float)random_normal(&random);
            sum += truth[k] * (double)data->x[i][k];
        }
        data->y[i] = sum > 0 ? 1 : -1;
    }
}

static float margin_of(const struct data *data, const float *w, uint32_t i)
{
    float sum = 0;
    for (int k = 0; k < FEATURES; k++)
        sum += w[k] * data->x[i][k];
    return sum * data->y[i];
}

static int measure(void *context, struct evaluation_report *report, struct error *error)
{
    struct bench *bench = context;
    pthread_mutex_lock(&bench->gate);
    pthread_mutex_unlock(&bench->gate);
    if (bench->must_fail_measuring)
        return error_set(error, ERROR_CORRUPT, "the test data is gone");
    uint32_t correct = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const float margin = margin_of(&bench->data, report->parameters, i);
        correct += margin > 0;
        report->loss += log1p(exp(-(double)margin)) / SAMPLES;
    }
    report->accuracy = (double)correct / SAMPLES;
    return 0;
}

/* --- workers --- */

static double step(struct worker *worker, struct random *random)
{
    float gradient[FEATURES] = {0};
    double loss = 0;
    for (int b = 0; b < BATCH; b++) {
        const uint32_t i = (uint32_t)random_below(random, SAMPLES);
        const float margin = margin_of(worker->data, worker->parameters, i);
        const float slope = -worker->data->y[i] / (1 + expf(margin));
        loss += log1p(exp(-(double)margin)) / BATCH;
        for (int k = 0; k < FEATURES; k++)
            gradient[k] += slope * worker->data->x[i][k] / BATCH;
    }
    for (int k = 0; k < FEATURES; k++)
        worker->parameters[k] -= 0.1F * gradient[k];
    const struct timespec pause = {0, worker->step_us * 1000}; /* this is the machine's slowness */
    nanosleep(&pause, NULL);
    return loss;
}

/* A new stream in place of the one at hand, whatever that is doing. */
static void stream_replace(void *context)
{
    struct worker *worker = context;
    struct error error;
    if (exchange_client_attach_take(worker->client, worker->second_fd, &error) < 0)
        fprintf(stderr, "%s\n", error.message);
}

/* Who steps before the others have joined makes rounds of its own. */
static void wait_until_joined(struct worker *worker)
{
    const struct timespec moment = {0, 1000000};
    exchange_client_status(worker->client, &worker->status);
    while (worker->status.state == EXCHANGE_CLIENT_CONNECTING) {
        nanosleep(&moment, NULL);
        exchange_client_status(worker->client, &worker->status);
    }
}

static void *training_run(void *context)
{
    struct worker *worker = context;
    struct random random;
    random_init(&random, 100 + worker->rank);
    exchange_client_begin(worker->client, worker->parameters);
    if (worker->start) {
        wait_until_joined(worker);
        pthread_barrier_wait(worker->start);
    }
    for (uint64_t count = 1;; count++) {
        struct exchange_step done = {.samples = BATCH};
        done.started_ns = clock_monotonic_ns(&clock_system);
        done.loss = step(worker, &random);
        done.ended_ns = clock_monotonic_ns(&clock_system);
        if (count == worker->rejoin_at_step)
            loop_post(worker->loop, stream_replace, worker);
        if (count == worker->bad_at_step)
            worker->parameters[3] = NAN;
        const bool goes_on = exchange_client_step(worker->client, &done, worker->parameters);
        if (!goes_on || count == worker->leave_at_step || count == worker->die_at_step)
            break;
    }
    if (worker->die_at_step == 0)
        exchange_client_finish(worker->client, worker->parameters, 2000);
    exchange_client_status(worker->client, &worker->status);
    loop_stop(worker->loop);
    return NULL;
}

static void *link_run(void *context)
{
    struct worker *worker = context;
    struct error error;
    if (loop_run(worker->loop, &error) < 0)
        fprintf(stderr, "%s\n", error.message);
    exchange_client_free(TAKE(worker->client));
    return NULL;
}

static void key_of(uint64_t lease, uint8_t out_key[LINK_KEY_SIZE])
{
    for (int i = 0; i < LINK_KEY_SIZE; i++)
        out_key[i] = (uint8_t)(lease * 31 + i);
}

static uint64_t lease_of(uint32_t rank)
{
    return 100 + rank;
}

static void stream_open(struct bench *bench, int *out_fd)
{
    struct error error;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_OK(exchange_server_attach_take(bench->server, ends[0], &error));
    *out_fd = ends[1];
}

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
    ASSERT_OK(exchange_client_attach_take(worker->client, fd, &error));
    if (worker->rejoin_at_step > 0)
        stream_open(bench, &worker->second_fd);
}

static void worker_start(struct worker *worker)
{
    assert_int_equal(pthread_create(&worker->link_thread, NULL, link_run, worker), 0);
    assert_int_equal(pthread_create(&worker->training_thread, NULL, training_run, worker), 0);
}

/* --- the server --- */

static int find_peer(void *context, uint64_t lease, uint64_t fence, struct exchange_peer *out_peer)
{
    (void)context;
    if (lease < lease_of(0) || lease >= lease_of(WORKERS) || fence != FENCE)
        return -1;
    out_peer->rank = (uint32_t)(lease - lease_of(0));
    key_of(lease, out_peer->key);
    return 0;
}

static void on_drop(void *context, uint64_t lease, const struct error *reason)
{
    (void)lease;
    struct bench *bench = context;
    bench->drops++;
    snprintf(bench->drop_reason, sizeof bench->drop_reason, "%s", reason->message);
}

static void on_end(void *context, const struct exchange_outcome *outcome)
{
    struct bench *bench = context;
    bench->has_ended = true;
    bench->outcome = *outcome;
    snprintf(bench->reason, sizeof bench->reason, "%s", outcome->reason);
    memcpy(bench->final, outcome->parameters, sizeof bench->final);
    loop_stop(bench->loop);
}

static struct exchange_server_options server_options(struct bench *bench, const char *policy)
{
    static const float zero[FEATURES];
    return (struct exchange_server_options){
        .loop = bench->loop,
        .policy = text_of(policy),
        .sync = {.gamma_ms = 200},
        .parameter_count = FEATURES,
        .parameters = zero,
        .world = WORKERS,
        .target_accuracy = 0.96,
        .find_peer = find_peer,
        .measure = measure,
        .measure_context = bench,
        .on_drop = on_drop,
        .on_end = on_end,
        .context = bench,
    };
}

static struct bench *bench_new(void)
{
    struct error error;
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    data_make(&bench->data, 11);
    pthread_mutex_init(&bench->gate, NULL);
    ASSERT_OK(loop_open(&clock_system, &bench->loop, &error));
    bench->worker_count = WORKERS;
    for (uint32_t i = 0; i < WORKERS; i++)
        bench->workers[i].step_us = 500 << i; /* speeds 4:2:1 */
    return bench;
}

static void bench_free(struct bench *bench)
{
    if (!bench)
        return;
    exchange_server_free(bench->server);
    for (uint32_t i = 0; i < WORKERS; i++)
        loop_free(bench->workers[i].loop);
    loop_free(bench->loop);
    free(bench);
}
DEFINE_AUTO(bench);

static void bench_run(struct bench *bench, const struct exchange_server_options *options)
{
    struct error error;
    char policy[16];
    assert_int_equal(text_copy(options->policy, policy, sizeof policy, &error), 0);
    ASSERT_OK(exchange_server_open(options, &bench->server, &error));
    for (uint32_t i = 0; i < bench->worker_count; i++)
        worker_open(bench, i, policy, options->epochs);
    for (uint32_t i = 0; i < bench->worker_count; i++)
        worker_start(&bench->workers[i]);
    ASSERT_OK(loop_run(bench->loop, &error));
    assert_true(bench->has_ended);
    bench->status = *exchange_server_status(bench->server);
    memcpy(bench->worker_statuses, bench->status.workers,
           bench->status.worker_count * sizeof *bench->status.workers);
    exchange_server_free(TAKE(bench->server));
    for (uint32_t i = 0; i < bench->worker_count; i++) {
        pthread_join(bench->workers[i].training_thread, NULL);
        pthread_join(bench->workers[i].link_thread, NULL);
    }
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
    assert_true(bench->workers[0].status.waiting_ns > 0);
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

TEST(an_update_that_is_not_finite_drops_its_worker_only)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "adsp");
    options.min_time_ms = 600;
    bench->workers[0].bad_at_step = 30;
    bench->workers[0].die_at_step = 400;
    bench_run(bench, &options);
    assert_target_reached(bench);
    assert_true(bench->drops >= 1);
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
        options.target_accuracy = 0;
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

TEST(training_ends_when_nobody_is_left)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "adsp");
    options.target_accuracy = 2;
    options.lonely_ms = 200;
    for (uint32_t i = 0; i < WORKERS; i++)
        bench->workers[i].die_at_step = 10 + i;
    bench_run(bench, &options);
    assert_string_equal(exchange_end_name(bench->outcome.end), "lost");
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

/* --- one worker by hand, on the server's own loop --- */

struct hand {
    struct link *link;
    bool is_open, is_closed;
    uint32_t models;
    size_t data_bytes;
    struct error reason;
};

static void hand_on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    ((struct hand *)context)->is_open = true;
}

static void hand_on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct hand *hand = context;
    hand->models += type == EXCHANGE_MODEL;
    if (type == EXCHANGE_DATA)
        hand->data_bytes += payload.size - 8;
}

static void hand_on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct hand *hand = context;
    hand->is_closed = true;
    if (reason)
        hand->reason = *reason;
}

static void hand_open(struct bench *bench, struct hand *hand, uint64_t key_lease)
{
    struct error error;
    uint8_t key[LINK_KEY_SIZE];
    key_of(key_lease, key);
    int fd;
    stream_open(bench, &fd);
    const struct link_options options = {
        .loop = bench->loop,
        .identity = "lease:100:4",
        .key = key,
        .callbacks = {hand_on_open, hand_on_frame, hand_on_close, NULL},
        .context = hand,
    };
    *hand = (struct hand){0};
    ASSERT_OK(link_open_take(&options, fd, &hand->link, &error));
}

static void hand_send(struct hand *hand, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, 4096);
    exchange_message_encode(&payload, message);
    ASSERT_OK(link_send_text(hand->link, (uint16_t)message->type, buffer_text(&payload), &error));
}

static void bench_turn(struct bench *bench)
{
    struct error error;
    ASSERT_OK(loop_step(bench->loop, -1, &error));
}

#define RUN_UNTIL(bench, condition)                                                                \
    while (!(condition))                                                                           \
    bench_turn(bench)

static struct bench *hand_bench(void)
{
    struct error error;
    struct bench *bench = bench_new();
    const struct exchange_server_options options = server_options(bench, "tap");
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    return bench;
}

static const struct exchange_message join = {
    .type = EXCHANGE_JOIN, .join = {.rank = 0, .shard_samples = 200, .parameter_count = FEATURES}};

TEST(a_wrong_lease_key_is_refused)
{
    AUTO(bench) struct bench *bench = hand_bench();
    struct hand hand;
    hand_open(bench, &hand, 999);
    RUN_UNTIL(bench, hand.is_closed && bench->drops == 1);
    assert_false(hand.is_open);
    assert_int_equal(exchange_server_status(bench->server)->worker_count, 0);
    link_free(hand.link);
}

static void assert_dropped(struct bench *bench, const struct exchange_message *first,
                           const struct exchange_message *second, struct text data,
                           const char *reason)
{
    struct hand hand;
    struct error error;
    const uint32_t drops = bench->drops;
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    if (first)
        hand_send(&hand, first);
    if (second)
        hand_send(&hand, second);
    if (data.size > 0)
        ASSERT_OK(link_send_text(hand.link, EXCHANGE_DATA, data, &error));
    RUN_UNTIL(bench, hand.is_closed && bench->drops == drops + 1);
    if (!strstr(bench->drop_reason, reason))
        fail_msg("dropped with \"%s\", not \"%s\"", bench->drop_reason, reason);
    link_free(hand.link);
    assert_int_equal(exchange_server_status(bench->server)->member_count, 0);
}

/* A vector in which one float has these bits, and all others are 0. */
static struct text run_with(uint32_t bits)
{
    static char run[8 + FEATURES * sizeof(float)];
    memset(run, 0, sizeof run);
    memcpy(run + sizeof run - sizeof bits, &bits, sizeof bits);
    return (struct text){run, sizeof run};
}

TEST(who_breaks_the_protocol_is_dropped)
{
    AUTO(bench) struct bench *bench = hand_bench();
    const struct exchange_message push = {.type = EXCHANGE_PUSH, .push = {.number = 1, .steps = 1}};
    const struct exchange_message stop = {.type = EXCHANGE_STOP};
    struct exchange_message other_model = join;
    other_model.join.parameter_count = 7;
    const struct text nothing = {0};
    assert_dropped(bench, &push, NULL, nothing, "out of turn");
    assert_dropped(bench, &join, &join, nothing, "second join");
    assert_dropped(bench, &other_model, NULL, nothing, "7 parameters");
    assert_dropped(bench, &stop, NULL, nothing, "only a server sends");
    struct exchange_message other_rank = join, empty_push = push;
    other_rank.join.rank = 1;
    empty_push.push.steps = 0;
    assert_dropped(bench, &other_rank, NULL, nothing, "rank 1 is not its own");
    assert_dropped(bench, &join, &empty_push, nothing, "without a step");
    assert_dropped(bench, &join, &push, run_with(0x7e800000), "as good as");
    assert_dropped(bench, &join, NULL, TEXT("\0\0\0\0\0\0\0\0abcd"), "data without a push");
    assert_dropped(bench, &join, &push, TEXT("\1\0\0\0\0\0\0\0abcd"), "at 1 where 0");
    assert_dropped(bench, &join, &push, run_with(0x7f800000), "not finite");
    assert_dropped(bench, &join, &push, TEXT("\0\0\0"), "no run");
    struct exchange_message int8_push = push;
    int8_push.push.codec = CODEC_INT8;
    assert_dropped(bench, &join, &int8_push, run_with(0), "no run of 20 floats as int8");
    assert_int_equal(exchange_server_status(bench->server)->version, 0);
}

TEST(a_stream_cut_within_a_push_changes_nothing)
{
    enum { COUNT = EXCHANGE_DATA_FLOATS + FEATURES };
    static const float zero[COUNT];
    static char first_run[8 + EXCHANGE_DATA_FLOATS * sizeof(float)]; /* of two */
    AUTO(bench) struct bench *bench = bench_new();
    struct hand hand;
    struct error error;
    struct exchange_server_options options = server_options(bench, "tap");
    struct exchange_message large_join = join;
    options.parameter_count = large_join.join.parameter_count = COUNT;
    options.parameters = zero;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &large_join);
    RUN_UNTIL(bench, hand.data_bytes == COUNT * sizeof(float));
    hand_send(&hand,
              &(struct exchange_message){.type = EXCHANGE_PUSH, .push = {.number = 1, .steps = 1}});
    memset(first_run + 8, 0x3e, sizeof first_run - 8); /* numbers above 0 */
    ASSERT_OK(link_send_text(hand.link, EXCHANGE_DATA, (struct text){first_run, sizeof first_run},
                             &error));
    RUN_UNTIL(bench, exchange_server_status(bench->server)->received_bytes == sizeof first_run);
    link_free(hand.link);
    RUN_UNTIL(bench, bench->drops == 1);
    assert_int_equal(exchange_server_status(bench->server)->version, 0);
    assert_int_equal(exchange_server_status(bench->server)->member_count, 0);
}

TEST(a_worker_may_come_back_before_its_old_link_is_seen_to_be_dead)
{
    AUTO(bench) struct bench *bench = hand_bench();
    struct hand old, new;
    hand_open(bench, &old, lease_of(0));
    RUN_UNTIL(bench, old.is_open);
    hand_send(&old, &join);
    RUN_UNTIL(bench, old.models == 1);
    hand_open(bench, &new, lease_of(0));
    RUN_UNTIL(bench, new.is_open);
    hand_send(&new, &join);
    RUN_UNTIL(bench, new.models == 1 && old.is_closed);
    const struct exchange_status *status = exchange_server_status(bench->server);
    assert_int_equal(status->worker_count, 1);
    assert_int_equal(status->member_count, 1);
    link_free(old.link);
    link_free(new.link);
}

TEST(a_silent_worker_is_dropped)
{
    struct error error;
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "bsp");
    options.silent_ms = 120;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    struct hand hand;
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &join);
    RUN_UNTIL(bench, hand.is_closed);
    assert_non_null(strstr(bench->drop_reason, "silent"));
    link_free(hand.link);
}

TEST(a_stop_does_not_wait_for_a_slow_measurement)
{
    AUTO(bench) struct bench *bench = hand_bench();
    struct hand hand;
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &join);
    RUN_UNTIL(bench, hand.models == 1);
    pthread_mutex_lock(&bench->gate);
    exchange_server_stop(bench->server, "cancelled", 200);
    RUN_UNTIL(bench, bench->has_ended);
    pthread_mutex_unlock(&bench->gate);
    assert_string_equal(exchange_end_name(bench->outcome.end), "stopped");
    assert_string_equal(bench->reason, "cancelled");
    assert_false(bench->outcome.has_accuracy);
    link_free(hand.link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adsp_trains_on_unequal_workers_and_nobody_waits),
        cmocka_unit_test(bsp_keeps_all_workers_in_step),
        cmocka_unit_test(tap_lets_the_fast_run_ahead),
        cmocka_unit_test(vectors_made_smaller_train_as_well),
        cmocka_unit_test(auto_leaves_small_vectors_as_they_are),
        cmocka_unit_test(a_worker_that_dies_stops_nobody_under_any_policy),
        cmocka_unit_test(a_worker_that_leaves_in_good_order_has_pushed_all_it_learnt),
        cmocka_unit_test(a_worker_with_a_new_stream_goes_on_under_any_policy),
        cmocka_unit_test(an_update_that_is_not_finite_drops_its_worker_only),
        cmocka_unit_test(training_ends_after_its_epochs),
        cmocka_unit_test(training_ends_when_nobody_is_left),
        cmocka_unit_test(a_failed_measurement_ends_training_with_the_reason),
        cmocka_unit_test(a_wrong_lease_key_is_refused),
        cmocka_unit_test(who_breaks_the_protocol_is_dropped),
        cmocka_unit_test(a_stream_cut_within_a_push_changes_nothing),
        cmocka_unit_test(a_worker_may_come_back_before_its_old_link_is_seen_to_be_dead),
        cmocka_unit_test(a_silent_worker_is_dropped),
        cmocka_unit_test(a_stop_does_not_wait_for_a_slow_measurement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
