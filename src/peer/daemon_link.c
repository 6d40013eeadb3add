/* The daemon's link to the market: dialled, kept up, and what comes over it. */
#include "base/assert.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "peer/daemon_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 10000,
    /* Heartbeats that nobody acknowledges for so long mean that the link is dead. */
    SILENCE_MS = 8000,
    LINK_QUEUE_BYTES = 2 << 20,
};

static int carry(void *context, uint16_t type, struct text payload, struct error *error)
{
    return link_send_text(context, type, payload, error);
}

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
    log_event(LOG_ERROR, refused->is_final ? "refused" : "refused_for_now",
              "reason=\"" TEXT_FORMAT "\"", TEXT_ARGS(refused->reason));
    daemon->retry_ms = DAEMON_RETRY_LAST_MS;
    daemon->is_refused = refused->is_final && daemon_list_running(daemon, NULL) == 0;
    if (daemon->is_refused)
        loop_stop(daemon->loop);
}

static void daemon_on_better(void *context);

/* Lost with the link, unlike what leases say. */
static void daemon_say(struct daemon *daemon, const struct lease_message *message)
{
    struct buffer payload AUTO_BUFFER;
    struct error error;
    if (!daemon->is_welcome)
        return;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(message, &payload);
    if (link_send_text(daemon->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        log_event(LOG_DEBUG, "not_said", "type=%s error=\"%s\"",
                  lease_message_type_name(message->type), error.message);
}

void daemon_on_tried(void *context, const struct tried_message *tried)
{
    struct daemon *daemon = context;
    log_event(LOG_INFO, "tried", "trial=%" PRIu64 " rtt_us=%" PRIu32, tried->trial, tried->rtt_us);
    daemon_say(daemon, &(struct lease_message){.type = LEASE_MESSAGE_TRIED, .tried = *tried});
}

/* Where the machine may be tried by others, when that is news. */
static void daemon_tell_addresses(struct daemon *daemon)
{
    struct host_port found[PATH_CANDIDATE_MAX] = {0};
    char texts[PATH_CANDIDATE_MAX][LEASE_ADDRESS_SIZE_MAX + 1];
    const size_t count = trials_addresses(daemon->trials, found);
    if (daemon->has_told_addresses && count == daemon->address_count &&
        !memcmp(found, daemon->addresses, sizeof(found)))
        return;
    memcpy(daemon->addresses, found, sizeof(found));
    daemon->address_count = count;
    daemon->has_told_addresses = true;
    struct lease_message message = {.type = LEASE_MESSAGE_ADDRESSES};
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%.48s:%u", found[i].host, found[i].port);
        message.addresses.addresses[message.addresses.address_count++] = text_of(texts[i]);
    }
    daemon_say(daemon, &message);
}

static void daemon_on_welcome(struct daemon *daemon, const struct welcome_message *welcome)
{
    if (daemon->is_welcome)
        return;
    daemon->is_welcome = true;
    daemon->retry_ms = DAEMON_RETRY_FIRST_MS;
    daemon->market_ahead_ms = welcome->now_ms - clock_utc_ms(loop_clock(daemon->loop));
    if (welcome->seen_ipv4 != 0)
        daemon->seen_ipv4 = welcome->seen_ipv4;
    servers_welcomed(daemon->servers, daemon_on_better, daemon);
    log_event(LOG_INFO, "linked", "machine=%" PRIu64 " market=%s", daemon->enrolment->machine,
              daemon->enrolment->link_address);
    standing_linked(daemon->standing, daemon->link);
    outbox_attach(daemon->outbox, &(struct outbox_carrier){carry, daemon->link},
                  daemon_now_ns(daemon));
    daemon_tell_market(daemon);
    daemon_tell_yield(daemon);
    daemon_pace_keepers(daemon);
    daemon_release_ended(daemon);
    daemon->beat_count = 0;
    daemon->has_told_addresses = false;
    loop_timer_start(daemon->heartbeat_timer, 0);
    daemon_write_ready(daemon);
    daemon->is_fresh = true;
    daemon_check_stopped(daemon);
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
    switch (message.type) {
    case LEASE_MESSAGE_WELCOME:
        daemon_on_welcome(daemon, &message.welcome);
        break;
    case LEASE_MESSAGE_START:
        daemon_on_start(daemon, &message.start, payload);
        break;
    case LEASE_MESSAGE_RENEW:
        daemon_on_renew(daemon, &message.renew, payload);
        break;
    case LEASE_MESSAGE_STOP:
        daemon_on_stop_message(daemon, &message.stop, payload);
        break;
    case LEASE_MESSAGE_OFFERS:
        daemon_on_offers(daemon, &message.offers);
        break;
    case LEASE_MESSAGE_EARNINGS:
        daemon_on_earnings(daemon, &message.earnings);
        break;
    case LEASE_MESSAGE_PAUSE:
        daemon_on_pause(daemon, &message.pause);
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
    case LEASE_MESSAGE_TRY:
        trials_begin(daemon->trials, &message.try);
        break;
    case LEASE_MESSAGE_RANK:
    case LEASE_MESSAGE_CHUNK_PEER:
        daemon_pass_on(daemon, (struct lease_fence){message.rank.lease, message.rank.fence},
                       message.type, payload);
        break;
    case LEASE_MESSAGE_LOG_KEPT:
        daemon_pass_on(daemon, (struct lease_fence){message.log_kept.lease, message.log_kept.fence},
                       message.type, payload);
        break;
    case LEASE_MESSAGE_CHECKPOINTS:
        daemon_pass_on(daemon,
                       (struct lease_fence){message.checkpoints.lease, message.checkpoints.fence},
                       message.type, payload);
        break;
    case LEASE_MESSAGE_LOG_READER:
        daemon_pass_on(daemon,
                       (struct lease_fence){message.log_reader.lease, message.log_reader.fence},
                       message.type, payload);
        break;
    case LEASE_MESSAGE_PEER:
        daemon_pass_on(daemon, (struct lease_fence){message.peer.lease, message.peer.fence},
                       message.type, payload);
        break;
    case LEASE_MESSAGE_STREAM_OPEN:
        daemon_pass_on(daemon,
                       (struct lease_fence){message.stream_open.lease, message.stream_open.fence},
                       message.type, payload);
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
    case LEASE_MESSAGE_YIELD:
    case LEASE_MESSAGE_ADDRESSES:
    case LEASE_MESSAGE_TRIED:
    case LEASE_MESSAGE_CHUNKS_AT:
    case LEASE_MESSAGE_LOGS_AT:
    case LEASE_MESSAGE_CHECKPOINT_WANTED:
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
    struct lease_fence running[DAEMON_LEASE_MAX];
    const size_t running_count = daemon_list_running(daemon, running);
    struct lease_message hello = {.type = LEASE_MESSAGE_HELLO,
                                  .hello = {.version = LEASE_MESSAGE_VERSION,
                                            .machine = daemon->enrolment->machine,
                                            .ceiling = lent_ceiling(&daemon->lent),
                                            .running = running,
                                            .running_count = (uint32_t)running_count}};
    memcpy(hello.hello.instance, daemon->instance, sizeof(hello.hello.instance));
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(&hello, &payload);
    struct error error;
    if (link_send_text(link, LEASE_MESSAGE_HELLO, buffer_text(&payload), &error) < 0)
        log_event(LOG_ERROR, "hello_failed", "error=\"%s\"", error.message);
}

static void daemon_retry(struct daemon *daemon, const char *reason)
{
    if (daemon->is_refused || (daemon->is_stopping && daemon->holdings.count == 0)) {
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
    daemon_tell_market(daemon);
    daemon_pace_keepers(daemon);
    daemon_release_ended(daemon);
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
    daemon_pace_keepers(daemon);
    daemon_release_ended(daemon);
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

/* What a lease with the Internet is kept away from. */
static void daemon_note_market(struct daemon *daemon, int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t size = sizeof(peer);
    if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0 || peer.ss_family != AF_INET)
        return;
    struct sockaddr_in address;
    memcpy(&address, &peer, sizeof(address));
    daemon->link_ipv4 = ntohl(address.sin_addr.s_addr);
}

static void daemon_on_connected(void *context, int fd, const struct error *reason)
{
    struct daemon *daemon = context;
    struct error error;
    tcp_connect_free(TAKE(daemon->connect));
    if (!reason)
        daemon_note_market(daemon, fd);
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
    daemon->connect =
        tcp_connect_start(daemon->loop, target, CONNECT_TIMEOUT_MS, daemon_on_connected, daemon);
}

void daemon_dial(void *context)
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

void daemon_pace_heartbeats(struct daemon *daemon)
{
    if (daemon->is_welcome && daemon->is_beating_slowly && daemon_list_running(daemon, NULL) > 0)
        loop_timer_start(daemon->heartbeat_timer, 0);
}

void daemon_on_heartbeat(void *context)
{
    struct daemon *daemon = context;
    struct machine_load load;
    const int64_t now_ns = daemon_now_ns(daemon);
    load_probe_read(&daemon->load, now_ns, &load);
    struct lease_message message = {
        .type = LEASE_MESSAGE_HEARTBEAT,
        .heartbeat = {.load_milli = load.load_milli,
                      .running_count = (uint32_t)daemon_list_running(daemon, NULL),
                      .free_ram_bytes = load.free_ram_bytes}};
    standing_heartbeat(daemon->standing, &message.heartbeat);
    daemon_tell_addresses(daemon);
    outbox_send(daemon->outbox, &message, now_ns);
    daemon->is_beating_slowly =
        message.heartbeat.running_count == 0 && ++daemon->beat_count >= DAEMON_QUICK_BEATS;
    loop_timer_start(daemon->heartbeat_timer,
                     daemon->is_beating_slowly ? LEASE_HEARTBEAT_IDLE_MS : LEASE_HEARTBEAT_MS);
    if (daemon->is_fresh)
        memory_trim();
    daemon->is_fresh = false;
}
