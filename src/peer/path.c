#include "peer/path.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/random.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 5000,
    HANDSHAKE_TIMEOUT_MS = 60000, /* the other end may hear of us only later */
    HEAD_START_MS = 250,          /* of direct connections before the relay */
    RETRY_FIRST_MS = 100,
    RETRY_LAST_MS = 5000,
    ATTEMPT_MAX = 4 * PATH_CANDIDATE_MAX, /* connections at a time, accepted ones too */
};

/* One connection that may become the path. */
struct attempt {
    struct list_node node;
    struct path *path;
    bool is_direct;
    struct tcp_connect *connect; /* NULL: connected */
    int fd;                      /* connected, and its handshake not begun; -1 otherwise */
    struct packet_link *link;
};

struct path {
    struct path_options options;
    char identity[LINK_IDENTITY_SIZE_MAX];
    uint8_t key[LINK_KEY_SIZE];
    struct host_port candidates[PATH_CANDIDATE_MAX];
    size_t candidate_count;
    bool is_dialling;
    bool has_opened; /* once, at least */
    bool is_head_start_over;
    struct list attempts;
    size_t attempt_count;
    struct loop_timer *retry;
    struct loop_timer *head_start;
    struct random random;
    int64_t retry_ms;
};

static void attempt_free(struct attempt *attempt)
{
    list_remove(&attempt->node);
    attempt->path->attempt_count--;
    tcp_connect_free(attempt->connect);
    packet_link_free(attempt->link);
    if (attempt->fd >= 0)
        close(attempt->fd);
    free(attempt);
}

static void free_attempts(struct path *path)
{
    LIST_EACH(&path->attempts, node)
    {
        attempt_free(LIST_ITEM(node, struct attempt, node));
    }
}

static void attempt_failed(struct attempt *attempt)
{
    struct path *path = attempt->path;
    attempt_free(attempt);
    if (!path->is_dialling || loop_timer_is_running(path->retry))
        return;
    /* Up to half as long again, so that many paths do not knock at once. */
    const int64_t jitter_ms = (int64_t)random_below(&path->random, (uint64_t)path->retry_ms);
    loop_timer_start(path->retry, path->retry_ms + jitter_ms / 2);
    path->retry_ms = path->retry_ms * 2 < RETRY_LAST_MS ? path->retry_ms * 2 : RETRY_LAST_MS;
}

static void link_on_open(struct packet_link *link, void *context)
{
    struct attempt *attempt = context;
    struct path *path = attempt->path;
    const bool is_direct = attempt->is_direct;
    attempt->link = NULL; /* the path's user has it */
    path->is_dialling = false;
    path->has_opened = true;
    path->retry_ms = RETRY_FIRST_MS;
    loop_timer_stop(path->retry);
    loop_timer_stop(path->head_start);
    free_attempts(path);
    path->options.on_open(path, link, is_direct, path->options.context);
}

// NOLINTNEXTLINE(readability-non-const-parameter): the callback's type
static void link_on_record(struct packet_link *link, uint8_t *bytes, size_t size, void *context)
{
    (void)link, (void)bytes, (void)size, (void)context; /* none comes before on_open */
}

static void link_on_close(struct packet_link *link, const struct error *reason, void *context)
{
    (void)link, (void)reason;
    attempt_failed(context);
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    const struct path *path = ((const struct attempt *)context)->path;
    ASSERT(path);
    if (!text_equal(identity, text_of(path->identity)))
        return -1;
    memcpy(out_key, path->key, LINK_KEY_SIZE);
    return 0;
}

static void attempt_shake_hands(struct attempt *attempt)
{
    struct path *path = attempt->path;
    const struct packet_link_options options = {.loop = path->options.loop,
                                                .is_server = !path->options.is_client,
                                                .identity = path->identity,
                                                .key = path->key,
                                                .find_key = find_key,
                                                .handshake_timeout_ms = HANDSHAKE_TIMEOUT_MS,
                                                .callbacks = {.on_open = link_on_open,
                                                              .on_record = link_on_record,
                                                              .on_close = link_on_close},
                                                .context = attempt};
    struct error ignored; /* as good as refused */
    if (packet_link_open_take(&options, attempt->fd, &attempt->link, &ignored) == 0)
        attempt->fd = -1;
    else
        attempt_failed(attempt);
}

/* The client chooses: the relay waits until direct ways have had their time. */
static void attempt_connected(struct attempt *attempt)
{
    const struct path *path = attempt->path;
    if (attempt->is_direct || !path->options.is_client || path->is_head_start_over)
        attempt_shake_hands(attempt);
}

static void on_connected(void *context, int fd, const struct error *reason)
{
    struct attempt *attempt = context;
    char ticket[2 * LEASE_TICKET_SIZE + 1], line[PATH_LINE_SIZE + 1];
    tcp_connect_free(TAKE(attempt->connect));
    attempt->fd = fd;
    text_hex_encode(attempt->path->options.ticket, LEASE_TICKET_SIZE, ticket);
    snprintf(line, sizeof(line), "SOUK-STREAM %s\n", ticket);
    /* A new connection's buffer holds one line; if not, dialling again is as good as waiting. */
    if (reason || send(fd, line, PATH_LINE_SIZE, MSG_NOSIGNAL) != PATH_LINE_SIZE)
        attempt_failed(attempt);
    else
        attempt_connected(attempt);
}

