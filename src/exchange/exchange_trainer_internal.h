/*
 * Exchange trainer, for tests: the fixture's workers train the regression, each on a thread of its
 * own and at its own speed.
 */
#pragma once

#include "exchange/exchange_fixture_internal.h"

#include <time.h>

static inline double step(struct worker *worker, struct random *random)
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
    const struct timespec pause = {0, worker->step_us * 1000};
    nanosleep(&pause, NULL); /* clock: simulates a slow machine */
    return loss;
}

/* A new stream in place of the one at hand, whatever that is doing. */
static inline void stream_replace(void *context)
{
    struct worker *worker = context;
    worker_attach_take(worker, 0, worker->second_fd, 0);
}

/* Who steps before the others have joined makes rounds of its own. */
static inline void wait_until_joined(struct worker *worker)
{
    const struct timespec moment = {0, 1000000};
    exchange_client_status(worker->client, &worker->status);
    while (worker->status.state == EXCHANGE_CLIENT_CONNECTING && !atomic_load(worker->is_over)) {
        nanosleep(&moment, NULL); /* clock: poll interval */
        exchange_client_status(worker->client, &worker->status);
    }
}

static inline void *training_run(void *context)
{
    struct worker *worker = context;
    struct random random;
    random_init(&random, 100 + worker->rank);
    exchange_client_begin(worker->client, worker->parameters);
    if (worker->start || worker->die_at_step > 0) /* who dies unknown is not missed */
        wait_until_joined(worker);
    if (worker->start)
        pthread_barrier_wait(worker->start);
    for (uint64_t count = 1;; count++) {
        struct exchange_step done = {.samples = BATCH};
        done.started_ns = clock_monotonic_ns(&clock_system);
        done.loss = step(worker, &random);
        done.ended_ns = clock_monotonic_ns(&clock_system);
        if (count == worker->rejoin_at_step)
            loop_post(worker->loop, stream_replace, worker);
        if (count == worker->bad_at_step)
            worker->parameters[3] = NAN;
        if (count == worker->diverge_at_step) {
            exchange_client_diverged(worker->client, 2000);
            break;
        }
        const bool goes_on = exchange_client_step(worker->client, &done, worker->parameters);
        if (!goes_on || count == worker->leave_at_step || count == worker->die_at_step)
            break;
    }
    if (worker->die_at_step == 0 && worker->diverge_at_step == 0)
        exchange_client_finish(worker->client, worker->parameters,
                               worker->leave_at_step > 0 ? 30000 : 2000);
    exchange_client_status(worker->client, &worker->status);
    loop_stop(worker->loop);
    return NULL;
}

static inline void worker_start(struct worker *worker)
{
    assert_int_equal(pthread_create(&worker->link_thread, NULL, link_run, worker), 0);
    assert_int_equal(pthread_create(&worker->training_thread, NULL, training_run, worker), 0);
}

/* A worker that is cut off never hears that training ended; all others must hear it from the
 * server. */
static inline void worker_stop(void *context)
{
    struct worker *worker = context;
    if (worker->client)
        exchange_client_stop(worker->client, "training has ended");
}

/* Its workers train to the end of it all; what the server knew then is kept. */
static inline void bench_finish(struct bench *bench)
{
    struct error error;
    for (uint32_t i = 0; i < bench->worker_count; i++) {
        bench->workers[i].is_over = &bench->is_over;
        worker_start(&bench->workers[i]);
    }
    ASSERT_OK(loop_run(bench->loop, &error));
    assert_true(bench->has_ended);
    bench->status = *exchange_server_status(bench->server);
    memcpy(bench->worker_statuses, bench->status.workers,
           bench->status.worker_count * sizeof *bench->status.workers);
    exchange_server_free(TAKE(bench->server));
    atomic_store(&bench->is_over, true);
    for (uint32_t i = 0; i < bench->worker_count; i++) {
        if (bench->workers[i].is_cut_off)
            loop_post(bench->workers[i].loop, worker_stop, &bench->workers[i]);
        pthread_join(bench->workers[i].training_thread, NULL);
        pthread_join(bench->workers[i].link_thread, NULL);
    }
}
