/*
 * Exchange server, cuts: the whole model at one point of the acts, gathered from all ranges.
 *
 * The lead copies its own range and has the others copy theirs by an act, so that all are of the
 * same moment; while the parts come, training goes on. Measurements, checkpoints, the successor of
 * a range's server and the replica have the newest whole one. It is renewed each second while the
 * model changes, unless gathering takes more than a tenth of the time, and at once for a
 * measurement. The replica is sent it likewise, for at most a quarter of the time.
 */
#include "base/assert.h"
#include "exchange/server_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CUT_MS = 1000, CUT_SHARE = 10, REPLICA_SHARE = 4 };

/* ---- Copies ---------------------------------------------------------------------------------- */

static int copy_open(struct server_copy *copy, size_t count, struct error *error)
{
    if (copy->parameters)
        return 0;
    copy->parameters = calloc(count, sizeof(float));
    copy->momentum = calloc(count, sizeof(float));
    if (!copy->parameters || !copy->momentum)
        return error_set(error, ERROR_EXHAUSTED, "no memory for a copy of %zu parameters", count);
    return 0;
}

static void copy_free(struct server_copy *copy)
{
    free(copy->parameters);
    free(copy->momentum);
}

/* The lead's own range, as it is now. */
static void copy_begin(struct exchange_server *server, struct server_copy *copy, uint64_t number)
{
    const size_t size = server->range.count * sizeof(float);
    copy->at_ns = server_now_ns(server);
    copy->state = (struct exchange_state){
        .cut = number,
        .version = global_model_version(server->model),
        .steps = server->status.steps,
        .samples = server->status.samples,
        .elapsed_ms = server_elapsed_ms(server),
        .has_momentum = global_model_has_momentum(server->model),
    };
    memcpy(copy->parameters, global_model_parameters(server->model), size);
    memcpy(copy->momentum, global_model_momentum(server->model), size);
}

int server_cut_open(struct exchange_server *server, const float *parameters, const float *momentum,
                    struct error *error)
{
    struct server_cut *cut = &server->cut;
    const size_t count = server->options.parameter_count;
    if (copy_open(&cut->newest, count, error) < 0 || copy_open(&cut->next, count, error) < 0)
        return -1;
    memcpy(cut->newest.parameters, parameters, count * sizeof(float));
    if (momentum)
        memcpy(cut->newest.momentum, momentum, count * sizeof(float));
    cut->newest.at_ns = server_now_ns(server);
    cut->newest.state = (struct exchange_state){
        .steps = server->status.steps,
        .samples = server->status.samples,
        .elapsed_ms = server_elapsed_ms(server),
        .has_momentum = momentum != NULL,
    };
    return 0;
}

void server_cut_free(struct exchange_server *server)
{
    loop_timer_free(server->cut.timer);
    copy_free(&server->cut.newest);
    copy_free(&server->cut.next);
    copy_free(&server->cut.sent);
}

/* ---- The replica ----------------------------------------------------------------------------- */

static void replica_send(struct exchange_server *server)
{
    struct server_cut *cut = &server->cut;
    struct range_peer *replica = server->ranges[server->servers].peer;
    const size_t count = server->options.parameter_count;
    const int64_t now_ns = server_now_ns(server);
    struct error error;
    if (!replica || replica->must_drop || cut->sent_ns > 0 || now_ns < cut->pause_ns ||
        (cut->sent.parameters && cut->sent.state.cut == cut->newest.state.cut))
        return;
    if (copy_open(&cut->sent, count, &error) < 0) {
        range_peer_mark(replica, &error);
        return;
    }
    memcpy(cut->sent.parameters, cut->newest.parameters, count * sizeof(float));
    memcpy(cut->sent.momentum, cut->newest.momentum, count * sizeof(float));
    cut->sent.state = cut->newest.state;
    cut->sent_ns = now_ns;
    range_peer_send_state(replica, &cut->sent.state, cut->sent.parameters,
                          cut->sent.state.has_momentum ? cut->sent.momentum : NULL, count);
}

