#include "exchange/compressor.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct compressor {
    struct compressor_options options;
    enum codec codec; /* of the vector that is loaded */
    float threshold;
    float *vector; /* borrowed while it is sent */
    float *rest;
    float *momentum; /* NULL without */
};

int compressor_open(const struct compressor_options *options, struct compressor **out_compressor,
                    struct error *error)
{
    AUTO(compressor) struct compressor *compressor = memory_zeroed(1, sizeof(*compressor));
    ASSERT(options->count > 0);
    compressor->options = *options;
    const bool has_momentum = options->momentum > 0;
    compressor->rest = calloc(options->count, sizeof(float));
    if (has_momentum)
        compressor->momentum = calloc(options->count, sizeof(float));
    if (!compressor->rest || (has_momentum && !compressor->momentum))
        return error_set(error, ERROR_EXHAUSTED, "no memory to compress %zu parameters",
                         options->count);
    *out_compressor = TAKE(compressor);
    return 0;
}

void compressor_free(struct compressor *compressor)
{
    if (!compressor)
        return;
    free(compressor->rest);
    free(compressor->momentum);
    free(compressor);
}

enum codec compressor_load(struct compressor *compressor, float *vector, enum codec codec,
                           double density)
{
    const size_t count = compressor->options.count;
    float *momentum = compressor->momentum, *rest = compressor->rest;
    compressor->vector = vector;
    if (momentum)
        for (size_t i = 0; i < count; i++) {
            momentum[i] = (float)compressor->options.momentum * momentum[i] + vector[i];
            vector[i] = momentum[i];
        }
    for (size_t i = 0; i < count; i++)
        vector[i] += rest[i];
    const double lossy_bytes = (double)count * codec_bytes_per_float(codec, density);
    const bool is_lossy =
        codec_is_sane(vector, count) && (double)codec_sparse_bytes(vector, count) > lossy_bytes;
    compressor->codec = is_lossy ? codec : CODEC_F32;
    if (compressor->codec == CODEC_TOPK)
        compressor->threshold = codec_threshold(vector, count, density);
    return compressor->codec;
}

size_t compressor_next(struct compressor *compressor, size_t first, size_t count, uint8_t *out)
{
    float *vector = compressor->vector + first, *rest = compressor->rest + first;
    ASSERT(first + count <= compressor->options.count);
    const size_t size =
        codec_encode(compressor->codec, compressor->threshold, vector, count, out, rest);
    if (compressor->momentum)
        for (size_t i = 0; i < count; i++)
            compressor->momentum[first + i] *= rest[i] == 0.0F ? 1.0F : 0.0F;
    for (size_t i = 0; i < count; i++)
        rest[i] = vector[i] - rest[i];
    return size;
}
