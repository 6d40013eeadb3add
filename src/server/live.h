/*
 * Live: what jobs report while they run: the latest figures, the loss curve, and the server-sent
 * events that carry them to whoever looks.
 *
 * Figures come from REPORT messages of the leases; the parameter server's report counts for the
 * job, each worker's for itself. They are kept in memory while a job runs, written to the metrics
 * and curves tables every few seconds and at its end, and read back from there.
 *
 * Main thread, but for live_listen.
 */
#pragma once

#include "base/json_schema.h"
#include "base/map.h"
#include "core/core.h"
#include "market/lease.h"
#include "net/http_server.h"
#include "runtime/child_message.h"

struct server;
struct live;
struct hub_live;

enum {
    LIVE_CURVE_MAX = 500,
    LIVE_CURVE_READ_MAX = 2000 /* of a market before */,
    LIVE_WORKER_MAX = 1024,
    LIVE_STREAM_MAX = 1000
};
enum { LIVE_ACCOUNT_STREAM_MAX = 100 };

struct live_worker {
    uint64_t lease;
    int64_t role; /* enum lease_role */
    uint64_t rank;
    bool is_replica; /* until it takes the lead */
    uint64_t machine;
    int64_t at_ms; /* 0: nothing reported yet */
    uint64_t steps;
    uint64_t samples;
    uint64_t commits;
    bool has_loss;
    double loss;
    double steps_per_second;
    double share;
    int64_t first_step_ms;                   /* of this process; 0: none yet */
    double compute_ms, transfer_ms, wait_ms; /* what its time went into: child_message.h */
    uint64_t sent_bytes, received_bytes;     /* to and from the parameter servers */
    char codec[REPORT_CODEC_SIZE];           /* its vectors travel by; empty: not known */
    uint64_t clipped, refused;               /* of its pushes: too long; refused as garbage */
    /* As its machine metered it, over the ticks that came. */
    int64_t cpu_ms;
    int64_t gpu_ms; /* of a whole GPU */
    int64_t memory_peak_bytes;
};

struct live_point {
    int64_t at_ms;
    int64_t elapsed_ms;
    uint64_t samples;
    bool has_loss;
    double loss;
    bool has_accuracy;
    double test_accuracy;
};

struct live_job {
    uint64_t job;
    uint64_t account;
    int64_t first_step_ms; /* 0: none yet */
    bool has_loss;
    double loss;
    bool has_accuracy;
    double test_accuracy;
    uint64_t samples;
    int64_t gamma_ms;
    char policy_in_force[REPORT_POLICY_SIZE]; /* these two with the workers; empty: not known */
    char policy_reason[REPORT_REASON_SIZE];   /* of auto: what it chose and why */
    uint64_t checks;                          /* with the workers, too: pushes made again */
    uint64_t checks_undecided;                /* of them: no two results agreed */
    int64_t elapsed_ms;
    uint64_t stride;           /* one of so many points is kept */
    uint64_t point_count;      /* seen so far */
    struct json_array workers; /* struct live_worker */
    struct json_array curve;   /* struct live_point, oldest first */
};

struct live *live_new(struct server *server);
/* Before the first call of live_listen: what everyone knows of machines already. */
void live_begin(struct live *live, const struct core *core);
void live_free(struct live *live); /* NULL is fine */

/* NULL when the job never reported. Valid until the next call; of a job that no longer runs only
 * the parts asked for are there. */
enum live_part { LIVE_FIGURES, LIVE_WORKERS, LIVE_CURVE /* each with those before it */ };
const struct live_job *live_find(struct live *live, uint64_t job, enum live_part part);
/* It runs, or ended a moment ago: its figures are those in memory. */
bool live_is_there(const struct live *live, uint64_t job);
const struct live_worker *live_find_worker(const struct live_job *job, uint64_t lease);

/* The answer of GET .../metrics; `live_job` may be NULL. */
void live_write(struct json_writer *writer, uint64_t job, const struct live_job *live_job,
                struct text (*machine_name)(void *context, uint64_t machine), void *context);

/* Where a report comes from. */
struct live_source {
    uint64_t job;
    uint64_t account;
    uint64_t lease;
    enum lease_role role;
    uint64_t rank;
    bool is_replica;
    uint64_t machine;
};
/* A lease's REPORT. INVALID when it is not what its role reports. */
MUST_CHECK int live_report(struct live *live, const struct live_source *source, struct text json,
                           struct error *error);
/* What a lease used in one more tick. */
struct live_use {
    int64_t cpu_ms;
    int64_t gpu_ms;
    int64_t memory_peak_bytes;
};
void live_use(struct live *live, const struct live_source *source, const struct live_use *use);
/* A machine's heartbeat, for its owner. From any thread. */
struct live_heartbeat {
    uint64_t account; /* the owner's */
    uint64_t machine;
    const struct hub_live *live;
    int64_t paused_until_ms; /* UTC; 0: as of hub_machine_paused_until_ms */
};
void live_heartbeat(struct live *live, const struct live_heartbeat *heartbeat);
/* A part of a lease's log was added. */
void live_log(struct live *live, const struct live_source *source, uint64_t offset,
              struct text bytes);
/* Those of the account's jobs that have ended are as the tables have them from now on. */
void live_forget_ended(struct live *live, uint64_t account);
/* Writes what is new to the table. */
void live_save(struct live *live);

/* Who follows what. The stream ends with the job's last state, and with its token. An
 * account has at most LIVE_ACCOUNT_STREAM_MAX of them. */
struct live_follower {
    uint64_t account;
    uint64_t token;
    int64_t expires_ms; /* when the token ends, and the stream with it; 0: never */
    uint64_t job;       /* 0: the account's jobs, all machines, and what runs on its own */
};
MUST_CHECK int live_stream(struct live *live, struct http_request *request,
                           const struct live_follower *follower, struct error *error);
/* A job that has ended: answers with its last state and nothing more. */
struct live_end {
    uint64_t job;
    const char *state;
    const char *reason;
    int64_t at_ms;
};
MUST_CHECK int live_stream_end(struct http_request *request, const struct live_end *end,
                               struct error *error);
size_t live_stream_count(const struct live *live);

/* An engine_listener: context is the struct live. Core thread. */
void live_listen(void *context, const struct core *core, const struct event *events,
                 size_t event_count);
