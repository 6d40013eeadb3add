/*
 * Role server: the parameter server on one loop, measurements on the exchange's second thread.
 *
 * The second thread alone uses `measurer` after the start: kernels and models belong to one thread.
 * A third writes checkpoints, which go to the market's store: from the newest the server's
 * successor goes on, on another machine if need be.
 *
 * A replica is all of this in waiting: it follows the lead, and becomes the server, with the newest
 * model that it has, when the first stream of somebody who dials a lead comes.
 */
#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "worker/role_server_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REPORT_MS = 1000,
    MUSTER_MS = 10000,  /* who fetches data for longer comes later */
    LONELY_MS = 120000, /* the market finds successors, or ends the job, long before */
};

static void on_drop(void *context, uint64_t lease, const struct error *reason)
{
    const struct server_role *role = context;
    const bool is_server = peer_table_is_server(&role->peers, lease);
    log_event(LOG_WARN, is_server ? "server_dropped" : "worker_dropped",
              "lease=%" PRIu64 " reason=\"%s\"", lease, reason->message);
}

static uint32_t on_epoch(void *context, const struct exchange_epoch *epoch)
{
    struct server_role *role = context;
    const uint32_t wanted = epoch_schedule_next(role->schedule, epoch);
    log_event(LOG_INFO, "epoch_over",
              "epoch=%" PRIu64 " workers=%" PRIu32 " wanted=%" PRIu32
              " loss=%g elapsed_ms=%" PRId64,
              epoch->index, epoch->workers, wanted, epoch->has_loss ? epoch->loss : 0.0,
              epoch->elapsed_ms);
    return wanted;
}

/* --- keys, streams, the end --- */

static int find_peer(void *context, uint64_t lease, uint64_t fence, struct exchange_peer *out_peer)
{
    const struct server_role *role = context;
    return peer_table_find(&role->peers, lease, fence, out_peer);
}

static void on_peer(void *context, const struct child_peer *peer)
{
    struct server_role *role = context;
    peer_table_put(&role->peers, peer);
}

static int server_open(struct server_role *role, struct error *error);

/* The lead is lost: this is the lead now. */
static int promote(struct server_role *role, struct error *error)
{
    struct replica_model model;
    const bool has_model = replica_newest(role->replica, &model);
    log_event(LOG_INFO, "promoted", "has_model=%d steps=%" PRIu64 " elapsed_ms=%" PRId64, has_model,
              has_model ? model.done.steps : 0, has_model ? model.done.elapsed_ms : 0);
    if (server_open(role, error) < 0)
        return error_wrap(error, "take the lead");
    replica_free(TAKE(role->replica));
    return 0;
}

static int stream_take(struct server_role *role, const struct child_stream *stream,
                       struct error *error)
{
    const bool is_server = stream->peer_role == LEASE_ROLE_SERVER;
    if (role->replica && is_server && stream->peer_rank == 0)
        return replica_attach_take(role->replica, stream->fd, stream->peer_fence, error);
    if (!role->server && promote(role, &role->failure) < 0) {
        *error = role->failure;
        loop_stop(role->loop);
        return -1;
    }
    return is_server ? exchange_server_attach_range_take(role->server, stream->fd, error)
                     : exchange_server_attach_take(role->server, stream->fd, error);
}

static void on_stream(void *context, const struct child_stream *stream)
{
    struct server_role *role = context;
    struct error error;
    if (stream_take(role, stream, &error) == 0)
        return;
    close(stream->fd);
    log_event(LOG_ERROR, "stream_refused", "peer=%" PRIu64 " error=\"%s\"", stream->peer_lease,
              error.message);
}

static void ready_send(struct server_role *role)
{
    const struct child_message ready = {.kind = CHILD_READY};
    if (control_send(role->work->control_fd, &ready, &role->failure) < 0)
        loop_stop(role->loop);
}

/* Not before: until it is ready, the lead's successor goes on from the newest checkpoint. */
static void replica_has_model(void *context)
{
    ready_send(context);
}

static void replica_lost(void *context, const struct error *reason)
{
    (void)context;
    log_event(LOG_WARN, "lead_lost", "reason=\"%s\"", reason->message);
}

static void replica_ended(void *context, const char *reason)
{
    struct server_role *role = context;
    role->result->is_ok = true;
    snprintf(role->result->message, sizeof role->result->message, "%s", reason);
    loop_stop(role->loop);
}

static void on_stop(void *context, const char *reason, int64_t grace_ms)
{
    struct server_role *role = context;
    if (role->server)
        exchange_server_stop(role->server, reason, grace_ms);
    else
        replica_ended(role, reason);
}

