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
#include <linux/openat2.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BESIDE_SIZE = 26, COPY_BYTES = 256 << 10 };

struct folder_store {
    struct object_store store;
    int fd;
};

static int fd_of(struct object_store *store)
{
    return ((struct folder_store *)store)->fd;
}

/* Others, whom nobody trusts, may write in the store: no link of theirs leads out of it, and no
 * pipe is waited for. */
static int open_object(struct object_store *store, const char *key, size_t size_max, int *out_fd,
                       struct error *error)
{
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                                 .resolve =
                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    struct stat status;
    AUTO_FD int fd = (int)syscall(SYS_openat2, fd_of(store), key, &how, sizeof(how));
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", key);
    if (fstat(fd, &status) < 0)
        return error_set_errno(error, errno, "look at \"%s\"", key);
    if (!S_ISREG(status.st_mode))
        return error_set(error, ERROR_REFUSED, "\"%s\" is not a file", key);
    if ((uint64_t)status.st_size > size_max)
        return error_set(error, ERROR_EXHAUSTED, "\"%s\" is longer than %zu bytes", key, size_max);
    *out_fd = TAKE_FD(fd);
    return 0;
}

static int folder_read(struct object_store *store, const char *key, struct buffer *out,
                       struct error *error)
{
    AUTO_FD int fd = -1;
    buffer_clear(out);
    if (open_object(store, key, out->size_max, &fd, error) < 0)
        return -1;
    return file_read_fd(fd, key, out, error);
}

static int folder_read_part(struct object_store *store, const char *key, uint64_t offset, void *out,
                            size_t size, struct error *error)
{
    AUTO_FD int fd = -1;
    if (open_object(store, key, SIZE_MAX, &fd, error) < 0)
        return -1;
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
    return 0;
}

/* From the first byte on; what is read may grow meanwhile. */
static int copy_bytes(int from_fd, int to_fd, size_t bytes_max, struct error *error)
{
    char bytes[COPY_BYTES];
    for (size_t done = 0;;) {
        const ssize_t got = pread(from_fd, bytes, sizeof(bytes), (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, errno, "read an object");
        if (got == 0)
            return 0;
        done += (size_t)got;
        if (done > bytes_max)
            return error_set(error, ERROR_EXHAUSTED, "an object is longer than %zu bytes",
                             bytes_max);
        if (write_all(to_fd, (struct text){bytes, (size_t)got}, error) < 0)
            return -1;
    }
}

static int folder_fetch(struct object_store *store, const char *key, int fd, size_t bytes_max,
                        struct error *error)
{
    AUTO_FD int from_fd = -1;
    if (open_object(store, key, bytes_max, &from_fd, error) < 0)
        return -1;
    return copy_bytes(from_fd, fd, bytes_max, error);
}

/* Opens the folder that the key lies in, step by step; `is_made`: makes what is not there. */
static int open_folder(struct object_store *store, const char *key, bool is_made,
                       const char **out_name, struct error *error)
{
    enum { FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    int fd = openat(fd_of(store), ".", FLAGS);
    const char *slash;
    for (; fd >= 0 && (slash = strchr(key, '/')); key = slash + 1) {
        char name[OBJECT_KEY_SIZE];
        AUTO_FD int above_fd = fd;
        snprintf(name, sizeof(name), "%.*s", (int)(slash - key), key);
        fd = openat(above_fd, name, FLAGS);
        if (fd < 0 && errno == ENOENT && is_made &&
            (mkdirat(above_fd, name, 0755) == 0 || errno == EEXIST))
            fd = openat(above_fd, name, FLAGS);
    }
    *out_name = key;
    return fd < 0 ? error_set_errno(error, errno, "a folder of the store") : fd;
}

/* Makes ".RANDOM" in the folder. */
static int make_beside(int folder_fd, char beside[BESIDE_SIZE], struct error *error)
{
    uint8_t number[(BESIDE_SIZE - 2) / 2];
    randombytes_buf(number, sizeof(number));
    beside[0] = '.';
    text_hex_encode(number, sizeof(number), beside + 1);
    const int fd =
        openat(folder_fd, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    return fd < 0 ? error_set_errno(error, errno, "make an object in the store") : fd;
}

/* What is put: bytes, or a file. */
struct source {
    struct text bytes;
    int fd; /* -1: bytes */
};

static int write_source(int fd, const struct source *source, struct error *error)
{
    const int result = source->fd >= 0 ? copy_bytes(source->fd, fd, SIZE_MAX, error)
                                       : write_all(fd, source->bytes, error);
    if (result == 0 && fdatasync(fd) < 0)
        return error_set_errno(error, errno, "write an object to the disk");
    return result;
}

static int put_source(struct object_store *store, const char *key, const struct source *source,
                      bool is_once, struct error *error)
{
    char beside[BESIDE_SIZE];
    const char *name;
    AUTO_FD int folder_fd = open_folder(store, key, /* is_made= */ true, &name, error);
    if (folder_fd < 0)
        return -1;
    AUTO_FD int fd = make_beside(folder_fd, beside, error);
    if (fd < 0)
        return -1;
    int result = write_source(fd, source, error);
    if (result == 0 &&
        renameat2(folder_fd, beside, folder_fd, name, is_once ? RENAME_NOREPLACE : 0) < 0)
        result = errno == EEXIST ? error_set(error, ERROR_CONFLICT, "there is \"%s\" already", key)
                                 : error_set_errno(error, errno, "name \"%s\"", key);
    if (result < 0)
        unlinkat(folder_fd, beside, 0);
    return result;
}

static int folder_put(struct object_store *store, const char *key, struct text bytes, bool is_once,
                      struct error *error)
{
    return put_source(store, key, &(struct source){bytes, -1}, is_once, error);
}

static int folder_put_file(struct object_store *store, const char *key, int fd, struct error *error)
{
    return put_source(store, key, &(struct source){.fd = fd}, /* is_once= */ false, error);
}

static int folder_delete(struct object_store *store, const char *key, struct error *error)
{
    const char *name;
    AUTO_FD int folder_fd = open_folder(store, key, /* is_made= */ false, &name, error);
    if (folder_fd < 0)
        return error->code == ERROR_NOT_FOUND ? 0 : -1;
    return unlinkat(folder_fd, name, 0) < 0 && errno != ENOENT
               ? error_set_errno(error, errno, "delete \"%s\"", key)
               : 0;
}

static void folder_free(struct object_store *store)
{
    if (fd_of(store) >= 0)
        close(fd_of(store));
    free(store);
}

static const struct object_store_ops folder_ops = {
    .read = folder_read,
    .read_part = folder_read_part,
    .put = folder_put,
    .fetch = folder_fetch,
    .put_file = folder_put_file,
    .delete = folder_delete,
    .free = folder_free,
};

int object_store_open_folder(const struct object_store_options *options,
                             struct object_store **out_store, struct error *error)
{
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "libsodium cannot be initialised");
    const int fd = open(options->place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR)
        return error_set(error, ERROR_INVALID, "the store \"%.100s\" is no folder", options->place);
    if (fd < 0)
        return error_set_errno(error, errno, "the store \"%.100s\"", options->place);
    struct folder_store *store = memory_zeroed(1, sizeof(*store));
    store->store.ops = &folder_ops;
    store->fd = fd;
    *out_store = &store->store;
    return 0;
}
