/* covers import_parts.c, import_scale.c, import_windows.c */
#include "train/dataset.h"
#include "train/idx_reader.h"
#include "train/import_parts.h"
#include "train/import_windows.h"
#include "train/reader_testing.h"

#include <math.h>

/* Column 1 is 3 times the label plus noise far below it, column 2 never changes. */
static void make_import(struct import *import)
{
    struct error error;
    struct buffer csv AUTO_BUFFER;
    const struct import_options options = default_options();
    buffer_init(&csv, 1 << 16);
    for (int i = 0; i < 200; i++)
        buffer_append_format(&csv, "%d.%02d,5,%d\n", 3 * (i / 100), i % 100, i / 100);
    const struct reader_source source = {.bytes = buffer_text(&csv)};
    ASSERT_OK(reader_csv_read(&source, &options, import, &error));
    ASSERT_OK(import_finish(import, &error));
}

static struct idx *open_part(const struct import_parts *parts, enum dataset_part part)
{
    struct error error;
    struct idx *idx = NULL;
    ASSERT_OK(idx_open_bytes(parts->files[part].data, parts->files[part].size, &idx, &error));
    return idx;
}

TEST(parts_are_whole_idx_files_of_scaled_rows_in_a_seeded_order)
{
    struct error error;
    struct import import AUTO_IMPORT = {0};
    struct import_parts parts, again;
    const struct import_parts_options options = {.seed = 7};
    make_import(&import);
    ASSERT_OK(import_parts_init(&parts, &import, &options, &error));
    ASSERT_OK(import_parts_init(&again, &import, &options, &error));
    assert_memory_equal(parts.files[0].data, again.files[0].data, parts.files[0].size);
    AUTO(idx) struct idx *values = open_part(&parts, DATASET_TRAIN_IMAGES);
    AUTO(idx) struct idx *labels = open_part(&parts, DATASET_TRAIN_LABELS);
    AUTO(idx) struct idx *test = open_part(&parts, DATASET_TEST_LABELS);
    assert_int_equal(values->header.element, IDX_FLOAT);
    assert_int_equal(values->header.sizes[0], 180);
    assert_int_equal(values->header.sizes[1], 2);
    assert_int_equal(test->header.sizes[0], 20);
    double sum = 0, squares = 0;
    uint32_t changes = 0;
    for (uint32_t i = 0; i < 180; i++) {
        const double value = (double)idx_float(idx_record(values, i));
        sum += value;
        squares += value * value;
        assert_true(idx_float(idx_record(values, i) + 4) == 0.0F);
        assert_int_equal(*idx_record(labels, i), value > 0); /* the label went with its row */
        changes += i > 0 && *idx_record(labels, i) != *idx_record(labels, i - 1);
    }
    assert_true(fabs(sum / 180) < 1e-6 && fabs(squares / 180 - 1) < 1e-5);
    assert_true(changes > 50); /* a sorted file would leave shards of one class */
    assert_non_null(strstr(buffer_string(&parts.columns), "\"classes\":[\"0\",\"1\"]"));
    import_parts_done(&parts);
    import_parts_done(&again);
}

static uint32_t ones_in_first_half(const struct import *import, double skew)
{
    struct error error;
    struct import_parts parts;
    const struct import_parts_options options = {.seed = 1, .label_skew = skew};
    ASSERT_OK(import_parts_init(&parts, import, &options, &error));
    AUTO(idx) struct idx *labels = open_part(&parts, DATASET_TRAIN_LABELS);
    uint32_t ones = 0, all = 0;
    for (uint32_t i = 0; i < 180; i++) {
        ones += i < 90 && *idx_record(labels, i);
        all += *idx_record(labels, i);
    }
    assert_in_range(all, 80, 100); /* nothing is lost or doubled */
    import_parts_done(&parts);
    return ones;
}

TEST(label_skew_gives_shards_of_few_classes)
{
    struct import import AUTO_IMPORT = {0};
    make_import(&import);
    assert_in_range(ones_in_first_half(&import, 0), 30, 60);
    assert_in_range(ones_in_first_half(&import, 0.5), 12, 32);
    assert_in_range(ones_in_first_half(&import, 1), 0, 10);
}

TEST(images_say_their_mean_and_sparse_rows_are_laid_out)
{
    struct error error;
    struct import import AUTO_IMPORT = {0};
    const struct import_options options = default_options();
    const struct import_parts_options split = {.seed = 1};
    struct import_parts parts;
    const struct reader_source source = {
        .bytes = TEXT("0 1:1\n1 3:2\n0 1:1\n1 3:2\n0 1:1\n1 3:2\n0 1:1\n1 3:2\n0 1:1\n1 3:2\n")};
    ASSERT_OK(reader_libsvm_read(&source, &options, &import, &error));
    ASSERT_OK(import_finish(&import, &error));
    ASSERT_OK(import_parts_init(&parts, &import, &split, &error));
    AUTO(idx) struct idx *values = open_part(&parts, DATASET_TRAIN_IMAGES);
    AUTO(idx) struct idx *labels = open_part(&parts, DATASET_TRAIN_LABELS);
    for (uint32_t i = 0; i < 9; i++) {
        const float label = (float)*idx_record(labels, i);
        assert_true(idx_float(idx_record(values, i)) == 1 - label);
        assert_true(idx_float(idx_record(values, i) + 4) == 0);
        assert_true(idx_float(idx_record(values, i) + 8) == 2 * label);
    }
    import_parts_done(&parts);
    import_done(&import);
    import.form = IMPORT_BYTES;
    import.channels = import.height = import.width = 1;
    import.classes = 2;
    for (int i = 0; i < 10; i++) {
        ASSERT_OK(spool_append(&import.train.values, i % 2 ? "\xff" : "", 1, &error));
        ASSERT_OK(import_add_class_target(&import.train, i % 2, &error));
        ASSERT_OK(import_row_end(&import.train, &error));
    }
    ASSERT_OK(import_finish(&import, &error));
    ASSERT_OK(import_parts_init(&parts, &import, &split, &error));
    assert_float_equal(parts.mean, 0.5, 1e-9);
    assert_float_equal(parts.deviation, 0.5, 1e-9);
    import_parts_done(&parts);
}

