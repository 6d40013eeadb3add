/*
 * Engine: the core thread: takes requests from a bounded queue, decides a batch of them, commits
 * their events and rows with one fsync, and only then lets anyone know.
 *
 * A request is a command, or only rows or a look at the state, or all of these. Its on_decided runs
 * on the core thread right after the command was applied and sees exactly that state; what it puts
 * into the batch is committed together with the command's events. Its on_done runs on the loop the
 * request names, once the batch is on disk or has failed.
 *
 * When a commit fails nothing of its batch is acknowledged: every request of it is answered with
 * the failure, the state is loaded again from the store, and the next batch is tried from there.
 * Until a write succeeds again the engine is not ready; it tries one every second by itself.
 */
#pragma once

#include "base/clock.h"
#include "base/list.h"
#include "core/core.h"
#include "net/loop.h"
#include "store/store.h"

#include <stdbool.h>

struct engine;
struct engine_request;
struct versions;

struct engine_request {
    struct loop *loop; /* where on_done runs; NULL: on the core thread */

    bool has_command;
    struct command command; /* its texts live until on_done */

    /* Core thread. Right before the command is decided, for one that changes a part of what is
     * there: completes `command` from the state. May refuse. May be NULL. */
    int (*prepare)(struct engine_request *request, const struct core *core, struct error *error);

    /* Core thread. After the command was applied, for what takes two of them: puts the next one
     * into `command` and returns true, or returns false when that was all. The second may not be
     * one that can be refused, since the first stands. `subject` stays the first one's. May be
     * NULL. */
    bool (*next)(struct engine_request *request);

    /* Core thread. Not called when the command was refused. May be NULL. May refuse: returning -1
     * with *error leaves the command's events in place, so only requests without a command do. */
    int (*on_decided)(struct engine_request *request, const struct core *core,
                      struct store_batch *batch, struct error *error);
    /* Always called, once; `error` is NULL on success. The request is the callee's again. */
    void (*on_done)(struct engine_request *request, const struct error *error);

    uint64_t subject; /* what the command made or found; set before next and on_decided */
    int64_t now_ms;   /* the instant of the batch, its decisions included; set before on_decided */

    struct list_node node;
    struct error error; /* the engine's own from here */
    bool is_refused;
};

/* Committed events, on the core thread, with the state right after them. It copies what it needs
 * and hands it to its own thread. */
typedef void engine_listener(void *context, const struct core *core, const struct event *events,
                             size_t event_count);

struct engine_options {
    struct store_options store;
    const struct clock *clock;
    struct versions *versions;     /* told of every commit before anyone else; NULL: none */
    uint32_t queue_max;            /* requests from outside that may wait; 0: 4096 */
    uint32_t batch_max;            /* 0: 512 */
    uint32_t snapshot_event_count; /* 0: 10000 */
};

/* Loads the state (snapshot and the events after it, tables built again where needed); the thread
 * is not started yet, so engine_core may be looked at. */
MUST_CHECK int engine_open(const struct engine_options *options, struct engine **out_engine,
                           struct error *error);
/* Stops the thread if it runs. NULL is fine. */
void engine_free(struct engine *engine);
DEFINE_AUTO(engine);

/* Before engine_start only; at most ENGINE_LISTENERS_MAX. */
enum { ENGINE_LISTENERS_MAX = 4 };
void engine_listen(struct engine *engine, engine_listener *listener, void *context);

/* Before engine_start only. */
const struct core *engine_core(const struct engine *engine);

MUST_CHECK int engine_start(struct engine *engine, struct error *error);
/* Finishes what is queued, saves a snapshot, ends the thread. Further requests fail. */
void engine_stop(struct engine *engine);

/*
 * Queues the request; from any thread. UNAVAILABLE (nothing is called) when the queue is full or
 * the engine stops. `is_internal`: the market's own reports, which are taken up to four times the
 * limit, since refusing them would lose what a lender did.
 */
MUST_CHECK int engine_submit(struct engine *engine, struct engine_request *request,
                             bool is_internal, struct error *error);

struct engine_counts {
    uint64_t commands, refusals, events, commits, failed_commits;
    uint64_t commit_ns; /* spent in all commits */
    uint64_t waiting;   /* in the queue now */
    uint64_t sequence;  /* of the last event on disk */
    bool is_ready;      /* the last load and the last write went well */
    bool is_disk_full;  /* why it is not ready */
};
struct engine_counts engine_counts(struct engine *engine); /* from any thread */
