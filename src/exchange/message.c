/*
 * Exchange messages: the payloads of frames (wire/frame.h), all integers little-endian:
 *
 *     JOIN      u16 version (11), u32 rank, u64 shard_samples, u64 parameter_count, u64 term,
 *               u64 session, u32 server, u32 servers
 *     PUSH      u64 term, u64 number, u32 steps, u64 samples, f64 loss, i64 compute_ns,
 *               i64 commit_ns, u8 codec, u64 first_step, u64 first_sample
 *     PROGRESS  u64 steps, u64 samples, f64 steps_per_second
 *     LEAVE     u8 whether its loss was not finite any more
 *     WANT      nothing
 *     DATA      a run of floats (vector.h); they come in order and without gaps
 *     MODEL     u64 term, u64 version, u64 push, u64 samples_max, u8 codec, u64 session,
 *               u8 is_base, i64 held_ns
 *     SETTINGS  u32 local_steps, i64 period_ns, u32 overlap, u32 batch, u8 codec, f32 density,
 *               f32 momentum
 *     ACCEPTED  u64 push
 *     STOP      text reason
 *     OFFER     u64 term, u64 digest, u64 samples_max, u64 session, u8 is_base
 *     RECOMPUTE u64 check, u32 rank, u64 first_step, u64 first_sample, u32 steps, u32 batch
 *     RECOMPUTED u64 check, u8 whether it is done
 *     CHECK_DATA as DATA, whole floats
 *     AGAIN     u64 session
 *
 * and those between servers in message_range.c. A vector has as many floats as the link's range;
 * the DATA frames of one end when it is full.
 */
#include "exchange/message.h"

#include "base/assert.h"
#include "exchange/message_internal.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const int64_t span_ns_max = INT64_C(24) * 3600 * 1000000000;

void exchange_message_encode(struct buffer *payload, const struct exchange_message *message)
{
    switch (message->type) {
    case EXCHANGE_JOIN:
        wire_put_u16(payload, EXCHANGE_VERSION);
        wire_put_u32(payload, message->join.rank);
        wire_put_u64(payload, message->join.shard_samples);
        wire_put_u64(payload, message->join.parameter_count);
        wire_put_u64(payload, message->join.term);
        wire_put_u64(payload, message->join.session);
        wire_put_u32(payload, message->join.server);
        wire_put_u32(payload, message->join.servers);
        return;
    case EXCHANGE_PUSH:
        wire_put_u64(payload, message->push.term);
        wire_put_u64(payload, message->push.number);
        wire_put_u32(payload, message->push.steps);
        wire_put_u64(payload, message->push.samples);
        wire_put_f64(payload, message->push.loss);
        wire_put_i64(payload, message->push.compute_ns);
        wire_put_i64(payload, message->push.commit_ns);
        wire_put_u8(payload, (uint8_t)message->push.codec);
        wire_put_u64(payload, message->push.first_step);
        wire_put_u64(payload, message->push.first_sample);
        return;
    case EXCHANGE_PROGRESS:
        wire_put_u64(payload, message->progress.steps);
        wire_put_u64(payload, message->progress.samples);
        wire_put_f64(payload, message->progress.steps_per_second);
        return;
    case EXCHANGE_LEAVE:
        wire_put_u8(payload, message->has_diverged);
        return;
    case EXCHANGE_WANT:
        return;
    case EXCHANGE_OFFER:
        wire_put_u64(payload, message->offer.term);
        wire_put_u64(payload, message->offer.digest);
        wire_put_u64(payload, message->offer.samples_max);
        wire_put_u64(payload, message->offer.session);
        wire_put_u8(payload, message->offer.is_base);
        return;
    case EXCHANGE_MODEL:
        wire_put_u64(payload, message->model.term);
        wire_put_u64(payload, message->model.version);
        wire_put_u64(payload, message->model.push);
        wire_put_u64(payload, message->model.samples_max);
        wire_put_u8(payload, (uint8_t)message->model.codec);
        wire_put_u64(payload, message->model.session);
        wire_put_u8(payload, message->model.is_base);
        wire_put_i64(payload,
                     message->model.held_ns < span_ns_max ? message->model.held_ns : span_ns_max);
        return;
    case EXCHANGE_SETTINGS:
        wire_put_u32(payload, message->settings.local_steps);
        wire_put_i64(payload, message->settings.period_ns);
        wire_put_u32(payload, message->settings.overlap);
        wire_put_u32(payload, message->settings.batch);
        wire_put_u8(payload, message->settings.is_plain);
        wire_put_u8(payload, (uint8_t)message->settings.codec);
        wire_put_f32(payload, message->settings.density);
        wire_put_f32(payload, message->settings.momentum);
        return;
    case EXCHANGE_ACCEPTED:
        wire_put_u64(payload, message->accepted_push);
        return;
    case EXCHANGE_RECOMPUTE:
        wire_put_u64(payload, message->recompute.check);
        wire_put_u32(payload, message->recompute.rank);
        wire_put_u64(payload, message->recompute.first_step);
        wire_put_u64(payload, message->recompute.first_sample);
        wire_put_u32(payload, message->recompute.steps);
        wire_put_u32(payload, message->recompute.batch);
        return;
    case EXCHANGE_RECOMPUTED:
        wire_put_u64(payload, message->recomputed.check);
        wire_put_u8(payload, message->recomputed.is_done);
        return;
    case EXCHANGE_STOP:
        ASSERT(message->stop_reason.size <= EXCHANGE_REASON_MAX);
        wire_put_text(payload, message->stop_reason);
        return;
    case EXCHANGE_AGAIN:
        wire_put_u64(payload, message->again_session);
        return;
    case EXCHANGE_SERVE:
    case EXCHANGE_ARRIVED:
    case EXCHANGE_GONE:
    case EXCHANGE_SERVED:
    case EXCHANGE_STATE:
    case EXCHANGE_ACT:
        range_message_encode(payload, message);
        return;
    case EXCHANGE_DATA:
    case EXCHANGE_CHECK_DATA:
        break;
    }
    ASSERT(message->type != EXCHANGE_DATA && message->type != EXCHANGE_CHECK_DATA);
}

