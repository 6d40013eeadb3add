#include "exchange/bench_exchange.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/random.h"
#include "exchange/client.h"
#include "exchange/server.h"
#include "net/address.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    WARM_UP_EXCHANGES = 2, /* memory is touched, the connection has found its speed */
    NEVER_MS = 24 * 3600 * 1000,
    LEAVE_MS = 10000,
};

struct worker {
    struct bench *bench;
    struct loop *loop;
    struct exchange_client *client;
    float *parameters;
    pthread_t link_thread, training_thread;
    uint64_t exchanges;
    int64_t step_ns; /* of the round: its steps' own */
    double step_cpu_s;
};

struct bench {
    const struct bench_exchange_options *options;
    struct loop *loop;
    struct exchange_server *server;
    float *first;
    struct worker workers[BENCH_EXCHANGE_WORKERS_MAX];
    pthread_barrier_t barrier;
    /* Of the round; set by worker 0 while the others stand at the barrier. */
    int64_t started_ns, ended_ns;
    double started_cpu_s, ended_cpu_s;
    uint32_t done_count; /* on the server's loop */
    struct error failed; /* of a worker that was dropped; on the server's loop */
};

static double process_cpu_s(void)
{
    struct rusage usage;
    ASSERT(getrusage(RUSAGE_SELF, &usage) == 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double thread_cpu_s(void)
{
    struct timespec used;
    ASSERT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* --- workers --- */

static void worker_done(void *context)
{
    struct bench *bench = context;
    if (++bench->done_count == bench->options->worker_count)
        loop_stop(bench->loop);
}

/* A step that changes every parameter, for zeros would travel shorter; then push and pull. Only the
 * latter are the exchange's time. False when the link is lost. */
static bool exchange_once(struct worker *worker)
{
    struct exchange_step step = {.samples = 1};
    step.started_ns = clock_monotonic_ns(&clock_system);
    const double started_cpu_s = thread_cpu_s();
    for (size_t i = 0; i < worker->bench->options->float_count; i++)
        worker->parameters[i] += 0.001F;
    worker->step_cpu_s += thread_cpu_s() - started_cpu_s;
    step.ended_ns = clock_monotonic_ns(&clock_system);
    worker->step_ns += step.ended_ns - step.started_ns;
    return exchange_client_step(worker->client, &step, worker->parameters);
}

static void *training_run(void *context)
{
    struct worker *worker = context;
    struct bench *bench = worker->bench;
    const bool is_first = worker == &bench->workers[0];
    exchange_client_begin(worker->client, worker->parameters);
    bool goes_on = true;
    for (int i = 0; i < WARM_UP_EXCHANGES && goes_on; i++)
        goes_on = exchange_once(worker);
    pthread_barrier_wait(&bench->barrier);
    if (is_first) {
        bench->started_cpu_s = process_cpu_s();
        bench->started_ns = clock_monotonic_ns(&clock_system);
    }
    pthread_barrier_wait(&bench->barrier);
    worker->step_ns = 0;
    worker->step_cpu_s = 0;
    const int64_t until_ns = bench->started_ns + bench->options->round_ms * 1000000;
    while (goes_on && clock_monotonic_ns(&clock_system) < until_ns) {
        goes_on = exchange_once(worker);
        worker->exchanges += goes_on;
    }
    pthread_barrier_wait(&bench->barrier);
    if (is_first) {
        bench->ended_ns = clock_monotonic_ns(&clock_system);
        bench->ended_cpu_s = process_cpu_s();
    }
    exchange_client_finish(worker->client, worker->parameters, LEAVE_MS);
    loop_stop(worker->loop);
    loop_post(bench->loop, worker_done, bench);
    return NULL;
}

static void *link_run(void *context)
{
    struct worker *worker = context;
    struct error error;
    ASSERT(loop_run(worker->loop, &error) == 0);
    return NULL;
}

static void key_of(uint64_t lease, uint8_t out_key[LINK_KEY_SIZE])
{
    memset(out_key, (int)lease, LINK_KEY_SIZE); /* both ends are this process */
}

/* --- the server --- */

static int find_peer(void *context __attribute__((unused)), uint64_t lease,
                     uint64_t fence __attribute__((unused)), struct exchange_peer *out_peer)
{
    out_peer->rank = (uint32_t)lease - 1;
    key_of(lease, out_peer->key);
    return 0;
}

static int measure(void *context __attribute__((unused)),
                   struct evaluation_report *report __attribute__((unused)),
                   struct error *error __attribute__((unused)))
{
    return 0; /* nothing is learnt here */
}

static void on_drop(void *context, uint64_t lease, const struct error *reason)
{
    struct bench *bench = context;
    bench->failed = *reason;
    error_wrap(&bench->failed, "worker %d", (int)lease);
    for (uint32_t i = 0; i < bench->options->worker_count; i++)
        exchange_client_stop(bench->workers[i].client, reason->message);
}

static void on_end(void *context, const struct exchange_outcome *outcome)
{
    struct bench *bench = context;
    error_set(&bench->failed, ERROR_UNAVAILABLE, "%s", outcome->reason);
    for (uint32_t i = 0; i < bench->options->worker_count; i++)
        exchange_client_stop(bench->workers[i].client, outcome->reason);
}

static int server_open(struct bench *bench, struct error *error)
{
    const struct bench_exchange_options *wanted = bench->options;
    const struct exchange_server_options options = {
        .loop = bench->loop,
        .policy = TEXT("tap"),
        .sync = {.gamma_ms = NEVER_MS},
        .compress = {.codec = CODEC_F32},
        .parameter_count = wanted->float_count,
        .parameters = bench->first,
        .world = wanted->worker_count,
        .evaluate_ms = NEVER_MS,
        .is_bench_tls = wanted->way == BENCH_EXCHANGE_TLS,
        .is_bench_plain = wanted->way == BENCH_EXCHANGE_PLAIN,
        .find_peer = find_peer,
        .measure = measure,
        .on_drop = on_drop,
        .on_end = on_end,
        .context = bench,
    };
    return exchange_server_open(&options, &bench->server, error);
}

/* --- the connection --- */

static int connect_pair(int *out_client_fd, int *out_server_fd, struct error *error)
{
    const struct host_port host_port = {.host = "127.0.0.1"};
    struct address address;
    AUTO_FD int listen_fd = -1;
    uint16_t port;
    if (address_resolve(&host_port, &address, error) < 0 ||
        tcp_listen(&address, "--listen", &listen_fd, &port, error) < 0)
        return -1;
    address.size = sizeof(address.storage);
    AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || getsockname(listen_fd, (struct sockaddr *)&address.storage, &address.size) < 0 ||
        connect(fd, (struct sockaddr *)&address.storage, address.size) < 0)
        return error_set_errno(error, errno, "connect on loopback");
    const int one = 1; /* as tcp_connect_start and tcp_accept do */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    const int accepted = tcp_accept(listen_fd, out_server_fd, NULL, error);
    if (accepted <= 0)
        return accepted < 0 ? -1 : error_set(error, ERROR_UNAVAILABLE, "nobody connected");
    *out_client_fd = TAKE_FD(fd);
    return 0;
}

static int worker_open(struct worker *worker, uint32_t rank, struct error *error)
{
    const struct bench_exchange_options *wanted = worker->bench->options;
    struct exchange_client_options options = {
        .lease = rank + 1,
        .fence = 1,
        .rank = rank,
        .shard_samples = 1,
        .parameter_count = wanted->float_count,
        .local_steps = 1,
        .is_bench_tls = wanted->way == BENCH_EXCHANGE_TLS,
        .is_bench_plain = wanted->way == BENCH_EXCHANGE_PLAIN,
    };
    key_of(options.lease, options.key);
    const size_t size = wanted->float_count * sizeof(float);
    worker->parameters = malloc(size);
    if (!worker->parameters)
        return error_set(error, ERROR_EXHAUSTED, "no memory for a vector of %zu bytes", size);
    memcpy(worker->parameters, worker->bench->first, size);
    if (loop_open(&clock_system, &worker->loop, error) < 0)
        return -1;
    options.loop = worker->loop;
    AUTO_FD int client_fd = -1;
    AUTO_FD int server_fd = -1;
    if (exchange_client_open(&options, &worker->client, error) < 0 ||
        connect_pair(&client_fd, &server_fd, error) < 0 ||
        exchange_server_attach_take(worker->bench->server, server_fd, error) < 0)
        return -1;
    (void)TAKE_FD(server_fd);
    if (exchange_client_attach_take(worker->client, 0, client_fd, 0, error) < 0)
        return -1;
    (void)TAKE_FD(client_fd);
    return 0;
}

/* --- the round --- */

static int open_all(struct bench *bench, struct error *error)
{
    const struct bench_exchange_options *wanted = bench->options;
    struct random random;
    random_init(&random, 1);
    bench->first = malloc(wanted->float_count * sizeof(float));
    if (!bench->first)
        return error_set(error, ERROR_EXHAUSTED, "no memory for %zu floats", wanted->float_count);
    for (size_t i = 0; i < wanted->float_count; i++)
        bench->first[i] = (float)random_unit(&random) - 0.5F;
    if (loop_open(&clock_system, &bench->loop, error) < 0 || server_open(bench, error) < 0)
        return -1;
    for (uint32_t i = 0; i < wanted->worker_count; i++) {
        bench->workers[i].bench = bench;
        if (worker_open(&bench->workers[i], i, error) < 0)
            return -1;
    }
    return 0;
}

static void start_threads(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->options->worker_count; i++) {
        struct worker *worker = &bench->workers[i];
        ASSERT(pthread_create(&worker->link_thread, NULL, link_run, worker) == 0);
        ASSERT(pthread_create(&worker->training_thread, NULL, training_run, worker) == 0);
    }
}

static void join_threads(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->options->worker_count; i++) {
        pthread_join(bench->workers[i].training_thread, NULL);
        pthread_join(bench->workers[i].link_thread, NULL);
    }
}

