#include "blob/image_layer.h"

#include "base/assert.h"
#include "base/scope.h"
#include "blob/archive_library_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READ_BYTES = 128 << 10, DEPTH_MAX = 100, REMOVE_DEPTH_MAX = 512 };

#define WHITEOUT        ".wh."
#define WHITEOUT_OF_ALL ".wh..wh..opq"
#define WHITEOUT_OTHER  ".wh..wh." /* of a file system's own, nothing of the image */

struct layer {
    const struct archive_library *library;
    struct archive *from;
    int root_fd;
    struct image_room *room;
};

static void layer_done(struct layer *layer)
{
    if (layer->from)
        layer->library->archive_read_free(layer->from);
}

static int failed(const struct layer *layer, struct error *error)
{
    const char *words = layer->library->archive_error_string(layer->from);
    return error_set(error, ERROR_CORRUPT, "%s", words ? words : "the layer cannot be read");
}

/* What the disk refuses is the machine's trouble; a name it cannot have is the image's. */
static int refused(const char *what, struct error *error)
{
    const int reason = errno;
    const bool is_room = reason == ENOSPC || reason == EDQUOT || reason == EFBIG || reason == EIO ||
                         reason == EMFILE || reason == ENFILE || reason == ENOMEM;
    return error_set(error, is_room ? ERROR_EXHAUSTED : ERROR_CORRUPT, "%s: %s", what,
                     strerrordesc_np(reason));
}

