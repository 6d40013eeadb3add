/*
 * NumPy: a .npz with arrays x_train, y_train and perhaps x_test, y_test (or x, y; X, y; data,
 * labels; images, labels), or the same as .npy files in a folder, or x.npy whose y.npy lies beside.
 *
 * Bytes of rank 3 or 4 are images, [n, height, width], [n, channels, height, width] or with the
 * channels last; all else becomes floats.
 */
#include "base/assert.h"
#include "train/npy_array.h"
#include "train/reader_internal.h"
#include "train/zip_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Where arrays are found by name: a zip file, or a folder. */
struct shelf {
    const struct zip_file *zip; /* NULL: the folder */
    const char *folder;
    uint64_t size_max;
};

static const struct zip_member *find_member(const struct zip_file *zip, const char *name)
{
    for (size_t i = 0; i < zip->count; i++) {
        const struct text member = text_of(zip->members[i].name);
        if (text_starts_with(member, text_of(name)) &&
            text_equal((struct text){member.data + strlen(name), member.size - strlen(name)},
                       TEXT(".npy")))
            return &zip->members[i];
    }
    return NULL;
}

/* False: it is not there. */
static bool has_array(const struct shelf *shelf, const char *name)
{
    char file[64], path[READER_PATH_SIZE];
    if (shelf->zip)
        return find_member(shelf->zip, name);
    snprintf(file, sizeof(file), "%s.npy", name);
    return reader_find_file(shelf->folder, file, path);
}

static int open_array(const struct shelf *shelf, const char *name, struct data_stream **out_stream,
                      struct error *error)
{
    char file[64], path[READER_PATH_SIZE];
    if (shelf->zip)
        return zip_member_open(find_member(shelf->zip, name), shelf->size_max, out_stream, error);
    snprintf(file, sizeof(file), "%s.npy", name);
    if (!reader_find_file(shelf->folder, file, path))
        return error_set(error, ERROR_NOT_FOUND, "there is no %s", file);
    return data_stream_open(path, shelf->size_max, out_stream, error);
}

static bool are_channels(uint64_t size)
{
    return size == 1 || size == 3;
}

static int set_shape(struct import *import, const struct npy_header *header, bool *out_is_last,
                     struct error *error)
{
    const uint32_t rank = header->rank;
    *out_is_last = rank == 4 && are_channels(header->shape[3]) && !are_channels(header->shape[1]);
    uint64_t channels = 1, height = 1;
    uint64_t width = rank == 1 ? 1 : header->shape[rank - 1];
    if (rank == 3)
        height = header->shape[1];
    if (rank == 4 && *out_is_last) {
        channels = header->shape[3];
        height = header->shape[1];
        width = header->shape[2];
    } else if (rank == 4) {
        channels = header->shape[1];
        height = header->shape[2];
    }
    if (channels > IMPORT_WIDTH_MAX || height > IMPORT_SIDE_MAX || width > IMPORT_SIDE_MAX ||
        channels * height * width > 1 << 28)
        return error_set(error, ERROR_INVALID, "a row of the array is too large");
    const enum import_form form =
        header->kind == 'u' && header->element_size == 1 && rank > 2 ? IMPORT_BYTES : IMPORT_FLOATS;
    if (import->width && (import->form != form || import->channels != channels ||
                          import->height != height || import->width != width))
        return error_set(error, ERROR_INVALID, "the rows of test are not like those of train");
    import->form = form;
    import->channels = (uint32_t)channels;
    import->height = (uint32_t)height;
    import->width = (uint32_t)width;
    return 0;
}

/* [pixel][channel] to [channel][pixel] */
static void channels_first(const uint8_t *from, uint8_t *to, size_t channels, size_t pixels,
                           size_t size)
{
    for (size_t i = 0; i < pixels; i++)
        for (size_t c = 0; c < channels; c++)
            memcpy(to + (c * pixels + i) * size, from + (i * channels + c) * size, size);
}

