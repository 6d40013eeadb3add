/*
 * Role worker: the main thread steps without end; a second one carries the link, the control
 * socket and the reports.
 *
 * Every machine begins from the same parameters (they come from the job's seed), so the first step
 * waits for nobody: data and model are opened while the link comes up, and what was learnt before
 * the server's first model came stays on top of it.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "exchange/client.h"
#include "function/lesson.h"
#include "runtime/job_model.h"
#include "tensor/kernel.h"
#include "train/trainer.h"
#include "worker/caller.h"
#include "worker/recompute.h"
#include "worker/worker_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    REPORT_MS = 1000,
    COMMITS_SHOWN = 3,    /* the first ones are reported at once */
    LOST_MS_MAX = 120000, /* the market finds a successor of the server long before */
    FINISH_MS = 2000,     /* to push the rest when the server ends training */
    LAST_REPORT_MS = 2000,
    DIVERGED_MS = 20000, /* to say that the loss is not finite, also while the link comes up and the
                          * server musters its workers (role_server.c) */
    ROUND_MS = 500,      /* of functions, where the policy counts no steps */
    ROUND_BATCHES_MAX = 1000,
};

struct role {
    struct work *work;
    struct loop *loop;
    struct control *control;
    struct exchange_client *client;
    struct loop_timer *report_timer;
    pthread_t link_thread;
    _Atomic int64_t first_step_ms; /* UTC */
    _Atomic int64_t first_step_ns; /* monotonic */
    _Atomic int64_t grace_ms;      /* for the last push */
    _Atomic bool is_lost;          /* the server is gone for good */

    /* The training thread's. */
    struct kernel_set *kernels;
    struct dataset *dataset;
    struct trainer *trainer;
    struct caller *caller; /* in its place, where functions make the steps */
    uint32_t batch;        /* of the next step */
};

/* --- the link's thread --- */

static void report_send(struct role *role, int timeout_ms)
{
    struct exchange_client_status status;
    struct error error;
    exchange_client_status(role->client, &status);
    const int64_t first_ns = role->first_step_ns,
                  now_ns = clock_monotonic_ns(loop_clock(role->loop));
    const int64_t passed_ns = first_ns > 0 ? now_ns - first_ns : 0;
    const struct worker_report report = {
        .steps = status.steps,
        .samples = status.samples,
        .commits = status.commits,
        .loss = status.loss,
        .steps_per_second = status.steps_per_second,
        .commit_ms = 1e-6 * (double)status.commit_ns,
        .period_us = status.settings.period_ns / 1000,
        .local_steps = status.settings.local_steps,
        .compute_ms = 1e-6 * (double)(passed_ns - status.waiting_ns),
        .transfer_ms = 1e-6 * (double)status.transfer_ns,
        .wait_ms = 1e-6 * (double)(status.waiting_ns - status.transfer_ns),
        .first_step_ms = role->first_step_ms,
        .sent_bytes = status.sent_bytes,
        .received_bytes = status.received_bytes,
    };
    /* A report that finds no room is lost; the next one says it all again. */
    if (control_report(role->work->control_fd, &worker_report_schema, &report, timeout_ms, &error) <
        0)
        log_event(LOG_DEBUG, "report_lost", "error=\"%s\"", error.message);
}

static void report_posted(void *context)
{
    report_send(context, 0);
}

static void report_due(void *context)
{
    struct role *role = context;
    struct exchange_client_status status;
    report_send(role, 0);
    exchange_client_status(role->client, &status);
    const int64_t now_ns = clock_monotonic_ns(loop_clock(role->loop));
    if (status.state == EXCHANGE_CLIENT_CONNECTING && status.lost_since_ns > 0 &&
        now_ns - status.lost_since_ns > LOST_MS_MAX * INT64_C(1000000)) {
        role->is_lost = true;
        exchange_client_stop(role->client, "the parameter server cannot be reached");
        if (role->caller)
            caller_stop(role->caller);
    }
    loop_timer_start(role->report_timer, REPORT_MS);
}

