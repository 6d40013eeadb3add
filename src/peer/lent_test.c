#include "base/random.h"
#include "peer/function_share.h"
#include "peer/lent.h"
#include "testing/testing.h"

static const struct lease_limits ceiling = {.cores_milli = 2000,
                                            .ram_bytes = 4096,
                                            .disk_bytes = 1024,
                                            .roles =
                                                1 << LEASE_ROLE_WORKER | 1 << LEASE_ROLE_SERVER};
enum { BOTH = 1 << LEASE_ROLE_WORKER | 1 << LEASE_ROLE_SERVER };

static const struct lent_offer offers[] = {
    {.offer = 7,
     .resources = {.cores_milli = 1000, .ram_bytes = 4096, .disk_bytes = 512},
     .roles = 1 << LEASE_ROLE_WORKER},
    {.offer = 8,
     .resources = {.cores_milli = 2000, .ram_bytes = 4096, .disk_bytes = 1024},
     .roles = BOTH},
};

static struct lent told(void)
{
    struct lent lent;
    lent_init(&lent, &ceiling);
    lent_set_offers(&lent, &(struct offers_message){.offers = offers, .offer_count = 2});
    return lent;
}

static struct lease_document lease(uint64_t offer, int64_t cores_milli)
{
    return (struct lease_document){.lease = 1,
                                   .offer = offer,
                                   .role = LEASE_ROLE_WORKER,
                                   .cores_milli = cores_milli,
                                   .ram_bytes = 100};
}

TEST(a_lease_within_its_offer_fits)
{
    struct error error = {0};
    const struct lent lent = told();
    const struct lease_document document = lease(7, 1000);
    ASSERT_OK(lent_check(&lent, &document, NULL, 0, &error));
}

TEST(a_lease_larger_than_its_offer_is_refused)
{
    struct error error = {0};
    const struct lent lent = told();
    const struct lease_document document = lease(7, 1001);
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
}

TEST(what_the_owner_does_not_permit_is_refused_whatever_the_market_says)
{
    struct error error = {0};
    struct lent lent = told();
    struct lease_document document = lease(7, 1000);
    document.network = TEXT("job");
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "wants the network \"job\""));
    lent.ceiling.network = OFFER_NETWORK_JOB;
    ASSERT_OK(lent_check(&lent, &document, NULL, 0, &error));
    document.network = TEXT("open");
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
    lent.ceiling.network = OFFER_NETWORK_OPEN;
    ASSERT_OK(lent_check(&lent, &document, NULL, 0, &error));
    document.has_wheels = true;
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "souk lend --install wheels"));
    lent.ceiling.install = OFFER_INSTALL_WHEELS;
    ASSERT_OK(lent_check(&lent, &document, NULL, 0, &error));
    document.fetches_packages = true;
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "souk lend --install index"));
    lent.ceiling.install = OFFER_INSTALL_INDEX;
    ASSERT_OK(lent_check(&lent, &document, NULL, 0, &error));
}

TEST(functions_take_plain_training_and_nothing_else)
{
    struct error error = {0};
    struct lent lent = told();
    lent.ceiling.forbids_programs = true;
    struct lease_document document = lease(7, 1000);
    document.runtime = TEXT("native");
    ASSERT_OK(lent_check(&lent, &document, NULL, 0, &error));
    document.sync.verify = 0.5;
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
    document.sync.verify = 0;
    document.runtime = TEXT("command");
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
}

TEST(running_leases_of_the_same_offer_count)
{
    struct error error = {0};
    const struct lent lent = told();
    const struct lent_use running[] = {{7, {.cores_milli = 600, .ram_bytes = 100}}};
    const struct lease_document fits = lease(7, 400), too_much = lease(7, 401);
    ASSERT_OK(lent_check(&lent, &fits, running, 1, &error));
    ASSERT_FAILS(lent_check(&lent, &too_much, running, 1, &error), ERROR_REFUSED);
    assert_string_equal(error.message, "lease 1 asks for more than is left of offer 7");
}

TEST(running_leases_of_all_offers_stay_under_the_ceiling)
{
    struct error error = {0};
    const struct lent lent = told();
    const struct lent_use running[] = {{7, {.cores_milli = 1000, .ram_bytes = 100}},
                                       {8, {.cores_milli = 500, .ram_bytes = 100}}};
    const struct lease_document fits = lease(8, 500), too_much = lease(8, 501);
    ASSERT_OK(lent_check(&lent, &fits, running, 2, &error));
    ASSERT_FAILS(lent_check(&lent, &too_much, running, 2, &error), ERROR_REFUSED);
    assert_string_equal(error.message, "lease 1 asks for more than is lent of this machine");
}

