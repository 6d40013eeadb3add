#include "net/packet_switch.h"

#include "base/assert.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BYTES_PER_TURN = 512 << 10,
    PACKETS_PER_TURN = 256,
    ACTIVE_MS = 100, /* a rank is talked to while its last packet is no older */
    STALL_MS = 20,   /* the device waits no longer for a link that does not move */
};

struct port {
    struct packet_switch *packet_switch;
    uint32_t rank;
    struct packet_link *link; /* NULL: not connected */
    int64_t used_ns;          /* when a packet for it was last read */
    bool is_full;
    bool is_stalled; /* full, and waited for long enough */
    bool is_dirty;   /* has packets to flush */
};

struct packet_switch {
    struct loop *loop;
    int tun_fd;
    struct loop_watch *tun_watch;
    struct loop_timer *stall;
    bool is_waiting; /* the device is not read */
    uint32_t rank, rank_count;
    struct port *ports;  /* by rank */
    struct port *last;   /* the port whose room is read into */
    struct port **dirty; /* rank_count of them */
    uint32_t dirty_count;
    uint32_t full_count;
    uint8_t scratch[PACKET_ROOM]; /* read into when `last` has no room */
    struct packet_switch_counts counts;
    void (*on_detached)(struct packet_switch *packet_switch, uint32_t rank,
                        const struct error *reason, void *context);
    void *context;
};

static int64_t now_ns(const struct packet_switch *self)
{
    return clock_monotonic_ns(loop_clock(self->loop));
}

/* --- from the device --- */

static void port_set_full(struct port *port, bool is_full)
{
    struct packet_switch *self = port->packet_switch;
    if (port->is_full != is_full)
        self->full_count += is_full ? 1U : -1U;
    port->is_full = is_full;
    if (!is_full)
        port->is_stalled = false;
}

static bool is_active(const struct port *port, int64_t now)
{
    return port->link && port->used_ns > 0 && now - port->used_ns < ACTIVE_MS * INT64_C(1000000);
}

/* Whether whoever is being talked to cannot take more. */
static bool should_wait(const struct packet_switch *self, int64_t now)
{
    bool is_any_full = false;
    if (self->full_count == 0)
        return false;
    for (uint32_t rank = 0; rank < self->rank_count; rank++) {
        const struct port *port = &self->ports[rank];
        if (!is_active(port, now) || port->is_stalled)
            continue;
        if (!port->is_full)
            return false;
        is_any_full = true;
    }
    return is_any_full;
}

static void set_waiting(struct packet_switch *self, bool is_waiting)
{
    if (self->is_waiting == is_waiting)
        return;
    self->is_waiting = is_waiting;
    loop_watch_set(self->tun_watch, is_waiting ? 0 : LOOP_READ);
    if (is_waiting)
        loop_timer_start(self->stall, STALL_MS);
    else
        loop_timer_stop(self->stall);
}

static void on_stall(void *context)
{
    struct packet_switch *self = context;
    for (uint32_t rank = 0; rank < self->rank_count; rank++)
        self->ports[rank].is_stalled = self->ports[rank].is_full;
    set_waiting(self, false);
}

static void port_mark_dirty(struct port *port)
{
    struct packet_switch *self = port->packet_switch;
    if (!port->is_dirty)
        self->dirty[self->dirty_count++] = port;
    port->is_dirty = true;
}

static uint8_t *port_room(struct port *port)
{
    uint8_t *room = packet_link_room(port->link);
    port_set_full(port, room == NULL);
    return room;
}

/* Gives one packet, read to `bytes`, to its port. */
static void forward(struct packet_switch *self, uint8_t *bytes, size_t size, int64_t now)
{
    struct packet_route route;
    enum packet_verdict verdict = packet_from_tun(bytes, size, self->rank_count, &route);
    if (verdict == PACKET_PASSES && route.from_rank != self->rank)
        verdict = PACKET_SPOOFED;
    if (verdict != PACKET_PASSES) {
        self->counts.dropped_out[verdict]++;
        return;
    }
    struct port *port = &self->ports[route.to_rank];
    if (!port->link) {
        self->counts.no_link++;
        return;
    }
    port->used_ns = now;
    uint8_t *room = port_room(port);
    if (!room) {
        self->counts.no_room++;
        return;
    }
    if (room != bytes)
        memcpy(room, bytes, size);
    packet_link_add(port->link, size);
    port_mark_dirty(port);
    self->last = port;
    self->counts.packets_out++;
    self->counts.bytes_out += size - PACKET_HEADER_SIZE;
}

static void flush(struct packet_switch *self)
{
    for (uint32_t i = 0; i < self->dirty_count; i++) {
        self->dirty[i]->is_dirty = false;
        if (self->dirty[i]->link)
            packet_link_flush(self->dirty[i]->link);
    }
    self->dirty_count = 0;
}

static void on_tun(void *context, uint32_t events __attribute__((unused)))
{
    struct packet_switch *self = context;
    const int64_t now = now_ns(self);
    size_t total = 0;
    for (int i = 0; i < PACKETS_PER_TURN && total < BYTES_PER_TURN; i++) {
        /* The packet goes most likely where the one before went: no copy then. */
        uint8_t *room = self->last && self->last->link ? port_room(self->last) : NULL;
        if (self->full_count > 0 && should_wait(self, now)) {
            set_waiting(self, true);
            break;
        }
        uint8_t *bytes = room ? room : self->scratch;
        const ssize_t got = read(self->tun_fd, bytes, PACKET_ROOM);
        if (got <= 0)
            break;
        total += (size_t)got;
        forward(self, bytes, (size_t)got, now);
    }
    flush(self);
}

