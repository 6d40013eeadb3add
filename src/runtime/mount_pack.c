#include "runtime/mount_pack.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_SIZE = 1 << 20, PATH_SIZE = 4096 };

#define MOUNT_BYTES_MAX ((uint64_t)64 << 30)

/* The files of one mount, as they are found. */
struct gathering {
    struct arena *arena;
    const char *path; /* of the source */
    struct mount_index index;
    uint64_t bytes;
};

/* ---- Which files ------------------------------------------------------------------------------
 */

static int add_one(struct gathering *gathering, const char *path, const struct stat *status,
                   struct error *error)
{
    struct mount_index *index = &gathering->index;
    if (!mount_path_is_fine(text_of(path)))
        return error_set(error, ERROR_INVALID,
                         "\"%.100s\" cannot travel: control characters, no UTF-8, or too long",
                         path);
    if (index->file_count == MOUNT_FILES_MAX)
        return error_set(error, ERROR_EXHAUSTED, "more than %d files", MOUNT_FILES_MAX);
    gathering->bytes += (uint64_t)status->st_size;
    if (gathering->bytes > MOUNT_BYTES_MAX)
        return error_set(error, ERROR_EXHAUSTED, "larger than 64 GiB");
    index->files[index->file_count++] =
        (struct mount_file){.path = text_of(arena_copy_string(gathering->arena, text_of(path))),
                            .size_bytes = (uint64_t)status->st_size,
                            .is_program = (status->st_mode & 0100) != 0};
    return 0;
}

static int add_folder(struct gathering *gathering, const char *folder, int depth,
                      struct error *error);

static int add_entry(struct gathering *gathering, const char *path, int depth, struct error *error)
{
    char full[2 * PATH_SIZE];
    struct stat status, itself;
    if (snprintf(full, sizeof(full), "%s/%s", gathering->path, path) >= (int)sizeof(full))
        return error_set(error, ERROR_INVALID, "\"%.100s\" is too long", path);
    if (lstat(full, &itself) < 0 || stat(full, &status) < 0)
        return error_set_errno(error, errno, "\"%.100s\"", path);
    if (S_ISREG(status.st_mode))
        return add_one(gathering, path, &status, error);
    if (!S_ISDIR(status.st_mode) || S_ISLNK(itself.st_mode)) /* a link could lead round */
        return error_set(error, ERROR_INVALID, "\"%.100s\" is neither file nor folder", path);
    return add_folder(gathering, path, depth + 1, error);
}

/* `folder` is relative to the source; "" is all of it. */
static int add_folder(struct gathering *gathering, const char *folder, int depth,
                      struct error *error)
{
    char path[2 * PATH_SIZE];
    if (depth > MOUNT_DEPTH_MAX)
        return error_set(error, ERROR_INVALID, "\"%.100s\" lies too deep", folder);
    snprintf(path, sizeof(path), "%s/%s", gathering->path, folder);
    DIR *stream = opendir(path);
    if (!stream)
        return error_set_errno(error, errno, "open \"%.100s\"", path);
    int result = 0;
    const struct dirent *item;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this call's own */
    while (result == 0 && (item = readdir(stream))) {
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        if (snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] ? "/" : "", item->d_name) >=
            PATH_SIZE)
            result = error_set(error, ERROR_INVALID, "\"%.100s\" is too long", path);
        else
            result = add_entry(gathering, path, depth, error);
    }
    closedir(stream);
    return result;
}

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct mount_file *)left)->path.data,
                  ((const struct mount_file *)right)->path.data);
}

static int add_all(struct gathering *gathering, struct error *error)
{
    const char *path = gathering->path;
    struct mount_index *index = &gathering->index;
    struct stat status;
    if (stat(path, &status) < 0)
        return error_set_errno(error, errno, "\"%.100s\"", path);
    index->is_single = !S_ISDIR(status.st_mode);
    index->files = arena_alloc(gathering->arena,
                               (index->is_single ? 1 : MOUNT_FILES_MAX) * sizeof(*index->files));
    if (index->is_single) {
        const char *slash = strrchr(path, '/');
        return add_one(gathering, slash ? slash + 1 : path, &status, error);
    }
    if (add_folder(gathering, "", 1, error) < 0)
        return -1;
    if (index->file_count == 0)
        return error_set(error, ERROR_INVALID, "the folder has no files");
    qsort(index->files, index->file_count, sizeof(*index->files), compare);
    return 0;
}

