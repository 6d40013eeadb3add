/*
 * Who is found in the books of offers and of waiting jobs, and who need not be looked at.
 * covers listing.c, waiting.c, level.h
 */
#include "market/level.h"
#include "market/offer_shared.h"
#include "market/waiting.h"
#include "testing/testing.h"

#define GIB (INT64_C(1) << 30)

enum { MACHINES = 2000, SOME = 64 }; /* so few are looked at when the root alone says no */

struct fixture {
    struct machine machines[MACHINES];
    struct offer offers[MACHINES];
    struct offer_shared shared; /* by all */
    struct listing listing;
    struct waiting_list waiting;
    struct book_search search;
    struct job_request request;
    struct match_wish wish;
};

/* All alike. */
static void set_up(struct fixture *fixture)
{
    *fixture = (struct fixture){
        .request = {.num_nodes = 1,
                    .worker = {.cores_milli = 1000, .ram_bytes = GIB},
                    .max_run_ms = 3600000},
        .wish = {.lock = price_lock_flat(price_cold_start())},
    };
    fixture->wish.request = &fixture->request;
    listing_init(&fixture->listing);
    waiting_init(&fixture->waiting);
    for (size_t i = 0; i < MACHINES; i++) {
        struct machine *machine = &fixture->machines[i];
        *machine = (struct machine){
            .id = 1 + i,
            .state = MACHINE_STATE_ONLINE,
            .probe = {.resources = {.cores_milli = 4000, .ram_bytes = 8 * GIB},
                      .speed_weight_milli = 1000,
                      .rtt_us = 20000},
        };
        fixture->offers[i] = (struct offer){.id = 1 + MACHINES + i,
                                            .machine = machine,
                                            .shared = &fixture->shared,
                                            .is_open = true,
                                            .terms = {.resources = machine->probe.resources,
                                                      .roles = MACHINE_ROLE_WORKER,
                                                      .max_lease_ms = 7200000}};
        listing_update(&fixture->listing, &fixture->offers[i], 1);
    }
}

static void tear_down(struct fixture *fixture)
{
    book_search_done(&fixture->search);
    waiting_done(&fixture->waiting);
    listing_done(&fixture->listing);
}

static const struct offer *find(struct fixture *fixture)
{
    const struct book_wish wish =
        listing_wish(&fixture->listing, &fixture->wish, MACHINE_ROLE_WORKER, LISTING_FREE, false);
    book_search_start(&fixture->search, fixture->listing.book, &wish,
                      (struct book_sort){.by = BOOK_BY_SCORE});
    return book_search_next(&fixture->search);
}

TEST(a_wish_for_a_little_more_than_all_have_looks_at_none_of_them)
{
    static struct fixture fixture;
    set_up(&fixture);
    const struct job_request enough = {
        .num_nodes = 2,
        .worker = {.cores_milli = 4000, .ram_bytes = 8 * GIB},
        .wishes = {.min_speed_milli = 1000, .min_reliability_milli = 500, .max_rtt_us = 20000},
        .max_run_ms = 7200000};
    fixture.request = enough;
    assert_non_null(find(&fixture));
#define NOBODY_HAS(change)                                                                         \
    do {                                                                                           \
        fixture.request = enough;                                                                  \
        fixture.request.change;                                                                    \
        assert_null(find(&fixture));                                                               \
        assert_true(fixture.search.looked_at <= SOME);                                             \
    } while (0)
    NOBODY_HAS(worker.cores_milli = 4001);
    NOBODY_HAS(worker.ram_bytes = 8 * GIB + 1);
    NOBODY_HAS(worker.gpus_milli = 1);
    NOBODY_HAS(wishes.min_speed_milli = 1001);
    NOBODY_HAS(wishes.min_reliability_milli = 501);
    NOBODY_HAS(max_run_ms = 7200001);
    NOBODY_HAS(wishes.max_rtt_us = 19999);
#undef NOBODY_HAS
    tear_down(&fixture);
}