static int count_file(struct layer *layer, struct error *error)
{
    if (layer->room->files_left == 0)
        return error_set(error, ERROR_EXHAUSTED, "the image holds too many files");
    layer->room->files_left--;
    return 0;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* "usr/bin/env" of "./usr//bin/env"; "" is the root itself. No ".." in it. */
static int normalise(const char *raw, char out[PATH_MAX], struct error *error)
{
    size_t size = 0, depth = 0;
    if (!raw)
        return error_set(error, ERROR_CORRUPT, "an entry without a name");
    for (const char *at = raw; *at;) {
        const size_t length = strcspn(at, "/");
        const bool is_nothing = length == 0 || (length == 1 && at[0] == '.');
        if (length == 2 && at[0] == '.' && at[1] == '.')
            return error_set(error, ERROR_CORRUPT, "its name leads outside");
        if (!is_nothing) {
            if (++depth > DEPTH_MAX || size + length + 2 > PATH_MAX || length > NAME_MAX)
                return error_set(error, ERROR_CORRUPT, "its name is too long or too deep");
            if (size > 0)
                out[size++] = '/';
            memcpy(out + size, at, length);
            size += length;
        }
        at += length + (at[length] == '/');
    }
    out[size] = '\0';
    return 0;
}

/* Below the root, links taken as if the root were "/". */
static int open_below(int root_fd, const char *path, uint64_t flags)
{
    const struct open_how how = {.flags = flags | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root_fd, path[0] ? path : ".", &how, sizeof(how));
}

/* Cuts `path` into its folder and its last part, which is returned. */
static char *cut_last(char *path, const char **out_folder)
{
    char *slash = strrchr(path, '/');
    if (!slash) {
        *out_folder = "";
        return path;
    }
    *slash = '\0';
    *out_folder = path;
    return slash + 1;
}

/* The folder of that name, made with those above it where they are missing. */
static int open_folder(struct layer *layer, const char *path, int *out_fd, struct error *error)
{
    char part[PATH_MAX];
    const size_t whole = strlen(path);
    for (size_t size = 0; size < whole;) {
        size += path[size] == '/';
        size += strcspn(path + size, "/");
        memcpy(part, path, size);
        part[size] = '\0';
        AUTO_FD int fd = open_below(layer->root_fd, part, O_PATH | O_DIRECTORY);
        if (fd >= 0)
            continue;
        if (errno != ENOENT)
            return refused("its folder", error);
        const char *above;
        const char *name = cut_last(part, &above);
        AUTO_FD int above_fd = open_below(layer->root_fd, above, O_PATH | O_DIRECTORY);
        if (above_fd < 0 || mkdirat(above_fd, name, 0755) < 0)
            return refused("make its folder", error);
        if (count_file(layer, error) < 0)
            return -1;
    }
    *out_fd = open_below(layer->root_fd, path, O_PATH | O_DIRECTORY);
    return *out_fd < 0 ? refused("its folder", error) : 0;
}

/* ---- Removing -------------------------------------------------------------------------------- */

static int remove_all_in(int folder_fd, int depth, struct error *error);

static int remove_entry(int folder_fd, const char *name, int depth, struct error *error)
{
    if (unlinkat(folder_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return refused("remove", error);
    AUTO_FD int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return refused("remove", error);
    if (depth >= REMOVE_DEPTH_MAX)
        return error_set(error, ERROR_CORRUPT, "a folder is too deep to be removed");
    if (remove_all_in(fd, depth + 1, error) < 0)
        return -1;
    return unlinkat(folder_fd, name, AT_REMOVEDIR) < 0 ? refused("remove", error) : 0;
}

static int remove_all_in(int folder_fd, int depth, struct error *error)
{
    const int copy = dup(folder_fd);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);
    int result = 0;
    if (!folder) {
        result = refused("look into a folder", error);
        if (copy >= 0)
            close(copy);
        return result;
    }
    for (struct dirent *entry; result == 0 && (entry = readdir(folder));) // NOLINT(concurrency-*)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = remove_entry(folder_fd, entry->d_name, depth, error);
    closedir(folder);
    return result;
}

int image_remove(int folder_fd, const char *name, struct error *error)
{
    return remove_entry(folder_fd, name, 0, error);
}

static int apply_whiteout(struct layer *layer, const char *folder, const char *name,
                          struct error *error)
{
    AUTO_FD int fd = open_below(layer->root_fd, folder, O_RDONLY | O_DIRECTORY);
    if (strcmp(name, WHITEOUT_OF_ALL) == 0)
        return fd < 0 ? 0 : remove_all_in(fd, 0, error);
    if (strncmp(name, WHITEOUT_OTHER, strlen(WHITEOUT_OTHER)) == 0)
        return 0;
    const char *hidden = name + strlen(WHITEOUT);
    if (hidden[0] == '\0' || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        return error_set(error, ERROR_CORRUPT, "a whiteout of nothing");
    return fd < 0 ? 0 : remove_entry(fd, hidden, 0, error);
}

/* ---- Making ---------------------------------------------------------------------------------- */

static int copy_data(struct layer *layer, int fd, struct error *error)
{
    for (;;) {
        const void *bytes;
        size_t size;
        la_int64_t offset;
        const int result =
            layer->library->archive_read_data_block(layer->from, &bytes, &size, &offset);
        if (result == ARCHIVE_EOF)
            return 0;
        if (result != ARCHIVE_OK)
            return failed(layer, error);
        for (size_t done = 0; done < size;) {
            const ssize_t wrote = pwrite(fd, (const char *)bytes + done, size - done,
                                         (off_t)(offset + (la_int64_t)done));
            if (wrote < 0 && errno == EINTR)
                continue;
            if (wrote <= 0)
                return refused("write", error);
            done += (size_t)wrote;
        }
    }
}

static int make_file(struct layer *layer, struct archive_entry *entry, int folder_fd,
                     const char *name, struct error *error)
{
    const struct archive_library *library = layer->library;
    const la_int64_t size = library->archive_entry_size(entry);
    /* Holes take their whole size too. */
    if (size < 0 || (uint64_t)size > layer->room->bytes_left)
        return error_set(error, ERROR_EXHAUSTED, "the image is larger than there is room for");
    layer->room->bytes_left -= (uint64_t)size;
    AUTO_FD int fd =
        openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return refused("make", error);
    if (copy_data(layer, fd, error) < 0)
        return -1;
    /* Interpreters compare times with what they compiled. */
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT},
                                     {.tv_sec = library->archive_entry_mtime(entry)}};
    const mode_t mode = (library->archive_entry_perm(entry) & 0777) | 0600;
    if (ftruncate(fd, size) < 0 || fchmod(fd, mode) < 0 || futimens(fd, times) < 0)
        return refused("finish", error);
    return 0;
}

static int make_link(struct layer *layer, const char *target, int folder_fd, const char *name,
                     struct error *error)
{
    char path[PATH_MAX];
    const char *folder;
    if (normalise(target, path, error) < 0)
        return error_wrap(error, "what it is a link to");
    const char *last = cut_last(path, &folder);
    AUTO_FD int target_fd = open_below(layer->root_fd, folder, O_PATH | O_DIRECTORY);
    if (target_fd < 0 || last[0] == '\0')
        return error_set(error, ERROR_CORRUPT, "what it is a link to is not there");
    struct stat old, new;
    if (fstatat(target_fd, last, &old, AT_SYMLINK_NOFOLLOW) < 0)
        return refused("what it is a link to", error);
    if (fstatat(folder_fd, name, &new, AT_SYMLINK_NOFOLLOW) == 0 && old.st_dev == new.st_dev &&
        old.st_ino == new.st_ino)
        return 0;
    if (image_remove(folder_fd, name, error) < 0)
        return -1;
    return linkat(target_fd, last, folder_fd, name, 0) < 0 ? refused("link", error) : 0;
}

/* A folder that is there already keeps what it holds; anything else makes way. */
static int make_folder(struct layer *layer, struct archive_entry *entry, int folder_fd,
                       const char *name, struct error *error)
{
    struct stat status;
    const bool is_there = fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (!is_there || !S_ISDIR(status.st_mode)) {
        if (image_remove(folder_fd, name, error) < 0)
            return -1;
        if (mkdirat(folder_fd, name, 0700) < 0)
            return refused("make", error);
    }
    const mode_t mode = (layer->library->archive_entry_perm(entry) & 0777) | 0700;
    AUTO_FD int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 || fchmod(fd, mode) < 0 ? refused("finish", error) : 0;
}

static int make_entry(struct layer *layer, struct archive_entry *entry, char *path,
                      struct error *error)
{
    const struct archive_library *library = layer->library;
    const mode_t kind = library->archive_entry_filetype(entry);
    const char *hardlink = library->archive_entry_hardlink(entry);
    const char *folder;
    AUTO_FD int folder_fd = -1;
    if (!hardlink && !S_ISREG(kind) && !S_ISDIR(kind) && !S_ISLNK(kind))
        return 0; /* devices, pipes, sockets */
    const char *name = cut_last(path, &folder);
    if (count_file(layer, error) < 0 || open_folder(layer, folder, &folder_fd, error) < 0)
        return -1;
    if (hardlink)
        return make_link(layer, hardlink, folder_fd, name, error);
    if (S_ISDIR(kind))
        return make_folder(layer, entry, folder_fd, name, error);
    if (image_remove(folder_fd, name, error) < 0)
        return -1;
    if (S_ISREG(kind))
        return make_file(layer, entry, folder_fd, name, error);
    const char *target = library->archive_entry_symlink(entry);
    return symlinkat(target ? target : "", folder_fd, name) < 0 ? refused("link", error) : 0;
}

/* ---- The layer ------------------------------------------------------------------------------- */

static int layer_open(struct layer *layer, int fd, struct error *error)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_set_errno(error, errno, "read the layer");
    const struct archive_library *library = layer->library;
    layer_done(layer);
    layer->from = library->archive_read_new();
    ASSERT(layer->from);
    if (library->archive_read_support_filter_gzip(layer->from) != ARCHIVE_OK ||
        library->archive_read_support_filter_zstd(layer->from) != ARCHIVE_OK ||
        library->archive_read_support_format_tar(layer->from) != ARCHIVE_OK ||
        library->archive_read_open_fd(layer->from, fd, READ_BYTES) != ARCHIVE_OK)
        return failed(layer, error);
    return 0;
}

