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

/* From the first byte that may need an escape. */
static void append_rest(struct buffer *buffer, struct text value, size_t at)
{
    const unsigned char *bytes = (const unsigned char *)value.data;
    size_t plain = at; /* start of the run not yet written */
    while (at < value.size) {
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
}

/* Whether one of eight bytes is a quote, a backslash, below 0x20 or above 0x7e: in each lane the
 * highest bit says so (Warren, Hacker's Delight, 6-1). */
static bool has_odd_byte(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101U, highs = 0x80 * ones;
    const uint64_t quote = word ^ '"' * ones, backslash = word ^ '\\' * ones;
    const uint64_t low = (word - 0x20 * ones) & ~word;
    return ((((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | low | word |
             (word + ones)) &
            highs) != 0;
}

/* So many bytes need neither an escape nor a look at the next: most of all text. */
static size_t plain_length(struct text value)
{
    const unsigned char *bytes = (const unsigned char *)value.data;
    size_t at = 0;
    for (uint64_t word; value.size - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, bytes + at, sizeof(word));
        if (has_odd_byte(word))
            break;
    }
    while (at < value.size && bytes[at] < 0x80 && !needs_escape(bytes[at]))
        at++;
    return at;
}

static void append_quoted(struct buffer *buffer, struct text value)
{
    const size_t at = plain_length(value);
    uint8_t *room = buffer_room(buffer, at + 2);
    if (!room)
        return;
    *room++ = '"';
    if (at)
        memcpy(room, value.data, at);
    if (at == value.size) {
        room[at] = '"';
        buffer->size += at + 2;
        return;
    }
    buffer->size += at + 1;
    append_rest(buffer, value, at);
    buffer_append_byte(buffer, '"');
}

void json_key(struct json_writer *writer, const char *key)
{
    const struct text text = text_of(key);
    const size_t size = text.size;
    if (plain_length(text) < size) {
        begin_value(writer);
        append_quoted(writer->buffer, text);
        buffer_append_byte(writer->buffer, ':');
        writer->needs_comma = false;
        return;
    }
    uint8_t *room = buffer_room(writer->buffer, size + 3 + writer->needs_comma);
    if (!room)
        return;
    uint8_t *at = room;
    if (writer->needs_comma)
        *at++ = ',';
    *at++ = '"';
    memcpy(at, key, size);
    at += size;
    *at++ = '"';
    *at++ = ':';
    writer->buffer->size += (size_t)(at - room);
    writer->needs_comma = false;
}

void json_written_key(struct json_writer *writer, struct text key)
{
    begin_value(writer);
    buffer_append_text(writer->buffer, key);
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
static void append_digits(struct json_writer *writer, uint64_t value, bool is_negative)
{
    char digits[24];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    if (is_negative)
        digits[--at] = '-';
    if (writer->needs_comma)
        digits[--at] = ',';
    writer->needs_comma = true;
    buffer_append(writer->buffer, digits + at, sizeof(digits) - at);
}

void json_i64(struct json_writer *writer, int64_t value)
{
    append_digits(writer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

void json_u64(struct json_writer *writer, uint64_t value)
{
    append_digits(writer, value, /* is_negative= */ false);
}

/*
 * Numbers of at most six places without printf. Both sides of the division are whole and exact, so
 * its result is the number nearest to what is written: it reads back the same.
 */
static bool append_fixed(struct json_writer *writer, double value)
{
    static const double scale = 1e6;
    const double scaled = rint(value * scale);
    if (!(fabs(scaled) < 9e15) || scaled / scale != value || (value == 0 && signbit(value)))
        return false;
    const uint64_t millionths = (uint64_t)fabs(scaled);
    append_digits(writer, millionths / 1000000, value < 0);
    uint64_t rest = millionths % 1000000;
    if (rest == 0)
        return true;
    char places[8] = ".";
    size_t size = 7;
    for (size_t i = size; i-- > 1; rest /= 10)
        places[i] = (char)('0' + rest % 10);
    while (places[size - 1] == '0')
        size--;
    buffer_append(writer->buffer, places, size);
    return true;
}

void json_double(struct json_writer *writer, double value)
{
    if (!isfinite(value)) {
        json_null(writer);
        return;
    }
    if (append_fixed(writer, value))
        return;
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

/* Writes the key, without its comma where none is needed, and leaves room for `more`. */
static uint8_t *put_key(struct json_writer *writer, struct text key, size_t more)
{
    uint8_t *room = buffer_room(writer->buffer, key.size + more);
    if (!room)
        return NULL;
    const size_t skipped = !writer->needs_comma;
    memcpy(room, key.data + skipped, key.size - skipped);
    writer->needs_comma = true;
    return room + key.size - skipped;
}

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233"
    "34353637383940414243444546474849505152535455565758596061626364656667"
    "6869707172737475767778798081828384858687888990919293949596979899";

void json_keyed_i64(struct json_writer *writer, struct text key, int64_t value)
{
    enum { SIZE = 20 }; /* of the longest number */
    char digits[SIZE];
    size_t at = SIZE;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    for (; rest > 99; rest /= 100) {
        at -= 2;
        memcpy(digits + at, digit_pairs + 2 * (rest % 100), 2);
    }
    if (rest > 9) {
        at -= 2;
        memcpy(digits + at, digit_pairs + 2 * rest, 2);
    } else {
        digits[--at] = (char)('0' + rest);
    }
    if (value < 0)
        digits[--at] = '-';
    uint8_t *room = put_key(writer, key, SIZE - at);
    if (!room)
        return;
    memcpy(room, digits + at, SIZE - at);
    writer->buffer->size = (size_t)(room - writer->buffer->data) + SIZE - at;
}

void json_keyed_text(struct json_writer *writer, struct text key, struct text value)
{
    uint8_t *room = put_key(writer, key, 0);
    if (!room)
        return;
    writer->buffer->size = (size_t)(room - writer->buffer->data);
    append_quoted(writer->buffer, value);
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