static int read_rows(struct data_stream *stream, const struct npy_header *header,
                     struct import *import, struct import_rows *rows, bool is_last,
                     struct error *error)
{
    const size_t pixels = (size_t)import->height * import->width;
    const size_t elements = pixels * import->channels;
    const size_t size = import_element_size(import->form);
    uint8_t *row = malloc(elements * size);
    ASSERT(row);
    int result = 0;
    for (uint64_t i = 0; result == 0 && i < header->shape[0]; i++) {
        void *room;
        result = spool_reserve(&rows->values, elements * size, &room, error);
        if (result < 0)
            break;
        void *into = is_last ? row : room;
        result = import->form == IMPORT_BYTES
                     ? data_stream_read_all(stream, into, elements, "a row", error)
                     : npy_floats_read(stream, header, into, elements, error);
        if (result < 0)
            break;
        if (is_last)
            channels_first(row, room, import->channels, pixels, size);
        spool_advance(&rows->values, elements * size);
        result = import_row_end(rows, error);
    }
    free(row);
    return result;
}

static int read_labels(struct data_stream *stream, const struct npy_header *header,
                       const struct import_options *options, struct import *import,
                       struct import_rows *rows, struct error *error)
{
    const uint64_t most = options->classes ? options->classes : IMPORT_CLASSES_MAX;
    for (uint64_t i = 0; i < header->shape[0]; i++) {
        const uint64_t at = data_stream_offset(stream);
        float target = 0;
        int64_t label = 0;
        if (import->target == IMPORT_NUMBER) {
            if (npy_floats_read(stream, header, &target, 1, error) < 0 ||
                import_add_number_target(rows, target, error) < 0)
                return -1;
            continue;
        }
        if (npy_ints_read(stream, header, &label, 1, error) < 0)
            return -1;
        if (label < 0)
            return error_set(error, ERROR_INVALID,
                             "label %lld of record %llu is below 0 (byte %llu)", (long long)label,
                             (unsigned long long)i, (unsigned long long)at);
        if ((uint64_t)label >= most)
            return error_set(error, ERROR_INVALID,
                             "label %lld of record %llu is not below %llu (byte %llu)",
                             (long long)label, (unsigned long long)i, (unsigned long long)most,
                             (unsigned long long)at);
        if ((uint64_t)label >= import->classes)
            import->classes = (uint32_t)label + 1;
        if (import_add_class_target(rows, (int32_t)label, error) < 0)
            return -1;
    }
    return 0;
}

static int read_pair(const struct shelf *shelf, const char *x, const char *y,
                     const struct import_options *options, struct import *import,
                     struct import_rows *rows, struct error *error)
{
    AUTO(data_stream) struct data_stream *values = NULL;
    AUTO(data_stream) struct data_stream *labels = NULL;
    struct npy_header value_header, label_header;
    bool is_last;
    if (open_array(shelf, x, &values, error) < 0 ||
        npy_header_read(values, shelf->size_max, &value_header, error) < 0 ||
        set_shape(import, &value_header, &is_last, error) < 0 ||
        read_rows(values, &value_header, import, rows, is_last, error) < 0 ||
        data_stream_expect_end(values, error) < 0)
        return error_wrap(error, "%s", x);
    if (options->is_asked && !has_array(shelf, y))
        return 0;
    if (open_array(shelf, y, &labels, error) < 0 ||
        npy_header_read(labels, shelf->size_max, &label_header, error) < 0)
        return error_wrap(error, "%s", y);
    if (label_header.count != label_header.shape[0])
        return error_set(error, ERROR_INVALID, "%s has more than one number for a record", y);
    if (label_header.shape[0] != value_header.shape[0])
        return error_set(error, ERROR_INVALID, "%llu records but %llu labels",
                         (unsigned long long)value_header.shape[0],
                         (unsigned long long)label_header.shape[0]);
    if (read_labels(labels, &label_header, options, import, rows, error) < 0 ||
        data_stream_expect_end(labels, error) < 0)
        return error_wrap(error, "%s", y);
    return 0;
}

static const char *const array_names[][2] = {
    {"x_train", "y_train"}, {"x", "y"}, {"X", "y"}, {"data", "labels"}, {"images", "labels"}};

