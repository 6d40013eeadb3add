/*
 * Exchange client, checks: the server has this worker make another's push again (check.h).
 *
 * The model comes and the result goes on the link's thread; the training thread computes in
 * between, whenever it would step or wait. The vector is whose turn it is.
 */
#include "base/assert.h"
#include "exchange/client_internal.h"

#include <stdlib.h>

void client_check_free(struct exchange_client *client)
{
    free(client->check.values);
}

/* ---- The training thread --------------------------------------------------------------------- */

void client_check_make(struct exchange_client *client)
{
    struct client_check *check = &client->check;
    ASSERT(check->turn == CLIENT_CHECK_WANTED && client->options.recompute);
    client_unlock(client);
    const bool is_done =
        client->options.recompute(client->options.context, &check->task, check->values) == 0;
    client_lock(client);
    check->is_done = is_done;
    check->turn = check->is_stale ? CLIENT_CHECK_NONE : CLIENT_CHECK_MADE;
    check->is_stale = false;
}

/* ---- The link's thread ----------------------------------------------------------------------- */

int client_check_take(struct exchange_client *client, const struct exchange_recompute *task,
                      struct error *error)
{
    struct client_check *check = &client->check;
    const size_t count = client->options.parameter_count;
    client_lock(client);
    const bool is_free = check->turn == CLIENT_CHECK_NONE && client->options.recompute;
    client_unlock(client);
    if (!is_free)
        return error_set(error, ERROR_CORRUPT, "a push to make again out of turn");
    if (!check->values)
        check->values = malloc(count * sizeof(float));
    if (!check->values)
        return error_set(error, ERROR_EXHAUSTED, "no memory to make a push again");
    check->task = *task;
    check->incoming =
        (struct vector_receiver){.values = check->values, .count = count, .codec = CODEC_F32};
    client_lock(client);
    check->turn = CLIENT_CHECK_COMES;
    client_unlock(client);
    return 0;
}

int client_check_data(struct exchange_client *client, struct text payload, struct error *error)
{
    struct client_check *check = &client->check;
    client_lock(client);
    const bool is_expected = check->turn == CLIENT_CHECK_COMES;
    client_unlock(client);
    if (!is_expected)
        return error_set(error, ERROR_CORRUPT, "data of no push to make again");
    if (vector_take(&check->incoming, payload, client->scratch, error) < 0)
        return -1;
    if (check->incoming.done < check->incoming.count)
        return 0;
    client_lock(client);
    check->turn = CLIENT_CHECK_WANTED;
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
    return 0;
}

void client_check_send(struct exchange_client *client)
{
    struct client_check *check = &client->check;
    client_lock(client);
    const bool is_made = check->turn == CLIENT_CHECK_MADE;
    if (is_made)
        check->turn = CLIENT_CHECK_GOES;
    client_unlock(client);
    if (!is_made)
        return;
    const struct exchange_recomputed recomputed = {check->task.check, check->is_done};
    check->outgoing = (struct vector_sender){0};
    client_message_send(
        client, &(struct exchange_message){.type = EXCHANGE_RECOMPUTED, .recomputed = recomputed});
    if (check->is_done)
        vector_send_begin(&check->outgoing, check->values, client->options.parameter_count,
                          CODEC_F32, 1, client->scratch);
    client_check_pump(client);
}

void client_check_pump(struct exchange_client *client)
{
    struct client_check *check = &client->check;
    client_lock(client);
    const bool is_going = check->turn == CLIENT_CHECK_GOES;
    client_unlock(client);
    struct link *const *link = &client->ranges[0].link;
    while (is_going && *link && check->outgoing.done < check->outgoing.count) {
        if (link_queued_bytes(*link) > EXCHANGE_QUEUE_FULL)
            return;
        client_run_send(client, &check->outgoing, EXCHANGE_CHECK_DATA);
    }
    client_lock(client);
    if (check->turn == CLIENT_CHECK_GOES)
        check->turn = CLIENT_CHECK_NONE;
    client_unlock(client);
}

void client_check_lost(struct exchange_client *client)
{
    struct client_check *check = &client->check;
    client_lock(client);
    if (check->turn == CLIENT_CHECK_WANTED)
        check->is_stale = true;
    else
        check->turn = CLIENT_CHECK_NONE;
    client_unlock(client);
}
