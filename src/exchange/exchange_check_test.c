/*
 * Three workers that make one another's pushes again; some lie in what they push, or in what they
 * say of others.
 *
 * covers client_check.c, server_check.c
 */
#include "exchange/exchange_fixture_internal.h"

enum { LOCAL_STEPS = 4, CHECKS = 12, LATE_PUSHES = 4000 };

struct maker {
    struct worker *worker;
    sem_t *begins;
    bool lies_in_pushes, lies_of_others;
    bool is_late;  /* waits until the others have pushed LATE_PUSHES */
    uint32_t made; /* pushes of others */
};

/* One step of a rank: which samples it draws follows from the step's number alone. */
static double step(const struct data *data, uint32_t rank, uint64_t number, float *parameters)
{
    struct random random;
    random_init(&random, rank * UINT64_C(1000003) + number);
    float gradient[FEATURES] = {0};
    double loss = 0;
    for (int b = 0; b < BATCH; b++) {
        const uint32_t i = (uint32_t)random_below(&random, SAMPLES);
        const float margin = margin_of(data, parameters, i);
        const float slope = -data->y[i] / (1 + expf(margin));
        loss += log1p(exp(-(double)margin)) / BATCH;
        for (int k = 0; k < FEATURES; k++)
            gradient[k] += slope * data->x[i][k] / BATCH;
    }
    for (int k = 0; k < FEATURES; k++)
        parameters[k] -= 0.1F * gradient[k];
    return loss;
}

static int recompute(void *context, const struct exchange_recompute *task, float *values)
{
    struct maker *maker = context;
    float start[FEATURES];
    memcpy(start, values, sizeof start);
    assert_int_equal(task->batch, BATCH);
    assert_int_equal(task->first_sample, task->first_step * BATCH);
    for (uint32_t i = 0; i < task->steps; i++)
        step(maker->worker->data, task->rank, task->first_step + i, values);
    for (int k = 0; k < FEATURES; k++)
        values[k] = maker->lies_of_others ? (float)k : values[k] - start[k];
    maker->made++;
    return 0;
}

/* Who is shut out gives up. */
static void on_change(void *context)
{
    const struct maker *maker = context;
    struct exchange_client_status status;
    exchange_client_status(maker->worker->client, &status);
    if (status.state == EXCHANGE_CLIENT_CONNECTING)
        exchange_client_stop(maker->worker->client, "the link is lost");
}

static void *training_run(void *context)
{
    const struct maker *maker = context;
    struct worker *worker = maker->worker;
    exchange_client_begin(worker->client, worker->parameters);
    if (maker->is_late)
        sem_wait(maker->begins);
    for (uint64_t number = 0;; number++) {
        struct exchange_step done = {
            .samples = BATCH, .first_step = number, .first_sample = number * BATCH};
        done.started_ns = clock_monotonic_ns(&clock_system);
        done.loss = step(worker->data, worker->rank, number, worker->parameters);
        done.ended_ns = clock_monotonic_ns(&clock_system);
        /* Alternate signs, so that no worker's loss becomes infinite. */
        if (maker->lies_in_pushes)
            worker->parameters[number % FEATURES] -= number / FEATURES % 2 ? -1 : 1;
        if (!exchange_client_step(worker->client, &done, worker->parameters))
            break;
    }
    exchange_client_finish(worker->client, worker->parameters, 500);
    loop_stop(worker->loop);
    return NULL;
}

static void maker_start(struct bench *bench, struct maker *maker, uint32_t rank)
{
    struct error error;
    maker->begins = &bench->late_begins;
    struct worker *worker = maker->worker = &bench->workers[rank];
    worker->rank = rank;
    worker->data = &bench->data;
    ASSERT_OK(loop_open(&clock_system, &worker->loop, &error));
    struct exchange_client_options options = {
        .loop = worker->loop,
        .lease = lease_of(rank),
        .fence = FENCE,
        .rank = rank,
        .parameter_count = FEATURES,
        .local_steps = 1,
        .is_exact = true,
        .recompute = recompute,
        .on_change = on_change,
        .context = maker,
    };
    key_of(options.lease, options.key);
    ASSERT_OK(exchange_client_open(&options, &worker->client, &error));
    int fd;
    stream_open(bench, &fd);
    ASSERT_OK(exchange_client_attach_take(worker->client, 0, fd, 0, &error));
    assert_int_equal(pthread_create(&worker->link_thread, NULL, link_run, worker), 0);
    assert_int_equal(pthread_create(&worker->training_thread, NULL, training_run, maker), 0);
}

static bool is_faulty(struct bench *bench, uint64_t lease)
{
    const struct exchange_status *status = exchange_server_status(bench->server);
    for (uint32_t i = 0; i < status->worker_count; i++)
        if (status->workers[i].lease == lease && status->workers[i].is_faulty)
            return true;
    return false;
}

static void bench_push(void *context, uint32_t rank, double loss)
{
    (void)rank, (void)loss;
    struct bench *bench = context;
    if (++bench->pushes == LATE_PUSHES)
        sem_post(&bench->late_begins);
}

