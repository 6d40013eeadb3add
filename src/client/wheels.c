#include "client/wheels.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/file.h"
#include "blob/archive.h"
#include "client/pip.h"
#include "client/pip_report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    return file_copy(from, to, error) < 0 ? error_wrap(error, "\"%.150s\"", path) : 0;
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
                          bool may_be_none, struct error *error)
{
    struct dirent **items = NULL;
    const int count = scandir(folder, &items, is_wheel, alphasort);
    int result = 0;
    if (count < 0)
        return error_set_errno(error, errno, "wheels: \"%.150s\"", folder);
    if (count == 0 && !may_be_none)
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
            if (each_in_folder(gathering, path, visit, /* may_be_none= */ false, error) < 0)
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
    if (each_wheel(arena, spec, &counted, accept_wheel, error) < 0)
        return -1;
    if (counted.count > WHEELS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "wheels: %zu, and %d at most", counted.count,
                         WHEELS_MAX);
    return 0;
}

/* Neither when it was fetched nor who did is part of a wheel. */
static int make_plain(struct gathering *gathering, const char *path, struct error *error)
{
    static const struct timespec never[] = {{.tv_sec = 0}, {.tv_sec = 0}};
    if (chmod(path, 0644) < 0 || utimensat(AT_FDCWD, path, never, 0) < 0)
        return error_set_errno(error, errno, "set up \"%s\"", path);
    gathering->count++;
    return 0;
}

/* ---- Requirements ---------------------------------------------------------------------------- */

static int remove_file(const char *path, struct error *error)
{
    return unlink(path) < 0 ? error_set_errno(error, errno, "remove \"%s\"", path) : 0;
}

/* `verb` is pip's own, with what it takes besides the requirements; ends with NULL. */
static int ask_pip(struct arena *arena, const struct job_spec *spec, const volatile int32_t *stop,
                   const struct gathering *gathering, const char *const *verb, struct error *error)
{
    const char *output = arena_format(arena, "%s/.said", gathering->folder);
    const char *const words[] = {"-q",           "--disable-pip-version-check",
                                 "--no-input",   "--only-binary=:all:",
                                 "--find-links", gathering->folder,
                                 "-r",           arena_copy_string(arena, spec->requirements)};
    char *arguments[24] = {(char[]){"python3"}, (char[]){"-m"}, (char[]){"pip"}};
    size_t count = 3;
    for (size_t i = 0; verb[i]; i++)
        arguments[count++] = arena_copy_string(arena, text_of(verb[i]));
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        arguments[count++] = arena_copy_string(arena, text_of(words[i]));
    ASSERT(count < sizeof(arguments) / sizeof(*arguments));
    return pip_run(arguments, output, stop, error) < 0 ? -1 : remove_file(output, error);
}

static int fetch_requirements(struct arena *arena, const struct job_spec *spec,
                              const volatile int32_t *stop, struct gathering *gathering,
                              struct error *error)
{
    const char *const verb[] = {"download", "--dest", gathering->folder, NULL};
    return ask_pip(arena, spec, stop, gathering, verb, error);
}

/* Those that are not here already. */
static int copy_files(struct gathering *gathering, const struct pip_report *report,
                      struct error *error)
{
    const size_t own_size = strlen(gathering->folder);
    for (size_t i = 0; i < report->file_count; i++) {
        const char *path = report->files[i];
        const bool is_own = !strncmp(path, gathering->folder, own_size) && path[own_size] == '/';
        if (!is_own && copy_wheel(gathering, path, error) < 0)
            return -1;
    }
    return 0;
}

static int write_lock(struct arena *arena, struct gathering *gathering,
                      const struct package_lock *lock, struct error *error)
{
    const char *path = arena_format(arena, "%s/" PACKAGE_LOCK_FILE, gathering->folder);
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, PACKAGE_LOCK_SIZE_MAX);
    package_lock_write(lock, &json);
    if (buffer_check(&json, error) < 0)
        return -1;
    const struct text part = buffer_text(&json);
    if (file_replace(path, &part, 1, 0644, error) < 0 || make_plain(gathering, path, error) < 0)
        return -1;
    gathering->count += lock->packages.count - 1; /* it is none itself */
    return 0;
}

/* What an index has is named, so that lenders fetch the very same; the rest is brought along. */
static int lock_requirements(struct arena *arena, const struct job_spec *spec,
                             const volatile int32_t *stop, struct gathering *gathering,
                             struct error *error)
{
    const char *path = arena_format(arena, "%s/.report", gathering->folder);
    const char *const verb[] = {"install",  "--dry-run", "--ignore-installed",
                                "--report", path,        NULL};
    struct pip_report report = {0};
    if (spec->requirements.size) {
        struct buffer json AUTO_BUFFER;
        buffer_init(&json, PIP_REPORT_SIZE_MAX);
        if (ask_pip(arena, spec, stop, gathering, verb, error) < 0 ||
            file_read(path, &json, error) < 0 || remove_file(path, error) < 0)
            return -1;
        if (pip_report_read(arena, buffer_text(&json), &report, error) < 0)
            return error_wrap(error, "requirements");
        if (copy_files(gathering, &report, error) < 0)
            return -1;
    }
    return write_lock(arena, gathering, &report.lock, error);
}

/* ---- The archive ----------------------------------------------------------------------------- */

int wheels_pack(struct arena *arena, const struct job_spec *spec, const volatile int32_t *stop,
                int fd, size_t *out_count, struct error *error)
{
    static const struct archive_limits limits = {WHEELS_SIZE_MAX, WHEELS_MAX + 1};
    const bool is_locked = text_is(spec->resources.install, "index");
    __attribute__((cleanup(gathering_done))) struct gathering gathering = {
        .folder = "/var/tmp/souk-wheels-XXXXXX"};
    struct archive_summary summary;
    if (!mkdtemp(gathering.folder)) {
        gathering.folder[0] = '\0';
        return error_set_errno(error, errno, "make a folder in /var/tmp");
    }
    if (each_wheel(arena, spec, &gathering, copy_wheel, error) < 0 ||
        (is_locked                 ? lock_requirements(arena, spec, stop, &gathering, error)
         : spec->requirements.size ? fetch_requirements(arena, spec, stop, &gathering, error)
                                   : 0) < 0 ||
        each_in_folder(&gathering, gathering.folder, make_plain, /* may_be_none= */ is_locked,
                       error) < 0)
        return -1;
    if (archive_pack(gathering.folder, fd, &limits, &summary, error) < 0)
        return error_wrap(error, "wheels");
    *out_count = gathering.count;
    return 0;
}
