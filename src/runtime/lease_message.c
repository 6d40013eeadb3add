/*
 * Encodings, in the order of the bytes; integers little-endian, `text` and `bytes` are a u32
 * length and the bytes, [n] is n bytes without a length (wire/wire.h).
 *
 *     HELLO         u32 version, u64 machine, [16] instance, resources ceiling, u32 count,
 *                   count x (u64 lease, u64 fence)
 *     HEARTBEAT     u32 load_milli, u32 running_count, u64 free_ram_bytes, u8 temperature_c,
 *                   u8 power, u8 battery_percent
 *     STATE         u64 lease, u64 fence, u8 state, u32 exit_code (two's complement), text reason
 *     METER         u64 lease, u64 fence, u64 tick_index, u64 wall_ms, u64 cpu_ms, u64 gpu_ms,
 *                   u64 memory_peak_bytes, u64 bytes_in, u64 bytes_out, [64] signature
 *     REPORT        u64 lease, u64 fence, text json
 *     LOG           u64 lease, u64 fence, u64 offset, u8 is_resumed, u8 is_last, bytes
 *     ARTIFACT      u64 lease, u64 fence, text name, [32] manifest, u64 size_bytes
 *     STREAM_READY  u64 lease, u64 fence, u64 peer_lease
 *     PONG          u64 nonce
 *     PROBE         text json
 *     FILL          u8 is_last, bytes
 *     YIELD         u8 yield
 *     ADDRESSES     u64 lease, u64 fence, addresses
 *     CHUNKS_AT     the same
 *     TRIED         u64 trial, u32 rtt_us
 *     WELCOME       u32 version, u64 machine, i64 now_ms
 *     START         text document, [64] signature, [32] key, text fetch_token, u32 count,
 *                   count x peer
 *     PEER          u64 lease, u64 fence, peer
 *     STOP          u64 lease, u64 fence, u32 grace_ms, text reason
 *     STREAM_OPEN   u64 lease, u64 fence, u64 peer_lease, [32] ticket
 *     OFFERS        u32 count, count x (u64 offer, resources, u32 roles)
 *     RENEW         text document, [64] signature
 *     REFUSED       u8 is_final, text reason
 *     PING          u64 nonce
 *     MEASURE       u32 bytes
 *     PAUSE         u8 is_paused (0 or 1), u64 for_ms
 *     RANK          u64 lease, u64 fence, peer, addresses
 *     CHUNK_PEER    the same
 *     LOG_KEPT      u64 lease, u64 fence, u64 offset
 *     TRY           u64 trial, [32] key, [32] ticket, u32 limit_ms, addresses
 *     EARNINGS      i64 earned_micro, i64 withheld_micro
 *     resources     i64 cores_milli, i64 ram_bytes, i64 gpus_milli, i64 disk_bytes,
 *                   i64 bandwidth_kbit
 *     addresses     u32 count, count x text
 *     peer          u64 lease, u64 fence, u32 rank, [32] key, [32] ticket
 *
 * The signature of METER is Ed25519 over the 16 bytes "souk-meter-v2\0\0\0" and the nine integers
 * as encoded.
 */
#include "runtime/lease_message.h"

#include "base/assert.h"
#include "wire/wire.h"

#include <string.h>

enum {
    FENCE_SIZE = 16,
    OFFER_SIZE = 8 + 5 * 8 + 4,
    PEER_SIZE = 8 + 8 + 4 + LEASE_KEY_SIZE + LEASE_TICKET_SIZE,
};

const char *lease_run_state_name(enum lease_run_state state)
{
    static const char *const names[LEASE_RUN_STATE_COUNT] = {
        [LEASE_RUN_STARTING] = "starting",   [LEASE_RUN_RUNNING] = "running",
        [LEASE_RUN_SUCCEEDED] = "succeeded", [LEASE_RUN_FAILED] = "failed",
        [LEASE_RUN_STOPPED] = "stopped",     [LEASE_RUN_RECLAIMED] = "reclaimed",
        [LEASE_RUN_LOST] = "lost",
    };
    return state < LEASE_RUN_STATE_COUNT ? names[state] : "unknown";
}