TEST(one_that_has_more_is_found_among_those_that_have_not)
{
    static struct fixture fixture;
    set_up(&fixture);
    struct offer *larger = &fixture.offers[MACHINES / 2];
    larger->machine->probe.resources.cores_milli = larger->terms.resources.cores_milli = 4010;
    listing_update(&fixture.listing, larger, 1);
    fixture.request.worker.cores_milli = 4005;
    const struct offer *found = find(&fixture);
    while (found && found != larger)
        found = book_search_next(&fixture.search);
    assert_ptr_equal(found, larger);
    tear_down(&fixture);
}

TEST(shares_from_eight_tenths_on_have_a_level_each)
{
    assert_int_equal(level_of_share(0), 0);
    for (int64_t milli = 1; milli <= 1000; milli++) {
        assert_true(level_of_share(milli) >= level_of_share(milli - 1));
        assert_true(milli <= 800 || level_of_share(milli) > level_of_share(milli - 1));
    }
}

static size_t count_found(struct fixture *fixture, const struct book_wish *wish)
{
    size_t count = 0;
    book_search_start(&fixture->search, fixture->waiting.book, wish,
                      (struct book_sort){.by = BOOK_BY_SCORE});
    while (book_search_next(&fixture->search))
        count++;
    return count;
}

TEST(jobs_that_are_stuck_are_asked_for_apart)
{
    static struct fixture fixture;
    set_up(&fixture);
    static struct job jobs[MACHINES];
    for (size_t i = 0; i < MACHINES; i++) {
        jobs[i] = (struct job){.id = i + 1, .request = fixture.request};
        jobs[i].request.server.cores_milli = i % 2 ? 500 : 0;
        waiting_add(&fixture.waiting, &fixture.listing, &jobs[i]);
    }
    const struct offer *offer = &fixture.offers[0];
    const struct book_wish hopeful = waiting_wish(&fixture.listing, offer, 1);
    const struct book_wish stuck = waiting_stuck_wish(&fixture.listing, offer, 1);
    assert_int_equal(count_found(&fixture, &hopeful), MACHINES);
    assert_int_equal(count_found(&fixture, &stuck), 0);
    for (size_t i = 0; i < MACHINES; i++)
        waiting_set_stuck(&fixture.waiting, &fixture.listing, &jobs[i], i != 7);
    assert_int_equal(fixture.waiting.stuck_count, MACHINES - 1);
    assert_int_equal(count_found(&fixture, &stuck), MACHINES - 1);
    assert_int_equal(count_found(&fixture, &hopeful), 1);
    assert_true(fixture.search.looked_at <= SOME);
    waiting_remove(&fixture.waiting, &jobs[0]);
    assert_int_equal(fixture.waiting.stuck_count, MACHINES - 2);
    assert_false(jobs[0].is_stuck);
    book_check(fixture.waiting.book);
    tear_down(&fixture);
}

/* An offer with too little free now could serve them once its leases have ended. */
TEST(stuck_jobs_are_found_by_all_that_is_offered)
{
    static struct fixture fixture;
    set_up(&fixture);
    struct job job = {.id = 1, .request = fixture.request};
    waiting_add(&fixture.waiting, &fixture.listing, &job);
    struct offer *offer = &fixture.offers[0];
    offer->leased.cores_milli = 3500;
    struct book_wish wish = waiting_wish(&fixture.listing, offer, 1);
    assert_int_equal(count_found(&fixture, &wish), 0);
    waiting_set_stuck(&fixture.waiting, &fixture.listing, &job, true);
    wish = waiting_stuck_wish(&fixture.listing, offer, 1);
    assert_int_equal(count_found(&fixture, &wish), 1);
    offer->terms.resources.cores_milli = 500;
    wish = waiting_stuck_wish(&fixture.listing, offer, 1);
    assert_int_equal(count_found(&fixture, &wish), 0);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wish_for_a_little_more_than_all_have_looks_at_none_of_them),
        cmocka_unit_test(one_that_has_more_is_found_among_those_that_have_not),
        cmocka_unit_test(shares_from_eight_tenths_on_have_a_level_each),
        cmocka_unit_test(jobs_that_are_stuck_are_asked_for_apart),
        cmocka_unit_test(stuck_jobs_are_found_by_all_that_is_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
