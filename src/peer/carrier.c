#include "peer/carrier.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/json_schema.h"
#include "base/log.h"
#include "base/memory.h"
#include "function/lesson.h"
#include "function/object_store.h"
#include "function/parcel.h"
#include "net/http_client.h"
#include "source/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    ATTEMPTS_MAX = 3,
    END_MS = 60000,
    END_EXTRA_MS = 3000, /* a store looks once a second whether it is to go on */
    TOKEN_SIZE = 256,
    LEFT_MAX = 16,
    BODY_MAX = 1024,
};
/* Of what its process, and functions, say there is. */
#define MODEL_BYTES_MAX (PARCEL_VALUES_MAX * sizeof(float) + PARCEL_EXTRA_MAX)
#define JOB_BYTES_MAX   ((size_t)2 * WORK_JSON_MAX)

struct task {
    struct task *next;
    bool is_fetch;
    struct work_request request;
    carrier_function *callback;
    void *context;
    bool has_failed;
    struct error error;
};

struct tasks {
    struct task *first, *last;
};

struct carrier {
    char job[WORK_JOB_SIZE];
    char place[PATH_MAX];              /* of its own store */
    struct object_store *own, *theirs; /* the thread's */
    size_t data_bytes_max;
    int64_t end_ms;
    bool has_begun;         /* the thread's, as the next: something may be there */
    bool has_job;           /* all of it is there */
    bool is_clearing;       /* what it brought is taken away */
    uint64_t version;       /* of the model that is there; 0: none */
    uint64_t begun_version; /* of one that may be */
    char *server, *fingerprint, *lease_token; /* of a market; server NULL: none */
    char token[TOKEN_SIZE];  /* of its functions there; set before the first callback */
    uint64_t left[LEFT_MAX]; /* versions that could not be deleted yet */
    int left_count;
    int done_fd;
    struct loop_watch *watch;
    struct loop_timer *timer; /* until the end is told, whatever the thread does */
    void (*on_ended)(void *context);
    void *context;
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tasks wanted, done;  /* guarded by the mutex */
    atomic_bool is_ending;      /* changed under it */
    _Atomic int64_t give_up_ns; /* likewise: when clearing ends, too */
    bool is_over;               /* guarded by it: the thread is through */
    bool is_abandoned;          /* likewise: the thread frees all */
};

static void tasks_add(struct tasks *tasks, struct task *task)
{
    task->next = NULL;
    if (tasks->last)
        tasks->last->next = task;
    else
        tasks->first = task;
    tasks->last = task;
}

static struct task *tasks_take(struct tasks *tasks)
{
    struct task *task = tasks->first;
    if (task)
        tasks->first = task->next;
    if (!tasks->first)
        tasks->last = NULL;
    return task;
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Of their store: at the end what is under way ends, and what clears it away has its time. */
static bool is_stopped(void *context)
{
    const struct carrier *carrier = context;
    if (!atomic_load(&carrier->is_ending))
        return false;
    return !carrier->is_clearing ||
           clock_monotonic_ns(&clock_system) >= atomic_load(&carrier->give_up_ns);
}

/* A file without a name. The lease's process cannot reach it: what is sent from there does not
 * change on its way. */
static int open_scratch(const struct carrier *carrier, struct error *error)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/.carried-XXXXXX", carrier->place);
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file for what is carried");
    unlink(path);
    return fd;
}

/* One that is there already was brought by an attempt before, and is the same. */
static int copy(const struct carrier *carrier, bool is_back, const char *key, size_t bytes_max,
                struct error *error)
{
    AUTO_FD int fd = open_scratch(carrier, error);
    if (fd < 0 ||
        object_store_fetch(is_back ? carrier->theirs : carrier->own, key, fd, bytes_max, error) < 0)
        return -1;
    return object_store_put_file(is_back ? carrier->own : carrier->theirs, key, fd, error);
}

static int copy_there(const struct carrier *carrier, const char *key, size_t bytes_max,
                      struct error *error)
{
    return copy(carrier, /* is_back= */ false, key, bytes_max, error);
}

struct made_token {
    struct text token;
};
static const struct json_field made_fields[] = {
    {"token", JSON_TEXT, offsetof(struct made_token, token), .is_required = true,
     .size_max = TOKEN_SIZE - 1},
};
static const struct json_schema made_schema =
    JSON_SCHEMA_LENIENT("token", made_fields, struct made_token);

