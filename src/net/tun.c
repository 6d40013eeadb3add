#include "net/tun.h"

#include "base/assert.h"
#include "base/scope.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/nsfs.h>
#include <linux/route.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TUN_PATH "/dev/net/tun"

enum step { STEP_ENTER_USER, STEP_ENTER, STEP_OPEN, STEP_MAKE, STEP_SET_UP, STEP_HAND_OVER };

static const char *const step_names[] = {
    [STEP_ENTER_USER] = "enter the sandbox's user namespace",
    [STEP_ENTER] = "enter the sandbox's network namespace",
    [STEP_OPEN] = "open \"/dev/net/tun\"",
    [STEP_MAKE] = "make a TUN device",
    [STEP_SET_UP] = "set up the TUN device",
    [STEP_HAND_OVER] = "hand over the TUN device",
};

struct failure {
    int32_t step; /* -1: none, and the descriptor comes with it */
    int32_t errno_value;
};

/* Everything made before the fork: after it only async-signal-safe calls. */
struct maker {
    int user_fd, net_fd; /* -1: stay */
    struct ifreq device, address, mask, mtu, flags;
    struct rtentry route;
    bool has_route, has_plain_tcp;
    unsigned offload;
    char no_ipv6[64]; /* path of the setting */
};

/* Reno is in every kernel, and open to a namespace that is not the first. */
static int set_plain_tcp(void)
{
    static const char plainest[] = "reno";
    const int setting = open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY | O_CLOEXEC);
    if (setting < 0)
        return -1;
    return write(setting, plainest, sizeof(plainest) - 1) == sizeof(plainest) - 1 ? 0 : -1;
}

static int make_device(const struct maker *maker, int *out_step)
{
    *out_step = STEP_ENTER_USER;
    if (maker->user_fd >= 0 && setns(maker->user_fd, CLONE_NEWUSER) < 0)
        return -1;
    *out_step = STEP_ENTER;
    if (maker->net_fd >= 0 && setns(maker->net_fd, CLONE_NEWNET) < 0)
        return -1;
    /* Only now: the descriptor belongs to the namespace it is opened in. */
    *out_step = STEP_OPEN;
    const int fd = open(TUN_PATH, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    *out_step = STEP_MAKE;
    if (ioctl(fd, TUNSETIFF, &maker->device) < 0 || ioctl(fd, TUNSETOFFLOAD, maker->offload) < 0)
        return -1;
    *out_step = STEP_SET_UP;
    /* Without IPv6 the device says nothing of its own accord. A kernel without it has no such
     * setting. */
    const int setting = open(maker->no_ipv6, O_WRONLY | O_CLOEXEC);
    if (setting >= 0 && write(setting, "1", 1) != 1)
        return -1;
    if (maker->has_plain_tcp && set_plain_tcp() < 0)
        return -1;
    const int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_fd < 0 || ioctl(socket_fd, SIOCSIFMTU, &maker->mtu) < 0 ||
        ioctl(socket_fd, SIOCSIFADDR, &maker->address) < 0 ||
        ioctl(socket_fd, SIOCSIFNETMASK, &maker->mask) < 0 ||
        ioctl(socket_fd, SIOCSIFFLAGS, &maker->flags) < 0 ||
        (maker->has_route && ioctl(socket_fd, SIOCADDRT, &maker->route) < 0))
        return -1;
    *out_step = STEP_HAND_OVER;
    return fd;
}

