/*
 * Archive: a folder as one file, and back: a tar file compressed by zstd (libarchive, loaded at
 * first use). What others packed may also be plain or by gzip, and a zip file where that is asked.
 *
 * Packing is for one's own folders. Unpacking takes what strangers packed: nothing is written
 * outside the target, through no link, and no more than the limits say. Files keep their time and
 * whether they may be executed; owners and other bits are those of who unpacks.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct archive_limits {
    uint64_t bytes_max; /* of all files together, unpacked */
    uint64_t files_max; /* folders and links counted */
    bool refuses_links; /* unpacking: files and folders alone */
    bool takes_zip;     /* unpacking: a zip file, too */
    bool is_plain;      /* packing: not compressed, so that what two have in common stays alike */
    bool skips_unfinished; /* packing: what archive_is_unfinished names */
};

struct archive_summary {
    uint64_t bytes; /* of all files together, unpacked */
    uint64_t files; /* folders and links counted */
};

/* Begins with a dot, or ends in .tmp or .part: a program is still to give it its name. */
bool archive_is_unfinished(const char *name);

/*
 * Appends the folder's files, in the order of their names, to the file behind `fd`. What a program
 * makes for itself stays at home: .git. INVALID, naming it, for what is neither file, folder nor
 * link; EXHAUSTED beyond the limits.
 */
MUST_CHECK int archive_pack(const char *folder, int fd, const struct archive_limits *limits,
                            struct archive_summary *out_summary, struct error *error);

/* CORRUPT for what does not begin as an archive does that archive_unpack takes. */
MUST_CHECK int archive_check(int fd, struct error *error);

/*
 * Unpacks the file behind `fd`, from where it stands, into this process's working folder. CORRUPT
 * for what is no such archive or names a place outside; EXHAUSTED beyond the limits. After a
 * failure a part may be there.
 */
MUST_CHECK int archive_unpack(int fd, const struct archive_limits *limits,
                              struct archive_summary *out_summary, struct error *error);