static struct attempt *attempt_new(struct path *path, bool is_direct)
{
    struct attempt *attempt = calloc(1, sizeof(*attempt));
    ASSERT(attempt);
    attempt->path = path;
    attempt->is_direct = is_direct;
    attempt->fd = -1;
    list_append(&path->attempts, &attempt->node);
    path->attempt_count++;
    return attempt;
}

static void dial(struct path *path, const struct host_port *target, bool is_direct)
{
    if (path->attempt_count == ATTEMPT_MAX)
        return;
    struct attempt *attempt = attempt_new(path, is_direct);
    attempt->connect =
        tcp_connect_start(path->options.loop, target, CONNECT_TIMEOUT_MS, on_connected, attempt);
}

static bool has_attempt(const struct path *path, bool is_direct)
{
    LIST_EACH(&path->attempts, node)
    {
        if (LIST_ITEM(node, struct attempt, node)->is_direct == is_direct)
            return true;
    }
    return false;
}

static void dial_all(struct path *path)
{
    if (!has_attempt(path, /* is_direct= */ true))
        for (size_t i = 0; i < path->candidate_count; i++)
            dial(path, &path->candidates[i], /* is_direct= */ true);
    if (path->options.relay.port && !has_attempt(path, /* is_direct= */ false))
        dial(path, &path->options.relay, /* is_direct= */ false);
}

static void on_retry(void *context)
{
    dial_all(context);
}

static void on_head_start_over(void *context)
{
    struct path *path = context;
    path->is_head_start_over = true;
    LIST_EACH(&path->attempts, node)
    {
        struct attempt *attempt = LIST_ITEM(node, struct attempt, node);
        if (attempt->fd >= 0)
            attempt_shake_hands(attempt);
    }
}

struct path *path_new(const struct path_options *options)
{
    struct path *path = calloc(1, sizeof(*path));
    ASSERT(path && strlen(options->identity) < sizeof(path->identity));
    path->options = *options;
    snprintf(path->identity, sizeof(path->identity), "%s", options->identity);
    memcpy(path->key, options->key, LINK_KEY_SIZE);
    list_init(&path->attempts);
    random_init(&path->random, options->seed);
    path->retry_ms = RETRY_FIRST_MS;
    path->retry = loop_timer_new(options->loop, on_retry, path);
    path->head_start = loop_timer_new(options->loop, on_head_start_over, path);
    return path;
}

void path_free(struct path *path)
{
    if (!path)
        return;
    free_attempts(path);
    loop_timer_free(path->retry);
    loop_timer_free(path->head_start);
    sodium_memzero(path->key, sizeof(path->key));
    free(path);
}

size_t path_addresses(uint16_t port, struct host_port out[PATH_CANDIDATE_MAX])
{
    struct ifaddrs *all = NULL;
    size_t count = 0;
    if (getifaddrs(&all) < 0)
        return 0;
    for (const struct ifaddrs *one = all; one && count < PATH_CANDIDATE_MAX; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP) ||
            (one->ifa_flags & IFF_LOOPBACK))
            continue;
        struct address address = {.size = sizeof(struct sockaddr_in)};
        memcpy(&address.storage, one->ifa_addr, sizeof(struct sockaddr_in));
        char host[ADDRESS_TEXT_SIZE];
        snprintf(out[count].host, sizeof(out[count].host), "%s",
                 address_format_host(&address, host));
        out[count++].port = port;
    }
    freeifaddrs(all);
    /* Others of this machine, where there is no network at all. */
    if (count == 0) {
        snprintf(out[0].host, sizeof(out[0].host), "127.0.0.1");
        out[count++].port = port;
    }
    return count;
}

void path_set_candidates(struct path *path, const struct host_port *candidates, size_t count)
{
    path->candidate_count = count < PATH_CANDIDATE_MAX ? count : PATH_CANDIDATE_MAX;
    for (size_t i = 0; i < path->candidate_count; i++)
        path->candidates[i] = candidates[i];
}

void path_dial(struct path *path)
{
    if (path->is_dialling)
        return;
    path->is_dialling = true;
    path->is_head_start_over = false;
    loop_timer_start(path->head_start, HEAD_START_MS);
    /* Whoever lost the link that was there may lose the next as quickly. */
    loop_timer_start(path->retry, path->has_opened ? RETRY_FIRST_MS : 0);
}

void path_accept_take(struct path *path, int fd)
{
    /* The client chose already: this is an attempt of the other end that came too late. As the
     * server we let it wait: the client begins a handshake only when it has no link. */
    if ((path->options.is_client && !path->is_dialling) || path->attempt_count == ATTEMPT_MAX) {
        close(fd);
        return;
    }
    struct attempt *attempt = attempt_new(path, /* is_direct= */ true);
    attempt->fd = fd;
    attempt_connected(attempt);
}

bool path_has_ticket(const struct path *path, const uint8_t ticket[LEASE_TICKET_SIZE])
{
    return sodium_memcmp(path->options.ticket, ticket, LEASE_TICKET_SIZE) == 0;
}
