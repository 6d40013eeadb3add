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

/* Three slots from 1970-01-01/18-24 on: 1, 2 and 4 credits a core-hour. */
static struct price_lock rising_lock(void)
{
    return (struct price_lock){
        .first_slot = 3,
        .slot_count = 3,
        .slots = {{.core_micro = 1000000}, {.core_micro = 2000000}, {.core_micro = 4000000}}};
}

#define HOUR_MS INT64_C(3600000)

TEST(a_run_over_several_slots_is_billed_slot_by_slot)
{
    const struct price_units core = {.core_milli = 1000};
    struct price_lock lock = rising_lock();
    const int64_t start = 22 * HOUR_MS; /* two hours at 1, six at 2, then at 4 */
    assert_int_equal(price_bill_lock_micro(core, &lock, start, 0), 0);
    assert_int_equal(price_bill_lock_micro(core, &lock, start, HOUR_MS), 1000000);
    assert_int_equal(price_bill_lock_micro(core, &lock, start, 2 * HOUR_MS), 2000000);
    assert_int_equal(price_bill_lock_micro(core, &lock, start, 3 * HOUR_MS), 4000000);
    assert_int_equal(price_bill_lock_micro(core, &lock, start, 8 * HOUR_MS), 14000000);
    assert_int_equal(price_bill_lock_micro(core, &lock, start, 9 * HOUR_MS), 18000000);
    /* The seventh hour of the last slot costs as much as its sixth. */
    assert_int_equal(price_bill_lock_micro(core, &lock, start, 15 * HOUR_MS), 42000000);
    /* A start before the first slot is billed at its price. */
    assert_int_equal(price_bill_lock_micro(core, &lock, 0, HOUR_MS), 1000000);
    lock.offset_ms = 4 * HOUR_MS; /* 22:00 UTC is two in the night: all at 2, then at 4 */
    assert_int_equal(price_bill_lock_micro(core, &lock, start, 5 * HOUR_MS), 12000000);
}

TEST(one_floor_is_taken_over_all_slots)
{
    /* 0.5 microcredits in each of two slots is one, not none. */
    const struct price_units unit = {.core_milli = 1};
    const struct price_lock lock = {.slot_count = 2,
                                    .slots = {{.core_micro = 1800}, {.core_micro = 1800}}};
    assert_int_equal(price_bill_lock_micro(unit, &lock, SLOT_MS - 1000000, 1000000), 0);
    assert_int_equal(price_bill_lock_micro(unit, &lock, SLOT_MS - 1000000, 2000000), 1);
}

TEST(a_rush_doubles_the_first_part_of_the_run_only)
{
    const struct price_units core = {.core_milli = 1000};
    struct price_lock lock = rising_lock();
    lock.rush_ms = HOUR_MS;
    const int64_t start = 23 * HOUR_MS + HOUR_MS / 2;
    /* Half an hour at 1, half at 2, both twice; then at 2. */
    assert_int_equal(price_bill_lock_micro(core, &lock, start, HOUR_MS / 2), 1000000);
    assert_int_equal(price_bill_lock_micro(core, &lock, start, HOUR_MS), 3000000);
    assert_int_equal(price_bill_lock_micro(core, &lock, start, 2 * HOUR_MS), 5000000);
    assert_int_equal(price_hourly_lock_micro(core, &lock), 8000000);
    lock.rush_ms = 0;
    assert_int_equal(price_hourly_lock_micro(core, &lock), 4000000);
}

TEST(a_flat_lock_bills_as_one_price)
{
    const struct price_units units = {.core_milli = 1750, .ram_milli = 1000, .disk_milli = 500};
    const struct price_vector price = price_cold_start();
    const struct price_lock lock = price_lock_flat(price);
    for (int64_t ms = 0; ms < 3 * SLOT_MS; ms += 999983)
        assert_int_equal(price_bill_lock_micro(units, &lock, INT64_C(1790000000000), ms),
                         price_bill_micro(units, price, ms));
    assert_int_equal(price_hourly_lock_micro(units, &lock), price_hourly_micro(units, price));
}

static struct price_lock random_lock(struct random *random)
{
    struct price_lock lock = {
        .first_slot = (int64_t)random_below(random, 100),
        .offset_ms = (int64_t)random_below(random, 24) * HOUR_MS - 12 * HOUR_MS,
        .slot_count = 1 + (int64_t)random_below(random, PRICE_LOCK_SLOTS),
        .rush_ms = random_below(random, 2) ? HOUR_MS : 0,
    };
    for (int64_t i = 0; i < lock.slot_count; i++)
        lock.slots[i] = (struct price_vector){
            (int64_t)random_below(random, 1000000), (int64_t)random_below(random, 100000),
            (int64_t)random_below(random, 10000000), (int64_t)random_below(random, 1000)};
    return lock;
}

TEST(no_run_within_the_quote_passes_it_and_no_bill_falls)
{
    struct random random;
    random_init(&random, 11);
    for (int run = 0; run < 2000; run++) {
        const struct price_lock lock = random_lock(&random);
        const struct price_units units = {.core_milli = (int64_t)random_below(&random, 64000),
                                          .gpu_milli = (int64_t)random_below(&random, 4000)};
        const int64_t first = slot_start_ms(lock.first_slot, lock.offset_ms);
        const int64_t earliest = first + (int64_t)random_below(&random, SLOT_MS);
        const int64_t latest = earliest + (int64_t)random_below(&random, SLOT_MS);
        const int64_t longest = (int64_t)random_below(&random, 8 * SLOT_MS);
        const int64_t quote = price_quote_lock_micro(units, &lock, earliest, latest, longest);
        const int64_t start =
            earliest + (int64_t)random_below(&random, (uint64_t)(latest - earliest) + 1);
        int64_t wall = 0, before = 0;
        while (wall < longest) {
            wall += 1 + (int64_t)random_below(&random, SLOT_MS);
            wall = wall > longest ? longest : wall;
            const int64_t bill = price_bill_lock_micro(units, &lock, start, wall);
            assert_true(bill >= before && bill <= quote);
            before = bill;
        }
    }
}

TEST(resources_have_names_and_fields)
{
    const struct price_units units = {1, 2, 3, 4};
    struct price_vector price = {0};
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        price_vector_set(&price, r, 10 + r);
        assert_int_equal(price_vector_get(&price, r), 10 + r);
        assert_int_equal(price_units_get(&units, r), 1 + r);
    }
    assert_int_equal(price.core_micro, 10);
    assert_int_equal(price.disk_micro, 13);
    assert_string_equal(price_resource_name(PRICE_GPU), "gpu");
    assert_string_equal(price_resource_unit_hours(PRICE_RAM), "GiB-h");
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
        cmocka_unit_test(a_run_over_several_slots_is_billed_slot_by_slot),
        cmocka_unit_test(one_floor_is_taken_over_all_slots),
        cmocka_unit_test(a_rush_doubles_the_first_part_of_the_run_only),
        cmocka_unit_test(a_flat_lock_bills_as_one_price),
        cmocka_unit_test(no_run_within_the_quote_passes_it_and_no_bill_falls),
        cmocka_unit_test(resources_have_names_and_fields),
        cmocka_unit_test(resources_fit_part_by_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
