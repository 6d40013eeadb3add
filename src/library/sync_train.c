/* Sync engine: training, as the program sees it: its buffers, its steps, and the end. */
#include "library/handle.h"
#include "library/sync_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAMMA_MS = 4000, SETTLE_MS = 60000 };

/* ---- Buffers --------------------------------------------------------------------------------- */

static void gather(struct souk_sync *sync)
{
    float *out = sync->values;
    for (size_t i = 0; sync->owns_values && i < sync->buffer_count; i++) {
        memcpy(out, sync->buffers[i].values, sync->buffers[i].count * sizeof(float));
        out += sync->buffers[i].count;
    }
}

static void scatter(struct souk_sync *sync)
{
    const float *in = sync->values;
    for (size_t i = 0; sync->owns_values && i < sync->buffer_count; i++) {
        memcpy(sync->buffers[i].values, in, sync->buffers[i].count * sizeof(float));
        in += sync->buffers[i].count;
    }
}

/* For a rank 0 that is started again; rank 0 itself has it at the server. */
static void keep(struct souk_sync *sync)
{
    struct exchange_client_status status;
    if (sync->place.rank == 0)
        return;
    exchange_client_status(sync->client, &status);
    pthread_mutex_lock(&sync->mutex);
    memcpy(sync->kept, sync->values, sync->parameter_count * sizeof(float));
    sync->kept_steps = status.steps;
    pthread_mutex_unlock(&sync->mutex);
}

static void buffers_free(struct souk_sync *sync)
{
    if (sync->owns_values)
        free(sync->values);
    sync->values = NULL;
    sync->owns_values = false;
    free(sync->buffers);
    sync->buffers = NULL;
    pthread_mutex_lock(&sync->mutex);
    free(sync->kept);
    sync->kept = NULL;
    sync->kept_steps = 0;
    pthread_mutex_unlock(&sync->mutex);
}

