/*
 * Inside of sync: what a policy implements and the small helpers all of them use.
 */
#pragma once

#include "sync/policy.h"

struct sync_policy_ops {
    const char *name;
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
