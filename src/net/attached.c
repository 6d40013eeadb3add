#include "net/attached.h"

#include "base/assert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ANSWER_SIZE = 32 << 10, /* what the kernel puts into one datagram at most */
    ROUTE_BITS_MIN = 8,
    TRY_MAX = 16,
};

struct attached {
    int ask_fd;   /* questions and their answers */
    int watch_fd; /* what changes */
    uint8_t answer[ANSWER_SIZE];
};

/* ---- Answers --------------------------------------------------------------------------------- */

struct attribute {
    uint16_t type;
    const uint8_t *data;
    size_t size;
};

/* The next one of those that begin at *at, which is moved on; false at their end. */
static bool next_attribute(const uint8_t **at, const uint8_t *end, struct attribute *out)
{
    struct rtattr header;
    const size_t left = (size_t)(end - *at);
    if (left < sizeof(header))
        return false;
    memcpy(&header, *at, sizeof(header));
    if (header.rta_len < sizeof(header) || header.rta_len > left)
        return false;
    *out = (struct attribute){header.rta_type & NLA_TYPE_MASK, *at + sizeof(header),
                              header.rta_len - sizeof(header)};
    const size_t step = RTA_ALIGN(header.rta_len);
    *at += step < left ? step : left;
    return true;
}

static bool read_address(const struct attribute *attribute, uint32_t *out)
{
    uint32_t address;
    if (attribute->size != sizeof(address))
        return false;
    memcpy(&address, attribute->data, sizeof(address));
    *out = ntohl(address);
    return true;
}

static void add_address(const uint8_t *at, const uint8_t *end, struct fence *fence)
{
    struct ifaddrmsg message;
    struct attribute attribute;
    uint32_t address;
    if ((size_t)(end - at) < sizeof(message))
        return;
    memcpy(&message, at, sizeof(message));
    if (message.ifa_family != AF_INET || message.ifa_prefixlen > 32)
        return;
    at += NLMSG_ALIGN(sizeof(message));
    while (next_attribute(&at, end, &attribute)) {
        const bool is_network = attribute.type == IFA_ADDRESS; /* or the other end of a cable */
        if ((is_network || attribute.type == IFA_LOCAL || attribute.type == IFA_BROADCAST) &&
            read_address(&attribute, &address))
            fence_add(fence,
                      (struct fence_network){address, is_network ? message.ifa_prefixlen : 32});
    }
}

/* The gateways of a route with several. */
static void add_next_hops(const struct attribute *hops, struct fence *fence)
{
    size_t done = 0;
    struct rtnexthop hop;
    while (hops->size - done >= sizeof(hop)) {
        memcpy(&hop, hops->data + done, sizeof(hop));
        if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > hops->size - done)
            return;
        const uint8_t *at = hops->data + done + sizeof(hop);
        const uint8_t *end = hops->data + done + hop.rtnh_len;
        struct attribute attribute;
        uint32_t address;
        while (next_attribute(&at, end, &attribute))
            if (attribute.type == RTA_GATEWAY && read_address(&attribute, &address))
                fence_add(fence, (struct fence_network){address, 32});
        const size_t step = RTNH_ALIGN(hop.rtnh_len);
        if (step > hops->size - done)
            return;
        done += step;
    }
}

static void add_route(const uint8_t *at, const uint8_t *end, struct fence *fence)
{
    struct rtmsg message;
    struct attribute attribute;
    uint32_t address;
    if ((size_t)(end - at) < sizeof(message))
        return;
    memcpy(&message, at, sizeof(message));
    if (message.rtm_family != AF_INET || message.rtm_dst_len > 32)
        return;
    at += NLMSG_ALIGN(sizeof(message));
    while (next_attribute(&at, end, &attribute)) {
        if (attribute.type == RTA_DST && message.rtm_dst_len >= ROUTE_BITS_MIN &&
            read_address(&attribute, &address))
            fence_add(fence, (struct fence_network){address, message.rtm_dst_len});
        else if (attribute.type == RTA_GATEWAY && read_address(&attribute, &address))
            fence_add(fence, (struct fence_network){address, 32});
        else if (attribute.type == RTA_MULTIPATH)
            add_next_hops(&attribute, fence);
    }
}

static int parse_failure(const uint8_t *at, const uint8_t *end, struct error *error)
{
    struct nlmsgerr failure = {0};
    if ((size_t)(end - at) >= sizeof(failure.error))
        memcpy(&failure.error, at, sizeof(failure.error));
    return error_set_errno(error, failure.error < 0 ? -failure.error : EPROTO,
                           "ask the kernel for this machine's networks");
}

