/*
 * Role server, the model: measuring it on the exchange's second thread, checkpoints on a third, and
 * what is left of it at the end.
 */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/log.h"
#include "train/model_card.h"
#include "worker/role_server_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { SAMPLE_RECORDS = 1000, MEASURE_BATCH = 200, COLUMNS_BYTES_MAX = 2 << 20 };

/* --- files --- */

static int path_of(const struct work *work, const char *name, char out[PATH_MAX],
                   struct error *error)
{
    if (snprintf(out, PATH_MAX, "%s/%s", work->out_folder, name) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the folder's path is too long");
    return 0;
}

static int artifact_announce(const struct work *work, const char *name, struct error *error)
{
    const struct child_message message = {.kind = CHILD_ARTIFACT,
                                          .artifact = {.name = text_of(name)}};
    return control_send(work->control_fd, &message, error);
}

/* --- the second thread --- */

int measurer_prepare(struct measurer *measurer, struct error *error)
{
    if (measurer->model)
        return 0;
    if (!measurer->kernels && kernel_set_open(NULL, &measurer->kernels, error) < 0)
        return -1;
    const uint32_t count = dataset_shape(measurer->dataset)->count;
    const struct model_options options = {
        .spec = measurer->work->model,
        .batch = count < MEASURE_BATCH ? count : MEASURE_BATCH,
    };
    return model_open(measurer->kernels, &options, &measurer->model, error);
}

int measurer_measure(void *context, struct evaluation_report *report, struct error *error)
{
    struct measurer *measurer = context;
    if (measurer_prepare(measurer, error) < 0)
        return -1;
    const uint32_t records = dataset_shape(measurer->dataset)->count;
    uint32_t count = 0; /* all */
    if (report->kind == EVALUATION_SAMPLE && records > SAMPLE_RECORDS)
        count = SAMPLE_RECORDS;
    memcpy(model_parameters(measurer->model), report->parameters,
           measurer->work->parameter_count * sizeof(float));
    struct evaluation evaluation;
    if (evaluation_init(&evaluation, measurer->model, measurer->dataset, 0, count, error) < 0)
        return -1;
    while (!evaluation_advance(&evaluation))
        continue;
    const struct evaluation_result result = evaluation_result(&evaluation);
    report->loss = result.loss;
    report->accuracy = result.accuracy;
    const struct evaluation_target target = job_train_target(&measurer->work->lease.train);
    if (report->kind == EVALUATION_FULL)
        report->is_target_reached =
            evaluation_reaches(&result, &target, report->reached, sizeof report->reached);
    return 0;
}

/* --- checkpoints --- */

/* On the third thread. A full disk costs the checkpoint, not the training. */
static void on_checkpoint(void *context, const struct error *reason)
{
    const struct server_role *role = context;
    struct error error;
    if (!reason && artifact_announce(role->work, LEASE_CHECKPOINT_NAME, &error) < 0)
        reason = &error;
    if (reason)
        log_event(LOG_WARN, "checkpoint_failed", "error=\"%s\"", reason->message);
}

void checkpoint_save(struct server_role *role, const float *parameters, bool is_last)
{
    const struct exchange_status *status = exchange_server_status(role->server);
    if (!parameters && (status->version == role->checkpoint_version || !isfinite(status->loss)))
        return;
    struct checkpoint *next = checkpointer_next(role->checkpointer, is_last);
    if (!next)
        return; /* the disk is slow: the next one will be newer */
    role->checkpoint_version = status->version;
    const struct exchange_progress_made made =
        exchange_server_snapshot(role->server, next->parameters, next->velocity);
    next->step = made.steps;
    next->samples = made.samples;
    next->elapsed_ms = made.elapsed_ms;
    if (parameters)
        memcpy(next->parameters, parameters, next->parameter_count * sizeof(float));
    checkpointer_write(role->checkpointer);
}

/* Two thirds of the interval: what is stored is no older than that if the way there takes less than
 * the rest of it. */
static void checkpoint_due(void *context)
{
    struct server_role *role = context;
    checkpoint_save(role, NULL, /* is_last= */ false);
    loop_timer_start(role->checkpoint_timer, role->work->lease.sync.checkpoint_interval_ms * 2 / 3);
}

/* *out_checkpoint is NULL when there is no such file. */
static int checkpoint_open(const struct work *work, const char *name,
                           struct checkpoint **out_checkpoint, struct error *error)
{
    char path[PATH_MAX];
    AUTO(checkpoint) struct checkpoint *checkpoint = NULL;
    if (snprintf(path, sizeof path, "%s/%s", work->data_folder, name) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the folder's path is too long");
    *out_checkpoint = NULL;
    if (access(path, F_OK) < 0)
        return 0;
    if (checkpoint_read(path, &checkpoint, error) < 0)
        return -1;
    if (!model_spec_equal(&checkpoint->spec, &work->model))
        return checkpoint_refuse_other(checkpoint, &work->model, error);
    log_event(LOG_INFO, "checkpoint_restored",
              "steps=%" PRIu64 " samples=%" PRIu64 " elapsed_ms=%" PRId64, checkpoint->step,
              checkpoint->samples, checkpoint->elapsed_ms);
    *out_checkpoint = TAKE(checkpoint);
    return 0;
}

int checkpoint_find(const struct work *work, struct checkpoint **out_checkpoint,
                    struct error *error)
{
    if (checkpoint_open(work, LEASE_CHECKPOINT_NAME, out_checkpoint, error) == 0)
        return 0;
    struct error error_before;
    if (checkpoint_open(work, LEASE_CHECKPOINT_BEFORE_NAME, out_checkpoint, &error_before) < 0 ||
        !*out_checkpoint)
        return -1;
    log_event(LOG_WARN, "checkpoint_unreadable", "error=\"%s\" instead=\"the one before\"",
              error->message);
    return 0;
}

int checkpointer_start(struct server_role *role, struct error *error)
{
    const struct work *work = role->work;
    const struct checkpointer_options options = {
        .path = role->checkpoint_path,
        .spec = work->model,
        .seed = work->lease.train.seed,
        .parameter_count = work->parameter_count,
        .on_written = on_checkpoint,
        .context = role,
    };
    if (path_of(work, LEASE_CHECKPOINT_NAME, role->checkpoint_path, error) < 0)
        return -1;
    role->checkpoint_timer = loop_timer_new(role->loop, checkpoint_due, role);
    return checkpointer_open(&options, &role->checkpointer, error);
}

/* --- the end --- */

/* How to bring further rows into the shape the model learnt, as the borrower's side wrote it. */
static int columns_export(const struct work *work, struct error *error)
{
    char from[PATH_MAX], to[PATH_MAX];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, COLUMNS_BYTES_MAX);
    if (snprintf(from, sizeof from, "%s/columns", work->data_folder) >= PATH_MAX ||
        path_of(work, "columns.json", to, error) < 0)
        return error_set(error, ERROR_INVALID, "the folder's path is too long");
    if (access(from, F_OK) < 0)
        return 0; /* images: there is nothing to say */
    if (file_read(from, &bytes, error) < 0)
        return -1;
    const struct text part = buffer_text(&bytes);
    if (file_replace(to, &part, 1, 0644, error) < 0)
        return -1;
    return artifact_announce(work, "columns.json", error);
}

int model_export(struct server_role *role, const struct exchange_outcome *outcome,
                 struct error *error)
{
    const struct work *work = role->work;
    const struct job_train *train = &work->lease.train;
    const struct exchange_status *status = exchange_server_status(role->server);
    const struct model_card card = {
        .spec = work->model,
        .job_name = arena_copy_string(work->arena, work->lease.name),
        .job = work->lease.job,
        .data = work->data->name,
        .policy = arena_copy_string(work->arena, work->lease.sync.policy),
        .mean = work->data->mean,
        .deviation = job_train_is_file(train) ? train->deviation : work->data->deviation,
        .test_accuracy = outcome->test_accuracy,
        .test_loss = outcome->test_loss,
        .samples = status->samples,
        .steps = status->steps,
        .train_seconds = (double)status->elapsed_ms / 1000,
        .workers = status->worker_count,
        .batch = (uint32_t)train->batch,
        .lr = train->optimizer.lr,
        .momentum = train->optimizer.momentum,
        .weight_decay = train->optimizer.weight_decay,
        .seed = train->seed,
        .finished_utc_ms = clock_utc_ms(loop_clock(role->loop)),
    };
    if (model_card_export(work->out_folder, &card, outcome->parameters, error) < 0)
        return error_wrap(error, "save the model");
    if (artifact_announce(work, "model.safetensors", error) < 0 ||
        artifact_announce(work, "card.json", error) < 0)
        return -1;
    if (columns_export(work, error) < 0)
        return error_wrap(error, "save the columns");
    return 0;
}