const char *lease_power_name(enum lease_power power)
{
    static const char *const names[LEASE_POWER_COUNT] = {
        [LEASE_POWER_UNKNOWN] = "unknown",
        [LEASE_POWER_MAINS] = "mains",
        [LEASE_POWER_BATTERY] = "battery",
    };
    return power < LEASE_POWER_COUNT ? names[power] : "unknown";
}

const char *lease_message_type_name(enum lease_message_type type)
{
    switch (type) {
    case LEASE_MESSAGE_HELLO:
        return "HELLO";
    case LEASE_MESSAGE_HEARTBEAT:
        return "HEARTBEAT";
    case LEASE_MESSAGE_STATE:
        return "STATE";
    case LEASE_MESSAGE_METER:
        return "METER";
    case LEASE_MESSAGE_REPORT:
        return "REPORT";
    case LEASE_MESSAGE_LOG:
        return "LOG";
    case LEASE_MESSAGE_ARTIFACT:
        return "ARTIFACT";
    case LEASE_MESSAGE_STREAM_READY:
        return "STREAM_READY";
    case LEASE_MESSAGE_PONG:
        return "PONG";
    case LEASE_MESSAGE_PROBE:
        return "PROBE";
    case LEASE_MESSAGE_FILL:
        return "FILL";
    case LEASE_MESSAGE_YIELD:
        return "YIELD";
    case LEASE_MESSAGE_WELCOME:
        return "WELCOME";
    case LEASE_MESSAGE_START:
        return "START";
    case LEASE_MESSAGE_PEER:
        return "PEER";
    case LEASE_MESSAGE_STOP:
        return "STOP";
    case LEASE_MESSAGE_STREAM_OPEN:
        return "STREAM_OPEN";
    case LEASE_MESSAGE_OFFERS:
        return "OFFERS";
    case LEASE_MESSAGE_RENEW:
        return "RENEW";
    case LEASE_MESSAGE_REFUSED:
        return "REFUSED";
    case LEASE_MESSAGE_PING:
        return "PING";
    case LEASE_MESSAGE_MEASURE:
        return "MEASURE";
    case LEASE_MESSAGE_PAUSE:
        return "PAUSE";
    case LEASE_MESSAGE_EARNINGS:
        return "EARNINGS";
    case LEASE_MESSAGE_ADDRESSES:
        return "ADDRESSES";
    case LEASE_MESSAGE_RANK:
        return "RANK";
    case LEASE_MESSAGE_LOG_KEPT:
        return "LOG_KEPT";
    case LEASE_MESSAGE_TRY:
        return "TRY";
    case LEASE_MESSAGE_TRIED:
        return "TRIED";
    case LEASE_MESSAGE_CHUNKS_AT:
        return "CHUNKS_AT";
    case LEASE_MESSAGE_CHUNK_PEER:
        return "CHUNK_PEER";
    }
    return "unknown";
}

/* ---- Encoding ---------------------------------------------------------------------------------
 */

static void put_fence(struct buffer *buffer, uint64_t lease, uint64_t fence)
{
    wire_put_u64(buffer, lease);
    wire_put_u64(buffer, fence);
}

static void put_text(struct buffer *buffer, struct text text, size_t size_max)
{
    ASSERT(text.size <= size_max);
    wire_put_text(buffer, text);
}

static void put_peer(struct buffer *buffer, const struct lease_peer *peer)
{
    put_fence(buffer, peer->lease, peer->fence);
    wire_put_u32(buffer, peer->rank);
    wire_put_raw(buffer, peer->key, sizeof(peer->key));
    wire_put_raw(buffer, peer->ticket, sizeof(peer->ticket));
}

static void put_addresses(struct buffer *buffer, const struct text *addresses, uint32_t count)
{
    ASSERT(count <= LEASE_ADDRESSES_MAX);
    wire_put_u32(buffer, count);
    for (uint32_t i = 0; i < count; i++)
        put_text(buffer, addresses[i], LEASE_ADDRESS_SIZE_MAX);
}

