/* covers policy_traits.c */
#include "recommend/candidate.h"
#include "recommend/policy_traits.h"
#include "testing/testing.h"

#include <math.h>
#include <string.h>

static void a_function_is_a_machine_by_its_memory(void **state)
{
    (void)state;
    const struct candidate_function function = {.name = "lambda-1769",
                                                .memory_mb = 1769,
                                                .speed_weight = 800,
                                                .price_micro_per_gb_s = 16.6667,
                                                .lifetime_s = 900,
                                                .start_s = 1,
                                                .concurrent_max = 1000};
    const struct candidate candidate = candidate_of_function(&function);
    assert_int_equal(candidate.source, CANDIDATE_FUNCTION);
    assert_int_equal(candidate.cores_milli, 1000);
    assert_int_equal(candidate.price_micro_per_hour, llround(3600 * 16.6667 * 1769 / 1024));
    assert_int_equal(candidate.count_max, 1000);
}

static void a_plan_costs_what_its_parts_do(void **state)
{
    (void)state;
    const struct candidate large = {.price_micro_per_hour = 300};
    const struct candidate small = {.price_micro_per_hour = 7};
    const struct cluster_plan plan = {.parts = {{&large, 2}, {&small, 5}}, .part_count = 2};
    assert_int_equal(cluster_plan_workers(&plan), 7);
    assert_int_equal(cluster_plan_price_micro_per_hour(&plan), 635);
}

static void every_source_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < CANDIDATE_SOURCE_COUNT; i++)
        assert_non_null(candidate_source_name((enum candidate_source)i));
}

static void an_unknown_policy_is_taken_for_bsp(void **state)
{
    (void)state;
    assert_string_equal(policy_traits_find("no-such-policy")->name, "bsp");
    for (uint32_t i = 0; policy_traits_at(i); i++) {
        assert_ptr_equal(policy_traits_find(policy_traits_at(i)->name), policy_traits_at(i));
        assert_int_equal(policy_traits_index(policy_traits_at(i)), i);
    }
    assert_null(policy_traits_at(policy_traits_count()));
}

static void the_gain_of_pace_grows_with_workers_up_to_its_most(void **state)
{
    (void)state;
    const struct policy_traits *pace = policy_traits_find("pace");
    assert_true(policy_traits_gain(pace, 1) == 1);
    assert_true(policy_traits_gain(pace, 4) == 4);
    assert_true(policy_traits_gain(pace, 64) == pace->gain_most);
    assert_true(policy_traits_gain(policy_traits_find("bsp"), 64) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_a_machine_by_its_memory),
        cmocka_unit_test(a_plan_costs_what_its_parts_do),
        cmocka_unit_test(every_source_has_a_name),
        cmocka_unit_test(an_unknown_policy_is_taken_for_bsp),
        cmocka_unit_test(the_gain_of_pace_grows_with_workers_up_to_its_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
