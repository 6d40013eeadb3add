/* covers import.c, csv_columns.c, csv_record.c, reader.c */
/* covers reader_csv.c, reader_libsvm.c, reader_text.c */
#include "train/csv_record.h"
#include "train/reader_testing.h"

#define ROWS_OF_NUMBERS "1,2,a\n3,4,b\n5,6,a\n7,8,b\n9,1,a\n2,3,b\n4,5,a\n6,7,b\n8,9,a\n1,1,b\n"

static void assert_refused(const char *csv, const struct import_options *options, const char *word)
{
    struct error error;
    struct import import AUTO_IMPORT = {0};
    const struct reader_source source = {.bytes = text_of(csv)};
    if (reader_csv_read(&source, options, &import, &error) == 0)
        fail_msg("\"%s\" was read", csv);
    assert_says(&error, word);
}

TEST(fields_are_taken_out_of_quotes_over_lines)
{
    struct error error;
    AUTO(data_stream) struct data_stream *stream = NULL;
    ASSERT_OK(data_stream_open_bytes(TEXT("\xef\xbb\xbf"
                                          "a,\"b \"\"c\"\"\", d \r\n\n\"x\ny\",,2\n"),
                                     100, &stream, &error));
    struct csv_record record AUTO_CSV_RECORD;
    csv_record_init(&record, stream, 3);
    bool has_record = false;
    ASSERT_OK(csv_record_next(&record, &has_record, &error));
    assert_true(has_record);
    assert_int_equal(record.count, 3);
    assert_true(text_equal(record.fields[0], TEXT("a")));
    assert_true(text_equal(record.fields[1], TEXT("b \"c\"")));
    assert_true(text_equal(record.fields[2], TEXT("d")));
    ASSERT_OK(csv_record_next(&record, &has_record, &error));
    assert_int_equal(record.line, 3);
    assert_true(text_equal(record.fields[0], TEXT("x\ny")));
    assert_int_equal(record.fields[1].size, 0);
    ASSERT_OK(csv_record_next(&record, &has_record, &error));
    assert_false(has_record);
}

TEST(a_table_has_its_classes_in_order_and_its_target_by_name)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    const char *path = scratch_write(&scratch, "t.csv", TEXT("p,q,kind\n" ROWS_OF_NUMBERS));
    ASSERT_OK(import_read(path, &options, &import, &error));
    assert_int_equal(import.form, IMPORT_FLOATS);
    assert_int_equal(import.train.count, 10);
    assert_int_equal(import.width, 2);
    assert_int_equal(import.classes, 2);
    assert_string_equal(import.target_name, "kind");
    assert_string_equal(import.features[1].name, "q");
    assert_float_equal(floats_of(&import.train)[3], 4, 0);
    assert_int_equal(classes_of(&import.train)[0], 0);
    assert_int_equal(classes_of(&import.train)[1], 1);
    import_done(&import);
    options.target = "p";
    options.is_number = true;
    options.skip_columns = "kind";
    ASSERT_OK(import_read(path, &options, &import, &error));
    assert_int_equal(import.target, IMPORT_NUMBER);
    assert_int_equal(import.width, 1);
    assert_float_equal(numbers_of(&import.train)[4], 9, 0);
    scratch_done(&scratch);
}

TEST(a_name_that_is_no_column_s_is_told_with_those_there_are)
{
    struct error error;
    const char *csv = "p,q,y\n1,1,a\n2,2,b\n4,3,a\n";
    const struct reader_source source = {.bytes = text_of(csv)};
    struct import import AUTO_IMPORT = {0};
    struct import_options options = default_options();
    options.target = "kind";
    assert_refused(csv, &options, "there is no column \"kind\"; there are p, q, y");
    options.target = "y";
    options.skip_columns = "q, r";
    assert_refused(csv, &options, "train.read.skip: there is no column \"r\"; there are p, q, y");
    options.is_part = true; /* of others' data, which may have it */
    ASSERT_OK(reader_csv_read(&source, &options, &import, &error));
    assert_int_equal(import.width, 1);
    options.is_part = false;
    options.skip_columns = NULL;
    options.category_columns = "*, town";
    assert_refused(csv, &options, "train.read.category_columns: there is no column \"town\"");
}

