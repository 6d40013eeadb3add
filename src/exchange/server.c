/*
 * Exchange server: training: joins, pushes, the policy's actions, measurements and the end.
 */
#include "exchange/server.h"

#include "base/assert.h"
#include "base/memory.h"
#include "exchange/server_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOUSE_MS_MAX = 1000, HOUSE_MS_MIN = 20, EVALUATE_FIRST_MS = 500 };

const char *exchange_end_name(enum exchange_end end)
{
    static const char *const names[EXCHANGE_END_COUNT] = {
        [EXCHANGE_END_TARGET] = "target",   [EXCHANGE_END_EPOCHS] = "epochs",
        [EXCHANGE_END_STOPPED] = "stopped", [EXCHANGE_END_LOST] = "lost",
        [EXCHANGE_END_FAILED] = "failed",   [EXCHANGE_END_DIVERGED] = "diverged",
    };
    ASSERT(end < EXCHANGE_END_COUNT);
    return names[end];
}

int64_t server_now_ns(const struct exchange_server *server)
{
    return clock_monotonic_ns(loop_clock(server->options.loop));
}

void server_changed(struct exchange_server *server)
{
    if (server->options.on_change)
        server->options.on_change(server->options.context);
}

/* --- the end --- */

static void end_if_complete(void *context)
{
    struct exchange_server *server = context;
    if (server->state != SERVER_ENDING)
        return;
    const bool is_waited_for =
        !list_is_empty(&server->connections) && loop_timer_is_running(server->end_timer);
    const bool is_unknown = server->cut.final > 0 || evaluator_is_busy(server->evaluator);
    if (is_waited_for || (is_unknown && !server->is_late))
        return;
    server->state = SERVER_ENDED;
    loop_timer_stop(server->house_timer);
    loop_timer_stop(server->late_timer);
    server->options.on_end(server->options.context, &server->outcome);
}

static void late_timer_due(void *context)
{
    struct exchange_server *server = context;
    server->is_late = true;
    server_cut_give_up(server);
    loop_timer_stop(server->end_timer);
    end_if_complete(server);
}

void server_end(struct exchange_server *server, enum exchange_end end, const char *format, ...)
{
    if (server->state != SERVER_RUNNING)
        return;
    server->state = SERVER_ENDING;
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(server->reason, sizeof server->reason, format, arguments) < 0)
        server->reason[0] = '\0';
    va_end(arguments);
    server->outcome.end = end;
    server->outcome.reason = server->reason;
    server->outcome.parameters = server->final;
    loop_timer_stop(server->policy_timer);
    loop_timer_stop(server->evaluate_timer);
    loop_timer_stop(server->moment_timer);
    if (end == EXCHANGE_END_DIVERGED) {
        server_take_good(server);
    } else if (!server->outcome.has_accuracy) {
        server_cut_final(server);
    }
    LIST_EACH(&server->connections, node)
    {
        struct connection *connection = LIST_ITEM(node, struct connection, node);
        connection_send(connection,
                        &(struct exchange_message){.type = EXCHANGE_STOP,
                                                   .stop_reason = text_of(server->reason)});
        /* Who is held will get no model: what it pushed is accepted all the same. */
        if (connection->is_waiting)
            connection_send(connection,
                            &(struct exchange_message){.type = EXCHANGE_ACCEPTED,
                                                       .accepted_push = connection->push.number});
        connection->is_waiting = false;
    }
    server_ranges_stop(server);
    loop_timer_start(server->end_timer, server->options.stop_grace_ms);
    /* Not from inside: the caller may stand on a connection. */
    loop_timer_start(server->moment_timer, 0);
}

void server_final_known(struct exchange_server *server)
{
    if (server->outcome.end != EXCHANGE_END_FAILED && !server->is_late)
        evaluator_ask(server->evaluator, EVALUATION_FULL);
    loop_timer_start(server->moment_timer, 0);
}

