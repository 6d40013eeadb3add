/*
 * Role range: a parameter server of another range than the first: no data, no measurements, no
 * checkpoints; it does as the lead says.
 */
#include "base/log.h"
#include "exchange/range_server.h"
#include "worker/peer_table.h"
#include "worker/worker_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct role {
    struct work *work;
    struct loop *loop;
    struct control *control;
    struct range_server *server;
    struct peer_table peers;
    struct work_result *result;
};

static int find_peer(void *context, uint64_t lease, uint64_t fence, struct exchange_peer *out_peer)
{
    const struct role *role = context;
    return peer_table_find(&role->peers, lease, fence, out_peer);
}

static void on_drop(void *context, uint64_t lease, const struct error *reason)
{
    (void)context;
    log_event(LOG_WARN, lease > 0 ? "worker_dropped" : "lead_lost",
              "lease=%" PRIu64 " reason=\"%s\"", lease, reason->message);
}

static void on_peer(void *context, const struct child_peer *peer)
{
    struct role *role = context;
    peer_table_put(&role->peers, peer);
}

static void on_stream(void *context, const struct child_stream *stream)
{
    struct role *role = context;
    struct error error;
    const int result =
        stream->peer_role == LEASE_ROLE_SERVER
            ? range_server_attach_lead_take(role->server, stream->fd, stream->peer_fence, &error)
            : range_server_attach_take(role->server, stream->fd, &error);
    if (result == 0)
        return;
    close(stream->fd);
    log_event(LOG_ERROR, "stream_refused", "peer=%" PRIu64 " error=\"%s\"", stream->peer_lease,
              error.message);
}

static void on_end(void *context, const char *reason)
{
    struct role *role = context;
    role->result->is_ok = true;
    snprintf(role->result->message, sizeof role->result->message, "%s", reason);
    loop_stop(role->loop);
}

static void on_stop(void *context, const char *reason, int64_t grace_ms)
{
    (void)grace_ms; /* the lead has what there is to keep */
    on_end(context, reason);
}

static int role_open(struct role *role, struct error *error)
{
    const struct work *work = role->work;
    struct range_server_options options = {
        .lease = work->lease.lease,
        .fence = work->lease.fence,
        .server = (uint32_t)work->lease.rank,
        .servers = (uint32_t)work->lease.sync.servers,
        .parameter_count = work->parameter_count,
        .robust = work->robust,
        .find_peer = find_peer,
        .on_drop = on_drop,
        .on_end = on_end,
        .context = role,
    };
    memcpy(options.key, work->config.key, sizeof options.key);
    peer_table_init(&role->peers, &work->config);
    if (loop_open(&clock_system, &role->loop, error) < 0)
        return -1;
    options.loop = role->loop;
    if (range_server_open(&options, &role->server, error) < 0)
        return -1;
    const struct control_callbacks callbacks = {on_stream, on_peer, on_stop, NULL};
    return control_open(role->loop, work->control_fd, &callbacks, role, &role->control, error);
}

static void role_close(struct role *role)
{
    range_server_free(role->server);
    control_free(role->control);
    loop_free(role->loop);
    peer_table_done(&role->peers);
}

int run_range(struct work *work, struct work_result *out_result, struct error *error)
{
    __attribute__((cleanup(role_close))) struct role role = {.work = work, .result = out_result};
    const struct child_message ready = {.kind = CHILD_READY};
    if (role_open(&role, error) < 0 || control_send(work->control_fd, &ready, error) < 0)
        return -1;
    log_event(LOG_INFO, "range_ready", "rank=%" PRIu64 " of=%" PRIu64, work->lease.rank,
              work->lease.sync.servers);
    return loop_run(role.loop, error);
}
