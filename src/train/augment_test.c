#include "testing/testing.h"
#include "train/augment.h"

#include <string.h>

enum { SIDE = 4, COUNT = 64, SIZE = 2 * SIDE * SIDE };

/* Two channels; pixel (c, y, x) of every image is 1 + 16 c + 4 y + x, black is 0. */
static struct dataset *open_images(float *images, const int32_t *labels)
{
    struct error error;
    struct dataset *dataset = NULL;
    for (int i = 0; i < COUNT * SIZE; i++)
        images[i] = (float)(1 + i % SIZE);
    const struct dataset_shape shape = {
        .count = COUNT, .channels = 2, .height = SIDE, .width = SIDE, .classes = 2};
    const struct dataset_arrays arrays = {.inputs = images, .labels = labels};
    ASSERT_OK(dataset_open_arrays(&shape, &arrays, &dataset, &error));
    return dataset;
}

/* Whether `image` is the original moved by (down, right), mirrored or not, black elsewhere. */
static bool is_moved(const float *image, int down, int right, bool is_flipped)
{
    for (int i = 0; i < SIZE; i++) {
        const int c = i / (SIDE * SIDE), row = i / SIDE % SIDE + down, seen = i % SIDE + right;
        const bool is_inside = row >= 0 && row < SIDE && seen >= 0 && seen < SIDE;
        const int column = is_flipped ? SIDE - 1 - seen : seen;
        const float expected =
            is_inside ? (float)(1 + SIDE * SIDE * c + SIDE * row + column) : 0.0F;
        if (image[i] != expected)
            return false;
    }
    return true;
}

TEST(images_are_moved_and_mirrored_by_the_seed)
{
    static float images[COUNT * SIZE], again[COUNT * SIZE], other[COUNT * SIZE];
    static const int32_t labels[COUNT];
    AUTO(dataset) struct dataset *dataset = open_images(images, labels);
    memcpy(again, images, sizeof(images));
    memcpy(other, images, sizeof(images));
    const struct augment augment = {.crop = 1, .flip = true};
    augment_images(&augment, dataset, 7, COUNT, images);
    augment_images(&augment, dataset, 7, COUNT, again);
    augment_images(&augment, dataset, 8, COUNT, other);
    assert_memory_equal(images, again, sizeof(images));
    assert_memory_not_equal(images, other, sizeof(images));
    uint32_t seen[3][3][2] = {0};
    for (int n = 0; n < COUNT; n++) {
        uint32_t fits = 0;
        for (int i = 0; i < 18; i++) {
            const int down = i / 6 - 1, right = i / 2 % 3 - 1;
            if (!is_moved(images + (size_t)n * SIZE, down, right, i % 2))
                continue;
            fits++;
            seen[down + 1][right + 1][i % 2]++;
        }
        assert_int_equal(fits, 1);
    }
    uint32_t different = 0;
    for (int i = 0; i < 18; i++)
        different += seen[i / 6][i / 2 % 3][i % 2] > 0;
    assert_true(different > 12); /* of 18 */
}

TEST(what_is_no_image_or_too_small_is_refused)
{
    struct error error;
    const struct augment augment = {.crop = 4}, none = {0};
    struct dataset_shape shape = {.count = 1, .channels = 1, .height = 4, .width = 9, .classes = 2};
    ASSERT_OK(augment_check(&none, &shape, &error));
    ASSERT_FAILS(augment_check(&augment, &shape, &error), ERROR_INVALID);
    shape.height = 5;
    ASSERT_OK(augment_check(&augment, &shape, &error));
    shape.height = 1;
    ASSERT_FAILS(augment_check(&augment, &shape, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_moved_and_mirrored_by_the_seed),
        cmocka_unit_test(what_is_no_image_or_too_small_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
