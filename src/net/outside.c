#include "net/outside.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/fence.h"
#include "net/slirp_library_internal.h"

#include <stdlib.h>
#include <string.h>

/* The library speaks Ethernet; the addresses mean nothing outside. */
enum { ETHERNET_SIZE = 14, TYPE_IPV4 = 0x0800, TYPE_ARP = 0x0806 };
#define JOB_MAC     0x52, 0x55, 0x0a, 0x4e, 0x00, 0x0f
#define GATEWAY_MAC 0x52, 0x55, 0x0a, 0x4e, 0x00, 0x02

#define NETWORK     (FENCE_JOB_ADDRESS & UINT32_C(0xffffff00))
#define NAME_SERVER (NETWORK + 3) /* has to be one; nobody gets to it */

struct outside {
    const struct slirp_library *library;
    Slirp *slirp;
    outside_packet_function *on_packet;
    void *context;
    struct pollfd *polls; /* of the fill or poll that is under way */
    size_t poll_count, poll_max;
};

static ssize_t on_frame(const void *frame, size_t size, void *context)
{
    struct outside *outside = context;
    const uint8_t *bytes = frame;
    if (size > ETHERNET_SIZE && bytes[12] == TYPE_IPV4 >> 8 && bytes[13] == (TYPE_IPV4 & 0xff))
        outside->on_packet(outside->context, bytes + ETHERNET_SIZE, size - ETHERNET_SIZE);
    return (ssize_t)size;
}

static void on_guest_error(const char *message, void *context)
{
    (void)context;
    log_event(LOG_DEBUG, "outside", "error=\"%s\"", message);
}

static int64_t now_ns(void *context)
{
    (void)context;
    return clock_monotonic_ns(&clock_system);
}

/* Only router advertisements of IPv6 need timers. */
static void *timer_new(SlirpTimerCb callback, void *callback_context, void *context)
{
    (void)callback;
    (void)callback_context;
    return context;
}

static void timer_free(void *timer, void *context)
{
    (void)timer;
    (void)context;
}

static void timer_set(void *timer, int64_t expires_ms, void *context)
{
    (void)timer;
    (void)expires_ms;
    (void)context;
}

/* Every descriptor is asked for anew at each fill. */
static void on_descriptor(int fd, void *context)
{
    (void)fd;
    (void)context;
}

static void on_notify(void *context)
{
    (void)context;
}

static const SlirpCb callbacks = {
    .send_packet = on_frame,
    .guest_error = on_guest_error,
    .clock_get_ns = now_ns,
    .timer_new = timer_new,
    .timer_free = timer_free,
    .timer_mod = timer_set,
    .register_poll_fd = on_descriptor,
    .unregister_poll_fd = on_descriptor,
    .notify = on_notify,
};

/* Tells the library the job's Ethernet address, which it would ask for by ARP. */
static void announce_job(struct outside *outside)
{
    static const uint8_t frame[] = {0xff,
                                    0xff,
                                    0xff,
                                    0xff,
                                    0xff,
                                    0xff,
                                    JOB_MAC,
                                    TYPE_ARP >> 8,
                                    TYPE_ARP & 0xff, /* */
                                    0,
                                    1,
                                    8,
                                    0,
                                    6,
                                    4,
                                    0,
                                    1, /* a request, */
                                    JOB_MAC,
                                    10,
                                    78,
                                    0,
                                    15, /* from the job */
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    10,
                                    78,
                                    0,
                                    15};
    outside->library->slirp_input(outside->slirp, frame, sizeof(frame));
}

int outside_check(struct error *error)
{
    const struct slirp_library *library;
    if (slirp_library_load(&library, error) == 0)
        return 0;
    error_wrap(error, "the Internet for jobs needs libslirp (Debian: libslirp0)");
    error->code = ERROR_UNAVAILABLE;
    return -1;
}

