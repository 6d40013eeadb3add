/* Attempts to reach anything by a socket: the machine, its network, the cloud around it. */
#include "sandbox/escape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_alg.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ATTEMPT(name, call)                                                                        \
    static long name(const struct escape_targets *targets)                                         \
    {                                                                                              \
        (void)targets;                                                                             \
        return (call);                                                                             \
    }

ATTEMPT(open_tcp, socket(AF_INET, SOCK_STREAM, 0))
ATTEMPT(open_tcp6, socket(AF_INET6, SOCK_STREAM, 0))
ATTEMPT(open_udp, socket(AF_INET, SOCK_DGRAM, 0))
ATTEMPT(open_unix, socket(AF_UNIX, SOCK_STREAM, 0))
ATTEMPT(open_raw, socket(AF_INET, SOCK_RAW, IPPROTO_ICMP))
ATTEMPT(open_packet, socket(AF_PACKET, SOCK_RAW, 0))
ATTEMPT(open_netlink, socket(AF_NETLINK, SOCK_RAW, 0))
ATTEMPT(open_audit, socket(AF_NETLINK, SOCK_RAW, 9))
ATTEMPT(open_vsock, socket(AF_VSOCK, SOCK_STREAM, 0))
ATTEMPT(open_alg, socket(AF_ALG, SOCK_SEQPACKET, 0))
ATTEMPT(open_bluetooth, socket(AF_BLUETOOTH, SOCK_RAW, 0))
ATTEMPT(open_xdp, socket(AF_XDP, SOCK_RAW, 0))
ATTEMPT(open_with_high_bits, syscall(SYS_socket, (1L << 32) | AF_VSOCK, SOCK_STREAM, 0))
ATTEMPT(pair_tcp, socketpair(AF_INET, SOCK_STREAM, 0, (int[2]){0}))
/* Descriptor 3 is a connected TCP socket of the host. */
ATTEMPT(disconnect_handed, connect(3, &(struct sockaddr){.sa_family = AF_UNSPEC}, 16))
ATTEMPT(listen_on_handed, listen(3, 1))
ATTEMPT(accept_on_handed, accept(3, NULL, NULL))
ATTEMPT(name_host_device, ioctl(3, SIOCGIFNAME, &(struct ifreq){.ifr_ifindex = 1}))

static long dial4(const char *address, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &to.sin_addr);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static long dial6(const char *address, int port)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    inet_pton(AF_INET6, address, &to.sin6_addr);
    const int fd = socket(AF_INET6, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static long dial_path(const char *path, size_t skip)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int size = snprintf(to.sun_path + skip, sizeof(to.sun_path) - skip, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const socklen_t length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + skip) + (socklen_t)size;
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, length);
}

ATTEMPT(dial_localhost, dial4("127.0.0.1", targets->port))
ATTEMPT(dial_localhost6, dial6("::1", targets->port))
ATTEMPT(dial_any, dial4("0.0.0.0", targets->port))
ATTEMPT(dial_metadata, dial4("169.254.169.254", 80))
ATTEMPT(dial_metadata6, dial6("fd00:ec2::254", 80))
ATTEMPT(dial_lan, dial4("192.168.1.1", 80))
ATTEMPT(dial_lan_10, dial4("10.0.0.1", 80))
ATTEMPT(dial_internet, dial4("1.1.1.1", 53))
ATTEMPT(dial_internet6, dial6("2606:4700:4700::1111", 53))
ATTEMPT(dial_abstract, dial_path(targets->socket, 1))
ATTEMPT(dial_dbus, dial_path("/run/dbus/system_bus_socket", 0))
ATTEMPT(dial_docker, dial_path("/var/run/docker.sock", 0))

static long send_broadcast(const struct escape_targets *targets)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)targets->port),
                                   .sin_addr.s_addr = htonl(INADDR_BROADCAST)};
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    const int one = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)) < 0)
        return -1;
    return sendto(fd, "x", 1, 0, (const struct sockaddr *)&to, sizeof(to));
}

static long add_a_device(const struct escape_targets *targets)
{
    (void)targets;
    struct ifreq device = {.ifr_name = "lo", .ifr_mtu = 1000};
    return ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFMTU, &device);
}

/* By a device, past the routes. */
static long dial_by_device(const char *address, int port, const char *device)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &to.sin_addr);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const int tries = 1; /* a network that says nothing is given up soon */
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &tries, sizeof(tries)) < 0)
        return -1;
    return connect(fd, (struct sockaddr *)&to, sizeof(to));
}

