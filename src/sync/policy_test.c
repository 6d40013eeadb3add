/* The table of policies and the rules of bsp and tap; covers policy.c, bsp.c, tap.c. */
#include "base/random.h"
#include "sync/policy.h"
#include "testing/testing.h"

static const struct sync_settings settings = {.gamma_ms = 1000};

static struct sync_policy *policy_of(const char *name)
{
    struct error error;
    struct sync_policy *policy = NULL;
    ASSERT_OK(sync_policy_new(text_of(name), &settings, &policy, &error));
    return policy;
}

static uint32_t count_kind(const struct sync_actions *actions, enum sync_action_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < actions->count; i++)
        count += actions->items[i].kind == kind;
    return count;
}

static void push(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                 struct sync_actions *actions)
{
    actions->count = 0;
    sync_policy_push(policy, now_ns, &(struct sync_push){.worker = worker, .steps = 1}, actions);
}

TEST(an_unknown_policy_is_refused_by_name)
{
    struct error error;
    struct sync_policy *policy = NULL;
    ASSERT_FAILS(sync_policy_new(TEXT("bulk"), &settings, &policy, &error), ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "\"bulk\""));
    assert_null(policy);
}

TEST(settings_out_of_range_are_refused)
{
    struct error error;
    struct sync_policy *policy = NULL;
    struct sync_settings bad = {.gamma_ms = 0};
    ASSERT_FAILS(sync_policy_new(TEXT("adsp"), &bad, &policy, &error), ERROR_INVALID);
    bad = (struct sync_settings){.gamma_ms = 100, .commit_interval_min_ms = 101};
    ASSERT_FAILS(sync_policy_new(TEXT("adsp"), &bad, &policy, &error), ERROR_INVALID);
    bad = (struct sync_settings){.gamma_ms = 100, .search = SYNC_SEARCH_COUNT};
    ASSERT_FAILS(sync_policy_new(TEXT("adsp"), &bad, &policy, &error), ERROR_INVALID);
    bad = (struct sync_settings){.gamma_ms = 100, .momentum = 1};
    ASSERT_FAILS(sync_policy_new(TEXT("pace"), &bad, &policy, &error), ERROR_INVALID);
}

TEST(every_policy_of_the_table_can_be_made)
{
    uint32_t count = 0;
    for (const char *name; (name = sync_policy_name_at(count)); count++) {
        AUTO(sync_policy) struct sync_policy *policy = policy_of(name);
        assert_string_equal(sync_policy_name(policy), name);
    }
    assert_int_equal(count, 14);
}

TEST(a_search_is_known_by_its_name)
{
    struct error error;
    enum sync_search search;
    ASSERT_OK(sync_search_parse(TEXT("paper"), &search, &error));
    assert_int_equal(search, SYNC_SEARCH_PAPER);
    ASSERT_FAILS(sync_search_parse(TEXT("grid"), &search, &error), ERROR_INVALID);
}

TEST(tap_applies_and_answers_at_once)
{
    AUTO(sync_policy) struct sync_policy *policy = policy_of("tap");
    struct sync_actions actions = {0};
    for (uint32_t worker = 0; worker < 4; worker++)
        sync_policy_join(policy, 0, worker, &actions);
    assert_int_equal(count_kind(&actions, SYNC_SET_STEPS), 4);
    push(policy, 1, 2, &actions);
    assert_int_equal(actions.count, 2);
    assert_int_equal(actions.items[0].kind, SYNC_APPLY);
    assert_true(actions.items[0].weight == 0.25);
    assert_int_equal(actions.items[1].kind, SYNC_REPLY);
    assert_int_equal(actions.items[1].worker, 2);
}

