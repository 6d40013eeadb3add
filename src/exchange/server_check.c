/*
 * Exchange server, checks: a random share of pushes is made again by other workers (check.h).
 *
 * Nobody is told beforehand: whether a push is checked is drawn when all of it has come, and what
 * it started from is the answer's shadow, which is kept for every worker of such a job. The push
 * itself enters the model as any other. Each check asks one worker at a time, until two results
 * agree or nobody is left to ask.
 *
 * Memory: a shadow for each worker, and for each of CHECKS_OPEN checks the model it started from
 * and the results it has.
 */
#include "base/assert.h"
#include "exchange/server_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_NS INT64_C(60000000000) /* then another worker is asked */

static void slot_free(struct check_slot *slot)
{
    check_clear(&slot->check);
    free(slot->start);
    free(slot->receiver.values);
    *slot = (struct check_slot){0};
}

void server_checks_free(struct exchange_server *server)
{
    for (size_t i = 0; i < CHECKS_OPEN; i++)
        slot_free(&server->checks[i]);
}

static struct check_slot *slot_of(struct connection *connection)
{
    for (size_t i = 0; i < CHECKS_OPEN; i++)
        if (connection->server->checks[i].asked == connection)
            return &connection->server->checks[i];
    return NULL;
}

static bool was_asked(const struct check_slot *slot, uint64_t lease)
{
    for (uint32_t i = 0; i < slot->asked_count; i++)
        if (slot->asked_leases[i] == lease)
            return true;
    return check_has(&slot->check, lease);
}

/* One of those who can be asked, each as likely; NULL: there is none, at least not now. */
static struct connection *pick(struct exchange_server *server, const struct check_slot *slot,
                               bool *out_is_one_busy)
{
    struct connection *picked = NULL;
    *out_is_one_busy = false;
    uint64_t count = 0;
    for (uint32_t i = 0; i < server->worker_count; i++) {
        struct connection *connection = server->connection_of[i];
        if (!connection || connection->must_drop || connection->is_leaving ||
            connection->owes_check || was_asked(slot, connection->lease))
            continue;
        if (slot_of(connection)) {
            *out_is_one_busy = true;
            continue;
        }
        if (random_below(&server->check_random, ++count) == 0)
            picked = connection;
    }
    return picked;
}

static void check_ask(struct exchange_server *server, struct check_slot *slot);

static void check_end(struct exchange_server *server, struct check_slot *slot, bool is_decided)
{
    if (slot->check.result_count > 1) { /* else there was nobody to ask */
        server->status.checks++;
        server->status.checks_undecided += !is_decided;
    }
    slot_free(slot);
    for (size_t i = 0; i < CHECKS_OPEN; i++)
        if (server->checks[i].start && !server->checks[i].asked)
            check_ask(server, &server->checks[i]);
}

void server_check_pump(struct connection *connection)
{
    struct check_slot *slot = slot_of(connection);
    while (slot && slot->sender.done < slot->sender.count && !connection->must_drop) {
        if (link_queued_bytes(connection->link) > EXCHANGE_QUEUE_FULL)
            return;
        struct vector_run run;
        struct error error;
        vector_send_next(&slot->sender, connection->server->scratch, &run);
        const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
        connection->server->status.sent_bytes += run.body.size;
        if (link_send(connection->link, EXCHANGE_CHECK_DATA, parts, 2, &error) < 0)
            connection_mark(connection, &error);
    }
}

static void check_ask(struct exchange_server *server, struct check_slot *slot)
{
    slot->asked = NULL;
    slot->is_receiving = false;
    bool is_one_busy = false;
    struct connection *connection =
        slot->asked_count < CHECK_ASKED_MAX && slot->check.result_count < CHECK_RESULTS_MAX
            ? pick(server, slot, &is_one_busy)
            : NULL;
    if (!connection && is_one_busy)
        return; /* until the other check is done */
    if (!connection) {
        check_end(server, slot, /* is_decided= */ false);
        return;
    }
    slot->asked = connection;
    slot->asked_ns = server_now_ns(server);
    slot->asked_leases[slot->asked_count++] = connection->lease;
    slot->sender = (struct vector_sender){0};
    connection_send(connection, &(struct exchange_message){.type = EXCHANGE_RECOMPUTE,
                                                           .recompute = slot->task});
    vector_send_begin(&slot->sender, slot->start, server->options.parameter_count, CODEC_F32, 1,
                      server->scratch);
    server_check_pump(connection);
}

static float *copy_of(const float *values, size_t count)
{
    float *copy = malloc(count * sizeof(*copy));
    if (copy)
        memcpy(copy, values, count * sizeof(*copy));
    return copy;
}

