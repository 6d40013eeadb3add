/* The program that runs, for sandboxes: an upgrade may have put another in its place. */
#include "base/clock.h"
#include "base/file.h"
#include "sandbox/sandbox_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

enum { IN_USE_S = 60 }; /* a launch that may still read a copy began no longer ago */

/* The kernel lets nobody write to a file that runs: whoever changes the program puts another file
 * in its place. */
static int copy_self(int self_fd, const char *path, struct error *error)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX" PROGRAM_SUFFIX, path) >=
        (int)sizeof(temporary))
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    AUTO_FD int fd = mkostemps(temporary, (int)strlen(PROGRAM_SUFFIX), O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "make \"%s\"", temporary);
    int result = file_copy(self_fd, fd, error);
    if (result == 0 && (fchmod(fd, 0555) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0))
        result = error_set_errno(error, errno, "write \"%s\"", path);
    if (result < 0)
        unlink(temporary);
    return result;
}

int host_program(const struct sandbox_host *host, char out_path[PATH_MAX], struct error *error)
{
    struct stat self, there;
    memcpy(out_path, host->program, PATH_MAX);
    if (!host->is_own_program)
        return 0;
    AUTO_FD int self_fd = open(SELF, O_RDONLY | O_CLOEXEC);
    if (self_fd < 0 || fstat(self_fd, &self) < 0)
        return error_set_errno(error, errno, "open \"" SELF "\"");
    if (stat(host->program, &there) == 0 && there.st_dev == self.st_dev &&
        there.st_ino == self.st_ino)
        return 0;
    /* By its inode, which is nobody else's while it runs, and its time. */
    snprintf(out_path, PATH_MAX, "%s/%ju-%ju-%jd.%09ld" PROGRAM_SUFFIX, host->state_dir,
             (uintmax_t)self.st_dev, (uintmax_t)self.st_ino, (intmax_t)self.st_mtim.tv_sec,
             self.st_mtim.tv_nsec);
    const bool is_there = utimensat(AT_FDCWD, out_path, NULL, 0) == 0; /* now in use */
    return is_there ? 0 : copy_self(self_fd, out_path, error);
}

/* Keepers of leases make and use copies while a lender that has just started removes them. A time
 * far ahead is of a clock that was put back since. */
static bool is_in_use(int folder_fd, const char *name)
{
    struct stat file;
    if (fstatat(folder_fd, name, &file, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    const int64_t age_s = clock_utc_ms(&clock_system) / 1000 - file.st_mtim.tv_sec;
    return age_s > -IN_USE_S && age_s < IN_USE_S;
}

int host_remove_programs(const struct sandbox_host *host, struct error *error)
{
    DIR *folder = opendir(host->state_dir);
    if (!folder)
        return error_set_errno(error, errno, "open \"%s\"", host->state_dir);
    int result = 0;
    struct dirent *entry;
    while ((entry = readdir(folder))) // NOLINT(concurrency-mt-unsafe): the stream is not shared
        if (text_ends_with(text_of(entry->d_name), TEXT(PROGRAM_SUFFIX)) &&
            !is_in_use(dirfd(folder), entry->d_name) &&
            unlinkat(dirfd(folder), entry->d_name, 0) < 0 && errno != ENOENT)
            result = error_set_errno(error, errno, "remove \"%s\"", entry->d_name);
    closedir(folder);
    return result;
}
