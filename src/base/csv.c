#include "base/csv.h"

#include <inttypes.h>
#include <string.h>

void csv_writer_init(struct csv_writer *writer, struct buffer *buffer)
{
    *writer = (struct csv_writer){.buffer = buffer};
}

static void begin_field(struct csv_writer *writer)
{
    if (writer->needs_comma)
        buffer_append_byte(writer->buffer, ',');
    writer->needs_comma = true;
}

static bool needs_quotes(struct text value)
{
    for (size_t i = 0; i < value.size; i++)
        if (strchr(",\"\r\n", value.data[i]) && value.data[i])
            return true;
    return false;
}

static bool is_formula(struct text value)
{
    return value.size > 0 && value.data[0] && strchr("=+-@\t\r", value.data[0]);
}

void csv_text(struct csv_writer *writer, struct text value)
{
    begin_field(writer);
    const bool is_quoted = needs_quotes(value);
    if (is_quoted)
        buffer_append_byte(writer->buffer, '"');
    if (is_formula(value))
        buffer_append_byte(writer->buffer, '\'');
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] == '"')
            buffer_append_byte(writer->buffer, '"');
        buffer_append_byte(writer->buffer, (uint8_t)value.data[i]);
    }
    if (is_quoted)
        buffer_append_byte(writer->buffer, '"');
}

void csv_string(struct csv_writer *writer, const char *value)
{
    csv_text(writer, text_of(value));
}

void csv_i64(struct csv_writer *writer, int64_t value)
{
    begin_field(writer);
    buffer_append_format(writer->buffer, "%" PRId64, value);
}

void csv_number(struct csv_writer *writer, const char *digits)
{
    begin_field(writer);
    buffer_append_string(writer->buffer, digits);
}

void csv_micro(struct csv_writer *writer, int64_t value)
{
    const uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    begin_field(writer);
    buffer_append_format(writer->buffer, "%s%" PRIu64 ".%06" PRIu64, value < 0 ? "-" : "",
                         size / 1000000, size % 1000000);
}

void csv_row_end(struct csv_writer *writer)
{
    buffer_append_string(writer->buffer, "\r\n");
    writer->needs_comma = false;
}
