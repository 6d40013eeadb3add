#include "server/engine.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/engine_load.h"
#include "server/projection.h"
#include "server/tables.h"
#include "server/version.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    QUEUE_MAX = 4096,
    BATCH_MAX = 1024,
    SNAPSHOT_EVENTS = 10000,
    SNAPSHOT_EVENT_BYTES = 256,
    EVENT_SIZE_MAX = STORE_BODY_BYTES_MAX,
    RETRY_MS = 1000,
    WAKE_MAX_MS = 60000,
};

struct engine {
    struct engine_options options;
    struct store *store;
    struct core *core; /* NULL after a failed reload */
    struct projection *projection;
    struct event_list events; /* of the batch */
    struct store_batch *batch;
    int64_t batch_ms;           /* when it began: the instant of all its decisions */
    struct buffer encoded;      /* one event's JSON */
    uint64_t snapshot_sequence; /* of the last one saved */
    uint64_t snapshot_bytes;    /* of the last one written */
    bool is_failing;            /* the last write failed */
    int64_t probed_ns;          /* the last look whether writing works again */
    engine_listener *listeners[ENGINE_LISTENERS_MAX];
    void *listener_contexts[ENGINE_LISTENERS_MAX];
    size_t listener_count;

    pthread_t thread;
    bool is_started;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct list queue;           /* guarded by mutex */
    uint32_t queue_count;        /* guarded by mutex */
    bool is_stopping;            /* guarded by mutex */
    struct engine_counts counts; /* guarded by mutex */
};

static int64_t now_ms(const struct engine *engine)
{
    return clock_utc_ms(engine->options.clock);
}

static int load(struct engine *engine, struct error *error)
{
    core_free(engine->core);
    engine->core = NULL;
    return engine_load(&engine->options.store, engine->store, engine->projection, &engine->core,
                       &engine->snapshot_sequence, error);
}

