/*
 * Child messages: what a daemon and the process in a lease's sandbox say to each other over fd 3,
 * an AF_UNIX SOCK_SEQPACKET socket; one packet is one message. The encoding is in child_message.c.
 *
 * parent -> child: CONFIG first, once; then STREAM (with a descriptor), PEER and STOP; CHECKPOINTS
 * as asked for by WANTED, and KEPT for each checkpoint that was announced; CALLED for each CALL.
 * child -> parent: READY once the data and model are there; REPORT each second and after the first
 * steps; ARTIFACT for each finished file in /lease/out; WANTED by a borrower's program before it
 * starts, and once it has ended; CALL by a worker whose steps functions make; DONE last.
 *
 * Everything the child sends is foreign to the daemon: decoding checks all of it, and descriptors
 * that come with a message that must not carry one are closed.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json_schema.h"
#include "base/text.h"
#include "market/lease.h"
#include "runtime/result_name.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CHILD_FD = 3,
    CHILD_KEY_SIZE = 32,
    CHILD_HASH_SIZE = 32,
    CHILD_PEER_MAX = 1024,
    CHILD_LEASE_JSON_MAX = 64 * 1024,
    CHILD_SECRETS_MAX = 32 * 1024,
    CHILD_REPORT_MAX = 240 * 1024,
    CHILD_TEXT_MAX = 1024,                 /* a reason or message */
    CHILD_NAME_MAX = RESULT_NAME_SIZE_MAX, /* an artifact's name (result_name.h) */
    CHILD_CALL_MAX = 64 * 1024,            /* a function's request or answer */
    CHILD_PACKET_MAX = 256 * 1024,
};

enum child_message_kind {
    CHILD_CONFIG = 1,
    CHILD_STREAM = 2,
    CHILD_PEER = 3,
    CHILD_STOP = 4,
    CHILD_CHECKPOINTS = 5,
    CHILD_KEPT = 6,
    CHILD_CALLED = 7,
    CHILD_READY = 16,
    CHILD_REPORT = 17,
    CHILD_ARTIFACT = 18,
    CHILD_DONE = 19,
    CHILD_WANTED = 20,
    CHILD_CALL = 21,
};

/* Who dials and is accepted by a parameter server: the identity "lease:LEASE:FENCE", its place
 * among those of its role and its key. Every server is dialled by all workers, the lead (of rank 0)
 * by the other servers too. */
struct child_peer {
    uint64_t lease;
    uint64_t fence;
    enum lease_role role;
    uint32_t rank; /* within the role */
    uint8_t key[CHILD_KEY_SIZE];
};

struct child_config {
    struct text lease_json;      /* the signed lease's canonical JSON, already verified */
    uint8_t key[CHILD_KEY_SIZE]; /* this lease's own key */
    struct text secrets;         /* the job's: job_secrets.h; empty: none */
    const struct child_peer *peers;
    uint32_t peer_count; /* 0 for a worker */
};

struct child_stream {
    uint64_t peer_lease; /* whose stream it is */
    uint64_t peer_fence; /* of a server that is dialled: the only term that is taken from it */
    enum lease_role peer_role;
    uint32_t peer_rank; /* within the role */
    int fd;             /* receive gives it to the caller, send only borrows it */
};

/* Which checkpoint of a borrower's program: its job's, which rank 0 writes, or the rank's own. */
enum child_checkpoint_kind {
    CHILD_CHECKPOINT_JOB,
    CHILD_CHECKPOINT_RANK,
    CHILD_CHECKPOINT_COUNT,
};

struct child_checkpoint {
    struct text name; /* of the file in /data; empty: it is there already, or there is none */
    uint8_t manifest[CHILD_HASH_SIZE]; /* zeroes: there is none */
};

struct child_message {
    enum child_message_kind kind;
    union {
        struct child_config config;
        struct child_stream stream;
        struct child_peer peer;
        struct {
            uint32_t grace_ms; /* until the daemon kills */
            bool is_handover;  /* the owner takes the machine back: the job goes on elsewhere */
            struct text reason;
        } stop;
        struct {
            struct text json; /* by worker_report_schema or server_report_schema */
        } report;
        struct {
            struct text name;
        } artifact;
        struct {
            /* As it has them; the answer names those that are newer. */
            uint8_t manifests[CHILD_CHECKPOINT_COUNT][CHILD_HASH_SIZE];
        } wanted;
        struct {
            struct child_checkpoint items[CHILD_CHECKPOINT_COUNT];
            struct text trouble; /* why they could not be fetched; empty: all is well */
        } checkpoints;
        struct {
            struct text name; /* as announced */
            uint8_t manifest[CHILD_HASH_SIZE];
            struct text trouble; /* why it was not sent; empty: it was */
        } kept;
        struct {
            uint32_t number;  /* of the call; none that is under way */
            struct text json; /* a function's request (function/work.h) */
        } call;
        struct {
            uint32_t number;
            bool is_ok;       /* else json is {"errorType", "errorMessage"} */
            struct text json; /* its answer */
        } called;
        struct {
            bool is_ok;
            struct text message; /* one sentence: why it ended */
        } done;
    };
};

