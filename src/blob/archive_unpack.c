#include "base/assert.h"
#include "blob/archive.h"
#include "blob/archive_library_internal.h"

#include <sys/stat.h>

enum {
    READ_BYTES = 128 << 10,
    UNPACK_FLAGS = ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_UNLINK | ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                   ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS,
};

struct unpacker {
    const struct archive_library *library;
    struct archive *from, *to;
    const struct archive_limits *limits;
    struct archive_summary summary;
};

static void unpacker_done(struct unpacker *unpacker)
{
    if (unpacker->from)
        unpacker->library->archive_read_free(unpacker->from);
    if (unpacker->to)
        unpacker->library->archive_write_free(unpacker->to);
}

static int failed(const struct unpacker *unpacker, struct archive *archive, enum error_code code,
                  struct error *error)
{
    const char *words = unpacker->library->archive_error_string(archive);
    return error_set(error, code, "%s", words ? words : "the archive cannot be read");
}

static int count_bytes(struct unpacker *unpacker, uint64_t bytes, struct error *error)
{
    unpacker->summary.bytes += bytes;
    if (unpacker->summary.bytes > unpacker->limits->bytes_max)
        return error_set(error, ERROR_EXHAUSTED, "the archive holds more than %llu bytes",
                         (unsigned long long)unpacker->limits->bytes_max);
    return 0;
}

static int copy_data(struct unpacker *unpacker, struct error *error)
{
    const struct archive_library *library = unpacker->library;
    for (;;) {
        const void *bytes;
        size_t size;
        la_int64_t offset;
        const int result = library->archive_read_data_block(unpacker->from, &bytes, &size, &offset);
        if (result == ARCHIVE_EOF)
            return 0;
        if (result != ARCHIVE_OK)
            return failed(unpacker, unpacker->from, ERROR_CORRUPT, error);
        if (count_bytes(unpacker, size, error) < 0)
            return -1;
        if (library->archive_write_data_block(unpacker->to, bytes, size, offset) != ARCHIVE_OK)
            return failed(unpacker, unpacker->to, ERROR_EXHAUSTED, error);
    }
}

static int unpack_item(struct unpacker *unpacker, struct archive_entry *entry, struct error *error)
{
    const struct archive_library *library = unpacker->library;
    const mode_t kind = library->archive_entry_filetype(entry);
    if (++unpacker->summary.files > unpacker->limits->files_max)
        return error_set(error, ERROR_EXHAUSTED, "the archive holds more than %llu files",
                         (unsigned long long)unpacker->limits->files_max);
    if (library->archive_entry_hardlink(entry) ||
        (!S_ISREG(kind) && !S_ISDIR(kind) && !S_ISLNK(kind)))
        return error_set(error, ERROR_CORRUPT, "it is neither a file, a folder nor a link");
    if (S_ISLNK(kind) && unpacker->limits->refuses_links)
        return error_set(error, ERROR_CORRUPT, "it is a link, and only files and folders are read");
    /* What is sparse takes its whole size from the limit. */
    const la_int64_t size = library->archive_entry_size(entry);
    if (size < 0 || (uint64_t)size > unpacker->limits->bytes_max - unpacker->summary.bytes)
        return error_set(error, ERROR_EXHAUSTED, "the archive holds more than %llu bytes",
                         (unsigned long long)unpacker->limits->bytes_max);
    if (library->archive_write_header(unpacker->to, entry) != ARCHIVE_OK)
        return failed(unpacker, unpacker->to, ERROR_CORRUPT, error);
    if (S_ISREG(kind) && copy_data(unpacker, error) < 0)
        return -1;
    if (library->archive_write_finish_entry(unpacker->to) < ARCHIVE_WARN)
        return failed(unpacker, unpacker->to, ERROR_EXHAUSTED, error);
    return 0;
}

static int open_unpacker(struct unpacker *unpacker, int fd, struct error *error)
{
    if (archive_library_load(&unpacker->library, error) < 0)
        return -1;
    const struct archive_library *library = unpacker->library;
    unpacker->from = library->archive_read_new();
    unpacker->to = library->archive_write_disk_new();
    ASSERT(unpacker->from && unpacker->to);
    if (library->archive_write_disk_set_options(unpacker->to, UNPACK_FLAGS) != ARCHIVE_OK)
        return failed(unpacker, unpacker->to, ERROR_UNAVAILABLE, error);
    if (library->archive_read_support_filter_gzip(unpacker->from) != ARCHIVE_OK ||
        library->archive_read_support_filter_zstd(unpacker->from) != ARCHIVE_OK ||
        library->archive_read_support_format_tar(unpacker->from) != ARCHIVE_OK ||
        (unpacker->limits->takes_zip &&
         library->archive_read_support_format_zip(unpacker->from) != ARCHIVE_OK) ||
        library->archive_read_open_fd(unpacker->from, fd, READ_BYTES) != ARCHIVE_OK)
        return failed(unpacker, unpacker->from, ERROR_CORRUPT, error);
    return 0;
}

int archive_unpack(int fd, const struct archive_limits *limits, struct archive_summary *out_summary,
                   struct error *error)
{
    __attribute__((cleanup(unpacker_done))) struct unpacker unpacker = {.limits = limits};
    if (open_unpacker(&unpacker, fd, error) < 0)
        return -1;
    for (;;) {
        struct archive_entry *entry;
        const int result = unpacker.library->archive_read_next_header(unpacker.from, &entry);
        if (result == ARCHIVE_EOF)
            break;
        if (result != ARCHIVE_OK)
            return failed(&unpacker, unpacker.from, ERROR_CORRUPT, error);
        if (unpack_item(&unpacker, entry, error) < 0) {
            const char *path = unpacker.library->archive_entry_pathname(entry);
            return error_wrap(error, "\"%.100s\"", path ? path : "?");
        }
    }
    /* Times of folders are set last. */
    if (unpacker.library->archive_write_close(unpacker.to) < ARCHIVE_WARN)
        return failed(&unpacker, unpacker.to, ERROR_EXHAUSTED, error);
    *out_summary = unpacker.summary;
    return 0;
}

int archive_check(int fd, struct error *error)
{
    const struct archive_limits limits = {0};
    __attribute__((cleanup(unpacker_done))) struct unpacker unpacker = {.limits = &limits};
    struct archive_entry *entry;
    if (open_unpacker(&unpacker, fd, error) < 0)
        return -1;
    const int result = unpacker.library->archive_read_next_header(unpacker.from, &entry);
    return result == ARCHIVE_OK || result == ARCHIVE_EOF
               ? 0
               : failed(&unpacker, unpacker.from, ERROR_CORRUPT, error);
}