static int layer_take(struct layer *layer, struct archive_entry *entry, bool is_whiteouts,
                      struct error *error)
{
    char path[PATH_MAX];
    if (normalise(layer->library->archive_entry_pathname(entry), path, error) < 0)
        return -1;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const bool is_whiteout = strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0;
    if (is_whiteout != is_whiteouts || path[0] == '\0')
        return 0;
    if (!is_whiteout)
        return make_entry(layer, entry, path, error);
    if (count_file(layer, error) < 0)
        return -1;
    const char *folder;
    name = cut_last(path, &folder);
    return apply_whiteout(layer, folder, name, error);
}

static int layer_pass(struct layer *layer, int fd, bool is_whiteouts, struct error *error)
{
    if (layer_open(layer, fd, error) < 0)
        return -1;
    for (;;) {
        struct archive_entry *entry;
        const int result = layer->library->archive_read_next_header(layer->from, &entry);
        if (result == ARCHIVE_EOF)
            return 0;
        if (result != ARCHIVE_OK)
            return failed(layer, error);
        if (layer_take(layer, entry, is_whiteouts, error) < 0) {
            const char *path = layer->library->archive_entry_pathname(entry);
            return error_wrap(error, "\"%.60s\"", path ? path : "?");
        }
    }
}

int image_layer_apply(int fd, int root_fd, struct image_room *room, struct error *error)
{
    __attribute__((cleanup(layer_done))) struct layer layer = {.root_fd = root_fd, .room = room};
    if (archive_library_load(&layer.library, error) < 0)
        return -1;
    /* Whiteouts are of the layers below, wherever in this one they stand. */
    return layer_pass(&layer, fd, true, error) < 0 ? -1 : layer_pass(&layer, fd, false, error);
}
