/*
 * Exchange server, the other ranges: the links to their servers and to the replica.
 *
 * While one of them is not there nobody is a member: no act is ever missed. As with connections,
 * mistakes mark a peer, and the sweep at the end of each callback drops it.
 */
#include "base/assert.h"
#include "exchange/peer_find.h"
#include "exchange/server_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Acts have room beside the state that is on its way. */
enum {
    QUEUE_MAX = EXCHANGE_QUEUE_MAX + (1 << 20),
    PART_SILENCES = 5, /* a narrow line may take so many times longer than a sign of life */
};

/* ---- Acts ------------------------------------------------------------------------------------ */

void range_peer_mark(struct range_peer *peer, const struct error *reason)
{
    if (peer->must_drop)
        return;
    peer->must_drop = true;
    peer->drop_reason = *reason;
}

void range_peer_send(struct range_peer *peer, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    if (peer->must_drop)
        return;
    if (buffer_check(&payload, &error) < 0 ||
        link_send_text(peer->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        range_peer_mark(peer, &error);
}

bool server_ranges_are_ready(const struct exchange_server *server)
{
    bool is_ready = true;
    for (uint32_t rank = 1; rank < server->servers; rank++)
        is_ready = is_ready && server->ranges[rank].is_ready;
    return is_ready;
}

void server_ranges_act(struct exchange_server *server, const struct exchange_act *act)
{
    const struct exchange_message message = {.type = EXCHANGE_ACT, .act = *act};
    for (uint32_t rank = 1; rank < server->servers; rank++)
        if (server->ranges[rank].is_ready)
            range_peer_send(server->ranges[rank].peer, &message);
}

void server_ranges_do(struct exchange_server *server, const struct sync_action *action)
{
    if (server->servers == 1)
        return;
    struct exchange_act act = {.worker = action->worker};
    const bool is_apply = action->kind == SYNC_APPLY;
    if (is_apply || action->kind == SYNC_GATHER) {
        act.kind = is_apply ? EXCHANGE_ACT_APPLY : EXCHANGE_ACT_GATHER;
        act.number = server->connection_of[action->worker]->push.number;
        act.weight = action->weight;
    } else if (action->kind == SYNC_FOLD) {
        act.kind = EXCHANGE_ACT_FOLD;
        act.weight = action->weight;
    } else {
        ASSERT(action->kind == SYNC_KEEP || action->kind == SYNC_RETURN);
        act.kind = action->kind == SYNC_KEEP ? EXCHANGE_ACT_KEEP : EXCHANGE_ACT_RETURN;
    }
    if (is_apply || action->kind == SYNC_FOLD) {
        act.rate = action->outer.rate;
        act.momentum = action->outer.momentum;
        act.direct = action->outer.direct;
        act.carried = action->outer.carried;
    }
    server_ranges_act(server, &act);
}

void server_ranges_answer(struct exchange_server *server, const struct connection *connection,
                          uint64_t push, bool is_offer)
{
    server_ranges_act(server, &(struct exchange_act){.kind = EXCHANGE_ACT_ANSWER,
                                                     .worker = connection->worker,
                                                     .number = push,
                                                     .codec = connection->settings.codec,
                                                     .density = connection->settings.density,
                                                     .is_offer = is_offer});
}

bool server_ranges_have(const struct exchange_server *server, const struct connection *connection,
                        uint64_t push, double *out_square_sum)
{
    double sum = 0;
    for (uint32_t rank = 1; rank < server->servers; rank++) {
        const struct server_range *range = &server->ranges[rank];
        if (!range->is_ready)
            return false;
        const struct exchange_arrived *arrived = &range->arrived[connection->rank];
        if (arrived->lease != connection->lease || arrived->fence != connection->fence ||
            arrived->session != connection->session || arrived->push != push)
            return false;
        sum += arrived->square_sum;
    }
    *out_square_sum = sum;
    return true;
}

void server_ranges_stop(struct exchange_server *server)
{
    const struct exchange_message stop = {.type = EXCHANGE_STOP,
                                          .stop_reason = text_of(server->reason)};
    for (uint32_t rank = 1; rank <= server->servers; rank++)
        if (server->ranges[rank].peer)
            range_peer_send(server->ranges[rank].peer, &stop);
}

/* ---- State out ------------------------------------------------------------------------------- */

/* The whole of it is queued. */
static void state_sent(struct range_peer *peer)
{
    struct exchange_server *server = peer->server;
    struct server_range *range = &server->ranges[peer->rank];
    if (peer->rank == server->servers) {
        server_cut_replica_ready(server);
        return;
    }
    range->is_ready = true;
    if (!server_ranges_are_ready(server))
        return;
    server_cut_ready(server);
    /* Joins that waited for it are looked at as it tells of them. */
}

static void state_pump(struct range_peer *peer)
{
    if (!peer->outgoing.values)
        return;
    while (!peer->must_drop) {
        if (peer->outgoing.done == peer->outgoing.count) {
            if (!peer->next_momentum)
                break;
            vector_send_begin(&peer->outgoing, peer->next_momentum, peer->outgoing.count, CODEC_F32,
                              1, peer->server->scratch);
            peer->next_momentum = NULL;
        }
        if (link_queued_bytes(peer->link) > EXCHANGE_QUEUE_FULL)
            return;
        struct vector_run run;
        struct error error;
        vector_send_next(&peer->outgoing, peer->server->scratch, &run);
        const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
        if (link_send(peer->link, EXCHANGE_DATA, parts, 2, &error) < 0)
            range_peer_mark(peer, &error);
    }
    if (peer->must_drop)
        return;
    peer->outgoing = (struct vector_sender){0};
    state_sent(peer);
}

void range_peer_send_state(struct range_peer *peer, const struct exchange_state *state,
                           const float *parameters, const float *momentum, size_t count)
{
    struct exchange_state told = *state;
    told.has_momentum = momentum != NULL;
    range_peer_send(peer, &(struct exchange_message){.type = EXCHANGE_STATE, .state = told});
    vector_send_begin(&peer->outgoing, parameters, count, CODEC_F32, 1, peer->server->scratch);
    peer->next_momentum = momentum;
    state_pump(peer);
}

/* ---- Frames in ------------------------------------------------------------------------------- */

static int take_serve(struct range_peer *peer, const struct exchange_serve *serve,
                      struct error *error)
{
    struct exchange_server *server = peer->server;
    const bool is_replica = peer->rank >= server->servers;
    const uint32_t index = is_replica ? server->servers : peer->rank;
    struct server_range *range = &server->ranges[index];
    if (range->peer == peer)
        return error_set(error, ERROR_CORRUPT, "it serves already");
    if (serve->servers != server->servers || serve->server != index ||
        serve->parameter_count != server->options.parameter_count)
        return error_set(error, ERROR_INVALID, "it serves another model, or another range");
    if (serve->term != server->options.term)
        return error_set(error, ERROR_REFUSED, "it serves another parameter server");
    if (range->peer) {
        struct error replaced;
        error_set(&replaced, ERROR_CONFLICT, "another took its place");
        range_peer_mark(range->peer, &replaced);
        server_ranges_sweep(server);
    }
    if (!is_replica && !range->arrived)
        range->arrived = calloc(EXCHANGE_WORKERS_MAX, sizeof *range->arrived);
    ASSERT(is_replica || range->arrived);
    if (!is_replica)
        memset(range->arrived, 0, EXCHANGE_WORKERS_MAX * sizeof *range->arrived);
    range->peer = peer;
    peer->rank = index;
    range->served = (struct exchange_served){0};
    if (is_replica) {
        server_cut_replica_changed(server);
        return 0;
    }
    const struct server_copy *newest = &server->cut.newest;
    const struct range part = range_of(server->options.parameter_count, server->servers, index);
    range_peer_send_state(peer, &newest->state, newest->parameters + part.first,
                          newest->state.has_momentum ? newest->momentum + part.first : NULL,
                          part.count);
    return 0;
}

static struct connection *connection_find(struct exchange_server *server, uint64_t lease,
                                          uint64_t fence, uint64_t session)
{
    LIST_EACH(&server->connections, node)
    {
        struct connection *connection = LIST_ITEM(node, struct connection, node);
        if (connection->lease == lease && connection->fence == fence &&
            connection->session == session && !connection->must_drop)
            return connection;
    }
    return NULL;
}

static int take_arrived(struct range_peer *peer, const struct exchange_arrived *arrived,
                        struct error *error)
{
    struct exchange_server *server = peer->server;
    if (arrived->rank >= EXCHANGE_WORKERS_MAX)
        return error_set(error, ERROR_CORRUPT, "a worker of no rank");
    server->ranges[peer->rank].arrived[arrived->rank] = *arrived;
    struct connection *connection =
        connection_find(server, arrived->lease, arrived->fence, arrived->session);
    if (connection)
        server_try(server, connection);
    return 0;
}

static int take_gone(struct range_peer *peer, const struct exchange_gone *gone, struct error *error)
{
    struct exchange_server *server = peer->server;
    if (gone->rank >= EXCHANGE_WORKERS_MAX)
        return error_set(error, ERROR_CORRUPT, "a worker of no rank");
    struct exchange_arrived *arrived = &server->ranges[peer->rank].arrived[gone->rank];
    if (arrived->lease == gone->lease && arrived->fence == gone->fence &&
        arrived->session == gone->session)
        *arrived = (struct exchange_arrived){0};
    struct connection *connection =
        connection_find(server, gone->lease, gone->fence, gone->session);
    if (!connection || !connection->is_member)
        return 0;
    if (gone->is_refused) {
        struct error refused;
        server->workers[connection->worker].refused++;
        error_set(&refused, ERROR_INVALID, "data: a value is not finite, or as good as");
        connection_mark(connection, &refused);
        return 0;
    }
    server_part(server, connection);
    return 0;
}

static void take_served(struct range_peer *peer, const struct exchange_served *served)
{
    struct exchange_served *before = &peer->server->ranges[peer->rank].served;
    struct exchange_status *status = &peer->server->status;
    if (served->received_bytes > before->received_bytes)
        status->received_bytes += served->received_bytes - before->received_bytes;
    if (served->sent_bytes > before->sent_bytes)
        status->sent_bytes += served->sent_bytes - before->sent_bytes;
    *before = *served;
}

static int take_frame(struct range_peer *peer, uint16_t type, struct text payload,
                      struct error *error)
{
    const bool is_range =
        peer->rank < peer->server->servers && peer->server->ranges[peer->rank].peer == peer;
    struct exchange_message message;
    if (type == EXCHANGE_DATA && is_range)
        return server_cut_data(peer, payload, error);
    if (exchange_message_decode(type, payload, &message, error) < 0)
        return -1;
    if (message.type == EXCHANGE_SERVE)
        return take_serve(peer, &message.serve, error);
    if (message.type == EXCHANGE_SERVED) {
        if (is_range)
            take_served(peer, &message.served);
        return 0; /* of a replica it only says that it lives */
    }
    if (is_range && message.type == EXCHANGE_ARRIVED)
        return take_arrived(peer, &message.arrived, error);
    if (is_range && message.type == EXCHANGE_GONE)
        return take_gone(peer, &message.gone, error);
    if (is_range && message.type == EXCHANGE_STATE) {
        server_cut_state(peer, &message.state);
        return 0;
    }
    return error_set(error, ERROR_CORRUPT, "a message that no server of a range sends");
}

/* ---- Links ----------------------------------------------------------------------------------- */

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct range_peer *peer = context;
    struct error error;
    peer->last_frame_ns = server_now_ns(peer->server);
    if (!peer->must_drop && take_frame(peer, type, payload, &error) < 0)
        range_peer_mark(peer, &error);
    connections_sweep(peer->server);
}

static int find_other(const struct range_peer *peer, struct text identity,
                      struct found_peer *out_found, struct error *error)
{
    return peer_find(peer->server->options.find_peer, peer->server->options.context, PEER_SERVER,
                     identity, out_found, error);
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link;
    struct range_peer *peer = context;
    struct found_peer found;
    struct error error;
    peer->last_frame_ns = server_now_ns(peer->server);
    if (find_other(peer, identity, &found, &error) < 0) {
        range_peer_mark(peer, &error);
    } else {
        peer->lease = found.lease;
        peer->fence = found.fence;
        peer->rank = found.rank;
    }
    connections_sweep(peer->server);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct range_peer *peer = context;
    struct error gone;
    error_set(&gone, ERROR_UNAVAILABLE, "the parameter server closed its link");
    range_peer_mark(peer, reason ? reason : &gone);
    connections_sweep(peer->server);
}

static void on_drained(struct link *link, void *context)
{
    (void)link;
    struct range_peer *peer = context;
    state_pump(peer);
    connections_sweep(peer->server);
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    struct found_peer found;
    struct error error;
    if (find_other(context, identity, &found, &error) < 0)
        return -1;
    memcpy(out_key, found.key, LINK_KEY_SIZE);
    return 0;
}

int exchange_server_attach_range_take(struct exchange_server *server, int fd, struct error *error)
{
    struct range_peer *peer = calloc(1, sizeof *peer);
    ASSERT(peer);
    peer->server = server;
    peer->last_frame_ns = server_now_ns(server);
    const struct link_options options = {
        .loop = server->options.loop,
        .is_server = true,
        .find_key = find_key,
        .payload_max = EXCHANGE_PAYLOAD_MAX,
        .queue_max_bytes = QUEUE_MAX,
        .queue_low_bytes = EXCHANGE_QUEUE_FULL,
        .is_bulk = true,
        .callbacks = {on_open, on_frame, on_close, on_drained},
        .context = peer,
    };
    if (link_open_take(&options, fd, &peer->link, error) < 0) {
        free(peer);
        return -1;
    }
    list_append(&server->range_peers, &peer->node);
    return 0;
}

static void peer_free(struct range_peer *peer)
{
    list_remove(&peer->node);
    link_free(peer->link);
    free(peer);
}

static struct range_peer *marked_peer(struct exchange_server *server)
{
    LIST_EACH(&server->range_peers, node)
    {
        struct range_peer *peer = LIST_ITEM(node, struct range_peer, node);
        if (peer->must_drop)
            return peer;
    }
    return NULL;
}

static void peer_drop(struct exchange_server *server, struct range_peer *peer)
{
    const uint64_t lease = peer->lease;
    const struct error reason = peer->drop_reason;
    struct server_range *range = NULL;
    for (uint32_t rank = 1; rank <= server->servers; rank++)
        if (server->ranges[rank].peer == peer)
            range = &server->ranges[rank];
    const bool was_ready = range && range->is_ready;
    peer_free(peer);
    if (range) {
        range->peer = NULL;
        range->is_ready = false;
    }
    if (range == &server->ranges[server->servers])
        server_cut_replica_changed(server);
    if (was_ready) {
        server_cut_lost(server);
        if (server->state == SERVER_RUNNING)
            server_begin_anew(server);
    }
    if (server->options.on_drop)
        server->options.on_drop(server->options.context, lease, &reason);
    server_connection_gone(server);
}

void server_ranges_sweep(struct exchange_server *server)
{
    /* Dropping one sends to others, whose links may turn out broken. */
    for (struct range_peer *peer; (peer = marked_peer(server));)
        peer_drop(server, peer);
}

/* A server that keeps its range to itself would hold the job, and be paid for it. */
static bool is_lost(const struct range_peer *peer, int64_t now_ns, struct error *reason)
{
    const int64_t silent_ns = peer->server->options.silent_ms * 1000000;
    const int64_t since_ns = now_ns - peer->last_frame_ns;
    const int64_t owed_ns = server_cut_owed_ns(peer, now_ns);
    if (since_ns > silent_ns)
        error_set(reason, ERROR_UNAVAILABLE, "silent for %" PRId64 " ms", since_ns / 1000000);
    else if (owed_ns > PART_SILENCES * silent_ns)
        error_set(reason, ERROR_UNAVAILABLE, "sends nothing of its range for %" PRId64 " ms",
                  owed_ns / 1000000);
    return since_ns > silent_ns || owed_ns > PART_SILENCES * silent_ns;
}

void server_ranges_house(struct exchange_server *server, int64_t now_ns, bool was_asleep)
{
    LIST_EACH(&server->range_peers, node)
    {
        struct range_peer *peer = LIST_ITEM(node, struct range_peer, node);
        struct error reason;
        if (was_asleep)
            peer->last_frame_ns = peer->part_ns = now_ns;
        if (is_lost(peer, now_ns, &reason))
            range_peer_mark(peer, &reason);
    }
}

void server_ranges_free(struct exchange_server *server)
{
    LIST_EACH(&server->range_peers, node)
    peer_free(LIST_ITEM(node, struct range_peer, node));
    for (uint32_t rank = 1; rank <= server->servers; rank++)
        free(server->ranges[rank].arrived);
}
