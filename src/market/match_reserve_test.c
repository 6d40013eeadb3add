/* Where a job that waits has room reserved, and that it starts there. */
#include "base/random.h"
#include "market/testing_match_internal.h"

TEST(a_reservation_is_where_leases_end_first_and_later_jobs_keep_out_of_it)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.server = (struct resources){0};
    fixture.request.worker.cores_milli = 800;
    struct lease late = {.offer = 200, .ends_ms = 9000000, .resources = {.cores_milli = 900}};
    struct lease early = {.offer = 201, .ends_ms = 5000000, .resources = {.cores_milli = 500}};
    struct lease *leases[] = {&late, &early};
    for (int i = 0; i < 2; i++) {
        struct machine *machine = add_machine(&fixture, i ? "b" : "a", 1000, MACHINE_ROLE_WORKER);
        machine->leases = &leases[i];
        machine->lease_count = 1;
        machine->leased = machine->offers[0]->leased = leases[i]->resources;
    }
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    struct match_reservation reservation;
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_true(match_reserve(&fixture.matcher, arena, &fixture.wish, &reservation));
    assert_int_equal(reservation.start_ms, 5000000);
    assert_int_equal(reservation.part_count, 1);
    assert_string_equal(reservation.parts[0].machine->name, "b");
    fixture.ahead = &reservation;
    /* What is left over of the reserved machine, or ends before: 200 of its 1000. */
    fixture.wish.latest_end_ms = 5000001;
    fixture.request.worker.cores_milli = 201;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    fixture.request.worker.cores_milli = 200;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    fixture.request.worker.cores_milli = 500;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    fixture.wish.latest_end_ms = 5000000;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    fixture.request.worker.cores_milli = 1001;
    assert_false(match_reserve(&fixture.matcher, arena, &fixture.wish, &reservation));
    tear_down(&fixture);
}

TEST(no_room_is_reserved_for_a_worker_and_a_server_that_never_fit_together)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.worker.cores_milli = 600;
    fixture.request.server.cores_milli = 500;
    struct machine *both = add_machine(&fixture, "both", 1000, MACHINE_ROLE_ALL);
    assert_int_not_equal(place(&fixture), MATCH_PLACED);
    struct match_reservation reservation;
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_false(match_reserve(&fixture.matcher, arena, &fixture.wish, &reservation));
    fixture.request.server.cores_milli = 400;
    struct lease lease = {.offer = 200, .ends_ms = 7000, .resources = {.cores_milli = 100}};
    struct lease *leases[] = {&lease};
    both->leases = leases;
    both->lease_count = 1;
    both->leased = both->offers[0]->leased = lease.resources;
    assert_int_not_equal(place(&fixture), MATCH_PLACED);
    assert_true(match_reserve(&fixture.matcher, arena, &fixture.wish, &reservation));
    assert_int_equal(reservation.start_ms, 7000);
    assert_int_equal(reservation.part_count, 2);
    fixture.ahead = &reservation; /* all of the machine is taken then */
    fixture.wish.latest_end_ms = 7001;
    fixture.request.server = (struct resources){0};
    fixture.request.worker = (struct resources){.cores_milli = 1};
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    tear_down(&fixture);
}

TEST(a_server_takes_the_machine_that_workers_can_do_without)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.worker.cores_milli = fixture.request.server.cores_milli = 800;
    add_machine(&fixture, "both", 1000, MACHINE_ROLE_ALL); /* would be the worker's: it is first */
    add_machine(&fixture, "worker", 1000, MACHINE_ROLE_WORKER);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    struct match_reservation reservation;
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_true(match_reserve(&fixture.matcher, arena, &fixture.wish, &reservation));
    assert_int_equal(reservation.part_count, 2);
    assert_string_equal(reservation.parts[1].machine->name, "worker");
    assert_int_equal(reservation.parts[1].resources.cores_milli, 800);
    tear_down(&fixture);
}

/* ---- Random markets -------------------------------------------------------------------------- */

enum { RANDOM_MACHINES = 6, LEASES_EACH = 3, ROUNDS = 20000 };

struct random_market {
    struct fixture fixture;
    struct random random;
    struct lease leases[RANDOM_MACHINES][LEASES_EACH];
    struct lease *pointers[RANDOM_MACHINES][LEASES_EACH];
};

