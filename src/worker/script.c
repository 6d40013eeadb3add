#include "worker/script.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct script {
    pid_t pid; /* and of its group */
    bool has_exited;
    struct loop_child *child;
    struct loop_timer *killer;
    void (*on_exit)(void *context, const struct child_exit *exit);
    void *context;
};

/* Between fork and exec nothing but calls that are safe there. */
static _Noreturn void become(char **arguments, const char *folder, char **environment)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); // NOLINT(concurrency-mt-unsafe): one thread after fork
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd >= 0)
        dup2(null_fd, STDIN_FILENO);
    closefrom(STDERR_FILENO + 1);
    static const char no_folder[] = "souk: the folder to start in is not there\n";
    static const char no_program[] = "souk: what is to run (a shell, or the image's own command) "
                                     "cannot be started\n";
    if (chdir(folder) < 0) {
        if (write(STDERR_FILENO, no_folder, sizeof(no_folder) - 1) > 0)
            _exit(126);
        _exit(126);
    }
    environ = environment;
    if (strcmp(arguments[0], "sh") != 0) {
        execvp(arguments[0], arguments);
    } else {
        execve("/bin/bash", arguments, environment);
        execve("/bin/sh", arguments, environment);
    }
    _exit(write(STDERR_FILENO, no_program, sizeof(no_program) - 1) > 0 ? 127 : 126);
}

static void on_exit_of_child(void *context, const struct child_exit *exit)
{
    struct script *script = context;
    script->has_exited = true;
    loop_timer_stop(script->killer);
    script->on_exit(script->context, exit);
}

static void on_kill(void *context)
{
    const struct script *script = context;
    kill(-script->pid, SIGKILL);
}

int script_start(const struct script_options *options, struct script **out_script,
                 struct error *error)
{
    AUTO(script) struct script *script = calloc(1, sizeof(*script));
    ASSERT(script);
    script->on_exit = options->on_exit;
    script->context = options->context;
    script->killer = loop_timer_new(options->loop, on_kill, script);
    const pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(error, errno, "start a process");
    if (pid == 0)
        become(options->arguments, options->folder, options->environment);
    setpgid(pid, pid); /* either side may be first */
    script->pid = pid;
    if (loop_child_open(options->loop, pid, on_exit_of_child, script, &script->child, error) < 0)
        return -1;
    *out_script = TAKE(script);
    return 0;
}

void script_stop(struct script *script, int64_t grace_ms)
{
    if (script->has_exited)
        return;
    kill(-script->pid, SIGTERM);
    if (grace_ms > 0)
        loop_timer_start(script->killer, grace_ms);
}

/* The group outlives its first process while one of it runs: its number is not another's then. If
 * none does, the number may be anybody's of this sandbox only after all others were used. */
void script_free(struct script *script)
{
    if (!script)
        return;
    if (script->pid > 0)
        kill(-script->pid, SIGKILL);
    loop_child_free(script->child);
    loop_timer_free(script->killer);
    free(script);
}