/* Functions elsewhere are given no token of the lease's but one for its objects. */
static int make_token(struct carrier *carrier, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new_secret(0);
    struct http_response response AUTO_HTTP_RESPONSE;
    struct made_token made = {0};
    const struct http_header headers[] = {
        {"Authorization", arena_format(arena, "Bearer %s", carrier->lease_token)},
        {"Content-Type", "application/json"}};
    http_response_init(&response);
    const struct http_call_options options = {
        .method = "POST",
        .url = arena_format(arena, "%s/v1/objects/tokens", carrier->server),
        .headers = headers,
        .header_count = 2,
        .body = text_of(arena_format(arena, "{\"job\":\"%s\"}", carrier->job)),
        .response_max = BODY_MAX,
        .is_stopped = is_stopped,
        .context = carrier,
        .pinned_fingerprint = carrier->fingerprint,
    };
    if (http_call(&options, &response, error) < 0)
        return error_wrap(error, "a token for the functions");
    if (response.status != 201)
        return error_set(error, response.status >= 500 ? ERROR_UNAVAILABLE : ERROR_REFUSED,
                         "a token for the functions: the market answered with status %d",
                         response.status);
    if (json_read(arena, buffer_text(&response.body), &made_schema, &made, error) < 0)
        return -1;
    return text_copy(made.token, carrier->token, sizeof(carrier->token), error);
}

static int bring_job(struct carrier *carrier, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    carrier->has_begun = true;
    if (carrier->server && make_token(carrier, error) < 0)
        return -1;
    for (int i = 0; i < LESSON_PART_COUNT; i++) {
        work_data_key(carrier->job, lesson_part_names[i], key);
        if (copy_there(carrier, key, carrier->data_bytes_max, error) < 0 &&
            !(i == LESSON_LABELS && error->code == ERROR_NOT_FOUND))
            return -1;
    }
    work_job_key(carrier->job, key);
    if (copy_there(carrier, key, JOB_BYTES_MAX, error) < 0)
        return -1;
    carrier->has_job = true;
    return 0;
}

static int delete_model(struct carrier *carrier, uint64_t version, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    work_model_key(carrier->job, version, key);
    return object_store_delete(carrier->theirs, key, error);
}

/* When a model is new, no call that starts from the one before is left. No call fails because that
 * one stays: it is tried again with the next, and at the end. */
static int bring(struct carrier *carrier, const struct work_request *request, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct error ignored;
    if (!carrier->has_job && bring_job(carrier, error) < 0)
        return -1;
    if (request->version == carrier->version)
        return 0;
    work_model_key(carrier->job, request->version, key);
    carrier->begun_version = request->version;
    if (copy_there(carrier, key, MODEL_BYTES_MAX, error) < 0)
        return -1;
    const uint64_t former = carrier->version;
    carrier->version = request->version;
    if (former && carrier->left_count < LEFT_MAX)
        carrier->left[carrier->left_count++] = former;
    /* Until one fails: then the store is away, and is not asked for each of them. */
    while (carrier->left_count > 0 &&
           delete_model(carrier, carrier->left[carrier->left_count - 1], &ignored) == 0)
        carrier->left_count--;
    return 0;
}

static int fetch(struct carrier *carrier, const struct work_request *request, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    work_update_key(request, key);
    if (copy(carrier, /* is_back= */ true, key, MODEL_BYTES_MAX, error) < 0)
        return -1;
    return object_store_delete(carrier->theirs, key, error);
}

/* What cannot be deleted keeps nothing else there. */
static void clear_away(struct carrier *carrier)
{
    struct error error, later;
    char keys[LESSON_PART_COUNT + LEFT_MAX + 3][OBJECT_KEY_SIZE];
    int count = 0;
    bool has_failed = false;
    if (!carrier->has_begun)
        return;
    carrier->is_clearing = true;
    if (carrier->version)
        work_model_key(carrier->job, carrier->version, keys[count++]);
    if (carrier->begun_version && carrier->begun_version != carrier->version)
        work_model_key(carrier->job, carrier->begun_version, keys[count++]);
    for (int i = 0; i < carrier->left_count; i++)
        work_model_key(carrier->job, carrier->left[i], keys[count++]);
    for (int i = 0; i < LESSON_PART_COUNT; i++)
        work_data_key(carrier->job, lesson_part_names[i], keys[count++]);
    work_job_key(carrier->job, keys[count++]);
    for (int i = 0; i < count; i++)
        if (object_store_delete(carrier->theirs, keys[i], has_failed ? &later : &error) < 0)
            has_failed = true;
    if (has_failed)
        log_event(LOG_WARN, "objects_left", "job=%s error=\"%s\"", carrier->job, error.message);
}

