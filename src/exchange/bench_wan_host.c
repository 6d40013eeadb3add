/* Wide-area bench: what its processes do: the parameter server, and a worker. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/random.h"
#include "exchange/bench_wan_internal.h"
#include "exchange/bench_wire.h"
#include "exchange/client.h"
#include "exchange/server.h"
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    WINDOWS = 16, /* of the parameters: a step changes one */
    GAMMA_MS = 60000,
    CONNECT_MS = 10000,
};

static int64_t now_ns(void)
{
    return clock_monotonic_ns(&clock_system);
}

static double cpu_s(clockid_t clock)
{
    struct timespec time;
    ASSERT(clock_gettime(clock, &time) == 0);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void wan_key(uint64_t lease, uint8_t out_key[LINK_KEY_SIZE])
{
    memset(out_key, (int)lease, LINK_KEY_SIZE); /* all ends are this bench */
}

/* The same for everybody. */
static void first_model_fill(float *model, size_t count)
{
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < count; i++)
        model[i] = 0.1F * ((float)random_unit(&random) - 0.5F);
}

static int first_model(size_t count, float **out_model, struct error *error)
{
    float *model = calloc(count, sizeof(float));
    if (!model)
        return error_set(error, ERROR_EXHAUSTED, "no memory for %zu floats", count);
    first_model_fill(model, count);
    *out_model = model;
    return 0;
}

void wan_target(uint32_t host, uint16_t port, struct host_port *out)
{
    const struct in_addr address = {.s_addr = htonl(bench_wire_address(host))};
    out->port = port;
    ASSERT(inet_ntop(AF_INET, &address, out->host, sizeof(out->host)));
}

int wan_listen(uint32_t host, uint16_t port, int *out_fd, struct error *error)
{
    struct host_port target;
    struct address address;
    wan_target(host, port, &target);
    if (address_resolve(&target, &address, error) < 0)
        return -1;
    return tcp_listen(&address, "--listen", out_fd, &port, error);
}

/* --- the parameter server --- */

struct wan_server {
    struct loop *loop;
    struct exchange_server *server;
    int listen_fd, range_listen_fd, control_fd;
    struct error error; /* why it failed */
};

static void server_fail(struct wan_server *self, const struct error *error)
{
    self->error = *error;
    loop_stop(self->loop);
}

static int find_peer(void *context __attribute__((unused)), uint64_t lease,
                     uint64_t fence __attribute__((unused)), struct exchange_peer *out_peer)
{
    out_peer->is_server = lease >= WAN_LEASE_RANGE;
    out_peer->rank = (uint32_t)lease - (out_peer->is_server ? WAN_LEASE_RANGE : 1);
    wan_key(lease, out_peer->key);
    return 0;
}

static int measure(void *context __attribute__((unused)), struct evaluation_report *report,
                   struct error *error __attribute__((unused)))
{
    report->loss = 1; /* nothing is learnt here, and nothing gets worse */
    return 0;
}

static void on_drop(void *context, uint64_t lease, const struct error *reason)
{
    struct error error = *reason;
    error_wrap(&error, "worker %d was dropped", (int)lease - 1);
    server_fail(context, &error);
}

static void on_end(void *context, const struct exchange_outcome *outcome)
{
    struct error error;
    error_set(&error, ERROR_UNAVAILABLE, "training ended: %s", outcome->reason);
    server_fail(context, &error);
}

static void connection_take(struct wan_server *self, int listen_fd,
                            int (*attach_take)(struct exchange_server *, int, struct error *))
{
    struct error error;
    AUTO_FD int fd = -1;
    const int accepted = tcp_accept(listen_fd, &fd, NULL, &error);
    if (accepted < 0 || (accepted > 0 && attach_take(self->server, fd, &error) < 0)) {
        server_fail(self, &error);
        return;
    }
    (void)TAKE_FD(fd);
}

static void on_connection(void *context, uint32_t events __attribute__((unused)))
{
    struct wan_server *self = context;
    connection_take(self, self->listen_fd, exchange_server_attach_take);
}

static void on_range_connection(void *context, uint32_t events __attribute__((unused)))
{
    struct wan_server *self = context;
    connection_take(self, self->range_listen_fd, exchange_server_attach_range_take);
}

static void on_control(void *context, uint32_t events __attribute__((unused)))
{
    struct wan_server *self = context;
    loop_stop(self->loop);
}

