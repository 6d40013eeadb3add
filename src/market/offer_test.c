/* covers offer.c, offer_shared.c */
#include "market/machine.h"
#include "market/offer_shared.h"
#include "testing/testing.h"

#define GIB (INT64_C(1) << 30)

static const struct probe probe = {.resources = {.cores_milli = 4000, .ram_bytes = 8 * GIB},
                                   .speed_weight_milli = 1000};
static struct span spans[] = {{100, 200}, {300, 400}};
static struct offer_account friends[] = {{7}, {9}};

static struct offer_terms sound_terms(void)
{
    return (struct offer_terms){.resources = {.cores_milli = 4000, .ram_bytes = GIB},
                                .roles = MACHINE_ROLE_WORKER,
                                .audience = OFFER_AUDIENCE_ACCOUNTS,
                                .accounts = {friends, 2},
                                .spans = {spans, 2},
                                .gpu_model = TEXT("T4"),
                                .labels = TEXT("python3-torch,cuda-12"),
                                .schedule = TEXT("Mon-Fri 18:00-08:00")};
}

TEST(terms_that_cannot_be_are_refused)
{
    struct error error = {0};
    const struct offer_terms sound = sound_terms();
    ASSERT_OK(offer_terms_check(&sound, &probe, 0, &error));
#define REFUSED(...)                                                                               \
    do {                                                                                           \
        struct offer_terms terms = sound;                                                          \
        __VA_ARGS__;                                                                               \
        ASSERT_FAILS(offer_terms_check(&terms, &probe, 0, &error), ERROR_INVALID);                 \
    } while (0)
    REFUSED(terms.resources.cores_milli = 4001);
    REFUSED(terms.resources.cores_milli = 0);
    REFUSED(terms.roles = 4);
    REFUSED(terms.minimum.ram_micro = -1);
    REFUSED(terms.max_lease_ms = -1);
    REFUSED(terms.paused_until_ms = MARKET_TIME_MS_MAX + 1);
    REFUSED(terms.labels = TEXT("a,,b"));
    REFUSED(terms.schedule = TEXT("\xff"));
    REFUSED(terms.network = OFFER_NETWORK_COUNT);
    REFUSED(terms.audience = OFFER_AUDIENCE_ANYONE);
    REFUSED(terms.audience = OFFER_AUDIENCE_GROUP);
    REFUSED(terms.accounts.count = 0);
    REFUSED(terms.group = 3);
    ASSERT_FAILS(offer_terms_check(&sound, &probe, 400, &error), ERROR_INVALID);
#undef REFUSED
}

TEST(an_offer_keeps_texts_and_arrays_of_its_own)
{
    struct offer_shares shares = {0};
    struct offer offer = {0};
    struct offer_terms terms = sound_terms();
    terms.network = OFFER_NETWORK_OPEN;
    terms.minimum.gpu_micro = 5;
    offer_set_terms(&offer, &shares, &terms);
    struct offer_terms kept = offer_terms(&offer);
    assert_true(text_equal(kept.labels, terms.labels) && kept.labels.data != terms.labels.data);
    assert_true(text_equal(kept.gpu_model, TEXT("T4")));
    assert_true(text_equal(kept.schedule, terms.schedule));
    assert_memory_equal(kept.spans.items, spans, sizeof(spans));
    assert_memory_equal(kept.accounts.items, friends, sizeof(friends));
    assert_int_equal(kept.network, OFFER_NETWORK_OPEN);
    assert_int_equal(kept.audience, OFFER_AUDIENCE_ACCOUNTS);
    assert_int_equal(kept.roles, MACHINE_ROLE_WORKER);
    assert_int_equal(kept.minimum.gpu_micro, 5);
    kept.resources.cores_milli = 1; /* its own texts and arrays again */
    offer_set_terms(&offer, &shares, &kept);
    assert_true(text_equal(offer_terms(&offer).schedule, terms.schedule));
    assert_int_equal(offer.terms.resources.cores_milli, 1);
    offer_shares_give(&shares, offer.shared);
    assert_int_equal(shares.count, 0);
    offer_shares_done(&shares);
}

