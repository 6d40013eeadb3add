/*
 * Exchange server, the links: frames in, frames out, and who is dropped.
 *
 * A connection is never freed while something above it on the stack may use it: mistakes mark it,
 * and connections_sweep, at the end of each callback, drops what is marked.
 */
#include "base/assert.h"
#include "exchange/peer_find.h"
#include "exchange/server_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void connection_free(struct connection *connection)
{
    list_remove(&connection->node);
    link_free(connection->link);
    global_model_release(connection->server->model, connection->update.values);
    free(connection->update.values);
    free(connection->answer.shadow);
    free(connection);
}

void connections_free(struct exchange_server *server)
{
    LIST_EACH(&server->connections, node)
    connection_free(LIST_ITEM(node, struct connection, node));
}

void connection_mark(struct connection *connection, const struct error *reason)
{
    if (connection->must_drop)
        return;
    connection->must_drop = true;
    connection->drop_reason = *reason;
}

static struct connection *marked_connection(struct exchange_server *server)
{
    LIST_EACH(&server->connections, node)
    {
        struct connection *connection = LIST_ITEM(node, struct connection, node);
        if (connection->must_drop)
            return connection;
    }
    return NULL;
}

void connections_sweep(struct exchange_server *server)
{
    /* A leave may release others, whose links may turn out broken: until none is marked. */
    for (;;) {
        server_ranges_sweep(server);
        struct connection *connection = marked_connection(server);
        if (!connection)
            return;
        const uint64_t lease = connection->lease;
        const struct error reason = connection->drop_reason;
        const bool is_drop = !connection->is_leaving;
        if (connection->is_member)
            server_leave(server, connection);
        connection_free(connection);
        if (is_drop && server->options.on_drop)
            server->options.on_drop(server->options.context, lease, &reason);
        server_connection_gone(server);
    }
}

void connection_send(struct connection *connection, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    if (connection->must_drop || connection->is_leaving)
        return;
    if (buffer_check(&payload, &error) < 0 ||
        link_send_text(connection->link, (uint16_t)message->type, buffer_text(&payload), &error) <
            0)
        connection_mark(connection, &error);
}

/* Queues DATA frames until the queue is full; on_drained goes on. */
static void answer_pump(struct connection *connection)
{
    struct exchange_server *server = connection->server;
    while (connection->answer.done < connection->answer.count && !connection->must_drop) {
        if (link_queued_bytes(connection->link) > EXCHANGE_QUEUE_FULL)
            return;
        struct vector_run run;
        struct error error;
        connection->answer.values =
            global_model_parameters_until(server->model, vector_send_until(&connection->answer));
        vector_send_next(&connection->answer, server->scratch, &run);
        const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
        server->status.sent_bytes += run.body.size;
        if (link_send(connection->link, EXCHANGE_DATA, parts, 2, &error) < 0)
            connection_mark(connection, &error);
    }
}

static void shadow_open(struct connection *connection)
{
    const size_t count = connection->server->range.count;
    /* Pushes that may be checked need it too: it is what they start from. */
    if ((connection->settings.codec != CODEC_F32 || connection->server->options.verify > 0) &&
        !connection->answer.shadow)
        connection->answer.shadow = calloc(count, sizeof(float));
}

/* Whole the first time a codec is wanted, and then by what has changed. */
static enum codec answer_codec(struct connection *connection)
{
    const enum codec wanted = connection->settings.codec;
    shadow_open(connection);
    const bool had_shadow = connection->has_shadow;
    connection->has_shadow =
        had_shadow || (wanted != CODEC_F32 && connection->answer.shadow != NULL);
    return had_shadow ? wanted : CODEC_F32;
}

/* How long the push that is answered now has been here whole. */
static int64_t whole_since_ns(const struct connection *connection)
{
    return server_now_ns(connection->server) - connection->push_came_ns - connection->push_took_ns;
}

void connection_send_model(struct connection *connection, uint64_t push)
{
    struct exchange_server *server = connection->server;
    ASSERT(connection->answer.done == connection->answer.count);
    const enum codec codec = answer_codec(connection);
    const size_t read_now = codec == CODEC_TOPK ? server->range.count : 0;
    vector_send_begin(&connection->answer, global_model_parameters_until(server->model, read_now),
                      server->range.count, codec, (double)connection->settings.density,
                      server->scratch);
    connection->is_waiting = false;
    connection_send(connection,
                    &(struct exchange_message){
                        .type = EXCHANGE_MODEL,
                        .model = {.term = server->options.term,
                                  .version = global_model_version(server->model),
                                  .push = push,
                                  .samples_max = server_samples_left(server),
                                  .codec = codec,
                                  .session = connection->session,
                                  .is_base = connection->has_shadow,
                                  .held_ns = push > 0 ? whole_since_ns(connection) : 0}});
    answer_pump(connection);
}

