/* Connections to the link port: the first byte decides what they are. */
#include "base/assert.h"
#include "base/log.h"
#include "net/address.h"
#include "server/admission.h"
#include "server/client_address.h"
#include "server/hub_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS_NS         INT64_C(1000000)
#define STREAM_PREFIX "SOUK-STREAM "

enum {
    STREAM_PREFIX_SIZE = sizeof(STREAM_PREFIX) - 1,
    STREAM_LINE_SIZE = STREAM_PREFIX_SIZE + 2 * LEASE_TICKET_SIZE + 1,
    TLS_HANDSHAKE_BYTE = 0x16,
    ACCEPT_MAX = 64, /* in one turn of the loop */
    DISPLACED_LOG_MS = 10000,
    MESSAGE_ARENA_MAX = 8 * LEASE_MESSAGE_SIZE_MAX,
    TICKET_DIGITS = 2 * LEASE_TICKET_SIZE,
};

struct hub_connection {
    struct list_node node;
    struct hub *hub;
    int fd; /* until it is a link's or a stream's */
    char host[ADDRESS_TEXT_SIZE];
    uint64_t block; /* client_address.h */
    bool is_silent; /* no byte has come */
    struct loop_watch *watch;
    struct loop_timer *timer;
    struct link *link;
    struct hub_machine *machine; /* once the handshake named it: its link, or its contender */
    struct buffer hello;         /* a contender's HELLO, while it waits for a verdict */
};

struct link *connection_link(struct hub_connection *connection)
{
    return connection->link;
}

const char *connection_host(const struct hub_connection *connection)
{
    return connection->host;
}

void connection_free(struct hub_connection *connection)
{
    if (!connection)
        return;
    struct hub *hub = connection->hub;
    struct hub_machine *machine = connection->machine;
    if (machine && machine->connection == connection) {
        machine->connection = NULL;
        machine->is_welcome = false;
        presence_gone(machine);
        atomic_fetch_sub(&hub->link_count, 1);
    } else {
        hub->accepting_count--;
    }
    if (machine && machine->contender == connection)
        machine->contender = NULL;
    buffer_done(&connection->hello);
    list_remove(&connection->node);
    loop_watch_free(connection->watch);
    loop_timer_free(connection->timer);
    link_free(connection->link);
    if (connection->fd >= 0)
        close(connection->fd);
    free(connection);
}

void connections_done(struct hub *hub)
{
    LIST_EACH(&hub->connections, node)
    connection_free(LIST_ITEM(node, struct hub_connection, node));
    LIST_EACH(&hub->accepting, node)
    connection_free(LIST_ITEM(node, struct hub_connection, node));
}

/* ---- Control links --------------------------------------------------------------------------- */

/* "machine:ID:GENERATION" */
static struct hub_machine *find_identity(struct hub *hub, struct text identity)
{
    const struct text prefix = TEXT("machine:");
    struct text id_text, generation_text;
    uint64_t id, generation;
    struct error error; /* any failure means: nobody */
    if (!text_starts_with(identity, prefix))
        return NULL;
    const struct text rest = {identity.data + prefix.size, identity.size - prefix.size};
    if (!text_cut(rest, ':', &id_text, &generation_text) ||
        text_parse_u64(id_text, &id, &error) < 0 ||
        text_parse_u64(generation_text, &generation, &error) < 0)
        return NULL;
    struct hub_machine *machine = hub_machine(hub, id);
    return machine && machine->generation == generation ? machine : NULL;
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    const struct hub_connection *connection = context;
    const struct hub_machine *machine = find_identity(connection->hub, identity);
    if (!machine)
        return -1;
    keys_machine(connection->hub->server->keys, machine->id, machine->generation, out_key);
    return 0;
}

static void become_current(struct hub_connection *connection)
{
    struct hub_machine *machine = connection->machine;
    loop_timer_free(connection->timer);
    connection->timer = NULL;
    list_remove(&connection->node);
    list_append(&connection->hub->connections, &connection->node);
    connection->hub->accepting_count--;
    atomic_fetch_add(&connection->hub->link_count, 1);
    machine->connection = connection;
    machine->is_welcome = false;
    machine->heard_ns = hub_now_ns(connection->hub);
    pace_link(machine);
    log_event(LOG_INFO, "machine_linked", "machine=%" PRIu64, machine->id);
}

