/*
 * Sync policy: decides when workers push, when they are answered and how a push enters the model.
 *
 * A policy is pure: it is told what happened and the time, and appends actions for its driver (the
 * parameter server, or the simulator in virtual time). It never sees parameters, sockets or clocks.
 *
 * The driver's part: number workers 0..SYNC_WORKER_MAX-1; call join, push, tick and leave with a
 * time that never goes back; carry out the actions in their order; call tick when
 * sync_policy_wake_ns has passed and when a loss asked for by SYNC_EVALUATE has come.
 *
 *     W    the global model          M    workers now members
 *     U_i  the update pushed by i    c_i  pushes of i so far
 *     v_i  steps per second of i     O_i  duration of one push and its answer at i
 *
 * To add one: a file with its ops, a line in the table of policy.c, a line in README.md.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SYNC_WORKER_MAX = 1024,
    SYNC_ACTION_MAX = 3 * SYNC_WORKER_MAX + 8, /* no call appends more */
};

enum sync_search {
    SYNC_SEARCH_AUTO,  /* a start from measured speeds and commit times, then paired trials */
    SYNC_SEARCH_PAPER, /* from one commit a period upward, one after the other, as published */
    SYNC_SEARCH_OFF,   /* the measured start only */
    SYNC_SEARCH_COUNT,
};

const char *sync_search_name(enum sync_search search);
MUST_CHECK int sync_search_parse(struct text name, enum sync_search *out_search,
                                 struct error *error);

struct sync_settings {
    int64_t gamma_ms;               /* check period; > 0 */
    int64_t commit_interval_min_ms; /* 0: twice the measured commit time */
    uint32_t local_steps;           /* per push, of bsp and tap; 0: 1 */
    enum sync_search search;        /* of adsp */
    double target_loss; /* rewards are speeds towards it; 0: nine tenths of the loss at hand */
};

enum sync_action_kind {
    SYNC_APPLY,      /* W += weight * U_worker */
    SYNC_GATHER,     /* add U_worker to the round's sum */
    SYNC_FOLD,       /* W += sum / updates gathered; empty the sum */
    SYNC_REPLY,      /* send W to the worker that pushed */
    SYNC_HOLD,       /* keep the worker waiting until SYNC_RELEASE */
    SYNC_RELEASE,    /* send W to a held worker */
    SYNC_SET_STEPS,  /* the worker pushes after `steps` steps and waits for the answer */
    SYNC_SET_PERIOD, /* the worker pushes `period_ns` after its last answer and never waits */
    SYNC_EVALUATE,   /* measure the loss of W as it is now, pass it to sync_policy_tick */
    SYNC_STOP,       /* the policy sees no use in going on */
    SYNC_ACTION_KIND_COUNT,
};

struct sync_action {
    enum sync_action_kind kind;
    uint32_t worker;
    union {
        double weight;
        uint32_t steps;
        int64_t period_ns;
    };
};

/* Appended to by the calls below; the driver empties it (count = 0) once carried out. */
struct sync_actions {
    uint32_t count;
    struct sync_action items[SYNC_ACTION_MAX];
};

struct sync_push {
    uint32_t worker;
    uint32_t steps;     /* local steps behind this update */
    int64_t compute_ns; /* what they took; 0 when unknown */
    int64_t commit_ns;  /* O_i of the worker's previous push; 0 before it is known */
};

/* A loss with the time of the model it belongs to. */
struct sync_loss {
    int64_t at_ns;
    double loss;
};

/* For reports. */
struct sync_status {
    double commit_rate;       /* pushes per worker and check period aimed at; 0: not steered */
    double commit_target;     /* cumulative pushes each worker should have at the period's end */
    double implicit_momentum; /* notes of the adsp paper: 1 - 1 / (1 + (1-1/M) sum G/(dC_i v_i)) */
    bool is_searching;
};

struct sync_policy; /* one belongs to one thread */

/* NOT_FOUND for an unknown name, with the names there are; INVALID for settings out of range. */
MUST_CHECK int sync_policy_new(struct text name, const struct sync_settings *settings,
                               struct sync_policy **out_policy, struct error *error);
void sync_policy_free(struct sync_policy *policy); /* NULL is fine */
DEFINE_AUTO(sync_policy);

const char *sync_policy_name(const struct sync_policy *policy);
/* The index-th name of the table, or NULL past its end. */
const char *sync_policy_name_at(uint32_t index);

/* The worker is not a member; it gets its first settings. */
void sync_policy_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                      struct sync_actions *actions);
/* The worker is a member and is not held. */
void sync_policy_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                      struct sync_actions *actions);
/* `loss` is NULL when none has come since the last call. */
void sync_policy_tick(struct sync_policy *policy, int64_t now_ns, const struct sync_loss *loss,
                      struct sync_actions *actions);
/* The worker is a member, held or not; no action names it afterwards. */
void sync_policy_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                       struct sync_actions *actions);

/* When tick is wanted next, though nothing happens; INT64_MAX: not at all. */
int64_t sync_policy_wake_ns(const struct sync_policy *policy);
struct sync_status sync_policy_status(const struct sync_policy *policy);
