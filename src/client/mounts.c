#include "client/mounts.h"

#include "base/assert.h"
#include "client/bring.h"
#include "runtime/mount_index.h"
#include "source/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
    char path[PATH_SIZE]; /* of the source */
    struct mount_index index;
    uint64_t bytes;
};

/* ---- Before anything is read ------------------------------------------------------------------
 */

static struct bring_options bringing_of(const struct job_spec *spec,
                                        const struct upload_options *options, const char *address)
{
    struct bring_options bringing = {.address = address, .spec = spec};
    if (options) {
        bringing.on_note = options->on_reading;
        bringing.context = options->context;
        bringing.leaves_signals = options->leaves_signals;
        bringing.stop = options->stop;
    }
    return bringing;
}

static int check_source(const struct job_spec *spec, size_t index, struct error *error)
{
    const struct job_mount *mount = &spec->file_mounts[index];
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *source = arena_copy_string(arena, mount->source);
    struct stat status;
    if (!mount->source.size)
        return job_spec_mount(spec, index)
                   ? 0
                   : error_set(error, ERROR_INVALID, "it needs a source: a path or an address");
    if (place_is_address(mount->source)) {
        const struct bring_options bringing = bringing_of(spec, NULL, source);
        return bring_check(&bringing, error);
    }
    if (stat(source, &status) < 0)
        return error_set_errno(error, errno, "\"%.100s\"", source);
    return S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)
               ? 0
               : error_set(error, ERROR_INVALID, "\"%.100s\" is neither file nor folder", source);
}

int mounts_check(const struct job_spec *spec, struct error *error)
{
    for (size_t i = 0; i < spec->file_mount_count; i++)
        if (check_source(spec, i, error) < 0)
            return error_wrap(error, "file_mounts: \"" TEXT_FORMAT "\"",
                              TEXT_ARGS(spec->file_mounts[i].target));
    return 0;
}

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

static int gather(struct gathering *gathering, struct error *error)
{
    struct stat status;
    struct mount_index *index = &gathering->index;
    if (stat(gathering->path, &status) < 0)
        return error_set_errno(error, errno, "\"%.100s\"", gathering->path);
    index->is_single = !S_ISDIR(status.st_mode);
    index->files = arena_alloc(gathering->arena,
                               (index->is_single ? 1 : MOUNT_FILES_MAX) * sizeof(*index->files));
    if (index->is_single) {
        const char *slash = strrchr(gathering->path, '/');
        return add_one(gathering, slash ? slash + 1 : gathering->path, &status, error);
    }
    if (add_folder(gathering, "", 1, error) < 0)
        return -1;
    if (index->file_count == 0)
        return error_set(error, ERROR_INVALID, "the folder has no files");
    qsort(index->files, index->file_count, sizeof(*index->files), compare);
    return 0;
}

/* ---- How they are shared ----------------------------------------------------------------------
 */

static bool is_compressed(const char *path)
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

static int find_lines(struct gathering *gathering, struct error *error)
{
    struct mount_index *index = &gathering->index;
    const uint64_t size = index->files[0].size_bytes;
    if (is_compressed(gathering->path))
        return error_set(error, ERROR_INVALID,
                         "a compressed file cannot be shared by its lines: unpack it, or make it a "
                         "folder of files");
    index->cuts = arena_alloc(gathering->arena, MOUNT_CUTS_MAX * sizeof(*index->cuts));
    if (size == 0)
        return 0;
    AUTO_FD int fd = open(gathering->path, O_RDONLY | O_CLOEXEC);
    void *bytes = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno, "read \"%.100s\"", gathering->path);
    cut_lines(bytes, size, index);
    munmap(bytes, size);
    return 0;
}

static int share(struct gathering *gathering, uint64_t ranks, struct error *error)
{
    struct mount_index *index = &gathering->index;
    if (index->is_single && find_lines(gathering, error) < 0)
        return -1;
    const uint64_t parts = index->is_single ? index->cut_count : index->file_count;
    if (parts < ranks)
        return error_set(error, ERROR_INVALID,
                         "it has %" PRIu64 " %s, too few for %" PRIu64 " ranks to share", parts,
                         index->is_single ? "lines" : "files", ranks);
    return 0;
}

