#include "peer/software.h"

#include "base/buffer.h"
#include "market/labels.h"
#include "peer/own_data.h"
#include "peer/probe_package.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_TEXT_MAX = 64 << 10 };

/* Of every sandbox: what lies below belongs to the lease or to its kernel. */
static const char *const private_folders[] = {"/data",     "/dev",  "/etc",  "/lease",
                                              "/packages", "/peer", "/proc", "/run",
                                              "/souk",     "/sys",  "/tmp",  "/.souk"};
/* Seen by all leases as they are; what lies below may be named. */
static const char *const system_folders[] = {"/",      "/bin",  "/lib",    "/lib32",
                                             "/lib64", "/sbin", "/libx32", "/usr"};

/* Is one the other or below it? */
static bool is_within(const char *inner, const char *outer)
{
    const size_t size = strlen(outer);
    return strncmp(inner, outer, size) == 0 && (inner[size] == '\0' || inner[size] == '/');
}

static int check_place(const char *path, const char *state_dir, struct error *error)
{
    char state[PATH_MAX];
    for (size_t i = 0; i < sizeof(private_folders) / sizeof(*private_folders); i++)
        if (is_within(path, private_folders[i]))
            return error_set(error, ERROR_INVALID, "\"%s\": a lease has a %s of its own", path,
                             private_folders[i]);
    for (size_t i = 0; i < sizeof(system_folders) / sizeof(*system_folders); i++)
        if (strcmp(path, system_folders[i]) == 0)
            return error_set(error, ERROR_INVALID, "\"%s\" is too much: name a folder in it", path);
    if (!realpath(state_dir, state)) /* none yet: nothing lies there */
        snprintf(state, sizeof(state), "%s", state_dir);
    if (is_within(path, state) || is_within(state, path))
        return error_set(error, ERROR_REFUSED,
                         "\"%s\" holds the machine's own key, or lies beside it", path);
    return 0;
}

static int check_folder(const char *path, const char *state_dir, struct error *error)
{
    char real[PATH_MAX];
    struct stat status;
    if (strchr(path, ':'))
        return error_set(error, ERROR_INVALID, "\"%s\" has a ':', which parts folders in PATH",
                         path);
    if (path[0] != '/')
        return error_set(error, ERROR_INVALID, "\"%s\" is no whole path: begin with /", path);
    if (!realpath(path, real) || stat(real, &status) < 0)
        return error_set_errno(error, errno, "\"%s\"", path);
    if (strcmp(path, real) != 0)
        return error_set(error, ERROR_INVALID, "\"%.100s\" is \"%.100s\": name that", path, real);
    if (!S_ISDIR(status.st_mode))
        return error_set(error, ERROR_INVALID, "\"%s\" is no folder", path);
    if (check_place(path, state_dir, error) < 0)
        return -1;
    if ((status.st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH))
        return error_set(
            error, ERROR_REFUSED,
            "\"%s\" cannot be read by everybody, and leases run as nobody: chmod -R o+rX", path);
    return 0;
}

int software_check(const char *const *items, size_t count, const char *state_dir,
                   struct error *error)
{
    if (count > SOFTWARE_MAX)
        return error_set(error, ERROR_INVALID, "%d folders at most", SOFTWARE_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct text label = own_data_label(items[i]);
        if (label.size == strlen(items[i]) || !labels_probe_is_word(label) ||
            label.size > SOFTWARE_LABEL_SIZE_MAX)
            return error_set(error, ERROR_INVALID,
                             "\"%.80s\" is not LABEL=DIR, with a label of letters, digits and "
                             ". _ + -, %d at most",
                             items[i], SOFTWARE_LABEL_SIZE_MAX);
        if (own_data_path(items, i, label))
            return error_set(error, ERROR_INVALID, "label \"" TEXT_FORMAT "\" is there twice",
                             TEXT_ARGS(label));
        if (check_folder(items[i] + label.size + 1, state_dir, error) < 0)
            return -1;
    }
    return 0;
}

size_t software_choose(const char *const *items, size_t count, struct text labels,
                       struct text out_paths[SOFTWARE_MAX])
{
    size_t chosen = 0;
    struct text label;
    while (chosen < SOFTWARE_MAX && labels_next(&labels, &label)) {
        const char *path = own_data_path(items, count, label);
        bool is_there = false;
        for (size_t i = 0; path && i < chosen; i++)
            is_there |= text_is(out_paths[i], path);
        if (path && !is_there)
            out_paths[chosen++] = text_of(path);
    }
    return chosen;
}

static bool has_file(struct text folder, const char *name)
{
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof(path), TEXT_FORMAT "/%s", TEXT_ARGS(folder), name);
    return size > 0 && (size_t)size < sizeof(path) && access(path, F_OK) == 0;
}

/* The first folder that has the file is what `name` says. */
static size_t add_home(struct arena *arena, const struct text *paths, size_t count,
                       const char *file, const char *name, const char **out)
{
    for (size_t i = 0; i < count; i++)
        if (has_file(paths[i], file)) {
            *out = arena_format(arena, "%s=" TEXT_FORMAT, name, TEXT_ARGS(paths[i]));
            return 1;
        }
    return 0;
}

size_t software_environment(struct arena *arena, const struct text *paths, size_t count,
                            const char *path, const char *out_variables[SOFTWARE_VARIABLES_MAX])
{
    struct buffer text AUTO_BUFFER;
    size_t added = 1;
    buffer_init(&text, PATH_TEXT_MAX);
    for (size_t i = 0; i < count; i++)
        if (has_file(paths[i], "bin"))
            buffer_append_format(&text, TEXT_FORMAT "/bin:", TEXT_ARGS(paths[i]));
    out_variables[0] =
        arena_format(arena, "PATH=" TEXT_FORMAT "%s", TEXT_ARGS(buffer_text(&text)), path);
    added += add_home(arena, paths, count, "pyvenv.cfg", "VIRTUAL_ENV", out_variables + added);
    added += add_home(arena, paths, count, "bin/java", "JAVA_HOME", out_variables + added);
    return added;
}
