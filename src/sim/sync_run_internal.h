/*
 * Inside of a sync run: its state, and what sync_run.c (time), sync_run_worker.c (workers) and
 * sync_run_server.c (the policy's actions) call of each other.
 */
#pragma once

#include "base/random.h"
#include "exchange/global_model.h"
#include "sim/agenda.h"
#include "sim/sync_run.h"
#include "train/sampler.h"

enum { SYNC_CURVE_WINDOW = 5 };

enum sync_way { SYNC_WAY_UP, SYNC_WAY_DOWN, SYNC_WAY_COUNT };

enum sync_event {
    SYNC_EVENT_STEP,    /* a worker has finished a step */
    SYNC_EVENT_PUSH,    /* a push is at the server */
    SYNC_EVENT_ANSWER,  /* an answer is at the worker */
    SYNC_EVENT_SETTING, /* its next settings are */
    SYNC_EVENT_CHANGE,  /* it comes or goes */
    SYNC_EVENT_GONE,    /* the server sees that it is gone */
    SYNC_EVENT_JOIN,    /* the server sees that it is there */
    SYNC_EVENT_TICK,    /* the policy wanted to be woken */
    SYNC_EVENT_LOSS,    /* the loss the policy asked for */
    SYNC_EVENT_MEASURE, /* a point of the curve */
};

struct worker_settings {
    uint32_t local_steps; /* 0: by period */
    uint32_t overlap;
    int64_t period_ns;
    bool is_plain;
    uint32_t batch; /* 0: the usual */
};

struct sync_worker {
    struct sync_vector *local, *base, *update;
    struct sync_vector *arriving, *answer; /* on its way; there and not yet taken over */
    float *velocity;                       /* NULL without momentum */
    struct sampler sampler;
    struct random random;

    /* the worker's side */
    bool is_there, is_joined, is_computing, is_in_flight;
    uint64_t generation; /* of its stay: what comes of an older one is nobody's */
    uint32_t change_index;
    struct worker_settings settings;
    struct worker_settings *queue; /* settings on their way, in order */
    uint32_t queue_head, queue_count, queue_capacity;
    uint32_t steps_unsent;
    uint64_t samples_unsent;
    double loss_unsent;
    int64_t compute_unsent_ns, step_ns;
    int64_t quota_index, quota_used_ns; /* of a share of a core: in which of its times, how much */
    uint32_t step_batch;
    int64_t sent_ns, answer_ns, late_ns, due_ns, commit_ns;
    int64_t there_since_ns, step_since_ns;

    /* the server's */
    bool is_member, is_waiting; /* waiting: pushed and not answered */
    uint64_t connection;        /* the stay it joined with */
    struct worker_settings sent_settings;
    struct sync_push push;
    int64_t up_ns;      /* what the push took on its way */
    int64_t arrival_ns; /* of the last thing sent to it: nothing overtakes */
    int64_t gone_ns;    /* when the server sees the end of its last stay */

    int64_t there_ns, compute_ns; /* in all */
    uint64_t step_count, sample_count, commit_count;
    int64_t commit_sum_ns;
};

struct sync_state {
    const struct sync_run_options *options;
    struct sync_engine *engine;
    struct sync_vectors *vectors;
    struct sync_policy *policy;
    struct sync_actions *actions;
    struct global_model *model;
    struct robust_norms norms;
    struct sync_vector *snapshot; /* of the model at snapshot_version; NULL: none */
    uint64_t snapshot_version;
    struct agenda agenda;
    int64_t now_ns;
    uint64_t tick_generation;
    struct sync_worker *workers;
    uint32_t worker_count;
    uint32_t *records; /* [record_capacity], of the step at hand */
    uint32_t record_capacity;
    uint64_t push_bytes;
    uint64_t message_bytes;               /* a model on the wire */
    int64_t link_free_ns[SYNC_WAY_COUNT]; /* when the server's link has sent all there is */

    bool has_ended;
    bool is_at_barrier; /* the policy waits to go on */
    double first_loss;
    double window[SYNC_CURVE_WINDOW];
    int64_t window_ns[SYNC_CURVE_WINDOW];
    uint64_t window_samples[SYNC_CURVE_WINDOW];
    uint32_t measure_count;
    struct sync_run_result *result;
};

/* --- sync_run.c --- */

void sync_schedule(struct sync_state *state, int64_t at_ns, enum sync_event event, uint32_t worker,
                   uint64_t generation);
void sync_end(struct sync_state *state, enum sync_run_end end);
/* `ns` with this worker's next draw of jitter. */
int64_t sync_jitter(struct sync_state *state, struct sync_worker *worker, int64_t ns);
/* So many bytes from or to this worker: half of its round trip, and their transfer through its link
 * and, in turn with everybody's, the server's. */
int64_t sync_way_ns(struct sync_state *state, uint32_t index, enum sync_way way, uint64_t bytes);

/* --- sync_run_worker.c --- */

int sync_worker_open(struct sync_state *state, uint32_t index, struct error *error);
void sync_worker_done(struct sync_state *state, uint32_t index);
void sync_worker_step_done(struct sync_state *state, uint32_t index);
void sync_worker_answered(struct sync_state *state, uint32_t index);
void sync_worker_set(struct sync_state *state, uint32_t index);
void sync_worker_change(struct sync_state *state, uint32_t index);

/* --- sync_run_server.c --- */

/* At time 0 everything is there at once. */
void sync_server_join(struct sync_state *state, uint32_t index);
void sync_server_leave(struct sync_state *state, uint32_t index);
void sync_server_push(struct sync_state *state, uint32_t index);
void sync_server_tick(struct sync_state *state, const struct sync_loss *loss);
