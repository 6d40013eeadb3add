#include "client/upload.h"

#include "base/assert.h"
#include "blob/archive.h"
#include "client/bring.h"
#include "client/upload_table.h"
#include "client/wheels.h"
#include "runtime/job_import.h"
#include "runtime/job_model.h"
#include "runtime/native.h"
#include "source/place.h"
#include "train/checkpoint.h"
#include "train/dataset_catalogue.h"
#include "train/idx_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 30000, PATH_SIZE = 4096 };

#define DATA_SIZE_MAX  ((size_t)4 << 30)
#define IMAGE_SIZE_MAX ((size_t)16 << 30)

static int check_folder(const struct dataset_entry *entry, const char *folder, struct error *error)
{
    if (!folder && !entry->folder)
        return error_set(error, ERROR_NOT_FOUND,
                         "train.data: data set \"%s\" comes with no package: name the folder that "
                         "holds it with --dataset-dir",
                         entry->name);
    if (folder && access(folder, R_OK) < 0)
        return error_set_errno(error, errno, "train.data: \"%s\"", folder);
    return 0;
}

int upload_check_data(const struct job_spec *spec, const char *folder, struct error *error)
{
    if (job_train_is_file(&spec->train))
        return upload_check_table(spec, folder, error);
    const struct dataset_entry *entry;
    if (dataset_entry_find(spec->train.data, &entry, error) < 0)
        return error_wrap(error, "train.data");
    if (check_folder(entry, folder, error) < 0)
        return -1;
    for (int part = 0; !entry->is_imported && part < DATASET_PART_COUNT; part++) {
        char path[PATH_SIZE];
        if (dataset_entry_path(entry, folder, (enum dataset_part)part, path, sizeof(path), error) <
            0)
            return error_wrap(error, "train.data");
    }
    return 0;
}

struct text upload_name(struct text name)
{
    struct place place;
    struct error ignored;
    if (!place_is_address(name))
        return job_data_name(name);
    if (place_parse(name, &place, &ignored) < 0 || place.path.size < 2)
        return TEXT("data/");
    return job_data_name(place.path);
}

static void free_idx(void *idx)
{
    idx_free(idx);
}

/* What a worker would refuse is refused before anything is sent. */
static int check_records(const struct dataset_entry *entry, const char *folder,
                         enum dataset_part images, enum dataset_part labels, struct error *error)
{
    AUTO(dataset) struct dataset *dataset = NULL;
    if (dataset_entry_open(entry, folder, images, labels, &dataset, error) < 0)
        return -1;
    const struct dataset_shape *shape = dataset_shape(dataset);
    if (shape->channels == entry->channels && shape->height == entry->height &&
        shape->width == entry->width)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "the folder does not hold %s: images of %u x %u x %u, not %u x %u x %u",
                     entry->name, shape->channels, shape->height, shape->width, entry->channels,
                     entry->height, entry->width);
}

