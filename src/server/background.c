#include "server/background.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>

struct background {
    struct loop *loop;
    size_t queue_max;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct list queue;  /* guarded by mutex */
    size_t queue_count; /* guarded by mutex; the one being worked on counts */
    bool is_stopping;   /* guarded by mutex */
};

static void done_on_loop(void *context)
{
    struct background_task *task = context;
    task->done(task);
}

static void *work(void *context)
{
    struct background *background = context;
    pthread_setname_np(pthread_self(), "souk-background");
    pthread_mutex_lock(&background->mutex);
    for (;;) {
        while (list_is_empty(&background->queue) && !background->is_stopping)
            pthread_cond_wait(&background->changed, &background->mutex);
        struct list_node *node = list_take_first(&background->queue);
        if (!node)
            break;
        const bool is_stopping = background->is_stopping;
        pthread_mutex_unlock(&background->mutex);
        struct background_task *task = LIST_ITEM(node, struct background_task, node);
        task->is_dropped = is_stopping;
        if (!is_stopping)
            task->work(task);
        loop_post(background->loop, done_on_loop, task);
        pthread_mutex_lock(&background->mutex);
        background->queue_count--;
    }
    pthread_mutex_unlock(&background->mutex);
    return NULL;
}

int background_open(struct loop *loop, size_t queue_max, struct background **out_background,
                    struct error *error)
{
    AUTO(background) struct background *background = calloc(1, sizeof(*background));
    ASSERT(background);
    background->loop = loop;
    background->queue_max = queue_max;
    list_init(&background->queue);
    pthread_mutex_init(&background->mutex, NULL);
    pthread_cond_init(&background->changed, NULL);
    const int result = pthread_create(&background->thread, NULL, work, background);
    if (result)
        return error_set_errno(error, result, "start the background thread");
    background->is_started = true;
    *out_background = TAKE(background);
    return 0;
}

void background_free(struct background *background)
{
    if (!background)
        return;
    if (background->is_started) {
        pthread_mutex_lock(&background->mutex);
        background->is_stopping = true;
        pthread_cond_signal(&background->changed);
        pthread_mutex_unlock(&background->mutex);
        pthread_join(background->thread, NULL);
    }
    pthread_cond_destroy(&background->changed);
    pthread_mutex_destroy(&background->mutex);
    free(background);
}

int background_submit(struct background *background, struct background_task *task,
                      struct error *error)
{
    if (!background)
        return error_set(error, ERROR_UNAVAILABLE, "the market is stopping: try again later");
    pthread_mutex_lock(&background->mutex);
    const bool is_full = background->queue_count >= background->queue_max;
    if (!is_full) {
        list_append(&background->queue, &task->node);
        background->queue_count++;
        pthread_cond_signal(&background->changed);
    }
    pthread_mutex_unlock(&background->mutex);
    if (is_full)
        return error_set(error, ERROR_UNAVAILABLE,
                         "too many ask for this at once: try again in a few seconds");
    return 0;
}
