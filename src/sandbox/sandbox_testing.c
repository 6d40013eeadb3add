#include "sandbox/sandbox_testing.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "sandbox/disk.h"
#include "testing/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLAIN_USER = 65533, TURN_MS = 10 };

/* A copy of the probe where a plain user can read it, wherever this checkout lies. */
static char probe_folder[] = "/tmp/souk-sandbox-probe-XXXXXX";
static char probe_path[64];

static int copy_probe(const char *name, struct error *error)
{
    char self[PATH_MAX - 64], source[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (size < 0 || !mkdtemp(probe_folder) || chmod(probe_folder, 0755) < 0)
        return error_set_errno(error, errno, "prepare the probe");
    self[size] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(source, sizeof(source), "%s/%s", self, name);
    snprintf(probe_path, sizeof(probe_path), "%s/probe", probe_folder);
    struct buffer program AUTO_BUFFER;
    buffer_init(&program, 64 << 20);
    if (file_read(source, &program, error) < 0)
        return -1;
    const struct text whole = buffer_text(&program);
    return file_replace(probe_path, &whole, 1, 0755, error);
}

static void remove_probe(void)
{
    unlink(probe_path);
    rmdir(probe_folder);
}

int trial_set_up(void **state)
{
    struct trial *trial = calloc(1, sizeof(*trial));
    struct error error = {0};
    snprintf(trial->folder, sizeof(trial->folder), "/tmp/souk-sandbox-test-XXXXXX");
    if (!mkdtemp(trial->folder))
        return -1;
    snprintf(trial->lease, sizeof(trial->lease), "%s/lease", trial->folder);
    snprintf(trial->data, sizeof(trial->data), "%s/data", trial->folder);
    if (mkdir(trial->lease, 0755) < 0 || mkdir(trial->data, 0755) < 0)
        return -1;
    if (sandbox_host_open(trial->folder, probe_path, &trial->host, &error) < 0) {
        print_error("%s\n", error.message);
        return -1;
    }
    *state = trial;
    return 0;
}

int trial_tear_down(void **state)
{
    struct trial *trial = *state;
    struct error error;
    sandbox_host_free(trial->host);
    ASSERT_OK(disk_close(trial->lease, &error));
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", trial->folder);
    const int result = system(command); // NOLINT(concurrency-mt-unsafe): one thread
    free(trial);
    return result;
}

/* What a test leaves out. */
static struct run with_defaults(struct run run)
{
    run.cpu_milli = run.cpu_milli ? run.cpu_milli : 1000;
    run.memory_bytes = run.memory_bytes ? run.memory_bytes : 256 * TRIAL_MIB;
    run.pids_max = run.pids_max ? run.pids_max : 32;
    run.control_fd = run.control_fd ? run.control_fd : -1;
    run.wait_ms = run.wait_ms ? run.wait_ms : HUNG_MS;
    return run;
}

struct sandbox *trial_start(struct trial *trial, struct run wanted, int output_fd)
{
    const struct run run = with_defaults(wanted);
    struct error error = {0};
    struct sandbox *sandbox = NULL;
    const char *const argv[] = {"/souk", run.verb, run.argument, NULL};
    const char *const environment[] = {"SOUK_TEST=a=b", NULL};
    const struct sandbox_mount mounts[] = {{trial->lease, "/lease", .is_writable = true},
                                           {trial->data, "/data", .is_writable = false}};
    const struct sandbox_options options = {.name = "test",
                                            .argv = run.argv ? run.argv : argv,
                                            .environment = environment,
                                            .mounts = mounts,
                                            .mount_count = 2,
                                            .working_dir = "/lease",
                                            .cpu_milli = run.cpu_milli,
                                            .memory_bytes = run.memory_bytes,
                                            .pids_max = run.pids_max,
                                            .disk_bytes = run.disk_bytes,
                                            .io_bytes_per_s = run.io_bytes_per_s,
                                            .control_fd = run.control_fd,
                                            .stdout_fd = output_fd,
                                            .stderr_fd = output_fd,
                                            .has_local_sockets = run.has_local_sockets,
                                            .root = run.root,
                                            .set_up_network = run.set_up_network};
    if (run.disk_bytes > 0 && geteuid() == 0)
        ASSERT_OK(disk_open(trial->lease, run.disk_bytes, SANDBOX_UID, &error));
    ASSERT_OK(sandbox_start(trial->host, &options, &sandbox, &error));
    return sandbox;
}

/* What has come so far; a program that prints a lot must not wait for its reader. */
static void read_output(int fd, char *output, size_t *size)
{
    ssize_t got;
    while (*size < TRIAL_OUTPUT_MAX - 1 &&
           (got = read(fd, output + *size, TRIAL_OUTPUT_MAX - 1 - *size)) > 0)
        *size += (size_t)got;
    output[*size] = '\0';
}

struct sandbox_exit trial_run(struct trial *trial, struct run wanted, char output[TRIAL_OUTPUT_MAX])
{
    const struct run run = with_defaults(wanted);
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    AUTO_FD int output_fd = fds[0];
    AUTO(sandbox) struct sandbox *sandbox = trial_start(trial, run, fds[1]);
    close(fds[1]);
    struct sandbox_exit result = {0};
    size_t size = 0;
    const int64_t deadline_ns = clock_monotonic_ns(&clock_system) + run.wait_ms * 1000000;
    while (!sandbox_reap(sandbox, &result)) {
        const int64_t now_ns = clock_monotonic_ns(&clock_system);
        assert_true(now_ns < deadline_ns);
        const int64_t pace_ms = sandbox_pace(sandbox, now_ns);
        struct pollfd wait = {.fd = sandbox_pidfd(sandbox), .events = POLLIN};
        poll(&wait, 1, pace_ms >= 0 && pace_ms < TURN_MS ? (int)pace_ms : TURN_MS);
        read_output(output_fd, output, &size);
        if (run.on_turn)
            run.on_turn(run.turn_context);
    }
    read_output(output_fd, output, &size);
    return result;
}

void trial_assert_says(const char *output, const char *words)
{
    if (!strstr(output, words))
        fail_msg("no \"%s\" in:\n%s", words, output);
}

/* A plain user, as far as the kernel is concerned, without a new program file to find. */
static int run_as_plain_user(int (*run_all)(const char *name))
{
    const pid_t child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) < 0 || setresgid(PLAIN_USER, PLAIN_USER, PLAIN_USER) < 0 ||
            setresuid(PLAIN_USER, PLAIN_USER, PLAIN_USER) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
            _exit(1);
        _exit(run_all("plain user") == 0 ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}

int trial_main(const char *program, int (*run_all)(const char *name))
{
    struct sandbox_host *host = NULL;
    struct error error = {0};
    if (sandbox_host_open("/tmp", NULL, &host, &error) < 0) {
        fprintf(stderr, "no sandbox here: %s\n", error.message);
        return error.code == ERROR_UNAVAILABLE ? TRIAL_SKIPPED : 1;
    }
    fprintf(stderr, "%s\n", sandbox_describe(host));
    sandbox_host_free(host);
    if (copy_probe(program, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int failed = run_all(geteuid() == 0 ? "root" : "plain user");
    if (geteuid() == 0) {
        fflush(NULL);
        failed += run_as_plain_user(run_all);
    }
    remove_probe();
    return failed;
}
