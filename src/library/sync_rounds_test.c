#include "library/sync_rounds.h"
#include "testing/testing.h"

#include <string.h>

enum { WORLD = 3, KEPT = 1 << 20 };

static struct sync_rounds *rounds_begin(void)
{
    struct sync_rounds *rounds = sync_rounds_new(WORLD, KEPT);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        sync_rounds_await(rounds, rank, 0);
    return rounds;
}

static void sum_call(struct sync_rounds *rounds, uint32_t rank, uint64_t round, float value)
{
    struct error error;
    bool is_wanted;
    const struct sync_call call = {round, SYNC_CALL_ALLREDUCE, 0, sizeof value};
    ASSERT_OK(sync_rounds_call(rounds, rank, &call, &is_wanted, &error));
    uint8_t bytes[sizeof value];
    memcpy(bytes, &value, sizeof value);
    sync_rounds_give(rounds, rank, round, is_wanted ? bytes : NULL);
}

static float sum_of(const struct sync_round *round)
{
    float sum;
    assert_non_null(round);
    memcpy(&sum, round->bytes, sizeof sum);
    return sum;
}

TEST(a_round_is_done_when_all_have_called)
{
    AUTO(sync_rounds) struct sync_rounds *rounds = rounds_begin();
    sum_call(rounds, 0, 1, 1);
    sum_call(rounds, 1, 1, 2);
    sum_call(rounds, 1, 1, 2); /* again, on a new link: counts once */
    assert_null(sync_rounds_result(rounds, 1));
    sum_call(rounds, 2, 1, 4);
    assert_float_equal(sum_of(sync_rounds_result(rounds, 1)), 7, 0);
    assert_int_equal(sync_rounds_result(rounds, 1)->contributors, 3);
}

TEST(who_is_lost_is_not_waited_for_and_gets_the_same_later)
{
    AUTO(sync_rounds) struct sync_rounds *rounds = rounds_begin();
    sum_call(rounds, 0, 1, 1);
    sum_call(rounds, 1, 1, 2);
    sync_rounds_excuse(rounds, 2);
    assert_float_equal(sum_of(sync_rounds_result(rounds, 1)), 3, 0);
    /* It comes back, its program from the start: the round that it missed is over, and the next
     * one is the others' next. */
    sync_rounds_await(rounds, 2, 0);
    sum_call(rounds, 2, 1, 4);
    assert_float_equal(sum_of(sync_rounds_result(rounds, 1)), 3, 0);
    sum_call(rounds, 0, 2, 1);
    sum_call(rounds, 1, 2, 1);
    assert_null(sync_rounds_result(rounds, 2));
    sum_call(rounds, 2, 2, 1);
    assert_float_equal(sum_of(sync_rounds_result(rounds, 2)), 3, 0);
}

TEST(who_has_a_round_behind_it_is_not_waited_for)
{
    AUTO(sync_rounds) struct sync_rounds *rounds = rounds_begin();
    /* Rank 0 was started again: the others know two rounds that it begins anew. */
    sync_rounds_await(rounds, 1, 2);
    sync_rounds_await(rounds, 2, 2);
    sum_call(rounds, 0, 1, 1);
    sum_call(rounds, 0, 2, 1);
    assert_int_equal(sync_rounds_result(rounds, 2)->contributors, 1);
    sum_call(rounds, 0, 3, 1);
    assert_null(sync_rounds_result(rounds, 3));
    sum_call(rounds, 1, 3, 1);
    sum_call(rounds, 2, 3, 1);
    assert_int_equal(sync_rounds_result(rounds, 3)->contributors, 3);
}

TEST(a_broadcast_needs_its_root_alone)
{
    struct error error;
    AUTO(sync_rounds) struct sync_rounds *rounds = rounds_begin();
    const struct sync_call call = {1, SYNC_CALL_BROADCAST, 1, 4};
    bool is_wanted;
    ASSERT_OK(sync_rounds_call(rounds, 0, &call, &is_wanted, &error));
    assert_false(is_wanted);
    sync_rounds_give(rounds, 0, 1, NULL);
    assert_null(sync_rounds_result(rounds, 1));
    ASSERT_OK(sync_rounds_call(rounds, 1, &call, &is_wanted, &error));
    assert_true(is_wanted);
    sync_rounds_give(rounds, 1, 1, (const uint8_t *)"abcd");
    assert_memory_equal(sync_rounds_result(rounds, 1)->bytes, "abcd", 4);
}

