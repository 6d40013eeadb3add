/*
 * Placement.
 * covers match.c, match_cost.c, match_reserve.c, wish.c
 */
#include "base/random.h"
#include "market/testing_match_internal.h"

TEST(workers_go_one_to_a_machine_and_the_server_to_the_dedicated_one)
{
    static struct fixture fixture;
    set_up(&fixture, 2);
    add_machine(&fixture, "owl", 500, MACHINE_ROLE_ALL);
    add_machine(&fixture, "tiny", 200, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "market", 1000, MACHINE_ROLE_SERVER);
    add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    const struct match_part *parts = fixture.placement.parts;
    assert_int_equal(fixture.placement.part_count, 3);
    assert_string_equal(parts[0].machine->name, "market");
    assert_int_equal(parts[0].role, LEASE_ROLE_SERVER);
    assert_string_equal(parts[1].machine->name, "owl");
    assert_int_equal(parts[1].rank, 0);
    assert_int_equal(parts[1].resources.cores_milli, 250);
    assert_string_equal(parts[2].machine->name, "heron");
    assert_int_equal(parts[2].rank, 1);
    assert_int_equal(fixture.placement.quote_micro,
                     parts[0].quote_micro + parts[1].quote_micro + parts[2].quote_micro);
    tear_down(&fixture);
}

TEST(the_faster_come_first_and_equals_take_turns)
{
    static struct fixture fixture;
    set_up(&fixture, 2);
    fixture.request.server = (struct resources){0};
    struct machine *a = add_machine(&fixture, "a", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "b", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "c", 500, MACHINE_ROLE_WORKER)->probe.speed_weight_milli = 1600;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_equal(fixture.placement.parts[0].machine->name, "c");
    assert_string_equal(fixture.placement.parts[1].machine->name, "a");
    a->offers[0]->last_lease = 300;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_equal(fixture.placement.parts[1].machine->name, "b");
    tear_down(&fixture);
}

TEST(at_least_takes_the_biggest_machines_first)
{
    static struct fixture fixture;
    set_up(&fixture, 2);
    fixture.request.takes_more_cores = true;
    fixture.request.server = (struct resources){0};
    add_machine(&fixture, "owl", 500, MACHINE_ROLE_ALL);
    add_machine(&fixture, "wren", 250, MACHINE_ROLE_WORKER)->probe.speed_weight_milli = 4000;
    add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_equal(fixture.placement.parts[0].machine->name, "heron");
    assert_string_equal(fixture.placement.parts[1].machine->name, "owl");
    tear_down(&fixture);
}

TEST(an_elastic_job_takes_what_room_and_budget_allow)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.num_nodes_max = 4;
    fixture.request.server = (struct resources){0};
    add_machine(&fixture, "a", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "b", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "c", 500, MACHINE_ROLE_WORKER);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_int_equal(fixture.placement.part_count, 3);
    fixture.wish.budget_micro = 11000;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_int_equal(fixture.placement.part_count, 2);
    assert_int_equal(fixture.placement.quote_micro, 2 * 5500);
    fixture.wish.budget_micro = 5499;
    assert_int_equal(place(&fixture), MATCH_OVER_BUDGET);
    tear_down(&fixture);
}

TEST(workers_are_within_the_longest_rtt_of_each_other)
{
    static struct fixture fixture;
    set_up(&fixture, 2);
    fixture.request.server = (struct resources){0};
    fixture.request.wishes.max_rtt_us = 20000;
    add_machine(&fixture, "unknown", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "far", 500, MACHINE_ROLE_WORKER)->probe.rtt_us = 15000;
    add_machine(&fixture, "mid", 500, MACHINE_ROLE_WORKER)->probe.rtt_us = 9000;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    add_machine(&fixture, "near", 500, MACHINE_ROLE_WORKER)->probe.rtt_us = 10000;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    fixture.machines[3].probe.rtt_us = 11000;
    assert_int_equal(place(&fixture), MATCH_PLACED); /* one is beyond the half, both within */
    fixture.machines[3].probe.rtt_us = 11001;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    tear_down(&fixture);
}