static int server_report(struct wan_server *self, struct error *error)
{
    struct wan_message message;
    if (self->error.code != ERROR_NONE) {
        *error = self->error;
        return -1;
    }
    if (wan_hear(self->control_fd, WAN_REPORT, &message, error) < 0)
        return -1;
    const struct exchange_status *status = exchange_server_status(self->server);
    message = (struct wan_message){
        .word = WAN_DONE,
        .server = {.commits = status->commits,
                   .steps = status->steps,
                   .counted_bytes = status->counted_bytes,
                   .cpu_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID)},
    };
    return wan_say(self->control_fd, &message, error);
}

static int server_open(struct wan_server *self, const struct bench_wan_options *wanted,
                       const float *model, struct error *error)
{
    const struct exchange_server_options options = {
        .loop = self->loop,
        .policy = wanted->policy,
        .sync = {.gamma_ms = GAMMA_MS},
        .compress = {.is_auto = wanted->is_compress_auto, .codec = wanted->codec},
        .parameter_count = wanted->float_count,
        .servers = wanted->server_count,
        .parameters = model,
        .world = wanted->worker_count,
        .find_peer = find_peer,
        .measure = measure,
        .on_drop = on_drop,
        .on_end = on_end,
        .context = self,
    };
    return exchange_server_open(&options, &self->server, error);
}

int wan_server_live(const struct bench_wan_options *options, int fd, struct error *error)
{
    struct wan_server self = {.listen_fd = -1, .control_fd = fd};
    struct wan_message message = {.word = WAN_READY};
    struct loop_watch *control = NULL, *listener = NULL, *range_listener = NULL;
    float *model = NULL;
    if (first_model(options->float_count, &model, error) < 0 || wan_say(fd, &message, error) < 0 ||
        wan_hear(fd, WAN_GO, &message, error) < 0 ||
        loop_open(&clock_system, &self.loop, error) < 0 ||
        server_open(&self, options, model, error) < 0 ||
        wan_listen(WAN_SERVER, WAN_PORT, &self.listen_fd, error) < 0 ||
        wan_listen(WAN_SERVER, WAN_PORT + 1, &self.range_listen_fd, error) < 0 ||
        loop_watch_open(self.loop, self.listen_fd, LOOP_READ, on_connection, &self, &listener,
                        error) < 0 ||
        loop_watch_open(self.loop, self.range_listen_fd, LOOP_READ, on_range_connection, &self,
                        &range_listener, error) < 0 ||
        loop_watch_open(self.loop, fd, LOOP_READ, on_control, &self, &control, error) < 0)
        return -1;
    message.word = WAN_LISTENING;
    if (wan_say(fd, &message, error) < 0 || loop_run(self.loop, error) < 0)
        return -1;
    return server_report(&self, error); /* the process ends: what it holds goes with it */
}

/* --- a worker --- */

struct wan_worker {
    const struct bench_wan_options *options;
    float *parameters;
    uint32_t noise;
    uint32_t window; /* that the next step changes */
    struct loop *loop;
    struct exchange_client *client;
    pthread_t link_thread;
    struct wan_way {
        struct wan_worker *worker;
        uint32_t server;
        struct tcp_connect *attempt;
    } ways[EXCHANGE_SERVERS_MAX];
};

