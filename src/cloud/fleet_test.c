/*
 * covers fleet_member.c
 *
 * Besides single cases, a simulated cloud with every fault there is: after thousands of orders
 * nothing is left running, no order cost more than it allowed, per hour or in all.
 */
#include "base/assert.h"
#include "cloud/fleet_internal.h"
#include "testing/testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define BEGIN  INT64_C(1790000000000)

static const struct fleet_candidate two[] = {
    {"m5.large", "us-east-1a", 96000},
    {"m5.xlarge", "us-east-1b", 192000},
};

static struct fleet_options options_of(uint64_t seed)
{
    return (struct fleet_options){.instances_max = 20,
                                  .usd_micro_per_hour_max = 2000000,
                                  .hours_max = 24,
                                  .boot_ms = 5 * MINUTE,
                                  .idle_ms = 10 * MINUTE,
                                  .list_ms = 30 * SECOND,
                                  .bill_ms = 10 * MINUTE,
                                  .run = "run-1",
                                  .seed = seed};
}

static struct fleet *new_listed(int64_t now)
{
    const struct fleet_options options = options_of(1);
    struct fleet *fleet = fleet_new(&options);
    struct fleet_action action;
    assert_true(fleet_next(fleet, now, &action));
    assert_int_equal(action.kind, FLEET_LIST);
    fleet_listed(fleet, &action, NULL, 0, now);
    return fleet;
}

static uint64_t order(struct fleet *fleet, uint32_t count, int64_t now)
{
    const struct fleet_wish wish = {.count = count, .candidates = two, .candidate_count = 2};
    struct error error;
    uint64_t id = 0;
    ASSERT_OK(fleet_order(fleet, &wish, now, &id, &error));
    return id;
}

static struct fleet_action next(struct fleet *fleet, enum fleet_action_kind kind, int64_t now)
{
    struct fleet_action action;
    assert_true(fleet_next(fleet, now, &action));
    assert_int_equal(action.kind, kind);
    return action;
}

static void assert_nothing(struct fleet *fleet, int64_t now)
{
    struct fleet_action action;
    assert_false(fleet_next(fleet, now, &action));
}

/* ---- Single cases ---------------------------------------------------------------------------- */

TEST(nothing_starts_before_the_list_was_seen)
{
    const struct fleet_options options = options_of(1);
    AUTO(fleet) struct fleet *fleet = fleet_new(&options);
    order(fleet, 1, BEGIN);
    struct fleet_action list = next(fleet, FLEET_LIST, BEGIN);
    assert_nothing(fleet, BEGIN);
    const struct fleet_listed old = {
        .instance = "i-old", .run = "run-0", .member = 2, .is_alive = true};
    fleet_listed(fleet, &list, &old, 1, BEGIN);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN);
    assert_string_equal(end.instance, "i-old");
    assert_int_equal(fleet_strays_left(fleet), 1);
    fleet_ended(fleet, &end, BEGIN);
    assert_int_equal(fleet_stray_count(fleet), 1);
    assert_int_equal(fleet_strays_left(fleet), 0);
    next(fleet, FLEET_LAUNCH, BEGIN);
}

TEST(a_stray_that_is_absent_is_not_asked_for_again)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const struct fleet_listed old = {
        .instance = "i-old", .run = "run-0", .member = 2, .is_alive = true};
    struct fleet_action list = next(fleet, FLEET_LIST, BEGIN + MINUTE);
    fleet_listed(fleet, &list, &old, 1, BEGIN + MINUTE);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN + MINUTE);
    fleet_failed(fleet, &end, FLEET_ABSENT, "no such instance", BEGIN + MINUTE);
    list = next(fleet, FLEET_LIST, BEGIN + HOUR);
    fleet_listed(fleet, &list, NULL, 0, BEGIN + HOUR);
    assert_nothing(fleet, BEGIN + HOUR);
    /* One that a list has is there all the same. */
    list = next(fleet, FLEET_LIST, BEGIN + 2 * HOUR);
    fleet_listed(fleet, &list, &old, 1, BEGIN + 2 * HOUR);
    next(fleet, FLEET_END, BEGIN + 2 * HOUR);
}

