/*
 * Vector: floats on their way through a link, in runs of EXCHANGE_DATA_FLOATS, the last with what
 * is left. A run is the payload of one DATA frame:
 *
 *     u64 index of its first float, then the bytes of its codec (codec.c)
 *
 * How a sender makes its runs:
 *
 *     whole        f32: borrowed as they lie, nothing is copied; or what they are above a base; or,
 *                  where most are exactly 0, the others by their places
 *     by a rest    what a codec loses goes with the next vector (compressor.h)
 *     by a shadow  the shadow is what the other end has; a run carries the difference, and what
 *                  the codec loses is still different next time
 *
 * Both ends of a shadow add the same floats in the same order: they stay equal bit for bit.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "exchange/codec.h"
#include "exchange/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room to work in; one serves any number of vectors of one thread. */
struct vector_scratch {
    uint8_t bytes[EXCHANGE_PAYLOAD_MAX];
    float floats[EXCHANGE_DATA_FLOATS];
};

struct compressor;

struct vector_sender {
    const float *values;
    size_t count, done;
    enum codec codec;
    struct compressor *compressor; /* loaded with the values; or NULL */
    float *shadow;                 /* of `count`; or NULL. A f32 run sets it */
    const float *base;             /* of `count`; or NULL. What is sent is values - base, f32 */
    float threshold;               /* top-k's, of a shadow */
};

struct vector_run {
    uint8_t head[8];
    struct text body; /* borrowed from the values or the scratch */
    size_t float_count;
    bool is_sane; /* of a difference to a base: codec_is_sane; else it is not looked at */
};

/* Starts anew with these values; `density` is what top-k keeps of the difference to the shadow. A
 * codec other than f32 needs a compressor or a shadow. */
void vector_send_begin(struct vector_sender *sender, const float *values, size_t count,
                       enum codec codec, double density, struct vector_scratch *scratch);
/* Where the next run ends. */
size_t vector_send_until(const struct vector_sender *sender);
/* The next run, which is then taken to be sent. */
void vector_send_next(struct vector_sender *sender, struct vector_scratch *scratch,
                      struct vector_run *out_run);

/* Tells vectors apart that are not equal bit for bit; no protection against somebody who tries. */
uint64_t vector_digest(const float *values, size_t count);

struct vector_receiver {
    float *values;
    size_t count, done;
    enum codec codec;
    float *shadow; /* of `count`; or NULL: runs are the values themselves */
};

/*
 * Takes the payload of a DATA frame: CORRUPT unless it continues exactly where the vector stands;
 * INVALID when a value is not finite, or as good as. On failure the vector is not to be used.
 */
MUST_CHECK int vector_take(struct vector_receiver *receiver, struct text payload,
                           struct vector_scratch *scratch, struct error *error);

/* Where the next run may be received past its index, `size` bytes: in the vector itself; NULL: it
 * is no such run, and goes by vector_take. */
void *vector_place(const struct vector_receiver *receiver, size_t size);
/* The same as vector_take for a run of which the index is `head` and `size` bytes lie in that
 * place. `copy` (NULL: none) is another vector that it is written to, too. */
MUST_CHECK int vector_take_placed(struct vector_receiver *receiver, struct text head, size_t size,
                                  float *copy, struct error *error);
