#include "blob/blob_partial.h"

#include "base/assert.h"
#include "blob/blob_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { HEADER_SIZE = 128, MAGIC_SIZE = 4 };

struct blob_partial {
    struct blob_store *store;
    struct blob_hash hash;
    char name[BLOB_HASH_TEXT_SIZE];
    int fd; /* with the lock */
    uint64_t size_bytes;
    enum blob_coding coding;
    char tag[BLOB_TAG_SIZE];
};

/* A header that is not ours, or cut short, is as if nothing had come. */
static int read_header(struct blob_partial *partial, struct error *error)
{
    char header[HEADER_SIZE];
    struct stat info;
    const ssize_t got = pread(partial->fd, header, sizeof(header), 0);
    if (got < 0 || fstat(partial->fd, &info) < 0)
        return blob_fail(partial->store, errno, "read what came of a blob", error);
    const int coding = got == HEADER_SIZE ? header[MAGIC_SIZE] - '0' : -1;
    if (got < HEADER_SIZE || memcmp(header, "souk", MAGIC_SIZE) != 0 || coding < 0 ||
        coding >= BLOB_CODING_COUNT || header[HEADER_SIZE - 1] != '\0' ||
        info.st_size > HEADER_SIZE + BLOB_BYTES_MAX)
        return blob_partial_restart(partial, BLOB_CODING_PLAIN, "", error);
    partial->coding = (enum blob_coding)coding;
    memcpy(partial->tag, header + HEADER_SIZE - BLOB_TAG_SIZE, BLOB_TAG_SIZE);
    partial->size_bytes = (uint64_t)info.st_size - HEADER_SIZE;
    return 0;
}

/* 1: it is locked; 0: it went away meanwhile, try again. */
static int open_locked(struct blob_partial *partial, struct error *error)
{
    struct blob_store *store = partial->store;
    struct stat info;
    partial->fd =
        openat(store->partial_fd, partial->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (partial->fd < 0)
        return blob_fail(store, errno, "begin a blob", error);
    if (flock(partial->fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? error_set(error, ERROR_CONFLICT, "blob \"%s\" is being fetched already",
                               partial->name)
                   : blob_fail(store, errno, "lock what came of a blob", error);
    if (fstat(partial->fd, &info) < 0)
        return blob_fail(store, errno, "look at what came of a blob", error);
    if (info.st_nlink > 0)
        return 1;
    close(TAKE_FD(partial->fd));
    return 0;
}

int blob_partial_open(struct blob_store *store, const struct blob_hash *hash,
                      struct blob_partial **out_partial, struct error *error)
{
    struct blob_partial *partial = calloc(1, sizeof(*partial));
    ASSERT(partial);
    partial->store = store;
    partial->hash = *hash;
    partial->fd = -1;
    blob_hash_format(hash, partial->name);
    int result;
    do
        result = open_locked(partial, error);
    while (result == 0);
    if (result < 0 || read_header(partial, error) < 0) {
        auto_close_fd(&partial->fd);
        free(partial);
        return -1;
    }
    *out_partial = partial;
    return 0;
}

/* Under the lock: whoever waits finds the blob, or begins anew. */
static void drop(struct blob_partial *partial)
{
    (void)!unlinkat(partial->store->partial_fd, partial->name, 0);
    close(TAKE_FD(partial->fd));
}

void blob_partial_free(struct blob_partial *partial)
{
    if (!partial)
        return;
    if (partial->fd >= 0 && partial->size_bytes == 0)
        drop(partial);
    const bool is_left = partial->fd >= 0;
    auto_close_fd(&partial->fd);
    /* Seen by those that watch, now that the lock is free; one that fails costs them a wait. */
    if (is_left)
        (void)!utimensat(partial->store->partial_fd, partial->name, NULL, 0);
    free(partial);
}

uint64_t blob_partial_bytes(const struct blob_partial *partial)
{
    return partial->size_bytes;
}

const char *blob_partial_tag(const struct blob_partial *partial)
{
    return partial->tag;
}

static int write_at(struct blob_partial *partial, const void *data, size_t size, off_t offset,
                    struct error *error)
{
    const uint8_t *left = data;
    while (size > 0) {
        const ssize_t written = pwrite(partial->fd, left, size, offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return blob_fail(partial->store, errno, "write what came of a blob", error);
        left += written;
        offset += written;
        size -= (size_t)written;
    }
    return 0;
}

int blob_partial_restart(struct blob_partial *partial, enum blob_coding coding, const char *tag,
                         struct error *error)
{
    partial->size_bytes = 0;
    partial->coding = coding;
    memset(partial->tag, 0, sizeof(partial->tag));
    if (strlen(tag) < sizeof(partial->tag))
        memcpy(partial->tag, tag, strlen(tag));
    char header[HEADER_SIZE] = "souk";
    header[MAGIC_SIZE] = (char)('0' + coding);
    memcpy(header + HEADER_SIZE - BLOB_TAG_SIZE, partial->tag, BLOB_TAG_SIZE);
    if (ftruncate(partial->fd, 0) < 0)
        return blob_fail(partial->store, errno, "begin a blob again", error);
    return write_at(partial, header, sizeof(header), 0, error);
}

int blob_partial_append(struct blob_partial *partial, struct text bytes, struct error *error)
{
    if (bytes.size > BLOB_BYTES_MAX - partial->size_bytes)
        return error_set(error, ERROR_INVALID, "a blob holds at most %d bytes", BLOB_BYTES_MAX);
    if (write_at(partial, bytes.data, bytes.size, (off_t)(HEADER_SIZE + partial->size_bytes),
                 error) < 0)
        return -1;
    partial->size_bytes += bytes.size;
    return 0;
}

static int read_bytes(struct blob_partial *partial, struct buffer *out, struct error *error)
{
    uint8_t *room = buffer_reserve(out, partial->size_bytes ? partial->size_bytes : 1);
    ASSERT(room);
    size_t done = 0;
    while (done < partial->size_bytes) {
        const ssize_t got = pread(partial->fd, room + done, partial->size_bytes - done,
                                  (off_t)(HEADER_SIZE + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return blob_fail(partial->store, errno, "read what came of a blob", error);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    buffer_advance(out, done);
    return 0;
}

int blob_partial_finish(struct blob_partial *partial, struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, BLOB_BYTES_MAX);
    if (read_bytes(partial, &bytes, error) < 0)
        return -1;
    struct blob_hash stored;
    const int result =
        partial->coding == BLOB_CODING_ZSTD
            ? blob_store_put_frame(partial->store, &partial->hash, buffer_text(&bytes), error)
            : blob_store_put(partial->store, &partial->hash, buffer_text(&bytes), &stored, error);
    if (result == 0 || error->code == ERROR_INVALID)
        drop(partial);
    return result;
}

int blob_partial_watch(struct blob_store *store, int *out_fd, struct error *error)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/partial", store->folder) >= (int)sizeof(path))
        return error_set(error, ERROR_INVALID, "the store's path is too long");
    AUTO_FD int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0 || inotify_add_watch(fd, path, IN_DELETE | IN_ATTRIB) < 0)
        return blob_fail(store, errno, "watch for blobs", error);
    *out_fd = TAKE_FD(fd);
    return 0;
}