TEST(an_instance_lives_until_its_job_ends)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const struct fleet_wish wish = {
        .count = 1, .candidates = two, .candidate_count = 2, .job = 7, .usd_micro_max = 96000};
    struct error error;
    uint64_t id;
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &id, &error));
    const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    assert_string_equal(launch.candidate.type, "m5.large");
    assert_int_equal(launch.life_minutes, 57); /* an hour's money, less the margin */
    fleet_launched(fleet, &launch, "i-1", BEGIN);
    assert_nothing(fleet, BEGIN);
    fleet_enrolled(fleet, launch.member, 3, BEGIN + MINUTE);
    assert_int_equal(fleet_find_member(fleet, launch.member)->state, FLEET_READY);
    fleet_job_ended(fleet, 8, BEGIN + MINUTE);
    assert_int_equal(fleet_find_member(fleet, launch.member)->state, FLEET_READY);
    fleet_job_ended(fleet, 7, BEGIN + 2 * MINUTE);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN + 2 * MINUTE);
    assert_string_equal(end.instance, "i-1");
    fleet_ended(fleet, &end, BEGIN + 2 * MINUTE);
    next(fleet, FLEET_LIST, BEGIN + 2 * MINUTE);
    assert_true(fleet_find_order(fleet, id)->is_done);
    assert_int_equal(fleet_find_order(fleet, id)->spent_usd_micro, 3200);
    struct fleet_cost cost;
    assert_true(fleet_take_cost(fleet, BEGIN + 2 * MINUTE, &cost));
    assert_int_equal(cost.usd_micro, 3200);
    assert_int_equal(cost.machine, 3);
    assert_false(fleet_take_cost(fleet, BEGIN + HOUR, &cost));
}

TEST(an_order_that_comes_again_by_its_key_is_the_same)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    struct fleet_wish wish = {
        .count = 20, .candidates = two, .candidate_count = 1, .key = {1}, .request = {2}};
    struct error error;
    uint64_t id, again, other;
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &id, &error));
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN + SECOND, &again, &error)); /* no room for more */
    assert_int_equal(id, again);
    assert_int_equal(fleet_order_count(fleet), 1);
    assert_int_equal(fleet_member_count(fleet), 20);
    wish.request[0] = 3;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &again, &error), ERROR_CONFLICT);
    ASSERT_OK(fleet_stop(fleet, id, "stopped", BEGIN, &error));
    other = order(fleet, 1, BEGIN); /* without a key each is its own */
    assert_int_not_equal(other, order(fleet, 1, BEGIN));
}

TEST(a_budget_of_any_size_gives_no_longer_life_than_the_most)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    struct fleet_wish wish = {.count = 1, .candidates = two, .candidate_count = 1};
    struct error error;
    uint64_t id;
    for (wish.usd_micro_max = INT64_MAX; wish.usd_micro_max > INT64_C(1000000000);
         wish.usd_micro_max /= 3) {
        ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &id, &error));
        const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
        assert_int_equal(launch.life_minutes, 24 * 60);
        fleet_failed(fleet, &launch, FLEET_REFUSED, "no", BEGIN);
    }
}

TEST(no_capacity_leads_to_the_next_candidate_and_then_says_so)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const uint64_t id = order(fleet, 1, BEGIN);
    struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    const uint32_t attempt = launch.attempt;
    fleet_failed(fleet, &launch, FLEET_CAPACITY, "none there", BEGIN);
    launch = next(fleet, FLEET_LAUNCH, BEGIN);
    assert_string_equal(launch.candidate.type, "m5.xlarge");
    assert_int_not_equal(launch.attempt, attempt);
    fleet_failed(fleet, &launch, FLEET_CAPACITY, "none there either", BEGIN);
    assert_nothing(fleet, BEGIN);
    assert_true(fleet_find_order(fleet, id)->is_done);
    assert_string_equal(fleet_find_order(fleet, id)->reason, "none there either");
    assert_int_equal(fleet_find_order(fleet, id)->spent_usd_micro, 0);
}