void exchange_server_stop(struct exchange_server *server, const char *reason, int64_t grace_ms)
{
    /* It may come while training is ending by itself: then it only sets the limit. */
    server_end(server, EXCHANGE_END_STOPPED, "%s", reason);
    if (server->state == SERVER_ENDING)
        loop_timer_start(server->late_timer, grace_ms / 2);
}

void server_connection_gone(struct exchange_server *server)
{
    if (server->state == SERVER_ENDING)
        loop_timer_start(server->moment_timer, 0);
}

/* --- the policy --- */

static void policy_timer_start(struct exchange_server *server)
{
    const int64_t wake_ns = sync_policy_wake_ns(server->policy);
    if (wake_ns == INT64_MAX || server->state != SERVER_RUNNING) {
        loop_timer_stop(server->policy_timer);
        return;
    }
    const int64_t wait_ns = wake_ns - server_now_ns(server);
    loop_timer_start(server->policy_timer, wait_ns > 0 ? (wait_ns + 999999) / 1000000 : 0);
}

static void settings_send(struct exchange_server *server, struct connection *connection,
                          const struct sync_action *action)
{
    struct exchange_settings *settings = &connection->settings;
    if (action->kind == SYNC_SET_BATCH) {
        settings->batch = action->batch;
    } else {
        const bool by_steps = action->kind == SYNC_SET_STEPS;
        settings->local_steps = by_steps ? action->steps : 0;
        settings->period_ns = by_steps ? 0 : action->period_ns;
        settings->overlap = action->overlap;
        settings->is_plain = action->is_plain;
    }
    /* A push that can be made again starts from an answer and has few steps. */
    if (server->options.verify > 0) {
        settings->overlap = 0;
        if (settings->local_steps > CHECK_STEPS_MAX)
            settings->local_steps = CHECK_STEPS_MAX;
    }
    connection_send(connection,
                    &(struct exchange_message){.type = EXCHANGE_SETTINGS, .settings = *settings});
}

/* Answers the worker with W, unless it has been answered. */
static void worker_answer(struct exchange_server *server, struct connection *connection)
{
    if (!connection->is_waiting)
        return;
    const int64_t since_ns = connection->held_ns;
    connection->was_held_ns = since_ns > 0 ? server_now_ns(server) - since_ns : 0;
    connection->held_ns = 0;
    server_ranges_answer(server, connection, connection->push.number, /* is_offer= */ false);
    connection_send_model(connection, connection->push.number);
}

/* A policy answers, holds and sets none but members. */
static struct connection *member_of(struct exchange_server *server,
                                    const struct sync_action *action)
{
    struct connection *member = server->connection_of[action->worker];
    ASSERT(member);
    return member;
}

static void action_do(struct exchange_server *server, const struct sync_action *action)
{
    const struct connection *connection = server->connection_of[action->worker];
    if (global_model_act(server->model, action, connection ? connection->update.values : NULL)) {
        server_ranges_do(server, action);
        return;
    }
    switch (action->kind) {
    case SYNC_REPLY:
    case SYNC_RELEASE:
        worker_answer(server, member_of(server, action));
        return;
    case SYNC_HOLD:
        member_of(server, action)->held_ns = server_now_ns(server);
        return;
    case SYNC_SET_STEPS:
    case SYNC_SET_PERIOD:
    case SYNC_SET_BATCH:
        settings_send(server, member_of(server, action), action);
        return;
    case SYNC_EVALUATE:
        server->loss_asked_ns = server_now_ns(server);
        server_measure(server, EVALUATION_SAMPLE);
        return;
    case SYNC_BARRIER:
        server->is_at_barrier = true;
        return;
    case SYNC_STOP:
        server_end(server, EXCHANGE_END_STOPPED, "the policy sees no further gain");
        return;
    case SYNC_APPLY:
    case SYNC_GATHER:
    case SYNC_FOLD:
    case SYNC_KEEP:
    case SYNC_RETURN: /* done above */
    case SYNC_ACTION_KIND_COUNT:
        break;
    }
    ASSERT(action->kind < SYNC_ACTION_KIND_COUNT);
}

