#include "peer/shard.h"

#include "base/assert.h"
#include "blob/manifest.h"
#include "blob/pack.h"
#include "peer/mount_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>

/* So many chunks are fetched and pinned, then written, then the next: a lease needs no more of the
 * cache than this, however large its data is. */
enum { BATCH_CHUNKS = 8, IDX_COUNT_OFFSET = 4, MOUNT_PLACE_BYTES = 4096 };

struct shard {
    struct shard_options options;
    struct arena *arena;
    struct manifest *manifests; /* one per input */
    struct manifest_range *ranges;
    struct fetch *fetch;
    struct loop_timer *step;
    struct mount_index *indexes;       /* one per input, of mounts alone */
    struct mount_part *parts;          /* likewise: this rank's */
    struct mount_writer *mount_writer; /* of the mount being written; NULL: none is */
    bool has_manifests, has_indexes;
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

static int shard_open_mount(struct shard *shard, struct error *error)
{
    const size_t at = shard->file_index;
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s/" LEASE_MOUNTS_NAME, shard->options.folder) >=
        (int)sizeof(folder))
        return error_set(error, ERROR_INVALID, "the name of the folder is too long");
    shard->file_bytes = 0;
    shard->file_chunks = 0;
    return mount_writer_open(folder, shard->options.data[at].mount->target, &shard->indexes[at],
                             &shard->parts[at], &shard->mount_writer, error);
}

/* One chunk, of which many files may be. */
static int shard_write_mount(struct shard *shard, struct error *error)
{
    const struct manifest *manifest = &shard->manifests[shard->file_index];
    const struct manifest_range *range = &shard->ranges[shard->file_index];
    if (!shard->mount_writer && shard_open_mount(shard, error) < 0)
        return -1;
    if (shard->file_chunks < range->chunk_count) {
        const struct manifest_chunk *chunk =
            manifest_chunk(manifest, range->first_chunk_index + shard->file_chunks);
        struct buffer bytes AUTO_BUFFER;
        buffer_init(&bytes, BLOB_BYTES_MAX);
        if (blob_store_read(shard->options.access.store, &chunk->hash, &bytes, error) < 0)
            return -1;
        if (bytes.size != chunk->size_bytes)
            return error_set(error, ERROR_CORRUPT, "a chunk is not as long as its manifest says");
        const uint64_t skip = shard->file_chunks == 0 ? range->skip_bytes : 0;
        const uint64_t left = range->size_bytes - shard->file_bytes;
        const uint64_t size = bytes.size - skip < left ? bytes.size - skip : left;
        if (mount_writer_put(shard->mount_writer,
                             (struct text){(const char *)bytes.data + skip, size}, error) < 0)
            return -1;
        shard->file_bytes += size;
        shard->file_chunks++;
        shard->next_chunk++;
    }
    if (shard->file_chunks < range->chunk_count)
        return 0;
    if (mount_writer_finish(shard->mount_writer, error) < 0)
        return -1;
    mount_writer_free(TAKE(shard->mount_writer));
    shard->file_index++;
    return 0;
}

