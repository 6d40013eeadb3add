#include "peer/mount_writer.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mount_writer {
    char root[PATH_MAX]; /* FOLDER/TARGET */
    const struct mount_index *index;
    uint32_t next_file, end_file;
    uint64_t left_bytes; /* of the file that is open */
    uint64_t part_bytes; /* of a single file's part */
    int fd;              /* -1: none is */
};

/* The folders above a path, below the first `kept` bytes of it, which are there. */
static int make_folders(const char *path, size_t kept, struct error *error)
{
    char part[PATH_MAX];
    for (size_t i = kept + 1; path[i]; i++) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return error_set_errno(error, errno, "make a folder of file_mounts");
    }
    return 0;
}

int mount_writer_open(const char *folder, struct text target, const struct mount_index *index,
                      const struct mount_part *part, struct mount_writer **out_writer,
                      struct error *error)
{
    AUTO(mount_writer) struct mount_writer *writer = memory_zeroed(1, sizeof(*writer));
    writer->fd = -1;
    writer->index = index;
    writer->next_file = part->first_file;
    writer->end_file = part->first_file + part->file_count;
    writer->part_bytes = part->size_bytes;
    const size_t kept = strlen(folder);
    if (!mount_path_is_fine(target) ||
        snprintf(writer->root, sizeof(writer->root), "%s/" TEXT_FORMAT, folder,
                 TEXT_ARGS(target)) >= (int)sizeof(writer->root))
        return error_set(error, ERROR_INVALID, "file_mounts: a target that cannot be");
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make the folder of file_mounts");
    if (make_folders(writer->root, kept, error) < 0)
        return -1;
    if (!index->is_single && mkdir(writer->root, 0755) < 0)
        return error_set_errno(error, errno, "make a folder of file_mounts");
    *out_writer = TAKE(writer);
    return 0;
}

static int open_next(struct mount_writer *writer, struct error *error)
{
    const struct mount_file *file = &writer->index->files[writer->next_file];
    const bool is_single = writer->index->is_single;
    char path[PATH_MAX];
    const int size = is_single ? snprintf(path, sizeof(path), "%s", writer->root)
                               : snprintf(path, sizeof(path), "%s/" TEXT_FORMAT, writer->root,
                                          TEXT_ARGS(file->path));
    if (size >= (int)sizeof(path))
        return error_set(error, ERROR_INVALID, "file_mounts: the name of a file is too long");
    if (!is_single && make_folders(path, strlen(writer->root), error) < 0)
        return -1;
    writer->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                      file->is_program ? 0755 : 0644);
    if (writer->fd < 0)
        return error_set_errno(error, errno, "make a file of file_mounts");
    writer->next_file++;
    writer->left_bytes = is_single ? writer->part_bytes : file->size_bytes;
    return 0;
}

/* Opens the next while the one that is open is whole. */
static int advance(struct mount_writer *writer, struct error *error)
{
    while (writer->left_bytes == 0) {
        if (writer->fd >= 0)
            close(TAKE_FD(writer->fd));
        if (writer->next_file == writer->end_file)
            return 0;
        if (open_next(writer, error) < 0)
            return -1;
    }
    return 0;
}

int mount_writer_put(struct mount_writer *writer, struct text bytes, struct error *error)
{
    while (bytes.size > 0) {
        if (advance(writer, error) < 0)
            return -1;
        if (writer->fd < 0)
            return error_set(error, ERROR_CORRUPT, "file_mounts: more bytes than files");
        const size_t wanted = bytes.size < writer->left_bytes ? bytes.size : writer->left_bytes;
        const ssize_t size = write(writer->fd, bytes.data, wanted);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return error_set_errno(error, errno, "write a file of file_mounts");
        bytes = (struct text){bytes.data + size, bytes.size - (size_t)size};
        writer->left_bytes -= (uint64_t)size;
    }
    return 0;
}

int mount_writer_finish(struct mount_writer *writer, struct error *error)
{
    if (advance(writer, error) < 0)
        return -1;
    return writer->left_bytes == 0 && writer->next_file == writer->end_file
               ? 0
               : error_set(error, ERROR_CORRUPT, "file_mounts: fewer bytes than files");
}

void mount_writer_free(struct mount_writer *writer)
{
    if (!writer)
        return;
    if (writer->fd >= 0)
        close(writer->fd);
    free(writer);
}
