#include "base/clock.h"
#include "peer/probe.h"
#include "testing/testing.h"

#include <time.h>

TEST(machine_is_measured_in_little_time)
{
    struct error error = {0};
    struct machine_probe probe;
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    ASSERT_OK(machine_probe_read("/tmp", &probe, &error));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    const double spent_ms =
        (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
    assert_true(probe.cores_milli >= 1000);
    assert_true(probe.ram_bytes > 1 << 20);
    assert_true(probe.gflops > 0.1);
    assert_in_range(probe.speed_weight_milli, 1, PROBE_SPEED_WEIGHT_MAX);
    assert_string_not_equal(probe.architecture, "");
    print_message("%s: %.1f GFLOP/s, weight %d, in %.1f ms\n", probe.cpu_model, probe.gflops,
                  (int)probe.speed_weight_milli, spent_ms);
    assert_true(spent_ms < 1000); /* sanitizers are slow; otherwise it is some 10 ms */
}

TEST(folder_that_is_not_there_is_told)
{
    struct error error = {0};
    struct machine_probe probe;
    ASSERT_FAILS(machine_probe_read("/no/such/folder", &probe, &error), ERROR_NOT_FOUND);
}

TEST(load_is_of_the_time_between_two_calls)
{
    struct load_probe probe = {0};
    struct machine_load load;
    load_probe_read(&probe, clock_monotonic_ns(&clock_system), &load);
    assert_int_equal(load.load_milli, 0);
    assert_true(load.free_ram_bytes > 0);
    const int64_t begin_ns = clock_monotonic_ns(&clock_system);
    while (clock_monotonic_ns(&clock_system) - begin_ns < 200000000)
        ;
    load_probe_read(&probe, clock_monotonic_ns(&clock_system), &load);
    assert_true(load.load_milli > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_is_measured_in_little_time),
        cmocka_unit_test(folder_that_is_not_there_is_told),
        cmocka_unit_test(load_is_of_the_time_between_two_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
