/*
 * Daemon: the lender's loop: one link to the market, kept up; heartbeats; leases started, stopped
 * and reported.
 */
#pragma once

#include "base/error.h"
#include "peer/identity.h"
#include "peer/lent.h"
#include "peer/probe.h"
#include "sandbox/sandbox.h"

#include <stdint.h>

enum {
    DAEMON_HEARTBEAT_MS = 1000,
    DAEMON_RETRY_FIRST_MS = 200,
    DAEMON_RETRY_LAST_MS = 30000,
    DAEMON_STOP_GRACE_MS = 3000,
    DAEMON_STOP_MAX_MS = 8000,
    DAEMON_LEASE_MAX = 256,
};

struct daemon_options {
    const char *state_dir;
    struct identity *identity;         /* enlisted */
    struct sandbox_host *sandboxes;    /* swept */
    struct lease_limits limits;        /* the owner's ceiling */
    struct probe_options probe;        /* what it points to is borrowed */
    const struct machine_probe *found; /* by it */
    const char *const *servers;        /* the market's addresses: servers.h */
    size_t server_count;
    int64_t return_ms, look_ms;
    int ready_fd; /* taken: see peer.h */
    int stop_fd;  /* borrowed */
};

/* Runs until SIGTERM, SIGINT or stop_fd, then stops the leases and returns. */
MUST_CHECK int daemon_run(const struct daemon_options *options, struct error *error);