union fd_message {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static void send_result(int socket_fd, int fd, int step)
{
    struct failure failure = {.step = fd < 0 ? step : -1, .errno_value = errno};
    struct iovec part = {&failure, sizeof(failure)};
    union fd_message control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    if (sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0)
        _exit(1);
    _exit(0);
}

static int receive_result(int socket_fd, int *out_fd, struct error *error)
{
    struct failure failure = {0};
    struct iovec part = {&failure, sizeof(failure)};
    union fd_message control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t got;
    do {
        got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(failure))
        return error_set(error, ERROR_UNAVAILABLE, "the TUN device's maker died");
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (failure.step < 0 && header && header->cmsg_type == SCM_RIGHTS) {
        memcpy(out_fd, CMSG_DATA(header), sizeof(*out_fd));
        return 0;
    }
    const bool is_known =
        failure.step >= 0 && failure.step < (int)(sizeof(step_names) / sizeof(*step_names));
    error_set_errno(error, failure.errno_value, "%s",
                    step_names[is_known ? failure.step : STEP_HAND_OVER]);
    error->code = ERROR_UNAVAILABLE;
    return -1;
}

static int run_maker(const struct maker *maker, int *out_fd, struct error *error)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(error, errno, "make a socketpair");
    AUTO_FD int ours = pair[0];
    AUTO_FD int theirs = pair[1];
    const pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(error, errno, "fork");
    if (pid == 0) {
        int step = STEP_ENTER_USER;
        const int fd = make_device(maker, &step);
        send_result(theirs, fd, step);
    }
    close(TAKE_FD(theirs));
    const int result = receive_result(ours, out_fd, error);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return result;
}

static void set_name(struct ifreq *request, const char *name)
{
    snprintf(request->ifr_name, sizeof(request->ifr_name), "%s", name);
}

static void set_address(struct ifreq *request, const char *name, uint32_t address)
{
    set_name(request, name);
    const struct sockaddr_in value = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    memcpy(&request->ifr_addr, &value, sizeof(value));
}

/* To everything that has no other route. */
static void set_route(struct maker *maker)
{
    const struct sockaddr_in any = {.sin_family = AF_INET};
    memcpy(&maker->route.rt_dst, &any, sizeof(any));
    memcpy(&maker->route.rt_genmask, &any, sizeof(any));
    maker->route.rt_flags = RTF_UP;
    maker->route.rt_dev = maker->device.ifr_name;
}

static void prepare(struct maker *maker, const struct tun_options *options)
{
    set_name(&maker->device, options->name);
    maker->device.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    maker->offload = options->has_offload ? TUN_F_CSUM | TUN_F_TSO4 : 0;
    set_address(&maker->address, options->name, options->address);
    set_address(&maker->mask, options->name, ~(uint32_t)0 << (32 - options->prefix_bits));
    set_name(&maker->mtu, options->name);
    maker->mtu.ifr_mtu = options->mtu;
    set_name(&maker->flags, options->name);
    maker->flags.ifr_flags = IFF_UP | IFF_RUNNING;
    maker->has_route = options->is_default;
    maker->has_plain_tcp = options->is_lossless;
    set_route(maker);
    snprintf(maker->no_ipv6, sizeof(maker->no_ipv6), "/proc/sys/net/ipv6/conf/%s/disable_ipv6",
             options->name);
}

int tun_open(const struct tun_options *options, int *out_fd, struct error *error)
{
    ASSERT(!options->is_lossless || options->inside != 0);
    struct maker maker = {.user_fd = -1, .net_fd = -1};
    prepare(&maker, options);
    if (options->inside == 0)
        return run_maker(&maker, out_fd, error);

    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)options->inside);
    AUTO_FD int net_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (net_fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    /* The user namespace that owns the network; the program itself may be in one further inside. */
    AUTO_FD int user_fd = ioctl(net_fd, NS_GET_USERNS);
    if (user_fd < 0)
        return error_set_errno(error, errno, "find the owner of \"%s\"", path);
    maker.net_fd = net_fd;
    /* Nobody may enter the one they are in. */
    struct stat own, owner;
    if (stat("/proc/self/ns/user", &own) < 0 || fstat(user_fd, &owner) < 0)
        return error_set_errno(error, errno, "compare user namespaces");
    if (own.st_ino != owner.st_ino || own.st_dev != owner.st_dev)
        maker.user_fd = user_fd;
    return run_maker(&maker, out_fd, error);
}

int tun_check(struct error *error)
{
    AUTO_FD int fd = open(TUN_PATH, O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        return 0;
    error_set_errno(error, errno, "%s", step_names[STEP_OPEN]);
    error->code = ERROR_UNAVAILABLE;
    return -1;
}
