#include "exchange/bench_wire.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    TUN_HEADER_SIZE = 10, /* struct virtio_net_hdr, all 0 without offload */
    DESTINATION_AT = TUN_HEADER_SIZE + 16,
    IPV4_HEADER_SIZE = 20,
    READS_MAX = 64, /* of one device in a turn */
};
#define NETWORK     0x0a630001u /* 10.99.0.1 is host 0 */
#define WAIT_NS_MAX INT64_C(1000000000)

struct packet {
    struct packet *next;
    int64_t due_ns;
    uint32_t to;
    size_t size; /* header included */
    uint8_t bytes[TUN_HEADER_SIZE + BENCH_WIRE_MTU];
};

/* Packets in the order they are due. */
struct line {
    struct packet *first, *last;
    int64_t free_ns; /* when all that it was given has passed */
};

struct host {
    struct bench_wire_host options;
    struct line out; /* due when they reach the receiver's line */
    struct line in;  /* due when they are all there */
};

struct bench_wire {
    struct host hosts[BENCH_WIRE_HOSTS_MAX];
    uint32_t host_count;
    int64_t one_way_ns;
    int stop_fd;
    bool has_thread;
    pthread_t thread;
    struct packet *spare; /* read into next */
    struct bench_wire_counts counts;
};

uint32_t bench_wire_address(uint32_t host)
{
    return NETWORK + host;
}

static int64_t now_ns(void)
{
    return clock_monotonic_ns(&clock_system);
}

/* Gives the packet its turn on the line, or frees it when the line is too far behind. */
static void line_add(struct bench_wire *wire, struct line *line, double bytes_per_s,
                     struct packet *packet, int64_t at_ns, int64_t extra_ns)
{
    if (line->free_ns - at_ns > WIRE_QUEUE_NS) {
        wire->counts.lost_packets++;
        free(packet);
        return;
    }
    if (line->free_ns < at_ns)
        line->free_ns = at_ns;
    if (bytes_per_s > 0)
        line->free_ns += (int64_t)(1e9 * (double)(packet->size - TUN_HEADER_SIZE) / bytes_per_s);
    packet->due_ns = line->free_ns + extra_ns;
    packet->next = NULL;
    if (line->first)
        line->last->next = packet;
    else
        line->first = packet;
    line->last = packet;
}

static struct packet *line_take(struct line *line, int64_t until_ns)
{
    struct packet *packet = line->first;
    if (!packet || packet->due_ns > until_ns)
        return NULL;
    line->first = packet->next;
    return packet;
}

/* Whether it is an IPv4 packet to another host of the wire. */
static bool find_receiver(const struct bench_wire *wire, uint32_t from, struct packet *packet)
{
    const uint8_t *address = packet->bytes + DESTINATION_AT;
    if (packet->size < TUN_HEADER_SIZE + IPV4_HEADER_SIZE ||
        packet->bytes[TUN_HEADER_SIZE] >> 4 != 4)
        return false;
    const uint32_t to = ((uint32_t)address[0] << 24 | (uint32_t)address[1] << 16 |
                         (uint32_t)address[2] << 8 | address[3]) -
                        NETWORK;
    packet->to = to;
    return to < wire->host_count && to != from;
}

static void host_read(struct bench_wire *wire, uint32_t from)
{
    struct host *host = &wire->hosts[from];
    for (int i = 0; i < READS_MAX; i++) {
        if (!wire->spare)
            wire->spare = malloc(sizeof(*wire->spare));
        ASSERT(wire->spare);
        struct packet *packet = wire->spare;
        const ssize_t size = read(host->options.tun_fd, packet->bytes, sizeof(packet->bytes));
        if (size <= 0)
            return;
        packet->size = (size_t)size;
        if (!find_receiver(wire, from, packet))
            continue;
        wire->spare = NULL;
        line_add(wire, &host->out, host->options.bytes_per_s, packet, now_ns(), wire->one_way_ns);
    }
}

/* The sender's line whose first packet is due first, at `until_ns` at the latest. */
static struct line *earliest_out(struct bench_wire *wire, int64_t until_ns)
{
    struct line *earliest = NULL;
    for (uint32_t i = 0; i < wire->host_count; i++) {
        struct line *line = &wire->hosts[i].out;
        if (line->first && line->first->due_ns <= until_ns &&
            (!earliest || line->first->due_ns < earliest->first->due_ns))
            earliest = line;
    }
    return earliest;
}

