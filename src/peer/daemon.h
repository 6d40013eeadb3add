/*
 * Daemon: the lender's loop: one link to the market, kept up; heartbeats; and the keepers of the
 * leases, which it starts, or takes up from a former daemon, and speaks to the market for.
 */
#pragma once

#include "base/error.h"
#include "peer/guard.h"
#include "peer/identity.h"
#include "peer/keeper_message.h"
#include "peer/lent.h"
#include "peer/open_terms.h"
#include "peer/probe.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DAEMON_QUICK_BEATS = 10, /* after a welcome: by them the market measures the way here */
    DAEMON_RETRY_FIRST_MS = 200,
    DAEMON_RETRY_LAST_MS = 30000,
    DAEMON_STOP_GRACE_MS = 3000,
    DAEMON_STOP_MAX_MS = 8000,
    DAEMON_LEASE_MAX = 256,
    DAEMON_TAKE_UP_MS = 3000, /* a keeper that does not answer for so long is killed */
};

struct daemon_options {
    const char *state_dir;
    struct identity *identity;         /* enlisted */
    struct sandbox_host *sandboxes;    /* not swept yet */
    struct lease_limits limits;        /* the owner's ceiling */
    int64_t cache_bytes;               /* the most that blobs_dir holds */
    struct probe_options probe;        /* what it points to is borrowed */
    const struct machine_probe *found; /* by it */
    const char *const *servers;        /* the market's addresses: servers.h */
    size_t server_count;
    int64_t return_ms, look_ms;
    struct guard_limits guard; /* when leases make way for the owner */
    bool is_blind, is_metered; /* see owner.h */
    const char *root;          /* of what is watched */
    const char *display;       /* see owner.h */
    bool is_direct;            /* see peer.h */
    struct open_terms open;    /* of leases with the Internet */
    const char *const *data;   /* own_data.h */
    size_t data_count;
    const char *const *software; /* software.h */
    size_t software_count;
    const char *sdk_folder;            /* sdk.h; NULL: none */
    const char *index_url;             /* where packages are fetched for leases; empty: pip knows */
    struct keeper_functions functions; /* that do the work of leases; memory_mb 0: none */
    int ready_fd;                      /* taken: see peer.h */
    int stop_fd;                       /* borrowed */
};

/*
 * Runs until SIGTERM, SIGINT or stop_fd, then stops the leases and returns; or until SIGUSR1 or
 * SIGUSR2, and then leaves the leases to their keepers and returns. *out_wants_restart: it was
 * SIGUSR2, after which the program starts itself again.
 */
MUST_CHECK int daemon_run(const struct daemon_options *options, bool *out_wants_restart,
                          struct error *error);
