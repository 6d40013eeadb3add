/* How many workers the epochs of a job want. */
#include "testing/testing.h"
#include "worker/epoch_schedule.h"

static struct epoch_schedule_options of(const char *name)
{
    return (struct epoch_schedule_options){
        .name = text_of(name), .workers_min = 1, .workers_max = 4, .epochs = 4};
}

static uint32_t after(struct epoch_schedule *schedule, uint64_t index)
{
    const struct exchange_epoch epoch = {
        .index = index, .passes = (double)index, .has_loss = true, .loss = 1, .elapsed_ms = 1000};
    return epoch_schedule_next(schedule, &epoch);
}

TEST(workers_grow_from_the_least_to_the_most)
{
    const struct epoch_schedule_options options = of("grow");
    AUTO(epoch_schedule) struct epoch_schedule *schedule = epoch_schedule_new(&options);
    assert_string_equal(epoch_schedule_reason(schedule), "");
    assert_int_equal(after(schedule, 1), 2);
    assert_string_equal(epoch_schedule_reason(schedule),
                        "grow: 2 of 1 to 4 workers wanted in epoch 2 of 4");
    assert_int_equal(after(schedule, 2), 4);
    assert_int_equal(after(schedule, 3), 4);
    assert_int_equal(after(schedule, 9), 4);
}

TEST(workers_decay_from_the_most_to_the_least)
{
    const struct epoch_schedule_options options = of("decay");
    AUTO(epoch_schedule) struct epoch_schedule *schedule = epoch_schedule_new(&options);
    assert_int_equal(after(schedule, 1), 3);
    assert_int_equal(after(schedule, 3), 1);
}

TEST(a_successor_goes_on_where_the_job_stands)
{
    const struct epoch_schedule_options options = of("grow");
    AUTO(epoch_schedule) struct epoch_schedule *schedule = epoch_schedule_new(&options);
    assert_int_equal(after(schedule, 3), 4);
}

TEST(epochs_of_steps_are_counted_by_the_passes_they_make)
{
    struct epoch_schedule_options options = of("decay");
    options.is_by_steps = true;
    AUTO(epoch_schedule) struct epoch_schedule *schedule = epoch_schedule_new(&options);
    /* Two of them make a pass: of four passes there are eight. */
    const struct exchange_epoch epoch = {.index = 1, .passes = 0.5};
    assert_int_equal(epoch_schedule_next(schedule, &epoch), 4);
    assert_non_null(strstr(epoch_schedule_reason(schedule), "in epoch 2 of 8"));
    const struct exchange_epoch last = {.index = 7, .passes = 3.5};
    assert_int_equal(epoch_schedule_next(schedule, &last), 1);
}

TEST(no_schedule_is_none)
{
    const struct epoch_schedule_options options = of("");
    assert_null(epoch_schedule_new(&options));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_grow_from_the_least_to_the_most),
        cmocka_unit_test(workers_decay_from_the_most_to_the_least),
        cmocka_unit_test(a_successor_goes_on_where_the_job_stands),
        cmocka_unit_test(epochs_of_steps_are_counted_by_the_passes_they_make),
        cmocka_unit_test(no_schedule_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
