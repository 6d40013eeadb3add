#include "base/random.h"
#include "function/epoch_plan.h"
#include "testing/testing.h"

#include <stdio.h>

TEST(each_batch_is_handed_out_once_in_a_seeded_order)
{
    bool is_seen[100] = {false};
    AUTO(epoch_plan)
    struct epoch_plan *plan = epoch_plan_new(&(struct epoch_plan_options){
        .batch_count = 100, .span_batches = 7, .staleness = 200, .seed = 1});
    struct plan_task task;
    int spans = 0;
    bool is_sorted = true;
    uint64_t last = 0;
    while (epoch_plan_take(plan, 0, &task)) {
        is_sorted = is_sorted && task.span.first >= last;
        last = task.span.first;
        spans++;
        for (uint64_t i = 0; i < task.span.count; i++) {
            assert_false(is_seen[task.span.first + i]);
            is_seen[task.span.first + i] = true;
        }
    }
    assert_int_equal(spans, 15);
    assert_false(is_sorted);
    assert_false(epoch_plan_is_complete(plan));
}

TEST(what_a_call_did_not_do_waits_again)
{
    AUTO(epoch_plan)
    struct epoch_plan *plan = epoch_plan_new(
        &(struct epoch_plan_options){.batch_count = 10, .span_batches = 10, .staleness = 4});
    struct plan_task task;
    assert_true(epoch_plan_take(plan, 0, &task));
    epoch_plan_fold(plan, 0, 4);
    assert_true(epoch_plan_take(plan, 1, &task));
    assert_int_equal(task.span.first, 4);
    assert_int_equal(task.span.count, 6);
    assert_int_equal(epoch_plan_fail(plan, 4), 1);
    assert_true(epoch_plan_take(plan, 1, &task));
    assert_int_equal(task.failures, 1);
    assert_int_equal(task.generation, 0);
    assert_int_equal(epoch_plan_spoil(plan, 4), 2);
    assert_true(epoch_plan_take(plan, 1, &task));
    assert_int_equal(task.generation, 1);
    epoch_plan_fold(plan, 4, 6);
    assert_true(epoch_plan_is_complete(plan));
    struct batch_span covered[2];
    assert_int_equal(epoch_plan_covered(plan, covered, 2), 1);
    assert_int_equal(covered[0].count, 10);
    assert_int_equal(epoch_plan_version(plan), 2);
}

TEST(an_update_waits_for_an_older_one_at_the_bound)
{
    AUTO(epoch_plan)
    struct epoch_plan *plan = epoch_plan_new(
        &(struct epoch_plan_options){.batch_count = 10, .span_batches = 1, .staleness = 2});
    struct plan_task slow, others[3], more;
    assert_true(epoch_plan_take(plan, 0, &slow));
    assert_true(epoch_plan_take(plan, 0, &others[0]));
    assert_true(epoch_plan_take(plan, 0, &others[1]));
    assert_false(epoch_plan_take(plan, 0, &more)); /* a fourth would be three late */
    epoch_plan_fold(plan, others[0].span.first, 1);
    epoch_plan_fold(plan, others[1].span.first, 1);
    assert_true(epoch_plan_take(plan, 2, &others[2]));
    assert_false(epoch_plan_may_fold(plan, others[2].span.first));
    assert_true(epoch_plan_may_fold(plan, slow.span.first));
    epoch_plan_fold(plan, slow.span.first, 1);
    assert_true(epoch_plan_may_fold(plan, others[2].span.first));
    assert_int_equal(epoch_plan_staleness_seen(plan), 2);
}

TEST(an_epoch_that_was_begun_goes_on_where_it_stood)
{
    const struct batch_span covered[] = {{0, 3}, {5, 2}};
    AUTO(epoch_plan)
    struct epoch_plan *plan = epoch_plan_new(&(struct epoch_plan_options){.batch_count = 10,
                                                                          .span_batches = 4,
                                                                          .staleness = 9,
                                                                          .version = 7,
                                                                          .covered = covered,
                                                                          .covered_count = 2});
    uint64_t left = 0;
    struct plan_task task;
    while (epoch_plan_take(plan, 7, &task))
        left += task.span.count;
    assert_int_equal(left, 5);
    assert_int_equal(epoch_plan_covered_count(plan), 5);
}

/* Calls that come back in any order, partly, not at all, or twice. */
static void run_random(uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    const struct epoch_plan_options options = {
        .batch_count = 1 + random_below(&random, 300),
        .span_batches = 1 + random_below(&random, 40),
        .staleness = random_below(&random, 20),
        .version = random_below(&random, 5),
        .seed = seed,
    };
    AUTO(epoch_plan) struct epoch_plan *plan = epoch_plan_new(&options);
    struct plan_task out[32];
    size_t count = 0;
    uint64_t covered = 0, published = options.version;
    while (!epoch_plan_is_complete(plan)) {
        if (random_below(&random, 2) && count < 32) {
            if (random_below(&random, 3)) /* sometimes an older one is what there is */
                published = epoch_plan_version(plan);
            if (epoch_plan_take(plan, published, &out[count]))
                count++;
            else if (count == 0)
                published = epoch_plan_version(plan);
            continue;
        }
        if (count == 0)
            continue;
        const size_t pick = (size_t)random_below(&random, count);
        const struct plan_task task = out[pick];
        if (random_below(&random, 4) == 0) {
            assert_int_equal(epoch_plan_fail(plan, task.span.first), task.failures + 1);
        } else if (epoch_plan_may_fold(plan, task.span.first)) {
            const uint64_t done = 1 + random_below(&random, task.span.count);
            epoch_plan_fold(plan, task.span.first, done);
            covered += done;
        } else {
            /* The oldest may always be added: nothing waits for ever. */
            assert_true(epoch_plan_may_fold(plan, out[0].span.first));
            continue;
        }
        for (size_t i = pick; i + 1 < count; i++)
            out[i] = out[i + 1];
        count--;
        assert_int_equal(epoch_plan_out_count(plan), count);
    }
    assert_int_equal(covered, options.batch_count);
    assert_true(epoch_plan_staleness_seen(plan) <= options.staleness);
}

TEST(whatever_happens_each_batch_is_covered_once_within_the_bound)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        run_random(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_batch_is_handed_out_once_in_a_seeded_order),
        cmocka_unit_test(what_a_call_did_not_do_waits_again),
        cmocka_unit_test(an_update_waits_for_an_older_one_at_the_bound),
        cmocka_unit_test(an_epoch_that_was_begun_goes_on_where_it_stood),
        cmocka_unit_test(whatever_happens_each_batch_is_covered_once_within_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
