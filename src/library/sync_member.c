/* Sync engine: the link to rank 0, on the library's thread: it is made again whenever it breaks. */
#include "library/sync_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DIAL_TIMEOUT_MS = 5000,
    REDIAL_MS = 200,
    ALIVE_MS = 500,
    QUEUE_MAX_BYTES = 2 * SYNC_ROUND_MAX_BYTES + (1 << 20),
    QUEUE_LOW_BYTES = 1 << 20,
};

static void link_lost(struct souk_sync *sync)
{
    link_free(sync->link);
    sync->link = NULL;
    sync->is_call_sent = sync->is_receiving = false;
    pthread_mutex_lock(&sync->mutex);
    sync->is_welcome = false;
    if (sync->lost_since_ns == 0)
        sync->lost_since_ns = sync_now_ns(sync);
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->mutex);
    if (!sync->is_leaving)
        loop_timer_start(sync->redial_timer, REDIAL_MS);
}

static void member_send(struct souk_sync *sync, const struct sync_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, SYNC_PAYLOAD_MAX);
    sync_message_encode(&payload, message);
    if (sync->link &&
        link_send_text(sync->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        link_lost(sync);
}

static void send_bytes(struct souk_sync *sync, const void *bytes, size_t size)
{
    for (size_t at = 0; at < size && sync->link; at += SYNC_DATA_MAX_BYTES) {
        const size_t piece = size - at < SYNC_DATA_MAX_BYTES ? size - at : SYNC_DATA_MAX_BYTES;
        const struct text data = {(const char *)bytes + at, piece};
        member_send(sync, &(struct sync_message){.type = SYNC_DATA, .data = data});
    }
}

void member_call(struct souk_sync *sync)
{
    pthread_mutex_lock(&sync->mutex);
    const bool is_due = sync->turn == SYNC_TURN_CALLED && sync->is_welcome && !sync->is_call_sent;
    const struct sync_call call = sync->call;
    const uint8_t *bytes = sync->call_bytes; /* they stay: who gives up waits for member_cancel */
    pthread_mutex_unlock(&sync->mutex);
    if (!is_due)
        return;
    sync->is_call_sent = true;
    member_send(sync, &(struct sync_message){.type = SYNC_CALL, .call = call});
    const bool gives = call.kind == SYNC_CALL_ALLREDUCE ||
                       (call.kind == SYNC_CALL_BROADCAST && call.root == sync->place.rank);
    if (gives)
        send_bytes(sync, bytes, call.size);
}

void member_cancel(struct souk_sync *sync)
{
    if (sync->link && sync->is_call_sent)
        link_lost(sync); /* or its answer would be taken for the next call's */
    sync->is_call_sent = sync->is_receiving = false;
}

/* ---- What rank 0 says ------------------------------------------------------------------------ */

static void call_end(struct souk_sync *sync, enum sync_turn turn)
{
    sync->is_call_sent = sync->is_receiving = false;
    pthread_mutex_lock(&sync->mutex);
    sync->turn = turn;
    if (turn == SYNC_TURN_ANSWERED)
        sync->rounds_done = sync->call.round;
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->mutex);
}

static int take_result(struct souk_sync *sync, const struct sync_result *result,
                       struct error *error)
{
    pthread_mutex_lock(&sync->mutex);
    const bool is_expected = sync->turn == SYNC_TURN_CALLED && sync->is_call_sent &&
                             !sync->is_receiving && result->round == sync->call.round &&
                             (result->size == 0 || result->size == sync->call.size);
    if (is_expected)
        sync->contributors = result->contributors;
    pthread_mutex_unlock(&sync->mutex);
    if (!is_expected)
        return error_set(error, ERROR_CORRUPT, "a result out of turn");
    sync->received = 0;
    sync->receive_round = result->round;
    sync->receive_size = result->size;
    sync->is_receiving = true;
    if (result->size == 0)
        call_end(sync, SYNC_TURN_ANSWERED);
    return 0;
}

