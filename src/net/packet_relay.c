#include "net/packet_relay.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/random.h"
#include "net/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PACKETS_PER_TURN = 64, QUEUE_BYTES_DEFAULT = 1 << 20 };
#define MILLISECOND INT64_C(1000000)

struct held {
    struct list_node node;
    int64_t due_ns;
    size_t size;
    uint8_t bytes[];
};

struct direction {
    struct packet_relay *relay;
    int from_fd, to_fd;
    struct packet_path path;
    struct loop_watch *watch;
    struct loop_timer *timer;
    struct list held;     /* in the order they are due */
    int64_t last_due_ns;  /* packets do not overtake one another */
    int64_t line_free_ns; /* when the narrow way has passed on what came before */
    struct packet_relay_counts counts;
};

struct packet_relay {
    struct loop *loop;
    struct random random;
    struct direction directions[2];
    uint8_t packet[PACKET_ROOM];
};

static void pass_on(struct direction *direction, const uint8_t *bytes, size_t size)
{
    ssize_t written;
    do {
        written = write(direction->to_fd, bytes, size);
    } while (written < 0 && errno == EINTR);
    if (written != (ssize_t)size) {
        direction->counts.dropped++;
        return;
    }
    direction->counts.packets++;
    direction->counts.bytes += size;
}

static int64_t relay_now_ns(const struct direction *direction)
{
    return clock_monotonic_ns(loop_clock(direction->relay->loop));
}

static void start_timer(struct direction *direction, int64_t now_ns)
{
    if (list_is_empty(&direction->held))
        return;
    const struct held *first = LIST_ITEM(direction->held.head.next, struct held, node);
    const int64_t wait_ns = first->due_ns - now_ns;
    loop_timer_start(direction->timer, wait_ns > 0 ? (wait_ns + MILLISECOND - 1) / MILLISECOND : 0);
}

static void on_due(void *context)
{
    struct direction *direction = context;
    const int64_t now_ns = relay_now_ns(direction);
    while (!list_is_empty(&direction->held)) {
        struct held *held = LIST_ITEM(direction->held.head.next, struct held, node);
        if (held->due_ns > now_ns)
            break;
        list_remove(&held->node);
        pass_on(direction, held->bytes, held->size);
        free(held);
    }
    start_timer(direction, now_ns);
}

static void hold(struct direction *direction, size_t size, int64_t now_ns)
{
    const struct packet_path *path = &direction->path;
    int64_t due_ns = now_ns;
    if (path->rate_kbit > 0) {
        const int64_t begin_ns =
            direction->line_free_ns > now_ns ? direction->line_free_ns : now_ns;
        const int64_t waiting_bytes = (begin_ns - now_ns) * path->rate_kbit / 8 / MILLISECOND;
        const size_t queue_bytes = path->queue_bytes ? path->queue_bytes : QUEUE_BYTES_DEFAULT;
        if ((size_t)waiting_bytes + size > queue_bytes) {
            direction->counts.dropped++;
            return;
        }
        due_ns = begin_ns + (int64_t)size * 8 * MILLISECOND / path->rate_kbit;
        direction->line_free_ns = due_ns;
    }
    due_ns += path->delay_ms * MILLISECOND;
    if (due_ns < direction->last_due_ns)
        due_ns = direction->last_due_ns;
    direction->last_due_ns = due_ns;

    struct held *held = malloc(sizeof(*held) + size);
    ASSERT(held);
    *held = (struct held){.due_ns = due_ns, .size = size};
    memcpy(held->bytes, direction->relay->packet, size);
    list_append(&direction->held, &held->node);
    if (!loop_timer_is_running(direction->timer))
        start_timer(direction, now_ns);
}

static void on_packets(void *context, uint32_t events __attribute__((unused)))
{
    struct direction *direction = context;
    struct packet_relay *relay = direction->relay;
    const int64_t now_ns = relay_now_ns(direction);
    for (int i = 0; i < PACKETS_PER_TURN; i++) {
        const ssize_t got = read(direction->from_fd, relay->packet, sizeof(relay->packet));
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            loop_watch_set(direction->watch, 0); /* the device or the peer is gone */
        if (got <= 0)
            return;
        const struct packet_path *path = &direction->path;
        if (path->loss_ppm > 0 && random_below(&relay->random, 1000000) < path->loss_ppm)
            direction->counts.lost++;
        else if (path->delay_ms > 0 || path->rate_kbit > 0 || !list_is_empty(&direction->held))
            hold(direction, (size_t)got, now_ns);
        else
            pass_on(direction, relay->packet, (size_t)got);
    }
}

int packet_relay_open(const struct packet_relay_options *options, struct packet_relay **out_relay,
                      struct error *error)
{
    struct packet_relay *made = calloc(1, sizeof(*made));
    ASSERT(made);
    AUTO(packet_relay) struct packet_relay *relay = made;
    relay->loop = options->loop;
    random_init(&relay->random, options->seed);
    for (int i = 0; i < 2; i++) {
        struct direction *direction = &relay->directions[i];
        direction->relay = relay;
        direction->from_fd = options->fds[i];
        direction->to_fd = options->fds[!i];
        direction->path = options->paths[i];
        list_init(&direction->held);
        direction->timer = loop_timer_new(relay->loop, on_due, direction);
    }
    for (int i = 0; i < 2; i++)
        if (loop_watch_open(relay->loop, options->fds[i], LOOP_READ, on_packets,
                            &relay->directions[i], &relay->directions[i].watch, error) < 0)
            return -1;
    *out_relay = TAKE(relay);
    return 0;
}

void packet_relay_free(struct packet_relay *relay)
{
    if (!relay)
        return;
    for (int i = 0; i < 2; i++) {
        struct direction *direction = &relay->directions[i];
        loop_watch_free(direction->watch);
        loop_timer_free(direction->timer);
        for (struct list_node *node; (node = list_take_first(&direction->held));)
            free(LIST_ITEM(node, struct held, node));
    }
    free(relay);
}

void packet_relay_set_path(struct packet_relay *relay, int direction,
                           const struct packet_path *path)
{
    relay->directions[direction].path = *path;
}

struct packet_relay_counts packet_relay_counts(const struct packet_relay *relay, int direction)
{
    return relay->directions[direction].counts;
}