/* --- from the links --- */

static void write_packet(struct packet_switch *self, const uint8_t *bytes, size_t size)
{
    ssize_t written;
    do {
        written = write(self->tun_fd, bytes, size);
    } while (written < 0 && errno == EINTR);
    if (written < 0) {
        self->counts.refused++;
        return;
    }
    self->counts.packets_in++;
    self->counts.bytes_in += size - PACKET_HEADER_SIZE;
}

static void on_record(struct packet_link *link __attribute__((unused)), uint8_t *bytes, size_t size,
                      void *context)
{
    const struct port *port = context;
    struct packet_switch *self = port->packet_switch;
    for (size_t done = 0; done < size;) {
        struct packet_route route;
        size_t packet_size = 0;
        enum packet_verdict verdict =
            packet_to_tun(bytes + done, size - done, self->rank_count, &route, &packet_size);
        if (verdict == PACKET_PASSES && route.from_rank != port->rank)
            verdict = PACKET_SPOOFED;
        if (verdict == PACKET_PASSES && route.to_rank != self->rank)
            verdict = PACKET_FOREIGN;
        if (verdict == PACKET_PASSES)
            write_packet(self, bytes + done, packet_size);
        else
            self->counts.dropped_in[verdict]++;
        if (verdict == PACKET_MALFORMED)
            return;
        done += packet_size;
    }
}

static void on_room(struct packet_link *link __attribute__((unused)), void *context)
{
    struct port *port = context;
    port_set_full(port, false);
    set_waiting(port->packet_switch, false);
}

static void port_detach(struct port *port)
{
    port_set_full(port, false);
    packet_link_free(TAKE(port->link));
    set_waiting(port->packet_switch, false);
}

static void on_close(struct packet_link *link __attribute__((unused)), const struct error *reason,
                     void *context)
{
    struct port *port = context;
    struct packet_switch *self = port->packet_switch;
    port_detach(port);
    if (self->on_detached)
        self->on_detached(self, port->rank, reason, self->context);
}

/* --- the switch --- */

int packet_switch_open_take(const struct packet_switch_options *options,
                            struct packet_switch **out_switch, struct error *error)
{
    if (options->rank_count < 1 || options->rank_count > PACKET_RANK_MAX ||
        options->rank >= options->rank_count)
        return error_set(error, ERROR_INVALID, "rank %u of %u is none of a job network",
                         options->rank, options->rank_count);
    struct packet_switch *self = calloc(1, sizeof(*self));
    ASSERT(self);
    self->loop = options->loop;
    self->tun_fd = -1;
    self->rank = options->rank;
    self->rank_count = options->rank_count;
    self->on_detached = options->on_detached;
    self->context = options->context;
    self->ports = calloc(options->rank_count, sizeof(*self->ports));
    self->dirty = calloc(options->rank_count, sizeof(struct port *));
    ASSERT(self->ports && self->dirty);
    for (uint32_t rank = 0; rank < options->rank_count; rank++)
        self->ports[rank] = (struct port){.packet_switch = self, .rank = rank};
    self->stall = loop_timer_new(self->loop, on_stall, self);
    if (loop_watch_open(self->loop, options->tun_fd, LOOP_READ, on_tun, self, &self->tun_watch,
                        error) < 0) {
        packet_switch_free(self);
        return -1;
    }
    self->tun_fd = options->tun_fd;
    *out_switch = self;
    return 0;
}

void packet_switch_free(struct packet_switch *packet_switch)
{
    if (!packet_switch)
        return;
    for (uint32_t rank = 0; rank < packet_switch->rank_count; rank++)
        packet_link_free(packet_switch->ports[rank].link);
    loop_watch_free(packet_switch->tun_watch);
    loop_timer_free(packet_switch->stall);
    if (packet_switch->tun_fd >= 0)
        close(packet_switch->tun_fd);
    free(packet_switch->ports);
    free(packet_switch->dirty);
    free(packet_switch);
}

void packet_switch_attach_take(struct packet_switch *packet_switch, uint32_t rank,
                               struct packet_link *link)
{
    ASSERT(rank < packet_switch->rank_count && rank != packet_switch->rank &&
           packet_link_is_open(link));
    static const struct packet_link_callbacks callbacks = {
        .on_record = on_record, .on_close = on_close, .on_room = on_room};
    struct port *port = &packet_switch->ports[rank];
    port_detach(port);
    port->link = link;
    packet_link_set_owner(link, &callbacks, port);
}

void packet_switch_detach(struct packet_switch *packet_switch, uint32_t rank)
{
    if (packet_switch_is_attached(packet_switch, rank))
        port_detach(&packet_switch->ports[rank]);
}

bool packet_switch_is_attached(const struct packet_switch *packet_switch, uint32_t rank)
{
    return rank < packet_switch->rank_count && packet_switch->ports[rank].link;
}

const struct packet_switch_counts *packet_switch_counts(const struct packet_switch *packet_switch)
{
    return &packet_switch->counts;
}
