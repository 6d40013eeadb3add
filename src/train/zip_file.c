#include "train/zip_file.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum {
    END_SIZE = 22,
    END_COMMENT_MAX = 65535,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    STORED = 0,
    DEFLATED = 8,
};

static uint64_t number(struct text bytes, size_t offset, size_t size)
{
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | (uint8_t)bytes.data[offset + i];
    return value;
}

static bool has_magic(struct text bytes, uint64_t offset, size_t size, const char *magic)
{
    return offset <= bytes.size && bytes.size - offset >= size &&
           !memcmp(bytes.data + offset, magic, 4);
}

struct directory {
    uint64_t offset, count;
};

static int find_directory(struct text bytes, struct directory *out, struct error *error)
{
    if (bytes.size < END_SIZE)
        return error_set(error, ERROR_CORRUPT, "zip: %zu bytes are too few", bytes.size);
    const size_t last = bytes.size - END_SIZE;
    const size_t first = last > END_COMMENT_MAX ? last - END_COMMENT_MAX : 0;
    size_t at = last + 1;
    while (at > first && !has_magic(bytes, at - 1, END_SIZE, "PK\5\6"))
        at--;
    if (at == first)
        return error_set(error, ERROR_CORRUPT,
                         "zip: truncated at byte %zu: there is no end of a central directory",
                         bytes.size);
    const size_t end = at - 1;
    *out = (struct directory){.offset = number(bytes, end + 16, 4),
                              .count = number(bytes, end + 10, 2)};
    if (end >= LOCATOR_SIZE && has_magic(bytes, end - LOCATOR_SIZE, LOCATOR_SIZE, "PK\6\7")) {
        const uint64_t end64 = number(bytes, end - LOCATOR_SIZE + 8, 8);
        if (!has_magic(bytes, end64, END64_SIZE, "PK\6\6"))
            return error_set(error, ERROR_CORRUPT, "zip: byte %zu points to no zip64 end",
                             end - LOCATOR_SIZE + 8);
        out->offset = number(bytes, (size_t)end64 + 48, 8);
        out->count = number(bytes, (size_t)end64 + 32, 8);
    }
    if (out->count > ZIP_MEMBERS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "zip: more than %d members", ZIP_MEMBERS_MAX);
    return 0;
}

/* Sizes of 2^32 and more stand in the extra field 1, in this order, those that are needed. */
static void read_zip64(struct text extra, uint64_t *size, uint64_t *packed, uint64_t *offset)
{
    while (extra.size >= 4) {
        const size_t length = number(extra, 2, 2);
        if (length > extra.size - 4)
            return;
        struct text field = {extra.data + 4, length};
        uint64_t *const values[] = {size, packed, offset};
        for (int i = 0; number(extra, 0, 2) == 1 && i < 3; i++) {
            if (*values[i] != UINT32_MAX || field.size < 8)
                continue;
            *values[i] = number(field, 0, 8);
            field = (struct text){field.data + 8, field.size - 8};
        }
        extra = (struct text){extra.data + 4 + length, extra.size - 4 - length};
    }
}

static int find_bytes(struct text bytes, uint64_t offset, uint64_t packed, struct text *out,
                      struct error *error)
{
    if (!has_magic(bytes, offset, LOCAL_SIZE, "PK\3\4"))
        return error_set(error, ERROR_CORRUPT, "zip: no member begins at byte %llu",
                         (unsigned long long)offset);
    const uint64_t start = offset + LOCAL_SIZE + number(bytes, (size_t)offset + 26, 2) +
                           number(bytes, (size_t)offset + 28, 2);
    if (start > bytes.size || packed > bytes.size - start)
        return error_set(error, ERROR_CORRUPT,
                         "zip: truncated: the member at byte %llu ends behind the file",
                         (unsigned long long)offset);
    *out = (struct text){bytes.data + start, (size_t)packed};
    return 0;
}

static int read_entry(struct text bytes, uint64_t *at, struct zip_member *out, struct error *error)
{
    if (!has_magic(bytes, *at, ENTRY_SIZE, "PK\1\2"))
        return error_set(error, ERROR_CORRUPT, "zip: no entry of the directory at byte %llu",
                         (unsigned long long)*at);
    const size_t entry = (size_t)*at;
    const size_t name_size = number(bytes, entry + 28, 2),
                 extra_size = number(bytes, entry + 30, 2),
                 comment_size = number(bytes, entry + 32, 2);
    if (bytes.size - entry - ENTRY_SIZE < name_size + extra_size + comment_size)
        return error_set(error, ERROR_CORRUPT, "zip: truncated in the entry at byte %zu", entry);
    const uint64_t method = number(bytes, entry + 10, 2);
    uint64_t packed = number(bytes, entry + 20, 4), offset = number(bytes, entry + 42, 4);
    out->size = number(bytes, entry + 24, 4);
    read_zip64((struct text){bytes.data + entry + ENTRY_SIZE + name_size, extra_size}, &out->size,
               &packed, &offset);
    const struct text name = {bytes.data + entry + ENTRY_SIZE, name_size};
    if (text_copy(name, out->name, sizeof(out->name), error) < 0)
        return error_set(error, ERROR_INVALID, "zip: the name at byte %zu is longer than %d",
                         entry + ENTRY_SIZE, ZIP_NAME_SIZE - 1);
    text_make_plain(out->name);
    if ((method != STORED && method != DEFLATED) || number(bytes, entry + 8, 2) & 1)
        return error_set(error, ERROR_INVALID,
                         "zip: \"%s\" is encrypted or compressed in a way that is not read",
                         out->name);
    out->is_deflated = method == DEFLATED;
    *at += ENTRY_SIZE + name_size + extra_size + comment_size;
    return find_bytes(bytes, offset, packed, &out->bytes, error);
}

int zip_file_read(struct text bytes, struct zip_file *out_zip, struct error *error)
{
    struct directory directory;
    if (find_directory(bytes, &directory, error) < 0)
        return -1;
    struct zip_file zip = {.members = calloc((size_t)directory.count + 1, sizeof(*zip.members))};
    ASSERT(zip.members);
    for (; zip.count < directory.count; zip.count++)
        if (read_entry(bytes, &directory.offset, &zip.members[zip.count], error) < 0) {
            zip_file_done(&zip);
            return -1;
        }
    *out_zip = zip;
    return 0;
}

void zip_file_done(struct zip_file *zip)
{
    free(zip->members);
    *zip = (struct zip_file){0};
}

int zip_member_open(const struct zip_member *member, uint64_t size_max,
                    struct data_stream **out_stream, struct error *error)
{
    if (member->size > size_max)
        return error_set(error, ERROR_EXHAUSTED, "\"%s\" is larger than the %llu bytes allowed",
                         member->name, (unsigned long long)size_max);
    return member->is_deflated
               ? data_stream_open_deflate(member->bytes, size_max, out_stream, error)
               : data_stream_open_bytes(member->bytes, size_max, out_stream, error);
}
