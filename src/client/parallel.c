#include "client/parallel.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct parallel {
    parallel_function *function;
    void *context;
    size_t count;
    atomic_size_t next;
    pthread_mutex_t mutex; /* of what follows */
    bool has_failed;
    struct error error;
};

struct worker {
    struct parallel *parallel;
    size_t number;
    pthread_t thread;
};

static void fail(struct parallel *parallel, const struct error *error)
{
    pthread_mutex_lock(&parallel->mutex);
    if (!parallel->has_failed) {
        parallel->has_failed = true;
        parallel->error = *error;
    }
    pthread_mutex_unlock(&parallel->mutex);
    atomic_store(&parallel->next, parallel->count);
}

static void *work(void *context)
{
    const struct worker *worker = context;
    struct parallel *parallel = worker->parallel;
    for (;;) {
        struct error error;
        const size_t index = atomic_fetch_add(&parallel->next, 1);
        if (index >= parallel->count)
            return NULL;
        if (parallel->function(parallel->context, worker->number, index, &error) < 0)
            fail(parallel, &error);
    }
}

int parallel_each(size_t worker_count, size_t count, parallel_function *function, void *context,
                  struct error *error)
{
    struct parallel parallel = {.function = function, .context = context, .count = count};
    struct worker workers[PARALLEL_WORKERS_MAX];
    size_t started = 1;
    ASSERT(worker_count > 0 && worker_count <= PARALLEL_WORKERS_MAX);
    pthread_mutex_init(&parallel.mutex, NULL);
    for (size_t i = 0; i < worker_count; i++)
        workers[i] = (struct worker){.parallel = &parallel, .number = i};
    /* Fewer threads than wanted do it too. */
    while (started < worker_count && started < count &&
           pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
        started++;
    work(&workers[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_mutex_destroy(&parallel.mutex);
    if (parallel.has_failed)
        *error = parallel.error;
    return parallel.has_failed ? -1 : 0;
}