/* A datagram, and what comes back. */
static long ask_with(const char *address, int port, size_t size, const uint8_t *options,
                     socklen_t options_size)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    static const char question[3000];
    char answer[64];
    const struct timeval patience = {.tv_usec = 500000};
    inet_pton(AF_INET, address, &to.sin_addr);
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    const int one = 1, may_fragment = IP_PMTUDISC_DONT;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)) < 0 ||
        setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &may_fragment, sizeof(may_fragment)) < 0 ||
        (options_size > 0 && setsockopt(fd, IPPROTO_IP, IP_OPTIONS, options, options_size) < 0) ||
        connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || send(fd, question, size, 0) < 0)
        return -1;
    return recv(fd, answer, sizeof(answer), 0);
}

ATTEMPT(dial_metadata_by_device, dial_by_device("169.254.169.254", 80, "souk1"))
ATTEMPT(dial_lan_by_device, dial_by_device("192.168.1.1", 80, "souk1"))
ATTEMPT(dial_lan_by_job_device, dial_by_device("192.168.1.1", 80, "souk0"))
ATTEMPT(dial_own_lan, dial4("192.168.1.2", targets->port))
ATTEMPT(dial_gateway, dial4("10.78.0.2", targets->port))
ATTEMPT(dial_gateway_names, dial4("10.78.0.3", 53))
ATTEMPT(dial_documentation, dial4("203.0.113.1", 80))
ATTEMPT(dial_azure, dial4("168.63.129.16", 80))
ATTEMPT(ask_metadata, ask_with("169.254.169.254", 80, 1, NULL, 0))
ATTEMPT(ask_lan, ask_with("192.168.1.1", 80, 1, NULL, 0))
ATTEMPT(ask_lan_names, ask_with("192.168.1.1", 53, 1, NULL, 0))
ATTEMPT(ask_lan_in_fragments, ask_with("192.168.1.1", 80, 3000, NULL, 0))
ATTEMPT(ask_lan_all, ask_with("192.168.1.255", 80, 1, NULL, 0))
ATTEMPT(ask_everybody, ask_with("255.255.255.255", 80, 1, NULL, 0))
ATTEMPT(ask_group, ask_with("239.255.255.250", 1900, 1, NULL, 0))
/* A loose source route: first a public address, from there the LAN. */
ATTEMPT(ask_by_source_route,
        ask_with("192.168.1.1", 80, 1, (const uint8_t[]){131, 7, 4, 93, 184, 216, 34, 0}, 8))
ATTEMPT(ping_lan, socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP))

const struct escape_attempt escape_sockets[] = {
    {"open a TCP socket", open_tcp, "EPERM"},
    {"open a TCP socket, IPv6", open_tcp6, "EPERM"},
    {"open a UDP socket", open_udp, "EPERM"},
    {"open a local socket", open_unix, "EPERM"},
    {"open a raw socket", open_raw, "EPERM"},
    {"open a packet socket", open_packet, "EPERM"},
    {"open a netlink socket", open_netlink, "EPERM"},
    {"open a vsock", open_vsock, "EPERM"},
    {"open a crypto socket", open_alg, "EPERM"},
    {"open a Bluetooth socket", open_bluetooth, "EPERM"},
    {"open a pair of TCP sockets", pair_tcp, "EPERM"},
    {"disconnect the socket it was handed", disconnect_handed, "EPERM"},
    {"listen on the socket it was handed", listen_on_handed, "EPERM"},
    {"accept on the socket it was handed", accept_on_handed, "EPERM"},
    {"name the host's devices by that socket", name_host_device, "EPERM"},
    {NULL, NULL, NULL},
};

const struct escape_attempt escape_local[] = {
    {"reach an abstract socket of the host", dial_abstract, "ECONNREFUSED|EPERM"},
    {"reach the system's D-Bus", dial_dbus, "ENOENT"},
    {"reach Docker", dial_docker, "ENOENT"},
    {"open a TCP socket beside local ones", open_tcp, "EPERM"},
    {"open a vsock beside local ones", open_vsock, "EPERM"},
    {"open a netlink socket beside local ones", open_netlink, "EPERM"},
    {NULL, NULL, NULL},
};

