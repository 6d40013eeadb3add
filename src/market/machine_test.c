#include "market/machine.h"
#include "market/offer_shared.h"
#include "testing/testing.h"

#define GIB (INT64_C(1) << 30)

struct fixture {
    struct machine machine;
    struct offer offer;
    struct offer_shared shared;
    struct offer *offers[1];
};

static void set_up(struct fixture *fixture, int64_t cores_milli)
{
    *fixture = (struct fixture){
        .machine = {.id = 9,
                    .name = "heron",
                    .state = MACHINE_STATE_ONLINE,
                    .probe = {.resources = {.cores_milli = 4000, .ram_bytes = 8 * GIB},
                              .speed_weight_milli = 1000,
                              .cpu_model = "test",
                              .labels = "avx2,arm64"},
                    .offers = fixture->offers,
                    .offer_count = 1},
        .offer = {.id = 10,
                  .machine = &fixture->machine,
                  .shared = &fixture->shared,
                  .terms = {.resources = {.cores_milli = cores_milli, .ram_bytes = GIB},
                            .roles = MACHINE_ROLE_WORKER}},
        .offers = {&fixture->offer},
    };
}

TEST(a_probe_out_of_range_is_refused)
{
    struct error error = {0};
    struct fixture fixture;
    set_up(&fixture, 1000);
    const struct probe sound = fixture.machine.probe;
    ASSERT_OK(probe_check(&sound, &error));
    struct probe probe = sound;
    probe.speed_weight_milli = 20001;
    ASSERT_FAILS(probe_check(&probe, &error), ERROR_INVALID);
    probe = sound;
    snprintf(probe.labels, sizeof(probe.labels), "a,,b");
    ASSERT_FAILS(probe_check(&probe, &error), ERROR_INVALID);
    probe = sound;
    memset(probe.cpu_model, 'x', sizeof(probe.cpu_model));
    ASSERT_FAILS(probe_check(&probe, &error), ERROR_INVALID);
    probe = sound;
    memset(probe.gpu_model, 'x', sizeof(probe.gpu_model));
    ASSERT_FAILS(probe_check(&probe, &error), ERROR_INVALID);
    probe = sound;
    probe.resources.ram_bytes = -1;
    ASSERT_FAILS(probe_check(&probe, &error), ERROR_INVALID);
    probe = sound;
    probe.rtt_us = -1;
    ASSERT_FAILS(probe_check(&probe, &error), ERROR_INVALID);
}

TEST(only_an_online_machine_with_an_open_offer_of_the_role_takes_leases)
{
    struct fixture fixture;
    set_up(&fixture, 1000);
    assert_true(machine_takes_leases(&fixture.machine, MACHINE_ROLE_WORKER, 100));
    assert_false(machine_takes_leases(&fixture.machine, MACHINE_ROLE_SERVER, 100));
    fixture.offer.terms.paused_until_ms = 101;
    assert_false(machine_takes_leases(&fixture.machine, MACHINE_ROLE_WORKER, 100));
    assert_true(machine_takes_leases(&fixture.machine, MACHINE_ROLE_WORKER, 101));
    fixture.machine.state = MACHINE_STATE_UNREACHABLE;
    assert_false(machine_takes_leases(&fixture.machine, MACHINE_ROLE_WORKER, 101));
}

TEST(what_is_free_is_the_least_that_offer_and_machine_leave)
{
    struct fixture fixture;
    set_up(&fixture, 1000);
    fixture.offer.leased.cores_milli = 600;
    fixture.machine.leased.cores_milli = 600;
    assert_int_equal(offer_free(&fixture.offer).cores_milli, 400);
    fixture.machine.leased.cores_milli = 3800; /* 3200 of it under other offers */
    assert_int_equal(machine_free(&fixture.machine).cores_milli, 200);
    assert_int_equal(offer_free(&fixture.offer).cores_milli, 200);
    fixture.offer.terms.resources.cores_milli = 500;
    assert_int_equal(offer_free(&fixture.offer).cores_milli, -100);
}

