#include "peer/folder.h"

#include "base/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int folder_make(const char *path, unsigned mode, struct error *error)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make folder \"%s\"", path);
    return 0;
}

struct walk {
    bool removes;
    int64_t bytes;
    int failure; /* the first errno */
};

static void walk_note(struct walk *walk, int errno_value)
{
    if (walk->failure == 0)
        walk->failure = errno_value;
}

static int walk_open(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Takes `fd`. */
static void walk_folder(struct walk *walk, int fd, int depth)
{
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        walk_note(walk, errno);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(folder))) { // NOLINT(concurrency-mt-unsafe): the stream is not shared
        const char *name = entry->d_name;
        struct stat status;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
            walk_note(walk, errno);
            continue;
        }
        walk->bytes += status.st_blocks * 512;
        const bool is_folder = S_ISDIR(status.st_mode);
        if (is_folder) {
            /* The owner may have taken away the right to look inside. */
            if (walk->removes && fchmodat(fd, name, 0700, 0) < 0)
                walk_note(walk, errno);
            const int inner = depth < FOLDER_DEPTH_MAX ? walk_open(fd, name) : -1;
            if (inner >= 0)
                walk_folder(walk, inner, depth + 1);
            else
                walk_note(walk, depth < FOLDER_DEPTH_MAX ? errno : ELOOP);
        }
        if (walk->removes && unlinkat(fd, name, is_folder ? AT_REMOVEDIR : 0) < 0)
            walk_note(walk, errno);
    }
    closedir(folder);
}

int folder_remove(const char *path, struct error *error)
{
    const int fd = walk_open(AT_FDCWD, path);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    struct walk walk = {.removes = true};
    walk_folder(&walk, fd, 0);
    if (walk.failure != 0)
        return error_set_errno(error, walk.failure, "empty \"%s\"", path);
    if (rmdir(path) < 0)
        return error_set_errno(error, errno, "remove \"%s\"", path);
    return 0;
}

int64_t folder_bytes(const char *path)
{
    struct walk walk = {.removes = false};
    const int fd = walk_open(AT_FDCWD, path);
    if (fd >= 0)
        walk_folder(&walk, fd, 0);
    return walk.bytes;
}
