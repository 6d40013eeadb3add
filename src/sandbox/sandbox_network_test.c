/*
 * A sandbox with a network of its own: what may be opened there, and when the program starts.
 *
 * Run by root, everything is done twice: as root, and as a plain user.
 */
#include "base/buffer.h"
#include "base/file.h"
#include "base/scope.h"
#include "sandbox/sandbox.h"
#include "testing/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 4096, SKIPPED = 77 };

/* Where a plain user can read it, wherever this checkout lies. */
static char folder[] = "/tmp/souk-network-test-XXXXXX";
static char probe_path[64];

struct network {
    int call_count;
    bool is_refusing;
    bool is_shared; /* the machine's own */
    int output_fd;  /* what the program prints on; -1: not looked at */
    bool was_held;
    char own[64], inside[64]; /* the namespaces' names */
};

static int set_up_network(void *context, pid_t inside, struct error *error)
{
    struct network *network = context;
    char path[64];
    network->call_count++;
    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)inside);
    if (readlink("/proc/self/ns/net", network->own, sizeof(network->own) - 1) < 0 ||
        readlink(path, network->inside, sizeof(network->inside) - 1) < 0)
        return error_set_errno(error, errno, "read a namespace");
    struct pollfd output = {.fd = network->output_fd, .events = POLLIN};
    network->was_held = poll(&output, 1, 50) == 0; /* clock: tests silence */
    return network->is_refusing ? error_set(error, ERROR_REFUSED, "no network today") : 0;
}

static int start(struct sandbox_host *host, const char *verb, struct network *network,
                 const int fds[2], struct sandbox **out_sandbox, struct error *error)
{
    const char *const argv[] = {"/souk", verb, NULL};
    const struct sandbox_options options = {.name = "network",
                                            .argv = argv,
                                            .cpu_milli = 1000,
                                            .memory_bytes = 64 << 20,
                                            .pids_max = 16,
                                            .control_fd = fds[0],
                                            .stdout_fd = fds[1],
                                            .stderr_fd = fds[1],
                                            .shares_network = network->is_shared,
                                            .set_up_network =
                                                network->is_shared ? NULL : set_up_network,
                                            .network_context = network};
    network->output_fd = fds[0];
    return sandbox_start(host, &options, out_sandbox, error);
}

static void run_to_end(const char *verb, struct network *network, char output[OUTPUT_MAX])
{
    struct error error = {0};
    AUTO(sandbox_host) struct sandbox_host *host = NULL;
    AUTO(sandbox) struct sandbox *sandbox = NULL;
    int fds[2];
    ASSERT_OK(sandbox_host_open(folder, probe_path, &host, &error));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ASSERT_OK(start(host, verb, network, fds, &sandbox, &error));
    struct pollfd wait = {.fd = sandbox_pidfd(sandbox), .events = POLLIN};
    assert_int_equal(poll(&wait, 1, HUNG_MS), 1);
    struct sandbox_exit result;
    assert_true(sandbox_reap(sandbox, &result));
    assert_int_equal(result.code, 0);
    close(fds[1]);
    size_t size = 0;
    ssize_t got;
    while ((got = read(fds[0], output + size, OUTPUT_MAX - 1 - size)) > 0)
        size += (size_t)got;
    output[size] = '\0';
    close(fds[0]);
}

static void assert_says(const char *output, const char *words)
{
    if (!strstr(output, words))
        fail_msg("no \"%s\" in:\n%s", words, output);
}

static void program_waits_until_its_network_is_there(void **state)
{
    (void)state;
    struct network network = {0};
    char output[OUTPUT_MAX];
    run_to_end("surroundings", &network, output);
    assert_int_equal(network.call_count, 1);
    assert_true(network.was_held);
    assert_string_not_equal(network.own, network.inside);
    assert_string_equal(output, "env PWD=/\nfd 0\nfd 1\nfd 2\nfd 3\n");
}

