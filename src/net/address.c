#include "net/address.h"

#include "base/assert.h"
#include "base/scope.h"
#include "net/fence.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int host_port_parse(struct text text, struct host_port *out, struct error *error)
{
    struct text host;
    struct text port;
    if (text.size > 0 && text.data[0] == '[') {
        const struct text inner = {text.data + 1, text.size - 1};
        if (!text_cut(inner, ']', &host, &port) || port.size < 1 || port.data[0] != ':')
            return error_set(error, ERROR_INVALID, "address \"" TEXT_FORMAT "\" is not [host]:port",
                             TEXT_ARGS(text));
        port = (struct text){port.data + 1, port.size - 1};
    } else if (!text_cut(text, ':', &host, &port)) {
        return error_set(error, ERROR_INVALID, "address \"" TEXT_FORMAT "\" has no port",
                         TEXT_ARGS(text));
    }
    uint64_t number;
    if (text_parse_u64(port, &number, error) < 0 || number > UINT16_MAX)
        return error_set(error, ERROR_INVALID,
                         "address \"" TEXT_FORMAT "\" has no port between 0 and 65535",
                         TEXT_ARGS(text));
    struct host_port parsed = {.port = (uint16_t)number};
    if (text_copy(host, parsed.host, sizeof(parsed.host), error) < 0)
        return error_wrap(error, "host of an address");
    *out = parsed;
    return 0;
}

/* Whether the host needs no name service; if so, the address. */
static bool resolve_numeric(const struct host_port *host_port, struct address *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(host_port->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(host_port->port)};
    const char *host = host_port->host;
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    *out = (struct address){0};
    if (host[0] == '\0' || inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        memcpy(&out->storage, &v4, sizeof(v4));
        out->size = sizeof(v4);
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        memcpy(&out->storage, &v6, sizeof(v6));
        out->size = sizeof(v6);
        return true;
    }
    return false;
}

bool address_is_numeric(const struct host_port *host_port)
{
    struct address address;
    return resolve_numeric(host_port, &address);
}

int address_resolve(const struct host_port *host_port, struct address *out, struct error *error)
{
    struct address list[1];
    size_t count;
    if (address_resolve_all(host_port, list, 1, &count, error) < 0)
        return -1;
    *out = list[0];
    return 0;
}

int address_resolve_all(const struct host_port *host_port, struct address *out, size_t out_max,
                        size_t *out_count, struct error *error)
{
    ASSERT(out_max > 0);
    if (resolve_numeric(host_port, &out[0])) {
        *out_count = 1;
        return 0;
    }
    char service[8];
    const int length = snprintf(service, sizeof(service), "%u", host_port->port);
    ASSERT(length > 0 && length < (int)sizeof(service));
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const int result = getaddrinfo(host_port->host, service, &hints, &found);
    if (result != 0)
        return error_set(error, result == EAI_NONAME ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE,
                         "host \"%s\": %s", host_port->host, gai_strerror(result));
    size_t count = 0;
    for (const struct addrinfo *each = found; each && count < out_max; each = each->ai_next) {
        out[count] = (struct address){.size = each->ai_addrlen};
        memcpy(&out[count++].storage, each->ai_addr, each->ai_addrlen);
    }
    freeaddrinfo(found);
    if (count == 0)
        return error_set(error, ERROR_NOT_FOUND, "host \"%s\" has no address", host_port->host);
    *out_count = count;
    return 0;
}

bool address_is_loopback(const struct address *address)
{
    if (address->storage.ss_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, &address->storage, sizeof(v4));
        return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    }
    if (address->storage.ss_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, &address->storage, sizeof(v6));
        const uint8_t *bytes = v6.sin6_addr.s6_addr;
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && bytes[12] == 127);
    }
    return false;
}

/* RFC 4291: 2000::/3 is what was given out; within it are the special ranges of RFC 6890
 * (2001::/23, documentation twice) and 6to4, whose addresses are IPv4's. */
static bool is_public_v6(const uint8_t bytes[16])
{
    const uint32_t head =
        (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    return head >> 29 == 1 && head >> 9 != UINT32_C(0x20010000) >> 9 &&
           head != UINT32_C(0x20010db8) && head >> 16 != 0x2002 &&
           head >> 12 != UINT32_C(0x3fff0000) >> 12;
}

bool address_is_public(const struct address *address)
{
    if (address->storage.ss_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, &address->storage, sizeof(v4));
        return fence_is_public(ntohl(v4.sin_addr.s_addr));
    }
    if (address->storage.ss_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, &address->storage, sizeof(v6));
        return is_public_v6(v6.sin6_addr.s6_addr);
    }
    return false;
}

