/*
 * Borrowers: who submits a job and stays may send the job's data to its leases itself.
 *
 * The market believes nothing that a borrower says of its addresses: it links to the one that the
 * borrower's call came from, and only when that worked the job's leases are told of it, with a key
 * for each (runtime/source_key.h). The link stays: when it ends the borrower has left, and no lease
 * hears of it any more. Which leases: those of jobs of the same account whose first input is the
 * one that the borrower has.
 */
#include "base/assert.h"
#include "base/log.h"
#include "runtime/source_key.h"
#include "server/hub.h"
#include "server/hub_internal.h"
#include "server/tell.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECT_MS = 1500,
    HANDSHAKE_MS = 1500,
    QUIET_S = 30, /* then it is asked whether it is still there */
    ASK_AGAIN_S = 5,
    SILENCE_MS = 45000, /* then it is not */
    PER_ACCOUNT_MAX = 8,
    BORROWERS_MAX = 1024,
    PAYLOAD_MAX = 64 << 10,   /* it says what it has, which is of no interest here */
    SAID_BYTES_MAX = 2 << 20, /* more than there is to say */
};

struct borrower {
    struct list_node node;
    struct hub *hub;
    struct hub_borrower options;
    struct tcp_connect *connect;
    struct link *link;
    bool is_reached;
};

static void answer(struct borrower *borrower)
{
    if (borrower->options.on_checked)
        borrower->options.on_checked(borrower->options.context, borrower->is_reached);
    borrower->options.on_checked = NULL;
}

static void borrower_free(struct borrower *borrower)
{
    answer(borrower);
    if (list_contains(&borrower->node))
        list_remove(&borrower->node);
    tcp_connect_free(borrower->connect);
    link_free(borrower->link);
    sodium_memzero(borrower->options.secret, sizeof(borrower->options.secret));
    free(borrower);
}

void borrowers_done(struct hub *hub)
{
    LIST_EACH(&hub->borrowers, node)
    {
        borrower_free(LIST_ITEM(node, struct borrower, node));
    }
}

/* ---- Telling leases -------------------------------------------------------------------------- */

static bool has_data_of(const struct borrower *borrower, const struct hub_lease *lease)
{
    return borrower->is_reached && borrower->options.account == lease->account &&
           memcmp(borrower->options.manifest, lease->manifest, sizeof(lease->manifest)) == 0;
}

/* The market has linked to that port and to no other. */
static bool is_at_port(const struct borrower *borrower, const char *address)
{
    struct host_port parsed;
    struct error ignored; /* what cannot be read is nowhere */
    return host_port_parse(text_of(address), &parsed, &ignored) == 0 &&
           parsed.port == borrower->options.seen_at.port;
}

static void tell(const struct borrower *borrower, struct hub_machine *machine,
                 const struct hub_lease *lease)
{
    struct lease_message message = {
        .type = LEASE_MESSAGE_CHUNK_PEER,
        .rank = {.lease = lease->id, .fence = lease->fence, .peer = {.lease = SOURCE_BORROWER}}};
    for (uint32_t i = 0; i < borrower->options.address_count; i++)
        if (is_at_port(borrower, borrower->options.addresses[i]) &&
            tell_may(connection_host(machine->connection), borrower->options.seen_at.host,
                     text_of(borrower->options.addresses[i])))
            message.rank.addresses[message.rank.address_count++] =
                text_of(borrower->options.addresses[i]);
    if (message.rank.address_count == 0)
        return;
    source_key(borrower->options.secret, lease->id, message.rank.peer.key);
    hub_send(machine, &message);
    sodium_memzero(&message, sizeof(message));
}

/* One is enough, and its key is the one that counts: the first, or NULL. */
static const struct borrower *find_for(const struct hub *hub, const struct hub_lease *lease)
{
    LIST_EACH(&hub->borrowers, node)
    {
        const struct borrower *borrower = LIST_ITEM(node, struct borrower, node);
        if (has_data_of(borrower, lease))
            return borrower;
    }
    return NULL;
}

