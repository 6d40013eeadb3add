/* Exchange server: workers: joining, pushing, leaving. */
#include "base/assert.h"
#include "exchange/server_internal.h"

#include <inttypes.h>
#include <math.h>

enum {
    CHANGES_SHOWN = 3,
    LARGE_FLOATS = 1 << 20, /* a slow link would carry it whole for many steps */
};
#define DENSITY 0.01F /* of top-k */

/* The number of a worker seen before, or a new one; EXHAUSTED when there are too many. */
static int worker_find(struct exchange_server *server, const struct connection *connection,
                       uint32_t *out_worker, struct error *error)
{
    for (uint32_t i = 0; i < server->worker_count; i++)
        if (server->workers[i].lease == connection->lease &&
            server->workers[i].fence == connection->fence) {
            *out_worker = i;
            return 0;
        }
    uint32_t worker = server->worker_count;
    if (worker == EXCHANGE_WORKERS_MAX) /* the number of one who left */
        for (worker = 0; worker < EXCHANGE_WORKERS_MAX && server->workers[worker].is_member;)
            worker++;
    if (worker == EXCHANGE_WORKERS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "more than %d workers", EXCHANGE_WORKERS_MAX);
    if (worker == server->worker_count)
        server->worker_count++;
    server->workers[worker] =
        (struct exchange_worker_status){.lease = connection->lease, .fence = connection->fence};
    *out_worker = worker;
    return 0;
}

/* Of one rank one lease counts: the predecessor of a successor goes. */
static void drop_predecessor(struct exchange_server *server, const struct connection *successor)
{
    for (uint32_t i = 0; i < server->worker_count; i++) {
        struct connection *old = server->connection_of[i];
        if (!old || old->rank != successor->rank || old->lease == successor->lease)
            continue;
        error_set(&old->drop_reason, ERROR_CONFLICT, "a successor took its rank");
        connection_mark(old, &old->drop_reason);
        server_leave(server, old);
    }
}

/* Before anything is known of a link: of a large model a first push by which it is measured. */
static enum codec first_codec(const struct exchange_server *server)
{
    return server->options.parameter_count >= LARGE_FLOATS ? CODEC_INT8 : CODEC_F32;
}

/* The whole data set's size: shards not seen yet are taken to be of the mean size. */
static double dataset_samples(const struct exchange_server *server)
{
    double sum = 0;
    uint32_t known = 0;
    for (uint32_t rank = 0; rank < server->options.world; rank++) {
        sum += (double)server->shard_samples[rank];
        known += server->shard_samples[rank] > 0;
    }
    return known > 0 ? sum / known * server->options.world : 0;
}

/* What came before on this link is void. */
static void connection_reset(struct connection *connection)
{
    global_model_release(connection->server->model, connection->update.values);
    connection->is_joining = connection->is_parted = connection->is_offered = false;
    connection->is_pushing = connection->is_whole = connection->is_waiting = false;
    connection->held_ns = connection->was_held_ns = connection->last_push_ns = 0;
    connection->answer.done = connection->answer.count;
    connection->has_shadow = false;
}