static void put_try(struct buffer *buffer, const struct try_message *try)
{
    ASSERT(try->limit_ms <= LEASE_TRY_MS_MAX);
    wire_put_u64(buffer, try->trial);
    wire_put_raw(buffer, try->key, sizeof(try->key));
    wire_put_raw(buffer, try->ticket, sizeof(try->ticket));
    wire_put_u32(buffer, try->limit_ms);
    put_addresses(buffer, try->addresses, try->address_count);
}

static void put_resources(struct buffer *buffer, const struct resources *resources)
{
    wire_put_i64(buffer, resources->cores_milli);
    wire_put_i64(buffer, resources->ram_bytes);
    wire_put_i64(buffer, resources->gpus_milli);
    wire_put_i64(buffer, resources->disk_bytes);
    wire_put_i64(buffer, resources->bandwidth_kbit);
}

static void put_hello(struct buffer *buffer, const struct hello_message *hello)
{
    ASSERT(hello->running_count <= LEASE_RUNNING_MAX);
    wire_put_u32(buffer, hello->version);
    wire_put_u64(buffer, hello->machine);
    wire_put_raw(buffer, hello->instance, sizeof(hello->instance));
    put_resources(buffer, &hello->ceiling);
    wire_put_u32(buffer, hello->running_count);
    for (uint32_t i = 0; i < hello->running_count; i++)
        put_fence(buffer, hello->running[i].lease, hello->running[i].fence);
}

static void put_meter_counters(struct buffer *buffer, const struct meter_message *meter)
{
    put_fence(buffer, meter->lease, meter->fence);
    wire_put_u64(buffer, meter->tick_index);
    wire_put_u64(buffer, meter->wall_ms);
    wire_put_u64(buffer, meter->cpu_ms);
    wire_put_u64(buffer, meter->gpu_ms);
    wire_put_u64(buffer, meter->memory_peak_bytes);
    wire_put_u64(buffer, meter->bytes_in);
    wire_put_u64(buffer, meter->bytes_out);
}

static void put_start(struct buffer *buffer, const struct start_message *start)
{
    ASSERT(start->peer_count <= LEASE_PEERS_MAX);
    put_text(buffer, start->document, LEASE_DOCUMENT_SIZE_MAX);
    wire_put_raw(buffer, start->signature, sizeof(start->signature));
    wire_put_raw(buffer, start->key, sizeof(start->key));
    put_text(buffer, start->fetch_token, LEASE_TOKEN_SIZE_MAX);
    wire_put_u32(buffer, start->peer_count);
    for (uint32_t i = 0; i < start->peer_count; i++)
        put_peer(buffer, &start->peers[i]);
}

static void put_offers(struct buffer *buffer, const struct offers_message *offers)
{
    ASSERT(offers->offer_count <= LEASE_OFFERS_MAX);
    wire_put_u32(buffer, offers->offer_count);
    for (uint32_t i = 0; i < offers->offer_count; i++) {
        wire_put_u64(buffer, offers->offers[i].offer);
        put_resources(buffer, &offers->offers[i].resources);
        wire_put_u32(buffer, offers->offers[i].roles);
    }
}

static void put_heartbeat(struct buffer *buffer, const struct heartbeat_message *heartbeat)
{
    wire_put_u32(buffer, heartbeat->load_milli);
    wire_put_u32(buffer, heartbeat->running_count);
    wire_put_u64(buffer, heartbeat->free_ram_bytes);
    wire_put_u8(buffer, heartbeat->temperature_c);
    wire_put_u8(buffer, (uint8_t)heartbeat->power);
    wire_put_u8(buffer, heartbeat->battery_percent);
}