TEST(a_lender_above_the_price_serves_at_its_minimum_when_the_maximum_allows)
{
    static struct fixture fixture;
    set_up(&fixture, 2);
    fixture.request.server = (struct resources){0};
    add_machine(&fixture, "cheap", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "dearest", 500, MACHINE_ROLE_WORKER)->offers[0]->terms.minimum =
        (struct price_vector){.core_micro = 90000};
    add_machine(&fixture, "dear", 500, MACHINE_ROLE_WORKER)->offers[0]->terms.minimum =
        (struct price_vector){.core_micro = 60000};
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    fixture.request.max_hourly_micro = 5500 + 15000;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_equal(fixture.placement.parts[0].machine->name, "cheap");
    assert_int_equal(fixture.placement.parts[0].quote_micro, 5500);
    assert_string_equal(fixture.placement.parts[1].machine->name, "dear");
    assert_int_equal(fixture.placement.parts[1].quote_micro, 15000);
    const struct price_lock lock = match_part_lock(&fixture.placement.parts[1], &fixture.wish);
    assert_int_equal(lock.slots[0].core_micro, 60000);
    fixture.request.max_hourly_micro--;
    assert_int_equal(place(&fixture), MATCH_OVER_HOURLY);
    tear_down(&fixture);
}

TEST(a_busy_lender_who_is_content_is_waited_for_before_a_dearer_one)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.server = (struct resources){0};
    struct machine *cheap = add_machine(&fixture, "cheap", 500, MACHINE_ROLE_WORKER);
    add_machine(&fixture, "dear", 500, MACHINE_ROLE_WORKER)->offers[0]->terms.minimum =
        (struct price_vector){.core_micro = 60000};
    fixture.request.max_hourly_micro = 15000;
    cheap->leased = cheap->offers[0]->leased = cheap->probe.resources;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    /* It could never serve it: who asks more is the only one left. */
    cheap->offers[0]->terms.roles = MACHINE_ROLE_SERVER;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_string_equal(fixture.placement.parts[0].machine->name, "dear");
    tear_down(&fixture);
}

TEST(every_wish_is_kept)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.server = (struct resources){0};
    fixture.wish.now_ms = fixture.wish.latest_start_ms = 1000000;
    struct machine *machine = add_machine(&fixture, "a", 500, MACHINE_ROLE_WORKER);
    struct offer_kept_terms *terms = &machine->offers[0]->terms;
    struct offer_shared *shared = &fixture.shared[0];
    struct job_wishes *wishes = &fixture.request.wishes;
    machine->owner = 9;
    fixture.request.account = 7;
    terms->resources = machine->probe.resources = (struct resources){.cores_milli = 8000,
                                                                     .ram_bytes = 8 * GIB,
                                                                     .gpus_milli = 1000,
                                                                     .disk_bytes = 9 * GIB,
                                                                     .bandwidth_kbit = 5000};
    shared->gpu_model = TEXT("T4");
    terms->gpu_ram_bytes = 16 * GIB;
    shared->labels = TEXT("python3-torch,cuda-12");
    terms->network = OFFER_NETWORK_JOB;
    terms->max_lease_ms = 3600000;
    fixture.request.worker = terms->resources;
    *wishes = (struct job_wishes){.gpu_model = "T4",
                                  .gpu_ram_bytes = 16 * GIB,
                                  .labels = "cuda-12",
                                  .network = OFFER_NETWORK_JOB,
                                  .min_speed_milli = 1000};
    assert_int_equal(place(&fixture), MATCH_PLACED);