void server_act(struct exchange_server *server)
{
    for (uint32_t i = 0; i < server->actions.count; i++)
        action_do(server, &server->actions.items[i]);
    server->actions.count = 0;
    if (server->is_at_barrier && server->state == SERVER_RUNNING) {
        server->is_at_barrier = false;
        server_epoch_over(server);
        return;
    }
    policy_timer_start(server);
}

static void policy_tick(struct exchange_server *server, const struct sync_loss *loss)
{
    if (server->state != SERVER_RUNNING || !server_ranges_are_ready(server))
        return;
    sync_policy_tick(server->policy, server_now_ns(server), loss, &server->actions);
    server_act(server);
    connections_sweep(server);
}

void server_begin_anew(struct exchange_server *server)
{
    struct error error;
    struct sync_policy *policy = NULL;
    const struct text name = text_of(sync_policy_name(server->policy));
    LIST_EACH(&server->connections, node)
    {
        struct connection *connection = LIST_ITEM(node, struct connection, node);
        if (connection->is_member)
            server_part(server, connection);
    }
    server->actions.count = 0;
    server->is_at_barrier = false;
    server->loss_asked_ns = 0;
    global_model_restart(server->model);
    server_ranges_act(server, &(struct exchange_act){.kind = EXCHANGE_ACT_RESTART});
    const int result = sync_policy_new(name, &server->options.sync, &policy, &error);
    ASSERT(result == 0); /* it was made of the same before */
    sync_policy_free(server->policy);
    server->policy = policy;
    loop_timer_stop(server->policy_timer);
}

static void policy_timer_due(void *context)
{
    policy_tick(context, NULL);
}

/* --- measurements --- */

static uint64_t on_snapshot(void *context, float *out_parameters, int64_t *at_ns)
{
    const struct exchange_server *server = context;
    const size_t size = server->options.parameter_count * sizeof(float);
    if (server->state != SERVER_RUNNING) {
        memcpy(out_parameters, server->final, size);
        return server->outcome.version;
    }
    if (server->servers > 1) {
        memcpy(out_parameters, server->cut.newest.parameters, size);
        *at_ns = server->cut.newest.at_ns;
        return server->cut.newest.state.version;
    }
    memcpy(out_parameters, global_model_parameters(server->model), size);
    return global_model_version(server->model);
}

int64_t server_elapsed_ms(const struct exchange_server *server)
{
    const int64_t own_ns = server->joined_ns > 0 ? server_now_ns(server) - server->joined_ns : 0;
    return server->options.done.elapsed_ms + own_ns / 1000000;
}

/* A model whose values no worker takes is no better than one without a loss. */
static bool is_good(const struct exchange_server *server, const struct evaluation_report *report)
{
    return isfinite(report->loss) &&
           codec_is_sane(report->parameters, server->options.parameter_count);
}

static void full_report(struct exchange_server *server, const struct evaluation_report *report)
{
    server->status.accuracy_evaluations++;
    server->status.test_accuracy = report->accuracy;
    server->status.test_loss = report->loss;
    const int64_t elapsed_ms = server_elapsed_ms(server);
    const bool is_reached = server->state == SERVER_RUNNING && report->is_target_reached &&
                            elapsed_ms >= server->options.min_time_ms;
    const bool is_final =
        server->state == SERVER_ENDING && report->version == server->outcome.version;
    if (!is_good(server, report)) {
        if (is_final)
            server_take_good(server);
        server_measured_bad(server, /* has_gone_back= */ false);
        return;
    }
    if (server->state == SERVER_RUNNING)
        server_keep_good(server, report);
    if (!is_reached && !is_final)
        return;
    server->outcome.has_accuracy = true;
    server->outcome.test_accuracy = report->accuracy;
    server->outcome.test_loss = report->loss;
    if (is_reached) {
        /* The model that was measured, not what became of it meanwhile. */
        memcpy(server->final, report->parameters, server->options.parameter_count * sizeof(float));
        server->outcome.version = report->version;
        server_end(server, EXCHANGE_END_TARGET, "%s", report->reached);
    }
}

