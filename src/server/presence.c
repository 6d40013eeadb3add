/*
 * Presence: who is at the other end of a machine's link, what it is and how far away.
 *
 * A link that opens while the machine has one is a contender. It is mostly the same daemon, back
 * before the market noticed that its old link broke: its HELLO has the same instance, and it takes
 * over. With another instance the old link is asked for a sign of life. A PONG proves that two
 * daemons run with one key, a copied disk: the later one is refused and told why. Silence proves
 * that the old one is gone, a machine that lost its power: the contender takes over.
 *
 * The probe told to the core is what the daemon found and what is measured here: the round trip,
 * the least of the last few PINGs, and the bandwidth, by FILLs timed as they arrive. Neither can be
 * claimed better than it is.
 */
#include "base/log.h"
#include "server/hub_internal.h"
#include "server/probe_body.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>

#define MS_NS INT64_C(1000000)

enum {
    ALIVE_MS = 3000,          /* in which an old link answers its PING */
    PING_MS = 60000,          /* between two round trips, once there are enough */
    PONG_MS = 30000,          /* a PING without an answer is forgotten */
    PROBE_TELL_MS = 1000,     /* the core is told of a changed probe at most so often */
    RTT_TELL_MS = 60000,      /* the core is told of a changed round trip at most so often */
    RTT_CHANGE_US_MIN = 1000, /* and only of one that changed by more, and by a quarter */
    UNTIL_CHANGE_MS = 500,    /* what a message takes on its way is no change of a pause's end */
    MEASURE_FIRST_BYTES = 256 << 10,
    MEASURE_SHORT_MS = 200, /* a shorter measurement is done again with the most bytes */
    MEASURE_MAX_MS = 30000,
    MEASURE_AGAIN_MS = 24 * 3600 * 1000,
};

/* ---- What the core is told ------------------------------------------------------------------- */

static int64_t least(const struct hub_presence *presence)
{
    int64_t least_us = 0;
    for (size_t i = 0; i < HUB_RTT_SAMPLES && i < presence->sample_count; i++)
        if (least_us == 0 || presence->samples_us[i] < least_us)
            least_us = presence->samples_us[i];
    return least_us;
}

static bool may_tell_probe(const struct hub_machine *machine)
{
    const int64_t told_ns = machine->presence.told_ns;
    return told_ns == 0 || hub_now_ns(machine->hub) - told_ns >= PROBE_TELL_MS * MS_NS;
}

static void tell_probe(struct hub_machine *machine, bool is_urgent)
{
    struct hub_presence *presence = &machine->presence;
    struct probe probe = presence->found;
    probe.rtt_us = presence->rtt_us ? presence->rtt_us : machine->probe.rtt_us;
    probe.resources.bandwidth_kbit = machine->probe.resources.bandwidth_kbit;
    if (presence->bandwidth_kbit > probe.resources.bandwidth_kbit)
        probe.resources.bandwidth_kbit = presence->bandwidth_kbit;
    presence->is_probe_due = !probe_equal(&probe, &presence->told);
    if (!presence->is_probe_due || (!is_urgent && !may_tell_probe(machine)))
        return;
    presence->is_probe_due = false;
    presence->told_ns = hub_now_ns(machine->hub);
    presence->told = probe;
    hub_command(machine->hub,
                &(struct command){.kind = COMMAND_REPORT_PROBE,
                                  .report_probe = {.machine = machine->id, .probe = probe}},
                NULL);
}

void presence_check(struct hub_machine *machine)
{
    if (machine->presence.is_probe_due)
        tell_probe(machine, /* is_urgent= */ false);
}

void presence_put(struct hub_machine *machine, const struct probe *probe)
{
    machine->probe = *probe;
    if (machine->is_welcome)
        return; /* what its daemon says now is newer */
    machine->presence.found = *probe;
    machine->presence.told = *probe;
}