#define REFUSES(field, value)                                                                      \
    do {                                                                                           \
        const __typeof__(field) kept = (field);                                                    \
        (field) = (value);                                                                         \
        assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);                                     \
        (field) = kept;                                                                            \
        assert_int_equal(place(&fixture), MATCH_PLACED);                                           \
    } while (0)
    REFUSES(shared->gpu_model, TEXT("V100"));
    REFUSES(terms->gpu_ram_bytes, 15 * GIB);
    REFUSES(shared->labels, TEXT("python3-torch"));
    REFUSES(terms->network, OFFER_NETWORK_NONE);
    REFUSES(terms->max_lease_ms, 3599999);
    REFUSES(terms->resources.disk_bytes, 9 * GIB - 1);
    REFUSES(terms->resources.bandwidth_kbit, 4999);
    REFUSES(terms->resources.gpus_milli, 999);
    REFUSES(terms->resources.ram_bytes, 8 * GIB - 1);
    REFUSES(terms->resources.cores_milli, 7999);
    REFUSES(machine->probe.speed_weight_milli, 999);
    REFUSES(machine->probe.forbids_job_network, true);
    REFUSES(wishes->install, OFFER_INSTALL_WHEELS);
    terms->install = OFFER_INSTALL_INDEX;
    REFUSES(wishes->install, OFFER_INSTALL_INDEX); /* nor of that */
    wishes->install = OFFER_INSTALL_WHEELS;
    REFUSES(machine->probe.forbids_install, true);
    machine->probe.allows_index = true;
    wishes->install = OFFER_INSTALL_INDEX;
    REFUSES(wishes->has_image, true);
    terms->network = OFFER_NETWORK_OPEN;
    REFUSES(wishes->network, OFFER_NETWORK_OPEN); /* its daemon says nothing of it */
    machine->probe.allows_open_network = machine->probe.allows_images = true;
    wishes->network = OFFER_NETWORK_OPEN;
    wishes->has_image = true;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    REFUSES(machine->probe.allows_open_network, false);
    REFUSES(machine->probe.allows_images, false);
    wishes->has_program = true;
    REFUSES(machine->probe.forbids_programs, true);
    wishes->has_program = false; /* plain training goes anywhere */
    machine->probe.forbids_programs = true;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    REFUSES(machine->probe.allows_index, false);
    REFUSES(machine->offers[0]->is_open, false);
    REFUSES(machine->state, MACHINE_STATE_UNREACHABLE);
    REFUSES(terms->audience, OFFER_AUDIENCE_ACCOUNTS);
    struct offer_account listed = {7};
    terms->audience = OFFER_AUDIENCE_ACCOUNTS;
    shared->accounts = (struct json_array){&listed, 1};
    assert_int_equal(place(&fixture), MATCH_PLACED);
    REFUSES(listed.account, 13); /* the same bit of the book */
    terms->audience = OFFER_AUDIENCE_GROUP;
    terms->group = 3;
    fixture.wish.group = 3;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    REFUSES(fixture.wish.group, 9);
    struct span span = {0, 1000000 + 3600000};
    shared->spans = (struct json_array){&span, 1};
    assert_int_equal(place(&fixture), MATCH_PLACED);
    REFUSES(span.close_ms, 1000000 + 3599999);
#undef REFUSES
    tear_down(&fixture);
}

/* ---- Against a walk over all offers ---------------------------------------------------------- */

static void random_machine(struct fixture *fixture, struct random *random)
{
    static const char *const labels[] = {"", "a", "b", "a,b", "b,c", "rare"};
    struct machine *machine = add_machine(fixture, "m", 0, 1 + random_below(random, 3));
    struct offer *offer = machine->offers[0];
    offer->terms.resources = (struct resources){
        .cores_milli = (int64_t)random_below(random, 8) * 500,
        .ram_bytes = (int64_t)random_below(random, 8) * GIB / 2,
        .gpus_milli = random_below(random, 4) ? 0 : 1000,
    };
    machine->probe.resources = offer->terms.resources;
    machine->probe.speed_weight_milli = 50 + (int64_t)random_below(random, 3000);
    fixture->shared[fixture->count - 1].labels = text_of(labels[random_below(random, 6)]);
    offer->terms.minimum.core_micro =
        random_below(random, 3) ? 0 : (int64_t)random_below(random, 40000);
    offer->terms.max_lease_ms =
        random_below(random, 3) ? 0 : 3000000 + (int64_t)random_below(random, 1000000);
    offer->last_lease = random_below(random, 4) * 1000;
    offer->leased.cores_milli =
        offer->terms.resources.cores_milli * (int64_t)random_below(random, 3) / 2;
    machine->leased = offer->leased;
}