int outside_open(outside_packet_function *on_packet, void *context, struct outside **out_outside,
                 struct error *error)
{
    if (outside_check(error) < 0)
        return -1;
    AUTO(outside) struct outside *outside = calloc(1, sizeof(*outside));
    ASSERT(outside);
    outside->on_packet = on_packet;
    outside->context = context;
    const SlirpConfig config = {
        .version = SLIRP_CONFIG_VERSION_MAX,
        .in_enabled = true,
        .vnetwork.s_addr = htonl(NETWORK),
        .vnetmask.s_addr = htonl(UINT32_C(0xffffff00)),
        .vhost.s_addr = htonl(FENCE_GATEWAY_ADDRESS),
        .vdhcp_start.s_addr = htonl(FENCE_JOB_ADDRESS),
        .vnameserver.s_addr = htonl(NAME_SERVER),
        .if_mtu = FENCE_PACKET_MAX,
        .if_mru = FENCE_PACKET_MAX,
        .disable_host_loopback = true,
        .disable_dns = true,
        .disable_dhcp = true,
    };
    if (slirp_library_load(&outside->library, error) < 0)
        return -1;
    outside->slirp = outside->library->slirp_new(&config, &callbacks, outside);
    if (!outside->slirp)
        return error_set(error, ERROR_UNAVAILABLE, "libslirp does not start");
    announce_job(outside);
    *out_outside = TAKE(outside);
    return 0;
}

void outside_free(struct outside *outside)
{
    if (!outside)
        return;
    if (outside->slirp)
        outside->library->slirp_cleanup(outside->slirp);
    free(outside);
}

void outside_put(struct outside *outside, const uint8_t *packet, size_t size)
{
    uint8_t frame[ETHERNET_SIZE + FENCE_PACKET_MAX] = {GATEWAY_MAC, JOB_MAC, TYPE_IPV4 >> 8,
                                                       TYPE_IPV4 & 0xff};
    ASSERT(size <= FENCE_PACKET_MAX);
    memcpy(frame + ETHERNET_SIZE, packet, size);
    outside->library->slirp_input(outside->slirp, frame, (int)(ETHERNET_SIZE + size));
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static const struct {
    int slirp;
    short poll;
} event_bits[] = {
    {SLIRP_POLL_IN, POLLIN},   {SLIRP_POLL_OUT, POLLOUT}, {SLIRP_POLL_PRI, POLLPRI},
    {SLIRP_POLL_ERR, POLLERR}, {SLIRP_POLL_HUP, POLLHUP},
};

static int add_poll(int fd, int events, void *context)
{
    struct outside *outside = context;
    if (outside->poll_count == outside->poll_max)
        return -1;
    struct pollfd *added = &outside->polls[outside->poll_count];
    *added = (struct pollfd){.fd = fd};
    for (size_t i = 0; i < sizeof(event_bits) / sizeof(*event_bits); i++)
        if (events & event_bits[i].slirp)
            added->events = (short)(added->events | event_bits[i].poll);
    return (int)outside->poll_count++;
}

static int get_events(int index, void *context)
{
    const struct outside *outside = context;
    int events = 0;
    if (index < 0 || (size_t)index >= outside->poll_count)
        return 0;
    for (size_t i = 0; i < sizeof(event_bits) / sizeof(*event_bits); i++)
        if (outside->polls[index].revents & event_bits[i].poll)
            events |= event_bits[i].slirp;
    return events;
}

size_t outside_fill(struct outside *outside, struct pollfd *out_polls, size_t max, int *timeout_ms)
{
    uint32_t timeout = *timeout_ms < 0 ? UINT32_MAX : (uint32_t)*timeout_ms;
    outside->polls = out_polls;
    outside->poll_count = 0;
    outside->poll_max = max;
    outside->library->slirp_pollfds_fill(outside->slirp, &timeout, add_poll, outside);
    *timeout_ms = timeout > INT32_MAX ? -1 : (int)timeout;
    return outside->poll_count;
}

void outside_poll(struct outside *outside, const struct pollfd *polls, size_t count)
{
    ASSERT(polls == outside->polls && count == outside->poll_count);
    outside->library->slirp_pollfds_poll(outside->slirp, 0, get_events, outside);
}
