#include "blob/blob_coding.h"

#include "blob/blob_store.h"

#include <inttypes.h>
#include <string.h>
#include <zstd.h>

/* Senders pack once, on machines of their own; the market stores and sends frames as they came. */
enum {
    LEVEL = 3,
    SAVING_DIVISOR = 16,
    SAMPLE_LEVEL = 1,
    SAMPLE_SAVING_DIVISOR = 8,
    SAMPLE_COUNT = 4,
    SAMPLE_BYTES = 16 << 10,
};

static const char *const coding_names[BLOB_CODING_COUNT] = {
    [BLOB_CODING_PLAIN] = "identity",
    [BLOB_CODING_ZSTD] = "zstd",
};

const char *blob_coding_name(enum blob_coding coding)
{
    return coding_names[coding];
}

int blob_coding_parse(struct text name, enum blob_coding *out_coding, struct error *error)
{
    if (name.size == 0) {
        *out_coding = BLOB_CODING_PLAIN;
        return 0;
    }
    for (int i = 0; i < BLOB_CODING_COUNT; i++)
        if (text_equal(name, text_of(coding_names[i]))) {
            *out_coding = (enum blob_coding)i;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "the content encoding is not identity or zstd");
}

/* Packing a chunk takes as long as sending it over a quick line: a few places of it tell whether
 * it would save enough. */
static bool is_worth_packing(struct text bytes)
{
    uint8_t sample[SAMPLE_COUNT * SAMPLE_BYTES];
    uint8_t packed[sizeof(sample) - sizeof(sample) / SAMPLE_SAVING_DIVISOR];
    if (bytes.size < 2 * sizeof(sample))
        return true;
    const size_t step = (bytes.size - SAMPLE_BYTES) / (SAMPLE_COUNT - 1);
    for (size_t i = 0; i < SAMPLE_COUNT; i++)
        memcpy(sample + i * SAMPLE_BYTES, bytes.data + i * step, SAMPLE_BYTES);
    return !ZSTD_isError(
        ZSTD_compress(packed, sizeof(packed), sample, sizeof(sample), SAMPLE_LEVEL));
}

bool blob_encode(struct text bytes, struct buffer *out)
{
    const size_t size_max = bytes.size - bytes.size / SAVING_DIVISOR;
    if (size_max >= bytes.size || !is_worth_packing(bytes)) /* the first: too short */
        return false;
    uint8_t *room = buffer_reserve(out, size_max);
    if (!room)
        return false;
    /* What does not fit does not pay. */
    const size_t size = ZSTD_compress(room, size_max, bytes.data, bytes.size, LEVEL);
    if (ZSTD_isError(size))
        return false;
    buffer_advance(out, size);
    return true;
}

int blob_decode(struct text frame, struct buffer *out, struct error *error)
{
    const unsigned long long plain = ZSTD_getFrameContentSize(frame.data, frame.size);
    if (plain == ZSTD_CONTENTSIZE_ERROR || plain == ZSTD_CONTENTSIZE_UNKNOWN)
        return error_set(error, ERROR_INVALID, "it is no zstd frame that says how much it holds");
    if (plain > BLOB_BYTES_MAX || plain <= frame.size)
        return error_set(error, ERROR_INVALID,
                         "a zstd frame of %zu bytes says it holds %llu: a chunk holds at most %d, "
                         "and a frame is smaller than what it holds",
                         frame.size, plain, BLOB_BYTES_MAX);
    if (ZSTD_findFrameCompressedSize(frame.data, frame.size) != frame.size)
        return error_set(error, ERROR_INVALID, "it is not one whole zstd frame");
    uint8_t *room = buffer_reserve(out, (size_t)plain);
    if (!room)
        return error_set(error, ERROR_EXHAUSTED, "no room for %llu bytes", plain);
    const size_t size = ZSTD_decompress(room, (size_t)plain, frame.data, frame.size);
    if (ZSTD_isError(size) || size != plain)
        return error_set(error, ERROR_INVALID, "the zstd frame is damaged");
    buffer_advance(out, size);
    return 0;
}