/* Offers of a machine whose owner lends less of it now shrink before it takes leases. */
static void take_ceiling(struct hub_machine *machine, struct resources ceiling)
{
    struct resources *found = &machine->presence.found.resources;
    ceiling.bandwidth_kbit = found->bandwidth_kbit;
    ceiling.gpus_milli = found->gpus_milli;
    if (!resources_equal(ceiling, *found))
        log_event(LOG_INFO, "ceiling_changed", "machine=%" PRIu64 " cores_milli=%" PRId64,
                  machine->id, ceiling.cores_milli);
    *found = ceiling;
    tell_probe(machine, /* is_urgent= */ true);
}

void presence_probe(struct hub_machine *machine, struct arena *arena,
                    const struct probe_message *message)
{
    struct probe probe = {0};
    struct error error;
    if (json_read(arena, message->json, &probe_body_schema, &probe, &error) < 0 ||
        probe_check(&probe, &error) < 0) {
        log_event(LOG_WARN, "probe_refused", "machine=%" PRIu64 " error=\"%s\"", machine->id,
                  error.message);
        return;
    }
    log_event(LOG_INFO, "machine_probed", "machine=%" PRIu64 " labels=%s", machine->id,
              probe.labels);
    machine->presence.found = probe;
    tell_probe(machine, /* is_urgent= */ false);
}

/* ---- The round trip -------------------------------------------------------------------------- */

static void ping(struct hub_machine *machine)
{
    struct hub_presence *presence = &machine->presence;
    randombytes_buf(&presence->nonce, sizeof(presence->nonce));
    presence->pinged_ns = hub_now_ns(machine->hub);
    presence->is_pinged = true;
    hub_send(machine, &(struct lease_message){.type = LEASE_MESSAGE_PING,
                                              .ping = {.nonce = presence->nonce}});
}

void presence_ask(struct hub_machine *machine)
{
    ping(machine);
}

static bool is_rtt_news(const struct hub_presence *presence, int64_t rtt_us, int64_t now_ns)
{
    const int64_t change_us =
        rtt_us > presence->rtt_us ? rtt_us - presence->rtt_us : presence->rtt_us - rtt_us;
    if (presence->rtt_us == 0)
        return presence->sample_count >= HUB_RTT_SAMPLES;
    return change_us > RTT_CHANGE_US_MIN && change_us > presence->rtt_us / 4 &&
           now_ns - presence->rtt_told_ns >= RTT_TELL_MS * MS_NS;
}

static void take_rtt(struct hub_machine *machine, int64_t now_ns)
{
    struct hub_presence *presence = &machine->presence;
    int64_t rtt_us = (now_ns - presence->pinged_ns) / 1000;
    if (rtt_us < 1)
        rtt_us = 1;
    if (rtt_us > MACHINE_RTT_US_MAX)
        rtt_us = MACHINE_RTT_US_MAX;
    presence->samples_us[presence->sample_count++ % HUB_RTT_SAMPLES] = rtt_us;
    const int64_t least_us = least(presence);
    if (!is_rtt_news(presence, least_us, now_ns))
        return;
    presence->rtt_us = least_us;
    presence->rtt_told_ns = now_ns;
    tell_probe(machine, /* is_urgent= */ false);
}

void presence_pong(struct hub_machine *machine, const struct pong_message *pong)
{
    struct hub_presence *presence = &machine->presence;
    if (!presence->is_pinged || pong->nonce != presence->nonce)
        return; /* of a PING that was given up */
    presence->is_pinged = false;
    take_rtt(machine, hub_now_ns(machine->hub));
    if (!machine->contender || !connection_has_hello(machine->contender))
        return;
    log_event(LOG_WARN, "machine_doubled",
              "machine=%" PRIu64 " reason=\"two daemons with its key are linked at once\"",
              machine->id);
    connection_refuse(machine->contender, /* is_final= */ true,
                      "another machine is linked with this machine's key: one is a copy of the "
                      "other's disk; enrol this one anew: souk lend --new-identity --code CODE, "
                      "with a code of \"souk machines add\"");
}

