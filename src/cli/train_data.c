#include "cli/train_data.h"

#include "base/memory.h"
#include "client/upload_table.h"
#include "runtime/job_model.h"
#include "train/dataset_catalogue.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATH_SIZE = 40 };

/* The part as a file that can be opened by a path, without a name of its own. */
static int part_file(struct train_data *data, enum dataset_part part, struct error *error)
{
    const struct spool *spool = &data->parts.files[part];
    if (spool->file) {
        /* What was reserved behind the last byte is no part of it. */
        const int fd = spool->file - 1;
        if (ftruncate(fd, (off_t)spool->size) < 0)
            return error_set_errno(error, errno, "cut the data to its size");
        data->files[part] = dup(fd);
    } else {
        data->files[part] = memfd_create(dataset_part_name(part), MFD_CLOEXEC);
    }
    const int fd = data->files[part];
    if (fd < 0)
        return error_set_errno(error, errno, "open a file for the data");
    for (size_t done = 0; !spool->file && done < spool->size;) {
        const ssize_t written = write(fd, spool->data + done, spool->size - done);
        if (written < 0 && errno != EINTR)
            return error_set_errno(error, errno, "write the data");
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int part_open(struct train_data *data, enum dataset_part images, enum dataset_part labels,
                     struct dataset **out_dataset, struct error *error)
{
    char images_path[PATH_SIZE], labels_path[PATH_SIZE];
    if (part_file(data, images, error) < 0 || part_file(data, labels, error) < 0)
        return -1;
    snprintf(images_path, sizeof(images_path), "/proc/self/fd/%d", data->files[images]);
    snprintf(labels_path, sizeof(labels_path), "/proc/self/fd/%d", data->files[labels]);
    const struct dataset_options options = {
        .images_path = images_path,
        .labels_path = labels_path,
        .target = data->shape.target,
        .classes = data->shape.classes,
        .vocabulary = data->shape.vocabulary,
        .mean = data->mean,
        .deviation = data->deviation > 0 ? data->deviation : 1,
    };
    return dataset_open(&options, out_dataset, error);
}

static int open_imported(struct arena *arena, struct train_data *data, struct job_spec *spec,
                         const struct upload_options *options, const char *path,
                         const struct dataset_entry *entry, struct error *error)
{
    if (upload_read(arena, options, path, spec, &data->parts, error) < 0)
        return -1;
    data->has_parts = true;
    data->mean = entry ? entry->mean : spec->train.mean;
    data->deviation = entry ? entry->deviation : spec->train.deviation;
    if (!job_train_shape(&spec->train, &data->shape))
        return error_set(error, ERROR_INVALID, "train.data: what its records are is not known");
    if (part_open(data, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS, &data->train, error) < 0)
        return -1;
    return part_open(data, DATASET_TEST_IMAGES, DATASET_TEST_LABELS, &data->test, error);
}

static int open_catalogue(struct train_data *data, const struct job_spec *spec,
                          const struct dataset_entry *entry, const char *folder,
                          struct error *error)
{
    data->mean = entry->mean;
    data->deviation = entry->deviation;
    if (!job_train_shape(&spec->train, &data->shape))
        return error_set(error, ERROR_INVALID, "train.data: what its records are is not known");
    if (dataset_entry_open(entry, folder, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS, &data->train,
                           error) < 0 ||
        dataset_entry_open(entry, folder, DATASET_TEST_IMAGES, DATASET_TEST_LABELS, &data->test,
                           error) < 0)
        return error_wrap(error, "train.data");
    return 0;
}

int train_data_open(struct arena *arena, struct job_spec *spec, const char *dataset_dir,
                    void (*on_reading)(void *context, const char *what), void *context,
                    struct train_data **out_data, struct error *error)
{
    const struct upload_options options = {
        .folder = dataset_dir, .on_reading = on_reading, .context = context};
    const struct dataset_entry *entry = NULL;
    AUTO(train_data) struct train_data *data = memory_zeroed(1, sizeof(*data));
    for (int i = 0; i < DATASET_PART_COUNT; i++)
        data->files[i] = -1;
    if (upload_check_data(spec, dataset_dir, error) < 0)
        return -1;
    int result;
    if (job_train_is_file(&spec->train)) {
        result = open_imported(arena, data, spec, &options,
                               upload_table_path(arena, &spec->train, dataset_dir), NULL, error);
    } else {
        if (dataset_entry_find(spec->train.data, &entry, error) < 0)
            return error_wrap(error, "train.data");
        result = entry->is_imported
                     ? open_imported(arena, data, spec, &options, dataset_dir, entry, error)
                     : open_catalogue(data, spec, entry, dataset_dir, error);
    }
    if (result < 0)
        return -1;
    *out_data = TAKE(data);
    return 0;
}

void train_data_free(struct train_data *data)
{
    if (!data)
        return;
    dataset_free(data->train);
    dataset_free(data->test);
    for (int i = 0; i < DATASET_PART_COUNT; i++)
        if (data->files[i] >= 0)
            close(data->files[i]);
    if (data->has_parts)
        import_parts_done(&data->parts);
    free(data);
}
