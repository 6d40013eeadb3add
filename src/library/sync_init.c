/* Sync engine: its life: the thread, the meeting at the start, and the leaving. */
#include "base/memory.h"
#include "library/handle.h"
#include "library/sync_internal.h"

#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOMENT_MS = 500, GOODBYE_MS = 2000 };

int souk_sync_version(void)
{
    return SOUK_SYNC_VERSION;
}

int souk_sync_rank(const struct souk_sync *sync)
{
    return (int)sync->place.rank;
}

int souk_sync_size(const struct souk_sync *sync)
{
    return (int)sync->place.world;
}

const char *souk_sync_error(const struct souk_sync *sync)
{
    return sync->error;
}

int sync_fail(struct souk_sync *sync, const char *format, ...)
{
    char text[sizeof sync->error]; /* what is said may be part of the last error */
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        text[0] = '\0';
    va_end(arguments);
    memcpy(sync->error, text, sizeof text);
    return -1;
}

int64_t sync_now_ns(const struct souk_sync *sync)
{
    return clock_monotonic_ns(loop_clock(sync->loop));
}

void sync_wait(struct souk_sync *sync)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += INT64_C(1000000) * MOMENT_MS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&sync->changed, &sync->mutex, &until);
}

struct sync_task {
    struct souk_sync *sync;
    void (*function)(struct souk_sync *sync);
    bool is_done;
};

static void task_run(void *context)
{
    struct sync_task *task = context;
    struct souk_sync *sync = task->sync;
    task->function(sync);
    pthread_mutex_lock(&sync->mutex);
    task->is_done = true;
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->mutex);
}

void sync_run(struct souk_sync *sync, void (*function)(struct souk_sync *sync))
{
    struct sync_task task = {sync, function, false};
    loop_post(sync->loop, task_run, &task);
    pthread_mutex_lock(&sync->mutex);
    while (!task.is_done && !sync->has_ended)
        pthread_cond_wait(&sync->changed, &sync->mutex);
    pthread_mutex_unlock(&sync->mutex);
}

/* ---- The library's thread -------------------------------------------------------------------- */

static void *thread_run(void *context)
{
    struct souk_sync *sync = context;
    struct error error;
    if (loop_run(sync->loop, &error) < 0) {
        pthread_mutex_lock(&sync->mutex);
        snprintf(sync->failure, sizeof sync->failure, "%s", error.message);
        sync->is_refused = sync->has_ended = true;
        pthread_cond_broadcast(&sync->changed);
        pthread_mutex_unlock(&sync->mutex);
        if (sync->client)
            exchange_client_stop(sync->client, error.message);
    }
    return NULL;
}

static void on_host_change(void *context)
{
    struct souk_sync *sync = context;
    if (!sync->host)
        return;
    const char *failure = sync_host_failure(sync->host);
    pthread_mutex_lock(&sync->mutex);
    sync->is_complete = sync_host_is_complete(sync->host);
    sync->is_left = sync_host_is_left(sync->host);
    if (failure)
        snprintf(sync->failure, sizeof sync->failure, "%s", failure);
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->mutex);
}

static int host_begin(struct souk_sync *sync, struct error *error)
{
    struct sync_host_options options = {
        .loop = sync->loop,
        .address = sync->place.host,
        .world = sync->place.world,
        .process = sync->process,
        .join_ms = sync->place.join_ms,
        .lost_ms = sync->place.lost_ms,
        .on_change = on_host_change,
        .context = sync,
    };
    memcpy(options.key, sync->place.key, LINK_KEY_SIZE);
    return sync_host_open(&options, &sync->host, error);
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static void sync_free(struct souk_sync *sync)
{
    if (!sync)
        return;
    if (sync->has_thread) {
        loop_stop(sync->loop);
        pthread_join(sync->thread, NULL);
    }
    worker_close(sync);
    member_end(sync);
    sync_host_free(sync->host);
    loop_free(sync->loop);
    pthread_cond_destroy(&sync->changed);
    pthread_mutex_destroy(&sync->mutex);
    sodium_memzero(sync->place.key, sizeof sync->place.key);
    if (sync->owns_values)
        free(sync->values);
    free(sync->buffers);
    free(sync->kept);
    free(sync);
}

/* It takes none of the program's signals. */
static int thread_start(struct souk_sync *sync, struct error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(&sync->thread, NULL, thread_run, sync);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sync->has_thread = result == 0;
    return result ? error_set_errno(error, result, "start a thread") : 0;
}

static int sync_open(struct souk_sync *sync, const struct souk_sync_options *options,
                     struct error *error)
{
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "no source of random numbers");
    if (sync_place_find(options, &sync->place, error) < 0 ||
        loop_open(&clock_system, &sync->loop, error) < 0)
        return -1;
    while (sync->process == 0)
        randombytes_buf(&sync->process, sizeof sync->process);
    sync->lost_since_ns = sync_now_ns(sync);
    if (sync->place.rank == 0 && host_begin(sync, error) < 0)
        return -1;
    member_begin(sync);
    return thread_start(sync, error);
}

/* All are there: with rank 0 first, which is waited for as long as it waits. */
static int meet(struct souk_sync *sync)
{
    int result = 0;
    pthread_mutex_lock(&sync->mutex);
    while (result == 0 && (!sync->is_welcome || (sync->place.rank == 0 && !sync->is_complete))) {
        sync_wait(sync);
        result = sync_check_host(sync);
    }
    pthread_mutex_unlock(&sync->mutex);
    return result;
}

int souk_sync_init(const struct souk_sync_options *options, struct souk_sync **out_sync,
                   char *error, size_t error_size)
{
    struct error why;
    struct souk_sync *sync = memory_zeroed(1, sizeof *sync);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&sync->mutex, NULL);
    pthread_cond_init(&sync->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    struct souk_sync_options wanted;
    handle_options(&wanted, sizeof wanted, options);
    const int result = sync_open(sync, &wanted, &why);
    if (result == 0 && meet(sync) == 0) {
        *out_sync = sync;
        return 0;
    }
    if (error_size > 0)
        snprintf(error, error_size, "%s", result < 0 ? why.message : sync->error);
    sync_free(sync);
    return -1;
}

int souk_sync_is_over(void)
{
    struct sync_place place;
    struct error ignored; /* it was told by what failed */
    return sync_place_find(&(struct souk_sync_options){0}, &place, &ignored) == 0 &&
           sync_place_is_over(&place);
}

/* Who did not settle leaves the training too: nobody waits for its pushes. */
static void leave(struct souk_sync *sync)
{
    worker_close(sync);
    member_leave(sync);
}

void souk_sync_finish(struct souk_sync *sync)
{
    if (!sync)
        return;
    sync_run(sync, leave);
    const int64_t until_ns = sync_now_ns(sync) + INT64_C(1000000) * GOODBYE_MS;
    pthread_mutex_lock(&sync->mutex);
    if (sync->place.rank == 0 && sync->place.world > 1) {
        while (!sync->is_left && !sync->is_refused)
            sync_wait(sync);
    } else {
        while (sync->is_welcome && sync_now_ns(sync) < until_ns)
            sync_wait(sync);
    }
    pthread_mutex_unlock(&sync->mutex);
    sync_free(sync);
}
