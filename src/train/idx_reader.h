/*
 * Idx reader: the file format of MNIST and its kin, raw or compressed (gzip, zstd).
 *
 *     offset  size      what
 *     0       2         zero
 *     2       1         element: 0x08 (unsigned byte), 0x0c (int of four bytes) or 0x0d (float of
 *                       four bytes)
 *     3       1         rank r, 1 to IDX_RANK_MAX
 *     4       4 r       sizes; the first counts records
 *     4+4r    product   elements
 *
 * Sizes and elements are big-endian and stay as the file has them: idx_float and idx_int read one.
 *
 * Files come from outside: every size is checked against a maximum before memory is taken. A raw
 * file is mapped, not read, a compressed one lies in a spool: either may be larger than memory.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/scope.h"
#include "train/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { IDX_RANK_MAX = 4, IDX_HEADER_SIZE_MAX = 4 + 4 * IDX_RANK_MAX };

enum idx_element { IDX_BYTE = 0x08, IDX_INT = 0x0c, IDX_FLOAT = 0x0d };

struct idx_header {
    uint32_t rank;
    uint32_t sizes[IDX_RANK_MAX]; /* [0] counts records */
    size_t header_size;
    size_t record_size; /* bytes; 1 for labels */
    enum idx_element element;
};

struct idx {
    struct idx_header header;
    const uint8_t *bytes; /* the whole file, decompressed, header first */
    size_t size;
    bool is_mapped; /* else the bytes lie in the spool */
    struct spool spool;
};

/* Reads the header at the start of `size` bytes; more may follow. CORRUPT with what is wrong. */
MUST_CHECK int idx_parse_header(const uint8_t *bytes, size_t size, struct idx_header *out_header,
                                struct error *error);

static inline size_t idx_element_size(enum idx_element element)
{
    return element == IDX_BYTE ? 1 : 4;
}

/* The int at `bytes`, of four bytes. */
static inline int32_t idx_int(const uint8_t *bytes)
{
    uint32_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is big-endian");
    return (int32_t)__builtin_bswap32(bits);
}

/* The float at `bytes`, of four bytes. */
static inline float idx_float(const uint8_t *bytes)
{
    const int32_t bits = idx_int(bytes);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* The header's bytes again, with another record count: how a shard becomes a file of its own. */
void idx_append_header(struct buffer *buffer, const struct idx_header *header,
                       uint32_t record_count);

/*
 * Maps a file, or decompresses it where it starts with the magic of gzip or zstd. NOT_FOUND,
 * CORRUPT with the byte (magic, element, sizes, truncated, trailing bytes, bad compression),
 * EXHAUSTED past `size_max` bytes decompressed.
 */
MUST_CHECK int idx_open(const char *path, size_t size_max, struct idx **out_idx,
                        struct error *error);
/* The same from memory, raw bytes only; copies them. */
MUST_CHECK int idx_open_bytes(const uint8_t *bytes, size_t size, struct idx **out_idx,
                              struct error *error);
void idx_free(struct idx *idx); /* NULL is fine */
DEFINE_AUTO(idx);

static inline const uint8_t *idx_record(const struct idx *idx, uint32_t index)
{
    return idx->bytes + idx->header.header_size + (size_t)index * idx->header.record_size;
}
