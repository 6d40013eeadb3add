/* Exchange client: the link's thread: frames in and out on the link to one server. */
#include "exchange/client_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void client_range_send(struct client_range *range, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    if (range->link &&
        link_send_text(range->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        client_link_lost(range, &error);
}

void client_message_send(struct exchange_client *client, const struct exchange_message *message)
{
    client_range_send(&client->ranges[0], message);
}

/* The next run of the update, which may lie in what the training thread has lent; false when that
 * turns out to be no number any more. */
static bool run_next(struct client_range *range, struct vector_run *out_run)
{
    struct exchange_client *client = range->client;
    client_lock(client);
    bool is_sane = !client->has_diverged;
    if (is_sane)
        vector_send_next(&range->outgoing, client->scratch, out_run);
    if (is_sane && client->is_update_lent) {
        range->lent_sent = range->outgoing.done;
        is_sane = out_run->is_sane;
        if (!is_sane)
            client_give_up(client);
    }
    client_unlock(client);
    return is_sane;
}

void client_run_send(struct exchange_client *client, struct vector_sender *sender, uint16_t type)
{
    struct client_range *range = &client->ranges[0];
    struct vector_run run;
    struct error error;
    vector_send_next(sender, client->scratch, &run);
    const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
    if (link_send(range->link, type, parts, 2, &error) < 0)
        client_link_lost(range, &error);
}

static void update_pump(struct client_range *range)
{
    while (range->link && range->outgoing.done < range->outgoing.count) {
        if (link_queued_bytes(range->link) > EXCHANGE_QUEUE_FULL)
            return;
        struct vector_run run;
        struct error error;
        if (!run_next(range, &run))
            return;
        const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
        if (link_send(range->link, EXCHANGE_DATA, parts, 2, &error) < 0) {
            client_link_lost(range, &error);
            return;
        }
    }
}

/* All slices of the push are with the servers: none may answer before. */
static bool is_sent(struct exchange_client *client)
{
    bool is_sent = true;
    CLIENT_RANGES(client)
    is_sent = is_sent && range->outgoing.done == range->outgoing.count;
    return is_sent;
}

/* From now on the push lies at the servers, as far as is known here. */
static void sent_note(struct exchange_client *client)
{
    client_lock(client);
    if (client->is_in_flight && !client->has_push && client->held_from_ns == 0 && is_sent(client))
        client->held_from_ns = client_now_ns(client);
    client_unlock(client);
}

/* A server answers, and says how long it had the push whole. What that leaves of the time since it
 * was sent is the way there and back; all of it is put before. */
static void held_note(struct exchange_client *client, int64_t held_ns)
{
    client_lock(client);
    const int64_t now_ns = client_now_ns(client);
    if (client->held_until_ns == 0)
        client->held_until_ns = now_ns;
    if (client->held_from_ns < now_ns - held_ns)
        client->held_from_ns = now_ns - held_ns;
    client_unlock(client);
}

/* Which codec the update travels by; without memory for what it would lose it goes whole. */
static enum codec update_load(struct client_range *range, const struct exchange_settings *settings)
{
    const struct compressor_options options = {range->range.count, (double)settings->momentum};
    struct error ignored; /* as above */
    if (!range->compressor && (settings->codec == CODEC_F32 ||
                               compressor_open(&options, &range->compressor, &ignored) < 0))
        return CODEC_F32;
    return compressor_load(range->compressor, range->client->update + range->range.first,
                           settings->codec, (double)settings->density);
}

/* PUSH on each link, and what is to follow it made ready. */
static void push_begin(struct client_range *range, const struct exchange_push *push,
                       const struct exchange_settings *settings)
{
    struct exchange_client *client = range->client;
    struct exchange_push own = *push;
    own.term = range->term;
    own.codec = update_load(range, settings);
    range->is_answered = range->is_own = false;
    client_range_send(range, &(struct exchange_message){.type = EXCHANGE_PUSH, .push = own});
    if (!client->has_session)
        return;
    const size_t first = range->range.first;
    client_lock(client);
    range->outgoing = (struct vector_sender){.compressor = range->compressor};
    range->outgoing.base = client->is_update_lent ? client->base + first : NULL;
    vector_send_begin(&range->outgoing,
                      (client->is_update_lent ? client->lent : client->update) + first,
                      range->range.count, own.codec, (double)settings->density, client->scratch);
    client_unlock(client);
}

