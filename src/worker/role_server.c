/*
 * Role server: the parameter server on one loop, measurements on the exchange's second thread.
 *
 * The second thread alone uses `measurer` after the start: kernels and models belong to one thread.
 * A third writes checkpoints, which go to the market's store: from the newest the server's
 * successor goes on, on another machine if need be.
 */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "exchange/server.h"
#include "runtime/job_model.h"
#include "tensor/kernel.h"
#include "train/evaluation.h"
#include "train/model.h"
#include "train/model_card.h"
#include "worker/checkpointer.h"
#include "worker/worker_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REPORT_MS = 1000,
    LAST_REPORT_MS = 2000,
    REPORT_MS_MIN = 100, /* between reports that events bring */
    SAMPLE_RECORDS = 1000,
    MEASURE_BATCH = 200,
    COLUMNS_BYTES_MAX = 2 << 20,
    LONELY_MS = 120000, /* the market finds successors, or ends the job, long before */
};

struct measurer {
    const struct work *work;
    struct dataset *dataset;
    struct kernel_set *kernels; /* opened by the thread that measures */
    struct model *model;
};

struct role {
    struct work *work;
    struct loop *loop;
    struct control *control;
    struct exchange_server *server;
    struct loop_timer *report_timer, *checkpoint_timer;
    struct measurer measurer;
    struct checkpointer *checkpointer;
    char checkpoint_path[PATH_MAX];
    uint64_t checkpoint_version; /* of the model in the last one */
    int64_t reported_ns;
    char sync_reason[SYNC_REASON_SIZE];             /* as last logged */
    enum codec codecs[EXCHANGE_WORKERS_MAX];        /* of the workers, as last logged */
    uint64_t reported_leases[EXCHANGE_WORKERS_MAX]; /* whose the next are */
    uint64_t reported_commits[EXCHANGE_WORKERS_MAX];
    struct child_peer *peers; /* [peer_count], those of CONFIG first */
    uint32_t peer_count;
    struct work_result *result;
    struct error failure; /* code ERROR_NONE: none */
};

/* --- the second thread --- */

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

static int measurer_prepare(struct measurer *measurer, struct error *error)
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

static int measure(void *context, struct evaluation_report *report, struct error *error)
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
    const struct role *role = context;
    struct error error;
    if (!reason && artifact_announce(role->work, LEASE_CHECKPOINT_NAME, &error) < 0)
        reason = &error;
    if (reason)
        log_event(LOG_WARN, "checkpoint_failed", "error=\"%s\"", reason->message);
}

/* `parameters` NULL: the model as it is now. The last one waits for the one before it. */
static void checkpoint_save(struct role *role, const float *parameters, bool is_last)
{
    const struct exchange_status *status = exchange_server_status(role->server);
    if (!parameters && (status->version == role->checkpoint_version || !isfinite(status->loss)))
        return;
    struct checkpoint *next = checkpointer_next(role->checkpointer, is_last);
    if (!next)
        return; /* the disk is slow: the next one will be newer */
    role->checkpoint_version = status->version;
    next->step = status->steps;
    next->samples = status->samples;
    next->elapsed_ms = status->elapsed_ms;
    exchange_server_snapshot(role->server, next->parameters, next->velocity);
    if (parameters)
        memcpy(next->parameters, parameters, next->parameter_count * sizeof(float));
    checkpointer_write(role->checkpointer);
}

/* Two thirds of the interval: what is stored is no older than that if the way there takes less than
 * the rest of it. */
static void checkpoint_due(void *context)
{
    struct role *role = context;
    checkpoint_save(role, NULL, /* is_last= */ false);
    loop_timer_start(role->checkpoint_timer, role->work->lease.sync.checkpoint_interval_ms * 2 / 3);
}

/* --- reports --- */

/* A number may pass to another lease: then nothing of it was reported. */
static uint64_t reported_commits(const struct role *role, uint32_t worker, uint64_t lease)
{
    return role->reported_leases[worker] == lease ? role->reported_commits[worker] : 0;
}

static void worker_reports_fill(const struct role *role, const struct exchange_status *status,
                                struct server_report_worker *out)
{
    for (uint32_t i = 0; i < status->worker_count; i++) {
        const struct exchange_worker_status *worker = &status->workers[i];
        out[i] = (struct server_report_worker){
            .lease = worker->lease,
            .fence = worker->fence,
            .is_member = worker->is_member,
            .steps = worker->steps,
            .samples = worker->samples,
            .commits = worker->commits,
            .accepted_pushes = worker->commits - reported_commits(role, i, worker->lease),
            .steps_per_second = worker->steps_per_second,
            .clipped = worker->clipped,
            .refused = worker->refused,
            .is_faulty = worker->is_faulty,
            .share = status->samples > 0 ? (double)worker->samples / (double)status->samples : 0,
        };
        if (worker->commits > 0)
            snprintf(out[i].codec, sizeof out[i].codec, "%s", codec_name(worker->codec));
        memcpy(out[i].fault, worker->fault, sizeof out[i].fault);
        memcpy(out[i].agreeing, worker->agreeing, sizeof out[i].agreeing);
        if (worker->is_faulty)
            out[i].accepted_pushes = 0; /* nothing of it is vouched for */
    }
}