TEST(what_is_throttled_is_asked_for_later_by_the_same_token)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    order(fleet, 1, BEGIN);
    struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    for (int i = 0; i < 20; i++) {
        const uint32_t attempt = launch.attempt;
        const int64_t now = BEGIN + 2 * MINUTE * i;
        fleet_failed(fleet, &launch, FLEET_THROTTLED, "slow down", now);
        struct fleet_action list;
        while (fleet_next(fleet, now, &list)) {
            assert_int_equal(list.kind, FLEET_LIST);
            fleet_listed(fleet, &list, NULL, 0, now);
        }
        assert_true(fleet_find_member(fleet, launch.member)->pause_ms > now);
        if (fleet_next(fleet, now + 2 * MINUTE, &list) && list.kind == FLEET_LIST) {
            fleet_listed(fleet, &list, NULL, 0, now + 2 * MINUTE);
            list = next(fleet, FLEET_LAUNCH, now + 2 * MINUTE);
        }
        launch = list;
        assert_int_equal(launch.kind, FLEET_LAUNCH);
        assert_int_equal(launch.attempt, attempt);
    }
}

TEST(refused_keys_end_an_order_with_their_reason)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const uint64_t id = order(fleet, 3, BEGIN);
    const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_failed(fleet, &launch, FLEET_REFUSED, "keys are not known", BEGIN);
    assert_nothing(fleet, BEGIN);
    assert_true(fleet_find_order(fleet, id)->is_done);
    assert_string_equal(fleet_find_order(fleet, id)->reason, "keys are not known");
}

TEST(an_open_launch_that_is_stopped_is_looked_for_and_ended)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const uint64_t id = order(fleet, 1, BEGIN);
    struct error error;
    const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_failed(fleet, &launch, FLEET_UNCERTAIN, "no answer", BEGIN);
    ASSERT_OK(fleet_stop(fleet, id, "stopped", BEGIN, &error));
    assert_nothing(fleet, BEGIN + 20 * SECOND);
    const struct fleet_action list = next(fleet, FLEET_LIST, BEGIN + MINUTE);
    struct fleet_listed found = {
        .instance = "i-9", .run = "run-1", .member = launch.member, .is_alive = true};
    fleet_listed(fleet, &list, &found, 1, BEGIN + MINUTE);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN + MINUTE);
    assert_string_equal(end.instance, "i-9");
    assert_int_equal(end.member, launch.member);
    fleet_failed(fleet, &end, FLEET_ABSENT, "not yet", BEGIN + MINUTE);
    assert_false(fleet_find_order(fleet, id)->is_done);
    const struct fleet_action again = next(fleet, FLEET_END, BEGIN + 3 * MINUTE);
    fleet_ended(fleet, &again, BEGIN + 3 * MINUTE);
    next(fleet, FLEET_LIST, BEGIN + 3 * MINUTE);
    assert_true(fleet_find_order(fleet, id)->is_done);
}

TEST(a_launch_that_was_not_done_is_gone_once_it_is_stopped)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    order(fleet, 2, BEGIN);
    const struct fleet_action first = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_failed(fleet, &first, FLEET_THROTTLED, "slow down", BEGIN);
    const struct fleet_action second = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_stop_all(fleet, "stopped", BEGIN);
    assert_int_equal(fleet_find_member(fleet, first.member)->state, FLEET_GONE);
    assert_int_equal(fleet_find_member(fleet, second.member)->state, FLEET_ENDING);
    fleet_failed(fleet, &second, FLEET_THROTTLED, "not begun", BEGIN);
    assert_int_equal(fleet_find_member(fleet, second.member)->state, FLEET_GONE);
    assert_int_equal(fleet_living(fleet), 0);
    assert_nothing(fleet, BEGIN);
    assert_int_equal(fleet_order_at(fleet, 0)->spent_usd_micro, 0);
}