/* ---- Into one file ----------------------------------------------------------------------------
 */

static int write_all(int fd, const void *data, size_t size, struct error *error)
{
    for (const char *at = data; size > 0;) {
        const ssize_t done = write(fd, at, size);
        if (done < 0 && errno != EINTR)
            return error_set_errno(error, errno, "write a file in /var/tmp");
        at += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int copy_file(const struct gathering *gathering, const struct mount_file *file, int to,
                     char *room, struct error *error)
{
    char path[2 * PATH_SIZE];
    if (gathering->index.is_single)
        snprintf(path, sizeof(path), "%s", gathering->path);
    else
        snprintf(path, sizeof(path), "%s/%s", gathering->path, file->path.data);
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

static int write_mount(const struct gathering *gathering, int fd, struct error *error)
{
    struct buffer index AUTO_BUFFER;
    uint8_t header[MOUNT_HEADER_SIZE];
    buffer_init(&index, MOUNT_INDEX_SIZE_MAX + 1);
    if (mount_index_encode(&gathering->index, &index, error) < 0)
        return -1;
    mount_header_write(index.size, header);
    if (write_all(fd, header, sizeof(header), error) < 0 ||
        write_all(fd, index.data, index.size, error) < 0)
        return -1;
    char *room = malloc(COPY_SIZE);
    ASSERT(room);
    int result = 0;
    for (uint32_t i = 0; result == 0 && i < gathering->index.file_count; i++)
        result = copy_file(gathering, &gathering->index.files[i], fd, room, error);
    free(room);
    return result;
}

static int upload_one(struct arena *arena, const struct upload_options *options,
                      struct job_spec *spec, size_t index, struct error *error)
{
    const struct job_mount *mount = &spec->file_mounts[index];
    AUTO(arena) struct arena *own = arena_new(0);
    AUTO(bring) struct bring *bring = NULL;
    struct gathering gathering = {.arena = own};
    const char *source = arena_copy_string(own, mount->source);
    const struct bring_options bringing = bringing_of(spec, options, source);
    if (place_is_address(mount->source)) {
        if (bring_open(&bringing, &bring, error) < 0)
            return -1;
        source = bring_path(bring);
    }
    if (text_copy(text_of(source), gathering.path, sizeof(gathering.path), error) < 0)
        return -1;
    for (size_t size = strlen(gathering.path); size > 1 && gathering.path[size - 1] == '/'; size--)
        gathering.path[size - 1] = '\0';
    AUTO_FD int fd = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file in /var/tmp");
    if (gather(&gathering, error) < 0 ||
        (mount->shard && share(&gathering, spec->num_nodes, error) < 0) ||
        write_mount(&gathering, fd, error) < 0) {
        if (bring)
            bring_rename(bring, error);
        return -1;
    }
    const struct upload_file file = {.fd = fd,
                                     .name = arena_copy_string(arena, mount->target),
                                     .media_type = "application/x-souk-mount",
                                     .header_bytes = MOUNT_HEADER_SIZE};
    const struct text name = text_of(arena_format(arena, JOB_MOUNT_INPUT "%zu", index));
    struct job_input *input = NULL;
    if (upload_add_input(arena, spec, name, JOB_SPLIT_MOUNT, &input, error) < 0)
        return -1;
    return upload_add_file(options, &file, input, error);
}

int mounts_upload(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                  struct error *error)
{
    for (size_t i = 0; i < spec->file_mount_count; i++)
        if (spec->file_mounts[i].source.size && upload_one(arena, options, spec, i, error) < 0)
            return error_wrap(error, "file_mounts: \"" TEXT_FORMAT "\"",
                              TEXT_ARGS(spec->file_mounts[i].target));
    return 0;
}
