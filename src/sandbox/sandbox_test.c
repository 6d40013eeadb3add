/*
 * Real sandboxes: limits, shares, ends, and what is left behind.
 *
 * covers launch.c, sandbox_host.c, sandbox_probe.c, sandbox_testing.c, seccomp.c
 * covers cgroup_v1.c, sandbox_usage.c
 */
#include "base/buffer.h"
#include "base/clock.h"
#include "sandbox/cgroup_internal.h"
#include "sandbox/process_tree.h"
#include "sandbox/sandbox_testing.h"
#include "testing/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void program_reaches_no_network_even_with_a_connected_socket(void **state)
{
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);

    char output[TRIAL_OUTPUT_MAX];
    const struct sandbox_exit result =
        trial_run(*state, RUN(.verb = "network", .control_fd = client), output);
    assert_int_equal(result.code, 0);
    trial_assert_says(output, "socket=EPERM");
    trial_assert_says(output, "unix=EPERM");
    trial_assert_says(output, "disconnect=EPERM");
    trial_assert_says(output, "listen=EPERM");
    trial_assert_says(output, "uring=EPERM");
    trial_assert_says(output, "send=ok");
    trial_assert_says(output, "device=EPERM");
    trial_assert_says(output, "address=EPERM");
    trial_assert_says(output, "waiting=ok");
    close(client);
    close(listener);
}

static void program_has_a_network_namespace_without_devices(void **state)
{
    char output[TRIAL_OUTPUT_MAX];
    const char *const argv[] = {"/bin/cat", "/proc/net/dev", NULL};
    assert_int_equal(trial_run(*state, RUN(.argv = argv), output).code, 0);
    trial_assert_says(output, "lo:");
    assert_null(strstr(output, "eth"));
    assert_null(strstr(output, "ens"));
}

/* When the machine's own /tmp/x was last changed; -1: there is none. */
static int64_t outer_file_ns(void)
{
    struct stat found;
    if (stat("/tmp/x", &found) < 0)
        return -1;
    return (int64_t)found.st_ctim.tv_sec * 1000000000 + found.st_ctim.tv_nsec;
}

static void program_writes_only_to_its_own_folders(void **state)
{
    char output[TRIAL_OUTPUT_MAX];
    const int64_t outer_before_ns = outer_file_ns();
    assert_int_equal(trial_run(*state, RUN(.verb = "write"), output).code, 0);
    trial_assert_says(output, "\n/usr/x=EROFS");
    trial_assert_says(output, "\n/etc/x=EROFS");
    trial_assert_says(output, "\n/data/x=EROFS");
    trial_assert_says(output, "/x=EROFS");
    assert_null(strstr(output, "/souk=ok"));
    assert_null(strstr(output, "sysctl=ok"));
    trial_assert_says(output, "\n/tmp/x=ok");
    trial_assert_says(output, "\n/lease/x=ok");
    struct trial *trial = *state;
    char path[128];
    snprintf(path, sizeof(path), "%s/x", trial->lease);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(outer_file_ns(), outer_before_ns);
}

static void program_sees_no_process_of_the_host(void **state)
{
    char output[TRIAL_OUTPUT_MAX], outsider[16];
    snprintf(outsider, sizeof(outsider), "%d", (int)getpid());
    assert_int_equal(trial_run(*state, RUN(.verb = "processes", .argument = outsider), output).code,
                     0);
    trial_assert_says(output, "processes=2");
    trial_assert_says(output, "kill=ESRCH");
    trial_assert_says(output, "uid=65534");
}

static void rare_system_calls_are_refused_and_threads_work(void **state)
{
    char output[TRIAL_OUTPUT_MAX];
    assert_int_equal(trial_run(*state, RUN(.verb = "calls"), output).code, 0);
    assert_null(strstr(output, "=ok"));
    trial_assert_says(output, "mount=EPERM");
    trial_assert_says(output, "unshare=EPERM");
    trial_assert_says(output, "clone=EPERM");
    trial_assert_says(output, "ptrace=EPERM");
    trial_assert_says(output, "bpf=EPERM");
    assert_int_equal(trial_run(*state, RUN(.verb = "thread"), output).code, 0);
    trial_assert_says(output, "thread=ok");
}

