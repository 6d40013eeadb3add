/* Prices and the resources they are for; covers price.c, resources.c. */
#include "base/random.h"
#include "market/price.h"
#include "testing/testing.h"

#define GIB (INT64_C(1) << 30)

TEST(units_weigh_cores_by_speed_and_count_memory_in_gib)
{
    const struct resources resources = {
        .cores_milli = 250, .ram_bytes = GIB / 4, .gpus_milli = 1000, .disk_bytes = 2 * GIB};
    const struct price_units units = price_units(resources, 2500);
    assert_int_equal(units.core_milli, 625);
    assert_int_equal(units.ram_milli, 250);
    assert_int_equal(units.gpu_milli, 1000);
    assert_int_equal(units.disk_milli, 2000);
    assert_int_equal(price_units(resources, 1).core_milli, 250 * 50 / 1000);
    assert_int_equal(price_units(resources, 1000000).core_milli, 250 * 20);
}

TEST(a_bill_is_the_formula_rounded_down)
{
    const struct price_units units = {.core_milli = 1750, .ram_milli = 1000, .disk_milli = 500};
    const struct price_vector price = price_cold_start();
    /* 1.75 x 20000 + 1 x 2000 + 0.5 x 60 = 37030 an hour. */
    assert_int_equal(price_hourly_micro(units, price), 37030);
    assert_int_equal(price_bill_micro(units, price, 180000), 1851);
    assert_int_equal(price_bill_micro(units, price, 0), 0);
    const struct price_units gpu = {.gpu_milli = 500};
    assert_int_equal(price_hourly_micro(gpu, price), 90000);
}

TEST(the_largest_wish_at_the_largest_price_does_not_wrap)
{
    const struct resources most = {.cores_milli = RESOURCES_CORES_MILLI_MAX,
                                   .ram_bytes = RESOURCES_BYTES_MAX,
                                   .gpus_milli = RESOURCES_GPUS_MILLI_MAX,
                                   .disk_bytes = RESOURCES_BYTES_MAX};
    const struct price_vector dearest = {PRICE_PER_HOUR_MAX, PRICE_PER_HOUR_MAX, PRICE_PER_HOUR_MAX,
                                         PRICE_PER_HOUR_MAX};
    assert_true(resources_are_valid(most));
    const struct price_units units = price_units(most, PRICE_SPEED_MILLI_MAX);
    assert_true(price_bill_micro(units, dearest, PRICE_RUN_MS_MAX) == PRICE_MICRO_MAX);
    assert_true(price_add_micro(PRICE_MICRO_MAX, PRICE_MICRO_MAX) == PRICE_MICRO_MAX);
}

TEST(posting_what_is_due_so_far_adds_up_to_the_formula)
{
    struct random random;
    random_init(&random, 7);
    for (int run = 0; run < 200; run++) {
        const struct price_units units = {.core_milli = (int64_t)random_below(&random, 64000),
                                          .ram_milli = (int64_t)random_below(&random, 64000)};
        const struct price_vector price = price_cold_start();
        int64_t at_ms = 0, posted = 0;
        for (int tick = 0; tick < 50; tick++) {
            at_ms += (int64_t)random_below(&random, 10000);
            const int64_t bill = price_bill_micro(units, price, at_ms);
            assert_true(bill >= posted);
            posted += bill - posted;
        }
        assert_int_equal(posted, price_bill_micro(units, price, at_ms));
    }
}

TEST(resources_fit_part_by_part)
{
    const struct resources offered = {.cores_milli = 1000, .ram_bytes = GIB};
    const struct resources leased = {.cores_milli = 600, .ram_bytes = GIB};
    const struct resources free = resources_subtract(offered, leased);
    assert_true(resources_equal(resources_add(free, leased), offered));
    assert_true(resources_fit((struct resources){.cores_milli = 400}, free));
    assert_false(resources_fit((struct resources){.cores_milli = 401}, free));
    assert_false(resources_fit((struct resources){.ram_bytes = 1}, free));
    assert_false(resources_are_valid((struct resources){.disk_bytes = -1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_weigh_cores_by_speed_and_count_memory_in_gib),
        cmocka_unit_test(a_bill_is_the_formula_rounded_down),
        cmocka_unit_test(the_largest_wish_at_the_largest_price_does_not_wrap),
        cmocka_unit_test(posting_what_is_due_so_far_adds_up_to_the_formula),
        cmocka_unit_test(resources_fit_part_by_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