void client_push_send(struct exchange_client *client, const struct exchange_push *push)
{
    bool is_made_smaller = false;
    client_lock(client);
    const struct exchange_settings settings = client->settings;
    CLIENT_RANGES(client)
    {
        range->outgoing = (struct vector_sender){0};
        is_made_smaller = is_made_smaller || settings.codec != CODEC_F32 || range->compressor;
    }
    if (is_made_smaller)
        client_loan_end(client); /* the update is made smaller as a whole */
    const bool has_diverged = client->has_diverged;
    client_unlock(client);
    if (has_diverged)
        return; /* the training thread says so when it leaves */
    for (uint32_t i = 0; i < client->range_count && client->has_session; i++)
        push_begin(&client->ranges[i], push, &settings);
    for (uint32_t i = 0; i < client->range_count && client->has_session; i++)
        update_pump(&client->ranges[i]);
    sent_note(client);
}

/* Whether an answer to `push` is expected now. */
static int check_answer(struct client_range *range, uint64_t push, struct error *error)
{
    struct exchange_client *client = range->client;
    client_lock(client);
    const bool is_expected = push == 0 ? !client->is_joined
                                       : client->is_in_flight && !client->has_push &&
                                             push == client->push.number && is_sent(client);
    client_unlock(client);
    if (!is_expected || range->is_answered)
        return error_set(error, ERROR_CORRUPT, "an answer to push %" PRIu64 " out of turn", push);
    return 0;
}

/* Into the parameters, too, where they are lent for it. With `placed_size` the payload is only the
 * run's index: that many bytes are in their place. */
static int take_run(struct client_range *range, struct text payload, size_t placed_size,
                    struct error *error)
{
    struct exchange_client *client = range->client;
    struct vector_receiver *incoming = &range->incoming;
    const size_t first = incoming->done;
    client_lock(client);
    float *lent = client->is_answer_written ? client->lent : NULL;
    if (!lent)
        client_unlock(client);
    float *copy = lent ? lent + range->range.first : NULL;
    const int result = placed_size > 0
                           ? vector_take_placed(incoming, payload, placed_size, copy, error)
                           : vector_take(incoming, payload, client->scratch, error);
    if (result == 0 && placed_size == 0 && copy)
        memcpy(copy + first, incoming->values + first, (incoming->done - first) * sizeof(float));
    if (lent)
        client_unlock(client);
    return result;
}

static int take_data(struct client_range *range, struct text payload, size_t placed_size,
                     struct error *error)
{
    struct exchange_client *client = range->client;
    client_lock(client);
    const bool has_diverged = client->has_diverged;
    client_unlock(client);
    if (has_diverged || range->is_skipping)
        return 0; /* the rest of a model that is of no use */
    if (!range->is_receiving)
        return error_set(error, ERROR_CORRUPT, "data without a model");
    if (take_run(range, payload, placed_size, error) < 0) {
        if (error->code != ERROR_INVALID)
            return -1;
        /* Nobody can go on from such a model: the link stays, to say so. */
        client_lock(client);
        client_give_up(client);
        client_unlock(client);
        return 0;
    }
    if (range->incoming.done == range->incoming.count) {
        range->is_receiving = false;
        client_range_answered(range, range->model_push);
    }
    return 0;
}

/* A server cannot name its own term: a false one would have its successor refused. */
static int check_term(const struct client_range *range, uint64_t term, struct error *error)
{
    if (term != range->term)
        return error_set(error, ERROR_REFUSED,
                         "a parameter server of term %" PRIu64
                         ", where the market named one of term %" PRIu64,
                         term, range->term);
    return 0;
}

static bool is_of_session(const struct client_range *range, uint64_t session)
{
    return range->client->has_session && session == range->client->session;
}

/* Whether what comes is to be looked at: it is not of a session that is over. */
static bool take_session(struct client_range *range, uint64_t session)
{
    if (is_of_session(range, session))
        range->is_skipping = false;
    return !range->is_skipping;
}

