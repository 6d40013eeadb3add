#include "peer/image_cache.h"

#include "base/text.h"
#include "sandbox/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEX_SIZE = 2 * IMAGE_HASH_SIZE, ENTRY_MAX = 1 << 20, NAME_SIZE = HEX_SIZE + 32 };

#define GONE   ".gone-"
#define MAKING ".making-"

struct kept {
    char name[NAME_SIZE];
    uint64_t bytes;
    struct timespec used;
};

void image_hold_release(struct image_hold *hold)
{
    if (hold->fd >= 0)
        close(TAKE_FD(hold->fd));
}

/* "HASH-BYTES"; false for what is no image. */
static bool kept_parse(const char *name, struct kept *out)
{
    struct error ignored;
    struct text hash, bytes;
    if (strlen(name) >= sizeof(out->name) || !text_cut(text_of(name), '-', &hash, &bytes) ||
        hash.size != HEX_SIZE || text_parse_u64(bytes, &out->bytes, &ignored) < 0)
        return false;
    memcpy(out->name, name, strlen(name) + 1);
    return true;
}

/* Its folder, locked as `operation` says; -1 when it is not there or somebody has it otherwise. */
static int open_locked(int cache_fd, const char *name, int operation)
{
    AUTO_FD int fd = openat(cache_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat own, there;
    if (fd < 0 || flock(fd, operation | LOCK_NB) < 0 || fstat(fd, &own) < 0 ||
        fstatat(cache_fd, name, &there, AT_SYMLINK_NOFOLLOW) < 0 || own.st_ino != there.st_ino)
        return -1;
    return TAKE_FD(fd);
}

typedef int visit_function(int cache_fd, const struct kept *kept, void *context);

/* Until one answers other than 0. */
static int visit_all(int cache_fd, visit_function *visit, void *context)
{
    const int copy = openat(cache_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);
    int result = 0;
    if (!folder) {
        if (copy >= 0)
            close(copy);
        return 0;
    }
    for (struct dirent *entry; result == 0 && (entry = readdir(folder));) { // NOLINT(concurrency-*)
        struct kept kept = {0};
        struct stat status;
        if (!kept_parse(entry->d_name, &kept) ||
            fstatat(cache_fd, kept.name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        kept.used = status.st_mtim;
        result = visit(cache_fd, &kept, context);
    }
    closedir(folder);
    return result;
}

struct search {
    char hex[HEX_SIZE + 1];
    const char *cache;
    struct image_hold *hold;
};

/* The kernel's own file times are milliseconds coarse: two uses would get the same one. */
static int note_use(int fd)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct timespec times[] = {now, now};
    return futimens(fd, times);
}

static int take_if_same(int cache_fd, const struct kept *kept, void *context)
{
    struct search *search = context;
    if (strncmp(kept->name, search->hex, HEX_SIZE) != 0)
        return 0;
    const int fd = open_locked(cache_fd, kept->name, LOCK_SH);
    if (fd < 0)
        return 0;
    if (snprintf(search->hold->folder, PATH_MAX, "%s/%s", search->cache, kept->name) >= PATH_MAX ||
        note_use(fd) < 0) {
        close(fd);
        return 0;
    }
    search->hold->fd = fd;
    return 1;
}

static int cache_open(const char *cache, int *out_fd, struct error *error)
{
    if (folder_make(cache, 0700, error) < 0)
        return -1;
    *out_fd = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out_fd < 0 ? error_set_errno(error, errno, "open \"%s\"", cache) : 0;
}

static int drop(const char *cache, int cache_fd, const struct kept *kept, struct error *error);

struct ageing {
    const char *cache;
    time_t before;
    struct error *error;
};

static int drop_if_old(int cache_fd, const struct kept *kept, void *context)
{
    const struct ageing *ageing = context;
    if (kept->used.tv_sec >= ageing->before)
        return 0;
    AUTO_FD int fd = open_locked(cache_fd, kept->name, LOCK_EX);
    return fd < 0 ? 0 : drop(ageing->cache, cache_fd, kept, ageing->error);
}

static int take(const char *cache, int cache_fd, const uint8_t hash[IMAGE_HASH_SIZE],
                struct image_hold *out_hold)
{
    struct search search = {.cache = cache, .hold = out_hold};
    out_hold->fd = -1;
    text_hex_encode(hash, IMAGE_HASH_SIZE, search.hex);
    return visit_all(cache_fd, take_if_same, &search);
}

int image_cache_take(const char *cache, const uint8_t hash[IMAGE_HASH_SIZE],
                     struct image_hold *out_hold, bool *out_is_there, struct error *error)
{
    AUTO_FD int cache_fd = -1;
    struct timespec now;
    out_hold->fd = -1;
    if (cache_open(cache, &cache_fd, error) < 0)
        return -1;
    *out_is_there = take(cache, cache_fd, hash, out_hold) == 1;
    clock_gettime(CLOCK_REALTIME, &now); /* as the file system has it */
    struct ageing ageing = {cache, now.tv_sec - IMAGE_UNUSED_MAX_S, error};
    if (visit_all(cache_fd, drop_if_old, &ageing) == 0)
        return 0;
    image_hold_release(out_hold);
    return -1;
}

int image_cache_reserve(const char *cache, const uint8_t hash[IMAGE_HASH_SIZE], int *out_fd,
                        struct error *error)
{
    AUTO_FD int cache_fd = -1;
    char name[NAME_SIZE] = MAKING;
    text_hex_encode(hash, IMAGE_HASH_SIZE, name + strlen(MAKING));
    *out_fd = -1;
    if (cache_open(cache, &cache_fd, error) < 0)
        return -1;
    AUTO_FD int fd = openat(cache_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "make \"%s/%s\"", cache, name);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        *out_fd = TAKE_FD(fd);
    else if (errno != EWOULDBLOCK)
        return error_set_errno(error, errno, "lock \"%s/%s\"", cache, name);
    return 0;
}

/* ---- Room ------------------------------------------------------------------------------------ */

struct room {
    uint64_t bytes; /* of all */
    struct kept oldest;
    int oldest_fd; /* locked; -1: none */
};

static int count_and_choose(int cache_fd, const struct kept *kept, void *context)
{
    struct room *room = context;
    room->bytes += kept->bytes;
    const struct timespec *oldest = &room->oldest.used;
    if (room->oldest_fd >= 0 &&
        (kept->used.tv_sec > oldest->tv_sec ||
         (kept->used.tv_sec == oldest->tv_sec && kept->used.tv_nsec >= oldest->tv_nsec)))
        return 0;
    const int fd = open_locked(cache_fd, kept->name, LOCK_EX);
    if (fd < 0)
        return 0;
    if (room->oldest_fd >= 0)
        close(room->oldest_fd);
    room->oldest_fd = fd;
    room->oldest = *kept;
    return 0;
}

static int drop(const char *cache, int cache_fd, const struct kept *kept, struct error *error)
{
    char gone[NAME_SIZE + 16], path[PATH_MAX];
    snprintf(gone, sizeof(gone), GONE "%s", kept->name);
    if (snprintf(path, sizeof(path), "%s/%s", cache, gone) >= (int)sizeof(path))
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    if (renameat(cache_fd, kept->name, cache_fd, gone) < 0 && errno != ENOENT)
        return error_set_errno(error, errno, "remove \"%s\"", path);
    return folder_remove(path, error);
}

/* Whoever made it holds it no more. One who opened it before and locks it now makes the same once
 * more, which does no harm. */
static void drop_reservation(int cache_fd, const char *name)
{
    AUTO_FD int fd = openat(cache_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(cache_fd, name, 0); /* an empty file that stays is in nobody's way */
}

/* What a power cut left of one that was being removed, and reservations that are over. */
static int drop_left_overs(const char *cache, int cache_fd, struct error *error)
{
    const int copy = openat(cache_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);
    int result = 0;
    if (!folder) {
        result = error_set_errno(error, errno, "look into \"%s\"", cache);
        if (copy >= 0)
            close(copy);
        return result;
    }
    for (struct dirent *entry; result == 0 && (entry = readdir(folder));) { // NOLINT(concurrency-*)
        char path[PATH_MAX];
        if (strncmp(entry->d_name, GONE, strlen(GONE)) == 0 &&
            snprintf(path, sizeof(path), "%s/%s", cache, entry->d_name) < (int)sizeof(path))
            result = folder_remove(path, error);
        else if (strncmp(entry->d_name, MAKING, strlen(MAKING)) == 0)
            drop_reservation(cache_fd, entry->d_name);
    }
    closedir(folder);
    return result;
}

static int make_room(const char *cache, int cache_fd, uint64_t bytes, uint64_t bytes_max,
                     struct error *error)
{
    if (bytes > bytes_max)
        return error_set(error, ERROR_EXHAUSTED,
                         "unpacked it takes %" PRIu64 " MiB, and %" PRIu64
                         " MiB are kept for images and packages here",
                         bytes >> 20, bytes_max >> 20);
    for (;;) {
        struct room room = {.oldest_fd = -1};
        visit_all(cache_fd, count_and_choose, &room);
        AUTO_FD int oldest_fd = room.oldest_fd;
        if (room.bytes + bytes <= bytes_max)
            return 0;
        if (oldest_fd < 0)
            return error_set(error, ERROR_EXHAUSTED,
                             "what running leases use leaves no room for it");
        if (drop(cache, cache_fd, &room.oldest, error) < 0)
            return -1;
    }
}

/* ---- Keeping --------------------------------------------------------------------------------- */

/* What a foreign process wrote is shown to others only if it is what it should be. */
static int check_folder(enum image_kind kind, const char *folder, struct error *error)
{
    struct stat root, start = {.st_mode = S_IFREG, .st_nlink = 1};
    AUTO_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstatat(fd, "root", &root, AT_SYMLINK_NOFOLLOW) < 0 ||
        (kind == IMAGE_KIND_IMAGE && fstatat(fd, "start.json", &start, AT_SYMLINK_NOFOLLOW) < 0) ||
        !S_ISDIR(root.st_mode) || !S_ISREG(start.st_mode) || start.st_nlink != 1)
        return error_set(error, ERROR_CORRUPT, "it was not unpacked as it should be");
    return 0;
}

int image_cache_keep(const char *cache, const uint8_t hash[IMAGE_HASH_SIZE], enum image_kind kind,
                     const char *folder, uint64_t bytes_max, struct image_hold *out_hold,
                     struct error *error)
{
    AUTO_FD int cache_fd = -1;
    char hex[HEX_SIZE + 1], path[PATH_MAX];
    int64_t bytes = 0;
    bool is_there = false;
    text_hex_encode(hash, IMAGE_HASH_SIZE, hex);
    if (check_folder(kind, folder, error) < 0 || cache_open(cache, &cache_fd, error) < 0 ||
        folder_measure(folder, ENTRY_MAX, &bytes, error) < 0)
        return -1;
    /* One at a time: two that came together do not both make room. */
    if (flock(cache_fd, LOCK_EX) < 0)
        return error_set_errno(error, errno, "lock \"%s\"", cache);
    if (image_cache_take(cache, hash, out_hold, &is_there, error) < 0)
        return -1;
    if (is_there)
        return folder_remove(folder, error);
    if (drop_left_overs(cache, cache_fd, error) < 0 ||
        make_room(cache, cache_fd, (uint64_t)bytes, bytes_max, error) < 0)
        return -1;
    if (snprintf(path, sizeof(path), "%s/%s-%" PRId64, cache, hex, bytes) >= (int)sizeof(path))
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    if (rename(folder, path) < 0)
        return error_set_errno(error, errno, "keep it as \"%s\"", path);
    if (image_cache_take(cache, hash, out_hold, &is_there, error) < 0)
        return -1;
    return is_there ? 0 : error_set(error, ERROR_UNAVAILABLE, "it is gone from the cache");
}
