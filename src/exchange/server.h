/*
 * Exchange server: the parameter server: holds the model W, applies what workers push, answers with
 * W, and does all of it as a sync policy says.
 *
 * It lives on the owner's loop and is used from that loop's thread only. A worker that breaks the
 * protocol, pushes a value that is not finite, or is silent, is dropped; the others go on. It may
 * come back under the same lease and fence with a new stream. A server that succeeds another goes
 * on from what that left: its model, its counts and its time; policies start anew. A worker that
 * joins under the rank of another lease is its successor: the other is dropped.
 *
 * The model may be split among servers (range.h): then this is the lead, which holds the first
 * range and alone has the policy, the members, measurements, checkpoints and the outcome. The
 * servers of the other ranges (range_server.h) do as it says, in one order: all ranges see the
 * same. A join or push counts once all its slices have come. The whole model is gathered each
 * second, or as often as takes a tenth of the time, and for each measurement. When one of them is
 * lost, all workers join again once its successor is there, which begins with its range of the
 * newest whole model; the policy begins anew. A replica (replica.h) is sent the whole model from
 * time to time.
 *
 * Training begins when every shard has a worker, or muster_ms after the first came: else that one
 * might be through with the epochs before others' data were seen at all.
 *
 * Training ends when a measurement reaches the target (not before min_time_ms), when the workers
 * have seen `epochs` times the data set, when nobody is left, when a measurement fails, when the
 * loss is not finite any more, or by exchange_server_stop. The outcome names the model: the one
 * that was measured to reach the target, the last good one when training diverged, else the last
 * one.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "exchange/codec.h"
#include "exchange/evaluator.h"
#include "exchange/robust.h"
#include "net/link.h"
#include "net/loop.h"
#include "sync/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXCHANGE_WORKERS_MAX = SYNC_WORKER_MAX };

enum exchange_end {
    EXCHANGE_END_TARGET,   /* what was aimed at was measured */
    EXCHANGE_END_EPOCHS,   /* all epochs are done */
    EXCHANGE_END_STOPPED,  /* exchange_server_stop, or the policy */
    EXCHANGE_END_LOST,     /* no worker was left */
    EXCHANGE_END_FAILED,   /* a measurement failed */
    EXCHANGE_END_DIVERGED, /* the loss is not finite any more */
    EXCHANGE_END_COUNT,
};
const char *exchange_end_name(enum exchange_end end);

struct exchange_outcome {
    enum exchange_end end;
    const char *reason; /* one sentence */
    const float
        *parameters; /* valid as long as the server; NULL: it diverged before any good one */
    uint64_t version;
    bool has_accuracy; /* of exactly this model */
    double test_accuracy, test_loss;
};

/* One worker ever seen; in the order of their first joining. */
struct exchange_worker_status {
    uint64_t lease, fence;
    uint32_t rank;
    bool is_member;
    uint64_t steps, samples; /* in accepted pushes */
    uint64_t commits;        /* accepted pushes */
    double steps_per_second; /* v_i */
    double commit_ms;        /* O_i, as the worker measured it */
    double loss;             /* of its last push */
    enum codec codec;        /* its vectors travel by */
    bool has_diverged;       /* its loss was not finite any more */
    uint64_t clipped;        /* pushes that were shortened: robust.h */
    uint64_t refused;        /* pushes with a value that is not finite */
    bool is_faulty;          /* others made its push again, and it was garbage: it is shut out */
    char fault[160];         /* the evidence */
    uint64_t agreeing[2];    /* the leases that agree on another result */
};

/* Where training stands at the barrier between two epochs. */
struct exchange_epoch {
    uint64_t index; /* epochs that are over, those before this server's included */
    double passes;  /* over the data so far */
    bool has_loss;
    double loss; /* the last one measured */
    int64_t elapsed_ms;
    uint32_t workers; /* members that made it to the end of the epoch */
};

struct exchange_status {
    int64_t elapsed_ms; /* since the first join; 0 before */
    uint64_t version;
    uint64_t steps, samples, commits;
    uint64_t received_bytes, sent_bytes; /* of vectors, to and from all servers */
    uint64_t counted_bytes;              /* of the pushes that count, those of the first range */
    uint64_t checks;                     /* pushes that were made again by others */
    uint64_t checks_undecided;           /* of them: no two results agreed */
    double epochs;
    uint64_t loss_evaluations;
    double loss; /* EVALUATION_SAMPLE */
    uint64_t accuracy_evaluations;
    double test_accuracy, test_loss; /* EVALUATION_FULL */
    struct sync_status sync;
    uint32_t member_count;
    uint32_t workers_wanted; /* as on_epoch said last; 0: it did not */
    const struct exchange_worker_status *workers;
    uint32_t worker_count;
};

