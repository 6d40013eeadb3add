/*
 * Launch: builds bubblewrap's command line and starts it.
 *
 * As root the child first becomes an ordinary user, so that even a hole in bubblewrap or in the
 * kernel's user namespaces does not make root of the program. That user may not be able to walk to
 * the folders to be mounted (they lie in root's home, say), so while still root the child puts
 * them into a mount namespace of its own, on a small tmpfs over /tmp that nobody else sees.
 */
#include "base/arena.h"
#include "base/assert.h"
#include "base/clock.h"
#include "sandbox/process_tree.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SECCOMP_FD = SANDBOX_CONTROL_FD + 1,
    INFO_FD = SECCOMP_FD + 1,
    HOLD_FD = INFO_FD + 1,
    FIRST_FREE_FD = 64, /* where descriptors wait while 0 to HOLD_FD are laid out */
    ARGUMENT_MAX = 320,
    SOURCE_MAX = SANDBOX_MOUNT_MAX + 1, /* the options' mounts and the program */
    NOFILE_MAX = 4096,
    NICENESS = 10,
    INFO_WAIT_MS = 5000,
};

/* A folder or file to be mounted, where bwrap will find it. */
struct source {
    const char *path;
    bool is_folder;
    char staged[32]; /* below the child's own /tmp */
};

struct arguments {
    struct arena *arena;
    char *items[ARGUMENT_MAX];
    size_t count;
    bool is_overflowed;
};

/* Everything the child needs, made before the fork: after it only async-signal-safe calls. */
struct child {
    const struct sandbox_host *host;
    const struct cgroup *cgroup;
    struct arguments arguments;
    struct source sources[SOURCE_MAX];
    size_t source_count;
    int fds[HOLD_FD + 1]; /* what becomes descriptor 0, 1, ...; -1: closed */
    int error_fd;
    pid_t parent;
    bool has_soft_limits;
    rlim_t memory_bytes;
    rlim_t process_count;
};

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

static void arguments_add(struct arguments *arguments, const char *first, const char *second,
                          const char *third)
{
    const char *const added[] = {first, second, third};
    for (size_t i = 0; i < 3 && added[i]; i++) {
        if (arguments->count + 1 >= ARGUMENT_MAX) {
            arguments->is_overflowed = true;
            return;
        }
        arguments->items[arguments->count++] =
            arena_copy_string(arguments->arena, text_of(added[i]));
    }
}

/* The system's folders as they are here: most are links into /usr today, some machines differ. */
static void arguments_add_system(struct arguments *arguments)
{
    static const char *const folders[] = {"/usr",    "/lib", "/lib32", "/lib64",
                                          "/libx32", "/bin", "/sbin"};
    static const char *const files[] = {"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf",
                                        "/etc/ld.so.conf.d"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        char target[PATH_MAX];
        const ssize_t size = readlink(folders[i], target, sizeof(target) - 1);
        if (size > 0) {
            target[size] = '\0';
            arguments_add(arguments, "--symlink", target, folders[i]);
        } else if (access(folders[i], F_OK) == 0) {
            arguments_add(arguments, "--ro-bind", folders[i], folders[i]);
        }
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        arguments_add(arguments, "--ro-bind-try", files[i], files[i]);
}

static void arguments_add_confinement(struct arguments *arguments, const struct sandbox_host *host)
{
    char number[16];
    arguments_add(arguments, host->bwrap, "--unshare-all", "--unshare-user");
    if (host->disables_userns)
        arguments_add(arguments, "--disable-userns", NULL, NULL);
    arguments_add(arguments, "--die-with-parent", "--new-session", NULL);
    arguments_add(arguments, "--cap-drop", "ALL", NULL);
    snprintf(number, sizeof(number), "%d", SANDBOX_UID);
    arguments_add(arguments, "--uid", number, NULL);
    arguments_add(arguments, "--gid", number, NULL);
    arguments_add(arguments, "--hostname", "souk", NULL);
    snprintf(number, sizeof(number), "%d", SECCOMP_FD);
    arguments_add(arguments, "--seccomp", number, NULL);
    snprintf(number, sizeof(number), "%d", INFO_FD);
    arguments_add(arguments, "--info-fd", number, NULL);
}

int sandbox_give_folder(const struct sandbox_host *host, const char *path, struct error *error)
{
    if (host->drops_user && chown(path, SANDBOX_UID, SANDBOX_UID) < 0)
        return error_set_errno(error, errno, "give \"%s\" to the sandbox's user", path);
    return 0;
}

static int child_add_source(struct child *child, const char *path, const char *target,
                            bool is_writable, struct error *error)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return error_set_errno(error, errno, "mount \"%s\"", path);
    struct source *source = &child->sources[child->source_count];
    source->path = path;
    source->is_folder = S_ISDIR(status.st_mode);
    snprintf(source->staged, sizeof(source->staged), "/tmp/%zu", child->source_count);
    child->source_count++;
    if (is_writable && sandbox_give_folder(child->host, path, error) < 0)
        return -1;
    arguments_add(&child->arguments, is_writable ? "--bind" : "--ro-bind",
                  child->host->drops_user ? source->staged : path, target);
    return 0;
}

