/*
 * Reads what json_write wrote without building a tree: every field in table order, no spaces, no
 * escapes. Each function says false at the first byte that is otherwise.
 */
#include "base/json_schema.h"

#include <stdlib.h>
#include <string.h>

struct cursor {
    struct arena *arena;
    const char *at;
    const char *end;
};

static inline bool skip(struct cursor *cursor, const char *expected, size_t size)
{
    if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, expected, size) != 0)
        return false;
    cursor->at += size;
    return true;
}

static inline bool skip_byte(struct cursor *cursor, char expected)
{
    if (cursor->at == cursor->end || *cursor->at != expected)
        return false;
    cursor->at++;
    return true;
}

/* Digits without a zero in front; false when they do not fit. */
static bool read_digits(struct cursor *cursor, uint64_t *out_value)
{
    const char *start = cursor->at;
    uint64_t value = 0;
    while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
        const uint64_t digit = (uint64_t)(*cursor->at++ - '0');
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out_value = value;
    const size_t count = (size_t)(cursor->at - start);
    return count == 1 || (count > 1 && *start != '0');
}

static bool has_range(const struct json_field *field)
{
    return field->minimum != field->maximum;
}

static bool read_u64(struct cursor *cursor, const struct json_field *field, uint64_t *target)
{
    uint64_t value;
    if (!read_digits(cursor, &value) || value > INT64_MAX)
        return false;
    if (has_range(field) && (value < (uint64_t)field->minimum || value > (uint64_t)field->maximum))
        return false;
    *target = value;
    return true;
}

static bool read_i64(struct cursor *cursor, const struct json_field *field, int64_t *target)
{
    const bool is_negative = skip_byte(cursor, '-');
    uint64_t size;
    if (!read_digits(cursor, &size) || size >= INT64_MAX || (is_negative && size == 0))
        return false;
    const int64_t value = is_negative ? -(int64_t)size : (int64_t)size;
    if (has_range(field) && (value < field->minimum || value > field->maximum))
        return false;
    *target = value;
    return true;
}

/* The bytes between two quotes, if none of them is escaped. */
static bool read_plain(struct cursor *cursor, struct text *out_text)
{
    if (!skip_byte(cursor, '"'))
        return false;
    const char *start = cursor->at;
    bool is_ascii = true;
    for (; cursor->at < cursor->end && *cursor->at != '"'; cursor->at++) {
        const unsigned char byte = (unsigned char)*cursor->at;
        if (byte < 0x20 || byte == '\\')
            return false;
        is_ascii = is_ascii && byte < 0x80;
    }
    *out_text = (struct text){start, (size_t)(cursor->at - start)};
    return skip_byte(cursor, '"') && (is_ascii || text_is_utf8(*out_text));
}

static bool read_text(struct cursor *cursor, const struct json_field *field, void *target)
{
    struct error ignored;
    struct text text;
    if (!read_plain(cursor, &text))
        return false;
    if (field->kind == JSON_HEX)
        return text_hex_decode(text, target, field->size_max, &ignored) == 0;
    if (field->kind == JSON_CHARS)
        return text_copy(text, target, field->size_max, &ignored) == 0;
    if (text.size > (field->size_max ? field->size_max : 256))
        return false;
    *(struct text *)target = arena_copy_text(cursor->arena, text);
    return true;
}

static bool read_choice(struct cursor *cursor, const struct json_field *field, int *target)
{
    struct text text;
    if (!read_plain(cursor, &text))
        return false;
    for (int i = 0; field->choices[i]; i++)
        if (text_is(text, field->choices[i])) {
            *target = i;
            return true;
        }
    return false;
}

static bool read_bool(struct cursor *cursor, bool *target)
{
    *target = skip(cursor, "true", 4);
    return *target || skip(cursor, "false", 5);
}

/* Sign, digits and a fraction, at most DIGITS_MAX of them: as json_double writes all but the very
 * large and the very small. */
static bool read_double(struct cursor *cursor, double *target)
{
    enum { DIGITS_MAX = 17 };
    char digits[DIGITS_MAX + 3];
    size_t size = 0, digit_count = 0, point = 0;
    const char *at = cursor->at;
    if (at < cursor->end && *at == '-')
        digits[size++] = *at++;
    const char *first = at;
    for (; at < cursor->end && ((*at >= '0' && *at <= '9') || (*at == '.' && !point)); at++) {
        if (*at == '.')
            point = digit_count;
        else if (digit_count++ == DIGITS_MAX)
            return false;
        if (*at == '.' && !point)
            return false;
        digits[size++] = *at;
    }
    const bool has_leading_zero = digit_count > 1 && *first == '0' && point != 1;
    if (!digit_count || point == digit_count || has_leading_zero ||
        (at < cursor->end && (*at == 'e' || *at == 'E' || *at == '.')))
        return false;
    digits[size] = '\0';
    *target = strtod(digits, NULL);
    cursor->at = at;
    return true;
}

