/*
 * Images: a folder with a folder for each class, of PNG and JPEG files; or such folders under
 * train/ and test/ (or val/). All come in the size and with the channels of the first, unless
 * options->image_height and image_width name another size. A model is also asked about a folder of
 * images alone.
 */
#include "base/buffer.h"
#include "base/file.h"
#include "train/image_file.h"
#include "train/reader_internal.h"

#include <string.h>

enum { FILE_MAX = 256 << 20 };

static bool is_image(const char *name)
{
    static const struct text endings[] = {{".png", 4}, {".jpg", 4}, {".jpeg", 5},
                                          {".PNG", 4}, {".JPG", 4}, {".JPEG", 5}};
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (text_ends_with(text_of(name), endings[i]))
            return true;
    return false;
}

static int set_shape(struct import *import, const struct import_options *options,
                     const struct image *image, struct error *error)
{
    if (!import->width) {
        import->channels = image->channels;
        import->height = options->image_height ? options->image_height : image->height;
        import->width = options->image_width ? options->image_width : image->width;
    }
    if (!options->image_height &&
        (import->height != image->height || import->width != image->width))
        return error_set(error, ERROR_INVALID,
                         "%u x %u pixels, the first has %u x %u: bring them to one size with "
                         "train.read.image_height and image_width",
                         image->width, image->height, import->width, import->height);
    return 0;
}

static int add_image(struct import *import, const struct import_options *options,
                     struct import_rows *rows, const char *path, int32_t label, struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    struct image image;
    buffer_init(&bytes, FILE_MAX);
    if (file_read(path, &bytes, error) < 0)
        return -1;
    const uint32_t channels = import->width ? import->channels : options->image_channels;
    if (image_decode(buffer_text(&bytes), channels, &image, error) < 0)
        return error_wrap(error, "\"%s\"", path);
    void *room;
    const int result =
        set_shape(import, options, &image, error) < 0
            ? error_wrap(error, "\"%s\"", path)
            : spool_reserve(&rows->values,
                            (size_t)import->channels * import->height * import->width, &room,
                            error);
    if (result == 0) {
        image_scale(&image, import->height, import->width, room);
        spool_advance(&rows->values, (size_t)import->channels * import->height * import->width);
    }
    image_done(&image);
    if (result < 0 || (label >= 0 && import_add_class_target(rows, label, error) < 0))
        return -1;
    return import_row_end(rows, error);
}

/* Those that lie in no folder of a class. */
static int add_flat(struct import *import, const struct import_options *options, const char *folder,
                    struct error *error)
{
    char path[READER_PATH_SIZE];
    struct reader_names files AUTO_NAMES = {0};
    if (reader_names_read(folder, &files, error) < 0)
        return -1;
    for (size_t i = 0; i < files.count; i++)
        if (is_image(files.names[i]) &&
            (reader_join(folder, files.names[i], path, error) < 0 ||
             add_image(import, options, &import->train, path, -1, error) < 0))
            return -1;
    return 0;
}

static int add_class(struct import *import, const struct import_options *options,
                     struct import_rows *rows, const char *folder, const char *name,
                     struct error *error)
{
    char class_folder[READER_PATH_SIZE], path[READER_PATH_SIZE];
    struct reader_names files AUTO_NAMES = {0};
    int32_t label;
    if (import_class(import, text_of(name), IMPORT_CLASSES_MAX, &label, error) < 0 ||
        reader_join(folder, name, class_folder, error) < 0 ||
        reader_names_read(class_folder, &files, error) < 0)
        return -1;
    for (size_t i = 0; i < files.count; i++)
        if (is_image(files.names[i]) &&
            (reader_join(class_folder, files.names[i], path, error) < 0 ||
             add_image(import, options, rows, path, label, error) < 0))
            return -1;
    return 0;
}

static int add_classes(struct import *import, const struct import_options *options,
                       struct import_rows *rows, const char *folder, struct error *error)
{
    struct reader_names names AUTO_NAMES = {0};
    if (reader_names_read(folder, &names, error) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++)
        if (reader_is_folder(folder, names.names[i]) &&
            add_class(import, options, rows, folder, names.names[i], error) < 0)
            return -1;
    return 0;
}

static int read_folder(const char *folder, const struct import_options *options,
                       struct import *out_import, struct error *error)
{
    static const char *const test_names[] = {"test", "val"};
    char part[READER_PATH_SIZE];
    if (options->is_number)
        return error_set(error, ERROR_INVALID, "its labels are classes, no numbers");
    out_import->form = IMPORT_BYTES;
    out_import->target = IMPORT_CLASS;
    if (!reader_is_folder(folder, "train")) {
        if (add_classes(out_import, options, &out_import->train, folder, error) < 0)
            return -1;
    } else {
        if (reader_join(folder, "train", part, error) < 0 ||
            add_classes(out_import, options, &out_import->train, part, error) < 0)
            return -1;
        for (size_t i = 0; i < 2 && out_import->test.count == 0; i++)
            if (reader_is_folder(folder, test_names[i]) &&
                (reader_join(folder, test_names[i], part, error) < 0 ||
                 add_classes(out_import, options, &out_import->test, part, error) < 0))
                return -1;
    }
    if (out_import->train.count == 0 && out_import->test.count == 0)
        return options->is_asked
                   ? add_flat(out_import, options, folder, error)
                   : error_set(error, ERROR_INVALID, "no image lies in a folder of its class");
    import_sort_classes(out_import);
    return 0;
}

/* Some folder in it has an image, so many floors down. */
static bool has_images(const char *folder, int floors)
{
    struct error ignored;
    struct reader_names names AUTO_NAMES = {0};
    if (reader_names_read(folder, &names, &ignored) < 0)
        return false;
    for (size_t i = 0; i < names.count; i++) {
        char inner[READER_PATH_SIZE];
        if (floors == 0 ? is_image(names.names[i])
                        : reader_is_folder(folder, names.names[i]) &&
                              reader_join(folder, names.names[i], inner, &ignored) == 0 &&
                              has_images(inner, floors - 1))
            return true;
    }
    return false;
}

static bool matches(const struct reader_clue *clue)
{
    return clue->is_folder &&
           (has_images(clue->path, 1) || has_images(clue->path, 2) || has_images(clue->path, 0));
}

const struct reader reader_images = {
    .name = "images",
    .help = "a folder of PNG and JPEG files for each class",
    .matches = matches,
    .read = read_folder,
};