static void on_change(void *context)
{
    struct role *role = context;
    struct exchange_client_status status;
    exchange_client_status(role->client, &status);
    if (status.commits > 0 && status.commits <= COMMITS_SHOWN)
        report_send(role, 0);
    if (role->caller && status.state == EXCHANGE_CLIENT_STOPPED)
        caller_stop(role->caller);
}

static void on_called(void *context, const struct child_message *message)
{
    struct role *role = context;
    if (role->caller)
        caller_on_called(role->caller, message);
}

static void on_stream(void *context, const struct child_stream *stream)
{
    struct role *role = context;
    struct error error;
    if (exchange_client_attach_take(role->client, stream->peer_rank, stream->fd, stream->peer_fence,
                                    &error) == 0)
        return;
    close(stream->fd);
    log_event(LOG_ERROR, "stream_refused", "peer=%" PRIu64 " error=\"%s\"", stream->peer_lease,
              error.message);
}

static void on_stop(void *context, const char *reason, int64_t grace_ms)
{
    struct role *role = context;
    /* Half is for the push; the rest is for reports, clean-up and a slow disk. */
    role->grace_ms = grace_ms / 2;
    exchange_client_stop(role->client, reason);
    if (role->caller)
        caller_stop(role->caller);
}

static void *link_run(void *context)
{
    struct role *role = context;
    struct error error;
    if (loop_run(role->loop, &error) < 0) {
        log_event(LOG_ERROR, "loop_failed", "error=\"%s\"", error.message);
        role->is_lost = true;
        exchange_client_stop(role->client, error.message);
        if (role->caller)
            caller_stop(role->caller);
    }
    return NULL;
}

/* --- the training thread --- */

/* A policy may give this machine a batch of its own, and take its momentum over. */
static void steps_update(struct role *role)
{
    const struct exchange_steps given = exchange_client_steps(role->client);
    role->batch = given.batch > 0 ? given.batch : (uint32_t)role->work->lease.train.batch;
    optimizer_set_plain(trainer_optimizer(role->trainer), given.is_plain);
}

/* In a job that verifies, a push follows from the answer before it alone. */
static void on_taken(void *context)
{
    struct role *role = context;
    optimizer_restart(trainer_optimizer(role->trainer));
    steps_update(role);
}

static int recompute(void *context, const struct exchange_recompute *task, float *values)
{
    struct role *role = context;
    struct error error;
    const int result =
        recompute_push(role->work, role->kernels, role->dataset, task, values, &error);
    if (result < 0)
        log_event(LOG_WARN, "recompute_failed", "check=%" PRIu64 " error=\"%s\"", task->check,
                  error.message);
    return result;
}

static int train(struct role *role, struct error *error)
{
    struct trainer *trainer = role->trainer;
    const bool is_exact = lease_document_has_all_records(&role->work->lease);
    const struct clock *clock = loop_clock(role->loop);
    float *parameters = model_parameters(trainer_model(trainer));
    struct exchange_step step = {0};
    steps_update(role);
    exchange_client_begin(role->client, parameters);
    do {
        if (!is_exact)
            steps_update(role);
        if (trainer_set_batch(trainer, role->batch, error) < 0)
            return -1;
        step.first_step = trainer_step_count(trainer);
        step.first_sample = trainer_sample_count(trainer);
        parameters = model_parameters(trainer_model(trainer));
        step.started_ns = clock_monotonic_ns(clock);
        if (trainer_step(trainer, &step.loss, error) < 0) {
            if (!trainer_has_diverged(trainer))
                return -1;
            /* The server decides what becomes of the job; this machine is not to blame. */
            exchange_client_diverged(role->client, DIVERGED_MS);
            exchange_client_stop(role->client, error->message);
            return 0;
        }
        step.ended_ns = clock_monotonic_ns(clock);
        step.samples = role->batch;
        if (trainer_step_count(trainer) == 1) {
            role->first_step_ns = step.ended_ns;
            role->first_step_ms = clock_utc_ms(clock);
            loop_post(role->loop, report_posted, role);
        }
    } while (exchange_client_step(role->client, &step, parameters));
    exchange_client_finish(role->client, parameters, role->grace_ms);
    return 0;
}

