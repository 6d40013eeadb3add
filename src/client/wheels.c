#include "client/wheels.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/file.h"
#include "blob/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE_SIZE = 180, COPY_SIZE_MAX = 1 << 30, STOP_LOOK_MS = 50, STOP_GRACE_MS = 3000 };

#define WHEELS_SIZE_MAX ((uint64_t)4 << 30)

/* A folder of ours that is gone with the call. */
struct gathering {
    char folder[64];
    size_t count;
};

static int is_wheel(const struct dirent *item)
{
    return item->d_name[0] != '.' && fnmatch("*-*-*.whl", item->d_name, 0) == 0;
}

static void free_list(struct dirent **items, int count)
{
    for (int i = 0; i < count; i++)
        free(items[i]);
    free(items);
}

static void gathering_done(struct gathering *gathering)
{
    struct dirent **items = NULL;
    char path[PATH_MAX];
    if (!gathering->folder[0])
        return;
    const int count = scandir(gathering->folder, &items, NULL, NULL);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", gathering->folder, items[i]->d_name);
        (void)unlink(path); /* "." and ".." are in the list, too */
    }
    free_list(items, count);
    (void)rmdir(gathering->folder); /* what is left is in the folder for such files */
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* Some file systems share what is copied; not all can, and none with another. 0 at the end. */
static ssize_t copy_some(int from, int to)
{
    const ssize_t size = copy_file_range(from, NULL, to, NULL, COPY_SIZE_MAX, 0);
    if (size >= 0 || (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP))
        return size;
    return sendfile(to, from, NULL, COPY_SIZE_MAX);
}

static int copy_all(int from, int to)
{
    for (ssize_t size; (size = copy_some(from, to)) != 0;)
        if (size < 0 && errno != EINTR)
            return -1;
    return 0;
}

static int copy_wheel(struct gathering *gathering, const char *path, struct error *error)
{
    const char *slash = strrchr(path, '/');
    char target[PATH_MAX];
    snprintf(target, sizeof(target), "%s/%.255s", gathering->folder, slash ? slash + 1 : path);
    AUTO_FD int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return error_set_errno(error, errno, "wheels: \"%.150s\"", path);
    AUTO_FD int to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0)
        return errno == EEXIST
                   ? error_set(error, ERROR_INVALID, "wheels: \"%.150s\" is there twice",
                               slash ? slash + 1 : path)
                   : error_set_errno(error, errno, "make \"%s\"", target);
    return copy_all(from, to) < 0 ? error_set_errno(error, errno, "copy \"%.150s\"", path) : 0;
}

typedef int wheel_function(struct gathering *gathering, const char *path, struct error *error);

static int accept_wheel(struct gathering *gathering, const char *path, struct error *error)
{
    if (access(path, R_OK) < 0)
        return error_set_errno(error, errno, "wheels: \"%.150s\"", path);
    gathering->count++;
    return 0;
}

static int each_in_folder(struct gathering *gathering, const char *folder, wheel_function *visit,
                          struct error *error)
{
    struct dirent **items = NULL;
    const int count = scandir(folder, &items, is_wheel, alphasort);
    int result = 0;
    if (count < 0)
        return error_set_errno(error, errno, "wheels: \"%.150s\"", folder);
    if (count == 0)
        result = error_set(error, ERROR_INVALID, "wheels: \"%.150s\" holds no wheel", folder);
    for (int i = 0; result == 0 && i < count; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%.3800s/%s", folder, items[i]->d_name);
        result = visit(gathering, path, error);
    }
    free_list(items, count);
    return result;
}