static void on_report(void *context, const struct evaluation_report *report,
                      const struct error *error)
{
    struct exchange_server *server = context;
    if (error) {
        server_end(server, EXCHANGE_END_FAILED, "measure the model: %s", error->message);
    } else if (report->kind == EVALUATION_FULL) {
        full_report(server, report);
    } else {
        server->status.loss_evaluations++;
        server->status.loss = report->loss;
    }
    bool has_gone_back = false; /* to a model from before */
    server_changed(server);
    if (!error && report->kind == EVALUATION_SAMPLE && server->loss_asked_ns > 0 &&
        report->at_ns >= server->loss_asked_ns) {
        server->loss_asked_ns = 0;
        const uint64_t version = global_model_version(server->model);
        policy_tick(server, &(struct sync_loss){report->at_ns, report->loss});
        has_gone_back = global_model_version(server->model) != version;
    }
    if (!error && report->kind == EVALUATION_SAMPLE && !is_good(server, report))
        server_measured_bad(server, has_gone_back);
    connections_sweep(server);
    if (server->state == SERVER_ENDING)
        loop_timer_start(server->moment_timer, 0);
}

/* A job of seconds has ended before gamma: what comes first is measured in shorter spans, each
 * twice the one before, and left out where a measurement takes longer than that. */
static void evaluate_timer_due(void *context)
{
    struct exchange_server *server = context;
    const int64_t usual_ms = server->options.evaluate_ms;
    if (server->evaluate_next_ms == usual_ms || !evaluator_is_busy(server->evaluator)) {
        server_measure(server, EVALUATION_SAMPLE);
        server_measure(server, EVALUATION_FULL);
    }
    const int64_t longer_ms = 2 * server->evaluate_next_ms;
    server->evaluate_next_ms = longer_ms < usual_ms ? longer_ms : usual_ms;
    loop_timer_start(server->evaluate_timer, server->evaluate_next_ms);
}

/* While training: min_time has passed. While ending: something to wait for may be done. */
static void moment_timer_due(void *context)
{
    struct exchange_server *server = context;
    if (server->state == SERVER_RUNNING)
        server_measure(server, EVALUATION_FULL);
    else
        end_if_complete(server);
}

/* --- silence --- */

static void house_timer_start(struct exchange_server *server)
{
    int64_t wait_ms = server->options.silent_ms / 6;
    wait_ms = wait_ms > HOUSE_MS_MAX   ? HOUSE_MS_MAX
              : wait_ms < HOUSE_MS_MIN ? HOUSE_MS_MIN
                                       : wait_ms;
    server->house_ns = server_now_ns(server) + wait_ms * 1000000;
    loop_timer_start(server->house_timer, wait_ms);
}