int64_t message_get_span(struct wire_reader *reader)
{
    const int64_t span_ns = wire_get_i64(reader);
    if (span_ns < 0 || span_ns > span_ns_max)
        wire_reader_fail(reader, "a span is out of range");
    return span_ns;
}

double message_get_finite(struct wire_reader *reader)
{
    const double value = wire_get_f64(reader);
    if (!isfinite(value))
        wire_reader_fail(reader, "a number is not finite");
    return value;
}

enum codec message_get_codec(struct wire_reader *reader)
{
    const uint8_t codec = wire_get_u8(reader);
    if (codec >= CODEC_COUNT)
        wire_reader_fail(reader, "unknown codec");
    return codec < CODEC_COUNT ? (enum codec)codec : CODEC_F32;
}

static void push_decode(struct wire_reader *reader, struct exchange_push *push)
{
    push->term = wire_get_u64(reader);
    push->number = wire_get_u64(reader);
    push->steps = wire_get_u32(reader);
    push->samples = wire_get_u64(reader);
    push->loss = message_get_finite(reader);
    push->compute_ns = message_get_span(reader);
    push->commit_ns = message_get_span(reader);
    push->codec = message_get_codec(reader);
    push->first_step = wire_get_u64(reader);
    push->first_sample = wire_get_u64(reader);
    /* A bill rests on it: a worker may not claim more than any machine can do. */
    if (push->samples > (uint64_t)push->steps << 20)
        wire_reader_fail(reader, "more samples than its steps can have");
    if (push->steps == 0)
        wire_reader_fail(reader, "a push without a step");
}

static void recompute_decode(struct wire_reader *reader, struct exchange_recompute *recompute)
{
    recompute->check = wire_get_u64(reader);
    recompute->rank = wire_get_u32(reader);
    recompute->first_step = wire_get_u64(reader);
    recompute->first_sample = wire_get_u64(reader);
    recompute->steps = wire_get_u32(reader);
    recompute->batch = wire_get_u32(reader);
    if (recompute->steps == 0 || recompute->batch == 0 || recompute->batch > EXCHANGE_BATCH_MAX)
        wire_reader_fail(reader, "no push is made of that");
}

static void settings_decode(struct wire_reader *reader, struct exchange_settings *settings)
{
    settings->local_steps = wire_get_u32(reader);
    settings->period_ns = message_get_span(reader);
    if ((settings->local_steps == 0) == (settings->period_ns == 0))
        wire_reader_fail(reader, "one of steps and period must be given");
    settings->overlap = wire_get_u32(reader);
    settings->batch = wire_get_u32(reader);
    if (settings->batch > EXCHANGE_BATCH_MAX)
        wire_reader_fail(reader, "a batch out of range");
    settings->is_plain = wire_get_bool(reader);
    settings->codec = message_get_codec(reader);
    settings->density = wire_get_f32(reader);
    settings->momentum = wire_get_f32(reader);
    if (!(settings->density > 0 && settings->density <= 1) ||
        !(settings->momentum >= 0 && settings->momentum < 1))
        wire_reader_fail(reader, "a density or momentum out of range");
}

