#include "base/json_schema.h"

#include "base/assert.h"

#include <inttypes.h>
#include <json.h>
#include <stdarg.h>
#include <string.h>

enum { DEPTH_MAX = 16, TEXT_MAX_DEFAULT = 256, ARRAY_MAX_DEFAULT = 1000, ANY_MAX_DEFAULT = 65536 };

/* Where in the document we are, as a chain on the stack, so that messages can name it. */
struct place {
    const struct place *outer;
    const char *name;
    size_t index; /* used when name is NULL */
};

static int place_format(const struct place *place, char *out, size_t size)
{
    if (!place)
        return 0;
    int used = place_format(place->outer, out, size);
    if (used < 0 || (size_t)used >= size)
        return used;
    if (place->name)
        used += snprintf(out + used, size - (size_t)used, "%s%s", used ? "." : "", place->name);
    else
        used += snprintf(out + used, size - (size_t)used, "[%zu]", place->index);
    return used;
}

__attribute__((format(printf, 3, 4))) static int
refuse(struct error *error, const struct place *place, const char *format, ...)
{
    char where[128] = "";
    place_format(place, where, sizeof(where));
    char what[128];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return error_set(error, ERROR_INVALID, "%s: %s", where, what);
}

struct reader {
    struct arena *arena;
    struct error *error;
};

static int read_object(struct reader *reader, json_object *object, const struct json_schema *schema,
                       const struct place *place, char *out);

static size_t limit(const struct json_field *field, size_t otherwise)
{
    return field->size_max ? field->size_max : otherwise;
}

static int read_text(struct reader *reader, json_object *value, const struct json_field *field,
                     const struct place *place, void *target)
{
    if (!json_object_is_type(value, json_type_string))
        return refuse(reader->error, place, "text expected");
    const struct text text = {json_object_get_string(value),
                              (size_t)json_object_get_string_len(value)};
    if (field->kind == JSON_HEX) {
        if (text_hex_decode(text, target, field->size_max, reader->error) < 0)
            return refuse(reader->error, place, "%zu lower-case hex digits expected",
                          2 * field->size_max);
        return 0;
    }
    if (field->kind == JSON_CHARS) {
        if (text_copy(text, target, field->size_max, reader->error) < 0)
            return refuse(reader->error, place, "at most %zu bytes of text, none of them zero",
                          field->size_max - 1);
        return 0;
    }
    if (text.size > limit(field, TEXT_MAX_DEFAULT))
        return refuse(reader->error, place, "longer than %zu bytes",
                      limit(field, TEXT_MAX_DEFAULT));
    *(struct text *)target = arena_copy_text(reader->arena, text);
    return 0;
}

static int read_choice(struct reader *reader, json_object *value, const struct json_field *field,
                       const struct place *place, int *target)
{
    if (!json_object_is_type(value, json_type_string))
        return refuse(reader->error, place, "text expected");
    const char *text = json_object_get_string(value);
    char allowed[96] = "";
    size_t used = 0;
    for (int i = 0; field->choices[i]; i++) {
        if (!strcmp(field->choices[i], text)) {
            *target = i;
            return 0;
        }
        const int added = snprintf(allowed + used, sizeof(allowed) - used, "%s%s", i ? ", " : "",
                                   field->choices[i]);
        if (added > 0 && used + (size_t)added < sizeof(allowed))
            used += (size_t)added;
    }
    return refuse(reader->error, place, "not one of %s", allowed);
}