TEST(one_taken_back_is_replaced_within_the_budget)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const uint64_t id = order(fleet, 1, BEGIN);
    const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_launched(fleet, &launch, "i-1", BEGIN);
    fleet_enrolled(fleet, launch.member, 3, BEGIN);
    const struct fleet_action list = next(fleet, FLEET_LIST, BEGIN + MINUTE);
    const struct fleet_listed gone = {
        .instance = "i-1", .run = "run-1", .member = launch.member, .is_interrupted = true};
    fleet_listed(fleet, &list, &gone, 1, BEGIN + MINUTE);
    assert_string_equal(fleet_find_member(fleet, launch.member)->reason, "the cloud took it back");
    const struct fleet_action again = next(fleet, FLEET_LAUNCH, BEGIN + MINUTE);
    assert_string_equal(again.candidate.zone, "us-east-1b");
    assert_false(fleet_find_order(fleet, id)->is_done);
}

TEST(idle_and_old_ones_are_ended_busy_ones_are_not)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    order(fleet, 2, BEGIN);
    const struct fleet_action first = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_launched(fleet, &first, "i-1", BEGIN);
    const struct fleet_action second = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_launched(fleet, &second, "i-2", BEGIN);
    fleet_enrolled(fleet, first.member, 1, BEGIN);
    fleet_enrolled(fleet, second.member, 2, BEGIN);
    fleet_leased(fleet, 1, 1, BEGIN);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN + 11 * MINUTE);
    assert_string_equal(end.instance, "i-2");
    fleet_ended(fleet, &end, BEGIN + 11 * MINUTE);
    const int64_t late = fleet_find_member(fleet, first.member)->ends_ms;
    const struct fleet_action old = next(fleet, FLEET_END, late);
    assert_string_equal(old.instance, "i-1");
    assert_string_equal(fleet_find_member(fleet, first.member)->reason,
                        "its part of the budget is used up");
}

TEST(limits_are_said_with_what_fits)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    struct error error;
    uint64_t id;
    struct fleet_wish wish = {
        .count = 3, .candidates = two, .candidate_count = 2, .usd_micro_per_hour_max = 200000};
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "at most 2 fit"));
    wish.usd_micro_per_hour_max = 50000;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "price of one"));
    wish.usd_micro_per_hour_max = 0;
    wish.usd_micro_max = 1000;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "5 minutes"));
    wish.usd_micro_max = 0;
    wish.count = 21;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_EXHAUSTED);
    wish.count = 0;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_INVALID);
    ASSERT_FAILS(fleet_stop(fleet, 99, "x", BEGIN, &error), ERROR_NOT_FOUND);
}

/* ---- A simulated cloud ----------------------------------------------------------------------- */

enum { CLOUD_MAX = 4096, TOKENS_MAX = 8192 };

struct cloud_instance {
    char id[FLEET_NAME_SIZE];
    char run[FLEET_NAME_SIZE];
    uint64_t member, order;
    int64_t price;
    int64_t began, boots, ends, ended; /* ended 0: it runs */
    bool is_interrupted, is_enrolled;
};

struct cloud {
    struct random random;
    uint32_t fault_percent;
    struct cloud_instance instances[CLOUD_MAX];
    size_t count;
    char tokens[TOKENS_MAX][2 * FLEET_NAME_SIZE];
    size_t token_instances[TOKENS_MAX];
    size_t token_count;
};

static bool strikes(struct cloud *cloud, uint32_t percent)
{
    return random_below(&cloud->random, 100) < percent;
}

