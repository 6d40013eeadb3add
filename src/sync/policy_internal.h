/*
 * Inside of sync: what a policy implements and the small helpers all of them use.
 */
#pragma once

#include "sync/policy.h"

struct sync_policy_ops {
    const char *name;
    size_t size;          /* of the policy's own struct, which starts as zeroes */
    uint32_t local_steps; /* where the settings give none */
    /* The rest may be NULL where it has nothing to do, but for on_join and on_push. */
    void (*open)(struct sync_policy *policy); /* the settings are there */
    void (*close)(struct sync_policy *policy);
    void (*on_join)(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                    struct sync_actions *actions);
    void (*on_push)(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                    struct sync_actions *actions);
    void (*on_tick)(struct sync_policy *policy, int64_t now_ns, const struct sync_loss *loss,
                    struct sync_actions *actions);
    void (*on_leave)(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                     struct sync_actions *actions);
    void (*on_go_on)(struct sync_policy *policy, int64_t now_ns, struct sync_actions *actions);
    int64_t (*wake_ns)(const struct sync_policy *policy);
    void (*status)(const struct sync_policy *policy, struct sync_status *out_status);
};

/* First member of every policy's own struct. */
struct sync_policy {
    const struct sync_policy_ops *ops;
    struct sync_settings settings;
    uint32_t member_count;
    bool is_member[SYNC_WORKER_MAX];
    int64_t now_ns;        /* of the last call */
    uint64_t pass_samples; /* of the data; 0: not known */
};

extern const struct sync_policy_ops sync_bsp_ops;
extern const struct sync_policy_ops sync_ssp_ops;
extern const struct sync_policy_ops sync_tap_ops;
extern const struct sync_policy_ops sync_fixed_adacomm_ops;
extern const struct sync_policy_ops sync_adacomm_ops;
extern const struct sync_policy_ops sync_adsp_ops;
extern const struct sync_policy_ops sync_hsp_ops;
extern const struct sync_policy_ops sync_batchtune_ops;
extern const struct sync_policy_ops sync_batchtune_fixed_ops;
extern const struct sync_policy_ops sync_backup_ops;
extern const struct sync_policy_ops sync_diloco_ops;
extern const struct sync_policy_ops sync_async_local_ops;
extern const struct sync_policy_ops sync_pace_ops;
extern const struct sync_policy_ops sync_auto_ops;

void sync_append(struct sync_actions *actions, struct sync_action action);

/* The actions that most policies use. */
void sync_apply(struct sync_actions *actions, uint32_t worker, double weight);
void sync_gather(struct sync_actions *actions, uint32_t worker, double weight);
void sync_simple(struct sync_actions *actions, enum sync_action_kind kind, uint32_t worker);
void sync_set_steps(struct sync_actions *actions, uint32_t worker, uint32_t steps,
                    uint32_t overlap);

struct sync_outer sync_outer_nesterov(double rate, double momentum);
/* A moving mean in which the newest measurement weighs 0.3; the first one is taken as it is. */
void sync_smooth(double *value, double measured);
/* What the settings say, or else the policy's own. */
uint32_t sync_overlap_of(const struct sync_settings *settings, enum sync_overlap otherwise);
double sync_outer_rate_of(const struct sync_settings *settings, double otherwise);
double sync_outer_momentum_of(const struct sync_settings *settings, double otherwise);