static void house_timer_due(void *context)
{
    struct exchange_server *server = context;
    const int64_t now_ns = server_now_ns(server);
    const int64_t silent_ns = server->options.silent_ms * 1000000;
    /* When this process itself stood still, nobody else was silent. */
    const bool was_asleep = now_ns - server->house_ns > silent_ns / 2;
    LIST_EACH(&server->connections, node)
    {
        struct connection *connection = LIST_ITEM(node, struct connection, node);
        if (was_asleep)
            connection->last_frame_ns = now_ns;
        struct error error;
        if (now_ns - connection->last_frame_ns > silent_ns) {
            error_set(&error, ERROR_UNAVAILABLE, "silent for %" PRId64 " ms",
                      (now_ns - connection->last_frame_ns) / 1000000);
            connection_mark(connection, &error);
        }
    }
    server_checks_tick(server);
    server_ranges_house(server, now_ns, was_asleep);
    connections_sweep(server);
    if (server->joined_ns == 0 && !loop_timer_is_running(server->muster_timer) &&
        now_ns - server->opened_ns > server->options.join_ms * 1000000)
        server_end(server, EXCHANGE_END_LOST, "%s",
                   server_ranges_are_ready(server) ? "no worker came"
                                                   : "not all parameter servers came");
    if (server->joined_ns > 0 && server->member_count == 0 &&
        now_ns - server->lonely_since_ns > server->options.lonely_ms * 1000000)
        server_end(server, EXCHANGE_END_LOST, "%s",
                   server_ranges_are_ready(server) ? "all workers are gone"
                                                   : "a parameter server is gone");
    house_timer_start(server);
}

/* --- life --- */