/* Checks may find no faulty worker unless all three take part. */
static void bench_drop(void *context, uint64_t lease, const struct error *reason)
{
    struct bench *bench = context;
    on_drop(bench, lease, reason);
    if (!is_faulty(bench, lease))
        exchange_server_stop(bench->server, "a worker was dropped that is not faulty", 2000);
}

static void bench_check(void *context)
{
    struct bench *bench = context;
    bool has_faulty = false;
    const struct exchange_status *status = exchange_server_status(bench->server);
    for (uint32_t i = 0; i < status->worker_count; i++)
        has_faulty |= status->workers[i].is_faulty;
    if (has_faulty || (!bench->must_find && status->checks >= CHECKS))
        exchange_server_stop(bench->server, "enough was checked", 2000);
}

/* Until somebody is found wrong; where none is to be found, until CHECKS pushes were checked. */
static void bench_run(struct bench *bench, const char *policy, struct maker makers[WORKERS])
{
    struct error error;
    for (uint32_t i = 0; i < WORKERS; i++)
        bench->must_find |= makers[i].lies_in_pushes || makers[i].lies_of_others;
    struct exchange_server_options options = server_options(bench, policy);
    options.sync.local_steps = LOCAL_STEPS;
    options.verify = 1;
    options.check_seed = 5;
    options.on_change = bench_check;
    options.on_push = bench_push;
    options.on_drop = bench_drop;
    bench->target_accuracy = 0;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    for (uint32_t i = 0; i < WORKERS; i++)
        maker_start(bench, &makers[i], i);
    ASSERT_OK(loop_run(bench->loop, &error));
    bench->status = *exchange_server_status(bench->server);
    memcpy(bench->worker_statuses, bench->status.workers,
           bench->status.worker_count * sizeof *bench->status.workers);
    exchange_server_free(TAKE(bench->server));
    sem_post(&bench->late_begins);
    for (uint32_t i = 0; i < WORKERS; i++) {
        pthread_join(bench->workers[i].training_thread, NULL);
        pthread_join(bench->workers[i].link_thread, NULL);
    }
}

static void assert_found(const struct bench *bench, uint32_t liar)
{
    bool is_found = false;
    for (uint32_t i = 0; i < bench->status.worker_count; i++) {
        const struct exchange_worker_status *worker = &bench->worker_statuses[i];
        if (worker->is_faulty && worker->lease != lease_of(liar))
            fail_msg("an honest one was shut out: %s", worker->fault);
        is_found |= worker->is_faulty;
        if (!worker->is_faulty)
            continue;
        assert_non_null(strstr(worker->fault, "agree"));
        assert_int_not_equal(worker->agreeing[0], worker->agreeing[1]);
        for (size_t k = 0; k < 2; k++) {
            assert_in_range(worker->agreeing[k], lease_of(0), lease_of(WORKERS - 1));
            assert_int_not_equal(worker->agreeing[k], worker->lease);
        }
    }
    assert_true(is_found);
    assert_non_null(strstr(bench->drop_reason, "off by"));
}

TEST(honest_pushes_pass_under_every_kind_of_policy)
{
    static const char *const policies[] = {"bsp", "tap", "adsp", "pace"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        AUTO(bench) struct bench *bench = bench_new();
        struct maker makers[WORKERS] = {{0}};
        bench_run(bench, policies[i], makers);
        if (bench->drops > 0)
            fail_msg("%s: dropped with \"%s\"", policies[i], bench->drop_reason);
        assert_true(bench->status.checks >= CHECKS);
        assert_int_equal(bench->status.checks_undecided, 0);
        for (uint32_t rank = 0; rank < WORKERS; rank++)
            assert_false(bench->worker_statuses[rank].is_faulty);
        assert_true(makers[0].made + makers[1].made + makers[2].made >= CHECKS);
    }
}

TEST(who_pushes_garbage_is_found_and_shut_out)
{
    static const char *const policies[] = {"bsp", "tap"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        AUTO(bench) struct bench *bench = bench_new();
        struct maker makers[WORKERS] = {{0}, {.lies_in_pushes = true}};
        bench_run(bench, policies[i], makers);
        assert_found(bench, 1);
    }
}

/* The late worker gets both checks at once and keeps them until it begins. */
TEST(who_pushes_garbage_is_found_by_one_that_begins_late)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct maker makers[WORKERS] = {{0}, {.lies_in_pushes = true}, {.is_late = true}};
    bench_run(bench, "tap", makers);
    assert_found(bench, 1);
}

TEST(who_lies_of_others_is_found_and_shut_out)
{
    AUTO(bench) struct bench *bench = bench_new();
    struct maker makers[WORKERS] = {{0}, {0}, {.lies_of_others = true}};
    bench_run(bench, "tap", makers);
    assert_found(bench, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_pushes_pass_under_every_kind_of_policy),
        cmocka_unit_test(who_pushes_garbage_is_found_and_shut_out),
        cmocka_unit_test(who_pushes_garbage_is_found_by_one_that_begins_late),
        cmocka_unit_test(who_lies_of_others_is_found_and_shut_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