void connection_welcome(struct connection *connection)
{
    const struct exchange_server *server = connection->server;
    const bool is_offer = global_model_version(server->model) == 0;
    server_ranges_answer(connection->server, connection, 0, is_offer);
    if (!is_offer) {
        connection_send_model(connection, 0);
        return;
    }
    connection->is_offered = true;
    shadow_open(connection);
    if (connection->answer.shadow)
        memcpy(connection->answer.shadow, global_model_parameters(server->model),
               server->range.count * sizeof(float));
    connection->has_shadow = connection->answer.shadow != NULL;
    connection_send(connection,
                    &(struct exchange_message){.type = EXCHANGE_OFFER,
                                               .offer = {.term = server->options.term,
                                                         .digest = server->first_digest,
                                                         .samples_max = server_samples_left(server),
                                                         .session = connection->session,
                                                         .is_base = connection->has_shadow}});
}

/* It made its first model otherwise, or has trained before. */
static int take_want(struct connection *connection, struct error *error)
{
    if (connection->is_parted)
        return 0;
    if (!connection->is_offered)
        return error_set(error, ERROR_CORRUPT, "it wants what was not offered");
    connection->is_offered = connection->has_shadow = false;
    connection_send_model(connection, 0);
    return 0;
}

static int take_push(struct connection *connection, const struct exchange_push *push,
                     struct error *error)
{
    if (connection->is_parted)
        return 0;
    if (!connection->is_member || connection->is_pushing || connection->is_whole ||
        connection->is_waiting || connection->answer.done < connection->answer.count)
        return error_set(error, ERROR_CORRUPT, "a push out of turn");
    if (push->term != connection->server->options.term)
        return error_set(error, ERROR_REFUSED, "a push for another parameter server");
    connection->is_offered = false;
    if (server_check_is_fit(connection, push, error) < 0)
        return -1;
    connection->next_sample = push->first_sample + push->samples;
    connection->push = *push;
    connection->push_came_ns = server_now_ns(connection->server);
    connection->push_bytes = 0;
    connection->is_pushing = true;
    global_model_release(connection->server->model, connection->update.values);
    connection->update.codec = push->codec;
    connection->update.count = connection->server->range.count;
    connection->update.done = 0;
    if (push->codec == CODEC_F32)
        link_expect(connection->link, connection->update.count * sizeof(float));
    connection->update_square_sum = 0;
    return 0;
}

/* With `placed_size` the payload is only the run's index: that many bytes are in their place. */
static int take_data(struct connection *connection, struct text payload, size_t placed_size,
                     struct error *error)
{
    if (connection->is_parted)
        return 0;
    if (!connection->is_pushing)
        return error_set(error, ERROR_CORRUPT, "data without a push");
    const size_t done = connection->update.done;
    if ((placed_size > 0
             ? vector_take_placed(&connection->update, payload, placed_size, NULL, error)
             : vector_take(&connection->update, payload, connection->server->scratch, error)) < 0) {
        if (error->code == ERROR_INVALID)
            connection->server->workers[connection->worker].refused++;
        return -1;
    }
    /* While it is in the cache. */
    if (connection->server->options.robust.kind != ROBUST_NONE)
        connection->update_square_sum +=
            robust_square_sum(connection->update.values + done, connection->update.done - done);
    connection->push_bytes += payload.size + placed_size;
    connection->server->status.received_bytes += payload.size + placed_size;
    if (connection->update.done == connection->update.count) {
        connection->is_pushing = false;
        connection->is_whole = true;
        connection->push_took_ns = server_now_ns(connection->server) - connection->push_came_ns;
        server_try(connection->server, connection);
    }
    return 0;
}

static void take_progress(struct connection *connection, const struct exchange_progress *progress)
{
    if (connection->is_member && progress->steps_per_second >= 0)
        connection->server->workers[connection->worker].steps_per_second =
            progress->steps_per_second;
}

