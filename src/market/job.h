/*
 * Job: what a borrower asked for, and how far it has come.
 *
 *     pending -> starting -> running -> stopping -> succeeded | failed | cancelled
 *
 * pending: its credits are held, no leases. starting: every lease is offered. running: the server
 * lease (if it has one) and a worker run. stopping: the outcome is decided and the leases have been
 * asked to stop; those that answer within the grace are billed to their end. A pending job is
 * cancelled at once; any state may pass to stopping.
 *
 * A job of spare time (is_spare) costs nothing and runs where nobody who pays does. When it loses
 * its server, its last worker, or without a server any worker, to one who pays, it is pending
 * again, and what it had are leases of a former start.
 *
 * While it is starting or running a job may get more workers: successors of those that were lost,
 * failed or were taken back by their owners, under the same rank; and new ranks up to
 * num_nodes_max. Its servers get successors likewise, unless one failed with an exit status of its
 * own: then it has said what is wrong with the job.
 *
 * A job may go by a schedule: then its lead says between two epochs how many workers it wants,
 * within num_nodes and num_nodes_max, and until it has said so it wants workers_first. The highest
 * ranks beyond that are let go, and end well; when more are wanted again they get new leases.
 *
 * A job may have several servers, each of a range of its model. The one of rank 0 is the lead: it
 * alone speaks for the job. A replica follows the lead on another machine, under the rank behind
 * the last server's. When the lead is lost the replica takes its rank, and another is looked for;
 * no job waits for one. A replica is always younger than its lead, and has a higher fence.
 */
#pragma once

#include "market/lease.h"
#include "market/queue.h"

enum {
    JOB_NAME_SIZE = 65,
    JOB_REASON_SIZE = 200,
    JOB_SPEC_MAX = 64 * 1024,
    JOB_NODES_MAX = 1000,
    JOB_SERVERS_MAX = 8,
    JOB_LEASES_MAX = 4 * JOB_NODES_MAX, /* successors included */
    JOB_FAILURES_MAX = 3,  /* of one rank, or the server: then it gets no successor any more */
    JOB_KILLED_CODE = 128, /* exit statuses from here on are of signals */
};

enum job_state {
    JOB_STATE_PENDING,
    JOB_STATE_STARTING,
    JOB_STATE_RUNNING,
    JOB_STATE_STOPPING,
    JOB_STATE_SUCCEEDED,
    JOB_STATE_FAILED,
    JOB_STATE_CANCELLED,
    JOB_STATE_COUNT,
};

const char *job_state_name(enum job_state state);
bool job_state_is_final(enum job_state state);
bool job_state_has_leases(enum job_state state); /* starting, running, stopping */

enum job_start {
    JOB_START_NOW,      /* as soon as there is room */
    JOB_START_DEADLINE, /* when there is room at its price, by the deadline */
    JOB_START_CHEAPEST, /* in the cheapest slot before the deadline */
    JOB_START_COUNT,
};

const char *job_start_name(enum job_start start);

/* What a worker's machine must be, besides large enough. */
struct job_wishes {
    char gpu_model[MACHINE_GPU_MODEL_SIZE]; /* empty: any */
    int64_t gpu_ram_bytes;                  /* of each GPU, at least */
    char labels[MACHINE_LABELS_SIZE];       /* all of them; of the probe or the offer */
    enum offer_network network;             /* at least */
    enum offer_install install;             /* at least */
    int64_t max_rtt_us;                     /* between any two workers; 0: any */
    int64_t min_reliability_milli;          /* 0..1000 */
    int64_t min_speed_milli;                /* of the speed weight */
    bool has_image;                         /* it runs in an image of its own */
    bool has_program; /* it is no plain training: a program of its own, or work that is checked */
};

struct job_request {
    uint64_t account; /* who pays */
    char name[JOB_NAME_SIZE];
    struct text spec;      /* JSON, opaque here; at most JOB_SPEC_MAX bytes of UTF-8 */
    int64_t num_nodes;     /* workers, each on a machine of its own: the least it starts with */
    int64_t num_nodes_max; /* the most it takes when there is room; 0: num_nodes */
    int64_t workers_first; /* it goes by a schedule, and wants so many at first; 0: it does not */
    struct resources worker;
    bool takes_more_cores;   /* "0.25+": as many cores as the machine has free, within the budget */
    struct resources server; /* of each; no cores: the job has no server lease */
    int64_t server_count;    /* 0: one, if it has any */
    bool has_replica;        /* one more, which follows the lead */
    int64_t max_total_micro; /* 0: what the account has */
    int64_t max_hourly_micro; /* 0: no limit */
    int64_t max_run_ms;       /* from the first lease that runs */
    int64_t expected_run_ms;
    int64_t tick_ms;
    struct job_wishes wishes;
    enum job_start start;
    int64_t deadline_ms; /* start deadline: by when it starts; start cheapest: before when */
    bool is_rush;        /* pays double for its first hour to go ahead when there is a queue */
    bool replaces_lost;  /* who is lost or taken back gets a successor */
    bool is_spare;       /* only unsold time of lenders who give it away */
    bool is_gathered;    /* rank 0 leads the others: it has ended well when that one has */
    uint8_t idempotency_hash[MARKET_HASH_SIZE]; /* all zero: none */
};

/* Its entries in the ledger, summed by kind: held - posted - fee - voided is what is held now. */
struct job_sums {
    int64_t held_micro;
    int64_t posted_micro; /* to lenders */
    int64_t fee_micro;    /* to the operator */
    int64_t voided_micro;
};

