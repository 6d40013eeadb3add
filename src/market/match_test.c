/* Placement and its explanation; covers match.c, match_explain.c. */
#include "market/match.h"
#include "testing/testing.h"

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)

enum { MACHINE_MAX = 8 };

struct fixture {
    struct machine machines[MACHINE_MAX];
    struct offer offers[MACHINE_MAX];
    struct offer *offered[MACHINE_MAX];
    struct machine *pointers[MACHINE_MAX];
    size_t count;
    struct job_request request;
    struct match_wish wish;
    struct arena *arena;
    struct match_placement placement;
    struct buffer words;
};

static struct machine *add_machine(struct fixture *fixture, const char *name, int64_t cores_milli,
                                   uint64_t roles)
{
    struct machine *machine = &fixture->machines[fixture->count];
    *machine = (struct machine){
        .id = 100 + fixture->count,
        .state = MACHINE_STATE_ONLINE,
        .probe = {.resources = {.cores_milli = 64000, .ram_bytes = 64 * GIB},
                  .speed_weight_milli = 1000},
        .offers = &fixture->offered[fixture->count],
        .offer_count = 1,
    };
    fixture->offers[fixture->count] = (struct offer){
        .id = 200 + fixture->count,
        .machine = machine,
        .terms = {.resources = {.cores_milli = cores_milli, .ram_bytes = GIB}, .roles = roles}};
    fixture->offered[fixture->count] = &fixture->offers[fixture->count];
    snprintf(machine->name, sizeof(machine->name), "%s", name);
    fixture->pointers[fixture->count++] = machine;
    return machine;
}

static void set_up(struct fixture *fixture, int64_t num_nodes)
{
    *fixture = (struct fixture){
        .arena = arena_new(0),
        .request = {.name = "job",
                    .num_nodes = num_nodes,
                    .num_nodes_max = num_nodes,
                    .worker = {.cores_milli = 250, .ram_bytes = 256 * MIB},
                    .server = {.cores_milli = 500, .ram_bytes = 128 * MIB},
                    .max_run_ms = 3600000,
                    .tick_ms = 1000},
        .wish = {.lock = price_lock_flat(price_cold_start()), .budget_micro = 10000000},
    };
    fixture->wish.request = &fixture->request;
    buffer_init(&fixture->words, 4096);
}

static void tear_down(struct fixture *fixture)
{
    arena_free(fixture->arena);
    buffer_done(&fixture->words);
}

static enum match_result place(struct fixture *fixture)
{
    return match_place(fixture->arena, fixture->pointers, fixture->count, &fixture->wish,
                       &fixture->placement);
}

static const char *explain(struct fixture *fixture, enum match_result result)
{
    buffer_clear(&fixture->words);
    match_explain(fixture->pointers, fixture->count, &fixture->wish, result, &fixture->words);
    return buffer_string(&fixture->words);
}

TEST(workers_take_the_biggest_machines_one_each_and_the_server_the_dedicated_one)
{
    struct fixture fixture;
    set_up(&fixture, 2);
    add_machine(&fixture, "owl", 500, MACHINE_ROLE_ALL);
    add_machine(&fixture, "wren", 250, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "market", 1000, MACHINE_ROLE_SERVER);
    add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    const struct match_part *parts = fixture.placement.parts;
    assert_int_equal(fixture.placement.part_count, 3);
    assert_string_equal(parts[0].machine->name, "market");
    assert_int_equal(parts[0].role, LEASE_ROLE_SERVER);
    assert_string_equal(parts[1].machine->name, "heron");
    assert_int_equal(parts[1].rank, 0);
    assert_int_equal(parts[1].resources.cores_milli, 250);
    assert_string_equal(parts[2].machine->name, "owl");
    assert_int_equal(parts[2].rank, 1);
    assert_int_equal(fixture.placement.quote_micro,
                     parts[0].quote_micro + parts[1].quote_micro + parts[2].quote_micro);
    tear_down(&fixture);
}

TEST(equal_machines_are_taken_in_the_order_they_came)
{
    struct fixture fixture;
    set_up(&fixture, 2);
    fixture.request.server = (struct resources){0};
    add_machine(&fixture, "a", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "b", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "c", 500, MACHINE_ROLE_WORKER)->probe.speed_weight_milli = 1100;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_equal(fixture.placement.parts[0].machine->name, "c");
    assert_string_equal(fixture.placement.parts[1].machine->name, "a");
    tear_down(&fixture);
}

TEST(at_least_takes_all_free_cores)
{
    struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.takes_more_cores = true;
    add_machine(&fixture, "market", 1000, MACHINE_ROLE_SERVER);
    struct machine *heron = add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    heron->offers[0]->leased.cores_milli = 300;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_int_equal(fixture.placement.parts[1].resources.cores_milli, 700);
    assert_int_equal(fixture.placement.parts[1].resources.ram_bytes, 256 * MIB);
    tear_down(&fixture);
}

