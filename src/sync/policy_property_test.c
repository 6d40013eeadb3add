/*
 * All policies under random joins, pushes, freezes, leaves, ticks and losses:
 *
 *   no action names somebody who is not a member; holds, releases and replies fit each other;
 *   what is applied was pushed; under hsp it enters once, and no later than its bound;
 *   a sum is folded only when something was gathered, a model given back only when one was kept;
 *   once everybody who is not held keeps pushing, everybody who is held is released;
 *   the same calls give the same actions.
 */
#include "base/random.h"
#include "sync/policy.h"
#include "testing/testing.h"

enum { WORKERS = 9, CALLS = 400, SEEDS = 60, ROUNDS_MAX = 200 };

struct world {
    struct random random;
    struct sync_policy *policy;
    struct sync_actions actions;
    int64_t now_ns;
    bool is_member[WORKERS], is_frozen[WORKERS], is_held[WORKERS], has_settings[WORKERS];
    bool has_pushed[WORKERS];       /* and it is not in the model, yet or at all */
    uint64_t got[WORKERS];          /* the version of the model it has */
    uint64_t staleness_of[WORKERS]; /* the most that its push may be late; 0: any */
    uint64_t version;
    uint32_t staleness; /* of hsp, as given */
    bool is_loss_due, has_kept, is_at_barrier;
    double gathered;
    uint64_t digest; /* of all actions so far */
};

static void digest_add(struct world *world, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    world->digest = (world->digest ^ bits) * 0x100000001b3u;
}

static uint32_t member_count(const struct world *world)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WORKERS; i++)
        count += world->is_member[i];
    return count;
}

static void get_model(struct world *world, uint32_t worker)
{
    const bool is_hsp = strcmp(sync_policy_name(world->policy), "hsp") == 0;
    world->has_pushed[worker] = false;
    world->got[worker] = world->version;
    world->staleness_of[worker] = !is_hsp                ? 0
                                  : world->staleness > 0 ? world->staleness
                                                         : 2 * member_count(world);
}

/* `pusher` is WORKERS unless the call was a push. */
static void action_check(struct world *world, const struct sync_action *action, uint32_t pusher,
                         bool *is_answered)
{
    const uint32_t worker = action->worker;
    digest_add(world, action->kind);
    digest_add(world, worker);
    switch (action->kind) {
    case SYNC_APPLY:
    case SYNC_GATHER:
        assert_true(worker < WORKERS && world->is_member[worker] && world->has_pushed[worker]);
        assert_true(action->weight > 0);
        if (world->staleness_of[worker] > 0) {
            assert_true(world->version - world->got[worker] <= world->staleness_of[worker]);
            world->has_pushed[worker] = false;
        }
        world->version++;
        digest_add(world, action->weight);
        world->gathered += action->kind == SYNC_GATHER ? action->weight : 0;
        return;
    case SYNC_FOLD:
        assert_true(world->gathered > 0);
        world->gathered = 0;
        return;
    case SYNC_REPLY:
    case SYNC_HOLD:
        assert_int_equal(worker, pusher);
        assert_false(*is_answered);
        *is_answered = true;
        world->is_held[worker] = action->kind == SYNC_HOLD;
        if (action->kind == SYNC_REPLY)
            get_model(world, worker);
        return;
    case SYNC_RELEASE:
        assert_true(worker < WORKERS && world->is_member[worker] && world->is_held[worker]);
        world->is_held[worker] = false;
        get_model(world, worker);
        return;
    case SYNC_SET_STEPS:
    case SYNC_SET_PERIOD:
        assert_true(worker < WORKERS && world->is_member[worker]);
        assert_true(action->kind == SYNC_SET_STEPS ? action->steps > 0 : action->period_ns > 0);
        digest_add(world,
                   action->kind == SYNC_SET_STEPS ? action->steps : (double)action->period_ns);
        world->has_settings[worker] = true;
        return;
    case SYNC_SET_BATCH:
        assert_true(worker < WORKERS && world->is_member[worker] && world->has_settings[worker]);
        assert_true(action->batch > 0);
        digest_add(world, action->batch);
        return;
    case SYNC_EVALUATE:
        world->is_loss_due = true;
        return;
    case SYNC_KEEP:
        world->has_kept = true;
        return;
    case SYNC_RETURN:
        assert_true(world->has_kept);
        world->gathered = 0;
        return;
    case SYNC_BARRIER:
        world->is_at_barrier = true;
        return;
    case SYNC_STOP:
        return;
    case SYNC_ACTION_KIND_COUNT:
        break;
    }
    fail_msg("action %d", (int)action->kind);
}

static void pass_barrier(struct world *world);
static void leave(struct world *world, uint32_t worker);

static void actions_check(struct world *world, uint32_t pusher)
{
    bool is_answered = false;
    for (uint32_t i = 0; i < world->actions.count; i++)
        action_check(world, &world->actions.items[i], pusher, &is_answered);
    assert_true(pusher == WORKERS || is_answered);
    world->actions.count = 0;
    if (world->is_at_barrier)
        pass_barrier(world);
}

/* Where all are held; some of them may be let go before the rest goes on. */
static void pass_barrier(struct world *world)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_true(!world->is_member[i] || world->is_held[i]);
    world->is_at_barrier = false;
    for (uint32_t i = 0; i < WORKERS; i++)
        if (world->is_member[i] && random_below(&world->random, 8) == 0)
            leave(world, i);
    sync_policy_go_on(world->policy, world->now_ns, &world->actions);
    actions_check(world, WORKERS);
}

