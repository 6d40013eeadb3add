#include "server/packer.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    LEVEL = 1,
    PATTERN_SIZE_MAX = 64 << 10,
    POOR_PERCENT = 50, /* of its size: a pattern that leaves more than this serves badly */
    POOR_MAX = 256,    /* so many in a row call for another */
};

struct pattern {
    size_t user_count; /* packed texts, and the packer while it is the current one */
    ZSTD_CDict *to_pack;
    ZSTD_DDict *to_read;
};

struct packer {
    struct pattern *pattern; /* NULL before the first text */
    uint32_t poor_count;     /* in a row */
    ZSTD_CCtx *pack_context;
    ZSTD_DCtx *read_context;
    struct buffer scratch;
};

struct packed {
    struct pattern *pattern;
    uint32_t size, packed_size;
    uint8_t bytes[];
};

static void pattern_unref(struct pattern *pattern)
{
    if (!pattern || --pattern->user_count)
        return;
    ZSTD_freeCDict(pattern->to_pack);
    ZSTD_freeDDict(pattern->to_read);
    free(pattern);
}

static struct pattern *pattern_new(struct text text)
{
    const size_t size = text.size < PATTERN_SIZE_MAX ? text.size : PATTERN_SIZE_MAX;
    struct pattern *pattern = calloc(1, sizeof(*pattern));
    ASSERT(pattern);
    pattern->user_count = 1;
    pattern->to_pack = ZSTD_createCDict(text.data, size, LEVEL);
    pattern->to_read = ZSTD_createDDict(text.data, size);
    ASSERT(pattern->to_pack && pattern->to_read);
    return pattern;
}

struct packer *packer_new(void)
{
    struct packer *packer = calloc(1, sizeof(*packer));
    ASSERT(packer);
    packer->pack_context = ZSTD_createCCtx();
    packer->read_context = ZSTD_createDCtx();
    ASSERT(packer->pack_context && packer->read_context);
    buffer_init(&packer->scratch, SIZE_MAX);
    return packer;
}

void packer_free(struct packer *packer)
{
    if (!packer)
        return;
    pattern_unref(packer->pattern);
    ZSTD_freeCCtx(packer->pack_context);
    ZSTD_freeDCtx(packer->read_context);
    buffer_done(&packer->scratch);
    free(packer);
}

static void choose_pattern(struct packer *packer, struct text text)
{
    if (packer->pattern && packer->poor_count < POOR_MAX)
        return;
    pattern_unref(packer->pattern);
    packer->pattern = pattern_new(text);
    packer->poor_count = 0;
}

struct packed *packed_new(struct packer *packer, struct text text)
{
    ASSERT(text.size <= UINT32_MAX);
    choose_pattern(packer, text);
    buffer_clear(&packer->scratch);
    const size_t bound = ZSTD_compressBound(text.size);
    uint8_t *room = buffer_reserve(&packer->scratch, bound);
    const size_t size = ZSTD_compress_usingCDict(packer->pack_context, room, bound, text.data,
                                                 text.size, packer->pattern->to_pack);
    ASSERT(!ZSTD_isError(size)); /* there is room for any text */
    const bool is_poor = size * 100 > text.size * POOR_PERCENT;
    packer->poor_count = is_poor ? packer->poor_count + 1 : 0;
    struct packed *packed = malloc(sizeof(*packed) + size);
    ASSERT(packed);
    packed->pattern = packer->pattern;
    packed->pattern->user_count++;
    packed->size = (uint32_t)text.size;
    packed->packed_size = (uint32_t)size;
    memcpy(packed->bytes, room, size);
    return packed;
}

void packed_free(struct packed *packed)
{
    if (!packed)
        return;
    pattern_unref(packed->pattern);
    free(packed);
}

size_t packed_memory(const struct packed *packed)
{
    return sizeof(*packed) + packed->packed_size;
}

void packed_read(const struct packed *packed, struct packer *packer, struct buffer *out)
{
    uint8_t *room = buffer_reserve(out, packed->size);
    if (!room)
        return; /* overflowed, and says so */
    const size_t size =
        ZSTD_decompress_usingDDict(packer->read_context, room, packed->size, packed->bytes,
                                   packed->packed_size, packed->pattern->to_read);
    ASSERT(size == packed->size);
    buffer_advance(out, size);
}
