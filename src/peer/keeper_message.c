/*
 * Encodings, in the order of the bytes (wire/wire.h):
 *
 *     SETUP    u8 log_level, u64 machine, [32] server_public_key, text leases_dir, text blobs_dir,
 *              u64 disk_bytes, u32 gpus, u64 cache_bytes, u8 is_direct, open, text data_path,
 *              text index_url, u32 count, text software..., text sdk_folder,
 *              functions, bytes sandbox_host
 *     functions  u32 memory_mb, u32 time_ms, u32 keep_warm_ms, u64 process_bytes, text name,
 *              text url, text token, text store, five times text key
 *     open     u32 count, u32 resolver..., u32 count, (u32 address, u32 bits)..., i64 kbit_per_s
 *     TAKE     u32 version, u64 lease, u64 fence
 *     MARKET   bool is_linked, i64 ahead_ms, text server_url, text fingerprint, text link_address,
 *              u32 link_ipv4, u32 seen_ipv4
 *     RECLAIM  u32 grace_ms, text reason
 *     YIELD    u8 level
 *     RELEASE  nothing
 *     HELLO    u32 version, u8 state, text document, [64] signature
 *
 * TAKE and HELLO begin with the version for good, so that it can be told in any.
 */
#include "peer/keeper_message.h"

#include "wire/wire.h"

const char *yield_level_name(enum yield_level level)
{
    static const char *const names[YIELD_LEVEL_COUNT] = {
        [YIELD_FULL] = "full", [YIELD_LOW] = "low", [YIELD_FROZEN] = "frozen"};
    return level < YIELD_LEVEL_COUNT ? names[level] : "unknown";
}

static void open_encode(const struct open_terms *terms, struct buffer *payload)
{
    wire_put_u32(payload, terms->resolver_count);
    for (uint32_t i = 0; i < terms->resolver_count; i++)
        wire_put_u32(payload, terms->resolvers[i]);
    wire_put_u32(payload, terms->closed_count);
    for (uint32_t i = 0; i < terms->closed_count; i++) {
        wire_put_u32(payload, terms->closed[i].address);
        wire_put_u32(payload, terms->closed[i].bits);
    }
    wire_put_i64(payload, terms->kbit_per_s);
}

static uint32_t count_decode(struct wire_reader *reader, uint32_t max)
{
    const uint32_t count = wire_get_u32(reader);
    if (count <= max)
        return count;
    wire_reader_fail(reader, "too many");
    return 0;
}

static void open_decode(struct wire_reader *reader, struct open_terms *terms)
{
    terms->resolver_count = count_decode(reader, OPEN_RESOLVERS_MAX);
    for (uint32_t i = 0; i < terms->resolver_count; i++)
        terms->resolvers[i] = wire_get_u32(reader);
    terms->closed_count = count_decode(reader, OPEN_CLOSED_MAX);
    for (uint32_t i = 0; i < terms->closed_count; i++) {
        terms->closed[i].address = wire_get_u32(reader);
        terms->closed[i].bits = wire_get_u32(reader);
        if (terms->closed[i].bits > 32)
            wire_reader_fail(reader, "no network");
    }
    terms->kbit_per_s = wire_get_i64(reader);
    if (terms->kbit_per_s < 0 || terms->kbit_per_s > OPEN_KBIT_MAX)
        wire_reader_fail(reader, "no rate");
}

static void functions_encode(const struct keeper_functions *functions, struct buffer *payload)
{
    wire_put_u32(payload, functions->memory_mb);
    wire_put_u32(payload, functions->time_ms);
    wire_put_u32(payload, functions->keep_warm_ms);
    wire_put_u64(payload, functions->process_bytes);
    wire_put_text(payload, functions->name);
    wire_put_text(payload, functions->url);
    wire_put_text(payload, functions->token);
    wire_put_text(payload, functions->store);
    for (size_t i = 0; i < KEEPER_KEY_COUNT; i++)
        wire_put_text(payload, functions->keys[i]);
}

