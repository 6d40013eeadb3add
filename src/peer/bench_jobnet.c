#include "peer/bench_jobnet.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/scope.h"
#include "net/address.h"
#include "net/packet_relay.h"
#include "net/packet_switch.h"
#include "net/tun.h"
#include "peer/bench_jobnet_bare.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLAIN_MTU = 1500, OUTPUT_SIZE = 4096, SANDBOX_MEMORY = 512 << 20 };

static const uint8_t KEY[LINK_KEY_SIZE] = "the key of a bench, known to all";

/* --- one sandbox with a device --- */

struct side {
    uint32_t rank;
    bool is_plain;
    const struct bench_jobnet_options *options;
    int tun_fd;
    int output_fd;
    struct sandbox *sandbox;
};

static int side_set_up_network(void *context, pid_t inside, struct error *error)
{
    struct side *side = context;
    const struct tun_options tun = {.inside = inside,
                                    .name = "souk0",
                                    .address = packet_address(side->rank),
                                    .prefix_bits = PACKET_PREFIX_BITS,
                                    .mtu = side->is_plain ? PLAIN_MTU : side->options->mtu,
                                    .has_offload = side->options->has_offload && !side->is_plain,
                                    .is_lossless = true};
    return tun_open(&tun, &side->tun_fd, error);
}

static int side_start(struct side *side, struct sandbox_host *host, struct error *error)
{
    char round[32];
    snprintf(round, sizeof(round), "%" PRId64 "ms", side->options->round_ms);
    const char *const argv[] = {
        "/souk",   "bench", "jobnet", "--end", side->rank ? "source" : "sink",
        "--round", round,   NULL};
    const char *const environment[] = {"HOME=/tmp", NULL};
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_set_errno(error, errno, "make a pipe");
    side->output_fd = fds[0];
    AUTO_FD int write_fd = fds[1];
    const struct sandbox_options options = {.name = side->rank ? "bench-1" : "bench-0",
                                            .argv = argv,
                                            .environment = environment,
                                            .cpu_milli = 2000,
                                            .memory_bytes = SANDBOX_MEMORY,
                                            .pids_max = 16,
                                            .control_fd = -1,
                                            .stdout_fd = write_fd,
                                            .stderr_fd = write_fd,
                                            .set_up_network = side_set_up_network,
                                            .network_context = side};
    return sandbox_start(host, &options, &side->sandbox, error);
}

static void side_done(struct side *side)
{
    sandbox_free(TAKE(side->sandbox));
    if (side->tun_fd >= 0)
        close(TAKE_FD(side->tun_fd));
    if (side->output_fd >= 0)
        close(TAKE_FD(side->output_fd));
}

/* What the program printed, once it has ended well. */
static int side_finish(struct side *side, char output[OUTPUT_SIZE], struct error *error)
{
    struct pollfd wait = {.fd = sandbox_pidfd(side->sandbox), .events = POLLIN};
    while (poll(&wait, 1, -1) < 0 && errno == EINTR)
        ;
    struct sandbox_exit result = {.code = -1};
    (void)sandbox_reap(side->sandbox, &result);
    const ssize_t got = read(side->output_fd, output, OUTPUT_SIZE - 1);
    output[got > 0 ? got : 0] = '\0';
    if (result.code != 0)
        return error_set(error, ERROR_UNAVAILABLE, "an end of the measurement failed: %.160s",
                         output);
    return 0;
}

/* --- who carries the packets: processes of their own, as daemons are --- */

struct carrier {
    int tun_fds[2]; /* the second is -1 for a switch */
    int link_fd;    /* -1 for one process between both devices */
    uint32_t rank;
    bool is_bare;
};

struct switching {
    struct packet_switch *packet_switch;
    uint32_t rank;
};

static void on_open(struct packet_link *link, void *context)
{
    const struct switching *switching = context;
    packet_switch_attach_take(switching->packet_switch, !switching->rank, link);
}

// NOLINTNEXTLINE(readability-non-const-parameter): the callback's type
static void on_record(struct packet_link *link, uint8_t *bytes, size_t size, void *context)
{
    (void)link, (void)bytes, (void)size, (void)context;
}

static void on_close(struct packet_link *link, const struct error *reason, void *context)
{
    (void)link, (void)context;
    fprintf(stderr, "link: %s\n", reason ? reason->message : "closed");
    _exit(1);
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)context, (void)identity;
    memcpy(out_key, KEY, LINK_KEY_SIZE);
    return 0;
}

static int carry(const struct carrier *carrier, struct loop *loop, struct switching *switching,
                 struct error *error)
{
    if (carrier->link_fd < 0) {
        const struct packet_relay_options options = {
            .loop = loop, .fds = {carrier->tun_fds[0], carrier->tun_fds[1]}};
        struct packet_relay *relay;
        return packet_relay_open(&options, &relay, error) < 0 ? -1 : loop_run(loop, error);
    }
    if (carrier->is_bare)
        return bench_jobnet_bare(carrier->tun_fds[0], carrier->link_fd, error);
    const struct packet_switch_options options = {
        .loop = loop, .tun_fd = carrier->tun_fds[0], .rank = carrier->rank, .rank_count = 2};
    switching->rank = carrier->rank;
    if (packet_switch_open_take(&options, &switching->packet_switch, error) < 0)
        return -1;
    const struct packet_link_options link_options = {
        .loop = loop,
        .is_server = carrier->rank == 0,
        .identity = "bench",
        .key = KEY,
        .find_key = find_key,
        .callbacks = {.on_open = on_open, .on_record = on_record, .on_close = on_close},
        .context = switching};
    struct packet_link *link;
    return packet_link_open_take(&link_options, carrier->link_fd, &link, error) < 0
               ? -1
               : loop_run(loop, error);
}