static void sleep_until(int64_t at_ns)
{
    const struct timespec until = {at_ns / 1000000000, at_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static struct exchange_step compute(struct wan_worker *worker)
{
    struct exchange_step step = {.samples = 32, .loss = 1, .started_ns = now_ns()};
    const size_t count = worker->options->float_count;
    const size_t first = count * worker->window / WINDOWS;
    worker->window = (worker->window + 1) % WINDOWS;
    for (size_t i = first; i < first + count / WINDOWS; i++) {
        worker->noise = worker->noise * 1664525u + 1013904223u;
        worker->parameters[i] += 1e-12F * (float)(int32_t)worker->noise;
    }
    sleep_until(step.started_ns + worker->options->step_ms * 1000000);
    step.ended_ns = now_ns();
    return step;
}

static double steps_per_s(uint64_t steps, int64_t span_ns)
{
    return (double)steps / (1e-9 * (double)span_ns);
}

static double compute_alone(struct wan_worker *worker)
{
    const int64_t began_ns = now_ns();
    uint64_t steps = 0;
    for (; now_ns() - began_ns < worker->options->alone_ms * 1000000; steps++)
        (void)compute(worker);
    return steps_per_s(steps, now_ns() - began_ns);
}

static void on_connected(void *context, int fd, const struct error *reason)
{
    const struct wan_way *way = context;
    struct exchange_client *client = way->worker->client;
    struct error error;
    if (fd < 0)
        exchange_client_stop(client, reason->message);
    else if (exchange_client_attach_take(client, way->server, fd, 0, &error) < 0)
        exchange_client_stop(client, error.message);
}

static void *link_run(void *context)
{
    struct wan_worker *worker = context;
    struct error error;
    for (uint32_t i = 0; i < worker->options->server_count; i++) {
        struct host_port target;
        struct wan_way *way = &worker->ways[i];
        *way = (struct wan_way){.worker = worker, .server = i};
        wan_target(i, WAN_PORT, &target);
        way->attempt = tcp_connect_start(worker->loop, &target, CONNECT_MS, on_connected, way);
    }
    ASSERT(loop_run(worker->loop, &error) == 0);
    return NULL;
}

static int client_start(struct wan_worker *worker, uint32_t rank, struct error *error)
{
    struct exchange_client_options options = {
        .lease = rank + 1,
        .fence = 1,
        .rank = rank,
        .shard_samples = 1000000,
        .parameter_count = worker->options->float_count,
        .servers = worker->options->server_count,
    };
    wan_key(options.lease, options.key);
    if (loop_open(&clock_system, &worker->loop, error) < 0)
        return -1;
    options.loop = worker->loop;
    if (exchange_client_open(&options, &worker->client, error) < 0)
        return -1;
    exchange_client_begin(worker->client, worker->parameters);
    const int result = pthread_create(&worker->link_thread, NULL, link_run, worker);
    return result == 0 ? 0 : error_set_errno(error, result, "start a thread");
}

/* The round: steps with the exchange between them. */
static int compute_together(struct wan_worker *worker, struct wan_worker_figures *out,
                            struct error *error)
{
    const int64_t began_ns = now_ns(), round_ns = worker->options->round_ms * 1000000;
    int64_t half_ns = 0, at_ns = began_ns;
    uint64_t steps = 0, half_steps = 0;
    struct exchange_client_status status;
    while (at_ns - began_ns < round_ns) {
        const struct exchange_step step = compute(worker);
        if (!exchange_client_step(worker->client, &step, worker->parameters)) {
            exchange_client_status(worker->client, &status);
            return error_set(error, ERROR_UNAVAILABLE, "stopped: %s", status.reason);
        }
        steps++;
        at_ns = now_ns();
        if (half_ns == 0 && at_ns - began_ns >= round_ns / 2) {
            half_ns = at_ns;
            half_steps = steps;
        }
    }
    clockid_t link_clock;
    ASSERT(pthread_getcpuclockid(worker->link_thread, &link_clock) == 0);
    exchange_client_status(worker->client, &status);
    const double span_ns = (double)(at_ns - began_ns);
    out->steps_per_s = steps_per_s(steps, at_ns - began_ns);
    out->steps_per_s_settled = steps_per_s(steps - half_steps, at_ns - half_ns);
    out->link_cpu_share = cpu_s(link_clock) / (1e-9 * span_ns);
    out->waiting_share = (double)status.waiting_ns / span_ns;
    out->commit_ms = 1e-6 * (double)status.commit_ns;
    out->codec = status.settings.codec;
    return 0;
}

int wan_worker_live(const struct bench_wan_options *options, uint32_t rank, int fd,
                    struct error *error)
{
    static struct wan_worker worker; /* the link's thread has it until the process ends */
    worker = (struct wan_worker){.options = options, .noise = rank + 1};
    struct wan_message message = {.word = WAN_READY};
    if (first_model(options->float_count, &worker.parameters, error) < 0 ||
        wan_say(fd, &message, error) < 0 || wan_hear(fd, WAN_GO, &message, error) < 0)
        return -1;
    struct wan_message done = {.word = WAN_DONE};
    done.worker.alone_steps_per_s = compute_alone(&worker);
    first_model_fill(worker.parameters, options->float_count);
    if (client_start(&worker, rank, error) < 0 ||
        compute_together(&worker, &done.worker, error) < 0)
        return -1;
    if (wan_say(fd, &done, error) < 0)
        return -1;
    /* Uncounted steps until the bench ends all of its processes: others may wait for its push. */
    struct exchange_step step;
    do
        step = compute(&worker);
    while (exchange_client_step(worker.client, &step, worker.parameters));
    return wan_hear(fd, WAN_GO, &message, error);
}