static int take_frame(struct connection *connection, uint16_t type, struct text payload,
                      struct error *error)
{
    if (type == EXCHANGE_DATA)
        return take_data(connection, payload, 0, error);
    if (type == EXCHANGE_CHECK_DATA)
        return server_check_data(connection, payload, error);
    struct exchange_message message;
    if (exchange_message_decode(type, payload, &message, error) < 0)
        return -1;
    switch (message.type) {
    case EXCHANGE_JOIN:
        return server_join(connection->server, connection, &message.join, error);
    case EXCHANGE_PUSH:
        return take_push(connection, &message.push, error);
    case EXCHANGE_PROGRESS:
        take_progress(connection, &message.progress);
        return 0;
    case EXCHANGE_WANT:
        return take_want(connection, error);
    case EXCHANGE_LEAVE:
        connection->is_leaving = true;
        if (message.has_diverged)
            server_worker_diverged(connection->server, connection);
        error_set(error, ERROR_UNAVAILABLE, "left");
        connection_mark(connection, error);
        return 0;
    case EXCHANGE_RECOMPUTED:
        return server_check_recomputed(connection, &message.recomputed, error);
    case EXCHANGE_RECOMPUTE:
    case EXCHANGE_CHECK_DATA:
    case EXCHANGE_DATA:
    case EXCHANGE_MODEL:
    case EXCHANGE_SETTINGS:
    case EXCHANGE_ACCEPTED:
    case EXCHANGE_STOP:
    case EXCHANGE_OFFER:
    case EXCHANGE_AGAIN:
    case EXCHANGE_SERVE:
    case EXCHANGE_ARRIVED:
    case EXCHANGE_GONE:
    case EXCHANGE_SERVED:
    case EXCHANGE_STATE:
    case EXCHANGE_ACT:
        break;
    }
    return error_set(error, ERROR_CORRUPT, "a message that only a server sends");
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct connection *connection = context;
    struct exchange_server *server = connection->server;
    struct error error;
    connection->last_frame_ns = server_now_ns(server);
    if (!connection->must_drop && take_frame(connection, type, payload, &error) < 0)
        connection_mark(connection, &error);
    connections_sweep(server);
}

static void *find_place(struct link *link, uint16_t type, size_t size, void *context)
{
    (void)link;
    const struct connection *connection = context;
    return type == EXCHANGE_DATA && connection->is_pushing ? vector_place(&connection->update, size)
                                                           : NULL;
}

static void on_placed(struct link *link, uint16_t type, struct text head, struct text body,
                      void *context)
{
    (void)link, (void)type;
    struct connection *connection = context;
    struct exchange_server *server = connection->server;
    struct error error;
    connection->last_frame_ns = server_now_ns(server);
    if (!connection->must_drop && take_data(connection, head, body.size, &error) < 0)
        connection_mark(connection, &error);
    connections_sweep(server);
}

/* Sets the lease and fence that `identity` names. */
static int find_other(const struct connection *connection, struct text identity,
                      struct found_peer *out_found, struct error *error)
{
    return peer_find(connection->server->options.find_peer, connection->server->options.context,
                     PEER_WORKER, identity, out_found, error);
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link;
    struct connection *connection = context;
    struct found_peer found;
    struct error error;
    connection->last_frame_ns = server_now_ns(connection->server);
    if (find_other(connection, identity, &found, &error) < 0) {
        connection_mark(connection, &error);
    } else {
        connection->lease = found.lease;
        connection->fence = found.fence;
        connection->rank = found.rank;
    }
    connections_sweep(connection->server);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct connection *connection = context;
    struct error gone;
    error_set(&gone, ERROR_UNAVAILABLE, "the worker closed its link");
    connection_mark(connection, reason ? reason : &gone);
    connections_sweep(connection->server);
}

static void on_drained(struct link *link, void *context)
{
    (void)link;
    struct connection *connection = context;
    answer_pump(connection);
    server_check_pump(connection);
    connections_sweep(connection->server);
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

int exchange_server_attach_take(struct exchange_server *server, int fd, struct error *error)
{
    const size_t size = server->range.count * sizeof(float);
    struct connection *connection = calloc(1, sizeof *connection);
    ASSERT(connection);
    connection->server = server;
    connection->opened_ns = connection->last_frame_ns = server_now_ns(server);
    connection->update.values = malloc(size);
    const struct link_options options = {
        .loop = server->options.loop,
        .is_server = true,
        .find_key = find_key,
        .payload_max = EXCHANGE_PAYLOAD_MAX,
        .queue_max_bytes = EXCHANGE_QUEUE_MAX,
        .queue_low_bytes = EXCHANGE_QUEUE_FULL,
        .is_bulk = !server->options.is_bench_tls,
        .is_bench_plain = server->options.is_bench_plain,
        .callbacks = {on_open, on_frame, on_close, on_drained, find_place, on_placed},
        .context = connection,
    };
    int result = -1;
    if (!connection->update.values)
        error_set(error, ERROR_EXHAUSTED, "no memory for one more worker");
    else
        result = link_open_take(&options, fd, &connection->link, error);
    if (result < 0) {
        connection_free(connection);
        return -1;
    }
    list_append(&server->connections, &connection->node);
    return 0;
}
