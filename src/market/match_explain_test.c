/*
 * Why a job waits, and what would help.
 * covers match_change.c, match_explain.c, match_lacking.c, match_nearest.c
 */
#include "market/testing_match_internal.h"

static size_t left_after(const struct match_explanation *explanation, enum wish_test test)
{
    for (size_t i = 0; i < explanation->row_count; i++)
        if (explanation->rows[i].test == test && explanation->rows[i].role == MACHINE_ROLE_WORKER)
            return explanation->rows[i].machines_left;
    fail_msg("no row %s", wish_test_name(test));
    return 0;
}

TEST(an_explanation_counts_what_each_wish_removed_and_names_the_nearest_change)
{
    static struct fixture fixture;
    struct match_explanation why;
    set_up(&fixture, 2);
    fixture.request.server = (struct resources){0};
    fixture.request.worker.ram_bytes = GIB;
    add_machine(&fixture, "a", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "b", 500, MACHINE_ROLE_WORKER)->offers[0]->terms.resources.ram_bytes =
        768 * MIB;
    add_machine(&fixture, "c", 100, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "d", 500, MACHINE_ROLE_SERVER);
    add_machine(&fixture, "e", 500, MACHINE_ROLE_WORKER)->state = MACHINE_STATE_OFFLINE;
    const enum match_result result = place(&fixture);
    assert_int_equal(result, MATCH_FEW_MACHINES);
    match_explain(&fixture.matcher, fixture.pointers, fixture.count, &fixture.wish, NULL, result,
                  &why);
    assert_int_equal(why.machine_count, 5);
    assert_int_equal(left_after(&why, WISH_TEST_ROLE), 4);
    assert_int_equal(left_after(&why, WISH_TEST_ONLINE), 3);
    assert_int_equal(left_after(&why, WISH_TEST_CORES), 2);
    assert_int_equal(left_after(&why, WISH_TEST_RAM), 1);
    assert_int_equal(left_after(&why, WISH_TEST_ROOM), 1);
    assert_string_equal(why.nearest, "with 768 MiB instead of 1 GiB of RAM it would start now");
    assert_int_equal(why.expected_start_ms, 0);
    fixture.machines[1].offers[0]->terms.resources.ram_bytes = 128 * MIB;
    match_explain(&fixture.matcher, fixture.pointers, fixture.count, &fixture.wish, NULL, result,
                  &why);
    assert_string_equal(why.nearest, "with 1 worker instead of 2 it would start now");
    tear_down(&fixture);
}

TEST(waiting_is_explained_with_the_machines_there_are)
{
    static struct fixture fixture;
    set_up(&fixture, 3);
    add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "tiny", 100, MACHINE_ROLE_WORKER);
    struct machine *wren = add_machine(&fixture, "wren", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    assert_string_equal(explain(&fixture, MATCH_FEW_MACHINES),
                        "it asks for 3 machines, and only 2 here offer 0.25 cores");
    add_machine(&fixture, "asleep", 500, MACHINE_ROLE_WORKER)->state = MACHINE_STATE_OFFLINE;
    assert_string_equal(explain(&fixture, MATCH_FEW_MACHINES),
                        "needs 3 machines offering at least 0.25 cores and 256 MiB; 2 are online: "
                        "heron, wren");
    wren->offers[0]->leased.cores_milli = 1;
    assert_string_equal(explain(&fixture, MATCH_FEW_MACHINES),
                        "needs 3 machines offering at least 0.25 cores and 256 MiB; 2 are online: "
                        "heron, wren; busy: wren");
    tear_down(&fixture);
}

static const char *lack(struct fixture *fixture)
{
    struct match_lack found;
    buffer_clear(&fixture->words);
    if (!match_is_lacking(fixture->pointers, fixture->count, &fixture->wish, MACHINE_ROLE_WORKER,
                          &found))
        return "";
    match_lack_words(&fixture->wish, &found, &fixture->words);
    return buffer_string(&fixture->words);
}

