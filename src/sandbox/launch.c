/*
 * Launch: starts bubblewrap.
 *
 * As root the child first becomes an ordinary user, so that even a hole in bubblewrap or in the
 * kernel's user namespaces does not make root of the program. That user may not be able to walk to
 * the folders to be mounted (they lie in root's home, say), so while still root the child puts
 * them into a mount namespace of its own, on a small tmpfs over /tmp that nobody else sees.
 */
#include "base/clock.h"
#include "sandbox/launch_internal.h"
#include "sandbox/process_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NICENESS = 10, NOFILE_MAX = 4096, MEMLOCK_MAX = 8 << 20, INFO_WAIT_MS = 5000 };

enum step {
    STEP_CGROUP,
    STEP_LIMITS,
    STEP_MOUNTS,
    STEP_USER,
    STEP_DESCRIPTORS,
    STEP_EXEC,
    STEP_COUNT,
};

static const char *const step_names[STEP_COUNT] = {
    [STEP_CGROUP] = "join the cgroup",          [STEP_LIMITS] = "set limits",
    [STEP_MOUNTS] = "stage the mounts",         [STEP_USER] = "become an ordinary user",
    [STEP_DESCRIPTORS] = "lay out descriptors", [STEP_EXEC] = "start bwrap",
};

struct failure {
    int32_t step;
    int32_t errno_value;
};

static int child_set_limit(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return -1;
    if (limit.rlim_max != RLIM_INFINITY && value > limit.rlim_max)
        value = limit.rlim_max;
    limit.rlim_cur = limit.rlim_max = value;
    return setrlimit(resource, &limit);
}

static int child_set_limits(const struct child *child)
{
    if (child_set_limit(RLIMIT_CORE, 0) < 0 || child_set_limit(RLIMIT_NOFILE, NOFILE_MAX) < 0)
        return -1;
    /* What the owner's own session may have: real-time programs pass every limit of CPU. */
    if (child_set_limit(RLIMIT_RTPRIO, 0) < 0 || child_set_limit(RLIMIT_NICE, 0) < 0 ||
        child_set_limit(RLIMIT_MEMLOCK, MEMLOCK_MAX) < 0)
        return -1;
    if (child->file_bytes > 0 && child_set_limit(RLIMIT_FSIZE, child->file_bytes) < 0)
        return -1;
    if (!child->has_soft_limits)
        return 0;
    if (child->process_count > 0 && !child->counts_inside &&
        child_set_limit(RLIMIT_NPROC, child->process_count) < 0)
        return -1;
    /* Of the two, RLIMIT_DATA counts what is written, RLIMIT_AS also what is only reserved. */
    return child_set_limit(RLIMIT_DATA, child->memory_bytes) < 0 ||
                   setpriority(PRIO_PROCESS, 0, NICENESS) < 0
               ? -1
               : 0;
}