TEST(ranks_that_call_different_things_are_told)
{
    struct error error;
    AUTO(sync_rounds) struct sync_rounds *rounds = rounds_begin();
    bool is_wanted;
    sum_call(rounds, 0, 1, 1);
    const struct sync_call barrier = {1, SYNC_CALL_BARRIER, 0, 0};
    ASSERT_FAILS(sync_rounds_call(rounds, 1, &barrier, &is_wanted, &error), ERROR_CONFLICT);
    const struct sync_call far = {1000000, SYNC_CALL_BARRIER, 0, 0};
    ASSERT_FAILS(sync_rounds_call(rounds, 1, &far, &is_wanted, &error), ERROR_CONFLICT);
    const struct sync_call nobody = {2, SYNC_CALL_BROADCAST, 9, 4};
    ASSERT_FAILS(sync_rounds_call(rounds, 1, &nobody, &is_wanted, &error), ERROR_INVALID);
}

TEST(what_is_kept_has_a_limit)
{
    struct error error;
    AUTO(sync_rounds) struct sync_rounds *rounds = sync_rounds_new(1, 8);
    bool is_wanted;
    sync_rounds_await(rounds, 0, 0);
    for (uint64_t round = 1; round <= 5; round++)
        sum_call(rounds, 0, round, 1);
    const struct sync_call old = {1, SYNC_CALL_ALLREDUCE, 0, 4};
    ASSERT_FAILS(sync_rounds_call(rounds, 0, &old, &is_wanted, &error), ERROR_UNAVAILABLE);
    assert_non_null(sync_rounds_result(rounds, 5));
}

static void broadcast_call(struct sync_rounds *rounds, uint32_t rank, uint64_t round)
{
    struct error error;
    bool is_wanted;
    const struct sync_call call = {round, SYNC_CALL_BROADCAST, 0, 4};
    ASSERT_OK(sync_rounds_call(rounds, rank, &call, &is_wanted, &error));
    sync_rounds_give(rounds, rank, round, is_wanted ? (const uint8_t *)"abcd" : NULL);
}

TEST(what_somebody_still_needs_is_kept_beyond_the_limit)
{
    enum { ROUNDS = 5 };
    AUTO(sync_rounds) struct sync_rounds *rounds = sync_rounds_new(2, 12);
    sync_rounds_await(rounds, 0, 0);
    sync_rounds_await(rounds, 1, 0);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        broadcast_call(rounds, 0, round);
        assert_int_equal(sync_rounds_is_full(rounds), round > 3);
    }
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        broadcast_call(rounds, 1, round);
        assert_non_null(sync_rounds_result(rounds, round));
    }
    assert_false(sync_rounds_is_full(rounds));
    assert_null(sync_rounds_result(rounds, 1));
}

TEST(nobody_waits_for_the_broadcast_of_one_who_left)
{
    struct error error;
    AUTO(sync_rounds) struct sync_rounds *rounds = rounds_begin();
    bool is_wanted;
    broadcast_call(rounds, 1, 1);
    ASSERT_OK(sync_rounds_check(rounds, 1, &error));
    sync_rounds_excuse(rounds, 0);
    ASSERT_FAILS(sync_rounds_check(rounds, 1, &error), ERROR_UNAVAILABLE);
    const struct sync_call later = {2, SYNC_CALL_BROADCAST, 0, 4};
    ASSERT_FAILS(sync_rounds_call(rounds, 1, &later, &is_wanted, &error), ERROR_UNAVAILABLE);
    /* It comes back after all. */
    sync_rounds_await(rounds, 0, 0);
    broadcast_call(rounds, 0, 1);
    ASSERT_OK(sync_rounds_check(rounds, 1, &error));
    assert_non_null(sync_rounds_result(rounds, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_is_done_when_all_have_called),
        cmocka_unit_test(who_is_lost_is_not_waited_for_and_gets_the_same_later),
        cmocka_unit_test(who_has_a_round_behind_it_is_not_waited_for),
        cmocka_unit_test(a_broadcast_needs_its_root_alone),
        cmocka_unit_test(ranks_that_call_different_things_are_told),
        cmocka_unit_test(what_is_kept_has_a_limit),
        cmocka_unit_test(what_somebody_still_needs_is_kept_beyond_the_limit),
        cmocka_unit_test(nobody_waits_for_the_broadcast_of_one_who_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
