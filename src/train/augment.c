#include "train/augment.h"

#include "base/assert.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

int augment_check(const struct augment *augment, const struct dataset_shape *shape,
                  struct error *error)
{
    if (!augment->crop && !augment->flip)
        return 0;
    if (shape->height < 2 || shape->vocabulary || shape->target != DATASET_CLASS)
        return error_set(error, ERROR_INVALID, "only images are cropped and flipped");
    if (augment->crop >= shape->height || augment->crop >= shape->width)
        return error_set(error, ERROR_INVALID, "a crop of %u leaves nothing of %u x %u",
                         augment->crop, shape->height, shape->width);
    return 0;
}

struct plane {
    int height, width;
    int down, right; /* how far what is seen lies from what there is */
    bool is_flipped;
    float black;
};

static void move_plane(const struct plane *plane, const float *from, float *to)
{
    for (int y = 0; y < plane->height; y++)
        for (int x = 0; x < plane->width; x++) {
            const int row = y + plane->down;
            const int seen = x + plane->right;
            const int column = plane->is_flipped ? plane->width - 1 - seen : seen;
            const bool is_inside =
                row >= 0 && row < plane->height && seen >= 0 && seen < plane->width;
            to[y * plane->width + x] = is_inside ? from[row * plane->width + column] : plane->black;
        }
}

void augment_images(const struct augment *augment, const struct dataset *dataset, uint64_t seed,
                    uint32_t count, float *images)
{
    const struct dataset_shape *shape = dataset_shape(dataset);
    const size_t plane_size = (size_t)shape->height * shape->width;
    if (!augment->crop && !augment->flip)
        return;
    float *copy = malloc(sizeof(float) * plane_size);
    ASSERT(copy);
    for (uint32_t n = 0; n < count; n++) {
        struct random random;
        random_init(&random, seed);
        random_init(&random, random_u64(&random) + n);
        const uint64_t reach = (uint64_t)2 * augment->crop + 1;
        const struct plane plane = {
            .height = (int)shape->height,
            .width = (int)shape->width,
            .down = (int)random_below(&random, reach) - (int)augment->crop,
            .right = (int)random_below(&random, reach) - (int)augment->crop,
            .is_flipped = augment->flip && random_below(&random, 2),
            .black = dataset_black(dataset),
        };
        for (uint32_t c = 0; c < shape->channels; c++) {
            float *image = images + ((size_t)n * shape->channels + c) * plane_size;
            memcpy(copy, image, sizeof(float) * plane_size);
            move_plane(&plane, copy, image);
        }
    }
    free(copy);
}
