#include "peer/job_network.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "net/tun.h"
#include "peer/door.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    VISITOR_MAX = 32,
    VISITOR_WAIT_MS = 5000, /* to name a ticket, and for us to hear of it from the market */
};

struct member {
    struct job_network *network;
    uint64_t lease, fence;
    uint32_t rank;
    struct path *path;
    bool is_direct;
};

/* A connection to our listener that belongs to nobody yet. */
struct visitor {
    struct list_node node;
    struct job_network *network;
    int fd;
    struct loop_watch *watch;
    struct loop_timer *limit;
    char line[PATH_LINE_SIZE];
    size_t size;
    bool has_ticket;
    uint8_t ticket[LEASE_TICKET_SIZE];
};

struct job_network {
    struct loop *loop;
    uint64_t lease;
    uint32_t rank;
    struct host_port relay;
    struct packet_switch *packet_switch; /* NULL: no device yet */
    struct map members;                  /* rank -> struct member, owned */
    struct door *door;                   /* NULL: nobody comes */
    struct list visitors;
    size_t visitor_count;
};

/* --- members --- */

static void on_path(struct path *path, struct packet_link *link, bool is_direct, void *context)
{
    struct member *member = context;
    (void)path;
    member->is_direct = is_direct;
    log_event(LOG_INFO, "rank_linked", "lease=%" PRIu64 " peer=%" PRIu64 " rank=%u way=%s",
              member->network->lease, member->lease, member->rank, is_direct ? "direct" : "relay");
    packet_switch_attach_take(member->network->packet_switch, member->rank, link);
}

static void on_detached(struct packet_switch *packet_switch, uint32_t rank,
                        const struct error *reason, void *context)
{
    struct job_network *network = context;
    (void)packet_switch;
    struct member *member = map_get(&network->members, rank);
    log_event(LOG_INFO, "rank_unlinked", "lease=%" PRIu64 " rank=%u reason=\"%s\"", network->lease,
              rank, reason ? reason->message : "closed");
    if (member)
        path_dial(member->path);
}

static void member_free(struct member *member)
{
    path_free(member->path);
    free(member);
}

/* The same at both ends: the lower lease is named first. */
static void write_identity(uint64_t lease, uint64_t peer_lease, char out[64])
{
    const uint64_t low = lease < peer_lease ? lease : peer_lease;
    const uint64_t high = lease < peer_lease ? peer_lease : lease;
    snprintf(out, 64, "ranks:%" PRIu64 ":%" PRIu64, low, high);
}

static struct member *member_new(struct job_network *network, const struct job_network_peer *peer)
{
    struct member *member = calloc(1, sizeof(*member));
    ASSERT(member);
    member->network = network;
    member->lease = peer->lease;
    member->fence = peer->fence;
    member->rank = peer->rank;
    char identity[64];
    write_identity(network->lease, peer->lease, identity);
    struct path_options options = {.loop = network->loop,
                                   .is_client = network->lease < peer->lease,
                                   .identity = identity,
                                   .key = peer->key,
                                   .relay = network->relay,
                                   .seed = network->lease ^ peer->lease << 20,
                                   .on_open = on_path,
                                   .context = member};
    memcpy(options.ticket, peer->ticket, LEASE_TICKET_SIZE);
    member->path = path_new(&options);
    return member;
}

/* --- visitors --- */

static void visitor_free(struct visitor *visitor)
{
    list_remove(&visitor->node);
    visitor->network->visitor_count--;
    loop_watch_free(visitor->watch);
    loop_timer_free(visitor->limit);
    if (visitor->fd >= 0)
        close(visitor->fd);
    free(visitor);
}

static void visitor_on_limit(void *context)
{
    visitor_free(context);
}

/* Hands the connection to the path of its ticket; one that no path has may be heard of soon. */
static void visitor_place(struct visitor *visitor)
{
    struct job_network *network = visitor->network;
    if (!visitor->has_ticket || !network->packet_switch)
        return;
    for (size_t i = 0; i < network->members.count; i++) {
        struct member *member = network->members.entries[i].value;
        if (!path_has_ticket(member->path, visitor->ticket))
            continue;
        loop_watch_free(TAKE(visitor->watch));
        const int fd = TAKE_FD(visitor->fd);
        visitor_free(visitor);
        path_accept_take(member->path, fd);
        return;
    }
}

static bool visitor_read_ticket(struct visitor *visitor)
{
    static const char prefix[] = "SOUK-STREAM ";
    const size_t prefix_size = sizeof(prefix) - 1;
    struct error ignored;
    const struct text digits = {visitor->line + prefix_size, 2 * (size_t)LEASE_TICKET_SIZE};
    visitor->has_ticket =
        memcmp(visitor->line, prefix, prefix_size) == 0 &&
        visitor->line[PATH_LINE_SIZE - 1] == '\n' &&
        text_hex_decode(digits, visitor->ticket, LEASE_TICKET_SIZE, &ignored) == 0;
    return visitor->has_ticket;
}

