#include "sandbox/confine.h"
#include "sandbox/stage.h"
#include "testing/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESCRIPTORS = 32 };

/* What a confined process is refused, by number; 0: all is as it should be. */
static int try_everything(void)
{
    struct error error;
    const struct confine_options options = {.descriptor_max = DESCRIPTORS, .data_bytes = 64 << 20};
    if (confine_to_sockets(&options, &error) < 0)
        return 1;
    if (geteuid() == 0 || open("/etc/passwd", O_RDONLY) >= 0 || open("/", O_RDONLY) >= 0)
        return 2;
    if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_NETLINK, SOCK_RAW, 0) >= 0 ||
        socket(AF_INET6, SOCK_STREAM, 0) >= 0 || socket(AF_PACKET, SOCK_RAW, 0) >= 0 ||
        socket(AF_INET, SOCK_RAW, IPPROTO_RAW) >= 0)
        return 3;
    if (fork() >= 0 || execl("/bin/true", "true", NULL) == 0 || kill(getppid(), 0) == 0)
        return 4;
    if (syscall(SYS_ptrace, PTRACE_ATTACH, getppid(), 0, 0) == 0 ||
        syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0) >= 0 ||
        syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno != EPERM)
        return 5;
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return 6;
    /* A process that is not there would be ESRCH to one that may signal others. */
    const int one = socket(AF_INET, SOCK_DGRAM, 0);
    const pid_t nobody = INT32_MAX;
    int waiting = 0, owner = getppid();
    if (syscall(SYS_tgkill, nobody, nobody, 0) == 0 || errno != EPERM ||
        syscall(SYS_tgkill, getpid(), gettid(), 0) < 0 || fcntl(one, F_SETOWN, owner) == 0 ||
        ioctl(one, FIOSETOWN, &owner) == 0)
        return 8;
    if (fcntl(one, F_SETFL, O_NONBLOCK) < 0 || ioctl(one, FIONREAD, &waiting) < 0)
        return 9;
    int last = -1;
    for (int fd; (fd = socket(AF_INET, SOCK_DGRAM, 0)) >= 0;)
        last = fd;
    return last > 0 && last < DESCRIPTORS && errno == EMFILE ? 0 : 7;
}

TEST(a_confined_process_has_sockets_of_ipv4_and_nothing_else)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(try_everything());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* 0: all is as it should be, or this kernel has no Landlock. */
static int try_fetching(void)
{
    struct error error;
    const struct confine_options options = {
        .descriptor_max = DESCRIPTORS, .data_bytes = 64 << 20, .file_bytes = 10};
    const int given = memfd_create("given", MFD_CLOEXEC);
    signal(SIGXFSZ, SIG_IGN);
    if (confine_to_network(&options, &error) < 0)
        return 1;
    if (geteuid() == 0 || write(given, "twelve bytes", 12) != 10 || write(given, "x", 1) >= 0)
        return 2;
    if (open("/etc/passwd", O_RDONLY) < 0 || open("/usr/bin/env", O_RDONLY) < 0)
        return 3;
    if (socket(AF_INET, SOCK_STREAM, 0) < 0 || socket(AF_INET6, SOCK_STREAM, 0) < 0)
        return 4;
    if (open("/tmp/souk-confine-test", O_WRONLY | O_CREAT, 0600) >= 0 && stage_landlock_abi())
        return 5;
    return open("/tmp", O_RDONLY) >= 0 && stage_landlock_abi() ? 6 : 0;
}

TEST(one_that_fetches_reads_what_it_needs_and_writes_what_it_was_given)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(try_fetching());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confined_process_has_sockets_of_ipv4_and_nothing_else),
        cmocka_unit_test(one_that_fetches_reads_what_it_needs_and_writes_what_it_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