/* Its join has come to all servers. */
static int server_admit(struct exchange_server *server, struct connection *connection,
                        struct error *error)
{
    const struct exchange_join *join = &connection->join;
    uint32_t worker;
    connection->is_joining = false;
    drop_predecessor(server, connection);
    if (worker_find(server, connection, &worker, error) < 0)
        return -1;
    struct connection *old = server->connection_of[worker];
    if (old) {
        /* It came back before its old link was seen to be dead. */
        error_set(&old->drop_reason, ERROR_CONFLICT, "the worker came back on a new link");
        connection_mark(old, &old->drop_reason);
        server_leave(server, old);
    }
    const struct exchange_compress *compress = &server->options.compress;
    const int64_t now_ns = server_now_ns(server);
    if (server->joined_ns == 0) {
        server->joined_ns = now_ns;
        if (server->evaluate_next_ms < server->options.evaluate_ms)
            server_measure(server, EVALUATION_SAMPLE); /* what it begins with */
        loop_timer_start(server->evaluate_timer, server->evaluate_next_ms);
        const int64_t left_ms = server->options.min_time_ms - server->options.done.elapsed_ms;
        if (left_ms > 0)
            loop_timer_start(server->moment_timer, left_ms);
    }
    connection->is_member = true;
    connection->worker = worker;
    connection->settings = (struct exchange_settings){
        .codec = compress->is_auto ? first_codec(server) : compress->codec,
        .density = compress->density > 0 ? (float)compress->density : DENSITY,
        .momentum = (float)compress->momentum,
    };
    chooser_init(&connection->chooser, server->range.count, (double)connection->settings.density,
                 connection->settings.codec);
    server->connection_of[worker] = connection;
    server->member_count++;
    server->workers[worker].is_member = true;
    server->workers[worker].rank = join->rank;
    server->shard_samples[join->rank % server->options.world] = join->shard_samples;
    server_ranges_act(server, &(struct exchange_act){.kind = EXCHANGE_ACT_ADMIT,
                                                     .worker = worker,
                                                     .number = connection->session,
                                                     .lease = connection->lease,
                                                     .fence = connection->fence});
    sync_policy_set_pass(server->policy, (uint64_t)dataset_samples(server));
    sync_policy_join(server->policy, now_ns, worker, &server->actions);
    server_act(server);
    connection_welcome(connection);
    server_changed(server);
    return 0;
}

static int join_check(const struct exchange_server *server, const struct connection *connection,
                      const struct exchange_join *join, struct error *error)
{
    if ((connection->is_member || connection->is_joining) &&
        (server->servers == 1 || join->session <= connection->session))
        return error_set(error, ERROR_CORRUPT, "a second join");
    if (join->parameter_count != server->options.parameter_count)
        return error_set(error, ERROR_INVALID,
                         "a model of %" PRIu64 " parameters where the job's has %zu",
                         join->parameter_count, server->options.parameter_count);
    if (join->servers != server->servers || join->server != 0)
        return error_set(error, ERROR_INVALID, "server %" PRIu32 " of %" PRIu32 " is not this",
                         join->server, join->servers);
    if (join->rank != connection->rank || join->rank >= EXCHANGE_WORKERS_MAX)
        return error_set(error, ERROR_REFUSED, "rank %" PRIu32 " is not its own", join->rank);
    /* Its word alone ends nothing: one that lies must not end the others' training. A server that
     * was replaced is left by all, or stopped by the market. */
    if (join->term > server->options.term)
        return error_set(error, ERROR_CONFLICT, "it belongs to a later parameter server");
    for (uint32_t i = 0; i < server->worker_count; i++)
        if (server->workers[i].is_faulty && server->workers[i].lease == connection->lease)
            return error_set(error, ERROR_REFUSED, "%s", server->workers[i].fault);
    return 0;
}

/* ---- The beginning --------------------------------------------------------------------------- */

static bool has_every_shard(const struct exchange_server *server)
{
    bool is_there[EXCHANGE_WORKERS_MAX] = {false};
    uint32_t count = 0;
    LIST_EACH(&server->connections, node)
    {
        const struct connection *connection = LIST_ITEM(node, struct connection, node);
        if (!connection->is_joining || connection->must_drop)
            continue;
        bool *is_known = &is_there[connection->rank % server->options.world];
        count += !*is_known;
        *is_known = true;
    }
    return count == server->options.world;
}

static void begin(struct exchange_server *server)
{
    loop_timer_stop(server->muster_timer);
    server->has_mustered = true;
    LIST_EACH(&server->connections, node)
    server_try(server, LIST_ITEM(node, struct connection, node));
}

void server_muster_due(void *context)
{
    struct exchange_server *server = context;
    if (server->state != SERVER_RUNNING)
        return;
    begin(server);
    connections_sweep(server);
}

