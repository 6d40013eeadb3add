#include "blob/pack.h"

#include "base/assert.h"

#include <errno.h>
#include <inttypes.h>

/* ---- Ends ------------------------------------------------------------------------------------ */

static int fd_read(void *context, void *data, size_t size, size_t *out_size, struct error *error)
{
    const int fd = *(const int *)context;
    for (;;) {
        const ssize_t got = read(fd, data, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, errno, "read the file to pack");
        *out_size = (size_t)got;
        return 0;
    }
}

struct pack_source pack_source_fd(int *fd)
{
    return (struct pack_source){fd_read, fd};
}

static int store_put(void *context, const struct blob_hash *hash, struct text bytes,
                     struct error *error)
{
    struct blob_hash same;
    return blob_store_put(context, hash, bytes, &same, error);
}

struct pack_sink pack_sink_store(struct blob_store *store)
{
    return (struct pack_sink){store_put, store};
}

static int store_get(void *context, const struct blob_hash *hash, struct buffer *out,
                     struct error *error)
{
    return blob_store_read(context, hash, out, error);
}

static int store_copy(void *context, const struct blob_hash *hash, const struct blob_part *part,
                      int fd, struct error *error)
{
    return blob_store_copy(context, hash, part, fd, error);
}

struct pack_origin pack_origin_store(struct blob_store *store)
{
    return (struct pack_origin){store_get, store, .is_checked = true, .copy = store_copy};
}

/* ---- Cutting --------------------------------------------------------------------------------- */

struct packer {
    const struct pack_options *options;
    uint64_t bytes_max;
    uint64_t size_bytes;
    uint8_t header[MANIFEST_HEADER_BYTES_MAX];
    struct buffer chunks; /* of struct manifest_chunk */
};

/* Reads until the chunk is full or the stream ends. */
static int read_chunk(const struct pack_source *source, struct buffer *chunk, struct error *error)
{
    while (chunk->size < chunk->size_max) {
        const size_t wanted = chunk->size_max - chunk->size;
        uint8_t *room = buffer_reserve(chunk, wanted);
        if (!room)
            return error_set(error, ERROR_EXHAUSTED, "out of memory");
        size_t got = 0;
        if (source->read(source->context, room, wanted, &got, error) < 0)
            return -1;
        ASSERT(got <= wanted);
        if (got == 0)
            return 0;
        buffer_advance(chunk, got);
    }
    return 0;
}

static int add_chunk(struct packer *packer, const struct pack_sink *sink,
                     const struct buffer *chunk, struct error *error)
{
    if (chunk->size > packer->bytes_max - packer->size_bytes)
        return error_set(error, ERROR_EXHAUSTED, "the file holds more than %" PRIu64 " bytes",
                         packer->bytes_max);
    const uint64_t header_bytes = packer->options->header_bytes;
    if (packer->size_bytes < header_bytes) {
        const uint64_t left = header_bytes - packer->size_bytes;
        memcpy(packer->header + packer->size_bytes, chunk->data,
               left < chunk->size ? left : chunk->size);
    }
    struct manifest_chunk described = {.size_bytes = chunk->size};
    blob_hash_of(chunk->data, chunk->size, &described.hash);
    if (sink && sink->put(sink->context, &described.hash, buffer_text(chunk), error) < 0)
        return -1;
    buffer_append(&packer->chunks, &described, sizeof(described));
    packer->size_bytes += chunk->size;
    return buffer_check(&packer->chunks, error);
}

