#include "peer/daemon.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/random.h"
#include "blob/blob_store.h"
#include "net/http_client.h"
#include "net/link.h"
#include "net/loop.h"
#include "peer/folder.h"
#include "peer/lease_verify.h"
#include "peer/outbox.h"
#include "peer/probe.h"
#include "peer/servers.h"
#include "peer/standing.h"
#include "peer/tenancy.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 10000,
    /* Heartbeats that nobody acknowledges for so long mean that the link is dead. */
    SILENCE_MS = 8000,
    LINK_QUEUE_BYTES = 2 << 20,
};

struct daemon {
    const struct daemon_options *options;
    const struct enrolment *enrolment;
    struct tenancy_host host;
    struct loop *loop;
    struct blob_store *blobs;
    struct http_client *client;
    struct outbox *outbox;
    struct map tenancies; /* by lease: struct tenancy */
    struct lent lent;
    struct standing *standing;
    struct servers *servers;
    uint8_t instance[LEASE_INSTANCE_SIZE];
    struct error refusal; /* the market's last word, when trying again is of no use */
    bool is_refused;
    struct arena *arena; /* for one message at a time */
    struct random random;
    char leases_dir[PATH_MAX];
    int ready_fd;

    struct tcp_connect *connect;
    struct link *link;
    bool is_welcome;
    int64_t retry_ms;
    struct loop_timer *retry_timer;
    struct loop_timer *heartbeat_timer;
    struct load_probe load;
    bool is_fresh; /* since the last trim something happened that took memory for a while */

    struct loop_signal *signals[2];
    struct loop_watch *stop_watch;
    bool is_stopping;
    bool is_closing; /* posted work may still come, and finds nothing */
    struct loop_timer *stop_timer;
};

static int64_t daemon_now_ns(const struct daemon *daemon)
{
    return clock_monotonic_ns(loop_clock(daemon->loop));
}