/* One chunk of the current file: heartbeats go on while a large shard is put together. */
static int shard_write(struct shard *shard, struct error *error)
{
    if (shard->options.data[shard->file_index].mount)
        return shard_write_mount(shard, error);
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
    shard->has_manifests = shard->has_indexes = false;
    shard->hash_count = 0;
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

static int shard_read_manifests(struct shard *shard, struct error *error)
{
    for (size_t i = 0; i < shard->options.data_count; i++) {
        struct manifest *manifest = &shard->manifests[i];
        if (manifest_get(shard->arena, shard->options.access.store, &shard->manifest_hashes[i],
                         manifest, error) < 0 ||
            manifest_check(manifest, error) < 0)
            return error_wrap(error, "data \"%s\"", shard->options.data[i].name);
    }
    return 0;
}

/* The bytes of a mount's index, which are the first records. */
static int shard_map_index(const struct shard *shard, size_t at, struct manifest_range *out_range,
                           struct error *error)
{
    uint8_t header[MANIFEST_HEADER_BYTES_MAX];
    uint64_t size;
    const struct manifest *manifest = &shard->manifests[at];
    if (manifest_read_header(manifest, header, error) < 0 ||
        mount_header_read(header, manifest->header_bytes, &size, error) < 0)
        return -1;
    if (manifest->record_bytes != 1)
        return error_set(error, ERROR_CORRUPT, "a mount's records are not bytes");
    return manifest_map_records(manifest, 0, size, out_range, error);
}

/* The chunks that the indexes of all mounts lie in; false when there are none. */
static int shard_fetch_indexes(struct shard *shard, bool *out_is_fetching, struct error *error)
{
    struct manifest_range range;
    struct blob_hash *hashes = NULL;
    size_t count = 0;
    for (int is_filling = 0; is_filling < 2; is_filling++) {
        if (is_filling && count == 0)
            break;
        if (is_filling)
            hashes = arena_alloc(shard->arena, count * sizeof(*hashes));
        count = 0;
        for (size_t i = 0; i < shard->options.data_count; i++) {
            if (!shard->options.data[i].mount)
                continue;
            if (shard_map_index(shard, i, &range, error) < 0)
                return error_wrap(error, "data \"%s\"", shard->options.data[i].name);
            for (size_t k = 0; k < range.chunk_count; k++, count++)
                if (is_filling)
                    hashes[count] =
                        manifest_chunk(&shard->manifests[i], range.first_chunk_index + k)->hash;
        }
    }
    *out_is_fetching = count > 0;
    if (count == 0)
        return 0;
    fetch_free(TAKE(shard->fetch));
    shard->fetch = fetch_start(&shard->options.access, hashes, count, shard_on_fetched, shard);
    return 0;
}

static int shard_read_index(struct shard *shard, size_t at, struct error *error)
{
    const struct lease_data *data = &shard->options.data[at];
    const struct manifest *manifest = &shard->manifests[at];
    struct manifest_range range;
    struct buffer bytes AUTO_BUFFER, chunk AUTO_BUFFER;
    buffer_init(&bytes, MOUNT_INDEX_SIZE_MAX + 2 * (size_t)BLOB_BYTES_MAX);
    buffer_init(&chunk, BLOB_BYTES_MAX);
    if (shard_map_index(shard, at, &range, error) < 0)
        return -1;
    for (size_t i = 0; i < range.chunk_count; i++) {
        buffer_clear(&chunk);
        if (blob_store_read(shard->options.access.store,
                            &manifest_chunk(manifest, range.first_chunk_index + i)->hash, &chunk,
                            error) < 0)
            return -1;
        buffer_append_text(&bytes, buffer_text(&chunk));
    }
    if (buffer_check(&bytes, error) < 0 || bytes.size < range.skip_bytes + range.size_bytes)
        return error_set(error, ERROR_CORRUPT, "the index of a mount is cut off");
    const struct text own = {(const char *)bytes.data + range.skip_bytes, range.size_bytes};
    if (mount_index_decode(shard->arena, arena_copy_text(shard->arena, own), &shard->indexes[at],
                           error) < 0)
        return -1;
    if (mount_index_bytes(&shard->indexes[at]) + range.size_bytes != manifest->record_count)
        return error_set(error, ERROR_CORRUPT, "the index of a mount is of other files");
    const struct chunk_access *access = &shard->options.access;
    struct mount_part *part = &shard->parts[at];
    *part = mount_index_part(&shard->indexes[at], access->rank,
                             data->mount->shard && access->world ? access->world : 1);
    if (part->size_bytes == 0) /* of files without bytes: none is fetched */
        return 0;
    return manifest_map_records(manifest, range.size_bytes + part->offset_bytes, part->size_bytes,
                                &shard->ranges[at], error);
}

/* What its files and folders take of the disk, however few bytes they have. */
static uint64_t shard_mount_overhead(const struct shard *shard, size_t at)
{
    const uint64_t folders = mount_index_folders(&shard->indexes[at], &shard->parts[at]);
    return (shard->parts[at].file_count + folders) * MOUNT_PLACE_BYTES;
}

static int shard_map(struct shard *shard, size_t *out_chunk_count, struct error *error)
{
    uint64_t bytes = 0;
    size_t chunk_count = 0;
    for (size_t i = 0; i < shard->options.data_count; i++) {
        const struct lease_data *data = &shard->options.data[i];
        const struct manifest *manifest = &shard->manifests[i];
        shard->ranges[i] = (struct manifest_range){0};
        if ((data->mount ? shard_read_index(shard, i, error)
                         : manifest_map_records(manifest, data->first_record, data->record_count,
                                                &shard->ranges[i], error)) < 0)
            return error_wrap(error, "data \"%s\"", data->name);
        bytes += manifest->header_bytes + shard->ranges[i].size_bytes;
        if (data->mount)
            bytes += shard_mount_overhead(shard, i);
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

/* What is needed next, now that the manifests, or the indexes of mounts, are here. */
static int shard_prepare(struct shard *shard, struct error *error)
{
    bool is_fetching = false;
    if (!shard->has_manifests) {
        shard->has_manifests = true;
        if (shard_read_manifests(shard, error) < 0 ||
            shard_fetch_indexes(shard, &is_fetching, error) < 0)
            return -1;
        if (is_fetching)
            return 0;
    }
    shard->has_indexes = true;
    return shard_fetch_chunks(shard, error);
}

static void shard_on_fetched(void *context, const struct error *reason)
{
    struct shard *shard = context;
    struct error error = reason ? *reason : (struct error){0}; /* `reason` goes with the fetch */
    if (reason) {
        shard_fail(shard, &error);
    } else if (shard->has_indexes) {
        loop_timer_start(shard->step, 0); /* the fetch lives on: it keeps its chunks here */
    } else {
        if (shard_prepare(shard, &error) == 0)
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
    shard->indexes = arena_alloc(shard->arena, count * sizeof(*shard->indexes));
    shard->parts = arena_alloc(shard->arena, count * sizeof(*shard->parts));
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
    mount_writer_free(shard->mount_writer);
    if (shard->file_fd >= 0)
        close(shard->file_fd);
    arena_free(shard->arena);
    free(shard);
}
