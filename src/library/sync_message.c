/*
 * Sync messages: the payloads of frames (wire/frame.h), all integers little-endian:
 *
 *     HELLO     u16 version (1), u32 rank, u32 world, u64 process, u64 done, u64 term, u64 steps
 *     CALL      u64 round, u8 kind, u32 root, u32 size
 *     MODEL     u64 parameter_count, u64 steps
 *     WELCOME   u16 version (1), u64 process of the host
 *     RESULT    u64 round, u32 size, u32 contributors
 *     REFUSED   u64 round, text reason
 *     OPENED    u64 term, u16 port, u64 parameter_count
 *     DATA      1 to SYNC_DATA_MAX_BYTES bytes
 *     ALIVE, BYE, WANT_MODEL  nothing
 */
#include "library/sync_message.h"

#include "base/assert.h"
#include "wire/wire.h"

#include <inttypes.h>

const char *sync_call_name(enum sync_call_kind kind)
{
    static const char *const names[SYNC_CALL_KIND_COUNT] = {"barrier", "broadcast", "allreduce"};
    ASSERT(kind < SYNC_CALL_KIND_COUNT);
    return names[kind];
}

static void hello_encode(struct buffer *payload, const struct sync_hello *hello)
{
    wire_put_u16(payload, SYNC_MESSAGE_VERSION);
    wire_put_u32(payload, hello->rank);
    wire_put_u32(payload, hello->world);
    wire_put_u64(payload, hello->process);
    wire_put_u64(payload, hello->done);
    wire_put_u64(payload, hello->term);
    wire_put_u64(payload, hello->steps);
}

void sync_message_encode(struct buffer *payload, const struct sync_message *message)
{
    switch (message->type) {
    case SYNC_HELLO:
        hello_encode(payload, &message->hello);
        return;
    case SYNC_CALL:
        wire_put_u64(payload, message->call.round);
        wire_put_u8(payload, (uint8_t)message->call.kind);
        wire_put_u32(payload, message->call.root);
        wire_put_u32(payload, message->call.size);
        return;
    case SYNC_MODEL:
        wire_put_u64(payload, message->model.parameter_count);
        wire_put_u64(payload, message->model.steps);
        return;
    case SYNC_WELCOME:
        wire_put_u16(payload, SYNC_MESSAGE_VERSION);
        wire_put_u64(payload, message->welcome_host);
        return;
    case SYNC_RESULT:
        wire_put_u64(payload, message->result.round);
        wire_put_u32(payload, message->result.size);
        wire_put_u32(payload, message->result.contributors);
        return;
    case SYNC_REFUSED:
        wire_put_u64(payload, message->refused.round);
        wire_put_text(payload, message->refused.reason);
        return;
    case SYNC_OPENED:
        wire_put_u64(payload, message->opened.term);
        wire_put_u16(payload, message->opened.port);
        wire_put_u64(payload, message->opened.parameter_count);
        return;
    case SYNC_DATA:
        wire_put_raw(payload, message->data.data, message->data.size);
        return;
    case SYNC_ALIVE:
    case SYNC_BYE:
    case SYNC_WANT_MODEL:
        return;
    }
}

static void version_decode(struct wire_reader *reader)
{
    if (wire_get_u16(reader) != SYNC_MESSAGE_VERSION)
        wire_reader_fail(reader, "another version of the sync engine");
}

static void hello_decode(struct wire_reader *reader, struct sync_hello *out)
{
    version_decode(reader);
    out->rank = wire_get_u32(reader);
    out->world = wire_get_u32(reader);
    out->process = wire_get_u64(reader);
    out->done = wire_get_u64(reader);
    out->term = wire_get_u64(reader);
    out->steps = wire_get_u64(reader);
    if (out->world == 0 || out->world > SYNC_WORLD_MAX || out->rank >= out->world)
        wire_reader_fail(reader, "a rank that is not of the world");
    if (out->process == 0)
        wire_reader_fail(reader, "no process");
}

static void call_decode(struct wire_reader *reader, struct sync_call *out)
{
    out->round = wire_get_u64(reader);
    const uint8_t kind = wire_get_u8(reader);
    out->kind = kind < SYNC_CALL_KIND_COUNT ? kind : SYNC_CALL_BARRIER;
    out->root = wire_get_u32(reader);
    out->size = wire_get_u32(reader);
    if (out->round == 0 || kind >= SYNC_CALL_KIND_COUNT || out->root >= SYNC_WORLD_MAX)
        wire_reader_fail(reader, "no such call");
    if (out->size > SYNC_ROUND_MAX_BYTES || (out->size == 0) != (kind == SYNC_CALL_BARRIER) ||
        (kind == SYNC_CALL_ALLREDUCE && out->size % sizeof(float) != 0))
        wire_reader_fail(reader, "a size that no round has");
}

static void result_decode(struct wire_reader *reader, struct sync_result *out)
{
    out->round = wire_get_u64(reader);
    out->size = wire_get_u32(reader);
    out->contributors = wire_get_u32(reader);
    if (out->round == 0 || out->size > SYNC_ROUND_MAX_BYTES || out->contributors > SYNC_WORLD_MAX)
        wire_reader_fail(reader, "a result of no round");
}

static void opened_decode(struct wire_reader *reader, struct sync_opened *out)
{
    out->term = wire_get_u64(reader);
    out->port = wire_get_u16(reader);
    out->parameter_count = wire_get_u64(reader);
    if (out->term == 0 || out->parameter_count == 0 || out->parameter_count > SYNC_MODEL_MAX)
        wire_reader_fail(reader, "no parameter server");
}

static void model_decode(struct wire_reader *reader, struct sync_model *out)
{
    out->parameter_count = wire_get_u64(reader);
    out->steps = wire_get_u64(reader);
    if (out->parameter_count > SYNC_MODEL_MAX)
        wire_reader_fail(reader, "too large a model");
}

int sync_message_decode(uint16_t type, struct text payload, struct sync_message *out,
                        struct error *error)
{
    struct wire_reader reader;
    wire_reader_init(&reader, payload);
    *out = (struct sync_message){.type = type};
    switch (type) {
    case SYNC_HELLO:
        hello_decode(&reader, &out->hello);
        break;
    case SYNC_CALL:
        call_decode(&reader, &out->call);
        break;
    case SYNC_MODEL:
        model_decode(&reader, &out->model);
        break;
    case SYNC_WELCOME:
        version_decode(&reader);
        out->welcome_host = wire_get_u64(&reader);
        break;
    case SYNC_RESULT:
        result_decode(&reader, &out->result);
        break;
    case SYNC_REFUSED:
        out->refused.round = wire_get_u64(&reader);
        out->refused.reason = wire_get_text(&reader, SYNC_REASON_MAX);
        break;
    case SYNC_OPENED:
        opened_decode(&reader, &out->opened);
        break;
    case SYNC_DATA:
        if (payload.size == 0 || payload.size > SYNC_DATA_MAX_BYTES)
            wire_reader_fail(&reader, "a piece of no size or too large");
        out->data = payload;
        reader.offset = payload.size;
        break;
    case SYNC_ALIVE:
    case SYNC_BYE:
    case SYNC_WANT_MODEL:
        break;
    default:
        return error_set(error, ERROR_CORRUPT, "a message of no known kind between ranks: %u",
                         type);
    }
    return wire_reader_finish(&reader, "a message between ranks", error);
}
