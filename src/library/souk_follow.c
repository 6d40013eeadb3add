/*
 * Following a job: a thread reads the market's stream and puts what it tells into a queue, from
 * which the caller takes it.
 *
 * The stream may leave out parts of logs. Each lease's log is told in the order of its offsets:
 * what is missing before a part is asked for, and at the end what is left of every log.
 */
#include "base/map.h"
#include "base/memory.h"
#include "client/api.h"
#include "client/follow.h"
#include "library/handle.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUEUE_MAX = 1024, RANK_SIZE = 32, END_ATTEMPTS = 5, END_PAUSE_MS = 200 };

struct queued {
    struct souk_event event;
    struct queued *next;
    char rank[RANK_SIZE];
    char *text, *reason;
};

struct told {
    uint64_t next_offset;
    char rank[RANK_SIZE]; /* empty until the job's leases were read */
};

struct souk_follow {
    uint64_t job;
    int32_t kinds;
    pthread_t thread;

    /* Of the thread. */
    struct client *client;
    struct map told; /* struct told by lease, owned */
    char *state;     /* as last told, with its reason; NULL: not yet */

    /* Of the caller. */
    struct queued *current;

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    struct loop *loop; /* NULL: it does not run */
    struct queued *first, **last;
    size_t count;
    bool is_stopping, has_ended;
    struct souk_error failure; /* code 0: it ended well */
    char *result;              /* the job as JSON */
};

static void queued_free(struct queued *queued)
{
    if (!queued)
        return;
    free(queued->text);
    free(queued->reason);
    free(queued);
}

/* ---- The thread's side ------------------------------------------------------------------------
 */

/* Waits while the queue is full: the market's stream waits too then. */
static void push_take(struct souk_follow *follow, struct queued *queued)
{
    queued->event.rank = queued->rank;
    queued->event.text = queued->text ? queued->text : "";
    queued->event.reason = queued->reason ? queued->reason : "";
    pthread_mutex_lock(&follow->mutex);
    while (follow->count >= QUEUE_MAX && !follow->is_stopping)
        pthread_cond_wait(&follow->changed, &follow->mutex);
    if (follow->is_stopping) {
        queued_free(queued);
    } else {
        *follow->last = queued;
        follow->last = &queued->next;
        follow->count++;
        pthread_cond_broadcast(&follow->changed);
    }
    pthread_mutex_unlock(&follow->mutex);
}

static bool is_stopping(struct souk_follow *follow)
{
    pthread_mutex_lock(&follow->mutex);
    const bool result = follow->is_stopping;
    pthread_mutex_unlock(&follow->mutex);
    return result;
}

static void push_log(struct souk_follow *follow, uint64_t lease, const char *rank, struct text text)
{
    if (text.size == 0)
        return;
    struct queued *queued = memory_zeroed(1, sizeof(*queued));
    queued->event = (struct souk_event){.kind = SOUK_EVENT_LOG,
                                        .lease = lease,
                                        .text_size = text.size,
                                        .loss = (double)NAN,
                                        .test_accuracy = (double)NAN};
    snprintf(queued->rank, sizeof(queued->rank), "%s", rank);
    queued->text = handle_text(text);
    push_take(follow, queued);
}

static struct told *find_told(struct souk_follow *follow, uint64_t lease)
{
    struct told *told = map_get(&follow->told, lease);
    if (told)
        return told;
    told = memory_zeroed(1, sizeof(*told));
    map_put(&follow->told, lease, told);
    return told;
}

/* What the market has of a lease's log and was not told yet. */
static int fill(struct souk_follow *follow, uint64_t lease, const char *rank, struct error *error)
{
    struct told *told = find_told(follow, lease);
    for (bool has_more = true; has_more && !is_stopping(follow);) {
        AUTO(arena) struct arena *arena = arena_new(0);
        struct api_log_part part = {0};
        struct client_answer answer = {&api_log_part_schema, &part, {0}};
        const char *path =
            arena_format(arena, "/v1/jobs/%" PRIu64 "/logs?lease=%" PRIu64 "&offset=%" PRIu64,
                         follow->job, lease, told->next_offset);
        if (client_get(follow->client, arena, path, &answer, error) < 0)
            return -1;
        has_more = part.next_offset > told->next_offset && !part.is_end;
        if (part.next_offset > told->next_offset) {
            told->next_offset = part.next_offset;
            push_log(follow, lease, rank, part.text);
        }
    }
    return 0;
}