static void encode_from_daemon(const struct lease_message *message, struct buffer *buffer)
{
    switch ((int)message->type) {
    case LEASE_MESSAGE_HELLO:
        put_hello(buffer, &message->hello);
        return;
    case LEASE_MESSAGE_HEARTBEAT:
        put_heartbeat(buffer, &message->heartbeat);
        return;
    case LEASE_MESSAGE_PONG:
        wire_put_u64(buffer, message->pong.nonce);
        return;
    case LEASE_MESSAGE_PROBE:
        put_text(buffer, message->probe.json, LEASE_PROBE_SIZE_MAX);
        return;
    case LEASE_MESSAGE_FILL:
        wire_put_u8(buffer, message->fill.is_last);
        put_text(buffer, message->fill.bytes, LEASE_FILL_SIZE_MAX);
        return;
    case LEASE_MESSAGE_STATE:
        put_fence(buffer, message->state.lease, message->state.fence);
        wire_put_u8(buffer, (uint8_t)message->state.state);
        wire_put_u32(buffer, (uint32_t)message->state.exit_code);
        put_text(buffer, message->state.reason, LEASE_REASON_SIZE_MAX);
        return;
    case LEASE_MESSAGE_METER:
        put_meter_counters(buffer, &message->meter);
        wire_put_raw(buffer, message->meter.signature, sizeof(message->meter.signature));
        return;
    case LEASE_MESSAGE_REPORT:
        put_fence(buffer, message->report.lease, message->report.fence);
        put_text(buffer, message->report.json, LEASE_REPORT_SIZE_MAX);
        return;
    case LEASE_MESSAGE_LOG:
        put_fence(buffer, message->log.lease, message->log.fence);
        wire_put_u64(buffer, message->log.offset);
        wire_put_u8(buffer, message->log.is_resumed);
        wire_put_u8(buffer, message->log.is_last);
        put_text(buffer, message->log.bytes, LEASE_LOG_SIZE_MAX);
        return;
    case LEASE_MESSAGE_ARTIFACT:
        put_fence(buffer, message->artifact.lease, message->artifact.fence);
        put_text(buffer, message->artifact.name, LEASE_NAME_SIZE_MAX);
        wire_put_raw(buffer, message->artifact.manifest, sizeof(message->artifact.manifest));
        wire_put_u64(buffer, message->artifact.size_bytes);
        return;
    case LEASE_MESSAGE_ADDRESSES:
    case LEASE_MESSAGE_CHUNKS_AT:
        put_fence(buffer, message->addresses.lease, message->addresses.fence);
        put_addresses(buffer, message->addresses.addresses, message->addresses.address_count);
        return;
    case LEASE_MESSAGE_TRIED:
        wire_put_u64(buffer, message->tried.trial);
        wire_put_u32(buffer, message->tried.rtt_us);
        return;
    case LEASE_MESSAGE_STREAM_READY:
        put_fence(buffer, message->stream_ready.lease, message->stream_ready.fence);
        wire_put_u64(buffer, message->stream_ready.peer_lease);
        return;
    case LEASE_MESSAGE_YIELD:
        wire_put_u8(buffer, (uint8_t)message->yield.yield);
        return;
    }
    UNREACHABLE("a message without an encoder");
}

uint32_t hello_message_version(struct text payload)
{
    struct wire_reader reader;
    wire_reader_init(&reader, payload);
    return wire_get_u32(&reader);
}

