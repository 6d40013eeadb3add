/*
 * Real data sets, under the folder that SOUK_DATA names; skipped without it. Their counts are those
 * that the sources state.
 */
#include "train/reader_testing.h"

static const char *data_folder;

struct expected {
    const char *path;
    uint32_t count, width, classes;
};

static void assert_reads(const struct expected *expected, const struct import_options *options,
                         struct import *out_import)
{
    struct error error;
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", data_folder, expected->path);
    ASSERT_OK(import_read(path, options, out_import, &error));
    assert_int_equal(out_import->train.count, expected->count);
    assert_int_equal(out_import->width, expected->width);
    assert_int_equal(out_import->classes, expected->classes);
}

TEST(mnist)
{
    const struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    assert_reads(&(struct expected){"mnist", 60000, 28, 10}, &options, &import);
    assert_int_equal(import.test.count, 10000);
}

TEST(adult_and_mushrooms_stay_sparse)
{
    const struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    assert_reads(&(struct expected){"libsvm/a9a.gz", 32561, 123, 2}, &options, &import);
    uint32_t positive = 0;
    for (uint32_t i = 0; i < import.train.count; i++)
        positive += classes_of(&import.train)[i] == 1;
    assert_int_equal(positive, 7841);
    import_done(&import);
    assert_reads(&(struct expected){"libsvm/agaricus.txt.train.gz", 6513, 126, 2}, &options,
                 &import);
    assert_int_equal(import.form, IMPORT_SPARSE);
}

TEST(houses_by_their_price)
{
    struct import_options options = default_options();
    options.is_number = true;
    struct import import AUTO_IMPORT = {0};
    assert_reads(&(struct expected){"libsvm/housing_scale", 506, 13, 0}, &options, &import);
    assert_float_equal(numbers_of(&import.train)[1], 21.6F, 0);
    import_done(&import);
    assert_reads(&(struct expected){"tabular/housing.data", 506, 13, 0}, &options, &import);
    import_done(&import);
    options.target = "median_house_value";
    options.missing = IMPORT_MISSING_MEAN;
    options.categories = IMPORT_CATEGORIES_ONE_HOT;
    assert_reads(&(struct expected){"tabular/california_housing.csv.gz", 20640, 13, 0}, &options,
                 &import);
    assert_int_equal(import.filled_values, 207);
}

TEST(tables_of_numbers)
{
    struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    options.target = "1";
    assert_reads(&(struct expected){"tabular/higgs_2000.csv.gz", 2000, 28, 2}, &options, &import);
    import_done(&import);
    options = default_options();
    options.is_number = true;
    options.categories = IMPORT_CATEGORIES_ONE_HOT;
    options.target = "Chiller Energy Consumption (kWh)";
    options.skip_columns = "Local Time (Timezone : GMT+8h)";
    assert_reads(&(struct expected){"tabular/chiller_energy.csv.gz", 13615, 8, 0}, &options,
                 &import);
    import_done(&import);
    options.target = "OT";
    options.skip_columns = "date";
    assert_reads(&(struct expected){"sequence/ETTh1.csv.gz", 17420, 6, 0}, &options, &import);
    import_done(&import);
    options.target = "pm2.5";
    options.skip_columns = "No";
    options.missing = IMPORT_MISSING_DROP;
    assert_reads(&(struct expected){"sequence/beijing_pollution.csv.gz", 41757, 14, 0}, &options,
                 &import);
}

TEST(clicks_are_hashed)
{
    struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    options.target = "1";
    options.categories = IMPORT_CATEGORIES_HASHED;
    options.missing = IMPORT_MISSING_MEAN;
    assert_reads(&(struct expected){"ctr/criteo_train.tsv.gz", 7200, 13 + 65536, 2}, &options,
                 &import);
    uint32_t clicks = 0;
    for (uint32_t i = 0; i < import.train.count; i++)
        clicks += classes_of(&import.train)[i] == 1;
    assert_int_equal(clicks, 1549);
    import_done(&import);
    options.target = "click";
    options.skip_columns = "id";
    options.category_columns = "*";
    assert_reads(&(struct expected){"ctr/avazu_train.csv.gz", 8087, 65536, 2}, &options, &import);
    assert_int_equal(import.form, IMPORT_SPARSE);
}

TEST(reviews_and_running_text)
{
    struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    assert_reads(&(struct expected){"rt-polarity", 10662, 64, 2}, &options, &import);
    assert_in_range(import.vocabulary, 15000, 20000);
    import_done(&import);
    options.unit = IMPORT_CHARACTERS;
    /* 1,115,394 characters: each row takes 64 new ones. */
    assert_reads(&(struct expected){"sequence/tinyshakespeare.txt.gz", 17428, 65, 0}, &options,
                 &import);
    assert_int_equal(import.vocabulary, 2 + 65);
}

int main(void)
{
    data_folder = getenv("SOUK_DATA"); // NOLINT(concurrency-mt-unsafe): one thread
    if (!data_folder) {
        printf("skipped: SOUK_DATA is not set\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mnist),
        cmocka_unit_test(adult_and_mushrooms_stay_sparse),
        cmocka_unit_test(houses_by_their_price),
        cmocka_unit_test(tables_of_numbers),
        cmocka_unit_test(clicks_are_hashed),
        cmocka_unit_test(reviews_and_running_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
