#include "cli/demo_process.h"

#include "base/file.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ARGUMENT_MAX = 40,
    READY_SIZE_MAX = 4096,
    STOP_MS = 60000, /* longer: it hangs. A lender that is killed leaves its leases' groups */
    LOG_SHOWN_MAX = 300
};

/* Fixed numbers in the child, above the standard three. */
enum { CHILD_READY_FD = 8, CHILD_STOP_FD = 9 };

/* Only async-signal-safe calls: between fork and exec. */
_Noreturn static void run_child(const char *program, char *const *argv, int log_fd, int ready_fd,
                                int stop_fd, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGINT); /* as by Ctrl-C: leases end too */
    if (getppid() != parent)
        _exit(125);
    const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* Out of the way first: the numbers wanted may be in use by the other descriptor. */
    const int ready = fcntl(ready_fd, F_DUPFD_CLOEXEC, 20);
    const int stop = fcntl(stop_fd, F_DUPFD_CLOEXEC, 20);
    if (null_fd < 0 || ready < 0 || stop < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
        dup2(log_fd, STDOUT_FILENO) < 0 || dup2(log_fd, STDERR_FILENO) < 0 ||
        dup2(ready, CHILD_READY_FD) < 0 || dup2(stop, CHILD_STOP_FD) < 0)
        _exit(126);
    execv(program, argv);
    _exit(127);
}

int demo_process_start(struct demo_process *process, const char *program,
                       const char *const *arguments, struct error *error)
{
    char *argv[ARGUMENT_MAX + 8];
    size_t count = 0;
    argv[count++] = strdup("souk");
    for (size_t i = 0; arguments[i] && count < ARGUMENT_MAX; i++)
        argv[count++] = strdup(arguments[i]);
    argv[count++] = strdup("--ready-fd=8");
    argv[count++] = strdup("--stop-fd=9");
    argv[count] = NULL;

    int ready[2] = {-1, -1}, stop[2] = {-1, -1};
    AUTO_FD int log_fd =
        open(process->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool is_open = log_fd >= 0 && pipe2(ready, O_CLOEXEC) == 0 && pipe2(stop, O_CLOEXEC) == 0;
    const pid_t parent = getpid();
    const pid_t pid = is_open ? fork() : -1;
    const int failure = errno;
    if (pid == 0)
        run_child(program, argv, log_fd, ready[1], stop[0], parent);

    for (size_t i = 0; i < count; i++)
        free(argv[i]);
    if (ready[1] >= 0)
        close(ready[1]);
    if (stop[0] >= 0)
        close(stop[0]);
    if (pid < 0) {
        if (ready[0] >= 0)
            close(ready[0]);
        if (stop[1] >= 0)
            close(stop[1]);
        return error_set_errno(error, failure, "start %s", process->name);
    }
    process->pid = pid;
    process->ready_fd = ready[0];
    process->stop_fd = stop[1];
    process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process->pidfd < 0) {
        const int reason = errno;
        demo_process_stop(process);
        return error_set_errno(error, reason, "watch %s", process->name);
    }
    return 0;
}

/* The last line a program wrote says best why it ended. */
static struct text last_line(struct text log)
{
    log = text_trim(log);
    size_t start = log.size;
    while (start > 0 && log.data[start - 1] != '\n')
        start--;
    return (struct text){log.data + start, log.size - start};
}

static int refuse_ended(const struct demo_process *process, struct error *error)
{
    /* The descriptor is closed before the program says why it ends: its end is waited for. */
    struct pollfd polled = {.fd = process->pidfd, .events = POLLIN};
    int ended;
    do
        ended = poll(&polled, 1, STOP_MS);
    while (ended < 0 && errno == EINTR);
    struct buffer log AUTO_BUFFER;
    buffer_init(&log, 1 << 20);
    struct error ignored = {0};
    if (file_read(process->log_path, &log, &ignored) < 0)
        buffer_clear(&log);
    struct text line = last_line(buffer_text(&log));
    const size_t prefix = strlen("souk: ");
    if (text_starts_with(line, TEXT("souk: ")))
        line = (struct text){line.data + prefix, line.size - prefix};
    if (line.size == 0)
        return error_set(error, ERROR_UNAVAILABLE, "%s ended at its start and gave no reason",
                         process->name);
    return error_set(error, ERROR_UNAVAILABLE, "%s ended at its start: %.*s", process->name,
                     (int)(line.size < LOG_SHOWN_MAX ? line.size : LOG_SHOWN_MAX), line.data);
}

int demo_process_wait_ready(struct demo_process *process, int signal_fd, struct arena *arena,
                            struct text *out_json, bool *out_is_interrupted, struct error *error)
{
    char *json = arena_alloc(arena, READY_SIZE_MAX);
    size_t size = 0;
    for (;;) {
        struct pollfd polled[2] = {{.fd = process->ready_fd, .events = POLLIN},
                                   {.fd = signal_fd, .events = POLLIN}};
        if (poll(polled, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return error_set_errno(error, errno, "wait for %s", process->name);
        }
        if (polled[1].revents) {
            *out_is_interrupted = true;
            return error_set(error, ERROR_REFUSED, "interrupted");
        }
        const ssize_t got = read(process->ready_fd, json + size, READY_SIZE_MAX - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break; /* the descriptor is closed after the line, or by the program's end */
        size += (size_t)got;
        if (size == READY_SIZE_MAX)
            return error_set(error, ERROR_CORRUPT, "%s says too much when ready", process->name);
    }
    close(process->ready_fd);
    process->ready_fd = -1;
    *out_json = text_trim((struct text){json, size});
    return out_json->size ? 0 : refuse_ended(process, error);
}

void demo_process_ask_stop(struct demo_process *process)
{
    if (process->stop_fd >= 0)
        close(process->stop_fd);
    process->stop_fd = -1;
}

void demo_process_stop(struct demo_process *process)
{
    if (process->pid <= 0)
        return;
    demo_process_ask_stop(process);
    struct pollfd polled = {.fd = process->pidfd, .events = POLLIN};
    int ended;
    do
        ended = process->pidfd >= 0 ? poll(&polled, 1, STOP_MS) : 0;
    while (ended < 0 && errno == EINTR);
    if (ended <= 0)
        kill(process->pid, SIGKILL);
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (process->pidfd >= 0)
        close(process->pidfd);
    if (process->ready_fd >= 0)
        close(process->ready_fd);
    process->pid = 0;
    process->pidfd = process->ready_fd = -1;
}
