#include "base/file.h"
#include "testing/testing.h"
#include "train/csv_parts.h"
#include "train/csv_record.h"
#include "train/dataset.h"
#include "train/idx_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static const struct csv_table_options plain = {.size_max = 1 << 20};

static struct csv_table *parse(const char *csv, const char *label)
{
    struct error error;
    struct csv_table *table = NULL;
    const struct csv_table_options options = {.label = label, .size_max = 1 << 20};
    ASSERT_OK(csv_table_parse(text_of(csv), &options, &table, &error));
    return table;
}

static void expect_refusal(const char *csv, const char *label, enum error_code code,
                           const char *word)
{
    struct error error;
    struct csv_table *none = NULL;
    const struct csv_table_options options = {.label = label, .size_max = 1 << 20};
    ASSERT_FAILS(csv_table_parse(text_of(csv), &options, &none, &error), code);
    if (!strstr(error.message, word))
        fail_msg("\"%s\" does not say \"%s\"", error.message, word);
}

TEST(numbers_are_read_as_the_library_reads_them)
{
    static const char *const good[] = {"0",
                                       "-1",
                                       "+2.5",
                                       "1e3",
                                       "-.5",
                                       "3.",
                                       "1.25e-7",
                                       "123456789012345678",
                                       "0.1",
                                       "6.02214076e23",
                                       "-0.000000123",
                                       "99999999999999.9"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        double value = 0;
        assert_true(csv_number_parse(text_of(good[i]), &value));
        assert_true(value == strtod(good[i], NULL));
    }
    static const char *const bad[] = {"",    "-",   ".",  "1,5",   "0x10",
                                      "nan", "inf", "1e", "1e999", "1 2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        double value;
        if (csv_number_parse(text_of(bad[i]), &value))
            fail_msg("\"%s\" was taken for %g", bad[i], value);
    }
}

TEST(a_first_line_of_names_is_told_from_one_of_numbers)
{
    AUTO(csv_table)
    struct csv_table *named = parse(
        "a,\"b, c\",y\n1,2,0\n1,2,1\n1,2,0\n1,2,0\n1,2,0\n1,2,0\n1,2,0\n1,2,0\n1,2,0\n1,2,0\n",
        NULL);
    assert_int_equal(named->row_count, 10);
    assert_string_equal(named->feature_names[1], "b, c");
    assert_string_equal(named->label_name, "y");
    AUTO(csv_table)
    struct csv_table *bare = parse(
        "1;2;no\r\n3;4;yes\r\n1;2;no\n1;2;no\n1;2;no\n1;2;no\n\n1;2;no\n1;2;no\n1;2;no\n-7;2;no",
        NULL);
    assert_int_equal(bare->row_count, 10);
    assert_string_equal(bare->feature_names[1], "2");
    assert_true(bare->values[18] == -7.0F);
    assert_string_equal(bare->class_names[1], "yes");
    assert_int_equal(bare->labels[1], 1);
}

TEST(classes_are_in_the_order_of_their_names_whatever_the_rows)
{
    AUTO(csv_table)
    struct csv_table *table =
        parse("y,x\n10,1\n9,2\n10,3\n-1,4\n9,5\n9,6\n9,7\n9,8\n9,9\n9,10\n", "y");
    assert_int_equal(table->class_count, 3);
    assert_string_equal(table->class_names[0], "-1");
    assert_string_equal(table->class_names[2], "10");
    assert_int_equal(table->labels[0], 2);
    assert_int_equal(table->labels[3], 0);
    assert_true(table->values[3] == 4.0F);
}

TEST(what_is_wrong_is_named_with_its_line)
{
    expect_refusal("", NULL, ERROR_INVALID, "empty");
    expect_refusal("\n\r\n", NULL, ERROR_INVALID, "empty");
    expect_refusal("1\n2\n", NULL, ERROR_INVALID, "one column");
    expect_refusal("a,y\n1,0\nx,1\n", NULL, ERROR_INVALID, "line 3: column \"a\": \"x\" is not a");
    expect_refusal("a,y\n1,0\n,1\n", NULL, ERROR_INVALID, "line 3");
    expect_refusal("a,b,y\n1,2,0\n1,0\n", NULL, ERROR_INVALID, "line 3: 2 fields, not 3");
    expect_refusal("a,b,y\n1,2,0,4\n", NULL, ERROR_INVALID, "line 2: more than 3");
    expect_refusal("a,y\n\"1,0\n", NULL, ERROR_INVALID, "quote is not closed");
    expect_refusal("a,y\n\"1\"2,0\n", NULL, ERROR_INVALID, "follows a quoted");
    expect_refusal("a,y\n1,\n", NULL, ERROR_INVALID, "label is empty");
    expect_refusal("a,y\n1e39,0\n", NULL, ERROR_INVALID, "not a number");
    expect_refusal("a,y\n1,0\n", "z", ERROR_NOT_FOUND, "no column \"z\"");
    expect_refusal("a,y\n1,0\n", NULL, ERROR_INVALID, "1 rows are too few");
    expect_refusal("a,y\n1,0\n1,0\n1,0\n1,0\n1,0\n1,0\n1,0\n1,0\n1,0\n1,0\n", NULL, ERROR_INVALID,
                   "one value alone");
    struct buffer many AUTO_BUFFER;
    buffer_init(&many, 1 << 16);
    for (int i = 0; i < 300; i++)
        buffer_append_format(&many, "%d,%d.5\n", i, i);
    expect_refusal(buffer_string(&many), NULL, ERROR_INVALID, "more than 256 different values");
}