/* What the policy and the links made of `auto`. */
static void choices_log(struct role *role, const struct exchange_status *status)
{
    if (strcmp(role->sync_reason, status->sync.reason) != 0) {
        memcpy(role->sync_reason, status->sync.reason, sizeof role->sync_reason);
        log_event(LOG_INFO, "policy_chosen", "policy=%s reason=\"%s\"", status->sync.policy,
                  status->sync.reason);
    }
    for (uint32_t i = 0; i < status->worker_count; i++) {
        if (role->codecs[i] == status->workers[i].codec)
            continue;
        role->codecs[i] = status->workers[i].codec;
        log_event(LOG_INFO, "codec_chosen", "lease=%" PRIu64 " codec=%s", status->workers[i].lease,
                  codec_name(role->codecs[i]));
    }
}

static void report_send(struct role *role, const struct exchange_outcome *outcome)
{
    const struct exchange_status *status = exchange_server_status(role->server);
    struct server_report_worker *workers = calloc(status->worker_count + 1, sizeof *workers);
    ASSERT(workers);
    worker_reports_fill(role, status, workers);
    struct server_report report = {
        .elapsed_ms = status->elapsed_ms,
        .version = status->version,
        .steps = status->steps,
        .samples = status->samples,
        .epochs = status->epochs,
        .loss_evaluations = status->loss_evaluations,
        .loss = status->loss,
        .accuracy_evaluations = status->accuracy_evaluations,
        .test_accuracy = status->test_accuracy,
        .test_loss = status->test_loss,
        .gamma_ms = role->work->sync.gamma_ms,
        .commit_target = status->sync.commit_target,
        .commit_rate = status->sync.commit_rate,
        .implicit_momentum = status->sync.implicit_momentum,
        .is_searching = status->sync.is_searching,
        .checks = status->checks,
        .checks_undecided = status->checks_undecided,
        .is_final = outcome != NULL,
        .workers = {workers, status->worker_count},
    };
    choices_log(role, status);
    snprintf(report.policy, sizeof report.policy, TEXT_FORMAT,
             TEXT_ARGS(role->work->lease.sync.policy));
    snprintf(report.policy_in_force, sizeof report.policy_in_force, "%s", status->sync.policy);
    snprintf(report.policy_reason, sizeof report.policy_reason, "%s", status->sync.reason);
    if (outcome && outcome->has_accuracy) {
        report.test_accuracy = outcome->test_accuracy;
        report.test_loss = outcome->test_loss;
    }
    struct error error;
    role->reported_ns = clock_monotonic_ns(loop_clock(role->loop));
    /* Pushes count as reported only once they are: they are what workers are paid for. */
    if (control_report(role->work->control_fd, &server_report_schema, &report,
                       outcome ? LAST_REPORT_MS : 0, &error) < 0)
        log_event(LOG_WARN, "report_lost", "error=\"%s\"", error.message);
    else
        for (uint32_t i = 0; i < status->worker_count; i++) {
            role->reported_leases[i] = status->workers[i].lease;
            role->reported_commits[i] = status->workers[i].commits;
        }
    free(workers);
}

static void report_due(void *context)
{
    struct role *role = context;
    report_send(role, NULL);
    loop_timer_start(role->report_timer, REPORT_MS);
}

/* At once, unless one went out just now: then soon. */
static void on_change(void *context)
{
    struct role *role = context;
    const int64_t since_ms =
        (clock_monotonic_ns(loop_clock(role->loop)) - role->reported_ns) / 1000000;
    loop_timer_start(role->report_timer, since_ms >= REPORT_MS_MIN ? 0 : REPORT_MS_MIN - since_ms);
}

static void on_drop(void *context, uint64_t lease, const struct error *reason)
{
    (void)context;
    log_event(LOG_WARN, "worker_dropped", "lease=%" PRIu64 " reason=\"%s\"", lease,
              reason->message);
}

/* --- keys, streams, the end --- */

