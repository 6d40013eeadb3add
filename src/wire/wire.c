#include "wire/wire.h"

#include "base/assert.h"

#include <string.h>

/* Floats and arrays are copied as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire format is little-endian");

void wire_put_u8(struct buffer *buffer, uint8_t value)
{
    buffer_append_byte(buffer, value);
}

void wire_put_bool(struct buffer *buffer, bool value)
{
    buffer_append_byte(buffer, value ? 1 : 0);
}

void wire_put_u16(struct buffer *buffer, uint16_t value)
{
    buffer_append(buffer, &value, sizeof(value));
}

void wire_put_u32(struct buffer *buffer, uint32_t value)
{
    buffer_append(buffer, &value, sizeof(value));
}

void wire_put_u64(struct buffer *buffer, uint64_t value)
{
    buffer_append(buffer, &value, sizeof(value));
}

void wire_put_i64(struct buffer *buffer, int64_t value)
{
    buffer_append(buffer, &value, sizeof(value));
}

void wire_put_f32(struct buffer *buffer, float value)
{
    buffer_append(buffer, &value, sizeof(value));
}

void wire_put_f64(struct buffer *buffer, double value)
{
    buffer_append(buffer, &value, sizeof(value));
}

void wire_put_text(struct buffer *buffer, struct text text)
{
    ASSERT(text.size <= UINT32_MAX);
    wire_put_bytes(buffer, text.data, (uint32_t)text.size);
}

void wire_put_bytes(struct buffer *buffer, const void *data, uint32_t size)
{
    wire_put_u32(buffer, size);
    wire_put_raw(buffer, data, size);
}

void wire_put_raw(struct buffer *buffer, const void *data, size_t size)
{
    if (size > 0)
        buffer_append(buffer, data, size);
}

void wire_put_f32s(struct buffer *buffer, const float *values, size_t count)
{
    wire_put_raw(buffer, values, count * sizeof(*values));
}

void wire_reader_init(struct wire_reader *reader, struct text bytes)
{
    *reader = (struct wire_reader){.data = (const uint8_t *)bytes.data, .size = bytes.size};
}

void wire_reader_fail(struct wire_reader *reader, const char *problem)
{
    if (!reader->problem)
        reader->problem = problem;
}

bool wire_reader_is_failed(const struct wire_reader *reader)
{
    return reader->problem != NULL;
}

size_t wire_reader_left(const struct wire_reader *reader)
{
    return reader->problem ? 0 : reader->size - reader->offset;
}

const uint8_t *wire_get_raw_in_place(struct wire_reader *reader, size_t size)
{
    if (reader->problem)
        return NULL;
    if (size > reader->size - reader->offset) {
        wire_reader_fail(reader, "it is cut short");
        return NULL;
    }
    /* Not NULL even when nothing is asked of an empty message. */
    const uint8_t *place = reader->data ? reader->data + reader->offset : (const uint8_t *)"";
    reader->offset += size;
    return place;
}

void wire_get_raw(struct wire_reader *reader, void *out, size_t size)
{
    if (size == 0)
        return;
    const uint8_t *place = wire_get_raw_in_place(reader, size);
    if (place)
        memcpy(out, place, size);
    else
        memset(out, 0, size);
}

uint8_t wire_get_u8(struct wire_reader *reader)
{
    uint8_t value;
    wire_get_raw(reader, &value, sizeof(value));
    return value;
}

bool wire_get_bool(struct wire_reader *reader)
{
    const uint8_t value = wire_get_u8(reader);
    if (value > 1)
        wire_reader_fail(reader, "a yes or no is neither");
    return value == 1;
}

uint16_t wire_get_u16(struct wire_reader *reader)
{
    uint16_t value;
    wire_get_raw(reader, &value, sizeof(value));
    return value;
}

uint32_t wire_get_u32(struct wire_reader *reader)
{
    uint32_t value;
    wire_get_raw(reader, &value, sizeof(value));
    return value;
}

uint64_t wire_get_u64(struct wire_reader *reader)
{
    uint64_t value;
    wire_get_raw(reader, &value, sizeof(value));
    return value;
}

int64_t wire_get_i64(struct wire_reader *reader)
{
    int64_t value;
    wire_get_raw(reader, &value, sizeof(value));
    return value;
}

float wire_get_f32(struct wire_reader *reader)
{
    float value;
    wire_get_raw(reader, &value, sizeof(value));
    return value;
}

double wire_get_f64(struct wire_reader *reader)
{
    double value;
    wire_get_raw(reader, &value, sizeof(value));
    return value;
}

struct text wire_get_bytes(struct wire_reader *reader, size_t size_max)
{
    const uint32_t size = wire_get_u32(reader);
    if (size > size_max)
        wire_reader_fail(reader, "a text is longer than allowed");
    const uint8_t *place = wire_get_raw_in_place(reader, size);
    return place ? (struct text){(const char *)place, size} : (struct text){"", 0};
}

struct text wire_get_text(struct wire_reader *reader, size_t size_max)
{
    return wire_get_bytes(reader, size_max);
}

void wire_get_f32s(struct wire_reader *reader, float *out, size_t count)
{
    wire_get_raw(reader, out, count * sizeof(*out));
}

uint32_t wire_get_count(struct wire_reader *reader, uint32_t count_max, size_t item_size_min)
{
    const uint32_t count = wire_get_u32(reader);
    if (count > count_max)
        wire_reader_fail(reader, "a list is longer than allowed");
    else if (item_size_min > 0 && count > wire_reader_left(reader) / item_size_min)
        wire_reader_fail(reader, "a list is longer than what came");
    return reader->problem ? 0 : count;
}

int wire_reader_finish(const struct wire_reader *reader, const char *what, struct error *error)
{
    if (reader->problem)
        return error_set(error, ERROR_CORRUPT, "%s is malformed: %s", what, reader->problem);
    if (reader->offset != reader->size)
        return error_set(error, ERROR_CORRUPT, "%s is malformed: %zu bytes too many", what,
                         reader->size - reader->offset);
    return 0;
}