void server_cut_replica_ready(struct exchange_server *server)
{
    struct server_cut *cut = &server->cut;
    const int64_t now_ns = server_now_ns(server);
    cut->pause_ns = now_ns + (now_ns - cut->sent_ns) * (REPLICA_SHARE - 1);
    cut->sent_ns = 0;
}

/* ---- Cuts ------------------------------------------------------------------------------------ */

static void cut_begin(struct exchange_server *server);

static void final_take(struct exchange_server *server, const struct server_copy *copy)
{
    server->cut.final = 0;
    memcpy(server->final, copy->parameters, server->options.parameter_count * sizeof(float));
    server->outcome.version = copy->state.version;
    server_final_known(server);
}

static void cut_done(struct exchange_server *server)
{
    struct server_cut *cut = &server->cut;
    const struct server_copy newest = cut->next;
    cut->next = cut->newest;
    cut->newest = newest;
    cut->is_under_way = false;
    cut->took_ns = server_now_ns(server) - newest.at_ns;
    for (enum evaluation_kind kind = 0; kind < EVALUATION_KIND_COUNT; kind++)
        if (cut->is_for[kind]) {
            cut->is_for[kind] = false;
            if (server->state == SERVER_RUNNING)
                evaluator_ask(server->evaluator, kind);
        }
    replica_send(server);
    if (cut->final > 0 && newest.state.cut >= cut->final)
        final_take(server, &cut->newest);
    else if (cut->final > 0 || cut->is_wanted[EVALUATION_SAMPLE] || cut->is_wanted[EVALUATION_FULL])
        cut_begin(server);
}

static void cut_begin(struct exchange_server *server)
{
    struct server_cut *cut = &server->cut;
    if (cut->is_under_way || !server_ranges_are_ready(server))
        return;
    copy_begin(server, &cut->next, ++cut->number);
    cut->is_under_way = true;
    cut->parts_left = server->servers - 1;
    memcpy(cut->is_for, cut->is_wanted, sizeof cut->is_for);
    memset(cut->is_wanted, 0, sizeof cut->is_wanted);
    server_ranges_act(
        server, &(struct exchange_act){.kind = EXCHANGE_ACT_CUT, .number = cut->next.state.cut});
    if (cut->parts_left == 0)
        cut_done(server);
}

static void timer_due(void *context)
{
    struct exchange_server *server = context;
    struct server_cut *cut = &server->cut;
    const int64_t now_ns = server_now_ns(server);
    const bool is_due = now_ns - cut->newest.at_ns >= (CUT_SHARE - 1) * cut->took_ns;
    if (is_due && server->state == SERVER_RUNNING &&
        cut->newest.state.version != global_model_version(server->model))
        cut_begin(server);
    replica_send(server);
    loop_timer_start(cut->timer, CUT_MS);
}

static void timer_run(struct exchange_server *server)
{
    if (!server->cut.timer)
        server->cut.timer = loop_timer_new(server->options.loop, timer_due, server);
    if (!loop_timer_is_running(server->cut.timer))
        loop_timer_start(server->cut.timer, CUT_MS);
}

void server_cut_ready(struct exchange_server *server)
{
    timer_run(server);
    if (server->cut.is_wanted[EVALUATION_SAMPLE] || server->cut.is_wanted[EVALUATION_FULL])
        cut_begin(server);
}

void server_cut_replica_changed(struct exchange_server *server)
{
    struct server_cut *cut = &server->cut;
    struct range_peer *replica = server->ranges[server->servers].peer;
    const float *momentum = global_model_momentum(server->model);
    struct error error;
    cut->sent_ns = cut->pause_ns = 0;
    cut->sent.state.cut = UINT64_MAX; /* nothing is there */
    if (!replica)
        return;
    /* With one range there was no need of a copy until now. */
    if (!cut->next.parameters &&
        server_cut_open(server, global_model_parameters(server->model), momentum, &error) < 0) {
        range_peer_mark(replica, &error);
        return;
    }
    timer_run(server);
    cut_begin(server);
}