static void join(struct world *world, uint32_t worker)
{
    world->is_member[worker] = true;
    world->is_frozen[worker] = world->is_held[worker] = world->has_settings[worker] = false;
    get_model(world, worker);
    sync_policy_join(world->policy, world->now_ns, worker, &world->actions);
    actions_check(world, WORKERS);
    assert_true(world->has_settings[worker]);
}

static void leave(struct world *world, uint32_t worker)
{
    world->is_member[worker] = world->is_held[worker] = world->has_pushed[worker] = false;
    sync_policy_leave(world->policy, world->now_ns, worker, &world->actions);
    actions_check(world, WORKERS);
}

static void push(struct world *world, uint32_t worker)
{
    const uint32_t steps = 1 + (uint32_t)random_below(&world->random, 12);
    const struct sync_push what = {
        .worker = worker,
        .steps = steps,
        .samples = 32 * (uint64_t)steps,
        .compute_ns = steps * (1 + (int64_t)random_below(&world->random, 50)) * 1000000,
        .commit_ns = (int64_t)random_below(&world->random, 200) * 1000000,
        .loss = 1,
    };
    world->has_pushed[worker] = true;
    sync_policy_push(world->policy, world->now_ns, &what, &world->actions);
    actions_check(world, worker);
}

static void tick(struct world *world)
{
    const struct sync_loss loss = {world->now_ns,
                                   0.1 + (double)random_below(&world->random, 1000) / 400};
    const bool has_loss = world->is_loss_due;
    world->is_loss_due = false;
    sync_policy_tick(world->policy, world->now_ns, has_loss ? &loss : NULL, &world->actions);
    actions_check(world, WORKERS);
}

static void random_call(struct world *world)
{
    const uint32_t worker = (uint32_t)random_below(&world->random, WORKERS);
    world->now_ns += (int64_t)random_below(&world->random, 60) * 1000000;
    const uint64_t what = random_below(&world->random, 20);
    if (!world->is_member[worker]) {
        if (what < 8)
            join(world, worker);
    } else if (what == 0) {
        leave(world, worker);
    } else if (what == 1) {
        world->is_frozen[worker] = !world->is_frozen[worker];
    } else if (what < 5) {
        tick(world);
    } else if (!world->is_held[worker] && !world->is_frozen[worker]) {
        push(world, worker);
    }
}

static bool wakes_in_time(const struct world *world)
{
    return sync_policy_wake_ns(world->policy) <= world->now_ns;
}

/* Everybody pushes whenever it is not held: each who is held now is released before long. */
static void nobody_is_held_for_ever(struct world *world)
{
    bool was_held[WORKERS];
    uint32_t left = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        was_held[i] = world->is_member[i] && world->is_held[i];
        left += was_held[i];
    }
    for (uint32_t round = 0; round < ROUNDS_MAX && left > 0; round++) {
        world->now_ns += 20000000;
        for (uint32_t i = 0; i < WORKERS; i++) {
            if (world->is_member[i] && !world->is_held[i])
                push(world, i);
            if (world->is_loss_due || wakes_in_time(world))
                tick(world);
            for (uint32_t k = 0; k < WORKERS; k++)
                if (was_held[k] && !world->is_held[k]) {
                    was_held[k] = false;
                    left--;
                }
        }
    }
    if (left > 0)
        fail_msg("%s holds %u workers for ever", sync_policy_name(world->policy), left);
}

/* Members that hang on while the rest has left must not be held either. */
static void all_but_one_leave(struct world *world)
{
    uint32_t kept = WORKERS;
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (world->is_member[i] && kept == WORKERS)
            kept = i;
        else if (world->is_member[i])
            leave(world, i);
    }
    if (kept < WORKERS)
        nobody_is_held_for_ever(world);
}

static uint64_t history(const char *name, uint64_t seed)
{
    struct error error;
    struct world *world = test_calloc(1, sizeof *world);
    const struct sync_settings settings = {
        .gamma_ms = 700,
        .slack = 3,
        .staleness = (uint32_t)(seed % 5), /* 0: as many as twice the members */
        .epoch_steps = seed % 3 ? 50 : 0,
        .taus = {1, 4},
        .tau_count = seed % 2 ? 2 : 0,
        .overlap = (enum sync_overlap)(seed % SYNC_OVERLAP_COUNT),
    };
    random_init(&world->random, seed);
    world->staleness = settings.staleness;
    ASSERT_OK(sync_policy_new(text_of(name), &settings, &world->policy, &error));
    sync_policy_set_pass(world->policy, seed % 2 ? 1000 : 0);
    for (uint32_t call = 0; call < CALLS; call++) {
        random_call(world);
        if (call % 100 == 99) {
            memset(world->is_frozen, 0, sizeof world->is_frozen);
            nobody_is_held_for_ever(world);
        }
    }
    all_but_one_leave(world);
    const uint64_t digest = world->digest;
    sync_policy_free(world->policy);
    test_free(world);
    return digest;
}

TEST(every_policy_keeps_its_promises_under_churn)
{
    const char *name;
    for (uint32_t index = 0; (name = sync_policy_name_at(index)); index++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            assert_true(history(name, seed) == history(name, seed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_keeps_its_promises_under_churn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
