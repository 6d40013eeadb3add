/*
 * For tests: a policy driven by hand, and its actions as text, so that a rule can be written down
 * as the sequence it must give.
 *
 *     apply 0 0.5           W += 0.5 U_0; with an outer step: "apply 0 0.5 (rate m direct carried)"
 *     gather 0 1, fold      the plain mean; "fold/3" divides by 3; an outer step as above
 *     steps 0 40, steps 0 40+, period 0 0.5s, batch 0 48        + : computes on while it waits
 *     steps 0 40 plain      without a momentum of its own
 *     reply 0, hold 0, release 0, evaluate, keep, return, barrier, stop
 */
#pragma once

#include "sync/policy.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

enum { SCRIPT_SIZE = 4096 };

struct script {
    struct sync_policy *policy;
    struct sync_actions actions;
    char text[SCRIPT_SIZE];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static inline void script_add(struct script *script,
                                                                    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int size =
        vsnprintf(script->text + script->size, SCRIPT_SIZE - script->size, format, arguments);
    va_end(arguments);
    assert_true(size >= 0 && (size_t)size < SCRIPT_SIZE - script->size);
    script->size += (size_t)size;
}

static inline void script_outer(struct script *script, const struct sync_outer *outer)
{
    if (outer->rate > 0)
        script_add(script, " (%.3g %.3g %.3g %.3g)", outer->rate, outer->momentum, outer->direct,
                   outer->carried);
}

static inline void script_action(struct script *script, const struct sync_action *action)
{
    static const char *const plain[SYNC_ACTION_KIND_COUNT] = {
        [SYNC_REPLY] = "reply",       [SYNC_HOLD] = "hold",       [SYNC_RELEASE] = "release",
        [SYNC_EVALUATE] = "evaluate", [SYNC_KEEP] = "keep",       [SYNC_RETURN] = "return",
        [SYNC_STOP] = "stop",         [SYNC_BARRIER] = "barrier",
    };
    const char *overlap = action->overlap == SYNC_OVERLAP_FREE ? "+" : "";
    const unsigned worker = action->worker;
    switch (action->kind) {
    case SYNC_APPLY:
    case SYNC_GATHER:
        script_add(script, "%s %u %.3g", action->kind == SYNC_APPLY ? "apply" : "gather", worker,
                   action->weight);
        script_outer(script, &action->outer);
        return;
    case SYNC_FOLD:
        script_add(script, action->weight > 0 ? "fold/%.3g" : "fold", action->weight);
        script_outer(script, &action->outer);
        return;
    case SYNC_SET_STEPS:
        script_add(script, "steps %u %u%s%s", worker, action->steps, overlap,
                   action->is_plain ? " plain" : "");
        return;
    case SYNC_SET_PERIOD:
        script_add(script, "period %u %.3gs%s", worker, 1e-9 * (double)action->period_ns, overlap);
        return;
    case SYNC_SET_BATCH:
        script_add(script, "batch %u %u", worker, action->batch);
        return;
    case SYNC_REPLY:
    case SYNC_HOLD:
    case SYNC_RELEASE:
        script_add(script, "%s %u", plain[action->kind], worker);
        return;
    case SYNC_EVALUATE:
    case SYNC_KEEP:
    case SYNC_RETURN:
    case SYNC_BARRIER:
    case SYNC_STOP:
        script_add(script, "%s", plain[action->kind]);
        return;
    case SYNC_ACTION_KIND_COUNT:
        break;
    }
    fail_msg("action %d", (int)action->kind);
}

/* What the last call did; empties the actions. */
static inline const char *script_text(struct script *script)
{
    script->size = 0;
    script->text[0] = '\0';
    for (uint32_t i = 0; i < script->actions.count; i++) {
        if (i > 0)
            script_add(script, ", ");
        script_action(script, &script->actions.items[i]);
    }
    script->actions.count = 0;
    return script->text;
}

static inline struct script *script_open(const char *name, const struct sync_settings *settings)
{
    struct error error;
    struct script *script = test_calloc(1, sizeof *script);
    struct sync_settings given = *settings;
    if (given.gamma_ms == 0)
        given.gamma_ms = 1000;
    ASSERT_OK(sync_policy_new(text_of(name), &given, &script->policy, &error));
    return script;
}

static inline void script_close(struct script *script)
{
    sync_policy_free(script->policy);
    test_free(script);
}

/* Times are in ms. */
static inline const char *script_join(struct script *script, int64_t now_ms, uint32_t worker)
{
    sync_policy_join(script->policy, now_ms * 1000000, worker, &script->actions);
    return script_text(script);
}

static inline const char *script_leave(struct script *script, int64_t now_ms, uint32_t worker)
{
    sync_policy_leave(script->policy, now_ms * 1000000, worker, &script->actions);
    return script_text(script);
}

static inline const char *script_go_on(struct script *script, int64_t now_ms)
{
    sync_policy_go_on(script->policy, now_ms * 1000000, &script->actions);
    return script_text(script);
}

/* A push of `steps` steps that took step_ms each, after one that took commit_ms. */
static inline const char *script_push_timed(struct script *script, int64_t now_ms, uint32_t worker,
                                            uint32_t steps, int64_t step_ms, int64_t commit_ms)
{
    const struct sync_push push = {
        .worker = worker,
        .steps = steps,
        .compute_ns = steps * step_ms * 1000000,
        .commit_ns = commit_ms * 1000000,
    };
    sync_policy_push(script->policy, now_ms * 1000000, &push, &script->actions);
    return script_text(script);
}

static inline const char *script_push(struct script *script, int64_t now_ms, uint32_t worker,
                                      uint32_t steps)
{
    return script_push_timed(script, now_ms, worker, steps, 0, 0);
}

static inline const char *script_tick(struct script *script, int64_t now_ms)
{
    sync_policy_tick(script->policy, now_ms * 1000000, NULL, &script->actions);
    return script_text(script);
}

static inline const char *script_loss(struct script *script, int64_t now_ms, double loss)
{
    const struct sync_loss measured = {now_ms * 1000000, loss};
    sync_policy_tick(script->policy, now_ms * 1000000, &measured, &script->actions);
    return script_text(script);
}