static size_t start_instance(struct cloud *cloud, const struct fleet *fleet,
                             const struct fleet_action *action, int64_t now)
{
    char token[2 * FLEET_NAME_SIZE];
    snprintf(token, sizeof(token), "%s-%" PRIu64 "-%u", fleet->options.run, action->member,
             action->attempt);
    for (size_t i = 0; i < cloud->token_count; i++)
        if (strcmp(cloud->tokens[i], token) == 0)
            return cloud->token_instances[i];
    ASSERT(cloud->count < CLOUD_MAX && cloud->token_count < TOKENS_MAX);
    struct cloud_instance *instance = &cloud->instances[cloud->count];
    *instance = (struct cloud_instance){.member = action->member,
                                        .order = fleet_find_member(fleet, action->member)->order,
                                        .price = action->candidate.usd_micro_per_hour,
                                        .began = now};
    snprintf(instance->id, sizeof(instance->id), "i-%zu", cloud->count);
    snprintf(instance->run, sizeof(instance->run), "%s", fleet->options.run);
    instance->boots = now + (int64_t)random_below(&cloud->random, 120) * SECOND;
    instance->ends = instance->boots + action->life_minutes * MINUTE;
    memcpy(cloud->tokens[cloud->token_count], token, sizeof(token));
    cloud->token_instances[cloud->token_count++] = cloud->count;
    return cloud->count++;
}

static void do_launch(struct cloud *cloud, struct fleet *fleet, const struct fleet_action *action,
                      int64_t now)
{
    const uint64_t fault = random_below(&cloud->random, 100);
    if (fault >= cloud->fault_percent) {
        const size_t index = start_instance(cloud, fleet, action, now);
        fleet_launched(fleet, action, cloud->instances[index].id, now);
        return;
    }
    /* Some faults come before it is done, some after. */
    if (fault % 5 == 0)
        start_instance(cloud, fleet, action, now);
    const enum fleet_failure failures[] = {FLEET_UNCERTAIN, FLEET_THROTTLED, FLEET_CAPACITY,
                                           FLEET_UNCERTAIN, FLEET_REFUSED};
    fleet_failed(fleet, action, fault % 25 == 4 ? FLEET_LIMIT : failures[fault % 5], "a fault",
                 now);
}

static void do_end(struct cloud *cloud, struct fleet *fleet, const struct fleet_action *action,
                   int64_t now)
{
    const bool is_failing = strikes(cloud, cloud->fault_percent);
    if (is_failing && strikes(cloud, 50)) {
        fleet_failed(fleet, action, FLEET_THROTTLED, "a fault", now);
        return;
    }
    for (size_t i = 0; i < cloud->count; i++)
        if (strcmp(cloud->instances[i].id, action->instance) == 0 && !cloud->instances[i].ended)
            cloud->instances[i].ended = now;
    if (is_failing)
        fleet_failed(fleet, action, FLEET_UNCERTAIN, "a fault", now);
    else
        fleet_ended(fleet, action, now);
}

static void do_list(struct cloud *cloud, struct fleet *fleet, const struct fleet_action *action,
                    int64_t now)
{
    static struct fleet_listed listed[CLOUD_MAX];
    size_t count = 0;
    if (strikes(cloud, cloud->fault_percent)) {
        fleet_failed(fleet, action, strikes(cloud, 5) ? FLEET_REFUSED : FLEET_UNCERTAIN, "a fault",
                     now);
        return;
    }
    for (size_t i = 0; i < cloud->count; i++) {
        const struct cloud_instance *instance = &cloud->instances[i];
        const bool is_forgotten = instance->ended && now - instance->ended > HOUR;
        const bool is_too_new = now - instance->began < 30 * SECOND && strikes(cloud, 50);
        if (is_forgotten || is_too_new)
            continue;
        listed[count] = (struct fleet_listed){.member = instance->member,
                                              .is_alive = !instance->ended,
                                              .is_interrupted = instance->is_interrupted};
        memcpy(listed[count].instance, instance->id, sizeof(instance->id));
        memcpy(listed[count].run, instance->run, sizeof(instance->run));
        count++;
    }
    fleet_listed(fleet, action, listed, count, now);
}

