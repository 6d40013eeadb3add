#include "base/clock.h"
#include "sandbox/sandbox_internal.h"
#include "testing/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHERS = 100, TRIALS = 10, INTERRUPTS = 20 };

/* They end with the closing of the pipe's other end. */
static void others_start(int wait_fd, int close_fd, pid_t *out_pids)
{
    for (size_t i = 0; i < OTHERS; i++) {
        out_pids[i] = fork();
        if (out_pids[i] == 0) {
            char byte;
            close(close_fd);
            if (setresgid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0 ||
                setresuid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0)
                _exit(1);
            _exit(read(wait_fd, &byte, 1) == 0 ? 0 : 1);
        }
        assert_true(out_pids[i] > 0);
    }
}

/* In a container that shows its own processes alone. */
static int open_in_container(void)
{
    struct sandbox_host *host = NULL;
    struct error error = {0};
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return 2;
    const int result = sandbox_host_open("/tmp", NULL, &host, &error);
    if (result < 0)
        fprintf(stderr, "%s\n", error.message);
    sandbox_host_free(host);
    return result < 0 ? 1 : 0;
}

static int exit_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static volatile sig_atomic_t interrupt_count;
static int last_interrupt_fd = -1;

static void on_interrupt(int number)
{
    (void)number;
    if (++interrupt_count == INTERRUPTS && last_interrupt_fd >= 0)
        close(last_interrupt_fd);
}

/* From now on a signal interrupts every call that waits longer; 0: no more. */
static void interrupt_each(int each_us)
{
    const struct sigaction action = {.sa_handler = each_us > 0 ? on_interrupt : SIG_IGN};
    const struct itimerval timer = {{.tv_usec = each_us}, {.tv_usec = each_us}};
    interrupt_count = 0;
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static int stop_interrupts(void **state)
{
    (void)state;
    interrupt_each(0);
    return 0;
}

/* Only a process that is alone in its group may take that of cgroup v2 for its leases. */
static void assert_trials_leave_nothing(int interrupt_us)
{
    struct sandbox_host *first = NULL;
    struct error error = {0};
    if (sandbox_host_open("/tmp", NULL, &first, &error) < 0)
        SKIP("sandboxes cannot be started here");
    sandbox_host_free(first);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    if (interrupt_us > 0)
        interrupt_each(interrupt_us);
    for (int i = 0; i < TRIALS; i++) {
        struct sandbox_host *host = NULL;
        ASSERT_OK(sandbox_host_open("/tmp", NULL, &host, &error));
        sandbox_host_free(host);
        pid_t ended;
        do {
            ended = waitpid(-1, NULL, WNOHANG);
        } while (ended > 0);
        assert_int_equal(ended, -1); /* 0: some children still run */
        assert_int_equal(errno, ECHILD);
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

TEST(trial_of_a_sandbox_leaves_no_process_behind)
{
    assert_trials_leave_nothing(/* interrupt_us= */ 0);
}

TEST(trial_that_signals_interrupt_leaves_no_process_behind)
{
    assert_trials_leave_nothing(/* interrupt_us= */ 100);
    assert_true(interrupt_count > 0);
}

TEST(a_wait_that_signals_interrupt_goes_on_until_the_event_or_its_end)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    last_interrupt_fd = fds[1];
    interrupt_each(1000);
    assert_true(wait_readable(fds[0], HUNG_MS)); /* the last interrupt closes the other end */
    assert_true(interrupt_count >= INTERRUPTS);
    close(fds[0]);
    last_interrupt_fd = -1;
    assert_int_equal(pipe(fds), 0);
    assert_false(wait_readable(fds[0], 20)); /* clock: with the whole time again it never ends */
    close(fds[0]);
    close(fds[1]);
}

TEST(many_processes_of_the_same_user_elsewhere_hinder_no_start)
{
    struct sandbox_host *host = NULL;
    struct error error = {0};
    if (geteuid() != 0 || sandbox_host_open("/tmp", NULL, &host, &error) < 0)
        SKIP("needs root and cgroups");
    sandbox_host_free(host);
    int fds[2];
    pid_t others[OTHERS];
    assert_int_equal(pipe(fds), 0);
    others_start(fds[0], fds[1], others);
    const pid_t outer = fork();
    if (outer == 0) {
        close(fds[1]);
        if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
            _exit(3);
        const pid_t inner = fork();
        _exit(inner == 0 ? open_in_container() : exit_of(inner));
    }
    const int opened = exit_of(outer);
    close(fds[1]);
    close(fds[0]);
    for (size_t i = 0; i < OTHERS; i++)
        assert_int_equal(exit_of(others[i]), 0);
    assert_int_equal(opened, 0);
}

static void used_ago(const char *path, int64_t seconds)
{
    const time_t then = (time_t)(clock_utc_ms(&clock_system) / 1000 - seconds);
    const struct timespec times[2] = {{.tv_sec = then}, {.tv_sec = then}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A keeper copies its program, or launches with the copy, while another lender starts. */
TEST(a_copy_of_the_program_is_removed_only_when_nobody_can_be_launching_it)
{
    struct error error;
    struct sandbox_host host = {.program = "/nowhere/souk",
                                .is_own_program = true,
                                .state_dir = "/tmp/souk-programs-XXXXXX"};
    char copy[PATH_MAX], same[PATH_MAX];
    assert_non_null(mkdtemp(host.state_dir));
    ASSERT_OK(host_program(&host, copy, &error));
    ASSERT_OK(host_remove_programs(&host, &error));
    assert_int_equal(access(copy, X_OK), 0); /* just made */

    used_ago(copy, 3600);
    ASSERT_OK(host_program(&host, same, &error));
    assert_string_equal(same, copy);
    ASSERT_OK(host_remove_programs(&host, &error));
    assert_int_equal(access(copy, X_OK), 0); /* just used */

    used_ago(copy, 3600);
    ASSERT_OK(host_remove_programs(&host, &error));
    assert_int_equal(access(copy, F_OK), -1);
    assert_int_equal(rmdir(host.state_dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trial_of_a_sandbox_leaves_no_process_behind),
        cmocka_unit_test_teardown(trial_that_signals_interrupt_leaves_no_process_behind,
                                  stop_interrupts),
        cmocka_unit_test_teardown(a_wait_that_signals_interrupt_goes_on_until_the_event_or_its_end,
                                  stop_interrupts),
        cmocka_unit_test(many_processes_of_the_same_user_elsewhere_hinder_no_start),
        cmocka_unit_test(a_copy_of_the_program_is_removed_only_when_nobody_can_be_launching_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