int mount_pack_gather(struct arena *arena, const char *path, struct mount_index *out_index,
                      struct error *error)
{
    struct gathering gathering = {.arena = arena, .path = path};
    if (add_all(&gathering, error) < 0)
        return -1;
    *out_index = gathering.index;
    return 0;
}

const char *mount_pack_path(struct arena *arena, const char *path)
{
    struct text plain = text_of(path);
    while (plain.size > 1 && plain.data[plain.size - 1] == '/')
        plain.size--;
    return arena_copy_string(arena, plain);
}

/* ---- How they are shared ----------------------------------------------------------------------
 */

bool mount_pack_is_compressed(const char *path)
{
    static const char *const endings[] = {".gz", ".zst", ".bz2", ".xz", ".zip"};
    const size_t size = strlen(path);
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        const size_t length = strlen(endings[i]);
        if (size > length && strcmp(path + size - length, endings[i]) == 0)
            return true;
    }
    return false;
}

/* Where lines begin, about evenly: as many as an index holds, and no more than there are. */
static void cut_lines(const char *bytes, uint64_t size, struct mount_index *index)
{
    uint64_t last = 0;
    index->cuts[index->cut_count++] = 0;
    for (uint64_t i = 1; i < MOUNT_CUTS_MAX; i++) {
        uint64_t from = (uint64_t)((unsigned __int128)size * i / MOUNT_CUTS_MAX);
        from = from > last ? from : last;
        if (from >= size)
            return;
        const char *end = memchr(bytes + from, '\n', size - from);
        if (!end || (uint64_t)(end - bytes) + 1 >= size)
            return;
        last = (uint64_t)(end - bytes) + 1;
        index->cuts[index->cut_count++] = last;
    }
}

int mount_pack_cut(struct arena *arena, const char *path, struct mount_index *index,
                   struct error *error)
{
    const uint64_t size = index->files[0].size_bytes;
    if (mount_pack_is_compressed(path))
        return error_set(error, ERROR_INVALID,
                         "a compressed file cannot be shared by its lines: unpack it, or make it a "
                         "folder of files");
    index->cuts = arena_alloc(arena, MOUNT_CUTS_MAX * sizeof(*index->cuts));
    index->cut_count = 0;
    if (size == 0)
        return 0;
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *bytes = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno, "read \"%.100s\"", path);
    cut_lines(bytes, size, index);
    munmap(bytes, size);
    return 0;
}

/* ---- Into one file ----------------------------------------------------------------------------
 */

static int write_all(int fd, const void *data, size_t size, struct error *error)
{
    for (const char *at = data; size > 0;) {
        const ssize_t done = write(fd, at, size);
        if (done < 0 && errno != EINTR)
            return error_set_errno(error, errno, "write the files' bytes");
        at += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int copy_file(const char *source, const struct mount_index *index,
                     const struct mount_file *file, int to, char *room, struct error *error)
{
    char path[2 * PATH_SIZE];
    if (index->is_single)
        snprintf(path, sizeof(path), "%s", source);
    else
        snprintf(path, sizeof(path), "%s/%s", source, file->path.data);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%.100s\"", path);
    uint64_t left = file->size_bytes;
    while (left > 0) {
        const ssize_t size = read(fd, room, left < COPY_SIZE ? left : COPY_SIZE);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return error_set_errno(error, errno, "read \"%.100s\"", path);
        if (size == 0)
            return error_set(error, ERROR_CONFLICT, "\"%.100s\" was changed meanwhile", path);
        if (write_all(to, room, (size_t)size, error) < 0)
            return -1;
        left -= (uint64_t)size;
    }
    return 0;
}

int mount_pack_write(const char *path, const struct mount_index *index, int fd, struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    uint8_t header[MOUNT_HEADER_SIZE];
    buffer_init(&bytes, MOUNT_INDEX_SIZE_MAX + 1);
    if (mount_index_encode(index, &bytes, error) < 0)
        return -1;
    mount_header_write(bytes.size, header);
    if (write_all(fd, header, sizeof(header), error) < 0 ||
        write_all(fd, bytes.data, bytes.size, error) < 0)
        return -1;
    char *room = malloc(COPY_SIZE);
    ASSERT(room);
    int result = 0;
    for (uint32_t i = 0; result == 0 && i < index->file_count; i++)
        result = copy_file(path, index, &index->files[i], fd, room, error);
    free(room);
    return result;
}
