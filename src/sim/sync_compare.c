#include "sim/sync_compare.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS_MAX = 256 };

struct comparison {
    const struct sync_compare_options *options;
    struct sync_run_result *results;
    pthread_mutex_t mutex;
    size_t next; /* guarded by mutex, as the rest */
    bool has_failed;
    struct error error; /* the first */
};

static void fail(struct comparison *comparison, const struct error *error)
{
    pthread_mutex_lock(&comparison->mutex);
    if (!comparison->has_failed)
        comparison->error = *error;
    comparison->has_failed = true;
    pthread_mutex_unlock(&comparison->mutex);
}

/* False when nothing is left to do. */
static bool take_run(struct comparison *comparison, size_t *out_index)
{
    pthread_mutex_lock(&comparison->mutex);
    const bool is_left =
        !comparison->has_failed && comparison->next < comparison->options->run_count;
    if (is_left)
        *out_index = comparison->next++;
    pthread_mutex_unlock(&comparison->mutex);
    return is_left;
}

static void finish_run(struct comparison *comparison, size_t index,
                       const struct sync_run_result *result)
{
    const struct sync_compare_options *options = comparison->options;
    pthread_mutex_lock(&comparison->mutex);
    comparison->results[index] = *result;
    if (options->on_run)
        options->on_run(options->context, index, result);
    pthread_mutex_unlock(&comparison->mutex);
}

static void *work(void *context)
{
    struct comparison *comparison = context;
    const struct sync_compare_options *options = comparison->options;
    struct error error;
    AUTO(sync_engine) struct sync_engine *engine = NULL;
    if (sync_engine_open(&options->engine, &engine, &error) < 0) {
        fail(comparison, &error);
        return NULL;
    }
    for (size_t index; take_run(comparison, &index);) {
        struct sync_run_result result;
        if (sync_run(engine, &options->runs[index], &result, &error) < 0)
            fail(comparison, &error);
        else
            finish_run(comparison, index, &result);
    }
    return NULL;
}

int sync_compare(const struct sync_compare_options *options, struct sync_run_result *results,
                 struct error *error)
{
    ASSERT(options->thread_count >= 1 && options->thread_count <= THREADS_MAX);
    struct comparison comparison = {.options = options, .results = results};
    pthread_mutex_init(&comparison.mutex, NULL);
    for (size_t i = 0; i < options->run_count; i++)
        results[i] = (struct sync_run_result){0};
    pthread_t threads[THREADS_MAX];
    uint32_t started = 0;
    while (started < options->thread_count && started < options->run_count) {
        const int result = pthread_create(&threads[started], NULL, work, &comparison);
        if (result != 0) {
            fail(&comparison, (error_set_errno(error, result, "start a thread"), error));
            break;
        }
        started++;
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&comparison.mutex);
    if (!comparison.has_failed)
        return 0;
    for (size_t i = 0; i < options->run_count; i++)
        sync_run_result_done(&results[i]);
    *error = comparison.error;
    return -1;
}
