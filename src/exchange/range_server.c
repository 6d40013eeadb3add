/* Range server: the lead's link, and what it has this server do. */
#include "exchange/range_server.h"

#include "base/assert.h"
#include "base/memory.h"
#include "exchange/range_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOUSE_MS = 1000,
    /* What is told of arrivals waits behind what is queued of a cut. */
    CUT_QUEUED_MAX = EXCHANGE_PAYLOAD_MAX,
    QUEUE_MAX = EXCHANGE_QUEUE_MAX + (1 << 20),
};

int64_t range_now_ns(const struct range_server *server)
{
    return clock_monotonic_ns(loop_clock(server->options.loop));
}

bool range_server_is_ready(const struct range_server *server)
{
    return server->is_lead_open && server->model && !server->must_drop_lead;
}

/* ---- The link -------------------------------------------------------------------------------- */

static void lead_mark(struct range_server *server, const struct error *reason)
{
    if (server->must_drop_lead)
        return;
    server->must_drop_lead = true;
    server->drop_reason = *reason;
}

void range_lead_send(struct range_server *server, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    if (!server->lead || server->must_drop_lead)
        return;
    if (buffer_check(&payload, &error) < 0 ||
        link_send_text(server->lead, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        lead_mark(server, &error);
}

/* Its range is void: the next lead sends another. Workers stay, and join again. */
static void lead_drop(struct range_server *server)
{
    link_free(TAKE(server->lead));
    server->is_lead_open = server->must_drop_lead = server->is_receiving = false;
    server->outgoing = (struct vector_sender){0};
    range_members_part(server);
    global_model_free(TAKE(server->model));
    if (server->lost_since_ns == 0)
        server->lost_since_ns = range_now_ns(server);
}

void range_server_sweep(struct range_server *server)
{
    range_links_sweep(server);
    if (!server->must_drop_lead)
        return;
    const struct error reason = server->drop_reason;
    lead_drop(server);
    if (server->options.on_drop && !server->is_ending)
        server->options.on_drop(server->options.context, 0, &reason);
    if (server->is_ending)
        server->options.on_end(server->options.context, server->reason);
}

/* ---- Cuts ------------------------------------------------------------------------------------ */

static void cut_pump(struct range_server *server)
{
    while (server->outgoing.values && !server->must_drop_lead) {
        if (server->outgoing.done == server->outgoing.count) {
            if (!server->is_momentum_next) {
                server->outgoing = (struct vector_sender){0};
                return;
            }
            server->is_momentum_next = false;
            vector_send_begin(&server->outgoing, server->state[1], server->range.count, CODEC_F32,
                              1, server->scratch);
        }
        if (link_queued_bytes(server->lead) > CUT_QUEUED_MAX)
            return;
        struct vector_run run;
        struct error error;
        vector_send_next(&server->outgoing, server->scratch, &run);
        const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
        if (link_send(server->lead, EXCHANGE_DATA, parts, 2, &error) < 0)
            lead_mark(server, &error);
    }
}

static void cut_begin(struct range_server *server, uint64_t number)
{
    const size_t size = server->range.count * sizeof(float);
    const bool has_momentum = global_model_has_momentum(server->model);
    memcpy(server->state[0], global_model_parameters(server->model), size);
    if (has_momentum)
        memcpy(server->state[1], global_model_momentum(server->model), size);
    server->is_momentum_next = has_momentum;
    const struct exchange_state state = {.cut = number,
                                         .version = global_model_version(server->model),
                                         .has_momentum = has_momentum};
    range_lead_send(server, &(struct exchange_message){.type = EXCHANGE_STATE, .state = state});
    vector_send_begin(&server->outgoing, server->state[0], server->range.count, CODEC_F32, 1,
                      server->scratch);
    cut_pump(server);
}

/* ---- Acts ------------------------------------------------------------------------------------ */

static struct range_member *member_find(struct range_server *server, const struct exchange_act *act)
{
    LIST_EACH(&server->links, node)
    {
        const struct range_link *link = LIST_ITEM(node, struct range_link, node);
        struct range_member *member = link->member;
        if (member && !member->is_admitted && member->lease == act->lease &&
            member->fence == act->fence && member->session == act->number)
            return member;
    }
    return NULL;
}

static void admit(struct range_server *server, const struct exchange_act *act)
{
    struct range_member *member = member_find(server, act);
    if (!member)
        return; /* lost, or joining again: the lead hears of it */
    member->is_admitted = true;
    member->worker = act->worker;
    server->member_of[act->worker] = member;
}

/* Acts that are about a push need its slice, whole. */
static int slice_act(struct range_server *server, const struct exchange_act *act,
                     struct error *error)
{
    struct range_member *member = server->member_of[act->worker];
    if (!member || !member->is_whole || member->push != act->number)
        return error_set(error, ERROR_CORRUPT, "push %" PRIu64 " of worker %" PRIu32 " is not here",
                         act->number, act->worker);
    float *update = member->update.values;
    const struct sync_outer outer = {act->rate, act->momentum, act->direct, act->carried};
    if (act->kind == EXCHANGE_ACT_APPLY)
        global_model_apply(server->model, update, act->weight, &outer);
    else if (act->kind == EXCHANGE_ACT_GATHER)
        global_model_gather(server->model, update, act->weight);
    else
        for (size_t i = 0; i < server->range.count; i++)
            update[i] *= (float)act->weight;
    return 0;
}

/* Those that are about the model alone. */
static int model_act(struct range_server *server, const struct exchange_act *act,
                     struct error *error)
{
    const struct sync_outer outer = {act->rate, act->momentum, act->direct, act->carried};
    if (act->kind == EXCHANGE_ACT_KEEP)
        global_model_keep(server->model);
    else if (act->kind == EXCHANGE_ACT_RETURN && global_model_can_return(server->model))
        global_model_return(server->model);
    else if (act->kind == EXCHANGE_ACT_FOLD && global_model_can_fold(server->model))
        global_model_fold(server->model, act->weight, &outer);
    else
        return error_set(error, ERROR_CORRUPT, "nothing to fold, or to go back to");
    return 0;
}

static int take_act(struct range_server *server, const struct exchange_act *act,
                    struct error *error)
{
    if (!server->model || act->worker >= EXCHANGE_WORKERS_MAX)
        return error_set(error, ERROR_CORRUPT, "an act out of turn");
    struct range_member *member = server->member_of[act->worker];
    switch (act->kind) {
    case EXCHANGE_ACT_ADMIT:
        if (member)
            return error_set(error, ERROR_CORRUPT, "two workers of one number");
        admit(server, act);
        return 0;
    case EXCHANGE_ACT_PART:
        if (member)
            range_member_part(member);
        return 0;
    case EXCHANGE_ACT_RESTART:
        range_members_part(server);
        global_model_restart(server->model);
        return 0;
    case EXCHANGE_ACT_SCALE:
    case EXCHANGE_ACT_APPLY:
    case EXCHANGE_ACT_GATHER:
        return slice_act(server, act, error);
    case EXCHANGE_ACT_FOLD:
    case EXCHANGE_ACT_KEEP:
    case EXCHANGE_ACT_RETURN:
        return model_act(server, act, error);
    case EXCHANGE_ACT_ANSWER:
        if (member)
            range_answer(member, act);
        return 0;
    case EXCHANGE_ACT_CUT:
        cut_begin(server, act->number);
        return 0;
    case EXCHANGE_ACT_COUNT:
        break;
    }
    ASSERT(act->kind < EXCHANGE_ACT_COUNT);
    return -1;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

/* The range comes: once, first. */
static int take_state(struct range_server *server, const struct exchange_state *state,
                      struct error *error)
{
    if (server->model || server->is_receiving)
        return error_set(error, ERROR_CORRUPT, "a second range");
    server->is_receiving = true;
    server->has_momentum = server->is_momentum_next = state->has_momentum;
    server->incoming =
        (struct vector_receiver){.values = server->state[0], .count = server->range.count};
    return 0;
}

static int take_data(struct range_server *server, struct text payload, struct error *error)
{
    if (!server->is_receiving)
        return error_set(error, ERROR_CORRUPT, "data without a range");
    if (vector_take(&server->incoming, payload, server->scratch, error) < 0)
        return -1;
    if (server->incoming.done < server->incoming.count)
        return 0;
    if (server->is_momentum_next) {
        server->is_momentum_next = false;
        server->incoming =
            (struct vector_receiver){.values = server->state[1], .count = server->range.count};
        return 0;
    }
    server->is_receiving = false;
    if (global_model_open(server->state[0], server->has_momentum ? server->state[1] : NULL,
                          server->range.count, &server->model, error) < 0)
        return -1;
    global_model_set_robust(server->model, &server->options.robust);
    global_model_set_late(server->model);
    server->lost_since_ns = 0;
    range_members_tell(server);
    return 0;
}

static int take_frame(struct range_server *server, uint16_t type, struct text payload,
                      struct error *error)
{
    struct exchange_message message;
    if (type == EXCHANGE_DATA)
        return take_data(server, payload, error);
    if (exchange_message_decode(type, payload, &message, error) < 0)
        return -1;
    if (message.type == EXCHANGE_ACT)
        return take_act(server, &message.act, error);
    if (message.type == EXCHANGE_STATE)
        return take_state(server, &message.state, error);
    if (message.type != EXCHANGE_STOP)
        return error_set(error, ERROR_CORRUPT, "a message that the lead does not send");
    server->is_ending = true;
    return text_copy(message.stop_reason, server->reason, sizeof server->reason, error);
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct range_server *server = context;
    struct error error;
    if (!server->must_drop_lead && take_frame(server, type, payload, &error) < 0)
        lead_mark(server, &error);
    range_server_sweep(server);
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    struct range_server *server = context;
    const struct range_server_options *options = &server->options;
    server->is_lead_open = true;
    server->served = (struct exchange_served){0};
    range_lead_send(
        server, &(struct exchange_message){.type = EXCHANGE_SERVE,
                                           .serve = {.server = options->server,
                                                     .servers = options->servers,
                                                     .parameter_count = options->parameter_count,
                                                     .term = server->lead_term}});
    range_server_sweep(server);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct range_server *server = context;
    struct error gone;
    error_set(&gone, ERROR_UNAVAILABLE, "the lead closed its link");
    lead_mark(server, reason ? reason : &gone);
    range_server_sweep(server);
}

static void on_drained(struct link *link, void *context)
{
    (void)link;
    struct range_server *server = context;
    cut_pump(server);
    range_server_sweep(server);
}

int range_server_attach_lead_take(struct range_server *server, int fd, uint64_t term,
                                  struct error *error)
{
    char identity[EXCHANGE_IDENTITY_SIZE];
    exchange_identity_format(server->options.lease, server->options.fence, identity);
    const struct link_options options = {
        .loop = server->options.loop,
        .identity = identity,
        .key = server->options.key,
        .payload_max = EXCHANGE_PAYLOAD_MAX,
        .queue_max_bytes = QUEUE_MAX,
        .queue_low_bytes = CUT_QUEUED_MAX / 2,
        .is_bulk = true,
        .callbacks = {on_open, on_frame, on_close, on_drained},
        .context = server,
    };
    struct link *link = NULL;
    if (exchange_check_term(term, server->lead_term, error) < 0 ||
        link_open_take(&options, fd, &link, error) < 0)
        return -1;
    if (server->lead)
        lead_drop(server);
    server->lead = link;
    server->lead_term = term;
    server->is_ending = false;
    return 0;
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* Each second: who is silent, and a sign of life. */
static void house_timer_due(void *context)
{
    struct range_server *server = context;
    const int64_t now_ns = range_now_ns(server);
    /* When this process itself stood still, nobody else was silent. */
    const bool was_asleep = now_ns - server->house_ns > server->options.silent_ms * 1000000 / 2;
    server->house_ns = now_ns + HOUSE_MS * INT64_C(1000000);
    range_links_house(server, now_ns, was_asleep);
    if (server->is_lead_open)
        range_lead_send(
            server, &(struct exchange_message){.type = EXCHANGE_SERVED, .served = server->served});
    loop_timer_start(server->house_timer, HOUSE_MS);
    range_server_sweep(server);
}

int range_server_open(const struct range_server_options *options, struct range_server **out_server,
                      struct error *error)
{
    if (options->parameter_count > EXCHANGE_PARAMETERS_MAX || options->server == 0 ||
        options->server >= options->servers || options->servers > EXCHANGE_SERVERS_MAX ||
        options->servers > options->parameter_count)
        return error_set(error, ERROR_INVALID, "no such range of the model");
    AUTO(range_server) struct range_server *server = memory_zeroed(1, sizeof *server);
    list_init(&server->links);
    server->options = *options;
    if (options->silent_ms == 0)
        server->options.silent_ms = 6000;
    server->range = range_of(options->parameter_count, options->servers, options->server);
    server->scratch = malloc(sizeof *server->scratch);
    ASSERT(server->scratch);
    for (size_t i = 0; i < 2; i++)
        if (!(server->state[i] = calloc(server->range.count, sizeof(float))))
            return error_set(error, ERROR_EXHAUSTED, "no memory for a range of %zu parameters",
                             server->range.count);
    server->lost_since_ns = server->house_ns = range_now_ns(server);
    server->house_timer = loop_timer_new(options->loop, house_timer_due, server);
    loop_timer_start(server->house_timer, HOUSE_MS);
    server->house_ns += HOUSE_MS * INT64_C(1000000);
    *out_server = TAKE(server);
    return 0;
}

void range_server_free(struct range_server *server)
{
    if (!server)
        return;
    link_free(server->lead);
    range_links_free(server);
    global_model_free(server->model);
    loop_timer_free(server->house_timer);
    free(server->state[0]);
    free(server->state[1]);
    free(server->scratch);
    free(server);
}

struct range_server_status range_server_status(const struct range_server *server)
{
    struct range_server_status status = {
        .has_lead = range_server_is_ready(server),
        .lost_since_ns = server->lost_since_ns,
        .received_bytes = server->served.received_bytes,
        .sent_bytes = server->served.sent_bytes,
    };
    for (uint32_t worker = 0; worker < EXCHANGE_WORKERS_MAX; worker++)
        status.member_count += server->member_of[worker] != NULL;
    return status;
}