static void deliver(struct bench_wire *wire, struct host *host, struct packet *packet)
{
    memset(packet->bytes, 0, TUN_HEADER_SIZE);
    if (write(host->options.tun_fd, packet->bytes, packet->size) == (ssize_t)packet->size) {
        wire->counts.carried_packets++;
        wire->counts.carried_bytes += packet->size - TUN_HEADER_SIZE;
    } else {
        wire->counts.lost_packets++;
    }
    free(packet);
}

static void move_due(struct bench_wire *wire)
{
    const int64_t until_ns = now_ns();
    for (struct line *line; (line = earliest_out(wire, until_ns));) {
        struct packet *packet = line_take(line, until_ns);
        struct host *host = &wire->hosts[packet->to];
        line_add(wire, &host->in, host->options.bytes_per_s, packet, packet->due_ns, 0);
    }
    for (uint32_t i = 0; i < wire->host_count; i++)
        for (struct packet *packet; (packet = line_take(&wire->hosts[i].in, until_ns));)
            deliver(wire, &wire->hosts[i], packet);
}

static int64_t next_due_ns(const struct bench_wire *wire)
{
    int64_t due_ns = INT64_MAX;
    for (uint32_t i = 0; i < wire->host_count; i++) {
        const struct packet *firsts[] = {wire->hosts[i].out.first, wire->hosts[i].in.first};
        for (size_t k = 0; k < sizeof(firsts) / sizeof(*firsts); k++)
            if (firsts[k] && firsts[k]->due_ns < due_ns)
                due_ns = firsts[k]->due_ns;
    }
    return due_ns;
}

static void *carry(void *context)
{
    struct bench_wire *wire = context;
    struct pollfd polled[BENCH_WIRE_HOSTS_MAX + 1];
    for (uint32_t i = 0; i < wire->host_count; i++)
        polled[i] = (struct pollfd){.fd = wire->hosts[i].options.tun_fd, .events = POLLIN};
    polled[wire->host_count] = (struct pollfd){.fd = wire->stop_fd, .events = POLLIN};
    while (!polled[wire->host_count].revents) {
        const int64_t due_ns = next_due_ns(wire), at_ns = now_ns();
        int64_t wait_ns = due_ns > at_ns ? due_ns - at_ns : 0;
        if (wait_ns > WAIT_NS_MAX)
            wait_ns = WAIT_NS_MAX;
        const struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
        const int ready = ppoll(polled, wire->host_count + 1, &wait, NULL);
        ASSERT(ready >= 0 || errno == EINTR);
        for (uint32_t i = 0; ready > 0 && i < wire->host_count; i++)
            if (polled[i].revents)
                host_read(wire, i);
        move_due(wire);
    }
    return NULL;
}

int bench_wire_open(const struct bench_wire_options *options, struct bench_wire **out_wire,
                    struct error *error)
{
    ASSERT(options->host_count <= BENCH_WIRE_HOSTS_MAX);
    AUTO(bench_wire) struct bench_wire *wire = memory_zeroed(1, sizeof(*wire));
    wire->host_count = options->host_count;
    wire->one_way_ns = options->one_way_ns;
    for (uint32_t i = 0; i < options->host_count; i++)
        wire->hosts[i].options = options->hosts[i];
    wire->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (wire->stop_fd < 0)
        return error_set_errno(error, errno, "open an eventfd");
    const int result = pthread_create(&wire->thread, NULL, carry, wire);
    if (result != 0)
        return error_set_errno(error, result, "start a thread");
    wire->has_thread = true;
    *out_wire = TAKE(wire);
    return 0;
}

void bench_wire_stop(struct bench_wire *wire, struct bench_wire_counts *out_counts)
{
    if (wire->has_thread) {
        const uint64_t one = 1;
        ASSERT(write(wire->stop_fd, &one, sizeof(one)) == sizeof(one));
        pthread_join(wire->thread, NULL);
        wire->has_thread = false;
    }
    *out_counts = wire->counts;
}

void bench_wire_free(struct bench_wire *wire)
{
    if (!wire)
        return;
    struct bench_wire_counts counts;
    bench_wire_stop(wire, &counts);
    for (uint32_t i = 0; i < wire->host_count; i++) {
        for (struct packet *packet; (packet = line_take(&wire->hosts[i].out, INT64_MAX));)
            free(packet);
        for (struct packet *packet; (packet = line_take(&wire->hosts[i].in, INT64_MAX));)
            free(packet);
    }
    free(wire->spare);
    if (wire->stop_fd >= 0)
        close(wire->stop_fd);
    free(wire);
}
