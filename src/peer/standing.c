#include "peer/standing.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/log.h"
#include "peer/probe_package.h"
#include "peer/watch.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>

#define SECOND_NS INT64_C(1000000000)

enum {
    LOOK_MS = 60000,
    SENSE_S = 15,
    FILL_BYTES_MAX = 16 << 20, /* in an hour */
    FILL_QUEUE_BYTES = 1 << 20,
};

struct standing {
    struct loop *loop;
    struct probe_options options;
    struct probe_lent lent;
    struct machine_probe found;
    uint64_t fingerprint;
    struct loop_timer *look_timer;
    int64_t look_ms;
    struct link *link; /* NULL: not linked */

    struct watch_power power;
    int64_t sensed_ns; /* 0: never */

    uint8_t *filler;    /* LEASE_FILL_SIZE_MAX bytes while a measurement runs */
    uint32_t fill_left; /* bytes still to be sent */
    int64_t hour_began_ns;
    uint32_t hour_bytes;
};

static int64_t now_ns(const struct standing *standing)
{
    return clock_monotonic_ns(loop_clock(standing->loop));
}

static void send(struct standing *standing, const struct lease_message *message)
{
    if (!standing->link)
        return;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(message, &payload);
    struct error error;
    if (link_send_text(standing->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        log_event(LOG_WARN, "message_not_sent", "type=%s error=\"%s\"",
                  lease_message_type_name(message->type), error.message);
}

/* ---- What the machine is ----------------------------------------------------------------------
 */

static void send_probe(struct standing *standing)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, LEASE_PROBE_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    machine_probe_write(&standing->found, &standing->lent, &writer);
    ASSERT(!json.is_overflowed);
    send(standing, &(struct lease_message){.type = LEASE_MESSAGE_PROBE,
                                           .probe = {.json = buffer_text(&json)}});
}

/* Speeds stay: a package more does not change them, and measuring takes what is lent. */
static void probe_again(struct standing *standing)
{
    struct machine_probe found;
    struct error error;
    struct probe_options options = standing->options;
    options.known = &standing->found;
    if (machine_probe_read(&options, &found, &error) < 0) {
        log_event(LOG_WARN, "probe_failed", "error=\"%s\"", error.message);
        return;
    }
    standing->found = found;
    log_event(LOG_INFO, "probed", "gpus=%zu labels=%s", found.gpus.count, found.labels);
    send_probe(standing);
}

static void look(void *context)
{
    struct standing *standing = context;
    const uint64_t fingerprint = probe_fingerprint(standing->options.root);
    loop_timer_start(standing->look_timer, standing->look_ms);
    if (fingerprint == standing->fingerprint)
        return;
    standing->fingerprint = fingerprint;
    probe_again(standing);
}

struct standing *standing_new(const struct standing_options *options)
{
    struct standing *standing = calloc(1, sizeof(*standing));
    ASSERT(standing);
    standing->loop = options->loop;
    standing->options = options->probe;
    standing->lent = options->lent;
    standing->found = *options->found;
    standing->look_ms = options->look_ms ? options->look_ms : LOOK_MS;
    standing->fingerprint = probe_fingerprint(options->probe.root);
    standing->look_timer = loop_timer_new(options->loop, look, standing);
    loop_timer_start(standing->look_timer, standing->look_ms);
    return standing;
}

void standing_free(struct standing *standing)
{
    if (!standing)
        return;
    loop_timer_free(standing->look_timer);
    free(standing->filler);
    free(standing);
}

void standing_linked(struct standing *standing, struct link *link)
{
    standing->link = link;
    send_probe(standing);
}

void standing_unlinked(struct standing *standing)
{
    standing->link = NULL;
    standing->fill_left = 0;
    free(TAKE(standing->filler));
}

/* ---- How far away, how fast -------------------------------------------------------------------
 */

void standing_ping(struct standing *standing, const struct ping_message *ping)
{
    send(standing,
         &(struct lease_message){.type = LEASE_MESSAGE_PONG, .pong = {.nonce = ping->nonce}});
}

static void fill(struct standing *standing)
{
    while (standing->link && standing->fill_left > 0 &&
           link_queued_bytes(standing->link) < FILL_QUEUE_BYTES) {
        const uint32_t size =
            standing->fill_left < LEASE_FILL_SIZE_MAX ? standing->fill_left : LEASE_FILL_SIZE_MAX;
        standing->fill_left -= size;
        send(standing,
             &(struct lease_message){.type = LEASE_MESSAGE_FILL,
                                     .fill = {.is_last = standing->fill_left == 0,
                                              .bytes = {(const char *)standing->filler, size}}});
    }
    if (standing->fill_left == 0)
        free(TAKE(standing->filler));
}

void standing_drained(struct standing *standing)
{
    fill(standing);
}

void standing_measure(struct standing *standing, const struct measure_message *measure)
{
    const int64_t now = now_ns(standing);
    if (now - standing->hour_began_ns > 3600 * SECOND_NS || standing->hour_began_ns == 0) {
        standing->hour_began_ns = now;
        standing->hour_bytes = 0;
    }
    if (standing->fill_left > 0 || measure->bytes > FILL_BYTES_MAX - standing->hour_bytes) {
        log_event(LOG_WARN, "measurement_refused",
                  "bytes=%" PRIu32 " reason=\"enough was sent in this hour\"", measure->bytes);
        return;
    }
    standing->hour_bytes += measure->bytes;
    standing->fill_left = measure->bytes;
    standing->filler = malloc(LEASE_FILL_SIZE_MAX);
    ASSERT(standing->filler);
    randombytes_buf(standing->filler, LEASE_FILL_SIZE_MAX); /* nothing on the way can shrink it */
    fill(standing);
}

/* ---- Sensors ----------------------------------------------------------------------------------
 */

void standing_heartbeat(struct standing *standing, struct heartbeat_message *heartbeat)
{
    const int64_t now = now_ns(standing);
    if (standing->sensed_ns == 0 || now - standing->sensed_ns >= SENSE_S * SECOND_NS) {
        watch_power_read(standing->options.root, &standing->power);
        standing->sensed_ns = now;
    }
    const struct watch_power *power = &standing->power;
    if (power->temperature_milli > 0)
        heartbeat->temperature_c = (uint8_t)(power->temperature_milli / 1000);
    /* A machine without any supply that says so is a desktop or a server. */
    heartbeat->power = power->is_on_battery == 1 ? LEASE_POWER_BATTERY : LEASE_POWER_MAINS;
    if (power->battery_percent != GUARD_UNKNOWN)
        heartbeat->battery_percent = (uint8_t)power->battery_percent;
}
