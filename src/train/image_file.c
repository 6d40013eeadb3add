#include "train/image_file.h"

#include "base/assert.h"
#include "base/library.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static union {
    struct {
        int (*begin)(png_imagep image, png_const_voidp memory, size_t size);
        int (*finish)(png_imagep image, png_const_colorp background, void *buffer,
                      png_int_32 row_stride, void *colormap);
        void (*release)(png_imagep image);
    } call;
    void *functions[3];
} png;

static union {
    struct {
        tjhandle (*open)(void);
        int (*header)(tjhandle handle, const unsigned char *bytes, unsigned long size, int *width,
                      int *height, int *subsampling, int *colours);
        int (*decode)(tjhandle handle, const unsigned char *bytes, unsigned long size,
                      unsigned char *out, int width, int pitch, int height, int format, int flags);
        int (*close)(tjhandle handle);
        char *(*reason)(tjhandle handle);
    } call;
    void *functions[5];
} jpeg;

static int load_png(struct error *error)
{
    static struct library_once once = LIBRARY_ONCE_INIT;
    static const char *const names[] = {"png_image_begin_read_from_memory", "png_image_finish_read",
                                        "png_image_free"};
    return library_load_once(&once, "libpng16.so.16", names, COUNT(names), png.functions, NULL,
                             error);
}

static int load_jpeg(struct error *error)
{
    static struct library_once once = LIBRARY_ONCE_INIT;
    static const char *const names[] = {"tjInitDecompress", "tjDecompressHeader3", "tjDecompress2",
                                        "tjDestroy", "tjGetErrorStr2"};
    return library_load_once(&once, "libturbojpeg.so.0", names, COUNT(names), jpeg.functions, NULL,
                             error);
}

static int make_room(struct image *image, struct error *error)
{
    if (image->width == 0 || image->height == 0 || image->width > IMAGE_SIDE_MAX ||
        image->height > IMAGE_SIDE_MAX || (uint64_t)image->width * image->height > IMAGE_PIXELS_MAX)
        return error_set(error, ERROR_EXHAUSTED,
                         "%u x %u pixels are more than %d on a side or %d in all", image->width,
                         image->height, IMAGE_SIDE_MAX, IMAGE_PIXELS_MAX);
    image->pixels = malloc((size_t)image->width * image->height * image->channels);
    if (!image->pixels)
        return error_set(error, ERROR_EXHAUSTED, "no memory for %u x %u pixels", image->width,
                         image->height);
    return 0;
}

/* Where the pieces of a PNG, each of a length, a name, the bytes and a sum, reach beyond its end.
 */
static int refuse_png(struct text bytes, const char *reason, struct error *error)
{
    enum { SIGNATURE_SIZE = 8, FRAME_SIZE = 12 };
    for (size_t at = SIGNATURE_SIZE; at < bytes.size;) {
        const unsigned char *head = (const unsigned char *)bytes.data + at;
        const size_t left = bytes.size - at;
        const size_t length = left < 4 ? 0
                                       : (size_t)head[0] << 24 | (size_t)head[1] << 16 |
                                             (size_t)head[2] << 8 | head[3];
        if (left < FRAME_SIZE || length > left - FRAME_SIZE)
            return error_set(error, ERROR_CORRUPT,
                             "the PNG is truncated at byte %zu, in the piece at byte %zu",
                             bytes.size, at);
        at += FRAME_SIZE + length;
    }
    return error_set(error, ERROR_CORRUPT, "the PNG is damaged: %s", reason);
}

static int decode_png(struct text bytes, uint32_t channels, struct image *image,
                      struct error *error)
{
    png_image head = {.version = PNG_IMAGE_VERSION};
    static const png_color black = {0, 0, 0};
    if (load_png(error) < 0)
        return -1;
    if (!png.call.begin(&head, bytes.data, bytes.size))
        return refuse_png(bytes, head.message, error);
    if (!channels)
        channels = head.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
    *image = (struct image){.channels = channels, .height = head.height, .width = head.width};
    head.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    if (make_room(image, error) < 0) {
        png.call.release(&head);
        return -1;
    }
    if (!png.call.finish(&head, &black, image->pixels, 0, NULL))
        return refuse_png(bytes, head.message, error);
    return 0;
}

