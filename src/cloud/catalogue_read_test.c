/* covers catalogue.c, catalogue_aws.c */
#include "cloud/catalogue.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAD "catalogue,1\ndate,2026-08-22\nsource,a page\n"
#define TYPES                                                                                      \
    "instance_type,region,architecture,vcpus,memory_mib,gpu,gpus,bandwidth_mbps,usd_per_hour,"     \
    "spot_usd_per_hour_min,spot_usd_per_hour_max,interruption_percent\n"
#define FUNCTIONS                                                                                  \
    "function,region,architecture,usd_per_million_gib_s,usd_per_million_calls,memory_mib_min,"     \
    "memory_mib_max,memory_mib_per_vcpu\n"
#define SMALL                                                                                      \
    HEAD TYPES "m5.large,us-east-1,x86_64,2,8192,,,750,0.096,0.0341,0.0436,5-10\n"                 \
               "g6f.large,us-east-1,x86_64,2,8192,L4,0.125,1500,0.202,,,\n" FUNCTIONS              \
               "lambda,us-east-1,x86_64,16.6667,0.20,128,10240,1769\n"

static int64_t day_ms(int64_t days)
{
    return days * 86400000;
}

TEST(figures_are_exact)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    struct error error;
    const struct catalogue_type *type;
    ASSERT_OK(catalogue_read(TEXT(SMALL), &catalogue, &error));
    assert_string_equal(catalogue_date(catalogue), "2026-08-22");
    assert_string_equal(catalogue_source(catalogue), "a page");
    assert_int_equal(catalogue_type_count(catalogue), 2);
    ASSERT_OK(catalogue_find(catalogue, TEXT("m5.large"), "us-east-1", &type, &error));
    assert_int_equal(type->vcpus, 2);
    assert_int_equal(type->memory_mib, 8192);
    assert_int_equal(type->usd_micro_per_hour, 96000);
    assert_int_equal(type->spot_usd_micro_per_hour_min, 34100);
    assert_int_equal(type->spot_usd_micro_per_hour_max, 43600);
    assert_int_equal(type->interruption_percent_min, 5);
    assert_int_equal(type->interruption_percent_max, 10);
    assert_string_equal(type->gpu, "");
    ASSERT_OK(catalogue_find(catalogue, TEXT("g6f.large"), NULL, &type, &error));
    assert_int_equal(type->gpu_milli, 125);
    assert_int_equal(type->spot_usd_micro_per_hour_max, 0);
    const struct catalogue_function *function = catalogue_function_at(catalogue, 0);
    assert_int_equal(function->usd_micro_per_million_gib_s, 16666700);
    assert_int_equal(function->memory_mib_per_vcpu, 1769);
}

TEST(what_is_written_is_read_alike)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    AUTO(catalogue) struct catalogue *again = NULL;
    struct buffer first AUTO_BUFFER;
    struct buffer second AUTO_BUFFER;
    struct error error;
    buffer_init(&first, CATALOGUE_SIZE_MAX);
    buffer_init(&second, CATALOGUE_SIZE_MAX);
    ASSERT_OK(catalogue_read(TEXT(SMALL), &catalogue, &error));
    catalogue_write(catalogue, &first);
    ASSERT_OK(catalogue_read(buffer_text(&first), &again, &error));
    catalogue_write(again, &second);
    assert_true(text_equal(buffer_text(&first), buffer_text(&second)));
    assert_int_equal(catalogue_type_at(again, 1)->gpu_milli, 125);
    assert_int_equal(catalogue_function_count(again), 1);
}

