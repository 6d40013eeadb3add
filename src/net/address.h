/*
 * Address: host and port as people write them, and TCP sockets that listen and connect.
 *
 * All sockets made here are non-blocking and close-on-exec; connected ones have TCP_NODELAY.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "net/loop.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESS_HOST_SIZE = 256, ADDRESS_TEXT_SIZE = 64 };

struct host_port {
    char host[ADDRESS_HOST_SIZE]; /* without brackets */
    uint16_t port;
};

/* "name:7600", "127.0.0.1:7600", "[::1]:7600", ":7600" (host ""). */
MUST_CHECK int host_port_parse(struct text text, struct host_port *out, struct error *error);

struct address {
    struct sockaddr_storage storage;
    socklen_t size;
};

/*
 * The first address of the host. Numeric hosts and "localhost" (127.0.0.1) are answered at once,
 * names may block on DNS. An empty host means every address of this machine.
 */
MUST_CHECK int address_resolve(const struct host_port *host_port, struct address *out,
                               struct error *error);
/* All of them, up to `out_max`, in the order to be tried. */
MUST_CHECK int address_resolve_all(const struct host_port *host_port, struct address *out,
                                   size_t out_max, size_t *out_count, struct error *error);
/* Whether resolving it needs no name service. */
bool address_is_numeric(const struct host_port *host_port);
bool address_is_loopback(const struct address *address);
/* A host of the Internet's: none of the private, local and special ranges of IPv4 (net/fence.h) and
 * IPv6, nor one of IPv4 dressed as IPv6. For who dials what strangers name. */
bool address_is_public(const struct address *address);
uint16_t address_port(const struct address *address);
/* "127.0.0.1:7600", "[::1]:7600"; returns `out`. */
const char *address_format(const struct address *address, char out[ADDRESS_TEXT_SIZE]);
/* The host alone, without brackets; returns `out`. */
const char *address_format_host(const struct address *address, char out[ADDRESS_TEXT_SIZE]);

/*
 * Whether an address that another machine told is dialled: IPv4 of one host, a port of no known
 * service, nothing link-local (the cloud's metadata is), and loopback only where that is all there
 * is.
 */
bool address_may_dial(const struct host_port *target, bool has_loopback_only);

/*
 * Listens; port 0 takes a free one, told in *out_port. A taken port fails with CONFLICT and says
 * "port 7600 on 127.0.0.1 is in use; choose another with --listen", where `option` is "--listen".
 */
MUST_CHECK int tcp_listen(const struct address *address, const char *option, int *out_fd,
                          uint16_t *out_port, struct error *error);
/* Returns 1 with a connection, 0 when none waits, -1 on an error that will not pass by itself. */
MUST_CHECK int tcp_accept(int listen_fd, int *out_fd, struct address *out_peer,
                          struct error *error);

/*
 * Connects in the background. The callback comes once, never from inside tcp_connect_start: with a
 * descriptor that is now the callee's, or with fd -1 and the reason. Names are resolved on a thread
 * of their own, so the loop never waits for DNS.
 */
struct tcp_connect;
typedef void tcp_connect_function(void *context, int fd, const struct error *reason);

struct tcp_connect *tcp_connect_start(struct loop *loop, const struct host_port *target,
                                      int64_t timeout_ms, tcp_connect_function *callback,
                                      void *context);
/* Gives up without a callback; after the callback it only releases. NULL is fine. */
void tcp_connect_free(struct tcp_connect *attempt);
DEFINE_AUTO(tcp_connect);
