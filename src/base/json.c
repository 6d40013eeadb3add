#include "base/json.h"

#include "base/assert.h"

#include <math.h>
#include <stdio.h>

void json_writer_init(struct json_writer *writer, struct buffer *buffer)
{
    *writer = (struct json_writer){.buffer = buffer};
}

static void begin_value(struct json_writer *writer)
{
    if (writer->needs_comma)
        buffer_append_byte(writer->buffer, ',');
    writer->needs_comma = true;
}

static void open_container(struct json_writer *writer, char bracket)
{
    begin_value(writer);
    buffer_append_byte(writer->buffer, (uint8_t)bracket);
    writer->depth++;
    writer->needs_comma = false;
}

static void close_container(struct json_writer *writer, char bracket)
{
    ASSERT(writer->depth > 0);
    buffer_append_byte(writer->buffer, (uint8_t)bracket);
    writer->depth--;
    writer->needs_comma = true;
}

void json_object_begin(struct json_writer *writer)
{
    open_container(writer, '{');
}

void json_object_end(struct json_writer *writer)
{
    close_container(writer, '}');
}

void json_array_begin(struct json_writer *writer)
{
    open_container(writer, '[');
}

void json_array_end(struct json_writer *writer)
{
    close_container(writer, ']');
}

static void append_escaped(struct buffer *buffer, unsigned char byte)
{
    switch (byte) {
    case '"':
        buffer_append_string(buffer, "\\\"");
        return;
    case '\\':
        buffer_append_string(buffer, "\\\\");
        return;
    case '\n':
        buffer_append_string(buffer, "\\n");
        return;
    case '\r':
        buffer_append_string(buffer, "\\r");
        return;
    case '\t':
        buffer_append_string(buffer, "\\t");
        return;
    default:
        buffer_append_format(buffer, "\\u%04x", byte);
    }
}

static bool needs_escape(unsigned char byte)
{
    return byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f;
}

static void append_quoted(struct buffer *buffer, struct text value)
{
    buffer_append_byte(buffer, '"');
    const unsigned char *bytes = (const unsigned char *)value.data;
    size_t plain = 0; /* start of the run not yet written */
    size_t at = 0;
    while (at < value.size) {
        if (bytes[at] < 0x80 && !needs_escape(bytes[at])) { /* most of all text */
            at++;
            continue;
        }
        const size_t length = text_utf8_length((struct text){value.data + at, value.size - at});
        if (length > 0 && !needs_escape(bytes[at])) {
            at += length;
            continue;
        }
        buffer_append(buffer, bytes + plain, at - plain);
        if (length == 0)
            buffer_append_string(buffer, "\\ufffd");
        else
            append_escaped(buffer, bytes[at]);
        plain = ++at;
    }
    buffer_append(buffer, bytes + plain, at - plain);
    buffer_append_byte(buffer, '"');
}

void json_key(struct json_writer *writer, const char *key)
{
    begin_value(writer);
    append_quoted(writer->buffer, text_of(key));
    buffer_append_byte(writer->buffer, ':');
    writer->needs_comma = false;
}

void json_text(struct json_writer *writer, struct text value)
{
    begin_value(writer);
    append_quoted(writer->buffer, value);
}

void json_string(struct json_writer *writer, const char *value)
{
    if (value)
        json_text(writer, text_of(value));
    else
        json_null(writer);
}

/* By hand: numbers are most of what is written, and printf is ten times as slow. */
static void append_digits(struct buffer *buffer, uint64_t value, bool is_negative)
{
    char digits[24];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    if (is_negative)
        digits[--at] = '-';
    buffer_append(buffer, digits + at, sizeof(digits) - at);
}

void json_i64(struct json_writer *writer, int64_t value)
{
    begin_value(writer);
    append_digits(writer->buffer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

void json_u64(struct json_writer *writer, uint64_t value)
{
    begin_value(writer);
    append_digits(writer->buffer, value, /* is_negative= */ false);
}

void json_double(struct json_writer *writer, double value)
{
    if (!isfinite(value)) {
        json_null(writer);
        return;
    }
    begin_value(writer);
    /* The shortest of the three that reads back as the same number. */
    char digits[40];
    for (int precision = 9; precision <= 17; precision += 4) {
        snprintf(digits, sizeof(digits), "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    buffer_append_string(writer->buffer, digits);
}

void json_boolean(struct json_writer *writer, bool value)
{
    json_raw(writer, value ? TEXT("true") : TEXT("false"));
}

void json_null(struct json_writer *writer)
{
    json_raw(writer, TEXT("null"));
}

void json_raw(struct json_writer *writer, struct text value)
{
    begin_value(writer);
    buffer_append_text(writer->buffer, value);
}

void json_field_text(struct json_writer *writer, const char *key, struct text value)
{
    json_key(writer, key);
    json_text(writer, value);
}

void json_field_string(struct json_writer *writer, const char *key, const char *value)
{
    json_key(writer, key);
    json_string(writer, value);
}

void json_field_i64(struct json_writer *writer, const char *key, int64_t value)
{
    json_key(writer, key);
    json_i64(writer, value);
}

void json_field_u64(struct json_writer *writer, const char *key, uint64_t value)
{
    json_key(writer, key);
    json_u64(writer, value);
}

void json_field_double(struct json_writer *writer, const char *key, double value)
{
    json_key(writer, key);
    json_double(writer, value);
}

void json_field_bool(struct json_writer *writer, const char *key, bool value)
{
    json_key(writer, key);
    json_boolean(writer, value);
}
