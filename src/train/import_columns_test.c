#include "train/idx_reader.h"
#include "train/import_columns.h"
#include "train/import_parts.h"
#include "train/reader_testing.h"

#include <math.h>

static void read_csv(const char *csv, struct import *import)
{
    struct error error;
    struct import_options options = default_options();
    options.categories = IMPORT_CATEGORIES_ONE_HOT;
    const struct reader_source source = {.bytes = text_of(csv)};
    import->is_part = true;
    ASSERT_OK(reader_csv_read(&source, &options, import, &error));
    ASSERT_OK(import_finish(import, &error));
}

#define TEN(line) line line line line line line line line line line

/* What the first file's columns say, as another reads them. */
static void read_columns(struct arena *arena, const char *csv, struct import_columns *out)
{
    struct error error;
    struct import import AUTO_IMPORT = {0};
    struct import_parts parts;
    const struct import_parts_options options = {.split = IMPORT_SPLIT_ALL_TEST};
    read_csv(csv, &import);
    ASSERT_OK(import_parts_init(&parts, &import, &options, &error));
    const struct text json = arena_copy_text(arena, buffer_text(&parts.columns));
    ASSERT_OK(import_columns_read(arena, json, out, &error));
    import_parts_done(&parts);
}

TEST(rows_of_others_are_numbered_and_scaled_alike)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct import_columns columns;
    struct import other AUTO_IMPORT = {0};
    struct import_parts parts;
    read_columns(arena, "x,kind\n" TEN("10,ash\n20,elm\n30,oak\n"), &columns);
    assert_int_equal(columns.classes.count, 3);
    read_csv("x,kind\n" TEN("30,oak\n"), &other); /* here it is class 0 of one */
    ASSERT_OK(import_fit(&other, &columns, &error));
    assert_int_equal(other.classes, 3);
    const struct import_parts_options options = {.split = IMPORT_SPLIT_ALL_TRAIN,
                                                 .columns = &columns};
    ASSERT_OK(import_parts_init(&parts, &other, &options, &error));
    AUTO(idx) struct idx *values = NULL;
    AUTO(idx) struct idx *labels = NULL;
    const struct spool *files = parts.files;
    ASSERT_OK(idx_open_bytes(files[DATASET_TRAIN_IMAGES].data, files[DATASET_TRAIN_IMAGES].size,
                             &values, &error));
    ASSERT_OK(idx_open_bytes(files[DATASET_TRAIN_LABELS].data, files[DATASET_TRAIN_LABELS].size,
                             &labels, &error));
    assert_int_equal(values->header.sizes[0], 10);
    assert_int_equal(*idx_record(labels, 9), 2);
    assert_true(fabs((double)idx_float(idx_record(values, 0)) - sqrt(1.5)) < 1e-5);
    import_parts_done(&parts);
}

TEST(words_are_laid_out_as_the_columns_have_them_whichever_there_are)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct import_columns columns;
    struct import other AUTO_IMPORT = {0};
    read_columns(arena, "x,town,y,kind\n" TEN("10,Oslo,1,ash\n20,Bergen,2,elm\n30,Lund,3,elm\n"),
                 &columns);
    assert_int_equal(columns.features.count, 5); /* x, three towns, y */
    const struct import_column *features = columns.features.items;
    /* Another order of columns, one town less and one word alone. */
    read_csv("y,town,x,kind\n" TEN("7,Lund,30,elm\n8,Oslo,40,ash\n"), &other);
    assert_int_equal(other.width, 4);
    ASSERT_OK(import_fit(&other, &columns, &error));
    assert_int_equal(other.width, 5);
    assert_int_equal(other.feature_count, 5);
    const float *rows = (const float *)(const void *)other.train.values.data;
    for (int i = 0; i < 5; i++) {
        assert_true(text_equal(text_of(other.features[i].name), features[i].name));
        assert_true(other.features[i].is_scaled ==
                    (memchr(features[i].name.data, '=', features[i].name.size) == NULL));
        const float first = text_is(features[i].name, "x")           ? 30.0F
                            : text_is(features[i].name, "y")         ? 7.0F
                            : text_is(features[i].name, "town=Lund") ? 1.0F
                                                                     : 0.0F;
        const float second = text_is(features[i].name, "x")           ? 40.0F
                             : text_is(features[i].name, "y")         ? 8.0F
                             : text_is(features[i].name, "town=Oslo") ? 1.0F
                                                                      : 0.0F;
        assert_true(rows[i] == first && rows[5 + i] == second);
    }
}

TEST(a_refusal_names_the_side_and_the_column_but_no_word_of_the_data)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct import_columns columns;
    read_columns(arena, "x,town,kind\n" TEN("10,Oslo,ash\n20,Lund,elm\n"), &columns);
    static const struct {
        const char *csv, *told;
    } others[] = {
        {"x,town,kind\n" TEN("10,Secret,ash\n20,Lund,elm\n"),
         "their column town has a word that train.test lacks"},
        {"x,kind\n" TEN("10,ash\n20,elm\n"), "they lack the column town of train.test"},
        {"town,kind\n" TEN("Oslo,ash\nLund,elm\n"), "they lack the column x of train.test"},
        {"x,town,Secret,kind\n" TEN("10,Oslo,3,ash\n20,Lund,4,elm\n"),
         "they have a column that train.test lacks"},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct import other AUTO_IMPORT = {0};
        read_csv(others[i].csv, &other);
        ASSERT_FAILS(import_fit(&other, &columns, &error), ERROR_INVALID);
        assert_non_null(strstr(error.message, others[i].told));
        assert_null(strstr(error.message, "Secret"));
    }
}

TEST(what_does_not_fit_is_refused_without_a_word_of_it)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct import_columns columns;
    read_columns(arena, "x,kind\n" TEN("10,ash\n20,elm\n"), &columns);
    static const char *const others[] = {
        "x,kind\n" TEN("10,yew\n"),
        "y,kind\n" TEN("10,ash\n"),
        "x,y,kind\n" TEN("10,1,ash\n"),
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct import other AUTO_IMPORT = {0};
        read_csv(others[i], &other);
        ASSERT_FAILS(import_fit(&other, &columns, &error), ERROR_INVALID);
        assert_null(strstr(error.message, "yew"));
    }
    struct import_columns none;
    ASSERT_FAILS(import_columns_read(arena, TEXT("{}"), &none, &error), ERROR_INVALID);
    ASSERT_FAILS(import_columns_read(arena,
                                     TEXT("{\"form\":\"floats\",\"target\":\"class\",\"features\":["
                                          "{\"name\":\"x\",\"mean\":0,\"deviation\":0}]}"),
                                     &none, &error),
                 ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_others_are_numbered_and_scaled_alike),
        cmocka_unit_test(words_are_laid_out_as_the_columns_have_them_whichever_there_are),
        cmocka_unit_test(a_refusal_names_the_side_and_the_column_but_no_word_of_the_data),
        cmocka_unit_test(what_does_not_fit_is_refused_without_a_word_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