static void memory_of_no_process_is_only_given_where_a_cgroup_counts_it(void **state)
{
    char output[TRIAL_OUTPUT_MAX];
    const struct trial *trial = *state;
    const bool is_hard = sandbox_is_hard(trial->host);
    assert_int_equal(trial_run(*state, RUN(.verb = "uncounted"), output).code, 0);
    trial_assert_says(output, is_hard ? "memfd=ok" : "memfd=EPERM");
    trial_assert_says(output, is_hard ? "shmget=ok" : "shmget=EPERM");
}

static void program_gets_the_environment_and_descriptors_given_and_no_others(void **state)
{
    char output[TRIAL_OUTPUT_MAX];
    const int leak = open("/", O_RDONLY); // NOLINT(android-cloexec-open): the point of the test
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    trial_run(*state, RUN(.verb = "surroundings", .control_fd = pair[0]), output);
    assert_string_equal(output, "env SOUK_TEST=a=b\nenv PWD=/lease\nfd 0\nfd 1\nfd 2\nfd 3\n");
    close(leak);
    close(pair[0]);
    close(pair[1]);
}

static void fork_bomb_stops_at_the_process_limit(void **state)
{
    char output[TRIAL_OUTPUT_MAX];
    assert_int_equal(trial_run(*state, RUN(.verb = "forks", .pids_max = 20), output).code, 0);
    const char *forks = strstr(output, "forks=");
    assert_non_null(forks);
    assert_in_range(strtol(forks + 6, NULL, 10), 1, 20);
}

enum { OTHER_COUNT = 40 };

struct others {
    int told_fd;
    pid_t pids[OTHER_COUNT];
};

/* Starts processes of the sandbox's user, like another sandbox, while the program waits. */
static void add_others(void *context)
{
    struct others *others = context;
    for (size_t i = 0; i < OTHER_COUNT && others->pids[OTHER_COUNT - 1] == 0; i++) {
        others->pids[i] = fork();
        if (others->pids[i] == 0) {
            if (geteuid() == 0 && setuid(SANDBOX_UID) < 0)
                _exit(1);
            pause();
            _exit(0);
        }
        assert_true(others->pids[i] > 0);
    }
    if (others->told_fd >= 0)
        assert_int_equal(write(others->told_fd, "x", 1), 1);
    others->told_fd = -1;
}

static void other_processes_of_the_user_take_none_of_the_limit(void **state)
{
    char output[TRIAL_OUTPUT_MAX];
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct others others = {.told_fd = pair[1]};
    trial_run(*state,
              RUN(.verb = "forks-when-told", .pids_max = 20, .control_fd = pair[0],
                  .on_turn = add_others, .turn_context = &others),
              output);
    for (size_t i = 0; i < OTHER_COUNT; i++) {
        kill(others.pids[i], SIGKILL);
        waitpid(others.pids[i], NULL, 0);
    }
    close(pair[0]);
    close(pair[1]);
    const char *forks = strstr(output, "forks=");
    assert_non_null(forks);
    assert_in_range(strtol(forks + 6, NULL, 10), 10, 20);
}

static void memory_hog_does_not_pass_the_limit(void **state)
{
    char output[TRIAL_OUTPUT_MAX];
    struct trial *trial = *state;
    const struct sandbox_exit result =
        trial_run(*state, RUN(.verb = "memory", .memory_bytes = 64 * TRIAL_MIB), output);
    assert_null(strstr(output, "memory=taken"));
    if (sandbox_is_hard(trial->host)) {
        assert_true(result.is_out_of_memory);
        assert_int_equal(result.code, 128 + SIGKILL);
    } else if (!result.is_out_of_memory) { /* seen in time, or refused by the kernel before */
        trial_assert_says(output, "memory=refused");
    }
}

