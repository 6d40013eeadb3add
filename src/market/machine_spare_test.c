#include "market/lease.h"
#include "testing/testing.h"

/* Two offers that overlap on a machine of four cores. */
struct place {
    struct machine machine;
    struct offer offers[2];
    struct lease leases[3];
};

static void place_init(struct place *place)
{
    *place = (struct place){
        .machine = {.probe = {.resources = {.cores_milli = 4000}}},
        .offers = {{.id = 1, .terms = {.resources = {.cores_milli = 4000}}},
                   {.id = 2, .terms = {.resources = {.cores_milli = 2000}}}},
        .leases = {{.offer = 1, .resources = {.cores_milli = 1000}},
                   {.offer = 2, .resources = {.cores_milli = 1000}},
                   {.offer = 1, .resources = {.cores_milli = 1000}}},
    };
    for (int i = 0; i < 2; i++)
        place->offers[i].machine = &place->machine;
    for (int i = 0; i < 3; i++)
        machine_add_spare(&place->machine, &place->leases[i]);
}

static const struct lease *in_way(const struct place *place, int offer, int64_t cores_milli)
{
    return machine_spare_in_way(&place->machine, &place->offers[offer],
                                (struct resources){.cores_milli = cores_milli});
}

TEST(spare_time_leaves_what_is_free_to_who_pays_as_it_is)
{
    struct place place;
    place_init(&place);
    assert_int_equal(machine_spare_count(&place.machine), 3);
    assert_int_equal(machine_free(&place.machine).cores_milli, 4000);
    assert_int_equal(machine_spare_free(&place.machine).cores_milli, 1000);
    assert_int_equal(offer_spare_free(&place.offers[0]).cores_milli, 1000);
    machine_remove_spare(&place.machine, &place.leases[0]);
    assert_int_equal(machine_spare_free(&place.machine).cores_milli, 2000);
    assert_int_equal(offer_spare_free(&place.offers[1]).cores_milli, 1000);
    machine_free_spare(&place.machine);
    assert_int_equal(machine_spare_count(&place.machine), 0);
}

TEST(what_fits_beside_it_has_nothing_in_its_way)
{
    struct place place;
    place_init(&place);
    assert_null(in_way(&place, 0, 1000));
    assert_null(in_way(&place, 1, 1000));
    machine_free_spare(&place.machine);
}

TEST(the_newest_is_in_the_way_of_the_machine_and_one_of_the_same_offer_of_the_offer)
{
    struct place place;
    place_init(&place);
    assert_ptr_equal(in_way(&place, 0, 2000), &place.leases[2]);
    /* With one gone the machine has room, the smaller offer does not. */
    machine_remove_spare(&place.machine, &place.leases[2]);
    assert_ptr_equal(in_way(&place, 1, 2000), &place.leases[1]);
    machine_remove_spare(&place.machine, &place.leases[1]);
    assert_null(in_way(&place, 1, 2000));
    machine_free_spare(&place.machine);
}

TEST(one_that_has_nothing_of_what_lacks_is_not_in_the_way)
{
    struct place place;
    place_init(&place);
    place.machine.probe.resources.gpus_milli = 1000;
    place.offers[0].terms.resources.gpus_milli = 1000;
    struct lease gpu = {.offer = 1, .resources = {.gpus_milli = 1000}};
    struct lease newest = {.offer = 1, .resources = {.cores_milli = 500}};
    machine_add_spare(&place.machine, &gpu);
    machine_add_spare(&place.machine, &newest);
    const struct resources wanted = {.cores_milli = 500, .gpus_milli = 1000};
    assert_ptr_equal(machine_spare_in_way(&place.machine, &place.offers[0], wanted), &gpu);
    machine_remove_spare(&place.machine, &gpu);
    assert_null(machine_spare_in_way(&place.machine, &place.offers[0], wanted));
    machine_free_spare(&place.machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spare_time_leaves_what_is_free_to_who_pays_as_it_is),
        cmocka_unit_test(what_fits_beside_it_has_nothing_in_its_way),
        cmocka_unit_test(
            the_newest_is_in_the_way_of_the_machine_and_one_of_the_same_offer_of_the_offer),
        cmocka_unit_test(one_that_has_nothing_of_what_lacks_is_not_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