uint16_t address_port(const struct address *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    switch (address->storage.ss_family) {
    case AF_INET:
        memcpy(&v4, &address->storage, sizeof(v4));
        return ntohs(v4.sin_port);
    case AF_INET6:
        memcpy(&v6, &address->storage, sizeof(v6));
        return ntohs(v6.sin6_port);
    default:
        return 0;
    }
}

const char *address_format_host(const struct address *address, char out[ADDRESS_TEXT_SIZE])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    const char *written = NULL;
    if (address->storage.ss_family == AF_INET) {
        memcpy(&v4, &address->storage, sizeof(v4));
        written = inet_ntop(AF_INET, &v4.sin_addr, out, ADDRESS_TEXT_SIZE);
    } else if (address->storage.ss_family == AF_INET6) {
        memcpy(&v6, &address->storage, sizeof(v6));
        written = inet_ntop(AF_INET6, &v6.sin6_addr, out, ADDRESS_TEXT_SIZE);
    }
    if (!written)
        snprintf(out, ADDRESS_TEXT_SIZE, "unknown");
    return out;
}

const char *address_format(const struct address *address, char out[ADDRESS_TEXT_SIZE])
{
    char host[ADDRESS_TEXT_SIZE];
    address_format_host(address, host);
    const bool has_brackets = address->storage.ss_family == AF_INET6;
    const int length = snprintf(out, ADDRESS_TEXT_SIZE, has_brackets ? "[%s]:%u" : "%s:%u", host,
                                address_port(address));
    ASSERT(length > 0 && length < ADDRESS_TEXT_SIZE);
    return out;
}

int tcp_listen(const struct address *address, const char *option, int *out_fd, uint16_t *out_port,
               struct error *error)
{
    char host[ADDRESS_TEXT_SIZE];
    address_format_host(address, host);
    AUTO_FD int fd =
        socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(error, errno, "create a socket for %s", host);
    /* Lets a restarted server take its port although old connections linger. */
    const int one = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
        return error_set_errno(error, errno, "prepare a socket for %s", host);
    if (bind(fd, (const struct sockaddr *)&address->storage, address->size) < 0 ||
        listen(fd, SOMAXCONN) < 0) {
        if (errno == EADDRINUSE)
            return error_set(error, ERROR_CONFLICT,
                             "port %u on %s is in use; choose another with %s",
                             address_port(address), host, option);
        return error_set_errno(error, errno, "listen on port %u of %s", address_port(address),
                               host);
    }
    struct address bound = {.size = sizeof(bound.storage)};
    if (getsockname(fd, (struct sockaddr *)&bound.storage, &bound.size) < 0)
        return error_set_errno(error, errno, "ask for the port listened on");
    *out_port = address_port(&bound);
    *out_fd = TAKE_FD(fd);
    return 0;
}

static void set_no_delay(int fd)
{
    /* Only a matter of latency, and pointless where it is refused. */
    const int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int tcp_accept(int listen_fd, int *out_fd, struct address *out_peer, struct error *error)
{
    for (;;) {
        struct address peer = {.size = sizeof(peer.storage)};
        const int fd = accept4(listen_fd, (struct sockaddr *)&peer.storage, &peer.size,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            set_no_delay(fd);
            *out_fd = fd;
            if (out_peer)
                *out_peer = peer;
            return 1;
        }
        switch (errno) {
        case EINTR:
        case ECONNABORTED: /* that client left again: the next may be waiting */
        case EPROTO:
            continue;
        case EAGAIN:
            return 0;
        default:
            return error_set_errno(error, errno, "accept a connection");
        }
    }
}

enum { PORT_MIN = 1024, LINK_LOCAL = 0xa9fe /* 169.254.0.0/16 */ };

bool address_may_dial(const struct host_port *target, bool has_loopback_only)
{
    struct in_addr parsed;
    if (target->port < PORT_MIN || inet_pton(AF_INET, target->host, &parsed) != 1)
        return false;
    const uint32_t host = ntohl(parsed.s_addr);
    const uint32_t first = host >> 24;
    if (first == IN_LOOPBACKNET)
        return has_loopback_only;
    return first != 0 && first < 224 && host >> 16 != LINK_LOCAL;
}
