#include "server/cloud_kinds.h"
#include "testing/testing.h"

#include <string.h>

static const char csv[] =
    "catalogue,1\ndate,2026-08-22\nsource,test\n"
    "instance_type,region,architecture,vcpus,memory_mib,gpu,gpus,bandwidth_mbps,usd_per_hour,"
    "spot_usd_per_hour_min,spot_usd_per_hour_max,interruption_percent\n"
    "m5.large,us-east-1,x86_64,2,4096,,,800,0.1,0.02,0.04,5-10\n"
    "m5.large,eu-west-1,x86_64,2,4096,,,800,0.11,0.02,0.04,5-10\n"
    "g4dn.xlarge,us-east-1,x86_64,8,16384,T4,1,8000,0.5,,,\n"
    "p4d.24xlarge,us-east-1,x86_64,96,1179648,A100,8,100000,21,,,\n"
    "p4de.24xlarge,us-east-1,x86_64,96,1179648,A100-80GB,8,100000,27,,,\n"
    "function,region,architecture,usd_per_million_gib_s,usd_per_million_calls,memory_mib_min,"
    "memory_mib_max,memory_mib_per_vcpu\n"
    "lambda,us-east-1,x86_64,16.6667,0.2,128,10240,1769\n";

static size_t kinds(struct arena *arena, struct cloud_kinds_wish wish, struct candidate **out)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    struct error error;
    wish.micro_per_usd = 2000000;
    ASSERT_OK(catalogue_read(text_of(csv), &catalogue, &error));
    const size_t count = cloud_kinds(arena, catalogue, &wish, out);
    for (size_t i = 0; i < count; i++)
        (*out)[i].name = arena_format(arena, "%s", (*out)[i].name);
    return count;
}

TEST(instances_of_one_region_are_candidates_with_their_prices_in_credits)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct candidate *found;
    const size_t count = kinds(
        arena, (struct cloud_kinds_wish){.wants_on_demand = true, .wants_spot = true}, &found);
    assert_int_equal(count, 5);
    assert_string_equal(found[0].name, "m5.large");
    assert_int_equal(found[0].source, CANDIDATE_ON_DEMAND);
    assert_int_equal(found[0].price_micro_per_hour, 200000);
    assert_int_equal(found[0].cores_milli, 1000);
    assert_true(found[0].bytes_per_s == 1e8 && found[0].losses_per_hour == 0);
    assert_int_equal(found[1].source, CANDIDATE_SPOT);
    assert_int_equal(found[1].price_micro_per_hour, 60000);
    assert_true(found[1].losses_per_hour > 0);
    assert_string_equal(found[2].name, "g4dn.xlarge");
    assert_int_equal(found[2].gpu_count, 0); /* it is not used */
}

TEST(the_region_is_the_one_wished_for)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct candidate *found;
    struct cloud_kinds_wish wish = {.wants_on_demand = true, .wants_functions = true};
    wish.region = TEXT("eu-west-1");
    assert_int_equal(kinds(arena, wish, &found), 1);
    assert_string_equal(found[0].name, "m5.large");
    assert_int_equal(found[0].price_micro_per_hour, 220000);
    wish.region = TEXT("eu-north-1");
    assert_int_equal(kinds(arena, wish, &found), 0);
}

TEST(what_is_too_small_is_left_out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct candidate *found;
    assert_int_equal(
        kinds(arena,
              (struct cloud_kinds_wish){.wants_on_demand = true, .memory_bytes = INT64_C(8) << 30},
              &found),
        3);
}

TEST(functions_come_in_some_sizes_and_end_by_themselves)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct candidate *found;
    assert_int_equal(kinds(arena, (struct cloud_kinds_wish){.wants_functions = true}, &found), 3);
    assert_string_equal(found[0].name, "lambda-1769MiB");
    assert_int_equal(found[0].source, CANDIDATE_FUNCTION);
    assert_int_equal(found[0].cores_milli, 1000);
    assert_true(found[0].lifetime_s == 900);
    /* 16.6667 dollars for a million GiB-seconds, 1.73 of them a second, two credits a dollar. */
    assert_in_range(found[0].price_micro_per_hour, 205000, 209000);
    assert_int_equal(kinds(arena, (struct cloud_kinds_wish){0}, &found), 0);
}

TEST(dollars_are_rounded_up)
{
    assert_int_equal(cloud_kinds_credits_micro(1, 1500000), 2);
    assert_true(cloud_kinds_micro_per_usd() > 0);
}

TEST(a_gpu_is_of_a_model_whatever_its_memory)
{
    assert_true(cloud_kinds_is_gpu("A100-80GB", TEXT("A100")));
    assert_true(cloud_kinds_is_gpu("A100-80GB", TEXT("A100-80GB")));
    assert_true(cloud_kinds_is_gpu("T4", TEXT("")));
    assert_false(cloud_kinds_is_gpu("A100", TEXT("A100-80GB")));
    assert_false(cloud_kinds_is_gpu("A100", TEXT("A10")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_is_of_a_model_whatever_its_memory),
        cmocka_unit_test(instances_of_one_region_are_candidates_with_their_prices_in_credits),
        cmocka_unit_test(the_region_is_the_one_wished_for),
        cmocka_unit_test(what_is_too_small_is_left_out),
        cmocka_unit_test(functions_come_in_some_sizes_and_end_by_themselves),
        cmocka_unit_test(dollars_are_rounded_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
