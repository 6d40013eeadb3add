#include "peer/door.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/address.h"

#include <stdlib.h>
#include <unistd.h>

struct door {
    struct door_options options;
    int fd;
    uint16_t port;
    struct loop_watch *watch;
};

static void on_ready(void *context, uint32_t events)
{
    struct door *door = context;
    struct address from;
    struct error error;
    int fd;
    int result;
    (void)events;
    while ((result = tcp_accept(door->fd, &fd, &from, &error)) > 0)
        door->options.on_visit_take(door->options.context, fd);
    if (result < 0) {
        log_event(LOG_WARN, door->options.closed_event, "error=\"%s\"", error.message);
        loop_watch_set(door->watch, 0);
    }
}

static int listen_everywhere(struct door *door, struct error *error)
{
    const struct host_port everywhere = {.host = "0.0.0.0"};
    struct address address;
    if (address_resolve(&everywhere, &address, error) < 0 ||
        tcp_listen(&address, "", &door->fd, &door->port, error) < 0)
        return -1;
    return loop_watch_open(door->options.loop, door->fd, LOOP_READ, on_ready, door, &door->watch,
                           error);
}

int door_open(const struct door_options *options, struct door **out_door, struct error *error)
{
    struct door *door = calloc(1, sizeof(*door));
    ASSERT(door);
    door->options = *options;
    door->fd = -1;
    if (listen_everywhere(door, error) < 0) {
        door_free(door);
        return -1;
    }
    *out_door = door;
    return 0;
}

void door_free(struct door *door)
{
    if (!door)
        return;
    loop_watch_free(door->watch);
    if (door->fd >= 0)
        close(door->fd);
    free(door);
}

uint16_t door_port(const struct door *door)
{
    return door->port;
}
