/*
 * Crew, rank 0: listens, and carries between the connections and the muster.
 */
#include "base/assert.h"
#include "base/list.h"
#include "worker/crew_internal.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    VISITORS_MAX = MUSTER_RANKS_MAX + 64,
    VISITOR_WAIT_MS = 10000, /* for its first message */
    FAREWELL_MS = 5000,      /* for all others to have ended */
};

struct crew_lead {
    struct crew_options options;
    struct muster *muster;
    int listen_fd;
    struct loop_watch *watch;
    struct loop_timer *tick, *farewell;
    struct list visitors;
    size_t visitor_count;
    uint64_t round; /* that this rank was told to start */
    uint64_t last_launch;
    bool is_over;
    uint8_t secret[MUSTER_SECRET_SIZE];
};

/* A rank, a launcher, or one that has not said yet what it is. */
struct visitor {
    struct list_node node;
    struct crew_lead *lead;
    struct line_link *link;
    uint32_t address;
    bool is_rank;
    uint64_t rank;
    uint64_t launch; /* of a launcher: what it waits for; 0: it is none */
    int64_t came_ms;
};

static int64_t now_ms(const struct crew_lead *lead)
{
    return crew_now_ms(&lead->options);
}

static struct visitor *find_rank(struct crew_lead *lead, uint64_t rank)
{
    LIST_EACH(&lead->visitors, node)
    {
        struct visitor *visitor = LIST_ITEM(node, struct visitor, node);
        if (visitor->is_rank && visitor->rank == rank)
            return visitor;
    }
    return NULL;
}

static void visitor_free(struct visitor *visitor)
{
    list_remove(&visitor->node);
    visitor->lead->visitor_count--;
    line_link_free(visitor->link);
    free(visitor);
}

/* ---- What the muster wants ------------------------------------------------------------------- */

/* To one rank that has just started, or to all. */
static void send_done(struct crew_lead *lead, const struct visitor *only)
{
    struct muster_rank *ranks = calloc(lead->options.muster.most, sizeof(*ranks));
    ASSERT(ranks);
    const size_t count = muster_list_done(lead->muster, ranks);
    const struct muster_message message = {.kind = MUSTER_MESSAGE_DONE, .members = {ranks, count}};
    LIST_EACH(&lead->visitors, node)
    {
        struct visitor *visitor = LIST_ITEM(node, struct visitor, node);
        if (only ? visitor == only && count > 0 : visitor->is_rank)
            line_link_send(visitor->link, &message);
    }
    if (!only)
        lead->options.callbacks.on_done(lead->options.context, ranks, count);
    free(ranks);
}

static void send_start(struct crew_lead *lead, uint64_t rank)
{
    size_t count;
    uint64_t index;
    const struct muster_rank *members = muster_round(lead->muster, &count, &index);
    if (rank == 0) {
        lead->round = index;
        lead->options.callbacks.on_start(lead->options.context, index, members, count);
        return;
    }
    struct visitor *visitor = find_rank(lead, rank);
    struct muster_rank *copy = calloc(count, sizeof(*copy));
    ASSERT(copy);
    memcpy(copy, members, count * sizeof(*copy));
    if (visitor)
        line_link_send(visitor->link, &(struct muster_message){.kind = MUSTER_MESSAGE_START,
                                                               .round = index,
                                                               .members = {copy, count}});
    free(copy);
    if (visitor)
        send_done(lead, visitor);
}

static void end_when_alone(struct crew_lead *lead)
{
    bool has_rank = false;
    LIST_EACH(&lead->visitors, node)
    has_rank |= LIST_ITEM(node, struct visitor, node)->is_rank;
    if (lead->is_over && !has_rank)
        loop_timer_start(lead->farewell, 0);
}

static void on_farewell(void *context)
{
    struct crew_lead *lead = context;
    lead->options.callbacks.on_end(lead->options.context, true, "");
}

static void send_end(struct crew_lead *lead, const struct muster_order *order)
{
    struct visitor *visitor = find_rank(lead, order->rank);
    if (visitor) {
        line_link_send(visitor->link,
                       &(struct muster_message){.kind = MUSTER_MESSAGE_END, .is_ok = order->is_ok});
    } else if (order->rank == 0 && order->is_ok) {
        /* The market takes the end of this rank for that of the job: the others end first. */
        lead->is_over = true;
        loop_timer_start(lead->farewell, FAREWELL_MS);
        end_when_alone(lead);
    } else if (order->rank == 0) {
        lead->options.callbacks.on_end(lead->options.context, false, order->text);
    }
}