/* Every machine begins from these. */
static int first_parameters(struct role *role, float **out_parameters, struct error *error)
{
    const struct model_options options = {.spec = role->work->model, .batch = 1};
    AUTO(model) struct model *model = NULL;
    if (kernel_set_open(NULL, &role->kernels, error) < 0 ||
        model_open(role->kernels, &options, &model, error) < 0)
        return -1;
    const size_t size = role->work->parameter_count * sizeof(float);
    model_init_parameters(model, role->work->lease.train.seed);
    *out_parameters = memory_zeroed(role->work->parameter_count, sizeof(float));
    memcpy(*out_parameters, model_parameters(model), size);
    return 0;
}

/* As many as the policy lets pass between two pushes; where it goes by time, as many as take about
 * half a second. */
static uint32_t round_batches(struct role *role, int64_t batch_ns)
{
    struct exchange_client_status status;
    exchange_client_status(role->client, &status);
    const int64_t wanted = status.settings.local_steps > 0 ? status.settings.local_steps
                           : batch_ns > 0                  ? ROUND_MS * INT64_C(1000000) / batch_ns
                                                           : 1;
    return wanted < 1 ? 1 : wanted < ROUND_BATCHES_MAX ? (uint32_t)wanted : ROUND_BATCHES_MAX;
}

static int train_by_calls(struct role *role, float *parameters, struct error *error)
{
    const struct clock *clock = loop_clock(role->loop);
    struct exchange_step step = {0};
    exchange_client_begin(role->client, parameters);
    do {
        struct caller_round round;
        const int64_t batch_ns = step.steps ? (step.ended_ns - step.started_ns) / step.steps : 0;
        step.started_ns = clock_monotonic_ns(clock);
        if (caller_make_round(role->caller, round_batches(role, batch_ns), parameters, &round,
                              error) < 0)
            return -1;
        if (round.has_diverged) {
            exchange_client_diverged(role->client, DIVERGED_MS);
            exchange_client_stop(role->client, LESSON_DIVERGED);
            return 0;
        }
        if (round.steps == 0)
            break;
        const bool is_first = step.steps == 0;
        step.ended_ns = clock_monotonic_ns(clock);
        step.steps = round.steps;
        step.samples = round.samples;
        step.loss = round.loss;
        if (is_first) {
            role->first_step_ns = step.ended_ns;
            role->first_step_ms = clock_utc_ms(clock);
            loop_post(role->loop, report_posted, role);
        }
    } while (exchange_client_step(role->client, &step, parameters));
    exchange_client_finish(role->client, parameters, role->grace_ms);
    return 0;
}

static int open_and_call(struct role *role, struct error *error)
{
    const struct child_message ready = {.kind = CHILD_READY};
    float *parameters = NULL;
    int result = first_parameters(role, &parameters, error);
    log_event(LOG_INFO, "worker_ready", "rank=%" PRIu64 " functions=%" PRIu32,
              role->work->lease.rank, role->work->function_count);
    if (result == 0)
        result = control_send(role->work->control_fd, &ready, error);
    if (result == 0)
        result = train_by_calls(role, parameters, error);
    const struct caller_counts counts = caller_counts(role->caller);
    log_event(LOG_INFO, "functions_called",
              "calls=%" PRIu64 " again=%" PRIu64 " cut_short=%" PRIu64, counts.calls, counts.again,
              counts.cut);
    free(parameters);
    return result;
}

static int load_and_train(struct role *role, struct error *error)
{
    const struct work *work = role->work;
    if (role->caller)
        return open_and_call(role, error);
    if (work_open_dataset(work, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS, &role->dataset, error) <
            0 ||
        kernel_set_open(NULL, &role->kernels, error) < 0)
        return -1;
    const uint32_t record_count = dataset_shape(role->dataset)->count;
    const struct trainer_options options = recompute_options(work, record_count, work->lease.rank);
    if (trainer_open(role->kernels, role->dataset, &options, &role->trainer, error) < 0)
        return -1;
    log_event(LOG_INFO, "worker_ready", "rank=%" PRIu64 " records=%" PRIu32 " kernels=%s",
              work->lease.rank, options.record_count ? options.record_count : record_count,
              kernel_set_name(role->kernels));
    const struct child_message ready = {.kind = CHILD_READY};
    if (control_send(work->control_fd, &ready, error) < 0)
        return -1;
    return train(role, error);
}