const struct escape_attempt escape_network[] = {
    {"reach a server on the host's loopback", dial_localhost, "ECONNREFUSED"},
    {"reach it by IPv6", dial_localhost6, "ECONNREFUSED|ENETUNREACH|EADDRNOTAVAIL"},
    {"reach it by 0.0.0.0", dial_any, "ECONNREFUSED|ENETUNREACH"},
    {"reach the cloud's metadata", dial_metadata, "ENETUNREACH"},
    {"reach the cloud's metadata by IPv6", dial_metadata6, "ENETUNREACH|EADDRNOTAVAIL"},
    {"reach the LAN", dial_lan, "ENETUNREACH"},
    {"reach another LAN", dial_lan_10, "ENETUNREACH"},
    {"reach the Internet", dial_internet, "ENETUNREACH"},
    {"reach the Internet by IPv6", dial_internet6, "ENETUNREACH|EADDRNOTAVAIL"},
    {"broadcast", send_broadcast, "ENETUNREACH|EACCES"},
    {"change a network device", add_a_device, "EPERM"},
    {"reach an abstract socket of the host, networked", dial_abstract, "ECONNREFUSED|EPERM"},
    {"open a raw socket, networked", open_raw, "EPERM"},
    {"open a packet socket, networked", open_packet, "EAFNOSUPPORT|EPERM"},
    {"open a vsock, networked", open_vsock, "EAFNOSUPPORT"},
    {"open a vsock with high bits set", open_with_high_bits, "EAFNOSUPPORT"},
    {"open a crypto socket, networked", open_alg, "EAFNOSUPPORT"},
    {"open an XDP socket, networked", open_xdp, "EAFNOSUPPORT"},
    {"open the audit log, networked", open_audit, "EPROTONOSUPPORT|EPERM"},
    {NULL, NULL, NULL},
};

const struct escape_attempt escape_open[] = {
    {"reach a server on the host's loopback, with the Internet", dial_localhost, "ECONNREFUSED"},
    {"reach it by IPv6, with the Internet", dial_localhost6,
     "ECONNREFUSED|ENETUNREACH|EADDRNOTAVAIL"},
    {"reach it by the machine's address", dial_own_lan, "EHOSTUNREACH"},
    {"reach it by the gateway's address", dial_gateway, "EHOSTUNREACH"},
    {"reach the gateway's name server", dial_gateway_names, "EHOSTUNREACH"},
    {"reach the cloud's metadata, with the Internet", dial_metadata, "EHOSTUNREACH"},
    {"reach it by a device", dial_metadata_by_device, "EHOSTUNREACH"},
    {"reach it by IPv6, with the Internet", dial_metadata6, "ENETUNREACH|EADDRNOTAVAIL"},
    {"reach it by UDP", ask_metadata, "EHOSTUNREACH"},
    {"reach another cloud's", dial_azure, "EHOSTUNREACH"},
    {"reach the LAN, with the Internet", dial_lan, "EHOSTUNREACH"},
    {"reach the LAN by the Internet's device", dial_lan_by_device, "EHOSTUNREACH"},
    {"reach the LAN by the job network's device", dial_lan_by_job_device,
     "ETIMEDOUT|ENETUNREACH|EHOSTUNREACH"},
    {"reach the LAN by UDP", ask_lan, "EHOSTUNREACH"},
    {"reach the router's name server", ask_lan_names, "EHOSTUNREACH"},
    {"reach the LAN in fragments", ask_lan_in_fragments, "EHOSTUNREACH|EAGAIN"},
    {"reach the LAN by a source route", ask_by_source_route, "EHOSTUNREACH|EAGAIN|EPERM"},
    {"reach all of the LAN", ask_lan_all, "EHOSTUNREACH"},
    {"reach everybody", ask_everybody, "EHOSTUNREACH|EAGAIN|ENETUNREACH"},
    {"reach a group", ask_group, "EHOSTUNREACH|EAGAIN|ENETUNREACH"},
    {"reach another LAN, with the Internet", dial_lan_10, "EHOSTUNREACH"},
    {"reach documentation", dial_documentation, "EHOSTUNREACH"},
    {"reach the Internet by IPv6, with the Internet", dial_internet6, "ENETUNREACH|EADDRNOTAVAIL"},
    {"ping", ping_lan, "EACCES|EPERM|EPROTONOSUPPORT"},
    {"change a network device, with the Internet", add_a_device, "EPERM"},
    {"open a raw socket, with the Internet", open_raw, "EPERM"},
    {"open a packet socket, with the Internet", open_packet, "EAFNOSUPPORT|EPERM"},
    {"reach an abstract socket of the host, with the Internet", dial_abstract,
     "ECONNREFUSED|EPERM"},
    {NULL, NULL, NULL},
};
