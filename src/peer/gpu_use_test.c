/* Whose load a GPU has, by a library that stands for the driver's; covers gpu_use.c, nvml.c. */
#include "peer/gpu_use.h"
#include "testing/sleeper.h"

#include <stdio.h>
#include <stdlib.h>

#define MS INT64_C(1000000)

/* The large GPU is /dev/nvidia3 there, the small ones are 2 and 1. */
enum { LARGE = 1 << 3, SMALL = 1 << 2, MUTE = 1 << 1 };

static void say_use(const char *words)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
    assert_int_equal(setenv("NVML_FIXTURE_USE", words, 1), 0);
}

TEST(load_of_a_lease_and_of_others_is_told_apart_by_process)
{
    AUTO(gpu_use) struct gpu_use *use = gpu_use_new(NVML_FIXTURE);
    const pid_t other = sleeper_start();
    char words[64];
    /* This process stands for the keeper, its child for the job; init is nobody's. */
    snprintf(words, sizeof(words), "%d:60,1:25", (int)other);
    say_use(words);
    struct gpu_holder holder = {.gpus = LARGE, .is_whole = true, .keeper = getpid()};
    assert_int_equal(gpu_use_read(use, &holder, 1, 1000 * MS), 250);
    assert_int_equal(holder.used_us, 0); /* since when is not known yet */
    assert_int_equal(gpu_use_read(use, &holder, 1, 1500 * MS), 250);
    assert_int_equal(holder.used_us, 300000);
    say_use("");
    assert_int_equal(gpu_use_read(use, &holder, 1, 2000 * MS), 0);
    assert_int_equal(holder.used_us, 300000);
    /* After a sleep of the machine at most three seconds count. */
    say_use(words);
    assert_int_equal(gpu_use_read(use, &holder, 1, 100000 * MS), 250);
    assert_int_equal(holder.used_us, 300000 + 1800000);
    sleeper_end(other);
}

TEST(a_lease_is_not_charged_for_a_gpu_it_does_not_have)
{
    AUTO(gpu_use) struct gpu_use *use = gpu_use_new(NVML_FIXTURE);
    char words[64];
    snprintf(words, sizeof(words), "%d:50", (int)getpid());
    say_use(words);
    struct gpu_holder holders[] = {{.gpus = SMALL, .is_whole = true, .keeper = getpid()},
                                   {.gpus = LARGE, .is_whole = true, .keeper = 1}};
    assert_int_equal(gpu_use_read(use, holders, 2, 1000 * MS), 500);
    assert_int_equal(gpu_use_read(use, holders, 2, 2000 * MS), 500);
    assert_int_equal(holders[0].used_us, 50000); /* 5 % of its own, which does not tell processes */
    assert_int_equal(holders[1].used_us, 0);
}

TEST(where_processes_are_not_told_a_whole_gpu_is_its_holders)
{
    AUTO(gpu_use) struct gpu_use *use = gpu_use_new(NVML_FIXTURE);
    struct gpu_holder holders[] = {{.gpus = SMALL, .is_whole = true, .keeper = 1},
                                   {.gpus = SMALL, .is_whole = false, .keeper = 2},
                                   {.gpus = MUTE, .is_whole = true, .keeper = 3}};
    assert_int_equal(gpu_use_read(use, holders, 3, 1000 * MS), -1);
    assert_int_equal(gpu_use_read(use, holders, 3, 2000 * MS), -1);
    assert_int_equal(holders[0].used_us, 50000);
    assert_int_equal(holders[1].used_us, 0);
    assert_int_equal(holders[2].used_us, 0); /* that one says nothing at all */
}

TEST(a_machine_without_the_library_knows_nothing)
{
    AUTO(gpu_use) struct gpu_use *use = gpu_use_new("/nonexistent/libnvidia-ml.so.1");
    struct gpu_holder holder = {.gpus = LARGE, .is_whole = true, .keeper = getpid()};
    assert_int_equal(gpu_use_read(use, &holder, 1, 1000 * MS), -1);
    assert_int_equal(gpu_use_read(use, &holder, 1, 2000 * MS), -1);
    assert_int_equal(holder.used_us, 0);
    assert_int_equal(gpu_use_read(use, NULL, 0, 3000 * MS), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_of_a_lease_and_of_others_is_told_apart_by_process),
        cmocka_unit_test(a_lease_is_not_charged_for_a_gpu_it_does_not_have),
        cmocka_unit_test(where_processes_are_not_told_a_whole_gpu_is_its_holders),
        cmocka_unit_test(a_machine_without_the_library_knows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
