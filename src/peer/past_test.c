#include "peer/past.h"
#include "testing/testing.h"

static void an_ended_lease_is_known_and_its_next_holder_is_not(void **state)
{
    struct past past = {0};
    (void)state;
    assert_false(past_has(&past, (struct lease_fence){0, 0}));
    past_note(&past, (struct lease_fence){7, 2});
    assert_true(past_has(&past, (struct lease_fence){7, 2}));
    assert_true(past_has(&past, (struct lease_fence){7, 1}));
    assert_false(past_has(&past, (struct lease_fence){7, 3}));
    assert_false(past_has(&past, (struct lease_fence){8, 2}));
}

static void the_newest_are_kept(void **state)
{
    struct past past = {0};
    (void)state;
    for (uint64_t i = 1; i <= PAST_MAX + 1; i++)
        past_note(&past, (struct lease_fence){i, 1});
    assert_false(past_has(&past, (struct lease_fence){1, 1}));
    assert_true(past_has(&past, (struct lease_fence){2, 1}));
    assert_true(past_has(&past, (struct lease_fence){PAST_MAX + 1, 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ended_lease_is_known_and_its_next_holder_is_not),
        cmocka_unit_test(the_newest_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