static int shadow_open(struct client_range *range, struct error *error)
{
    if (!range->shadow)
        range->shadow = calloc(range->range.count, sizeof(float));
    if (!range->shadow)
        return error_set(error, ERROR_EXHAUSTED, "no memory to compress %zu parameters",
                         range->range.count);
    return 0;
}

static int take_model(struct client_range *range, const struct exchange_model *model,
                      struct error *error)
{
    struct exchange_client *client = range->client;
    if (check_term(range, model->term, error) < 0)
        return -1;
    if (!take_session(range, model->session))
        return 0;
    if (range->is_receiving)
        return error_set(error, ERROR_CORRUPT, "a model within a model");
    if (!is_of_session(range, model->session) || range->is_offered ||
        check_answer(range, model->push, error) < 0)
        return error_set(error, ERROR_CORRUPT, "a model out of turn");
    if (model->codec != CODEC_F32 && !range->has_shadow)
        return error_set(error, ERROR_CORRUPT, "a difference to no model");
    if (model->is_base && shadow_open(range, error) < 0)
        return -1;
    range->is_receiving = true;
    range->is_own = false;
    range->has_shadow = model->is_base;
    range->model_push = model->push;
    if (model->push > 0)
        held_note(client, model->held_ns);
    client_lock(client);
    client->is_answer_written = client->lent != NULL;
    client->is_update_lent = false; /* all of it is sent */
    client_unlock(client);
    if (range->server == 0)
        client->incoming_samples_max = model->samples_max;
    range->incoming.values = client->incoming + range->range.first;
    range->incoming.shadow = model->is_base || model->codec != CODEC_F32 ? range->shadow : NULL;
    range->incoming.codec = model->codec;
    range->incoming.done = 0;
    if (model->codec == CODEC_F32)
        link_expect(range->link, range->incoming.count * sizeof(float));
    return 0;
}

static int take_offer(struct client_range *range, const struct exchange_offer *offer,
                      struct error *error)
{
    struct exchange_client *client = range->client;
    if (check_term(range, offer->term, error) < 0)
        return -1;
    if (!take_session(range, offer->session))
        return 0;
    if (!is_of_session(range, offer->session) || range->is_offered || range->is_receiving ||
        check_answer(range, 0, error) < 0)
        return error_set(error, ERROR_CORRUPT, "an offer out of turn");
    if (offer->is_base && shadow_open(range, error) < 0)
        return -1;
    range->is_offered = true;
    range->offer = *offer;
    if (range->server == 0)
        client->incoming_samples_max = offer->samples_max;
    client_lock(client);
    const bool has_begun = client->has_begun;
    client_unlock(client);
    if (has_begun)
        client_offer_answer(range);
    return 0;
}

static int take_accepted(struct client_range *range, uint64_t push, struct error *error)
{
    if (range->is_skipping)
        return 0;
    if (check_answer(range, push, error) < 0)
        return -1;
    client_accepted(range->client, push);
    return 0;
}

static int take_stop(struct exchange_client *client, struct text stop_reason, struct error *error)
{
    char reason[EXCHANGE_REASON_MAX + 1];
    if (text_copy(stop_reason, reason, sizeof reason, error) < 0)
        return -1;
    exchange_client_stop(client, reason);
    client_changed(client);
    return 0;
}

/* What the lead alone says. */
static int take_lead(struct exchange_client *client, const struct exchange_message *message,
                     struct error *error)
{
    if (message->type == EXCHANGE_ACCEPTED)
        return take_accepted(&client->ranges[0], message->accepted_push, error);
    if (message->type == EXCHANGE_STOP)
        return take_stop(client, message->stop_reason, error);
    if (message->type == EXCHANGE_RECOMPUTE)
        return client_check_take(client, &message->recompute, error);
    if (message->type == EXCHANGE_AGAIN) {
        client_again(client, message->again_session);
        return 0;
    }
    client_lock(client);
    client->settings = message->settings;
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
    return 0;
}

