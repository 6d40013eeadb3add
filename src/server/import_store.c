#include "server/import_store.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/scope.h"
#include "blob/pack.h"
#include "runtime/mount_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_BYTES (UINT64_C(16) << 20)

static int stopped(struct error *error)
{
    return error_set(error, ERROR_CONFLICT, "it was stopped");
}

int import_lay_out(struct blob_store *blobs, const struct manifest *manifest, const char *path,
                   struct import_progress *progress, struct error *error)
{
    const struct pack_origin origin = pack_origin_store(blobs);
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file for what is read");
    for (uint64_t done = 0; done < manifest->size_bytes;) {
        const uint64_t left = manifest->size_bytes - done;
        const uint64_t size = left < STEP_BYTES ? left : STEP_BYTES;
        if (atomic_load(&progress->is_stopped))
            return stopped(error);
        if (pack_write_bytes(manifest, done, size, &origin, fd, error) < 0)
            return -1;
        done += size;
        atomic_store(&progress->done_bytes, done);
    }
    return 0;
}

/* ---- What was made of it --------------------------------------------------------------------- */

struct import_file {
    void *mapping; /* NULL: none */
    struct text bytes;
    struct text manifest;
    const struct blob_hash *hashes; /* of its chunks */
};

static int map_file(int folder_fd, const char *name, uint64_t *bytes_left,
                    struct import_file *out_file, struct error *error)
{
    struct stat status;
    AUTO_FD int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open what was read: \"%s\"", name);
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size <= 0)
        return error_set(error, ERROR_CORRUPT, "what was read is no file: \"%s\"", name);
    if ((uint64_t)status.st_size > *bytes_left)
        return error_set(error, ERROR_EXHAUSTED, "it becomes too many records");
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno, "open what was read: \"%s\"", name);
    *bytes_left -= (uint64_t)status.st_size;
    out_file->mapping = bytes;
    out_file->bytes = (struct text){bytes, (size_t)status.st_size};
    return 0;
}

static int read_job(struct import_product *product, struct text json, struct error *error)
{
    struct job_spec spec;
    if (json.size > JOB_SPEC_SIZE_MAX)
        return error_set(error, ERROR_CORRUPT, "what was read has no job");
    if (job_spec_read_work(product->arena, TEXT("native"), json, &spec, error) < 0)
        return error_wrap(error, "what was read");
    product->train = spec.train;
    return 0;
}

static void add_chunk(struct import_product *product, const struct blob_hash *hash,
                      uint64_t size_bytes)
{
    product->chunks[product->chunk_count++] = (struct holdings_chunk){*hash, size_bytes};
}

/* The part's chunks and its manifest. */
static int describe_part(struct import_product *product, const struct job_part *part,
                         struct import_file *file, struct job_input *input, struct error *error)
{
    struct arena *arena = product->arena;
    const struct pack_options packing = {.media_type = part->media_type,
                                         .header_bytes = part->header_bytes,
                                         .record_bytes = part->record_bytes};
    const size_t count = pack_chunk_count(part->bytes.size);
    struct blob_hash *hashes = arena_alloc(arena, count * sizeof(*hashes)), hash;
    struct manifest manifest;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, BLOB_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct text chunk = pack_chunk(part->bytes, i);
        blob_hash_of(chunk.data, chunk.size, &hashes[i]);
        add_chunk(product, &hashes[i], chunk.size);
    }
    if (pack_describe(arena, &packing, part->bytes, hashes, &manifest, error) < 0 ||
        manifest_encode(&manifest, &json, error) < 0)
        return error_wrap(error, "what was read: %s", part->name);
    file->hashes = hashes;
    file->manifest = arena_copy_text(arena, buffer_text(&json));
    blob_hash_of(json.data, json.size, &hash);
    add_chunk(product, &hash, json.size);
    *input = (struct job_input){
        .name = text_of(part->name), .split = part->split, .records = manifest.record_count};
    memcpy(input->manifest, hash.bytes, sizeof(input->manifest));
    return 0;
}

/* Inputs and targets of the same records. */
static int check_counts(const struct import_product *product, struct error *error)
{
    const struct job_input *inputs = product->inputs;
    if (inputs[DATASET_TRAIN_IMAGES].records != inputs[DATASET_TRAIN_LABELS].records ||
        inputs[DATASET_TEST_IMAGES].records != inputs[DATASET_TEST_LABELS].records)
        return error_set(error, ERROR_CORRUPT, "what was read has records without targets");
    return 0;
}

static int describe_all(struct import_product *product, struct error *error)
{
    size_t chunk_max = 0;
    for (size_t i = 0; i < JOB_PARTS_MAX; i++)
        chunk_max += pack_chunk_count(product->files[i].bytes.size) + 1;
    product->chunks = arena_alloc(product->arena, chunk_max * sizeof(*product->chunks));
    for (size_t i = product->input_first; i < JOB_PARTS_MAX; i++) {
        struct import_file *file = &product->files[i];
        struct job_part part;
        if (i == DATASET_PART_COUNT)
            part = job_part_of_columns(file->bytes, /* is_shared= */ product->input_first > 0);
        else if (job_part_of_idx((enum dataset_part)i, file->bytes, &part, error) < 0)
            return error_wrap(error, "what was read: %s", dataset_part_name((enum dataset_part)i));
        if (describe_part(product, &part, file, &product->inputs[i], error) < 0)
            return -1;
    }
    return check_counts(product, error);
}