/* Its workers are told nothing: they wait for the successor, which goes on from what this one has.
 */
static void on_handover(void *context, const char *reason, int64_t grace_ms)
{
    struct server_role *role = context;
    if (!role->server || !exchange_server_is_training(role->server)) {
        on_stop(role, reason, grace_ms);
        return;
    }
    log_event(LOG_INFO, "handed_over", "reason=\"%s\"", reason);
    server_report_send(role, NULL);
    checkpoint_save(role, NULL, /* is_last= */ true);
    role->result->is_ok = true;
    snprintf(role->result->message, sizeof role->result->message, "%s", reason);
    loop_stop(role->loop);
}

/* What happened, what is left, what to try; short, as a lease's reason is. */
static void diverged_say(struct server_role *role, const struct exchange_outcome *outcome)
{
    char kept[64] = "no model was measured before";
    if (outcome->parameters)
        snprintf(kept, sizeof kept, "the model of loss %.4g before it is kept", outcome->test_loss);
    char advice[96];
    job_train_diverged_advice(&role->work->lease.train, advice, sizeof advice);
    snprintf(role->result->message, sizeof role->result->message, LEASE_REASON_DIVERGED "; %s; %s",
             kept, advice);
}

/* It went on from a checkpoint that had learnt all there is to learn: a step later it was over. */
static bool had_nothing_left(const struct server_role *role)
{
    const struct exchange_status *status = exchange_server_status(role->server);
    const double share = (double)role->resumed_samples / (double)status->samples;
    return role->resumed_samples > 0 &&
           share * status->epochs >= (double)role->work->lease.train.epochs;
}

static void ended_say(struct server_role *role, const struct exchange_outcome *outcome)
{
    if (outcome->end == EXCHANGE_END_DIVERGED)
        diverged_say(role, outcome);
    else if (outcome->end == EXCHANGE_END_EPOCHS && had_nothing_left(role))
        snprintf(role->result->message, sizeof role->result->message,
                 "its checkpoint had learnt all %" PRIu64 " epochs before: raise train.epochs",
                 role->work->lease.train.epochs);
    else
        snprintf(role->result->message, sizeof role->result->message, "%s", outcome->reason);
}

static void on_end(void *context, const struct exchange_outcome *outcome)
{
    struct server_role *role = context;
    ended_say(role, outcome);
    log_event(LOG_INFO, "training_ended", "end=%s accuracy=%.4f reason=\"%s\"",
              exchange_end_name(outcome->end), outcome->test_accuracy, role->result->message);
    loop_timer_stop(role->report_timer); /* nothing comes after the last report */
    loop_timer_stop(role->checkpoint_timer);
    server_report_send(role, outcome);
    if (!outcome->parameters) {
        role->failure.code = ERROR_NONE; /* there is no model, and the reason is the outcome's */
    } else if (model_export(role, outcome, &role->failure) == 0) {
        role->failure.code = ERROR_NONE;
        checkpoint_save(role, outcome->parameters, /* is_last= */ true);
    }
    role->result->is_ok = outcome->end != EXCHANGE_END_LOST &&
                          outcome->end != EXCHANGE_END_FAILED &&
                          outcome->end != EXCHANGE_END_DIVERGED;
    loop_stop(role->loop);
}

/* --- the start --- */

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

