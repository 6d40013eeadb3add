/* Wide-area bench: its processes, the wire between them, and the sum of what they tell. */
#include "exchange/bench_wan.h"

#include "base/assert.h"
#include "base/clock.h"
#include "exchange/bench_wan_internal.h"
#include "exchange/bench_wire.h"
#include "exchange/message.h"
#include "exchange/range.h"
#include "net/tun.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOSTS_MAX = BENCH_WAN_WORKERS_MAX + EXCHANGE_SERVERS_MAX };

struct host {
    pid_t pid;
    int control_fd, tun_fd;
};

struct bench {
    const struct bench_wan_options *options;
    struct host hosts[HOSTS_MAX];
    uint32_t host_count;
    struct bench_wire *wire;
    struct bench_wire_counts carried;
    int64_t carried_ns;
};

int wan_say(int fd, const struct wan_message *message, struct error *error)
{
    if (send(fd, message, sizeof(*message), MSG_NOSIGNAL) != (ssize_t)sizeof(*message))
        return error_set_errno(error, errno, "tell a process of the bench");
    return 0;
}

int wan_hear(int fd, enum wan_word expected, struct wan_message *out_message, struct error *error)
{
    ssize_t size;
    do {
        size = recv(fd, out_message, sizeof(*out_message), 0);
    } while (size < 0 && errno == EINTR);
    if (size != (ssize_t)sizeof(*out_message))
        return error_set(error, ERROR_UNAVAILABLE, "a process of the bench died");
    if (out_message->word == WAN_FAILED) {
        *error = out_message->error;
        return -1;
    }
    ASSERT(out_message->word == expected);
    return 0;
}

/* --- the processes --- */

static void host_live(const struct bench *bench, uint32_t index, int fd)
{
    struct error error;
    const int kind = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int result;
    if (unshare(kind) < 0)
        result = error_set_errno(&error, errno, "make a network namespace");
    else if (index == WAN_SERVER)
        result = wan_server_live(bench->options, fd, &error);
    else if (index < bench->options->server_count)
        result = wan_range_live(bench->options, index, fd, &error);
    else
        result = wan_worker_live(bench->options, index - bench->options->server_count, fd, &error);
    struct wan_message message = {.word = WAN_FAILED};
    if (result < 0) {
        message.error = error;
        result = wan_say(fd, &message, &error);
    }
    _exit(result < 0);
}

static int host_start(struct bench *bench, struct error *error)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(error, errno, "make a socketpair");
    struct host *host = &bench->hosts[bench->host_count];
    host->pid = fork();
    if (host->pid == 0)
        host_live(bench, bench->host_count, pair[1]);
    close(pair[1]);
    if (host->pid < 0) {
        close(pair[0]);
        return error_set_errno(error, errno, "fork");
    }
    host->control_fd = pair[0];
    host->tun_fd = -1;
    bench->host_count++;
    return 0;
}

