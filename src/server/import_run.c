#include "server/import_run.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/import_runner.h"
#include "server/server_internal.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIXED = 3, FIRST_FD = 3 };

struct import_run {
    void (*on_done)(void *context, const struct error *error);
    void *context;
    pid_t pid; /* 0: it has ended */
    struct loop_child *child;
    int words_fd; /* what it says at the end */
};

static void read_words(const struct import_run *run, char *words, size_t size)
{
    const ssize_t got = pread(run->words_fd, words, size - 1, 0);
    words[got > 0 ? got : 0] = '\0';
    words[strcspn(words, "\n")] = '\0';
    text_make_plain(words);
}

static void run_ended(void *context, const struct child_exit *exit)
{
    struct import_run *run = context;
    struct error error;
    char words[sizeof(error.message)];
    run->pid = 0;
    if (exit->signal == 0 && exit->status == IMPORT_RUNNER_DONE) {
        run->on_done(run->context, NULL);
        return;
    }
    read_words(run, words, sizeof(words));
    if (exit->signal == 0 && exit->status == IMPORT_RUNNER_REFUSED && words[0])
        error_fill(&error, ERROR_INVALID, "%s", words);
    else if (exit->signal == 0 && words[0])
        error_fill(&error, ERROR_UNAVAILABLE, "%s", words);
    else
        error_fill(&error, ERROR_UNAVAILABLE, "it was cut off: status %d, signal %d", exit->status,
                   exit->signal);
    run->on_done(run->context, &error);
}

/* The descriptors it gets are all above those they become: none is written over before its turn. */
static void add_descriptors(posix_spawn_file_actions_t *actions, const struct import_run *run,
                            const struct import_run_options *options)
{
    posix_spawn_file_actions_adddup2(actions, run->words_fd, STDOUT_FILENO);
    if (options->stdin_fd > 0)
        posix_spawn_file_actions_adddup2(actions, options->stdin_fd, STDIN_FILENO);
    for (int i = 0; i < IMPORT_RUN_FDS; i++) {
        ASSERT(options->fds[i] == 0 || options->fds[i] >= FIRST_FD + IMPORT_RUN_FDS);
        if (options->fds[i])
            posix_spawn_file_actions_adddup2(actions, options->fds[i], FIRST_FD + i);
    }
}

/* The market blocks the signals it waits for; its child must not inherit that. */
static int spawn(struct import_run *run, const struct import_run_options *options,
                 const char *program, char *const *arguments, struct error *error)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    add_descriptors(&actions, run, options);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    const int result = posix_spawn(&run->pid, program, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (result) {
        run->pid = 0;
        return error_set_errno(error, result, "start souk %s", options->command);
    }
    return 0;
}

static char **make_arguments(struct arena *arena, const struct import_run_options *options)
{
    size_t count = 0;
    while (options->argv[count])
        count++;
    char **arguments = arena_alloc(arena, (count + FIXED + 1) * sizeof(*arguments));
    arguments[0] = arena_format(arena, "souk");
    arguments[1] = arena_format(arena, "%s", options->command);
    arguments[2] = arena_format(arena, "%d", (int)getpid());
    for (size_t i = 0; i < count; i++)
        arguments[FIXED + i] = arena_format(arena, "%s", options->argv[i]);
    arguments[FIXED + count] = NULL;
    return arguments;
}

int import_run_start(struct server *server, const struct import_run_options *options,
                     struct import_run **out_run, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct import_run *run = memory_zeroed(1, sizeof(*run));
    run->on_done = options->on_done;
    run->context = options->context;
    run->words_fd = memfd_create("import", MFD_CLOEXEC);
    const char *program = server->options.program ? server->options.program : "/proc/self/exe";
    if ((run->words_fd < 0 && error_set_errno(error, errno, "make room for its words") < 0) ||
        spawn(run, options, program, make_arguments(arena, options), error) < 0 ||
        loop_child_open(server->loop, run->pid, run_ended, run, &run->child, error) < 0) {
        import_run_free(run);
        return -1;
    }
    *out_run = run;
    return 0;
}

int import_run_read(const struct import_run *run, struct buffer *out, struct error *error)
{
    char piece[4096];
    off_t offset = 0;
    for (ssize_t size; (size = pread(run->words_fd, piece, sizeof(piece), offset)) != 0;) {
        if (size < 0)
            return error_set_errno(error, errno, "read what was said");
        buffer_append(out, piece, (size_t)size);
        offset += size;
        if (buffer_check(out, error) < 0)
            return -1;
    }
    return 0;
}

void import_run_free(struct import_run *run)
{
    if (!run)
        return;
    loop_child_free(run->child);
    if (run->pid > 0) {
        kill(run->pid, SIGKILL);
        while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (run->words_fd >= 0)
        close(run->words_fd);
    free(run);
}