/* ---- The bandwidth --------------------------------------------------------------------------- */

static void measure(struct hub_machine *machine, uint32_t bytes)
{
    struct hub_presence *presence = &machine->presence;
    machine->hub->measured = machine;
    presence->measure_begin_ns = hub_now_ns(machine->hub);
    presence->measure_bytes = bytes;
    presence->filled_bytes = 0;
    hub_send(machine,
             &(struct lease_message){.type = LEASE_MESSAGE_MEASURE, .measure = {.bytes = bytes}});
}

void presence_forget_measure(struct hub_machine *machine)
{
    if (machine->hub->measured == machine)
        machine->hub->measured = NULL;
}

/* One at a time, and never while a lease could feel it. */
static void consider_measuring(struct hub_machine *machine, uint32_t running_count)
{
    const struct hub_machine *measured = machine->hub->measured;
    const struct hub_presence *presence = &machine->presence;
    const int64_t now_ns = hub_now_ns(machine->hub);
    if (measured && now_ns - measured->presence.measure_begin_ns > MEASURE_MAX_MS * MS_NS)
        machine->hub->measured = NULL; /* it does not come to an end */
    const bool is_due = presence->measure_begin_ns == 0 ||
                        now_ns - presence->measure_begin_ns > MEASURE_AGAIN_MS * MS_NS;
    if (is_due && !machine->hub->measured && running_count == 0 &&
        presence->sample_count >= HUB_RTT_SAMPLES)
        measure(machine, MEASURE_FIRST_BYTES);
}

static void take_bandwidth(struct hub_machine *machine, int64_t span_ns)
{
    struct hub_presence *presence = &machine->presence;
    if (span_ns < MEASURE_SHORT_MS * MS_NS && presence->measure_bytes < LEASE_MEASURE_BYTES_MAX) {
        measure(machine, LEASE_MEASURE_BYTES_MAX);
        return;
    }
    machine->hub->measured = NULL;
    const int64_t span_us = span_ns / 1000 > 0 ? span_ns / 1000 : 1;
    int64_t kbit = presence->filled_bytes * 8000 / span_us;
    if (kbit > RESOURCES_KBIT_MAX)
        kbit = RESOURCES_KBIT_MAX;
    log_event(LOG_INFO, "bandwidth_measured", "machine=%" PRIu64 " kbit=%" PRId64, machine->id,
              kbit);
    presence->bandwidth_kbit = kbit;
    tell_probe(machine, /* is_urgent= */ false);
}

/* The clock starts when the first has arrived, so that the way there does not count. */
void presence_fill(struct hub_machine *machine, const struct fill_message *fill)
{
    struct hub_presence *presence = &machine->presence;
    const int64_t now_ns = hub_now_ns(machine->hub);
    if (machine->hub->measured != machine ||
        presence->filled_bytes + (int64_t)fill->bytes.size > presence->measure_bytes) {
        if (now_ns - presence->measure_begin_ns < INT64_C(2) * MEASURE_MAX_MS * MS_NS)
            return; /* the rest of one that was given up */
        log_event(LOG_WARN, "fill_refused", "machine=%" PRIu64, machine->id);
        connection_free(machine->connection);
        return;
    }
    if (presence->filled_bytes == 0) {
        presence->first_fill_ns = now_ns;
        presence->first_fill_bytes = (int64_t)fill->bytes.size;
    }
    presence->filled_bytes += (int64_t)fill->bytes.size;
    if (!fill->is_last)
        return;
    presence->filled_bytes -= presence->first_fill_bytes;
    take_bandwidth(machine, now_ns - presence->first_fill_ns);
}

/* ---- Hellos ---------------------------------------------------------------------------------- */

