#include "base/assert.h"
#include "base/scope.h"
#include "base/text.h"
#include "blob/archive.h"
#include "blob/archive_library_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { COPY_BYTES = 128 << 10 };

struct packer {
    const struct archive_library *library;
    struct archive *archive;
    struct archive_entry *entry;
    const struct archive_limits *limits;
    size_t root_size; /* of the folder's own path, with its slash */
    struct archive_summary summary;
};

static void packer_done(struct packer *packer)
{
    if (packer->entry)
        packer->library->archive_entry_free(packer->entry);
    if (packer->archive)
        packer->library->archive_write_free(packer->archive);
}

static int library_failed(const struct packer *packer, struct error *error)
{
    const char *words = packer->library->archive_error_string(packer->archive);
    return error_set(error, ERROR_UNAVAILABLE, "%s", words ? words : "the archive is not written");
}

static int copy_file(struct packer *packer, const char *path, uint64_t size, struct error *error)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_set_errno(error, errno, "read");
    char bytes[COPY_BYTES];
    for (uint64_t left = size; left > 0;) {
        const size_t wanted = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
        const ssize_t count = read(fd, bytes, wanted);
        if (count < 0)
            return error_set_errno(error, errno, "read");
        if (count == 0)
            return error_set(error, ERROR_CONFLICT, "it shrank while it was read");
        if (packer->library->archive_write_data(packer->archive, bytes, (size_t)count) != count)
            return library_failed(packer, error);
        left -= (uint64_t)count;
    }
    return 0;
}

static int set_link(struct packer *packer, const char *path, struct error *error)
{
    char target[PATH_MAX];
    const ssize_t size = readlink(path, target, sizeof(target) - 1);
    if (size < 0)
        return error_set_errno(error, errno, "read the link");
    target[size] = '\0';
    packer->library->archive_entry_set_symlink(packer->entry, target);
    return 0;
}

static int count_item(struct packer *packer, const struct stat *status, struct error *error)
{
    packer->summary.files++;
    packer->summary.bytes += S_ISREG(status->st_mode) ? (uint64_t)status->st_size : 0;
    if (packer->summary.files > packer->limits->files_max)
        return error_set(error, ERROR_EXHAUSTED, "more than %llu files",
                         (unsigned long long)packer->limits->files_max);
    if (packer->summary.bytes > packer->limits->bytes_max)
        return error_set(error, ERROR_EXHAUSTED, "more than %llu bytes",
                         (unsigned long long)packer->limits->bytes_max);
    return 0;
}

static int pack_item(struct packer *packer, const FTSENT *item, struct error *error)
{
    const struct archive_library *library = packer->library;
    const struct stat *status = item->fts_statp;
    if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode) && !S_ISLNK(status->st_mode))
        return error_set(error, ERROR_INVALID, "it is neither a file, a folder nor a link");
    if (count_item(packer, status, error) < 0)
        return -1;
    library->archive_entry_clear(packer->entry);
    library->archive_entry_copy_stat(packer->entry, status);
    library->archive_entry_set_uid(packer->entry, 0);
    library->archive_entry_set_gid(packer->entry, 0);
    library->archive_entry_set_pathname(packer->entry, item->fts_path + packer->root_size);
    if (S_ISLNK(status->st_mode) && set_link(packer, item->fts_path, error) < 0)
        return -1;
    if (library->archive_write_header(packer->archive, packer->entry) != ARCHIVE_OK)
        return library_failed(packer, error);
    if (S_ISREG(status->st_mode))
        return copy_file(packer, item->fts_path, (uint64_t)status->st_size, error);
    return 0;
}

bool archive_is_unfinished(const char *name)
{
    const struct text text = text_of(name);
    return name[0] == '.' || text_ends_with(text, TEXT(".tmp")) ||
           text_ends_with(text, TEXT(".part"));
}

static int compare_names(const FTSENT **left, const FTSENT **right)
{
    return strcmp((*left)->fts_name, (*right)->fts_name);
}

static int pack_tree(struct packer *packer, FTS *tree, struct error *error)
{
    for (;;) {
        errno = 0;
        FTSENT *item = fts_read(tree);
        if (!item)
            return errno ? error_set_errno(error, errno, "read the folder") : 0;
        if (item->fts_level == FTS_ROOTLEVEL && item->fts_info == FTS_D)
            continue;
        if (item->fts_info == FTS_DP)
            continue;
        const char *path =
            item->fts_level > FTS_ROOTLEVEL ? item->fts_path + packer->root_size : item->fts_path;
        if (item->fts_info == FTS_DNR || item->fts_info == FTS_ERR || item->fts_info == FTS_NS) {
            error_set_errno(error, item->fts_errno, "read");
            return error_wrap(error, "\"%s\"", path);
        }
        if (item->fts_level == FTS_ROOTLEVEL)
            return error_set(error, ERROR_INVALID, "\"%s\" is not a folder", path);
        if ((item->fts_info == FTS_D && !strcmp(item->fts_name, ".git")) ||
            (packer->limits->skips_unfinished && archive_is_unfinished(item->fts_name))) {
            fts_set(tree, item, FTS_SKIP);
            continue;
        }
        if (pack_item(packer, item, error) < 0)
            return error_wrap(error, "\"%s\"", path);
    }
}

static int open_packer(struct packer *packer, int fd, struct error *error)
{
    if (archive_library_load(&packer->library, error) < 0)
        return -1;
    const struct archive_library *library = packer->library;
    packer->archive = library->archive_write_new();
    packer->entry = library->archive_entry_new();
    ASSERT(packer->archive && packer->entry);
    /* Names are bytes, whatever the locale: else the library translates them, and refuses all but
     * ASCII under the locale that a program starts with. */
    if (library->archive_write_set_format_pax_restricted(packer->archive) != ARCHIVE_OK ||
        library->archive_write_set_options(packer->archive, "hdrcharset=BINARY") != ARCHIVE_OK ||
        (!packer->limits->is_plain &&
         library->archive_write_add_filter_zstd(packer->archive) != ARCHIVE_OK) ||
        library->archive_write_open_fd(packer->archive, fd) != ARCHIVE_OK)
        return library_failed(packer, error);
    return 0;
}

int archive_pack(const char *folder, int fd, const struct archive_limits *limits,
                 struct archive_summary *out_summary, struct error *error)
{
    char root[PATH_MAX];
    size_t size = strlen(folder);
    while (size > 1 && folder[size - 1] == '/')
        size--;
    if (size == 0 || size >= sizeof(root))
        return error_set(error, ERROR_INVALID, "\"%s\" is not a folder", folder);
    memcpy(root, folder, size);
    root[size] = '\0';
    __attribute__((cleanup(packer_done))) struct packer packer = {
        .limits = limits, .root_size = size == 1 && root[0] == '/' ? 1 : size + 1};
    if (open_packer(&packer, fd, error) < 0)
        return -1;
    char *const roots[] = {root, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, compare_names);
    if (!tree)
        return error_set_errno(error, errno, "read \"%s\"", folder);
    const int result = pack_tree(&packer, tree, error);
    fts_close(tree);
    if (result < 0)
        return -1;
    if (packer.library->archive_write_close(packer.archive) != ARCHIVE_OK)
        return library_failed(&packer, error);
    *out_summary = packer.summary;
    return 0;
}