static void tell_loop(const struct carrier *carrier)
{
    const uint64_t one = 1;
    const ssize_t written = write(carrier->done_fd, &one, sizeof(one));
    ASSERT(written == sizeof(one));
}

static void carrier_done(struct carrier *carrier);

static void *run(void *context)
{
    struct carrier *carrier = context;
    for (;;) {
        pthread_mutex_lock(&carrier->mutex);
        while (!carrier->wanted.first && !carrier->is_ending)
            pthread_cond_wait(&carrier->changed, &carrier->mutex);
        struct task *task = carrier->is_ending ? NULL : tasks_take(&carrier->wanted);
        pthread_mutex_unlock(&carrier->mutex);
        if (!task)
            break;
        task->has_failed = (task->is_fetch ? fetch(carrier, &task->request, &task->error)
                                           : bring(carrier, &task->request, &task->error)) < 0;
        pthread_mutex_lock(&carrier->mutex);
        tasks_add(&carrier->done, task);
        tell_loop(carrier);
        pthread_mutex_unlock(&carrier->mutex);
    }
    clear_away(carrier);
    pthread_mutex_lock(&carrier->mutex);
    carrier->is_over = true;
    const bool is_abandoned = carrier->is_abandoned;
    if (!is_abandoned)
        tell_loop(carrier);
    pthread_mutex_unlock(&carrier->mutex);
    if (is_abandoned)
        carrier_done(carrier);
    return NULL;
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void tell_end(void *context)
{
    struct carrier *carrier = context;
    void (*on_ended)(void *context) = TAKE(carrier->on_ended);
    loop_timer_stop(carrier->timer);
    if (on_ended)
        on_ended(carrier->context);
}

/* One after the other: a callback may end the carrier. */
static struct task *take_done(struct carrier *carrier)
{
    pthread_mutex_lock(&carrier->mutex);
    struct task *task = carrier->is_ending ? NULL : tasks_take(&carrier->done);
    pthread_mutex_unlock(&carrier->mutex);
    return task;
}

static void on_done(void *context, uint32_t events)
{
    struct carrier *carrier = context;
    uint64_t count;
    struct task *task;
    (void)events;
    if (read(carrier->done_fd, &count, sizeof(count)) != sizeof(count))
        return;
    while ((task = take_done(carrier))) {
        task->callback(task->context, task->has_failed ? &task->error : NULL);
        free(task);
    }
    pthread_mutex_lock(&carrier->mutex);
    const bool is_over = carrier->is_over;
    pthread_mutex_unlock(&carrier->mutex);
    if (is_over)
        tell_end(carrier);
}

static void ask(struct carrier *carrier, bool is_fetch, const struct work_request *request,
                carrier_function *callback, void *context)
{
    struct task *task = memory_zeroed(1, sizeof(*task));
    *task = (struct task){
        .is_fetch = is_fetch, .request = *request, .callback = callback, .context = context};
    ASSERT(strcmp(request->job, carrier->job) == 0);
    pthread_mutex_lock(&carrier->mutex);
    tasks_add(&carrier->wanted, task);
    pthread_cond_signal(&carrier->changed);
    pthread_mutex_unlock(&carrier->mutex);
}

void carrier_bring(struct carrier *carrier, const struct work_request *request,
                   carrier_function *callback, void *context)
{
    ask(carrier, /* is_fetch= */ false, request, callback, context);
}

void carrier_fetch(struct carrier *carrier, const struct work_request *request,
                   carrier_function *callback, void *context)
{
    ask(carrier, /* is_fetch= */ true, request, callback, context);
}

const char *carrier_token(const struct carrier *carrier)
{
    return carrier->token;
}

static void copy_market(struct carrier *carrier, const struct object_market *market)
{
    carrier->server = strdup(market->server);
    carrier->fingerprint = market->fingerprint ? strdup(market->fingerprint) : NULL;
    carrier->lease_token = strdup(market->token);
}

static void free_market(struct carrier *carrier)
{
    if (carrier->lease_token)
        sodium_memzero(carrier->lease_token, strlen(carrier->lease_token));
    free(carrier->server);
    free(carrier->fingerprint);
    free(carrier->lease_token);
    sodium_memzero(carrier->token, sizeof(carrier->token));
}

int carrier_open(const struct carrier_options *options, struct carrier **out_carrier,
                 struct error *error)
{
    AUTO(carrier) struct carrier *carrier = memory_zeroed(1, sizeof(*carrier));
    const struct object_store_options own = {.place = options->own};
    const struct object_store_options theirs = {.place = options->place,
                                                .credentials = options->credentials,
                                                .market = options->market,
                                                .attempts_max = ATTEMPTS_MAX,
                                                .is_stopped = is_stopped,
                                                .context = carrier};
    if (options->market && object_store_is_market(text_of(options->place)))
        copy_market(carrier, options->market);
    carrier->data_bytes_max = options->data_bytes_max;
    carrier->end_ms = options->end_ms ? options->end_ms : END_MS;
    carrier->timer = loop_timer_new(options->loop, tell_end, carrier);
    carrier->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&carrier->mutex, NULL);
    pthread_cond_init(&carrier->changed, NULL);
    if (carrier->done_fd < 0)
        return error_set_errno(error, errno, "make an eventfd");
    if (text_copy(text_of(options->job), carrier->job, sizeof(carrier->job), error) < 0 ||
        text_copy(text_of(options->own), carrier->place, sizeof(carrier->place), error) < 0 ||
        object_store_open(&own, &carrier->own, error) < 0 ||
        object_store_open(&theirs, &carrier->theirs, error) < 0 ||
        loop_watch_open(options->loop, carrier->done_fd, LOOP_READ, on_done, carrier,
                        &carrier->watch, error) < 0)
        return -1;
    const int result = pthread_create(&carrier->thread, NULL, run, carrier);
    if (result != 0)
        return error_set_errno(error, result, "start a thread");
    carrier->has_thread = true;
    *out_carrier = TAKE(carrier);
    return 0;
}