void server_check_push(struct exchange_server *server, struct connection *connection)
{
    const struct exchange_push *push = &connection->push;
    const size_t count = server->options.parameter_count;
    struct check_slot *slot = NULL;
    if (!(server->options.verify > 0) ||
        random_unit(&server->check_random) >= server->options.verify)
        return;
    for (size_t i = 0; i < CHECKS_OPEN && !slot; i++)
        if (!server->checks[i].start)
            slot = &server->checks[i];
    if (!slot || !connection->answer.shadow)
        return; /* all are at work: another push will have its turn */
    float *update = copy_of(connection->update.values, count);
    slot->start = copy_of(connection->answer.shadow, count);
    if (!update || !slot->start) {
        free(update);
        slot_free(slot);
        return;
    }
    slot->check.count = count;
    slot->push_number = push->number;
    slot->task = (struct exchange_recompute){
        .check = ++server->check_number,
        .rank = connection->rank,
        .first_step = push->first_step,
        .first_sample = push->first_sample,
        .steps = push->steps,
        .batch = (uint32_t)(push->samples / push->steps),
    };
    check_add(&slot->check, connection->lease, update, push->codec);
    check_ask(server, slot);
}

int server_check_is_fit(const struct connection *connection, const struct exchange_push *push,
                        struct error *error)
{
    if (!(connection->server->options.verify > 0))
        return 0;
    if (push->steps > CHECK_STEPS_MAX || push->samples == 0 || push->samples % push->steps != 0 ||
        push->samples / push->steps > EXCHANGE_BATCH_MAX || check_near(push->codec) < 0)
        return error_set(error, ERROR_CORRUPT, "a push that cannot be checked");
    if (push->first_sample < connection->next_sample)
        return error_set(error, ERROR_CORRUPT, "a push of samples that were pushed before");
    return 0;
}

/* ---- Verdicts -------------------------------------------------------------------------------- */

static void exclude(struct exchange_server *server, const struct check_slot *slot, uint32_t result,
                    const struct check_verdict *verdict)
{
    const uint64_t lease = slot->check.results[result].lease;
    const struct check_result *right = slot->check.results;
    for (uint32_t i = 0; i < server->worker_count; i++) {
        struct exchange_worker_status *worker = &server->workers[i];
        if (worker->lease != lease || worker->is_faulty)
            continue;
        worker->is_faulty = true;
        for (size_t k = 0; k < 2; k++)
            worker->agreeing[k] = right[verdict->right[k]].lease;
        snprintf(worker->fault, sizeof worker->fault,
                 "push %" PRIu64 " of rank %" PRIu32 ": its result is off by %.0f %%, as leases "
                 "%" PRIu64 " and %" PRIu64 " agree",
                 slot->push_number, slot->task.rank, 100 * verdict->distance[result],
                 worker->agreeing[0], worker->agreeing[1]);
        struct error error;
        error_set(&error, ERROR_REFUSED, "%s", worker->fault);
        if (server->connection_of[i])
            connection_mark(server->connection_of[i], &error);
    }
}

static void result_add(struct exchange_server *server, struct check_slot *slot)
{
    check_add(&slot->check, slot->asked->lease, TAKE(slot->receiver.values), CODEC_F32);
    const struct check_verdict verdict = check_judge(&slot->check);
    if (!verdict.is_decided) {
        check_ask(server, slot);
        return;
    }
    for (uint32_t i = 0; i < slot->check.result_count; i++)
        if (verdict.is_wrong[i])
            exclude(server, slot, i, &verdict);
    check_end(server, slot, /* is_decided= */ true);
    server_changed(server);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

int server_check_recomputed(struct connection *connection,
                            const struct exchange_recomputed *recomputed, struct error *error)
{
    struct exchange_server *server = connection->server;
    struct check_slot *slot = slot_of(connection);
    if (!slot || slot->task.check != recomputed->check || slot->is_receiving ||
        slot->sender.done < slot->sender.count)
        return 0; /* late: another was asked meanwhile */
    if (!recomputed->is_done) {
        check_ask(server, slot);
        return 0;
    }
    const size_t count = server->options.parameter_count;
    slot->receiver = (struct vector_receiver){
        .values = malloc(count * sizeof(float)), .count = count, .codec = CODEC_F32};
    if (!slot->receiver.values)
        return error_set(error, ERROR_EXHAUSTED, "no memory for what was recomputed");
    slot->is_receiving = true;
    return 0;
}

int server_check_data(struct connection *connection, struct text payload, struct error *error)
{
    struct exchange_server *server = connection->server;
    struct check_slot *slot = slot_of(connection);
    if (!slot || !slot->is_receiving)
        return 0; /* as above */
    if (vector_take(&slot->receiver, payload, server->scratch, error) < 0)
        return -1;
    server->status.received_bytes += payload.size;
    if (slot->receiver.done == slot->receiver.count)
        result_add(server, slot);
    return 0;
}

static void ask_another(struct exchange_server *server, struct check_slot *slot)
{
    free(TAKE(slot->receiver.values));
    check_ask(server, slot);
}

void server_check_left(struct exchange_server *server, struct connection *connection)
{
    struct check_slot *slot = slot_of(connection);
    if (slot)
        ask_another(server, slot);
}

void server_checks_tick(struct exchange_server *server)
{
    const int64_t now_ns = server_now_ns(server);
    for (size_t i = 0; i < CHECKS_OPEN; i++)
        if (server->checks[i].asked && now_ns - server->checks[i].asked_ns > CHECK_NS) {
            server->checks[i].asked->owes_check = true; /* it may be at it still */
            ask_another(server, &server->checks[i]);
        }
}
