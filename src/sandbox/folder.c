#include "sandbox/folder.h"

#include "base/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int folder_make(const char *path, unsigned mode, struct error *error)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make folder \"%s\"", path);
    return 0;
}

struct walk {
    int top_fd;
    bool removes;
    bool has_hoisted; /* moved a folder to the top: one more walk is due */
    uint64_t hoisted_count;
    uint64_t entry_count;
    uint64_t entries_max;
    int64_t bytes;
    int failure; /* the first errno */
};

/* What is gone is gone: the owner may work in there at the same time. */
static void walk_note(struct walk *walk, int errno_value)
{
    if (walk->failure == 0 && errno_value != ENOENT)
        walk->failure = errno_value;
}

static int walk_open(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* However deep a tree is, it is removed: what lies too deep comes to the top for the next walk. */
static void walk_hoist(struct walk *walk, int fd, const char *name)
{
    char hoisted[32];
    do
        snprintf(hoisted, sizeof(hoisted), "hoisted-%" PRIu64, walk->hoisted_count++);
    while (renameat2(fd, name, walk->top_fd, hoisted, RENAME_NOREPLACE) < 0 && errno == EEXIST);
    walk->has_hoisted = true;
}

static void walk_folder(struct walk *walk, int fd, int depth);

static void walk_inner(struct walk *walk, int fd, const char *name, int depth)
{
    /* The owner may have taken away the right to look inside. */
    if (walk->removes && fchmodat(fd, name, 0700, AT_SYMLINK_NOFOLLOW) < 0)
        walk_note(walk, errno);
    if (depth == FOLDER_DEPTH_MAX) {
        if (walk->removes)
            walk_hoist(walk, fd, name);
        else
            walk_note(walk, ELOOP);
        return;
    }
    const int inner = walk_open(fd, name);
    if (inner >= 0)
        walk_folder(walk, inner, depth + 1);
    else
        walk_note(walk, errno);
}

/* Takes `fd`. */
static void walk_folder(struct walk *walk, int fd, int depth)
{
    DIR *folder = fdopendir(fd);
    if (!folder) {
        walk_note(walk, errno);
        close(fd);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(folder))) { // NOLINT(concurrency-mt-unsafe): the stream is not shared
        const char *name = entry->d_name;
        struct stat status;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (++walk->entry_count > walk->entries_max) {
            walk_note(walk, E2BIG);
            break;
        }
        if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
            walk_note(walk, errno);
            continue;
        }
        walk->bytes += status.st_blocks * 512;
        const bool is_folder = S_ISDIR(status.st_mode);
        if (is_folder)
            walk_inner(walk, fd, name, depth);
        if (walk->removes && unlinkat(fd, name, is_folder ? AT_REMOVEDIR : 0) < 0)
            walk_note(walk, errno);
    }
    closedir(folder);
}

/* A file system mounted in there is taken off, not emptied: a job's disk, whose file goes with the
 * folder. Its files would not be the folder's. */
static int folder_unmount_below(const char *path, struct error *error)
{
    char folder[PATH_MAX];
    if (!realpath(path, folder))
        return error_set_errno(error, errno, "find \"%s\"", path);
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    if (!mounts)
        return error_set_errno(error, errno, "open \"/proc/self/mounts\"");
    const size_t size = strlen(folder);
    char line[2 * PATH_MAX];
    struct mntent entry;
    int result = 0;
    while (result == 0 && getmntent_r(mounts, &entry, line, sizeof(line))) {
        const bool is_below = strncmp(entry.mnt_dir, folder, size) == 0 &&
                              (entry.mnt_dir[size] == '/' || entry.mnt_dir[size] == '\0');
        if (is_below && umount2(entry.mnt_dir, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL)
            result = error_set_errno(error, errno, "unmount \"%s\"", entry.mnt_dir);
    }
    endmntent(mounts);
    return result;
}

int folder_remove(const char *path, struct error *error)
{
    if (access(path, F_OK) == 0 && folder_unmount_below(path, error) < 0)
        return -1;
    AUTO_FD int top_fd = walk_open(AT_FDCWD, path);
    if (top_fd < 0 && errno == ENOENT)
        return 0;
    if (top_fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    struct walk walk = {.top_fd = top_fd, .removes = true, .entries_max = UINT64_MAX};
    do {
        walk.has_hoisted = false;
        const int fd = walk_open(top_fd, ".");
        if (fd < 0)
            return error_set_errno(error, errno, "open \"%s\"", path);
        walk_folder(&walk, fd, 0);
    } while (walk.has_hoisted && walk.failure == 0);
    if (walk.failure != 0)
        return error_set_errno(error, walk.failure, "empty \"%s\"", path);
    if (rmdir(path) < 0)
        return error_set_errno(error, errno, "remove \"%s\"", path);
    return 0;
}

int folder_measure(const char *path, uint64_t entries_max, int64_t *out_bytes, struct error *error)
{
    const int fd = walk_open(AT_FDCWD, path);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    struct walk walk = {.entries_max = entries_max};
    walk_folder(&walk, fd, 0);
    if (walk.failure == E2BIG)
        return error_set(error, ERROR_EXHAUSTED, "there are more than %" PRIu64 " files",
                         entries_max);
    if (walk.failure == ELOOP)
        return error_set(error, ERROR_EXHAUSTED, "folders lie more than %d deep", FOLDER_DEPTH_MAX);
    if (walk.failure != 0)
        return error_set_errno(error, walk.failure, "look into all folders");
    *out_bytes = walk.bytes;
    return 0;
}