static void muster(struct exchange_server *server)
{
    if (server->options.muster_ms == 0 || server->status.steps > 0 || has_every_shard(server))
        begin(server);
    else if (!loop_timer_is_running(server->muster_timer))
        loop_timer_start(server->muster_timer, server->options.muster_ms);
}

int server_join(struct exchange_server *server, struct connection *connection,
                const struct exchange_join *join, struct error *error)
{
    if (join_check(server, connection, join, error) < 0)
        return -1;
    if (server->state != SERVER_RUNNING) {
        connection_send(connection,
                        &(struct exchange_message){.type = EXCHANGE_STOP,
                                                   .stop_reason = text_of(server->reason)});
        return 0;
    }
    if (connection->is_member)
        server_leave(server, connection);
    connection_reset(connection);
    connection->session = join->session;
    connection->join = *join;
    connection->is_joining = true;
    if (server->has_mustered)
        server_try(server, connection);
    else
        muster(server);
    return 0;
}

void server_try(struct exchange_server *server, struct connection *connection)
{
    struct error error;
    double square_sum = 0;
    if ((!connection->is_joining && !connection->is_whole) || connection->must_drop ||
        (connection->is_joining && (!server->has_mustered || !server_wants(server, connection))) ||
        !server_ranges_have(server, connection,
                            connection->is_joining ? 0 : connection->push.number, &square_sum))
        return;
    if (connection->is_joining) {
        if (server_admit(server, connection, &error) < 0)
            connection_mark(connection, &error);
        return;
    }
    connection->update_square_sum += square_sum;
    connection->is_whole = false;
    connection->is_waiting = true;
    server_push(server, connection);
}

double server_epochs(const struct exchange_server *server)
{
    const double size = dataset_samples(server);
    return size > 0 ? (double)server->status.samples / size : 0;
}

uint64_t server_samples_left(const struct exchange_server *server)
{
    const double all = (double)server->options.epochs * dataset_samples(server);
    if (all <= 0)
        return 0;
    const double left = all - (double)server->status.samples;
    const double share = left / server->options.world / EXCHANGE_SHARES;
    return share > 1 ? (uint64_t)share : 1;
}

/* What the push before took on its way there and back: the time it was held is not the link's. */
static int64_t commit_ns_of(const struct connection *connection)
{
    const int64_t measured_ns = connection->push.commit_ns;
    if (measured_ns <= connection->was_held_ns)
        return measured_ns > 0 ? 1 : 0;
    return measured_ns - connection->was_held_ns;
}

static void push_count(struct exchange_server *server, const struct connection *connection)
{
    const struct exchange_push *push = &connection->push;
    struct exchange_worker_status *worker = &server->workers[connection->worker];
    worker->commits++;
    worker->steps += push->steps;
    worker->samples += push->samples;
    worker->loss = push->loss;
    worker->codec = push->codec;
    if (push->commit_ns > 0)
        worker->commit_ms = 1e-6 * (double)commit_ns_of(connection);
    if (worker->steps_per_second <= 0 && push->compute_ns > 0)
        worker->steps_per_second = push->steps / (1e-9 * (double)push->compute_ns);
    server->status.commits++;
    server->status.counted_bytes += connection->push_bytes;
    server->status.steps += push->steps;
    server->status.samples += push->samples;
}

/* The settings go out with the policy's, or before the answer. */
static void choose_codec(struct exchange_server *server, struct connection *connection)
{
    const int64_t now_ns = server_now_ns(server);
    const struct chooser_push push = {
        .bytes = connection->push_bytes,
        .took_ns = connection->push_took_ns,
        .interval_ns = connection->last_push_ns > 0 ? now_ns - connection->last_push_ns : 0,
        .step_ns = connection->push.compute_ns / connection->push.steps,
        .is_hidden = connection->settings.overlap > 0,
    };
    connection->last_push_ns = now_ns;
    if (!server->options.compress.is_auto)
        return;
    enum codec codec = chooser_take(&connection->chooser, &push);
    if (server->options.verify > 0 && check_near(codec) < 0)
        codec = CODEC_INT8;
    if (codec == connection->settings.codec)
        return;
    connection->settings.codec = codec;
    connection_send(connection, &(struct exchange_message){.type = EXCHANGE_SETTINGS,
                                                           .settings = connection->settings});
}

