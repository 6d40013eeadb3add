/* Range server: the links to workers. */
#include "base/assert.h"
#include "exchange/peer_find.h"
#include "exchange/range_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Members --------------------------------------------------------------------------------- */

static void member_free(struct range_member *member)
{
    if (member->server->model)
        global_model_release(member->server->model, member->update.values);
    if (member->link)
        member->link->member = NULL;
    free(member->update.values);
    free(member);
}

void range_member_part(struct range_member *member)
{
    member->server->member_of[member->worker] = NULL;
    member_free(member);
}

void range_members_part(struct range_server *server)
{
    for (uint32_t worker = 0; worker < EXCHANGE_WORKERS_MAX; worker++)
        if (server->member_of[worker])
            range_member_part(server->member_of[worker]);
}

/* The link is lost, or the worker joins again: an admitted one stays until it is parted from. */
static void member_leave(struct range_member *member)
{
    if (!member->is_admitted) {
        member_free(member);
        return;
    }
    member->link->member = NULL;
    member->link = NULL;
    if (!member->is_pushing)
        return;
    member->is_pushing = false; /* the rest will not come */
    member->push = 0;
}

static void arrived_tell(const struct range_member *member)
{
    const struct exchange_arrived arrived = {
        .rank = member->rank,
        .lease = member->lease,
        .fence = member->fence,
        .session = member->session,
        .push = member->push,
        .square_sum = member->square_sum,
    };
    if (range_server_is_ready(member->server))
        range_lead_send(member->server,
                        &(struct exchange_message){.type = EXCHANGE_ARRIVED, .arrived = arrived});
}

void range_members_tell(struct range_server *server)
{
    LIST_EACH(&server->links, node)
    {
        const struct range_link *link = LIST_ITEM(node, struct range_link, node);
        if (link->member && !link->member->is_admitted)
            arrived_tell(link->member);
    }
}

/* ---- Out ------------------------------------------------------------------------------------- */

static void link_mark(struct range_link *link, const struct error *reason)
{
    if (link->must_drop)
        return;
    link->must_drop = true;
    link->drop_reason = *reason;
}

