#include "client/pip.h"

#include "base/buffer.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE_SIZE = 180, STOP_LOOK_MS = 50, STOP_GRACE_MS = 3000 };

/* The last line that calls itself an error, or the last at all. */
static void read_reason(const char *path, char out[LINE_SIZE])
{
    struct error ignored;
    struct buffer said AUTO_BUFFER;
    buffer_init(&said, (size_t)1 << 20);
    snprintf(out, LINE_SIZE, "it said nothing");
    if (file_read(path, &said, &ignored) < 0)
        return;
    struct text rest = buffer_text(&said), line;
    bool has_error = false;
    for (bool has_more = rest.size > 0; has_more;) {
        has_more = text_cut(rest, '\n', &line, &rest);
        const bool is_error =
            text_starts_with(line, TEXT("ERROR:")) && !text_equal(line, TEXT("ERROR: Exception:"));
        if (!text_trim(line).size || (has_error && !is_error))
            continue;
        has_error = is_error;
        const int size = line.size < LINE_SIZE - 1 ? (int)line.size : LINE_SIZE - 1;
        snprintf(out, LINE_SIZE, "%.*s", size, line.data);
    }
}

/* What may be stopped is a group, as python3 may be a script that starts another; else it stays in
 * the terminal's, for Ctrl-C. */
static int spawn_pip(char **arguments, const char *output, bool is_group, pid_t *out_pid,
                     struct error *error)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, is_group ? POSIX_SPAWN_SETPGROUP : 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    const int failure =
        posix_spawnp(out_pid, arguments[0], &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failure ? error_set(error, ERROR_UNAVAILABLE,
                               "requirements: python3 with pip fetches what they name, and it is "
                               "not here (Debian: apt install python3-pip)")
                   : 0;
}

/* Told to stop, it has a moment to remove what it fetched. */
static int await_pip(pid_t pid, const volatile int32_t *stop, int *out_status)
{
    static const struct timespec pause = {.tv_nsec = STOP_LOOK_MS * 1000000L};
    int stopping_ms = 0;
    for (;;) {
        const pid_t ended = waitpid(pid, out_status, stop ? WNOHANG : 0);
        if (ended == pid)
            return 0;
        if (ended < 0 && errno != EINTR)
            return -1;
        if (ended < 0 || !stop)
            continue;
        if (*stop != 0) {
            if (stopping_ms == 0 || stopping_ms == STOP_GRACE_MS)
                kill(-pid, stopping_ms == 0 ? SIGINT : SIGKILL);
            stopping_ms += STOP_LOOK_MS;
        }
        (void)nanosleep(&pause, NULL); /* cut short it only looks sooner */
    }
}

int pip_run(char **arguments, const char *output, const volatile int32_t *stop, struct error *error)
{
    pid_t pid;
    int status;
    char reason[LINE_SIZE];
    if (spawn_pip(arguments, output, stop != NULL, &pid, error) < 0)
        return -1;
    if (await_pip(pid, stop, &status) < 0) /* the program ignores SIGCHLD, or takes every child */
        return error_set_errno(error, errno, "requirements: learn how pip ended");
    if (stop && *stop != 0)
        return error_set(error, ERROR_CONFLICT, "requirements: pip was stopped");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    read_reason(output, reason);
    return error_set(error, ERROR_INVALID, "requirements: pip: %s", reason);
}