static int read_shelf(const struct shelf *shelf, const struct import_options *options,
                      struct import *import, struct error *error)
{
    import->target = options->is_number ? IMPORT_NUMBER : IMPORT_CLASS;
    for (size_t i = 0; i < sizeof(array_names) / sizeof(*array_names); i++) {
        const char *const *names = array_names[i];
        if (!has_array(shelf, names[0]) || (!has_array(shelf, names[1]) && !options->is_asked))
            continue;
        if (read_pair(shelf, names[0], names[1], options, import, &import->train, error) < 0)
            return -1;
        return i == 0 && has_array(shelf, "x_test") &&
                       (has_array(shelf, "y_test") || options->is_asked)
                   ? read_pair(shelf, "x_test", "y_test", options, import, &import->test, error)
                   : 0;
    }
    return error_set(error, ERROR_NOT_FOUND,
                     "there are no arrays x_train and y_train, x and y, or data and labels");
}

int reader_npz_read(struct text bytes, const struct import_options *options,
                    struct import *out_import, struct error *error)
{
    struct zip_file zip;
    if (zip_file_read(bytes, &zip, error) < 0)
        return -1;
    const struct shelf shelf = {.zip = &zip, .size_max = options->size_max};
    const int result = read_shelf(&shelf, options, out_import, error);
    zip_file_done(&zip);
    return result;
}

static int read_npz_file(const char *path, const struct import_options *options,
                         struct import *out_import, struct error *error)
{
    struct stat status;
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    if (status.st_size == 0)
        return error_set(error, ERROR_INVALID, "the file is empty");
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno, "map \"%s\"", path);
    const int result =
        reader_npz_read((struct text){bytes, (size_t)status.st_size}, options, out_import, error);
    munmap(bytes, (size_t)status.st_size);
    return result;
}

/* The array that was named, whatever its name, with its labels where they lie beside it. */
static int read_array(const struct shelf *shelf, const char *file,
                      const struct import_options *options, struct import *import,
                      struct error *error)
{
    char x[64];
    const char *dot = strstr(file, ".npy");
    const struct text name = {file, dot ? (size_t)(dot - file) : strlen(file)};
    if (text_copy(name, x, sizeof(x) - 8, error) < 0)
        return error_wrap(error, "its name");
    const char *y = strcmp(x, "x_test") == 0 ? "y_test" : "";
    for (size_t i = 0; i < sizeof(array_names) / sizeof(*array_names); i++)
        if (strcmp(x, array_names[i][0]) == 0)
            y = array_names[i][1];
    import->target = options->is_number ? IMPORT_NUMBER : IMPORT_CLASS;
    return read_pair(shelf, x, y, options, import, &import->train, error);
}

static int read_path(const char *path, const struct import_options *options,
                     struct import *out_import, struct error *error)
{
    char folder[READER_PATH_SIZE];
    struct error ignored;
    if (reader_is_folder(path, ".")) {
        const struct shelf shelf = {.folder = path, .size_max = options->size_max};
        return read_shelf(&shelf, options, out_import, error);
    }
    if (text_ends_with(text_of(path), TEXT(".npz")))
        return read_npz_file(path, options, out_import, error);
    /* x.npy: the folder it lies in. */
    if (text_copy(text_of(path), folder, sizeof(folder), &ignored) < 0)
        return error_set(error, ERROR_INVALID, "the path is too long");
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    const struct shelf shelf = {.folder = slash ? folder : ".", .size_max = options->size_max};
    if (options->is_asked)
        return read_array(&shelf, slash ? path + (slash - folder) + 1 : path, options, out_import,
                          error);
    return read_shelf(&shelf, options, out_import, error);
}

static bool matches(const struct reader_clue *clue)
{
    char ignored[READER_PATH_SIZE];
    if (clue->is_folder)
        return reader_find_file(clue->path, "x_train.npy", ignored) ||
               reader_find_file(clue->path, "x.npy", ignored) ||
               reader_find_file(clue->path, "X.npy", ignored);
    return text_starts_with(clue->start, TEXT("\x93NUMPY")) ||
           text_ends_with(clue->name, TEXT(".npz"));
}

const struct reader reader_npy = {
    .name = "npy",
    .help = "NumPy arrays, .npz or .npy",
    .matches = matches,
    .read = read_path,
};