static bool read_object(struct cursor *cursor, const struct json_schema *schema, char *out);

static bool read_array(struct cursor *cursor, const struct json_field *field,
                       struct json_array *target)
{
    const size_t size = field->schema->struct_size;
    const size_t count_max = field->size_max ? field->size_max : 1000;
    size_t count = 0, capacity = 0;
    char *items = NULL;
    if (!skip_byte(cursor, '['))
        return false;
    while (!skip_byte(cursor, ']')) {
        if (count == count_max || (count > 0 && !skip_byte(cursor, ',')))
            return false;
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 4;
            char *larger = arena_alloc(cursor->arena, capacity * size);
            if (count)
                memcpy(larger, items, count * size);
            items = larger;
        }
        if (!read_object(cursor, field->schema, items + count * size))
            return false;
        count++;
    }
    *target = (struct json_array){items, count};
    return true;
}

static bool read_list(struct cursor *cursor, const struct json_field *field, char *target)
{
    size_t count = 0;
    char *items = target + sizeof(int64_t);
    if (!skip_byte(cursor, '['))
        return false;
    while (!skip_byte(cursor, ']')) {
        if (count == field->size_max || (count > 0 && !skip_byte(cursor, ',')) ||
            !read_object(cursor, field->schema, items + count * field->schema->struct_size))
            return false;
        count++;
    }
    const int64_t counted = (int64_t)count;
    memcpy(target, &counted, sizeof(counted));
    return true;
}

static bool read_value(struct cursor *cursor, const struct json_field *field, void *target)
{
    switch (field->kind) {
    case JSON_BOOL:
        return read_bool(cursor, target);
    case JSON_I64:
        return read_i64(cursor, field, target);
    case JSON_U64:
        return read_u64(cursor, field, target);
    case JSON_TEXT:
    case JSON_CHARS:
    case JSON_HEX:
        return read_text(cursor, field, target);
    case JSON_CHOICE:
        return read_choice(cursor, field, target);
    case JSON_OBJECT:
        return read_object(cursor, field->schema, target);
    case JSON_LIST:
        return read_list(cursor, field, target);
    case JSON_DOUBLE:
        return read_double(cursor, target);
    case JSON_ARRAY:
        return read_array(cursor, field, target);
    case JSON_TEXTS:
    case JSON_ANY:
        break;
    }
    return false;
}

static bool skip_key(struct cursor *cursor, const struct json_field *field)
{
    if (field->key.size)
        return skip(cursor, field->key.data, field->key.size);
    return skip_byte(cursor, '"') && skip(cursor, field->name, strlen(field->name)) &&
           skip(cursor, "\":", 2);
}

/* A zero that was left out stays what it is; one that is written is not json_write's. */
static bool read_nonzero(struct cursor *cursor, const struct json_field *field, void *target)
{
    if (!read_value(cursor, field, target))
        return false;
    return field->kind == JSON_BOOL ? *(const bool *)target : *(const int64_t *)target != 0;
}

static bool read_object(struct cursor *cursor, const struct json_schema *schema, char *out)
{
    char separator = '{';
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct json_field *field = &schema->fields[i];
        const char *start = cursor->at;
        if (!skip_byte(cursor, separator) || !skip_key(cursor, field)) {
            cursor->at = start;
            if (!field->is_zero_omitted)
                return false;
            continue;
        }
        if (field->is_zero_omitted ? !read_nonzero(cursor, field, out + field->offset)
                                   : !read_value(cursor, field, out + field->offset))
            return false;
        separator = ',';
    }
    return separator == ',' && skip_byte(cursor, '}');
}

int json_read_written(struct arena *arena, struct text json, const struct json_schema *schema,
                      void *out, struct error *error)
{
    struct cursor cursor = {arena, json.data, json.data + json.size};
    if (json.size > 0 && read_object(&cursor, schema, out) && cursor.at == cursor.end)
        return 0;
    return json_read(arena, json, schema, out, error);
}
