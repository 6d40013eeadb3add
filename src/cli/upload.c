#include "cli/upload.h"

#include "base/json.h"
#include "blob/pack.h"
#include "cli/api.h"
#include "train/dataset_catalogue.h"
#include "train/idx_reader.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096, HASHES_PER_CALL = 1000, REQUEST_MAX = 128 << 10 };

#define DATA_SIZE_MAX ((size_t)4 << 30)

/* Bytes in memory as a source to pack. */
struct memory_source {
    struct text left;
};

static int read_memory(void *context, void *data, size_t size, size_t *out_size,
                       struct error *error)
{
    (void)error;
    struct memory_source *source = context;
    const size_t count = size < source->left.size ? size : source->left.size;
    memcpy(data, source->left.data, count);
    source->left.data += count;
    source->left.size -= count;
    *out_size = count;
    return 0;
}

static int ask_missing(struct client *client, struct arena *arena, const struct blob_hash *hashes,
                       size_t count, struct api_missing *out_missing, struct error *error)
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
        json_string(&writer, blob_hash_format(&hashes[i], text));
    }
    json_array_end(&writer);
    json_object_end(&writer);
    if (buffer_check(&body, error) < 0)
        return -1;
    struct client_answer answer = {&api_missing_schema, out_missing, {0}};
    return client_post(client, arena, "/v1/chunks/missing", buffer_text(&body), &answer, error);
}

static bool is_missing(const struct api_missing *missing, const char *hash)
{
    const struct text *hashes = missing->hashes.items;
    for (size_t i = 0; i < missing->hashes.count; i++)
        if (text_equal(hashes[i], text_of(hash)))
            return true;
    return false;
}

static int put_chunk(struct client *client, const char *hash, struct text bytes,
                     struct error *error)
{
    char path[96];
    snprintf(path, sizeof(path), "/v1/chunks/%s", hash);
    if (client_put_bytes(client, path, bytes, error) < 0)
        return error_wrap(error, "upload");
    return 0;
}

/* Sends those of `count` blobs the market lacks. */
static int send_missing(struct client *client, const struct blob_hash *hashes,
                        const struct text *blobs, size_t count, uint64_t *sent_bytes,
                        struct error *error)
{
    for (size_t first = 0; first < count; first += HASHES_PER_CALL) {
        AUTO(arena) struct arena *arena = arena_new(0);
        const size_t some = count - first < HASHES_PER_CALL ? count - first : HASHES_PER_CALL;
        struct api_missing missing = {0};
        if (ask_missing(client, arena, hashes + first, some, &missing, error) < 0)
            return -1;
        for (size_t i = first; i < first + some; i++) {
            char hash[BLOB_HASH_TEXT_SIZE];
            if (!is_missing(&missing, blob_hash_format(&hashes[i], hash)))
                continue;
            if (put_chunk(client, hash, blobs[i], error) < 0)
                return -1;
            *sent_bytes += blobs[i].size;
        }
    }
    return 0;
}

/* The manifest goes last: a market that has it has all its chunks. */
static int send_part(struct arena *arena, struct client *client, const struct idx *idx,
                     struct job_input *input, uint64_t *out_sent_bytes, struct error *error)
{
    const struct text bytes = {(const char *)idx->bytes, idx->size};
    struct memory_source memory = {bytes};
    const struct pack_source source = {read_memory, &memory};
    const struct pack_options options = {
        .media_type = "application/x-idx",
        .header_bytes = idx->header.header_size,
        .record_bytes = idx->header.record_size,
    };
    struct manifest manifest;
    if (pack_stream(arena, &options, &source, NULL, &manifest, error) < 0)
        return -1;
    const size_t count = manifest.chunks.count;
    struct blob_hash *hashes = arena_alloc(arena, (count + 1) * sizeof(*hashes));
    struct text *blobs = arena_alloc(arena, (count + 1) * sizeof(*blobs));
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        const struct manifest_chunk *chunk = manifest_chunk(&manifest, i);
        hashes[i] = chunk->hash;
        blobs[i] = (struct text){bytes.data + offset, chunk->size_bytes};
        offset += chunk->size_bytes;
    }
    struct buffer encoded AUTO_BUFFER;
    buffer_init(&encoded, BLOB_BYTES_MAX);
    if (manifest_encode(&manifest, &encoded, error) < 0)
        return -1;
    blobs[count] = buffer_text(&encoded);
    blob_hash_of(encoded.data, encoded.size, &hashes[count]);
    *out_sent_bytes = 0;
    if (send_missing(client, hashes, blobs, count, out_sent_bytes, error) < 0 ||
        send_missing(client, hashes + count, blobs + count, 1, out_sent_bytes, error) < 0)
        return -1;
    memcpy(input->manifest, hashes[count].bytes, sizeof(input->manifest));
    input->records = manifest.record_count;
    return 0;
}

int upload_check_data(const struct job_spec *spec, const char *folder, struct error *error)
{
    const struct dataset_entry *entry;
    if (dataset_entry_find(spec->train.data, &entry, error) < 0)
        return error_wrap(error, "train.data");
    for (int part = 0; part < DATASET_PART_COUNT; part++) {
        char path[PATH_SIZE];
        if (dataset_entry_path(entry, folder, (enum dataset_part)part, path, sizeof(path), error) <
            0)
            return error_wrap(error, "train.data");
    }
    return 0;
}

int upload_data(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                struct error *error)
{
    const struct dataset_entry *entry;
    if (dataset_entry_find(spec->train.data, &entry, error) < 0)
        return error_wrap(error, "train.data");
    struct job_input *inputs = arena_alloc(arena, DATASET_PART_COUNT * sizeof(*inputs));
    for (int i = 0; i < DATASET_PART_COUNT; i++) {
        const enum dataset_part part = (enum dataset_part)i;
        char path[PATH_SIZE];
        AUTO(idx) struct idx *idx = NULL;
        if (dataset_entry_path(entry, options->folder, part, path, sizeof(path), error) < 0 ||
            idx_open(path, DATA_SIZE_MAX, &idx, error) < 0)
            return error_wrap(error, "train.data");
        uint64_t sent_bytes;
        inputs[i].name = text_of(dataset_part_name(part));
        inputs[i].split = part == DATASET_TRAIN_IMAGES || part == DATASET_TRAIN_LABELS
                              ? JOB_SPLIT_TRAIN
                              : JOB_SPLIT_TEST;
        if (send_part(arena, options->client, idx, &inputs[i], &sent_bytes, error) < 0)
            return -1;
        if (options->on_part)
            options->on_part(options->context, dataset_part_name(part), idx->size, sent_bytes);
    }
    spec->inputs = inputs;
    spec->input_count = DATASET_PART_COUNT;
    return 0;
}
