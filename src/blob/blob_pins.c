#include "blob/blob_pins.h"

#include "base/assert.h"
#include "blob/blob_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <unistd.h>

struct blob_pins {
    struct blob_store *store;
    char name[40];
    int fd; /* with the lock */
};

int blob_evict_lock(struct blob_store *store, struct error *error)
{
    while (flock(store->evict_fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return blob_fail(store, errno, "lock the pins", error);
    return 0;
}

void blob_evict_unlock(struct blob_store *store)
{
    ASSERT(flock(store->evict_fd, LOCK_UN) == 0);
}

int blob_pins_open(struct blob_store *store, struct blob_pins **out_pins, struct error *error)
{
    struct blob_pins *pins = calloc(1, sizeof(*pins));
    ASSERT(pins);
    pins->store = store;
    pins->fd = -1;
    pthread_mutex_lock(&store->mutex);
    snprintf(pins->name, sizeof(pins->name), "%" PRIx64 "-%" PRIx64, store->temp_prefix,
             ++store->writer_count);
    int result = blob_evict_lock(store, error);
    if (result == 0) {
        pins->fd = openat(store->pins_fd, pins->name,
                          O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        if (pins->fd < 0 || flock(pins->fd, LOCK_EX | LOCK_NB) < 0)
            result = blob_fail(store, errno, "pin blobs", error);
        blob_evict_unlock(store);
    }
    pthread_mutex_unlock(&store->mutex);
    if (result < 0) {
        blob_pins_free(pins);
        return -1;
    }
    *out_pins = pins;
    return 0;
}

void blob_pins_free(struct blob_pins *pins)
{
    if (!pins)
        return;
    /* A file that stays pins nothing without its lock, and is taken away by whoever evicts. */
    if (pins->fd >= 0)
        (void)!unlinkat(pins->store->pins_fd, pins->name, 0);
    auto_close_fd(&pins->fd);
    free(pins);
}

int blob_pins_add(struct blob_pins *pins, const struct blob_hash *hashes, size_t count,
                  struct error *error)
{
    struct blob_store *store = pins->store;
    const size_t size = count * sizeof(*hashes);
    if (size == 0)
        return 0;
    pthread_mutex_lock(&store->mutex);
    int result = blob_evict_lock(store, error);
    if (result == 0) {
        const off_t before = lseek(pins->fd, 0, SEEK_END);
        if (write(pins->fd, hashes, size) != (ssize_t)size) {
            result = blob_fail(store, errno, "pin blobs", error);
            (void)!ftruncate(pins->fd, before); /* else half a hash would shift those after it */
        }
        blob_evict_unlock(store);
    }
    pthread_mutex_unlock(&store->mutex);
    return result;
}

/* ---- For whoever evicts, under the lock ------------------------------------------------------ */

static int read_pins(const struct blob_store *store, int fd, struct map *pinned,
                     struct error *error)
{
    struct blob_hash hashes[64];
    for (;;) {
        const ssize_t got = read(fd, hashes, sizeof(hashes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return blob_fail(store, errno, "read pins", error);
        if (got == 0)
            return 0;
        for (size_t i = 0; i < (size_t)got / sizeof(*hashes); i++)
            map_put_text(pinned,
                         (struct text){(const char *)hashes[i].bytes, sizeof(hashes[i].bytes)},
                         pinned);
    }
}

int blob_pins_read(struct blob_store *store, struct map *pinned, struct error *error)
{
    struct dirent **names = NULL;
    const int count = scandirat(store->pins_fd, ".", &names, NULL, NULL);
    if (count < 0)
        return blob_fail(store, errno, "list pins", error);
    int result = 0;
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        AUTO_FD int fd = -1;
        if (result == 0 && name[0] != '.')
            fd = openat(store->pins_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0)
            (void)!unlinkat(store->pins_fd, name, 0); /* its process is gone */
        else if (fd >= 0)
            result = read_pins(store, fd, pinned, error);
        free(names[i]);
    }
    free(names);
    return result;
}
