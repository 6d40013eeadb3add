#include "train/safetensors.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/file.h"
#include "base/memory.h"

#include <inttypes.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats are written as they lie");

enum { PREFIX_SIZE = 8, ALIGNMENT = 8, DEPTH_MAX = 8 };

static void write_tensor(struct json_writer *writer, const struct parameter *tensor)
{
    json_key(writer, tensor->name);
    json_object_begin(writer);
    json_field_string(writer, "dtype", "F32");
    json_key(writer, "shape");
    json_array_begin(writer);
    for (uint32_t i = 0; i < tensor->rank; i++)
        json_u64(writer, tensor->shape[i]);
    json_array_end(writer);
    json_key(writer, "data_offsets");
    json_array_begin(writer);
    json_u64(writer, tensor->offset * sizeof(float));
    json_u64(writer, (tensor->offset + tensor->count) * sizeof(float));
    json_array_end(writer);
    json_object_end(writer);
}

int safetensors_write(const char *path, const struct parameter_table *table,
                      const float *parameters, const struct safetensors_metadata *metadata,
                      uint32_t metadata_count, struct error *error)
{
    struct buffer header AUTO_BUFFER;
    buffer_init(&header, SAFETENSORS_HEADER_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &header);
    json_object_begin(&writer);
    json_key(&writer, "__metadata__");
    json_object_begin(&writer);
    for (uint32_t i = 0; i < metadata_count; i++)
        json_field_string(&writer, metadata[i].key, metadata[i].value);
    json_object_end(&writer);
    for (uint32_t i = 0; i < table->count; i++)
        write_tensor(&writer, &table->items[i]);
    json_object_end(&writer);
    while (header.size % ALIGNMENT != 0)
        buffer_append_byte(&header, ' ');
    if (buffer_check(&header, error) < 0)
        return error_wrap(error, "safetensors header");

    uint8_t prefix[PREFIX_SIZE];
    for (int i = 0; i < PREFIX_SIZE; i++)
        prefix[i] = (uint8_t)((uint64_t)header.size >> (8 * i));
    const struct text parts[] = {
        {(const char *)prefix, sizeof(prefix)},
        buffer_text(&header),
        {(const char *)parameters, sizeof(float) * table->float_count},
    };
    return file_replace(path, parts, sizeof(parts) / sizeof(*parts), 0644, error);
}

static int corrupt(struct error *error, const char *name, const char *what)
{
    return error_set(error, ERROR_CORRUPT, "safetensors: tensor \"%.64s\": %s", name, what);
}

/* A natural number; json-c holds larger ones at its limits, which no size here reaches. */
static int read_natural(json_object *value, uint64_t maximum, uint64_t *out_number)
{
    if (!json_object_is_type(value, json_type_int))
        return -1;
    const int64_t number = json_object_get_int64(value);
    if (number < 0 || (uint64_t)number > maximum)
        return -1;
    *out_number = (uint64_t)number;
    return 0;
}

static int read_shape(json_object *shape, const char *name, struct parameter *tensor,
                      struct error *error)
{
    enum { RANK_MAX = sizeof(tensor->shape) / sizeof(*tensor->shape) };
    if (!json_object_is_type(shape, json_type_array))
        return corrupt(error, name, "no shape");
    const size_t rank = json_object_array_length(shape);
    if (rank > RANK_MAX)
        return error_set(error, ERROR_EXHAUSTED, "safetensors: tensor \"%.64s\": rank %zu", name,
                         rank);
    tensor->rank = (uint32_t)rank;
    tensor->count = 1;
    for (size_t i = 0; i < rank; i++) {
        uint64_t size;
        if (read_natural(json_object_array_get_idx(shape, i), UINT32_MAX, &size) < 0 || size == 0)
            return corrupt(error, name, "a size that is no number above 0");
        tensor->shape[i] = (uint32_t)size;
        /* Held to the file's maximum in every round, so the product cannot overflow. */
        tensor->count *= (size_t)size;
        if (tensor->count > SAFETENSORS_SIZE_MAX)
            return error_set(error, ERROR_EXHAUSTED, "safetensors: tensor \"%.64s\" is too large",
                             name);
    }
    return 0;
}

static int read_tensor(const char *name, json_object *value, size_t data_size,
                       struct parameter *tensor, struct error *error)
{
    if (text_copy(text_of(name), tensor->name, sizeof(tensor->name), error) < 0)
        return error_set(error, ERROR_EXHAUSTED, "safetensors: tensor name \"%.64s\" is too long",
                         name);
    json_object *dtype = NULL, *shape = NULL, *offsets = NULL;
    if (!json_object_is_type(value, json_type_object) ||
        !json_object_object_get_ex(value, "dtype", &dtype) ||
        !json_object_object_get_ex(value, "shape", &shape) ||
        !json_object_object_get_ex(value, "data_offsets", &offsets))
        return corrupt(error, name, "dtype, shape and data_offsets are needed");
    if (!json_object_is_type(dtype, json_type_string) ||
        strcmp(json_object_get_string(dtype), "F32") != 0)
        return corrupt(error, name, "only F32 is read");
    if (read_shape(shape, name, tensor, error) < 0)
        return -1;
    uint64_t begin, end;
    if (!json_object_is_type(offsets, json_type_array) || json_object_array_length(offsets) != 2 ||
        read_natural(json_object_array_get_idx(offsets, 0), data_size, &begin) < 0 ||
        read_natural(json_object_array_get_idx(offsets, 1), data_size, &end) < 0 || begin > end)
        return corrupt(error, name, "its data is not within the file");
    if (begin % sizeof(float) != 0 || end - begin != tensor->count * sizeof(float))
        return corrupt(error, name, "its data is not of its shape's size");
    tensor->offset = begin / sizeof(float);
    return 0;
}

