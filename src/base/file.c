#include "base/file.h"

#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_SIZE_MAX = 1 << 30 };

int file_read(const char *path, struct buffer *buffer, struct error *error)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    return file_read_fd(fd, path, buffer, error);
}

int file_read_fd(int fd, const char *path, struct buffer *buffer, struct error *error)
{
    enum { READ_SIZE = 64 * 1024 };
    for (;;) {
        /* At the very maximum one byte of room is still needed to see the end. */
        const size_t left = buffer->size_max - buffer->size;
        const size_t wanted = left < READ_SIZE ? left : READ_SIZE;
        char probe;
        uint8_t *room = wanted ? buffer_reserve(buffer, wanted) : NULL;
        const ssize_t got = read(fd, room ? (void *)room : (void *)&probe, room ? wanted : 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, errno, "read \"%s\"", path);
        if (got == 0)
            return 0;
        if (!room)
            return error_set(error, ERROR_EXHAUSTED, "\"%s\" is longer than %zu bytes", path,
                             buffer->size_max);
        buffer_advance(buffer, (size_t)got);
    }
}

static int write_all(int fd, struct text part)
{
    while (part.size > 0) {
        const ssize_t written = write(fd, part.data, part.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        part.data += written;
        part.size -= (size_t)written;
    }
    return 0;
}

static int write_parts(int fd, const struct text *parts, size_t part_count, mode_t mode)
{
    if (fchmod(fd, mode) < 0)
        return -1;
    for (size_t i = 0; i < part_count; i++)
        if (write_all(fd, parts[i]) < 0)
            return -1;
    return fsync(fd);
}

/* Without this a crash may bring the old name back. */
static int sync_folder_of(const char *path, struct error *error)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const struct text parent = !slash          ? TEXT(".")
                               : slash == path ? TEXT("/")
                                               : (struct text){path, (size_t)(slash - path)};
    if (text_copy(parent, folder, sizeof(folder), error) < 0)
        return -1;
    AUTO_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return error_set_errno(error, errno, "sync folder \"%s\"", folder);
    return 0;
}

int file_replace(const char *path, const struct text *parts, size_t part_count, mode_t mode,
                 struct error *error)
{
    char temporary[PATH_MAX];
    const int length = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof(temporary))
        return error_set(error, ERROR_INVALID, "path \"%.100s...\" is too long", path);
    AUTO_FD int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "create a file beside \"%s\"", path);
    if (write_parts(fd, parts, part_count, mode) < 0 || rename(temporary, path) < 0) {
        const int reason = errno;
        unlink(temporary);
        return error_set_errno(error, reason, "write \"%s\"", path);
    }
    return sync_folder_of(path, error);
}

/* Some file systems share what is copied; not all can, and none with another. 0 at the end. */
static ssize_t copy_some(int from, int to)
{
    const ssize_t size = copy_file_range(from, NULL, to, NULL, COPY_SIZE_MAX, 0);
    if (size >= 0 || (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP))
        return size;
    return sendfile(to, from, NULL, COPY_SIZE_MAX);
}

int file_copy(int from, int to, struct error *error)
{
    for (ssize_t size; (size = copy_some(from, to)) != 0;)
        if (size < 0 && errno != EINTR)
            return error_set_errno(error, errno, "copy a file");
    return 0;
}

int file_make_folders(const char *path, mode_t mode, struct error *error)
{
    char part[PATH_MAX];
    const size_t size = strlen(path);
    if (size == 0 || size >= sizeof(part))
        return error_set(error, ERROR_INVALID, "the path of a folder is empty or too long");
    for (size_t i = 1; i <= size; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, mode) < 0 && errno != EEXIST)
            return error_set_errno(error, errno, "create the folder \"%.180s\"", part);
    }
    return 0;
}
