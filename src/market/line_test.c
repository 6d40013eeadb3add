#include "base/random.h"
#include "market/line.h"
#include "testing/testing.h"

enum { JOBS = 200, STEPS = 20000 };

static const struct job *find_first(const struct job *jobs, const bool *is_in)
{
    const struct job *first = NULL;
    for (int i = 0; i < JOBS; i++)
        if (is_in[i] && (!first || line_is_before(&jobs[i], first)))
            first = &jobs[i];
    return first;
}

TEST(the_first_of_the_queue_is_in_front_whoever_comes_and_leaves)
{
    static struct job jobs[JOBS];
    static bool is_in[JOBS];
    struct line line = {0};
    struct random random;
    random_init(&random, 7);
    for (int i = 0; i < JOBS; i++) {
        jobs[i].id = (uint64_t)i + 1;
        jobs[i].turn.tag = (int64_t)random_below(&random, 20); /* many of the same */
        jobs[i].request.is_rush = random_below(&random, 10) == 0;
    }
    size_t count = 0;
    for (int step = 0; step < STEPS; step++) {
        const uint64_t at = random_below(&random, JOBS);
        const bool wants_in = random_below(&random, 2) == 0;
        count += wants_in ? !is_in[at] : 0;
        count -= wants_in ? 0 : is_in[at];
        is_in[at] = wants_in;
        if (wants_in)
            line_add(&line, &jobs[at]);
        else
            line_remove(&line, &jobs[at]);
        assert_int_equal(line.count, count);
        assert_ptr_equal(line_first(&line), find_first(jobs, is_in));
    }
    for (struct job *first; (first = line_first(&line));)
        line_remove(&line, first);
    assert_int_equal(line.count, 0);
    line_done(&line);
}

TEST(who_rushes_goes_first_then_the_smaller_tag_then_the_smaller_id)
{
    struct job slow = {.id = 1, .turn.tag = 5}, soon = {.id = 3, .turn.tag = 4};
    struct job same = {.id = 2, .turn.tag = 4};
    struct job rush = {.id = 4, .turn.tag = 9, .request.is_rush = true};
    assert_true(line_is_before(&rush, &same) && line_is_before(&same, &soon));
    assert_true(line_is_before(&soon, &slow) && !line_is_before(&slow, &slow));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_the_queue_is_in_front_whoever_comes_and_leaves),
        cmocka_unit_test(who_rushes_goes_first_then_the_smaller_tag_then_the_smaller_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
