/*
 * Sync policy: decides when workers push, when they are answered and how a push enters the model.
 *
 * A policy is pure: it is told what happened and the time, and appends actions for its driver (the
 * parameter server, or the simulator in virtual time). It never sees parameters, sockets or clocks.
 *
 * The driver's part: number workers 0..SYNC_WORKER_MAX-1; call join, push, tick and leave with a
 * time that never goes back; carry out the actions in their order; call tick when
 * sync_policy_wake_ns has passed and when a loss asked for by SYNC_EVALUATE has come; call go_on
 * once SYNC_BARRIER and what was asked for with it is carried out, before anybody else joins.
 *
 *     W    the global model          M    workers now members
 *     U_i  the update pushed by i    c_i  pushes of i so far
 *     v_i  steps per second of i     O_i  duration of one push and its answer at i
 *
 * The driver holds, beside W, three things of its size, all zero or empty at the start:
 *
 *     S, n  the round's sum and the weights in it      (SYNC_GATHER, SYNC_FOLD)
 *     B     the outer momentum, one for the whole model (SYNC_APPLY, SYNC_FOLD)
 *     K     a kept copy of W and B                      (SYNC_KEEP, SYNC_RETURN)
 *
 * A worker holds its model L and its base A, the model its next update is counted from. It starts
 * with L = A = W. It has at most one push under way:
 *
 *     push    U = L - A is sent, A = L; its count of steps since the last push starts again
 *     answer  L += W - A, A = W; so steps made since the push stay on top of the new W and go with
 *             the next push; without such steps this is L = W
 *
 * Between push and answer it makes at most `overlap` steps, then waits: 0 waits at once, and
 * SYNC_OVERLAP_FREE never. It makes no second push before the answer.
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
    SYNC_ACTION_MAX = 6 * SYNC_WORKER_MAX + 8, /* no call appends more */
    SYNC_TAU_MAX = 16,
    SYNC_REASON_SIZE = 256,
};

#define SYNC_OVERLAP_FREE UINT32_MAX

enum sync_search {
    SYNC_SEARCH_AUTO,  /* a start from measured speeds and commit times, then paired trials */
    SYNC_SEARCH_PAPER, /* from one commit a period upward, one after the other, as published */
    SYNC_SEARCH_OFF,   /* the measured start only */
    SYNC_SEARCH_COUNT,
};

const char *sync_search_name(enum sync_search search);
MUST_CHECK int sync_search_parse(struct text name, enum sync_search *out_search,
                                 struct error *error);

/* Whether workers compute on while a push is under way, where the policy leaves the choice. */
enum sync_overlap {
    SYNC_OVERLAP_DEFAULT, /* the policy's */
    SYNC_OVERLAP_ON,
    SYNC_OVERLAP_OFF,
    SYNC_OVERLAP_COUNT,
};

/* All zero but gamma_ms means: the defaults of each policy, given in its file and README.md. */
struct sync_settings {
    int64_t gamma_ms;               /* check period; > 0 */
    int64_t commit_interval_min_ms; /* of adsp; 0: twice the measured commit time */
    uint32_t local_steps;           /* per push: tau, H; 0: the policy's */
    enum sync_search search;        /* of adsp */
    double target_loss;   /* rewards are speeds towards it; 0: nine tenths of the loss at hand */
    uint32_t slack;       /* s of ssp: the fastest is at most s steps ahead; 0: 40 */
    uint32_t backups;     /* of backup: members not waited for; 0: a tenth, at least one */
    uint32_t staleness;   /* of hsp: no push is later, in pushes; 0: twice the members */
    uint64_t epoch_steps; /* of hsp: steps of all workers in an epoch; 0: a pass over the data */
    uint32_t batch;       /* of batchtune: samples per step before tuning; 0: 32 */
    /* Workers choose their batches: pace does not trim them, and weighs steps, not samples. */
    bool keeps_batch;
    double momentum;             /* of the workers' own steps, as the job has it; below 1 */
    bool keeps_momentum;         /* workers cannot do without it: is_plain is not for them */
    double outer_rate;           /* 0: the policy's */
    double outer_momentum;       /* 0: the policy's; < 0: none */
    int64_t deadline_ms;         /* of pace: after the first push of a round; 0: from the speeds */
    enum sync_overlap overlap;   /* of tap, adsp, async-local and pace */
    uint32_t taus[SYNC_TAU_MAX]; /* of adacomm: each is tried for gamma, from one model; */
    uint32_t tau_count;          /* the best is tau_0; 0: local_steps is */
};