static void join_decode(struct wire_reader *reader, struct exchange_join *join)
{
    if (wire_get_u16(reader) != EXCHANGE_VERSION)
        wire_reader_fail(reader, "unknown version");
    join->rank = wire_get_u32(reader);
    join->shard_samples = wire_get_u64(reader);
    join->parameter_count = wire_get_u64(reader);
    join->term = wire_get_u64(reader);
    join->session = wire_get_u64(reader);
    message_get_server(reader, &join->server, &join->servers);
    if (join->server == join->servers)
        wire_reader_fail(reader, "no such range");
}

static void message_decode(struct wire_reader *reader, struct exchange_message *message)
{
    switch (message->type) {
    case EXCHANGE_JOIN:
        join_decode(reader, &message->join);
        return;
    case EXCHANGE_PUSH:
        push_decode(reader, &message->push);
        return;
    case EXCHANGE_PROGRESS:
        message->progress.steps = wire_get_u64(reader);
        message->progress.samples = wire_get_u64(reader);
        message->progress.steps_per_second = message_get_finite(reader);
        return;
    case EXCHANGE_LEAVE:
        message->has_diverged = wire_get_bool(reader);
        return;
    case EXCHANGE_WANT:
        return;
    case EXCHANGE_OFFER:
        message->offer.term = wire_get_u64(reader);
        message->offer.digest = wire_get_u64(reader);
        message->offer.samples_max = wire_get_u64(reader);
        message->offer.session = wire_get_u64(reader);
        message->offer.is_base = wire_get_bool(reader);
        return;
    case EXCHANGE_MODEL:
        message->model.term = wire_get_u64(reader);
        message->model.version = wire_get_u64(reader);
        message->model.push = wire_get_u64(reader);
        message->model.samples_max = wire_get_u64(reader);
        message->model.codec = message_get_codec(reader);
        message->model.session = wire_get_u64(reader);
        message->model.is_base = wire_get_bool(reader);
        message->model.held_ns = message_get_span(reader);
        return;
    case EXCHANGE_SETTINGS:
        settings_decode(reader, &message->settings);
        return;
    case EXCHANGE_ACCEPTED:
        message->accepted_push = wire_get_u64(reader);
        return;
    case EXCHANGE_RECOMPUTE:
        recompute_decode(reader, &message->recompute);
        return;
    case EXCHANGE_RECOMPUTED:
        message->recomputed.check = wire_get_u64(reader);
        message->recomputed.is_done = wire_get_bool(reader);
        return;
    case EXCHANGE_STOP:
        message->stop_reason = wire_get_text(reader, EXCHANGE_REASON_MAX);
        return;
    case EXCHANGE_AGAIN:
        message->again_session = wire_get_u64(reader);
        return;
    case EXCHANGE_SERVE:
    case EXCHANGE_ARRIVED:
    case EXCHANGE_GONE:
    case EXCHANGE_SERVED:
    case EXCHANGE_STATE:
    case EXCHANGE_ACT:
        range_message_decode(reader, message);
        return;
    case EXCHANGE_DATA:
    case EXCHANGE_CHECK_DATA:
        break;
    }
    wire_reader_fail(reader, "unknown type");
}

int exchange_message_decode(uint16_t type, struct text payload,
                            struct exchange_message *out_message, struct error *error)
{
    struct wire_reader reader;
    wire_reader_init(&reader, payload);
    struct exchange_message message = {.type = type};
    message_decode(&reader, &message);
    if (wire_reader_finish(&reader, "exchange message", error) < 0)
        return -1;
    *out_message = message;
    return 0;
}

void exchange_identity_format(uint64_t lease, uint64_t fence, char out[EXCHANGE_IDENTITY_SIZE])
{
    const int size =
        snprintf(out, EXCHANGE_IDENTITY_SIZE, "lease:%" PRIu64 ":%" PRIu64, lease, fence);
    ASSERT(size > 0 && size < EXCHANGE_IDENTITY_SIZE);
}

int exchange_identity_parse(struct text identity, uint64_t *out_lease, uint64_t *out_fence,
                            struct error *error)
{
    struct text kind, rest, lease, fence;
    if (!text_cut(identity, ':', &kind, &rest) || !text_equal(kind, TEXT("lease")) ||
        !text_cut(rest, ':', &lease, &fence))
        return error_set(error, ERROR_INVALID, "not the identity of a lease");
    if (text_parse_u64(lease, out_lease, error) < 0 || text_parse_u64(fence, out_fence, error) < 0)
        return error_wrap(error, "identity of a lease");
    return 0;
}

int exchange_check_term(uint64_t term, uint64_t known, struct error *error)
{
    if (term < known)
        return error_set(error, ERROR_REFUSED,
                         "a stream to a parameter server of term %" PRIu64
                         ", which one of term %" PRIu64 " has replaced",
                         term, known);
    return 0;
}
