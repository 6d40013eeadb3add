#include "peer/shard.h"

#include "base/assert.h"
#include "blob/manifest.h"
#include "blob/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>

/* So many chunks are fetched and pinned, then written, then the next: a lease needs no more of the
 * cache than this, however large its data is. */
enum { BATCH_CHUNKS = 8, IDX_COUNT_OFFSET = 4 };

struct shard {
    struct shard_options options;
    struct arena *arena;
    struct manifest *manifests; /* one per input */
    struct manifest_range *ranges;
    struct fetch *fetch;
    struct loop_timer *step;
    bool has_manifests;
    bool has_refetched; /* something that was torn in the cache; once, or the disk is broken */
    struct blob_hash *manifest_hashes; /* one per input */
    struct blob_hash *hashes;          /* of all chunks, in the order they are written */
    size_t hash_count;
    size_t next_chunk;    /* of `hashes`, to be written */
    size_t fetched_count; /* of `hashes`; those before next_chunk may be gone again */
    size_t file_index;    /* being written */
    int file_fd;
    size_t file_chunks;  /* written of it */
    uint64_t file_bytes; /* records written of it */
    bool has_failed;
    struct error error;
};

static void shard_fail(struct shard *shard, const struct error *reason)
{
    shard->has_failed = true;
    shard->error = *reason;
    loop_timer_start(shard->step, 0);
}

/* Element 4 of an idx file is its record count, big-endian; other files keep their header. */
static void shard_set_count(const struct manifest *manifest, uint8_t *header, uint64_t count)
{
    if (strcmp(manifest->media_type, "application/x-idx") != 0 || manifest->header_bytes < 8)
        return;
    for (int i = 0; i < 4; i++)
        header[IDX_COUNT_OFFSET + i] = (uint8_t)(count >> (8 * (3 - i)));
}

static int shard_open_file(struct shard *shard, struct error *error)
{
    const struct lease_data *data = &shard->options.data[shard->file_index];
    const struct manifest *manifest = &shard->manifests[shard->file_index];
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof(path), "%s/%s", shard->options.folder, data->name);
    if (size >= (int)sizeof(path))
        return error_set(error, ERROR_INVALID, "the name of \"%s\" is too long", data->name);
    shard->file_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (shard->file_fd < 0)
        return error_set_errno(error, errno, "make \"%s\"", path);
    uint8_t header[MANIFEST_HEADER_BYTES_MAX];
    if (manifest_read_header(manifest, header, error) < 0)
        return -1;
    shard_set_count(manifest, header, data->record_count);
    if (write(shard->file_fd, header, manifest->header_bytes) != (ssize_t)manifest->header_bytes)
        return error_set_errno(error, errno, "write \"%s\"", path);
    shard->file_bytes = 0;
    shard->file_chunks = 0;
    return 0;
}

/* One chunk of the current file: heartbeats go on while a large shard is put together. */
static int shard_write(struct shard *shard, struct error *error)
{
    if (shard->file_fd < 0 && shard_open_file(shard, error) < 0)
        return -1;
    const struct manifest *manifest = &shard->manifests[shard->file_index];
    const struct manifest_range *range = &shard->ranges[shard->file_index];
    const struct pack_origin origin = pack_origin_store(shard->options.access.store);
    if (shard->file_chunks < range->chunk_count) {
        const uint64_t left = range->size_bytes - shard->file_bytes;
        uint64_t size =
            manifest_chunk(manifest, range->first_chunk_index + shard->file_chunks)->size_bytes;
        if (shard->file_chunks == 0)
            size -= range->skip_bytes;
        if (size > left)
            size = left;
        if (pack_write_bytes(manifest, range->offset_bytes + shard->file_bytes, size, &origin,
                             shard->file_fd, error) < 0)
            return -1;
        shard->file_bytes += size;
        shard->file_chunks++;
        shard->next_chunk++;
    }
    if (shard->file_chunks < range->chunk_count)
        return 0;
    close(TAKE_FD(shard->file_fd));
    shard->file_index++;
    return 0;
}

static void shard_on_fetched(void *context, const struct error *reason);

static void shard_fetch_manifests(struct shard *shard)
{
    fetch_free(TAKE(shard->fetch));
    shard->has_manifests = false;
    shard->fetch = fetch_start(&shard->options.access, shard->manifest_hashes,
                               shard->options.data_count, shard_on_fetched, shard);
}

/* What a power cut tore was deleted when it was read: it is fetched anew. */
static bool shard_may_refetch(struct shard *shard, const struct error *error)
{
    if (error->code != ERROR_CORRUPT || shard->has_refetched)
        return false;
    shard->has_refetched = true;
    return true;
}

/* The next of the chunks; those written before are let go of. */
static void shard_fetch_batch(struct shard *shard)
{
    const size_t left = shard->hash_count - shard->next_chunk;
    const size_t count = left < BATCH_CHUNKS ? left : BATCH_CHUNKS;
    fetch_free(TAKE(shard->fetch));
    shard->fetched_count = shard->next_chunk + count;
    shard->fetch = fetch_start(&shard->options.access, shard->hashes + shard->next_chunk, count,
                               shard_on_fetched, shard);
}