enum sync_action_kind {
    SYNC_APPLY,      /* D = weight * U_worker enters W as `outer` says; it pushed or is held */
    SYNC_GATHER,     /* S += weight * U_worker; n += weight */
    SYNC_FOLD,       /* D = S / (weight > 0 ? weight : n) enters W as `outer` says; S = 0, n = 0 */
    SYNC_REPLY,      /* send W to the worker that pushed */
    SYNC_HOLD,       /* the worker gets no answer until SYNC_RELEASE */
    SYNC_RELEASE,    /* send W to a held worker */
    SYNC_SET_STEPS,  /* the worker pushes after `steps` steps; `overlap` as above */
    SYNC_SET_PERIOD, /* the worker pushes `period_ns` after its last answer; `overlap` as above */
    SYNC_SET_BATCH,  /* from its next step on the worker takes `batch` samples a step */
    SYNC_EVALUATE,   /* measure the loss of W as it is now, pass it to sync_policy_tick */
    SYNC_KEEP,       /* K = (W, B) */
    SYNC_RETURN,     /* (W, B) = K, which was kept before; S = 0, n = 0 */
    SYNC_BARRIER,    /* nobody computes: members may be let go; then sync_policy_go_on is called */
    SYNC_STOP,       /* the policy sees no use in going on */
    SYNC_ACTION_KIND_COUNT,
};

/*
 * How a displacement D enters the model:
 *
 *     B = momentum * B + D;   W += rate * (direct * D + carried * B)
 *
 * plain            all zero: W += D, B untouched
 * heavy ball       momentum m, direct 0, carried 1
 * Nesterov         momentum m, direct 1, carried m
 * delayed Nesterov direct 1 for each push; then once in N of them momentum m, direct 0, carried m
 *
 * B is untouched where momentum and carried are both 0.
 */
struct sync_outer {
    double rate; /* 0: plain */
    double momentum;
    double direct;
    double carried;
};

/*
 * The first setting of a worker, in the call of its join, is one of steps or period.
 * A new setting holds at once: who has made more steps since its last push than SET_STEPS asks for,
 * or whose period has passed, pushes after the step at hand. Settings appended before a REPLY or
 * RELEASE of the same call are there before that answer.
 */
struct sync_action {
    enum sync_action_kind kind;
    uint32_t worker;
    union {
        struct {
            double weight;
            struct sync_outer outer;
        };
        struct {
            uint32_t steps;
            uint32_t overlap;
            int64_t period_ns;
            bool is_plain; /* steps without a momentum of their own, at the rate / (1 - it) */
        };
        uint32_t batch;
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
    uint64_t samples;   /* behind it; 0 when unknown */
    int64_t compute_ns; /* what the steps took; 0 when unknown */
    int64_t commit_ns;  /* O_i of the worker's previous push; 0 before it is known. The time it
                           was held is not in it. */
    double loss;        /* mean over the steps, before each; 0 when unknown */
};

/* A loss with the time of the model it belongs to. */
struct sync_loss {
    int64_t at_ns;
    double loss;
};

/* For reports. */
struct sync_status {
    const char *policy;       /* in force: of auto the one it chose; lives as long as the program */
    double commit_rate;       /* pushes per worker and check period aimed at; 0: not steered */
    double commit_target;     /* cumulative pushes each worker should have at the period's end */
    double implicit_momentum; /* notes of the adsp paper: 1 - 1 / (1 + (1-1/M) sum G/(dC_i v_i)) */
    bool is_searching;
    uint64_t round;                /* folds, or epochs, so far, of policies that have them */
    double local_steps;            /* mean over the members, of policies that set steps; 0: none */
    uint64_t staleness;            /* of hsp: of the latest push so far */
    char reason[SYNC_REASON_SIZE]; /* of auto: what it chose and why; else empty */
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
/* The answer to SYNC_BARRIER, after those were let go that are. */
void sync_policy_go_on(struct sync_policy *policy, int64_t now_ns, struct sync_actions *actions);
/* How many samples a pass over the data has, as far as is known now; 0: not known. */
void sync_policy_set_pass(struct sync_policy *policy, uint64_t samples);
/* The worker is a member, held or not; no action names it afterwards. */
void sync_policy_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                       struct sync_actions *actions);

/* When tick is wanted next, though nothing happens; INT64_MAX: not at all. */
int64_t sync_policy_wake_ns(const struct sync_policy *policy);
struct sync_status sync_policy_status(const struct sync_policy *policy);