TEST(wide_sparse_rows_stay_places_and_numbers)
{
    struct error error;
    struct import import AUTO_IMPORT = {0};
    const struct import_options options = default_options();
    const struct import_parts_options split = {.seed = 1};
    struct import_parts parts;
    struct buffer rows AUTO_BUFFER;
    buffer_init(&rows, 1 << 12);
    for (int i = 0; i < 10; i++)
        buffer_append_format(&rows, i % 2 ? "1 3:2 4000001:5\n" : "0 1:1\n");
    const struct reader_source source = {.bytes = buffer_text(&rows)};
    ASSERT_OK(reader_libsvm_read(&source, &options, &import, &error));
    ASSERT_OK(import_finish(&import, &error));
    const struct dataset_shape shape = import_parts_shape(&import);
    assert_true(shape.height == 2 && shape.width == 2 && shape.vocabulary == 4000001);
    ASSERT_OK(import_parts_init(&parts, &import, &split, &error));
    AUTO(idx) struct idx *values = open_part(&parts, DATASET_TRAIN_IMAGES);
    AUTO(idx) struct idx *labels = open_part(&parts, DATASET_TRAIN_LABELS);
    assert_true(values->header.rank == 3 && values->header.sizes[1] == 2);
    for (uint32_t i = 0; i < 9; i++) {
        const float label = (float)*idx_record(labels, i),
                    expected[2][4] = {{0, 0, 1, 0}, {2, 4000000, 2, 5}};
        for (int k = 0; k < 4; k++)
            assert_true(idx_float(idx_record(values, i) + (ptrdiff_t)4 * k) ==
                        expected[label > 0][k]);
    }
    import_parts_done(&parts);
}

TEST(windows_of_rows_tell_the_number_that_comes)
{
    struct error error;
    struct import import AUTO_IMPORT = {0};
    struct import_options options = default_options();
    const struct import_parts_options split = {.seed = 1};
    struct import_parts parts;
    struct buffer rows AUTO_BUFFER;
    buffer_init(&rows, 1 << 16);
    buffer_append_format(&rows, "t,y\n");
    for (int i = 0; i < 106; i++)
        buffer_append_format(&rows, "%d,%d\n", i, 10 * i);
    const struct reader_source source = {.bytes = buffer_text(&rows)};
    options.is_number = true;
    ASSERT_OK(reader_csv_read(&source, &options, &import, &error));
    ASSERT_FAILS(import_make_windows(&import, 100, 2, &error), ERROR_INVALID);
    ASSERT_OK(import_make_windows(&import, 5, 2, &error));
    ASSERT_OK(import_finish(&import, &error));
    assert_true(import.train.count == 90 && import.test.count == 10);
    const struct dataset_shape shape = import_parts_shape(&import);
    assert_true(shape.height == 5 && shape.width == 2 && shape.values == 1);
    ASSERT_OK(import_parts_init(&parts, &import, &split, &error));
    AUTO(idx) struct idx *values = open_part(&parts, DATASET_TEST_IMAGES);
    AUTO(idx) struct idx *targets = open_part(&parts, DATASET_TEST_LABELS);
    assert_true(values->header.rank == 4 && targets->header.element == IDX_FLOAT);
    /* The last record has rows 99 to 103, with what is told of them, and tells that of row 105. */
    const uint8_t *last = idx_record(values, 9);
    const double told = (double)idx_float(idx_record(targets, 9));
    assert_true(fabs(told * parts.target_deviation + parts.target_mean - 1050) < 1e-2);
    const double move = (double)idx_float(last + 12) - (double)idx_float(last + 4);
    const double wide = (double)idx_float(last + 36) - (double)idx_float(last + 4);
    assert_true(fabs(wide - 4 * move) < 1e-4);
    assert_true(move > 0);
    assert_non_null(strstr(buffer_string(&parts.columns), "\"target_deviation\""));
    import_parts_done(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_whole_idx_files_of_scaled_rows_in_a_seeded_order),
        cmocka_unit_test(label_skew_gives_shards_of_few_classes),
        cmocka_unit_test(images_say_their_mean_and_sparse_rows_are_laid_out),
        cmocka_unit_test(wide_sparse_rows_stay_places_and_numbers),
        cmocka_unit_test(windows_of_rows_tell_the_number_that_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
