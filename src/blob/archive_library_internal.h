/* Archive library: libarchive, loaded at first use: it brings a dozen others. */
#pragma once

#include "base/error.h"

#include <archive.h>
#include <archive_entry.h>

#define ARCHIVE_FUNCTIONS(X)                                                                       \
    X(archive_error_string)                                                                        \
    X(archive_entry_new)                                                                           \
    X(archive_entry_clear)                                                                         \
    X(archive_entry_free)                                                                          \
    X(archive_entry_copy_stat)                                                                     \
    X(archive_entry_filetype)                                                                      \
    X(archive_entry_pathname)                                                                      \
    X(archive_entry_hardlink)                                                                      \
    X(archive_entry_mtime)                                                                         \
    X(archive_entry_perm)                                                                          \
    X(archive_entry_symlink)                                                                       \
    X(archive_entry_size)                                                                          \
    X(archive_entry_set_gid)                                                                       \
    X(archive_entry_set_pathname)                                                                  \
    X(archive_entry_set_symlink)                                                                   \
    X(archive_entry_set_uid)                                                                       \
    X(archive_read_data_block)                                                                     \
    X(archive_read_free)                                                                           \
    X(archive_read_new)                                                                            \
    X(archive_read_next_header)                                                                    \
    X(archive_read_open_fd)                                                                        \
    X(archive_read_support_filter_gzip)                                                            \
    X(archive_read_support_filter_zstd)                                                            \
    X(archive_read_support_format_tar)                                                             \
    X(archive_read_support_format_zip)                                                             \
    X(archive_write_add_filter_zstd)                                                               \
    X(archive_write_close)                                                                         \
    X(archive_write_data)                                                                          \
    X(archive_write_data_block)                                                                    \
    X(archive_write_disk_new)                                                                      \
    X(archive_write_disk_set_options)                                                              \
    X(archive_write_finish_entry)                                                                  \
    X(archive_write_free)                                                                          \
    X(archive_write_header)                                                                        \
    X(archive_write_new)                                                                           \
    X(archive_write_open_fd)                                                                       \
    X(archive_write_set_format_pax_restricted)                                                     \
    X(archive_write_set_options)

struct archive_library {
#define X(name) __typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses) */
    ARCHIVE_FUNCTIONS(X)
#undef X
};

/* Loaded once for the process and never released. */
MUST_CHECK int archive_library_load(const struct archive_library **out_library,
                                    struct error *error);
