/* covers dataset.c, dataset_catalogue.c */
#include "base/file.h"
#include "testing/testing.h"
#include "train/dataset.h"
#include "train/dataset_catalogue.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scratch {
    char folder[64];
    char images[80], labels[80];
};

/* Three images of 1 x 2. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0,  3,   0,   0,   0,
                                 1, 0, 0, 0, 2, 0, 51, 102, 153, 204, 255};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 2, 0, 1};

static void scratch_init(struct scratch *scratch)
{
    struct error error;
    snprintf(scratch->folder, sizeof(scratch->folder), "/tmp/dataset_test.XXXXXX");
    assert_non_null(mkdtemp(scratch->folder));
    snprintf(scratch->images, sizeof(scratch->images), "%s/images", scratch->folder);
    snprintf(scratch->labels, sizeof(scratch->labels), "%s/labels", scratch->folder);
    const struct text image_bytes = {(const char *)images, sizeof(images)};
    const struct text label_bytes = {(const char *)labels, sizeof(labels)};
    ASSERT_OK(file_replace(scratch->images, &image_bytes, 1, 0600, &error));
    ASSERT_OK(file_replace(scratch->labels, &label_bytes, 1, 0600, &error));
}

static void scratch_done(struct scratch *scratch)
{
    unlink(scratch->images);
    unlink(scratch->labels);
    rmdir(scratch->folder);
}

static struct dataset_options options_for(const struct scratch *scratch)
{
    return (struct dataset_options){.images_path = scratch->images,
                                    .labels_path = scratch->labels,
                                    .classes = 3,
                                    .mean = 0.5,
                                    .deviation = 0.5};
}

TEST(a_batch_is_scaled_as_it_is_drawn)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    AUTO(dataset) struct dataset *dataset = NULL;
    const struct dataset_options options = options_for(&scratch);
    ASSERT_OK(dataset_open(&options, &dataset, &error));
    assert_int_equal(dataset_shape(dataset)->count, 3);
    assert_int_equal(dataset_shape(dataset)->channels, 1);
    assert_int_equal(dataset_shape(dataset)->width, 2);
    const uint32_t indices[] = {2, 0};
    float out[4];
    int32_t out_labels[2];
    dataset_gather(dataset, indices, 2, out, out_labels);
    assert_true(fabsf(out[0] - 0.6F) < 1e-6F && fabsf(out[1] - 1) < 1e-6F);
    assert_true(fabsf(out[2] + 1) < 1e-6F && fabsf(out[3] + 0.6F) < 1e-6F);
    assert_int_equal(out_labels[0], 1);
    assert_int_equal(out_labels[1], 2);
    scratch_done(&scratch);
}

TEST(pixels_in_memory_are_scaled_as_those_of_files)
{
    struct error error;
    AUTO(dataset) struct dataset *dataset = NULL;
    const int32_t classes[] = {2, 0, 1};
    const struct dataset_shape shape = {
        .count = 3, .channels = 1, .height = 1, .width = 2, .classes = 3};
    struct dataset_arrays arrays = {
        .pixels = images + 16, .mean = 0.5, .deviation = 0.5, .labels = classes};
    ASSERT_OK(dataset_open_arrays(&shape, &arrays, &dataset, &error));
    float out[2];
    int32_t label;
    dataset_gather(dataset, &(uint32_t){2}, 1, out, &label);
    assert_true(fabsf(out[0] - 0.6F) < 1e-6F && fabsf(out[1] - 1) < 1e-6F);
    assert_int_equal(label, 1);

    struct dataset *refused = NULL;
    arrays.deviation = 0;
    ASSERT_FAILS(dataset_open_arrays(&shape, &arrays, &refused, &error), ERROR_INVALID);
    arrays.deviation = 1;
    arrays.inputs = out; /* one or the other */
    ASSERT_FAILS(dataset_open_arrays(&shape, &arrays, &refused, &error), ERROR_INVALID);
}

