/*
 * Idx: a folder with MNIST's four names, or a file of images whose labels lie beside it under the
 * same name with "images" and "idx3" (or idx4, idx2) replaced by "labels" and "idx1".
 */
#include "train/idx_reader.h"
#include "train/reader_internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int take_values(struct import *import, struct import_rows *rows, const struct idx *images,
                       struct error *error)
{
    const struct idx_header *header = &images->header;
    const size_t size = images->size - header->header_size;
    const uint8_t *from = images->bytes + header->header_size;
    void *room;
    if (spool_reserve(&rows->values, size, &room, error) < 0)
        return -1;
    if (import->form == IMPORT_BYTES)
        memcpy(room, from, size);
    else
        for (size_t i = 0; i < size / sizeof(float); i++)
            ((float *)room)[i] = idx_float(from + i * sizeof(float));
    spool_advance(&rows->values, size);
    return 0;
}

static int take_labels(struct import *import, const struct import_options *options,
                       struct import_rows *rows, const struct idx *labels, struct error *error)
{
    const enum idx_element element = labels->header.element;
    for (uint32_t i = 0; i < labels->header.sizes[0]; i++) {
        const uint8_t *record = idx_record(labels, i);
        const float number = element == IDX_FLOAT ? idx_float(record)
                             : element == IDX_INT ? (float)idx_int(record)
                                                  : (float)*record;
        const int32_t label = element == IDX_BYTE ? *record : idx_int(record);
        if (import->target == IMPORT_NUMBER) {
            if (import_add_number_target(rows, number, error) < 0)
                return -1;
            continue;
        }
        const uint32_t most = options->classes ? options->classes : IMPORT_CLASSES_MAX;
        const size_t at = (size_t)(record - labels->bytes);
        if (label < 0)
            return error_set(error, ERROR_INVALID, "label %d of record %u is below 0 (byte %zu)",
                             label, i, at);
        if ((uint32_t)label >= most)
            return error_set(error, ERROR_INVALID,
                             "label %d of record %u is not below %u (byte %zu)", label, i, most,
                             at);
        if ((uint32_t)label >= import->classes)
            import->classes = (uint32_t)label + 1;
        if (import_add_class_target(rows, label, error) < 0)
            return -1;
    }
    return 0;
}

static int set_shape(struct import *import, const struct idx_header *header, struct error *error)
{
    const uint32_t rank = header->rank;
    if (rank < 2 || header->element == IDX_INT || (rank == 2 && header->element == IDX_BYTE))
        return error_set(error, ERROR_INVALID, "rank %u of element type 0x%02x is no set of images",
                         rank, (unsigned)header->element);
    const struct import shape = {
        .form = header->element == IDX_BYTE ? IMPORT_BYTES : IMPORT_FLOATS,
        .channels = rank == 4 ? header->sizes[1] : 1,
        .height = rank > 2 ? header->sizes[rank - 2] : 1,
        .width = header->sizes[rank - 1],
    };
    if (import->width && (import->form != shape.form || import->channels != shape.channels ||
                          import->height != shape.height || import->width != shape.width))
        return error_set(error, ERROR_INVALID, "%u x %u x %u is not the %u x %u x %u of the others",
                         shape.channels, shape.height, shape.width, import->channels,
                         import->height, import->width);
    import->form = shape.form;
    import->channels = shape.channels;
    import->height = shape.height;
    import->width = shape.width;
    return 0;
}

static int add_labels(struct import *import, const struct import_options *options,
                      struct import_rows *rows, const struct idx *images, const struct idx *labels,
                      const char *labels_path, struct error *error)
{
    if (labels->header.rank != 1 ||
        (labels->header.element == IDX_FLOAT && import->target != IMPORT_NUMBER))
        return error_set(error, ERROR_INVALID, "\"%s\": rank %u is no list of labels", labels_path,
                         labels->header.rank);
    if (images->header.sizes[0] != labels->header.sizes[0])
        return error_set(error, ERROR_INVALID, "%u images but %u labels", images->header.sizes[0],
                         labels->header.sizes[0]);
    if (take_labels(import, options, rows, labels, error) < 0)
        return error_wrap(error, "\"%s\"", labels_path);
    return 0;
}