static int read_integer(struct reader *reader, json_object *value, const struct json_field *field,
                        const struct place *place, void *target)
{
    if (!json_object_is_type(value, json_type_int))
        return refuse(reader->error, place, "whole number expected");
    const int64_t number = json_object_get_int64(value);
    const bool has_range = field->minimum != field->maximum;
    if (field->kind == JSON_U64) {
        const uint64_t natural = json_object_get_uint64(value);
        if (number < 0 || (has_range && (natural < (uint64_t)field->minimum ||
                                         natural > (uint64_t)field->maximum)))
            return refuse(reader->error, place, "out of range");
        /* json-c clamps what does not fit: the clamped values are refused with their neighbours. */
        if (natural == UINT64_MAX)
            return refuse(reader->error, place, "too large");
        *(uint64_t *)target = natural;
        return 0;
    }
    if (number == INT64_MAX || number == INT64_MIN)
        return refuse(reader->error, place, "too large");
    if (has_range && (number < field->minimum || number > field->maximum))
        return refuse(reader->error, place, "must be from %" PRId64 " to %" PRId64, field->minimum,
                      field->maximum);
    *(int64_t *)target = number;
    return 0;
}

static int read_array(struct reader *reader, json_object *value, const struct json_field *field,
                      const struct place *place, struct json_array *target)
{
    if (!json_object_is_type(value, json_type_array))
        return refuse(reader->error, place, "list expected");
    const size_t count = json_object_array_length(value);
    if (count > limit(field, ARRAY_MAX_DEFAULT))
        return refuse(reader->error, place, "more than %zu items", limit(field, ARRAY_MAX_DEFAULT));
    char *items = arena_alloc(reader->arena, count * field->schema->struct_size);
    for (size_t i = 0; i < count; i++) {
        const struct place inner = {place, NULL, i};
        if (read_object(reader, json_object_array_get_idx(value, i), field->schema, &inner,
                        items + i * field->schema->struct_size) < 0)
            return -1;
    }
    *target = (struct json_array){items, count};
    return 0;
}

static int read_list(struct reader *reader, json_object *value, const struct json_field *field,
                     const struct place *place, void *target)
{
    if (!json_object_is_type(value, json_type_array))
        return refuse(reader->error, place, "list expected");
    const size_t count = json_object_array_length(value);
    if (count > field->size_max)
        return refuse(reader->error, place, "more than %zu items", field->size_max);
    char *items = (char *)target + sizeof(int64_t);
    for (size_t i = 0; i < count; i++) {
        const struct place inner = {place, NULL, i};
        if (read_object(reader, json_object_array_get_idx(value, i), field->schema, &inner,
                        items + i * field->schema->struct_size) < 0)
            return -1;
    }
    *(int64_t *)target = (int64_t)count;
    return 0;
}

static int read_texts(struct reader *reader, json_object *value, const struct json_field *field,
                      const struct place *place, struct json_array *target)
{
    if (!json_object_is_type(value, json_type_array))
        return refuse(reader->error, place, "list expected");
    const size_t count = json_object_array_length(value);
    if (count > limit(field, ARRAY_MAX_DEFAULT))
        return refuse(reader->error, place, "more than %zu items", limit(field, ARRAY_MAX_DEFAULT));
    struct text *items = arena_alloc(reader->arena, count * sizeof(*items));
    const struct json_field item = {.kind = JSON_TEXT, .size_max = (size_t)field->maximum};
    for (size_t i = 0; i < count; i++) {
        const struct place inner = {place, NULL, i};
        if (read_text(reader, json_object_array_get_idx(value, i), &item, &inner, &items[i]) < 0)
            return -1;
    }
    *target = (struct json_array){items, count};
    return 0;
}

static int read_any(struct reader *reader, json_object *value, const struct json_field *field,
                    const struct place *place, struct text *target)
{
    size_t size;
    const char *json = json_object_to_json_string_length(value, JSON_C_TO_STRING_PLAIN, &size);
    if (size > limit(field, ANY_MAX_DEFAULT))
        return refuse(reader->error, place, "longer than %zu bytes", limit(field, ANY_MAX_DEFAULT));
    *target = arena_copy_text(reader->arena, (struct text){json, size});
    return 0;
}