static void tasks_free(struct tasks *tasks)
{
    struct task *task;
    while ((task = tasks_take(tasks)))
        free(task);
}

/* By whoever is the last to know of it; without its thread. */
static void carrier_done(struct carrier *carrier)
{
    tasks_free(&carrier->wanted);
    tasks_free(&carrier->done);
    object_store_free(carrier->own);
    object_store_free(carrier->theirs);
    if (carrier->done_fd >= 0)
        close(carrier->done_fd);
    pthread_mutex_destroy(&carrier->mutex);
    pthread_cond_destroy(&carrier->changed);
    free_market(carrier);
    free(carrier);
}

/* Called with the mutex held. */
static void stop_thread(struct carrier *carrier)
{
    if (carrier->is_ending)
        return;
    atomic_store(&carrier->give_up_ns,
                 clock_monotonic_ns(&clock_system) + carrier->end_ms * 1000000);
    atomic_store(&carrier->is_ending, true);
    pthread_cond_signal(&carrier->changed);
}

void carrier_end(struct carrier *carrier, void (*on_ended)(void *context), void *context)
{
    carrier->on_ended = on_ended;
    carrier->context = context;
    loop_timer_start(carrier->timer, carrier->end_ms + END_EXTRA_MS);
    pthread_mutex_lock(&carrier->mutex);
    stop_thread(carrier);
    pthread_mutex_unlock(&carrier->mutex);
}

void carrier_free(struct carrier *carrier)
{
    if (!carrier)
        return;
    loop_watch_free(carrier->watch);
    loop_timer_free(carrier->timer);
    pthread_mutex_lock(&carrier->mutex);
    stop_thread(carrier);
    const bool is_left = carrier->has_thread && !carrier->is_over;
    carrier->is_abandoned = is_left;
    if (is_left)
        pthread_detach(carrier->thread);
    pthread_mutex_unlock(&carrier->mutex);
    if (is_left)
        return;
    if (carrier->has_thread)
        pthread_join(carrier->thread, NULL);
    carrier_done(carrier);
}