static int64_t draw(struct random_market *market, uint64_t bound)
{
    return (int64_t)random_below(&market->random, bound);
}

/* Leases of what is still free, each with its end. */
static void lease_out(struct random_market *market, size_t index)
{
    struct machine *machine = &market->fixture.machines[index];
    machine->leases = market->pointers[index];
    const int64_t lease_count = draw(market, LEASES_EACH + 1);
    for (int64_t i = 0; i < lease_count; i++) {
        const int64_t cores_milli = 100 * (1 + draw(market, 6));
        struct offer *offer = machine->offers[0];
        if (cores_milli > offer->terms.resources.cores_milli - offer->leased.cores_milli)
            break;
        struct lease *lease = &market->leases[index][i];
        *lease = (struct lease){.offer = offer->id,
                                .ends_ms = 1000 * (1 + draw(market, 9)),
                                .resources = {.cores_milli = cores_milli}};
        market->pointers[index][machine->lease_count++] = lease;
        machine->leased = resources_add(machine->leased, lease->resources);
        offer->leased = machine->leased;
    }
}

static void draw_market(struct random_market *market)
{
    struct fixture *fixture = &market->fixture;
    set_up(fixture, 1 + draw(market, 3));
    fixture->request.worker = (struct resources){.cores_milli = 100 * (1 + draw(market, 10))};
    fixture->request.server = (struct resources){.cores_milli = 100 * draw(market, 10)};
    const int64_t machine_count = 1 + draw(market, RANDOM_MACHINES);
    for (int64_t i = 0; i < machine_count; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%d", (int)i);
        add_machine(fixture, name, 100 * (1 + draw(market, 15)),
                    (uint64_t)(1 + draw(market, MACHINE_ROLE_ALL)));
        lease_out(market, (size_t)i);
    }
}

/* As it is at that instant if leases run for as long as they may. */
static enum match_result place_at(struct random_market *market, int64_t now_ms)
{
    struct fixture *fixture = &market->fixture;
    for (size_t i = 0; i < fixture->count; i++) {
        struct machine *machine = &fixture->machines[i];
        machine->lease_count = 0;
        machine->leased = (struct resources){0};
        for (size_t k = 0; k < LEASES_EACH; k++) {
            struct lease *lease = &market->leases[i][k];
            if (lease->ends_ms <= now_ms)
                continue;
            market->pointers[i][machine->lease_count++] = lease;
            machine->leased = resources_add(machine->leased, lease->resources);
        }
        machine->offers[0]->leased = machine->leased;
    }
    fixture->wish.now_ms = fixture->wish.latest_start_ms = fixture->wish.latest_end_ms = now_ms;
    return place(fixture);
}

TEST(what_is_reserved_is_where_the_job_starts_and_without_it_the_job_never_does)
{
    static struct random_market market;
    int reserved = 0, never = 0, waited = 0;
    AUTO(arena) struct arena *arena = arena_new(0);
    random_init(&market.random, 11);
    for (int i = 0; i < ROUNDS; i++) {
        memset(market.leases, 0, sizeof(market.leases));
        draw_market(&market);
        const bool starts_now = place(&market.fixture) == MATCH_PLACED;
        struct match_reservation reservation;
        arena_clear(arena);
        if (match_reserve(&market.fixture.matcher, arena, &market.fixture.wish, &reservation)) {
            reserved++;
            waited += reservation.start_ms > 0;
            assert_int_equal(place_at(&market, reservation.start_ms), MATCH_PLACED);
        } else {
            never++;
            assert_false(starts_now);
            assert_int_not_equal(place_at(&market, 1000000), MATCH_PLACED);
        }
        tear_down(&market.fixture);
    }
    assert_true(reserved > ROUNDS / 10 && never > ROUNDS / 10 && waited > ROUNDS / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reservation_is_where_leases_end_first_and_later_jobs_keep_out_of_it),
        cmocka_unit_test(no_room_is_reserved_for_a_worker_and_a_server_that_never_fit_together),
        cmocka_unit_test(a_server_takes_the_machine_that_workers_can_do_without),
        cmocka_unit_test(
            what_is_reserved_is_where_the_job_starts_and_without_it_the_job_never_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
