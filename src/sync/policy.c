/*
 * Sync policy: the table of policies, and the checks every one of them may rely on.
 */
#include "sync/policy.h"

#include "base/assert.h"
#include "base/memory.h"
#include "sync/policy_internal.h"

#include <stdio.h>
#include <stdlib.h>

static const struct sync_policy_ops *const policies[] = {
    &sync_bsp_ops,           &sync_ssp_ops,       &sync_tap_ops,
    &sync_fixed_adacomm_ops, &sync_adacomm_ops,   &sync_adsp_ops,
    &sync_hsp_ops,           &sync_batchtune_ops, &sync_batchtune_fixed_ops,
    &sync_backup_ops,        &sync_diloco_ops,    &sync_async_local_ops,
    &sync_pace_ops,          &sync_auto_ops,
};

enum {
    POLICY_COUNT = sizeof(policies) / sizeof(*policies),
    LOCAL_STEPS_MAX = 1000000,
    OUTER_RATE_MAX = 100,
    NAMES_SIZE = 256,
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

void sync_append(struct sync_actions *actions, struct sync_action action)
{
    ASSERT(actions->count < SYNC_ACTION_MAX);
    actions->items[actions->count++] = action;
}

void sync_apply(struct sync_actions *actions, uint32_t worker, double weight)
{
    sync_append(actions, (struct sync_action){SYNC_APPLY, worker, {.weight = weight}});
}

void sync_gather(struct sync_actions *actions, uint32_t worker, double weight)
{
    sync_append(actions, (struct sync_action){SYNC_GATHER, worker, {.weight = weight}});
}

void sync_simple(struct sync_actions *actions, enum sync_action_kind kind, uint32_t worker)
{
    sync_append(actions, (struct sync_action){.kind = kind, .worker = worker});
}

void sync_set_steps(struct sync_actions *actions, uint32_t worker, uint32_t steps, uint32_t overlap)
{
    sync_append(actions,
                (struct sync_action){SYNC_SET_STEPS, worker, {.steps = steps, .overlap = overlap}});
}

struct sync_outer sync_outer_nesterov(double rate, double momentum)
{
    return (struct sync_outer){
        .rate = rate, .momentum = momentum, .direct = 1, .carried = momentum};
}

uint32_t sync_overlap_of(const struct sync_settings *settings, enum sync_overlap otherwise)
{
    const bool is_given = settings->overlap != SYNC_OVERLAP_DEFAULT;
    const enum sync_overlap overlap = is_given ? settings->overlap : otherwise;
    return overlap == SYNC_OVERLAP_ON ? SYNC_OVERLAP_FREE : 0;
}

double sync_outer_rate_of(const struct sync_settings *settings, double otherwise)
{
    return settings->outer_rate > 0 ? settings->outer_rate : otherwise;
}

double sync_outer_momentum_of(const struct sync_settings *settings, double otherwise)
{
    const double given = settings->outer_momentum;
    return given > 0 ? given : given < 0 ? 0 : otherwise;
}

void sync_smooth(double *value, double measured)
{
    static const double smoothing = 0.3;
    *value = *value > 0 ? (1 - smoothing) * *value + smoothing * measured : measured;
}

static int outer_check(const struct sync_settings *settings, struct error *error)
{
    if (!(settings->outer_rate >= 0 && settings->outer_rate <= OUTER_RATE_MAX))
        return error_set(error, ERROR_INVALID, "the outer rate must be from 0 to %d",
                         OUTER_RATE_MAX);
    if (!(settings->momentum >= 0 && settings->momentum < 1))
        return error_set(error, ERROR_INVALID, "the momentum of steps must be from 0 to below 1");
    if (!(settings->outer_momentum < 1)) /* NaN too */
        return error_set(error, ERROR_INVALID, "the outer momentum must be below 1");
    return 0;
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
    if ((int)settings->overlap < 0 || settings->overlap >= SYNC_OVERLAP_COUNT)
        return error_set(error, ERROR_INVALID, "no such overlap");
    if (settings->deadline_ms < 0 || settings->deadline_ms > gamma_ms_max)
        return error_set(error, ERROR_INVALID, "the deadline must be between 0 and 24 h");
    if (settings->tau_count > SYNC_TAU_MAX)
        return error_set(error, ERROR_INVALID, "at most %d values of tau", SYNC_TAU_MAX);
    for (uint32_t i = 0; i < settings->tau_count; i++)
        if (settings->taus[i] < 1 || settings->taus[i] > LOCAL_STEPS_MAX)
            return error_set(error, ERROR_INVALID, "tau must be from 1 to %d", LOCAL_STEPS_MAX);
    return outer_check(settings, error);
}

/* "bsp, tap and adsp" */
static void names_list(char out_names[NAMES_SIZE])
{
    size_t size = 0;
    for (uint32_t i = 0; i < POLICY_COUNT; i++) {
        const char *before = i == 0 ? "" : i + 1 == POLICY_COUNT ? " and " : ", ";
        const int added =
            snprintf(out_names + size, NAMES_SIZE - size, "%s%s", before, policies[i]->name);
        ASSERT(added > 0 && (size_t)added < NAMES_SIZE - size);
        size += (size_t)added;
    }
}

int sync_policy_new(struct text name, const struct sync_settings *settings,
                    struct sync_policy **out_policy, struct error *error)
{
    if (settings_check(settings, error) < 0)
        return -1;
    for (uint32_t i = 0; i < POLICY_COUNT; i++) {
        if (!text_equal(name, text_of(policies[i]->name)))
            continue;
        struct sync_policy *policy = memory_zeroed(1, policies[i]->size);
        policy->ops = policies[i];
        policy->settings = *settings;
        if (policy->settings.local_steps == 0)
            policy->settings.local_steps = policies[i]->local_steps;
        if (policy->ops->open)
            policy->ops->open(policy);
        *out_policy = policy;
        return 0;
    }
    char names[NAMES_SIZE];
    names_list(names);
    return error_set(error, ERROR_NOT_FOUND, "no policy \"" TEXT_FORMAT "\"; there are %s",
                     TEXT_ARGS(name), names);
}

void sync_policy_free(struct sync_policy *policy)
{
    if (!policy)
        return;
    if (policy->ops->close)
        policy->ops->close(policy);
    free(policy);
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
    if (policy->ops->on_tick)
        policy->ops->on_tick(policy, now_ns, loss, actions);
}

void sync_policy_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                       struct sync_actions *actions)
{
    ASSERT(worker < SYNC_WORKER_MAX && policy->is_member[worker]);
    advance(policy, now_ns);
    policy->is_member[worker] = false;
    policy->member_count--;
    if (policy->ops->on_leave)
        policy->ops->on_leave(policy, now_ns, worker, actions);
}

void sync_policy_go_on(struct sync_policy *policy, int64_t now_ns, struct sync_actions *actions)
{
    ASSERT(policy->ops->on_go_on);
    advance(policy, now_ns);
    policy->ops->on_go_on(policy, now_ns, actions);
}

void sync_policy_set_pass(struct sync_policy *policy, uint64_t samples)
{
    policy->pass_samples = samples;
}

int64_t sync_policy_wake_ns(const struct sync_policy *policy)
{
    return policy->ops->wake_ns ? policy->ops->wake_ns(policy) : INT64_MAX;
}

struct sync_status sync_policy_status(const struct sync_policy *policy)
{
    struct sync_status status = {.policy = policy->ops->name};
    if (policy->ops->status)
        policy->ops->status(policy, &status);
    return status;
}
