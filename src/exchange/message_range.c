/*
 * Exchange messages between the servers of one model:
 *
 *     SERVE     u16 version (9), u32 server, u32 servers, u64 parameter_count, u64 term
 *     ARRIVED   u32 rank, u64 lease, u64 fence, u64 session, u64 push, f64 square_sum
 *     GONE      u32 rank, u64 lease, u64 fence, u64 session, u8 whether a value was not finite
 *     SERVED    u64 received_bytes, u64 sent_bytes
 *     STATE     u64 cut, u64 version, u64 steps, u64 samples, i64 elapsed_ms, u8 has_momentum
 *     ACT       u8 kind, u32 worker, and of
 *               ADMIT    u64 session, u64 lease, u64 fence
 *               SCALE    u64 push, f64 weight
 *               APPLY    u64 push, f64 weight, 4 f64 rate, momentum, direct, carried
 *               GATHER   u64 push, f64 weight
 *               FOLD     f64 weight, 4 f64 as of APPLY
 *               ANSWER   u64 push, u8 codec, f32 density, u8 is_offer
 *               CUT      u64 number
 */
#include "base/assert.h"
#include "exchange/message_internal.h"

static void outer_put(struct buffer *payload, const struct exchange_act *act)
{
    wire_put_f64(payload, act->rate);
    wire_put_f64(payload, act->momentum);
    wire_put_f64(payload, act->direct);
    wire_put_f64(payload, act->carried);
}

static void act_put(struct buffer *payload, const struct exchange_act *act)
{
    wire_put_u8(payload, (uint8_t)act->kind);
    wire_put_u32(payload, act->worker);
    switch (act->kind) {
    case EXCHANGE_ACT_ADMIT:
        wire_put_u64(payload, act->number);
        wire_put_u64(payload, act->lease);
        wire_put_u64(payload, act->fence);
        return;
    case EXCHANGE_ACT_SCALE:
    case EXCHANGE_ACT_GATHER:
        wire_put_u64(payload, act->number);
        wire_put_f64(payload, act->weight);
        return;
    case EXCHANGE_ACT_APPLY:
        wire_put_u64(payload, act->number);
        wire_put_f64(payload, act->weight);
        outer_put(payload, act);
        return;
    case EXCHANGE_ACT_FOLD:
        wire_put_f64(payload, act->weight);
        outer_put(payload, act);
        return;
    case EXCHANGE_ACT_ANSWER:
        wire_put_u64(payload, act->number);
        wire_put_u8(payload, (uint8_t)act->codec);
        wire_put_f32(payload, act->density);
        wire_put_u8(payload, act->is_offer);
        return;
    case EXCHANGE_ACT_CUT:
        wire_put_u64(payload, act->number);
        return;
    case EXCHANGE_ACT_PART:
    case EXCHANGE_ACT_RESTART:
    case EXCHANGE_ACT_KEEP:
    case EXCHANGE_ACT_RETURN:
        return;
    case EXCHANGE_ACT_COUNT:
        break;
    }
    ASSERT(act->kind < EXCHANGE_ACT_COUNT);
}

void range_message_encode(struct buffer *payload, const struct exchange_message *message)
{
    if (message->type == EXCHANGE_SERVE) {
        wire_put_u16(payload, EXCHANGE_VERSION);
        wire_put_u32(payload, message->serve.server);
        wire_put_u32(payload, message->serve.servers);
        wire_put_u64(payload, message->serve.parameter_count);
        wire_put_u64(payload, message->serve.term);
    } else if (message->type == EXCHANGE_ARRIVED) {
        wire_put_u32(payload, message->arrived.rank);
        wire_put_u64(payload, message->arrived.lease);
        wire_put_u64(payload, message->arrived.fence);
        wire_put_u64(payload, message->arrived.session);
        wire_put_u64(payload, message->arrived.push);
        wire_put_f64(payload, message->arrived.square_sum);
    } else if (message->type == EXCHANGE_GONE) {
        wire_put_u32(payload, message->gone.rank);
        wire_put_u64(payload, message->gone.lease);
        wire_put_u64(payload, message->gone.fence);
        wire_put_u64(payload, message->gone.session);
        wire_put_u8(payload, message->gone.is_refused);
    } else if (message->type == EXCHANGE_SERVED) {
        wire_put_u64(payload, message->served.received_bytes);
        wire_put_u64(payload, message->served.sent_bytes);
    } else if (message->type == EXCHANGE_STATE) {
        wire_put_u64(payload, message->state.cut);
        wire_put_u64(payload, message->state.version);
        wire_put_u64(payload, message->state.steps);
        wire_put_u64(payload, message->state.samples);
        wire_put_i64(payload, message->state.elapsed_ms);
        wire_put_u8(payload, message->state.has_momentum);
    } else {
        ASSERT(message->type == EXCHANGE_ACT);
        act_put(payload, &message->act);
    }
}