TEST(labels_that_do_not_fit_are_refused)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    struct dataset *none = NULL;
    struct dataset_options options = options_for(&scratch);
    options.classes = 2;
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "label 2 of record 0"));
    options = options_for(&scratch);
    options.labels_path = scratch.images;
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    options = options_for(&scratch);
    options.images_path = scratch.labels;
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    options = options_for(&scratch);
    options.deviation = 0;
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    const struct text two = {"\0\0\x08\x01\0\0\0\x02\0\0", 10};
    ASSERT_OK(file_replace(scratch.labels, &two, 1, 0600, &error));
    options = options_for(&scratch);
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "3 images but 2 labels"));
    scratch_done(&scratch);
}

static void put(const char *path, const void *bytes, size_t size)
{
    struct error error;
    const struct text text = {bytes, size};
    ASSERT_OK(file_replace(path, &text, 1, 0600, &error));
}

/* Big-endian words behind two zero bytes, an element type and a rank. */
static void put_words(const char *path, uint8_t element, uint8_t rank, const uint32_t *words,
                      size_t count)
{
    uint8_t bytes[256] = {0, 0, element, rank};
    assert_true(4 + 4 * count <= sizeof(bytes));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 4; k++)
            bytes[4 + 4 * i + k] = (uint8_t)(words[i] >> (24 - 8 * k));
    put(path, bytes, 4 + 4 * count);
}

enum { BITS_1 = 0x3f800000, BITS_2 = 0x40000000, BITS_HALF = 0x3f000000, BITS_NAN = 0x7fc00000 };

TEST(tokens_are_told_as_a_class_or_one_by_one)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    const uint32_t tokens[] = {3, 3, 4, 0, 2, 1, 1, 3, 2, 2, 0};
    put_words(scratch.images, 0x0c, 2, tokens, 11);
    struct dataset_options options = options_for(&scratch);
    options.vocabulary = 5;
    options.target = DATASET_STEPS;
    AUTO(dataset) struct dataset *dataset = NULL;
    ASSERT_OK(dataset_open(&options, &dataset, &error));
    const struct dataset_shape *shape = dataset_shape(dataset);
    assert_true(shape->width == 2 && shape->steps == 2 && shape->vocabulary == 5);
    const uint32_t indices[] = {1, 0};
    float inputs[4];
    int32_t told[4];
    dataset_gather(dataset, indices, 2, inputs, told);
    assert_true(inputs[0] == 1 && inputs[1] == 1 && inputs[2] == 4 && inputs[3] == 0);
    assert_true(told[0] == 1 && told[1] == 3 && told[2] == 0 && told[3] == 2);

    options.target = DATASET_CLASS;
    AUTO(dataset) struct dataset *classes = NULL;
    ASSERT_OK(dataset_open(&options, &classes, &error));
    assert_int_equal(dataset_shape(classes)->width, 3);
    options.vocabulary = 4;
    struct dataset *none = NULL;
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "token 4 of record 0 is not below 4 (byte 12)"));
    options.vocabulary = 0;
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    scratch_done(&scratch);
}

TEST(sparse_rows_and_numbers_to_tell_come_from_floats)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    uint32_t rows[] = {2, 2, 2, 0, BITS_2, BITS_1, BITS_HALF, BITS_1, 0, BITS_2, 0};
    put_words(scratch.images, 0x0d, 3, rows, 11);
    const uint32_t numbers[] = {2, BITS_HALF, BITS_2};
    put_words(scratch.labels, 0x0d, 1, numbers, 3);
    struct dataset_options options = options_for(&scratch);
    options.vocabulary = 3;
    options.target = DATASET_VALUES;
    AUTO(dataset) struct dataset *dataset = NULL;
    ASSERT_OK(dataset_open(&options, &dataset, &error));
    assert_true(dataset_shape(dataset)->height == 2 && dataset_shape(dataset)->values == 1);
    const uint32_t indices[] = {1};
    float inputs[4], value;
    dataset_gather(dataset, indices, 1, inputs, NULL);
    dataset_gather_values(dataset, indices, 1, &value);
    assert_true(inputs[0] == 1 && inputs[1] == 0 && inputs[2] == 2 && value == 2);

    struct dataset *none = NULL;
    options.vocabulary = 2;
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "place 2 of record 0 is not below 2 (byte 20)"));
    options.vocabulary = 3;
    rows[7] = BITS_HALF; /* between two places */
    put_words(scratch.images, 0x0d, 3, rows, 11);
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    rows[7] = BITS_1;
    rows[9] = BITS_NAN;
    put_words(scratch.images, 0x0d, 3, rows, 11);
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "record 1 has a number that is not finite (byte 40)"));
    options.target = DATASET_CLASS; /* but the labels are floats */
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    scratch_done(&scratch);
}

