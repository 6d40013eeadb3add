#include "train/data_stream.h"

#include "base/assert.h"
#include "base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

enum { PIECE = 256 << 10, ZSTD_WINDOW_LOG_MAX = 27 };

enum coding { CODING_NONE, CODING_GZIP, CODING_ZSTD };

struct data_stream {
    int fd;             /* -1: from memory */
    struct text memory; /* what is left of it */
    enum coding coding;
    uint8_t *input; /* compressed bytes, PIECE of them; raw ones go straight to the window */
    size_t input_at, input_size;
    bool is_input_over;
    bool is_between; /* two gzip members or zstd frames: the file may end here */
    z_stream gzip;
    ZSTD_DStream *zstd;
    struct buffer window; /* decompressed, not yet taken from `window_at` */
    size_t window_at;
    bool is_over;
    uint64_t taken; /* bytes given out */
    uint64_t size_max;
    uint64_t line;
};

/* ---- Where bytes come from ------------------------------------------------------------------- */

static int read_source(struct data_stream *stream, uint8_t *out, size_t size, size_t *out_read,
                       struct error *error)
{
    if (stream->fd < 0) {
        const size_t count = size < stream->memory.size ? size : stream->memory.size;
        memcpy(out, stream->memory.data, count);
        stream->memory.data += count;
        stream->memory.size -= count;
        *out_read = count;
        return 0;
    }
    ssize_t got;
    do
        got = read(stream->fd, out, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_set_errno(error, errno, "read");
    *out_read = (size_t)got;
    return 0;
}

static int refill_input(struct data_stream *stream, struct error *error)
{
    size_t got = 0;
    if (read_source(stream, stream->input, PIECE, &got, error) < 0)
        return -1;
    stream->input_at = 0;
    stream->input_size = got;
    stream->is_input_over = got == 0;
    return 0;
}

static uint64_t produced(const struct data_stream *stream)
{
    return stream->taken + (stream->window.size - stream->window_at);
}

static int inflate_some(struct data_stream *stream, uint8_t *out, size_t *out_size,
                        struct error *error)
{
    z_stream *gzip = &stream->gzip;
    if (stream->is_between && inflateReset(gzip) != Z_OK)
        return error_set(error, ERROR_CORRUPT, "gzip cannot start again");
    stream->is_between = false;
    gzip->next_in = stream->input + stream->input_at;
    gzip->avail_in = (uInt)(stream->input_size - stream->input_at);
    gzip->next_out = out;
    gzip->avail_out = PIECE;
    const int result = inflate(gzip, Z_NO_FLUSH);
    stream->input_at = stream->input_size - gzip->avail_in;
    *out_size = PIECE - gzip->avail_out;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return error_set(error, ERROR_CORRUPT, "the gzip data is damaged at byte %" PRIu64 ": %s",
                         produced(stream) + *out_size, gzip->msg ? gzip->msg : "no reason");
    stream->is_between = result == Z_STREAM_END;
    return 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): zstd writes to it */
static int unzstd_some(struct data_stream *stream, uint8_t *out, size_t *out_size,
                       struct error *error)
{
    ZSTD_inBuffer input = {stream->input, stream->input_size, stream->input_at};
    ZSTD_outBuffer output = {out, PIECE, 0};
    const size_t result = ZSTD_decompressStream(stream->zstd, &output, &input);
    stream->input_at = input.pos;
    *out_size = output.pos;
    if (ZSTD_isError(result))
        return error_set(error, ERROR_CORRUPT, "the zstd data is damaged at byte %" PRIu64 ": %s",
                         produced(stream) + *out_size, ZSTD_getErrorName(result));
    stream->is_between = result == 0;
    return 0;
}

/* Once the decoder gives nothing without new input. */
static int decode_some(struct data_stream *stream, uint8_t *out, size_t *out_size,
                       struct error *error)
{
    for (*out_size = 0; *out_size == 0;) {
        if (stream->input_at == stream->input_size && !stream->is_input_over &&
            refill_input(stream, error) < 0)
            return -1;
        if (stream->is_input_over && stream->is_between)
            return 0;
        if ((stream->coding == CODING_GZIP ? inflate_some(stream, out, out_size, error)
                                           : unzstd_some(stream, out, out_size, error)) < 0)
            return -1;
        if (*out_size == 0 && stream->is_input_over && !stream->is_between)
            return error_set(error, ERROR_CORRUPT,
                             "truncated: the %s data ends in the middle, at byte %" PRIu64,
                             stream->coding == CODING_GZIP ? "gzip" : "zstd", produced(stream));
    }
    return 0;
}

/* Another piece behind what the window holds. */
static int fill(struct data_stream *stream, struct error *error)
{
    if (stream->window_at > 0) {
        buffer_consume(&stream->window, stream->window_at);
        stream->window_at = 0;
    }
    uint8_t *room = buffer_reserve(&stream->window, PIECE);
    if (!room)
        return error_set(error, ERROR_EXHAUSTED, "no memory to read");
    size_t got = 0;
    if ((stream->coding == CODING_NONE ? read_source(stream, room, PIECE, &got, error)
                                       : decode_some(stream, room, &got, error)) < 0)
        return -1;
    buffer_advance(&stream->window, got);
    stream->is_over = got == 0;
    if (produced(stream) > stream->size_max)
        return error_set(error, ERROR_EXHAUSTED,
                         "it is larger than the %" PRIu64 " bytes allowed%s", stream->size_max,
                         stream->coding == CODING_NONE ? "" : ", decompressed");
    return 0;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int start_coding(struct data_stream *stream, struct error *error)
{
    static const uint8_t gzip_magic[] = {0x1f, 0x8b}, zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    stream->input = malloc(PIECE);
    ASSERT(stream->input);
    if (refill_input(stream, error) < 0)
        return -1;
    /* A pipe may give less than a magic at first. */
    while (stream->input_size < sizeof(zstd_magic)) {
        size_t got = 0;
        if (read_source(stream, stream->input + stream->input_size, 1, &got, error) < 0)
            return -1;
        if (got == 0)
            break;
        stream->input_size += got;
    }
    if (stream->input_size >= 2 && !memcmp(stream->input, gzip_magic, 2)) {
        stream->coding = CODING_GZIP;
        if (inflateInit2(&stream->gzip, 16 + MAX_WBITS) != Z_OK)
            return error_set(error, ERROR_EXHAUSTED, "no memory for gzip");
    } else if (stream->input_size >= 4 && !memcmp(stream->input, zstd_magic, 4)) {
        stream->coding = CODING_ZSTD;
        stream->zstd = ZSTD_createDStream();
        if (!stream->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(stream->zstd, ZSTD_d_windowLogMax,
                                                                 ZSTD_WINDOW_LOG_MAX)))
            return error_set(error, ERROR_EXHAUSTED, "no memory for zstd");
    } else {
        buffer_append(&stream->window, stream->input, stream->input_size);
        stream->input_at = stream->input_size;
        if (stream->input_size > stream->size_max)
            return error_set(error, ERROR_EXHAUSTED,
                             "it is larger than the %" PRIu64 " bytes allowed", stream->size_max);
    }
    return 0;
}

static struct data_stream *data_stream_new(uint64_t size_max)
{
    struct data_stream *stream = calloc(1, sizeof(*stream));
    ASSERT(stream);
    stream->fd = -1;
    stream->size_max = size_max;
    buffer_init(&stream->window, DATA_LINE_MAX + (size_t)2 * PIECE);
    return stream;
}

int data_stream_open(const char *path, uint64_t size_max, struct data_stream **out_stream,
                     struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = data_stream_new(size_max);
    struct stat status;
    stream->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (stream->fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    if (fstat(stream->fd, &status) == 0 && S_ISDIR(status.st_mode))
        return error_set(error, ERROR_INVALID, "it is a folder");
    if (start_coding(stream, error) < 0)
        return -1;
    *out_stream = TAKE(stream);
    return 0;
}

int data_stream_open_bytes(struct text bytes, uint64_t size_max, struct data_stream **out_stream,
                           struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = data_stream_new(size_max);
    stream->memory = bytes;
    if (start_coding(stream, error) < 0)
        return -1;
    *out_stream = TAKE(stream);
    return 0;
}

int data_stream_open_deflate(struct text bytes, uint64_t size_max, struct data_stream **out_stream,
                             struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = data_stream_new(size_max);
    stream->memory = bytes;
    stream->coding = CODING_GZIP;
    stream->input = malloc(PIECE);
    ASSERT(stream->input);
    if (inflateInit2(&stream->gzip, -MAX_WBITS) != Z_OK)
        return error_set(error, ERROR_EXHAUSTED, "no memory to inflate");
    *out_stream = TAKE(stream);
    return 0;
}

void data_stream_free(struct data_stream *stream)
{
    if (!stream)
        return;
    if (stream->coding == CODING_GZIP)
        (void)inflateEnd(&stream->gzip);
    ZSTD_freeDStream(stream->zstd);
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->input);
    buffer_done(&stream->window);
    free(stream);
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static size_t available(const struct data_stream *stream)
{
    return stream->window.size - stream->window_at;
}

/* NULL before anything was read. */
static const uint8_t *window_start(const struct data_stream *stream)
{
    return stream->window.data ? stream->window.data + stream->window_at : NULL;
}

static void take(struct data_stream *stream, size_t size)
{
    stream->window_at += size;
    stream->taken += size;
}

int data_stream_read(struct data_stream *stream, void *out, size_t size, size_t *out_read,
                     struct error *error)
{
    size_t done = 0;
    while (done < size) {
        if (available(stream) == 0) {
            if (stream->is_over)
                break;
            if (fill(stream, error) < 0)
                return -1;
            continue;
        }
        const size_t some = size - done < available(stream) ? size - done : available(stream);
        memcpy((uint8_t *)out + done, window_start(stream), some);
        take(stream, some);
        done += some;
    }
    *out_read = done;
    return 0;
}

int data_stream_read_all(struct data_stream *stream, void *out, size_t size, const char *what,
                         struct error *error)
{
    size_t got = 0;
    if (data_stream_read(stream, out, size, &got, error) < 0)
        return -1;
    if (got < size)
        return error_set(error, ERROR_CORRUPT,
                         "truncated at byte %" PRIu64 ": %zu of the %zu bytes of %s", stream->taken,
                         got, size, what);
    return 0;
}

int data_stream_expect_end(struct data_stream *stream, struct error *error)
{
    struct text rest;
    if (data_stream_peek(stream, &rest, error) < 0)
        return -1;
    if (rest.size > 0)
        return error_set(error, ERROR_CORRUPT,
                         "bytes follow after the last record, from byte %" PRIu64, stream->taken);
    return 0;
}

int data_stream_peek(struct data_stream *stream, struct text *out_bytes, struct error *error)
{
    while (available(stream) < DATA_PEEK_MAX && !stream->is_over)
        if (fill(stream, error) < 0)
            return -1;
    const size_t size = available(stream);
    *out_bytes = (struct text){(const char *)window_start(stream),
                               size < DATA_PEEK_MAX ? size : DATA_PEEK_MAX};
    return 0;
}

int data_stream_line(struct data_stream *stream, struct text *out_line, bool *out_has_line,
                     struct error *error)
{
    size_t searched = 0;
    const uint8_t *end = NULL;
    for (;;) {
        const uint8_t *start = window_start(stream);
        if (available(stream) > searched)
            end = memchr(start + searched, '\n', available(stream) - searched);
        if (end || stream->is_over)
            break;
        searched = available(stream);
        if (searched > DATA_LINE_MAX)
            return error_set(error, ERROR_INVALID,
                             "line %" PRIu64 ": longer than %d bytes; is this a text file?",
                             stream->line + 1, DATA_LINE_MAX);
        if (fill(stream, error) < 0)
            return -1;
    }
    *out_has_line = available(stream) > 0;
    if (!*out_has_line)
        return 0;
    const char *start = (const char *)window_start(stream);
    size_t size = end ? (size_t)((const char *)end - start) : available(stream);
    take(stream, size + (end != NULL));
    if (size > 0 && start[size - 1] == '\r')
        size--;
    stream->line++;
    *out_line = (struct text){start, size};
    return 0;
}

uint64_t data_stream_offset(const struct data_stream *stream)
{
    return stream->taken;
}

uint64_t data_stream_line_number(const struct data_stream *stream)
{
    return stream->line;
}