TEST(offers_with_the_same_texts_and_arrays_share_them)
{
    enum { KINDS = 300 };
    struct offer_shares shares = {0};
    const struct offer_shared *first[KINDS];
    char labels[32];
    struct offer_terms terms = sound_terms();
    terms.labels = (struct text){labels, 0};
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < KINDS; i++) {
            terms.labels.size = (size_t)snprintf(labels, sizeof(labels), "label-%d", i);
            const struct offer_shared *shared = offer_shares_take(&shares, &terms);
            assert_true(text_equal(shared->labels, terms.labels));
            if (round == 0)
                first[i] = shared;
            assert_ptr_equal(shared, first[i]);
        }
    assert_int_equal(shares.count, KINDS);
    /* The same bytes cut elsewhere are others. */
    terms.labels = TEXT("ab");
    terms.schedule = TEXT("c");
    const struct offer_shared *one = offer_shares_take(&shares, &terms);
    terms.labels = TEXT("a");
    terms.schedule = TEXT("bc");
    assert_ptr_not_equal(offer_shares_take(&shares, &terms), one);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < KINDS; i++) {
            assert_int_equal(shares.count, round == 0 ? KINDS + 2 : KINDS + 2 - i);
            offer_shares_give(&shares, first[i]);
        }
    assert_int_equal(shares.count, 2);
    offer_shares_done(&shares);
}

TEST(an_offer_is_open_inside_its_spans_when_it_is_not_paused)
{
    struct offer_shares shares = {0};
    struct offer offer = {0};
    const struct offer_terms terms = sound_terms();
    offer_set_terms(&offer, &shares, &terms);
    assert_false(offer_is_open(&offer, 99));
    assert_true(offer_is_open(&offer, 100));
    assert_true(offer_next_change_ms(&offer, 100) == 200);
    offer.terms.paused_until_ms = 150;
    assert_false(offer_is_open(&offer, 149));
    assert_true(offer_next_change_ms(&offer, 100) == 150);
    assert_true(offer_is_open(&offer, 150));
    offer.terms.paused_until_ms = OFFER_PAUSED_FOREVER;
    assert_true(offer_next_change_ms(&offer, 400) == INT64_MAX);
    offer_shares_done(&shares);
}

TEST(only_those_an_offer_names_may_lease_and_always_its_owner)
{
    struct machine machine = {.owner = 5};
    struct offer_shares shares = {0};
    struct offer offer = {.machine = &machine};
    const struct offer_terms terms = sound_terms();
    offer_set_terms(&offer, &shares, &terms);
    assert_true(offer_admits(&offer, 5, 0));
    assert_true(offer_admits(&offer, 7, 0));
    assert_false(offer_admits(&offer, 8, 0));
    offer.terms.audience = OFFER_AUDIENCE_GROUP;
    offer.terms.group = 3;
    assert_true(offer_admits(&offer, 8, 3));
    assert_false(offer_admits(&offer, 7, 0));
    offer.terms.audience = OFFER_AUDIENCE_ANYONE;
    assert_true(offer_admits(&offer, 8, 0));
    offer_shares_done(&shares);
}

TEST(a_lender_compares_the_whole_rate_not_each_part)
{
    struct offer offer = {0};
    const struct price_units units = {.core_milli = 1000, .ram_milli = 1000};
    const struct price_vector price = {.core_micro = 100, .ram_micro = 10};
    offer.terms.minimum = (struct price_vector){.core_micro = 90, .ram_micro = 20};
    assert_true(offer_accepts_price(&offer, units, price));
    offer.terms.minimum.core_micro = 91;
    assert_false(offer_accepts_price(&offer, units, price));
}