static void live(struct cloud *cloud, struct fleet *fleet, int64_t now)
{
    for (size_t i = 0; i < cloud->count; i++) {
        struct cloud_instance *instance = &cloud->instances[i];
        if (instance->ended)
            continue;
        if (now >= instance->ends)
            instance->ended = instance->ends;
        else if (strikes(cloud, 1) && strikes(cloud, 2)) {
            instance->ended = now;
            instance->is_interrupted = true;
        } else if (!instance->is_enrolled && now >= instance->boots &&
                   strcmp(instance->run, fleet->options.run) == 0 && strikes(cloud, 80)) {
            instance->is_enrolled = true;
            fleet_enrolled(fleet, instance->member, i + 1, now);
        } else if (strikes(cloud, 5)) {
            fleet_leased(fleet, i + 1, (uint32_t)random_below(&cloud->random, 2), now);
        }
    }
}

static int64_t bill(const struct cloud_instance *instance, int64_t now)
{
    const int64_t end = instance->ended ? instance->ended : now;
    const int64_t ms = end - instance->began > MINUTE ? end - instance->began : MINUTE;
    return instance->price * ms / HOUR;
}

static void check_budgets(const struct cloud *cloud, const struct fleet *fleet, int64_t now,
                          uint64_t seed)
{
    int64_t all = 0;
    for (size_t o = 0; o < fleet_order_count(fleet); o++) {
        const struct fleet_order *found = fleet_order_at(fleet, o);
        int64_t rate = 0, cost = 0;
        for (size_t i = 0; i < cloud->count; i++) {
            const struct cloud_instance *instance = &cloud->instances[i];
            if (instance->order != found->id || strcmp(instance->run, fleet->options.run) != 0)
                continue;
            rate += instance->ended ? 0 : instance->price;
            cost += bill(instance, now);
        }
        all += rate;
        if (rate > found->wish.usd_micro_per_hour_max || cost > found->wish.usd_micro_max)
            fail_msg("seed %" PRIu64 ": order %" PRIu64 " has a rate of %" PRId64
                     " and cost %" PRId64 " of %" PRId64,
                     seed, found->id, rate, cost, found->wish.usd_micro_max);
    }
    if (all > fleet->options.usd_micro_per_hour_max)
        fail_msg("seed %" PRIu64 ": a rate of %" PRId64, seed, all);
}

static size_t running(const struct cloud *cloud)
{
    size_t count = 0;
    for (size_t i = 0; i < cloud->count; i++)
        count += !cloud->instances[i].ended;
    return count;
}

static void act(struct cloud *cloud, struct fleet *fleet, int64_t now)
{
    struct fleet_action action;
    for (int i = 0; i < 64 && fleet_next(fleet, now, &action); i++) {
        if (action.kind == FLEET_LAUNCH)
            do_launch(cloud, fleet, &action, now);
        else if (action.kind == FLEET_END)
            do_end(cloud, fleet, &action, now);
        else
            do_list(cloud, fleet, &action, now);
    }
}

static void order_something(struct cloud *cloud, struct fleet *fleet, int64_t now)
{
    struct error error;
    uint64_t id;
    const struct fleet_wish wish = {
        .count = 1 + (uint32_t)random_below(&cloud->random, 4),
        .candidates = two,
        .candidate_count = 1 + random_below(&cloud->random, 2),
        .job = random_below(&cloud->random, 4),
        .usd_micro_max = (int64_t)random_below(&cloud->random, 400000),
        .usd_micro_per_hour_max = (int64_t)random_below(&cloud->random, 800000),
    };
    if (fleet_order(fleet, &wish, now, &id, &error) < 0)
        assert_true(error.code == ERROR_EXHAUSTED);
}