static void hosts_end(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->host_count; i++) {
        const struct host *host = &bench->hosts[i];
        kill(host->pid, SIGKILL);
        while (waitpid(host->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        close(host->control_fd);
        if (host->tun_fd >= 0)
            close(host->tun_fd);
    }
}

/* --- the wire --- */

static int device_open(struct bench *bench, uint32_t index, struct error *error)
{
    struct wan_message message;
    if (wan_hear(bench->hosts[index].control_fd, WAN_READY, &message, error) < 0)
        return -1;
    const struct tun_options options = {
        .inside = bench->hosts[index].pid,
        .name = "wan",
        .address = bench_wire_address(index),
        .prefix_bits = BENCH_WIRE_PREFIX_BITS,
        .mtu = BENCH_WIRE_MTU,
    };
    return tun_open(&options, &bench->hosts[index].tun_fd, error);
}

static int wire_open(struct bench *bench, struct error *error)
{
    const struct bench_wan_options *wanted = bench->options;
    struct bench_wire_host hosts[HOSTS_MAX];
    for (uint32_t i = 0; i < bench->host_count; i++) {
        if (device_open(bench, i, error) < 0)
            return -1;
        hosts[i] = (struct bench_wire_host){
            .tun_fd = bench->hosts[i].tun_fd,
            .bytes_per_s =
                i < wanted->server_count ? wanted->server_bytes_per_s : wanted->line_bytes_per_s,
        };
    }
    const struct bench_wire_options options = {
        .hosts = hosts,
        .host_count = bench->host_count,
        .one_way_ns = wanted->rtt_ms * 1000000 / 2,
    };
    return bench_wire_open(&options, &bench->wire, error);
}

/* --- the figures --- */

static double narrowest_bytes_per_s(const struct bench_wan_options *options)
{
    const double all = options->line_bytes_per_s * options->worker_count;
    const double server = options->server_bytes_per_s * options->server_count;
    return server > 0 && server < all ? server : all;
}

static void add_worker(struct bench_wan_result *result, const struct wan_worker_figures *figures,
                       double weight)
{
    const double alone = figures->alone_steps_per_s;
    const double taken_off = figures->link_cpu_share;
    result->compute_kept += weight * (figures->steps_per_s / alone - taken_off);
    result->compute_kept_settled += weight * (figures->steps_per_s_settled / alone - taken_off);
    result->steps_kept += weight * figures->steps_per_s / alone;
    result->waiting_share += weight * figures->waiting_share;
    result->link_cpu_share += weight * taken_off;
    result->commit_ms += weight * figures->commit_ms;
    result->last_bytes_per_float += weight * codec_bytes_per_float(figures->codec, 0.01);
}

static void add_server(struct bench_wan_result *result, const struct bench *bench,
                       const struct wan_server_figures *figures)
{
    const struct bench_wan_options *options = bench->options;
    const double commits = figures->commits > 0 ? (double)figures->commits : 1;
    const struct bench_wire_counts *carried = &bench->carried;
    const double span_s = 1e-9 * (double)bench->carried_ns;
    result->pushes = (double)figures->commits / options->worker_count;
    result->steps_per_push = (double)figures->steps / commits;
    const struct range first = range_of(options->float_count, options->server_count, 0);
    result->bytes_per_float = (double)figures->counted_bytes / commits / (double)first.count;
    result->server_cpu_share = figures->cpu_s / span_s;
    result->line_share =
        (double)carried->carried_bytes / (2 * narrowest_bytes_per_s(options) * span_s);
    const double packets = (double)(carried->carried_packets + carried->lost_packets);
    result->packets_lost = packets > 0 ? (double)carried->lost_packets / packets : 0;
}

static int measure(struct bench *bench, struct bench_wan_result *out_result, struct error *error)
{
    const struct bench_wan_options *options = bench->options;
    const int server_fd = bench->hosts[WAN_SERVER].control_fd;
    struct bench_wan_result result = {0};
    struct wan_message message;
    for (uint32_t i = 0; i < options->server_count; i++) {
        message = (struct wan_message){.word = WAN_GO};
        if (wan_say(bench->hosts[i].control_fd, &message, error) < 0 ||
            wan_hear(bench->hosts[i].control_fd, WAN_LISTENING, &message, error) < 0)
            return -1;
    }
    message.word = WAN_GO;
    for (uint32_t i = options->server_count; i < bench->host_count; i++)
        if (wan_say(bench->hosts[i].control_fd, &message, error) < 0)
            return -1;
    const int64_t began_ns = clock_monotonic_ns(&clock_system);
    for (uint32_t i = options->server_count; i < bench->host_count; i++) {
        if (wan_hear(bench->hosts[i].control_fd, WAN_DONE, &message, error) < 0)
            return error_wrap(error, "worker %d", (int)(i - options->server_count));
        add_worker(&result, &message.worker, 1.0 / options->worker_count);
    }
    bench_wire_stop(bench->wire, &bench->carried);
    bench->carried_ns =
        clock_monotonic_ns(&clock_system) - began_ns - options->alone_ms * INT64_C(1000000);
    message.word = WAN_REPORT;
    if (wan_say(server_fd, &message, error) < 0 ||
        wan_hear(server_fd, WAN_DONE, &message, error) < 0)
        return error_wrap(error, "the parameter server");
    add_server(&result, bench, &message.server);
    *out_result = result;
    return 0;
}

int bench_wan_run(const struct bench_wan_options *options, struct bench_wan_result *out_result,
                  struct error *error)
{
    ASSERT(options->worker_count > 0 && options->worker_count <= BENCH_WAN_WORKERS_MAX);
    ASSERT(options->server_count > 0 && options->server_count <= EXCHANGE_SERVERS_MAX);
    struct bench *bench = calloc(1, sizeof(*bench));
    ASSERT(bench);
    bench->options = options;
    int result = 0;
    while (result == 0 && bench->host_count < options->worker_count + options->server_count)
        result = host_start(bench, error);
    if (result == 0)
        result = wire_open(bench, error);
    if (result == 0)
        result = measure(bench, out_result, error);
    bench_wire_free(bench->wire);
    hosts_end(bench);
    free(bench);
    return result;
}