static int describe(struct arena *arena, const struct packer *packer, struct manifest *out_manifest,
                    struct error *error)
{
    const struct pack_options *options = packer->options;
    struct manifest manifest = {
        .size_bytes = packer->size_bytes,
        .header_bytes = options->header_bytes,
        .record_bytes = options->record_bytes,
        .header = TEXT(""),
    };
    if (options->media_type && text_copy(text_of(options->media_type), manifest.media_type,
                                         sizeof(manifest.media_type), error) < 0)
        return error_wrap(error, "media type");
    if (packer->size_bytes < options->header_bytes)
        return error_set(error, ERROR_INVALID,
                         "the file has %" PRIu64 " bytes, less than its header of %" PRIu64,
                         packer->size_bytes, options->header_bytes);
    if (options->record_bytes > 0) {
        const uint64_t body_bytes = packer->size_bytes - options->header_bytes;
        manifest.record_count = body_bytes / options->record_bytes;
        if (body_bytes % options->record_bytes != 0)
            return error_set(error, ERROR_INVALID, "the file ends in the middle of record %" PRIu64,
                             manifest.record_count);
    }
    char *header = arena_alloc(arena, 2 * (size_t)options->header_bytes + 1);
    text_hex_encode(packer->header, options->header_bytes, header);
    manifest.header = text_of(header);
    manifest.chunks.count = packer->chunks.size / sizeof(struct manifest_chunk);
    manifest.chunks.items = arena_alloc(arena, packer->chunks.size);
    if (packer->chunks.size)
        memcpy(manifest.chunks.items, packer->chunks.data, packer->chunks.size);
    if (manifest_check(&manifest, error) < 0)
        return -1;
    *out_manifest = manifest;
    return 0;
}

int pack_stream(struct arena *arena, const struct pack_options *options,
                const struct pack_source *source, const struct pack_sink *sink,
                struct manifest *out_manifest, struct error *error)
{
    const uint64_t chunk_bytes = options->chunk_bytes ? options->chunk_bytes : BLOB_BYTES_MAX;
    if (chunk_bytes > BLOB_BYTES_MAX || options->header_bytes > MANIFEST_HEADER_BYTES_MAX ||
        (options->record_bytes == 0 && options->header_bytes > 0))
        return error_set(error, ERROR_INVALID,
                         "chunks of %" PRIu64 " bytes, a header of %" PRIu64 ", records of %" PRIu64
                         ": past what a manifest describes",
                         chunk_bytes, options->header_bytes, options->record_bytes);
    struct buffer chunk AUTO_BUFFER;
    buffer_init(&chunk, chunk_bytes);
    struct packer packer = {.options = options, .bytes_max = MANIFEST_CHUNK_MAX * chunk_bytes};
    if (options->bytes_max && options->bytes_max < packer.bytes_max)
        packer.bytes_max = options->bytes_max;
    buffer_init(&packer.chunks, MANIFEST_CHUNK_MAX * sizeof(struct manifest_chunk));
    int result;
    do {
        buffer_clear(&chunk);
        result = read_chunk(source, &chunk, error);
        if (result == 0 && chunk.size > 0)
            result = add_chunk(&packer, sink, &chunk, error);
    } while (result == 0 && chunk.size == chunk_bytes);
    if (result == 0)
        result = describe(arena, &packer, out_manifest, error);
    buffer_done(&packer.chunks);
    return result;
}

int pack_describe(struct arena *arena, const struct pack_options *options, struct text bytes,
                  const struct blob_hash *hashes, struct manifest *out_manifest,
                  struct error *error)
{
    struct packer packer = {.options = options, .size_bytes = bytes.size};
    if (options->header_bytes > MANIFEST_HEADER_BYTES_MAX ||
        pack_chunk_count(bytes.size) > MANIFEST_CHUNK_MAX)
        return error_set(error, ERROR_EXHAUSTED, "%zu bytes are past what a manifest describes",
                         bytes.size);
    memcpy(packer.header, bytes.data,
           bytes.size < options->header_bytes ? bytes.size : options->header_bytes);
    buffer_init(&packer.chunks, MANIFEST_CHUNK_MAX * sizeof(struct manifest_chunk));
    for (size_t i = 0; i < pack_chunk_count(bytes.size); i++) {
        const struct manifest_chunk described = {.hash = hashes[i],
                                                 .size_bytes = pack_chunk(bytes, i).size};
        buffer_append(&packer.chunks, &described, sizeof(described));
    }
    const int result = buffer_check(&packer.chunks, error) < 0
                           ? -1
                           : describe(arena, &packer, out_manifest, error);
    buffer_done(&packer.chunks);
    return result;
}