void lease_message_encode(const struct lease_message *message, struct buffer *payload)
{
    switch ((int)message->type) {
    case LEASE_MESSAGE_WELCOME:
        wire_put_u32(payload, message->welcome.version);
        wire_put_u64(payload, message->welcome.machine);
        wire_put_i64(payload, message->welcome.now_ms);
        return;
    case LEASE_MESSAGE_START:
        put_start(payload, &message->start);
        return;
    case LEASE_MESSAGE_RANK:
    case LEASE_MESSAGE_CHUNK_PEER:
        put_fence(payload, message->rank.lease, message->rank.fence);
        put_peer(payload, &message->rank.peer);
        put_addresses(payload, message->rank.addresses, message->rank.address_count);
        return;
    case LEASE_MESSAGE_LOG_KEPT:
        put_fence(payload, message->log_kept.lease, message->log_kept.fence);
        wire_put_u64(payload, message->log_kept.offset);
        return;
    case LEASE_MESSAGE_PEER:
        put_fence(payload, message->peer.lease, message->peer.fence);
        put_peer(payload, &message->peer.peer);
        return;
    case LEASE_MESSAGE_RENEW:
        put_text(payload, message->renew.document, LEASE_DOCUMENT_SIZE_MAX);
        wire_put_raw(payload, message->renew.signature, sizeof(message->renew.signature));
        return;
    case LEASE_MESSAGE_STOP:
        put_fence(payload, message->stop.lease, message->stop.fence);
        wire_put_u32(payload, message->stop.grace_ms);
        put_text(payload, message->stop.reason, LEASE_REASON_SIZE_MAX);
        return;
    case LEASE_MESSAGE_STREAM_OPEN:
        put_fence(payload, message->stream_open.lease, message->stream_open.fence);
        wire_put_u64(payload, message->stream_open.peer_lease);
        wire_put_raw(payload, message->stream_open.ticket, sizeof(message->stream_open.ticket));
        return;
    case LEASE_MESSAGE_OFFERS:
        put_offers(payload, &message->offers);
        return;
    case LEASE_MESSAGE_REFUSED:
        wire_put_u8(payload, message->refused.is_final);
        put_text(payload, message->refused.reason, LEASE_REASON_SIZE_MAX);
        return;
    case LEASE_MESSAGE_EARNINGS:
        wire_put_i64(payload, message->earnings.earned_micro);
        wire_put_i64(payload, message->earnings.withheld_micro);
        return;
    case LEASE_MESSAGE_PING:
        wire_put_u64(payload, message->ping.nonce);
        return;
    case LEASE_MESSAGE_MEASURE:
        ASSERT(message->measure.bytes <= LEASE_MEASURE_BYTES_MAX);
        wire_put_u32(payload, message->measure.bytes);
        return;
    case LEASE_MESSAGE_PAUSE:
        wire_put_bool(payload, message->pause.is_paused);
        wire_put_u64(payload, message->pause.for_ms);
        return;
    case LEASE_MESSAGE_TRY:
        put_try(payload, &message->try);
        return;
    default:
        encode_from_daemon(message, payload);
    }
}

void meter_message_signed(const struct meter_message *meter, uint8_t out[METER_SIGNED_SIZE])
{
    static const char domain[16] = "souk-meter-v2";
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, METER_SIGNED_SIZE);
    buffer_append(&bytes, domain, sizeof(domain));
    put_meter_counters(&bytes, meter);
    ASSERT(!bytes.is_overflowed && bytes.size == METER_SIGNED_SIZE);
    memcpy(out, bytes.data, METER_SIGNED_SIZE);
}

/* ---- Decoding ---------------------------------------------------------------------------------
 */

static void get_peer(struct wire_reader *reader, struct lease_peer *peer)
{
    peer->lease = wire_get_u64(reader);
    peer->fence = wire_get_u64(reader);
    peer->rank = wire_get_u32(reader);
    wire_get_raw(reader, peer->key, sizeof(peer->key));
    wire_get_raw(reader, peer->ticket, sizeof(peer->ticket));
}

static uint32_t get_addresses(struct wire_reader *reader, struct text out[LEASE_ADDRESSES_MAX])
{
    const uint32_t count = wire_get_count(reader, LEASE_ADDRESSES_MAX, 4);
    for (uint32_t i = 0; i < count; i++)
        out[i] = wire_get_text(reader, LEASE_ADDRESS_SIZE_MAX);
    return count;
}

static void get_try(struct wire_reader *reader, struct try_message *try)
{
    try->trial = wire_get_u64(reader);
    wire_get_raw(reader, try->key, sizeof(try->key));
    wire_get_raw(reader, try->ticket, sizeof(try->ticket));
    try->limit_ms = wire_get_u32(reader);
    try->address_count = get_addresses(reader, try->addresses);
    if (try->limit_ms > LEASE_TRY_MS_MAX)
        wire_reader_fail(reader, "too long");
}

static void get_resources(struct wire_reader *reader, struct resources *resources)
{
    resources->cores_milli = wire_get_i64(reader);
    resources->ram_bytes = wire_get_i64(reader);
    resources->gpus_milli = wire_get_i64(reader);
    resources->disk_bytes = wire_get_i64(reader);
    resources->bandwidth_kbit = wire_get_i64(reader);
    if (!resources_are_valid(*resources))
        wire_reader_fail(reader, "resources out of range");
}

