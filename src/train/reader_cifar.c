/*
 * CIFAR's binary files: records of a label (CIFAR-100: the coarse and the fine one, of which the
 * fine is taken) and 3 x 32 x 32 bytes, red first.
 */
#include "train/reader_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 32, PIXELS = 3 * SIDE * SIDE };

int reader_cifar_read(const struct reader_source *source, uint32_t label_bytes, uint64_t size_max,
                      struct import_rows *rows, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    const uint32_t classes = label_bytes == 2 ? 100 : 10;
    uint8_t record[2 + PIXELS];
    if (reader_source_open(source, size_max, &stream, error) < 0)
        return -1;
    for (;;) {
        size_t got;
        const uint64_t start = data_stream_offset(stream);
        if (data_stream_read(stream, record, label_bytes + PIXELS, &got, error) < 0)
            return -1;
        if (got == 0)
            return 0;
        if (got < label_bytes + PIXELS)
            return error_set(error, ERROR_CORRUPT,
                             "truncated: record %u at byte %" PRIu64 " has %zu of %u bytes",
                             rows->count, start, got, label_bytes + PIXELS);
        const uint8_t label = record[label_bytes - 1];
        if (label >= classes)
            return error_set(error, ERROR_INVALID,
                             "label %u of record %u is not below %u (byte %" PRIu64 ")", label,
                             rows->count, classes, start + label_bytes - 1);
        if (spool_append(&rows->values, record + label_bytes, PIXELS, error) < 0 ||
            import_add_class_target(rows, label, error) < 0 || import_row_end(rows, error) < 0)
            return -1;
    }
}

static int add_file(const char *folder, const char *name, uint32_t label_bytes,
                    const struct import_options *options, struct import_rows *rows,
                    struct error *error)
{
    char path[READER_PATH_SIZE];
    if (!reader_find_file(folder, name, path))
        return error_set(error, ERROR_NOT_FOUND, "the folder has no %s", name);
    const struct reader_source source = {.path = path};
    if (reader_cifar_read(&source, label_bytes, options->size_max, rows, error) < 0)
        return error_wrap(error, "%s", name);
    return 0;
}

static int read_folder(const char *folder, const struct import_options *options,
                       struct import *import, struct error *error)
{
    char ignored[READER_PATH_SIZE];
    if (reader_find_file(folder, "train.bin", ignored)) {
        import->classes = 100;
        if (add_file(folder, "train.bin", 2, options, &import->train, error) < 0)
            return -1;
        return reader_find_file(folder, "test.bin", ignored)
                   ? add_file(folder, "test.bin", 2, options, &import->test, error)
                   : 0;
    }
    for (int i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof(name), "data_batch_%d.bin", i);
        if (i > 1 && !reader_find_file(folder, name, ignored))
            break;
        if (add_file(folder, name, 1, options, &import->train, error) < 0)
            return -1;
    }
    return reader_find_file(folder, "test_batch.bin", ignored)
               ? add_file(folder, "test_batch.bin", 1, options, &import->test, error)
               : 0;
}

static int read_path(const char *path, const struct import_options *options,
                     struct import *out_import, struct error *error)
{
    if (options->is_number)
        return error_set(error, ERROR_INVALID, "its labels are classes, no numbers");
    out_import->form = IMPORT_BYTES;
    out_import->target = IMPORT_CLASS;
    out_import->channels = 3;
    out_import->height = out_import->width = SIDE;
    out_import->classes = 10;
    if (reader_is_folder(path, "."))
        return read_folder(path, options, out_import, error);
    const bool is_hundred = strstr(path, "cifar-100") || strstr(path, "cifar100");
    out_import->classes = is_hundred ? 100 : 10;
    const struct reader_source source = {.path = path};
    return reader_cifar_read(&source, is_hundred ? 2 : 1, options->size_max, &out_import->train,
                             error);
}

static bool matches(const struct reader_clue *clue)
{
    char ignored[READER_PATH_SIZE];
    if (clue->is_folder)
        return reader_find_file(clue->path, "data_batch_1.bin", ignored) ||
               (reader_find_file(clue->path, "train.bin", ignored) &&
                reader_find_file(clue->path, "test.bin", ignored));
    return text_ends_with(clue->name, TEXT(".bin")) &&
           (text_starts_with(clue->name, TEXT("data_batch")) ||
            text_starts_with(clue->name, TEXT("test_batch")));
}

const struct reader reader_cifar = {
    .name = "cifar",
    .help = "CIFAR-10 or CIFAR-100, the binary version",
    .matches = matches,
    .read = read_path,
};