static void random_wishes(struct fixture *fixture, struct random *random)
{
    static const char *const labels[] = {"", "", "", "a", "b", "a,b", "never"};
    struct job_request *request = &fixture->request;
    request->num_nodes = 1 + (int64_t)random_below(random, 3);
    request->num_nodes_max = 0;
    request->server = (struct resources){0};
    request->worker = (struct resources){
        .cores_milli = 1 + (int64_t)random_below(random, 2000),
        .ram_bytes = (int64_t)random_below(random, 3) * GIB,
        .gpus_milli = random_below(random, 5) ? 0 : 1000,
    };
    snprintf(request->wishes.labels, sizeof(request->wishes.labels), "%s",
             labels[random_below(random, 7)]);
    request->wishes.min_speed_milli =
        random_below(random, 2) ? 0 : (int64_t)random_below(random, 2500);
    fixture->wish.budget_micro = PRICE_MICRO_MAX;
}

static bool is_better(const struct listing *listing, const struct offer *left,
                      const struct offer *right)
{
    const int64_t a = listing_quality(listing, left), b = listing_quality(listing, right);
    if (a != b)
        return a > b;
    const uint64_t c = left->last_lease > left->id ? left->last_lease : left->id;
    const uint64_t d = right->last_lease > right->id ? right->last_lease : right->id;
    return c != d ? c < d : left->id < right->id;
}

/* The best offer that is not among the first `count` of the placement; NULL: none. */
static const struct offer *oracle_next(const struct fixture *fixture, size_t count)
{
    const struct offer *best = NULL;
    for (size_t i = 0; i < fixture->count; i++) {
        const struct offer *offer = &fixture->offers[i];
        bool is_used = false;
        for (size_t k = 0; k < count; k++)
            is_used = is_used || fixture->placement.parts[k].offer == offer;
        if (!is_used && wish_suits(&fixture->wish, MACHINE_ROLE_WORKER, offer) &&
            wish_passes(&fixture->wish, MACHINE_ROLE_WORKER, WISH_TEST_PRICE, offer) &&
            wish_passes(&fixture->wish, MACHINE_ROLE_WORKER, WISH_TEST_ROOM, offer) &&
            (!best || is_better(&fixture->listing, offer, best)))
            best = offer;
    }
    return best;
}

TEST(placements_are_those_of_a_walk_over_all_offers)
{
    struct random random;
    random_init(&random, 11);
    int placed = 0, few = 0;
    static struct fixture fixture;
    set_up(&fixture, 1);
    for (int i = 0; i < MACHINE_MAX; i++)
        random_machine(&fixture, &random);
    for (int round = 0; round < 2000; round++) {
        random_wishes(&fixture, &random);
        if (place(&fixture) == MATCH_PLACED) {
            placed++;
            assert_int_equal(fixture.placement.part_count, fixture.request.num_nodes);
            for (size_t i = 0; i < fixture.placement.part_count; i++)
                assert_ptr_equal(fixture.placement.parts[i].offer, oracle_next(&fixture, i));
        } else {
            few++;
            size_t count = 0;
            struct match_part parts[4];
            fixture.placement.parts = parts;
            for (const struct offer *offer; (offer = oracle_next(&fixture, count)) && count < 3;)
                parts[count++].offer = &fixture.offers[offer - fixture.offers];
            assert_true(count < (size_t)fixture.request.num_nodes);
        }
    }
    assert_true(placed > 200 && few > 50);
    tear_down(&fixture);
}

TEST(at_least_takes_all_free_cores)
{
    static struct fixture fixture;
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
    static struct fixture fixture;
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
    static struct fixture fixture;
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
    static struct fixture fixture;
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
    static struct fixture fixture;
    set_up(&fixture, 2);
    add_machine(&fixture, "small", 600, MACHINE_ROLE_ALL);
    struct machine *large = add_machine(&fixture, "large", 750, MACHINE_ROLE_ALL);
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_ptr_equal(fixture.placement.parts[0].machine, large);
    large->offers[0]->terms.resources.cores_milli = 749;
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    tear_down(&fixture);
}