static int child_stage_mounts(const struct child *child)
{
    int trees[SOURCE_MAX];
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -1;
    for (size_t i = 0; i < child->source_count; i++) {
        trees[i] = open_tree(AT_FDCWD, child->sources[i].path,
                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        if (trees[i] < 0)
            return -1;
    }
    if (mount("souk", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k") < 0)
        return -1;
    for (size_t i = 0; i < child->source_count; i++) {
        const struct source *source = &child->sources[i];
        const int made = source->is_folder ? mkdir(source->staged, 0755)
                                           : open(source->staged, O_CREAT | O_CLOEXEC, 0644);
        if (made < 0 ||
            move_mount(trees[i], "", AT_FDCWD, source->staged, MOVE_MOUNT_F_EMPTY_PATH) < 0)
            return -1;
    }
    return 0;
}

static int child_drop_user(void)
{
    return setgroups(0, NULL) < 0 || setresgid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0 ||
                   setresuid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0
               ? -1
               : 0;
}

static int child_place_fds(struct child *child)
{
    child->error_fd = fcntl(child->error_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    if (child->error_fd < 0)
        return -1;
    for (int i = 0; i < FD_COUNT; i++) {
        if (child->fds[i] < 0)
            continue;
        child->fds[i] = fcntl(child->fds[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
        if (child->fds[i] < 0)
            return -1;
    }
    for (int i = 0; i < FD_COUNT; i++) {
        if (child->fds[i] < 0)
            close(i);
        else if (dup2(child->fds[i], i) < 0)
            return -1;
    }
    return close_range(FD_COUNT, ~0U, CLOSE_RANGE_CLOEXEC);
}

static void child_reset_signals(void)
{
    for (int number = 1; number < NSIG; number++) {
        if (number != SIGKILL && number != SIGSTOP)
            signal(number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); // NOLINT(concurrency-mt-unsafe): one thread after fork
}

/* Returns the step that failed, with errno set. */
static enum step child_run(struct child *child)
{
    child_reset_signals();
    setsid(); /* a Ctrl-C in the daemon's terminal is for the daemon alone */
    if (cgroup_join(child->cgroup) < 0)
        return STEP_CGROUP;
    if (child_set_limits(child) < 0)
        return STEP_LIMITS;
    if (child->host->drops_user && child_stage_mounts(child) < 0)
        return STEP_MOUNTS;
    if (child->host->drops_user && child_drop_user() < 0)
        return STEP_USER;
    /* After the change of user, which would forget it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != child->parent)
        return STEP_USER;
    if (child_place_fds(child) < 0)
        return STEP_DESCRIPTORS;
    char *const environment[] = {NULL};
    execve(child->host->bwrap, child->arguments.items, environment);
    return STEP_EXEC;
}

_Noreturn static void child_main(struct child *child)
{
    const enum step step = child_run(child);
    const struct failure failure = {.step = (int32_t)step, .errno_value = errno};
    const ssize_t written = write(child->error_fd, &failure, sizeof(failure));
    _exit(written == (ssize_t)sizeof(failure) ? 126 : 127);
}

/* Waits for bwrap to name the first process of its PID namespace; EOF when it ended before. */
static pid_t launch_read_inner_pid(int info_fd)
{
    char text[512] = "";
    size_t size = 0;
    const int64_t deadline_ns = clock_monotonic_ns(&clock_system) + INFO_WAIT_MS * INT64_C(1000000);
    while (size < sizeof(text) - 1 && !strchr(text, '}')) {
        const int64_t left_ms = (deadline_ns - clock_monotonic_ns(&clock_system)) / 1000000;
        struct pollfd wait = {.fd = info_fd, .events = POLLIN};
        const int ready = left_ms > 0 ? poll(&wait, 1, (int)left_ms) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            break;
        const ssize_t got = read(info_fd, text + size, sizeof(text) - 1 - size);
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        if (got > 0)
            size += (size_t)got;
        text[size] = '\0';
    }
    const char *key = strstr(text, "\"child-pid\":");
    return key ? (pid_t)strtol(key + strlen("\"child-pid\":"), NULL, 10) : 0;
}

static int launch_fork(struct child *child, int info_fd, struct launched *launched,
                       struct error *error)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_set_errno(error, errno, "make a pipe");
    AUTO_FD int error_read = pipe_fds[0];
    AUTO_FD int error_write = pipe_fds[1];
    child->error_fd = error_write;
    child->parent = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(error, errno, "fork");
    if (pid == 0)
        child_main(child);

    close(TAKE_FD(error_write));
    close(TAKE_FD(child->fds[INFO_FD]));
    struct failure failure;
    ssize_t got;
    do {
        got = read(error_read, &failure, sizeof(failure));
    } while (got < 0 && errno == EINTR);
    const int pidfd = pidfd_open(pid, 0);
    if (got != 0 || pidfd < 0) {
        const int errno_value = got == (ssize_t)sizeof(failure) ? failure.errno_value : errno;
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        const char *step = got == (ssize_t)sizeof(failure) && failure.step < STEP_COUNT
                               ? step_names[failure.step]
                               : "watch bwrap";
        return error_set_errno(error, errno_value, "%s", step);
    }
    *launched = (struct launched){.pid = pid, .pidfd = pidfd, .inner_pidfd = -1, .hold_fd = -1};
    launched->inner_pid = launch_read_inner_pid(info_fd);
    if (launched->inner_pid > 0)
        launched->inner_pidfd = pidfd_open(launched->inner_pid, 0);
    return 0;
}

static int launch_give_pipe(int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -1;
    return S_ISFIFO(status.st_mode) ? fchown(fd, SANDBOX_UID, SANDBOX_UID) : 0;
}

/*
 * Since Linux 5.14 RLIMIT_NPROC counts the processes of each user namespace apart: the stage sets
 * it there. Before, it counts all that the user has, which others may raise while this one runs.
 */
static bool kernel_counts_apart(void)
{
    struct utsname system;
    if (uname(&system) < 0)
        return false;
    char *end;
    const long major = strtol(system.release, &end, 10);
    const long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return major > 5 || (major == 5 && minor >= 14);
}

static void launch_limit_processes(struct child *child, int64_t pids_max)
{
    child->counts_inside = child->host->landlock_abi > 0 && kernel_counts_apart();
    int64_t others = 0;
    if (!child->counts_inside)
        others = process_count_of_user(child->host->drops_user ? SANDBOX_UID : getuid());
    child->process_count = (rlim_t)(others + pids_max);
}

int sandbox_launch(const struct sandbox_host *host, const struct sandbox_options *options,
                   const struct cgroup *cgroup, struct launched *out_launched, struct error *error)
{
    struct child child = {.host = host,
                          .cgroup = cgroup,
                          .has_soft_limits = cgroup->version == CGROUP_NONE,
                          .memory_bytes = (rlim_t)options->memory_bytes,
                          /* Fuller folders refuse first; this stops what is absurd. */
                          .file_bytes = (rlim_t)(options->disk_bytes + options->disk_bytes / 8)};
    if (child.has_soft_limits && options->pids_max > 0)
        launch_limit_processes(&child, options->pids_max);
    AUTO(arena) struct arena *arena = arena_new(0);
    child.arguments.arena = arena;
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int info_fds[2] = {-1, -1};
    if (null_fd < 0)
        return error_set_errno(error, errno, "open \"/dev/null\"");
    const struct seccomp_options filter = {.has_cgroup = !child.has_soft_limits,
                                           .has_local_sockets = options->has_local_sockets,
                                           .has_network = options->set_up_network != NULL,
                                           .shares_network = options->shares_network};
    int filter_fds[SECCOMP_FILTER_COUNT];
    if (seccomp_export_filters(&filter, filter_fds, error) < 0)
        return -1;
    AUTO_FD int allowed_fd = filter_fds[0];
    AUTO_FD int refused_fd = filter_fds[1];
    int hold_fds[2] = {-1, -1};
    /* A socket: writing to a program that is gone raises no signal. */
    if (options->set_up_network && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, hold_fds) < 0)
        return error_set_errno(error, errno, "make a socketpair");
    AUTO_FD int hold_read = hold_fds[0];
    AUTO_FD int hold_write = hold_fds[1];
    if (pipe2(info_fds, O_CLOEXEC) < 0)
        return error_set_errno(error, errno, "make a pipe");
    AUTO_FD int info_read = info_fds[0];
    const int stdout_fd = options->stdout_fd >= 0 ? options->stdout_fd : null_fd;
    const int stderr_fd = options->stderr_fd >= 0 ? options->stderr_fd : null_fd;
    const int fds[] = {null_fd,    stdout_fd,  stderr_fd,   options->control_fd,
                       allowed_fd, refused_fd, info_fds[1], hold_read};
    memcpy(child.fds, fds, sizeof(fds));
    for (int i = 0; i < FILE_COUNT; i++)
        child.fds[FILE_FD + i] = -1;

    /* /dev/stdout and /dev/stderr open the pipes anew, which only their owner may do. */
    if (host->drops_user && (launch_give_pipe(stdout_fd) < 0 || launch_give_pipe(stderr_fd) < 0))
        return error_set_errno(error, errno, "give the sandbox its pipes");
    int result = command_open_files(options, child.fds + FILE_FD, error);
    if (result == 0)
        result = command_build(&child, options, error);
    if (result == 0)
        result = launch_fork(&child, info_read, out_launched, error);
    for (int i = INFO_FD; i < FD_COUNT; i++)
        if (i != HOLD_FD && child.fds[i] >= 0)
            close(child.fds[i]);
    if (result == 0)
        out_launched->hold_fd = TAKE_FD(hold_write);
    return result;
}