static struct probe probe_of(int64_t cores_milli, int64_t gpus_milli)
{
    return (struct probe){.resources = {.cores_milli = cores_milli,
                                        .ram_bytes = 8 * GIB,
                                        .disk_bytes = 8 * GIB,
                                        .gpus_milli = gpus_milli}};
}

static struct offer_terms terms_said(int64_t cores_milli)
{
    return (struct offer_terms){
        .resources = {.cores_milli = cores_milli, .ram_bytes = 8 * GIB, .disk_bytes = 8 * GIB},
        .roles = MACHINE_ROLE_ALL,
        .network = OFFER_NETWORK_JOB};
}

TEST(what_the_owner_changed_outlives_enlisting_again)
{
    const struct probe before = probe_of(4000, 1000);
    struct offer_terms had = sound_terms();
    had.resources =
        (struct resources){.cores_milli = 3000, .ram_bytes = 8 * GIB, .gpus_milli = 1000};
    had.minimum.gpu_micro = 5;
    had.paused_until_ms = 77;
    had.network = OFFER_NETWORK_NONE;
    const struct offer_terms said = terms_said(4000);
    const struct offer_terms same = offer_terms_again(&had, &before, &said, &before);
    assert_memory_equal(&same, &had, sizeof(had));

    /* With half the cores, no GPU and more memory than before. */
    struct probe now = probe_of(2000, 0);
    now.resources.ram_bytes = 16 * GIB;
    struct offer_terms less = terms_said(2000);
    less.resources.ram_bytes = 16 * GIB;
    const struct offer_terms smaller = offer_terms_again(&had, &before, &less, &now);
    assert_int_equal(smaller.resources.cores_milli, 2000);
    assert_int_equal(smaller.resources.gpus_milli, 0);
    assert_int_equal(smaller.resources.ram_bytes, 16 * GIB); /* it was all there was */
    assert_int_equal(smaller.resources.disk_bytes, 0);
    struct error error;
    ASSERT_OK(offer_terms_check(&smaller, &now, 0, &error));
}

TEST(what_was_all_the_machine_lent_follows_what_it_lends_now)
{
    struct probe before = probe_of(4000, 0);
    before.forbids_job_network = true;
    struct offer_terms had = terms_said(4000);
    had.network = OFFER_NETWORK_NONE;
    had.roles = MACHINE_ROLE_WORKER;
    const struct probe now = probe_of(6000, 0);
    struct offer_terms said = terms_said(6000);
    said.spans = (struct json_array){spans, 2};
    said.schedule = TEXT("at night");
    said.minimum.core_micro = 3;
    struct offer_terms more = offer_terms_again(&had, &before, &said, &now);
    assert_int_equal(more.resources.cores_milli, 6000);
    assert_int_equal(more.network, OFFER_NETWORK_JOB);
    assert_int_equal(more.roles, MACHINE_ROLE_WORKER);
    assert_int_equal(more.minimum.core_micro, 3);
    assert_int_equal(more.spans.count, 2);
    assert_true(text_equal(more.schedule, TEXT("at night")));
    said.roles = MACHINE_ROLE_SERVER;
    more = offer_terms_again(&had, &before, &said, &now);
    assert_int_equal(more.roles, MACHINE_ROLE_SERVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_that_cannot_be_are_refused),
        cmocka_unit_test(an_offer_keeps_texts_and_arrays_of_its_own),
        cmocka_unit_test(offers_with_the_same_texts_and_arrays_share_them),
        cmocka_unit_test(an_offer_is_open_inside_its_spans_when_it_is_not_paused),
        cmocka_unit_test(only_those_an_offer_names_may_lease_and_always_its_owner),
        cmocka_unit_test(a_lender_compares_the_whole_rate_not_each_part),
        cmocka_unit_test(what_the_owner_changed_outlives_enlisting_again),
        cmocka_unit_test(what_was_all_the_machine_lent_follows_what_it_lends_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