static void link_opened(struct link *link, struct text identity, void *context)
{
    (void)link;
    struct hub_connection *connection = context;
    struct hub_machine *machine = find_identity(connection->hub, identity);
    if (!machine) { /* enrolled anew during the handshake */
        connection_free(connection);
        return;
    }
    connection_free(machine->contender);
    connection->machine = machine;
    if (machine->connection)
        machine->contender = connection;
    else
        become_current(connection);
}

/* ---- Contenders ------------------------------------------------------------------------------ */

bool connection_has_hello(const struct hub_connection *connection)
{
    return connection->hello.size > 0;
}

void connection_refuse(struct hub_connection *connection, bool is_final, const char *reason)
{
    const struct lease_message message = {
        .type = LEASE_MESSAGE_REFUSED,
        .refused = {.is_final = is_final, .reason = text_of(reason)}};
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(&message, &payload);
    struct error error;
    link_set_paused(connection->link, false); /* to see it close */
    if (link_send_text(connection->link, LEASE_MESSAGE_REFUSED, buffer_text(&payload), &error) < 0)
        connection_free(connection);
    else
        link_finish(connection->link); /* link_closed follows */
}

static void take_waiting_hello(struct hub_connection *connection)
{
    AUTO(arena) struct arena *arena = arena_new(MESSAGE_ARENA_MAX);
    struct buffer payload AUTO_BUFFER;
    payload = connection->hello;
    buffer_init(&connection->hello, LEASE_MESSAGE_SIZE_MAX);
    struct lease_message message;
    struct error error;
    if (lease_message_decode(arena, LEASE_MESSAGE_HELLO, buffer_text(&payload), &message, &error) <
        0) {
        connection_free(connection); /* it was one before */
        return;
    }
    link_set_paused(connection->link, false);
    hub_take_message(connection->machine, arena, &message);
}

void connection_promote(struct hub_machine *machine)
{
    struct hub_connection *connection = machine->contender;
    if (!connection)
        return;
    machine->contender = NULL;
    connection_free(machine->connection);
    become_current(connection);
    if (connection_has_hello(connection))
        take_waiting_hello(connection);
}

static void old_link_is_dead(void *context)
{
    struct hub_connection *connection = context;
    log_event(LOG_INFO, "machine_returned",
              "machine=%" PRIu64 " reason=\"its older link gave no sign of life\"",
              connection->machine->id);
    connection_promote(connection->machine);
}

static void contender_frame(struct hub_connection *connection, struct arena *arena,
                            const struct lease_message *message, struct text payload)
{
    struct hub_machine *machine = connection->machine;
    if (message->type != LEASE_MESSAGE_HELLO) {
        connection_free(connection);
        return;
    }
    const char *refusal = presence_refusal(machine, &message->hello);
    if (refusal) {
        connection_refuse(connection, /* is_final= */ true, refusal);
        return;
    }
    if (presence_contend(machine, &message->hello) == PRESENCE_TAKES_OVER) {
        connection_promote(machine);
        hub_take_message(machine, arena, message);
        return;
    }
    buffer_append_text(&connection->hello, payload);
    link_set_paused(connection->link, true);
    loop_timer_free(connection->timer);
    connection->timer = loop_timer_new(connection->hub->loop, old_link_is_dead, connection);
    loop_timer_start(connection->timer, presence_alive_ms());
}

/* Not for good: either side may be upgraded, and then it fits. */
static void refuse_version(struct hub_connection *connection, uint32_t version)
{
    char reason[LEASE_REASON_SIZE_MAX];
    log_event(LOG_WARN, "hello_refused", "machine=%" PRIu64 " version=%" PRIu32 " ours=%d",
              connection->machine->id, version, LEASE_MESSAGE_VERSION);
    snprintf(reason, sizeof(reason),
             "it speaks version %" PRIu32 " of the link's language and this market version %d: "
             "install the same souk on both; the machine asks again every half minute or so",
             version, LEASE_MESSAGE_VERSION);
    connection_refuse(connection, /* is_final= */ false, reason);
}

