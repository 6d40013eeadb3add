#include "peer/open_network.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/outside.h"
#include "net/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FIRST_FREE_FD = 16,
    LOW_PARTS = 10, /* the owner works, and wants the line as well */
};

struct open_network {
    struct open_network_options options;
    struct gateway_order order;
    int control_fd;
    pid_t pid; /* 0: none runs */
    struct loop_child *child;
    struct gateway_counts *counts; /* NULL: no gateway yet */
};

struct open_network *open_network_new(const struct open_network_options *options)
{
    struct open_network *network = calloc(1, sizeof(*network));
    ASSERT(network);
    network->options = *options;
    network->order = options->order;
    network->control_fd = -1;
    return network;
}

void open_network_free(struct open_network *network)
{
    if (!network)
        return;
    loop_child_free(network->child);
    if (network->pid > 0) {
        kill(network->pid, SIGKILL);
        while (waitpid(network->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (network->control_fd >= 0)
        close(network->control_fd);
    const struct open_network_counts counts = open_network_counts(network);
    if (network->counts)
        log_event(LOG_INFO, "internet_used",
                  "lease=%" PRIu64 " bytes_in=%" PRIu64 " bytes_out=%" PRIu64 " refused=%" PRIu64,
                  network->options.lease, counts.bytes_in, counts.bytes_out, counts.refused);
    if (network->counts)
        munmap(network->counts, sizeof(*network->counts));
    free(network);
}

/* ---- The gateway's process ------------------------------------------------------------------- */

static void on_exit_of_gateway(void *context, const struct child_exit *exit)
{
    struct open_network *network = context;
    log_event(LOG_ERROR, "gateway_ended", "lease=%" PRIu64 " status=%d signal=%d",
              network->options.lease, exit->status, exit->signal);
    network->pid = 0;
    network->options.on_gone(network->options.context);
}

/* It gets these descriptors, the log, and nothing else of the keeper's. */
static int add_actions(posix_spawn_file_actions_t *actions, const int fds[3])
{
    int failed = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDOUT_FILENO);
    for (int i = 0; !failed && i < 3; i++)
        failed = posix_spawn_file_actions_adddup2(actions, fds[i], GATEWAY_CONTROL_FD + i);
    return failed ? failed
                  : posix_spawn_file_actions_addclosefrom_np(actions, GATEWAY_COUNTS_FD + 1);
}

static int spawn(struct open_network *network, const int fds[3], struct error *error)
{
    char program[] = "souk", command[] = "gateway", label[24];
    snprintf(label, sizeof(label), "%" PRIu64, network->options.lease);
    char *argv[] = {program, command, label, NULL};
    char *environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return error_set_errno(error, failed, "start a gateway");
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        failed = add_actions(&actions, fds);
        if (!failed)
            failed = posix_spawn(&network->pid, "/proc/self/exe", &actions, &attributes, argv,
                                 environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (failed) {
        network->pid = 0;
        return error_set_errno(error, failed, "start a gateway");
    }
    return loop_child_open(network->options.loop, network->pid, on_exit_of_gateway, network,
                           &network->child, error);
}

/* Away from the numbers that they get in the gateway. */
static int move_up(int *fd, struct error *error)
{
    const int moved = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    if (moved < 0)
        return error_set_errno(error, errno, "duplicate a descriptor");
    close(*fd);
    *fd = moved;
    return 0;
}

/* Its size cannot change, so that the gateway cannot take the memory from under the keeper. */
static int open_counts(struct open_network *network, int *out_fd, struct error *error)
{
    AUTO_FD int fd = memfd_create("souk-counts", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, sizeof(*network->counts)) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return error_set_errno(error, errno, "make shared memory");
    void *mapped = mmap(NULL, sizeof(*network->counts), PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return error_set_errno(error, errno, "map shared memory");
    network->counts = mapped;
    *out_fd = TAKE_FD(fd);
    return 0;
}

static void send_order(struct open_network *network)
{
    if (network->control_fd < 0)
        return;
    /* Nothing is lost that the next order does not say again; a gateway that takes none is not
     * one that may go on. */
    if (send(network->control_fd, &network->order, sizeof(network->order),
             MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
        network->pid > 0) {
        log_event(LOG_ERROR, "gateway_deaf", "lease=%" PRIu64 " errno=%d", network->options.lease,
                  errno);
        kill(network->pid, SIGKILL);
    }
}

int open_network_set_up(struct open_network *network, pid_t inside, struct error *error)
{
    const struct tun_options tun = {.inside = inside,
                                    .name = "souk1",
                                    .address = FENCE_JOB_ADDRESS,
                                    .prefix_bits = 32,
                                    .mtu = FENCE_PACKET_MAX,
                                    .is_default = true};
    int pair[2];
    AUTO_FD int tun_fd = -1;
    AUTO_FD int counts_fd = -1;
    ASSERT(network->control_fd < 0);
    if (tun_open(&tun, &tun_fd, error) < 0 || open_counts(network, &counts_fd, error) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(error, errno, "make a socketpair");
    network->control_fd = pair[0];
    AUTO_FD int control_fd = pair[1];
    if (move_up(&control_fd, error) < 0 || move_up(&tun_fd, error) < 0 ||
        move_up(&counts_fd, error) < 0)
        return -1;
    const int fds[3] = {control_fd, tun_fd, counts_fd};
    if (spawn(network, fds, error) < 0)
        return -1;
    send_order(network);
    return 0;
}

/* ---- Orders ---------------------------------------------------------------------------------- */

int64_t open_network_rate(const struct open_terms *terms, enum yield_level level)
{
    const int64_t full = terms->kbit_per_s * 125;
    switch (level) {
    case YIELD_FULL:
        return full;
    case YIELD_LOW:
        return full / LOW_PARTS;
    case YIELD_FROZEN:
    case YIELD_LEVEL_COUNT:
        break;
    }
    return 0;
}

void open_network_set_rate(struct open_network *network, int64_t bytes_per_s)
{
    if (network->order.bytes_per_s == bytes_per_s)
        return;
    network->order.bytes_per_s = bytes_per_s;
    send_order(network);
}

void open_network_set_market(struct open_network *network, uint32_t address, uint32_t seen)
{
    const uint32_t market = address ? address : network->order.market;
    const uint32_t own = seen ? seen : network->order.seen;
    if (network->order.market == market && network->order.seen == own)
        return;
    network->order.market = market;
    network->order.seen = own;
    send_order(network);
}

struct open_network_counts open_network_counts(const struct open_network *network)
{
    const struct gateway_counts *counts = network->counts;
    return counts
               ? (struct open_network_counts){counts->bytes_in, counts->bytes_out, counts->refused}
               : (struct open_network_counts){0};
}

/* In a child: the library would stay in a daemon that does not use it. */
int open_network_check(struct error *error)
{
    if (tun_check(error) < 0)
        return -1;
    const pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(error, errno, "fork");
    if (pid == 0) {
        struct error missing;
        _exit(outside_check(&missing) < 0);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        return error_set(error, ERROR_UNAVAILABLE,
                         "libslirp is not there (Debian: apt install libslirp0)");
    return 0;
}
