/*
 * Exchange client, sessions: the link's thread's view of all links together.
 *
 * A session begins, by a JOIN on each, once every link is open, and is over on all of them when one
 * breaks. Links that stand are kept: what still comes on them of the session before is skipped.
 */
#include "exchange/client_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void client_changed(struct exchange_client *client)
{
    if (client->options.on_change)
        client->options.on_change(client->options.context);
}

void client_traffic_note(struct exchange_client *client)
{
    client->sent_bytes = client->lost_sent_bytes;
    client->received_bytes = client->lost_received_bytes;
    CLIENT_RANGES(client)
    if (range->link) {
        client->sent_bytes += link_sent_bytes(range->link);
        client->received_bytes += link_received_bytes(range->link);
    }
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static void session_end(struct exchange_client *client, const struct error *reason)
{
    client->has_session = false;
    client_check_lost(client);
    client_lock(client);
    CLIENT_RANGES(client)
    {
        range->is_receiving = range->is_offered = range->is_answered = false;
        range->has_shadow = false;
        range->is_skipping = range->is_open;
        range->outgoing = (struct vector_sender){0}; /* the update goes back to its owner */
    }
    client->is_joined = false;
    client->is_in_flight = client->has_push = false;
    client->has_left = client->has_left || (client->wants_leave && !client->ranges[0].link);
    if (client->lost_since_ns == 0)
        client->lost_since_ns = client_now_ns(client);
    if (reason && !client->is_stopped)
        snprintf(client->reason, sizeof client->reason, "%s", reason->message);
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
}

static void session_begin(struct exchange_client *client)
{
    const struct exchange_client_options *options = &client->options;
    CLIENT_RANGES(client)
    if (!range->is_open)
        return;
    client->session++;
    client->has_session = true;
    for (uint32_t i = 0; i < client->range_count && client->has_session; i++) {
        struct client_range *range = &client->ranges[i];
        const struct exchange_join join = {.rank = options->rank,
                                           .shard_samples = options->shard_samples,
                                           .parameter_count = options->parameter_count,
                                           .term = range->term,
                                           .session = client->session,
                                           .server = range->server,
                                           .servers = client->range_count};
        client_range_send(range, &(struct exchange_message){.type = EXCHANGE_JOIN, .join = join});
    }
}

void client_link_lost(struct client_range *range, const struct error *reason)
{
    struct exchange_client *client = range->client;
    if (range->link) {
        client->lost_sent_bytes += link_sent_bytes(range->link);
        client->lost_received_bytes += link_received_bytes(range->link);
    }
    link_free(TAKE(range->link));
    range->is_open = false;
    session_end(client, reason);
    client_changed(client);
}

void client_link_opened(struct client_range *range)
{
    range->is_open = true;
    session_begin(range->client);
}

void client_again(struct exchange_client *client, uint64_t session)
{
    if (!client->has_session || session != client->session)
        return; /* it is over anyway */
    struct error error;
    error_set(&error, ERROR_UNAVAILABLE, "the parameter server begins anew");
    session_end(client, &error);
    session_begin(client);
    client_changed(client);
}

/* ---- Answers --------------------------------------------------------------------------------- */

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
    client_traffic_note(client);
    if (has_model) {
        client_swap(&client->answer, &client->incoming);
        client->has_answer = true;
    }
    if (has_model || push == 0)
        client->samples_max = client->incoming_samples_max;
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
    client_changed(client);
}

void client_range_answered(struct client_range *answered, uint64_t push)
{
    struct exchange_client *client = answered->client;
    bool has_model = false;
    answered->is_answered = true;
    CLIENT_RANGES(client)
    {
        if (!range->is_answered)
            return;
        has_model = has_model || !range->is_own;
    }
    /* Until the first join is done the training thread leaves `base` alone. */
    if (has_model)
        CLIENT_RANGES(client)
    if (range->is_own)
        memcpy(client->incoming + range->range.first, client->base + range->range.first,
               range->range.count * sizeof(float));
    answer_came(client, push, has_model);
}

void client_accepted(struct exchange_client *client, uint64_t push)
{
    CLIENT_RANGES(client)
    range->is_answered = true;
    answer_came(client, push, false);
}

/* The training thread leaves `base` alone until the first join is done. */
void client_offer_answer(struct client_range *range)
{
    struct exchange_client *client = range->client;
    const float *base = client->base + range->range.first;
    range->is_offered = false;
    if (client->was_joined || client->options.is_exact ||
        vector_digest(base, range->range.count) != range->offer.digest) {
        client_range_send(range, &(struct exchange_message){.type = EXCHANGE_WANT});
        return;
    }
    if (range->offer.is_base)
        memcpy(range->shadow, base, range->range.count * sizeof(float));
    range->has_shadow = range->offer.is_base;
    range->is_own = true;
    client_range_answered(range, 0);
}

/* ---- What the training thread asks for ------------------------------------------------------- */

/* Once: another wake may come before the link has sent it. Of the others the links are freed with
 * the client: who leaves the lead has left. */
static void leave_send(struct exchange_client *client)
{
    if (client->is_leaving)
        return;
    client->is_leaving = true;
    client_message_send(client, &(struct exchange_message){.type = EXCHANGE_LEAVE,
                                                           .has_diverged = client->has_diverged});
    if (client->ranges[0].link) {
        link_finish(client->ranges[0].link); /* on_close tells when it is gone */
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
    const struct exchange_push push = client->push;
    client->has_push = false;
    client_unlock(client);
    client_check_send(client);
    CLIENT_RANGES(client)
    if (range->is_offered && has_begun)
        client_offer_answer(range);
    if (has_push)
        client_push_send(client, &push);
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
    client_traffic_note(client);
    const struct exchange_message message = {
        .type = EXCHANGE_PROGRESS,
        .progress = {client->steps, client->samples, client->steps_per_second}};
    const bool is_leaving = client->wants_leave;
    client_unlock(client);
    /* Also while it waits for another link: who says nothing is taken for dead. */
    CLIENT_RANGES(client)
    if (range->is_open && !is_leaving)
        client_range_send(range, &message);
    loop_timer_start(client->progress_timer, EXCHANGE_PROGRESS_MS);
}
