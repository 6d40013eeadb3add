/* Exchange client: the link's thread: frames in and out. */
#include "exchange/client_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void changed(struct exchange_client *client)
{
    if (client->options.on_change)
        client->options.on_change(client->options.context);
}

static void link_lost(struct exchange_client *client, const struct error *reason)
{
    link_free(TAKE(client->link));
    client->is_receiving = client->is_offered = false;
    client->has_shadow = false;
    client_check_lost(client);
    client_lock(client);
    client->outgoing = (struct vector_sender){0}; /* the update goes back to its owner */
    client->is_joined = false;
    client->is_in_flight = client->has_push = false;
    client->has_left = client->has_left || client->wants_leave;
    if (client->lost_since_ns == 0)
        client->lost_since_ns = client_now_ns(client);
    if (reason && !client->is_stopped)
        snprintf(client->reason, sizeof client->reason, "%s", reason->message);
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
    changed(client);
}

void client_message_send(struct exchange_client *client, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    if (client->link &&
        link_send_text(client->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        link_lost(client, &error);
}

/* The next run of the update, which may lie in what the training thread has lent; false when that
 * turns out to be no number any more. */
static bool run_next(struct exchange_client *client, struct vector_run *out_run)
{
    client_lock(client);
    bool is_sane = !client->has_diverged;
    if (is_sane)
        vector_send_next(&client->outgoing, client->scratch, out_run);
    if (is_sane && client->is_update_lent) {
        client->lent_sent = client->outgoing.done;
        is_sane = codec_is_sane(client->scratch->floats, out_run->float_count);
        if (!is_sane)
            client_give_up(client);
    }
    client_unlock(client);
    return is_sane;
}

void client_run_send(struct exchange_client *client, struct vector_sender *sender, uint16_t type)
{
    struct vector_run run;
    struct error error;
    vector_send_next(sender, client->scratch, &run);
    const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
    if (link_send(client->link, type, parts, 2, &error) < 0)
        link_lost(client, &error);
}

static void update_pump(struct exchange_client *client)
{
    while (client->link && client->outgoing.done < client->outgoing.count) {
        if (link_queued_bytes(client->link) > EXCHANGE_QUEUE_FULL)
            return;
        struct vector_run run;
        struct error error;
        if (!run_next(client, &run))
            return;
        const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
        if (link_send(client->link, EXCHANGE_DATA, parts, 2, &error) < 0) {
            link_lost(client, &error);
            return;
        }
    }
}

/* Which codec the update travels by; without memory for what it would lose it goes whole. */
static enum codec update_load(struct exchange_client *client, enum codec wanted, float density,
                              float momentum)
{
    const struct compressor_options options = {client->options.parameter_count, (double)momentum};
    struct error ignored; /* as above */
    if (!client->compressor &&
        (wanted == CODEC_F32 || compressor_open(&options, &client->compressor, &ignored) < 0))
        return CODEC_F32;
    return compressor_load(client->compressor, client->update, wanted, (double)density);
}

static void push_send(struct exchange_client *client, struct exchange_push *push)
{
    client_lock(client);
    const struct exchange_settings settings = client->settings;
    client->outgoing = (struct vector_sender){0};
    if (settings.codec != CODEC_F32 || client->compressor)
        client_loan_end(client); /* the update is made smaller as a whole */
    const bool has_diverged = client->has_diverged;
    client_unlock(client);
    if (has_diverged)
        return; /* the training thread says so when it leaves */
    push->term = client->term;
    push->codec = update_load(client, settings.codec, settings.density, settings.momentum);
    client->outgoing.compressor = client->compressor;
    client_message_send(client, &(struct exchange_message){.type = EXCHANGE_PUSH, .push = *push});
    if (!client->link)
        return;
    client_lock(client);
    client->outgoing.base = client->is_update_lent ? client->base : NULL;
    vector_send_begin(&client->outgoing, client->is_update_lent ? client->lent : client->update,
                      client->options.parameter_count, push->codec, (double)settings.density,
                      client->scratch);
    client_unlock(client);
    update_pump(client);
}

/* The answer to the push in flight, or to the join. */
static void answer_came(struct exchange_client *client, uint64_t push, bool has_model)
{
    client_lock(client);
    const int64_t now = client_now_ns(client);
    if (push > 0) {
        client->commit_ns = now - client->sent_ns;
        client->commits++;
        client->is_in_flight = false;
    } else {
        client->is_joined = client->was_joined = true;
        client->lost_since_ns = 0;
        client->late_ns = 0;
    }
    client->answer_ns = now;
    if (has_model) {
        client_swap(&client->answer, &client->incoming.values);
        client->has_answer = true;
        client->samples_max = client->incoming_model.samples_max;
    }
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
    changed(client);
}

/* Takes its own first model for the server's where they are equal. The training thread leaves
 * `base` alone until the first join is done. */
static void offer_answer(struct exchange_client *client)
{
    const size_t count = client->options.parameter_count;
    client->is_offered = false;
    if (client->was_joined || client->options.is_exact ||
        vector_digest(client->base, count) != client->offer.digest) {
        client_message_send(client, &(struct exchange_message){.type = EXCHANGE_WANT});
        return;
    }
    if (client->incoming.shadow)
        memcpy(client->incoming.shadow, client->base, count * sizeof(float));
    client->has_shadow = client->incoming.shadow != NULL;
    client_lock(client);
    client->samples_max = client->offer.samples_max;
    client_unlock(client);
    answer_came(client, 0, false);
}

static void leave_send(struct exchange_client *client)
{
    client_message_send(client, &(struct exchange_message){.type = EXCHANGE_LEAVE,
                                                           .has_diverged = client->has_diverged});
    if (client->link) {
        link_finish(client->link); /* on_close tells when it is gone */
        return;
    }
    client_lock(client);
    client->has_left = true;
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
}

void client_on_wake(void *context, uint32_t events)
{
    (void)events;
    struct exchange_client *client = context;
    uint64_t count;
    if (read(client->wake_fd, &count, sizeof count) < 0)
        return;
    client_lock(client);
    const bool has_push = client->has_push;
    const bool wants_leave = client->wants_leave, has_begun = client->has_begun;
    struct exchange_push push = client->push;
    client->has_push = false;
    client_unlock(client);
    client_check_send(client);
    if (client->is_offered && has_begun)
        offer_answer(client);
    if (has_push)
        push_send(client, &push);
    if (wants_leave)
        leave_send(client);
}

void client_on_progress(void *context)
{
    struct exchange_client *client = context;
    const int64_t now = client_now_ns(client);
    client_lock(client);
    if (client->steps > client->progress_steps) {
        const double span_s = 1e-9 * (double)(now - client->progress_ns);
        client->steps_per_second = (double)(client->steps - client->progress_steps) / span_s;
        client->progress_steps = client->steps;
        client->progress_ns = now;
    }
    const struct exchange_message message = {
        .type = EXCHANGE_PROGRESS,
        .progress = {client->steps, client->samples, client->steps_per_second}};
    const bool is_member = (client->is_joined || client->is_offered) && !client->wants_leave;
    client_unlock(client);
    if (is_member)
        client_message_send(client, &message);
    loop_timer_start(client->progress_timer, EXCHANGE_PROGRESS_MS);
}

/* Whether an answer to `push` is expected now. */
static int check_answer(struct exchange_client *client, uint64_t push, struct error *error)
{
    client_lock(client);
    const bool is_expected =
        push == 0 ? !client->is_joined
                  : client->is_in_flight && !client->has_push && push == client->push.number;
    client_unlock(client);
    if (!is_expected)
        return error_set(error, ERROR_CORRUPT, "an answer to push %" PRIu64 " out of turn", push);
    return 0;
}

/* Into the parameters, too, where they are lent for it. */
static int take_run(struct exchange_client *client, struct text payload, struct error *error)
{
    struct vector_receiver *incoming = &client->incoming;
    const size_t first = incoming->done;
    client_lock(client);
    const bool is_written = client->is_answer_written;
    if (!is_written)
        client_unlock(client);
    const int result = vector_take(incoming, payload, client->scratch, error);
    if (result == 0 && is_written)
        memcpy(client->lent + first, incoming->values + first,
               (incoming->done - first) * sizeof(float));
    if (is_written)
        client_unlock(client);
    return result;
}

static int take_data(struct exchange_client *client, struct text payload, struct error *error)
{
    client_lock(client);
    const bool has_diverged = client->has_diverged;
    client_unlock(client);
    if (has_diverged)
        return 0; /* the rest of a model that is of no use */
    if (!client->is_receiving)
        return error_set(error, ERROR_CORRUPT, "data without a model");
    if (take_run(client, payload, error) < 0) {
        if (error->code != ERROR_INVALID)
            return -1;
        /* Nobody can go on from such a model: the link stays, to say so. */
        client_lock(client);
        client_give_up(client);
        client_unlock(client);
        return 0;
    }
    if (client->incoming.done == client->incoming.count) {
        client->is_receiving = false;
        client->has_shadow = client->incoming.shadow != NULL;
        answer_came(client, client->incoming_model.push, true);
    }
    return 0;
}

/* A server cannot name its own term: a false one would have its successor refused. */
static int check_term(const struct exchange_client *client, uint64_t term, struct error *error)
{
    if (term != client->term)
        return error_set(error, ERROR_REFUSED,
                         "a parameter server of term %" PRIu64
                         ", where the market named one of term %" PRIu64,
                         term, client->term);
    return 0;
}

static int take_model(struct exchange_client *client, const struct exchange_model *model,
                      struct error *error)
{
    if (client->is_receiving)
        return error_set(error, ERROR_CORRUPT, "a model within a model");
    if (client->is_offered || check_answer(client, model->push, error) < 0)
        return error_set(error, ERROR_CORRUPT, "a model out of turn");
    if (check_term(client, model->term, error) < 0)
        return -1;
    if (model->codec != CODEC_F32 && !client->has_shadow)
        return error_set(error, ERROR_CORRUPT, "a difference to no model");
    client->is_receiving = true;
    client_lock(client);
    client->is_answer_written = client->lent != NULL;
    client->is_update_lent = false; /* all of it is sent */
    client_unlock(client);
    client->incoming_model = *model;
    client->incoming.codec = model->codec;
    client->incoming.done = 0;
    return 0;
}

static int take_offer(struct exchange_client *client, const struct exchange_offer *offer,
                      struct error *error)
{
    if (client->is_offered || client->is_receiving || check_answer(client, 0, error) < 0)
        return error_set(error, ERROR_CORRUPT, "an offer out of turn");
    if (check_term(client, offer->term, error) < 0)
        return -1;
    client->is_offered = true;
    client->offer = *offer;
    client_lock(client);
    const bool has_begun = client->has_begun;
    client_unlock(client);
    if (has_begun)
        offer_answer(client);
    return 0;
}

static int take_settings(struct exchange_client *client, const struct exchange_settings *settings,
                         struct error *error)
{
    const size_t count = client->options.parameter_count;
    /* From now on the server may answer with differences to the model before. */
    if (settings->codec != CODEC_F32 && !client->incoming.shadow)
        client->incoming.shadow = calloc(count, sizeof(float));
    if (settings->codec != CODEC_F32 && !client->incoming.shadow)
        return error_set(error, ERROR_EXHAUSTED, "no memory to compress %zu parameters", count);
    client_lock(client);
    client->settings = *settings;
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
    return 0;
}

static int take_message(struct exchange_client *client, const struct exchange_message *message,
                        struct error *error)
{
    switch (message->type) {
    case EXCHANGE_MODEL:
        return take_model(client, &message->model, error);
    case EXCHANGE_OFFER:
        return take_offer(client, &message->offer, error);
    case EXCHANGE_SETTINGS:
        return take_settings(client, &message->settings, error);
    case EXCHANGE_ACCEPTED:
        if (check_answer(client, message->accepted_push, error) < 0)
            return -1;
        answer_came(client, message->accepted_push, false);
        return 0;
    case EXCHANGE_STOP: {
        char reason[EXCHANGE_REASON_MAX + 1];
        if (text_copy(message->stop_reason, reason, sizeof reason, error) < 0)
            return -1;
        exchange_client_stop(client, reason);
        changed(client);
        return 0;
    }
    case EXCHANGE_RECOMPUTE:
        return client_check_take(client, &message->recompute, error);
    case EXCHANGE_RECOMPUTED:
    case EXCHANGE_CHECK_DATA:
    case EXCHANGE_JOIN:
    case EXCHANGE_PUSH:
    case EXCHANGE_PROGRESS:
    case EXCHANGE_LEAVE:
    case EXCHANGE_WANT:
    case EXCHANGE_DATA:
        break;
    }
    return error_set(error, ERROR_CORRUPT, "a message that only a worker sends");
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct exchange_client *client = context;
    struct error error;
    struct exchange_message message;
    int result;
    if (type == EXCHANGE_DATA)
        result = take_data(client, payload, &error);
    else if (type == EXCHANGE_CHECK_DATA)
        result = client_check_data(client, payload, &error);
    else if ((result = exchange_message_decode(type, payload, &message, &error)) == 0)
        result = take_message(client, &message, &error);
    if (result < 0)
        link_lost(client, &error);
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    struct exchange_client *client = context;
    const struct exchange_client_options *options = &client->options;
    client_message_send(
        client, &(struct exchange_message){.type = EXCHANGE_JOIN,
                                           .join = {.rank = options->rank,
                                                    .shard_samples = options->shard_samples,
                                                    .parameter_count = options->parameter_count,
                                                    .term = client->term}});
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct exchange_client *client = context;
    struct error gone;
    error_set(&gone, ERROR_UNAVAILABLE, "the parameter server closed the link");
    link_lost(client, reason ? reason : &gone);
}

static void on_drained(struct link *link, void *context)
{
    (void)link;
    update_pump(context);
    client_check_pump(context);
}

int exchange_client_attach_take(struct exchange_client *client, int fd, uint64_t term,
                                struct error *error)
{
    char identity[EXCHANGE_IDENTITY_SIZE];
    exchange_identity_format(client->options.lease, client->options.fence, identity);
    const struct link_options options = {
        .loop = client->options.loop,
        .identity = identity,
        .key = client->options.key,
        .payload_max = EXCHANGE_PAYLOAD_MAX,
        .queue_max_bytes = EXCHANGE_QUEUE_MAX,
        .is_bulk = !client->options.is_bench_tls,
        .is_bench_plain = client->options.is_bench_plain,
        .callbacks = {on_open, on_frame, on_close, on_drained},
        .context = client,
    };
    struct link *link = NULL;
    if (link_open_take(&options, fd, &link, error) < 0)
        return -1;
    if (client->link) {
        struct error replaced;
        error_set(&replaced, ERROR_UNAVAILABLE, "a new stream replaced the link");
        link_lost(client, &replaced);
    }
    client->link = link;
    client->term = term;
    return 0;
}
