#include "runtime/job_import.h"
#include "testing/testing.h"

static int read_spec(struct arena *arena, const char *train, struct job_spec *out_spec,
                     struct error *error)
{
    const char *json = arena_format(arena, "{\"name\":\"x\",\"train\":%s}", train);
    return job_spec_read(arena, text_of(json), out_spec, error);
}

static void make_table(char path[64], const char *bad_line)
{
    snprintf(path, 64, "/tmp/souk-job-import-XXXXXX.csv");
    const int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fputs("size,weight,kind\n", file);
    for (int i = 0; i < 20; i++)
        fprintf(file, "%d,%d,%s\n", i, i * i, i % 2 ? "odd" : "even");
    fputs(bad_line, file);
    fclose(file);
}

static const char *const train = "{\"model\":\"logistic\",\"data\":\"rows.csv\"}";

TEST(a_table_becomes_the_five_parts_and_its_shape_goes_into_the_job)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct job_spec spec;
    struct import_parts parts;
    struct job_part files[JOB_PARTS_MAX];
    size_t count = 0;
    char path[64];
    make_table(path, "");
    ASSERT_OK(read_spec(arena, train, &spec, &error));
    ASSERT_OK(job_import_read(arena, path, &spec, NULL, NULL, &parts, &error));
    assert_int_equal(spec.train.features, 2);
    assert_int_equal(spec.train.classes, 2);
    ASSERT_OK(job_import_parts(&spec.train, &parts, files, &count, &error));
    assert_int_equal(count, JOB_PARTS_MAX);
    assert_string_equal(files[0].name, "train-images");
    assert_int_equal(files[0].split, JOB_SPLIT_TRAIN);
    assert_int_equal(files[0].record_bytes, 2 * sizeof(float));
    assert_string_equal(files[4].name, "columns");
    assert_int_equal(files[4].split, JOB_SPLIT_TEST);
    import_parts_done(&parts);
    unlink(path);
}

TEST(a_bad_row_is_refused_with_its_line)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct job_spec spec;
    struct import_parts parts;
    char path[64];
    make_table(path, "1,2\n");
    ASSERT_OK(read_spec(arena, train, &spec, &error));
    assert_int_equal(job_import_read(arena, path, &spec, NULL, NULL, &parts, &error), -1);
    assert_non_null(strstr(error.message, "train.data: "));
    assert_non_null(strstr(error.message, "line 22"));
    unlink(path);
}

TEST(what_is_no_idx_is_no_part)
{
    struct error error = {0};
    struct job_part part;
    assert_int_equal(job_part_of_idx(DATASET_TRAIN_IMAGES, TEXT("not idx at all"), &part, &error),
                     -1);
}

TEST(the_market_hears_a_path_by_its_last_name)
{
    const struct text name = job_data_name(TEXT("/home/me/rows.csv"));
    assert_true(text_equal(name, TEXT("rows.csv")));
    assert_true(text_equal(job_data_name(TEXT("./digits")), TEXT("/digits")));
    assert_true(text_equal(job_data_name(TEXT("/home/me/faces/")), TEXT("faces/")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_becomes_the_five_parts_and_its_shape_goes_into_the_job),
        cmocka_unit_test(a_bad_row_is_refused_with_its_line),
        cmocka_unit_test(what_is_no_idx_is_no_part),
        cmocka_unit_test(the_market_hears_a_path_by_its_last_name),
    };
    return cmocka_run_group_tests_name("job_import", tests, NULL, NULL);
}
