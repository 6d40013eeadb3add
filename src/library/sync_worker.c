/* Sync engine: the stream to the parameter server, on the library's thread. */
#include "library/sync_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DIAL_TIMEOUT_MS = 5000, REDIAL_MS = 200 };

static void dial_later(struct souk_sync *sync)
{
    loop_timer_start(sync->worker_timer, REDIAL_MS);
}

static void stream_take(struct souk_sync *sync, int fd)
{
    struct error error;
    pthread_mutex_lock(&sync->mutex);
    const uint64_t term = sync->opened.term;
    pthread_mutex_unlock(&sync->mutex);
    if (exchange_client_attach_take(sync->client, 0, fd, term, &error) < 0) {
        close(fd);
        dial_later(sync);
        return;
    }
    loop_timer_stop(sync->worker_timer); /* the stream that it replaced was lost by that */
    sync->has_stream = true;
    sync->worker_term = term;
}

static void on_dialled(void *context, int fd, const struct error *reason)
{
    (void)reason;
    struct souk_sync *sync = context;
    tcp_connect_free(sync->worker_dial);
    sync->worker_dial = NULL;
    if (fd < 0)
        dial_later(sync);
    else
        stream_take(sync, fd);
}

static void attach_own(struct souk_sync *sync)
{
    struct error error;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        dial_later(sync);
        return;
    }
    if (sync_host_attach_worker_take(sync->host, ends[0], &error) < 0) {
        close(ends[0]);
        close(ends[1]);
        dial_later(sync);
        return;
    }
    stream_take(sync, ends[1]);
}

void worker_dial_start(struct souk_sync *sync)
{
    struct host_port target = sync->place.host;
    pthread_mutex_lock(&sync->mutex);
    const uint64_t term = sync->opened.term;
    target.port = sync->opened.port;
    pthread_mutex_unlock(&sync->mutex);
    struct exchange_client_status status;
    if (!sync->client || term == 0 || sync->worker_dial ||
        (sync->has_stream && sync->worker_term == term))
        return;
    exchange_client_status(sync->client, &status);
    if (status.has_left)
        return;
    loop_timer_stop(sync->worker_timer);
    if (sync->host)
        attach_own(sync);
    else
        sync->worker_dial =
            tcp_connect_start(sync->loop, &target, DIAL_TIMEOUT_MS, on_dialled, sync);
}

static void dial_due(void *context)
{
    worker_dial_start(context);
}

/* An answer, a stop or a loss of the stream: then it is made again. */
static void on_change(void *context)
{
    struct souk_sync *sync = context;
    struct exchange_client_status status;
    exchange_client_status(sync->client, &status);
    sync->has_stream = status.lost_since_ns == 0;
    if (sync->has_stream)
        loop_timer_stop(sync->worker_timer);
    else if (status.state != EXCHANGE_CLIENT_STOPPED && !status.has_left)
        dial_later(sync);
    pthread_mutex_lock(&sync->mutex);
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->mutex);
}

/* On the program's thread, within souk_sync_exchange. */
static void on_taken(void *context)
{
    struct souk_sync *sync = context;
    sync->was_taken = true;
}

void worker_open(struct souk_sync *sync)
{
    const struct exchange_client_options options = {
        .loop = sync->loop,
        .lease = sync->process,
        .fence = 1,
        .rank = sync->place.rank,
        .shard_samples = 1,
        .parameter_count = sync->parameter_count,
        .local_steps = 1,
        .on_taken = on_taken,
        .on_change = on_change,
        .context = sync,
    };
    struct exchange_client_options own = options;
    memcpy(own.key, sync->place.key, LINK_KEY_SIZE);
    struct error error;
    sync->worker_timer = loop_timer_new(sync->loop, dial_due, sync);
    if (exchange_client_open(&own, &sync->client, &error) < 0) {
        pthread_mutex_lock(&sync->mutex);
        snprintf(sync->failure, sizeof sync->failure, "%s", error.message);
        pthread_mutex_unlock(&sync->mutex);
        return;
    }
    worker_dial_start(sync);
}

void worker_close(struct souk_sync *sync)
{
    tcp_connect_free(sync->worker_dial);
    sync->worker_dial = NULL;
    loop_timer_free(sync->worker_timer);
    sync->worker_timer = NULL;
    exchange_client_free(sync->client);
    sync->client = NULL;
    sync->has_stream = false;
}

void worker_check_host(struct souk_sync *sync)
{
    struct exchange_client_status status;
    char reason[sizeof status.reason] = "";
    if (!sync->client)
        return;
    exchange_client_status(sync->client, &status);
    pthread_mutex_lock(&sync->mutex);
    const int64_t lost_ns = sync->lost_since_ns > 0 ? sync_now_ns(sync) - sync->lost_since_ns : 0;
    if (lost_ns > sync->place.join_ms * 1000000)
        snprintf(reason, sizeof reason, "rank 0 is not heard for %" PRId64 " s",
                 lost_ns / 1000000000);
    else if (sync->has_host_left && status.lost_since_ns > 0)
        snprintf(reason, sizeof reason, "rank 0 has left");
    pthread_mutex_unlock(&sync->mutex);
    if (reason[0])
        exchange_client_stop(sync->client, reason);
}