static int read_value(struct reader *reader, json_object *value, const struct json_field *field,
                      const struct place *place, void *target)
{
    switch (field->kind) {
    case JSON_BOOL:
        if (!json_object_is_type(value, json_type_boolean))
            return refuse(reader->error, place, "true or false expected");
        *(bool *)target = json_object_get_boolean(value);
        return 0;
    case JSON_I64:
    case JSON_U64:
        return read_integer(reader, value, field, place, target);
    case JSON_DOUBLE:
        if (!json_object_is_type(value, json_type_double) &&
            !json_object_is_type(value, json_type_int))
            return refuse(reader->error, place, "number expected");
        *(double *)target = json_object_get_double(value);
        return 0;
    case JSON_TEXT:
    case JSON_CHARS:
    case JSON_HEX:
        return read_text(reader, value, field, place, target);
    case JSON_CHOICE:
        return read_choice(reader, value, field, place, target);
    case JSON_OBJECT:
        return read_object(reader, value, field->schema, place, target);
    case JSON_ARRAY:
        return read_array(reader, value, field, place, target);
    case JSON_LIST:
        return read_list(reader, value, field, place, target);
    case JSON_TEXTS:
        return read_texts(reader, value, field, place, target);
    case JSON_ANY:
        return read_any(reader, value, field, place, target);
    }
    UNREACHABLE("a kind of field without a reader");
}

static const struct json_field *find_field(const struct json_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->field_count; i++)
        if (!strcmp(schema->fields[i].name, name))
            return &schema->fields[i];
    return NULL;
}

static int read_object(struct reader *reader, json_object *object, const struct json_schema *schema,
                       const struct place *place, char *out)
{
    if (!json_object_is_type(object, json_type_object))
        return refuse(reader->error, place, "object expected");
    json_object_object_foreach(object, key, value)
    {
        const struct json_field *field = find_field(schema, key);
        const struct place inner = {place, field ? field->name : key, 0};
        if (schema->is_lenient && (!field || !value))
            continue;
        if (!field)
            return refuse(reader->error, &inner, "unknown field");
        if (read_value(reader, value, field, &inner, out + field->offset) < 0)
            return -1;
    }
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct json_field *field = &schema->fields[i];
        const struct place inner = {place, field->name, 0};
        if (field->is_required && !json_object_object_get_ex(object, field->name, NULL))
            return refuse(reader->error, &inner, "missing");
    }
    return 0;
}

static int parse(struct text json, json_object **out_root, struct error *error)
{
    json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    ASSERT(tokener);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    if (json.size > INT32_MAX) {
        json_tokener_free(tokener);
        return error_set(error, ERROR_INVALID, "JSON of %zu bytes is too long", json.size);
    }
    *out_root = json_tokener_parse_ex(tokener, json.data, (int)json.size);
    enum json_tokener_error failure = json_tokener_get_error(tokener);
    const size_t end = json_tokener_get_parse_end(tokener);
    /* A bare number is only complete once its end is seen. */
    if (failure == json_tokener_continue && !*out_root) {
        *out_root = json_tokener_parse_ex(tokener, "", 1);
        failure = json_tokener_get_error(tokener);
    }
    json_tokener_free(tokener);
    if (failure == json_tokener_continue || failure == json_tokener_error_parse_eof)
        return error_set(error, ERROR_INVALID, "JSON ends too early, at byte %zu", end);
    if (failure != json_tokener_success) {
        json_object_put(*out_root);
        return error_set(error, ERROR_INVALID, "JSON is wrong at byte %zu: %s", end,
                         json_tokener_error_desc(failure));
    }
    return 0;
}

/* Depth is bounded by the tokener. */
static size_t count_members(json_object *value)
{
    size_t count = 0;
    if (json_object_is_type(value, json_type_array))
        for (size_t i = 0; i < json_object_array_length(value); i++)
            count += count_members(json_object_array_get_idx(value, i));
    if (!json_object_is_type(value, json_type_object))
        return count;
    json_object_object_foreach(value, key, member)
    {
        (void)key;
        count += 1 + count_members(member);
    }
    return count;
}