int upload_data(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                struct error *error)
{
    const struct dataset_entry *entry;
    if (job_train_is_file(&spec->train))
        return upload_table(arena, options, spec, error);
    if (dataset_entry_find(spec->train.data, &entry, error) < 0)
        return error_wrap(error, "train.data");
    if (entry->is_imported)
        return check_folder(entry, options->folder, error) < 0
                   ? -1
                   : upload_import(arena, options, options->folder, spec, error);
    if (check_records(entry, options->folder, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS, error) <
            0 ||
        check_records(entry, options->folder, DATASET_TEST_IMAGES, DATASET_TEST_LABELS, error) < 0)
        return error_wrap(error, "train.data");
    struct job_input *inputs = arena_alloc(arena, DATASET_PART_COUNT * sizeof(*inputs));
    for (int i = 0; i < DATASET_PART_COUNT; i++) {
        const enum dataset_part part = (enum dataset_part)i;
        char path[PATH_SIZE];
        struct idx *idx = NULL;
        if (dataset_entry_path(entry, options->folder, part, path, sizeof(path), error) < 0 ||
            idx_open(path, DATA_SIZE_MAX, &idx, error) < 0)
            return error_wrap(error, "train.data");
        bundle_keep_take(options->bundle, idx, free_idx);
        inputs[i].name = text_of(dataset_part_name(part));
        inputs[i].split = part == DATASET_TRAIN_IMAGES || part == DATASET_TRAIN_LABELS
                              ? JOB_SPLIT_TRAIN
                              : JOB_SPLIT_TEST;
        const struct bundle_part added = {
            .name = dataset_part_name(part),
            .packing = {.media_type = "application/x-idx",
                        .header_bytes = idx->header.header_size,
                        .record_bytes = idx->header.record_size},
            .bytes = {(const char *)idx->bytes, idx->size},
        };
        if (bundle_add(options->bundle, &added, &inputs[i], error) < 0)
            return -1;
    }
    spec->inputs = inputs;
    spec->input_count = DATASET_PART_COUNT;
    return 0;
}

struct mapping {
    void *bytes;
    size_t size;
};

static void free_mapping(void *context)
{
    struct mapping *mapping = context;
    munmap(mapping->bytes, mapping->size);
    free(mapping);
}

int upload_add_file(const struct upload_options *options, const struct upload_file *file,
                    struct job_input *input, struct error *error)
{
    struct stat status;
    if (fstat(file->fd, &status) < 0)
        return error_set_errno(error, errno, "read the %s", file->name);
    const size_t size = (size_t)status.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno, "read the %s", file->name);
    struct mapping *mapping = malloc(sizeof(*mapping));
    ASSERT(mapping);
    *mapping = (struct mapping){bytes, size};
    bundle_keep_take(options->bundle, mapping, free_mapping);
    const struct bundle_part part = {
        .name = file->name,
        .packing = {.media_type = file->media_type,
                    .header_bytes = file->header_bytes,
                    .record_bytes = 1},
        .bytes = {bytes, size},
        .is_others = file->is_others,
    };
    return bundle_add(options->bundle, &part, input, error);
}

