#include "train/spool.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CAPACITY_MIN = 1 << 16 };

static int no_room(size_t size, struct error *error)
{
    return error_set(error, ERROR_EXHAUSTED, "no room for %zu bytes of data: %s", size,
                     errno == ENOSPC  ? "the disk is full (TMPDIR names another)"
                     : errno == EFBIG ? "no file may be as large here"
                                      : "no memory");
}

static int open_file(struct error *error)
{
    const char *folder = secure_getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (!folder || !*folder)
        folder = "/var/tmp";
    const int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file in \"%s\" for data that is large",
                               folder);
    return fd;
}

/* Room on the disk is taken before it is mapped: a full disk is an error here, no signal later. */
static int grow_file(struct spool *spool, size_t capacity, struct error *error)
{
    int fd = spool->file - 1;
    const bool is_new = fd < 0;
    if (is_new && (fd = open_file(error)) < 0)
        return -1;
    spool->file = fd + 1;
    errno = posix_fallocate(fd, 0, (off_t)capacity);
    if (errno)
        return no_room(capacity, error);
    void *data = is_new || !spool->data
                     ? mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : mremap(spool->data, spool->capacity, capacity, MREMAP_MAYMOVE);
    if (data == MAP_FAILED)
        return no_room(capacity, error);
    if (is_new && spool->data) {
        memcpy(data, spool->data, spool->size);
        munmap(spool->data, spool->capacity);
    }
    spool->data = data;
    spool->capacity = capacity;
    return 0;
}

static int grow_memory(struct spool *spool, size_t capacity, struct error *error)
{
    void *data = spool->data ? mremap(spool->data, spool->capacity, capacity, MREMAP_MAYMOVE)
                             : mmap(NULL, capacity, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return no_room(capacity, error);
    spool->data = data;
    spool->capacity = capacity;
    return 0;
}

int spool_reserve(struct spool *spool, size_t size, void **out_room, struct error *error)
{
    size_t needed;
    if (__builtin_add_overflow(spool->size, size, &needed) || needed > SIZE_MAX / 4)
        return error_set(error, ERROR_EXHAUSTED, "no room for %zu bytes of data", size);
    if (needed > spool->capacity) {
        size_t capacity = spool->capacity + spool->capacity / 2;
        if (capacity < needed)
            capacity = needed;
        if (capacity < CAPACITY_MIN)
            capacity = CAPACITY_MIN;
        capacity = (capacity + 4095) & ~(size_t)4095;
        const size_t memory_max = spool->memory_max ? spool->memory_max : SPOOL_MEMORY_MAX;
        if ((spool->file || capacity > memory_max ? grow_file(spool, capacity, error)
                                                  : grow_memory(spool, capacity, error)) < 0)
            return -1;
    }
    *out_room = spool->data + spool->size;
    return 0;
}

void spool_advance(struct spool *spool, size_t size)
{
    ASSERT(size <= spool->capacity - spool->size);
    spool->size += size;
}

int spool_append(struct spool *spool, const void *bytes, size_t size, struct error *error)
{
    void *room;
    if (spool_reserve(spool, size, &room, error) < 0)
        return -1;
    memcpy(room, bytes, size);
    spool_advance(spool, size);
    return 0;
}

void spool_done(struct spool *spool)
{
    if (spool->data)
        munmap(spool->data, spool->capacity);
    if (spool->file)
        close(spool->file - 1);
    *spool = (struct spool){0};
}
