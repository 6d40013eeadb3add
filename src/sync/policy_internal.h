/*
 * Inside of sync: what a policy implements and the small helpers all of them use.
 */
#pragma once

#include "sync/policy.h"

struct sync_policy_ops {
    const char *name;
    uint32_t local_steps; /* where the settings give none */
    struct sync_policy *(*create)(const struct sync_settings *settings);
    void (*free)(struct sync_policy *policy);
    void (*on_join)(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                    struct sync_actions *actions);
    void (*on_push)(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                    struct sync_actions *actions);
    void (*on_tick)(struct sync_policy *policy, int64_t now_ns, const struct sync_loss *loss,
                    struct sync_actions *actions);
    void (*on_leave)(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                     struct sync_actions *actions);
    int64_t (*wake_ns)(const struct sync_policy *policy);
    void (*status)(const struct sync_policy *policy, struct sync_status *out_status);
};

/* First member of every policy's own struct. */
struct sync_policy {
    const struct sync_policy_ops *ops;
    struct sync_settings settings;
    uint32_t member_count;
    bool is_member[SYNC_WORKER_MAX];
    int64_t now_ns; /* of the last call */
};

extern const struct sync_policy_ops sync_bsp_ops;
extern const struct sync_policy_ops sync_tap_ops;
extern const struct sync_policy_ops sync_adsp_ops;

/* Aborts when memory is out. */
void *sync_allocate(size_t size);
void sync_append(struct sync_actions *actions, struct sync_action action);

/* The actions that most policies use. */
void sync_apply(struct sync_actions *actions, uint32_t worker, double weight);
void sync_gather(struct sync_actions *actions, uint32_t worker, double weight);
void sync_simple(struct sync_actions *actions, enum sync_action_kind kind, uint32_t worker);
void sync_set_steps(struct sync_actions *actions, uint32_t worker, uint32_t steps,
                    uint32_t overlap);

struct sync_outer sync_outer_nesterov(double rate, double momentum);
/* What the settings say, or else the policy's own. */
uint32_t sync_overlap_of(const struct sync_settings *settings, enum sync_overlap otherwise);
double sync_outer_rate_of(const struct sync_settings *settings, double otherwise);
double sync_outer_momentum_of(const struct sync_settings *settings, double otherwise);
