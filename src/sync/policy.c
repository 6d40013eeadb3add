/*
 * Sync policy: the table of policies, and the checks every one of them may rely on.
 */
#include "sync/policy.h"

#include "base/assert.h"
#include "sync/policy_internal.h"

#include <stdlib.h>

static const struct sync_policy_ops *const policies[] = {
    &sync_bsp_ops,
    &sync_tap_ops,
    &sync_adsp_ops,
};

enum {
    POLICY_COUNT = sizeof(policies) / sizeof(*policies),
    LOCAL_STEPS_MAX = 1000000,
};

static const int64_t gamma_ms_max = INT64_C(24) * 3600 * 1000;

const char *sync_search_name(enum sync_search search)
{
    switch (search) {
    case SYNC_SEARCH_AUTO:
        return "auto";
    case SYNC_SEARCH_PAPER:
        return "paper";
    case SYNC_SEARCH_OFF:
        return "off";
    case SYNC_SEARCH_COUNT:
        break;
    }
    ASSERT(search < SYNC_SEARCH_COUNT);
    return "";
}

int sync_search_parse(struct text name, enum sync_search *out_search, struct error *error)
{
    for (enum sync_search search = 0; search < SYNC_SEARCH_COUNT; search++) {
        if (!text_equal(name, text_of(sync_search_name(search))))
            continue;
        *out_search = search;
        return 0;
    }
    return error_set(error, ERROR_INVALID,
                     "no search \"" TEXT_FORMAT "\"; there are auto, paper and off",
                     TEXT_ARGS(name));
}

void *sync_allocate(size_t size)
{
    void *memory = calloc(1, size);
    ASSERT(memory);
    return memory;
}

void sync_append(struct sync_actions *actions, struct sync_action action)
{
    ASSERT(actions->count < SYNC_ACTION_MAX);
    actions->items[actions->count++] = action;
}

static int settings_check(const struct sync_settings *settings, struct error *error)
{
    if (settings->gamma_ms < 1 || settings->gamma_ms > gamma_ms_max)
        return error_set(error, ERROR_INVALID, "gamma must be between 1 ms and 24 h");
    if (settings->commit_interval_min_ms < 0 ||
        settings->commit_interval_min_ms > settings->gamma_ms)
        return error_set(error, ERROR_INVALID,
                         "the smallest commit interval must be between 0 and gamma");
    if (settings->local_steps > LOCAL_STEPS_MAX)
        return error_set(error, ERROR_INVALID, "at most %d local steps", LOCAL_STEPS_MAX);
    if ((int)settings->search < 0 || settings->search >= SYNC_SEARCH_COUNT)
        return error_set(error, ERROR_INVALID, "no such search");
    return 0;
}

int sync_policy_new(struct text name, const struct sync_settings *settings,
                    struct sync_policy **out_policy, struct error *error)
{
    if (settings_check(settings, error) < 0)
        return -1;
    for (uint32_t i = 0; i < POLICY_COUNT; i++) {
        if (!text_equal(name, text_of(policies[i]->name)))
            continue;
        struct sync_policy *policy = policies[i]->create(settings);
        policy->ops = policies[i];
        policy->settings = *settings;
        if (policy->settings.local_steps == 0)
            policy->settings.local_steps = 1;
        *out_policy = policy;
        return 0;
    }
    return error_set(error, ERROR_NOT_FOUND,
                     "no policy \"" TEXT_FORMAT "\"; there are bsp, tap and adsp", TEXT_ARGS(name));
}

void sync_policy_free(struct sync_policy *policy)
{
    if (policy)
        policy->ops->free(policy);
}

const char *sync_policy_name(const struct sync_policy *policy)
{
    return policy->ops->name;
}

const char *sync_policy_name_at(uint32_t index)
{
    return index < POLICY_COUNT ? policies[index]->name : NULL;
}

static void advance(struct sync_policy *policy, int64_t now_ns)
{
    ASSERT(now_ns >= policy->now_ns);
    policy->now_ns = now_ns;
}

void sync_policy_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                      struct sync_actions *actions)
{
    ASSERT(worker < SYNC_WORKER_MAX && !policy->is_member[worker]);
    advance(policy, now_ns);
    policy->is_member[worker] = true;
    policy->member_count++;
    policy->ops->on_join(policy, now_ns, worker, actions);
}

void sync_policy_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                      struct sync_actions *actions)
{
    ASSERT(push->worker < SYNC_WORKER_MAX && policy->is_member[push->worker]);
    advance(policy, now_ns);
    policy->ops->on_push(policy, now_ns, push, actions);
}

void sync_policy_tick(struct sync_policy *policy, int64_t now_ns, const struct sync_loss *loss,
                      struct sync_actions *actions)
{
    advance(policy, now_ns);
    policy->ops->on_tick(policy, now_ns, loss, actions);
}

void sync_policy_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                       struct sync_actions *actions)
{
    ASSERT(worker < SYNC_WORKER_MAX && policy->is_member[worker]);
    advance(policy, now_ns);
    policy->is_member[worker] = false;
    policy->member_count--;
    policy->ops->on_leave(policy, now_ns, worker, actions);
}

int64_t sync_policy_wake_ns(const struct sync_policy *policy)
{
    return policy->ops->wake_ns(policy);
}

struct sync_status sync_policy_status(const struct sync_policy *policy)
{
    struct sync_status status = {0};
    policy->ops->status(policy, &status);
    return status;
}
