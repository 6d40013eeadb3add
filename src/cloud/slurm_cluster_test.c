/* Without a Slurm; tests/slurm has one. covers slurm_library.c */
#include "cloud/slurm_cluster.h"
#include "cloud/slurm_library_internal.h"
#include "testing/testing.h"

#include <string.h>

TEST(without_a_configuration_it_says_where_to_run)
{
    const struct slurm_cluster_options options = {
        .configuration = "/nonexistent/slurm.conf", .partition = "lab", .tag = "tag"};
    struct slurm_cluster *cluster = NULL;
    struct error error = {0};
    ASSERT_FAILS(slurm_cluster_open(&options, &cluster, &error), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error.message, "SLURM_CONF"));
    assert_null(cluster);
}

TEST(the_library_of_the_headers_is_the_one_that_is_opened)
{
    const struct slurm_library *library = NULL;
    struct error error = {0};
    ASSERT_OK(slurm_library_load(&library, &error));
    assert_string_equal(library->slurm_strerror(ESLURM_INVALID_PARTITION_NAME),
                        "Invalid partition name specified");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_configuration_it_says_where_to_run),
        cmocka_unit_test(the_library_of_the_headers_is_the_one_that_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
