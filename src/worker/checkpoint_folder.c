#include "worker/checkpoint_folder.h"

#include "base/scope.h"
#include "base/text.h"
#include "blob/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a: it tells a change, nobody has to be kept from forging one. */
static uint64_t mix(uint64_t signature, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        signature = (signature ^ bytes[i]) * UINT64_C(0x100000001b3);
    return signature;
}

static uint64_t mix_item(uint64_t signature, const FTSENT *item, size_t root_size)
{
    const struct stat *status = item->fts_statp;
    const char *name = item->fts_path + root_size;
    signature = mix(signature, name, strlen(name) + 1);
    signature = mix(signature, &status->st_mode, sizeof(status->st_mode));
    if (S_ISDIR(status->st_mode))
        return signature; /* what lies in it counts by itself */
    signature = mix(signature, &status->st_ino, sizeof(status->st_ino));
    signature = mix(signature, &status->st_size, sizeof(status->st_size));
    return mix(signature, &status->st_mtim, sizeof(status->st_mtim));
}

/* The kernel grants a read lease on a file only while nobody has it open, or mapped, for writing.
 * Where it grants none at all the times have to tell. */
static bool is_written(const char *path)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
        return errno == EAGAIN;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

static int compare_names(const FTSENT **left, const FTSENT **right)
{
    return strcmp((*left)->fts_name, (*right)->fts_name);
}

static void close_tree(FTS **tree)
{
    if (*tree)
        fts_close(*tree);
}

static int open_tree(const char *folder, FTS **out_tree, struct error *error)
{
    char root[PATH_MAX];
    if (text_copy(text_of(folder), root, sizeof(root), error) < 0)
        return -1;
    char *const roots[] = {root, NULL};
    *out_tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, compare_names);
    return *out_tree ? 0 : error_set_errno(error, errno, "read \"%s\"", folder);
}

int checkpoint_scan(const char *folder, bool looks_for_writers, struct checkpoint_scan *out_scan,
                    struct error *error)
{
    __attribute__((cleanup(close_tree))) FTS *tree = NULL;
    const size_t root_size = strlen(folder);
    size_t count = 0;
    *out_scan = (struct checkpoint_scan){0};
    if (open_tree(folder, &tree, error) < 0)
        return -1;
    uint64_t signature = UINT64_C(0xcbf29ce484222325);
    for (FTSENT *item; (item = fts_read(tree));) {
        if (item->fts_level == FTS_ROOTLEVEL || item->fts_info == FTS_DP)
            continue;
        if (archive_is_unfinished(item->fts_name)) {
            fts_set(tree, item, FTS_SKIP);
            continue;
        }
        if (item->fts_info == FTS_NS || item->fts_info == FTS_DNR || item->fts_info == FTS_ERR)
            continue; /* it went meanwhile: the next look tells */
        if (++count > CHECKPOINT_FILES_MAX)
            return error_set(error, ERROR_EXHAUSTED, "more than %d files", CHECKPOINT_FILES_MAX);
        signature = mix_item(signature, item, root_size);
        if (looks_for_writers && item->fts_info == FTS_F && is_written(item->fts_path))
            snprintf(out_scan->open_path, sizeof(out_scan->open_path), "%.255s",
                     item->fts_path + root_size + 1);
    }
    out_scan->signature = count > 0 ? signature | 1 : 0;
    return 0;
}

static int check_same(const char *folder, uint64_t signature, struct error *error)
{
    struct checkpoint_scan scan;
    if (checkpoint_scan(folder, /* looks_for_writers= */ false, &scan, error) < 0)
        return -1;
    return scan.signature == signature
               ? 0
               : error_set(error, ERROR_CONFLICT, "it changed while it was read");
}

int checkpoint_pack(const char *folder, const char *path, uint64_t bytes_max, uint64_t signature,
                    struct error *error)
{
    char aside[PATH_MAX];
    const struct archive_limits limits = {.bytes_max = bytes_max,
                                          .files_max = CHECKPOINT_FILES_MAX,
                                          .is_plain = true,
                                          .skips_unfinished = true};
    struct archive_summary summary;
    if (snprintf(aside, sizeof(aside), "%s.part", path) >= (int)sizeof(aside))
        return error_set(error, ERROR_INVALID, "the name is too long");
    AUTO_FD int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return error_set_errno(error, errno, "write \"%s\"", aside);
    if (check_same(folder, signature, error) < 0 ||
        archive_pack(folder, fd, &limits, &summary, error) < 0 ||
        check_same(folder, signature, error) < 0) {
        unlink(aside);
        return -1;
    }
    if (rename(aside, path) < 0)
        return error_set_errno(error, errno, "name \"%s\"", path);
    return 0;
}

static int remove_below(const char *folder, bool removes_root, struct error *error)
{
    __attribute__((cleanup(close_tree))) FTS *tree = NULL;
    if (open_tree(folder, &tree, error) < 0)
        return -1;
    for (FTSENT *item; (item = fts_read(tree));) {
        if (item->fts_info == FTS_D || (item->fts_info == FTS_NS && errno == ENOENT))
            continue;
        if (item->fts_level == FTS_ROOTLEVEL && !removes_root)
            continue;
        if (remove(item->fts_accpath) < 0 && errno != ENOENT)
            return error_set_errno(error, errno, "remove \"%s\"", item->fts_path);
    }
    return 0;
}

int checkpoint_clear(const char *folder, struct error *error)
{
    return remove_below(folder, /* removes_root= */ false, error);
}

int checkpoint_unpack(const char *path, const char *folder, uint64_t bytes_max, struct error *error)
{
    char aside[PATH_MAX];
    const struct archive_limits limits = {.bytes_max = bytes_max,
                                          .files_max = CHECKPOINT_FILES_MAX};
    struct archive_summary summary;
    if (snprintf(aside, sizeof(aside), "%s.new", folder) >= (int)sizeof(aside))
        return error_set(error, ERROR_INVALID, "the name is too long");
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    if (remove_below(aside, /* removes_root= */ true, error) < 0)
        return -1;
    if (mkdir(aside, 0755) < 0 || chdir(aside) < 0)
        return error_set_errno(error, errno, "make \"%s\"", aside);
    if (archive_unpack(fd, &limits, &summary, error) < 0 ||
        remove_below(folder, /* removes_root= */ true, error) < 0)
        return -1;
    if (rename(aside, folder) < 0)
        return error_set_errno(error, errno, "name \"%s\"", folder);
    return 0;
}
