#include "blob/blob_store.h"

#include "base/assert.h"
#include "blob/blob_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* ---- Names and errors ------------------------------------------------------------------------ */

const char *blob_path_format(const struct blob_hash *hash, enum blob_coding coding,
                             char out[BLOB_PATH_SIZE])
{
    text_hex_encode(hash->bytes, 1, out);
    out[2] = '/';
    text_hex_encode(hash->bytes + 1, BLOB_HASH_SIZE - 1, out + 3);
    if (coding == BLOB_CODING_ZSTD)
        memcpy(out + BLOB_HASH_TEXT_SIZE, ".zst", 5);
    return out;
}

int blob_fail(const struct blob_store *store, int errno_value, const char *doing,
              struct error *error)
{
    if (errno_value == ENOSPC || errno_value == EDQUOT || errno_value == EFBIG)
        return error_set(error, ERROR_EXHAUSTED, "the disk holding \"%.150s\" is full",
                         store->folder);
    return error_set_errno(error, errno_value, "%s in \"%.150s\"", doing, store->folder);
}

static int fail_absent(const struct blob_hash *hash, struct error *error)
{
    char text[BLOB_HASH_TEXT_SIZE];
    return error_set(error, ERROR_NOT_FOUND, "no blob is named \"%s\"",
                     blob_hash_format(hash, text));
}

/* ---- The index, with the mutex held ---------------------------------------------------------- */

static struct text hash_key(const struct blob_hash *hash)
{
    return (struct text){(const char *)hash->bytes, BLOB_HASH_SIZE};
}

void blob_entry_add(struct blob_store *store, const struct blob_entry *added)
{
    struct blob_entry *entry = calloc(1, sizeof(*entry));
    ASSERT(entry);
    *entry = *added;
    entry->node = (struct list_node){0};
    entry->touched_ms = entry->used_ms;
    map_put_text(&store->entries, hash_key(&entry->hash), entry);
    list_append(&store->by_use, &entry->node);
    store->stored_bytes += entry->size_bytes;
}

static void entry_drop(struct blob_store *store, struct blob_entry *entry)
{
    ASSERT(store->stored_bytes >= entry->size_bytes);
    store->stored_bytes -= entry->size_bytes;
    list_remove(&entry->node);
    map_remove_text(&store->entries, hash_key(&entry->hash));
    free(entry);
}

int64_t blob_used_ms(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000 + info->st_mtim.tv_nsec / 1000000;
}

struct blob_entry *blob_entry_find(struct blob_store *store, const struct blob_hash *hash)
{
    struct blob_entry *entry = map_get_text(&store->entries, hash_key(hash));
    if (!store->shared_changes)
        return entry;
    /* Another process may have brought it or taken it away. */
    const enum blob_coding coding = entry ? entry->coding : BLOB_CODING_PLAIN;
    char path[BLOB_PATH_SIZE];
    struct stat info;
    const bool is_there = fstatat(store->folder_fd, blob_path_format(hash, coding, path), &info,
                                  AT_SYMLINK_NOFOLLOW) == 0 &&
                          S_ISREG(info.st_mode);
    if (entry && !is_there)
        entry_drop(store, entry);
    else if (!entry && is_there)
        blob_entry_add(store, &(struct blob_entry){.hash = *hash,
                                                   .size_bytes = (uint64_t)info.st_size,
                                                   .used_ms = blob_used_ms(&info)});
    return map_get_text(&store->entries, hash_key(hash));
}

void blob_note_change(struct blob_store *store)
{
    if (!store->shared_changes)
        return;
    /* When nobody else changed anything meanwhile, the index is right still. */
    if (atomic_fetch_add(store->shared_changes, 1) == store->seen_changes)
        store->seen_changes++;
}

void blob_entry_touch(struct blob_store *store, struct blob_entry *entry)
{
    const int64_t now_ms = clock_utc_ms(store->clock);
    entry->used_ms = now_ms;
    list_remove(&entry->node);
    list_append(&store->by_use, &entry->node);
    if (now_ms - entry->touched_ms < BLOB_TOUCH_PERIOD_MS)
        return;
    char path[BLOB_PATH_SIZE];
    const struct timespec now = {now_ms / 1000, now_ms % 1000 * 1000000};
    const struct timespec times[] = {now, now};
    /* A time that cannot be written costs one place in the order after a restart, no more. */
    if (utimensat(store->folder_fd, blob_path_format(&entry->hash, entry->coding, path), times, 0) <
        0)
        return;
    entry->touched_ms = now_ms;
    blob_note_change(store);
}

