#include "cloud/catalogue_shelf.h"

#include "base/assert.h"
#include "cloud/catalogue_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Which file it is, and as of when. All zero: there is none. */
struct file_mark {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

struct catalogue_shelf {
    char *path;
    pthread_mutex_t mutex;       /* of what follows */
    struct catalogue *catalogue; /* NULL: none was read */
    struct file_mark mark;       /* of its file, before it was read */
};

struct catalogue_shelf *catalogue_shelf_new(const char *path)
{
    struct catalogue_shelf *shelf = calloc(1, sizeof(*shelf));
    ASSERT(shelf);
    shelf->path = strdup(path);
    ASSERT(shelf->path);
    pthread_mutex_init(&shelf->mutex, NULL);
    return shelf;
}

void catalogue_shelf_free(struct catalogue_shelf *shelf)
{
    if (!shelf)
        return;
    catalogue_free(shelf->catalogue);
    pthread_mutex_destroy(&shelf->mutex);
    free(shelf->path);
    free(shelf);
}

static int look(const char *path, struct file_mark *out_mark, struct error *error)
{
    struct stat status;
    memset(out_mark, 0, sizeof(*out_mark));
    if (stat(path, &status) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0
                                                   : error_set_errno(error, errno, "\"%s\"", path);
    out_mark->device = status.st_dev;
    out_mark->inode = status.st_ino;
    out_mark->size = status.st_size;
    out_mark->modified = status.st_mtim;
    out_mark->changed = status.st_ctim;
    return 0;
}

static bool is_time(struct timespec left, struct timespec right)
{
    return left.tv_sec == right.tv_sec && left.tv_nsec == right.tv_nsec;
}

static bool is_same(const struct file_mark *left, const struct file_mark *right)
{
    return left->device == right->device && left->inode == right->inode &&
           left->size == right->size && is_time(left->modified, right->modified) &&
           is_time(left->changed, right->changed);
}

/* The mark is the older: a file that changes in between is another at the next look. */
static int renew(struct catalogue_shelf *shelf, struct error *error)
{
    struct file_mark mark;
    struct catalogue *fresh = NULL;
    if (look(shelf->path, &mark, error) < 0)
        return -1;
    if (shelf->catalogue && is_same(&mark, &shelf->mark))
        return 0;
    if (catalogue_open(shelf->path, &fresh, error) < 0)
        return -1;
    catalogue_free(shelf->catalogue);
    shelf->catalogue = fresh;
    shelf->mark = mark;
    return 0;
}

int catalogue_shelf_take(struct catalogue_shelf *shelf, struct catalogue **out_catalogue,
                         struct error *error)
{
    pthread_mutex_lock(&shelf->mutex);
    const int result = renew(shelf, error);
    if (result == 0)
        *out_catalogue = catalogue_share(shelf->catalogue);
    pthread_mutex_unlock(&shelf->mutex);
    return result;
}
