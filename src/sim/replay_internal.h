/* Replay's own parts: the state of a run, its set-up, and what jobs do. */
#pragma once

#include "base/map.h"
#include "core/core.h"
#include "sim/agenda.h"
#include "sim/replay.h"

#define HOUR_MS       INT64_C(3600000)
#define REPLAY_START  (INT64_C(20833) * 24 * HOUR_MS) /* a midnight, UTC */
#define CHECKPOINT_MS INT64_C(600000)

enum replay_kind {
    REPLAY_SUBMIT,  /* a job, for the first time or again */
    REPLAY_FINISH,  /* a job has run to its end */
    REPLAY_GIVE_UP, /* a job can no longer be done in time */
    REPLAY_HOUR,    /* owners come and go, leases tick */
};

enum replay_state {
    REPLAY_AWAY, /* not with the market: not arrived, or too dear now */
    REPLAY_PENDING,
    REPLAY_RUNNING, /* all its leases run */
    REPLAY_OVER,
};

struct replay_job {
    enum replay_state state;
    uint64_t id;         /* in the core; 0: none */
    uint64_t generation; /* what was scheduled for an older one is void */
    int64_t left_ms;
    int64_t running_since_ms;
    size_t running_count;
    bool is_rush;
    bool is_again; /* stopped on purpose: goes on as a new job */
};

struct replay {
    const struct workload *workload;
    struct replay_options options;
    struct outcome *outcome;
    struct replay_counts counts;
    struct core *core;
    struct event_list events;
    size_t handled; /* of events */
    struct agenda agenda;
    int64_t now_ms;
    struct replay_job *jobs;
    uint64_t *accounts;      /* by member */
    uint64_t *machines;      /* by lender */
    uint64_t *washes;        /* by lender: the job it rents itself out to; 0: none */
    struct map job_index;    /* core's id -> &jobs[i] */
    struct map lender_index; /* machine -> &lenders[i] */
    uint64_t next_key;
};

/* Puts a command to the core; its events wait for replay_drain. */
MUST_CHECK int replay_do(struct replay *replay, const struct command *command, struct error *error);

/* Opens accounts and enrols machines. */
MUST_CHECK int replay_open(struct replay *replay, struct error *error);
/* At each full hour. */
MUST_CHECK int replay_pass_hour(struct replay *replay, struct error *error);

MUST_CHECK int replay_submit(struct replay *replay, uint32_t job, struct error *error);
/* Prices have changed: who waits and would now rush, or no longer, asks again. */
MUST_CHECK int replay_reconsider(struct replay *replay, struct error *error);
MUST_CHECK int replay_finish(struct replay *replay, uint32_t job, struct error *error);
MUST_CHECK int replay_give_up(struct replay *replay, uint32_t job, struct error *error);
MUST_CHECK int replay_handle(struct replay *replay, const struct event *event, struct error *error);
MUST_CHECK int replay_tick(struct replay *replay, const struct lease *lease, struct error *error);
void replay_schedule(struct replay *replay, int64_t at_ms, enum replay_kind kind, uint32_t job);