static uint64_t shard_samples(const struct work *work)
{
    const struct lease_document *lease = &work->lease;
    if (work->own_records)
        return work->own_records;
    const struct text images = text_of(dataset_part_name(DATASET_TRAIN_IMAGES));
    for (size_t i = 0; i < lease->data_count; i++)
        if (text_equal(text_of(lease->data[i].name), images)) {
            uint64_t first, count = lease->data[i].record_count;
            if (lease_document_has_all_records(lease))
                native_shard(lease->data[i].record_count, lease->rank, lease->world, &first,
                             &count);
            return count;
        }
    return 0;
}

/* Whether its workers need not wait for the server's first word. */
static bool computes_on(struct text policy)
{
    return text_equal(policy, TEXT("adsp")) || text_equal(policy, TEXT("pace")) ||
           text_equal(policy, TEXT("auto"));
}

static int role_open(struct role *role, struct error *error)
{
    const struct work *work = role->work;
    if (loop_open(&clock_system, &role->loop, error) < 0)
        return -1;
    struct exchange_client_options options = {
        .loop = role->loop,
        .lease = work->lease.lease,
        .fence = work->lease.fence,
        .rank = (uint32_t)work->lease.rank,
        .shard_samples = shard_samples(work),
        .parameter_count = work->parameter_count,
        .servers = (uint32_t)work->lease.sync.servers,
        .local_steps = computes_on(work->lease.sync.policy) ? 0 : 1,
        .samples_max = shard_samples(work) * work->lease.train.epochs / EXCHANGE_SHARES,
        .on_change = on_change,
        .context = role,
    };
    if (work->function_count > 0 && caller_open(work, &role->caller, error) < 0)
        return -1;
    if (lease_document_has_all_records(&work->lease)) {
        options.is_exact = true;
        options.on_taken = on_taken;
        options.recompute = recompute;
    }
    memcpy(options.key, work->config.key, sizeof options.key);
    if (exchange_client_open(&options, &role->client, error) < 0)
        return -1;
    const struct control_callbacks callbacks = {
        .on_stream = on_stream, .on_stop = on_stop, .on_called = on_called};
    if (control_open(role->loop, work->control_fd, &callbacks, role, &role->control, error) < 0)
        return -1;
    role->report_timer = loop_timer_new(role->loop, report_due, role);
    loop_timer_start(role->report_timer, REPORT_MS);
    const int result = pthread_create(&role->link_thread, NULL, link_run, role);
    if (result != 0)
        return error_set_errno(error, result, "start a thread");
    return 0;
}

static void role_close(struct role *role)
{
    loop_timer_free(role->report_timer);
    control_free(role->control);
    exchange_client_free(role->client);
    trainer_free(role->trainer);
    caller_free(role->caller);
    kernel_set_free(role->kernels);
    dataset_free(role->dataset);
    loop_free(role->loop);
}

int run_worker(struct work *work, struct work_result *out_result, struct error *error)
{
    if (job_train_peer(&work->lease.train).size && peer_data_prepare(work, error) < 0)
        return -1;
    __attribute__((cleanup(role_close))) struct role role = {.work = work, .grace_ms = FINISH_MS};
    if (role_open(&role, error) < 0)
        return -1;
    const int result = load_and_train(&role, error);
    loop_stop(role.loop);
    pthread_join(role.link_thread, NULL);
    report_send(&role, LAST_REPORT_MS);
    struct exchange_client_status status;
    exchange_client_status(role.client, &status);
    if (result < 0)
        return -1;
    out_result->is_ok = !role.is_lost;
    snprintf(out_result->message, sizeof out_result->message, "%s", status.reason);
    return 0;
}
