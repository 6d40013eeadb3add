#include "train/idx_reader.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static uint32_t read_u32_big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

enum { TYPE_U8 = 0x08, TYPE_FLOAT = 0x0d };

int idx_parse_header(const uint8_t *bytes, size_t size, struct idx_header *out_header,
                     struct error *error)
{
    if (size < 4)
        return error_set(error, ERROR_CORRUPT, "idx: %zu bytes are too few for a header", size);
    if (bytes[0] != 0 || bytes[1] != 0)
        return error_set(error, ERROR_CORRUPT,
                         "idx: magic %02x%02x%02x%02x does not start with two zero bytes", bytes[0],
                         bytes[1], bytes[2], bytes[3]);
    if (bytes[2] != TYPE_U8 && bytes[2] != TYPE_FLOAT)
        return error_set(error, ERROR_CORRUPT,
                         "idx: element type 0x%02x is neither 0x08 (bytes) nor 0x0d (floats)",
                         bytes[2]);
    const bool is_float = bytes[2] == TYPE_FLOAT;
    struct idx_header header = {
        .rank = bytes[3], .record_size = is_float ? sizeof(float) : 1, .is_float = is_float};
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
    const uint8_t magic[] = {0, 0, header->is_float ? TYPE_FLOAT : TYPE_U8, (uint8_t)header->rank};
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
        return error_set(error, ERROR_CORRUPT, "idx: %zu bytes follow after the last record",
                         size - expected);
    return 0;
}

/* With room for `size` bytes behind it; NULL when memory is out. */
static struct idx *idx_new(const struct idx_header *header, size_t size)
{
    struct idx *idx = malloc(sizeof(*idx) + size);
    if (!idx)
        return NULL;
    *idx = (struct idx){.header = *header, .bytes = (uint8_t *)(idx + 1), .size = size};
    return idx;
}

int idx_open_bytes(const uint8_t *bytes, size_t size, struct idx **out_idx, struct error *error)
{
    struct idx_header header;
    if (idx_parse_header(bytes, size, &header, error) < 0 || check_size(&header, size, error) < 0)
        return -1;
    struct idx *idx = idx_new(&header, size);
    if (!idx)
        return error_set(error, ERROR_EXHAUSTED, "idx: no memory for %zu bytes", size);
    memcpy(idx->bytes, bytes, size);
    *out_idx = idx;
    return 0;
}

/* gzread also passes raw bytes through. */
static int read_some(gzFile file, uint8_t *out, size_t size, size_t *out_read, struct error *error)
{
    enum { PIECE = 1 << 26 };
    size_t done = 0;
    while (done < size) {
        const size_t left = size - done;
        const int got = gzread(file, out + done, (unsigned)(left < PIECE ? left : PIECE));
        if (got < 0) {
            int code = 0;
            const char *reason = gzerror(file, &code);
            if (code == Z_ERRNO)
                return error_set_errno(error, errno, "read");
            return error_set(error, ERROR_CORRUPT, "gzip: %s", reason);
        }
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *out_read = done;
    return 0;
}

/* zlib reports a gzip stream that stops in the middle only when the file is closed or asked. */
static int check_stream_end(gzFile file, struct error *error)
{
    int code = Z_OK;
    const char *reason = gzerror(file, &code);
    if (code == Z_BUF_ERROR)
        return error_set(error, ERROR_CORRUPT, "gzip: the file ends in the middle");
    if (code < 0)
        return error_set(error, ERROR_CORRUPT, "gzip: %s", reason);
    return 0;
}

static int read_idx(gzFile file, size_t size_max, struct idx **out_idx, struct error *error)
{
    uint8_t start[IDX_HEADER_SIZE_MAX];
    size_t start_size = 0;
    struct idx_header header;
    if (read_some(file, start, 4, &start_size, error) < 0)
        return -1;
    if (start_size == 4 && start[3] >= 1 && start[3] <= IDX_RANK_MAX) {
        size_t more = 0;
        if (read_some(file, start + 4, (size_t)4 * start[3], &more, error) < 0)
            return -1;
        start_size += more;
    }
    if (check_stream_end(file, error) < 0 ||
        idx_parse_header(start, start_size, &header, error) < 0)
        return -1;
    const size_t size = whole_size(&header);
    if (size > size_max)
        return error_set(error, ERROR_EXHAUSTED, "idx: %zu bytes are more than the %zu allowed",
                         size, size_max);
    /* One more, to see whether bytes follow. */
    AUTO(idx) struct idx *idx = idx_new(&header, size + 1);
    if (!idx)
        return error_set(error, ERROR_EXHAUSTED, "idx: no memory for %zu bytes", size);
    memcpy(idx->bytes, start, header.header_size);
    size_t body = 0;
    if (read_some(file, idx->bytes + header.header_size, size - header.header_size + 1, &body,
                  error) < 0 ||
        check_stream_end(file, error) < 0)
        return -1;
    idx->size = header.header_size + body;
    if (check_size(&header, idx->size, error) < 0)
        return -1;
    *out_idx = TAKE(idx);
    return 0;
}

int idx_open(const char *path, size_t size_max, struct idx **out_idx, struct error *error)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    gzFile file = gzdopen(fd, "rb");
    if (!file)
        return error_set(error, ERROR_EXHAUSTED, "open \"%s\": no memory", path);
    (void)TAKE_FD(fd); /* gzclose closes it */
    const int result = read_idx(file, size_max, out_idx, error);
    gzclose_r(file); /* only read from: nothing to lose */
    return result < 0 ? error_wrap(error, "\"%s\"", path) : 0;
}

void idx_free(struct idx *idx)
{
    free(idx);
}