/* Whichever offer the worker was first given: the server fits only one of the two. */
TEST(the_worker_makes_room_for_the_server_at_another_offer_of_its_machine)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    struct machine *machine = add_machine(&fixture, "both", 500, MACHINE_ROLE_ALL);
    struct offer *second = &fixture.offers[1];
    *second = *machine->offers[0];
    second->id++;
    second->terms.roles = MACHINE_ROLE_WORKER;
    second->terms.resources.cores_milli = 250;
    fixture.offered[1] = second;
    machine->offer_count = 2;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_ptr_equal(fixture.placement.parts[0].offer, machine->offers[0]);
    assert_ptr_equal(fixture.placement.parts[1].offer, second);
    machine->probe.resources.cores_milli = 749; /* of the machine, not of its offers */
    assert_int_equal(place(&fixture), MATCH_FEW_MACHINES);
    tear_down(&fixture);
}

TEST(a_machine_that_does_not_offer_the_role_never_gets_a_server)
{
    static struct fixture fixture;
    set_up(&fixture, 1);
    add_machine(&fixture, "heron", 4000, MACHINE_ROLE_WORKER);
    assert_int_equal(place(&fixture), MATCH_NO_SERVER);
    assert_string_equal(explain(&fixture, MATCH_NO_SERVER),
                        "no machine here takes a parameter server");
    tear_down(&fixture);
}

TEST(a_lender_below_its_minimum_is_left_out)
{
    static struct fixture fixture;
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
    static struct fixture fixture;
    set_up(&fixture, 1);
    fixture.request.server = (struct resources){0};
    fixture.request.takes_more_cores = true;
    struct machine *heron = add_machine(&fixture, "heron", 1000, MACHINE_ROLE_WORKER);
    heron->offers[0]->terms.minimum.core_micro = 21000;
    assert_int_equal(place(&fixture), MATCH_PLACED);
    assert_int_equal(fixture.placement.parts[0].resources.cores_milli, 250);
    tear_down(&fixture);
}

TEST(the_wish_is_quoted_at_reference_speed)
{
    static struct fixture fixture;
    set_up(&fixture, 3);
    const struct match_quote quote = match_quote_wish(&fixture.wish);
    assert_int_equal(quote.total_micro, 3 * 5500 + 10250);
    assert_int_equal(quote.hourly_micro, quote.total_micro);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_go_one_to_a_machine_and_the_server_to_the_dedicated_one),
        cmocka_unit_test(the_faster_come_first_and_equals_take_turns),
        cmocka_unit_test(at_least_takes_the_biggest_machines_first),
        cmocka_unit_test(an_elastic_job_takes_what_room_and_budget_allow),
        cmocka_unit_test(workers_are_within_the_longest_rtt_of_each_other),
        cmocka_unit_test(a_lender_above_the_price_serves_at_its_minimum_when_the_maximum_allows),
        cmocka_unit_test(a_busy_lender_who_is_content_is_waited_for_before_a_dearer_one),
        cmocka_unit_test(every_wish_is_kept),
        cmocka_unit_test(placements_are_those_of_a_walk_over_all_offers),
        cmocka_unit_test(at_least_takes_all_free_cores),
        cmocka_unit_test(a_surplus_that_passes_the_budget_is_scaled_down_to_it),
        cmocka_unit_test(cheaper_machines_are_tried_when_the_biggest_pass_the_budget),
        cmocka_unit_test(the_server_spares_machines_the_workers_need),
        cmocka_unit_test(server_and_worker_share_a_machine_with_room_for_both_and_only_then),
        cmocka_unit_test(the_worker_makes_room_for_the_server_at_another_offer_of_its_machine),
        cmocka_unit_test(a_machine_that_does_not_offer_the_role_never_gets_a_server),
        cmocka_unit_test(a_lender_below_its_minimum_is_left_out),
        cmocka_unit_test(a_lender_whose_minimum_only_the_least_cores_reach_lends_only_those),
        cmocka_unit_test(the_wish_is_quoted_at_reference_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