static void functions_decode(struct wire_reader *reader, struct keeper_functions *functions)
{
    functions->memory_mb = wire_get_u32(reader);
    functions->time_ms = wire_get_u32(reader);
    functions->keep_warm_ms = wire_get_u32(reader);
    functions->process_bytes = wire_get_u64(reader);
    if (functions->process_bytes > INT64_MAX)
        wire_reader_fail(reader, "no memory");
    functions->name = wire_get_text(reader, KEEPER_ADDRESS_MAX);
    functions->url = wire_get_text(reader, KEEPER_ADDRESS_MAX);
    functions->token = wire_get_text(reader, KEEPER_KEY_MAX);
    functions->store = wire_get_text(reader, KEEPER_PATH_MAX);
    for (size_t i = 0; i < KEEPER_KEY_COUNT; i++)
        functions->keys[i] = wire_get_text(reader, KEEPER_KEY_MAX);
}

static void setup_encode(const struct keeper_setup *setup, struct buffer *payload)
{
    wire_put_u8(payload, setup->log_level);
    wire_put_u64(payload, setup->machine);
    wire_put_raw(payload, setup->server_public_key, sizeof(setup->server_public_key));
    wire_put_text(payload, setup->leases_dir);
    wire_put_text(payload, setup->blobs_dir);
    wire_put_u64(payload, setup->disk_bytes);
    wire_put_u32(payload, setup->gpus);
    wire_put_u64(payload, setup->cache_bytes);
    wire_put_bool(payload, setup->is_direct);
    open_encode(&setup->open, payload);
    wire_put_text(payload, setup->data_path);
    wire_put_text(payload, setup->index_url);
    wire_put_u32(payload, setup->software_count);
    for (uint32_t i = 0; i < setup->software_count; i++)
        wire_put_text(payload, setup->software[i]);
    wire_put_text(payload, setup->sdk_folder);
    functions_encode(&setup->functions, payload);
    wire_put_text(payload, setup->sandbox_host);
}

static void setup_decode(struct wire_reader *reader, struct keeper_setup *setup)
{
    setup->log_level = wire_get_u8(reader);
    setup->machine = wire_get_u64(reader);
    wire_get_raw(reader, setup->server_public_key, sizeof(setup->server_public_key));
    setup->leases_dir = wire_get_text(reader, KEEPER_PATH_MAX);
    setup->blobs_dir = wire_get_text(reader, KEEPER_PATH_MAX);
    setup->disk_bytes = wire_get_u64(reader);
    setup->gpus = wire_get_u32(reader);
    setup->cache_bytes = wire_get_u64(reader);
    setup->is_direct = wire_get_bool(reader);
    open_decode(reader, &setup->open);
    setup->data_path = wire_get_text(reader, KEEPER_PATH_MAX);
    setup->index_url = wire_get_text(reader, KEEPER_ADDRESS_MAX);
    setup->software_count = wire_get_u32(reader);
    if (setup->software_count > KEEPER_SOFTWARE_MAX) {
        wire_reader_fail(reader, "too much software");
        setup->software_count = 0;
    }
    for (uint32_t i = 0; i < setup->software_count; i++)
        setup->software[i] = wire_get_text(reader, KEEPER_PATH_MAX);
    setup->sdk_folder = wire_get_text(reader, KEEPER_PATH_MAX);
    functions_decode(reader, &setup->functions);
    setup->sandbox_host = wire_get_text(reader, KEEPER_SANDBOX_MAX);
}

static void market_encode(const struct keeper_market *market, struct buffer *payload)
{
    wire_put_bool(payload, market->is_linked);
    wire_put_i64(payload, market->ahead_ms);
    wire_put_text(payload, market->server_url);
    wire_put_text(payload, market->fingerprint);
    wire_put_text(payload, market->link_address);
    wire_put_u32(payload, market->link_ipv4);
    wire_put_u32(payload, market->seen_ipv4);
}

static void market_decode(struct wire_reader *reader, struct keeper_market *market)
{
    market->is_linked = wire_get_bool(reader);
    market->ahead_ms = wire_get_i64(reader);
    market->server_url = wire_get_text(reader, KEEPER_ADDRESS_MAX);
    market->fingerprint = wire_get_text(reader, KEEPER_ADDRESS_MAX);
    market->link_address = wire_get_text(reader, KEEPER_ADDRESS_MAX);
    market->link_ipv4 = wire_get_u32(reader);
    market->seen_ipv4 = wire_get_u32(reader);
}