_Noreturn static void carrier_main(const struct carrier *carrier)
{
    struct error error;
    struct loop *loop;
    static struct switching switching;
    if (loop_open(&clock_system, &loop, &error) == 0 &&
        carry(carrier, loop, &switching, &error) == 0)
        _exit(0);
    fprintf(stderr, "%s\n", error.message);
    _exit(1);
}

static int carrier_start(const struct carrier *carrier, pid_t *out_pid, struct error *error)
{
    const pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(error, errno, "fork");
    if (pid == 0)
        carrier_main(carrier);
    *out_pid = pid;
    return 0;
}

static double carrier_end(pid_t pid)
{
    struct rusage usage = {0};
    kill(pid, SIGKILL);
    while (wait4(pid, NULL, 0, &usage) < 0 && errno == EINTR)
        ;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Two ends of one TCP connection over the loopback device. */
static int connect_pair(int out_fds[2], struct error *error)
{
    const struct host_port here = {.host = "127.0.0.1"};
    struct address address;
    if (address_resolve(&here, &address, error) < 0)
        return -1;
    AUTO_FD int listener = -1;
    uint16_t port;
    if (tcp_listen(&address, "", &listener, &port, error) < 0)
        return -1;
    ((struct sockaddr_in *)&address.storage)->sin_port = htons(port);
    AUTO_FD int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0 || connect(client, (const struct sockaddr *)&address.storage, address.size) < 0)
        return error_set_errno(error, errno, "connect");
    const int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (server < 0)
        return error_set_errno(error, errno, "accept");
    out_fds[0] = server;
    out_fds[1] = TAKE_FD(client);
    return 0;
}

/* Starts who carries packets between the two devices; *out_count processes. */
static int start_carriers(const struct side sides[2], enum bench_jobnet_way way, pid_t pids[2],
                          int *out_count, struct error *error)
{
    *out_count = 0;
    if (way == BENCH_JOBNET_COPY || way == BENCH_JOBNET_PLAIN) {
        const struct carrier relay = {.tun_fds = {sides[0].tun_fd, sides[1].tun_fd}, .link_fd = -1};
        if (carrier_start(&relay, &pids[0], error) < 0)
            return -1;
        *out_count = 1;
        return 0;
    }
    int fds[2];
    if (connect_pair(fds, error) < 0)
        return -1;
    AUTO_FD int first = fds[0];
    AUTO_FD int second = fds[1];
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct carrier carrier = {.tun_fds = {sides[rank].tun_fd, -1},
                                        .link_fd = rank ? second : first,
                                        .rank = rank,
                                        .is_bare = way == BENCH_JOBNET_BARE};
        if (carrier_start(&carrier, &pids[rank], error) < 0)
            return -1;
        (*out_count)++;
    }
    return 0;
}

/* --- rounds --- */

static int read_figures(const char *output, struct bench_jobnet_figures *out, struct error *error)
{
    char *end;
    const double bytes = strtod(output, &end);
    out->rtt_us = strtod(end, &end);
    const double seconds = strtod(end, &end);
    if (bytes <= 0 || seconds <= 0)
        return error_set(error, ERROR_CORRUPT, "the measurement said \"%.100s\"", output);
    out->bytes_per_s = bytes / seconds;
    out->carrier_cpu_s_per_gb /= bytes / 1e9;
    out->end_cpu_s_per_gb /= bytes / 1e9;
    return 0;
}

static int measure(const struct bench_jobnet_options *options, struct sandbox_host *host,
                   enum bench_jobnet_way way, struct bench_jobnet_figures *out, struct error *error)
{
    struct side sides[2];
    int result = 0, carrier_count = 0;
    pid_t carriers[2];
    char output[OUTPUT_SIZE] = "";
    for (uint32_t rank = 0; rank < 2; rank++)
        sides[rank] = (struct side){.rank = rank,
                                    .is_plain = way == BENCH_JOBNET_PLAIN,
                                    .options = options,
                                    .tun_fd = -1,
                                    .output_fd = -1};
    for (uint32_t rank = 0; rank < 2 && result == 0; rank++)
        result = side_start(&sides[rank], host, error);
    if (result == 0)
        result = start_carriers(sides, way, carriers, &carrier_count, error);
    if (result == 0)
        result = side_finish(&sides[1], output, error);
    *out = (struct bench_jobnet_figures){0};
    for (int i = 0; i < carrier_count; i++)
        out->carrier_cpu_s_per_gb += carrier_end(carriers[i]);
    for (int i = 0; i < 2; i++) {
        struct sandbox_usage usage = {0};
        if (sides[i].sandbox)
            sandbox_read_usage(sides[i].sandbox, &usage);
        out->end_cpu_s_per_gb += (double)usage.cpu_ms / 1e3;
        side_done(&sides[i]);
    }
    return result < 0 ? -1 : read_figures(output, out, error);
}

int bench_jobnet_run(const struct bench_jobnet_options *options,
                     void (*on_round)(void *context, const struct bench_jobnet_result *result),
                     void *context, struct error *error)
{
    AUTO(sandbox_host) struct sandbox_host *host = NULL;
    if (sandbox_host_open(options->state_dir, NULL, &host, error) < 0)
        return -1;
    for (uint64_t round = 0; round < options->rounds; round++) {
        struct bench_jobnet_result result;
        for (enum bench_jobnet_way way = 0; way < BENCH_JOBNET_WAY_COUNT; way++)
            if (measure(options, host, way, &result.ways[way], error) < 0)
                return error_wrap(error, "measure way %d", (int)way);
        on_round(context, &result);
    }
    return 0;
}