int attached_parse(const uint8_t *bytes, size_t size, struct fence *fence, bool *out_is_done,
                   bool *out_is_torn, struct error *error)
{
    struct nlmsghdr header;
    size_t done = 0;
    while (size - done >= sizeof(header)) {
        memcpy(&header, bytes + done, sizeof(header));
        if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > size - done)
            return error_set(error, ERROR_CORRUPT, "the kernel's list of networks is cut off");
        const uint8_t *at = bytes + done + sizeof(header);
        const uint8_t *end = bytes + done + header.nlmsg_len;
        *out_is_torn |= (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
        if (header.nlmsg_type == NLMSG_DONE) {
            *out_is_done = true;
            return 0;
        }
        if (header.nlmsg_type == NLMSG_ERROR)
            return parse_failure(at, end, error);
        if (header.nlmsg_type == RTM_NEWADDR)
            add_address(at, end, fence);
        else if (header.nlmsg_type == RTM_NEWROUTE)
            add_route(at, end, fence);
        const size_t step = NLMSG_ALIGN(header.nlmsg_len);
        done += step < size - done ? step : size - done;
    }
    return 0;
}

/* ---- Questions ------------------------------------------------------------------------------- */

static int socket_open(uint32_t groups, int flags, int *out_fd, struct error *error)
{
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    *out_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);
    if (*out_fd < 0 || bind(*out_fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return error_set_errno(error, errno, "open a netlink socket");
    return 0;
}

int attached_open(struct attached **out_attached, struct error *error)
{
    struct attached *attached = calloc(1, sizeof(*attached));
    ASSERT(attached);
    attached->ask_fd = attached->watch_fd = -1;
    if (socket_open(0, 0, &attached->ask_fd, error) < 0 ||
        socket_open(RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE, SOCK_NONBLOCK, &attached->watch_fd,
                    error) < 0) {
        attached_free(attached);
        return -1;
    }
    *out_attached = attached;
    return 0;
}

void attached_free(struct attached *attached)
{
    if (!attached)
        return;
    if (attached->ask_fd >= 0)
        close(attached->ask_fd);
    if (attached->watch_fd >= 0)
        close(attached->watch_fd);
    free(attached);
}

int attached_fd(const struct attached *attached)
{
    return attached->watch_fd;
}

/* What changed is asked for anew, also when the kernel had more to say than there was room for. */
static int drain(struct attached *attached, struct error *error)
{
    for (;;) {
        const ssize_t got = recv(attached->watch_fd, attached->answer, ANSWER_SIZE, 0);
        if (got < 0 && (errno == EINTR || errno == ENOBUFS))
            continue;
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got < 0)
            return error_set_errno(error, errno, "watch this machine's networks");
    }
}

static int ask(struct attached *attached, uint16_t type, struct fence *fence, bool *out_is_torn,
               struct error *error)
{
    const struct {
        struct nlmsghdr header;
        struct rtgenmsg message;
    } question = {{.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtgenmsg)),
                   .nlmsg_type = type,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                  {.rtgen_family = AF_INET}};
    if (send(attached->ask_fd, &question, question.header.nlmsg_len, 0) < 0)
        return error_set_errno(error, errno, "ask the kernel for this machine's networks");
    for (bool is_done = false; !is_done;) {
        const ssize_t got = recv(attached->ask_fd, attached->answer, ANSWER_SIZE, MSG_TRUNC);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, errno, "ask the kernel for this machine's networks");
        if (got > ANSWER_SIZE)
            return error_set(error, ERROR_CORRUPT, "the kernel's list of networks is cut off");
        if (attached_parse(attached->answer, (size_t)got, fence, &is_done, out_is_torn, error) < 0)
            return -1;
    }
    return 0;
}

int attached_read(struct attached *attached, struct fence *fence, struct error *error)
{
    for (int i = 0; i < TRY_MAX; i++) {
        bool is_torn = false;
        if (drain(attached, error) < 0 || ask(attached, RTM_GETADDR, fence, &is_torn, error) < 0 ||
            ask(attached, RTM_GETROUTE, fence, &is_torn, error) < 0)
            return -1;
        if (!is_torn)
            return 0;
    }
    return error_set(error, ERROR_UNAVAILABLE, "this machine's networks change all the time");
}