TEST(what_is_wrong_is_named_by_its_line)
{
    static const struct {
        const char *csv, *message;
    } cases[] = {
        {"", "first line"},
        {"a,b\n", "first line"},
        {"catalogue,2\n", "first line"},
        {HEAD TYPES "m5.large,us-east-1,x86_64,2,8192,,,750\n", "line 5: 8 fields instead of 12"},
        {HEAD TYPES "m5.large,us-east-1,mips,2,8192,,,,,,,\n", "line 5: architecture"},
        {HEAD TYPES "m5.large,us-east-1,x86_64,two,8192,,,,,,,\n", "line 5: vcpus"},
        {HEAD TYPES "m5.large,us-east-1,x86_64,2.5,8192,,,,,,,\n", "line 5: vcpus"},
        {HEAD TYPES "m5.large,us-east-1,x86_64,,8192,,,,,,,\n", "line 5: vcpus"},
        {HEAD TYPES "m5.large,us-east-1,x86_64,2,8192,,,,-1,,,\n", "line 5: usd_per_hour"},
        {HEAD TYPES "m5.large,us-east-1,x86_64,2,8192,,,,1001,,,\n", "line 5: usd_per_hour"},
        {HEAD TYPES "m5.large,us-east-1,x86_64,2,8192,,,,1,2,1,\n", "line 5: spot"},
        {HEAD TYPES "m5.large,us-east-1,x86_64,2,8192,,,,1,,,10-5\n", "line 5: interruption"},
        {HEAD TYPES "m5.large,us-east-1,x86_64,2,8192,,,,1,,,often\n", "line 5: interruption"},
        {HEAD TYPES "a.b,r,x86_64,2,8192,,,,1,,,\na.b,r,x86_64,2,8192,,,,1,,,\n",
         "line 6: type \"a.b\" is there twice"},
        {HEAD TYPES "\x1b[1m,us-east-1,x86_64,2,8192,,,,1,,,\n", "line 5: instance_type"},
        {HEAD "instance_type,region,vcpus\n", "line 4: column 3"},
        {HEAD "m5.large,us-east-1\n", "line 4: a row before"},
        {HEAD TYPES, "no instance types"},
        {"catalogue,1\ndate,2026-02-30\n", "line 2"},
        {"catalogue,1\ndate,yesterday\n", "line 2"},
        {"catalogue,1\ndate,2026-08-22\n" TYPES "a.b,r,x86_64,2,8192,,,,1,,,\n", "\"source\""},
        {HEAD FUNCTIONS "lambda,r,x86_64,,0.2,128,10240,1769\n", "line 5: a function's"},
    };
    struct error error;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct catalogue *catalogue = NULL;
        assert_int_equal(catalogue_read(text_of(cases[i].csv), &catalogue, &error), -1);
        if (!strstr(error.message, cases[i].message))
            fail_msg("case %zu: \"%s\" has no \"%s\"", i, error.message, cases[i].message);
    }
}

TEST(an_unknown_type_has_the_nearest_beside_it)
{
    AUTO(catalogue) struct catalogue *catalogue = catalogue_built_in();
    struct error error;
    const struct catalogue_type *type;
    ASSERT_FAILS(catalogue_find(catalogue, TEXT("m5.larg"), "us-east-1", &type, &error),
                 ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "did you mean \"m5.large\"?"));
    ASSERT_FAILS(catalogue_find(catalogue, TEXT("m5.large"), "eu-north-1", &type, &error),
                 ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "us-east-1"));
}

TEST(the_program_s_own_is_whole)
{
    AUTO(catalogue) struct catalogue *catalogue = catalogue_built_in();
    struct error error;
    const struct catalogue_type *type;
    assert_true(catalogue_type_count(catalogue) >= 36);
    assert_int_equal(catalogue_function_count(catalogue), 2);
    for (size_t i = 0; i < catalogue_type_count(catalogue); i++) {
        type = catalogue_type_at(catalogue, i);
        assert_true(type->usd_micro_per_hour > 0 && type->bandwidth_mbps > 0);
        assert_true(type->spot_usd_micro_per_hour_max > 0);
    }
    ASSERT_OK(catalogue_find(catalogue, TEXT("c7g.large"), "us-east-1", &type, &error));
    assert_int_equal(type->architecture, CLOUD_ARM64);
}

TEST(a_function_is_of_its_region_or_of_the_first_that_has_one)
{
    struct error error;
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    ASSERT_OK(catalogue_read(TEXT(SMALL "lambda,eu-central-2,x86_64,20,0.20,128,10240,1769\n"),
                             &catalogue, &error));
    const struct catalogue_function *function =
        catalogue_find_function(catalogue, "lambda", "eu-central-2", CLOUD_X86_64);
    assert_int_equal(function->usd_micro_per_million_gib_s, 20000000);
    function = catalogue_find_function(catalogue, "lambda", "sa-east-1", CLOUD_X86_64);
    assert_string_equal(function->region, "us-east-1");
    assert_null(catalogue_find_function(catalogue, "lambda", "us-east-1", CLOUD_ARM64));
    assert_null(catalogue_find_function(catalogue, "another", "us-east-1", CLOUD_X86_64));
}

TEST(an_old_one_says_so)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    struct error error;
    char notice[CATALOGUE_NOTICE_SIZE];
    ASSERT_OK(catalogue_read(TEXT(SMALL), &catalogue, &error));
    const int64_t day = 20687; /* 2026-08-22 */
    assert_int_equal(catalogue_age_days(catalogue, day_ms(day)), 0);
    assert_string_equal(catalogue_notice(catalogue, day_ms(day + 90), 90, notice), "");
    assert_non_null(
        strstr(catalogue_notice(catalogue, day_ms(day + 91), 90, notice), "91 days old"));
}

TEST(the_file_is_taken_where_there_is_one)
{
    char folder[] = "/tmp/catalogue_test_XXXXXX";
    char path[64];
    AUTO(catalogue) struct catalogue *own = NULL;
    AUTO(catalogue) struct catalogue *read = NULL;
    struct error error;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/catalogue.csv", folder);
    ASSERT_OK(catalogue_open(path, &own, &error));
    assert_true(catalogue_type_count(own) > 2);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(SMALL, file);
    fclose(file);
    ASSERT_OK(catalogue_open(path, &read, &error));
    assert_int_equal(catalogue_type_count(read), 2);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("nothing", file);
    fclose(file);
    struct catalogue *bad = NULL;
    ASSERT_FAILS(catalogue_open(path, &bad, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, path));
    unlink(path);
    rmdir(folder);
}