/* The share of one core that is used over `span_ms`. */
static double measure_share(struct sandbox *sandbox, int64_t span_ms)
{
    struct sandbox_usage before, after;
    sandbox_read_usage(sandbox, &before);
    const int64_t begin_ns = clock_monotonic_ns(&clock_system);
    int64_t now_ns = begin_ns;
    while (now_ns - begin_ns < span_ms * 1000000) {
        const int64_t pace_ms = sandbox_pace(sandbox, now_ns);
        struct pollfd wait = {.fd = sandbox_pidfd(sandbox), .events = POLLIN};
        assert_int_equal(poll(&wait, 1, pace_ms < 0 ? (int)span_ms : (int)pace_ms), 0);
        now_ns = clock_monotonic_ns(&clock_system);
    }
    sandbox_read_usage(sandbox, &after);
    return (double)(after.cpu_ms - before.cpu_ms) / ((double)(now_ns - begin_ns) / 1e6);
}

/* Others may leave it nothing for a while; more than `most` it never has. */
static double share_of_at_least(struct sandbox *sandbox, double least, int64_t span_ms, double most)
{
    double share = 0;
    for (int i = 0; i < 100 && share < least; i++)
        share = measure_share(sandbox, span_ms);
    if (share > most)
        fail_msg("a share of at most %.3f became %.3f", most, share);
    return share;
}

static void quarter_of_a_core_gives_a_quarter_of_the_cpu_time(void **state)
{
    AUTO(sandbox)
    struct sandbox *sandbox = trial_start(*state, RUN(.verb = "spin", .cpu_milli = 250), -1);
    measure_share(sandbox, 200); /* starting is not what is measured */
    const double share = share_of_at_least(sandbox, 0.08, 2000, 0.33);
    if (share < 0.08)
        fail_msg("a share of 0.25 became %.3f", share);
    struct sandbox_usage usage;
    sandbox_read_usage(sandbox, &usage);
    assert_true(usage.memory_peak_bytes > 0);
    /* Seen from outside, by its note. */
    const struct trial *trial = *state;
    assert_true(sandbox_host_cpu_ms(trial->host) >= usage.cpu_ms);
    assert_true(sandbox_host_cpu_ms(trial->host) < usage.cpu_ms + 2000);
}

static void share_shrinks_and_grows_while_the_program_runs(void **state)
{
    struct error error = {0};
    AUTO(sandbox) struct sandbox *sandbox = trial_start(*state, RUN(.verb = "spin"), -1);
    measure_share(sandbox, 200);
    ASSERT_OK(sandbox_set_cpu(sandbox, 20, /* is_idle= */ true, &error));
    measure_share(sandbox, 200); /* what the old share still had */
    const double less = measure_share(sandbox, 1000);
    ASSERT_OK(sandbox_set_cpu(sandbox, 1000, /* is_idle= */ false, &error));
    const double more = share_of_at_least(sandbox, 0.1, 200, 1.1);
    if (less > 0.08 || more < 0.1)
        fail_msg("a share of 0.02 became %.3f, one of 1.0 after it %.3f", less, more);
    ASSERT_FAILS(sandbox_set_cpu(sandbox, 0, /* is_idle= */ false, &error), ERROR_INVALID);
}

static int64_t own_cpu_ms(void)
{
    struct timespec used;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void idle_program_leaves_a_core_to_its_owner(void **state)
{
    struct trial *trial = *state;
    if (!sandbox_is_hard(trial->host))
        SKIP("needs root and cgroups: pacing gives a smaller share, no priority");
    struct error error = {0};
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    AUTO(sandbox) struct sandbox *sandbox = trial_start(trial, RUN(.verb = "spin"), -1);
    ASSERT_OK(sandbox_set_cpu(sandbox, 1000, /* is_idle= */ true, &error));
    measure_share(sandbox, 100);
    struct sandbox_usage job_before, job_after;
    sandbox_read_usage(sandbox, &job_before);
    const int64_t begin_ms = own_cpu_ms(), begin_ns = clock_monotonic_ns(&clock_system);
    while (own_cpu_ms() - begin_ms < 500)
        ;
    const int64_t wall_ms = (clock_monotonic_ns(&clock_system) - begin_ns) / 1000000;
    sandbox_read_usage(sandbox, &job_after);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    const int64_t taken_ms = job_after.cpu_ms - job_before.cpu_ms;
    /* The least weight is still a small part of the core, for as long as all of them want it. */
    if (taken_ms > 10 + wall_ms / 100)
        fail_msg("in %d ms beside its owner an idle program took %d ms", (int)wall_ms,
                 (int)taken_ms);
}

/* The first of its groups, which has the CPU share, and is there as all of them are; "": none. */
static void read_first_cgroup(const struct trial *trial, char out_folder[CGROUP_PATH_SIZE])
{
    char note[128], line[CGROUP_PATH_SIZE + 16], folder[CGROUP_PATH_SIZE];
    out_folder[0] = '\0';
    snprintf(note, sizeof(note), "%s/test.sandbox", trial->folder);
    FILE *file = fopen(note, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "cgroup %511s", folder) != 1)
            continue;
        assert_int_equal(access(folder, F_OK), 0);
        if (!out_folder[0])
            snprintf(out_folder, CGROUP_PATH_SIZE, "%s", folder);
    }
    fclose(file);
}