TEST(no_offer_of_the_market_lifts_the_ceiling)
{
    struct error error = {0};
    struct lent lent = told();
    const struct lent_offer large = {
        .offer = 9, .resources = {.cores_milli = 64000, .ram_bytes = 1 << 20}, .roles = BOTH};
    lent_set_offers(&lent, &(struct offers_message){.offers = &large, .offer_count = 1});
    const struct lease_document document = lease(9, 2001);
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
}

TEST(offers_told_anew_replace_the_old_ones)
{
    struct error error = {0};
    struct lent lent = told();
    const struct lease_document document = lease(7, 100);
    lent_set_offers(&lent, &(struct offers_message){.offers = &offers[1], .offer_count = 1});
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
    lent_set_offers(&lent, &(struct offers_message){.offers = offers, .offer_count = 2});
    ASSERT_OK(lent_check(&lent, &document, NULL, 0, &error));
}

TEST(nothing_is_lent_before_the_market_has_told_the_offers)
{
    struct error error = {0};
    struct lent lent;
    const struct lease_document document = lease(7, 100);
    lent_init(&lent, &ceiling);
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
    assert_string_equal(error.message, "lease 1 came before the market said what is lent");
}

TEST(a_role_must_be_of_the_offer_and_of_the_ceiling)
{
    struct error error = {0};
    struct lent lent = told();
    struct lease_document document = lease(7, 100);
    document.role = LEASE_ROLE_SERVER;
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
    document.offer = 8;
    ASSERT_OK(lent_check(&lent, &document, NULL, 0, &error));
    lent.ceiling.roles = 1 << LEASE_ROLE_WORKER;
    ASSERT_FAILS(lent_check(&lent, &document, NULL, 0, &error), ERROR_REFUSED);
}

/* A hundred functions of 1769 MB elsewhere, called from a machine that gives 2 GiB to that. */
static struct lent of_functions_elsewhere(void)
{
    const struct resources all = {
        .cores_milli = 100000, .ram_bytes = INT64_C(176900) << 20, .disk_bytes = INT64_C(1) << 40};
    const struct lent_offer offer = {.offer = 7, .resources = all, .roles = 1 << LEASE_ROLE_WORKER};
    struct lent lent;
    lent_init(&lent, &(struct lease_limits){.cores_milli = all.cores_milli,
                                            .ram_bytes = all.ram_bytes,
                                            .disk_bytes = all.disk_bytes,
                                            .roles = 1 << LEASE_ROLE_WORKER,
                                            .forbids_programs = true,
                                            .process_bytes = INT64_C(2) << 30});
    lent_set_offers(&lent, &(struct offers_message){.offers = &offer, .offer_count = 1});
    return lent;
}

TEST(processes_of_leases_on_functions_elsewhere_do_not_overcommit_their_machine)
{
    struct random random;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        const struct lent lent = of_functions_elsewhere();
        struct lent_use running[100];
        size_t count = 0;
        int64_t taken_bytes = 0;
        random_init(&random, seed);
        for (int i = 0; i < 100; i++) {
            struct error error = {0};
            struct lease_document document = lease(7, 1000);
            document.ram_bytes = (128 + (int64_t)random_below(&random, 1641)) << 20;
            if (lent_check(&lent, &document, running, count, &error) < 0) {
                assert_int_equal(error.code, ERROR_REFUSED);
                assert_non_null(strstr(error.message, "(souk lend --memory)"));
                continue;
            }
            const struct function_share share = function_share(
                &(struct function_share_wish){.ram_bytes = document.ram_bytes,
                                              .cores_milli = document.cores_milli,
                                              .memory_mb = 1769,
                                              .is_elsewhere = true,
                                              .room_bytes = lent.ceiling.process_bytes});
            taken_bytes += share.own_bytes; /* which its sandbox may have */
            running[count++] = lent_use_of(&document);
        }
        if (taken_bytes > lent.ceiling.process_bytes || lent_has_room(&lent, running, count))
            fail_msg("seed %d: %zu leases", (int)seed, count);
    }
}

