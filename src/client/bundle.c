#include "client/bundle.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/map.h"
#include "client/api.h"
#include "client/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PARTS_MAX = JOB_INPUTS_MAX,
    KEPT_MAX = 2 * JOB_INPUTS_MAX,
    HASHES_PER_CALL = 1000,
    REQUEST_MAX = 128 << 10,
    SENDERS = 4,
};

struct bundle {
    struct bundle_part parts[PARTS_MAX];
    size_t part_count;
    struct buffer manifests[PARTS_MAX]; /* encoded */
    struct buffer blobs;                /* of struct bundle_blob */
    struct map by_hash;                 /* to index + 1 */
    struct {
        void *object;
        void (*free_object)(void *object);
    } kept[KEPT_MAX];
    size_t kept_count;
};

struct bundle *bundle_new(void)
{
    struct bundle *bundle = calloc(1, sizeof(*bundle));
    ASSERT(bundle);
    buffer_init(&bundle->blobs,
                (size_t)PARTS_MAX * (MANIFEST_CHUNK_MAX + 1) * sizeof(struct bundle_blob));
    map_init(&bundle->by_hash);
    return bundle;
}

void bundle_free(struct bundle *bundle)
{
    if (!bundle)
        return;
    for (size_t i = 0; i < bundle->part_count; i++)
        buffer_done(&bundle->manifests[i]);
    for (size_t i = 0; i < bundle->kept_count; i++)
        bundle->kept[i].free_object(bundle->kept[i].object);
    map_done(&bundle->by_hash);
    buffer_done(&bundle->blobs);
    free(bundle);
}

void bundle_keep_take(struct bundle *bundle, void *object, void (*free_object)(void *object))
{
    ASSERT(bundle->kept_count < KEPT_MAX);
    bundle->kept[bundle->kept_count].object = object;
    bundle->kept[bundle->kept_count++].free_object = free_object;
}

size_t bundle_part_count(const struct bundle *bundle)
{
    return bundle->part_count;
}

const struct bundle_part *bundle_part(const struct bundle *bundle, size_t index)
{
    ASSERT(index < bundle->part_count);
    return &bundle->parts[index];
}

size_t bundle_blob_count(const struct bundle *bundle)
{
    return bundle->blobs.size / sizeof(struct bundle_blob);
}

const struct bundle_blob *bundle_blob(const struct bundle *bundle, size_t index)
{
    ASSERT(index < bundle_blob_count(bundle));
    return (const struct bundle_blob *)bundle->blobs.data + index;
}

static struct text hash_key(const struct blob_hash *hash)
{
    return (struct text){(const char *)hash->bytes, sizeof(hash->bytes)};
}

const struct bundle_blob *bundle_find(const struct bundle *bundle, const struct blob_hash *hash)
{
    const uintptr_t found = (uintptr_t)map_get_text(&bundle->by_hash, hash_key(hash));
    return found ? bundle_blob(bundle, found - 1) : NULL;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static int add_blob(struct bundle *bundle, const struct bundle_blob *blob, struct error *error)
{
    buffer_append(&bundle->blobs, blob, sizeof(*blob));
    if (buffer_check(&bundle->blobs, error) < 0)
        return -1;
    if (!map_get_text(&bundle->by_hash, hash_key(&blob->hash)))
        map_put_text(
            &bundle->by_hash, hash_key(&blob->hash),
            (void *)(uintptr_t)bundle_blob_count(bundle)); // NOLINT(performance-no-int-to-ptr)
    return 0;
}

struct hashing {
    struct text bytes;
    struct blob_hash *hashes;
};

static int hash_one(void *context, size_t worker, size_t index, struct error *error)
{
    const struct hashing *hashing = context;
    const struct text chunk = pack_chunk(hashing->bytes, index);
    (void)worker, (void)error;
    blob_hash_of(chunk.data, chunk.size, &hashing->hashes[index]);
    return 0;
}

static size_t core_count(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores < 1)
        return 1;
    return cores < PARALLEL_WORKERS_MAX ? (size_t)cores : (size_t)PARALLEL_WORKERS_MAX;
}

static int add_blobs(struct bundle *bundle, struct text bytes, const struct blob_hash *hashes,
                     struct error *error)
{
    for (size_t i = 0; i < pack_chunk_count(bytes.size); i++)
        if (add_blob(bundle,
                     &(struct bundle_blob){hashes[i], pack_chunk(bytes, i), bundle->part_count, 0},
                     error) < 0)
            return -1;
    return 0;
}