const char *presence_refusal(const struct hub_machine *machine, const struct hello_message *hello)
{
    return hello->machine != machine->id ? "the link is another machine's" : NULL;
}

static void note_heard(struct hub_machine *machine)
{
    struct hub *hub = machine->hub;
    pthread_mutex_lock(&hub->live_mutex);
    if (!map_get(&hub->heard_machines, machine->id))
        map_put(&hub->heard_machines, machine->id, machine);
    pthread_mutex_unlock(&hub->live_mutex);
}

/* Its router's, as a rule: jobs with the Internet are kept away from it. */
static uint32_t seen_ipv4(const struct hub_machine *machine)
{
    struct in_addr address;
    return inet_pton(AF_INET, connection_host(machine->connection), &address) == 1
               ? ntohl(address.s_addr)
               : 0;
}

static void welcome(struct hub_machine *machine, const struct hello_message *hello)
{
    struct hub_presence *presence = &machine->presence;
    note_heard(machine);
    machine->is_welcome = true;
    machine->is_leaving = false;
    machine->muted_ns = 0;
    memcpy(presence->instance, hello->instance, sizeof(presence->instance));
    presence->sample_count = 0;
    presence->is_pinged = false;
    presence_forget_measure(machine);
    hub_send(machine, &(struct lease_message){
                          .type = LEASE_MESSAGE_WELCOME,
                          .welcome = {.version = LEASE_MESSAGE_VERSION,
                                      .machine = machine->id,
                                      .now_ms = clock_utc_ms(machine->hub->server->clock),
                                      .seen_ipv4 = seen_ipv4(machine)}});
    hub_send_encoded(machine, LEASE_MESSAGE_OFFERS, buffer_text(&machine->offers));
    hub_send(machine, &(struct lease_message){.type = LEASE_MESSAGE_EARNINGS,
                                              .earnings = machine->earnings});
    take_ceiling(machine, hello->ceiling);
    /* Told before its leases: the core must not place new ones on what it thinks is away. */
    machine->is_told_online = false;
    hub_tell_online(machine);
    dispatch_hello(machine, hello);
}

void presence_hello(struct hub_machine *machine, const struct hello_message *hello)
{
    const char *reason = presence_refusal(machine, hello);
    if (!reason) {
        welcome(machine, hello);
        return;
    }
    log_event(LOG_WARN, "hello_refused", "machine=%" PRIu64 " version=%" PRIu32 " names=%" PRIu64,
              machine->id, hello->version, hello->machine);
    connection_refuse(machine->connection, /* is_final= */ true, reason);
}

enum presence_verdict presence_contend(struct hub_machine *machine,
                                       const struct hello_message *hello)
{
    const struct hub_presence *presence = &machine->presence;
    if (!machine->is_welcome ||
        !memcmp(presence->instance, hello->instance, sizeof(presence->instance)))
        return PRESENCE_TAKES_OVER;
    log_event(LOG_INFO, "machine_contended", "machine=%" PRIu64, machine->id);
    ping(machine);
    return PRESENCE_WAITS;
}

int64_t presence_alive_ms(void)
{
    return ALIVE_MS;
}

/* ---- Heartbeats ------------------------------------------------------------------------------ */

/* What its owner looks at while it changes. */
static void tell_owner(struct hub_machine *machine)
{
    if (machine->has_live)
        live_heartbeat(machine->hub->server->live, &(struct live_heartbeat){
                                                       .account = machine->owner,
                                                       .machine = machine->id,
                                                       .live = &machine->live,
                                                       .paused_until_ms = machine->paused_until_ms,
                                                   });
}

static void keep_live(struct hub_machine *machine, const struct heartbeat_message *heartbeat)
{
    struct hub *hub = machine->hub;
    const struct hub_live live = {
        .heard_ms = clock_utc_ms(hub->server->clock),
        .rtt_us = least(&machine->presence),
        .load_milli = heartbeat->load_milli,
        .free_ram_bytes = heartbeat->free_ram_bytes,
        .temperature_c = heartbeat->temperature_c,
        .power = heartbeat->power,
        .battery_percent = heartbeat->battery_percent,
    };
    pthread_mutex_lock(&hub->live_mutex);
    machine->live = live;
    machine->has_live = true;
    pthread_mutex_unlock(&hub->live_mutex);
}

