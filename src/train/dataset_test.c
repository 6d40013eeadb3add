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

TEST(an_epoch_draws_each_record_once_in_a_seeded_order)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    AUTO(dataset) struct dataset *dataset = NULL;
    const struct dataset_options options = options_for(&scratch);
    ASSERT_OK(dataset_open(&options, &dataset, &error));
    struct sampler sampler;
    ASSERT_OK(sampler_init(&sampler, dataset, 1, 2, 5, &error));
    uint32_t drawn[20];
    for (int i = 0; i < 20; i += 5)
        sampler_next(&sampler, drawn + i, 5); /* runs over the ends of epochs */
    bool is_reversed = false, is_forward = false;
    for (int i = 0; i < 20; i += 2) {
        assert_int_equal(drawn[i] + drawn[i + 1], 3); /* records 1 and 2, once each */
        is_reversed |= drawn[i] == 2;
        is_forward |= drawn[i] == 1;
    }
    assert_true(is_reversed && is_forward);
    ASSERT_OK(sampler_seek(&sampler, 3, 1, &error));
    uint32_t again[5];
    sampler_next(&sampler, again, 5);
    assert_memory_equal(again, drawn + 7, sizeof(again));
    ASSERT_FAILS(sampler_seek(&sampler, 0, 3, &error), ERROR_INVALID);
    sampler_done(&sampler);
    ASSERT_FAILS(sampler_init(&sampler, dataset, 2, 2, 5, &error), ERROR_INVALID);
    ASSERT_FAILS(sampler_init(&sampler, dataset, 0, 0, 5, &error), ERROR_INVALID);
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
        cmocka_unit_test(labels_that_do_not_fit_are_refused),
        cmocka_unit_test(an_epoch_draws_each_record_once_in_a_seeded_order),
        cmocka_unit_test(the_catalogue_finds_files_with_and_without_gz),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
