#include "function/earlier.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

static const struct epoch_task task = {
    .space = {16, 256, 64, 256},
    .loss_start = 2.3,
    .loss_target = 0.5,
    .price = 0.001,
    .budget_micro = 1000,
    .epoch_max = 20,
};

struct written {
    const char *job;
    double start;
    struct run_epoch epochs[4];
    size_t count;
};

/* As the command prints it, with fields that nobody reads here. */
static void write_run(struct buffer *out, const struct written *run)
{
    struct json_writer writer;
    buffer_clear(out);
    json_writer_init(&writer, out);
    json_object_begin(&writer);
    json_field_string(&writer, "job", run->job);
    json_field_string(&writer, "reason", "the target is reached");
    json_field_double(&writer, "test_loss_start", run->start);
    json_key(&writer, "epochs");
    json_array_begin(&writer);
    for (size_t i = 0; i < run->count; i++)
        json_write(&writer, &run_epoch_schema, &run->epochs[i]);
    json_array_end(&writer);
    json_object_end(&writer);
}

static struct run_epoch epoch_of(uint64_t functions, double seconds, double loss, int64_t cost)
{
    return (struct run_epoch){.functions = functions,
                              .memory_mb = 256,
                              .seconds = seconds,
                              .fetch_s = 0.01,
                              .compute_s = seconds / 8,
                              .update_s = 0.01,
                              .memory_use = 0.1,
                              .cpu_use = 0.9,
                              .calls = 4 * functions,
                              .test_loss = loss,
                              .test_accuracy = 0.5,
                              .cost_micro = cost};
}

static int add(struct earlier *earlier, const struct written *run, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, EARLIER_BYTES_MAX);
    write_run(&json, run);
    return earlier_add(earlier, buffer_text(&json), TEXT("digits-0123abcd"), error);
}

TEST(the_soonest_constant_that_the_budget_pays_for_is_kept)
{
    struct error error = {0};
    struct earlier earlier;
    earlier_init(&earlier, &task);
    const struct written runs[] = {
        {"digits-00000001", 2.3, {epoch_of(4, 5, 1, 200), epoch_of(4, 5, 0.4, 200)}, 2},
        {"digits-00000002",
         2.3,
         {epoch_of(8, 3, 1, 200), epoch_of(8, 3, 0.5, 200), epoch_of(8, 9, 0.3, 900)},
         3},
        /* Too dear, not there, and not constant. */
        {"digits-00000003", 2.3, {epoch_of(16, 1, 1, 800), epoch_of(16, 1, 0.4, 800)}, 2},
        {"digits-00000004", 2.3, {epoch_of(2, 1, 1, 1), epoch_of(2, 1, 0.6, 1)}, 2},
        {"digits-00000005", 2.3, {epoch_of(8, 1, 1, 1), epoch_of(4, 1, 0.4, 1)}, 2},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++)
        ASSERT_OK(add(&earlier, &runs[i], &error));
    assert_int_equal(earlier.run_count, 5);
    assert_int_equal(earlier.history.seen_count, 11);
    const struct scheduler_guard guard = earlier_guard(&earlier, &task, 0.05);
    assert_int_equal(guard.constant_epochs, 2);
    assert_int_equal(guard.constant_run[0].last.choice.function_count, 8);
    assert_true(guard.constant_run[1].elapsed_s == 6);
    assert_int_equal(guard.constant_run[1].left_micro, 600);
    assert_true(guard.constant_run[0].last.loss_before == 2.3);
    /* Calls of an epoch are a function's together. */
    assert_true(guard.constant_run[0].last.compute_s == 4 * 3.0 / 8);
}

TEST(epochs_of_another_size_and_those_cut_short_are_left_out)
{
    struct error error = {0};
    struct earlier earlier;
    earlier_init(&earlier, &task);
    struct written run = {
        "digits-00000001", 2.3, {epoch_of(4, 5, 1, 200), epoch_of(4, 5, 0.4, 200)}, 2};
    run.epochs[0].memory_mb = 300;
    run.epochs[1].is_cut_short = true;
    ASSERT_OK(add(&earlier, &run, &error));
    assert_int_equal(earlier.history.seen_count, 0);
    assert_null(earlier_guard(&earlier, &task, 0.05).history);
    assert_int_equal(earlier.constant_epochs, 0);
}

TEST(what_is_no_run_of_the_job_is_refused)
{
    struct error error = {0};
    struct earlier earlier;
    earlier_init(&earlier, &task);
    const struct written other = {"clothes-00000001", 2.3, {epoch_of(4, 5, 1, 200)}, 1};
    const struct written longer = {"digits-2-0000001", 2.3, {epoch_of(4, 5, 1, 200)}, 1};
    struct written odd = {"digits-00000001", 2.3, {epoch_of(4, 5, 0, 200)}, 1};
    ASSERT_FAILS(add(&earlier, &other, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "clothes"));
    ASSERT_FAILS(add(&earlier, &longer, &error), ERROR_INVALID);
    ASSERT_FAILS(add(&earlier, &odd, &error), ERROR_INVALID);
    odd.epochs[0] = epoch_of(0, 5, 1, 200);
    ASSERT_FAILS(add(&earlier, &odd, &error), ERROR_INVALID);
    odd.epochs[0] = epoch_of(4, -5, 1, 200);
    ASSERT_FAILS(add(&earlier, &odd, &error), ERROR_INVALID);
    ASSERT_FAILS(earlier_add(&earlier, TEXT("[]"), TEXT("digits-0123abcd"), &error), ERROR_INVALID);
    assert_int_equal(earlier.history.seen_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_soonest_constant_that_the_budget_pays_for_is_kept),
        cmocka_unit_test(epochs_of_another_size_and_those_cut_short_are_left_out),
        cmocka_unit_test(what_is_no_run_of_the_job_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