static int decode_jpeg_with(tjhandle handle, struct text bytes, uint32_t channels,
                            struct image *image, struct error *error)
{
    const unsigned char *data = (const unsigned char *)bytes.data;
    int width = 0, height = 0, subsampling = 0, colours = 0;
    if (jpeg.call.header(handle, data, bytes.size, &width, &height, &subsampling, &colours) < 0)
        return error_set(error, ERROR_CORRUPT, "the JPEG is damaged: %s", jpeg.call.reason(handle));
    if (!channels)
        channels = colours == TJCS_GRAY ? 1 : 3;
    *image =
        (struct image){.channels = channels, .height = (uint32_t)height, .width = (uint32_t)width};
    if (make_room(image, error) < 0)
        return -1;
    if (jpeg.call.decode(handle, data, bytes.size, image->pixels, width, 0, height,
                         channels == 3 ? TJPF_RGB : TJPF_GRAY, TJFLAG_STOPONWARNING) < 0)
        return error_set(error, ERROR_CORRUPT, "the JPEG is damaged: %s", jpeg.call.reason(handle));
    return 0;
}

static int decode_jpeg(struct text bytes, uint32_t channels, struct image *image,
                       struct error *error)
{
    if (load_jpeg(error) < 0)
        return -1;
    tjhandle handle = jpeg.call.open();
    if (!handle)
        return error_set(error, ERROR_EXHAUSTED, "no memory for a JPEG");
    const int result = decode_jpeg_with(handle, bytes, channels, image, error);
    jpeg.call.close(handle);
    return result;
}

int image_decode(struct text bytes, uint32_t channels, struct image *out_image, struct error *error)
{
    ASSERT(channels == 0 || channels == 1 || channels == 3);
    struct image image = {0};
    const bool is_png = text_starts_with(bytes, TEXT("\x89PNG\r\n\x1a\n"));
    if (!is_png && !text_starts_with(bytes, TEXT("\xff\xd8\xff")))
        return error_set(error, ERROR_INVALID, "it is neither PNG nor JPEG");
    if ((is_png ? decode_png(bytes, channels, &image, error)
                : decode_jpeg(bytes, channels, &image, error)) < 0) {
        image_done(&image);
        return -1;
    }
    *out_image = image;
    return 0;
}

void image_done(struct image *image)
{
    free(image->pixels);
    *image = (struct image){0};
}

/* Each axis on its own. When it shrinks, all pixels covered count alike; when it grows, the two
 * neighbours by their distance. */
struct span {
    uint32_t first, last; /* pixels, both taken */
    float share;          /* of the last one when it grows */
};

static struct span span_of(uint32_t at, uint32_t from, uint32_t to)
{
    if (from >= to) {
        const uint32_t first = (uint32_t)((uint64_t)at * from / to);
        const uint32_t end = (uint32_t)(((uint64_t)at + 1) * from / to);
        return (struct span){first, end > first ? end - 1 : first, 0};
    }
    const float place = ((float)at + 0.5F) * (float)from / (float)to - 0.5F;
    const float inside = place < 0 ? 0 : place;
    const uint32_t first = (uint32_t)inside;
    return (struct span){first, first + 1 < from ? first + 1 : first, inside - (float)first};
}

static float weight(const struct span *span, uint32_t at, bool does_grow)
{
    if (!does_grow || span->first == span->last)
        return 1;
    return at == span->last ? span->share : 1 - span->share;
}

void image_scale(const struct image *image, uint32_t height, uint32_t width, uint8_t *out)
{
    const bool grows_down = height > image->height, grows_across = width > image->width;
    for (uint32_t y = 0; y < height; y++) {
        const struct span rows = span_of(y, image->height, height);
        for (uint32_t x = 0; x < width; x++) {
            const struct span columns = span_of(x, image->width, width);
            for (uint32_t c = 0; c < image->channels; c++) {
                float sum = 0, all = 0;
                for (uint32_t i = rows.first; i <= rows.last; i++)
                    for (uint32_t k = columns.first; k <= columns.last; k++) {
                        const float part =
                            weight(&rows, i, grows_down) * weight(&columns, k, grows_across);
                        sum +=
                            part *
                            (float)
                                image->pixels[((size_t)i * image->width + k) * image->channels + c];
                        all += part;
                    }
                out[((size_t)c * height + y) * width + x] =
                    (uint8_t)(all > 0 ? sum / all + 0.5F : 0);
            }
        }
    }
}
