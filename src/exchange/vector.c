#include "exchange/vector.h"

#include "base/assert.h"
#include "exchange/compressor.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <string.h>

_Static_assert((int)EXCHANGE_DATA_FLOATS <= (int)CODEC_RUN_MAX, "a run is encoded at once");

static size_t run_count(size_t count, size_t done)
{
    return count - done < EXCHANGE_DATA_FLOATS ? count - done : EXCHANGE_DATA_FLOATS;
}

/* ---- Out ------------------------------------------------------------------------------------- */

/* Of a sample of the differences. */
static float threshold_of(const struct vector_sender *sender, double density,
                          struct vector_scratch *scratch)
{
    const size_t stride = sender->count / EXCHANGE_DATA_FLOATS + 1;
    size_t count = 0;
    for (size_t i = 0; i < sender->count; i += stride)
        scratch->floats[count++] = sender->values[i] - sender->shadow[i];
    return codec_threshold(scratch->floats, count, density);
}

void vector_send_begin(struct vector_sender *sender, const float *values, size_t count,
                       enum codec codec, double density, struct vector_scratch *scratch)
{
    sender->values = values;
    sender->count = count;
    sender->done = 0;
    sender->codec = codec;
    ASSERT(codec == CODEC_F32 || sender->compressor || sender->shadow);
    ASSERT(!sender->base || codec == CODEC_F32);
    if (codec == CODEC_TOPK && sender->shadow)
        sender->threshold = threshold_of(sender, density, scratch);
}

static void subtract(const float *restrict values, const float *restrict base, float *restrict out,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = values[i] - base[i];
}

/* f32: borrowed, unless most are 0. x86-64 and arm64 are little-endian: the floats lie in memory as
 * they travel. */
static struct text whole_run(const float *values, size_t count, uint8_t *room)
{
    const size_t sparse = codec_sparse_encode(values, count, room);
    if (sparse > 0)
        return (struct text){(const char *)room, sparse};
    return (struct text){(const char *)values, count * sizeof(float)};
}

static size_t encode_difference(struct vector_sender *sender, size_t count,
                                struct vector_scratch *scratch)
{
    const float *values = sender->values + sender->done;
    float *shadow = sender->shadow + sender->done, *floats = scratch->floats;
    subtract(values, shadow, floats, count);
    const size_t size =
        codec_encode(sender->codec, sender->threshold, floats, count, scratch->bytes, floats);
    for (size_t i = 0; i < count; i++)
        shadow[i] += floats[i];
    return size;
}

size_t vector_send_until(const struct vector_sender *sender)
{
    return sender->done + run_count(sender->count, sender->done);
}

void vector_send_next(struct vector_sender *sender, struct vector_scratch *scratch,
                      struct vector_run *out_run)
{
    ASSERT(sender->done < sender->count);
    const size_t count = run_count(sender->count, sender->done);
    uint64_t index = sender->done;
    for (size_t i = 0; i < sizeof(out_run->head); i++, index >>= 8)
        out_run->head[i] = (uint8_t)index;
    out_run->float_count = count;
    out_run->is_sane = true;
    out_run->body.data = (const char *)scratch->bytes;
    if (sender->compressor) {
        out_run->body.size =
            compressor_next(sender->compressor, sender->done, count, scratch->bytes);
    } else if (sender->codec != CODEC_F32) {
        out_run->body.size = encode_difference(sender, count, scratch);
    } else if (sender->base) {
        out_run->is_sane = codec_subtract_sane(sender->values + sender->done,
                                               sender->base + sender->done, scratch->floats, count);
        out_run->body = whole_run(scratch->floats, count, scratch->bytes);
    } else {
        const float *values = sender->values + sender->done;
        out_run->body = whole_run(values, count, scratch->bytes);
        if (sender->shadow)
            memcpy(sender->shadow + sender->done, values, count * sizeof(float));
    }
    sender->done += count;
}

uint64_t vector_digest(const float *values, size_t count)
{
    /* Lanes, so that one multiplication does not wait for the other. */
    enum { LANES = 8 };
    const uint64_t prime = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t lanes[LANES];
    for (size_t lane = 0; lane < LANES; lane++)
        lanes[lane] = prime * (lane + 1);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        uint32_t bits[LANES];
        memcpy(bits, values + i, sizeof(bits));
        for (size_t lane = 0; lane < LANES; lane++) {
            lanes[lane] = (lanes[lane] ^ bits[lane]) * prime;
            lanes[lane] ^= lanes[lane] >> 29;
        }
    }
    uint64_t digest = count;
    for (; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof(bits));
        digest = (digest ^ bits) * prime;
        digest ^= digest >> 29;
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        digest = (digest ^ lanes[lane]) * prime;
        digest ^= digest >> 29;
    }
    return digest;
}

