/*
 * Follow: watches a job through the market's event stream until it ends, and tells how it goes on.
 *
 * The stream may break: the job itself is asked again then, and now and then anyway, so nothing
 * depends on a single event. Ctrl-C ends the watching, not the job, unless the caller does.
 */
#pragma once

#include "client/api.h"
#include "client/client.h"
#include "client/progress_view.h"
#include "net/loop.h"

struct follow_options {
    struct client *client;
    uint64_t job;
    int64_t timeout_ms; /* gives up watching; 0: never */
    int64_t away_ms;    /* gives up when the market is away so long; 0: 2 min */
    /* Several times a second, and a last time at the end. NULL: not wanted. */
    void (*on_view)(void *context, const struct progress_view *view, bool is_last);
    void *view_context;
    /* A part of a rank's log, as it comes; some may be missed. NULL: not wanted. */
    void (*on_log)(void *context, const struct api_event *event);
    /* Events flow again, at the beginning and after each break: ask for missing parts of logs.
     * `job` is its last known state. NULL: not wanted. */
    void (*on_stream)(void *context, const struct api_job *job);
    /* What the parameter server or a worker measured, as it comes. NULL: not wanted. */
    void (*on_metric)(void *context, const struct api_event *event);
    /* The job as it stands now, whenever it was asked for. NULL: not wanted. */
    void (*on_job)(void *context, const struct api_job *job);
    /* The market has not been reached since then, and is tried again: `reason` says why; or it is
     * reached again: NULL. What lasts less than a second is not told. NULL: not wanted. */
    void (*on_reach)(void *context, int64_t since_ms, const char *reason);
    /* Around the following: for what else the caller does in the loop. NULL: nothing. */
    void (*on_begin)(void *context, struct loop *loop, struct http_client *http);
    void (*on_end)(void *context);
    /* Ctrl-C. True: goes on following; asked once, the next one ends it. NULL: ends it. */
    bool (*on_interrupt)(void *context);
    void *context;
    bool leaves_signals; /* Ctrl-C and SIGTERM are the caller's own */
};

enum follow_end { FOLLOW_JOB_ENDED, FOLLOW_INTERRUPTED, FOLLOW_TIMED_OUT };

struct follow_result {
    enum follow_end end;
    struct api_job job;        /* as last seen; in the arena */
    struct text json;          /* the same as JSON */
    struct progress_view view; /* as last drawn */
};

/* UNAVAILABLE: the market was away for too long. */
MUST_CHECK int job_follow(struct arena *arena, const struct follow_options *options,
                          struct follow_result *out_result, struct error *error);

/* What a job detail says, as a view. Speeds of lenders already in the view stay. */
void follow_view_set(struct progress_view *view, const struct api_job *job, int64_t now_ms);