static void close_all(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->options->worker_count; i++) {
        struct worker *worker = &bench->workers[i];
        exchange_client_free(worker->client);
        loop_free(worker->loop);
        free(worker->parameters);
    }
    exchange_server_free(bench->server);
    loop_free(bench->loop);
    free(bench->first);
    pthread_barrier_destroy(&bench->barrier);
    free(bench);
}

static int read_result(const struct bench *bench, struct bench_exchange_result *out,
                       struct error *error)
{
    if (bench->failed.code != ERROR_NONE) {
        *error = bench->failed;
        return -1;
    }
    uint64_t exchanges = 0;
    double round_s = 1e-9 * (double)(bench->ended_ns - bench->started_ns);
    double cpu_s = bench->ended_cpu_s - bench->started_cpu_s;
    for (uint32_t i = 0; i < bench->options->worker_count; i++) {
        exchanges += bench->workers[i].exchanges;
        round_s -= 1e-9 * (double)bench->workers[i].step_ns / bench->options->worker_count;
        cpu_s -= bench->workers[i].step_cpu_s;
    }
    if (exchanges == 0)
        return error_set(error, ERROR_UNAVAILABLE, "no vector was exchanged");
    const double bytes =
        2.0 * sizeof(float) * (double)bench->options->float_count * (double)exchanges;
    *out = (struct bench_exchange_result){
        .exchanges = exchanges,
        .bytes_per_s = bytes / round_s,
        .cpu_s_per_gb = cpu_s / (bytes / 1e9),
    };
    return 0;
}

int bench_exchange_run(const struct bench_exchange_options *options,
                       struct bench_exchange_result *out_result, struct error *error)
{
    ASSERT(options->worker_count > 0 && options->worker_count <= BENCH_EXCHANGE_WORKERS_MAX);
    struct bench *bench = calloc(1, sizeof(*bench));
    ASSERT(bench);
    bench->options = options;
    ASSERT(pthread_barrier_init(&bench->barrier, NULL, options->worker_count) == 0);
    int result = open_all(bench, error);
    if (result == 0) {
        start_threads(bench);
        result = loop_run(bench->loop, error);
        join_threads(bench);
    }
    if (result == 0)
        result = read_result(bench, out_result, error);
    close_all(bench);
    return result;
}