static void daemon_send_state(struct daemon *daemon, struct lease_fence lease,
                              enum lease_run_state state, const char *reason)
{
    struct text text = text_of(reason);
    if (text.size > LEASE_REASON_SIZE_MAX)
        text.size = LEASE_REASON_SIZE_MAX;
    const struct lease_message message = {
        .type = LEASE_MESSAGE_STATE,
        .state = {.lease = lease.lease, .fence = lease.fence, .state = state, .reason = text}};
    outbox_send(daemon->outbox, &message, daemon_now_ns(daemon));
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static void daemon_check_stopped(struct daemon *daemon)
{
    if (!daemon->is_stopping || daemon->is_closing || daemon->tenancies.count > 0)
        return;
    if (daemon->is_welcome && outbox_waiting_count(daemon->outbox) == 0)
        link_finish(daemon->link); /* on_close ends the loop */
    else if (!daemon->is_welcome)
        loop_stop(daemon->loop);
}

static void daemon_on_stop_timeout(void *context)
{
    struct daemon *daemon = context;
    loop_stop(daemon->loop);
}

static void daemon_on_stop(void *context)
{
    struct daemon *daemon = context;
    const bool is_repeated = daemon->is_stopping;
    daemon->is_stopping = true;
    log_event(LOG_INFO, "stopping", "leases=%zu", daemon->tenancies.count);
    /* Asked twice: no grace. */
    for (size_t i = 0; i < daemon->tenancies.count; i++)
        tenancy_reclaim(daemon->tenancies.entries[i].value, is_repeated ? 0 : DAEMON_STOP_GRACE_MS,
                        TEXT("the lender stopped lending"));
    loop_timer_start(daemon->stop_timer, DAEMON_STOP_MAX_MS);
    daemon_check_stopped(daemon);
}

static void daemon_on_stop_fd(void *context, uint32_t events)
{
    struct daemon *daemon = context;
    (void)events;
    loop_watch_free(TAKE(daemon->stop_watch));
    if (!daemon->is_stopping)
        daemon_on_stop(daemon);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

/* Freed in a later turn: the tenancy is still on the stack. */
struct ended {
    struct daemon *daemon;
    struct tenancy *tenancy;
};

static void daemon_free_ended(void *context)
{
    struct ended *ended = context;
    struct daemon *daemon = ended->daemon;
    tenancy_free(ended->tenancy);
    free(ended);
    daemon->is_fresh = true;
    daemon_check_stopped(daemon);
}

static void daemon_on_ended(void *context, struct tenancy *tenancy)
{
    struct daemon *daemon = context;
    const struct lease_fence lease = tenancy_fence(tenancy);
    if (map_get(&daemon->tenancies, lease.lease) == tenancy)
        map_remove(&daemon->tenancies, lease.lease);
    struct ended *ended = calloc(1, sizeof(*ended));
    ASSERT(ended);
    *ended = (struct ended){daemon, tenancy};
    loop_post(daemon->loop, daemon_free_ended, ended);
}

static struct tenancy *daemon_find(struct daemon *daemon, uint64_t lease, uint64_t fence)
{
    struct tenancy *tenancy = map_get(&daemon->tenancies, lease);
    return tenancy && tenancy_fence(tenancy).fence == fence ? tenancy : NULL;
}

/* True when an older holder of the same lease is out of the way. */
static bool daemon_supersede(struct daemon *daemon, struct lease_fence lease)
{
    struct tenancy *older = map_get(&daemon->tenancies, lease.lease);
    if (!older)
        return true;
    const uint64_t fence = tenancy_fence(older).fence;
    if (fence == lease.fence)
        tenancy_send_state(older); /* asked again: the market missed the answer */
    if (fence >= lease.fence)
        return false;
    map_remove(&daemon->tenancies, lease.lease);
    tenancy_free(older);
    daemon_send_state(daemon, (struct lease_fence){lease.lease, fence}, LEASE_RUN_STOPPED,
                      "the lease has a newer holder");
    return true;
}

static int daemon_check_start(struct daemon *daemon, const struct lease_document *document,
                              struct error *error)
{
    if (daemon->is_stopping)
        return error_set(error, ERROR_UNAVAILABLE, "the lender stopped lending");
    if (daemon->tenancies.count >= DAEMON_LEASE_MAX)
        return error_set(error, ERROR_EXHAUSTED, "this machine runs %d leases already",
                         DAEMON_LEASE_MAX);
    const int64_t now_ms = clock_utc_ms(loop_clock(daemon->loop)) + daemon->host.market_ahead_ms;
    struct lent_use running[DAEMON_LEASE_MAX];
    for (size_t i = 0; i < daemon->tenancies.count; i++)
        running[i] = tenancy_use(daemon->tenancies.entries[i].value);
    if (lease_check(document, now_ms, error) < 0)
        return -1;
    return lent_check(&daemon->lent, document, running, daemon->tenancies.count, error);
}

static void daemon_on_start(struct daemon *daemon, const struct start_message *start)
{
    struct error error;
    struct lease_document document;
    if (lease_verify(daemon->arena, start, daemon->enrolment, &document, &error) < 0) {
        log_event(LOG_ERROR, "lease_refused", "error=\"%s\"", error.message);
        return;
    }
    const struct lease_fence lease = {document.lease, document.fence};
    if (!daemon_supersede(daemon, lease))
        return;
    struct tenancy *tenancy = NULL;
    if (daemon_check_start(daemon, &document, &error) < 0 ||
        tenancy_start(&daemon->host, start, daemon_on_ended, daemon, &tenancy, &error) < 0) {
        log_event(LOG_ERROR, "lease_refused", "lease=%" PRIu64 " error=\"%s\"", lease.lease,
                  error.message);
        daemon_send_state(daemon, lease, LEASE_RUN_FAILED, error.message);
        return;
    }
    map_put(&daemon->tenancies, lease.lease, tenancy);
}

static void daemon_on_stop_message(struct daemon *daemon, const struct stop_message *stop)
{
    struct tenancy *tenancy = daemon_find(daemon, stop->lease, stop->fence);
    if (tenancy)
        tenancy_stop(tenancy, stop->grace_ms, stop->reason);
    else
        daemon_send_state(daemon, (struct lease_fence){stop->lease, stop->fence}, LEASE_RUN_STOPPED,
                          "the lease does not run here");
}

/* ---- The link -------------------------------------------------------------------------------- */

static void daemon_write_ready(struct daemon *daemon)
{
    if (daemon->ready_fd < 0)
        return;
    AUTO_FD int fd = TAKE_FD(daemon->ready_fd);
    struct buffer line AUTO_BUFFER;
    buffer_init(&line, 4096);
    struct json_writer writer;
    json_writer_init(&writer, &line);
    json_object_begin(&writer);
    json_field_bool(&writer, "ready", true);
    json_field_u64(&writer, "machine", daemon->enrolment->machine);
    json_field_string(&writer, "name", daemon->enrolment->name);
    json_field_string(&writer, "sandbox", sandbox_describe(daemon->options->sandboxes));
    json_object_end(&writer);
    buffer_append_byte(&line, '\n');
    if (write(fd, line.data, line.size) != (ssize_t)line.size)
        log_event(LOG_WARN, "ready_not_told", "errno=%d", errno);
}

/* Nothing is done about a refusal while leases run: they are worth more than an orderly end. */
static void daemon_on_refused(struct daemon *daemon, const struct refused_message *refused)
{
    error_set(&daemon->refusal, ERROR_CONFLICT, "the market refused this machine: " TEXT_FORMAT,
              TEXT_ARGS(refused->reason));
    log_event(LOG_ERROR, "refused", "reason=\"" TEXT_FORMAT "\"", TEXT_ARGS(refused->reason));
    daemon->retry_ms = DAEMON_RETRY_LAST_MS;
    daemon->is_refused = refused->is_final && daemon->tenancies.count == 0;
    if (daemon->is_refused)
        loop_stop(daemon->loop);
}

static void daemon_on_better(void *context);

static void daemon_on_welcome(struct daemon *daemon, const struct welcome_message *welcome)
{
    if (daemon->is_welcome)
        return;
    daemon->is_welcome = true;
    daemon->retry_ms = DAEMON_RETRY_FIRST_MS;
    daemon->host.market_ahead_ms = welcome->now_ms - clock_utc_ms(loop_clock(daemon->loop));
    servers_welcomed(daemon->servers, daemon_on_better, daemon);
    log_event(LOG_INFO, "linked", "machine=%" PRIu64 " market=%s", daemon->enrolment->machine,
              daemon->enrolment->link_address);
    standing_linked(daemon->standing, daemon->link);
    outbox_attach(daemon->outbox, daemon->link, daemon_now_ns(daemon));
    for (size_t i = 0; i < daemon->tenancies.count; i++) {
        tenancy_send_state(daemon->tenancies.entries[i].value);
        tenancy_resume(daemon->tenancies.entries[i].value);
    }
    loop_timer_start(daemon->heartbeat_timer, 0);
    daemon_write_ready(daemon);
    daemon->is_fresh = true;
    daemon_check_stopped(daemon);
}

static void daemon_on_renew(struct daemon *daemon, const struct renew_message *renew)
{
    struct error error;
    struct lease_document document;
    struct start_message start = {.document = renew->document};
    memcpy(start.signature, renew->signature, sizeof(start.signature));
    if (lease_verify(daemon->arena, &start, daemon->enrolment, &document, &error) < 0) {
        log_event(LOG_ERROR, "renewal_refused", "error=\"%s\"", error.message);
        return;
    }
    struct tenancy *tenancy = daemon_find(daemon, document.lease, document.fence);
    if (tenancy)
        tenancy_renew(tenancy, document.expires_ms);
}

static void daemon_on_offers(struct daemon *daemon, const struct offers_message *offers)
{
    lent_set_offers(&daemon->lent, offers);
    log_event(LOG_INFO, "offers", "count=%" PRIu32, offers->offer_count);
    for (uint32_t i = 0; i < offers->offer_count; i++)
        log_event(LOG_DEBUG, "offer",
                  "offer=%" PRIu64 " cores_milli=%" PRId64 " ram_bytes=%" PRId64
                  " disk_bytes=%" PRId64,
                  offers->offers[i].offer, offers->offers[i].resources.cores_milli,
                  offers->offers[i].resources.ram_bytes, offers->offers[i].resources.disk_bytes);
}

static void daemon_on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct daemon *daemon = context;
    struct lease_message message;
    struct error error;
    arena_clear(daemon->arena);
    if (lease_message_decode(daemon->arena, type, payload, &message, &error) < 0) {
        log_event(LOG_ERROR, "message_refused", "type=%u error=\"%s\"", type, error.message);
        link_finish(link);
        return;
    }
    struct tenancy *tenancy = NULL;
    switch (message.type) {
    case LEASE_MESSAGE_WELCOME:
        daemon_on_welcome(daemon, &message.welcome);
        break;
    case LEASE_MESSAGE_START:
        daemon_on_start(daemon, &message.start);
        break;
    case LEASE_MESSAGE_RENEW:
        daemon_on_renew(daemon, &message.renew);
        break;
    case LEASE_MESSAGE_STOP:
        daemon_on_stop_message(daemon, &message.stop);
        break;
    case LEASE_MESSAGE_OFFERS:
        daemon_on_offers(daemon, &message.offers);
        break;
    case LEASE_MESSAGE_REFUSED:
        daemon_on_refused(daemon, &message.refused);
        break;
    case LEASE_MESSAGE_PING:
        standing_ping(daemon->standing, &message.ping);
        break;
    case LEASE_MESSAGE_MEASURE:
        standing_measure(daemon->standing, &message.measure);
        break;
    case LEASE_MESSAGE_PEER:
        tenancy = daemon_find(daemon, message.peer.lease, message.peer.fence);
        if (tenancy)
            tenancy_add_peer(tenancy, &message.peer.peer);
        break;
    case LEASE_MESSAGE_STREAM_OPEN:
        tenancy = daemon_find(daemon, message.stream_open.lease, message.stream_open.fence);
        if (tenancy)
            tenancy_open_stream(tenancy, message.stream_open.peer_lease,
                                message.stream_open.ticket);
        break;
    case LEASE_MESSAGE_HELLO:
    case LEASE_MESSAGE_HEARTBEAT:
    case LEASE_MESSAGE_STATE:
    case LEASE_MESSAGE_METER:
    case LEASE_MESSAGE_REPORT:
    case LEASE_MESSAGE_LOG:
    case LEASE_MESSAGE_ARTIFACT:
    case LEASE_MESSAGE_STREAM_READY:
    case LEASE_MESSAGE_PONG:
    case LEASE_MESSAGE_PROBE:
    case LEASE_MESSAGE_FILL:
        log_event(LOG_ERROR, "message_refused", "type=%s", lease_message_type_name(message.type));
        link_finish(link);
        break;
    }
}

/* The market stops what it no longer knows. */
static void daemon_on_open(struct link *link, struct text identity, void *context)
{
    struct daemon *daemon = context;
    (void)identity;
    struct lease_fence *running =
        calloc(daemon->tenancies.count ? daemon->tenancies.count : 1, sizeof(*running));
    ASSERT(running);
    for (size_t i = 0; i < daemon->tenancies.count; i++)
        running[i] = tenancy_fence(daemon->tenancies.entries[i].value);
    struct lease_message hello = {.type = LEASE_MESSAGE_HELLO,
                                  .hello = {.version = LEASE_MESSAGE_VERSION,
                                            .machine = daemon->enrolment->machine,
                                            .ceiling = lent_ceiling(&daemon->lent),
                                            .running = running,
                                            .running_count = (uint32_t)daemon->tenancies.count}};
    memcpy(hello.hello.instance, daemon->instance, sizeof(hello.hello.instance));
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(&hello, &payload);
    free(running);
    struct error error;
    if (link_send_text(link, LEASE_MESSAGE_HELLO, buffer_text(&payload), &error) < 0)
        log_event(LOG_ERROR, "hello_failed", "error=\"%s\"", error.message);
}

static void daemon_retry(struct daemon *daemon, const char *reason)
{
    if (daemon->is_refused || (daemon->is_stopping && daemon->tenancies.count == 0)) {
        loop_stop(daemon->loop);
        return;
    }
    /* Half to one and a half of it: a market that comes back is not hit by all at once. */
    const int64_t half_ms = daemon->retry_ms / 2;
    const int64_t wait_ms =
        half_ms + (int64_t)random_below(&daemon->random, (uint64_t)daemon->retry_ms);
    log_event(LOG_WARN, "link_lost", "retry_ms=%" PRId64 " reason=\"%s\"", wait_ms, reason);
    loop_timer_start(daemon->retry_timer, wait_ms);
    daemon->retry_ms *= 2;
    if (daemon->retry_ms > DAEMON_RETRY_LAST_MS)
        daemon->retry_ms = DAEMON_RETRY_LAST_MS;
}

static void daemon_unlink(struct daemon *daemon)
{
    outbox_detach(daemon->outbox);
    standing_unlinked(daemon->standing);
    servers_lost(daemon->servers);
    if (!daemon->is_welcome)
        servers_failed(daemon->servers);
    daemon->is_welcome = false;
    loop_timer_stop(daemon->heartbeat_timer);
    link_free(TAKE(daemon->link));
    for (size_t i = 0; i < daemon->tenancies.count; i++)
        tenancy_resume(daemon->tenancies.entries[i].value);
}

static void daemon_on_close(struct link *link, const struct error *reason, void *context)
{
    struct daemon *daemon = context;
    ASSERT(link == daemon->link);
    daemon_unlink(daemon);
    daemon_retry(daemon, reason ? reason->message : "the market closed the link");
}

static void daemon_on_drained(struct link *link, void *context)
{
    struct daemon *daemon = context;
    (void)link;
    outbox_flush(daemon->outbox, daemon_now_ns(daemon));
    standing_drained(daemon->standing);
    for (size_t i = 0; i < daemon->tenancies.count; i++)
        tenancy_resume(daemon->tenancies.entries[i].value);
    daemon_check_stopped(daemon);
}

static int daemon_open_link(struct daemon *daemon, int fd, struct error *error)
{
    char identity[LINK_IDENTITY_SIZE_MAX];
    snprintf(identity, sizeof(identity), "machine:%" PRIu64 ":%" PRIu64, daemon->enrolment->machine,
             daemon->enrolment->generation);
    const unsigned silence_ms = SILENCE_MS;
    if (setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof(silence_ms)) < 0)
        return error_set_errno(error, errno, "set up the link");
    const struct link_options options = {.loop = daemon->loop,
                                         .identity = identity,
                                         .key = daemon->enrolment->link_key,
                                         .payload_max = LEASE_MESSAGE_SIZE_MAX,
                                         .queue_max_bytes = LINK_QUEUE_BYTES,
                                         .callbacks = {.on_open = daemon_on_open,
                                                       .on_frame = daemon_on_frame,
                                                       .on_close = daemon_on_close,
                                                       .on_drained = daemon_on_drained},
                                         .context = daemon};
    return link_open_take(&options, fd, &daemon->link, error);
}