/* ---- In -------------------------------------------------------------------------------------- */

static int not_sane(struct error *error)
{
    return error_set(error, ERROR_INVALID, "data: a value is not finite, or as good as");
}

/* Most runs by far: one pass from the frame to the vector. */
static int take_whole_run(struct vector_receiver *receiver, struct text body, size_t count,
                          struct error *error)
{
    float *values = receiver->values + receiver->done;
    if (body.size == count * sizeof(float))
        return codec_copy_sane(body.data, values, count) ? 0 : not_sane(error);
    if (codec_decode(CODEC_F32, body, values, count, error) < 0)
        return -1;
    return codec_is_sane(values, count) ? 0 : not_sane(error);
}

static int take_run(struct vector_receiver *receiver, struct text body, size_t count,
                    struct vector_scratch *scratch, struct error *error)
{
    float *values = receiver->values + receiver->done;
    float *shadow = receiver->shadow ? receiver->shadow + receiver->done : NULL;
    const bool is_difference = shadow && receiver->codec != CODEC_F32;
    if (codec_decode(receiver->codec, body, is_difference ? scratch->floats : values, count,
                     error) < 0)
        return -1;
    if (is_difference)
        for (size_t i = 0; i < count; i++) {
            shadow[i] += scratch->floats[i];
            values[i] = shadow[i];
        }
    else if (shadow)
        memcpy(shadow, values, count * sizeof(float));
    if (!codec_is_sane(values, count))
        return not_sane(error);
    return 0;
}

/* Where the vector stands is where the run must begin. */
static int check_index(const struct vector_receiver *receiver, uint64_t index, struct error *error)
{
    if (index != receiver->done || receiver->done == receiver->count)
        return error_set(error, ERROR_CORRUPT,
                         "data: a run at %" PRIu64 " where %zu of %zu floats have come", index,
                         receiver->done, receiver->count);
    return 0;
}

static bool is_whole(const struct vector_receiver *receiver)
{
    return receiver->codec == CODEC_F32 && !receiver->shadow;
}

int vector_take(struct vector_receiver *receiver, struct text payload,
                struct vector_scratch *scratch, struct error *error)
{
    struct wire_reader reader;
    wire_reader_init(&reader, payload);
    const uint64_t index = wire_get_u64(&reader);
    if (wire_reader_is_failed(&reader))
        return error_set(error, ERROR_CORRUPT, "data: %zu bytes are no run", payload.size);
    if (check_index(receiver, index, error) < 0)
        return -1;
    const size_t count = run_count(receiver->count, receiver->done);
    const struct text body = {payload.data + sizeof(index), payload.size - sizeof(index)};
    if ((is_whole(receiver) ? take_whole_run(receiver, body, count, error)
                            : take_run(receiver, body, count, scratch, error)) < 0)
        return -1;
    receiver->done += count;
    return 0;
}

void *vector_place(const struct vector_receiver *receiver, size_t size)
{
    const size_t count = run_count(receiver->count, receiver->done);
    return is_whole(receiver) && count > 0 && size == count * sizeof(float)
               ? receiver->values + receiver->done
               : NULL;
}

int vector_take_placed(struct vector_receiver *receiver, struct text head, size_t size, float *copy,
                       struct error *error)
{
    enum { BLOCK = 4096 }; /* is checked and copied while it is in the cache */
    struct wire_reader reader;
    wire_reader_init(&reader, head);
    const uint64_t index = wire_get_u64(&reader);
    ASSERT(!wire_reader_is_failed(&reader));
    if (check_index(receiver, index, error) < 0)
        return -1;
    const size_t until = receiver->done + run_count(receiver->count, receiver->done);
    ASSERT(size == (until - receiver->done) * sizeof(float)); /* or it would have had no place */
    for (size_t at = receiver->done; at < until; at += BLOCK) {
        const size_t count = until - at < BLOCK ? until - at : BLOCK;
        if (!codec_is_sane(receiver->values + at, count))
            return not_sane(error);
        if (copy)
            memcpy(copy + at, receiver->values + at, count * sizeof(float));
    }
    receiver->done = until;
    return 0;
}
