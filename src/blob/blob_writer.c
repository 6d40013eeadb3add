#include "base/assert.h"
#include "blob/blob_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <sys/stat.h>

struct blob_writer {
    crypto_generichash_state hash; /* wants an aligned allocation */
    struct blob_store *store;
    struct blob_hash expected;
    bool has_expected;
    enum blob_coding coding; /* a frame was checked before: it is not hashed here */
    uint64_t size_bytes;     /* so far */
    uint64_t promised_bytes; /* of the store's quota */
    int fd;                  /* -1: the blob was there already, only the hash is checked */
    char temp_name[40];      /* empty: no file to take away */
};

static int create_temp(struct blob_writer *writer, struct error *error)
{
    struct blob_store *store = writer->store;
    pthread_mutex_lock(&store->mutex);
    const uint64_t number = ++store->writer_count;
    pthread_mutex_unlock(&store->mutex);
    snprintf(writer->temp_name, sizeof(writer->temp_name), "%" PRIx64 "-%" PRIx64,
             store->temp_prefix, number);
    writer->fd = openat(store->temp_fd, writer->temp_name,
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (writer->fd < 0) {
        const int errno_value = errno;
        writer->temp_name[0] = '\0';
        return blob_fail(store, errno_value, "create a temporary file", error);
    }
    return 0;
}

int blob_writer_open(struct blob_store *store, const struct blob_hash *expected,
                     struct blob_writer **out_writer, struct error *error)
{
    struct blob_writer *writer = aligned_alloc(_Alignof(struct blob_writer), sizeof(*writer));
    ASSERT(writer);
    *writer = (struct blob_writer){.store = store, .fd = -1};
    crypto_generichash_init(&writer->hash, NULL, 0, BLOB_HASH_SIZE);
    if (expected) {
        writer->expected = *expected;
        writer->has_expected = true;
    }
    const bool is_there = expected && blob_store_has(store, expected);
    if (!is_there && create_temp(writer, error) < 0) {
        blob_writer_free(writer);
        return -1;
    }
    *out_writer = writer;
    return 0;
}

void blob_writer_free(struct blob_writer *writer)
{
    if (!writer)
        return;
    struct blob_store *store = writer->store;
    pthread_mutex_lock(&store->mutex);
    ASSERT(store->pending_bytes >= writer->promised_bytes);
    store->pending_bytes -= writer->promised_bytes;
    pthread_mutex_unlock(&store->mutex);
    auto_close_fd(&writer->fd);
    /* A file that stays is taken away when the store is next opened. */
    if (writer->temp_name[0])
        (void)!unlinkat(store->temp_fd, writer->temp_name, 0);
    free(writer);
}

static int promise(struct blob_writer *writer, uint64_t size, struct error *error)
{
    struct blob_store *store = writer->store;
    pthread_mutex_lock(&store->mutex);
    if (blob_refresh(store, error) < 0) {
        pthread_mutex_unlock(&store->mutex);
        return -1;
    }
    const uint64_t used = store->stored_bytes + store->pending_bytes;
    const bool fits =
        !store->bytes_max || (used <= store->bytes_max && size <= store->bytes_max - used);
    if (fits) {
        store->pending_bytes += size;
        writer->promised_bytes += size;
    }
    pthread_mutex_unlock(&store->mutex);
    if (fits)
        return 0;
    return error_set(error, ERROR_EXHAUSTED,
                     "\"%.120s\" may hold %" PRIu64 " bytes, and they are used up", store->folder,
                     store->bytes_max);
}

static int write_all(struct blob_writer *writer, const void *data, size_t size, struct error *error)
{
    const uint8_t *left = data;
    while (size > 0) {
        const ssize_t written = write(writer->fd, left, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return blob_fail(writer->store, errno, "write a blob", error);
        left += written;
        size -= (size_t)written;
    }
    return 0;
}

int blob_writer_append(struct blob_writer *writer, const void *data, size_t size,
                       struct error *error)
{
    if (size > BLOB_BYTES_MAX - writer->size_bytes)
        return error_set(error, ERROR_EXHAUSTED, "a blob holds at most %d bytes", BLOB_BYTES_MAX);
    if (size == 0)
        return 0;
    if (writer->fd >= 0 &&
        (promise(writer, size, error) < 0 || write_all(writer, data, size, error) < 0))
        return -1;
    if (writer->coding == BLOB_CODING_PLAIN)
        crypto_generichash_update(&writer->hash, data, size);
    writer->size_bytes += size;
    return 0;
}

/* What a shared store holds was fetched and can be fetched again: it is not waited for until it is
 * on the disk. A power cut may leave it torn, which whoever reads it finds out. */
static int sync_unless_cache(const struct blob_store *store, int fd)
{
    return store->shared_changes ? 0 : fsync(fd);
}

/* The folder "ab" of a blob, created when it is the first one there. */
static int open_subfolder(struct blob_store *store, const char path[BLOB_PATH_SIZE], int *out_fd,
                          struct error *error)
{
    const char name[] = {path[0], path[1], '\0'};
    if (mkdirat(store->folder_fd, name, 0700) == 0) {
        if (sync_unless_cache(store, store->folder_fd) < 0)
            return blob_fail(store, errno, "sync the folder", error);
    } else if (errno != EEXIST) {
        return blob_fail(store, errno, "create a folder", error);
    }
    *out_fd = openat(store->folder_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out_fd < 0 ? blob_fail(store, errno, "open a folder", error) : 0;
}

/* With the mutex held, so that nobody is told of a blob before it is safe. */
static int publish(struct blob_writer *writer, const struct blob_hash *hash, struct error *error)
{
    struct blob_store *store = writer->store;
    struct blob_entry *entry = blob_entry_find(store, hash);
    if (entry) { /* another writer was first */
        blob_entry_touch(store, entry);
        return 0;
    }
    char path[BLOB_PATH_SIZE];
    blob_path_format(hash, writer->coding, path);
    AUTO_FD int subfolder_fd = -1;
    if (open_subfolder(store, path, &subfolder_fd, error) < 0)
        return -1;
    if (renameat(store->temp_fd, writer->temp_name, store->folder_fd, path) < 0)
        return blob_fail(store, errno, "rename a blob", error);
    writer->temp_name[0] = '\0';
    if (sync_unless_cache(store, subfolder_fd) < 0) {
        const int errno_value = errno;
        (void)!unlinkat(store->folder_fd, path, 0); /* else the next opening finds a good blob */
        return blob_fail(store, errno_value, "sync a folder", error);
    }
    blob_entry_add(store, &(struct blob_entry){.hash = *hash,
                                               .coding = writer->coding,
                                               .size_bytes = writer->size_bytes,
                                               .used_ms = clock_utc_ms(store->clock),
                                               .is_checked = true});
    blob_note_change(store);
    return 0;
}

static int fail_mismatch(const struct blob_hash *hash, const struct blob_hash *expected,
                         struct error *error)
{
    char found[BLOB_HASH_TEXT_SIZE];
    char wanted[BLOB_HASH_TEXT_SIZE];
    return error_set(error, ERROR_INVALID, "the bytes hash to %s, not to %s",
                     blob_hash_format(hash, found), blob_hash_format(expected, wanted));
}

int blob_writer_finish(struct blob_writer *writer, struct blob_hash *out_hash, struct error *error)
{
    struct blob_store *store = writer->store;
    struct blob_hash hash;
    if (writer->coding == BLOB_CODING_PLAIN)
        crypto_generichash_final(&writer->hash, hash.bytes, BLOB_HASH_SIZE);
    else
        hash = writer->expected;
    if (writer->has_expected && !blob_hash_equal(&hash, &writer->expected))
        return fail_mismatch(&hash, &writer->expected, error);
    /* It was there when we began; should it be gone by now, the sender must send it again. */
    if (writer->fd < 0) {
        pthread_mutex_lock(&store->mutex);
        struct blob_entry *entry = blob_entry_find(store, &hash);
        if (entry)
            blob_entry_touch(store, entry);
        pthread_mutex_unlock(&store->mutex);
        if (!entry)
            return error_set(error, ERROR_CONFLICT,
                             "the blob was deleted meanwhile: send it again");
        *out_hash = hash;
        return 0;
    }
    /* The file's time is its last use; set here so that a store with another clock agrees. */
    const int64_t now_ms = clock_utc_ms(store->clock);
    const struct timespec now = {now_ms / 1000, now_ms % 1000 * 1000000};
    const struct timespec times[] = {now, now};
    if (futimens(writer->fd, times) < 0 || sync_unless_cache(store, writer->fd) < 0)
        return blob_fail(store, errno, "sync a blob", error);
    pthread_mutex_lock(&store->mutex);
    const int result = publish(writer, &hash, error);
    store->pending_bytes -= writer->promised_bytes;
    writer->promised_bytes = 0;
    pthread_mutex_unlock(&store->mutex);
    if (result < 0)
        return -1;
    *out_hash = hash;
    return 0;
}

int blob_store_put(struct blob_store *store, const struct blob_hash *expected, struct text bytes,
                   struct blob_hash *out_hash, struct error *error)
{
    /* The name tells whether there is anything to write. */
    struct blob_hash hash;
    if (!expected) {
        blob_hash_of(bytes.data, bytes.size, &hash);
        expected = &hash;
    }
    AUTO(blob_writer) struct blob_writer *writer = NULL;
    if (blob_writer_open(store, expected, &writer, error) < 0)
        return -1;
    if (blob_writer_append(writer, bytes.data, bytes.size, error) < 0)
        return -1;
    return blob_writer_finish(writer, out_hash, error);
}

int blob_store_put_frame(struct blob_store *store, const struct blob_hash *expected,
                         struct text frame, struct error *error)
{
    struct buffer plain AUTO_BUFFER;
    buffer_init(&plain, BLOB_BYTES_MAX);
    struct blob_hash hash;
    if (blob_decode(frame, &plain, error) < 0)
        return -1;
    if (store->shared_changes)
        return blob_store_put(store, expected, buffer_text(&plain), &hash, error);
    blob_hash_of(plain.data, plain.size, &hash);
    if (!blob_hash_equal(&hash, expected))
        return fail_mismatch(&hash, expected, error);
    AUTO(blob_writer) struct blob_writer *writer = NULL;
    if (blob_writer_open(store, expected, &writer, error) < 0)
        return -1;
    writer->coding = BLOB_CODING_ZSTD;
    if (blob_writer_append(writer, frame.data, frame.size, error) < 0)
        return -1;
    return blob_writer_finish(writer, &hash, error);
}
