#include "cloud/slurm_request.h"
#include "testing/testing.h"

TEST(tasks_of_an_array_are_counted)
{
    assert_int_equal(slurm_array_count(NULL, 100), 1);
    assert_int_equal(slurm_array_count("", 100), 1);
    assert_int_equal(slurm_array_count("7", 100), 1);
    assert_int_equal(slurm_array_count("0-9", 100), 10);
    assert_int_equal(slurm_array_count("0-9:2,11", 100), 6);
    assert_int_equal(slurm_array_count("0-9:2,11%3", 100), 3);
    assert_int_equal(slurm_array_count("0-999999", 8), 8);
}

TEST(an_array_that_cannot_be_read_is_one_task)
{
    assert_int_equal(slurm_array_count("9-0", 100), 1);
    assert_int_equal(slurm_array_count("0-9:0", 100), 1);
    assert_int_equal(slurm_array_count("a-b", 100), 1);
    assert_int_equal(slurm_array_count("0-99999999999999999999", 100), 1);
    assert_int_equal(slurm_array_count("%", 100), 1);
}

TEST(a_node_could_serve_who_asks_for_its_features)
{
    assert_true(slurm_features_could(NULL, NULL));
    assert_true(slurm_features_could("rack1,avx512", "avx512"));
    assert_true(slurm_features_could("rack1,avx512", "avx512&rack1"));
    assert_false(slurm_features_could("rack1,avx512", "avx512&rack2"));
    assert_false(slurm_features_could("rack1", "rack"));
    assert_false(slurm_features_could(NULL, "avx512"));
}

TEST(what_is_not_understood_could_be)
{
    assert_true(slurm_features_could("rack1", "rack2|rack3"));
    assert_true(slurm_features_could(NULL, "[rack1*2&rack2*4]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_an_array_are_counted),
        cmocka_unit_test(an_array_that_cannot_be_read_is_one_task),
        cmocka_unit_test(a_node_could_serve_who_asks_for_its_features),
        cmocka_unit_test(what_is_not_understood_could_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
