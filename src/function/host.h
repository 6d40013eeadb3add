/*
 * Function host: runs one function here as Lambda would: calls that come at the same time go to
 * instances of their own, which stay warm for a while; each in a sandbox with its memory, its share
 * of a core and its time.
 *
 * An instance has memory_mb / 1769 of a core, as Lambda gives it, within cpu_max_milli; the whole
 * core while it starts. A call that is out of time or memory, or whose process ends or talks
 * nonsense, fails alone: its process is killed and the next call starts another.
 *
 * All on the loop's thread; the callback of a call comes once, never from inside host_call.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HOST_MEMORY_MB_MIN = 128,
    HOST_MEMORY_MB_MAX = 10240,
    HOST_TIME_MS_MAX = 900000,
    HOST_START_MS_MAX = 10000, /* of an instance, as Lambda's */
    HOST_CONCURRENCY_MAX = 1000,
    HOST_MB_PER_CORE = 1769,
    HOST_ID_SIZE = 37,
};

struct sandbox_host;
struct remote_credentials;

struct host_options {
    struct loop *loop;
    struct sandbox_host *sandboxes;
    const char *name;  /* what sandboxes are called: NAME-1, ...; NULL: function-PID */
    const char *store; /* a folder; all of it can be read, updates/ in it be written. NULL: none */
    uint32_t memory_mb;
    int64_t time_ms;
    uint32_t concurrency;  /* calls at a time */
    int64_t cpu_max_milli; /* of an instance; 0: no maximum but its memory's */
    int64_t keep_warm_ms;  /* an instance without calls */
    bool has_network;      /* the machine's own, for a store elsewhere */
    const struct remote_credentials *credentials; /* copied, with has_network; NULL: none */
    /* Whose store calls may name, with has_network; NULL: none. The latter NULL: not pinned. */
    const char *market_server, *market_fingerprint;
    int log_fd; /* what instances print; -1: nobody reads it */
};

struct host;

/* The sandboxes outlive it. */
MUST_CHECK int host_open(const struct host_options *options, struct host **out_host,
                         struct error *error);
/* Kills every instance; no callback follows. NULL is fine. */
void host_free(struct host *host);
DEFINE_AUTO(host);

/* From the next instance on; those of another size end once they are idle. INVALID out of range. */
MUST_CHECK int host_configure(struct host *host, uint32_t memory_mb, int64_t time_ms,
                              struct error *error);
uint32_t host_memory_mb(const struct host *host);
int64_t host_time_ms(const struct host *host);
/* How much of its share of a core an instance has, those that start later too; is_idle: and of that
 * only what everybody else leaves over. */
void host_set_share(struct host *host, int64_t share_milli, bool is_idle);
/* Ends every instance; calls under way fail. */
void host_end_instances(struct host *host);

/* How a call ended. Texts are valid during the callback. */
struct host_result {
    const char *id; /* of the call */
    struct text payload;
    bool is_failed; /* then payload is {"errorType", "errorMessage"} */
    bool is_cold;
    int64_t start_us; /* of the instance, when cold */
    int64_t duration_us;
    int64_t billed_ms; /* both, rounded up */
    uint32_t memory_mb;
    int64_t memory_peak_bytes;
};

typedef void host_function(void *context, const struct host_result *result);

/* EXHAUSTED when as many calls as may be are under way; INVALID past WORK_JSON_MAX. */
MUST_CHECK int host_call(struct host *host, struct text request, host_function *callback,
                         void *context, struct error *error);
