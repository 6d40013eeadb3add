#include "market/machine.h"
#include "testing/testing.h"

#define GIB (INT64_C(1) << 30)

static struct machine machine_of(int64_t cores_milli)
{
    return (struct machine){
        .id = 9,
        .name = "heron",
        .state = MACHINE_STATE_ONLINE,
        .has_offer = true,
        .probe = {.resources = {.cores_milli = 4000, .ram_bytes = 8 * GIB},
                  .speed_weight_milli = 1000,
                  .cpu_model = "test",
                  .labels = "avx2,arm64"},
        .offer = {.resources = {.cores_milli = cores_milli, .ram_bytes = GIB},
                  .roles = MACHINE_ROLE_WORKER},
    };
}

TEST(an_offer_is_at_most_what_the_probe_found)
{
    struct error error = {0};
    struct machine machine = machine_of(4000);
    ASSERT_OK(probe_check(&machine.probe, &error));
    ASSERT_OK(offer_check(&machine.offer, &machine.probe, &error));
    machine.offer.resources.cores_milli = 4001;
    ASSERT_FAILS(offer_check(&machine.offer, &machine.probe, &error), ERROR_INVALID);
    machine.offer.resources.cores_milli = 0;
    ASSERT_FAILS(offer_check(&machine.offer, &machine.probe, &error), ERROR_INVALID);
    machine.offer.resources.cores_milli = 1;
    machine.offer.roles = 4;
    ASSERT_FAILS(offer_check(&machine.offer, &machine.probe, &error), ERROR_INVALID);
    machine.offer.roles = MACHINE_ROLE_ALL;
    machine.offer.minimum.ram_micro = -1;
    ASSERT_FAILS(offer_check(&machine.offer, &machine.probe, &error), ERROR_INVALID);
}

TEST(a_probe_out_of_range_is_refused)
{
    struct error error = {0};
    struct machine machine = machine_of(1000);
    machine.probe.speed_weight_milli = 20001;
    ASSERT_FAILS(probe_check(&machine.probe, &error), ERROR_INVALID);
    machine = machine_of(1000);
    snprintf(machine.probe.labels, sizeof(machine.probe.labels), "a,,b");
    ASSERT_FAILS(probe_check(&machine.probe, &error), ERROR_INVALID);
    machine = machine_of(1000);
    memset(machine.probe.cpu_model, 'x', sizeof(machine.probe.cpu_model));
    ASSERT_FAILS(probe_check(&machine.probe, &error), ERROR_INVALID);
    machine = machine_of(1000);
    machine.probe.resources.ram_bytes = -1;
    ASSERT_FAILS(probe_check(&machine.probe, &error), ERROR_INVALID);
}

TEST(only_an_online_unpaused_machine_with_the_role_takes_leases)
{
    struct machine machine = machine_of(1000);
    assert_true(machine_takes_leases(&machine, MACHINE_ROLE_WORKER));
    assert_false(machine_takes_leases(&machine, MACHINE_ROLE_SERVER));
    machine.offer.is_paused = true;
    assert_false(machine_takes_leases(&machine, MACHINE_ROLE_WORKER));
    machine.offer.is_paused = false;
    machine.state = MACHINE_STATE_UNREACHABLE;
    assert_false(machine_takes_leases(&machine, MACHINE_ROLE_WORKER));
    assert_string_equal(machine_state_name(machine.state), "unreachable");
}

TEST(free_is_offered_less_leased_and_negative_when_the_offer_shrank)
{
    struct machine machine = machine_of(1000);
    machine.leased = (struct resources){.cores_milli = 600};
    assert_int_equal(machine_free(&machine).cores_milli, 400);
    machine.has_offer = false;
    assert_int_equal(machine_free(&machine).cores_milli, -600);
}

TEST(a_minimum_is_compared_over_the_whole_lease)
{
    struct machine machine = machine_of(1000);
    const struct price_units units = {.core_milli = 1000, .ram_milli = 1000};
    const struct price_vector price = {.core_micro = 100, .ram_micro = 10};
    machine.offer.minimum = (struct price_vector){.core_micro = 90, .ram_micro = 20};
    assert_true(offer_accepts_price(&machine.offer, units, price));
    machine.offer.minimum.core_micro = 91;
    assert_false(offer_accepts_price(&machine.offer, units, price));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_is_at_most_what_the_probe_found),
        cmocka_unit_test(a_probe_out_of_range_is_refused),
        cmocka_unit_test(only_an_online_unpaused_machine_with_the_role_takes_leases),
        cmocka_unit_test(free_is_offered_less_leased_and_negative_when_the_offer_shrank),
        cmocka_unit_test(a_minimum_is_compared_over_the_whole_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