TEST(bandwidth_nobody_measured_is_what_the_owner_says)
{
    struct error error = {0};
    struct fixture fixture;
    set_up(&fixture, 1000);
    fixture.offer.terms.resources.bandwidth_kbit = 5000;
    const struct offer_terms terms = offer_terms(&fixture.offer);
    ASSERT_OK(offer_terms_check(&terms, &fixture.machine.probe, 0, &error));
    assert_int_equal(offer_free(&fixture.offer).bandwidth_kbit, 5000);
    fixture.machine.probe.resources.bandwidth_kbit = 4000;
    ASSERT_FAILS(offer_terms_check(&terms, &fixture.machine.probe, 0, &error), ERROR_INVALID);
}

TEST(a_machine_is_free_while_an_open_offer_of_it_has_room)
{
    struct fixture fixture;
    set_up(&fixture, 1000);
    fixture.offer.is_open = true;
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_FREE);
    assert_int_equal(machine_open_free(&fixture.machine).cores_milli, 1000);
    assert_int_equal(machine_open_free(&fixture.machine).ram_bytes, GIB);
    fixture.offer.leased.cores_milli = fixture.machine.leased.cores_milli = 999;
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_FREE);
    fixture.offer.leased.cores_milli = fixture.machine.leased.cores_milli = 1000;
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_BUSY);
    fixture.offer.leased = fixture.machine.leased = (struct resources){.ram_bytes = GIB};
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_BUSY);
}

TEST(what_offers_share_is_free_once)
{
    struct fixture fixture;
    set_up(&fixture, 3000);
    struct offer other = fixture.offer;
    struct offer *both[] = {&fixture.offer, &other};
    fixture.machine.offers = both;
    fixture.machine.offer_count = 2;
    fixture.offer.is_open = other.is_open = true;
    assert_int_equal(machine_open_free(&fixture.machine).cores_milli, 4000);
    fixture.offer.leased.cores_milli = fixture.machine.leased.cores_milli = 3000;
    assert_int_equal(machine_open_free(&fixture.machine).cores_milli, 1000);
    /* A probe found less than is leased. */
    fixture.machine.probe.resources.cores_milli = 2000;
    assert_int_equal(machine_open_free(&fixture.machine).cores_milli, 0);
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_BUSY);
}

TEST(a_machine_that_takes_no_leases_is_not_free_whatever_is_left)
{
    struct fixture fixture;
    set_up(&fixture, 1000);
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_PAUSED); /* not open */
    fixture.offer.is_open = true;
    fixture.machine.is_barred = true;
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_PAUSED);
    assert_int_equal(machine_open_free(&fixture.machine).cores_milli, 0);
    fixture.machine.is_barred = false;
    fixture.machine.yield = MACHINE_YIELD_FROZEN;
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_PAUSED);
    fixture.machine.yield = MACHINE_YIELD_LOW;
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_FREE);
    fixture.machine.state = MACHINE_STATE_UNREACHABLE;
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_UNREACHABLE);
    assert_int_equal(machine_open_free(&fixture.machine).cores_milli, 0);
    fixture.machine.state = MACHINE_STATE_OFFLINE;
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_OFFLINE);
    fixture.machine.state = MACHINE_STATE_ONLINE;
    fixture.machine.offer_count = 0;
    assert_int_equal(machine_availability(&fixture.machine), MACHINE_PAUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_out_of_range_is_refused),
        cmocka_unit_test(only_an_online_machine_with_an_open_offer_of_the_role_takes_leases),
        cmocka_unit_test(what_is_free_is_the_least_that_offer_and_machine_leave),
        cmocka_unit_test(a_machine_is_free_while_an_open_offer_of_it_has_room),
        cmocka_unit_test(what_offers_share_is_free_once),
        cmocka_unit_test(a_machine_that_takes_no_leases_is_not_free_whatever_is_left),
        cmocka_unit_test(bandwidth_nobody_measured_is_what_the_owner_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