static int take_data(struct souk_sync *sync, struct text data, struct error *error)
{
    if (!sync->is_receiving || data.size > sync->receive_size - sync->received)
        return error_set(error, ERROR_CORRUPT, "data without a result");
    pthread_mutex_lock(&sync->mutex);
    const bool is_awaited =
        sync->turn == SYNC_TURN_CALLED && sync->call.round == sync->receive_round;
    if (is_awaited)
        memcpy(sync->call_bytes + sync->received, data.data, data.size);
    pthread_mutex_unlock(&sync->mutex);
    if (!is_awaited)
        return error_set(error, ERROR_UNAVAILABLE, "the program gave the call up");
    sync->received += data.size;
    if (sync->received == sync->receive_size)
        call_end(sync, SYNC_TURN_ANSWERED);
    return 0;
}

static void take_refused(struct souk_sync *sync, const struct sync_refused *refused)
{
    pthread_mutex_lock(&sync->mutex);
    char *out = refused->round > 0 ? sync->call_error : sync->failure;
    snprintf(out, sizeof sync->failure, TEXT_FORMAT, TEXT_ARGS(refused->reason));
    const bool is_call =
        refused->round > 0 && sync->turn == SYNC_TURN_CALLED && refused->round == sync->call.round;
    if (refused->round == 0)
        sync->is_refused = true;
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->mutex);
    if (is_call)
        call_end(sync, SYNC_TURN_FAILED);
}

static void take_welcome(struct souk_sync *sync)
{
    pthread_mutex_lock(&sync->mutex);
    sync->is_welcome = true;
    sync->is_refused = sync->has_host_left = false;
    sync->lost_since_ns = 0;
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->mutex);
    member_call(sync);
}

static void take_want_model(struct souk_sync *sync)
{
    pthread_mutex_lock(&sync->mutex);
    const size_t count = sync->kept ? sync->kept_count : 0;
    const uint64_t steps = sync->kept_steps;
    float *copy = count > 0 ? malloc(count * sizeof(float)) : NULL;
    if (copy)
        memcpy(copy, sync->kept, count * sizeof(float));
    pthread_mutex_unlock(&sync->mutex);
    member_send(sync,
                &(struct sync_message){.type = SYNC_MODEL, .model = {copy ? count : 0, steps}});
    if (copy)
        send_bytes(sync, copy, count * sizeof(float));
    free(copy);
}

static void take_opened(struct souk_sync *sync, const struct sync_opened *opened)
{
    pthread_mutex_lock(&sync->mutex);
    if (opened->term > sync->closed_term && sync->rounds_done >= sync->settled_round)
        sync->opened = *opened;
    else if (opened->term > sync->closed_term)
        sync->closed_term = opened->term;
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->mutex);
    if (sync->client)
        worker_dial_start(sync);
}

static void take_bye(struct souk_sync *sync)
{
    pthread_mutex_lock(&sync->mutex);
    sync->has_host_left = true;
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->mutex);
}

static int take_frame(struct souk_sync *sync, uint16_t type, struct text payload,
                      struct error *error)
{
    struct sync_message message;
    if (sync_message_decode(type, payload, &message, error) < 0)
        return -1;
    switch (message.type) {
    case SYNC_WELCOME:
        take_welcome(sync);
        return 0;
    case SYNC_RESULT:
        return take_result(sync, &message.result, error);
    case SYNC_DATA:
        return take_data(sync, message.data, error);
    case SYNC_REFUSED:
        take_refused(sync, &message.refused);
        return 0;
    case SYNC_OPENED:
        take_opened(sync, &message.opened);
        return 0;
    case SYNC_WANT_MODEL:
        take_want_model(sync);
        return 0;
    case SYNC_BYE:
        take_bye(sync);
        return 0;
    case SYNC_ALIVE:
        return 0;
    case SYNC_HELLO:
    case SYNC_CALL:
    case SYNC_MODEL:
        break;
    }
    return error_set(error, ERROR_CORRUPT, "a message that only ranks send to rank 0");
}