TEST(what_no_machine_offers_at_all_is_told_apart_from_what_is_busy_or_away)
{
    static struct fixture fixture;
    set_up(&fixture, 2);
    fixture.request.server = (struct resources){0};
    assert_string_equal(lack(&fixture), "no machine here takes workers");
    struct machine *heron = add_machine(&fixture, "heron", 4000, MACHINE_ROLE_WORKER);
    struct machine *wren = add_machine(&fixture, "wren", 1000, MACHINE_ROLE_WORKER);
    /* Away, shut, busy and dear are no lack. */
    heron->state = MACHINE_STATE_OFFLINE;
    wren->offers[0]->terms.paused_until_ms = OFFER_PAUSED_FOREVER;
    wren->offers[0]->leased.cores_milli = 1000;
    wren->offers[0]->terms.minimum.core_micro = 1000000;
    assert_string_equal(lack(&fixture), "");
    fixture.request.worker.cores_milli = 2000;
    assert_string_equal(lack(&fixture), "it asks for 2 machines, and only 1 here offers 2 cores");
    fixture.request.worker.cores_milli = 64000;
    assert_string_equal(lack(&fixture), "no machine here offers 64 cores");
    fixture.request.worker.cores_milli = 1000;
    fixture.request.worker.gpus_milli = 1000;
    assert_string_equal(lack(&fixture), "no machine here offers 1 GPU");
    fixture.request.worker.gpus_milli = 0;
    snprintf(fixture.request.wishes.labels, sizeof(fixture.request.wishes.labels), "cuda-12");
    assert_string_equal(lack(&fixture), "no machine here has the labels cuda-12");
    shared_of(&fixture, heron)->labels = TEXT("cuda-12");
    shared_of(&fixture, wren)->labels = TEXT("cuda-12");
    assert_string_equal(lack(&fixture), "");
    /* Each wish is met by both, all of them only by one. */
    struct machine *robin = add_machine(&fixture, "robin", 8000, MACHINE_ROLE_WORKER);
    (void)robin;
    fixture.request.worker.cores_milli = 2000;
    assert_string_equal(lack(&fixture),
                        "it asks for 2 machines, and only 1 here has all that it asks for at once");
    tear_down(&fixture);
}

TEST(a_run_longer_than_any_window_or_lease_is_a_lack)
{
    static struct fixture fixture;
    static struct span nights[] = {{1000, 3000}, {5000, 3601000 + 5000}};
    set_up(&fixture, 1);
    fixture.request.server = (struct resources){0};
    struct machine *heron = add_machine(&fixture, "heron", 4000, MACHINE_ROLE_WORKER);
    shared_of(&fixture, heron)->spans.items = nights;
    shared_of(&fixture, heron)->spans.count = 2;
    assert_string_equal(lack(&fixture), "");
    fixture.request.max_run_ms = 7200000;
    assert_string_equal(lack(&fixture), "no machine here is lent for 2h at a time");
    shared_of(&fixture, heron)->spans.count = 0;
    assert_string_equal(lack(&fixture), "");
    heron->offers[0]->terms.max_lease_ms = 7199999;
    assert_string_equal(lack(&fixture), "no machine here is lent for 2h at a time");
    tear_down(&fixture);
}

/* ---- The nearest change ---------------------------------------------------------------------- */

static void wish_for_label(struct fixture *fixture, const char *label)
{
    snprintf(fixture->request.wishes.labels, sizeof(fixture->request.wishes.labels), "%s", label);
}

static const char *nearest(struct fixture *fixture, enum match_result expected)
{
    static struct match_explanation why;
    const enum match_result result = place(fixture);
    assert_int_equal(result, expected);
    match_explain(&fixture->matcher, fixture->pointers, fixture->count, &fixture->wish,
                  fixture->ahead, result, &why);
    return why.nearest;
}

