/*
 * Streams: joins the two connections that name the same ticket.
 *
 * Only tickets of open leases are taken, each by two connections; the first waits until the second
 * comes, its client goes, or the lease ends. When a joined stream breaks while its lease runs, both
 * machines are asked to dial again under a new ticket.
 */
#include "base/assert.h"
#include "base/log.h"
#include "server/hub_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* The first of two connections. */
struct hub_wait {
    struct hub *hub;
    char ticket[TICKET_TEXT_SIZE];
    int fd;
    struct loop_watch *watch;
};

struct hub_relay {
    struct list_node node;
    struct hub *hub;
    uint64_t lease;
    struct hub_dial *dial; /* whose stream it is; NULL: the pair's */
    struct hub_pair *pair; /* of a job network; NULL: the dial's */
    struct relay *relay;
};

static void wait_free(struct hub_wait *wait)
{
    map_remove_text(&wait->hub->waiting, text_of(wait->ticket));
    atomic_fetch_sub(&wait->hub->waiting_count, 1);
    loop_watch_free(wait->watch);
    if (wait->fd >= 0)
        close(wait->fd);
    free(wait);
}

/* Bytes may come early, from an end that need not wait for an answer: they stay in the socket. Only
 * a hangup is of interest. */
static void wait_event(void *context, uint32_t events)
{
    struct hub_wait *wait = context;
    if (events & LOOP_HANGUP)
        wait_free(wait);
}

static void relay_gone(struct hub_relay *joined)
{
    if (joined->pair) {
        joined->pair->relay = NULL; /* both ends see it and dial again */
    } else {
        joined->dial->relay = NULL;
        joined->dial->is_redial_due = true;
    }
    list_remove(&joined->node);
    atomic_fetch_sub(&joined->hub->relay_count, 1);
    relay_free(joined->relay);
    free(joined);
}

static void relay_done(struct relay *relay, const struct error *reason, void *context)
{
    struct hub_relay *joined = context;
    const struct relay_counts counts = relay_counts(relay);
    log_event(LOG_INFO, "stream_ended",
              "lease=%" PRIu64 " bytes=%" PRIu64 "+%" PRIu64 " reason=\"%s\"", joined->lease,
              counts.left_to_right_bytes, counts.right_to_left_bytes,
              reason ? reason->message : "both ends closed");
    relay_gone(joined);
}

/* For `pair`, or for `dial` when it is NULL. */
static void join(struct hub *hub, struct hub_dial *dial, struct hub_pair *pair,
                 struct hub_wait *wait, int fd)
{
    const uint64_t id = pair ? pair->low_lease : dial->dialler->id;
    struct hub_relay *joined = calloc(1, sizeof(*joined));
    ASSERT(joined);
    joined->hub = hub;
    joined->lease = id;
    joined->pair = pair;
    joined->dial = dial;
    loop_watch_free(wait->watch);
    wait->watch = NULL;
    const struct relay_options options = {
        .loop = hub->loop,
        .left_fd = wait->fd,
        .right_fd = fd,
        .on_done = relay_done,
        .context = joined,
    };
    struct error error;
    if (relay_open_take(&options, &joined->relay, &error) < 0) {
        log_event(LOG_WARN, "stream_not_joined", "lease=%" PRIu64 " error=\"%s\"", id,
                  error.message);
        close(fd);
        free(joined);
        if (!pair)
            dial->is_redial_due = true;
    } else {
        wait->fd = -1;
        list_append(&hub->relays, &joined->node);
        atomic_fetch_add(&hub->relay_count, 1);
        if (pair) {
            pair->relay = joined;
        } else {
            dial->relay = joined;
            dial->is_redial_due = false;
        }
        log_event(LOG_INFO, "stream_joined", "lease=%" PRIu64, id);
    }
    wait_free(wait);
}

void stream_take(struct hub *hub, int fd, const char ticket[TICKET_TEXT_SIZE])
{
    struct hub_dial *dial = map_get_text(&hub->tickets, text_of(ticket));
    struct hub_pair *pair = map_get_text(&hub->pairs, text_of(ticket));
    /* An end that dials again has lost the stream: so the other end learns of it. */
    if (pair && pair->relay)
        relay_gone(pair->relay);
    if ((!dial && !pair) || (dial && dial->relay) || hub->waiting.count >= HUB_WAITING_MAX) {
        log_event(LOG_DEBUG, "stream_refused", "waiting=%zu", hub->waiting.count);
        close(fd);
        return;
    }
    struct hub_wait *first = map_get_text(&hub->waiting, text_of(ticket));
    if (first) {
        join(hub, dial, pair, first, fd);
        return;
    }
    struct hub_wait *wait = calloc(1, sizeof(*wait));
    ASSERT(wait);
    wait->hub = hub;
    wait->fd = fd;
    memcpy(wait->ticket, ticket, TICKET_TEXT_SIZE);
    map_put_text(&hub->waiting, text_of(ticket), wait);
    atomic_fetch_add(&hub->waiting_count, 1);
    struct error error;
    if (loop_watch_open(hub->loop, fd, 0, wait_event, wait, &wait->watch, &error) < 0) {
        log_event(LOG_WARN, "stream_not_watched", "error=\"%s\"", error.message);
        wait_free(wait);
    }
}

