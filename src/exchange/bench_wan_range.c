/* Wide-area bench: the process of a parameter server of another range than the first. */
#include "base/clock.h"
#include "exchange/bench_wan_internal.h"
#include "exchange/range_server.h"

#include <stdio.h>
#include <unistd.h>

enum { CONNECT_MS = 10000 };

struct wan_range {
    struct loop *loop;
    struct range_server *server;
    int listen_fd;
    struct error error; /* why it failed */
};

static void fail(struct wan_range *self, const struct error *error)
{
    self->error = *error;
    loop_stop(self->loop);
}

static int find_peer(void *context __attribute__((unused)), uint64_t lease,
                     uint64_t fence __attribute__((unused)), struct exchange_peer *out_peer)
{
    out_peer->rank = (uint32_t)lease - 1;
    wan_key(lease, out_peer->key);
    return 0;
}

static void on_drop(void *context, uint64_t lease __attribute__((unused)),
                    const struct error *reason)
{
    fail(context, reason);
}

static void on_end(void *context, const char *reason)
{
    struct error error;
    error_set(&error, ERROR_UNAVAILABLE, "%s", reason);
    fail(context, &error);
}

static void on_connection(void *context, uint32_t events __attribute__((unused)))
{
    struct wan_range *self = context;
    struct error error;
    AUTO_FD int fd = -1;
    const int accepted = tcp_accept(self->listen_fd, &fd, NULL, &error);
    if (accepted < 0 || (accepted > 0 && range_server_attach_take(self->server, fd, &error) < 0)) {
        fail(self, &error);
        return;
    }
    (void)TAKE_FD(fd);
}

static void on_connected(void *context, int fd, const struct error *reason)
{
    struct wan_range *self = context;
    struct error error;
    if (fd < 0)
        fail(self, reason);
    else if (range_server_attach_lead_take(self->server, fd, 0, &error) < 0)
        fail(self, &error);
}

int wan_range_live(const struct bench_wan_options *wanted, uint32_t server, int fd,
                   struct error *error)
{
    struct wan_range self = {.listen_fd = -1};
    struct wan_message message = {.word = WAN_READY};
    struct loop_watch *listener = NULL;
    struct host_port lead;
    struct range_server_options options = {
        .lease = WAN_LEASE_RANGE + server,
        .server = server,
        .servers = wanted->server_count,
        .parameter_count = wanted->float_count,
        .find_peer = find_peer,
        .on_drop = on_drop,
        .on_end = on_end,
        .context = &self,
    };
    wan_key(options.lease, options.key);
    if (wan_say(fd, &message, error) < 0 || wan_hear(fd, WAN_GO, &message, error) < 0 ||
        loop_open(&clock_system, &self.loop, error) < 0)
        return -1;
    options.loop = self.loop;
    if (range_server_open(&options, &self.server, error) < 0 ||
        wan_listen(server, WAN_PORT, &self.listen_fd, error) < 0 ||
        loop_watch_open(self.loop, self.listen_fd, LOOP_READ, on_connection, &self, &listener,
                        error) < 0)
        return -1;
    wan_target(WAN_SERVER, WAN_PORT + 1, &lead);
    if (!tcp_connect_start(self.loop, &lead, CONNECT_MS, on_connected, &self))
        return error_set(error, ERROR_UNAVAILABLE, "dial the lead");
    message.word = WAN_LISTENING;
    if (wan_say(fd, &message, error) < 0 || loop_run(self.loop, error) < 0)
        return -1;
    *error = self.error;
    return -1; /* it has no end of its own: the bench ends it */
}
