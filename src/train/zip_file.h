/*
 * Zip file: where its members lie, from the central directory (APPNOTE 6.3.9, sections 4.3 and
 * 4.5.3), stored or deflated, also zip64. Nothing is taken from memory that the file does not have.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "train/data_stream.h"

#include <stdint.h>

enum { ZIP_MEMBERS_MAX = 256, ZIP_NAME_SIZE = 128 };

struct zip_member {
    char name[ZIP_NAME_SIZE];
    struct text bytes; /* as they lie in the file */
    uint64_t size;     /* decompressed */
    bool is_deflated;
};

struct zip_file {
    struct zip_member *members;
    size_t count;
};

/* `bytes` must stay. CORRUPT, with the byte, when it is damaged; INVALID for encryption or another
 * way to compress. The caller calls zip_file_done. */
MUST_CHECK int zip_file_read(struct text bytes, struct zip_file *out_zip, struct error *error);
void zip_file_done(struct zip_file *zip);

MUST_CHECK int zip_member_open(const struct zip_member *member, uint64_t size_max,
                               struct data_stream **out_stream, struct error *error);
