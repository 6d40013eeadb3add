#include "peer/gateway.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/attached.h"
#include "net/flow_table.h"
#include "net/outside.h"
#include "peer/bucket.h"
#include "sandbox/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    POLL_CONTROL,
    POLL_ATTACHED,
    POLL_TUN,
    POLL_FIXED,
    DESCRIPTOR_MAX = 16 + GATEWAY_SOCKET_MAX, /* some are its own */
    POLL_MAX = POLL_FIXED + DESCRIPTOR_MAX,
    PACKETS_PER_TURN = 64,
    HEARD_MAX = 32,
    ADDRESSES_PER_HOST = 8,
};

struct gateway {
    struct gateway_order order;
    struct gateway_counts *counts;
    struct attached *attached;
    struct fence fence;
    struct flow_table *flows;
    struct outside *outside;
    struct bucket bucket;
    uint32_t heard[HEARD_MAX]; /* every address of the market's, and of ours as it sees it */
    size_t heard_count;
    bool has_ended;
    struct pollfd polls[POLL_MAX];
};

static int64_t now_ms(void)
{
    return clock_monotonic_ns(&clock_system) / 1000000;
}

/* ---- The fence ------------------------------------------------------------------------------- */

static void add_heard(struct gateway *gateway, uint32_t address)
{
    for (size_t i = 0; i < gateway->heard_count; i++)
        if (gateway->heard[i] == address)
            return;
    if (address != 0 && gateway->heard_count < HEARD_MAX)
        gateway->heard[gateway->heard_count++] = address;
}

/* Shut while it is being built, and for good when that fails. */
static int build_fence(struct gateway *gateway, struct error *error)
{
    struct fence *fence = &gateway->fence;
    fence_init(fence);
    fence_open(fence);
    for (uint32_t i = 0; i < gateway->order.closed_count; i++)
        fence_add(fence, gateway->order.closed[i]);
    for (size_t i = 0; i < gateway->heard_count; i++)
        fence_add(fence, (struct fence_network){gateway->heard[i], 32});
    if (attached_read(gateway->attached, fence, error) < 0) {
        fence_init(fence);
        return -1;
    }
    if (fence->is_shut)
        log_event(LOG_WARN, "internet_shut", "reason=\"this machine has more than %d networks\"",
                  FENCE_NETWORKS_MAX);
    return 0;
}

/* A name that has no address keeps nobody from the Internet: there is nothing to be fenced off. */
static void look_up_hosts(struct gateway *gateway)
{
    for (int i = 0; i < GATEWAY_HOST_MAX; i++) {
        struct address found[ADDRESSES_PER_HOST];
        struct host_port host = {.port = 1};
        size_t count = 0;
        struct error error;
        memcpy(host.host, gateway->order.hosts[i], sizeof(host.host));
        host.host[sizeof(host.host) - 1] = '\0';
        if (!host.host[0])
            continue;
        if (address_resolve_all(&host, found, ADDRESSES_PER_HOST, &count, &error) < 0)
            log_event(LOG_WARN, "market_not_found", "error=\"%s\"", error.message);
        for (size_t k = 0; k < count; k++)
            if (found[k].storage.ss_family == AF_INET) {
                struct sockaddr_in address;
                memcpy(&address, &found[k].storage, sizeof(address));
                add_heard(gateway, ntohl(address.sin_addr.s_addr));
            }
    }
}

/* ---- Packets --------------------------------------------------------------------------------- */

static void give_job(const uint8_t *packet, size_t size)
{
    struct virtio_net_hdr header = {0};
    union {
        const uint8_t *from;
        uint8_t *to;
    } bytes = {.from = packet};
    const struct iovec parts[] = {{&header, sizeof(header)}, {bytes.to, size}};
    /* A device that takes no more, or is gone with its sandbox, loses the packet as a cable does.
     */
    if (writev(GATEWAY_TUN_FD, parts, 2) < 0 && errno != EAGAIN && errno != EIO)
        log_event(LOG_DEBUG, "packet_lost", "errno=%d", errno);
}

static void on_outside_packet(void *context, const uint8_t *packet, size_t size)
{
    struct gateway *gateway = context;
    struct fence_flow flow = {0};
    bool is_error = false;
    bucket_take(&gateway->bucket, size);
    if (fence_check_in(&gateway->fence, packet, size, &flow, &is_error) != FENCE_PASSES ||
        (!is_error && !flow_table_has(gateway->flows, &flow, now_ms()))) {
        gateway->counts->refused++;
        return;
    }
    gateway->counts->bytes_in += size;
    give_job(packet, size);
}

static void on_job_packet(struct gateway *gateway, const uint8_t *packet, size_t size)
{
    struct fence_flow flow;
    bucket_take(&gateway->bucket, size);
    if (fence_check_out(&gateway->fence, packet, size, &flow) != FENCE_PASSES) {
        uint8_t refusal[FENCE_REFUSAL_SIZE];
        const size_t refusal_size = fence_write_refusal(packet, size, refusal);
        gateway->counts->refused++;
        if (refusal_size > 0)
            give_job(refusal, refusal_size);
        return;
    }
    if (!flow_table_note(gateway->flows, &flow, now_ms())) {
        gateway->counts->refused++; /* it goes later: whoever means it sends again */
        return;
    }
    gateway->counts->bytes_out += size;
    outside_put(gateway->outside, packet, size);
}