static void on_log(void *context, const struct api_event *event)
{
    struct souk_follow *follow = context;
    struct told *told = find_told(follow, event->lease);
    const uint64_t end = event->next_offset ? event->next_offset : event->offset + event->text.size;
    struct error ignored; /* it is asked for again with the next part, and at the end */
    char rank[RANK_SIZE];
    snprintf(rank, sizeof(rank), "%.*s", TEXT_ARGS(event->rank));
    if (event->offset == told->next_offset) {
        told->next_offset = end;
        push_log(follow, event->lease, rank, event->text);
    } else if (end > told->next_offset) {
        (void)fill(follow, event->lease, rank, &ignored);
    }
}

static void rank_of(const struct api_lease *lease, char out[RANK_SIZE])
{
    if (!text_is(lease->role, "server"))
        snprintf(out, RANK_SIZE, "%" PRIu64, lease->rank);
    else if (lease->is_replica)
        snprintf(out, RANK_SIZE, "replica");
    else if (lease->rank > 0)
        snprintf(out, RANK_SIZE, "server-%" PRIu64, lease->rank);
    else
        snprintf(out, RANK_SIZE, "server");
}

static void note_ranks(struct souk_follow *follow, const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++)
        rank_of(&leases[i], find_told(follow, leases[i].id)->rank);
}

/* Metrics may come before the job is read anew. */
static const char *find_rank(struct souk_follow *follow, uint64_t lease)
{
    struct told *told = find_told(follow, lease);
    if (told->rank[0])
        return told->rank;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_job job = {0};
    struct client_answer answer = {&api_job_schema, &job, {0}};
    struct error ignored; /* the next metric asks again */
    const char *path = arena_format(arena, "/v1/jobs/%" PRIu64, follow->job);
    if (client_get(follow->client, arena, path, &answer, &ignored) == 0)
        note_ranks(follow, &job);
    return told->rank;
}

static void on_metric(void *context, const struct api_event *event)
{
    struct queued *queued = memory_zeroed(1, sizeof(*queued));
    queued->event = (struct souk_event){.kind = SOUK_EVENT_METRIC,
                                        .is_server = text_is(event->role, "server"),
                                        .lease = event->lease,
                                        .at_ms = event->at_ms,
                                        .steps = event->steps,
                                        .samples = event->samples,
                                        .commits = event->commits,
                                        .loss = event->loss,
                                        .test_accuracy = event->test_accuracy,
                                        .steps_per_second = event->steps_per_second};
    snprintf(queued->rank, sizeof(queued->rank), "%s", find_rank(context, event->lease));
    push_take(context, queued);
}

/* One that fails keeps none of the others back. */
static int fill_all(struct souk_follow *follow, const struct api_job *job, struct error *error)
{
    const struct api_lease *leases = job->leases.items;
    char rank[RANK_SIZE];
    int result = 0;
    for (size_t i = 0; i < job->leases.count; i++) {
        rank_of(&leases[i], rank);
        if (fill(follow, leases[i].id, rank, error) < 0)
            result = -1;
    }
    return result;
}

static void on_job(void *context, const struct api_job *job)
{
    struct souk_follow *follow = context;
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *now =
        arena_format(arena, "%.*s\n%.*s", TEXT_ARGS(job->state), TEXT_ARGS(job->reason));
    struct error ignored; /* as in on_log */
    note_ranks(follow, job);
    if (follow->kinds & SOUK_EVENT_LOG)
        (void)fill_all(follow, job, &ignored);
    if (follow->state && !strcmp(follow->state, now))
        return;
    free(follow->state);
    follow->state = handle_text(text_of(now));
    if (!(follow->kinds & SOUK_EVENT_STATE))
        return;
    struct queued *queued = memory_zeroed(1, sizeof(*queued));
    queued->event = (struct souk_event){.kind = SOUK_EVENT_STATE,
                                        .text_size = job->state.size,
                                        .loss = job->loss,
                                        .test_accuracy = job->test_accuracy,
                                        .samples = job->samples};
    queued->text = handle_text(job->state);
    queued->reason = handle_text(job->reason);
    push_take(follow, queued);
}

