#include "base/random.h"
#include "peer/guard.h"
#include "testing/testing.h"

#define MS        INT64_C(1000000)
#define MINUTE_MS INT64_C(60000)
#define GIB       (INT64_C(1) << 30)

/* Four cores and 16 GiB: low from 0.4 cores, frozen from 1, 1.6 GiB kept free. */
static struct guard_limits four_cores(void)
{
    struct guard_limits limits;
    guard_limits_init(&limits, 4000, 16 * GIB);
    return limits;
}

static struct guard_readings quiet(void)
{
    return (struct guard_readings){.cpu_milli = 50,
                                   .memory_free_bytes = 8 * GIB,
                                   .memory_stall_milli = 0,
                                   .input_idle_ms = 3600000,
                                   .gpu_milli = 0,
                                   .temperature_milli = 45000};
}

TEST(one_reading_asks_for_its_level)
{
    struct guard_readings nothing, readings[20];
    guard_readings_init(&nothing);
    for (size_t i = 0; i < 20; i++)
        readings[i] = quiet();
    struct {
        struct guard_readings readings;
        enum guard_level level;
        enum guard_cause cause;
    } cases[20] = {{nothing, GUARD_FULL, GUARD_CAUSE_NONE},
                   {quiet(), GUARD_FULL, GUARD_CAUSE_NONE}};
    size_t count = 2;
#define CASE(field_, value_, level_, cause_)                                                       \
    do {                                                                                           \
        readings[count].field_ = (value_);                                                         \
        cases[count].readings = readings[count];                                                   \
        cases[count].level = (level_);                                                             \
        cases[count++].cause = (cause_);                                                           \
    } while (0)
    CASE(cpu_milli, 400, GUARD_FULL, GUARD_CAUSE_NONE);
    CASE(cpu_milli, 401, GUARD_LOW, GUARD_CAUSE_CPU);
    CASE(cpu_milli, 4000, GUARD_LOW, GUARD_CAUSE_CPU); /* frozen only when it lasts */
    CASE(memory_free_bytes, 16 * GIB / 10 - 1, GUARD_FROZEN, GUARD_CAUSE_MEMORY);
    CASE(memory_free_bytes, GIB / 2, GUARD_RELEASED, GUARD_CAUSE_MEMORY);
    CASE(memory_stall_milli, 900, GUARD_FULL, GUARD_CAUSE_NONE); /* a lease at its own limit */
    CASE(input_idle_ms, 0, GUARD_LOW, GUARD_CAUSE_INPUT);
    CASE(input_idle_ms, 179999, GUARD_LOW, GUARD_CAUSE_INPUT);
    CASE(input_idle_ms, 180000, GUARD_FULL, GUARD_CAUSE_NONE);
    CASE(gpu_milli, 201, GUARD_FROZEN, GUARD_CAUSE_GPU);
    CASE(temperature_milli, 85001, GUARD_LOW, GUARD_CAUSE_HEAT);
    CASE(temperature_milli, 90001, GUARD_FROZEN, GUARD_CAUSE_HEAT);
    CASE(is_on_battery, 1, GUARD_FROZEN, GUARD_CAUSE_BATTERY);
    CASE(is_lid_closed, 1, GUARD_LOW, GUARD_CAUSE_LID);
    CASE(is_metered, 1, GUARD_FROZEN, GUARD_CAUSE_NETWORK);
#undef CASE
    for (size_t i = 0; i < count; i++) {
        const struct guard_limits limits = four_cores();
        struct guard guard;
        guard_init(&guard, &limits, 0);
        guard_step(&guard, &cases[i].readings, 1);
        assert_string_equal(guard_level_name(guard_level(&guard)),
                            guard_level_name(cases[i].level));
        assert_string_equal(guard_cause_name(guard_cause(&guard)),
                            guard_cause_name(cases[i].cause));
    }
}

TEST(stalls_count_when_little_memory_is_free)
{
    const struct guard_limits limits = four_cores();
    struct guard guard;
    guard_init(&guard, &limits, 0);
    struct guard_readings readings = quiet();
    readings.memory_stall_milli = 200;
    readings.memory_free_bytes = 2 * GIB;
    guard_step(&guard, &readings, 1);
    assert_int_equal(guard_level(&guard), GUARD_FROZEN);
}

TEST(a_busy_owner_gets_idle_priority_first_and_then_all)
{
    const struct guard_limits limits = four_cores();
    struct guard guard;
    guard_init(&guard, &limits, 0);
    struct guard_readings readings = quiet();
    readings.cpu_milli = 2000;
    guard_step(&guard, &readings, 0);
    assert_int_equal(guard_level(&guard), GUARD_LOW);
    guard_step(&guard, &readings, 200 * MS);
    assert_int_equal(guard_level(&guard), GUARD_LOW);
    guard_step(&guard, &readings, 400 * MS);
    assert_int_equal(guard_level(&guard), GUARD_FROZEN);
    char reason[GUARD_REASON_SIZE];
    assert_string_equal(guard_reason(&guard, reason), "other programs use 2.0 cores");
}