static int child_add_mounts(struct child *child, const struct sandbox_options *options,
                            struct error *error)
{
    struct arguments *arguments = &child->arguments;
    char size[32];
    arguments_add(arguments, "--proc", "/proc", NULL);
    arguments_add(arguments, "--dev", "/dev", NULL);
    snprintf(size, sizeof(size), "%" PRId64, options->memory_bytes);
    arguments_add(arguments, "--size", size, NULL);
    arguments_add(arguments, "--tmpfs", "/tmp", NULL);
    /* /dev/shm would be a second, unbounded memory file system. */
    arguments_add(arguments, "--size", size, NULL);
    arguments_add(arguments, "--tmpfs", "/dev/shm", NULL);
    if (child_add_source(child, child->host->program, "/souk", false, error) < 0)
        return -1;
    for (size_t i = 0; i < options->mount_count; i++) {
        const struct sandbox_mount *mount = &options->mounts[i];
        if (child_add_source(child, mount->source, mount->target, mount->is_writable, error) < 0)
            return -1;
    }
    /* The root itself is a tmpfs that holds the mount points: nothing is to be written there. */
    arguments_add(arguments, "--remount-ro", "/", NULL);
    return 0;
}

static int child_build(struct child *child, const struct sandbox_options *options,
                       struct error *error)
{
    struct arguments *arguments = &child->arguments;
    arguments_add_confinement(arguments, child->host);
    if (options->set_up_network) {
        char number[16];
        snprintf(number, sizeof(number), "%d", HOLD_FD);
        arguments_add(arguments, "--block-fd", number, NULL);
    }
    arguments_add_system(arguments);
    if (child_add_mounts(child, options, error) < 0)
        return -1;
    arguments_add(arguments, "--chdir", options->working_dir ? options->working_dir : "/", NULL);
    arguments_add(arguments, "--clearenv", NULL, NULL);
    for (size_t i = 0; options->environment && options->environment[i]; i++) {
        struct text name, value;
        if (!text_cut(text_of(options->environment[i]), '=', &name, &value))
            return error_set(error, ERROR_INVALID, "environment \"%s\" has no '='",
                             options->environment[i]);
        arguments_add(arguments, "--setenv", arena_copy_string(arguments->arena, name), value.data);
    }
    arguments_add(arguments, "--", NULL, NULL);
    for (size_t i = 0; options->argv[i]; i++)
        arguments_add(arguments, options->argv[i], NULL, NULL);
    if (arguments->is_overflowed)
        return error_set(error, ERROR_INVALID, "too many arguments for a sandbox");
    arguments->items[arguments->count] = NULL;
    return 0;
}

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
    if (!child->has_soft_limits)
        return 0;
    /* Of the two, RLIMIT_DATA counts what is written, RLIMIT_AS also what is only reserved. */
    return child_set_limit(RLIMIT_DATA, child->memory_bytes) < 0 ||
                   child_set_limit(RLIMIT_NPROC, child->process_count) < 0 ||
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
    for (int i = 0; i <= HOLD_FD; i++) {
        if (child->fds[i] < 0)
            continue;
        child->fds[i] = fcntl(child->fds[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
        if (child->fds[i] < 0)
            return -1;
    }
    for (int i = 0; i <= HOLD_FD; i++) {
        if (child->fds[i] < 0)
            close(i);
        else if (dup2(child->fds[i], i) < 0)
            return -1;
    }
    return close_range(HOLD_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC);
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

int sandbox_launch(const struct sandbox_host *host, const struct sandbox_options *options,
                   const struct cgroup *cgroup, struct launched *out_launched, struct error *error)
{
    struct child child = {.host = host,
                          .cgroup = cgroup,
                          .has_soft_limits = cgroup->version == CGROUP_NONE,
                          .memory_bytes = (rlim_t)options->memory_bytes};
    if (child.has_soft_limits) {
        const uid_t uid = host->drops_user ? SANDBOX_UID : getuid();
        child.process_count = (rlim_t)(process_count_of_user(uid) + options->pids_max);
    }
    AUTO(arena) struct arena *arena = arena_new(0);
    child.arguments.arena = arena;
    AUTO_FD int filter_fd = -1;
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int info_fds[2] = {-1, -1};
    if (null_fd < 0)
        return error_set_errno(error, errno, "open \"/dev/null\"");
    const struct seccomp_options filter = {.has_cgroup = !child.has_soft_limits,
                                           .has_network = options->set_up_network != NULL};
    if (seccomp_export_filter(&filter, &filter_fd, error) < 0)
        return -1;
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
    const int fds[] = {null_fd,   stdout_fd,   stderr_fd, options->control_fd,
                       filter_fd, info_fds[1], hold_read};
    memcpy(child.fds, fds, sizeof(fds));

    int result = child_build(&child, options, error);
    if (result == 0)
        result = launch_fork(&child, info_read, out_launched, error);
    if (child.fds[INFO_FD] >= 0)
        close(child.fds[INFO_FD]);
    if (result == 0)
        out_launched->hold_fd = TAKE_FD(hold_write);
    return result;
}