int engine_open(const struct engine_options *options, struct engine **out_engine,
                struct error *error)
{
    AUTO(engine) struct engine *engine = calloc(1, sizeof(*engine));
    ASSERT(engine);
    engine->options = *options;
    if (!engine->options.queue_max)
        engine->options.queue_max = QUEUE_MAX;
    if (!engine->options.batch_max)
        engine->options.batch_max = BATCH_MAX;
    if (!engine->options.snapshot_event_count)
        engine->options.snapshot_event_count = SNAPSHOT_EVENTS;
    pthread_mutex_init(&engine->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&engine->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    list_init(&engine->queue);
    event_list_init(&engine->events);
    buffer_init(&engine->encoded, EVENT_SIZE_MAX);
    engine->batch = store_batch_new(0);
    engine->projection = projection_new();
    if (store_open(&options->store, &engine->store, error) < 0 || load(engine, error) < 0)
        return -1;
    engine->counts.is_ready = true;
    engine->counts.sequence = store_head(engine->store).sequence;
    *out_engine = TAKE(engine);
    return 0;
}

void engine_free(struct engine *engine)
{
    if (!engine)
        return;
    engine_stop(engine);
    projection_free(engine->projection);
    store_batch_free(engine->batch);
    buffer_done(&engine->encoded);
    event_list_done(&engine->events);
    core_free(engine->core);
    store_free(engine->store);
    pthread_cond_destroy(&engine->changed);
    pthread_mutex_destroy(&engine->mutex);
    free(engine);
}

void engine_listen(struct engine *engine, engine_listener *listener, void *context)
{
    ASSERT(!engine->is_started && engine->listener_count < ENGINE_LISTENERS_MAX);
    engine->listeners[engine->listener_count] = listener;
    engine->listener_contexts[engine->listener_count++] = context;
}

const struct core *engine_core(const struct engine *engine)
{
    ASSERT(!engine->is_started);
    return engine->core;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static int decide(struct engine *engine, struct engine_request *request, struct error *error)
{
    request->now_ms = engine->batch_ms;
    if (!engine->core)
        return error_set(error, ERROR_UNAVAILABLE,
                         "the market's store is away; try again in a moment");
    if (request->has_command) {
        engine->events.subject = 0;
        if (request->prepare && request->prepare(request, engine->core, error) < 0)
            return -1;
        if (core_decide(engine->core, &request->command, request->now_ms, &engine->events, error) <
            0)
            return -1;
        request->subject = engine->events.subject;
        while (request->next && request->next(request))
            if (core_decide(engine->core, &request->command, request->now_ms, &engine->events,
                            error) < 0)
                return -1;
    }
    if (request->on_decided)
        return request->on_decided(request, engine->core, engine->batch, error);
    return 0;
}

/* Time itself is a request without a sender. */
static void decide_time(struct engine *engine)
{
    const int64_t now = engine->batch_ms;
    if (!engine->core || core_next_wake_ms(engine->core) > now)
        return;
    struct error error;
    const struct command command = {.kind = COMMAND_TIME_PASSED};
    if (core_decide(engine->core, &command, now, &engine->events, &error) < 0)
        log_event(LOG_ERROR, "time_passed_refused", "error=\"%s\"", error.message);
}

static void add_events(struct engine *engine)
{
    for (size_t i = 0; i < engine->events.count; i++) {
        const struct event *event = &engine->events.items[i];
        buffer_clear(&engine->encoded);
        event_encode(event, &engine->encoded);
        ASSERT(!engine->encoded.is_overflowed); /* a spec is at most JOB_SPEC_MAX */
        store_batch_event(engine->batch, event->time_ms, text_of(event_kind_name(event->kind)),
                          buffer_text(&engine->encoded));
        projection_event(engine->projection, engine->core, event, engine->batch);
    }
    if (engine->events.count)
        projection_flush(engine->projection, engine->core, engine->batch);
}

static void move_versions(struct engine *engine)
{
    versions_commit(engine->options.versions, engine->batch);
    for (size_t i = 0; i < engine->events.count; i++)
        if (core_price_follows(&engine->events.items[i])) {
            versions_move_prices(engine->options.versions);
            return;
        }
}

static int commit(struct engine *engine, struct error *error)
{
    if (!engine->core)
        return 0; /* nothing was decided; every request has its refusal */
    add_events(engine);
    /* All accounts sum to zero at every commit: idea three of the design. */
    DEBUG_ASSERT(!engine->events.count || core_ledger_sum_micro(engine->core) == 0);
    const int64_t started_ns = clock_monotonic_ns(engine->options.clock);
    const int result = store_commit(engine->store, engine->batch, error);
    const int64_t spent_ns = clock_monotonic_ns(engine->options.clock) - started_ns;
    pthread_mutex_lock(&engine->mutex);
    engine->counts.commits += result == 0;
    engine->counts.failed_commits += result < 0;
    engine->counts.commit_ns += (uint64_t)(spent_ns > 0 ? spent_ns : 0);
    engine->counts.events += result == 0 ? engine->events.count : 0;
    engine->counts.sequence = store_head(engine->store).sequence;
    pthread_mutex_unlock(&engine->mutex);
    if (engine->options.versions && result == 0)
        move_versions(engine);
    return result;
}

static void tell_listeners(struct engine *engine)
{
    if (!engine->events.count)
        return;
    for (size_t i = 0; i < engine->listener_count; i++)
        engine->listeners[i](engine->listener_contexts[i], engine->core, engine->events.items,
                             engine->events.count);
}

/* Writing one takes as long as replaying about one event for each SNAPSHOT_EVENT_BYTES of it: a
 * large market takes them more rarely, so that they never cost more than the events between. */
static bool is_snapshot_due(const struct engine *engine, uint64_t sequence)
{
    const uint64_t usual = engine->options.snapshot_event_count;
    const uint64_t large = engine->snapshot_bytes / SNAPSHOT_EVENT_BYTES;
    return sequence >= engine->snapshot_sequence + (large > usual ? large : usual);
}

static void save_snapshot(struct engine *engine, bool is_last)
{
    const struct store_head head = store_head(engine->store);
    if (!engine->core || head.sequence == engine->snapshot_sequence ||
        (!is_last && !is_snapshot_due(engine, head.sequence)))
        return;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, STORE_SNAPSHOT_BYTES_MAX);
    core_snapshot_write(engine->core, &bytes);
    engine->snapshot_bytes = bytes.size;
    struct error error;
    const struct store_snapshot snapshot = {.head = head, .bytes = buffer_text(&bytes)};
    /* Not saving one costs only time at the next start. */
    if (buffer_check(&bytes, &error) < 0 ||
        store_snapshot_save(engine->store, &snapshot, &error) < 0) {
        log_event(LOG_WARN, "snapshot_failed", "error=\"%s\"", error.message);
        engine->snapshot_sequence = head.sequence; /* not again with every batch */
        return;
    }
    engine->snapshot_sequence = head.sequence;
    log_event(LOG_INFO, "snapshot_saved", "sequence=%" PRIu64 " bytes=%zu", head.sequence,
              bytes.size);
}

/* ---- The batch ------------------------------------------------------------------------------- */

static void done(struct engine_request *request)
{
    request->on_done(request, request->is_refused ? &request->error : NULL);
}

/* Requests of one batch that end on the same loop: it is woken once for all of them. */
struct finished {
    struct loop *loop;
    struct list requests;
};

static void done_on_loop(void *context)
{
    struct finished *finished = context;
    struct list_node *node;
    while ((node = list_take_first(&finished->requests)))
        done(LIST_ITEM(node, struct engine_request, node));
    free(finished);
}

static void post_finished(struct finished *finished)
{
    if (finished)
        loop_post(finished->loop, done_on_loop, finished);
}

/* In the order they came, as far as one loop can tell. */
static void finish(struct list *requests)
{
    struct finished *finished = NULL;
    struct list_node *node;
    while ((node = list_take_first(requests))) {
        struct engine_request *request = LIST_ITEM(node, struct engine_request, node);
        if (!request->loop) {
            done(request);
            continue;
        }
        if (!finished || finished->loop != request->loop) {
            post_finished(finished);
            finished = malloc(sizeof(*finished));
            ASSERT(finished);
            finished->loop = request->loop;
            list_init(&finished->requests);
        }
        list_append(&finished->requests, node);
    }
    post_finished(finished);
}

static void reload(struct engine *engine)
{
    struct error error;
    if (load(engine, &error) < 0)
        log_event(LOG_ERROR, "reload_failed", "error=\"%s\"", error.message);
    if (engine->options.versions)
        versions_move_all(engine->options.versions);
}

/* What the store says names files of this machine: that is for the log. To the asker it is one
 * thing: try again later. */
static void write_failed(struct engine *engine, struct error *error)
{
    const bool is_full = error->code == ERROR_EXHAUSTED;
    log_event(LOG_ERROR, "commit_failed", "error=\"%s\"", error->message);
    (void)!error_set(error, ERROR_UNAVAILABLE,
                     is_full ? "nothing was changed: the market's disk is full; try again later"
                             : "nothing was changed: the market cannot write to its store; try "
                               "again later");
    engine->is_failing = true;
    engine->probed_ns = clock_monotonic_ns(engine->options.clock);
    pthread_mutex_lock(&engine->mutex);
    engine->counts.is_disk_full = is_full;
    pthread_mutex_unlock(&engine->mutex);
}

/* A batch without changes proves nothing about the disk: while writing fails, something small is
 * written now and then, so that readiness comes back without anyone's request. */
static void probe(struct engine *engine)
{
    const int64_t now_ns = clock_monotonic_ns(engine->options.clock);
    if (!engine->is_failing || now_ns - engine->probed_ns < RETRY_MS * INT64_C(1000000))
        return;
    engine->probed_ns = now_ns;
    struct error error;
    store_batch_clear(engine->batch);
    store_batch_meta(engine->batch, "probe", TEXT("1"));
    engine->is_failing = store_commit(engine->store, engine->batch, &error) < 0;
    if (!engine->is_failing)
        log_event(LOG_INFO, "store_works_again", "sequence=%" PRIu64,
                  store_head(engine->store).sequence);
}

static void run_batch(struct engine *engine, struct list *requests)
{
    if (!engine->core)
        reload(engine);
    event_list_clear(&engine->events);
    store_batch_clear(engine->batch);
    engine->batch_ms = now_ms(engine);
    uint64_t refusals = 0, commands = 0;
    LIST_EACH(requests, node)
    {
        struct engine_request *request = LIST_ITEM(node, struct engine_request, node);
        request->is_refused = decide(engine, request, &request->error) < 0;
        refusals += request->is_refused;
        commands += request->has_command;
    }
    decide_time(engine);

    struct error error;
    const bool is_failed = commit(engine, &error) < 0;
    if (is_failed) {
        write_failed(engine, &error);
        reload(engine);
    } else {
        tell_listeners(engine);
        if (engine->core && !store_batch_is_empty(engine->batch))
            engine->is_failing = false;
        probe(engine);
    }
    pthread_mutex_lock(&engine->mutex);
    engine->counts.commands += commands;
    engine->counts.refusals += refusals;
    engine->counts.is_ready = engine->core && !engine->is_failing;
    engine->counts.is_disk_full = engine->counts.is_disk_full && engine->is_failing;
    pthread_mutex_unlock(&engine->mutex);

    if (is_failed)
        LIST_EACH(requests, node)
        {
            /* A refusal may rest on what the failed batch had decided before it: it fails too. */
            struct engine_request *request = LIST_ITEM(node, struct engine_request, node);
            request->is_refused = true;
            request->error = error;
        }
    finish(requests);
    save_snapshot(engine, /* is_last= */ false);
}

static int64_t wait_ms(const struct engine *engine)
{
    if (!engine->core)
        return RETRY_MS;
    const int64_t wake = core_next_wake_ms(engine->core);
    const int64_t left = wake == INT64_MAX ? WAKE_MAX_MS : wake - now_ms(engine);
    /* What time called for could not be written: it is tried again, but not without a pause. */
    if (engine->is_failing)
        return RETRY_MS;
    return left < 0 ? 0 : left > WAKE_MAX_MS ? WAKE_MAX_MS : left;
}

/* Moves at most a batch into `out`; false when the engine stops and nothing is left. */
static bool take_batch(struct engine *engine, struct list *out)
{
    const int64_t wait = wait_ms(engine);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait / 1000;
    until.tv_nsec += (wait % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&engine->mutex);
    while (list_is_empty(&engine->queue) && !engine->is_stopping)
        if (pthread_cond_timedwait(&engine->changed, &engine->mutex, &until) == ETIMEDOUT)
            break;
    for (uint32_t i = 0; i < engine->options.batch_max && !list_is_empty(&engine->queue); i++) {
        list_append(out, list_take_first(&engine->queue));
        engine->queue_count--;
    }
    const bool goes_on = !list_is_empty(out) || !engine->is_stopping;
    pthread_mutex_unlock(&engine->mutex);
    return goes_on;
}

static void *run(void *context)
{
    struct engine *engine = context;
    pthread_setname_np(pthread_self(), "souk-core");
    struct list requests;
    list_init(&requests);
    while (take_batch(engine, &requests))
        run_batch(engine, &requests);
    save_snapshot(engine, /* is_last= */ true);
    return NULL;
}

int engine_start(struct engine *engine, struct error *error)
{
    ASSERT(!engine->is_started);
    const int result = pthread_create(&engine->thread, NULL, run, engine);
    if (result)
        return error_set_errno(error, result, "start the core thread");
    engine->is_started = true;
    return 0;
}

void engine_stop(struct engine *engine)
{
    if (!engine->is_started)
        return;
    pthread_mutex_lock(&engine->mutex);
    engine->is_stopping = true;
    pthread_cond_signal(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
    pthread_join(engine->thread, NULL);
    engine->is_started = false;
}

int engine_submit(struct engine *engine, struct engine_request *request, bool is_internal,
                  struct error *error)
{
    ASSERT(request->on_done);
    int result = 0;
    pthread_mutex_lock(&engine->mutex);
    const uint32_t limit = engine->options.queue_max * (is_internal ? 4 : 1);
    if (engine->is_stopping)
        result = error_set(error, ERROR_UNAVAILABLE, "the market is stopping");
    else if (engine->queue_count >= limit)
        result = error_set(error, ERROR_UNAVAILABLE,
                           "the market is busy: %" PRIu32 " changes wait; try again in a moment",
                           engine->queue_count);
    else {
        request->is_refused = false;
        list_append(&engine->queue, &request->node);
        if (engine->queue_count++ == 0)
            pthread_cond_signal(&engine->changed);
    }
    pthread_mutex_unlock(&engine->mutex);
    return result;
}

struct engine_counts engine_counts(struct engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    struct engine_counts counts = engine->counts;
    counts.waiting = engine->queue_count;
    pthread_mutex_unlock(&engine->mutex);
    return counts;
}
