/* Lease messages, read: none of what comes is believed before it was looked at. Their layout is in
 * lease_message.c. */
#include "runtime/lease_message.h"
#include "wire/wire.h"

#include <string.h>

enum {
    FENCE_SIZE = 16,
    OFFER_SIZE = 8 + 5 * 8 + 4,
    PEER_SIZE = 8 + 8 + 1 + 4 + LEASE_KEY_SIZE + LEASE_TICKET_SIZE,
};

static void get_place(struct wire_reader *reader, enum lease_role *role, uint32_t *rank)
{
    const uint8_t number = wire_get_u8(reader);
    if (number >= LEASE_ROLE_COUNT)
        wire_reader_fail(reader, "unknown role");
    else
        *role = (enum lease_role)number;
    *rank = wire_get_u32(reader);
}

static void get_peer(struct wire_reader *reader, struct lease_peer *peer)
{
    peer->lease = wire_get_u64(reader);
    peer->fence = wire_get_u64(reader);
    get_place(reader, &peer->role, &peer->rank);
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
    yield->left_ms = wire_get_u64(reader);
    if (yield->left_ms > LEASE_PAUSE_MS_MAX)
        wire_reader_fail(reader, "a pause is too long");
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
    log->is_resumed = wire_get_bool(reader);
    log->is_last = wire_get_bool(reader);
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
    start->secrets = wire_get_text(reader, LEASE_SECRETS_SIZE_MAX);
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

static void get_checkpoint(struct wire_reader *reader, struct lease_checkpoint *checkpoint)
{
    wire_get_raw(reader, checkpoint->manifest, sizeof(checkpoint->manifest));
    checkpoint->size_bytes = wire_get_u64(reader);
}

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
        message->welcome.seen_ipv4 = wire_get_u32(reader);
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
    case LEASE_MESSAGE_CHECKPOINTS:
        message->checkpoints.lease = wire_get_u64(reader);
        message->checkpoints.fence = wire_get_u64(reader);
        get_checkpoint(reader, &message->checkpoints.of_job);
        get_checkpoint(reader, &message->checkpoints.of_rank);
        return true;
    case LEASE_MESSAGE_LOG_READER:
        message->log_reader.lease = wire_get_u64(reader);
        message->log_reader.fence = wire_get_u64(reader);
        message->log_reader.reader = wire_get_u64(reader);
        wire_get_raw(reader, message->log_reader.key, sizeof(message->log_reader.key));
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
        message->stream_open.peer_fence = wire_get_u64(reader);
        get_place(reader, &message->stream_open.peer_role, &message->stream_open.peer_rank);
        wire_get_raw(reader, message->stream_open.ticket, sizeof(message->stream_open.ticket));
        return true;
    case LEASE_MESSAGE_OFFERS:
        get_offers(arena, reader, &message->offers);
        return true;
    case LEASE_MESSAGE_REFUSED:
        message->refused.is_final = wire_get_bool(reader);
        message->refused.reason = wire_get_text(reader, LEASE_REASON_SIZE_MAX);
        return true;
    case LEASE_MESSAGE_EARNINGS:
        message->earnings.earned_micro = wire_get_i64(reader);
        message->earnings.withheld_micro = wire_get_i64(reader);
        if (message->earnings.earned_micro < 0 || message->earnings.withheld_micro < 0)
            wire_reader_fail(reader, "not an amount");
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
        message->fill.is_last = wire_get_bool(reader);
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
    case LEASE_MESSAGE_LOGS_AT:
        message->addresses.lease = wire_get_u64(reader);
        message->addresses.fence = wire_get_u64(reader);
        message->addresses.address_count = get_addresses(reader, message->addresses.addresses);
        return true;
    case LEASE_MESSAGE_TRIED:
        message->tried.trial = wire_get_u64(reader);
        message->tried.rtt_us = wire_get_u32(reader);
        return true;
    case LEASE_MESSAGE_CHECKPOINT_WANTED:
        message->checkpoint_wanted.lease = wire_get_u64(reader);
        message->checkpoint_wanted.fence = wire_get_u64(reader);
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

uint32_t hello_message_version(struct text payload)
{
    struct wire_reader reader;
    wire_reader_init(&reader, payload);
    return wire_get_u32(&reader);
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
