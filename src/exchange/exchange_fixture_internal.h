/*
 * Exchange fixture, for tests: a seeded logistic regression, and a parameter server for it over
 * encrypted socket pairs.
 */
#pragma once

#include "base/random.h"
#include "exchange/client.h"
#include "exchange/server.h"
#include "testing/testing.h"

#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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
    uint64_t die_at_step;       /* without a word; 0: never */
    pthread_barrier_t *start;   /* the first step waits until all have joined; NULL: it does not */
    const atomic_bool *is_over; /* the server is gone */
    uint64_t leave_at_step;     /* in good order; 0: never */
    uint64_t bad_at_step;       /* parameters become not finite; 0: never */
    uint64_t diverge_at_step;   /* says that its loss is not finite; 0: never */
    uint64_t rejoin_at_step;    /* on second_fd */
    bool is_cut_off;            /* second_fd is shut down */
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
    uint64_t server_fences[EXCHANGE_SERVERS_MAX + 1]; /* of other servers; 0: there is none */
    bool has_ended;
    atomic_bool is_over; /* no stream comes any more */
    struct exchange_outcome outcome;
    char reason[256];
    float final[FEATURES];
    uint32_t drops;
    char drop_reason[256];
    struct exchange_status status;
    struct exchange_worker_status worker_statuses[WORKERS];
    double target_accuracy; /* 0: none */
    uint32_t target_after;  /* so many measurements on all data it counts as reached */
    bool must_fail_measuring;
    bool must_find;          /* a worker that is faulty, before it ends */
    uint32_t pushes;         /* accepted so far, where a test counts */
    sem_t late_begins;       /* posted after some pushes */
    bool is_never_finite;    /* a loss that is measured */
    uint32_t diverges_after; /* so many measurements on all data a loss is not finite; 0: never */
    uint32_t full_count;     /* of those */
    uint32_t epoch_count;    /* that were told, by as many workers each: */
    uint32_t epoch_workers[16];
    pthread_mutex_t gate; /* locked: measuring stands still */
};

static inline void data_make(struct data *data, uint64_t seed)
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

static inline float margin_of(const struct data *data, const float *w, uint32_t i)
{
    float sum = 0;
    for (int k = 0; k < FEATURES; k++)
        sum += w[k] * data->x[i][k];
    return sum * data->y[i];
}

static inline int measure(void *context, struct evaluation_report *report, struct error *error)
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
    if (bench->target_accuracy > 0 && report->accuracy >= bench->target_accuracy &&
        bench->full_count >= bench->target_after) {
        report->is_target_reached = true;
        snprintf(report->reached, sizeof report->reached, "the test accuracy reached %.4f",
                 report->accuracy);
    }
    bench->full_count += report->kind == EVALUATION_FULL;
    if (bench->is_never_finite ||
        (bench->diverges_after > 0 && bench->full_count > bench->diverges_after))
        report->loss = (double)NAN;
    return 0;
}

static inline void key_of(uint64_t lease, uint8_t out_key[LINK_KEY_SIZE])
{
    for (int i = 0; i < LINK_KEY_SIZE; i++)
        out_key[i] = (uint8_t)(lease * 31 + i);
}

static inline uint64_t lease_of(uint32_t rank)
{
    return 100 + rank;
}

static inline uint64_t lease_of_server(uint32_t rank)
{
    return 200 + rank;
}

static inline void stream_open(struct bench *bench, int *out_fd)
{
    struct error error;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_OK(exchange_server_attach_take(bench->server, ends[0], &error));
    *out_fd = ends[1];
}

static inline int find_peer(void *context, uint64_t lease, uint64_t fence,
                            struct exchange_peer *out_peer)
{
    const struct bench *bench = context;
    for (uint32_t rank = 1; rank <= EXCHANGE_SERVERS_MAX; rank++)
        if (lease == lease_of_server(rank) && fence == bench->server_fences[rank] && fence > 0) {
            out_peer->is_server = true;
            out_peer->rank = rank;
            key_of(lease, out_peer->key);
            return 0;
        }
    if (lease < lease_of(0) || lease >= lease_of(WORKERS) || fence != FENCE)
        return -1;
    out_peer->rank = (uint32_t)(lease - lease_of(0));
    key_of(lease, out_peer->key);
    return 0;
}

static inline void on_drop(void *context, uint64_t lease, const struct error *reason)
{
    (void)lease;
    struct bench *bench = context;
    bench->drops++;
    snprintf(bench->drop_reason, sizeof bench->drop_reason, "%s", reason->message);
}

static inline void on_end(void *context, const struct exchange_outcome *outcome)
{
    struct bench *bench = context;
    bench->has_ended = true;
    bench->outcome = *outcome;
    snprintf(bench->reason, sizeof bench->reason, "%s", outcome->reason);
    if (outcome->parameters)
        memcpy(bench->final, outcome->parameters, sizeof bench->final);
    loop_stop(bench->loop);
}

static inline struct exchange_server_options server_options(struct bench *bench, const char *policy)
{
    static const float zero[FEATURES];
    return (struct exchange_server_options){
        .loop = bench->loop,
        .policy = text_of(policy),
        .sync = {.gamma_ms = 200},
        .parameter_count = FEATURES,
        .parameters = zero,
        .world = WORKERS,
        .silent_ms = HUNG_MS, /* a busy machine's worker is not dead */
        .find_peer = find_peer,
        .measure = measure,
        .measure_context = bench,
        .on_drop = on_drop,
        .on_end = on_end,
        .context = bench,
    };
}

static inline struct bench *bench_new(void)
{
    struct error error;
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    data_make(&bench->data, 11);
    pthread_mutex_init(&bench->gate, NULL);
    sem_init(&bench->late_begins, 0, 0);
    ASSERT_OK(loop_open(&clock_system, &bench->loop, &error));
    bench->worker_count = WORKERS;
    bench->target_accuracy = 0.96;
    for (uint32_t i = 0; i < WORKERS; i++)
        bench->workers[i].step_us = 500 << i; /* speeds 4:2:1 */
    return bench;
}

/* On the link's thread, or once that has ended: who is gone by then is sent no stream. */
static inline void worker_attach_take(struct worker *worker, uint32_t server, int fd, uint64_t term)
{
    struct error error;
    if (!worker->client) {
        close(fd);
        return;
    }
    if (exchange_client_attach_take(worker->client, server, fd, term, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        close(fd);
    }
}

/*
 * A worker's link, on a thread of its own. Training may have ended before this thread first ran,
 * or while a stream was posted: what is posted after this finds the client gone.
 */
static inline void *link_run(void *context)
{
    struct worker *worker = context;
    struct error error;
    if (loop_run(worker->loop, &error) < 0)
        fprintf(stderr, "%s\n", error.message);
    exchange_client_free(TAKE(worker->client));
    return NULL;
}

static inline void bench_free(struct bench *bench)
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
