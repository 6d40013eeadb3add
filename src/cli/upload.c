#include "cli/upload.h"

#include "base/json.h"
#include "blob/archive.h"
#include "blob/pack.h"
#include "cli/api.h"
#include "cli/upload_table.h"
#include "train/dataset_catalogue.h"
#include "train/idx_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 30000, PATH_SIZE = 4096, HASHES_PER_CALL = 1000, REQUEST_MAX = 128 << 10 };

#define DATA_SIZE_MAX  ((size_t)4 << 30)
#define IMAGE_SIZE_MAX ((size_t)16 << 30)

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
    struct buffer frame AUTO_BUFFER;
    buffer_init(&frame, BLOB_BYTES_MAX);
    const bool is_frame = blob_encode(bytes, &frame);
    if (client_put_bytes(client, path, is_frame ? buffer_text(&frame) : bytes,
                         is_frame ? blob_coding_name(BLOB_CODING_ZSTD) : NULL, error) < 0)
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
int upload_bytes(struct arena *arena, struct client *client, const struct pack_options *options,
                 struct text bytes, struct job_input *input, uint64_t *out_sent_bytes,
                 struct error *error)
{
    struct memory_source memory = {bytes};
    const struct pack_source source = {read_memory, &memory};
    struct manifest manifest;
    if (pack_stream(arena, options, &source, NULL, &manifest, error) < 0)
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
    if (job_train_is_file(&spec->train))
        return upload_check_table(spec, folder, error);
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
    if (job_train_is_file(&spec->train))
        return upload_table(arena, options, spec, error);
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
        const struct pack_options packing = {
            .media_type = "application/x-idx",
            .header_bytes = idx->header.header_size,
            .record_bytes = idx->header.record_size,
        };
        const struct text bytes = {(const char *)idx->bytes, idx->size};
        if (upload_bytes(arena, options->client, &packing, bytes, &inputs[i], &sent_bytes, error) <
            0)
            return -1;
        if (options->on_part)
            options->on_part(options->context, dataset_part_name(part), idx->size, sent_bytes);
    }
    spec->inputs = inputs;
    spec->input_count = DATASET_PART_COUNT;
    return 0;
}

/* An archive is read twice, for its hashes and for what is missing: it lies in a file without a
 * name meanwhile. */
static int send_archive(struct arena *arena, const struct upload_options *options, int fd,
                        struct job_input *input, struct error *error)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_set_errno(error, errno, "read the archive");
    const size_t size = (size_t)status.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno, "read the archive");
    const struct pack_options packing = {.media_type = "application/x-tar+zstd", .record_bytes = 1};
    uint64_t sent_bytes = 0;
    const int result = upload_bytes(arena, options->client, &packing, (struct text){bytes, size},
                                    input, &sent_bytes, error);
    munmap(bytes, size);
    if (result == 0 && options->on_part)
        options->on_part(options->context, input->split == JOB_SPLIT_IMAGE ? "image" : "files",
                         size, sent_bytes);
    return result;
}

/* A new one at the end of the list, which is a copy. */
static struct job_input *add_input(struct arena *arena, struct job_spec *spec, struct text name,
                                   enum job_split split)
{
    struct job_input *inputs = arena_alloc(arena, (spec->input_count + 1) * sizeof(*inputs));
    for (size_t i = 0; i < spec->input_count; i++)
        inputs[i] = spec->inputs[i];
    inputs[spec->input_count] = (struct job_input){.name = name, .split = split};
    spec->inputs = inputs;
    return &inputs[spec->input_count++];
}

int upload_check_image(struct text path, struct error *error)
{
    struct stat status;
    char name[PATH_SIZE], inside[PATH_SIZE + 16];
    if (text_copy(path, name, sizeof(name), error) < 0)
        return error_wrap(error, "image");
    if (stat(name, &status) < 0)
        return error_set_errno(error, errno,
                               "image: \"%.100s\" (a file of docker save or podman save, or a "
                               "folder with an OCI layout)",
                               name);
    if (S_ISREG(status.st_mode))
        return status.st_size > 0 && (size_t)status.st_size <= IMAGE_SIZE_MAX
                   ? 0
                   : error_set(error, ERROR_INVALID, "image: empty, or larger than 16 GiB");
    snprintf(inside, sizeof(inside), "%s/index.json", name);
    if (!S_ISDIR(status.st_mode) || access(inside, R_OK) < 0)
        return error_set(error, ERROR_INVALID,
                         "image: \"%.100s\" is no OCI layout: it has no index.json", name);
    return 0;
}

int upload_image(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                 struct error *error)
{
    static const struct archive_limits limits = {IMAGE_SIZE_MAX, FILES_MAX};
    const char *path = arena_copy_string(arena, spec->resources.image_id);
    struct stat status;
    struct archive_summary summary;
    if (spec->input_count == JOB_INPUTS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the job has %d inputs already", JOB_INPUTS_MAX);
    if (stat(path, &status) < 0)
        return error_set_errno(error, errno, "\"%s\"", path);
    AUTO_FD int fd = S_ISDIR(status.st_mode)
                         ? open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600)
                         : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    if (S_ISDIR(status.st_mode) && archive_pack(path, fd, &limits, &summary, error) < 0)
        return -1;
    return send_archive(arena, options, fd, add_input(arena, spec, TEXT("image"), JOB_SPLIT_IMAGE),
                        error);
}

int upload_files(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                 struct error *error)
{
    static const struct archive_limits limits = {DATA_SIZE_MAX, FILES_MAX};
    if (spec->input_count == JOB_INPUTS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the job has %d inputs already", JOB_INPUTS_MAX);
    const char *folder = arena_copy_string(arena, spec->workdir);
    AUTO_FD int fd = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file in /var/tmp");
    struct archive_summary summary;
    if (archive_pack(folder, fd, &limits, &summary, error) < 0)
        return -1;
    return send_archive(arena, options, fd, add_input(arena, spec, TEXT("files"), JOB_SPLIT_FILES),
                        error);
}