static int entry_delete(struct blob_store *store, struct blob_entry *entry, struct error *error)
{
    char path[BLOB_PATH_SIZE];
    if (unlinkat(store->folder_fd, blob_path_format(&entry->hash, entry->coding, path), 0) < 0 &&
        errno != ENOENT)
        return blob_fail(store, errno, "delete a blob", error);
    entry_drop(store, entry);
    blob_note_change(store);
    return 0;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

uint64_t blob_store_bytes(struct blob_store *store)
{
    pthread_mutex_lock(&store->mutex);
    const uint64_t bytes = store->stored_bytes + store->pending_bytes;
    pthread_mutex_unlock(&store->mutex);
    return bytes;
}

size_t blob_store_count(struct blob_store *store)
{
    pthread_mutex_lock(&store->mutex);
    const size_t count = store->entries.count;
    pthread_mutex_unlock(&store->mutex);
    return count;
}

bool blob_store_has(struct blob_store *store, const struct blob_hash *hash)
{
    pthread_mutex_lock(&store->mutex);
    const bool is_there = blob_entry_find(store, hash) != NULL;
    pthread_mutex_unlock(&store->mutex);
    return is_there;
}

bool blob_store_use(struct blob_store *store, const struct blob_hash *hash)
{
    pthread_mutex_lock(&store->mutex);
    struct blob_entry *entry = blob_entry_find(store, hash);
    if (entry)
        blob_entry_touch(store, entry);
    pthread_mutex_unlock(&store->mutex);
    return entry != NULL;
}

int blob_store_size(struct blob_store *store, const struct blob_hash *hash, uint64_t *out_bytes,
                    struct error *error)
{
    pthread_mutex_lock(&store->mutex);
    const struct blob_entry *entry = blob_entry_find(store, hash);
    if (entry)
        *out_bytes = entry->size_bytes;
    pthread_mutex_unlock(&store->mutex);
    return entry ? 0 : fail_absent(hash, error);
}

/* ---- Reading --------------------------------------------------------------------------------- */

int blob_store_open_blob(struct blob_store *store, const struct blob_hash *hash,
                         struct blob_file *out_file, struct error *error)
{
    char path[BLOB_PATH_SIZE];
    int result = -1;
    pthread_mutex_lock(&store->mutex);
    struct blob_entry *entry = blob_entry_find(store, hash);
    const int fd = entry ? openat(store->folder_fd, blob_path_format(hash, entry->coding, path),
                                  O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
                         : -1;
    if (fd >= 0) {
        blob_entry_touch(store, entry);
        *out_file = (struct blob_file){fd, entry->size_bytes, entry->coding};
        result = 0;
    } else if (!entry) {
        (void)fail_absent(hash, error);
    } else if (errno == ENOENT) {
        entry_drop(store, entry); /* someone emptied the folder under us */
        (void)fail_absent(hash, error);
    } else {
        (void)blob_fail(store, errno, "open a blob", error);
    }
    pthread_mutex_unlock(&store->mutex);
    return result;
}

/* -1 with errno, or how much there was, up to `size`. */
static ssize_t read_all(int fd, uint8_t *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t got = read(fd, data + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int fail_too_long(const struct blob_hash *hash, struct error *error)
{
    char text[BLOB_HASH_TEXT_SIZE];
    return error_set(error, ERROR_EXHAUSTED, "blob \"%s\" is longer than its reader takes",
                     blob_hash_format(hash, text));
}

/* The file's bytes after those in `out`. */
static int read_file(const struct blob_store *store, const struct blob_hash *hash,
                     const struct blob_file *file, struct buffer *out, struct error *error)
{
    uint8_t *room = buffer_reserve(out, file->size_bytes ? file->size_bytes : 1);
    if (!room)
        return fail_too_long(hash, error);
    const ssize_t got = read_all(file->fd, room, file->size_bytes);
    if (got < 0)
        return blob_fail(store, errno, "read a blob", error);
    buffer_advance(out, (size_t)got);
    return 0;
}

static int read_frame(const struct blob_store *store, const struct blob_hash *hash,
                      const struct blob_file *file, struct buffer *out, struct error *error)
{
    struct buffer frame AUTO_BUFFER;
    buffer_init(&frame, BLOB_BYTES_MAX);
    return read_file(store, hash, file, &frame, error) < 0 ||
                   blob_decode(buffer_text(&frame), out, error) < 0
               ? -1
               : 0;
}

static void note_checked(struct blob_store *store, const struct blob_hash *hash)
{
    pthread_mutex_lock(&store->mutex);
    struct blob_entry *entry = map_get_text(&store->entries, hash_key(hash));
    if (entry)
        entry->is_checked = true;
    pthread_mutex_unlock(&store->mutex);
}

int blob_store_read(struct blob_store *store, const struct blob_hash *hash, struct buffer *out,
                    struct error *error)
{
    struct blob_file file = {.fd = -1};
    if (blob_store_open_blob(store, hash, &file, error) < 0)
        return -1;
    const size_t before = out->size;
    const int result = file.coding == BLOB_CODING_ZSTD ? read_frame(store, hash, &file, out, error)
                                                       : read_file(store, hash, &file, out, error);
    close(file.fd);
    if (result < 0 && error->code != ERROR_INVALID)
        return -1;
    struct blob_hash found;
    blob_hash_of(out->data + before, out->size - before, &found);
    if (result == 0 && blob_hash_equal(&found, hash)) {
        note_checked(store, hash);
        return 0;
    }
    out->size = before;
    struct error second;
    /* The answer is CORRUPT whether or not the bad copy could be taken away. */
    (void)!blob_store_delete(store, hash, &second);
    char text[BLOB_HASH_TEXT_SIZE];
    return error_set(error, ERROR_CORRUPT,
                     "blob \"%s\" is damaged on disk and was deleted: put it again",
                     blob_hash_format(hash, text));
}

static bool is_checked(struct blob_store *store, const struct blob_hash *hash)
{
    pthread_mutex_lock(&store->mutex);
    const struct blob_entry *entry = map_get_text(&store->entries, hash_key(hash));
    const bool is_it = entry && entry->is_checked;
    pthread_mutex_unlock(&store->mutex);
    return is_it;
}

int blob_store_copy(struct blob_store *store, const struct blob_hash *hash,
                    const struct blob_part *part, int fd, struct error *error)
{
    struct blob_file file = {.fd = -1};
    struct error absent; /* whoever reads it is told */
    if (!is_checked(store, hash) || blob_store_open_blob(store, hash, &file, &absent) < 0)
        return 0;
    off_t offset = (off_t)part->first;
    uint64_t left = part->size_bytes;
    int result = file.coding == BLOB_CODING_PLAIN && file.size_bytes == part->blob_bytes ? 1 : 0;
    while (result == 1 && left > 0) {
        const ssize_t copied = sendfile(fd, file.fd, &offset, left);
        if (copied < 0 && errno == EINTR)
            continue;
        if (copied < 0)
            result = error_set_errno(error, errno, "write the file");
        else if (copied == 0)
            result = error_set(error, ERROR_CORRUPT, "a blob is shorter than it was");
        left -= copied > 0 ? (uint64_t)copied : 0;
    }
    close(file.fd);
    return result;
}

/* ---- Deleting -------------------------------------------------------------------------------- */

int blob_store_delete(struct blob_store *store, const struct blob_hash *hash, struct error *error)
{
    pthread_mutex_lock(&store->mutex);
    struct blob_entry *entry = blob_entry_find(store, hash);
    const int result = entry ? entry_delete(store, entry, error) : fail_absent(hash, error);
    pthread_mutex_unlock(&store->mutex);
    return result;
}

static bool needs_room(const struct blob_store *store, uint64_t bytes_wanted)
{
    const uint64_t used = store->stored_bytes + store->pending_bytes;
    return store->bytes_max &&
           (bytes_wanted > store->bytes_max || used > store->bytes_max - bytes_wanted);
}

static bool is_disk_short(const struct blob_store *store, uint64_t bytes_free_min)
{
    struct statvfs disk;
    return bytes_free_min && fstatvfs(store->folder_fd, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize < bytes_free_min;
}

static int evict_unpinned(struct blob_store *store, const struct blob_evict *evict,
                          const struct map *pinned, uint64_t *freed_bytes, struct error *error)
{
    LIST_EACH(&store->by_use, node)
    {
        struct blob_entry *entry = LIST_ITEM(node, struct blob_entry, node);
        if (entry->used_ms >= evict->used_before_ms && !needs_room(store, evict->bytes_wanted) &&
            !is_disk_short(store, evict->bytes_free_min))
            break; /* what follows was used later still */
        if (map_get_text(pinned, hash_key(&entry->hash)) ||
            (evict->keep && evict->keep(&entry->hash, evict->context)))
            continue;
        const uint64_t size_bytes = entry->size_bytes;
        if (entry_delete(store, entry, error) < 0)
            return -1;
        *freed_bytes += size_bytes;
    }
    if (needs_room(store, evict->bytes_wanted))
        return error_set(error, ERROR_EXHAUSTED,
                         "\"%.120s\" holds at most %" PRIu64 " bytes, and what is there must stay",
                         store->folder, store->bytes_max);
    return 0;
}

/* Others cannot pin what is about to go while the pins are read and acted on. */
static int evict_locked(struct blob_store *store, const struct blob_evict *evict,
                        uint64_t *freed_bytes, struct error *error)
{
    struct map pinned;
    map_init(&pinned);
    const bool is_shared = store->shared_changes != NULL;
    int result = is_shared ? blob_evict_lock(store, error) : 0;
    if (result == 0) {
        if (is_shared)
            result = blob_pins_read(store, &pinned, error);
        if (result == 0)
            result = evict_unpinned(store, evict, &pinned, freed_bytes, error);
        if (is_shared)
            blob_evict_unlock(store);
    }
    map_done(&pinned);
    return result;
}

int blob_store_evict(struct blob_store *store, const struct blob_evict *evict,
                     uint64_t *out_freed_bytes, struct error *error)
{
    uint64_t freed_bytes = 0;
    pthread_mutex_lock(&store->mutex);
    int result = blob_refresh(store, error);
    if (result == 0)
        result = evict_locked(store, evict, &freed_bytes, error);
    pthread_mutex_unlock(&store->mutex);
    if (out_freed_bytes)
        *out_freed_bytes = freed_bytes;
    return result;
}