static void link_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct hub_connection *connection = context;
    struct hub_machine *machine = connection->machine;
    ASSERT(machine);
    const bool is_current = machine->connection == connection;
    if (is_current) {
        machine->heard_ns = hub_now_ns(connection->hub);
        pace_charge(machine, type, payload.size);
    }
    if (is_current && machine->is_welcome)
        hub_tell_online(machine);
    if (type == LEASE_MESSAGE_HELLO && hello_message_version(payload) != LEASE_MESSAGE_VERSION) {
        refuse_version(connection, hello_message_version(payload));
        return;
    }
    AUTO(arena) struct arena *arena = arena_new(MESSAGE_ARENA_MAX);
    struct lease_message message;
    struct error error;
    if (lease_message_decode(arena, type, payload, &message, &error) < 0) {
        log_event(LOG_WARN, "message_refused", "machine=%" PRIu64 " error=\"%s\"", machine->id,
                  error.message);
        connection_free(connection);
        return;
    }
    if (is_current)
        hub_take_message(machine, arena, &message);
    else
        contender_frame(connection, arena, &message, payload);
}

static void link_closed(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct hub_connection *connection = context;
    if (connection->machine && connection->machine->connection == connection) {
        hub_unlinked(connection->machine, reason);
        return;
    }
    log_event(LOG_INFO, "link_refused", "reason=\"%s\"", reason ? reason->message : "closed");
    connection_free(connection);
}

static void become_link(struct hub_connection *connection)
{
    loop_watch_free(connection->watch);
    connection->watch = NULL;
    const struct link_options options = {
        .loop = connection->hub->loop,
        .is_server = true,
        .find_key = find_key,
        .payload_max = LEASE_MESSAGE_SIZE_MAX,
        .queue_max_bytes = 16 << 20,
        .handshake_timeout_ms = HUB_HANDSHAKE_MS,
        .callbacks = {.on_open = link_opened, .on_frame = link_frame, .on_close = link_closed},
        .context = connection,
    };
    struct error error;
    if (link_open_take(&options, connection->fd, &connection->link, &error) < 0) {
        log_event(LOG_WARN, "link_refused", "reason=\"%s\"", error.message);
        connection_free(connection);
        return;
    }
    connection->fd = -1;
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* Reads the line and not a byte more: what follows belongs to the other end. */
static void become_stream(struct hub_connection *connection)
{
    char line[STREAM_LINE_SIZE];
    const ssize_t size = recv(connection->fd, line, sizeof(line), MSG_PEEK | MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0) {
        connection_free(connection);
        return;
    }
    if (size < STREAM_LINE_SIZE) {
        /* Peeking leaves the bytes: without this the loop would turn until the rest comes. The
         * timer ends a line that does not come. */
        const int wanted = STREAM_LINE_SIZE;
        setsockopt(connection->fd, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted));
        return;
    }
    struct error error;
    uint8_t ticket_bytes[LEASE_TICKET_SIZE];
    const struct text ticket_text = {line + STREAM_PREFIX_SIZE, TICKET_DIGITS};
    if (memcmp(line, STREAM_PREFIX, STREAM_PREFIX_SIZE) != 0 ||
        line[STREAM_LINE_SIZE - 1] != '\n' ||
        text_hex_decode(ticket_text, ticket_bytes, sizeof(ticket_bytes), &error) < 0 ||
        recv(connection->fd, line, sizeof(line), MSG_DONTWAIT) != STREAM_LINE_SIZE) {
        connection_free(connection);
        return;
    }
    char ticket[TICKET_TEXT_SIZE];
    text_hex_encode(ticket_bytes, sizeof(ticket_bytes), ticket);
    struct hub *hub = connection->hub;
    loop_watch_free(connection->watch);
    connection->watch = NULL;
    const int fd = TAKE_FD(connection->fd);
    const int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
    connection_free(connection);
    stream_take(hub, fd, ticket);
}