void borrower_tell(struct hub *hub, const struct hub_lease *lease)
{
    struct hub_machine *machine = hub_machine(hub, lease->machine);
    if (!machine || !machine->is_welcome || lease->is_over)
        return;
    const struct borrower *borrower = find_for(hub, lease);
    if (borrower)
        tell(borrower, machine, lease);
}

/* ---- Whether it can be reached --------------------------------------------------------------- */

static void on_open(struct link *link, struct text identity, void *context)
{
    struct borrower *borrower = context;
    struct hub *hub = borrower->hub;
    (void)link, (void)identity;
    borrower->is_reached = true;
    log_event(LOG_INFO, "borrower_reached", "account=%" PRIu64, borrower->options.account);
    for (size_t i = 0; i < hub->leases.count; i++) {
        const struct hub_lease *lease = hub->leases.entries[i].value;
        if (has_data_of(borrower, lease)) /* others have heard of theirs */
            borrower_tell(hub, lease);
    }
    answer(borrower);
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct borrower *borrower = context;
    (void)type, (void)payload;
    if (link_received_bytes(link) <= SAID_BYTES_MAX)
        return;
    log_event(LOG_WARN, "borrower_talks_on", "account=%" PRIu64, borrower->options.account);
    borrower_free(borrower);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)reason;
    borrower_free(context);
}

/* One that vanished says no good-bye, and on this link nobody has anything to say either. */
static bool watch_for_vanishing(int fd)
{
    const int one = 1, quiet_s = QUIET_S, again_s = ASK_AGAIN_S;
    const unsigned silence_ms = SILENCE_MS;
    return setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)) == 0 &&
           setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &quiet_s, sizeof(quiet_s)) == 0 &&
           setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again_s, sizeof(again_s)) == 0 &&
           setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof(silence_ms)) == 0;
}

static void on_connected(void *context, int fd, const struct error *reason)
{
    struct borrower *borrower = context;
    uint8_t key[SOURCE_KEY_SIZE];
    struct error error;
    tcp_connect_free(TAKE(borrower->connect));
    source_key(borrower->options.secret, SOURCE_MARKET, key);
    const struct link_options options = {
        .loop = borrower->hub->loop,
        .identity = "chunks:0:0",
        .key = key,
        .payload_max = PAYLOAD_MAX,
        .handshake_timeout_ms = HANDSHAKE_MS,
        .callbacks = {.on_open = on_open, .on_frame = on_frame, .on_close = on_close},
        .context = borrower};
    const bool is_linked = !reason && watch_for_vanishing(fd) &&
                           link_open_take(&options, fd, &borrower->link, &error) == 0;
    sodium_memzero(key, sizeof(key));
    if (is_linked)
        return;
    if (!reason)
        close(fd);
    borrower_free(borrower);
}

/* The oldest of the account makes room, or of all. */
static void make_room(struct hub *hub, uint64_t account)
{
    struct borrower *oldest = NULL, *oldest_own = NULL;
    size_t count = 0, own_count = 0;
    LIST_EACH(&hub->borrowers, node)
    {
        struct borrower *borrower = LIST_ITEM(node, struct borrower, node);
        const bool is_own = borrower->options.account == account;
        count++;
        own_count += is_own;
        oldest = oldest ? oldest : borrower;
        oldest_own = oldest_own || !is_own ? oldest_own : borrower;
    }
    if (own_count >= PER_ACCOUNT_MAX)
        borrower_free(oldest_own);
    else if (count >= BORROWERS_MAX)
        borrower_free(oldest);
}

static void add(void *context)
{
    struct borrower *borrower = context;
    struct hub *hub = borrower->hub;
    if (!hub->is_started) { /* it is being freed */
        borrower_free(borrower);
        return;
    }
    make_room(hub, borrower->options.account);
    list_append(&hub->borrowers, &borrower->node);
    borrower->connect = tcp_connect_start(hub->loop, &borrower->options.seen_at, CONNECT_MS,
                                          on_connected, borrower);
}

void hub_add_borrower(struct hub *hub, const struct hub_borrower *options)
{
    struct borrower *borrower = calloc(1, sizeof(*borrower));
    ASSERT(borrower);
    borrower->hub = hub;
    borrower->options = *options;
    loop_post(hub->loop, add, borrower);
}
