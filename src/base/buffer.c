#include "base/buffer.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_init(struct buffer *buffer, size_t size_max)
{
    *buffer = (struct buffer){.size_max = size_max};
}

void buffer_init_secret(struct buffer *buffer, size_t size_max)
{
    *buffer = (struct buffer){.size_max = size_max, .is_secret = true};
}

static void wipe(struct buffer *buffer)
{
    if (buffer->is_secret && buffer->data)
        explicit_bzero(buffer->data, buffer->capacity);
}

/* NULL when memory is out. */
static uint8_t *grow(struct buffer *buffer, size_t capacity)
{
    if (!buffer->is_secret)
        return realloc(buffer->data, capacity);
    uint8_t *data = malloc(capacity); /* realloc may leave a copy behind */
    if (!data)
        return NULL;
    if (buffer->size)
        memcpy(data, buffer->data, buffer->size);
    wipe(buffer);
    free(buffer->data);
    return data;
}

void buffer_done(struct buffer *buffer)
{
    wipe(buffer);
    free(buffer->data);
    *buffer = (struct buffer){0};
}

void buffer_clear(struct buffer *buffer)
{
    wipe(buffer);
    buffer->size = 0;
    buffer->is_overflowed = false;
}

uint8_t *buffer_reserve(struct buffer *buffer, size_t size)
{
    if (buffer->is_overflowed || size > buffer->size_max - buffer->size) {
        buffer->is_overflowed = true;
        return NULL;
    }
    const size_t needed = buffer->size + size;
    if (needed > buffer->capacity) {
        size_t capacity = buffer->capacity ? buffer->capacity : 256;
        while (capacity < needed)
            capacity *= 2;
        if (capacity > buffer->size_max)
            capacity = buffer->size_max;
        uint8_t *data = grow(buffer, capacity);
        if (!data) {
            buffer->is_overflowed = true;
            return NULL;
        }
        buffer->data = data;
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->size;
}

void buffer_advance(struct buffer *buffer, size_t size)
{
    ASSERT(size <= buffer->capacity - buffer->size);
    buffer->size += size;
}

void buffer_append(struct buffer *buffer, const void *data, size_t size)
{
    if (size == 0)
        return;
    uint8_t *room = buffer_room(buffer, size);
    if (!room)
        return;
    memcpy(room, data, size);
    buffer->size += size;
}

void buffer_append_text(struct buffer *buffer, struct text text)
{
    buffer_append(buffer, text.data, text.size);
}

void buffer_append_string(struct buffer *buffer, const char *string)
{
    buffer_append(buffer, string, strlen(string));
}

void buffer_append_byte(struct buffer *buffer, uint8_t byte)
{
    buffer_append(buffer, &byte, 1);
}

void buffer_append_format(struct buffer *buffer, const char *format, ...)
{
    char small[512];
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    ASSERT(length >= 0);
    if ((size_t)length < sizeof(small)) {
        buffer_append(buffer, small, (size_t)length);
    } else {
        char *large = malloc((size_t)length + 1);
        ASSERT(large);
        vsnprintf(large, (size_t)length + 1, format, again);
        buffer_append(buffer, large, (size_t)length);
        free(large);
    }
    va_end(again);
}

void buffer_consume(struct buffer *buffer, size_t size)
{
    ASSERT(size <= buffer->size);
    if (size == 0)
        return;
    buffer->size -= size;
    if (buffer->size)
        memmove(buffer->data, buffer->data + size, buffer->size);
}

int buffer_check(const struct buffer *buffer, struct error *error)
{
    if (buffer->is_overflowed)
        return error_set(error, ERROR_EXHAUSTED, "more than the %zu bytes allowed",
                         buffer->size_max);
    return 0;
}

struct text buffer_text(const struct buffer *buffer)
{
    return (struct text){(const char *)buffer->data, buffer->size};
}

const char *buffer_string(struct buffer *buffer)
{
    uint8_t *end = buffer_reserve(buffer, 1);
    if (!end)
        return "";
    *end = '\0';
    return (const char *)buffer->data;
}