/* out_sockets[0] is the parent's (non-blocking), [1] the child's (blocking); both CLOEXEC. */
MUST_CHECK int child_socket_pair(int out_sockets[2], struct error *error);

/* Appends the packet's bytes; a stream's descriptor is not part of them. */
void child_message_encode(struct buffer *packet, const struct child_message *message);
/* Texts point into `packet`, peers live in the arena; stream.fd is -1. */
MUST_CHECK int child_message_decode(struct arena *arena, struct text packet,
                                    struct child_message *out_message, struct error *error);

/*
 * Sends one packet, waiting for room for at most timeout_ms (0: not at all; -1: for ever).
 * EXHAUSTED when there was no room, UNAVAILABLE when the other side is gone.
 */
MUST_CHECK int child_message_send(int socket, const struct child_message *message, int timeout_ms,
                                  struct error *error);
/*
 * Takes one packet that is there: *out_message, with all of it in the arena. UNAVAILABLE when
 * there is none yet on a non-blocking socket (has_ended false) or the other side closed it.
 */
MUST_CHECK int child_message_receive(int socket, struct arena *arena,
                                     struct child_message *out_message, bool *out_has_ended,
                                     struct error *error);

/* Role worker: cumulative figures since the process started. */
struct worker_report {
    uint64_t steps;
    uint64_t samples;
    uint64_t commits; /* answered */
    double loss;      /* moving mean over the last steps; 0 with no step */
    double steps_per_second;
    double commit_ms;     /* O of the last commit */
    int64_t period_us;    /* between commits, as set by the server; 0: by steps */
    uint64_t local_steps; /* per commit under bsp and tap; 0: by period */
    /* The time since the first step, in all: these three sum up to it. */
    double compute_ms;
    double transfer_ms;                  /* stood still while its push or the answer travelled */
    double wait_ms;                      /* stood still for others */
    int64_t first_step_ms;               /* UTC instant of the first finished step; 0: none yet */
    uint64_t sent_bytes, received_bytes; /* to and from the parameter servers */
};

enum { REPORT_POLICY_SIZE = 16, REPORT_REASON_SIZE = 256, REPORT_CODEC_SIZE = 8 };

struct server_report_worker {
    uint64_t lease;
    uint64_t fence;
    bool is_member;
    uint64_t steps;
    uint64_t samples;
    uint64_t commits;         /* pushes applied since the start */
    uint64_t accepted_pushes; /* pushes applied since the last report */
    double steps_per_second;
    double share;                  /* of all samples so far, 0..1 */
    char codec[REPORT_CODEC_SIZE]; /* its vectors travel by; empty before its first push */
    uint64_t clipped, refused;     /* pushes that were too long; that were not finite */
    bool is_faulty;                /* others made its push again, and it was garbage */
    char fault[160];               /* the evidence */
    uint64_t agreeing[2];          /* the leases that agree on another result */
};

/* Role server. loss and test_accuracy are 0 while their evaluation counts are 0. */
struct server_report {
    int64_t elapsed_ms; /* since the first worker joined */
    uint64_t version;   /* of the model: updates applied */
    uint64_t steps;
    uint64_t samples;
    double epochs; /* samples over the data set's size */
    uint64_t loss_evaluations;
    double loss; /* on the fixed test sample */
    uint64_t accuracy_evaluations;
    double test_accuracy;
    double test_loss;
    char policy[REPORT_POLICY_SIZE];
    char policy_in_force[REPORT_POLICY_SIZE]; /* of auto: the one it chose */
    char policy_reason[REPORT_REASON_SIZE];   /* of auto: what it chose and why; else empty */
    int64_t gamma_ms;
    double commit_target; /* cumulative, per worker */
    double commit_rate;   /* per worker and gamma */
    double implicit_momentum;
    bool is_searching;
    uint64_t checks;           /* pushes that others made again */
    uint64_t checks_undecided; /* of them: no two results agreed */
    uint64_t workers_wanted;   /* in this epoch, of a job that goes by a schedule; 0: not said */
    bool is_final;             /* the last report: the model is final */
    struct json_array workers; /* struct server_report_worker */
};

extern const struct json_schema worker_report_schema;
extern const struct json_schema server_report_schema;
