/* Workers that are near each other, through the market or directly; covers match_far.c. */
#include "market/pair.h"
#include "market/testing_match_internal.h"

static void set_up_far(struct fixture *fixture, int64_t num_nodes, size_t machine_count)
{
    set_up(fixture, num_nodes);
    fixture->request.server = (struct resources){0};
    fixture->request.wishes.max_rtt_us = 20000;
    for (size_t i = 0; i < machine_count; i++) {
        char name[24];
        snprintf(name, sizeof(name), "m%zu", i);
        add_machine(fixture, name, 500, MACHINE_ROLE_WORKER)->probe.rtt_us =
            60000 + 100 * (int64_t)i;
    }
}

static void done(struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->count; i++)
        pair_free(&fixture->machines[i]);
    tear_down(fixture);
}

static void measure(struct fixture *fixture, size_t a, size_t b, int64_t rtt_us)
{
    pair_put(&fixture->machines[a], &fixture->machines[b], rtt_us, fixture->wish.now_ms);
}

static bool has_part(const struct fixture *fixture, size_t machine)
{
    for (size_t i = 0; i < fixture->placement.part_count; i++)
        if (fixture->placement.parts[i].machine == &fixture->machines[machine])
            return true;
    return false;
}

TEST(two_that_are_near_each_other_are_taken_though_both_are_far_from_the_market)
{
    static struct fixture fixture;
    set_up_far(&fixture, 2, 5);
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    measure(&fixture, 0, 1, 25000);
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    measure(&fixture, 1, 3, 2000);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_true(has_part(&fixture, 1) && has_part(&fixture, 3));
    fixture.wish.now_ms += PAIR_FRESH_MS;
    fixture.wish.latest_start_ms = fixture.wish.latest_end_ms = fixture.wish.now_ms;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    done(&fixture);
}

TEST(all_of_a_set_are_near_each_other)
{
    static struct fixture fixture;
    set_up_far(&fixture, 3, 6);
    /* A chain is no set; a triangle is, wherever it lies. */
    measure(&fixture, 0, 1, 1000);
    measure(&fixture, 1, 2, 1000);
    measure(&fixture, 2, 3, 1000);
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    assert_int_equal(fixture.matcher.lacking, 1); /* one more pair may do */
    measure(&fixture, 3, 5, 1000);
    measure(&fixture, 2, 5, 1000);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_true(has_part(&fixture, 2) && has_part(&fixture, 3) && has_part(&fixture, 5));
    done(&fixture);
}

TEST(direct_and_relayed_ways_mix)
{
    static struct fixture fixture;
    set_up_far(&fixture, 3, 2);
    /* near is within reach of both by a direct path, and of close through the market. */
    add_machine(&fixture, "close", 500, MACHINE_ROLE_WORKER)->probe.rtt_us = 5000;
    add_machine(&fixture, "near", 500, MACHINE_ROLE_WORKER)->probe.rtt_us = 6000;
    measure(&fixture, 0, 2, 15000);
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    measure(&fixture, 0, 3, 15000);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_false(has_part(&fixture, 1));
    done(&fixture);
}

TEST(a_machine_of_unknown_distance_to_the_market_is_near_by_its_direct_paths_only)
{
    static struct fixture fixture;
    set_up_far(&fixture, 2, 1);
    add_machine(&fixture, "unknown", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "close", 500, MACHINE_ROLE_WORKER)->probe.rtt_us = 1000;
    measure(&fixture, 0, 1, 1000);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_true(has_part(&fixture, 0) && has_part(&fixture, 1));
    done(&fixture);
}

TEST(another_worker_is_near_all_who_are_there)
{
    static struct fixture fixture;
    set_up_far(&fixture, 1, 4);
    const struct job job = {.request = {.num_nodes = 3}};
    const struct machine *others[] = {&fixture.machines[0], &fixture.machines[1]};
    fixture.wish.beside = &job;
    fixture.wish.others = others;
    fixture.wish.other_count = 2;
    measure(&fixture, 2, 0, 1000);
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    measure(&fixture, 3, 0, 1000);
    measure(&fixture, 3, 1, 1000);
    /* Those who are there have no room: all of them is leased. */
    for (size_t i = 0; i < 2; i++)
        fixture.offers[i].leased = fixture.offers[i].terms.resources;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_true(has_part(&fixture, 3));
    done(&fixture);
}

TEST(a_large_set_is_found_among_many)
{
    static struct fixture fixture;
    set_up_far(&fixture, 24, 250);
    for (size_t i = 0; i < 24; i++)
        for (size_t k = 0; k < i; k++)
            measure(&fixture, 10 * i, 10 * k, 5000);
    for (size_t i = 0; i < 240; i++) /* and pairs that lead nowhere */
        if (i % 10 != 0 && (i + 1) % 10 != 0)
            measure(&fixture, i, i + 1, 4000);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    for (size_t i = 0; i < 24; i++)
        assert_true(has_part(&fixture, 10 * i));
    done(&fixture);
}

TEST(candidates_are_those_with_room_wherever_they_are)
{
    static struct fixture fixture;
    static const struct machine *found[MATCH_NEAR_MAX];
    set_up_far(&fixture, 2, 4);
    fixture.offers[1].leased = fixture.offers[1].terms.resources;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    assert_int_equal(match_near_candidates(&fixture.matcher, &fixture.wish, found), 3);
    assert_ptr_equal(found[0], &fixture.machines[0]);
    assert_ptr_equal(found[1], &fixture.machines[2]);
    done(&fixture);
}

TEST(who_waits_is_told_which_two_are_too_far_apart_and_by_what_measure)
{
    static struct fixture fixture;
    set_up_far(&fixture, 2, 3);
    assert_string_equal(
        explain(&fixture, place(&fixture)),
        "needs 2 machines offering at least 0.25 cores and 256 MiB; 3 are online: "
        "m0, m1, m2; too few are within max_rtt 20 ms: m0 and m1 are 120.1 ms apart "
        "through the market");
    measure(&fixture, 1, 2, 30500);
    assert_non_null(
        strstr(explain(&fixture, place(&fixture)), "m1 and m2 are 30.5 ms apart directly"));
    done(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            two_that_are_near_each_other_are_taken_though_both_are_far_from_the_market),
        cmocka_unit_test(all_of_a_set_are_near_each_other),
        cmocka_unit_test(direct_and_relayed_ways_mix),
        cmocka_unit_test(
            a_machine_of_unknown_distance_to_the_market_is_near_by_its_direct_paths_only),
        cmocka_unit_test(another_worker_is_near_all_who_are_there),
        cmocka_unit_test(a_large_set_is_found_among_many),
        cmocka_unit_test(candidates_are_those_with_room_wherever_they_are),
        cmocka_unit_test(who_waits_is_told_which_two_are_too_far_apart_and_by_what_measure),
    };
    return cmocka_run_group_tests_name("match_near", tests, NULL, NULL);
}
