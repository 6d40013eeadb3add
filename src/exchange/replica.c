#include "exchange/replica.h"

#include "base/assert.h"
#include "base/memory.h"
#include "exchange/message.h"
#include "exchange/vector.h"

#include <stdlib.h>

enum { ALIVE_MS = 1000 };

/* A whole model, or one that comes. */
struct replica_copy {
    float *vectors[2]; /* parameters, momentum */
    struct exchange_state state;
};

struct replica {
    struct replica_options options;
    struct link *link;
    bool is_open;
    uint64_t term;
    int64_t lost_since_ns;
    struct loop_timer *timer;
    struct replica_copy newest, next;
    bool has_newest;
    bool is_receiving;
    uint32_t part; /* of `next` that comes */
    struct vector_receiver incoming;
    struct vector_scratch *scratch;
    bool is_ending;
    char reason[EXCHANGE_REASON_MAX + 1];
};

static int64_t now_ns(const struct replica *replica)
{
    return clock_monotonic_ns(loop_clock(replica->options.loop));
}

/* It may be freed by the callback: nothing may follow. */
static void link_lost(struct replica *replica, const struct error *reason)
{
    const struct replica_options options = replica->options;
    link_free(TAKE(replica->link));
    replica->is_open = replica->is_receiving = false;
    if (replica->lost_since_ns == 0)
        replica->lost_since_ns = now_ns(replica);
    if (options.on_lost && !replica->is_ending)
        options.on_lost(options.context, reason);
    if (replica->is_ending)
        options.on_end(options.context, replica->reason);
}

static void message_send(struct replica *replica, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    if (buffer_check(&payload, &error) < 0 ||
        link_send_text(replica->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        link_lost(replica, &error);
}

static void part_begin(struct replica *replica, uint32_t part)
{
    replica->part = part;
    replica->incoming = (struct vector_receiver){.values = replica->next.vectors[part],
                                                 .count = replica->options.parameter_count};
}

static int take_state(struct replica *replica, const struct exchange_state *state,
                      struct error *error)
{
    if (replica->is_receiving)
        return error_set(error, ERROR_CORRUPT, "a model within a model");
    replica->is_receiving = true;
    replica->next.state = *state;
    part_begin(replica, 0);
    return 0;
}

static int take_data(struct replica *replica, struct text payload, struct error *error)
{
    if (!replica->is_receiving)
        return error_set(error, ERROR_CORRUPT, "data without a model");
    if (vector_take(&replica->incoming, payload, replica->scratch, error) < 0)
        return -1;
    if (replica->incoming.done < replica->incoming.count)
        return 0;
    if (replica->part == 0 && replica->next.state.has_momentum) {
        part_begin(replica, 1);
        return 0;
    }
    const struct replica_copy newest = replica->next;
    replica->next = replica->newest;
    replica->newest = newest;
    replica->is_receiving = false;
    if (!replica->has_newest && replica->options.on_model)
        replica->options.on_model(replica->options.context);
    replica->has_newest = true;
    return 0;
}

static int take_frame(struct replica *replica, uint16_t type, struct text payload,
                      struct error *error)
{
    struct exchange_message message;
    if (type == EXCHANGE_DATA)
        return take_data(replica, payload, error);
    if (exchange_message_decode(type, payload, &message, error) < 0)
        return -1;
    if (message.type == EXCHANGE_STATE)
        return take_state(replica, &message.state, error);
    if (message.type != EXCHANGE_STOP)
        return error_set(error, ERROR_CORRUPT, "a message that the lead does not send");
    replica->is_ending = true;
    return text_copy(message.stop_reason, replica->reason, sizeof replica->reason, error);
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct replica *replica = context;
    struct error error;
    if (take_frame(replica, type, payload, &error) < 0)
        link_lost(replica, &error);
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    struct replica *replica = context;
    const struct exchange_serve serve = {.server = replica->options.servers,
                                         .servers = replica->options.servers,
                                         .parameter_count = replica->options.parameter_count,
                                         .term = replica->term};
    replica->is_open = true;
    replica->lost_since_ns = 0;
    message_send(replica, &(struct exchange_message){.type = EXCHANGE_SERVE, .serve = serve});
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct error gone;
    error_set(&gone, ERROR_UNAVAILABLE, "the lead closed its link");
    link_lost(context, reason ? reason : &gone);
}

/* Who says nothing is taken for dead. */
static void timer_due(void *context)
{
    struct replica *replica = context;
    loop_timer_start(replica->timer, ALIVE_MS);
    if (replica->is_open)
        message_send(replica, &(struct exchange_message){.type = EXCHANGE_SERVED});
}

int replica_attach_take(struct replica *replica, int fd, uint64_t term, struct error *error)
{
    char identity[EXCHANGE_IDENTITY_SIZE];
    exchange_identity_format(replica->options.lease, replica->options.fence, identity);
    const struct link_options options = {
        .loop = replica->options.loop,
        .identity = identity,
        .key = replica->options.key,
        .payload_max = EXCHANGE_PAYLOAD_MAX,
        .is_bulk = true,
        .callbacks = {on_open, on_frame, on_close, NULL},
        .context = replica,
    };
    struct link *link = NULL;
    if (exchange_check_term(term, replica->term, error) < 0 ||
        link_open_take(&options, fd, &link, error) < 0)
        return -1;
    link_free(TAKE(replica->link));
    replica->is_open = replica->is_receiving = replica->is_ending = false;
    replica->link = link;
    replica->term = term;
    return 0;
}

int replica_open(const struct replica_options *options, struct replica **out_replica,
                 struct error *error)
{
    if (options->parameter_count == 0 || options->parameter_count > EXCHANGE_PARAMETERS_MAX ||
        options->servers == 0 || options->servers > EXCHANGE_SERVERS_MAX)
        return error_set(error, ERROR_INVALID, "no model to follow");
    AUTO(replica) struct replica *replica = memory_zeroed(1, sizeof *replica);
    replica->options = *options;
    replica->lost_since_ns = now_ns(replica);
    replica->scratch = malloc(sizeof *replica->scratch);
    ASSERT(replica->scratch);
    for (size_t i = 0; i < 2; i++) {
        replica->newest.vectors[i] = calloc(options->parameter_count, sizeof(float));
        replica->next.vectors[i] = calloc(options->parameter_count, sizeof(float));
        if (!replica->newest.vectors[i] || !replica->next.vectors[i])
            return error_set(error, ERROR_EXHAUSTED, "no memory for a copy of %zu parameters",
                             options->parameter_count);
    }
    replica->timer = loop_timer_new(options->loop, timer_due, replica);
    loop_timer_start(replica->timer, ALIVE_MS);
    *out_replica = TAKE(replica);
    return 0;
}

void replica_free(struct replica *replica)
{
    if (!replica)
        return;
    link_free(replica->link);
    loop_timer_free(replica->timer);
    for (size_t i = 0; i < 2; i++) {
        free(replica->newest.vectors[i]);
        free(replica->next.vectors[i]);
    }
    free(replica->scratch);
    free(replica);
}

bool replica_newest(const struct replica *replica, struct replica_model *out_model)
{
    const struct replica_copy *newest = &replica->newest;
    if (!replica->has_newest)
        return false;
    *out_model = (struct replica_model){
        .parameters = newest->vectors[0],
        .momentum = newest->state.has_momentum ? newest->vectors[1] : NULL,
        .done = {newest->state.steps, newest->state.samples, newest->state.elapsed_ms},
    };
    return true;
}

int64_t replica_lost_since_ns(const struct replica *replica)
{
    return replica->lost_since_ns;
}