void presence_heartbeat(struct hub_machine *machine, const struct heartbeat_message *heartbeat)
{
    struct hub_presence *presence = &machine->presence;
    const int64_t since_ns = hub_now_ns(machine->hub) - presence->pinged_ns;
    const bool is_enough = presence->sample_count >= HUB_RTT_SAMPLES;
    keep_live(machine, heartbeat);
    tell_owner(machine);
    if (presence->is_pinged ? since_ns > PONG_MS * MS_NS : !is_enough || since_ns > PING_MS * MS_NS)
        ping(machine);
    consider_measuring(machine, heartbeat->running_count);
}

void presence_yield(struct hub_machine *machine, const struct yield_message *yield)
{
    struct hub *hub = machine->hub;
    const int64_t until_ms =
        yield->left_ms ? clock_utc_ms(hub->server->clock) + (int64_t)yield->left_ms : 0;
    const bool is_news = llabs(until_ms - machine->paused_until_ms) > UNTIL_CHANGE_MS;
    pthread_mutex_lock(&hub->live_mutex);
    machine->paused_until_ms = until_ms;
    pthread_mutex_unlock(&hub->live_mutex);
    if (is_news) /* a pause that gets longer is none to the core */
        tell_owner(machine);
    pace_yield(machine, yield->yield);
}

int64_t hub_machine_paused_until_ms(struct hub *hub, uint64_t machine)
{
    pthread_mutex_lock(&hub->live_mutex);
    const struct hub_machine *found = map_get(&hub->heard_machines, machine);
    const int64_t until_ms = found ? found->paused_until_ms : 0;
    pthread_mutex_unlock(&hub->live_mutex);
    return until_ms;
}

void hub_live_write(struct json_writer *writer, const struct hub_live *live)
{
    json_field_i64(writer, "heard_ms", live->heard_ms);
    json_field_i64(writer, "rtt_us", live->rtt_us);
    json_field_u64(writer, "load_milli", live->load_milli);
    json_field_u64(writer, "free_ram_bytes", live->free_ram_bytes);
    json_field_u64(writer, "temperature_c", live->temperature_c);
    json_field_string(writer, "power", lease_power_name(live->power));
    json_field_u64(writer, "battery_percent", live->battery_percent);
}

bool hub_machine_live(struct hub *hub, uint64_t machine, struct hub_live *out_live)
{
    pthread_mutex_lock(&hub->live_mutex);
    const struct hub_machine *found = map_get(&hub->heard_machines, machine);
    const bool is_live = found && found->has_live;
    if (is_live)
        *out_live = found->live;
    pthread_mutex_unlock(&hub->live_mutex);
    return is_live;
}

bool hub_machine_silence(struct hub *hub, uint64_t machine, int64_t *out_silence_ms)
{
    pthread_mutex_lock(&hub->live_mutex);
    const struct hub_machine *found = map_get(&hub->heard_machines, machine);
    pthread_mutex_unlock(&hub->live_mutex);
    if (found) /* never freed before the hub is */
        *out_silence_ms = (hub_now_ns(hub) - atomic_load(&found->heard_ns)) / MS_NS;
    return found != NULL;
}

void presence_gone(struct hub_machine *machine)
{
    struct hub *hub = machine->hub;
    presence_forget_measure(machine);
    trial_forget(machine);
    machine->awaited_ns = hub_now_ns(hub);
    pthread_mutex_lock(&hub->live_mutex);
    machine->has_live = false;
    machine->paused_until_ms = 0;
    pthread_mutex_unlock(&hub->live_mutex);
}