/* A rank may have printed its last line while we were disconnected: ask for it. */
static void on_stream(void *context, const struct api_job *job)
{
    struct error ignored; /* as in on_log */
    (void)fill_all(context, job, &ignored);
}

static void on_reach(void *context, int64_t since_ms, const char *reason)
{
    const struct text text = reason ? TEXT("away") : TEXT("reached");
    struct queued *queued = memory_zeroed(1, sizeof(*queued));
    queued->event = (struct souk_event){.kind = SOUK_EVENT_MARKET,
                                        .at_ms = since_ms,
                                        .text_size = text.size,
                                        .loss = (double)NAN,
                                        .test_accuracy = (double)NAN};
    queued->text = handle_text(text);
    queued->reason = handle_text(text_of(reason ? reason : ""));
    push_take(context, queued);
}

static void on_begin(void *context, struct loop *loop, struct http_client *http)
{
    struct souk_follow *follow = context;
    (void)http;
    pthread_mutex_lock(&follow->mutex);
    follow->loop = loop;
    if (follow->is_stopping)
        loop_stop(loop);
    pthread_mutex_unlock(&follow->mutex);
}

static void on_end(void *context)
{
    struct souk_follow *follow = context;
    pthread_mutex_lock(&follow->mutex);
    follow->loop = NULL;
    pthread_mutex_unlock(&follow->mutex);
}