static int find_peer(void *context, uint64_t lease, uint64_t fence, struct exchange_peer *out_peer)
{
    const struct role *role = context;
    for (uint32_t i = 0; i < role->peer_count; i++) {
        const struct child_peer *peer = &role->peers[i];
        if (peer->lease != lease || peer->fence != fence)
            continue;
        out_peer->rank = peer->rank;
        memcpy(out_peer->key, peer->key, LINK_KEY_SIZE);
        return 0;
    }
    return -1;
}

static void on_peer(void *context, const struct child_peer *peer)
{
    struct role *role = context;
    uint32_t index = role->peer_count;
    for (uint32_t i = 0; i < role->peer_count; i++)
        if (role->peers[i].rank == peer->rank)
            index = i; /* a successor takes its predecessor's place, who may not come back */
    if (index == CHILD_PEER_MAX) {
        log_event(LOG_ERROR, "peer_refused", "lease=%" PRIu64 " reason=\"too many\"", peer->lease);
        return;
    }
    role->peers[index] = *peer;
    if (index == role->peer_count)
        role->peer_count++;
}

static void on_stream(void *context, const struct child_stream *stream)
{
    struct role *role = context;
    struct error error;
    if (exchange_server_attach_take(role->server, stream->fd, &error) == 0)
        return;
    close(stream->fd);
    log_event(LOG_ERROR, "stream_refused", "peer=%" PRIu64 " error=\"%s\"", stream->peer_lease,
              error.message);
}

static void on_stop(void *context, const char *reason, int64_t grace_ms)
{
    struct role *role = context;
    exchange_server_stop(role->server, reason, grace_ms);
}

/* Its workers are told nothing: they wait for the successor, which goes on from what this one has.
 */
static void on_handover(void *context, const char *reason, int64_t grace_ms)
{
    struct role *role = context;
    if (!exchange_server_is_training(role->server)) {
        on_stop(role, reason, grace_ms);
        return;
    }
    log_event(LOG_INFO, "handed_over", "reason=\"%s\"", reason);
    report_send(role, NULL);
    checkpoint_save(role, NULL, /* is_last= */ true);
    role->result->is_ok = true;
    snprintf(role->result->message, sizeof role->result->message, "%s", reason);
    loop_stop(role->loop);
}

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