static void visitor_on_events(void *context, uint32_t events)
{
    struct visitor *visitor = context;
    if (visitor->has_ticket) { /* it waits; only its end is of interest */
        if (events & LOOP_HANGUP)
            visitor_free(visitor);
        return;
    }
    /* No further than the line: what follows belongs to the handshake. */
    const ssize_t got =
        recv(visitor->fd, visitor->line + visitor->size, PATH_LINE_SIZE - visitor->size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        visitor->size += (size_t)got;
    if (got <= 0 || (visitor->size == PATH_LINE_SIZE && !visitor_read_ticket(visitor))) {
        visitor_free(visitor);
        return;
    }
    if (visitor->has_ticket) {
        loop_watch_set(visitor->watch, 0);
        visitor_place(visitor);
    }
}

static void take_visitor(void *context, int fd)
{
    struct job_network *network = context;
    struct error error;
    struct visitor *visitor = calloc(1, sizeof(*visitor));
    ASSERT(visitor);
    visitor->network = network;
    visitor->fd = fd;
    visitor->limit = loop_timer_new(network->loop, visitor_on_limit, visitor);
    list_append(&network->visitors, &visitor->node);
    network->visitor_count++;
    loop_timer_start(visitor->limit, VISITOR_WAIT_MS);
    if (network->visitor_count > VISITOR_MAX ||
        loop_watch_open(network->loop, fd, LOOP_READ, visitor_on_events, visitor, &visitor->watch,
                        &error) < 0)
        visitor_free(visitor);
}

/* --- the network --- */

static int start_listening(struct job_network *network, struct error *error)
{
    const struct door_options door = {.loop = network->loop,
                                      .closed_event = "direct_paths_closed",
                                      .on_visit_take = take_visitor,
                                      .context = network};
    return door_open(&door, &network->door, error);
}

int job_network_open(const struct job_network_options *options, struct job_network **out_network,
                     struct error *error)
{
    if (options->rank >= JOB_NETWORK_RANKS)
        return error_set(error, ERROR_INVALID, "a job network has %d ranks at most",
                         JOB_NETWORK_RANKS);
    struct job_network *network = calloc(1, sizeof(*network));
    ASSERT(network);
    network->loop = options->loop;
    network->lease = options->lease;
    network->rank = options->rank;
    network->relay = options->relay;
    map_init(&network->members);
    list_init(&network->visitors);
    if (options->is_direct && start_listening(network, error) < 0) {
        job_network_free(network);
        return error_wrap(error, "listen for direct paths");
    }
    *out_network = network;
    return 0;
}

void job_network_free(struct job_network *network)
{
    if (!network)
        return;
    LIST_EACH(&network->visitors, node)
    {
        visitor_free(LIST_ITEM(node, struct visitor, node));
    }
    for (size_t i = 0; i < network->members.count; i++)
        member_free(network->members.entries[i].value);
    map_done(&network->members);
    packet_switch_free(network->packet_switch);
    door_free(network->door);
    free(network);
}

int job_network_set_up(void *context, pid_t inside, struct error *error)
{
    struct job_network *network = context;
    const struct tun_options tun = {.inside = inside,
                                    .name = "souk0",
                                    .address = packet_address(network->rank),
                                    .prefix_bits = PACKET_PREFIX_BITS,
                                    .mtu = JOB_NETWORK_MTU,
                                    .has_offload = true,
                                    .is_lossless = true};
    AUTO_FD int fd = -1;
    if (tun_open(&tun, &fd, error) < 0)
        return -1;
    const struct packet_switch_options options = {.loop = network->loop,
                                                  .tun_fd = fd,
                                                  .rank = network->rank,
                                                  .rank_count = JOB_NETWORK_RANKS,
                                                  .on_detached = on_detached,
                                                  .context = network};
    if (packet_switch_open_take(&options, &network->packet_switch, error) < 0)
        return -1;
    (void)TAKE_FD(fd); /* the switch's now */
    for (size_t i = 0; i < network->members.count; i++)
        path_dial(((struct member *)network->members.entries[i].value)->path);
    return 0;
}

size_t job_network_addresses(const struct job_network *network,
                             struct host_port out[PATH_CANDIDATE_MAX])
{
    return network->door ? path_addresses(door_port(network->door), out) : 0;
}

int job_network_add_peer(struct job_network *network, const struct job_network_peer *peer,
                         struct error *error)
{
    if (peer->rank >= JOB_NETWORK_RANKS || peer->rank == network->rank ||
        peer->lease == network->lease)
        return error_set(error, ERROR_INVALID, "rank %u cannot be a peer of rank %u", peer->rank,
                         network->rank);
    struct member *member = map_get(&network->members, peer->rank);
    if (member && (member->lease != peer->lease || member->fence != peer->fence)) {
        member_free(member);
        member = NULL;
        if (network->packet_switch) /* the old holder speaks for this rank no more */
            packet_switch_detach(network->packet_switch, peer->rank);
    }
    if (!member) {
        member = member_new(network, peer);
        map_put(&network->members, peer->rank, member);
    }
    /* Who does not want to be reached does not knock at others either. */
    path_set_candidates(member->path, peer->candidates, network->door ? peer->candidate_count : 0);
    if (!network->packet_switch)
        return 0; /* with the device */
    if (!packet_switch_is_attached(network->packet_switch, peer->rank))
        path_dial(member->path);
    LIST_EACH(&network->visitors, node)
    {
        visitor_place(LIST_ITEM(node, struct visitor, node));
    }
    return 0;
}

struct packet_switch_counts job_network_counts(const struct job_network *network)
{
    return network->packet_switch ? *packet_switch_counts(network->packet_switch)
                                  : (struct packet_switch_counts){0};
}

uint32_t job_network_linked_count(const struct job_network *network, uint32_t *out_direct)
{
    uint32_t count = 0;
    *out_direct = 0;
    for (size_t i = 0; network->packet_switch && i < network->members.count; i++) {
        const struct member *member = network->members.entries[i].value;
        if (!packet_switch_is_attached(network->packet_switch, member->rank))
            continue;
        count++;
        *out_direct += member->is_direct;
    }
    return count;
}