static void read_tun(struct gateway *gateway)
{
    uint8_t packet[FENCE_PACKET_MAX + 1];
    struct virtio_net_hdr header;
    const struct iovec parts[] = {{&header, sizeof(header)}, {packet, sizeof(packet)}};
    for (int i = 0; i < PACKETS_PER_TURN && bucket_has_some(&gateway->bucket); i++) {
        const ssize_t got = readv(GATEWAY_TUN_FD, parts, 2);
        if (got <=
            (ssize_t)sizeof(header)) /* nothing waits; the device's end comes as the keeper's */
            return;
        on_job_packet(gateway, packet, (size_t)got - sizeof(header));
    }
}

/* ---- Orders and waiting ---------------------------------------------------------------------- */

/* 1: there is one; 0: not now; -1: the keeper is gone, or is not of this program. */
static int receive_order(struct gateway *gateway, int flags)
{
    struct gateway_order order;
    ssize_t got;
    do {
        got = recv(GATEWAY_CONTROL_FD, &order, sizeof(order), flags);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got != (ssize_t)sizeof(order) || order.closed_count > OPEN_CLOSED_MAX ||
        order.bytes_per_s < 0)
        return -1;
    gateway->order = order;
    bucket_fill(&gateway->bucket, clock_monotonic_ns(&clock_system)); /* by the rate until now */
    if (order.bytes_per_s > 0)
        bucket_set_rate(&gateway->bucket, order.bytes_per_s);
    add_heard(gateway, order.market);
    add_heard(gateway, order.seen);
    return 1;
}

static int take_orders(struct gateway *gateway, struct error *error)
{
    int result;
    while ((result = receive_order(gateway, MSG_DONTWAIT)) > 0)
        if (build_fence(gateway, error) < 0)
            return -1;
    gateway->has_ended = result < 0;
    return 0;
}

static int wait_and_serve(struct gateway *gateway, struct error *error)
{
    bucket_fill(&gateway->bucket, clock_monotonic_ns(&clock_system));
    const bool is_paused = gateway->order.bytes_per_s == 0;
    const bool is_serving = !is_paused && bucket_has_some(&gateway->bucket);
    struct pollfd *polls = gateway->polls;
    polls[POLL_CONTROL] = (struct pollfd){.fd = GATEWAY_CONTROL_FD, .events = POLLIN};
    polls[POLL_ATTACHED] = (struct pollfd){.fd = attached_fd(gateway->attached), .events = POLLIN};
    polls[POLL_TUN] = (struct pollfd){.fd = is_serving ? GATEWAY_TUN_FD : -1, .events = POLLIN};
    int timeout_ms = is_paused ? -1 : bucket_wait_ms(&gateway->bucket);
    size_t outside_count = 0;
    if (is_serving)
        outside_count =
            outside_fill(gateway->outside, polls + POLL_FIXED, POLL_MAX - POLL_FIXED, &timeout_ms);
    if (poll(polls, POLL_FIXED + outside_count, timeout_ms) < 0 && errno != EINTR)
        return error_set_errno(error, errno, "poll");
    /* First what the fence is to keep off: no packet passes by what was true before. */
    if (polls[POLL_CONTROL].revents && take_orders(gateway, error) < 0)
        return -1;
    if (polls[POLL_ATTACHED].revents && build_fence(gateway, error) < 0)
        return -1;
    if (is_serving) {
        outside_poll(gateway->outside, polls + POLL_FIXED, outside_count);
        read_tun(gateway);
    }
    return 0;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static int gateway_open(struct gateway *gateway, struct error *error)
{
    uint64_t seed;
    const struct confine_options confinement = {.descriptor_max = DESCRIPTOR_MAX,
                                                .data_bytes = GATEWAY_DATA_BYTES};
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "libsodium cannot start");
    randombytes_buf(&seed, sizeof(seed));
    gateway->flows = flow_table_new(seed);
    gateway->counts = mmap(NULL, sizeof(*gateway->counts), PROT_READ | PROT_WRITE, MAP_SHARED,
                           GATEWAY_COUNTS_FD, 0);
    if (gateway->counts == MAP_FAILED)
        return error_set_errno(error, errno, "map the counts");
    bucket_init(&gateway->bucket, clock_monotonic_ns(&clock_system));
    if (receive_order(gateway, 0) <= 0)
        return error_set(error, ERROR_UNAVAILABLE, "no order came");
    look_up_hosts(gateway);
    if (attached_open(&gateway->attached, error) < 0 ||
        outside_open(on_outside_packet, gateway, &gateway->outside, error) < 0 ||
        confine_to_sockets(&confinement, error) < 0)
        return -1;
    /* Confined already: should that keep it from its networks, it shows now. */
    return build_fence(gateway, error);
}

int gateway_main(int argc, char **argv)
{
    static struct gateway gateway;
    struct error error;
    (void)argc;
    (void)argv;
    int result = gateway_open(&gateway, &error);
    while (result == 0 && !gateway.has_ended)
        result = wait_and_serve(&gateway, &error);
    if (result < 0)
        log_event(LOG_ERROR, "gateway_failed", "error=\"%s\"", error.message);
    return result < 0 ? 1 : 0;
}