static int add_archive(const struct upload_options *options, int fd, bool is_others,
                       struct job_input *input, struct error *error)
{
    const struct upload_file file = {.fd = fd,
                                     .name = job_split_name(input->split),
                                     .media_type = "application/x-tar+zstd",
                                     .is_others = is_others};
    return upload_add_file(options, &file, input, error);
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

int upload_add_input(struct arena *arena, struct job_spec *spec, struct text name,
                     enum job_split split, struct job_input **out_input, struct error *error)
{
    if (spec->input_count == JOB_INPUTS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the job has %d inputs already", JOB_INPUTS_MAX);
    *out_input = add_input(arena, spec, name, split);
    return 0;
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
    return add_archive(options, fd, !S_ISDIR(status.st_mode),
                       add_input(arena, spec, TEXT("image"), JOB_SPLIT_IMAGE), error);
}

int upload_wheels(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                  struct error *error)
{
    if (spec->input_count == JOB_INPUTS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the job has %d inputs already", JOB_INPUTS_MAX);
    AUTO_FD int fd = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    size_t count = 0;
    if (fd < 0)
        return error_set_errno(error, errno, "make a file in /var/tmp");
    if (options->on_reading && spec->requirements.size)
        options->on_reading(options->context,
                            text_is(spec->resources.install, "index")
                                ? "Resolving what the requirements name ..."
                                : "Fetching the wheels that the requirements name ...");
    if (wheels_pack(arena, spec, options->stop, fd, &count, error) < 0)
        return -1;
    return add_archive(options, fd, /* is_others= */ false,
                       add_input(arena, spec, TEXT("wheels"), JOB_SPLIT_WHEELS), error);
}

int upload_files(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                 struct error *error)
{
    static const struct archive_limits limits = {DATA_SIZE_MAX, FILES_MAX};
    if (spec->input_count == JOB_INPUTS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the job has %d inputs already", JOB_INPUTS_MAX);
    const char *folder = arena_copy_string(arena, spec->workdir);
    AUTO(bring) struct bring *bring = NULL;
    const struct bring_options bringing = {.address = folder,
                                           .spec = spec,
                                           .on_note = options->on_reading,
                                           .context = options->context,
                                           .leaves_signals = options->leaves_signals,
                                           .stop = options->stop};
    if (place_is_address(spec->workdir)) {
        if (bring_open_folder(&bringing, &bring, error) < 0)
            return -1;
        folder = bring_path(bring);
    }
    AUTO_FD int fd = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file in /var/tmp");
    struct archive_summary summary;
    if (archive_pack(folder, fd, &limits, &summary, error) < 0)
        return -1;
    return add_archive(options, fd, /* is_others= */ false,
                       add_input(arena, spec, TEXT("files"), JOB_SPLIT_FILES), error);
}

/* Of the data that the workers share; 0: not known yet. */
static uint64_t count_records(const struct job_spec *spec)
{
    for (size_t i = 0; i < spec->input_count; i++)
        if (spec->inputs[i].split == JOB_SPLIT_TRAIN && spec->inputs[i].records > 0)
            return spec->inputs[i].records;
    return 0;
}

/* A job that would end with its first step is a mistake. */
static int check_epochs(const struct checkpoint *checkpoint, const struct job_spec *spec,
                        struct error *error)
{
    const uint64_t records = count_records(spec), epochs = spec->train.epochs;
    if (records == 0 || epochs == 0 || checkpoint->samples / records < epochs)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "the checkpoint has learnt %" PRIu64 " epochs already, and train.epochs is "
                     "%" PRIu64 ": raise that to go on",
                     checkpoint->samples / records, epochs);
}

/* What a borrower's program left is its own: only that it is an archive is looked at. */
static int check_archive(const char *path, struct error *error)
{
    struct stat status;
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    if (!S_ISREG(status.st_mode))
        return error_set(error, ERROR_INVALID, "\"%s\" is not a file", path);
    if (archive_check(fd, error) < 0)
        return error_set(error, ERROR_INVALID,
                         "\"%s\" is no checkpoint of a program: a tar file, as souk job fetch "
                         "brings it",
                         path);
    return 0;
}

int upload_check_checkpoint(const char *path, const struct job_spec *spec, struct error *error)
{
    AUTO(checkpoint) struct checkpoint *checkpoint = NULL;
    struct dataset_shape shape;
    struct model_spec model;
    int layer;
    if (job_spec_is_command(spec))
        return check_archive(path, error);
    if (checkpoint_read(path, &checkpoint, error) < 0 || check_epochs(checkpoint, spec, error) < 0)
        return -1;
    if (!job_train_shape(&spec->train, &shape))
        return 0; /* its data are not read yet */
    if (job_train_model(&spec->train, &shape, &model, &layer, error) < 0)
        return -1;
    return model_spec_equal(&checkpoint->spec, &model)
               ? 0
               : checkpoint_refuse_other(checkpoint, &model, error);
}

int upload_checkpoint(struct arena *arena, const struct upload_options *options, const char *path,
                      struct job_spec *spec, struct error *error)
{
    if (spec->input_count == JOB_INPUTS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the job has %d inputs already", JOB_INPUTS_MAX);
    if (upload_check_checkpoint(path, spec, error) < 0)
        return -1;
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    const struct upload_file file = {.fd = fd,
                                     .name = LEASE_CHECKPOINT_NAME,
                                     .media_type = "application/octet-stream",
                                     .is_others = true};
    return upload_add_file(options, &file,
                           add_input(arena, spec, TEXT(LEASE_CHECKPOINT_NAME),
                                     job_spec_is_command(spec) ? JOB_SPLIT_FILES : JOB_SPLIT_TEST),
                           error);
}