static void stop_leaves_no_process_no_cgroup_and_no_note(void **state)
{
    struct trial *trial = *state;
    struct error error = {0};
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct sandbox *sandbox = trial_start(trial, RUN(.verb = "stubborn"), fds[1]);
    close(fds[1]);
    char word[16];
    assert_true(read(fds[0], word, sizeof(word)) > 0);
    char note[128], folder[CGROUP_PATH_SIZE];
    snprintf(note, sizeof(note), "%s/test.sandbox", trial->folder);
    read_first_cgroup(trial, folder);

    struct sandbox_exit result;
    ASSERT_OK(sandbox_stop(sandbox, 50, &result, &error));
    assert_int_equal(result.code, 128 + SIGKILL);
    /* Nobody holds the other end of the pipe any more: all of them are gone. */
    assert_int_equal(read(fds[0], word, sizeof(word)), 0);
    close(fds[0]);
    sandbox_free(sandbox);
    assert_int_not_equal(access(note, F_OK), 0);
    if (folder[0])
        assert_int_not_equal(access(folder, F_OK), 0);
}

static void what_is_killed_dies_with_a_core_and_not_after_everybody_else(void **state)
{
    struct trial *trial = *state;
    if (!sandbox_is_hard(trial->host))
        SKIP("needs root and cgroups: without a group nothing is held still");
    struct error error = {0};
    char folder[CGROUP_PATH_SIZE];
    AUTO(sandbox) struct sandbox *sandbox = trial_start(trial, RUN(.verb = "spin"), -1);
    ASSERT_OK(sandbox_set_cpu(sandbox, 10, /* is_idle= */ true, &error));
    read_first_cgroup(trial, folder);
    const bool is_v1 = cgroup_read_number(folder, "cpu.shares", NULL) >= 0;
    const bool has_idle = cgroup_read_number(folder, "cpu.idle", NULL) >= 0;
    const char *weight = has_idle ? "cpu.idle" : is_v1 ? "cpu.shares" : "cpu.weight";
    const char *quota = is_v1 ? "cpu.cfs_quota_us" : "cpu.max";
    assert_int_equal(cgroup_read_number(folder, weight, NULL), has_idle || !is_v1 ? 1 : 2);
    assert_true(cgroup_read_number(folder, quota, NULL) < cgroup_quota_us(1000));
    sandbox_kill(sandbox);
    const int64_t weight_after = has_idle ? 0 : is_v1 ? 1024 : 100;
    assert_int_equal(cgroup_read_number(folder, weight, NULL), weight_after);
    assert_int_equal(cgroup_read_number(folder, quota, NULL), cgroup_quota_us(1000));
}

static void program_that_obeys_ends_within_its_grace(void **state)
{
    struct error error = {0};
    struct sandbox_exit result;
    int fds[2];
    char word[16];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    AUTO(sandbox) struct sandbox *sandbox = trial_start(*state, RUN(.verb = "obedient"), fds[1]);
    close(fds[1]);
    assert_true(read(fds[0], word, sizeof(word)) > 0);
    ASSERT_OK(sandbox_stop(sandbox, 10000, &result, &error));
    assert_int_equal(result.code, 128 + SIGTERM);
    close(fds[0]);
}