static void get_hello(struct arena *arena, struct wire_reader *reader, struct hello_message *hello)
{
    hello->version = wire_get_u32(reader);
    hello->machine = wire_get_u64(reader);
    wire_get_raw(reader, hello->instance, sizeof(hello->instance));
    get_resources(reader, &hello->ceiling);
    hello->running_count = wire_get_count(reader, LEASE_RUNNING_MAX, FENCE_SIZE);
    struct lease_fence *running = arena_alloc(arena, hello->running_count * sizeof(*running) + 1);
    for (uint32_t i = 0; i < hello->running_count; i++) {
        running[i].lease = wire_get_u64(reader);
        running[i].fence = wire_get_u64(reader);
    }
    hello->running = running;
}

static bool get_bool(struct wire_reader *reader)
{
    const uint8_t value = wire_get_u8(reader);
    if (value > 1)
        wire_reader_fail(reader, "neither true nor false");
    return value != 0;
}

static void get_heartbeat(struct wire_reader *reader, struct heartbeat_message *heartbeat)
{
    heartbeat->load_milli = wire_get_u32(reader);
    heartbeat->running_count = wire_get_u32(reader);
    heartbeat->free_ram_bytes = wire_get_u64(reader);
    heartbeat->temperature_c = wire_get_u8(reader);
    const uint8_t power = wire_get_u8(reader);
    heartbeat->battery_percent = wire_get_u8(reader);
    if (power >= LEASE_POWER_COUNT || heartbeat->battery_percent > 100)
        wire_reader_fail(reader, "power out of range");
    heartbeat->power = (enum lease_power)power;
}

static void get_measure(struct wire_reader *reader, struct measure_message *measure)
{
    measure->bytes = wire_get_u32(reader);
    if (measure->bytes > LEASE_MEASURE_BYTES_MAX)
        wire_reader_fail(reader, "more bytes to measure with than are allowed");
}

static void get_state(struct wire_reader *reader, struct state_message *state)
{
    state->lease = wire_get_u64(reader);
    state->fence = wire_get_u64(reader);
    const uint8_t number = wire_get_u8(reader);
    if (number >= LEASE_RUN_STATE_COUNT)
        wire_reader_fail(reader, "unknown lease state");
    else
        state->state = number;
    state->exit_code = (int32_t)wire_get_u32(reader);
    state->reason = wire_get_text(reader, LEASE_REASON_SIZE_MAX);
}

static void get_yield(struct wire_reader *reader, struct yield_message *yield)
{
    const uint8_t number = wire_get_u8(reader);
    if (number >= MACHINE_YIELD_COUNT)
        wire_reader_fail(reader, "unknown yield");
    else
        yield->yield = number;
}

static void get_meter(struct wire_reader *reader, struct meter_message *meter)
{
    meter->lease = wire_get_u64(reader);
    meter->fence = wire_get_u64(reader);
    meter->tick_index = wire_get_u64(reader);
    meter->wall_ms = wire_get_u64(reader);
    meter->cpu_ms = wire_get_u64(reader);
    meter->gpu_ms = wire_get_u64(reader);
    meter->memory_peak_bytes = wire_get_u64(reader);
    meter->bytes_in = wire_get_u64(reader);
    meter->bytes_out = wire_get_u64(reader);
    wire_get_raw(reader, meter->signature, sizeof(meter->signature));
}

static void get_log(struct wire_reader *reader, struct log_message *log)
{
    log->lease = wire_get_u64(reader);
    log->fence = wire_get_u64(reader);
    log->offset = wire_get_u64(reader);
    log->is_resumed = get_bool(reader);
    log->is_last = get_bool(reader);
    log->bytes = wire_get_bytes(reader, LEASE_LOG_SIZE_MAX);
}

static void get_artifact(struct wire_reader *reader, struct artifact_message *artifact)
{
    artifact->lease = wire_get_u64(reader);
    artifact->fence = wire_get_u64(reader);
    artifact->name = wire_get_text(reader, LEASE_NAME_SIZE_MAX);
    wire_get_raw(reader, artifact->manifest, sizeof(artifact->manifest));
    artifact->size_bytes = wire_get_u64(reader);
}