static int take_message(struct client_range *range, const struct exchange_message *message,
                        struct error *error)
{
    switch (message->type) {
    case EXCHANGE_MODEL:
        return take_model(range, &message->model, error);
    case EXCHANGE_OFFER:
        return take_offer(range, &message->offer, error);
    case EXCHANGE_SETTINGS:
    case EXCHANGE_ACCEPTED:
    case EXCHANGE_STOP:
    case EXCHANGE_RECOMPUTE:
    case EXCHANGE_AGAIN:
        if (range->server > 0)
            return error_set(error, ERROR_CORRUPT, "a message that only the lead sends");
        return take_lead(range->client, message, error);
    case EXCHANGE_RECOMPUTED:
    case EXCHANGE_CHECK_DATA:
    case EXCHANGE_JOIN:
    case EXCHANGE_PUSH:
    case EXCHANGE_PROGRESS:
    case EXCHANGE_LEAVE:
    case EXCHANGE_WANT:
    case EXCHANGE_DATA:
    case EXCHANGE_SERVE:
    case EXCHANGE_ARRIVED:
    case EXCHANGE_GONE:
    case EXCHANGE_SERVED:
    case EXCHANGE_STATE:
    case EXCHANGE_ACT:
        break;
    }
    return error_set(error, ERROR_CORRUPT, "a message that no server sends to a worker");
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct client_range *range = context;
    struct error error;
    struct exchange_message message;
    int result;
    if (type == EXCHANGE_DATA)
        result = take_data(range, payload, 0, &error);
    else if (type == EXCHANGE_CHECK_DATA && range->server == 0)
        result = client_check_data(range->client, payload, &error);
    else if ((result = exchange_message_decode(type, payload, &message, &error)) == 0)
        result = take_message(range, &message, &error);
    if (result < 0)
        client_link_lost(range, &error);
}

static void *find_place(struct link *link, uint16_t type, size_t size, void *context)
{
    (void)link;
    const struct client_range *range = context;
    /* Without encryption a run comes bit by bit, and the vector may change hands meanwhile where
     * another link can break. */
    if (type != EXCHANGE_DATA || !range->is_receiving || range->is_skipping ||
        (range->client->options.is_bench_plain && range->client->range_count > 1))
        return NULL;
    return vector_place(&range->incoming, size);
}

static void on_placed(struct link *link, uint16_t type, struct text head, struct text body,
                      void *context)
{
    (void)link, (void)type;
    struct client_range *range = context;
    struct error error;
    if (take_data(range, head, body.size, &error) < 0)
        client_link_lost(range, &error);
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    client_link_opened(context);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct error gone;
    error_set(&gone, ERROR_UNAVAILABLE, "the parameter server closed the link");
    client_link_lost(context, reason ? reason : &gone);
}

static void on_drained(struct link *link, void *context)
{
    (void)link;
    struct client_range *range = context;
    update_pump(range);
    sent_note(range->client);
    if (range->server == 0)
        client_check_pump(range->client);
}

int exchange_client_attach_take(struct exchange_client *client, uint32_t server, int fd,
                                uint64_t term, struct error *error)
{
    if (server >= client->range_count)
        return error_set(error, ERROR_INVALID, "no such parameter server");
    struct client_range *range = &client->ranges[server];
    char identity[EXCHANGE_IDENTITY_SIZE];
    exchange_identity_format(client->options.lease, client->options.fence, identity);
    const struct link_options options = {
        .loop = client->options.loop,
        .identity = identity,
        .key = client->options.key,
        .payload_max = EXCHANGE_PAYLOAD_MAX,
        .queue_max_bytes = EXCHANGE_QUEUE_MAX,
        .queue_low_bytes = EXCHANGE_QUEUE_FULL,
        .is_bulk = !client->options.is_bench_tls,
        .is_bench_plain = client->options.is_bench_plain,
        .callbacks = {on_open, on_frame, on_close, on_drained, find_place, on_placed},
        .context = range,
    };
    struct link *link = NULL;
    if (exchange_check_term(term, range->term, error) < 0 ||
        link_open_take(&options, fd, &link, error) < 0)
        return -1;
    if (range->link) {
        struct error replaced;
        error_set(&replaced, ERROR_UNAVAILABLE, "a new stream replaced the link");
        client_link_lost(range, &replaced);
    }
    range->link = link;
    range->term = term;
    return 0;
}
