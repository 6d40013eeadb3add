/*
 * Compressor: sends a stream of vectors through a lossy codec and loses nothing for good: what one
 * vector could not carry is added to the next (error feedback).
 *
 *     load   m = momentum * m + u;  v = m + rest     momentum 0: v = u + rest
 *     next   a run of v is encoded;  rest = v - what arrives;  m = 0 where something of v arrives
 *
 * With momentum (Deep Gradient Compression's correction, for top-k) a parameter keeps the speed it
 * has gathered while it waits for its turn. It is for updates that have none of their own.
 *
 * One compressor belongs to one stream and one thread at a time.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "exchange/codec.h"

struct compressor_options {
    size_t count;    /* floats of a vector */
    double momentum; /* in [0, 1) */
};

struct compressor;

/* EXHAUSTED without memory for the rest. */
MUST_CHECK int compressor_open(const struct compressor_options *options,
                               struct compressor **out_compressor, struct error *error);
void compressor_free(struct compressor *compressor); /* NULL is fine */
DEFINE_AUTO(compressor);

/*
 * The next vector; it is changed, and not to be written until its last run is encoded. `density` is
 * the share top-k keeps, in (0, 1]. Returns the codec that it travels by: f32, with the rest in it,
 * when a value is not sane, so that the other end sees it as it is; and when so many are exactly 0
 * that the others take no more as they are than all by the codec.
 */
enum codec compressor_load(struct compressor *compressor, float *vector, enum codec codec,
                           double density);
/* Encodes `count` floats from `first` of the vector into `out` (of codec_size_max); returns the
 * bytes written. Runs come in order and without gaps. */
size_t compressor_next(struct compressor *compressor, size_t first, size_t count, uint8_t *out);
