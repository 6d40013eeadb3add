/*
 * Image file: a PNG or JPEG picture as pixels. libpng and libturbojpeg are opened at the first one
 * (docs/decisions/0004).
 *
 * Sizes are checked before memory is taken: a side of IMAGE_SIDE_MAX, IMAGE_PIXELS_MAX in all.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

enum { IMAGE_SIDE_MAX = 16384, IMAGE_PIXELS_MAX = 1 << 26 };

struct image {
    uint32_t channels; /* 1: grey, 3: red, green, blue */
    uint32_t height, width;
    uint8_t *pixels; /* [height][width][channels] */
};

/* With `channels` 1 or 3, or 0: as the file has them; what is transparent lies on black. INVALID:
 * neither PNG nor JPEG. CORRUPT: damaged. EXHAUSTED: too large. UNAVAILABLE: the library is not
 * installed. The caller calls image_done. */
MUST_CHECK int image_decode(struct text bytes, uint32_t channels, struct image *out_image,
                            struct error *error);
void image_done(struct image *image);

/* To another size, each pixel the mean of those it covers or between its neighbours; `out` is
 * [channels][height][width]. */
void image_scale(const struct image *image, uint32_t height, uint32_t width, uint8_t *out);