/* Waits until a program has used more CPU time than cpu_ms. */
static void wait_for_cpu(struct sandbox *sandbox, int64_t cpu_ms)
{
    struct sandbox_usage usage = {0};
    while (sandbox_read_usage(sandbox, &usage), usage.cpu_ms <= cpu_ms)
        poll(NULL, 0, 10); /* clock: poll interval; no event tells of CPU time */
}

/* Returns the CPU time that a stopped program uses over a span. */
static int64_t cpu_ms_while_stopped(struct sandbox *sandbox, int64_t *out_until_ms)
{
    struct sandbox_usage before = {0}, after = {0};
    poll(NULL, 0, 50); /* clock: the stop reaches each process */
    sandbox_read_usage(sandbox, &before);
    poll(NULL, 0, 300); /* clock: measures idleness over a span */
    sandbox_read_usage(sandbox, &after);
    *out_until_ms = after.cpu_ms;
    return after.cpu_ms - before.cpu_ms;
}

static void paused_program_uses_no_cpu_and_goes_on_after(void **state)
{
    struct error error = {0};
    AUTO(sandbox) struct sandbox *sandbox = trial_start(*state, RUN(.verb = "spin"), -1);
    int64_t until_ms = 0;
    wait_for_cpu(sandbox, 100); /* more than a start takes */
    ASSERT_OK(sandbox_set_paused(sandbox, true, &error));
    assert_in_range(cpu_ms_while_stopped(sandbox, &until_ms), 0, 20);
    ASSERT_OK(sandbox_set_paused(sandbox, false, &error));
    wait_for_cpu(sandbox, until_ms);
}

/* As one does that is forked while the others are being stopped. */
static void process_that_runs_in_a_pause_is_stopped_again(void **state)
{
    struct error error = {0};
    AUTO(sandbox) struct sandbox *sandbox = trial_start(*state, RUN(.verb = "spin"), -1);
    struct process_info tree[64];
    int64_t until_ms = 0;
    wait_for_cpu(sandbox, 100); /* more than a start takes */
    ASSERT_OK(sandbox_set_paused(sandbox, true, &error));
    const size_t count = process_tree_list(getpid(), tree, 64);
    assert_true(count > 1);
    for (size_t i = 0; i < count; i++)
        kill(tree[i].pid, SIGCONT);
    sandbox_pace(sandbox, clock_monotonic_ns(&clock_system));
    assert_in_range(cpu_ms_while_stopped(sandbox, &until_ms), 0, 20);
}

static void missing_program_is_told_by_its_exit(void **state)
{
    char output[TRIAL_OUTPUT_MAX];
    const char *const argv[] = {"/nowhere", NULL};
    const struct sandbox_exit result = trial_run(*state, RUN(.argv = argv), output);
    assert_int_not_equal(result.code, 0);
    trial_assert_says(output, "/nowhere");
}

static void stopped_bwrap_is_reaped(void **state)
{
    const char *const argv[] = {"/usr/bin/sleep", "60", NULL};
    AUTO(sandbox) struct sandbox *sandbox = trial_start(*state, RUN(.argv = argv), -1);
    struct process_info tree[8];
    assert_in_range(process_tree_list(getpid(), tree, 8), 1, 8);
    assert_int_equal(tree[0].parent, getpid());
    assert_int_equal(kill(tree[0].pid, SIGSTOP), 0);
    sandbox_kill(sandbox);
    struct pollfd ended = {.fd = sandbox_pidfd(sandbox), .events = POLLIN};
    assert_int_equal(poll(&ended, 1, HUNG_MS), 1);
    struct sandbox_exit result;
    assert_true(sandbox_reap(sandbox, &result));
    assert_int_equal(result.code, 128 + SIGKILL);
}

