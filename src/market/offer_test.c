#include "market/machine.h"
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

TEST(a_copy_has_texts_and_arrays_of_its_own)
{
    struct offer_terms terms = sound_terms();
    struct offer_terms copy = offer_terms_copy(&terms);
    assert_true(text_equal(copy.labels, terms.labels) && copy.labels.data != terms.labels.data);
    assert_true(text_equal(copy.gpu_model, TEXT("T4")));
    assert_true(text_equal(copy.schedule, terms.schedule));
    assert_memory_equal(copy.spans.items, spans, sizeof(spans));
    assert_memory_equal(copy.accounts.items, friends, sizeof(friends));
    offer_terms_done(&copy);
    terms.spans.count = terms.accounts.count = 0;
    terms.gpu_model = terms.labels = (struct text){0};
    copy = offer_terms_copy(&terms);
    assert_true(copy.spans.items == NULL && text_equal(copy.schedule, terms.schedule));
    offer_terms_done(&copy);
    terms.schedule = (struct text){0};
    copy = offer_terms_copy(&terms);
    offer_terms_done(&copy);
}

TEST(an_offer_is_open_inside_its_spans_when_it_is_not_paused)
{
    struct offer offer = {.terms = sound_terms()};
    assert_false(offer_is_open(&offer, 99));
    assert_true(offer_is_open(&offer, 100));
    assert_true(offer_next_change_ms(&offer, 100) == 200);
    offer.terms.paused_until_ms = 150;
    assert_false(offer_is_open(&offer, 149));
    assert_true(offer_next_change_ms(&offer, 100) == 150);
    assert_true(offer_is_open(&offer, 150));
    offer.terms.paused_until_ms = OFFER_PAUSED_FOREVER;
    assert_true(offer_next_change_ms(&offer, 400) == INT64_MAX);
}

TEST(only_those_an_offer_names_may_lease_and_always_its_owner)
{
    struct machine machine = {.owner = 5};
    struct offer offer = {.machine = &machine, .terms = sound_terms()};
    assert_true(offer_admits(&offer, 5, 0));
    assert_true(offer_admits(&offer, 7, 0));
    assert_false(offer_admits(&offer, 8, 0));
    offer.terms.audience = OFFER_AUDIENCE_GROUP;
    offer.terms.group = 3;
    assert_true(offer_admits(&offer, 8, 3));
    assert_false(offer_admits(&offer, 7, 0));
    offer.terms.audience = OFFER_AUDIENCE_ANYONE;
    assert_true(offer_admits(&offer, 8, 0));
}

TEST(a_lender_compares_the_whole_rate_not_each_part)
{
    struct offer offer = {.terms = sound_terms()};
    const struct price_units units = {.core_milli = 1000, .ram_milli = 1000};
    const struct price_vector price = {.core_micro = 100, .ram_micro = 10};
    offer.terms.minimum = (struct price_vector){.core_micro = 90, .ram_micro = 20};
    assert_true(offer_accepts_price(&offer, units, price));
    offer.terms.minimum.core_micro = 91;
    assert_false(offer_accepts_price(&offer, units, price));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_that_cannot_be_are_refused),
        cmocka_unit_test(a_copy_has_texts_and_arrays_of_its_own),
        cmocka_unit_test(an_offer_is_open_inside_its_spans_when_it_is_not_paused),
        cmocka_unit_test(only_those_an_offer_names_may_lease_and_always_its_owner),
        cmocka_unit_test(a_lender_compares_the_whole_rate_not_each_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
