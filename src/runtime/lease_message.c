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
 *     YIELD         u8 yield, u64 left_ms
 *     ADDRESSES     u64 lease, u64 fence, addresses
 *     CHUNKS_AT     the same
 *     LOGS_AT       the same
 *     CHECKPOINT_WANTED  u64 lease, u64 fence
 *     TRIED         u64 trial, u32 rtt_us
 *     WELCOME       u32 version, u64 machine, i64 now_ms, u32 seen_ipv4
 *     START         text document, [64] signature, [32] key, text fetch_token, text secrets,
 *                   u32 count, count x peer
 *     PEER          u64 lease, u64 fence, peer
 *     STOP          u64 lease, u64 fence, u32 grace_ms, text reason
 *     STREAM_OPEN   u64 lease, u64 fence, u64 peer_lease, u64 peer_fence, place, [32] ticket
 *     OFFERS        u32 count, count x (u64 offer, resources, u32 roles)
 *     RENEW         text document, [64] signature
 *     REFUSED       u8 is_final, text reason
 *     PING          u64 nonce
 *     MEASURE       u32 bytes
 *     PAUSE         u8 is_paused (0 or 1), u64 for_ms
 *     RANK          u64 lease, u64 fence, peer, addresses
 *     CHUNK_PEER    the same
 *     LOG_KEPT      u64 lease, u64 fence, u64 offset
 *     LOG_READER    u64 lease, u64 fence, u64 reader, [32] key
 *     CHECKPOINTS   u64 lease, u64 fence, twice ([32] manifest, u64 size_bytes)
 *     TRY           u64 trial, [32] key, [32] ticket, u32 limit_ms, addresses
 *     EARNINGS      i64 earned_micro, i64 withheld_micro
 *     resources     i64 cores_milli, i64 ram_bytes, i64 gpus_milli, i64 disk_bytes,
 *                   i64 bandwidth_kbit
 *     addresses     u32 count, count x text
 *     place         u8 role, u32 rank
 *     peer          u64 lease, u64 fence, place, [32] key, [32] ticket
 *
 * The signature of METER is Ed25519 over the 16 bytes "souk-meter-v2\0\0\0" and the nine integers
 * as encoded.
 */
#include "runtime/lease_message.h"

#include "base/assert.h"
#include "wire/wire.h"

#include <string.h>

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
    case LEASE_MESSAGE_LOGS_AT:
        return "LOGS_AT";
    case LEASE_MESSAGE_LOG_READER:
        return "LOG_READER";
    case LEASE_MESSAGE_CHECKPOINT_WANTED:
        return "CHECKPOINT_WANTED";
    case LEASE_MESSAGE_CHECKPOINTS:
        return "CHECKPOINTS";
    }
    return "unknown";
}

bool lease_peer_dials(const struct lease_peer *peer)
{
    static const uint8_t none[LEASE_KEY_SIZE];
    return memcmp(peer->key, none, sizeof(none)) != 0;
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

static void put_place(struct buffer *buffer, enum lease_role role, uint32_t rank)
{
    ASSERT(role < LEASE_ROLE_COUNT);
    wire_put_u8(buffer, (uint8_t)role);
    wire_put_u32(buffer, rank);
}

static void put_peer(struct buffer *buffer, const struct lease_peer *peer)
{
    put_fence(buffer, peer->lease, peer->fence);
    put_place(buffer, peer->role, peer->rank);
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
    put_text(buffer, start->secrets, LEASE_SECRETS_SIZE_MAX);
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
    case LEASE_MESSAGE_LOGS_AT:
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
        wire_put_u64(buffer, message->yield.left_ms);
        return;
    }
    UNREACHABLE("a message without an encoder");
}

static void put_checkpoint(struct buffer *payload, const struct lease_checkpoint *checkpoint)
{
    wire_put_raw(payload, checkpoint->manifest, sizeof(checkpoint->manifest));
    wire_put_u64(payload, checkpoint->size_bytes);
}

void lease_message_encode(const struct lease_message *message, struct buffer *payload)
{
    switch ((int)message->type) {
    case LEASE_MESSAGE_WELCOME:
        wire_put_u32(payload, message->welcome.version);
        wire_put_u64(payload, message->welcome.machine);
        wire_put_i64(payload, message->welcome.now_ms);
        wire_put_u32(payload, message->welcome.seen_ipv4);
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
    case LEASE_MESSAGE_CHECKPOINT_WANTED:
        put_fence(payload, message->checkpoint_wanted.lease, message->checkpoint_wanted.fence);
        return;
    case LEASE_MESSAGE_CHECKPOINTS:
        put_fence(payload, message->checkpoints.lease, message->checkpoints.fence);
        put_checkpoint(payload, &message->checkpoints.of_job);
        put_checkpoint(payload, &message->checkpoints.of_rank);
        return;
    case LEASE_MESSAGE_LOG_READER:
        put_fence(payload, message->log_reader.lease, message->log_reader.fence);
        wire_put_u64(payload, message->log_reader.reader);
        wire_put_raw(payload, message->log_reader.key, sizeof(message->log_reader.key));
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
        wire_put_u64(payload, message->stream_open.peer_fence);
        put_place(payload, message->stream_open.peer_role, message->stream_open.peer_rank);
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