/* Of the files and folders that spec->wheels names. */
static int each_wheel(struct arena *arena, const struct job_spec *spec, struct gathering *gathering,
                      wheel_function *visit, struct error *error)
{
    struct text rest = spec->wheels, one;
    for (bool has_more = rest.size > 0; has_more;) {
        has_more = text_cut(rest, ',', &one, &rest);
        const char *path = arena_copy_string(arena, one);
        const char *slash = strrchr(path, '/');
        struct stat status;
        if (stat(path, &status) < 0)
            return error_set_errno(error, errno, "wheels: \"%.150s\"", path);
        if (S_ISDIR(status.st_mode)) {
            if (each_in_folder(gathering, path, visit, error) < 0)
                return -1;
            continue;
        }
        if (!S_ISREG(status.st_mode) ||
            fnmatch("*-*-*.whl", slash ? slash + 1 : path, FNM_PERIOD) != 0)
            return error_set(error, ERROR_INVALID,
                             "wheels: \"%.150s\" is no wheel: it is called NAME-VERSION-TAGS.whl",
                             path);
        if (visit(gathering, path, error) < 0)
            return -1;
    }
    return 0;
}

int wheels_check(const struct job_spec *spec, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct gathering counted = {.count = 0};
    if (spec->requirements.size && access(arena_copy_string(arena, spec->requirements), R_OK) < 0)
        return error_set_errno(error, errno, "requirements: \"%.*s\"",
                               TEXT_ARGS(spec->requirements));
    if ((spec->requirements.size || spec->wheels.size) && text_is(spec->resources.install, "index"))
        return error_set(error, ERROR_INVALID,
                         "resources.install: index is not there yet; say wheels, and they are "
                         "fetched here and uploaded");
    if (each_wheel(arena, spec, &counted, accept_wheel, error) < 0)
        return -1;
    if (counted.count > WHEELS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "wheels: %zu, and %d at most", counted.count,
                         WHEELS_MAX);
    return 0;
}

/* ---- pip ------------------------------------------------------------------------------------- */

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

static int run_pip(char **arguments, const char *output, const volatile int32_t *stop,
                   struct error *error)
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

static int fetch_requirements(struct arena *arena, const struct job_spec *spec,
                              const volatile int32_t *stop, struct gathering *gathering,
                              struct error *error)
{
    const char *path = arena_copy_string(arena, spec->requirements);
    const char *output = arena_format(arena, "%s/.said", gathering->folder);
    const char *const words[] = {"python3",      "-m",
                                 "pip",          "download",
                                 "-q",           "--disable-pip-version-check",
                                 "--no-input",   "--only-binary=:all:",
                                 "--dest",       gathering->folder,
                                 "--find-links", gathering->folder,
                                 "-r",           path};
    char *arguments[sizeof(words) / sizeof(*words) + 1] = {0};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        arguments[i] = arena_copy_string(arena, text_of(words[i]));
    if (run_pip(arguments, output, stop, error) < 0)
        return -1;
    return unlink(output) < 0 ? error_set_errno(error, errno, "remove \"%s\"", output) : 0;
}

/* ---- The archive ----------------------------------------------------------------------------- */

/* Neither when it was fetched nor who did is part of a wheel. */
static int make_plain(struct gathering *gathering, const char *path, struct error *error)
{
    static const struct timespec never[] = {{.tv_sec = 0}, {.tv_sec = 0}};
    if (chmod(path, 0644) < 0 || utimensat(AT_FDCWD, path, never, 0) < 0)
        return error_set_errno(error, errno, "set up \"%s\"", path);
    gathering->count++;
    return 0;
}

int wheels_pack(struct arena *arena, const struct job_spec *spec, const volatile int32_t *stop,
                int fd, size_t *out_count, struct error *error)
{
    static const struct archive_limits limits = {WHEELS_SIZE_MAX, WHEELS_MAX};
    __attribute__((cleanup(gathering_done))) struct gathering gathering = {
        .folder = "/var/tmp/souk-wheels-XXXXXX"};
    struct archive_summary summary;
    if (!mkdtemp(gathering.folder)) {
        gathering.folder[0] = '\0';
        return error_set_errno(error, errno, "make a folder in /var/tmp");
    }
    if (each_wheel(arena, spec, &gathering, copy_wheel, error) < 0 ||
        (spec->requirements.size && fetch_requirements(arena, spec, stop, &gathering, error) < 0) ||
        each_in_folder(&gathering, gathering.folder, make_plain, error) < 0)
        return -1;
    if (archive_pack(gathering.folder, fd, &limits, &summary, error) < 0)
        return error_wrap(error, "wheels");
    *out_count = gathering.count;
    return 0;
}