TEST(a_file_may_be_compressed_and_has_a_maximum)
{
    char folder[] = "/tmp/csv_table_test.XXXXXX", path[64];
    struct error error;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/rows.csv.gz", folder);
    gzFile file = gzopen(path, "wb");
    for (int i = 0; i < 50; i++)
        gzprintf(file, "%d,%d,%s\n", i, -i, i % 2 ? "odd" : "even");
    assert_int_equal(gzclose(file), Z_OK);
    AUTO(csv_table) struct csv_table *table = NULL;
    ASSERT_OK(csv_table_open(path, &plain, &table, &error));
    assert_int_equal(table->row_count, 50);
    assert_string_equal(table->class_names[0], "even");
    struct csv_table *none = NULL;
    const struct csv_table_options small = {.size_max = 100};
    ASSERT_FAILS(csv_table_open(path, &small, &none, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(csv_table_open("/no/such.csv", &plain, &none, &error), ERROR_NOT_FOUND);
    unlink(path);
    rmdir(folder);
}

/* Column 1 is 3 times the label plus noise far below it, column 2 never changes. */
static struct csv_table *make_table(void)
{
    struct buffer csv AUTO_BUFFER;
    buffer_init(&csv, 1 << 16);
    for (int i = 0; i < 200; i++)
        buffer_append_format(&csv, "%d.%02d,5,%d\n", 3 * (i / 100), i % 100, i / 100);
    return parse(buffer_string(&csv), NULL);
}

TEST(parts_are_whole_idx_files_of_scaled_rows_in_a_seeded_order)
{
    AUTO(csv_table) struct csv_table *table = make_table();
    struct csv_parts parts, again;
    struct error error;
    ASSERT_OK(csv_parts_init(&parts, table, 7, &error));
    ASSERT_OK(csv_parts_init(&again, table, 7, &error));
    AUTO(idx) struct idx *values = NULL, *labels = NULL;
    const struct buffer *bytes = &parts.files[DATASET_TRAIN_IMAGES];
    ASSERT_OK(idx_open_bytes(bytes->data, bytes->size, &values, &error));
    assert_memory_equal(bytes->data, again.files[DATASET_TRAIN_IMAGES].data, bytes->size);
    bytes = &parts.files[DATASET_TRAIN_LABELS];
    ASSERT_OK(idx_open_bytes(bytes->data, bytes->size, &labels, &error));
    assert_int_equal(values->header.element, IDX_FLOAT);
    assert_int_equal(values->header.sizes[0], 180);
    assert_int_equal(values->header.sizes[1], 2);
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
    csv_parts_done(&parts);
    csv_parts_done(&again);
}

TEST(a_data_set_takes_rows_as_images_one_pixel_high)
{
    AUTO(csv_table) struct csv_table *table = make_table();
    char folder[] = "/tmp/csv_table_test.XXXXXX", paths[2][64];
    struct csv_parts parts;
    struct error error;
    assert_non_null(mkdtemp(folder));
    ASSERT_OK(csv_parts_init(&parts, table, 1, &error));
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%d", folder, i);
        const struct text bytes = buffer_text(&parts.files[i]);
        ASSERT_OK(file_replace(paths[i], &bytes, 1, 0600, &error));
    }
    const struct dataset_options options = {
        .images_path = paths[0], .labels_path = paths[1], .classes = 2, .deviation = 1};
    AUTO(dataset) struct dataset *dataset = NULL;
    ASSERT_OK(dataset_open(&options, &dataset, &error));
    assert_int_equal(dataset_shape(dataset)->height, 1);
    assert_int_equal(dataset_shape(dataset)->width, 2);
    float values[4];
    int32_t labels[2];
    dataset_gather(dataset, (const uint32_t[]){3, 0}, 2, values, labels);
    assert_true(values[0] == idx_float(parts.files[0].data + 12 + (size_t)3 * 8));
    assert_int_equal(labels[1], parts.files[1].data[8]);
    csv_parts_done(&parts);
    unlink(paths[0]);
    unlink(paths[1]);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_as_the_library_reads_them),
        cmocka_unit_test(a_first_line_of_names_is_told_from_one_of_numbers),
        cmocka_unit_test(classes_are_in_the_order_of_their_names_whatever_the_rows),
        cmocka_unit_test(what_is_wrong_is_named_with_its_line),
        cmocka_unit_test(a_file_may_be_compressed_and_has_a_maximum),
        cmocka_unit_test(parts_are_whole_idx_files_of_scaled_rows_in_a_seeded_order),
        cmocka_unit_test(a_data_set_takes_rows_as_images_one_pixel_high),
    };
    return cmocka_run_group_tests_name("csv_table", tests, NULL, NULL);
}
