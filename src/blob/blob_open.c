/* Opening a blob store: its folder, its lock, alone or with other processes, and its index. */
#include "base/assert.h"
#include "blob/blob_internal.h"
#include "blob/blob_partial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/mman.h>

static int compare_use(const void *left, const void *right)
{
    const struct blob_entry *const *a = left;
    const struct blob_entry *const *b = right;
    return ((*a)->used_ms > (*b)->used_ms) - ((*a)->used_ms < (*b)->used_ms);
}

static void sort_by_use(struct blob_store *store)
{
    const size_t count = store->entries.count;
    struct blob_entry **sorted = calloc(count + 1, sizeof(struct blob_entry *));
    ASSERT(sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = store->entries.entries[i].value;
    qsort(sorted, count, sizeof(struct blob_entry *), compare_use);
    list_init(&store->by_use);
    for (size_t i = 0; i < count; i++) {
        sorted[i]->node = (struct list_node){0};
        list_append(&store->by_use, &sorted[i]->node);
    }
    free(sorted);
}

static void free_names(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* Files that are no blobs of ours are left alone. */
static int scan_file(struct blob_store *store, int prefix, const char *name, struct error *error)
{
    char text[BLOB_HASH_TEXT_SIZE + 5];
    const int length = snprintf(text, sizeof(text), "%02x%s", (unsigned)prefix, name);
    if (length < 0 || length >= (int)sizeof(text))
        return 0;
    struct blob_hash hash;
    struct error unused;
    const struct text whole = text_of(text);
    const enum blob_coding coding =
        text_ends_with(whole, TEXT(".zst")) ? BLOB_CODING_ZSTD : BLOB_CODING_PLAIN;
    const struct text digits = {text, whole.size - (coding == BLOB_CODING_ZSTD ? 4 : 0)};
    if (blob_hash_parse(digits, &hash, &unused) < 0)
        return 0;
    struct stat info;
    char path[BLOB_PATH_SIZE];
    if (fstatat(store->folder_fd, blob_path_format(&hash, coding, path), &info,
                AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : blob_fail(store, errno, "look at a blob", error);
    if (S_ISREG(info.st_mode))
        blob_entry_add(store, &(struct blob_entry){.hash = hash,
                                                   .coding = coding,
                                                   .size_bytes = (uint64_t)info.st_size,
                                                   .used_ms = blob_used_ms(&info)});
    return 0;
}

static int scan(struct blob_store *store, struct error *error)
{
    for (int prefix = 0; prefix < 256; prefix++) {
        char folder[3];
        snprintf(folder, sizeof(folder), "%02x", (unsigned)prefix & 0xff);
        struct dirent **names = NULL;
        const int count = scandirat(store->folder_fd, folder, &names, NULL, NULL);
        if (count < 0 && errno == ENOENT)
            continue;
        if (count < 0)
            return blob_fail(store, errno, "list blobs", error);
        int result = 0;
        for (int i = 0; i < count && result == 0; i++)
            result = scan_file(store, prefix, names[i]->d_name, error);
        free_names(names, count);
        if (result < 0)
            return -1;
    }
    sort_by_use(store);
    return 0;
}

static void forget_all(struct blob_store *store)
{
    for (size_t i = 0; i < store->entries.count; i++)
        free(store->entries.entries[i].value);
    map_clear(&store->entries);
    list_init(&store->by_use);
    store->stored_bytes = 0;
}

int blob_refresh(struct blob_store *store, struct error *error)
{
    if (!store->shared_changes)
        return 0;
    const uint64_t changes = atomic_load(store->shared_changes);
    if (changes == store->seen_changes)
        return 0;
    forget_all(store);
    if (scan(store, error) < 0)
        return -1;
    store->seen_changes = changes;
    return 0;
}

/* Of what was used before then. */
static int empty_folder(struct blob_store *store, int folder_fd, int64_t used_before_ms,
                        struct error *error)
{
    struct dirent **names = NULL;
    const int count = scandirat(folder_fd, ".", &names, NULL, NULL);
    if (count < 0)
        return blob_fail(store, errno, "list temporary files", error);
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        struct stat info;
        if (names[i]->d_name[0] == '.' ||
            fstatat(folder_fd, names[i]->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            blob_used_ms(&info) >= used_before_ms)
            continue;
        if (unlinkat(folder_fd, names[i]->d_name, 0) < 0)
            result = blob_fail(store, errno, "delete a temporary file", error);
    }
    free_names(names, count);
    return result;
}

/* Exclusive, or shared: then is_first says that no other process has the store open. */
static int lock_folder(struct blob_store *store, bool is_shared, bool *out_is_first,
                       struct error *error)
{
    store->lock_fd = openat(store->folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->lock_fd < 0)
        return blob_fail(store, errno, "open the lock", error);
    *out_is_first = flock(store->lock_fd, LOCK_EX | LOCK_NB) == 0;
    if (*out_is_first)
        return 0;
    if (errno != EWOULDBLOCK)
        return blob_fail(store, errno, "take the lock", error);
    if (!is_shared)
        return error_set(error, ERROR_CONFLICT,
                         "\"%.150s\" is in use by another process: stop it first", store->folder);
    while (flock(store->lock_fd, LOCK_SH) < 0)
        if (errno != EINTR)
            return blob_fail(store, errno, "share the lock", error);
    return 0;
}

static int map_changes(struct blob_store *store, struct error *error)
{
    AUTO_FD int fd = openat(store->folder_fd, "changes", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(*store->shared_changes)) < 0)
        return blob_fail(store, errno, "count changes", error);
    void *mapped =
        mmap(NULL, sizeof(*store->shared_changes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return blob_fail(store, errno, "count changes", error);
    store->shared_changes = mapped;
    store->seen_changes = atomic_load(store->shared_changes);
    return 0;
}

static int open_inner(struct blob_store *store, const char *name, int *out_fd, struct error *error)
{
    if (mkdirat(store->folder_fd, name, 0700) < 0 && errno != EEXIST)
        return blob_fail(store, errno, "create a folder", error);
    *out_fd = openat(store->folder_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out_fd < 0 ? blob_fail(store, errno, "open a folder", error) : 0;
}

static int open_folder(struct blob_store *store, bool is_shared, struct error *error)
{
    if (mkdir(store->folder, 0700) < 0 && errno != EEXIST)
        return blob_fail(store, errno, "create the folder", error);
    store->folder_fd = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->folder_fd < 0)
        return blob_fail(store, errno, "open the folder", error);
    bool is_first = false;
    if (lock_folder(store, is_shared, &is_first, error) < 0)
        return -1;
    if (open_inner(store, "temp", &store->temp_fd, error) < 0 ||
        open_inner(store, "partial", &store->partial_fd, error) < 0)
        return -1;
    const int64_t stale_ms = clock_utc_ms(store->clock) - BLOB_PARTIAL_KEEP_MS;
    if (is_first && (empty_folder(store, store->temp_fd, INT64_MAX, error) < 0 ||
                     empty_folder(store, store->partial_fd, stale_ms, error) < 0))
        return -1;
    if (!is_shared)
        return 0;
    if (open_inner(store, "pins", &store->pins_fd, error) < 0)
        return -1;
    store->evict_fd = openat(store->folder_fd, "evict", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->evict_fd < 0)
        return blob_fail(store, errno, "open the lock of pins", error);
    if (is_first && flock(store->lock_fd, LOCK_SH) < 0)
        return blob_fail(store, errno, "share the lock", error);
    return map_changes(store, error);
}

int blob_store_open(const struct blob_store_options *options, struct blob_store **out_store,
                    struct error *error)
{
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "libsodium cannot start");
    struct blob_store *store = calloc(1, sizeof(*store));
    ASSERT(store);
    store->folder_fd = store->temp_fd = store->lock_fd = -1;
    store->partial_fd = store->pins_fd = store->evict_fd = -1;
    store->bytes_max = options->bytes_max;
    store->clock = options->clock ? options->clock : &clock_system;
    store->folder = strdup(options->folder);
    ASSERT(store->folder);
    pthread_mutex_init(&store->mutex, NULL);
    map_init(&store->entries);
    list_init(&store->by_use);
    randombytes_buf(&store->temp_prefix, sizeof(store->temp_prefix));
    if (open_folder(store, options->is_shared, error) < 0 || scan(store, error) < 0) {
        blob_store_free(store);
        return -1;
    }
    *out_store = store;
    return 0;
}

void blob_store_free(struct blob_store *store)
{
    if (!store)
        return;
    ASSERT(store->pending_bytes == 0); /* the store outlives its writers */
    forget_all(store);
    map_done(&store->entries);
    if (store->shared_changes)
        munmap(store->shared_changes, sizeof(*store->shared_changes));
    pthread_mutex_destroy(&store->mutex);
    auto_close_fd(&store->temp_fd);
    auto_close_fd(&store->partial_fd);
    auto_close_fd(&store->pins_fd);
    auto_close_fd(&store->evict_fd);
    auto_close_fd(&store->folder_fd);
    auto_close_fd(&store->lock_fd);
    free(store->folder);
    free(store);
}