static void on_order(void *context, const struct muster_order *order)
{
    struct crew_lead *lead = context;
    struct visitor *visitor;
    switch (order->kind) {
    case MUSTER_START:
        send_start(lead, order->rank);
        return;
    case MUSTER_STOP:
        visitor = find_rank(lead, order->rank);
        if (visitor)
            line_link_send(visitor->link, &(struct muster_message){.kind = MUSTER_MESSAGE_STOP,
                                                                   .round = lead->round});
        else if (order->rank == 0)
            lead->options.callbacks.on_stop(lead->options.context);
        return;
    case MUSTER_END:
        send_end(lead, order);
        return;
    case MUSTER_SAY:
        crew_say(order->text);
        return;
    case MUSTER_DONE:
        send_done(lead, NULL);
        return;
    }
}

/* ---- Who comes ------------------------------------------------------------------------------- */

static void take_join(struct visitor *visitor, const struct muster_rank *rank)
{
    struct crew_lead *lead = visitor->lead;
    /* The network lets nobody take another's address. */
    if (visitor->is_rank || rank->rank == 0 || rank->rank >= lead->options.muster.most ||
        lead->options.address((uint32_t)rank->rank) != visitor->address) {
        visitor_free(visitor);
        return;
    }
    struct visitor *before = find_rank(lead, rank->rank);
    if (before) {
        muster_leave(lead->muster, rank->rank, "another has taken its place", now_ms(lead));
        visitor_free(before);
    }
    visitor->is_rank = true;
    visitor->rank = rank->rank;
    muster_join(lead->muster, rank, now_ms(lead));
}

static struct visitor *find_host(struct crew_lead *lead, struct text host)
{
    LIST_EACH(&lead->visitors, node)
    {
        struct visitor *visitor = LIST_ITEM(node, struct visitor, node);
        char text[INET_ADDRSTRLEN];
        const struct in_addr address = {htonl(visitor->address)};
        if (visitor->is_rank && inet_ntop(AF_INET, &address, text, sizeof(text)) &&
            text_is(host, text))
            return visitor;
    }
    return NULL;
}

/* Of a launcher: passed on to the rank it names. */
static void take_launch(struct visitor *visitor, const struct muster_message *message)
{
    struct crew_lead *lead = visitor->lead;
    struct visitor *target = find_host(lead, message->host);
    if (visitor->is_rank || visitor->launch ||
        sodium_memcmp(message->secret, lead->secret, sizeof(lead->secret)) != 0) {
        visitor_free(visitor);
        return;
    }
    if (!target) {
        char text[MUSTER_TEXT_SIZE];
        snprintf(text, sizeof(text),
                 "a launcher asks for \"" TEXT_FORMAT "\", which is no rank here",
                 TEXT_ARGS(message->host));
        crew_say(text);
        visitor_free(visitor);
        return;
    }
    visitor->launch = ++lead->last_launch;
    line_link_send(target->link, &(struct muster_message){.kind = MUSTER_MESSAGE_LAUNCH,
                                                          .id = visitor->launch,
                                                          .command = message->command});
}

static void take_launched(struct crew_lead *lead, const struct muster_message *message)
{
    LIST_EACH(&lead->visitors, node)
    {
        struct visitor *visitor = LIST_ITEM(node, struct visitor, node);
        if (visitor->launch && visitor->launch == message->id)
            line_link_send(visitor->link, message);
    }
}

static void on_message(void *context, const struct muster_message *message)
{
    struct visitor *visitor = context;
    struct crew_lead *lead = visitor->lead;
    if (visitor->is_rank)
        muster_heard(lead->muster, visitor->rank, now_ms(lead));
    switch ((enum muster_message_kind)message->kind) {
    case MUSTER_MESSAGE_JOIN:
        take_join(visitor, &message->rank);
        return;
    case MUSTER_MESSAGE_EXIT:
        if (visitor->is_rank)
            muster_exit(lead->muster, visitor->rank, message->round, (int)message->status,
                        now_ms(lead));
        return;
    case MUSTER_MESSAGE_LAUNCH:
        take_launch(visitor, message);
        return;
    case MUSTER_MESSAGE_LAUNCHED:
        if (visitor->is_rank)
            take_launched(lead, message);
        return;
    case MUSTER_MESSAGE_ALIVE:
    case MUSTER_MESSAGE_START:
    case MUSTER_MESSAGE_STOP:
    case MUSTER_MESSAGE_END:
    case MUSTER_MESSAGE_DONE:
        return;
    }
}

