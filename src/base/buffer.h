/*
 * Buffer: bytes that grow up to a maximum given at the start.
 *
 * Appending never fails on its own: once the maximum is passed the buffer is marked overflowed and
 * further appends do nothing. Whoever uses the bytes asks buffer_check first.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t size_max;
    bool is_overflowed;
    bool is_secret; /* what it held is wiped before its memory goes back */
};

void buffer_init(struct buffer *buffer, size_t size_max);
void buffer_init_secret(struct buffer *buffer, size_t size_max);
void buffer_done(struct buffer *buffer);
void buffer_clear(struct buffer *buffer); /* keeps the memory, forgets an overflow */

/* struct buffer buffer AUTO_BUFFER; then buffer_init: released when it leaves scope. */
#define AUTO_BUFFER __attribute__((cleanup(buffer_done)))

void buffer_append(struct buffer *buffer, const void *data, size_t size);
void buffer_append_text(struct buffer *buffer, struct text text);
void buffer_append_string(struct buffer *buffer, const char *string);
void buffer_append_byte(struct buffer *buffer, uint8_t byte);
void buffer_append_format(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Room for `size` more bytes to be written in place, then buffer_advance; NULL past the maximum. */
uint8_t *buffer_reserve(struct buffer *buffer, size_t size);
/* The same, for small pieces. */
static inline uint8_t *buffer_room(struct buffer *buffer, size_t size)
{
    if (!buffer->is_overflowed && size <= buffer->capacity - buffer->size)
        return buffer->data + buffer->size;
    return buffer_reserve(buffer, size);
}
void buffer_advance(struct buffer *buffer, size_t size);

/* Removes `size` bytes from the front. */
void buffer_consume(struct buffer *buffer, size_t size);

/* EXHAUSTED when anything was left out. */
MUST_CHECK int buffer_check(const struct buffer *buffer, struct error *error);

struct text buffer_text(const struct buffer *buffer);
/* Ends the bytes with a zero byte that does not count; "" when overflowed by it. */
const char *buffer_string(struct buffer *buffer);