#define AWS_HEAD                                                                                   \
    "instance_type,vcpus,memory_gib,accelerator,accelerator_count,baseline_bandwidth_mbps,"        \
    "on_demand_usd_per_hour,spot_min_usd_per_hour,spot_max_usd_per_hour,spot_zones\n"
#define ADVISOR                                                                                    \
    "{\"ranges\":[{\"index\":0,\"max\":5},{\"index\":1,\"max\":11},{\"index\":4,\"max\":100}],"    \
    "\"spot_advisor\":{\"us-east-1\":{\"Linux\":{\"m1.small\":{\"s\":1,\"r\":0},"                  \
    "\"m7gd.large\":{\"s\":58,\"r\":1}}}}}"

TEST(aws_s_tables_become_a_catalogue)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    struct error error;
    const struct catalogue_type *type;
    const struct catalogue_aws aws = {
        .csv = TEXT(AWS_HEAD "m1.small,1.0,1.7,,,,0.044,0.0101,0.0101,3\n"
                             "m7gd.large,2.0,8.0,,,937,0.1068,0.03,0.05,5\n"
                             "mac2.metal,8.0,16.0,,,10000,,,,\n"
                             "g4dn.xlarge,4.0,16.0,T4,1.0,5000,0.526,0.32,0.37,5\n"),
        .spot_advisor = TEXT(ADVISOR),
        .region = "us-east-1",
        .date = "2026-08-22",
        .source = "price lists",
    };
    ASSERT_OK(catalogue_read_aws(&aws, &catalogue, &error));
    assert_int_equal(catalogue_type_count(catalogue), 4);
    assert_int_equal(catalogue_function_count(catalogue), 2);
    ASSERT_OK(catalogue_find(catalogue, TEXT("m1.small"), "us-east-1", &type, &error));
    assert_int_equal(type->memory_mib, 1741);
    assert_int_equal(type->bandwidth_mbps, 0);
    assert_int_equal(type->interruption_percent_max, 5);
    assert_int_equal(type->architecture, CLOUD_X86_64);
    ASSERT_OK(catalogue_find(catalogue, TEXT("m7gd.large"), "us-east-1", &type, &error));
    assert_int_equal(type->architecture, CLOUD_ARM64);
    assert_int_equal(type->interruption_percent_min, 5);
    assert_int_equal(type->interruption_percent_max, 10);
    ASSERT_OK(catalogue_find(catalogue, TEXT("mac2.metal"), "us-east-1", &type, &error));
    assert_int_equal(type->usd_micro_per_hour, 0);
    ASSERT_OK(catalogue_find(catalogue, TEXT("g4dn.xlarge"), "us-east-1", &type, &error));
    assert_int_equal(type->architecture, CLOUD_X86_64);
    assert_int_equal(type->gpu_milli, 1000);
    assert_int_equal(type->interruption_percent_max, 0);
}

TEST(a_wrong_table_of_aws_is_refused)
{
    struct catalogue *catalogue = NULL;
    struct error error;
    struct catalogue_aws aws = {.csv = TEXT(AWS_HEAD "m1.small,one,1.7,,,,0.044,0.0101,0.0101,3\n"),
                                .region = "us-east-1",
                                .date = "2026-08-22",
                                .source = "x"};
    ASSERT_FAILS(catalogue_read_aws(&aws, &catalogue, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "line 2: vcpus"));
    aws.csv = TEXT("type,price\n");
    ASSERT_FAILS(catalogue_read_aws(&aws, &catalogue, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "\"instance_type\""));
    aws.csv = TEXT(AWS_HEAD "m1.small,1,1.7,,,,0.044,0.0101,0.0101,3\n");
    aws.spot_advisor = TEXT("{\"ranges\":[]}");
    ASSERT_FAILS(catalogue_read_aws(&aws, &catalogue, &error), ERROR_INVALID);
    aws.spot_advisor = TEXT("[1");
    ASSERT_FAILS(catalogue_read_aws(&aws, &catalogue, &error), ERROR_INVALID);
    aws.spot_advisor = TEXT("[]");
    ASSERT_FAILS(catalogue_read_aws(&aws, &catalogue, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_exact),
        cmocka_unit_test(what_is_written_is_read_alike),
        cmocka_unit_test(what_is_wrong_is_named_by_its_line),
        cmocka_unit_test(an_unknown_type_has_the_nearest_beside_it),
        cmocka_unit_test(the_program_s_own_is_whole),
        cmocka_unit_test(a_function_is_of_its_region_or_of_the_first_that_has_one),
        cmocka_unit_test(an_old_one_says_so),
        cmocka_unit_test(the_file_is_taken_where_there_is_one),
        cmocka_unit_test(aws_s_tables_become_a_catalogue),
        cmocka_unit_test(a_wrong_table_of_aws_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
