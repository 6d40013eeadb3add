/*
 * Devices in the network namespace of another process, made as root and as a plain user.
 */
#include "base/scope.h"
#include "net/packet.h"
#include "net/tun.h"
#include "testing/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, MTU = 9000 };

enum { ASK_SEND = 's', ASK_CONTROL = 'c' };

/* A process in namespaces of its own: asked to, it sends one UDP packet to rank 1 and answers with
 * the errno, or answers whether its TCP has the plainest congestion control. */
struct inside {
    pid_t pid;
    int fd;
};

static uint8_t has_plain_tcp(void)
{
    char name[16] = "";
    socklen_t size = sizeof(name);
    const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int result = getsockopt(socket_fd, IPPROTO_TCP, TCP_CONGESTION, name, &size);
    close(socket_fd);
    return result == 0 && strcmp(name, "reno") == 0;
}

_Noreturn static void inside_main(int fd)
{
    uint8_t byte = unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 ? (uint8_t)errno : 0;
    if (write(fd, &byte, 1) != 1)
        _exit(1);
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(packet_address(1))};
    while (read(fd, &byte, 1) == 1) {
        if (byte == ASK_CONTROL) {
            byte = has_plain_tcp();
        } else {
            const int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
            const ssize_t sent = sendto(socket_fd, "hello", 5, 0, (const struct sockaddr *)&address,
                                        sizeof(address));
            byte = sent < 0 ? (uint8_t)errno : 0;
            close(socket_fd);
        }
        if (write(fd, &byte, 1) != 1)
            _exit(1);
    }
    _exit(0);
}

static struct inside inside_start(void)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        inside_main(fds[1]);
    }
    close(fds[1]);
    uint8_t byte = 1;
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_int_equal(byte, 0);
    return (struct inside){pid, fds[0]};
}

static void inside_end(const struct inside *inside)
{
    close(inside->fd);
    assert_int_equal(waitpid(inside->pid, NULL, 0), inside->pid);
}

static int inside_ask(const struct inside *inside, uint8_t byte)
{
    assert_int_equal(write(inside->fd, &byte, 1), 1);
    assert_int_equal(read(inside->fd, &byte, 1), 1);
    return byte;
}

static int inside_send(const struct inside *inside)
{
    return inside_ask(inside, ASK_SEND);
}

static struct tun_options options_of(const struct inside *inside)
{
    return (struct tun_options){.inside = inside->pid,
                                .name = "souk0",
                                .address = packet_address(0),
                                .prefix_bits = PACKET_PREFIX_BITS,
                                .mtu = MTU,
                                .has_offload = true};
}

TEST(packets_of_the_namespace_can_be_read)
{
    struct error error = {0};
    const struct inside inside = inside_start();
    AUTO_FD int fd = -1;
    assert_int_equal(inside_send(&inside), ENETUNREACH);
    const struct tun_options options = options_of(&inside);
    ASSERT_OK(tun_open(&options, &fd, &error));
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(inside_send(&inside), 0);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, HUNG_MS), 1);
    uint8_t bytes[256];
    const ssize_t size = read(fd, bytes, sizeof(bytes));
    /* The first is ours: the device says nothing of its own accord. */
    assert_int_equal(size, PACKET_HEADER_SIZE + 20 + 8 + 5);
    struct packet_route route;
    assert_int_equal(packet_from_tun(bytes, (size_t)size, 2, &route), PACKET_PASSES);
    assert_int_equal(route.from_rank, 0);
    assert_int_equal(route.to_rank, 1);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), -1);
    assert_int_equal(errno, EAGAIN);
    inside_end(&inside);
}

TEST(a_lossless_network_has_the_plainest_tcp)
{
    struct error error = {0};
    const struct inside inside = inside_start();
    AUTO_FD int fd = -1;
    struct tun_options options = options_of(&inside);
    options.is_lossless = true;
    ASSERT_OK(tun_open(&options, &fd, &error));
    assert_int_equal(inside_ask(&inside, ASK_CONTROL), 1);
    inside_end(&inside);
}

TEST(device_is_gone_with_its_descriptor)
{
    struct error error = {0};
    const struct inside inside = inside_start();
    const struct tun_options options = options_of(&inside);
    for (int i = 0; i < 2; i++) { /* the name is free again */
        int fd = -1;
        ASSERT_OK(tun_open(&options, &fd, &error));
        assert_int_equal(inside_send(&inside), 0);
        close(fd);
        assert_int_equal(inside_send(&inside), ENETUNREACH);
    }
    inside_end(&inside);
}

TEST(failures_say_which_step)
{
    struct error error = {0};
    const struct inside inside = inside_start();
    struct tun_options options = options_of(&inside);
    int fd = -1;
    options.mtu = 1;
    ASSERT_FAILS(tun_open(&options, &fd, &error), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error.message, "set up the TUN device"));
    assert_int_equal(fd, -1);
    inside_end(&inside);
    ASSERT_FAILS(tun_open(&options, &fd, &error), ERROR_NOT_FOUND);
    assert_null(strstr(error.message, "TUN"));
}

static int run_all(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_of_the_namespace_can_be_read),
        cmocka_unit_test(a_lossless_network_has_the_plainest_tcp),
        cmocka_unit_test(device_is_gone_with_its_descriptor),
        cmocka_unit_test(failures_say_which_step),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

static bool can_make_namespaces(void)
{
    const pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0);
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int run_all_as_plain_user(void)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) < 0 || setresgid(65533, 65533, 65533) < 0 ||
            setresuid(65533, 65533, 65533) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
            _exit(1);
        struct error error;
        if (tun_check(&error) < 0 || !can_make_namespaces())
            _exit(0); /* not open to plain users here */
        _exit(run_all("plain user") == 0 ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}

int main(void)
{
    struct error error;
    if (tun_check(&error) < 0 || !can_make_namespaces()) {
        fprintf(stderr, "skipped: no /dev/net/tun or no user namespaces here\n");
        return SKIPPED;
    }
    int failed = run_all(geteuid() == 0 ? "root" : "plain user");
    if (geteuid() == 0)
        failed += run_all_as_plain_user();
    return failed;
}