static void get_start(struct arena *arena, struct wire_reader *reader, struct start_message *start)
{
    start->document = wire_get_text(reader, LEASE_DOCUMENT_SIZE_MAX);
    wire_get_raw(reader, start->signature, sizeof(start->signature));
    wire_get_raw(reader, start->key, sizeof(start->key));
    start->fetch_token = wire_get_text(reader, LEASE_TOKEN_SIZE_MAX);
    start->peer_count = wire_get_count(reader, LEASE_PEERS_MAX, PEER_SIZE);
    struct lease_peer *peers = arena_alloc(arena, start->peer_count * sizeof(*peers) + 1);
    for (uint32_t i = 0; i < start->peer_count; i++)
        get_peer(reader, &peers[i]);
    start->peers = peers;
}

static void get_stop(struct wire_reader *reader, struct stop_message *stop)
{
    stop->lease = wire_get_u64(reader);
    stop->fence = wire_get_u64(reader);
    stop->grace_ms = wire_get_u32(reader);
    stop->reason = wire_get_text(reader, LEASE_REASON_SIZE_MAX);
}

static void get_offers(struct arena *arena, struct wire_reader *reader,
                       struct offers_message *offers)
{
    offers->offer_count = wire_get_count(reader, LEASE_OFFERS_MAX, OFFER_SIZE);
    struct lent_offer *items = arena_alloc(arena, offers->offer_count * sizeof(*items) + 1);
    for (uint32_t i = 0; i < offers->offer_count; i++) {
        items[i].offer = wire_get_u64(reader);
        get_resources(reader, &items[i].resources);
        items[i].roles = wire_get_u32(reader);
    }
    offers->offers = items;
}

/* As in a lease's document: far from where sums of times overflow. */
static const int64_t time_ms_max = INT64_C(1) << 52;

/* False: no such type. */
static bool decode_from_market(struct arena *arena, struct wire_reader *reader,
                               struct lease_message *message)
{
    switch ((int)message->type) {
    case LEASE_MESSAGE_WELCOME:
        message->welcome.version = wire_get_u32(reader);
        message->welcome.machine = wire_get_u64(reader);
        message->welcome.now_ms = wire_get_i64(reader);
        if (message->welcome.now_ms < 0 || message->welcome.now_ms > time_ms_max)
            wire_reader_fail(reader, "not a time");
        return true;
    case LEASE_MESSAGE_START:
        get_start(arena, reader, &message->start);
        return true;
    case LEASE_MESSAGE_RANK:
    case LEASE_MESSAGE_CHUNK_PEER:
        message->rank.lease = wire_get_u64(reader);
        message->rank.fence = wire_get_u64(reader);
        get_peer(reader, &message->rank.peer);
        message->rank.address_count = get_addresses(reader, message->rank.addresses);
        return true;
    case LEASE_MESSAGE_LOG_KEPT:
        message->log_kept.lease = wire_get_u64(reader);
        message->log_kept.fence = wire_get_u64(reader);
        message->log_kept.offset = wire_get_u64(reader);
        return true;
    case LEASE_MESSAGE_PEER:
        message->peer.lease = wire_get_u64(reader);
        message->peer.fence = wire_get_u64(reader);
        get_peer(reader, &message->peer.peer);
        return true;
    case LEASE_MESSAGE_RENEW:
        message->renew.document = wire_get_text(reader, LEASE_DOCUMENT_SIZE_MAX);
        wire_get_raw(reader, message->renew.signature, sizeof(message->renew.signature));
        return true;
    case LEASE_MESSAGE_STOP:
        get_stop(reader, &message->stop);
        return true;
    case LEASE_MESSAGE_STREAM_OPEN:
        message->stream_open.lease = wire_get_u64(reader);
        message->stream_open.fence = wire_get_u64(reader);
        message->stream_open.peer_lease = wire_get_u64(reader);
        wire_get_raw(reader, message->stream_open.ticket, sizeof(message->stream_open.ticket));
        return true;
    case LEASE_MESSAGE_OFFERS:
        get_offers(arena, reader, &message->offers);
        return true;
    case LEASE_MESSAGE_REFUSED:
        message->refused.is_final = get_bool(reader);
        message->refused.reason = wire_get_text(reader, LEASE_REASON_SIZE_MAX);
        return true;
    case LEASE_MESSAGE_EARNINGS:
        message->earnings.earned_micro = wire_get_i64(reader);
        message->earnings.withheld_micro = wire_get_i64(reader);
        return true;
    case LEASE_MESSAGE_PING:
        message->ping.nonce = wire_get_u64(reader);
        return true;
    case LEASE_MESSAGE_MEASURE:
        get_measure(reader, &message->measure);
        return true;
    case LEASE_MESSAGE_PAUSE:
        message->pause.is_paused = wire_get_bool(reader);
        message->pause.for_ms = wire_get_u64(reader);
        return true;
    case LEASE_MESSAGE_TRY:
        get_try(reader, &message->try);
        return true;
    default:
        return false;
    }
}