static int read_pair(const char *images_path, const char *labels_path,
                     const struct import_options *options, struct import *import,
                     struct import_rows *rows, struct error *error)
{
    AUTO(idx) struct idx *images = NULL;
    AUTO(idx) struct idx *labels = NULL;
    if (idx_open(images_path, options->size_max, &images, error) < 0)
        return -1;
    if (labels_path && idx_open(labels_path, options->size_max, &labels, error) < 0 &&
        !(options->is_asked && error->code == ERROR_NOT_FOUND))
        return -1;
    if (set_shape(import, &images->header, error) < 0)
        return error_wrap(error, "\"%s\"", images_path);
    if (images->header.sizes[0] > IMPORT_ROWS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "more than %u rows", IMPORT_ROWS_MAX);
    if (labels && add_labels(import, options, rows, images, labels, labels_path, error) < 0)
        return -1;
    if (take_values(import, rows, images, error) < 0)
        return -1;
    rows->count = images->header.sizes[0];
    return 0;
}

static bool find_part(const char *folder, const char *part, const char *kind, char *out)
{
    static const char *const endings[] = {
        "-idx3-ubyte", ".idx3-ubyte", "-idx4-ubyte", "-idx1-ubyte", ".idx1-ubyte", ".idx", ""};
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s-%s%s", part, kind, endings[i]);
        if (reader_find_file(folder, name, out))
            return true;
    }
    return false;
}

static int read_folder(const char *folder, const struct import_options *options,
                       struct import *import, struct error *error)
{
    char images[READER_PATH_SIZE], labels[READER_PATH_SIZE];
    if (!find_part(folder, "train", "images", images) ||
        !find_part(folder, "train", "labels", labels))
        return error_set(error, ERROR_NOT_FOUND,
                         "the folder lacks train-images-idx3-ubyte or train-labels-idx1-ubyte");
    if (read_pair(images, labels, options, import, &import->train, error) < 0)
        return -1;
    const bool has_test = (find_part(folder, "t10k", "images", images) &&
                           find_part(folder, "t10k", "labels", labels)) ||
                          (find_part(folder, "test", "images", images) &&
                           find_part(folder, "test", "labels", labels));
    return has_test ? read_pair(images, labels, options, import, &import->test, error) : 0;
}

/* "DIR/train-images-idx3-ubyte.gz" -> "DIR/train-labels-idx1-ubyte.gz" */
static int labels_of(const char *images, char *out, struct error *error)
{
    const char *word = strstr(images, "images");
    for (const char *next = word; next; next = strstr(next + 1, "images"))
        word = next;
    if (!word || strlen(images) >= READER_PATH_SIZE)
        return error_set(error, ERROR_INVALID,
                         "its name has no \"images\" to find the labels by: name the folder");
    snprintf(out, READER_PATH_SIZE, "%.*slabels%s", (int)(word - images), images, word + 6);
    char *rank = strstr(out + (word - images), "idx");
    if (rank && rank[3] >= '2' && rank[3] <= '4')
        rank[3] = '1';
    return 0;
}

static int read_path(const char *path, const struct import_options *options,
                     struct import *out_import, struct error *error)
{
    char labels[READER_PATH_SIZE];
    out_import->target = options->is_number ? IMPORT_NUMBER : IMPORT_CLASS;
    if (reader_is_folder(path, "."))
        return read_folder(path, options, out_import, error);
    const bool has_name = labels_of(path, labels, error) == 0;
    if (!has_name && !options->is_asked)
        return -1;
    return read_pair(path, has_name ? labels : NULL, options, out_import, &out_import->train,
                     error);
}

static bool matches(const struct reader_clue *clue)
{
    char ignored[READER_PATH_SIZE];
    if (clue->is_folder)
        return find_part(clue->path, "train", "images", ignored);
    struct idx_header header;
    struct error error;
    return idx_parse_header((const uint8_t *)clue->start.data, clue->start.size, &header, &error) ==
           0;
}

const struct reader reader_idx = {
    .name = "idx",
    .help = "images and labels as MNIST has them",
    .matches = matches,
    .read = read_path,
};