static int64_t or_else(int64_t value, int64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static int server_allocate(struct exchange_server *server, struct error *error)
{
    const size_t count = server->options.parameter_count;
    server->final = calloc(count, sizeof(float));
    server->scratch = malloc(sizeof(*server->scratch));
    ASSERT(server->scratch);
    if (!server->final)
        return error_set(error, ERROR_EXHAUSTED, "no memory for a model of %zu parameters", count);
    const float *parameters = server->options.parameters, *momentum = server->options.momentum;
    server->options.parameters = server->options.momentum = NULL;
    server->status.steps = server->options.done.steps;
    server->status.samples = server->options.done.samples;
    server->first_digest = vector_digest(parameters, server->range.count);
    if (global_model_open(parameters, momentum, server->range.count, &server->model, error) < 0)
        return -1;
    global_model_set_robust(server->model, &server->options.robust);
    global_model_set_late(server->model);
    return server->servers > 1 ? server_cut_open(server, parameters, momentum, error) : 0;
}

int exchange_server_open(const struct exchange_server_options *options,
                         struct exchange_server **out_server, struct error *error)
{
    if (options->parameter_count == 0 || options->parameter_count > EXCHANGE_PARAMETERS_MAX)
        return error_set(error, ERROR_INVALID, "a model must have 1 to %d parameters",
                         EXCHANGE_PARAMETERS_MAX);
    if (options->world == 0 || options->world > EXCHANGE_WORKERS_MAX)
        return error_set(error, ERROR_INVALID, "1 to %d workers", EXCHANGE_WORKERS_MAX);
    if (options->servers > EXCHANGE_SERVERS_MAX || options->servers > options->parameter_count ||
        (options->servers > 1 && options->verify > 0))
        return error_set(error, ERROR_INVALID,
                         "too many parameter servers, or more than one where pushes are checked");
    const struct exchange_compress *compress = &options->compress;
    if (!(compress->density >= 0 && compress->density <= 1) ||
        !(compress->momentum >= 0 && compress->momentum < 1))
        return error_set(error, ERROR_INVALID, "compress: a density or momentum out of range");
    if (!(options->robust.trim >= 0 && options->robust.trim < 0.5))
        return error_set(error, ERROR_INVALID, "robust: the trim must be from 0 to below 0.5");
    if (!(options->verify >= 0 && options->verify <= 1) ||
        (options->verify > 0 && !compress->is_auto && check_near(compress->codec) < 0))
        return error_set(error, ERROR_INVALID,
                         "verify: a share out of range, or a codec whose pushes nobody can check");
    AUTO(exchange_server) struct exchange_server *server = memory_zeroed(1, sizeof *server);
    list_init(&server->connections);
    list_init(&server->range_peers);
    robust_norms_init(&server->norms);
    random_init(&server->check_random, options->check_seed);
    server->options = *options;
    server->servers = options->servers > 1 ? options->servers : 1;
    server->range = range_of(options->parameter_count, server->servers, 0);
    server->options.evaluate_ms = or_else(options->evaluate_ms, options->sync.gamma_ms);
    server->evaluate_next_ms = server->options.evaluate_ms;
    if (!options->evaluate_ms && server->evaluate_next_ms > EVALUATE_FIRST_MS)
        server->evaluate_next_ms = EVALUATE_FIRST_MS;
    server->options.silent_ms = or_else(options->silent_ms, 6000);
    server->options.lonely_ms = or_else(options->lonely_ms, 20000);
    server->options.join_ms = or_else(options->join_ms, 60000);
    server->options.stop_grace_ms = or_else(options->stop_grace_ms, 2000);
    if (sync_policy_new(options->policy, &options->sync, &server->policy, error) < 0)
        return -1;
    if (server_allocate(server, error) < 0)
        return -1;
    const struct evaluator_options evaluator = {
        .loop = options->loop,
        .parameter_count = options->parameter_count,
        .measure = options->measure,
        .measure_context = options->measure_context,
        .snapshot = on_snapshot,
        .on_report = on_report,
        .context = server,
    };
    if (evaluator_open(&evaluator, &server->evaluator, error) < 0)
        return -1;
    server->muster_timer = loop_timer_new(options->loop, server_muster_due, server);
    server->policy_timer = loop_timer_new(options->loop, policy_timer_due, server);
    server->evaluate_timer = loop_timer_new(options->loop, evaluate_timer_due, server);
    server->moment_timer = loop_timer_new(options->loop, moment_timer_due, server);
    server->house_timer = loop_timer_new(options->loop, house_timer_due, server);
    server->end_timer = loop_timer_new(options->loop, end_if_complete, server);
    server->late_timer = loop_timer_new(options->loop, late_timer_due, server);
    server->opened_ns = server_now_ns(server);
    house_timer_start(server);
    *out_server = TAKE(server);
    return 0;
}

void exchange_server_free(struct exchange_server *server)
{
    if (!server)
        return;
    evaluator_free(server->evaluator);
    server_checks_free(server);
    connections_free(server);
    server_ranges_free(server);
    server_cut_free(server);
    loop_timer_free(server->muster_timer);
    loop_timer_free(server->policy_timer);
    loop_timer_free(server->evaluate_timer);
    loop_timer_free(server->moment_timer);
    loop_timer_free(server->house_timer);
    loop_timer_free(server->end_timer);
    loop_timer_free(server->late_timer);
    sync_policy_free(server->policy);
    global_model_free(server->model);
    free(server->scratch);
    free(server->final);
    free(server->good);
    free(server);
}

struct exchange_progress_made exchange_server_snapshot(const struct exchange_server *server,
                                                       float *out_parameters, float *out_momentum)
{
    const size_t size = server->options.parameter_count * sizeof(float);
    if (server->servers > 1) {
        const struct server_copy *newest = &server->cut.newest;
        memcpy(out_parameters, newest->parameters, size);
        memcpy(out_momentum, newest->momentum, size);
        return (struct exchange_progress_made){newest->state.steps, newest->state.samples,
                                               newest->state.elapsed_ms};
    }
    memcpy(out_parameters, global_model_parameters(server->model), size);
    memcpy(out_momentum, global_model_momentum(server->model), size);
    return (struct exchange_progress_made){server->status.steps, server->status.samples,
                                           server_elapsed_ms(server)};
}

bool exchange_server_is_training(const struct exchange_server *server)
{
    return server->state == SERVER_RUNNING;
}

const struct exchange_status *exchange_server_status(struct exchange_server *server)
{
    struct exchange_status *status = &server->status;
    status->elapsed_ms = server_elapsed_ms(server);
    status->version = global_model_version(server->model);
    status->epochs = server_epochs(server);
    status->sync = sync_policy_status(server->policy);
    status->member_count = server->member_count;
    status->workers_wanted = server->workers_wanted;
    status->workers = server->workers;
    status->worker_count = server->worker_count;
    return status;
}