TEST(memory_that_stays_short_is_given_back_and_not_taken_again_too_soon)
{
    const struct guard_limits limits = four_cores();
    struct guard guard;
    guard_init(&guard, &limits, 0);
    struct guard_readings readings = quiet();
    readings.memory_free_bytes = GIB + GIB / 2;
    guard_step(&guard, &readings, 0);
    assert_int_equal(guard_level(&guard), GUARD_FROZEN);
    guard_step(&guard, &readings, 2999 * MS);
    assert_int_equal(guard_level(&guard), GUARD_FROZEN);
    guard_step(&guard, &readings, 3000 * MS);
    assert_int_equal(guard_level(&guard), GUARD_RELEASED);
    /* A little more than the limit is still too little. */
    readings.memory_free_bytes = GIB + GIB * 7 / 10;
    for (int64_t second = 4; second < 100; second++) {
        guard_step(&guard, &readings, second * 1000 * MS);
        assert_int_equal(guard_level(&guard), GUARD_RELEASED);
    }
    readings.memory_free_bytes = 8 * GIB;
    guard_step(&guard, &readings, 100000 * MS);
    guard_step(&guard, &readings, 110000 * MS);
    assert_int_equal(guard_level(&guard), GUARD_FULL);
}

TEST(work_resumes_after_quiet_and_not_before)
{
    const struct guard_limits limits = four_cores();
    struct guard guard;
    guard_init(&guard, &limits, 0);
    struct guard_readings readings = quiet();
    readings.cpu_milli = 500;
    guard_step(&guard, &readings, 0);
    readings.cpu_milli = 350; /* below the limit, above the one that keeps */
    guard_step(&guard, &readings, 20000 * MS);
    assert_int_equal(guard_level(&guard), GUARD_LOW);
    readings.cpu_milli = 50;
    guard_step(&guard, &readings, 30000 * MS);
    assert_int_equal(guard_wait_ms(&guard, 30000 * MS), 10000);
    guard_step(&guard, &readings, 39999 * MS);
    assert_int_equal(guard_level(&guard), GUARD_LOW);
    guard_step(&guard, &readings, 40000 * MS);
    assert_int_equal(guard_level(&guard), GUARD_FULL);
    assert_int_equal(guard_wait_ms(&guard, 40000 * MS), -1);
}

TEST(a_short_use_during_the_quiet_starts_it_anew)
{
    const struct guard_limits limits = four_cores();
    struct guard guard;
    guard_init(&guard, &limits, 0);
    struct guard_readings readings = quiet();
    for (int64_t second = 0; second < 60; second++) {
        readings.cpu_milli = second % 9 == 0 ? 600 : 0;
        guard_step(&guard, &readings, second * 1000 * MS);
        assert_int_equal(guard_level(&guard), GUARD_LOW);
    }
}

TEST(too_early_a_resumption_makes_the_next_wait_longer)
{
    const struct guard_limits limits = four_cores();
    struct guard guard;
    guard_init(&guard, &limits, 0);
    struct guard_readings busy = quiet();
    const struct guard_readings idle = quiet();
    busy.cpu_milli = 600;
    int64_t now_ms = 0;
    const int64_t waits_ms[] = {10000, 20000, 40000, 80000, 160000, 320000, 600000, 600000};
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(*waits_ms); i++) {
        guard_step(&guard, &busy, (now_ms += 1000) * MS);
        guard_step(&guard, &idle, (now_ms += 1000) * MS);
        assert_int_equal(guard_wait_ms(&guard, now_ms * MS), waits_ms[i]);
        guard_step(&guard, &idle, (now_ms += waits_ms[i]) * MS);
        assert_int_equal(guard_level(&guard), GUARD_FULL);
    }
    /* Away for long: all is forgiven. */
    guard_step(&guard, &idle, (now_ms += 600000) * MS);
    guard_step(&guard, &busy, (now_ms += 1000) * MS);
    guard_step(&guard, &idle, (now_ms += 1000) * MS);
    assert_int_equal(guard_wait_ms(&guard, now_ms * MS), 10000);
}

TEST(a_pause_holds_until_its_end_or_the_owners_word)
{
    const struct guard_limits limits = four_cores();
    struct guard guard;
    guard_init(&guard, &limits, 0);
    const struct guard_readings idle = quiet();
    guard_pause(&guard, 30 * MINUTE_MS * MS);
    assert_int_equal(guard_level(&guard), GUARD_FROZEN);
    assert_int_equal(guard_cause(&guard), GUARD_CAUSE_PAUSE);
    assert_int_equal(guard_wait_ms(&guard, 0), 30 * MINUTE_MS);
    guard_step(&guard, &idle, (30 * MINUTE_MS - 1) * MS);
    assert_int_equal(guard_level(&guard), GUARD_FROZEN);
    guard_step(&guard, &idle, 30 * MINUTE_MS * MS);
    assert_int_equal(guard_level(&guard), GUARD_FULL);

    guard_pause(&guard, INT64_MAX);
    guard_step(&guard, &idle, INT64_MAX / 2);
    assert_int_equal(guard_level(&guard), GUARD_FROZEN);
    guard_resume(&guard, INT64_MAX / 2);
    assert_int_equal(guard_level(&guard), GUARD_FULL);
}

