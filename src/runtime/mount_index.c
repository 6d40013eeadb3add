#include "runtime/mount_index.h"

#include "base/assert.h"
#include "runtime/native.h"
#include "wire/wire.h"

#include <string.h>

enum { VERSION = 1, FILE_SIZE_MIN = 4 + 1 + 8 + 1 };
static const char magic[8] = {'s', 'o', 'u', 'k', 'm', 'n', 't', '1'};

static bool is_name(struct text name)
{
    if (!name.size || name.size > 255 || text_is(name, ".") || text_is(name, ".."))
        return false;
    for (size_t i = 0; i < name.size; i++)
        if ((unsigned char)name.data[i] < ' ' || name.data[i] == 0x7f)
            return false;
    return true;
}

bool mount_path_is_fine(struct text path)
{
    struct text name, rest = path;
    int depth = 0;
    if (path.size > MOUNT_PATH_SIZE_MAX || !text_is_utf8(path))
        return false;
    for (bool has_more = true; has_more;) {
        has_more = text_cut(rest, '/', &name, &rest);
        if (!is_name(name) || ++depth > MOUNT_DEPTH_MAX)
            return false;
    }
    return true;
}

void mount_header_write(uint64_t index_size, uint8_t out[MOUNT_HEADER_SIZE])
{
    memcpy(out, magic, sizeof(magic));
    for (int i = 0; i < 8; i++)
        out[8 + i] = (uint8_t)(index_size >> (8 * i));
}

int mount_header_read(const uint8_t *header, size_t size, uint64_t *out_index_size,
                      struct error *error)
{
    uint64_t index_size = 0;
    if (size != MOUNT_HEADER_SIZE || memcmp(header, magic, sizeof(magic)) != 0)
        return error_set(error, ERROR_CORRUPT, "not the files of a mount");
    for (int i = 0; i < 8; i++)
        index_size |= (uint64_t)header[8 + i] << (8 * i);
    if (index_size == 0 || index_size > MOUNT_INDEX_SIZE_MAX)
        return error_set(error, ERROR_CORRUPT, "the index of a mount is too long");
    *out_index_size = index_size;
    return 0;
}

/* Paths are in order: a folder that the file before is not in is one more. */
uint32_t mount_index_folders(const struct mount_index *index, const struct mount_part *part)
{
    uint32_t count = 0;
    struct text before = {0};
    for (uint32_t i = 0; i < part->file_count; i++) {
        const struct text path = index->files[part->first_file + i].path;
        size_t same = 0;
        while (same < path.size && same < before.size && path.data[same] == before.data[same])
            same++;
        for (size_t k = same; k < path.size; k++)
            count += path.data[k] == '/';
        before = path;
    }
    return count;
}

static bool has_too_many_folders(const struct mount_index *index)
{
    const struct mount_part whole = {.file_count = index->file_count};
    return mount_index_folders(index, &whole) > MOUNT_FOLDERS_MAX;
}

int mount_index_encode(const struct mount_index *index, struct buffer *bytes, struct error *error)
{
    const size_t before = bytes->size;
    ASSERT(index->file_count <= MOUNT_FILES_MAX && index->cut_count <= MOUNT_CUTS_MAX);
    if (has_too_many_folders(index))
        return error_set(error, ERROR_EXHAUSTED, "more than %d folders", MOUNT_FOLDERS_MAX);
    wire_put_u8(bytes, VERSION);
    wire_put_bool(bytes, index->is_single);
    wire_put_u32(bytes, index->file_count);
    for (uint32_t i = 0; i < index->file_count; i++) {
        wire_put_text(bytes, index->files[i].path);
        wire_put_u64(bytes, index->files[i].size_bytes);
        wire_put_bool(bytes, index->files[i].is_program);
    }
    wire_put_u32(bytes, index->cut_count);
    for (uint32_t i = 0; i < index->cut_count; i++)
        wire_put_u64(bytes, index->cuts[i]);
    if (bytes->is_overflowed || bytes->size - before > MOUNT_INDEX_SIZE_MAX)
        return error_set(error, ERROR_EXHAUSTED, "too many files with names this long");
    return 0;
}

/* By bytes; a file is not also a folder of others. */
static bool comes_after(struct text path, struct text before)
{
    const size_t size = path.size < before.size ? path.size : before.size;
    const int order = memcmp(path.data, before.data, size);
    if (order == 0 && path.size > before.size && path.data[before.size] == '/')
        return false;
    return order > 0 || (order == 0 && path.size > before.size);
}