static bool shard_needs_chunk(const struct shard *shard)
{
    return shard->next_chunk == shard->fetched_count && shard->next_chunk < shard->hash_count;
}

static void shard_on_step(void *context)
{
    struct shard *shard = context;
    struct error error;
    if (!shard->has_failed && shard->file_index < shard->options.data_count) {
        if (shard_write(shard, &error) < 0) {
            if (shard_may_refetch(shard, &error))
                shard_fetch_batch(shard);
            else
                shard_fail(shard, &error);
            return;
        }
        if (shard_needs_chunk(shard)) {
            shard_fetch_batch(shard);
            return;
        }
        if (shard->file_index < shard->options.data_count) {
            loop_timer_start(shard->step, 0);
            return;
        }
    }
    fetch_free(TAKE(shard->fetch));
    shard->options.callback(shard->options.context, shard->has_failed ? &shard->error : NULL);
}

static int shard_map(struct shard *shard, size_t *out_chunk_count, struct error *error)
{
    uint64_t bytes = 0;
    size_t chunk_count = 0;
    for (size_t i = 0; i < shard->options.data_count; i++) {
        const struct lease_data *data = &shard->options.data[i];
        struct blob_hash hash;
        memcpy(hash.bytes, data->manifest, sizeof(hash.bytes));
        struct manifest *manifest = &shard->manifests[i];
        if (manifest_get(shard->arena, shard->options.access.store, &hash, manifest, error) < 0 ||
            manifest_check(manifest, error) < 0 ||
            manifest_map_records(manifest, data->first_record, data->record_count,
                                 &shard->ranges[i], error) < 0)
            return error_wrap(error, "data \"%s\"", data->name);
        bytes += manifest->header_bytes + shard->ranges[i].size_bytes;
        chunk_count += shard->ranges[i].chunk_count;
        if (bytes > shard->options.bytes_max)
            return error_set(error, ERROR_EXHAUSTED, "the data is larger than the lease's disk");
    }
    *out_chunk_count = chunk_count;
    return 0;
}

static int shard_fetch_chunks(struct shard *shard, struct error *error)
{
    size_t count = 0;
    if (shard_map(shard, &count, error) < 0)
        return -1;
    shard->hashes = arena_alloc(shard->arena, (count ? count : 1) * sizeof(*shard->hashes));
    for (size_t i = 0; i < shard->options.data_count; i++)
        for (size_t j = 0; j < shard->ranges[i].chunk_count; j++)
            shard->hashes[shard->hash_count++] =
                manifest_chunk(&shard->manifests[i], shard->ranges[i].first_chunk_index + j)->hash;
    ASSERT(shard->hash_count == count);
    shard_fetch_batch(shard);
    return 0;
}

static void shard_on_fetched(void *context, const struct error *reason)
{
    struct shard *shard = context;
    struct error error = reason ? *reason : (struct error){0}; /* `reason` goes with the fetch */
    if (reason) {
        shard_fail(shard, &error);
    } else if (shard->has_manifests) {
        loop_timer_start(shard->step, 0); /* the fetch lives on: it keeps its chunks here */
    } else {
        shard->has_manifests = true;
        if (shard_fetch_chunks(shard, &error) == 0)
            return;
        if (shard_may_refetch(shard, &error))
            shard_fetch_manifests(shard);
        else
            shard_fail(shard, &error);
    }
}

const char *shard_trouble(struct shard *shard)
{
    return shard->fetch ? fetch_trouble(shard->fetch) : NULL;
}

struct shard *shard_start(const struct shard_options *options)
{
    struct shard *shard = calloc(1, sizeof(*shard));
    ASSERT(shard);
    shard->options = *options;
    shard->file_fd = -1;
    shard->arena = arena_new(0);
    const size_t count = options->data_count ? options->data_count : 1;
    shard->manifests = arena_alloc(shard->arena, count * sizeof(*shard->manifests));
    shard->ranges = arena_alloc(shard->arena, count * sizeof(*shard->ranges));
    shard->manifest_hashes = arena_alloc(shard->arena, count * sizeof(*shard->manifest_hashes));
    for (size_t i = 0; i < options->data_count; i++)
        memcpy(shard->manifest_hashes[i].bytes, options->data[i].manifest, BLOB_HASH_SIZE);
    shard->step = loop_timer_new(options->access.loop, shard_on_step, shard);
    shard_fetch_manifests(shard);
    return shard;
}

void shard_free(struct shard *shard)
{
    if (!shard)
        return;
    fetch_free(shard->fetch);
    loop_timer_free(shard->step);
    if (shard->file_fd >= 0)
        close(shard->file_fd);
    arena_free(shard->arena);
    free(shard);
}
