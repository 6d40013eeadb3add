/* Any bytes as a PNG or JPEG: refused, or an image that can be scaled. */
#include "base/assert.h"
#include "train/image_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct image image;
    uint8_t small[3 * 5 * 7];
    if (image_decode((struct text){(const char *)data, size}, 0, &image, &error) < 0)
        return 0;
    ASSERT(image.width <= IMAGE_SIDE_MAX && image.height <= IMAGE_SIDE_MAX);
    image_scale(&image, 5, 7, small);
    image_done(&image);
    return 0;
}