static int count_classes(struct import_product *product, struct error *error)
{
    const struct import_file *files = product->files;
    const struct import_labels labels = {.train = files[DATASET_TRAIN_LABELS].bytes,
                                         .test = files[DATASET_TEST_LABELS].bytes,
                                         .columns = files[DATASET_PART_COUNT].bytes,
                                         .classes = product->train.classes};
    if (import_classes_read(product->arena, &labels, &product->classes, error) < 0)
        return error_wrap(error, "what was read");
    return 0;
}

static int open_product(struct import_product *product, const char *folder, size_t input_first,
                        struct error *error)
{
    *product = (struct import_product){.arena = arena_new(0), .input_first = input_first};
    product->files = arena_alloc(product->arena, JOB_PARTS_MAX * sizeof(*product->files));
    memset(product->files, 0, JOB_PARTS_MAX * sizeof(*product->files));
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? error_set_errno(error, errno, "open what was read") : fd;
}

int import_product_read(struct import_product *product, const char *folder, bool is_peer,
                        uint64_t bytes_max, struct error *error)
{
    struct import_file job = {0};
    AUTO_FD int folder_fd = open_product(product, folder, is_peer ? DATASET_TEST_IMAGES : 0, error);
    if (folder_fd < 0)
        return -1;
    for (size_t i = product->input_first; i < JOB_PARTS_MAX; i++) {
        const char *name =
            i < DATASET_PART_COUNT ? dataset_part_name((enum dataset_part)i) : JOB_PART_COLUMNS;
        if (map_file(folder_fd, name, &bytes_max, &product->files[i], error) < 0)
            return -1;
    }
    if (map_file(folder_fd, "job.json", &bytes_max, &job, error) < 0)
        return -1;
    const int result = read_job(product, job.bytes, error);
    munmap(job.mapping, job.bytes.size);
    if (result < 0 || describe_all(product, error) < 0)
        return -1;
    return count_classes(product, error);
}

/* Its index is all there, and just the bytes that it tells of. */
static int check_mount(struct import_product *product, struct text bytes, struct error *error)
{
    struct mount_index index;
    uint64_t size;
    const size_t header = bytes.size < MOUNT_HEADER_SIZE ? bytes.size : MOUNT_HEADER_SIZE;
    if (mount_header_read((const uint8_t *)bytes.data, header, &size, error) < 0)
        return -1;
    if (size > MOUNT_INDEX_SIZE_MAX || size > bytes.size - MOUNT_HEADER_SIZE)
        return error_set(error, ERROR_CORRUPT, "its index is cut off");
    const struct text table = {bytes.data + MOUNT_HEADER_SIZE, (size_t)size};
    if (mount_index_decode(product->arena, table, &index, error) < 0)
        return -1;
    if (mount_index_bytes(&index) != bytes.size - MOUNT_HEADER_SIZE - size)
        return error_set(error, ERROR_CORRUPT, "its files have another size than its index says");
    product->mount_files = index.file_count;
    product->mount_parts = mount_index_part_count(&index);
    return 0;
}

int import_product_read_mount(struct import_product *product, const char *folder,
                              uint64_t bytes_max, struct error *error)
{
    const size_t last = JOB_PARTS_MAX - 1;
    AUTO_FD int folder_fd = open_product(product, folder, last, error);
    if (folder_fd < 0)
        return -1;
    struct import_file *file = &product->files[last];
    if (map_file(folder_fd, JOB_PART_MOUNT, &bytes_max, file, error) < 0)
        return -1;
    if (check_mount(product, file->bytes, error) < 0)
        return error_wrap(error, "what was packed");
    product->is_mount = true;
    product->chunks = arena_alloc(product->arena, (pack_chunk_count(file->bytes.size) + 1) *
                                                      sizeof(*product->chunks));
    const struct job_part part = {.name = JOB_PART_MOUNT,
                                  .media_type = MOUNT_MEDIA_TYPE,
                                  .split = JOB_SPLIT_MOUNT,
                                  .header_bytes = MOUNT_HEADER_SIZE,
                                  .record_bytes = 1,
                                  .bytes = file->bytes};
    return describe_part(product, &part, file, &product->inputs[last], error);
}

static int keep_file(const struct import_file *file, struct blob_store *blobs,
                     const struct import_progress *progress, struct error *error)
{
    struct blob_hash stored;
    for (size_t i = 0; i < pack_chunk_count(file->bytes.size); i++) {
        if (atomic_load(&progress->is_stopped))
            return stopped(error);
        if (blob_store_put(blobs, &file->hashes[i], pack_chunk(file->bytes, i), &stored, error) < 0)
            return -1;
    }
    return blob_store_put(blobs, NULL, file->manifest, &stored, error);
}

int import_product_keep(const struct import_product *product, struct blob_store *blobs,
                        const struct import_progress *progress, struct error *error)
{
    for (size_t i = product->input_first; i < JOB_PARTS_MAX; i++)
        if (keep_file(&product->files[i], blobs, progress, error) < 0)
            return error_wrap(error, "store the records");
    return 0;
}

void import_product_close(struct import_product *product)
{
    for (size_t i = 0; product->files && i < JOB_PARTS_MAX; i++) {
        struct import_file *file = &product->files[i];
        if (file->mapping)
            munmap(file->mapping, file->bytes.size);
        file->mapping = NULL;
    }
}

void import_product_done(struct import_product *product)
{
    import_product_close(product);
    arena_free(product->arena);
    *product = (struct import_product){0};
}