static void check_files(struct wire_reader *reader, const struct mount_index *index)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < index->file_count && !wire_reader_is_failed(reader); i++) {
        const struct mount_file *file = &index->files[i];
        if (!mount_path_is_fine(file->path))
            wire_reader_fail(reader, "a path that leads elsewhere");
        else if (i > 0 && !comes_after(file->path, index->files[i - 1].path))
            wire_reader_fail(reader, "paths are not in order");
        if (__builtin_add_overflow(all, file->size_bytes, &all) || all > INT64_MAX)
            wire_reader_fail(reader, "files are too large");
    }
    if (index->is_single && (index->file_count != 1 ||
                             memchr(index->files[0].path.data, '/', index->files[0].path.size)))
        wire_reader_fail(reader, "not one file");
    if (has_too_many_folders(index))
        wire_reader_fail(reader, "too many folders");
}

static void check_cuts(struct wire_reader *reader, const struct mount_index *index)
{
    if (index->cut_count > 0 && (!index->is_single || index->cuts[0] != 0))
        wire_reader_fail(reader, "cuts of no single file");
    for (uint32_t i = 0; i < index->cut_count && !wire_reader_is_failed(reader); i++)
        if ((i > 0 && index->cuts[i] <= index->cuts[i - 1]) ||
            index->cuts[i] >= index->files[0].size_bytes)
            wire_reader_fail(reader, "cuts are not in order");
}

int mount_index_decode(struct arena *arena, struct text bytes, struct mount_index *out_index,
                       struct error *error)
{
    struct wire_reader reader;
    struct mount_index index = {0};
    wire_reader_init(&reader, bytes);
    if (wire_get_u8(&reader) != VERSION)
        wire_reader_fail(&reader, "of another version");
    index.is_single = wire_get_bool(&reader);
    index.file_count = wire_get_count(&reader, MOUNT_FILES_MAX, FILE_SIZE_MIN);
    index.files = arena_alloc(arena, (index.file_count + 1) * sizeof(*index.files));
    for (uint32_t i = 0; i < index.file_count; i++)
        index.files[i] = (struct mount_file){.path = wire_get_text(&reader, MOUNT_PATH_SIZE_MAX),
                                             .size_bytes = wire_get_u64(&reader),
                                             .is_program = wire_get_bool(&reader)};
    index.cut_count = wire_get_count(&reader, MOUNT_CUTS_MAX, sizeof(uint64_t));
    index.cuts = arena_alloc(arena, (index.cut_count + 1) * sizeof(*index.cuts));
    for (uint32_t i = 0; i < index.cut_count; i++)
        index.cuts[i] = wire_get_u64(&reader);
    if (!wire_reader_is_failed(&reader))
        check_files(&reader, &index);
    if (!wire_reader_is_failed(&reader))
        check_cuts(&reader, &index);
    if (wire_reader_finish(&reader, "the index of a mount", error) < 0)
        return -1;
    *out_index = index;
    return 0;
}

uint64_t mount_index_bytes(const struct mount_index *index)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < index->file_count; i++)
        all += index->files[i].size_bytes;
    return all;
}

static struct mount_part part_of_lines(const struct mount_index *index, uint64_t rank,
                                       uint64_t world)
{
    uint64_t first, count;
    native_shard(index->cut_count, rank, world, &first, &count);
    const uint64_t size = index->files[0].size_bytes;
    const uint64_t begin = first < index->cut_count ? index->cuts[first] : size;
    const uint64_t end = first + count < index->cut_count ? index->cuts[first + count] : size;
    return (struct mount_part){.file_count = 1, .offset_bytes = begin, .size_bytes = end - begin};
}

uint64_t mount_index_part_count(const struct mount_index *index)
{
    return index->is_single ? index->cut_count : index->file_count;
}

struct mount_part mount_index_part(const struct mount_index *index, uint64_t rank, uint64_t world)
{
    ASSERT(world > 0);
    if (index->cut_count > 0 && world > 1)
        return part_of_lines(index, rank, world);
    uint64_t first, count;
    native_shard(index->file_count, rank, world, &first, &count);
    struct mount_part part = {.first_file = (uint32_t)first, .file_count = (uint32_t)count};
    for (uint64_t i = 0; i < first + count; i++)
        *(i < first ? &part.offset_bytes : &part.size_bytes) += index->files[i].size_bytes;
    return part;
}
