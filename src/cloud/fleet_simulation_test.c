/*
 * covers fleet.c, fleet_member.c, fleet_saved.c
 *
 * A simulated cloud with every fault there is, and a market that dies at any moment and starts
 * again: after thousands of orders nothing is left running, no order cost more than it allowed, per
 * hour or in all, nothing was launched twice, and no instance of an order was ended because its
 * market had died.
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

static struct fleet *load_saved(struct text saved, int64_t now)
{
    const struct fleet_options options = options_of(2);
    struct fleet *fleet = NULL;
    struct error error;
    ASSERT_OK(fleet_load(&options, saved, now, &fleet, &error));
    return fleet;
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
    uint32_t leases;
};

struct cloud {
    struct random random;
    struct buffer saved; /* by the market */
    uint32_t restarts, survivors;
    uint64_t seed;
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

static void end_instance(struct cloud *cloud, const char *id, int64_t now)
{
    for (size_t i = 0; i < cloud->count; i++)
        if (strcmp(cloud->instances[i].id, id) == 0 && !cloud->instances[i].ended)
            cloud->instances[i].ended = now;
}

/* Only what belongs to orders that are lost is a stray. */
static void check_stray(const struct cloud *cloud, const struct fleet *fleet,
                        const struct fleet_action *action)
{
    for (size_t i = 0; i < cloud->count && !action->member; i++)
        if (strcmp(cloud->instances[i].id, action->instance) == 0 &&
            strcmp(cloud->instances[i].run, fleet->options.run) == 0)
            fail_msg("seed %" PRIu64 ": %s of member %" PRIu64 " is ended as a stray", cloud->seed,
                     action->instance, cloud->instances[i].member);
}

static void do_end(struct cloud *cloud, struct fleet *fleet, const struct fleet_action *action,
                   int64_t now)
{
    check_stray(cloud, fleet, action);
    const bool is_failing = strikes(cloud, cloud->fault_percent);
    if (is_failing && strikes(cloud, 50)) {
        fleet_failed(fleet, action, FLEET_THROTTLED, "a fault", now);
        return;
    }
    end_instance(cloud, action->instance, now);
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
            instance->leases = (uint32_t)random_below(&cloud->random, 2);
            fleet_leased(fleet, i + 1, instance->leases, now);
        }
    }
}

static int64_t bill(const struct cloud_instance *instance, int64_t now)
{
    const int64_t end = instance->ended ? instance->ended : now;
    const int64_t ms = end - instance->began > MINUTE ? end - instance->began : MINUTE;
    return instance->price * ms / HOUR;
}