static bool decode_from_daemon(struct arena *arena, struct wire_reader *reader,
                               struct lease_message *message)
{
    switch ((int)message->type) {
    case LEASE_MESSAGE_HELLO:
        get_hello(arena, reader, &message->hello);
        return true;
    case LEASE_MESSAGE_HEARTBEAT:
        get_heartbeat(reader, &message->heartbeat);
        return true;
    case LEASE_MESSAGE_PONG:
        message->pong.nonce = wire_get_u64(reader);
        return true;
    case LEASE_MESSAGE_PROBE:
        message->probe.json = wire_get_text(reader, LEASE_PROBE_SIZE_MAX);
        return true;
    case LEASE_MESSAGE_FILL:
        message->fill.is_last = get_bool(reader);
        message->fill.bytes = wire_get_text(reader, LEASE_FILL_SIZE_MAX);
        return true;
    case LEASE_MESSAGE_STATE:
        get_state(reader, &message->state);
        return true;
    case LEASE_MESSAGE_METER:
        get_meter(reader, &message->meter);
        return true;
    case LEASE_MESSAGE_REPORT:
        message->report.lease = wire_get_u64(reader);
        message->report.fence = wire_get_u64(reader);
        message->report.json = wire_get_text(reader, LEASE_REPORT_SIZE_MAX);
        return true;
    case LEASE_MESSAGE_LOG:
        get_log(reader, &message->log);
        return true;
    case LEASE_MESSAGE_ARTIFACT:
        get_artifact(reader, &message->artifact);
        return true;
    case LEASE_MESSAGE_ADDRESSES:
    case LEASE_MESSAGE_CHUNKS_AT:
        message->addresses.lease = wire_get_u64(reader);
        message->addresses.fence = wire_get_u64(reader);
        message->addresses.address_count = get_addresses(reader, message->addresses.addresses);
        return true;
    case LEASE_MESSAGE_TRIED:
        message->tried.trial = wire_get_u64(reader);
        message->tried.rtt_us = wire_get_u32(reader);
        return true;
    case LEASE_MESSAGE_STREAM_READY:
        message->stream_ready.lease = wire_get_u64(reader);
        message->stream_ready.fence = wire_get_u64(reader);
        message->stream_ready.peer_lease = wire_get_u64(reader);
        return true;
    case LEASE_MESSAGE_YIELD:
        get_yield(reader, &message->yield);
        return true;
    default:
        return false;
    }
}

int lease_message_decode(struct arena *arena, uint16_t type, struct text payload,
                         struct lease_message *out_message, struct error *error)
{
    if (payload.size > LEASE_MESSAGE_SIZE_MAX)
        return error_set(error, ERROR_CORRUPT, "lease message of %zu bytes is too long",
                         payload.size);
    struct lease_message message;
    memset(&message, 0, sizeof(message));
    message.type = (enum lease_message_type)type;
    struct wire_reader reader;
    wire_reader_init(&reader, payload);
    if (!decode_from_daemon(arena, &reader, &message) &&
        !decode_from_market(arena, &reader, &message))
        return error_set(error, ERROR_CORRUPT, "unknown lease message type %u", type);
    if (wire_reader_finish(&reader, lease_message_type_name(message.type), error) < 0)
        return -1;
    *out_message = message;
    return 0;
}