struct job {
    uint64_t id;
    struct job_request request; /* the spec is the job's own copy */
    enum job_state state;
    enum job_state outcome; /* while stopping: the final state it goes to */
    char reason[JOB_REASON_SIZE];
    int64_t quote_micro; /* the most it costs: at its wish while pending, then what its leases may
                            cost; what is held and what was posted add up to it */
    struct queue_turn turn; /* among those that wait */
    int64_t submitted_ms;
    int64_t start_ms; /* pending: it does not start before; 0: as soon as there is room */
    /* For the cheapest slot: the prices from the one it chose on, as forecast then; it pays no
     * more. NULL: it has not chosen. */
    const struct price_lock *booked;
    int64_t matched_ms;  /* 0: not yet; the same for the next three */
    int64_t started_ms;  /* the first lease ran */
    int64_t stopping_ms; /* when the stop was asked for */
    int64_t ended_ms;
    struct lease **leases; /* as they were made: its servers first if there are any */
    /* By rank: the newest of each, the lead first, the replica behind the last. NULL: none yet. */
    struct lease *servers[JOB_SERVERS_MAX + 1];
    size_t lease_count;
    size_t former_count;      /* leases of starts before it waited again, which are not listed */
    struct lease **workers;   /* by rank: the newest of each */
    size_t worker_count;      /* ranks */
    int64_t workers_wanted;   /* now, of one that goes by a schedule; 0: it does not */
    int64_t posted_micro;     /* spent so far, fees included */
    int64_t cancel_fee_micro; /* of it, because a booking was cancelled late */
    int64_t fee_micro;
    struct job_sums sums;
    uint32_t waiting_numbers[2]; /* among those that wait for room: its workers, its server */
    /* Scratch of matching. */
    uint64_t tried_at;   /* touches of machines before it was last tried */
    int64_t lacking;     /* workers it found too few of then, at least; 0: not known */
    uint32_t line_place; /* 0: outside the line */
    bool is_stuck;       /* no offers there are would do, with nothing leased of them */
    /* What a pending job waits for, as events say. */
    bool is_short;     /* there may be room, but at too high a cost */
    bool is_unhurried; /* it cannot pay for its rush at these prices, and takes its usual turn */
};

/* Whether it goes ahead of those who do not, for double the price. */
static inline bool job_rushes(const struct job *job)
{
    return job->request.is_rush && !job->is_unhurried;
}

/* num_nodes_max, or num_nodes where it is not given. */
int64_t job_request_nodes_max(const struct job_request *request);
/* The most workers it starts with: workers_first, or else num_nodes_max. */
int64_t job_request_nodes_first(const struct job_request *request);
/* How many workers it takes now, when there is room. */
size_t job_workers_wanted(const struct job *job);

/* INVALID with the first thing wrong: names, sizes, limits, times. Not the account. */
MUST_CHECK int job_request_check(const struct job_request *request, struct error *error);
bool job_has_server(const struct job *job);
/* Ranks of servers that it cannot do without. */
size_t job_request_servers(const struct job_request *request);
/* The same with the replica. */
size_t job_request_server_ranks(const struct job_request *request);
/* It follows the lead. */
bool job_is_replica(const struct job *job, const struct lease *lease);
/* The newest server of rank 0; NULL: none yet. */
static inline struct lease *job_lead(const struct job *job)
{
    return job->servers[0];
}

/* What the open and ended leases say about the job. */
enum job_verdict {
    JOB_VERDICT_GOES_ON,
    JOB_VERDICT_SUCCEEDED, /* the lead succeeded; without one: every worker did */
    JOB_VERDICT_FAILED,    /* a server failed, or was lost and gets no successor, or no worker is
                              left; without servers: a worker failed, for that is what its program
                              has to say */
    JOB_VERDICT_WAITS,     /* of spare time: what it cannot do without went to one who pays */
};
enum job_verdict job_judge(const struct job *job, char out_reason[JOB_REASON_SIZE]);

/*
 * What is spoken for of the quote: all of it by leases that are open, by the others what they cost.
 * The rest is there for successors.
 */
int64_t job_committed_micro(const struct job *job);
/* In the dearest hour of its open leases. */
int64_t job_hourly_micro(const struct job *job);

/* What is left of its longest run. */
int64_t job_run_left_ms(const struct job *job, int64_t now_ms);

/* The first rank of its servers from `from` on that is to get a lease: a successor, or its first
 * replica; job_request_server_ranks: none. */
size_t job_lost_server(const struct job *job, size_t from);
/* The replica of a lead that is gone, if there is one; what the job has of it is another matter. */
struct lease *job_orphan(const struct job *job);
/* Whether the orphan can take the lead. */
bool job_can_promote(const struct job *job);
/* The first rank from `from` on that is to get a successor; job->worker_count: none. */
size_t job_lost_rank(const struct job *job, size_t from);
/* An own program starts anew on whatever machine comes, also when all of its ranks are gone. */
bool job_waits_for_machine(const struct job *job);
/* Whether it takes one more worker. A borrower who let one go wants no more of them. */
bool job_can_grow(const struct job *job);
/* Of one that can grow: whose rank the next worker has, a new one or one that was let go. */
size_t job_growth_rank(const struct job *job);
/* Whether a machine is out of the question for one more worker: it has one, or had one that failed,
 * or that its owner took back and the machine has not come back since. For a server: one that did
 * not start there, or that was taken back likewise. */
bool job_avoids(const struct job *job, enum lease_role role, const struct machine *machine);
/* Whether one of its servers is there now. */
bool job_has_server_at(const struct job *job, const struct machine *machine);

/* Whether all servers it needs and at least one worker run. */
bool job_is_under_way(const struct job *job);
bool job_all_leases_ended(const struct job *job);
