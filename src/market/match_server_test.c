/* Where the servers of a job go: apart where there is room, else together, and beside workers. */
#include "market/testing_match_internal.h"

static const char *machine_of(const struct fixture *fixture, size_t part)
{
    return fixture->placement.parts[part].machine->name;
}

TEST(servers_go_to_different_machines_first_then_share_the_same)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    add_machine(&fixture, "a", 1000, MACHINE_ROLE_SERVER);
    add_machine(&fixture, "b", 1000, MACHINE_ROLE_SERVER);
    add_machine(&fixture, "worker", 1000, MACHINE_ROLE_WORKER);
    fixture.request.server_count = 2;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_int_equal(fixture.placement.part_count, 3);
    assert_string_not_equal(machine_of(&fixture, 0), machine_of(&fixture, 1));
    fixture.request.server_count = 4;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_int_equal(fixture.placement.part_count, 5);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(fixture.placement.parts[i].role, LEASE_ROLE_SERVER);
        assert_int_equal(fixture.placement.parts[i].rank, i);
    }
    fixture.request.server_count = 5; /* they hold two each */
    assert_int_equal(place(&fixture), MATCH_NO_SERVER);
    tear_down(&fixture);
}

TEST(servers_leave_workers_their_room)
{
    static struct fixture fixture;
    set_up(&fixture, 2);
    add_machine(&fixture, "a", 1250, MACHINE_ROLE_ALL); /* a worker and two servers */
    add_machine(&fixture, "b", 749,
                MACHINE_ROLE_ALL); /* a worker, and a server if it were larger */
    fixture.request.server_count = 2;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_equal(machine_of(&fixture, 0), "a");
    assert_string_equal(machine_of(&fixture, 1), "a");
    fixture.request.server_count = 3;
    assert_int_not_equal(place(&fixture), MATCH_PLACED);
    fixture.offers[1].terms.resources.cores_milli = 750;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_not_equal(machine_of(&fixture, 0), machine_of(&fixture, 1));
    tear_down(&fixture);
}

TEST(workers_to_spare_make_room_for_several_servers)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.num_nodes_max = 3;
    fixture.request.worker.cores_milli = fixture.request.server.cores_milli = 1000;
    add_machine(&fixture, "a", 1000, MACHINE_ROLE_ALL);
    add_machine(&fixture, "b", 1000, MACHINE_ROLE_ALL);
    add_machine(&fixture, "c", 1000, MACHINE_ROLE_ALL);
    fixture.request.server_count = 2;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_int_equal(fixture.placement.part_count, 3);
    assert_int_equal(fixture.placement.parts[2].role, LEASE_ROLE_WORKER);
    tear_down(&fixture);
}

TEST(a_replica_never_goes_where_its_lead_is)
{
    static struct fixture fixture;
    set_up(&fixture, 0);
    struct machine *lead = add_machine(&fixture, "lead", 4000, MACHINE_ROLE_SERVER);
    fixture.wish.apart_from = lead->id;
    listing_update(&fixture.listing, &fixture.offers[0], 0);
    assert_int_equal(match_place_server(&fixture.matcher, &fixture.wish, NULL, &fixture.placement),
                     MATCH_NO_SERVER);
    add_machine(&fixture, "other", 500, MACHINE_ROLE_SERVER);
    listing_update(&fixture.listing, &fixture.offers[1], 0);
    assert_int_equal(match_place_server(&fixture.matcher, &fixture.wish, NULL, &fixture.placement),
                     MATCH_PLACED);
    assert_string_equal(machine_of(&fixture, 0), "other");
    tear_down(&fixture);
}

TEST(room_is_reserved_for_every_server)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    add_machine(&fixture, "a", 1000, MACHINE_ROLE_SERVER);
    add_machine(&fixture, "worker", 1000, MACHINE_ROLE_WORKER);
    struct lease lease = {.offer = 200, .ends_ms = 7000, .resources = {.cores_milli = 100}};
    struct lease *leases[] = {&lease};
    fixture.machines[0].leases = leases;
    fixture.machines[0].lease_count = 1;
    fixture.machines[0].leased = fixture.offers[0].leased = lease.resources;
    fixture.request.server_count = 2;
    assert_int_equal(place(&fixture), MATCH_NO_SERVER);
    struct match_reservation reservation;
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_true(match_reserve(&fixture.matcher, arena, &fixture.wish, &reservation));
    assert_int_equal(reservation.start_ms, 7000);
    assert_int_equal(reservation.part_count, 3);
    fixture.request.server_count = 3;
    assert_false(match_reserve(&fixture.matcher, arena, &fixture.wish, &reservation));
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_go_to_different_machines_first_then_share_the_same),
        cmocka_unit_test(servers_leave_workers_their_room),
        cmocka_unit_test(workers_to_spare_make_room_for_several_servers),
        cmocka_unit_test(a_replica_never_goes_where_its_lead_is),
        cmocka_unit_test(room_is_reserved_for_every_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