void server_cut_lost(struct exchange_server *server)
{
    struct server_cut *cut = &server->cut;
    cut->is_under_way = false;
    for (enum evaluation_kind kind = 0; kind < EVALUATION_KIND_COUNT; kind++)
        cut->is_wanted[kind] = cut->is_wanted[kind] || cut->is_for[kind];
    LIST_EACH(&server->range_peers, node)
    {
        struct range_peer *peer = LIST_ITEM(node, struct range_peer, node);
        peer->incoming = (struct vector_receiver){0};
    }
    server_cut_give_up(server);
}

void server_measure(struct exchange_server *server, enum evaluation_kind kind)
{
    if (server->servers == 1) {
        evaluator_ask(server->evaluator, kind);
        return;
    }
    server->cut.is_wanted[kind] = true;
    cut_begin(server);
}

void server_cut_final(struct exchange_server *server)
{
    struct server_cut *cut = &server->cut;
    if (server->servers == 1) {
        memcpy(server->final, global_model_parameters(server->model),
               server->options.parameter_count * sizeof(float));
        server->outcome.version = global_model_version(server->model);
        server_final_known(server);
        return;
    }
    cut->final = cut->number + 1;
    if (server_ranges_are_ready(server))
        cut_begin(server);
    else
        server_cut_give_up(server);
}

void server_cut_give_up(struct exchange_server *server)
{
    if (server->cut.final > 0)
        final_take(server, &server->cut.newest);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

void server_cut_state(struct range_peer *peer, const struct exchange_state *state)
{
    struct exchange_server *server = peer->server;
    struct server_cut *cut = &server->cut;
    const struct range part =
        range_of(server->options.parameter_count, server->servers, peer->rank);
    peer->incoming = (struct vector_receiver){0};
    if (!cut->is_under_way || state->cut != cut->next.state.cut || state->cut == peer->last_cut)
        return; /* that cut was given up, or has its part */
    peer->last_cut = state->cut;
    peer->incoming.values = cut->next.parameters + part.first;
    peer->incoming.count = part.count;
    peer->incoming_momentum = state->has_momentum ? cut->next.momentum + part.first : NULL;
    cut->next.state.has_momentum = cut->next.state.has_momentum || state->has_momentum;
    if (!state->has_momentum)
        memset(cut->next.momentum + part.first, 0, part.count * sizeof(float));
}

static void part_done(struct range_peer *peer)
{
    struct server_cut *cut = &peer->server->cut;
    peer->incoming = (struct vector_receiver){0};
    cut->parts_left--;
    if (cut->parts_left == 0)
        cut_done(peer->server);
}

int64_t server_cut_owed_ns(const struct range_peer *peer, int64_t now_ns)
{
    const struct exchange_server *server = peer->server;
    const struct server_cut *cut = &server->cut;
    if (!cut->is_under_way || peer->rank == 0 || peer->rank >= server->servers ||
        server->ranges[peer->rank].peer != peer ||
        (peer->last_cut == cut->next.state.cut && !peer->incoming.values))
        return 0;
    return now_ns - (peer->part_ns > cut->next.at_ns ? peer->part_ns : cut->next.at_ns);
}

int server_cut_data(struct range_peer *peer, struct text payload, struct error *error)
{
    struct vector_receiver *incoming = &peer->incoming;
    if (!incoming->values)
        return 0; /* the rest of a cut that was given up, or is of no use */
    peer->part_ns = server_now_ns(peer->server);
    if (vector_take(incoming, payload, peer->server->scratch, error) < 0) {
        if (error->code != ERROR_INVALID)
            return -1;
        /* The model is no good any more: measuring will find it so. */
        incoming->values[0] = NAN;
        part_done(peer);
        return 0;
    }
    if (incoming->done < incoming->count)
        return 0;
    if (peer->incoming_momentum)
        *incoming = (struct vector_receiver){.values = TAKE(peer->incoming_momentum),
                                             .count = incoming->count};
    else
        part_done(peer);
    return 0;
}