TEST(the_owners_word_ends_the_waiting_but_not_what_is_still_so)
{
    const struct guard_limits limits = four_cores();
    struct guard guard;
    guard_init(&guard, &limits, 0);
    struct guard_readings readings = quiet();
    readings.is_on_battery = 1;
    guard_step(&guard, &readings, 1);
    guard_resume(&guard, 2);
    assert_int_equal(guard_level(&guard), GUARD_FROZEN);
    readings.is_on_battery = 0;
    guard_step(&guard, &readings, 3);
    char reason[GUARD_REASON_SIZE];
    assert_string_equal(guard_reason(&guard, reason), "waiting a while after: battery");
    guard_resume(&guard, 4);
    assert_int_equal(guard_level(&guard), GUARD_FULL);
    assert_string_equal(guard_reason(&guard, reason), "");
}

static struct guard_readings random_readings(struct random *random)
{
    struct guard_readings readings = quiet();
    switch (random_below(random, 8)) {
    case 0:
        readings.cpu_milli = (int64_t)random_below(random, 4000);
        break;
    case 1:
        readings.memory_free_bytes = (int64_t)random_below(random, 4) * GIB;
        break;
    case 2:
        readings.input_idle_ms = (int64_t)random_below(random, 300000);
        break;
    case 3:
        readings.temperature_milli = 70000 + (int64_t)random_below(random, 30000);
        break;
    case 4:
        readings.is_on_battery = (int64_t)random_below(random, 2);
        break;
    case 5:
        guard_readings_init(&readings);
        break;
    default:
        break;
    }
    return readings;
}

/* Days of owners who come and go at random: every want is met at once, and the level does not
 * flap. */
TEST(it_yields_at_once_and_never_flaps)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct random random;
        random_init(&random, seed);
        const struct guard_limits limits = four_cores();
        struct guard guard;
        guard_init(&guard, &limits, 0);
        int64_t now_ms = 0, falls = 0, quiet_since_ms = -1;
        const int64_t span_ms = INT64_C(12) * 60 * MINUTE_MS;
        struct guard_readings readings = quiet();
        while (now_ms < span_ms) {
            if (random_below(&random, 40) == 0)
                readings = random_readings(&random);
            else if (random_below(&random, 20) == 0)
                readings = quiet();
            now_ms += 200 + (int64_t)random_below(&random, 2000);
            const enum guard_level before = guard_level(&guard);
            guard_step(&guard, &readings, now_ms * MS);
            const enum guard_level after = guard_level(&guard);
            falls += after < before;
            if (readings.cpu_milli > limits.cpu_low_milli || readings.is_on_battery == 1)
                assert_true(after > GUARD_FULL);
            if (readings.memory_free_bytes >= 0 &&
                readings.memory_free_bytes < limits.memory_keep_bytes)
                assert_true(after >= GUARD_FROZEN);
            const bool is_quiet = readings.cpu_milli <= 50 &&
                                  readings.memory_free_bytes == 8 * GIB &&
                                  readings.input_idle_ms == 3600000 &&
                                  readings.temperature_milli == 45000 && !readings.is_on_battery;
            if (!is_quiet)
                quiet_since_ms = -1;
            else if (quiet_since_ms < 0)
                quiet_since_ms = now_ms;
            /* From frozen to low, and from there to full. */
            if (quiet_since_ms >= 0 && now_ms - quiet_since_ms > 2 * limits.resume_max_ms)
                assert_int_equal(after, GUARD_FULL);
        }
        /* Seven waits double up to the longest; a reset costs the longest time away. */
        assert_true(falls <= 8 * (span_ms / limits.resume_max_ms + 1));
        assert_true(falls > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_reading_asks_for_its_level),
        cmocka_unit_test(stalls_count_when_little_memory_is_free),
        cmocka_unit_test(a_busy_owner_gets_idle_priority_first_and_then_all),
        cmocka_unit_test(memory_that_stays_short_is_given_back_and_not_taken_again_too_soon),
        cmocka_unit_test(work_resumes_after_quiet_and_not_before),
        cmocka_unit_test(a_short_use_during_the_quiet_starts_it_anew),
        cmocka_unit_test(too_early_a_resumption_makes_the_next_wait_longer),
        cmocka_unit_test(a_pause_holds_until_its_end_or_the_owners_word),
        cmocka_unit_test(the_owners_word_ends_the_waiting_but_not_what_is_still_so),
        cmocka_unit_test(it_yields_at_once_and_never_flaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
