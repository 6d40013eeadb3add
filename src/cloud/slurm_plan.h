/*
 * Slurm plan: which nodes of a partition lend, and which go back to the queue. Pure.
 *
 * A node that lends runs an *agent*: a job of ours with the node to itself, in which `souk lend`
 * runs. Agents are started on idle nodes as far as the market wants machines, and ended when jobs
 * of others could run there, when the node is drained or reserved, when nobody wants it, and for a
 * fresh one when little is left of their time.
 *
 * Jobs of others come first. Those that wait are served in the order of their priority: each claims
 * nodes that are idle, then nodes of agents, those without leases first, but only when all that it
 * needs is there; a job that would wait anyway takes nothing. No agent is started on what is
 * claimed. When the idle nodes that a job claims have not been right for it for SLURM_PATIENCE_MS,
 * agents make way for it, too: what a job needs is Slurm's to know.
 */
#pragma once

#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SLURM_NAME_SIZE = 64,
    SLURM_PATIENCE_MS = 30000,   /* idle nodes that a job does not start on are not right for it */
    SLURM_PENDING_MS = 30000,    /* an agent that has not started by then will not soon */
    SLURM_GRACE_MS = 10000,      /* from being asked to end to being killed */
    SLURM_IDLE_MS = 60000,       /* an agent more than is wanted stays so long without a lease */
    SLURM_EARLY_MS = 60000,      /* an agent that ends before, unasked, has failed */
    SLURM_BACK_OFF_MS = 30000,   /* after the first failure on a node; twice that after the next */
    SLURM_BACK_OFF_MAX = 5,      /* doublings */
    SLURM_LIMIT_MIN_MS = 600000, /* shorter is not worth a start */
};

struct slurm_node {
    char name[SLURM_NAME_SIZE]; /* empty: there is none of this number */
    bool is_idle;               /* nothing runs there, and jobs may */
    bool is_ending;             /* the last that ran there is just going; soon idle */
    bool is_lent;               /* of the partition that lends */
    bool is_withheld;           /* reserved, drained, to be rebooted: agents there end */
    bool is_planned;            /* for a job that waits: no agent starts there */
    int64_t free_until_ms;      /* a reservation begins; INT64_MAX: none is known */
    uint32_t cpus;
};

struct slurm_agent {
    uint32_t job;
    uint32_t node; /* index into the nodes */
    bool is_running;
    bool is_leased; /* by the market */
    int64_t submitted_ms;
    int64_t ends_ms; /* by its time limit; of one that runs */
};

/* A job of somebody else's that would start if it had nodes. */
struct slurm_waiting {
    uint32_t job;
    uint32_t priority;
    uint32_t node_count;    /* > 0 */
    uint32_t cpus_per_node; /* > 0 */
    uint32_t copies;        /* tasks of an array that are not started yet; > 0 */
    bool is_exclusive;
    const bool *could; /* by node: it may run there */
    const bool *must;  /* by node: it runs there or not at all; NULL: wherever it could */
};

struct slurm_state {
    const struct slurm_node *nodes;
    size_t node_count;
    const struct slurm_agent *agents; /* by job, ascending; nodes were looked at before jobs */
    size_t agent_count;
    const struct slurm_waiting *waiting;
    size_t waiting_count;
};

struct slurm_wish {
    uint32_t machines_wanted; /* that the market's waiting jobs lack */
    uint32_t standby;         /* agents without a lease that are kept anyway */
    uint32_t node_max;        /* that lend at the same time */
    int64_t limit_ms;         /* of an agent's job */
    bool is_stopping;         /* end all, start none */
};

enum slurm_step_kind {
    SLURM_STEP_START,
    SLURM_STEP_END, /* ask it to end in good order */
    SLURM_STEP_KILL,
};

enum slurm_reason {
    SLURM_REASON_WANTED,   /* start: the market or the standby wants it */
    SLURM_REASON_QUEUE,    /* a job of somebody else's waits for the node */
    SLURM_REASON_WITHHELD, /* the node is drained, reserved or no longer of the partition */
    SLURM_REASON_UNUSED,   /* nobody wants it */
    SLURM_REASON_AGED,     /* little is left of its time, and it has no lease */
    SLURM_REASON_PENDING,  /* Slurm does not start it */
    SLURM_REASON_DOUBLE,   /* another agent has the node */
    SLURM_REASON_STOPPING,
    SLURM_REASON_COUNT
};
const char *slurm_reason_name(enum slurm_reason reason);

struct slurm_step {
    enum slurm_step_kind kind;
    enum slurm_reason reason;
    uint32_t node;
    uint32_t job;         /* of the agent; 0 when it starts */
    uint32_t waiting_job; /* for whom; 0: for nobody */
    int64_t limit_ms;     /* when it starts */
};

/* What is remembered between two looks. */
struct slurm_memory {
    struct map agents;  /* by job */
    struct map nodes;   /* by name */
    struct map waiting; /* by job */
    size_t failed_count;
    char failed_node[SLURM_NAME_SIZE]; /* whose agent ended last by itself soon after its start */
};
void slurm_memory_init(struct slurm_memory *memory);
void slurm_memory_done(struct slurm_memory *memory);

/* What came of a step that starts. An agent that is gone at the next look has failed, like one that
 * was refused: its node is left alone for a while. */
void slurm_memory_start(struct slurm_memory *memory, uint32_t job, const char *node,
                        int64_t now_ms);
void slurm_memory_fail(struct slurm_memory *memory, const char *node, int64_t now_ms);

/* What to do now; at most one step for a node's start and one for each agent. `out_steps` has room
 * for node_count + agent_count; returns how many. */
size_t slurm_plan(const struct slurm_state *state, const struct slurm_wish *wish, int64_t now_ms,
                  struct slurm_memory *memory, struct slurm_step *out_steps);