static struct timespec after(int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

/* Cut short when the caller stops it. */
static void pause_for(struct souk_follow *follow, int64_t ms)
{
    const struct timespec until = after(ms);
    pthread_mutex_lock(&follow->mutex);
    while (!follow->is_stopping &&
           pthread_cond_timedwait(&follow->changed, &follow->mutex, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&follow->mutex);
}

/* What is left of every log: a market that is restarted just then is asked again. */
static int fill_to_end(struct souk_follow *follow, const struct api_job *job, struct error *error)
{
    for (int i = 0, pause_ms = END_PAUSE_MS; fill_all(follow, job, error) < 0; pause_ms *= 2) {
        if (++i == END_ATTEMPTS || is_stopping(follow))
            return error_wrap(error, "the end of the log did not come");
        pause_for(follow, pause_ms);
    }
    return 0;
}

static void *run(void *context)
{
    struct souk_follow *follow = context;
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct follow_options options = {
        .client = follow->client,
        .job = follow->job,
        .on_log = follow->kinds & SOUK_EVENT_LOG ? on_log : NULL,
        .on_stream = follow->kinds & SOUK_EVENT_LOG ? on_stream : NULL,
        .on_metric = follow->kinds & SOUK_EVENT_METRIC ? on_metric : NULL,
        .on_job = on_job,
        .on_reach = follow->kinds & SOUK_EVENT_MARKET ? on_reach : NULL,
        .on_begin = on_begin,
        .on_end = on_end,
        .context = follow,
        .leaves_signals = true,
    };
    struct follow_result result;
    struct error error;
    int outcome = job_follow(arena, &options, &result, &error);
    if (outcome == 0 && follow->kinds & SOUK_EVENT_LOG)
        outcome = fill_to_end(follow, &result.job, &error);
    pthread_mutex_lock(&follow->mutex);
    if (outcome < 0)
        handle_fill_request(&follow->failure, &error, follow->client);
    else
        follow->result = handle_text(result.json);
    follow->has_ended = true;
    pthread_cond_broadcast(&follow->changed);
    pthread_mutex_unlock(&follow->mutex);
    return NULL;
}

/* ---- The caller's side ------------------------------------------------------------------------
 */

/* It takes none of the program's signals. */
static int start(struct souk_follow *follow, struct error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(&follow->thread, NULL, run, follow);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result ? error_set_errno(error, result, "start a thread") : 0;
}

static void release(struct souk_follow *follow)
{
    while (follow->first) {
        struct queued *next = follow->first->next;
        queued_free(follow->first);
        follow->first = next;
    }
    queued_free(follow->current);
    for (size_t i = 0; i < follow->told.count; i++)
        free(follow->told.entries[i].value);
    map_done(&follow->told);
    client_free(follow->client);
    pthread_cond_destroy(&follow->changed);
    pthread_mutex_destroy(&follow->mutex);
    free(follow->state);
    free(follow->result);
    free(follow);
}

int souk_follow_open(struct souk_client *client, uint64_t job, int32_t kinds,
                     struct souk_follow **out_follow, struct souk_error *out_error)
{
    struct error error;
    /* A job that is not there is told at once. */
    if (souk_client_job(client, job, NULL, out_error) < 0)
        return -1;
    struct souk_follow *follow = memory_zeroed(1, sizeof(*follow));
    follow->job = job;
    follow->kinds = kinds;
    follow->last = &follow->first;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&follow->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&follow->mutex, NULL);
    map_init(&follow->told);
    if (client_clone(client->client, &follow->client, &error) < 0 || start(follow, &error) < 0) {
        release(follow);
        return handle_fail(out_error, &error);
    }
    *out_follow = follow;
    return 0;
}

/* With the mutex; false when the time is over. */
static bool await(struct souk_follow *follow, int64_t timeout_ms)
{
    const struct timespec until = after(timeout_ms < 0 ? 0 : timeout_ms);
    while (!follow->first && !follow->has_ended && !follow->is_stopping) {
        const int result = timeout_ms < 0
                               ? pthread_cond_wait(&follow->changed, &follow->mutex)
                               : pthread_cond_timedwait(&follow->changed, &follow->mutex, &until);
        if (result == ETIMEDOUT)
            return follow->first || follow->has_ended || follow->is_stopping;
    }
    return true;
}

static int take_next(struct souk_follow *follow, int64_t timeout_ms, struct souk_error *error)
{
    if (!await(follow, timeout_ms))
        return handle_fail_with(error, SOUK_TIMED_OUT, "nothing came in time");
    if (follow->is_stopping)
        return handle_fail_with(error, SOUK_STOPPED, "stopped by the caller");
    if (follow->first) {
        follow->current = follow->first;
        follow->first = follow->current->next;
        if (!follow->first)
            follow->last = &follow->first;
        follow->count--;
        pthread_cond_broadcast(&follow->changed);
        return 1;
    }
    if (follow->failure.code == SOUK_OK)
        return 0;
    if (error)
        *error = follow->failure;
    return -1;
}

int souk_follow_next(struct souk_follow *follow, int64_t timeout_ms,
                     const struct souk_event **out_event, struct souk_error *error)
{
    queued_free(follow->current);
    follow->current = NULL;
    pthread_mutex_lock(&follow->mutex);
    const int result = take_next(follow, timeout_ms, error);
    pthread_mutex_unlock(&follow->mutex);
    if (result == 1)
        *out_event = &follow->current->event;
    return result;
}

void souk_follow_stop(struct souk_follow *follow)
{
    pthread_mutex_lock(&follow->mutex);
    follow->is_stopping = true;
    if (follow->loop)
        loop_stop(follow->loop);
    pthread_cond_broadcast(&follow->changed);
    pthread_mutex_unlock(&follow->mutex);
}

const char *souk_follow_job(const struct souk_follow *follow)
{
    return follow->has_ended ? follow->result : NULL;
}

void souk_follow_free(struct souk_follow *follow)
{
    if (!follow)
        return;
    souk_follow_stop(follow);
    pthread_join(follow->thread, NULL);
    release(follow);
}

int souk_client_wait(struct souk_client *client, uint64_t job, int64_t timeout_ms, char **out_json,
                     struct souk_error *error)
{
    struct souk_follow *follow = NULL;
    const struct souk_event *event;
    if (souk_follow_open(client, job, 0, &follow, error) < 0)
        return -1;
    const int result = souk_follow_next(follow, timeout_ms, &event, error);
    if (result == 0 && out_json)
        *out_json = handle_text(text_of(souk_follow_job(follow)));
    souk_follow_free(follow);
    return result;
}
