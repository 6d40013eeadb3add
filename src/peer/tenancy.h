/*
 * Tenancy: one lease as it runs on this machine, from its start message to its last state. Its
 * keeper (keeper.h) has one.
 *
 * Fetching the data, dialling the streams and starting the sandbox go on side by side; the process
 * inside gets its configuration once the data is whole, then the streams as they come up. What it
 * reports and prints goes to the outbox; when the market is slow, or the process says more in a
 * second than anybody wants to know, reading from it stops: a flood slows the job and nobody else.
 */
#pragma once

#include "base/scope.h"
#include "net/address.h"
#include "peer/identity.h"
#include "peer/keeper_message.h"
#include "peer/outbox.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct blob_store;
struct http_client;

enum {
    TENANCY_LOG_KEPT_MS = 10000,  /* for a market that is there to keep the end of the log */
    TENANCY_TALK_BYTES = 1 << 20, /* messages and output a second, and at once */
    TENANCY_PIDS_LEAST = 256,     /* processes and threads; above, one for each 2 MiB of memory */
    TENANCY_PIDS_MAX = 4096,
    TENANCY_FILES_MAX = 32768, /* in its folder: they are counted each tick */
    /* Files; each may be sent again and again. */
    TENANCY_ARTIFACT_MAX = RESULT_FILES_MAX + RESULT_OWN_FILES_MAX,
    TENANCY_UPLOADS_MAX = 16, /* of results at once; a checkpoint does not wait */
    TENANCY_EXPIRY_GRACE_MS = 2000,
    TENANCY_LOW_SHARE_MILLI = 250, /* of its CPU share while the machine's owner works */
};

/* What a tenancy runs in; outlives it. */
struct tenancy_host {
    struct keeper_functions functions;
    struct loop *loop;
    struct outbox *outbox;
    struct sandbox_host *sandboxes;
    struct blob_store *blobs;
    struct http_client *client;
    const char *folder;   /* the lease's own, empty but for what its keeper put there */
    int64_t disk_bytes;   /* what is lent */
    uint32_t gpus;        /* the lease's: struct lent_use */
    bool is_direct;       /* a job network listens for direct connections */
    uint64_t image_bytes; /* the most that unpacked images take */
    struct open_terms open;
    char data_path[KEEPER_PATH_MAX]; /* of the owner's own data that it learns from; empty: none */
    char index_url[KEEPER_ADDRESS_MAX];  /* where packages are fetched; empty: pip knows */
    char *software[KEEPER_SOFTWARE_MAX]; /* the owner's folders that it may use */
    size_t software_count;
    char sdk_folder[KEEPER_PATH_MAX]; /* for programs of one's own: sdk.h; empty: none */
    /* The market, which may move. */
    char server_url[IDENTITY_URL_SIZE];
    char fingerprint[IDENTITY_FINGERPRINT_SIZE]; /* empty: not pinned */
    struct host_port link_target;
    uint32_t link_ipv4; /* whom the daemon is linked to; 0: unknown */
    uint32_t seen_ipv4; /* where the market sees the daemon; 0: unknown */
    bool is_market_away;
    int64_t market_ahead_ms; /* the market's clock less ours */
};

struct tenancy;

/* tenancy_is_cleared; tenancy_free it, not from inside. */
typedef void tenancy_ended_function(void *context, struct tenancy *tenancy);

/*
 * `start` was verified and checked, and is copied. On failure nothing is left behind and no state
 * was sent. The callback never comes from inside this call.
 */
MUST_CHECK int tenancy_start(struct tenancy_host *host, const struct start_message *start,
                             tenancy_ended_function *on_ended, void *context,
                             struct tenancy **out_tenancy, struct error *error);
/* Kills what still runs, without a state or callback. NULL is fine. */
void tenancy_free(struct tenancy *tenancy);
DEFINE_AUTO(tenancy);

enum lease_run_state tenancy_state(const struct tenancy *tenancy);
/* Its last state has been sent. */
bool tenancy_has_ended(const struct tenancy *tenancy);
/* And what it left on disk, or brought to a store elsewhere, is gone, or given up. */
bool tenancy_is_cleared(const struct tenancy *tenancy);
/* When the lease ends at the latest, on the monotonic clock in ms from now; not below zero. */
int64_t tenancy_left_ms(const struct tenancy *tenancy);

/* Asks the process to end and kills it after the grace. `reason` is told to people. */
void tenancy_stop(struct tenancy *tenancy, int64_t grace_ms, struct text reason);

/* The same, because the machine's owner wants it back. */
void tenancy_reclaim(struct tenancy *tenancy, int64_t grace_ms, struct text reason);

/* The machine's owner works, or does not any more; the lease is metered as it runs then. */
void tenancy_yield(struct tenancy *tenancy, enum yield_level level);

/* Its end is later; an earlier one changes nothing. UTC by the market's clock. */
void tenancy_renew(struct tenancy *tenancy, int64_t expires_ms);

/* A worker that came later; for a parameter server. */
void tenancy_add_peer(struct tenancy *tenancy, const struct lease_peer *peer);
/* Another rank of the job's network. */
void tenancy_add_rank(struct tenancy *tenancy, const struct rank_message *rank);
/* Another lease of the job, to exchange chunks with. */
void tenancy_add_chunk_peer(struct tenancy *tenancy, const struct rank_message *rank);
/* Somebody who may read what the process prints. */
/* What the lease's program asked for. */
void tenancy_take_checkpoints(struct tenancy *tenancy, const struct checkpoints_message *found);
void tenancy_add_log_reader(struct tenancy *tenancy, const struct log_reader_message *reader);
/* Dials the stream to a peer anew. */
void tenancy_open_stream(struct tenancy *tenancy, const struct stream_open_message *order);

/* The outbox has room again, or the link came or went. */
void tenancy_resume(struct tenancy *tenancy);
/* The outbox has a new way to the market: what it may not have kept of the log is sent again. */
void tenancy_relinked(struct tenancy *tenancy);
/* The market has moved: a job with the Internet reaches it there no more than before. */
void tenancy_fence_market(struct tenancy *tenancy);
/* The market has the log up to there. */
void tenancy_log_kept(struct tenancy *tenancy, uint64_t offset);
/* Tells the market the present state once more, on a new link. */
void tenancy_send_state(struct tenancy *tenancy);