static void wrong_options_are_refused(void **state)
{
    struct trial *trial = *state;
    struct error error = {0};
    struct sandbox *sandbox = NULL;
    const char *const argv[] = {"/souk", NULL};
    struct sandbox_options options = {.name = "../x",
                                      .argv = argv,
                                      .cpu_milli = 1,
                                      .memory_bytes = TRIAL_MIB,
                                      .pids_max = 1,
                                      .control_fd = -1,
                                      .stdout_fd = -1,
                                      .stderr_fd = -1};
    ASSERT_FAILS(sandbox_start(trial->host, &options, &sandbox, &error), ERROR_INVALID);
    options.name = "x";
    const struct sandbox_mount missing = {"/no/such/folder", "/lease", .is_writable = true};
    options.mounts = &missing;
    options.mount_count = 1;
    ASSERT_FAILS(sandbox_start(trial->host, &options, &sandbox, &error), ERROR_NOT_FOUND);
    /* Whoever may write beside it could have pointed it anywhere. */
    char link[128];
    snprintf(link, sizeof(link), "%s/link", trial->folder);
    assert_int_equal(symlink(trial->data, link), 0);
    const struct sandbox_mount linked = {link, "/lease", .is_writable = true};
    options.mounts = &linked;
    ASSERT_FAILS(sandbox_start(trial->host, &options, &sandbox, &error), ERROR_INVALID);
    assert_int_equal(unlink(link), 0);
    char note[128];
    snprintf(note, sizeof(note), "%s/x.sandbox", trial->folder);
    assert_int_not_equal(access(note, F_OK), 0);
}

static void sweep_ends_what_a_killed_daemon_left(void **state)
{
    struct trial *trial = *state;
    struct error error = {0};
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    const pid_t daemon = fork();
    if (daemon == 0) {
        struct sandbox *sandbox = trial_start(trial, RUN(.verb = "stubborn"), fds[1]);
        (void)sandbox;
        for (;;)
            pause();
    }
    close(fds[1]);
    char word[16];
    assert_true(read(fds[0], word, sizeof(word)) > 0);
    assert_int_equal(kill(daemon, SIGKILL), 0);
    assert_int_equal(waitpid(daemon, NULL, 0), daemon);

    char folder[CGROUP_PATH_SIZE];
    read_first_cgroup(trial, folder);
    size_t count = 0;
    ASSERT_OK(sandbox_sweep(trial->host, &count, &error));
    assert_int_equal(count, 1);
    assert_int_equal(read(fds[0], word, sizeof(word)), 0);
    close(fds[0]);
    if (folder[0])
        assert_int_not_equal(access(folder, F_OK), 0);
    ASSERT_OK(sandbox_sweep(trial->host, &count, &error));
    assert_int_equal(count, 0);
}

static bool keep_named(const char *name, void *context)
{
    return strcmp(name, context) == 0;
}

static void sweep_spares_what_runs_under_another_process(void **state)
{
    struct trial *trial = *state;
    struct error error = {0};
    struct buffer exported AUTO_BUFFER;
    buffer_init(&exported, 1 << 20);
    sandbox_host_export(trial->host, &exported);
    AUTO(sandbox_host) struct sandbox_host *other = NULL;
    ASSERT_OK(sandbox_host_import(buffer_text(&exported), &other, &error));
    assert_string_equal(sandbox_describe(other), sandbox_describe(trial->host));
    char kept[] = "kept", note[128];
    const char *const argv[] = {"/usr/bin/sleep", "60", NULL};
    const struct sandbox_options options = {.name = kept,
                                            .argv = argv,
                                            .cpu_milli = 100,
                                            .memory_bytes = 64 << 20,
                                            .pids_max = 16,
                                            .control_fd = -1,
                                            .stdout_fd = -1,
                                            .stderr_fd = -1};
    AUTO(sandbox) struct sandbox *sandbox = NULL;
    ASSERT_OK(sandbox_start(other, &options, &sandbox, &error));
    snprintf(note, sizeof(note), "%s/kept.sandbox", trial->folder);
    size_t count = 9;
    ASSERT_OK(sandbox_sweep_others(trial->host, keep_named, kept, &count, &error));
    assert_int_equal(count, 0);
    assert_int_equal(access(note, F_OK), 0);
    struct sandbox_exit exit;
    assert_false(sandbox_reap(sandbox, &exit));
    ASSERT_OK(sandbox_sweep_one(trial->host, "none", &error));
    ASSERT_OK(sandbox_sweep_one(trial->host, kept, &error));
    assert_int_not_equal(access(note, F_OK), 0);
    assert_true(sandbox_reap(sandbox, &exit));
    exported.size--;
    struct sandbox_host *none = NULL;
    ASSERT_FAILS(sandbox_host_import(buffer_text(&exported), &none, &error), ERROR_CORRUPT);
}