static struct keys_stream stream_of(const struct hub_dial *dial)
{
    return (struct keys_stream){dial->dialler->id, dial->server_rank, dial->attempt};
}

void stream_expect(struct hub *hub, struct hub_dial *dial, uint64_t attempt)
{
    uint8_t ticket[LEASE_TICKET_SIZE];
    dial->attempt = attempt;
    const struct keys_stream stream = stream_of(dial);
    keys_ticket(hub->server->keys, &stream, ticket);
    if (dial->ticket[0])
        map_remove_text(&hub->tickets, text_of(dial->ticket));
    text_hex_encode(ticket, sizeof(ticket), dial->ticket);
    map_put_text(&hub->tickets, text_of(dial->ticket), dial);
}

static void forget_dial(struct hub *hub, struct hub_dial *dial)
{
    if (!dial->ticket[0])
        return;
    struct hub_wait *wait = map_get_text(&hub->waiting, text_of(dial->ticket));
    if (wait)
        wait_free(wait);
    map_remove_text(&hub->tickets, text_of(dial->ticket));
    dial->ticket[0] = '\0';
    if (dial->relay)
        relay_gone(dial->relay);
}

void stream_forget(struct hub *hub, struct hub_lease *lease)
{
    for (uint32_t i = 0; i < lease->dial_count; i++)
        forget_dial(hub, &lease->dials[i]);
}

void stream_cut(struct hub_dial *dial)
{
    if (dial->relay)
        relay_gone(dial->relay);
    dial->is_redial_due = true;
}

void stream_forget_pair(struct hub *hub, struct hub_pair *pair)
{
    struct hub_wait *wait = map_get_text(&hub->waiting, text_of(pair->ticket));
    if (wait)
        wait_free(wait);
    if (pair->relay)
        relay_gone(pair->relay);
}

/* The ticket is the dial's, whichever end is asked. */
static bool ask(struct hub *hub, const struct hub_dial *dial, const struct hub_lease *asked,
                const struct hub_lease *other)
{
    struct hub_machine *machine = hub_machine(hub, asked->machine);
    struct lease_message message = {
        .type = LEASE_MESSAGE_STREAM_OPEN,
        .stream_open = {.lease = asked->id,
                        .fence = asked->fence,
                        .peer_lease = other->id,
                        .peer_fence = other->fence,
                        .peer_role = other->role,
                        .peer_rank = (uint32_t)other->rank},
    };
    const struct keys_stream stream = stream_of(dial);
    keys_ticket(hub->server->keys, &stream, message.stream_open.ticket);
    return machine && hub_send(machine, &message);
}

static bool is_reachable(struct hub *hub, const struct hub_lease *lease)
{
    const struct hub_machine *machine = lease ? hub_machine(hub, lease->machine) : NULL;
    return machine && machine->is_welcome && lease->is_known && !lease->is_over &&
           !lease->is_stop_wanted;
}

void stream_redial(struct hub *hub, struct hub_dial *dial)
{
    if (dial->relay || !dial->server_lease)
        return;
    const int64_t now_ns = hub_now_ns(hub);
    if (!dial->is_redial_due && dial->dialled_ns &&
        now_ns - dial->dialled_ns > HUB_REDIAL_MS * INT64_C(1000000))
        dial->is_redial_due = true;
    struct hub_lease *dialler = dial->dialler;
    struct hub_lease *server_lease = map_get(&hub->leases, dial->server_lease);
    if (!dial->is_redial_due || !is_reachable(hub, dialler) || !is_reachable(hub, server_lease))
        return;
    struct hub_wait *wait = map_get_text(&hub->waiting, text_of(dial->ticket));
    if (wait)
        wait_free(wait);
    /* Never a number used before, also across a restart. */
    const uint64_t attempt = (uint64_t)clock_utc_ms(hub->server->clock);
    stream_expect(hub, dial, attempt > dial->attempt ? attempt : dial->attempt + 1);
    dial->is_redial_due = false;
    dial->dialled_ns = now_ns;
    log_event(LOG_INFO, "stream_redialled", "lease=%" PRIu64 " peer=%" PRIu64, dialler->id,
              server_lease->id);
    if (!ask(hub, dial, server_lease, dialler) || !ask(hub, dial, dialler, server_lease))
        dial->is_redial_due = true;
}

void streams_done(struct hub *hub)
{
    for (size_t i = hub->waiting.count; i-- > 0;)
        wait_free(hub->waiting.entries[i].value);
    LIST_EACH(&hub->relays, node)
    relay_gone(LIST_ITEM(node, struct hub_relay, node));
}
