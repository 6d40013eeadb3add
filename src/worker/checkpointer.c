#include "worker/checkpointer.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>

struct checkpointer {
    struct checkpointer_options options;
    struct checkpoint checkpoint; /* the thread's while is_due */
    pthread_t thread;
    bool is_started;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_due, is_ending; /* guarded by mutex */
};

static void *run(void *context)
{
    struct checkpointer *checkpointer = context;
    const struct checkpointer_options *options = &checkpointer->options;
    pthread_mutex_lock(&checkpointer->mutex);
    for (;;) {
        while (!checkpointer->is_due && !checkpointer->is_ending)
            pthread_cond_wait(&checkpointer->changed, &checkpointer->mutex);
        if (!checkpointer->is_due)
            break;
        pthread_mutex_unlock(&checkpointer->mutex);
        struct error error;
        const int result = checkpoint_write(options->path, &checkpointer->checkpoint, &error);
        options->on_written(options->context, result < 0 ? &error : NULL);
        pthread_mutex_lock(&checkpointer->mutex);
        checkpointer->is_due = false;
        pthread_cond_broadcast(&checkpointer->changed);
    }
    pthread_mutex_unlock(&checkpointer->mutex);
    return NULL;
}

int checkpointer_open(const struct checkpointer_options *options,
                      struct checkpointer **out_checkpointer, struct error *error)
{
    struct checkpointer *made = calloc(1, sizeof(*made));
    ASSERT(made);
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    AUTO(checkpointer) struct checkpointer *checkpointer = made;
    checkpointer->options = *options;
    struct checkpoint *checkpoint = &checkpointer->checkpoint;
    *checkpoint = (struct checkpoint){
        .spec = options->spec, .seed = options->seed, .parameter_count = options->parameter_count};
    checkpoint->parameters = calloc(options->parameter_count, sizeof(float));
    checkpoint->velocity = calloc(options->parameter_count, sizeof(float));
    if (!checkpoint->parameters || !checkpoint->velocity)
        return error_set(error, ERROR_EXHAUSTED, "no memory for checkpoints of %zu parameters",
                         options->parameter_count);
    const int result = pthread_create(&checkpointer->thread, NULL, run, checkpointer);
    if (result != 0)
        return error_set_errno(error, result, "start a thread");
    checkpointer->is_started = true;
    *out_checkpointer = TAKE(checkpointer);
    return 0;
}

void checkpointer_free(struct checkpointer *checkpointer)
{
    if (!checkpointer)
        return;
    if (checkpointer->is_started) {
        pthread_mutex_lock(&checkpointer->mutex);
        checkpointer->is_ending = true;
        pthread_cond_broadcast(&checkpointer->changed);
        pthread_mutex_unlock(&checkpointer->mutex);
        pthread_join(checkpointer->thread, NULL);
    }
    pthread_cond_destroy(&checkpointer->changed);
    pthread_mutex_destroy(&checkpointer->mutex);
    free(checkpointer->checkpoint.parameters);
    free(checkpointer->checkpoint.velocity);
    free(checkpointer);
}

struct checkpoint *checkpointer_next(struct checkpointer *checkpointer, bool is_waiting)
{
    pthread_mutex_lock(&checkpointer->mutex);
    while (checkpointer->is_due && is_waiting)
        pthread_cond_wait(&checkpointer->changed, &checkpointer->mutex);
    const bool is_busy = checkpointer->is_due;
    pthread_mutex_unlock(&checkpointer->mutex);
    return is_busy ? NULL : &checkpointer->checkpoint;
}

void checkpointer_write(struct checkpointer *checkpointer)
{
    pthread_mutex_lock(&checkpointer->mutex);
    ASSERT(!checkpointer->is_due);
    checkpointer->is_due = true;
    pthread_cond_broadcast(&checkpointer->changed);
    pthread_mutex_unlock(&checkpointer->mutex);
}