static void check_twins(const struct cloud *cloud)
{
    const struct cloud_instance *alive[CLOUD_MAX];
    size_t count = 0;
    for (size_t i = 0; i < cloud->count; i++) {
        const struct cloud_instance *instance = &cloud->instances[i];
        if (instance->ended)
            continue;
        for (size_t k = 0; k < count; k++)
            if (alive[k]->member == instance->member && strcmp(alive[k]->run, instance->run) == 0)
                fail_msg("seed %" PRIu64 ": member %" PRIu64 " was launched twice", cloud->seed,
                         instance->member);
        alive[count++] = instance;
    }
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

static void save(struct cloud *cloud, const struct fleet *fleet)
{
    buffer_clear(&cloud->saved);
    fleet_save(fleet, &cloud->saved);
}

static bool dies(struct cloud *cloud)
{
    return strikes(cloud, 1) && strikes(cloud, 20);
}

/* False: the market died, before the cloud was asked or before it had the answer. */
static bool act(struct cloud *cloud, struct fleet *fleet, int64_t now)
{
    struct fleet_action action;
    for (int i = 0; i < 64 && fleet_next(fleet, now, &action); i++) {
        if (action.kind != FLEET_LIST)
            save(cloud, fleet);
        if (dies(cloud)) {
            if (strikes(cloud, 50) && action.kind == FLEET_LAUNCH)
                start_instance(cloud, fleet, &action, now);
            else if (strikes(cloud, 50) && action.kind == FLEET_END)
                end_instance(cloud, action.instance, now);
            return false;
        }
        if (action.kind == FLEET_LAUNCH)
            do_launch(cloud, fleet, &action, now);
        else if (action.kind != FLEET_LIST)
            do_end(cloud, fleet, &action, now);
        else
            do_list(cloud, fleet, &action, now);
    }
    return true;
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

/* A market whose folder is lost has other orders: its first list finds what was left of the old. */
static struct fleet *start_anew(struct cloud *cloud, struct fleet *fleet, uint32_t run)
{
    struct fleet_options options = options_of(cloud->seed);
    snprintf(options.run, sizeof(options.run), "run-%u", run);
    fleet_free(fleet);
    fleet = fleet_new(&options);
    save(cloud, fleet);
    return fleet;
}

/* By what it saved, and what the market's own log says of machines and leases. */
static struct fleet *start_again(struct cloud *cloud, struct fleet *fleet, int64_t now)
{
    fleet_free(fleet);
    fleet = load_saved(buffer_text(&cloud->saved), now);
    cloud->restarts++;
    for (size_t i = 0; i < cloud->count; i++) {
        const struct cloud_instance *instance = &cloud->instances[i];
        if (strcmp(instance->run, fleet->options.run) != 0)
            continue;
        if (instance->is_enrolled)
            fleet_enrolled(fleet, instance->member, i + 1, now);
        fleet_leased(fleet, i + 1, instance->leases, now);
        cloud->survivors += !instance->ended;
    }
    return fleet;
}

static struct fleet *step(struct cloud *cloud, struct fleet *fleet, int64_t *now)
{
    live(cloud, fleet, *now);
    if (!act(cloud, fleet, *now)) {
        *now += (int64_t)random_below(&cloud->random, 20) * MINUTE;
        live(cloud, fleet, *now); /* nobody hears of it */
        fleet = start_again(cloud, fleet, *now);
    } else if (strikes(cloud, 10)) {
        save(cloud, fleet);
    }
    check_budgets(cloud, fleet, *now, cloud->seed);
    check_twins(cloud);
    return fleet;
}

/* What is ordered or stopped is saved before anybody hears of it. */
static struct fleet *happen(struct cloud *cloud, struct fleet *fleet, uint32_t *runs, int64_t now)
{
    struct error error;
    if (strikes(cloud, 2)) {
        order_something(cloud, fleet, now);
        save(cloud, fleet);
    }
    if (strikes(cloud, 1) && fleet_order_count(fleet)) {
        ASSERT_OK(fleet_stop(fleet, fleet_order_at(fleet, 0)->id, "stopped", now, &error));
        save(cloud, fleet);
    }
    if (strikes(cloud, 1))
        fleet_job_ended(fleet, 1 + random_below(&cloud->random, 3), now);
    if (dies(cloud))
        fleet = start_again(cloud, fleet, now);
    else if (strikes(cloud, 1) && strikes(cloud, 5))
        fleet = start_anew(cloud, fleet, ++*runs);
    return fleet;
}

struct totals {
    uint32_t instances, restarts, survivors;
};

static void simulate(uint64_t seed, struct totals *totals)
{
    struct cloud *cloud = calloc(1, sizeof(*cloud));
    ASSERT(cloud);
    cloud->seed = seed;
    random_init(&cloud->random, seed);
    buffer_init(&cloud->saved, FLEET_SAVED_MAX);
    cloud->fault_percent = (uint32_t)random_below(&cloud->random, 60);
    uint32_t runs = 1;
    struct fleet *fleet = start_anew(cloud, NULL, runs);
    int64_t now = BEGIN;
    for (const int64_t end = BEGIN + 6 * HOUR; now < end; now += 10 * SECOND) {
        fleet = happen(cloud, fleet, &runs, now);
        fleet = step(cloud, fleet, &now);
    }
    fleet_stop_all(fleet, "the end", now);
    save(cloud, fleet);
    for (const int64_t end = now + 2 * HOUR; now < end; now += 10 * SECOND)
        fleet = step(cloud, fleet, &now);
    if (running(cloud))
        fail_msg("seed %" PRIu64 ": %zu are left running", seed, running(cloud));
    for (size_t i = 0; i < fleet_order_count(fleet); i++)
        if (!fleet_order_at(fleet, i)->is_done)
            fail_msg("seed %" PRIu64 ": an order is not done", seed);
    totals->instances += (uint32_t)cloud->count;
    totals->restarts += cloud->restarts;
    totals->survivors += cloud->survivors;
    fleet_free(fleet);
    buffer_done(&cloud->saved);
    free(cloud);
}

TEST(whatever_fails_nothing_is_left_running_and_no_budget_is_passed)
{
    struct totals totals = {0};
    for (uint64_t seed = 1; seed <= 400; seed++)
        simulate(seed, &totals);
    assert_true(totals.instances > 10000 && totals.restarts > 1000 && totals.survivors > 1000);
    print_message("%u instances, %u restarts, %u times an instance was there after one\n",
                  totals.instances, totals.restarts, totals.survivors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_fails_nothing_is_left_running_and_no_budget_is_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