/* How vectors travel. */
struct exchange_compress {
    bool is_auto; /* as each worker's link asks for (chooser.h); else by `codec` */
    enum codec codec;
    double density;  /* of top-k, in (0, 1]; 0: 0.01 */
    double momentum; /* of top-k, in [0, 1) */
};

/* What the market says of a worker, or of another server. */
struct exchange_peer {
    bool is_server;
    uint32_t rank; /* whose place among the workers, or servers, is its */
    uint8_t key[LINK_KEY_SIZE];
};

/* Who holds this lease; -1 for one that does not belong to the job. */
typedef int exchange_find_peer(void *context, uint64_t lease, uint64_t fence,
                               struct exchange_peer *out_peer);

/* What training has behind it. */
struct exchange_progress_made {
    uint64_t steps, samples;
    int64_t elapsed_ms;
};

struct exchange_server_options {
    struct loop *loop;
    struct text policy;
    struct sync_settings sync;
    struct exchange_compress compress;
    struct robust_options robust;
    double verify;       /* the share of pushes that others make again (check.h); 0: none */
    uint64_t check_seed; /* which ones; no worker may know it */
    size_t parameter_count;
    uint32_t servers;        /* that the model is split among; 0: 1 */
    const float *parameters; /* the first model; copied */
    const float *momentum;   /* the outer momentum to go on with; copied; NULL: none yet */
    struct exchange_progress_made done; /* in training before this server's */
    uint64_t term;                      /* greater than that of the server it succeeds */
    uint32_t world; /* shards of the data, 1 to EXCHANGE_WORKERS_MAX; ranks share them */
    int64_t min_time_ms;
    uint64_t epochs;       /* 0: no end */
    int64_t evaluate_ms;   /* between measurements on all test data; 0: gamma, less at first */
    int64_t silent_ms;     /* drops a worker; 0: 6 s */
    int64_t lonely_ms;     /* without any worker: ends; 0: 20 s */
    int64_t join_ms;       /* until the first worker: ends; 0: 60 s */
    int64_t muster_ms;     /* the first workers wait so long for those of the other shards */
    int64_t stop_grace_ms; /* for the workers to leave at the end; 0: 2 s */
    /* For `souk bench exchange` alone: links in TLS records, or not encrypted at all (net/link.h).
     */
    bool is_bench_tls, is_bench_plain;

    exchange_find_peer *find_peer;
    /* As in evaluator.h; runs on another thread with measure_context. */
    int (*measure)(void *context, struct evaluation_report *report, struct error *error);
    void *measure_context;
    /* Somebody joined, left, made one of its first pushes, or a measurement came. */
    void (*on_change)(void *context);
    /* An epoch is over: how many workers the next wants, those of the lowest ranks; others wait
     * until they are wanted. May be NULL: any number. Of policies with epochs (hsp). */
    uint32_t (*on_epoch)(void *context, const struct exchange_epoch *epoch);
    /* A push of this mean loss came and counts; may be NULL. */
    void (*on_push)(void *context, uint32_t rank, double loss);
    /* A worker was dropped for this reason; for the log. */
    void (*on_drop)(void *context, uint64_t lease, const struct error *reason);
    /* Once; in it or after it the owner frees the server. */
    void (*on_end)(void *context, const struct exchange_outcome *outcome);
    void *context;
};

struct exchange_server;

MUST_CHECK int exchange_server_open(const struct exchange_server_options *options,
                                    struct exchange_server **out_server, struct error *error);
void exchange_server_free(struct exchange_server *server); /* NULL is fine; no callbacks */
DEFINE_AUTO(exchange_server);

/* A stream on which a worker will speak. Takes `fd` on success only. */
MUST_CHECK int exchange_server_attach_take(struct exchange_server *server, int fd,
                                           struct error *error);
/* The same of the server of another range, or the replica. */
MUST_CHECK int exchange_server_attach_range_take(struct exchange_server *server, int fd,
                                                 struct error *error);
/* Ends training; on_end follows within half of grace_ms, if need be without a last measurement: the
 * other half is the owner's, to save the model. */
void exchange_server_stop(struct exchange_server *server, const char *reason, int64_t grace_ms);

/* Copies the newest whole model and its outer momentum; returns what training it has behind it. */
struct exchange_progress_made exchange_server_snapshot(const struct exchange_server *server,
                                                       float *out_parameters, float *out_momentum);

/* False once training is ending, for whatever reason. */
bool exchange_server_is_training(const struct exchange_server *server);

/* Valid until the next call. */
const struct exchange_status *exchange_server_status(struct exchange_server *server);