/* The tree keeps the last value of a key given twice; which one was meant nobody can tell. */
static int check_keys(struct text json, json_object *root, const struct place *place,
                      struct error *error)
{
    struct text repeated;
    if (json_count_keys(json, &repeated) == count_members(root))
        return 0;
    char key[64];
    snprintf(key, sizeof(key), "%.*s", (int)repeated.size, repeated.data);
    const struct place inner = {place, key, 0};
    return refuse(error, repeated.size ? &inner : place, "there twice");
}

int json_read(struct arena *arena, struct text json, const struct json_schema *schema, void *out,
              struct error *error)
{
    json_object *root = NULL;
    if (parse(json, &root, error) < 0)
        return error_wrap(error, "%s", schema->name);
    struct reader reader = {arena, error};
    const struct place place = {NULL, schema->name, 0};
    int result = check_keys(json, root, &place, error);
    if (result == 0)
        result = read_object(&reader, root, schema, &place, out);
    json_object_put(root);
    return result;
}

static void write_items(struct json_writer *writer, const struct json_schema *schema,
                        const char *items, size_t count)
{
    json_array_begin(writer);
    for (size_t i = 0; i < count; i++)
        json_write(writer, schema, items + i * schema->struct_size);
    json_array_end(writer);
}

static void write_value(struct json_writer *writer, const struct json_field *field,
                        const void *source)
{
    switch (field->kind) {
    case JSON_BOOL:
        json_boolean(writer, *(const bool *)source);
        return;
    case JSON_I64:
        json_i64(writer, *(const int64_t *)source);
        return;
    case JSON_U64:
        json_u64(writer, *(const uint64_t *)source);
        return;
    case JSON_DOUBLE:
        json_double(writer, *(const double *)source);
        return;
    case JSON_TEXT:
        json_text(writer, *(const struct text *)source);
        return;
    case JSON_CHARS:
        json_string(writer, source);
        return;
    case JSON_HEX: {
        char hex[2 * 128 + 1];
        ASSERT(field->size_max <= 128);
        text_hex_encode(source, field->size_max, hex);
        json_string(writer, hex);
        return;
    }
    case JSON_CHOICE:
        json_string(writer, field->choices[*(const int *)source]);
        return;
    case JSON_OBJECT:
        json_write(writer, field->schema, source);
        return;
    case JSON_ARRAY: {
        const struct json_array *array = source;
        write_items(writer, field->schema, array->items, array->count);
        return;
    }
    case JSON_LIST:
        write_items(writer, field->schema, (const char *)source + sizeof(int64_t),
                    (size_t)(*(const int64_t *)source));
        return;
    case JSON_TEXTS: {
        const struct json_array *array = source;
        json_array_begin(writer);
        for (size_t i = 0; i < array->count; i++)
            json_text(writer, ((const struct text *)array->items)[i]);
        json_array_end(writer);
        return;
    }
    case JSON_ANY: {
        const struct text *raw = source;
        json_raw(writer, raw->size ? *raw : TEXT("null"));
        return;
    }
    }
}

static bool is_left_out(const struct json_field *field, const void *source)
{
    if (!field->is_zero_omitted)
        return false;
    ASSERT(!field->is_required);
    if (field->kind == JSON_BOOL)
        return !*(const bool *)source;
    if (field->kind == JSON_DOUBLE)
        return *(const double *)source == 0;
    if (field->kind == JSON_TEXT)
        return ((const struct text *)source)->size == 0;
    ASSERT(field->kind == JSON_I64 || field->kind == JSON_U64);
    return *(const int64_t *)source == 0;
}

void json_write(struct json_writer *writer, const struct json_schema *schema, const void *value)
{
    json_object_begin(writer);
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct json_field *field = &schema->fields[i];
        const char *source = (const char *)value + field->offset;
        if (is_left_out(field, source))
            continue;
        if (field->key.size)
            json_written_key(writer, field->key);
        else
            json_key(writer, field->name);
        write_value(writer, field, source);
    }
    json_object_end(writer);
}