static int server_open(struct server_role *role, struct error *error)
{
    uint64_t check_seed; /* nobody knows which pushes are checked */
    if (getrandom(&check_seed, sizeof check_seed, 0) != sizeof check_seed)
        return error_set_errno(error, errno, "draw a seed");
    const struct work *work = role->work;
    AUTO(checkpoint) struct checkpoint *checkpoint = NULL;
    float *parameters = calloc(work->parameter_count, sizeof *parameters);
    if (!parameters)
        return error_set(error, ERROR_EXHAUSTED, "no memory for the model");
    struct replica_model model = {0};
    const bool has_model = role->replica && replica_newest(role->replica, &model);
    int result = has_model ? 0 : checkpoint_find(work, &checkpoint, error);
    struct exchange_server_options options = {
        .loop = role->loop,
        .policy = work->lease.sync.policy,
        .sync = work->sync,
        .compress = work->compress,
        .robust = work->robust,
        .verify = work->lease.sync.verify,
        .check_seed = check_seed,
        .parameter_count = work->parameter_count,
        .servers = (uint32_t)work->lease.sync.servers,
        .parameters = parameters,
        .term = work->lease.fence,
        .world = (uint32_t)work->lease.world,
        .min_time_ms = work->lease.train.target.min_time_ms,
        .epochs = work->lease.train.epochs,
        .lonely_ms = LONELY_MS,
        .muster_ms = MUSTER_MS,
        .find_peer = find_peer,
        .measure = measurer_measure,
        .measure_context = &role->measurer,
        .on_change = server_report_change,
        .on_drop = on_drop,
        .on_end = on_end,
        .context = role,
    };
    const struct epoch_schedule_options schedule = {
        .name = work->lease.sync.schedule,
        .workers_min = (uint32_t)work->lease.world,
        .workers_max = (uint32_t)work->lease.world_max,
        .epochs = work->lease.train.epochs,
        .is_by_steps = work->sync.epoch_steps > 0,
    };
    role->schedule = epoch_schedule_new(&schedule);
    if (role->schedule)
        options.on_epoch = on_epoch;
    if (has_model) {
        options.parameters = model.parameters;
        options.momentum = model.momentum;
        options.done = model.done;
    } else if (checkpoint) {
        options.parameters = checkpoint->parameters;
        options.momentum = checkpoint->velocity;
        options.done = (struct exchange_progress_made){
            .steps = checkpoint->step,
            .samples = checkpoint->samples,
            .elapsed_ms = checkpoint->elapsed_ms,
        };
        role->resumed_samples = checkpoint->samples;
    } else if (result == 0) {
        result = parameters_make(work, parameters, error);
    }
    if (result == 0)
        result = exchange_server_open(&options, &role->server, error);
    free(parameters);
    if (result < 0)
        return -1;
    loop_timer_start(role->report_timer, REPORT_MS);
    loop_timer_start(role->checkpoint_timer, work->lease.sync.checkpoint_interval_ms * 2 / 3);
    return 0;
}

/* Data and model are there when they are needed. */
static int replica_start(struct server_role *role, struct error *error)
{
    const struct work *work = role->work;
    struct replica_options options = {
        .loop = role->loop,
        .lease = work->lease.lease,
        .fence = work->lease.fence,
        .servers = (uint32_t)work->lease.sync.servers,
        .parameter_count = work->parameter_count,
        .on_model = replica_has_model,
        .on_lost = replica_lost,
        .on_end = replica_ended,
        .context = role,
    };
    memcpy(options.key, work->config.key, sizeof options.key);
    return replica_open(&options, &role->replica, error);
}

static int role_open(struct server_role *role, struct error *error)
{
    struct work *work = role->work;
    const bool is_replica = work->lease.rank > 0 && work->lease.rank >= work->lease.sync.servers;
    if (mkdir(work->out_folder, 0700) < 0 && access(work->out_folder, W_OK) < 0)
        return error_set(error, ERROR_UNAVAILABLE, "cannot write to \"%s\"", work->out_folder);
    peer_table_init(&role->peers, &work->config);
    const struct control_callbacks callbacks = {on_stream, on_peer, on_stop, on_handover};
    if (loop_open(&clock_system, &role->loop, error) < 0)
        return -1;
    role->report_timer = loop_timer_new(role->loop, server_report_due, role);
    /* SIGTERM must be blocked before the second thread starts: control comes first. */
    if (control_open(role->loop, work->control_fd, &callbacks, role, &role->control, error) < 0 ||
        work_open_dataset(work, DATASET_TEST_IMAGES, DATASET_TEST_LABELS, &role->measurer.dataset,
                          error) < 0 ||
        checkpointer_start(role, error) < 0)
        return -1;
    return is_replica ? replica_start(role, error) : server_open(role, error);
}

static void role_close(struct server_role *role)
{
    checkpointer_free(role->checkpointer);
    exchange_server_free(role->server); /* ends the thread that measures */
    replica_free(role->replica);
    epoch_schedule_free(role->schedule);
    model_free(role->measurer.model);
    kernel_set_free(role->measurer.kernels);
    dataset_free(role->measurer.dataset);
    loop_timer_free(role->report_timer);
    loop_timer_free(role->checkpoint_timer);
    control_free(role->control);
    loop_free(role->loop);
    peer_table_done(&role->peers);
}

int run_server(struct work *work, struct work_result *out_result, struct error *error)
{
    struct server_role *role = calloc(1, sizeof *role);
    ASSERT(role);
    role->work = work;
    role->measurer.work = work;
    role->result = out_result;
    int result = role_open(role, error);
    if (result == 0 && !role->replica)
        ready_send(role);
    if (result == 0 && role->failure.code == ERROR_NONE)
        result = loop_run(role->loop, error);
    if (result == 0 && role->failure.code != ERROR_NONE) {
        *error = role->failure;
        result = -1;
    }
    role_close(role);
    free(role);
    return result;
}