static void on_closed(void *context, const char *why)
{
    struct visitor *visitor = context;
    struct crew_lead *lead = visitor->lead;
    const bool is_rank = visitor->is_rank;
    const uint64_t rank = visitor->rank;
    visitor_free(visitor);
    if (is_rank)
        muster_leave(lead->muster, rank, why, now_ms(lead));
    end_when_alone(lead);
}

static void on_visitor(void *context, uint32_t events)
{
    struct crew_lead *lead = context;
    struct address peer;
    struct error error;
    AUTO_FD int fd = -1;
    (void)events;
    if (tcp_accept(lead->listen_fd, &fd, &peer, &error) <= 0 ||
        lead->visitor_count == VISITORS_MAX || peer.storage.ss_family != AF_INET)
        return;
    struct visitor *visitor = calloc(1, sizeof(*visitor));
    ASSERT(visitor);
    visitor->lead = lead;
    visitor->came_ms = now_ms(lead);
    visitor->address = ntohl(((const struct sockaddr_in *)&peer.storage)->sin_addr.s_addr);
    list_append(&lead->visitors, &visitor->node);
    lead->visitor_count++;
    const struct line_link_callbacks callbacks = {on_message, on_closed};
    if (line_link_open_take(lead->options.loop, TAKE_FD(fd), &callbacks, visitor, &visitor->link,
                            &error) < 0)
        visitor_free(visitor);
}

static void on_tick(void *context)
{
    struct crew_lead *lead = context;
    const struct muster_message alive = {.kind = MUSTER_MESSAGE_ALIVE};
    loop_timer_start(lead->tick, CREW_ALIVE_MS);
    muster_tick(lead->muster, now_ms(lead));
    LIST_EACH(&lead->visitors, node)
    {
        struct visitor *visitor = LIST_ITEM(node, struct visitor, node);
        /* One was silent for too long and has to come anew, the other said nothing. */
        const bool is_lost = visitor->is_rank && !muster_has(lead->muster, visitor->rank);
        const bool is_mute = !visitor->is_rank && !visitor->launch &&
                             now_ms(lead) - visitor->came_ms > VISITOR_WAIT_MS;
        if (is_lost || is_mute)
            visitor_free(visitor);
        else if (visitor->is_rank)
            line_link_send(visitor->link, &alive);
    }
}

/* ---- Begin and end --------------------------------------------------------------------------- */

static void on_begin(void *context)
{
    struct crew_lead *lead = context;
    muster_join(lead->muster, &lead->options.own, now_ms(lead));
    loop_timer_free(lead->tick);
    lead->tick = loop_timer_new(lead->options.loop, on_tick, lead);
    loop_timer_start(lead->tick, CREW_ALIVE_MS);
}

int crew_lead_open(const struct crew_options *options, struct crew_lead **out_lead,
                   struct error *error)
{
    struct crew_lead *lead = calloc(1, sizeof(*lead));
    ASSERT(lead);
    lead->options = *options;
    lead->listen_fd = -1;
    list_init(&lead->visitors);
    randombytes_buf(lead->secret, sizeof(lead->secret));
    lead->muster = muster_new(&options->muster, on_order, lead);
    lead->tick = loop_timer_new(options->loop, on_begin, lead);
    lead->farewell = loop_timer_new(options->loop, on_farewell, lead);
    const struct host_port every = {.host = "0.0.0.0", .port = (uint16_t)options->port};
    struct address address;
    uint16_t port;
    if (address_resolve(&every, &address, error) < 0 ||
        tcp_listen(&address, "another runtime", &lead->listen_fd, &port, error) < 0 ||
        loop_watch_open(options->loop, lead->listen_fd, LOOP_READ, on_visitor, lead, &lead->watch,
                        error) < 0) {
        crew_lead_free(lead);
        return error_wrap(error, "listen for the job's other ranks");
    }
    loop_timer_start(lead->tick, 0);
    *out_lead = lead;
    return 0;
}

void crew_lead_free(struct crew_lead *lead)
{
    if (!lead)
        return;
    LIST_EACH(&lead->visitors, node)
    visitor_free(LIST_ITEM(node, struct visitor, node));
    loop_watch_free(lead->watch);
    if (lead->listen_fd >= 0)
        close(lead->listen_fd);
    loop_timer_free(lead->tick);
    loop_timer_free(lead->farewell);
    muster_free(lead->muster);
    sodium_memzero(lead->secret, sizeof(lead->secret));
    free(lead);
}

void crew_lead_exit(struct crew_lead *lead, int status)
{
    muster_exit(lead->muster, 0, lead->round, status, now_ms(lead));
}

const uint8_t *crew_lead_secret(const struct crew_lead *lead)
{
    return lead->secret;
}