TEST(sparse_rows_in_memory_have_any_values_at_whole_places)
{
    struct error error;
    float inputs[] = {2, 0, 0.5F, -7, 1, 2, 99, 0};
    const int32_t classes[] = {0, 1};
    const struct dataset_shape shape = {
        .count = 2, .channels = 1, .height = 2, .width = 2, .classes = 2, .vocabulary = 3};
    const struct dataset_arrays arrays = {.inputs = inputs, .labels = classes};
    AUTO(dataset) struct dataset *dataset = NULL;
    struct dataset *none = NULL;
    ASSERT_OK(dataset_open_arrays(&shape, &arrays, &dataset, &error));
    inputs[5] = 3;
    ASSERT_FAILS(dataset_open_arrays(&shape, &arrays, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "3 of record 1 is not below 3"));
    inputs[5] = 0.5F; /* between two places */
    ASSERT_FAILS(dataset_open_arrays(&shape, &arrays, &none, &error), ERROR_INVALID);
    inputs[5] = 2;
    inputs[6] = INFINITY;
    ASSERT_FAILS(dataset_open_arrays(&shape, &arrays, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "not finite"));
}

TEST(labels_may_be_ints_of_many_classes)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    const uint32_t wide[] = {3, 2, 65535, 40000};
    put_words(scratch.labels, 0x0c, 1, wide, 4);
    struct dataset_options options = options_for(&scratch);
    options.classes = 65536;
    AUTO(dataset) struct dataset *dataset = NULL;
    ASSERT_OK(dataset_open(&options, &dataset, &error));
    const uint32_t indices[] = {1};
    float image[2];
    int32_t label;
    dataset_gather(dataset, indices, 1, image, &label);
    assert_int_equal(label, 65535);
    options.classes = 50000;
    struct dataset *none = NULL;
    ASSERT_FAILS(dataset_open(&options, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "label 65535 of record 1 is not below 50000 (byte 12)"));
    scratch_done(&scratch);
}

TEST(the_catalogue_finds_files_with_and_without_gz)
{
    struct error error;
    const struct dataset_entry *entry = NULL;
    ASSERT_OK(dataset_entry_find(TEXT("fashion-mnist"), &entry, &error));
    struct scratch scratch;
    scratch_init(&scratch);
    char path[PATH_MAX];
    ASSERT_FAILS(
        dataset_entry_path(entry, scratch.folder, DATASET_TEST_LABELS, path, sizeof(path), &error),
        ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "install dataset-fashion-mnist"));
    char raw[128];
    snprintf(raw, sizeof(raw), "%s/t10k-labels-idx1-ubyte", scratch.folder);
    assert_int_equal(rename(scratch.labels, raw), 0);
    ASSERT_OK(
        dataset_entry_path(entry, scratch.folder, DATASET_TEST_LABELS, path, sizeof(path), &error));
    assert_string_equal(path, raw);
    unlink(raw);
    scratch_done(&scratch);
    ASSERT_FAILS(dataset_entry_find(TEXT("imagenet"), &entry, &error), ERROR_NOT_FOUND);
    ASSERT_OK(dataset_entry_find(TEXT("mnist"), &entry, &error));
    ASSERT_FAILS(dataset_entry_path(entry, NULL, DATASET_TEST_LABELS, path, sizeof(path), &error),
                 ERROR_NOT_FOUND);
    assert_string_equal(dataset_part_name(DATASET_TRAIN_IMAGES), "train-images");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_scaled_as_it_is_drawn),
        cmocka_unit_test(pixels_in_memory_are_scaled_as_those_of_files),
        cmocka_unit_test(labels_that_do_not_fit_are_refused),
        cmocka_unit_test(tokens_are_told_as_a_class_or_one_by_one),
        cmocka_unit_test(sparse_rows_and_numbers_to_tell_come_from_floats),
        cmocka_unit_test(sparse_rows_in_memory_have_any_values_at_whole_places),
        cmocka_unit_test(labels_may_be_ints_of_many_classes),
        cmocka_unit_test(the_catalogue_finds_files_with_and_without_gz),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
