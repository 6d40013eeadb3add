/* What live.c, live_listen.c, live_rows.c and live_stream.c share. */
#pragma once

#include "base/list.h"
#include "server/live.h"
#include "server/server_internal.h"

#include <stdatomic.h>

struct live_entry {
    struct live_job job; /* arrays are owned, with the capacities below */
    size_t worker_capacity;
    size_t curve_capacity;
    uint64_t evaluations; /* the parameter server's, at the last point */
    bool is_changed;      /* since it was saved */
    bool is_final;        /* the job has ended: forgotten after it is saved */
    int64_t profiled_ms;  /* when its profile was last written; 0: a lease has ended since */
};

enum { LIVE_ACCOUNT_SLOTS = 1024 };

struct live {
    struct server *server;
    struct map jobs;     /* job -> struct live_entry, owned */
    struct list streams; /* struct live_stream */
    atomic_size_t stream_count;
    /* Streams of all that an account may see, by its number: where there are none nobody is told of
     * the heartbeats of its machines, which are many. */
    atomic_uint account_streams[LIVE_ACCOUNT_SLOTS];
    struct map paused;        /* machines, of which others were told that they are; core thread's */
    uint64_t shown_job;       /* read from the tables for live_find; 0: none */
    struct live_entry *shown; /* NULL: they have nothing of it; owned */
    enum live_part shown_part;
};

/* To every stream that may see it. job 0: about a machine or an account, for all or, with an
 * account, for that. */
struct live_event {
    uint64_t job;
    uint64_t account;
    uint64_t lender;  /* 0, or who lends the machine of a lease, and hears of it too */
    const char *name; /* a literal: metric, state, bill, log, account, heartbeat */
    struct text data; /* JSON */
};
void live_send(struct live *live, const struct live_event *event);

/* A lease of the job has ended: its profile is due. */
void live_lease_ended(struct live *live, uint64_t job);
/* The job's end was committed. */
void live_finish(struct live *live, uint64_t job);
void live_streams_done(struct live *live);
/* False: nobody follows what the account may see. From any thread. */
bool live_is_followed(const struct live *live, uint64_t account);
void live_end_job_streams(struct live *live, uint64_t job);
void live_end_token_streams(struct live *live, uint64_t token);

/* live_rows.c: as the tables have it. */
/* NULL when they have nothing of the job. */
struct live_entry *live_entry_load(struct live *live, uint64_t job, enum live_part part);
void live_entry_save(struct live *live, struct live_entry *entry);
void live_entry_free(struct live_entry *entry); /* NULL is fine */