TEST(a_change_is_named_only_if_workers_and_server_are_placed_with_it)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    wish_for_label(&fixture, "nobody-has-it");
    add_machine(&fixture, "heron", 4000, MACHINE_ROLE_WORKER);
    struct machine *market = add_machine(&fixture, "market", 1000, MACHINE_ROLE_SERVER);
    assert_string_equal(nearest(&fixture, MATCH_FEW_MACHINES),
                        "without its wish for labels it would start now");
    market->leased = market->offers[0]->leased = (struct resources){.cores_milli = 501};
    assert_string_equal(nearest(&fixture, MATCH_FEW_MACHINES),
                        "a machine with the role server and 0.5 cores and 128 MiB free is what it "
                        "waits for too");
    tear_down(&fixture);
}

TEST(the_size_of_the_server_is_nothing_a_job_file_can_change)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.worker.cores_milli = 50;
    struct machine *both = add_machine(&fixture, "both", 500, MACHINE_ROLE_ALL);
    both->leased = both->offers[0]->leased = (struct resources){.cores_milli = 50};
    assert_string_equal(nearest(&fixture, MATCH_NO_SERVER),
                        "a machine with the role server and 0.5 cores and 128 MiB free is what it "
                        "waits for");
    tear_down(&fixture);
}

TEST(a_shorter_run_is_named_when_that_is_what_the_server_needs)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    add_machine(&fixture, "heron", 4000, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "market", 1000, MACHINE_ROLE_SERVER)->offers[0]->terms.max_lease_ms =
        1800999;
    assert_string_equal(nearest(&fixture, MATCH_NO_SERVER),
                        "with 1800 s instead of 3600 s of run time it would start now");
    tear_down(&fixture);
}

TEST(one_machine_that_cannot_give_worker_and_server_at_once_is_told)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    add_machine(&fixture, "both", 600, MACHINE_ROLE_ALL);
    assert_string_equal(nearest(&fixture, MATCH_FEW_MACHINES),
                        "with 0.1 instead of 0.25 cores it would start now");
    assert_string_equal(explain(&fixture, MATCH_FEW_MACHINES),
                        "one machine would have to give both a worker and the parameter server, "
                        "and none that could has the 0.75 cores and 384 MiB for both free");
    fixture.machines[0].offers[0]->terms.resources.cores_milli = 500;
    assert_string_equal(nearest(&fixture, MATCH_FEW_MACHINES), "");
    /* With a second machine a worker less leaves one for the server. */
    fixture.request.num_nodes = fixture.request.num_nodes_max = 2;
    add_machine(&fixture, "heron", 250, MACHINE_ROLE_WORKER);
    assert_string_equal(nearest(&fixture, MATCH_FEW_MACHINES),
                        "with 1 worker instead of 2 it would start now");
    tear_down(&fixture);
}

TEST(no_change_is_named_that_would_put_off_one_who_goes_first)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.server = (struct resources){0};
    wish_for_label(&fixture, "nobody-has-it");
    struct machine *heron = add_machine(&fixture, "heron", 500, MACHINE_ROLE_WORKER);
    struct match_reserved part = {heron, heron->offers[0], {.cores_milli = 500}};
    const struct match_reservation ahead = {.start_ms = 1000, .parts = &part, .part_count = 1};
    fixture.wish.latest_end_ms = 3600000;
    assert_string_equal(nearest(&fixture, MATCH_FEW_MACHINES),
                        "without its wish for labels it would start now");
    fixture.ahead = &ahead;
    assert_string_equal(nearest(&fixture, MATCH_FEW_MACHINES), "");
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_explanation_counts_what_each_wish_removed_and_names_the_nearest_change),
        cmocka_unit_test(waiting_is_explained_with_the_machines_there_are),
        cmocka_unit_test(what_no_machine_offers_at_all_is_told_apart_from_what_is_busy_or_away),
        cmocka_unit_test(a_run_longer_than_any_window_or_lease_is_a_lack),
        cmocka_unit_test(a_change_is_named_only_if_workers_and_server_are_placed_with_it),
        cmocka_unit_test(the_size_of_the_server_is_nothing_a_job_file_can_change),
        cmocka_unit_test(a_shorter_run_is_named_when_that_is_what_the_server_needs),
        cmocka_unit_test(one_machine_that_cannot_give_worker_and_server_at_once_is_told),
        cmocka_unit_test(no_change_is_named_that_would_put_off_one_who_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