size_t pack_chunk_count(size_t size_bytes)
{
    return size_bytes / BLOB_BYTES_MAX + (size_bytes % BLOB_BYTES_MAX != 0);
}

struct text pack_chunk(struct text bytes, size_t index)
{
    const size_t first = index * BLOB_BYTES_MAX;
    ASSERT(first < bytes.size);
    const size_t left = bytes.size - first;
    return (struct text){bytes.data + first, left < BLOB_BYTES_MAX ? left : (size_t)BLOB_BYTES_MAX};
}

/* ---- Putting together ------------------------------------------------------------------------ */

static int write_all(int fd, const void *data, size_t size, struct error *error)
{
    const uint8_t *left = data;
    while (size > 0) {
        const ssize_t written = write(fd, left, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_set_errno(error, errno, "write the file");
        left += written;
        size -= (size_t)written;
    }
    return 0;
}

static int get_chunk(const struct manifest_chunk *described, const struct pack_origin *origin,
                     struct buffer *chunk, struct error *error)
{
    buffer_clear(chunk);
    if (origin->get(origin->context, &described->hash, chunk, error) < 0 ||
        buffer_check(chunk, error) < 0)
        return -1;
    struct blob_hash hash = described->hash;
    if (!origin->is_checked)
        blob_hash_of(chunk->data, chunk->size, &hash);
    char text[BLOB_HASH_TEXT_SIZE];
    if (chunk->size != described->size_bytes || !blob_hash_equal(&hash, &described->hash))
        return error_set(error, ERROR_CORRUPT, "chunk \"%s\" is not what its manifest describes",
                         blob_hash_format(&described->hash, text));
    return 0;
}

static int write_range(const struct manifest *manifest, const struct manifest_range *range,
                       const struct pack_origin *origin, int fd, struct error *error)
{
    struct buffer chunk AUTO_BUFFER;
    buffer_init(&chunk, BLOB_BYTES_MAX);
    uint64_t skip_bytes = range->skip_bytes;
    uint64_t left_bytes = range->size_bytes;
    for (size_t i = 0; i < range->chunk_count; i++) {
        const struct manifest_chunk *described =
            manifest_chunk(manifest, range->first_chunk_index + i);
        const uint64_t there = described->size_bytes - skip_bytes;
        const uint64_t taken = there < left_bytes ? there : left_bytes;
        const struct blob_part part = {described->size_bytes, skip_bytes, taken};
        const int copied =
            origin->copy ? origin->copy(origin->context, &described->hash, &part, fd, error) : 0;
        if (copied < 0 ||
            (copied == 0 && (get_chunk(described, origin, &chunk, error) < 0 ||
                             write_all(fd, chunk.data + skip_bytes, taken, error) < 0)))
            return -1;
        left_bytes -= taken;
        skip_bytes = 0;
    }
    ASSERT(left_bytes == 0);
    return 0;
}

int pack_write_bytes(const struct manifest *manifest, uint64_t offset_bytes, uint64_t size_bytes,
                     const struct pack_origin *origin, int fd, struct error *error)
{
    struct manifest_range range;
    if (manifest_map_bytes(manifest, offset_bytes, size_bytes, &range, error) < 0)
        return -1;
    return write_range(manifest, &range, origin, fd, error);
}

int pack_write_records(const struct manifest *manifest, uint64_t first_record,
                       uint64_t record_count, struct text header, const struct pack_origin *origin,
                       int fd, struct error *error)
{
    struct manifest_range range;
    if (manifest_map_records(manifest, first_record, record_count, &range, error) < 0)
        return -1;
    uint8_t own[MANIFEST_HEADER_BYTES_MAX];
    if (!header.data) {
        if (manifest_read_header(manifest, own, error) < 0)
            return -1;
        header = (struct text){(const char *)own, manifest->header_bytes};
    }
    if (write_all(fd, header.data, header.size, error) < 0)
        return -1;
    return write_range(manifest, &range, origin, fd, error);
}
