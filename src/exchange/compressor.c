#include "exchange/compressor.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define SHARE_WAITED 0.1
#define SHARE_HIDDEN (1.0 / 3)

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
    AUTO(compressor) struct compressor *compressor = calloc(1, sizeof(*compressor));
    ASSERT(compressor && options->count > 0);
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
    compressor->codec = codec_is_sane(vector, count) ? codec : CODEC_F32;
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

enum codec compressor_choose(const struct compressor_link *link)
{
    static const enum codec by_loss[] = {CODEC_F32, CODEC_F16, CODEC_INT8, CODEC_1BIT, CODEC_TOPK};
    const double by_interval = link->interval_s * (link->is_hidden ? SHARE_HIDDEN : SHARE_WAITED);
    const double by_steps = link->is_hidden ? COMPRESSOR_STEPS_HIDDEN * link->step_s : 0;
    const double span_s = by_interval > by_steps ? by_interval : by_steps;
    enum codec least = CODEC_F32;
    if (link->bytes_per_second <= 0 || span_s <= 0)
        return CODEC_F32;
    for (size_t i = 0; i < sizeof(by_loss) / sizeof(*by_loss); i++) {
        const double bytes =
            2 * (double)link->count * codec_bytes_per_float(by_loss[i], link->density);
        if (bytes / link->bytes_per_second <= span_s)
            return by_loss[i];
        if (codec_bytes_per_float(by_loss[i], link->density) <
            codec_bytes_per_float(least, link->density))
            least = by_loss[i];
    }
    return least;
}
