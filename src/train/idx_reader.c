#include "train/idx_reader.h"

#include "base/assert.h"
#include "base/library.h"
#include "train/data_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static uint32_t read_u32_big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

int idx_parse_header(const uint8_t *bytes, size_t size, struct idx_header *out_header,
                     struct error *error)
{
    if (size < 4)
        return error_set(error, ERROR_CORRUPT, "idx: %zu bytes are too few for a header", size);
    if (bytes[0] != 0 || bytes[1] != 0)
        return error_set(error, ERROR_CORRUPT,
                         "idx: magic %02x%02x%02x%02x does not start with two zero bytes", bytes[0],
                         bytes[1], bytes[2], bytes[3]);
    if (bytes[2] != IDX_BYTE && bytes[2] != IDX_INT && bytes[2] != IDX_FLOAT)
        return error_set(error, ERROR_CORRUPT,
                         "idx: byte 2: element type 0x%02x is not 0x08 (bytes), 0x0c (ints) or "
                         "0x0d (floats)",
                         bytes[2]);
    const enum idx_element element = (enum idx_element)bytes[2];
    struct idx_header header = {
        .rank = bytes[3], .record_size = idx_element_size(element), .element = element};
    if (header.rank < 1 || header.rank > IDX_RANK_MAX)
        return error_set(error, ERROR_CORRUPT, "idx: rank %u is not from 1 to %d", header.rank,
                         IDX_RANK_MAX);
    header.header_size = 4 + 4 * (size_t)header.rank;
    if (size < header.header_size)
        return error_set(error, ERROR_CORRUPT, "idx: %zu bytes are too few for a header of rank %u",
                         size, header.rank);
    for (uint32_t i = 0; i < header.rank; i++) {
        header.sizes[i] = read_u32_big_endian(bytes + 4 + (size_t)4 * i);
        if (header.sizes[i] == 0 && i > 0)
            return error_set(error, ERROR_CORRUPT, "idx: dimension %u is empty", i + 1);
        /* A record of more than 1 GiB is no image; below, no product overflows. */
        if (i > 0 && header.sizes[i] > (1U << 30) / header.record_size)
            return error_set(error, ERROR_CORRUPT, "idx: a record is larger than 1 GiB");
        if (i > 0)
            header.record_size *= header.sizes[i];
    }
    *out_header = header;
    return 0;
}

void idx_append_header(struct buffer *buffer, const struct idx_header *header,
                       uint32_t record_count)
{
    ASSERT(header->rank >= 1 && header->rank <= IDX_RANK_MAX);
    const uint8_t magic[] = {0, 0, (uint8_t)header->element, (uint8_t)header->rank};
    buffer_append(buffer, magic, sizeof(magic));
    for (uint32_t i = 0; i < header->rank; i++) {
        const uint32_t size = i == 0 ? record_count : header->sizes[i];
        const uint8_t bytes[] = {(uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                                 (uint8_t)size};
        buffer_append(buffer, bytes, sizeof(bytes));
    }
}

static size_t whole_size(const struct idx_header *header)
{
    return header->header_size + (size_t)header->sizes[0] * header->record_size;
}

static int check_size(const struct idx_header *header, size_t size, struct error *error)
{
    const size_t expected = whole_size(header);
    if (size < expected)
        return error_set(error, ERROR_CORRUPT, "idx: truncated: %zu of %zu bytes", size, expected);
    if (size > expected)
        return error_set(error, ERROR_CORRUPT,
                         "idx: %zu bytes follow after the last record, from byte %zu",
                         size - expected, expected);
    return 0;
}

/* With `size` bytes to be filled. */
static int idx_new(const struct idx_header *header, size_t size, struct idx **out_idx,
                   uint8_t **out_bytes, struct error *error)
{
    struct idx *idx = calloc(1, sizeof(*idx));
    void *bytes;
    ASSERT(idx != NULL);
    if (spool_reserve(&idx->spool, size, &bytes, error) < 0) {
        idx_free(idx);
        return -1;
    }
    spool_advance(&idx->spool, size);
    idx->header = *header;
    idx->bytes = *out_bytes = bytes;
    idx->size = size;
    *out_idx = idx;
    return 0;
}

int idx_open_bytes(const uint8_t *bytes, size_t size, struct idx **out_idx, struct error *error)
{
    struct idx_header header;
    uint8_t *copy;
    if (idx_parse_header(bytes, size, &header, error) < 0 || check_size(&header, size, error) < 0 ||
        idx_new(&header, size, out_idx, &copy, error) < 0)
        return -1;
    memcpy(copy, bytes, size);
    return 0;
}

static int check_limit(const struct idx_header *header, size_t size_max, struct error *error)
{
    const size_t size = whole_size(header);
    if (size > size_max)
        return error_set(error, ERROR_EXHAUSTED, "idx: %zu bytes are more than the %zu allowed",
                         size, size_max);
    return 0;
}

static int read_idx(const char *path, size_t size_max, struct idx **out_idx, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    struct text start;
    struct idx_header header;
    if (data_stream_open(path, UINT64_MAX, &stream, error) < 0 ||
        data_stream_peek(stream, &start, error) < 0 ||
        idx_parse_header((const uint8_t *)start.data, start.size, &header, error) < 0 ||
        check_limit(&header, size_max, error) < 0)
        return -1;
    const size_t size = whole_size(&header);
    uint8_t *bytes;
    AUTO(idx) struct idx *idx = NULL;
    size_t got = 0;
    if (idx_new(&header, size, &idx, &bytes, error) < 0 ||
        data_stream_read(stream, bytes, size, &got, error) < 0 ||
        check_size(&header, got, error) < 0 || data_stream_expect_end(stream, error) < 0)
        return -1;
    *out_idx = TAKE(idx);
    return 0;
}

static int map_idx(int fd, size_t size, size_t size_max, struct idx **out_idx, struct error *error)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno, "map it");
    struct idx *idx = malloc(sizeof(*idx));
    ASSERT(idx != NULL);
    *idx = (struct idx){.bytes = bytes, .size = size, .is_mapped = true};
    if (idx_parse_header(bytes, size, &idx->header, error) < 0 ||
        check_limit(&idx->header, size_max, error) < 0 ||
        check_size(&idx->header, size, error) < 0) {
        idx_free(idx);
        return -1;
    }
    *out_idx = idx;
    return 0;
}

int idx_open(const char *path, size_t size_max, struct idx **out_idx, struct error *error)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    struct stat status;
    uint8_t magic[2];
    /* Neither gzip nor zstd begins with zeros. */
    const bool is_raw = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                        pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && magic[0] == 0;
    if ((is_raw ? map_idx(fd, (size_t)status.st_size, size_max, out_idx, error)
                : read_idx(path, size_max, out_idx, error)) < 0)
        return error_wrap(error, "\"%s\"", path);
    return 0;
}

void idx_free(struct idx *idx)
{
    if (!idx)
        return;
    if (idx->is_mapped)
        munmap(without_const(idx->bytes), idx->size);
    spool_done(&idx->spool);
    free(idx);
}