static void only_sockets_of_its_own_network_can_be_opened(void **state)
{
    (void)state;
    struct network network = {0};
    char output[OUTPUT_MAX];
    run_to_end("sockets", &network, output);
    static const char *const said[] = {
        "tcp=ok",
        "udp=ok",
        "unix=ok",
        "route=ok",
        "audit=EPROTONOSUPPORT",
        "raw=EPERM",
        "ping=EACCES",
        "sctp=EPROTONOSUPPORT",
        "packet=EAFNOSUPPORT",
        "vsock=EAFNOSUPPORT",
        "alg=EAFNOSUPPORT",
        "high=EAFNOSUPPORT",
        "device=ok",
        "uring=EPERM",
        "metadata=ENETUNREACH",
    };
    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
        assert_says(output, said[i]);
}

static void of_the_machines_network_it_has_tcp_and_udp_alone(void **state)
{
    (void)state;
    struct network network = {.is_shared = true};
    char output[OUTPUT_MAX];
    run_to_end("sockets", &network, output);
    static const char *const said[] = {
        "tcp=ok",
        "udp=ok",
        "unix=EAFNOSUPPORT",
        "route=EAFNOSUPPORT",
        "audit=EAFNOSUPPORT",
        "raw=EPERM",
        "packet=EAFNOSUPPORT",
        "vsock=EAFNOSUPPORT",
        "high=EAFNOSUPPORT",
        "device=EPERM",
        "uring=EPERM",
    };
    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
        assert_says(output, said[i]);
    assert_int_equal(network.call_count, 0);
}

static void network_that_fails_ends_the_start_and_nothing_has_run(void **state)
{
    (void)state;
    struct error error = {0};
    AUTO(sandbox_host) struct sandbox_host *host = NULL;
    struct sandbox *sandbox = NULL;
    struct network network = {.is_refusing = true};
    int fds[2];
    ASSERT_OK(sandbox_host_open(folder, probe_path, &host, &error));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ASSERT_FAILS(start(host, "surroundings", &network, fds, &sandbox, &error), ERROR_REFUSED);
    assert_says(error.message, "no network today");
    close(fds[1]);
    char byte;
    assert_int_equal(read(fds[0], &byte, 1), 0); /* all that had the other end are gone */
    close(fds[0]);
    size_t left;
    ASSERT_OK(sandbox_sweep(host, &left, &error));
    assert_int_equal(left, 0);
}

static int prepare(struct error *error)
{
    char self[PATH_MAX - 32], source[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (size < 0 || !mkdtemp(folder) || chmod(folder, 0777) < 0)
        return error_set_errno(error, errno, "prepare the probe");
    self[size] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(source, sizeof(source), "%s/sandbox_probe", self);
    snprintf(probe_path, sizeof(probe_path), "%s/probe", folder);
    struct buffer program AUTO_BUFFER;
    buffer_init(&program, 64 << 20);
    if (file_read(source, &program, error) < 0)
        return -1;
    const struct text whole = buffer_text(&program);
    return file_replace(probe_path, &whole, 1, 0755, error);
}

static int run_all(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_waits_until_its_network_is_there),
        cmocka_unit_test(only_sockets_of_its_own_network_can_be_opened),
        cmocka_unit_test(of_the_machines_network_it_has_tcp_and_udp_alone),
        cmocka_unit_test(network_that_fails_ends_the_start_and_nothing_has_run),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

static int run_all_as_plain_user(void)
{
    const pid_t child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) < 0 || setresgid(65533, 65533, 65533) < 0 ||
            setresuid(65533, 65533, 65533) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
            _exit(1);
        _exit(run_all("plain user") == 0 ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}

int main(void)
{
    struct sandbox_host *host = NULL;
    struct error error = {0};
    if (sandbox_host_open("/tmp", NULL, &host, &error) < 0) {
        fprintf(stderr, "no sandbox here: %s\n", error.message);
        return error.code == ERROR_UNAVAILABLE ? SKIPPED : 1;
    }
    sandbox_host_free(host);
    if (prepare(&error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int failed = run_all(geteuid() == 0 ? "root" : "plain user");
    if (geteuid() == 0) {
        fflush(NULL);
        failed += run_all_as_plain_user();
    }
    unlink(probe_path);
    rmdir(folder);
    return failed;
}