TEST(a_surplus_that_passes_the_budget_is_scaled_down_to_it)
{
    struct fixture fixture;
    set_up(&fixture, 2);
    fixture.request.takes_more_cores = true;
    fixture.request.server = (struct resources){0};
    add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "owl", 750, MACHINE_ROLE_WORKER);
    /* The least costs 2 x (5000 + 500) an hour, everything 35000 + 1000. */
    fixture.wish.budget_micro = 23000;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_true(fixture.placement.quote_micro <= 23000);
    assert_true(fixture.placement.quote_micro > 22900);
    assert_true(fixture.placement.parts[0].resources.cores_milli > 600);
    fixture.wish.budget_micro = 10999;
    assert_int_equal(place(&fixture), MATCH_OVER_BUDGET);
    fixture.wish.budget_micro = 11000;
    fixture.request.max_hourly_micro = 10999;
    assert_int_equal(place(&fixture), MATCH_OVER_HOURLY);
    assert_string_equal(explain(&fixture, MATCH_OVER_HOURLY),
                        "the machines that fit cost more than its maximum of 0.010999 credits an "
                        "hour");
    tear_down(&fixture);
}

TEST(cheaper_machines_are_tried_when_the_biggest_pass_the_budget)
{
    struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.server = (struct resources){0};
    add_machine(&fixture, "fast", 4000, MACHINE_ROLE_WORKER)->probe.speed_weight_milli = 8000;
    add_machine(&fixture, "slow", 250, MACHINE_ROLE_WORKER);
    fixture.wish.budget_micro = 6000;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_equal(fixture.placement.parts[0].machine->name, "slow");
    tear_down(&fixture);
}

TEST(the_server_spares_machines_the_workers_need)
{
    struct fixture fixture;
    set_up(&fixture, 2);
    add_machine(&fixture, "a", 1000, MACHINE_ROLE_ALL);
    add_machine(&fixture, "b", 900, MACHINE_ROLE_ALL);
    add_machine(&fixture, "c", 800, MACHINE_ROLE_ALL);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_equal(fixture.placement.parts[0].machine->name, "c");
    tear_down(&fixture);
}

TEST(server_and_worker_share_a_machine_with_room_for_both_and_only_then)
{
    struct fixture fixture;
    set_up(&fixture, 2);
    add_machine(&fixture, "small", 600, MACHINE_ROLE_ALL);
    struct machine *large = add_machine(&fixture, "large", 750, MACHINE_ROLE_ALL);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_ptr_equal(fixture.placement.parts[0].machine, large);
    large->offers[0]->terms.resources.cores_milli = 749;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    tear_down(&fixture);
}

TEST(a_machine_that_does_not_offer_the_role_never_gets_a_server)
{
    struct fixture fixture;
    set_up(&fixture, 1);
    add_machine(&fixture, "heron", 4000, MACHINE_ROLE_WORKER);
    assert_int_equal(place(&fixture), MATCH_NO_SERVER);
    assert_string_equal(explain(&fixture, MATCH_NO_SERVER),
                        "needs a machine with the role server offering at least 0.5 cores and 128 "
                        "MiB; none is online");
    tear_down(&fixture);
}

TEST(a_lender_below_its_minimum_is_left_out)
{
    struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.server = (struct resources){0};
    struct machine *heron = add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    heron->offers[0]->terms.minimum.core_micro = 30000;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    heron->offers[0]->terms.minimum.core_micro = 20000;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    tear_down(&fixture);
}

TEST(a_lender_whose_minimum_only_the_least_cores_reach_lends_only_those)
{
    struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.server = (struct resources){0};
    fixture.request.takes_more_cores = true;
    struct machine *heron = add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    heron->offers[0]->terms.minimum.core_micro = 21000;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_int_equal(fixture.placement.parts[0].resources.cores_milli, 250);
    tear_down(&fixture);
}

TEST(waiting_is_explained_with_the_machines_there_are)
{
    struct fixture fixture;
    set_up(&fixture, 3);
    add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "tiny", 100, MACHINE_ROLE_WORKER);
    struct machine *wren = add_machine(&fixture, "wren", 250, MACHINE_ROLE_WORKER);
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    assert_string_equal(explain(&fixture, MATCH_FEW_MACHINES),
                        "needs 3 machines offering at least 0.25 cores and 256 MiB; 2 are online: "
                        "heron, wren");
    wren->offers[0]->leased.cores_milli = 1;
    assert_string_equal(explain(&fixture, MATCH_FEW_MACHINES),
                        "needs 3 machines offering at least 0.25 cores and 256 MiB; 2 are online: "
                        "heron, wren; busy: wren");
    tear_down(&fixture);
}

TEST(the_wish_is_quoted_at_reference_speed)
{
    struct fixture fixture;
    set_up(&fixture, 3);
    const struct match_quote quote = match_quote_wish(&fixture.wish);
    assert_int_equal(quote.total_micro, 3 * 5500 + 10250);
    assert_int_equal(quote.hourly_micro, quote.total_micro);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            workers_take_the_biggest_machines_one_each_and_the_server_the_dedicated_one),
        cmocka_unit_test(equal_machines_are_taken_in_the_order_they_came),
        cmocka_unit_test(at_least_takes_all_free_cores),
        cmocka_unit_test(a_surplus_that_passes_the_budget_is_scaled_down_to_it),
        cmocka_unit_test(cheaper_machines_are_tried_when_the_biggest_pass_the_budget),
        cmocka_unit_test(the_server_spares_machines_the_workers_need),
        cmocka_unit_test(server_and_worker_share_a_machine_with_room_for_both_and_only_then),
        cmocka_unit_test(a_machine_that_does_not_offer_the_role_never_gets_a_server),
        cmocka_unit_test(a_lender_below_its_minimum_is_left_out),
        cmocka_unit_test(a_lender_whose_minimum_only_the_least_cores_reach_lends_only_those),
        cmocka_unit_test(waiting_is_explained_with_the_machines_there_are),
        cmocka_unit_test(the_wish_is_quoted_at_reference_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