static int buffers_take(struct souk_sync *sync, const struct souk_sync_training *training)
{
    size_t sum = 0;
    for (size_t i = 0; i < training->buffer_count; i++) {
        if (training->buffers[i].count > EXCHANGE_PARAMETERS_MAX - sum)
            return sync_fail(sync, "a model must have at most %d parameters",
                             EXCHANGE_PARAMETERS_MAX);
        sum += training->buffers[i].count;
    }
    if (sum == 0)
        return sync_fail(sync, "a model must have parameters");
    sync->parameter_count = sum;
    sync->buffer_count = training->buffer_count;
    sync->buffers = calloc(training->buffer_count, sizeof(*sync->buffers));
    sync->owns_values = training->buffer_count > 1;
    sync->values = sync->owns_values ? malloc(sum * sizeof(float)) : training->buffers[0].values;
    float *kept = sync->place.rank > 0 ? calloc(sum, sizeof(float)) : NULL;
    if (!sync->buffers || !sync->values || (sync->place.rank > 0 && !kept)) {
        free(kept);
        buffers_free(sync);
        return sync_fail(sync, "no memory for a model of %zu parameters", sum);
    }
    memcpy(sync->buffers, training->buffers, sync->buffer_count * sizeof(*sync->buffers));
    pthread_mutex_lock(&sync->mutex);
    sync->kept = kept;
    sync->kept_count = sum;
    sync->kept_steps = 0;
    pthread_mutex_unlock(&sync->mutex);
    return 0;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static int compress_parse(struct souk_sync *sync, const char *name, struct exchange_compress *out)
{
    struct error error;
    *out = (struct exchange_compress){.is_auto = name && strcmp(name, "auto") == 0};
    if (!name || out->is_auto)
        return 0;
    return codec_parse(text_of(name), &out->codec, &error) < 0
               ? sync_fail(sync, "%s", error.message)
               : 0;
}

/* What rank 0 hosts; the others check the same, so that all fail alike. */
static int training_read(struct souk_sync *sync, const struct souk_sync_training *training)
{
    struct error error;
    struct sync_host_training *out = &sync->host_training;
    const char *policy = training->policy ? training->policy : "adsp";
    const struct sync_settings settings = {
        .gamma_ms = training->gamma_ms > 0 ? training->gamma_ms : GAMMA_MS,
        .local_steps = training->local_steps,
        .slack = training->slack,
        .momentum = training->momentum,
        .keeps_momentum = true,
        .keeps_batch = true,
        .search = training->reports_loss ? SYNC_SEARCH_AUTO : SYNC_SEARCH_OFF,
    };
    struct sync_policy *probe;
    if (!training->reports_loss && (strcmp(policy, "auto") == 0 || strcmp(policy, "adacomm") == 0 ||
                                    strcmp(policy, "hsp") == 0))
        return sync_fail(sync, "policy %s needs the loss of each step", policy);
    if (sync_policy_new(text_of(policy), &settings, &probe, &error) < 0)
        return sync_fail(sync, "%s", error.message);
    snprintf(sync->policy, sizeof sync->policy, "%s", sync_policy_name(probe));
    sync_policy_free(probe);
    *out = (struct sync_host_training){.policy = text_of(sync->policy), .sync = settings};
    return compress_parse(sync, training->compress, &out->compress);
}

static void host_train(struct souk_sync *sync)
{
    sync_host_train(sync->host, &sync->host_training);
}

/* With the mutex held. */
static int wait_opened(struct souk_sync *sync)
{
    while (sync->opened.term == 0) {
        if (sync->failure[0])
            return sync_fail(sync, "%s", sync->failure);
        if (sync->has_host_left)
            return sync_fail(sync, "rank 0 has left");
        sync_wait(sync);
        if (sync_check_host(sync) < 0)
            return -1;
    }
    return sync->opened.parameter_count == sync->parameter_count
               ? 0
               : sync_fail(sync, "a model of %zu parameters where rank 0's has %zu",
                           sync->parameter_count, (size_t)sync->opened.parameter_count);
}

static int wait_joined(struct souk_sync *sync)
{
    int result = 0;
    pthread_mutex_lock(&sync->mutex);
    for (;;) {
        struct exchange_client_status status;
        pthread_mutex_unlock(&sync->mutex);
        exchange_client_status(sync->client, &status);
        pthread_mutex_lock(&sync->mutex);
        if (status.state == EXCHANGE_CLIENT_TRAINING)
            break;
        if (status.state == EXCHANGE_CLIENT_STOPPED) {
            result = sync_fail(sync, "%s", status.reason);
            break;
        }
        sync_wait(sync);
        result = sync_check_host(sync);
        if (result < 0)
            break;
    }
    pthread_mutex_unlock(&sync->mutex);
    return result;
}

static int train_open(struct souk_sync *sync)
{
    pthread_mutex_lock(&sync->mutex);
    if (!sync->is_refused)
        sync->failure[0] = '\0'; /* of the training before */
    pthread_mutex_unlock(&sync->mutex);
    if (sync->host) {
        sync->host_training.parameter_count = sync->parameter_count;
        sync->host_training.parameters = sync->values;
        sync_run(sync, host_train);
    }
    pthread_mutex_lock(&sync->mutex);
    const int opened = wait_opened(sync);
    pthread_mutex_unlock(&sync->mutex);
    if (opened < 0)
        return -1;
    sync_run(sync, worker_open);
    if (!sync->client)
        return sync_fail(sync, "%s", sync->failure);
    exchange_client_begin(sync->client, sync->values);
    if (wait_joined(sync) < 0)
        return -1;
    exchange_client_exchange(sync->client, sync->values); /* takes rank 0's model over */
    scatter(sync);
    keep(sync);
    return souk_sync_barrier(sync);
}

static void close_all(struct souk_sync *sync)
{
    worker_close(sync);
    if (sync->host)
        sync_host_train_end(sync->host);
}

int souk_sync_train(struct souk_sync *sync, const struct souk_sync_training *training)
{
    struct souk_sync_training wanted;
    handle_options(&wanted, sizeof wanted, training);
    if (sync->is_training)
        return sync_fail(sync, "one model is trained at a time: settle the other first");
    if (training_read(sync, &wanted) < 0 || buffers_take(sync, &wanted) < 0)
        return -1;
    gather(sync);
    if (train_open(sync) < 0) {
        sync_run(sync, close_all);
        buffers_free(sync);
        return -1;
    }
    sync->is_training = true;
    sync->is_wanted = false;
    sync->last_loss = 0;
    sync->step_ended_ns = sync_now_ns(sync);
    return 0;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

int souk_sync_count(struct souk_sync *sync, uint32_t samples, double loss)
{
    if (!sync->is_training)
        return sync_fail(sync, "souk_sync_train comes first");
    if (isfinite(loss))
        sync->last_loss = loss;
    const int64_t now_ns = sync_now_ns(sync);
    const struct exchange_step step = {.samples = samples > 0 ? samples : 1,
                                       .loss = sync->last_loss,
                                       .started_ns = sync->step_ended_ns,
                                       .ended_ns = now_ns};
    sync->is_wanted = exchange_client_count(sync->client, &step);
    sync->step_ended_ns = now_ns;
    return sync->is_wanted;
}

int souk_sync_exchange(struct souk_sync *sync)
{
    struct exchange_client_status status;
    if (!sync->is_training)
        return sync_fail(sync, "souk_sync_train comes first");
    if (!sync->is_wanted)
        return 0;
    sync->was_taken = sync->is_wanted = false;
    gather(sync);
    const bool goes_on = exchange_client_exchange(sync->client, sync->values);
    if (sync->was_taken)
        scatter(sync);
    if (goes_on)
        keep(sync);
    sync->step_ended_ns = sync_now_ns(sync);
    if (goes_on)
        return sync->was_taken;
    exchange_client_status(sync->client, &status);
    return sync_fail(sync, "training has stopped: %s", status.reason);
}

int souk_sync_step(struct souk_sync *sync, uint32_t samples, double loss)
{
    const int is_wanted = souk_sync_count(sync, samples, loss);
    return is_wanted > 0 ? souk_sync_exchange(sync) : is_wanted;
}

int souk_sync_status(struct souk_sync *sync, struct souk_sync_status *out)
{
    const size_t size = out->size;
    struct souk_sync_status now = {.size = size};
    if (size < sizeof now.size)
        return sync_fail(sync, "the size of souk_sync_status is not set");
    pthread_mutex_lock(&sync->mutex);
    now.is_connected = sync->is_welcome;
    pthread_mutex_unlock(&sync->mutex);
    if (sync->is_training) {
        struct exchange_client_status status;
        exchange_client_status(sync->client, &status);
        now.steps = status.steps;
        now.commits = status.commits;
        now.waiting_ms = status.waiting_ns / 1000000;
        now.batch = status.settings.batch;
    }
    memcpy(out, &now, size < sizeof now ? size : sizeof now);
    return 0;
}

/* ---- The end --------------------------------------------------------------------------------- */

static void snapshot_take(struct souk_sync *sync)
{
    sync_host_snapshot(sync->host, sync->values);
}

int souk_sync_settle(struct souk_sync *sync)
{
    if (!sync->is_training)
        return sync_fail(sync, "souk_sync_train comes first");
    gather(sync);
    exchange_client_finish(sync->client, sync->values, SETTLE_MS);
    pthread_mutex_lock(&sync->mutex);
    sync->closed_term = sync->opened.term;
    sync->opened = (struct sync_opened){0};
    sync->settled_round = sync->round + 1;
    pthread_mutex_unlock(&sync->mutex);
    sync->is_training = false;
    int result = souk_sync_barrier(sync);
    if (result == 0 && sync->host)
        sync_run(sync, snapshot_take);
    if (result == 0)
        result = souk_sync_broadcast(sync, sync->values, sync->parameter_count * sizeof(float), 0);
    pthread_mutex_lock(&sync->mutex);
    sync->settled_round = 0;
    pthread_mutex_unlock(&sync->mutex);
    sync_run(sync, close_all);
    if (result == 0)
        scatter(sync);
    buffers_free(sync);
    return result;
}