static int read_metadata(struct safetensors *file, json_object *object, struct error *error)
{
    if (!json_object_is_type(object, json_type_object))
        return error_set(error, ERROR_CORRUPT, "safetensors: __metadata__ is no object");
    if (json_object_object_length(object) > SAFETENSORS_METADATA_MAX)
        return error_set(error, ERROR_EXHAUSTED, "safetensors: more than %d fields of metadata",
                         SAFETENSORS_METADATA_MAX);
    file->metadata = arena_alloc(file->arena, sizeof(*file->metadata) * SAFETENSORS_METADATA_MAX);
    json_object_object_foreach(object, key, value)
    {
        if (!json_object_is_type(value, json_type_string))
            return error_set(error, ERROR_CORRUPT, "safetensors: metadata \"%.64s\" is no text",
                             key);
        file->metadata[file->metadata_count++] = (struct safetensors_metadata){
            arena_copy_string(file->arena, text_of(key)),
            arena_copy_string(file->arena, text_of(json_object_get_string(value))),
        };
    }
    return 0;
}

static int compare_offsets(const void *left, const void *right)
{
    const struct parameter *a = left, *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* The format wants the tensors to fill the data without holes; then none overlap either. */
static int check_coverage(const struct safetensors *file, struct error *error)
{
    size_t end = 0;
    for (uint32_t i = 0; i < file->tensor_count; i++) {
        if (file->tensors[i].offset != end)
            return corrupt(error, file->tensors[i].name, "its data overlaps or leaves a hole");
        end += file->tensors[i].count;
    }
    if (end != file->float_count)
        return error_set(error, ERROR_CORRUPT, "safetensors: data follows after the last tensor");
    return 0;
}

static int read_header(struct safetensors *file, json_object *root, struct error *error)
{
    if (!json_object_is_type(root, json_type_object))
        return error_set(error, ERROR_CORRUPT, "safetensors: the header is no object");
    if (json_object_object_length(root) > SAFETENSORS_TENSORS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "safetensors: more than %d tensors",
                         SAFETENSORS_TENSORS_MAX);
    file->tensors = arena_alloc(file->arena, sizeof(*file->tensors) * SAFETENSORS_TENSORS_MAX);
    json_object_object_foreach(root, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            if (read_metadata(file, value, error) < 0)
                return -1;
            continue;
        }
        if (read_tensor(name, value, file->float_count * sizeof(float),
                        &file->tensors[file->tensor_count], error) < 0)
            return -1;
        file->tensor_count++;
    }
    qsort(file->tensors, file->tensor_count, sizeof(*file->tensors), compare_offsets);
    return check_coverage(file, error);
}

static int parse_header(struct safetensors *file, const uint8_t *bytes, size_t size,
                        struct error *error)
{
    json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    ASSERT(tokener != NULL);
    json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
    json_object *root = json_tokener_parse_ex(tokener, (const char *)bytes, (int)size);
    const bool is_whole = json_tokener_get_error(tokener) == json_tokener_success;
    json_tokener_free(tokener);
    const int result = is_whole
                           ? read_header(file, root, error)
                           : error_set(error, ERROR_CORRUPT, "safetensors: the header is not JSON");
    json_object_put(root);
    return result;
}

int safetensors_parse(const uint8_t *bytes, size_t size, struct safetensors **out_file,
                      struct error *error)
{
    if (size < PREFIX_SIZE)
        return error_set(error, ERROR_CORRUPT, "safetensors: %zu bytes are too few", size);
    uint64_t header_size = 0;
    for (int i = 0; i < PREFIX_SIZE; i++)
        header_size |= (uint64_t)bytes[i] << (8 * i);
    if (header_size > SAFETENSORS_HEADER_MAX)
        return error_set(error, ERROR_EXHAUSTED, "safetensors: a header of %" PRIu64 " bytes",
                         header_size);
    if (header_size > size - PREFIX_SIZE)
        return error_set(error, ERROR_CORRUPT, "safetensors: truncated in its header");
    const uint8_t *data = bytes + PREFIX_SIZE + header_size;
    const size_t data_size = size - PREFIX_SIZE - (size_t)header_size;
    if (data_size % sizeof(float) != 0)
        return error_set(error, ERROR_CORRUPT, "safetensors: %zu bytes of data are no floats",
                         data_size);
    AUTO(safetensors) struct safetensors *file = memory_zeroed(1, sizeof(*file));
    file->arena = arena_new(0);
    file->float_count = data_size / sizeof(float);
    if (parse_header(file, bytes + PREFIX_SIZE, (size_t)header_size, error) < 0)
        return -1;
    file->data = arena_alloc(file->arena, data_size);
    if (data_size > 0)
        memcpy(file->data, data, data_size);
    *out_file = TAKE(file);
    return 0;
}

int safetensors_read(const char *path, struct safetensors **out_file, struct error *error)
{
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, SAFETENSORS_SIZE_MAX);
    if (file_read(path, &buffer, error) < 0)
        return -1;
    if (safetensors_parse(buffer.data, buffer.size, out_file, error) < 0)
        return error_wrap(error, "\"%s\"", path);
    return 0;
}

void safetensors_free(struct safetensors *file)
{
    if (!file)
        return;
    arena_free(file->arena);
    free(file);
}