static void hello_decode(struct wire_reader *reader, struct keeper_hello *hello)
{
    hello->version = wire_get_u32(reader);
    const uint8_t state = wire_get_u8(reader);
    if (state >= LEASE_RUN_STATE_COUNT)
        wire_reader_fail(reader, "unknown state");
    hello->state = state < LEASE_RUN_STATE_COUNT ? state : LEASE_RUN_STARTING;
    hello->gpus = wire_get_u32(reader);
    hello->document = wire_get_text(reader, LEASE_DOCUMENT_SIZE_MAX);
    wire_get_raw(reader, hello->signature, sizeof(hello->signature));
}

void keeper_message_encode(const struct keeper_message *message, struct buffer *payload)
{
    switch (message->type) {
    case KEEPER_MESSAGE_SETUP:
        setup_encode(&message->setup, payload);
        break;
    case KEEPER_MESSAGE_TAKE:
        wire_put_u32(payload, message->take.version);
        wire_put_u64(payload, message->take.lease);
        wire_put_u64(payload, message->take.fence);
        break;
    case KEEPER_MESSAGE_MARKET:
        market_encode(&message->market, payload);
        break;
    case KEEPER_MESSAGE_RECLAIM:
        wire_put_u32(payload, message->reclaim.grace_ms);
        wire_put_text(payload, message->reclaim.reason);
        break;
    case KEEPER_MESSAGE_YIELD:
        wire_put_u8(payload, (uint8_t)message->yield);
        break;
    case KEEPER_MESSAGE_HELLO:
        wire_put_u32(payload, message->hello.version);
        wire_put_u8(payload, (uint8_t)message->hello.state);
        wire_put_u32(payload, message->hello.gpus);
        wire_put_text(payload, message->hello.document);
        wire_put_raw(payload, message->hello.signature, sizeof(message->hello.signature));
        break;
    case KEEPER_MESSAGE_RELEASE:
    case KEEPER_MESSAGE_END:
        break;
    }
}

static void yield_decode(struct wire_reader *reader, enum yield_level *level)
{
    const uint8_t number = wire_get_u8(reader);
    if (number >= YIELD_LEVEL_COUNT)
        wire_reader_fail(reader, "unknown level");
    *level = number < YIELD_LEVEL_COUNT ? number : YIELD_FULL;
}

int keeper_message_decode(uint16_t type, struct text payload, struct keeper_message *out_message,
                          struct error *error)
{
    struct wire_reader reader;
    struct keeper_message message = {.type = (enum keeper_message_type)type};
    wire_reader_init(&reader, payload);
    switch (message.type) {
    case KEEPER_MESSAGE_SETUP:
        setup_decode(&reader, &message.setup);
        break;
    case KEEPER_MESSAGE_TAKE:
        message.take.version = wire_get_u32(&reader);
        message.take.lease = wire_get_u64(&reader);
        message.take.fence = wire_get_u64(&reader);
        break;
    case KEEPER_MESSAGE_MARKET:
        market_decode(&reader, &message.market);
        break;
    case KEEPER_MESSAGE_RECLAIM:
        message.reclaim.grace_ms = wire_get_u32(&reader);
        message.reclaim.reason = wire_get_text(&reader, LEASE_REASON_SIZE_MAX);
        break;
    case KEEPER_MESSAGE_YIELD:
        yield_decode(&reader, &message.yield);
        break;
    case KEEPER_MESSAGE_RELEASE:
        break;
    case KEEPER_MESSAGE_HELLO:
        hello_decode(&reader, &message.hello);
        break;
    case KEEPER_MESSAGE_END:
    default: /* the number came from outside the enumeration */
        wire_reader_fail(&reader, "unknown type");
        break;
    }
    if (wire_reader_finish(&reader, "keeper message", error) < 0)
        return -1;
    *out_message = message;
    return 0;
}
