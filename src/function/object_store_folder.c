/*
 * Objects as files of a folder. A file is written beside its place under a name that no key has,
 * synced, and renamed there; put once is a rename that replaces nothing (RENAME_NOREPLACE). Whoever
 * is killed half-way leaves a file that nobody reads.
 */
#include "base/file.h"
#include "base/memory.h"
#include "function/object_store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder_store {
    struct object_store store;
    char folder[PATH_MAX - OBJECT_KEY_SIZE - 32];
};

static struct folder_store *folder_of(struct object_store *store)
{
    return (struct folder_store *)store;
}

static void path_of(struct object_store *store, const char *key, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/%s", folder_of(store)->folder, key);
}

static int folder_read(struct object_store *store, const char *key, struct buffer *out,
                       struct error *error)
{
    char path[PATH_MAX];
    path_of(store, key, path);
    buffer_clear(out);
    return file_read(path, out, error);
}

static int folder_read_part(struct object_store *store, const char *key, uint64_t offset, void *out,
                            size_t size, struct error *error)
{
    char path[PATH_MAX];
    path_of(store, key, path);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", key);
    for (size_t done = 0; done < size;) {
        const ssize_t got =
            pread(fd, (char *)out + done, size - done, (off_t)(offset + (uint64_t)done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, errno, "read \"%s\"", key);
        if (got == 0)
            return error_set(error, ERROR_CORRUPT, "\"%s\" ends too early", key);
        done += (size_t)got;
    }
    return 0;
}

static int write_all(int fd, struct text bytes, struct error *error)
{
    for (size_t done = 0; done < bytes.size;) {
        const ssize_t written = write(fd, bytes.data + done, bytes.size - done);
        if (written < 0 && errno != EINTR)
            return error_set_errno(error, errno, "write an object");
        done += written > 0 ? (size_t)written : 0;
    }
    return fdatasync(fd) < 0 ? error_set_errno(error, errno, "write an object to the disk") : 0;
}

/* Opens "FOLDER/.RANDOM" beside the path. */
static int open_beside(const char *path, char beside[PATH_MAX], struct error *error)
{
    uint8_t number[12];
    char word[2 * sizeof(number) + 1];
    const int folder_size = (int)(strrchr(path, '/') - path);
    randombytes_buf(number, sizeof(number));
    text_hex_encode(number, sizeof(number), word);
    if (snprintf(beside, PATH_MAX, "%.*s/.%s", folder_size, path, word) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the path of the store is too long");
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == ENOENT) {
        char folder[PATH_MAX];
        snprintf(folder, sizeof(folder), "%.*s", folder_size, path);
        if (file_make_folders(folder, 0755, error) < 0)
            return -1;
        fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    }
    return fd < 0 ? error_set_errno(error, errno, "make an object in the store") : fd;
}

static int folder_put(struct object_store *store, const char *key, struct text bytes, bool is_once,
                      struct error *error)
{
    char path[PATH_MAX], beside[PATH_MAX];
    path_of(store, key, path);
    AUTO_FD int fd = open_beside(path, beside, error);
    if (fd < 0)
        return -1;
    int result = write_all(fd, bytes, error);
    if (result == 0 &&
        renameat2(AT_FDCWD, beside, AT_FDCWD, path, is_once ? RENAME_NOREPLACE : 0) < 0)
        result = errno == EEXIST ? error_set(error, ERROR_CONFLICT, "there is \"%s\" already", key)
                                 : error_set_errno(error, errno, "name \"%s\"", key);
    if (result < 0)
        unlink(beside);
    return result;
}

static int folder_delete(struct object_store *store, const char *key, struct error *error)
{
    char path[PATH_MAX];
    path_of(store, key, path);
    return unlink(path) < 0 && errno != ENOENT ? error_set_errno(error, errno, "delete \"%s\"", key)
                                               : 0;
}

static void folder_free(struct object_store *store)
{
    free(store);
}

static const struct object_store_ops folder_ops = {
    .read = folder_read,
    .read_part = folder_read_part,
    .put = folder_put,
    .delete = folder_delete,
    .free = folder_free,
};

int object_store_open_folder(const struct object_store_options *options,
                             struct object_store **out_store, struct error *error)
{
    struct stat status;
    struct folder_store *store = memory_zeroed(1, sizeof(*store));
    store->store.ops = &folder_ops;
    int result = 0;
    if (sodium_init() < 0)
        result = error_set(error, ERROR_UNAVAILABLE, "libsodium cannot be initialised");
    else if (stat(options->place, &status) < 0)
        result = error_set_errno(error, errno, "the store \"%.100s\"", options->place);
    else if (!S_ISDIR(status.st_mode))
        result =
            error_set(error, ERROR_INVALID, "the store \"%.100s\" is no folder", options->place);
    else
        result = text_copy(text_of(options->place), store->folder, sizeof(store->folder), error);
    if (result < 0) {
        free(store);
        return -1;
    }
    *out_store = &store->store;
    return 0;
}