TEST(missing_values_are_refused_dropped_or_filled_in)
{
    struct error error;
    const char *csv = "p,q,y\nNA,1,a\n2,2,b\n4,3,a\n";
    const struct reader_source source = {.bytes = text_of(csv)};
    struct import_options options = default_options();
    assert_refused(csv, &options, "line 2: column \"p\": the value is missing");
    struct import import AUTO_IMPORT = {0};
    options.missing = IMPORT_MISSING_DROP;
    ASSERT_OK(reader_csv_read(&source, &options, &import, &error));
    assert_int_equal(import.train.count, 2);
    assert_int_equal(import.dropped_rows, 1);
    import_done(&import);
    options.missing = IMPORT_MISSING_MEAN;
    ASSERT_OK(reader_csv_read(&source, &options, &import, &error));
    assert_int_equal(import.filled_values, 1);
    assert_float_equal(floats_of(&import.train)[0], 3, 0);
    import_done(&import);
    options.missing = IMPORT_MISSING_CONSTANT;
    options.missing_value = -1;
    ASSERT_OK(reader_csv_read(&source, &options, &import, &error));
    assert_float_equal(floats_of(&import.train)[0], -1, 0);
    options.missing = IMPORT_MISSING_MEAN;
    assert_refused("p,q,y\n1,,a\n2,,b\n", &options, "column \"q\" has no value at all");
    assert_refused("p,y\n1,\n2,b\n", &options, "line 2: column \"y\": the label is missing");
}

TEST(words_become_places_of_their_own)
{
    struct error error;
    const char *csv = "town,size,y\nRome,1,0\nOslo,2,1\nRome,3,1\n";
    const struct reader_source source = {.bytes = text_of(csv)};
    struct import_options options = default_options();
    assert_refused(csv, &options, "line 2: column \"town\": \"Rome\" is not a number");
    options.categories = IMPORT_CATEGORIES_ONE_HOT;
    struct import import AUTO_IMPORT = {0};
    ASSERT_OK(reader_csv_read(&source, &options, &import, &error));
    assert_int_equal(import.width, 3);
    static const float expected[] = {1, 0, 1, 2, 1, 0, 3, 0, 1};
    assert_memory_equal(import.train.values.data, expected, sizeof(expected));
    assert_string_equal(import.features[1].name, "town=Oslo");
    assert_true(import.features[0].is_scaled && !import.features[1].is_scaled);
}

TEST(hashed_words_make_sparse_rows)
{
    struct error error;
    const char *csv = "town,size,y\nRome,1,0\nOslo,2,1\nRome,3,1\n,4,0\n";
    const struct reader_source source = {.bytes = text_of(csv)};
    struct import_options options = default_options();
    options.categories = IMPORT_CATEGORIES_HASHED;
    options.buckets = 1000;
    struct import import AUTO_IMPORT = {0};
    ASSERT_OK(reader_csv_read(&source, &options, &import, &error));
    assert_int_equal(import.form, IMPORT_SPARSE);
    assert_int_equal(import.width, 1001);
    const uint64_t *starts = (const uint64_t *)(const void *)import.train.starts.data;
    const uint32_t *indices = (const uint32_t *)(const void *)import.train.indices.data;
    assert_int_equal(starts[1], 2);
    assert_int_equal(starts[3], 6);
    assert_int_equal(indices[0], 0);
    assert_int_equal(indices[1], 1 + import_hash(TEXT("town"), TEXT("Rome")) % 1000);
    assert_int_equal(indices[1], indices[5]);
    assert_true(indices[1] != indices[3]);
    /* The last row's town is missing: it has its size alone. */
    assert_int_equal(import.train.values.size, 7 * sizeof(float));
}

TEST(each_fault_of_a_table_is_said_with_its_place)
{
    const struct import_options options = default_options();
    assert_refused("", &options, "empty");
    assert_refused("a\n1\n", &options, "one column is too few");
    assert_refused("a,b\n1,2\n1\n", &options, "line 3: 1 fields, not 2");
    assert_refused("a,b\n\"1,2\n", &options, "line 2, column 1: a quote is not closed");
    assert_refused("a,b\n\"1\"x,2\n", &options, "line 2, column 1: something follows");
    struct import_options other = default_options();
    other.target = "c";
    assert_refused("a,b\n1,2\n", &other, "no column \"c\"; there are a, b");
    other = default_options();
    other.categories = IMPORT_CATEGORIES_HASHED;
    other.buckets = IMPORT_SPARSE_WIDTH_MAX;
    assert_refused("a,b,c\nx,1,2\ny,2,3\n", &other, "use fewer buckets");
}