static void sweep_spares_a_process_that_only_has_the_same_number(void **state)
{
    struct trial *trial = *state;
    struct error error = {0};
    char note[128], boot_id[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    assert_non_null(fgets(boot_id, sizeof(boot_id), file));
    fclose(file);
    snprintf(note, sizeof(note), "%s/old.sandbox", trial->folder);
    file = fopen(note, "we");
    fprintf(file, "boot %sversion 1\ncgroup /sys/fs/cgroup/not-ours\nprocess %d 1\n", boot_id,
            (int)getpid());
    fclose(file);
    size_t count = 0;
    ASSERT_OK(sandbox_sweep(trial->host, &count, &error));
    assert_int_equal(count, 1); /* and this process still runs */
}

static void host_says_in_words_what_it_enforces(void **state)
{
    struct trial *trial = *state;
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, 8192);
    sandbox_doctor(trial->host, &text);
    const char *wanted = sandbox_is_hard(trial->host) ? "limits: ok" : "limits: softer";
    trial_assert_says(buffer_string(&text), wanted);
    trial_assert_says(buffer_string(&text), "\nlandlock: ");
    trial_assert_says(buffer_string(&text), geteuid() == 0 ? "\ndisk: ok" : "\ndisk: softer");
    trial_assert_says(buffer_string(&text), "\ndisk share: ");
    trial_assert_says(sandbox_describe(trial->host),
                      sandbox_is_hard(trial->host) ? "cgroup" : "pausing");
}

static int run_all(const char *name)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TEST(program_reaches_no_network_even_with_a_connected_socket),
        TRIAL_TEST(program_has_a_network_namespace_without_devices),
        TRIAL_TEST(program_writes_only_to_its_own_folders),
        TRIAL_TEST(program_sees_no_process_of_the_host),
        TRIAL_TEST(rare_system_calls_are_refused_and_threads_work),
        TRIAL_TEST(memory_of_no_process_is_only_given_where_a_cgroup_counts_it),
        TRIAL_TEST(program_gets_the_environment_and_descriptors_given_and_no_others),
        TRIAL_TEST(fork_bomb_stops_at_the_process_limit),
        TRIAL_TEST(other_processes_of_the_user_take_none_of_the_limit),
        TRIAL_TEST(memory_hog_does_not_pass_the_limit),
        TRIAL_TEST(quarter_of_a_core_gives_a_quarter_of_the_cpu_time),
        TRIAL_TEST(share_shrinks_and_grows_while_the_program_runs),
        TRIAL_TEST(idle_program_leaves_a_core_to_its_owner),
        TRIAL_TEST(stop_leaves_no_process_no_cgroup_and_no_note),
        TRIAL_TEST(what_is_killed_dies_with_a_core_and_not_after_everybody_else),
        TRIAL_TEST(program_that_obeys_ends_within_its_grace),
        TRIAL_TEST(paused_program_uses_no_cpu_and_goes_on_after),
        TRIAL_TEST(process_that_runs_in_a_pause_is_stopped_again),
        TRIAL_TEST(missing_program_is_told_by_its_exit),
        TRIAL_TEST(stopped_bwrap_is_reaped),
        TRIAL_TEST(wrong_options_are_refused),
        TRIAL_TEST(sweep_ends_what_a_killed_daemon_left),
        TRIAL_TEST(sweep_spares_what_runs_under_another_process),
        TRIAL_TEST(sweep_spares_a_process_that_only_has_the_same_number),
        TRIAL_TEST(host_says_in_words_what_it_enforces),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return trial_main("sandbox_probe", run_all);
}
