#include "cli/model_batch.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct batch {
    struct list_node node;
    uint64_t request;
    enum predict_verb verb;
    char *body;
    size_t body_size;
    struct buffer answer;
    bool is_failed;
    struct error failure;
};

struct model_batches {
    struct model_batches_options options;
    struct predictor *predictor; /* the thread's */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct list waiting, done; /* guarded by mutex */
    uint32_t waiting_count;    /* guarded by mutex */
    bool is_stopping;          /* guarded by mutex */
};

static void batch_free(struct batch *batch)
{
    free(batch->body);
    buffer_done(&batch->answer);
    free(batch);
}

static struct batch *first_of(struct list *list)
{
    struct list_node *node = list_take_first(list);
    return node ? LIST_ITEM(node, struct batch, node) : NULL;
}

/* ---- The thread ------------------------------------------------------------------------------ */

static int compute(struct model_batches *batches, struct batch *batch, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct predict_request wanted;
    struct json_writer writer;
    json_writer_init(&writer, &batch->answer);
    if (predict_request_read(arena, batches->predictor, batch->verb,
                             (struct text){batch->body, batch->body_size},
                             batches->options.count_max, &wanted, error) < 0 ||
        predict_answer(batches->predictor, &wanted, arena, &writer, error) < 0)
        return -1;
    if (buffer_check(&batch->answer, error) < 0)
        return error_set(error, ERROR_INVALID, "the answer is too large: send fewer inputs");
    return 0;
}

/* On the loop's thread. */
static void tell_done(void *context)
{
    struct model_batches *batches = context;
    for (;;) {
        pthread_mutex_lock(&batches->mutex);
        struct batch *batch = first_of(&batches->done);
        pthread_mutex_unlock(&batches->mutex);
        if (!batch)
            return;
        batches->options.done(batches->options.context, batch->request, &batch->answer,
                              batch->is_failed ? &batch->failure : NULL);
        batch_free(batch);
    }
}

static void *batches_run(void *context)
{
    struct model_batches *batches = context;
    pthread_mutex_lock(&batches->mutex);
    while (!batches->is_stopping) {
        struct batch *batch = first_of(&batches->waiting);
        if (!batch) {
            pthread_cond_wait(&batches->changed, &batches->mutex);
            continue;
        }
        batches->waiting_count--;
        pthread_mutex_unlock(&batches->mutex);
        batch->is_failed = compute(batches, batch, &batch->failure) < 0;
        pthread_mutex_lock(&batches->mutex);
        list_append(&batches->done, &batch->node);
        loop_post(batches->options.loop, tell_done, batches);
    }
    pthread_mutex_unlock(&batches->mutex);
    return NULL;
}

/* ---- The loop's thread ----------------------------------------------------------------------- */

int model_batches_open(const struct model_batches_options *options,
                       struct model_batches **out_batches, struct error *error)
{
    AUTO(model_batches) struct model_batches *batches = memory_zeroed(1, sizeof(*batches));
    batches->options = *options;
    list_init(&batches->waiting);
    list_init(&batches->done);
    ASSERT(pthread_mutex_init(&batches->mutex, NULL) == 0);
    ASSERT(pthread_cond_init(&batches->changed, NULL) == 0);
    if (predictor_open(options->model, options->is_raw, &batches->predictor, error) < 0)
        return -1;
    const int result = pthread_create(&batches->thread, NULL, batches_run, batches);
    if (result != 0)
        return error_set_errno(error, result, "start a thread");
    batches->has_thread = true;
    *out_batches = TAKE(batches);
    return 0;
}

void model_batches_free(struct model_batches *batches)
{
    if (!batches)
        return;
    if (batches->has_thread) {
        pthread_mutex_lock(&batches->mutex);
        batches->is_stopping = true;
        pthread_cond_signal(&batches->changed);
        pthread_mutex_unlock(&batches->mutex);
        pthread_join(batches->thread, NULL);
    }
    for (struct batch *batch; (batch = first_of(&batches->waiting));)
        batch_free(batch);
    for (struct batch *batch; (batch = first_of(&batches->done));)
        batch_free(batch);
    predictor_free(batches->predictor);
    pthread_cond_destroy(&batches->changed);
    pthread_mutex_destroy(&batches->mutex);
    free(batches);
}

int model_batches_add(struct model_batches *batches, uint64_t request, enum predict_verb verb,
                      struct text body, struct error *error)
{
    pthread_mutex_lock(&batches->mutex);
    const bool is_full = batches->waiting_count == MODEL_BATCH_WAITING_MAX;
    pthread_mutex_unlock(&batches->mutex);
    if (is_full)
        return error_set(error, ERROR_UNAVAILABLE,
                         "%d large requests wait already: try again, or send fewer inputs at once",
                         MODEL_BATCH_WAITING_MAX);
    struct batch *batch = calloc(1, sizeof(*batch));
    ASSERT(batch);
    *batch = (struct batch){.request = request, .verb = verb, .body_size = body.size};
    buffer_init(&batch->answer, batches->options.answer_size_max);
    batch->body = malloc(body.size);
    if (!batch->body) {
        batch_free(batch);
        return error_set(error, ERROR_UNAVAILABLE, "no memory for a request of %zu bytes",
                         body.size);
    }
    memcpy(batch->body, body.data, body.size);
    pthread_mutex_lock(&batches->mutex);
    list_append(&batches->waiting, &batch->node);
    batches->waiting_count++;
    pthread_cond_signal(&batches->changed);
    pthread_mutex_unlock(&batches->mutex);
    return 0;
}