static void daemon_on_connected(void *context, int fd, const struct error *reason)
{
    struct daemon *daemon = context;
    struct error error;
    tcp_connect_free(TAKE(daemon->connect));
    if (reason) {
        servers_failed(daemon->servers);
        daemon_retry(daemon, reason->message);
    } else if (daemon_open_link(daemon, fd, &error) < 0) {
        close(fd);
        daemon_retry(daemon, error.message);
    }
}

static void daemon_on_located(void *context, const struct host_port *target,
                              const struct error *reason)
{
    struct daemon *daemon = context;
    if (reason) {
        servers_failed(daemon->servers);
        daemon_retry(daemon, reason->message);
        return;
    }
    daemon->host.link_target = *target;
    daemon->connect =
        tcp_connect_start(daemon->loop, target, CONNECT_TIMEOUT_MS, daemon_on_connected, daemon);
}

static void daemon_dial(void *context)
{
    struct daemon *daemon = context;
    servers_locate(daemon->servers, daemon_on_located, daemon);
}

/* The first of several servers can be had again. No good-bye, which would end the leases. */
static void daemon_on_better(void *context)
{
    struct daemon *daemon = context;
    if (daemon->is_stopping)
        return;
    log_event(LOG_INFO, "returning", "market=%s", servers_url(daemon->servers));
    daemon_unlink(daemon);
    daemon_dial(daemon);
}

