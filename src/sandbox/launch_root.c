/* The root of a sandbox that runs in an image: the image's folders, and what /souk needs. */
#include "sandbox/launch_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT_ENTRIES_MAX = 64 };

/* Ours, whatever the image has there. */
static bool is_reserved(const char *name)
{
    static const char *const names[] = {".",   "..",   "dev",   "proc", "sys",
                                        "tmp", "souk", "lease", "data", ".souk"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The root itself is ours, so that no link of the image's is in the way of a mount: what lies in it
 * is mounted piece by piece. */
static int add_entry(struct child *child, int root_fd, const char *staged, const char *name,
                     struct error *error)
{
    struct arguments *arguments = &child->arguments;
    struct stat status;
    char source[PATH_MAX], target[NAME_MAX + 2], link[PATH_MAX];
    if (fstatat(root_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return error_set_errno(error, errno, "look at the image's \"%.60s\"", name);
    snprintf(target, sizeof(target), "/%s", name);
    if (snprintf(source, sizeof(source), "%s/%s", staged, name) >= (int)sizeof(source))
        return error_set(error, ERROR_INVALID, "the image's folder has too long a name");
    if (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)) {
        arguments_add(arguments, "--ro-bind", source, target);
    } else if (S_ISLNK(status.st_mode)) {
        const ssize_t size = readlinkat(root_fd, name, link, sizeof(link) - 1);
        if (size <= 0)
            return error_set_errno(error, errno, "look at the image's \"%.60s\"", name);
        link[size] = '\0';
        arguments_add(arguments, "--symlink", link, target);
    }
    return 0;
}

static int add_entries(struct child *child, const char *path, const char *staged,
                       struct error *error)
{
    DIR *root = opendir(path);
    if (!root)
        return error_set_errno(error, errno, "open the image's root");
    int result = 0, count = 0;
    for (struct dirent *entry; result == 0 && (entry = readdir(root));) { // NOLINT(concurrency-*)
        if (is_reserved(entry->d_name))
            continue;
        if (++count > ROOT_ENTRIES_MAX)
            result = error_set(error, ERROR_INVALID, "the image has more than %d names in its root",
                               ROOT_ENTRIES_MAX);
        else
            result = add_entry(child, dirfd(root), staged, entry->d_name, error);
    }
    closedir(root);
    return result;
}

int command_add_root(struct child *child, const char *path, struct error *error)
{
    const struct loader *loader = &child->host->loader;
    struct source *source = &child->sources[child->source_count];
    if (!loader->path[0])
        return error_set(error, ERROR_UNAVAILABLE,
                         "this machine's libraries are not where images could use them");
    *source = (struct source){.path = path, .is_folder = true};
    snprintf(source->staged, sizeof(source->staged), "/tmp/%zu", child->source_count);
    child->source_count++;
    if (add_entries(child, path, child->host->drops_user ? source->staged : path, error) < 0)
        return -1;
    for (size_t i = 0; i < loader->folder_count; i++) {
        char target[32];
        snprintf(target, sizeof(target), LOADER_INSIDE "%zu", i);
        arguments_add(&child->arguments, "--ro-bind", loader->folders[i], target);
    }
    static const char *const shown[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};
    for (size_t i = 0; i < 2; i++)
        arguments_add(&child->arguments, "--ro-bind-try", shown[i], shown[i]);
    return 0;
}

void command_add_loader(struct arguments *arguments, const struct loader *loader)
{
    arguments_add(arguments, loader->path, "--library-path", loader->libraries);
}

bool root_has_file(const char *root, const char *name)
{
    struct stat status;
    char path[PATH_MAX];
    AUTO_FD int fd = -1;
    if (snprintf(path, sizeof(path), "%s/etc", root) >= (int)sizeof(path))
        return false;
    fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode);
}