TEST(sparse_lines_stay_sparse)
{
    struct error error;
    const struct import_options options = default_options();
    const struct reader_source source = {
        .bytes = TEXT("-1 3:1 11:0.5 # note\n\n+1 1:2\n-1\n1 2:-1e2\n")};
    struct import import AUTO_IMPORT = {0};
    ASSERT_OK(reader_libsvm_read(&source, &options, &import, &error));
    assert_int_equal(import.train.count, 4);
    assert_int_equal(import.width, 11);
    assert_int_equal(import.classes, 2);
    static const uint32_t indices[] = {2, 10, 0, 1};
    static const float values[] = {1, 0.5F, 2, -100};
    static const int32_t classes[] = {0, 1, 0, 1};
    assert_memory_equal(import.train.indices.data, indices, sizeof(indices));
    assert_memory_equal(import.train.values.data, values, sizeof(values));
    assert_memory_equal(import.train.targets.data, classes, sizeof(classes));
}

static void assert_line_refused(const char *line, const char *word)
{
    struct error error;
    const struct import_options options = default_options();
    const struct reader_source source = {.bytes = text_of(line)};
    struct import import AUTO_IMPORT = {0};
    if (reader_libsvm_read(&source, &options, &import, &error) == 0)
        fail_msg("\"%s\" was read", line);
    assert_says(&error, word);
}

TEST(each_fault_of_a_sparse_line_is_said_with_line_and_column)
{
    assert_line_refused("1 2:1\n1 3:x\n", "line 2, column 3: \"3:x\" is not INDEX:VALUE");
    assert_line_refused("1 3:1 2:1\n", "line 1, column 7: index 2 does not rise");
    assert_line_refused("1 99999999:1\n", "index 99999999 is above");
    assert_line_refused("cat 1:1\n", "label \"cat\" is not a number");
    assert_line_refused("1\n", "no row has an entry");
}

TEST(texts_become_tokens_by_how_often_words_occur)
{
    struct error error;
    struct import_options options = default_options();
    options.length = 4;
    options.vocabulary = 4;
    const struct reader_source source = {
        .bytes = TEXT("good\tA fine, fine film!\nbad\tnot a fine one at all\n")};
    struct import import AUTO_IMPORT = {0};
    ASSERT_OK(reader_text_read(&source, &options, &import, &error));
    assert_int_equal(import.vocabulary, 4);
    /* fine: 3 times, a: twice; the others are not known. bad is class 0. */
    static const int32_t tokens[] = {3, 2, 2, 1, 1, 3, 2, 1};
    assert_memory_equal(import.train.values.data, tokens, sizeof(tokens));
    assert_int_equal(classes_of(&import.train)[0], 1);
    assert_int_equal(classes_of(&import.train)[1], 0);
    import_done(&import);
    options.are_words_hashed = true;
    options.buckets = 50;
    ASSERT_OK(reader_text_read(&source, &options, &import, &error));
    assert_int_equal(import.vocabulary, 52);
    assert_int_equal(tokens_of(&import.train)[1], tokens_of(&import.train)[2]);
    assert_int_equal(tokens_of(&import.train)[1], 2 + import_hash(TEXT(""), TEXT("fine")) % 50);
}

TEST(running_text_becomes_rows_that_share_one_token)
{
    struct error error;
    struct import_options options = default_options();
    options.length = 3;
    options.unit = IMPORT_CHARACTERS;
    const struct reader_source source = {.bytes = TEXT("ababab\nc")};
    struct import import AUTO_IMPORT = {0};
    ASSERT_OK(reader_text_read(&source, &options, &import, &error));
    assert_int_equal(import.target, IMPORT_NEXT);
    assert_int_equal(import.width, 4);
    /* a and b three times, then the line's end (twice), then c. */
    static const int32_t tokens[] = {2, 3, 2, 3, 3, 2, 3, 4};
    assert_int_equal(import.train.count, 2);
    assert_memory_equal(import.train.values.data, tokens, sizeof(tokens));
}