static void daemon_on_heartbeat(void *context)
{
    struct daemon *daemon = context;
    struct machine_load load;
    const int64_t now_ns = daemon_now_ns(daemon);
    load_probe_read(&daemon->load, now_ns, &load);
    struct lease_message message = {
        .type = LEASE_MESSAGE_HEARTBEAT,
        .heartbeat = {.load_milli = load.load_milli,
                      .running_count = (uint32_t)daemon->tenancies.count,
                      .free_ram_bytes = load.free_ram_bytes}};
    standing_heartbeat(daemon->standing, &message.heartbeat);
    outbox_send(daemon->outbox, &message, now_ns);
    loop_timer_start(daemon->heartbeat_timer, DAEMON_HEARTBEAT_MS);
    if (daemon->is_fresh && daemon->tenancies.count == 0)
        memory_trim();
    daemon->is_fresh = false;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

/* Leases of a former life: their sandboxes are swept, the market is told, the folders go. */
static int daemon_clear_leases(struct daemon *daemon, struct error *error)
{
    DIR *folder = opendir(daemon->leases_dir);
    if (!folder)
        return error_set_errno(error, errno, "open \"%s\"", daemon->leases_dir);
    int result = 0;
    struct dirent *entry;
    while ((entry = readdir(folder))) { // NOLINT(concurrency-mt-unsafe): the stream is not shared
        struct lease_fence lease;
        struct text lease_text, fence_text;
        char path[PATH_MAX + 300];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", daemon->leases_dir, entry->d_name);
        if (folder_remove(path, error) < 0)
            result = -1;
        if (text_cut(text_of(entry->d_name), '-', &lease_text, &fence_text) &&
            text_parse_u64(lease_text, &lease.lease, error) == 0 &&
            text_parse_u64(fence_text, &lease.fence, error) == 0)
            daemon_send_state(daemon, lease, LEASE_RUN_FAILED, "the lender's daemon was restarted");
    }
    closedir(folder);
    return result;
}

static int daemon_open_folders(struct daemon *daemon, struct error *error)
{
    char blobs_dir[PATH_MAX];
    const char *state_dir = daemon->options->state_dir;
    if (snprintf(daemon->leases_dir, PATH_MAX, "%s/leases", state_dir) >= PATH_MAX - 256 ||
        snprintf(blobs_dir, PATH_MAX, "%s/blobs", state_dir) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    if (folder_make(daemon->leases_dir, 0700, error) < 0)
        return -1;
    const struct blob_store_options blobs = {
        .folder = blobs_dir, .bytes_max = (uint64_t)daemon->options->limits.disk_bytes};
    return blob_store_open(&blobs, &daemon->blobs, error);
}

static int daemon_open_market(struct daemon *daemon, struct error *error)
{
    const struct daemon_options *options = daemon->options;
    const struct standing_options standing = {.loop = daemon->loop,
                                              .probe = options->probe,
                                              .found = options->found,
                                              .look_ms = options->look_ms,
                                              .lent = {options->limits.cores_milli,
                                                       options->limits.ram_bytes,
                                                       options->limits.disk_bytes}};
    const struct servers_options servers = {.loop = daemon->loop,
                                            .client = daemon->client,
                                            .identity = options->identity,
                                            .urls = options->servers,
                                            .url_count = options->server_count,
                                            .return_ms = options->return_ms};
    daemon->standing = standing_new(&standing);
    return servers_open(&servers, &daemon->servers, error);
}

static int daemon_open(struct daemon *daemon, struct error *error)
{
    if (loop_open(&clock_system, &daemon->loop, error) < 0 ||
        loop_signal_open(daemon->loop, SIGTERM, daemon_on_stop, daemon, &daemon->signals[0],
                         error) < 0 ||
        loop_signal_open(daemon->loop, SIGINT, daemon_on_stop, daemon, &daemon->signals[1], error) <
            0)
        return -1;
    if (daemon->options->stop_fd >= 0 &&
        loop_watch_open(daemon->loop, daemon->options->stop_fd, LOOP_READ, daemon_on_stop_fd,
                        daemon, &daemon->stop_watch, error) < 0)
        return -1;
    if (daemon_open_folders(daemon, error) < 0)
        return -1;
    const struct http_client_options client = {.loop = daemon->loop};
    daemon->client = http_client_new(&client);
    daemon->outbox = outbox_new();
    daemon->arena = arena_new(0);
    daemon->retry_timer = loop_timer_new(daemon->loop, daemon_dial, daemon);
    daemon->heartbeat_timer = loop_timer_new(daemon->loop, daemon_on_heartbeat, daemon);
    daemon->stop_timer = loop_timer_new(daemon->loop, daemon_on_stop_timeout, daemon);
    uint64_t seed;
    randombytes_buf(&seed, sizeof(seed)); /* jitter only, but different on every machine */
    random_init(&daemon->random, seed);
    randombytes_buf(daemon->instance, sizeof(daemon->instance));
    daemon->retry_ms = DAEMON_RETRY_FIRST_MS;
    daemon->host = (struct tenancy_host){.loop = daemon->loop,
                                         .outbox = daemon->outbox,
                                         .identity = daemon->options->identity,
                                         .sandboxes = daemon->options->sandboxes,
                                         .blobs = daemon->blobs,
                                         .client = daemon->client,
                                         .leases_dir = daemon->leases_dir,
                                         .limits = daemon->options->limits};
    if (daemon_open_market(daemon, error) < 0)
        return -1;
    return daemon_clear_leases(daemon, error);
}

static void daemon_close(struct daemon *daemon)
{
    daemon->is_closing = true;
    for (size_t i = 0; i < daemon->tenancies.count; i++)
        tenancy_free(daemon->tenancies.entries[i].value);
    map_done(&daemon->tenancies);
    tcp_connect_free(daemon->connect);
    link_free(daemon->link);
    outbox_free(daemon->outbox);
    standing_free(daemon->standing);
    servers_free(daemon->servers);
    http_client_free(daemon->client);
    blob_store_free(daemon->blobs);
    arena_free(daemon->arena);
    loop_timer_free(daemon->retry_timer);
    loop_timer_free(daemon->heartbeat_timer);
    loop_timer_free(daemon->stop_timer);
    loop_watch_free(daemon->stop_watch);
    loop_signal_free(daemon->signals[0]);
    loop_signal_free(daemon->signals[1]);
    loop_free(daemon->loop);
    if (daemon->ready_fd >= 0)
        close(daemon->ready_fd);
}

int daemon_run(const struct daemon_options *options, struct error *error)
{
    struct daemon daemon = {.options = options,
                            .enrolment = identity_enrolment(options->identity),
                            .ready_fd = options->ready_fd};
    ASSERT(daemon.enrolment->machine != 0);
    map_init(&daemon.tenancies);
    lent_init(&daemon.lent, &options->limits);
    int result = daemon_open(&daemon, error);
    if (result == 0) {
        daemon_dial(&daemon);
        result = loop_run(daemon.loop, error);
    }
    if (result == 0 && daemon.is_refused) {
        *error = daemon.refusal;
        result = -1;
    }
    daemon_close(&daemon);
    return result;
}