static int model_export(struct role *role, const struct exchange_outcome *outcome,
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
        .train_seconds = 1e-3 * (double)status->elapsed_ms,
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

/* What happened, what is left, what to try; short, as a lease's reason is. */
static void diverged_say(struct role *role, const struct exchange_outcome *outcome)
{
    char kept[64] = "no model was measured before";
    if (outcome->parameters)
        snprintf(kept, sizeof kept, "the model of loss %.4g before it is kept", outcome->test_loss);
    char advice[96];
    job_train_diverged_advice(&role->work->lease.train, advice, sizeof advice);
    snprintf(role->result->message, sizeof role->result->message, LEASE_REASON_DIVERGED "; %s; %s",
             kept, advice);
}

static void on_end(void *context, const struct exchange_outcome *outcome)
{
    struct role *role = context;
    log_event(LOG_INFO, "training_ended", "end=%s accuracy=%.4f reason=\"%s\"",
              exchange_end_name(outcome->end), outcome->test_accuracy, outcome->reason);
    loop_timer_stop(role->report_timer); /* nothing comes after the last report */
    loop_timer_stop(role->checkpoint_timer);
    report_send(role, outcome);
    if (!outcome->parameters) {
        role->failure.code = ERROR_NONE; /* there is no model, and the reason is the outcome's */
    } else if (model_export(role, outcome, &role->failure) == 0) {
        role->failure.code = ERROR_NONE;
        checkpoint_save(role, outcome->parameters, /* is_last= */ true);
    }
    role->result->is_ok = outcome->end != EXCHANGE_END_LOST &&
                          outcome->end != EXCHANGE_END_FAILED &&
                          outcome->end != EXCHANGE_END_DIVERGED;
    if (outcome->end == EXCHANGE_END_DIVERGED)
        diverged_say(role, outcome);
    else
        snprintf(role->result->message, sizeof role->result->message, "%s", outcome->reason);
    loop_stop(role->loop);
}

/* --- the start --- */

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

/* What a server before this one left, if it left something: the newest that can be read. */
static int checkpoint_find(const struct work *work, struct checkpoint **out_checkpoint,
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

/* The plain kernels are there at once, and the parameters do not depend on them. */
static int parameters_make(const struct work *work, float *out_parameters, struct error *error)
{
    AUTO(kernel_set) struct kernel_set *kernels = NULL;
    AUTO(model) struct model *model = NULL;
    const struct model_options options = {.spec = work->model, .batch = 1};
    if (kernel_set_open("plain", &kernels, error) < 0 ||
        model_open(kernels, &options, &model, error) < 0)
        return -1;
    model_init_parameters(model, work->lease.train.seed);
    memcpy(out_parameters, model_parameters(model), work->parameter_count * sizeof(float));
    return 0;
}

static int server_open(struct role *role, struct error *error)
{
    uint64_t check_seed; /* nobody knows which pushes are checked */
    if (getrandom(&check_seed, sizeof check_seed, 0) != sizeof check_seed)
        return error_set_errno(error, errno, "draw a seed");
    const struct work *work = role->work;
    AUTO(checkpoint) struct checkpoint *checkpoint = NULL;
    float *parameters = calloc(work->parameter_count, sizeof *parameters);
    if (!parameters)
        return error_set(error, ERROR_EXHAUSTED, "no memory for the model");
    int result = checkpoint_find(work, &checkpoint, error);
    struct exchange_server_options options = {
        .loop = role->loop,
        .policy = work->lease.sync.policy,
        .sync = work->sync,
        .compress = work->compress,
        .robust = work->robust,
        .verify = work->lease.sync.verify,
        .check_seed = check_seed,
        .parameter_count = work->parameter_count,
        .parameters = parameters,
        .term = work->lease.fence,
        .world = (uint32_t)work->lease.world,
        .min_time_ms = work->lease.train.target.min_time_ms,
        .epochs = work->lease.train.epochs,
        .lonely_ms = LONELY_MS,
        .find_peer = find_peer,
        .measure = measure,
        .measure_context = &role->measurer,
        .on_change = on_change,
        .on_drop = on_drop,
        .on_end = on_end,
        .context = role,
    };
    if (checkpoint) {
        options.parameters = checkpoint->parameters;
        options.momentum = checkpoint->velocity;
        options.done = (struct exchange_progress_made){
            .steps = checkpoint->step,
            .samples = checkpoint->samples,
            .elapsed_ms = checkpoint->elapsed_ms,
        };
    } else if (result == 0) {
        result = parameters_make(work, parameters, error);
    }
    if (result == 0)
        result = exchange_server_open(&options, &role->server, error);
    free(parameters);
    return result;
}

static int checkpointer_start(struct role *role, struct error *error)
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

static int role_open(struct role *role, struct error *error)
{
    struct work *work = role->work;
    if (mkdir(work->out_folder, 0700) < 0 && access(work->out_folder, W_OK) < 0)
        return error_set(error, ERROR_UNAVAILABLE, "cannot write to \"%s\"", work->out_folder);
    role->peers = calloc(CHILD_PEER_MAX, sizeof *role->peers);
    ASSERT(role->peers);
    role->peer_count = work->config.peer_count;
    if (role->peer_count > 0)
        memcpy(role->peers, work->config.peers, role->peer_count * sizeof *role->peers);
    const struct control_callbacks callbacks = {on_stream, on_peer, on_stop, on_handover};
    if (loop_open(&clock_system, &role->loop, error) < 0)
        return -1;
    role->report_timer = loop_timer_new(role->loop, report_due, role);
    /* SIGTERM must be blocked before the second thread starts: control comes first. */
    if (control_open(role->loop, work->control_fd, &callbacks, role, &role->control, error) < 0 ||
        work_open_dataset(work, DATASET_TEST_IMAGES, DATASET_TEST_LABELS, &role->measurer.dataset,
                          error) < 0 ||
        server_open(role, error) < 0 || checkpointer_start(role, error) < 0)
        return -1;
    loop_timer_start(role->report_timer, REPORT_MS);
    loop_timer_start(role->checkpoint_timer, work->lease.sync.checkpoint_interval_ms * 2 / 3);
    return 0;
}

static void role_close(struct role *role)
{
    checkpointer_free(role->checkpointer);
    exchange_server_free(role->server); /* ends the thread that measures */
    model_free(role->measurer.model);
    kernel_set_free(role->measurer.kernels);
    dataset_free(role->measurer.dataset);
    loop_timer_free(role->report_timer);
    loop_timer_free(role->checkpoint_timer);
    control_free(role->control);
    loop_free(role->loop);
    free(role->peers);
}

int run_server(struct work *work, struct work_result *out_result, struct error *error)
{
    struct role *role = calloc(1, sizeof *role);
    ASSERT(role);
    role->work = work;
    role->measurer.work = work;
    role->result = out_result;
    const struct child_message ready = {.kind = CHILD_READY};
    int result = role_open(role, error);
    if (result == 0)
        result = control_send(work->control_fd, &ready, error);
    if (result == 0)
        result = loop_run(role->loop, error);
    if (result == 0 && role->failure.code != ERROR_NONE) {
        *error = role->failure;
        result = -1;
    }
    role_close(role);
    free(role);
    return result;
}