/* ---- The link -------------------------------------------------------------------------------- */

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    struct souk_sync *sync = context;
    pthread_mutex_lock(&sync->mutex);
    const uint64_t term = sync->opened.term > 0 ? sync->opened.term : sync->closed_term;
    const struct sync_hello hello = {
        .rank = sync->place.rank,
        .world = sync->place.world,
        .process = sync->process,
        .done = sync->rounds_done,
        .term = term,
        .steps = sync->kept ? sync->kept_steps : 0,
    };
    pthread_mutex_unlock(&sync->mutex);
    sync->heard_ns = sync_now_ns(sync);
    member_send(sync, &(struct sync_message){.type = SYNC_HELLO, .hello = hello});
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct souk_sync *sync = context;
    struct error error;
    if (link != sync->link)
        return;
    sync->heard_ns = sync_now_ns(sync);
    if (take_frame(sync, type, payload, &error) < 0 && sync->link)
        link_lost(sync);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)reason;
    link_lost(context);
}

static void link_take(struct souk_sync *sync, int fd)
{
    struct error error;
    const struct link_options options = {
        .loop = sync->loop,
        .identity = "rank",
        .key = sync->place.key,
        .payload_max = SYNC_PAYLOAD_MAX,
        .queue_max_bytes = (size_t)4 * SYNC_MODEL_MAX + QUEUE_MAX_BYTES,
        .queue_low_bytes = QUEUE_LOW_BYTES,
        .callbacks = {.on_open = on_open, .on_frame = on_frame, .on_close = on_close},
        .context = sync,
    };
    sync->heard_ns = sync_now_ns(sync);
    if (link_open_take(&options, fd, &sync->link, &error) < 0) {
        close(fd);
        link_lost(sync);
    }
}

static void on_dialled(void *context, int fd, const struct error *reason)
{
    (void)reason;
    struct souk_sync *sync = context;
    tcp_connect_free(sync->dial);
    sync->dial = NULL;
    if (fd < 0)
        link_lost(sync);
    else
        link_take(sync, fd);
}

/* Rank 0 speaks to itself as to the others, but needs no network. */
static void attach_own(struct souk_sync *sync)
{
    struct error error;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        link_lost(sync);
        return;
    }
    if (sync_host_attach_take(sync->host, ends[0], &error) < 0)
        close(ends[0]);
    link_take(sync, ends[1]);
}

static void redial(void *context)
{
    struct souk_sync *sync = context;
    if (sync->link || sync->dial || sync->is_leaving)
        return;
    if (sync->host)
        attach_own(sync);
    else
        sync->dial =
            tcp_connect_start(sync->loop, &sync->place.host, DIAL_TIMEOUT_MS, on_dialled, sync);
}

static void on_alive(void *context)
{
    struct souk_sync *sync = context;
    const int64_t silent_ns = sync_now_ns(sync) - sync->heard_ns;
    if (sync->link && silent_ns > 2 * sync->place.lost_ms * 1000000)
        link_lost(sync);
    else if (sync->link && link_is_open(sync->link))
        member_send(sync, &(struct sync_message){.type = SYNC_ALIVE});
    worker_check_host(sync);
    loop_timer_start(sync->alive_timer, ALIVE_MS);
}

void member_begin(struct souk_sync *sync)
{
    sync->redial_timer = loop_timer_new(sync->loop, redial, sync);
    sync->alive_timer = loop_timer_new(sync->loop, on_alive, sync);
    loop_timer_start(sync->alive_timer, ALIVE_MS);
    loop_timer_start(sync->redial_timer, 0);
}

void member_leave(struct souk_sync *sync)
{
    sync->is_leaving = true;
    loop_timer_stop(sync->redial_timer);
    member_send(sync, &(struct sync_message){.type = SYNC_BYE});
    if (sync->link)
        link_finish(sync->link);
}

void member_end(struct souk_sync *sync)
{
    link_free(sync->link);
    sync->link = NULL;
    tcp_connect_free(sync->dial);
    sync->dial = NULL;
    loop_timer_free(sync->redial_timer);
    loop_timer_free(sync->alive_timer);
    sync->redial_timer = sync->alive_timer = NULL;
}