/* A push that is far longer than is usual is shortened. */
static void push_bound(struct exchange_server *server, struct connection *connection)
{
    if (server->options.robust.kind == ROBUST_NONE)
        return;
    const float *whole = server->servers > 1 ? server->cut.newest.parameters
                                             : global_model_parameters(server->model);
    const double factor = robust_norms_take(
        &server->norms, connection->worker, connection->push.steps,
        sqrt(connection->update_square_sum), whole, server->options.parameter_count);
    if (factor >= 1)
        return;
    for (size_t i = 0; i < server->range.count; i++)
        connection->update.values[i] *= (float)factor;
    server_ranges_act(server, &(struct exchange_act){.kind = EXCHANGE_ACT_SCALE,
                                                     .worker = connection->worker,
                                                     .number = connection->push.number,
                                                     .weight = factor});
    server->workers[connection->worker].clipped++;
}

void server_push(struct exchange_server *server, struct connection *connection)
{
    if (server->state == SERVER_RUNNING)
        server_check_push(server, connection);
    push_bound(server, connection);
    push_count(server, connection);
    choose_codec(server, connection);
    if (server->state != SERVER_RUNNING) {
        connection->is_waiting = false;
        connection_send(connection,
                        &(struct exchange_message){.type = EXCHANGE_ACCEPTED,
                                                   .accepted_push = connection->push.number});
        return;
    }
    const struct sync_push push = {
        .worker = connection->worker,
        .steps = connection->push.steps,
        .samples = connection->push.samples,
        .compute_ns = connection->push.compute_ns,
        .commit_ns = commit_ns_of(connection),
        .loss = connection->push.loss,
    };
    if (server->options.on_push)
        server->options.on_push(server->options.context, connection->rank, connection->push.loss);
    sync_policy_push(server->policy, server_now_ns(server), &push, &server->actions);
    server_act(server);
    if (server->workers[connection->worker].commits <= CHANGES_SHOWN)
        server_changed(server);
    if (server->options.epochs > 0 && server_epochs(server) >= (double)server->options.epochs)
        server_end(server, EXCHANGE_END_EPOCHS, "%" PRIu64 " %s done", server->options.epochs,
                   server->options.epochs == 1 ? "epoch is" : "epochs are");
}

/* All that leaving is but for the policy. */
static void member_remove(struct exchange_server *server, struct connection *connection)
{
    ASSERT(connection->is_member);
    const uint32_t worker = connection->worker;
    connection->is_member = false;
    server->connection_of[worker] = NULL;
    server->member_count--;
    server_check_left(server, connection);
    server->workers[worker].is_member = false;
    server->workers[worker].steps_per_second = 0;
    robust_norms_forget(&server->norms, worker);
    if (server->member_count == 0)
        server->lonely_since_ns = server_now_ns(server);
}

void server_leave(struct exchange_server *server, struct connection *connection)
{
    const uint32_t worker = connection->worker;
    member_remove(server, connection);
    if (server->state == SERVER_RUNNING) {
        sync_policy_leave(server->policy, server_now_ns(server), worker, &server->actions);
        server_act(server);
    }
    server_ranges_act(server, &(struct exchange_act){.kind = EXCHANGE_ACT_PART, .worker = worker});
    if (server->state == SERVER_RUNNING)
        server_changed(server);
}

void server_part(struct exchange_server *server, struct connection *connection)
{
    const uint64_t session = connection->session;
    if (server_ranges_are_ready(server))
        server_leave(server, connection);
    else
        member_remove(server, connection);
    connection_reset(connection);
    connection->is_parted = true;
    connection_send(connection,
                    &(struct exchange_message){.type = EXCHANGE_AGAIN, .again_session = session});
}