static void message_send(struct range_link *link, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    if (link->must_drop)
        return;
    if (buffer_check(&payload, &error) < 0 ||
        link_send_text(link->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        link_mark(link, &error);
}

static void answer_pump(struct range_link *link)
{
    struct range_server *server = link->server;
    while (link->answer.done < link->answer.count && server->model && !link->must_drop) {
        if (link_queued_bytes(link->link) > EXCHANGE_QUEUE_FULL)
            return;
        struct vector_run run;
        struct error error;
        link->answer.values =
            global_model_parameters_until(server->model, vector_send_until(&link->answer));
        vector_send_next(&link->answer, server->scratch, &run);
        const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
        server->served.sent_bytes += run.body.size;
        if (link_send(link->link, EXCHANGE_DATA, parts, 2, &error) < 0)
            link_mark(link, &error);
    }
}

static void shadow_open(struct range_link *link)
{
    if (link->wanted != CODEC_F32 && !link->answer.shadow)
        link->answer.shadow = calloc(link->server->range.count, sizeof(float));
}

static void model_send(struct range_link *link, uint64_t push)
{
    struct range_server *server = link->server;
    const size_t count = server->range.count;
    shadow_open(link);
    const enum codec codec = link->has_shadow ? link->wanted : CODEC_F32;
    link->has_shadow = link->has_shadow || (link->wanted != CODEC_F32 && link->answer.shadow);
    const size_t read_now = codec == CODEC_TOPK ? count : 0;
    vector_send_begin(&link->answer, global_model_parameters_until(server->model, read_now), count,
                      codec, (double)link->density, server->scratch);
    message_send(
        link,
        &(struct exchange_message){
            .type = EXCHANGE_MODEL,
            .model = {.term = server->options.fence,
                      .version = global_model_version(server->model),
                      .push = push,
                      .codec = codec,
                      .session = link->member->session,
                      .is_base = link->has_shadow,
                      .held_ns = push > 0 ? range_now_ns(server) - link->member->whole_ns : 0}});
    answer_pump(link);
}

static void offer_send(struct range_link *link)
{
    const struct range_server *server = link->server;
    const float *parameters = global_model_parameters(server->model);
    const size_t count = server->range.count;
    link->is_offered = true;
    shadow_open(link);
    if (link->answer.shadow)
        memcpy(link->answer.shadow, parameters, count * sizeof(float));
    link->has_shadow = link->answer.shadow != NULL;
    message_send(link,
                 &(struct exchange_message){.type = EXCHANGE_OFFER,
                                            .offer = {.term = server->options.fence,
                                                      .digest = vector_digest(parameters, count),
                                                      .session = link->member->session,
                                                      .is_base = link->has_shadow}});
}

void range_answer(struct range_member *member, const struct exchange_act *act)
{
    struct range_link *link = member->link;
    member->is_whole = false;
    if (!link)
        return; /* it joins again */
    link->wanted = act->codec;
    link->density = act->density;
    if (act->is_offer)
        offer_send(link);
    else
        model_send(link, act->number);
}

/* ---- In -------------------------------------------------------------------------------------- */

static int take_join(struct range_link *link, const struct exchange_join *join, struct error *error)
{
    struct range_server *server = link->server;
    const struct range_server_options *options = &server->options;
    if (link->member && join->session <= link->member->session)
        return error_set(error, ERROR_CORRUPT, "a second join");
    if (join->parameter_count != options->parameter_count || join->servers != options->servers ||
        join->server != options->server)
        return error_set(error, ERROR_INVALID, "it joins another model, or another range");
    if (join->rank != link->rank || join->rank >= EXCHANGE_WORKERS_MAX)
        return error_set(error, ERROR_REFUSED, "rank %" PRIu32 " is not its own", join->rank);
    if (join->term != options->fence)
        return error_set(error, ERROR_REFUSED, "it joins another parameter server");
    LIST_EACH(&server->links, node)
    {
        struct range_link *other = LIST_ITEM(node, struct range_link, node);
        struct error replaced;
        error_set(&replaced, ERROR_CONFLICT,
                  "the worker came back on a new link, or its successor");
        if (other != link && other->member && other->rank == link->rank)
            link_mark(other, &replaced);
    }
    if (link->member)
        member_leave(link->member);
    link->answer.done = link->answer.count;
    link->has_shadow = link->is_offered = false;
    struct range_member *member = calloc(1, sizeof *member);
    ASSERT(member);
    *member = (struct range_member){.server = server,
                                    .link = link,
                                    .rank = link->rank,
                                    .lease = link->lease,
                                    .fence = link->fence,
                                    .session = join->session};
    link->member = member;
    arrived_tell(member);
    return 0;
}

static int take_push(struct range_link *link, const struct exchange_push *push, struct error *error)
{
    struct range_member *member = link->member;
    const size_t count = link->server->range.count;
    /* The lead may have parted from it, and it does not know yet. */
    if (!member || !member->is_admitted)
        return 0;
    if (member->is_pushing || member->is_whole || push->number <= member->push ||
        link->answer.done < link->answer.count)
        return error_set(error, ERROR_CORRUPT, "a push out of turn");
    if (push->term != link->server->options.fence)
        return error_set(error, ERROR_REFUSED, "a push for another parameter server");
    if (!member->update.values)
        member->update.values = malloc(count * sizeof(float));
    if (!member->update.values)
        return error_set(error, ERROR_EXHAUSTED, "no memory for one more worker");
    link->is_offered = false;
    if (link->server->model)
        global_model_release(link->server->model, member->update.values);
    member->push = push->number;
    member->is_pushing = true;
    member->square_sum = 0;
    member->update.codec = push->codec;
    member->update.count = count;
    member->update.done = 0;
    return 0;
}

static int take_data(struct range_link *link, struct text payload, struct error *error)
{
    struct range_member *member = link->member;
    struct range_server *server = link->server;
    if (!member || !member->is_admitted)
        return 0;
    if (!member->is_pushing)
        return error_set(error, ERROR_CORRUPT, "data without a push");
    const size_t done = member->update.done;
    if (vector_take(&member->update, payload, server->scratch, error) < 0) {
        link->is_refused = error->code == ERROR_INVALID;
        return -1;
    }
    if (server->options.robust.kind != ROBUST_NONE)
        member->square_sum +=
            robust_square_sum(member->update.values + done, member->update.done - done);
    server->served.received_bytes += payload.size;
    if (member->update.done < member->update.count)
        return 0;
    member->is_pushing = false;
    member->is_whole = true;
    member->whole_ns = range_now_ns(server);
    arrived_tell(member);
    return 0;
}

static int take_want(struct range_link *link, struct error *error)
{
    if (!link->member || !link->member->is_admitted)
        return 0;
    if (!link->is_offered)
        return error_set(error, ERROR_CORRUPT, "it wants what was not offered");
    link->is_offered = link->has_shadow = false;
    model_send(link, 0);
    return 0;
}

static int take_frame(struct range_link *link, uint16_t type, struct text payload,
                      struct error *error)
{
    struct exchange_message message;
    if (type == EXCHANGE_DATA)
        return take_data(link, payload, error);
    if (exchange_message_decode(type, payload, &message, error) < 0)
        return -1;
    if (message.type == EXCHANGE_JOIN)
        return take_join(link, &message.join, error);
    if (message.type == EXCHANGE_PUSH)
        return take_push(link, &message.push, error);
    if (message.type == EXCHANGE_WANT)
        return take_want(link, error);
    if (message.type == EXCHANGE_PROGRESS)
        return 0; /* it lives */
    return error_set(error, ERROR_CORRUPT,
                     "a message that no worker sends to the server of a range");
}

/* ---- Links ----------------------------------------------------------------------------------- */

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct range_link *worker = context;
    struct error error;
    worker->last_frame_ns = range_now_ns(worker->server);
    if (!worker->must_drop && take_frame(worker, type, payload, &error) < 0)
        link_mark(worker, &error);
    range_server_sweep(worker->server);
}

static int find_other(const struct range_link *worker, struct text identity,
                      struct found_peer *out_found, struct error *error)
{
    return peer_find(worker->server->options.find_peer, worker->server->options.context,
                     PEER_WORKER, identity, out_found, error);
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link;
    struct range_link *worker = context;
    struct found_peer found;
    struct error error;
    worker->last_frame_ns = range_now_ns(worker->server);
    if (find_other(worker, identity, &found, &error) < 0) {
        link_mark(worker, &error);
    } else {
        worker->lease = found.lease;
        worker->fence = found.fence;
        worker->rank = found.rank;
    }
    range_server_sweep(worker->server);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct range_link *worker = context;
    struct error gone;
    error_set(&gone, ERROR_UNAVAILABLE, "the worker closed its link");
    link_mark(worker, reason ? reason : &gone);
    range_server_sweep(worker->server);
}

static void on_drained(struct link *link, void *context)
{
    (void)link;
    struct range_link *worker = context;
    answer_pump(worker);
    range_server_sweep(worker->server);
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

int range_server_attach_take(struct range_server *server, int fd, struct error *error)
{
    struct range_link *worker = calloc(1, sizeof *worker);
    ASSERT(worker);
    worker->server = server;
    worker->last_frame_ns = range_now_ns(server);
    const struct link_options options = {
        .loop = server->options.loop,
        .is_server = true,
        .find_key = find_key,
        .payload_max = EXCHANGE_PAYLOAD_MAX,
        .queue_max_bytes = EXCHANGE_QUEUE_MAX,
        .queue_low_bytes = EXCHANGE_QUEUE_FULL,
        .is_bulk = true,
        .callbacks = {on_open, on_frame, on_close, on_drained},
        .context = worker,
    };
    if (link_open_take(&options, fd, &worker->link, error) < 0) {
        free(worker);
        return -1;
    }
    list_append(&server->links, &worker->node);
    return 0;
}

static void link_close(struct range_link *link)
{
    if (link->member)
        member_leave(link->member);
    list_remove(&link->node);
    link_free(link->link);
    free(link->answer.shadow);
    free(link);
}

static void link_drop(struct range_link *link)
{
    struct range_server *server = link->server;
    const struct range_member *member = link->member;
    const uint64_t lease = link->lease;
    const struct error reason = link->drop_reason;
    if (member && range_server_is_ready(server))
        range_lead_send(server,
                        &(struct exchange_message){.type = EXCHANGE_GONE,
                                                   .gone = {.rank = member->rank,
                                                            .lease = member->lease,
                                                            .fence = member->fence,
                                                            .session = member->session,
                                                            .is_refused = link->is_refused}});
    link_close(link);
    /* At the end workers leave the lead alone with a word. */
    if (server->options.on_drop && !server->is_ending)
        server->options.on_drop(server->options.context, lease, &reason);
}

void range_links_sweep(struct range_server *server)
{
    /* Once is enough: dropping one sends to the lead alone. */
    LIST_EACH(&server->links, node)
    {
        struct range_link *link = LIST_ITEM(node, struct range_link, node);
        if (link->must_drop)
            link_drop(link);
    }
}

void range_links_house(struct range_server *server, int64_t now_ns, bool was_asleep)
{
    LIST_EACH(&server->links, node)
    {
        struct range_link *link = LIST_ITEM(node, struct range_link, node);
        const int64_t silent_ns = now_ns - link->last_frame_ns;
        struct error error;
        if (was_asleep)
            link->last_frame_ns = now_ns;
        if (was_asleep || silent_ns <= server->options.silent_ms * 1000000)
            continue;
        error_set(&error, ERROR_UNAVAILABLE, "silent for %" PRId64 " ms", silent_ns / 1000000);
        link_mark(link, &error);
    }
}

void range_links_free(struct range_server *server)
{
    LIST_EACH(&server->links, node)
    link_close(LIST_ITEM(node, struct range_link, node));
    range_members_part(server);
}