/* A market that dies in the middle leaves all behind: the next one's first list finds them. */
static struct fleet *start_again(struct fleet *fleet, uint64_t seed, uint32_t run)
{
    struct fleet_options options = options_of(seed);
    snprintf(options.run, sizeof(options.run), "run-%u", run);
    fleet_free(fleet);
    return fleet_new(&options);
}

static uint32_t simulate(uint64_t seed)
{
    struct cloud *cloud = calloc(1, sizeof(*cloud));
    ASSERT(cloud);
    random_init(&cloud->random, seed);
    cloud->fault_percent = (uint32_t)random_below(&cloud->random, 60);
    struct fleet *fleet = start_again(NULL, seed, 1);
    int64_t now = BEGIN;
    uint32_t runs = 1;
    for (const int64_t end = BEGIN + 6 * HOUR; now < end; now += 10 * SECOND) {
        struct error error;
        if (strikes(cloud, 2))
            order_something(cloud, fleet, now);
        if (strikes(cloud, 1) && fleet_order_count(fleet))
            ASSERT_OK(fleet_stop(fleet, fleet_order_at(fleet, 0)->id, "stopped", now, &error));
        if (strikes(cloud, 1))
            fleet_job_ended(fleet, 1 + random_below(&cloud->random, 3), now);
        if (strikes(cloud, 1) && strikes(cloud, 10))
            fleet = start_again(fleet, seed, ++runs);
        live(cloud, fleet, now);
        act(cloud, fleet, now);
        check_budgets(cloud, fleet, now, seed);
    }
    fleet_stop_all(fleet, "the end", now);
    for (const int64_t end = now + 2 * HOUR; now < end; now += 10 * SECOND) {
        act(cloud, fleet, now);
        check_budgets(cloud, fleet, now, seed);
    }
    if (running(cloud))
        fail_msg("seed %" PRIu64 ": %zu are left running", seed, running(cloud));
    for (size_t i = 0; i < fleet_order_count(fleet); i++)
        if (!fleet_order_at(fleet, i)->is_done)
            fail_msg("seed %" PRIu64 ": an order is not done", seed);
    const uint32_t count = (uint32_t)cloud->count;
    fleet_free(fleet);
    free(cloud);
    return count;
}

TEST(whatever_fails_nothing_is_left_running_and_no_budget_is_passed)
{
    uint32_t started = 0;
    for (uint64_t seed = 1; seed <= 400; seed++)
        started += simulate(seed);
    assert_true(started > 10000);
    print_message("%u instances\n", started);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_starts_before_the_list_was_seen),
        cmocka_unit_test(a_stray_that_is_absent_is_not_asked_for_again),
        cmocka_unit_test(an_instance_lives_until_its_job_ends),
        cmocka_unit_test(an_order_that_comes_again_by_its_key_is_the_same),
        cmocka_unit_test(a_budget_of_any_size_gives_no_longer_life_than_the_most),
        cmocka_unit_test(no_capacity_leads_to_the_next_candidate_and_then_says_so),
        cmocka_unit_test(what_is_throttled_is_asked_for_later_by_the_same_token),
        cmocka_unit_test(refused_keys_end_an_order_with_their_reason),
        cmocka_unit_test(an_open_launch_that_is_stopped_is_looked_for_and_ended),
        cmocka_unit_test(a_launch_that_was_not_done_is_gone_once_it_is_stopped),
        cmocka_unit_test(one_taken_back_is_replaced_within_the_budget),
        cmocka_unit_test(idle_and_old_ones_are_ended_busy_ones_are_not),
        cmocka_unit_test(limits_are_said_with_what_fits),
        cmocka_unit_test(whatever_fails_nothing_is_left_running_and_no_budget_is_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
