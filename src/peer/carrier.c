#include "peer/carrier.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "function/lesson.h"
#include "function/object_store.h"
#include "function/parcel.h"
#include "source/remote.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ATTEMPTS_MAX = 3 };
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
    struct object_store *own, *theirs; /* the thread's */
    size_t data_bytes_max;
    bool has_job;          /* the thread's, as the next */
    uint64_t version;      /* of the model that is there; 0: none */
    uint64_t left_version; /* the last that could not be deleted; 0: none */
    int done_fd;
    struct loop_watch *watch;
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tasks wanted, done; /* guarded by the mutex */
    bool is_ending;            /* likewise */
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

/* One that is there already was brought by an attempt before. */
static int copy(struct object_store *from, struct object_store *to, const char *key,
                size_t bytes_max, struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, bytes_max);
    if (object_store_read(from, key, &bytes, error) < 0)
        return -1;
    if (object_store_put(to, key, buffer_text(&bytes), /* is_once= */ true, error) < 0 &&
        error->code != ERROR_CONFLICT)
        return -1;
    return 0;
}

static int bring_job(struct carrier *carrier, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    for (int i = 0; i < LESSON_PART_COUNT; i++) {
        work_data_key(carrier->job, lesson_part_names[i], key);
        if (copy(carrier->own, carrier->theirs, key, carrier->data_bytes_max, error) < 0 &&
            !(i == LESSON_LABELS && error->code == ERROR_NOT_FOUND))
            return -1;
    }
    work_job_key(carrier->job, key);
    if (copy(carrier->own, carrier->theirs, key, JOB_BYTES_MAX, error) < 0)
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
 * one stays: it is tried again at the end. */
static int bring(struct carrier *carrier, const struct work_request *request, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct error ignored;
    if (!carrier->has_job && bring_job(carrier, error) < 0)
        return -1;
    if (request->version == carrier->version)
        return 0;
    work_model_key(carrier->job, request->version, key);
    if (copy(carrier->own, carrier->theirs, key, MODEL_BYTES_MAX, error) < 0)
        return -1;
    const uint64_t former = carrier->version;
    carrier->version = request->version;
    if (former && delete_model(carrier, former, &ignored) < 0)
        carrier->left_version = former;
    return 0;
}

static int fetch(struct carrier *carrier, const struct work_request *request, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    work_update_key(request, key);
    if (copy(carrier->theirs, carrier->own, key, MODEL_BYTES_MAX, error) < 0)
        return -1;
    return object_store_delete(carrier->theirs, key, error);
}

/* What cannot be deleted keeps nothing else there. */
static void clear_away(struct carrier *carrier)
{
    struct error error, later;
    char keys[LESSON_PART_COUNT + 3][OBJECT_KEY_SIZE];
    int count = 0;
    bool has_failed = false;
    if (carrier->version)
        work_model_key(carrier->job, carrier->version, keys[count++]);
    if (carrier->left_version)
        work_model_key(carrier->job, carrier->left_version, keys[count++]);
    for (int i = 0; i < LESSON_PART_COUNT; i++)
        work_data_key(carrier->job, lesson_part_names[i], keys[count++]);
    work_job_key(carrier->job, keys[count++]);
    for (int i = 0; i < count; i++)
        if (object_store_delete(carrier->theirs, keys[i], has_failed ? &later : &error) < 0)
            has_failed = true;
    if (has_failed)
        log_event(LOG_WARN, "objects_left", "job=%s error=\"%s\"", carrier->job, error.message);
}

static void *run(void *context)
{
    struct carrier *carrier = context;
    for (;;) {
        const uint64_t one = 1;
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
        pthread_mutex_unlock(&carrier->mutex);
        const ssize_t written = write(carrier->done_fd, &one, sizeof(one));
        ASSERT(written == sizeof(one));
    }
    clear_away(carrier);
    return NULL;
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void on_done(void *context, uint32_t events)
{
    struct carrier *carrier = context;
    uint64_t count;
    (void)events;
    if (read(carrier->done_fd, &count, sizeof(count)) != sizeof(count))
        return;
    struct tasks done;
    pthread_mutex_lock(&carrier->mutex);
    done = carrier->done;
    carrier->done = (struct tasks){0};
    pthread_mutex_unlock(&carrier->mutex);
    struct task *task;
    while ((task = tasks_take(&done))) {
        task->callback(task->context, task->has_failed ? &task->error : NULL);
        free(task);
    }
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

int carrier_open(const struct carrier_options *options, struct carrier **out_carrier,
                 struct error *error)
{
    const struct object_store_options own = {.place = options->own};
    const struct object_store_options theirs = {
        .place = options->place, .credentials = options->credentials, .attempts_max = ATTEMPTS_MAX};
    AUTO(carrier) struct carrier *carrier = memory_zeroed(1, sizeof(*carrier));
    carrier->data_bytes_max = options->data_bytes_max;
    carrier->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&carrier->mutex, NULL);
    pthread_cond_init(&carrier->changed, NULL);
    if (carrier->done_fd < 0)
        return error_set_errno(error, errno, "make an eventfd");
    if (text_copy(text_of(options->job), carrier->job, sizeof(carrier->job), error) < 0 ||
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

void carrier_free(struct carrier *carrier)
{
    if (!carrier)
        return;
    pthread_mutex_lock(&carrier->mutex);
    carrier->is_ending = true;
    pthread_cond_signal(&carrier->changed);
    pthread_mutex_unlock(&carrier->mutex);
    if (carrier->has_thread)
        pthread_join(carrier->thread, NULL);
    loop_watch_free(carrier->watch);
    tasks_free(&carrier->wanted);
    tasks_free(&carrier->done);
    object_store_free(carrier->own);
    object_store_free(carrier->theirs);
    if (carrier->done_fd >= 0)
        close(carrier->done_fd);
    pthread_mutex_destroy(&carrier->mutex);
    pthread_cond_destroy(&carrier->changed);
    free(carrier);
}