TEST(room_that_a_lease_leaves_is_another_s)
{
    struct error error = {0};
    const struct lent lent = of_functions_elsewhere();
    struct lease_document document = lease(7, 1000);
    document.ram_bytes = INT64_C(8) << 30; /* its process has a GiB, half of the room */
    const struct lent_use use = lent_use_of(&document), running[] = {use, use};
    assert_true(lent_has_room(&lent, running, 1));
    ASSERT_OK(lent_check(&lent, &document, running, 1, &error));
    assert_false(lent_has_room(&lent, running, 2));
    ASSERT_FAILS(lent_check(&lent, &document, running, 2, &error), ERROR_REFUSED);
    assert_string_equal(error.message,
                        "the process of lease 1 needs 1.0 GiB of this machine; 0 B are left of the "
                        "2.0 GiB that its owner gives those of all leases (souk lend --memory)");
    const struct lent here = told();
    assert_true(lent_has_room(&here, running, 2)); /* all that is lent is this machine's */
}

static struct lent_use with_gpus(uint32_t gpus, int64_t milli)
{
    return (struct lent_use){.resources = {.gpus_milli = milli}, .gpus = gpus};
}

TEST(a_lease_gets_gpus_that_no_other_has)
{
    struct error error = {0};
    struct lent lent = told();
    uint32_t gpus = 0;
    lent.ceiling.gpus = 1 << 0 | 1 << 2 | 1 << 3;
    assert_int_equal(lent_ceiling(&lent).gpus_milli, 3000);
    const struct lent_use running[] = {with_gpus(1 << 2, 1000), with_gpus(0, 0)};
    ASSERT_OK(lent_choose_gpus(&lent, 0, running, 2, &gpus, &error));
    assert_int_equal(gpus, 0);
    ASSERT_OK(lent_choose_gpus(&lent, 2000, running, 2, &gpus, &error));
    assert_int_equal(gpus, 1 << 0 | 1 << 3);
    ASSERT_FAILS(lent_choose_gpus(&lent, 3000, running, 2, &gpus, &error), ERROR_REFUSED);
    ASSERT_FAILS(lent_choose_gpus(&lent, 1500, NULL, 0, &gpus, &error), ERROR_REFUSED);
}

TEST(parts_of_a_gpu_go_together)
{
    struct error error = {0};
    struct lent lent = told();
    uint32_t gpus = 0;
    lent.ceiling.gpus = 1 << 0 | 1 << 1;
    const struct lent_use running[] = {with_gpus(1 << 1, 600), with_gpus(1 << 0, 0)};
    ASSERT_OK(lent_choose_gpus(&lent, 400, running, 1, &gpus, &error));
    assert_int_equal(gpus, 1 << 1);
    ASSERT_OK(lent_choose_gpus(&lent, 500, running, 1, &gpus, &error));
    assert_int_equal(gpus, 1 << 0);
    ASSERT_OK(lent_choose_gpus(&lent, 1000, running, 1, &gpus, &error));
    assert_int_equal(gpus, 1 << 0);
    const struct lent_use full[] = {with_gpus(1 << 1, 600), with_gpus(1 << 0, 1000)};
    ASSERT_FAILS(lent_choose_gpus(&lent, 500, full, 2, &gpus, &error), ERROR_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_within_its_offer_fits),
        cmocka_unit_test(a_lease_larger_than_its_offer_is_refused),
        cmocka_unit_test(what_the_owner_does_not_permit_is_refused_whatever_the_market_says),
        cmocka_unit_test(functions_take_plain_training_and_nothing_else),
        cmocka_unit_test(running_leases_of_the_same_offer_count),
        cmocka_unit_test(running_leases_of_all_offers_stay_under_the_ceiling),
        cmocka_unit_test(no_offer_of_the_market_lifts_the_ceiling),
        cmocka_unit_test(offers_told_anew_replace_the_old_ones),
        cmocka_unit_test(nothing_is_lent_before_the_market_has_told_the_offers),
        cmocka_unit_test(a_role_must_be_of_the_offer_and_of_the_ceiling),
        cmocka_unit_test(
            processes_of_leases_on_functions_elsewhere_do_not_overcommit_their_machine),
        cmocka_unit_test(room_that_a_lease_leaves_is_another_s),
        cmocka_unit_test(a_lease_gets_gpus_that_no_other_has),
        cmocka_unit_test(parts_of_a_gpu_go_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