/* ---- Accepting ------------------------------------------------------------------------------- */

static void first_byte(void *context, uint32_t events)
{
    struct hub_connection *connection = context;
    (void)events;
    uint8_t byte = 0;
    const ssize_t size = recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (connection->is_silent && size == 1) {
        connection->is_silent = false;
        loop_timer_start(connection->timer, HUB_HANDSHAKE_MS);
    }
    if (size == 1 && byte == TLS_HANDSHAKE_BYTE)
        become_link(connection);
    else if (size == 1 && byte == 'S')
        become_stream(connection);
    else
        connection_free(connection);
}

static void too_slow(void *context)
{
    connection_free(context);
}

/* Whoever floods us does not write our log too. */
static void note_displaced(struct hub *hub, const char *host)
{
    const int64_t now_ns = hub_now_ns(hub);
    hub->displaced_count++;
    if (hub->displaced_told_ns && now_ns - hub->displaced_told_ns < DISPLACED_LOG_MS * MS_NS)
        return;
    log_event(LOG_WARN, "connection_displaced", "waiting=%zu last=%s count=%" PRIu64,
              hub->accepting_count, host, hub->displaced_count);
    hub->displaced_told_ns = now_ns;
    hub->displaced_count = 0;
}

/* False: no place can be had. */
static bool make_room(struct hub *hub, uint64_t block)
{
    if (hub->accepting_count < ADMISSION_BLOCK_MAX)
        return true;
    struct admission_guest guests[ADMISSION_MAX];
    struct hub_connection *waiting[ADMISSION_MAX];
    size_t count = 0;
    LIST_EACH(&hub->accepting, node)
    {
        struct hub_connection *connection = LIST_ITEM(node, struct hub_connection, node);
        waiting[count] = connection;
        guests[count++] = (struct admission_guest){.block = connection->block,
                                                   .is_silent = connection->is_silent,
                                                   .is_known = connection->machine != NULL};
    }
    const struct admission admission = admission_judge(guests, count, block);
    if (admission.kind == ADMISSION_INSTEAD) {
        note_displaced(hub, waiting[admission.index]->host);
        connection_free(waiting[admission.index]);
    }
    return admission.kind != ADMISSION_FULL;
}

static void take_connection(struct hub *hub, int fd, const struct address *peer)
{
    const uint64_t block = client_address_of(peer).block;
    if (!make_room(hub, block)) {
        char host[ADDRESS_TEXT_SIZE];
        note_displaced(hub, address_format_host(peer, host));
        close(fd);
        return;
    }
    struct hub_connection *connection = calloc(1, sizeof(*connection));
    ASSERT(connection);
    connection->hub = hub;
    connection->fd = fd;
    address_format_host(peer, connection->host);
    buffer_init(&connection->hello, LEASE_MESSAGE_SIZE_MAX);
    connection->block = block;
    connection->is_silent = true;
    list_append(&hub->accepting, &connection->node);
    hub->accepting_count++;
    connection->timer = loop_timer_new(hub->loop, too_slow, connection);
    loop_timer_start(connection->timer, HUB_FIRST_BYTE_MS);
    struct error error;
    if (loop_watch_open(hub->loop, fd, LOOP_READ, first_byte, connection, &connection->watch,
                        &error) < 0) {
        log_event(LOG_WARN, "connection_refused", "error=\"%s\"", error.message);
        connection_free(connection);
    }
}

void connection_accept(void *context, uint32_t events)
{
    struct hub *hub = context;
    (void)events;
    for (int i = 0; i < ACCEPT_MAX; i++) {
        int fd = -1;
        struct address peer;
        struct error error;
        const int result = tcp_accept(hub->listen_fd, &fd, &peer, &error);
        if (result < 0)
            log_event(LOG_WARN, "accept_failed", "error=\"%s\"", error.message);
        if (result <= 0)
            return;
        take_connection(hub, fd, &peer);
    }
}