TEST(bsp_releases_everybody_exactly_when_the_last_has_pushed)
{
    AUTO(sync_policy) struct sync_policy *policy = policy_of("bsp");
    struct sync_actions actions = {0};
    for (uint32_t worker = 0; worker < 3; worker++)
        sync_policy_join(policy, 0, worker, &actions);
    push(policy, 1, 0, &actions);
    assert_int_equal(count_kind(&actions, SYNC_HOLD), 1);
    assert_int_equal(count_kind(&actions, SYNC_RELEASE), 0);
    push(policy, 2, 2, &actions);
    assert_int_equal(count_kind(&actions, SYNC_RELEASE), 0);
    push(policy, 3, 1, &actions);
    assert_int_equal(count_kind(&actions, SYNC_FOLD), 1);
    assert_int_equal(count_kind(&actions, SYNC_RELEASE), 3);
}

TEST(bsp_releases_the_rest_when_the_missing_worker_leaves)
{
    AUTO(sync_policy) struct sync_policy *policy = policy_of("bsp");
    struct sync_actions actions = {0};
    for (uint32_t worker = 0; worker < 3; worker++)
        sync_policy_join(policy, 0, worker, &actions);
    push(policy, 1, 0, &actions);
    push(policy, 2, 1, &actions);
    actions.count = 0;
    sync_policy_leave(policy, 3, 2, &actions);
    assert_int_equal(count_kind(&actions, SYNC_FOLD), 1);
    assert_int_equal(count_kind(&actions, SYNC_RELEASE), 2);
}

TEST(bsp_keeps_the_update_of_a_worker_that_pushed_and_left)
{
    AUTO(sync_policy) struct sync_policy *policy = policy_of("bsp");
    struct sync_actions actions = {0};
    sync_policy_join(policy, 0, 0, &actions);
    sync_policy_join(policy, 0, 1, &actions);
    push(policy, 1, 0, &actions);
    actions.count = 0;
    sync_policy_leave(policy, 2, 0, &actions);
    assert_int_equal(actions.count, 0);
    push(policy, 3, 1, &actions);
    assert_int_equal(count_kind(&actions, SYNC_FOLD), 1);
    assert_int_equal(count_kind(&actions, SYNC_RELEASE), 1);
}

/* Random joins, pushes and leaves: a round ends if and only if all members are held. */
static void bsp_churn(uint64_t seed)
{
    enum { WORKERS = 6, EVENTS = 400 };
    AUTO(sync_policy) struct sync_policy *policy = policy_of("bsp");
    struct random random;
    random_init(&random, seed);
    bool is_member[WORKERS] = {0}, is_held[WORKERS] = {0};
    for (int64_t now = 1; now <= EVENTS; now++) {
        struct sync_actions actions = {0};
        const uint32_t worker = (uint32_t)random_below(&random, WORKERS);
        if (!is_member[worker]) {
            sync_policy_join(policy, now, worker, &actions);
            is_member[worker] = true;
        } else if (random_below(&random, 8) == 0) {
            sync_policy_leave(policy, now, worker, &actions);
            is_member[worker] = is_held[worker] = false;
        } else if (!is_held[worker]) {
            push(policy, now, worker, &actions);
            is_held[worker] = true;
        }
        uint32_t held = 0, members = 0;
        for (uint32_t i = 0; i < WORKERS; i++) {
            held += is_held[i];
            members += is_member[i];
        }
        const uint32_t released = count_kind(&actions, SYNC_RELEASE);
        assert_int_equal(released, held == members ? held : 0);
        for (uint32_t i = 0; i < actions.count; i++)
            if (actions.items[i].kind == SYNC_RELEASE)
                is_held[actions.items[i].worker] = false;
    }
}

TEST(bsp_survives_churn)
{
    for (uint64_t seed = 1; seed <= 200; seed++)
        bsp_churn(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_policy_is_refused_by_name),
        cmocka_unit_test(settings_out_of_range_are_refused),
        cmocka_unit_test(every_policy_of_the_table_can_be_made),
        cmocka_unit_test(a_search_is_known_by_its_name),
        cmocka_unit_test(tap_applies_and_answers_at_once),
        cmocka_unit_test(bsp_releases_everybody_exactly_when_the_last_has_pushed),
        cmocka_unit_test(bsp_releases_the_rest_when_the_missing_worker_leaves),
        cmocka_unit_test(bsp_keeps_the_update_of_a_worker_that_pushed_and_left),
        cmocka_unit_test(bsp_survives_churn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