void message_get_server(struct wire_reader *reader, uint32_t *out_server, uint32_t *out_servers)
{
    *out_server = wire_get_u32(reader);
    *out_servers = wire_get_u32(reader);
    if (*out_servers == 0 || *out_servers > EXCHANGE_SERVERS_MAX || *out_server > *out_servers)
        wire_reader_fail(reader, "no such range");
}

/* What enters the model by it. */
static double weight_get(struct wire_reader *reader)
{
    const double weight = message_get_finite(reader);
    if (weight < 0)
        wire_reader_fail(reader, "a weight below 0");
    return weight;
}

static void outer_get(struct wire_reader *reader, struct exchange_act *act)
{
    act->rate = message_get_finite(reader);
    act->momentum = message_get_finite(reader);
    act->direct = message_get_finite(reader);
    act->carried = message_get_finite(reader);
}

static void act_get(struct wire_reader *reader, struct exchange_act *act)
{
    *act = (struct exchange_act){0};
    const uint8_t kind = wire_get_u8(reader);
    act->worker = wire_get_u32(reader);
    if (kind >= EXCHANGE_ACT_COUNT) {
        wire_reader_fail(reader, "unknown act");
        return;
    }
    act->kind = kind;
    if (act->kind != EXCHANGE_ACT_PART && act->kind != EXCHANGE_ACT_RESTART &&
        act->kind != EXCHANGE_ACT_KEEP && act->kind != EXCHANGE_ACT_RETURN &&
        act->kind != EXCHANGE_ACT_FOLD)
        act->number = wire_get_u64(reader);
    if (act->kind == EXCHANGE_ACT_ADMIT) {
        act->lease = wire_get_u64(reader);
        act->fence = wire_get_u64(reader);
    }
    if (act->kind == EXCHANGE_ACT_SCALE || act->kind == EXCHANGE_ACT_GATHER ||
        act->kind == EXCHANGE_ACT_APPLY || act->kind == EXCHANGE_ACT_FOLD)
        act->weight = weight_get(reader);
    if (act->kind == EXCHANGE_ACT_APPLY || act->kind == EXCHANGE_ACT_FOLD)
        outer_get(reader, act);
    if (act->kind == EXCHANGE_ACT_ANSWER) {
        act->codec = message_get_codec(reader);
        act->density = wire_get_f32(reader);
        act->is_offer = wire_get_bool(reader);
        if (!(act->density > 0 && act->density <= 1))
            wire_reader_fail(reader, "a density out of range");
    }
}

static void serve_get(struct wire_reader *reader, struct exchange_serve *serve)
{
    if (wire_get_u16(reader) != EXCHANGE_VERSION)
        wire_reader_fail(reader, "unknown version");
    message_get_server(reader, &serve->server, &serve->servers);
    if (serve->server == 0)
        wire_reader_fail(reader, "the first range is the lead's");
    serve->parameter_count = wire_get_u64(reader);
    serve->term = wire_get_u64(reader);
}

static void state_get(struct wire_reader *reader, struct exchange_state *state)
{
    state->cut = wire_get_u64(reader);
    state->version = wire_get_u64(reader);
    state->steps = wire_get_u64(reader);
    state->samples = wire_get_u64(reader);
    state->elapsed_ms = wire_get_i64(reader);
    if (state->elapsed_ms < 0)
        wire_reader_fail(reader, "a time below 0");
    state->has_momentum = wire_get_bool(reader);
}

void range_message_decode(struct wire_reader *reader, struct exchange_message *message)
{
    if (message->type == EXCHANGE_SERVE) {
        serve_get(reader, &message->serve);
    } else if (message->type == EXCHANGE_ARRIVED) {
        message->arrived.rank = wire_get_u32(reader);
        message->arrived.lease = wire_get_u64(reader);
        message->arrived.fence = wire_get_u64(reader);
        message->arrived.session = wire_get_u64(reader);
        message->arrived.push = wire_get_u64(reader);
        message->arrived.square_sum = message_get_finite(reader);
        if (message->arrived.square_sum < 0)
            wire_reader_fail(reader, "a sum of squares below 0");
    } else if (message->type == EXCHANGE_GONE) {
        message->gone.rank = wire_get_u32(reader);
        message->gone.lease = wire_get_u64(reader);
        message->gone.fence = wire_get_u64(reader);
        message->gone.session = wire_get_u64(reader);
        message->gone.is_refused = wire_get_bool(reader);
    } else if (message->type == EXCHANGE_SERVED) {
        message->served.received_bytes = wire_get_u64(reader);
        message->served.sent_bytes = wire_get_u64(reader);
    } else if (message->type == EXCHANGE_STATE) {
        state_get(reader, &message->state);
    } else {
        ASSERT(message->type == EXCHANGE_ACT);
        act_get(reader, &message->act);
    }
}