int bundle_add(struct bundle *bundle, const struct bundle_part *part, struct job_input *input,
               struct error *error)
{
    if (bundle->part_count == PARTS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the job has %d inputs already", PARTS_MAX);
    AUTO(arena) struct arena *arena = arena_new(0);
    const size_t count = pack_chunk_count(part->bytes.size);
    struct hashing hashing = {part->bytes,
                              arena_alloc(arena, (count + 1) * sizeof(struct blob_hash))};
    struct manifest manifest;
    struct buffer *encoded = &bundle->manifests[bundle->part_count];
    struct bundle_blob described = {.part = bundle->part_count, .is_manifest = true};
    if (parallel_each(core_count(), count, hash_one, &hashing, error) < 0 ||
        pack_describe(arena, &part->packing, part->bytes, hashing.hashes, &manifest, error) < 0)
        return -1;
    buffer_init(encoded, BLOB_BYTES_MAX);
    if (manifest_encode(&manifest, encoded, error) < 0 ||
        add_blobs(bundle, part->bytes, hashing.hashes, error) < 0) {
        buffer_done(encoded);
        return -1;
    }
    described.bytes = buffer_text(encoded);
    blob_hash_of(encoded->data, encoded->size, &described.hash);
    memcpy(input->manifest, described.hash.bytes, sizeof(input->manifest));
    input->records = manifest.record_count;
    bundle->parts[bundle->part_count++] = *part;
    return add_blob(bundle, &described, error);
}

/* ---- Sending --------------------------------------------------------------------------------- */

struct sending {
    struct bundle *bundle;
    struct client *clients[SENDERS];  /* each has a connection of its own */
    const size_t *wanted;             /* of the bundle's blobs */
    atomic_uint_fast64_t *sent_bytes; /* of each part */
};

static int ask_missing(struct client *client, struct arena *arena, const struct bundle *bundle,
                       size_t first, size_t count, struct api_missing *out_missing,
                       struct error *error)
{
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, REQUEST_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_key(&writer, "hashes");
    json_array_begin(&writer);
    for (size_t i = 0; i < count; i++) {
        char text[BLOB_HASH_TEXT_SIZE];
        json_string(&writer, blob_hash_format(&bundle_blob(bundle, first + i)->hash, text));
    }
    json_array_end(&writer);
    json_object_end(&writer);
    if (buffer_check(&body, error) < 0)
        return -1;
    struct client_answer answer = {&api_missing_schema, out_missing, {0}};
    return client_post(client, arena, "/v1/chunks/missing", buffer_text(&body), &answer, error);
}

/* Marks those of the bundle's blobs that the market lacks, each hash once. */
static int find_missing(struct client *client, const struct bundle *bundle, bool *is_missing,
                        struct error *error)
{
    const size_t count = bundle_blob_count(bundle);
    for (size_t first = 0; first < count; first += HASHES_PER_CALL) {
        AUTO(arena) struct arena *arena = arena_new(0);
        const size_t some = count - first < HASHES_PER_CALL ? count - first : HASHES_PER_CALL;
        struct api_missing missing = {0};
        if (ask_missing(client, arena, bundle, first, some, &missing, error) < 0)
            return -1;
        const struct text *hashes = missing.hashes.items;
        for (size_t i = 0; i < missing.hashes.count; i++) {
            struct blob_hash hash;
            if (blob_hash_parse(hashes[i], &hash, error) < 0)
                return error_wrap(error, "the market's answer");
            const uintptr_t found = (uintptr_t)map_get_text(&bundle->by_hash, hash_key(&hash));
            if (found)
                is_missing[found - 1] = true;
        }
    }
    return 0;
}

static int send_one(void *context, size_t worker, size_t index, struct error *error)
{
    const struct sending *sending = context;
    const struct bundle_blob *blob = bundle_blob(sending->bundle, sending->wanted[index]);
    char hash[BLOB_HASH_TEXT_SIZE], path[96];
    snprintf(path, sizeof(path), "/v1/chunks/%s", blob_hash_format(&blob->hash, hash));
    struct buffer frame AUTO_BUFFER;
    buffer_init(&frame, BLOB_BYTES_MAX);
    const bool is_frame = blob_encode(blob->bytes, &frame);
    if (client_put_bytes(sending->clients[worker], path,
                         is_frame ? buffer_text(&frame) : blob->bytes,
                         is_frame ? blob_coding_name(BLOB_CODING_ZSTD) : NULL, error) < 0)
        return error_wrap(error, "upload");
    atomic_fetch_add(&sending->sent_bytes[blob->part], blob->bytes.size);
    return 0;
}

static int send_kind(struct sending *sending, const bool *is_missing, bool is_manifest,
                     struct error *error)
{
    const size_t count = bundle_blob_count(sending->bundle);
    AUTO(arena) struct arena *arena = arena_new(0);
    size_t *wanted = arena_alloc(arena, (count + 1) * sizeof(*wanted));
    size_t wanted_count = 0;
    for (size_t i = 0; i < count; i++)
        if (is_missing[i] && bundle_blob(sending->bundle, i)->is_manifest == is_manifest)
            wanted[wanted_count++] = i;
    const size_t sender_count = wanted_count < SENDERS ? wanted_count + !wanted_count : SENDERS;
    for (size_t i = 1; i < sender_count; i++)
        if (!sending->clients[i] &&
            client_clone(sending->clients[0], &sending->clients[i], error) < 0)
            return -1;
    sending->wanted = wanted;
    return parallel_each(/* worker_count= */ sender_count, wanted_count, send_one, sending, error);
}

int bundle_send(struct bundle *bundle, struct client *client, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    bool *is_missing = arena_alloc(arena, bundle_blob_count(bundle) + 1);
    atomic_uint_fast64_t sent_bytes[PARTS_MAX];
    struct sending sending = {.bundle = bundle, .clients = {client}, .sent_bytes = sent_bytes};
    for (size_t i = 0; i < PARTS_MAX; i++)
        atomic_init(&sent_bytes[i], 0);
    memset(is_missing, 0, bundle_blob_count(bundle) + 1);
    const int result =
        find_missing(client, bundle, is_missing, error) < 0 ||
                send_kind(&sending, is_missing, /* is_manifest= */ false, error) < 0 ||
                send_kind(&sending, is_missing, /* is_manifest= */ true, error) < 0
            ? -1
            : 0;
    for (size_t i = 1; i < SENDERS; i++)
        client_free(sending.clients[i]);
    for (size_t i = 0; i < bundle->part_count; i++)
        bundle->parts[i].sent_bytes = atomic_load(&sent_bytes[i]);
    return result;
}
