#include "base/schedule.h"
#include "cli/lend_slurm_node.h"
#include "testing/testing.h"

TEST(a_nodes_time_is_the_span_of_its_job)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const int64_t from_ms = INT64_C(1795000000) * 1000; /* 2026-11-18T11:06:40Z */
    const char *when = lend_slurm_when(arena, from_ms, from_ms + INT64_C(15) * 3600000);
    assert_string_equal(when, "2026-11-18 11:06 - 2026-11-19 02:06");
    struct schedule schedule;
    struct error error = {0};
    ASSERT_OK(schedule_parse(text_of(when), &schedule, &error));
}

TEST(a_node_goes_by_its_name_or_by_the_clusters_and_its_name)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct lend_slurm plain = {0}, named = {.name = "hpc"};
    assert_string_equal(lend_slurm_node_name(&plain, arena, "n1"), "n1");
    assert_string_equal(lend_slurm_node_name(&named, arena, "n1"), "hpc-n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nodes_time_is_the_span_of_its_job),
        cmocka_unit_test(a_node_goes_by_its_name_or_by_the_clusters_and_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
