/*
 * Peer data: what lies at the lender is read here, in the sandbox, and stays here.
 *
 * The borrower's own file of the same kind came along as `columns`: classes and columns are
 * numbered and scaled as it says, so that all lenders' rows mean the same. Messages go to the
 * market, so none may quote the data.
 */
#include "base/buffer.h"
#include "base/file.h"
#include "base/log.h"
#include "runtime/job_model.h"
#include "train/import_parts.h"
#include "train/reader.h"
#include "worker/worker_internal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Readers quote what they found between quotation marks. */
static void hide_quotes(char *message)
{
    char *to = message;
    bool is_quoted = false;
    for (const char *from = message; *from; from++) {
        if (*from == '"')
            is_quoted = !is_quoted;
        if (!is_quoted || *from == '"')
            *to++ = *from;
    }
    *to = '\0';
}

/* The lender offers a file, which keeps its name for its format, or a folder of them. */
static int find_source(char out[PATH_MAX], struct error *error)
{
    struct stat status;
    DIR *folder = opendir(PEER_FOLDER "/file");
    snprintf(out, PATH_MAX, "%s", PEER_FOLDER "/folder");
    if (!folder)
        return stat(out, &status) == 0
                   ? 0
                   : error_set(error, ERROR_NOT_FOUND, "the lender's data are not there");
    const struct dirent *entry;
    while ((entry = readdir(folder))) // NOLINT(concurrency-mt-unsafe): the stream is not shared
        if (entry->d_name[0] != '.')
            snprintf(out, PATH_MAX, "%s/%s", PEER_FOLDER "/file", entry->d_name);
    closedir(folder);
    return 0;
}

static int read_columns(const struct work *work, struct import_columns *out, struct error *error)
{
    char path[PATH_MAX];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, IMPORT_COLUMNS_SIZE_MAX);
    if (snprintf(path, sizeof(path), "%s/columns", work->data_folder) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the data folder's path is too long");
    if (file_read(path, &bytes, error) < 0)
        return -1;
    return import_columns_read(work->arena, arena_copy_text(work->arena, buffer_text(&bytes)), out,
                               error);
}

static int write_part(const struct import_parts *parts, enum dataset_part part, const char *folder,
                      struct error *error)
{
    char path[PATH_MAX];
    const struct text bytes = {(const char *)parts->files[part].data, parts->files[part].size};
    if (snprintf(path, sizeof(path), "%s/%s", folder, dataset_part_name(part)) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the working folder's path is too long");
    return file_replace(path, &bytes, 1, 0600, error);
}

static int check_shape(const struct dataset_shape *own, const struct dataset_shape *wanted,
                       struct error *error)
{
    const bool is_sparse = wanted->vocabulary && wanted->height == 2;
    if (own->channels == wanted->channels && own->height == wanted->height &&
        (own->width == wanted->width || (is_sparse && own->width < wanted->width)) &&
        own->vocabulary == wanted->vocabulary && own->classes <= wanted->classes)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "records of %u x %u x %u in %u classes, not %u x %u x %u in %u", own->channels,
                     own->height, own->width, own->classes, wanted->channels, wanted->height,
                     wanted->width, wanted->classes);
}

static int write_parts(struct work *work, const struct import *import,
                       const struct import_columns *columns, const char *folder,
                       struct error *error)
{
    struct import_parts parts;
    const struct import_parts_options options = {
        .seed = work->lease.train.seed + work->lease.rank,
        .split = IMPORT_SPLIT_ALL_TRAIN,
        .columns = columns,
        .entries = work->shape.vocabulary && work->shape.height == 2 ? work->shape.width : 0,
    };
    if (import_parts_init(&parts, import, &options, error) < 0)
        return -1;
    const int result = write_part(&parts, DATASET_TRAIN_IMAGES, folder, error) < 0 ||
                               write_part(&parts, DATASET_TRAIN_LABELS, folder, error) < 0
                           ? -1
                           : 0;
    import_parts_done(&parts);
    return result;
}

static int prepare(struct work *work, const char *folder, struct error *error)
{
    char source[PATH_MAX];
    struct import_options reading;
    struct import_columns columns;
    struct import import AUTO_IMPORT = {0};
    job_train_import(work->arena, &work->lease.train, &reading);
    reading.is_part = true;
    if (find_source(source, error) < 0 || read_columns(work, &columns, error) < 0 ||
        import_read(source, &reading, &import, error) < 0 ||
        import_fit(&import, &columns, error) < 0)
        return -1;
    const struct dataset_shape shape = import_parts_shape(&import);
    if (check_shape(&shape, &work->shape, error) < 0 ||
        write_parts(work, &import, &columns, folder, error) < 0)
        return -1;
    work->own_records = import.train.count;
    return 0;
}

int peer_data_prepare(struct work *work, struct error *error)
{
    const struct text label = job_train_peer(&work->lease.train);
    char *folder = arena_format(work->arena, "%s/peer-data", work->work_folder);
    if (mkdir(work->work_folder, 0700) < 0 && access(work->work_folder, W_OK) < 0)
        return error_set(error, ERROR_UNAVAILABLE, "no working folder");
    if (mkdir(folder, 0700) < 0)
        return error_set_errno(error, errno, "make a folder for the data");
    /* What does not fit into memory goes to the lease's disk, not to its small /tmp. */
    if (setenv("TMPDIR", folder, 1) < 0) // NOLINT(concurrency-mt-unsafe): before any thread
        return error_set_errno(error, errno, "name the folder for large data");
    if (prepare(work, folder, error) < 0) {
        hide_quotes(error->message);
        return error_wrap(error, "peer://" TEXT_FORMAT " of this lender", TEXT_ARGS(label));
    }
    work->data_folder = folder;
    log_event(LOG_INFO, "own_data", "label=" TEXT_FORMAT " records=%" PRIu64, TEXT_ARGS(label),
              work->own_records);
    return 0;
}