TEST(folders_of_texts_are_told_and_read)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    struct import_options options = default_options();
    options.length = 2;
    for (int i = 0; i < 10; i++) {
        char name[32];
        if (i < 2) {
            snprintf(name, sizeof(name), "c%d", i);
            scratch_folder(&scratch, name);
        }
        snprintf(name, sizeof(name), "c%d/%d.txt", i % 2, i);
        scratch_write(&scratch, name, TEXT("some words"));
    }
    const struct reader *reader = NULL;
    ASSERT_OK(reader_find(scratch.folder, NULL, &reader, &error));
    assert_string_equal(reader->name, "text");
    struct import import AUTO_IMPORT = {0};
    ASSERT_OK(import_read(scratch.folder, &options, &import, &error));
    assert_int_equal(import.train.count, 10);
    assert_int_equal(import.classes, 2);
    scratch_done(&scratch);
}

static void assert_format(struct scratch *scratch, const char *name, struct text bytes,
                          const char *format)
{
    struct error error;
    const struct reader *reader = NULL;
    ASSERT_OK(reader_find(scratch_write(scratch, name, bytes), NULL, &reader, &error));
    assert_string_equal(reader->name, format);
}

TEST(a_format_is_told_by_content_and_name)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    assert_format(&scratch, "a9a", TEXT("-1 3:1 11:1\n"), "libsvm");
    assert_format(&scratch, "a.csv", TEXT("1,2\n"), "csv");
    assert_format(&scratch, "a.tsv", TEXT("1\t2\n"), "csv");
    assert_format(&scratch, "a.txt", TEXT("words\n"), "text");
    assert_format(&scratch, "images", TEXT("\0\0\x08\x01\0\0\0\x01\x01"), "idx");
    assert_format(&scratch, "array", TEXT("\x93NUMPY\x01\0"), "npy");
    assert_format(&scratch, "data_batch_1.bin", TEXT("\1"), "cifar");
    const struct reader *reader = NULL;
    scratch_write(&scratch, "what", TEXT("ever"));
    ASSERT_FAILS(reader_find(scratch.path, NULL, &reader, &error), ERROR_INVALID);
    assert_says(&error, "train.read.format");
    ASSERT_OK(reader_find(scratch.path, "csv", &reader, &error));
    ASSERT_FAILS(reader_find(scratch.path, "exe", &reader, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(reader_find("/nowhere/at/all", NULL, &reader, &error), ERROR_NOT_FOUND);
    scratch_done(&scratch);
}

TEST(too_little_to_learn_from_is_refused)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    const struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    scratch_write(&scratch, "t.csv", TEXT("1,a\n2,b\n"));
    ASSERT_FAILS(import_read(scratch.path, &options, &import, &error), ERROR_INVALID);
    assert_says(&error, "2 rows are too few");
    scratch_write(&scratch, "t.csv", TEXT("1,a\n2,a\n1,a\n2,a\n1,a\n2,a\n1,a\n2,a\n1,a\n2,a\n"));
    ASSERT_FAILS(import_read(scratch.path, &options, &import, &error), ERROR_INVALID);
    assert_says(&error, "nothing to tell apart");
    scratch_done(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_taken_out_of_quotes_over_lines),
        cmocka_unit_test(a_table_has_its_classes_in_order_and_its_target_by_name),
        cmocka_unit_test(a_name_that_is_no_column_s_is_told_with_those_there_are),
        cmocka_unit_test(missing_values_are_refused_dropped_or_filled_in),
        cmocka_unit_test(words_become_places_of_their_own),
        cmocka_unit_test(hashed_words_make_sparse_rows),
        cmocka_unit_test(each_fault_of_a_table_is_said_with_its_place),
        cmocka_unit_test(sparse_lines_stay_sparse),
        cmocka_unit_test(each_fault_of_a_sparse_line_is_said_with_line_and_column),
        cmocka_unit_test(texts_become_tokens_by_how_often_words_occur),
        cmocka_unit_test(running_text_becomes_rows_that_share_one_token),
        cmocka_unit_test(folders_of_texts_are_told_and_read),
        cmocka_unit_test(a_format_is_told_by_content_and_name),
        cmocka_unit_test(too_little_to_learn_from_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
