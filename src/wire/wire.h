/*
 * Wire: the primitive encodings that all binary messages are made of.
 *
 * Integers are little-endian and of fixed size, floats are their IEEE 754 bits, text and bytes are
 * a u32 length and the bytes. Writing goes onto a struct buffer, whose own maximum holds. Reading
 * has sticky failure: after the first mistake every call gives zero, so a decoder reads all its
 * fields and asks once, with wire_reader_finish.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void wire_put_u8(struct buffer *buffer, uint8_t value);
void wire_put_bool(struct buffer *buffer, bool value);
void wire_put_u16(struct buffer *buffer, uint16_t value);
void wire_put_u32(struct buffer *buffer, uint32_t value);
void wire_put_u64(struct buffer *buffer, uint64_t value);
void wire_put_i64(struct buffer *buffer, int64_t value);
void wire_put_f32(struct buffer *buffer, float value);
void wire_put_f64(struct buffer *buffer, double value);
/* With their length before them. */
void wire_put_text(struct buffer *buffer, struct text text);
void wire_put_bytes(struct buffer *buffer, const void *data, uint32_t size);
/* Without a length: both ends know it (keys, signatures, arrays counted before). */
void wire_put_raw(struct buffer *buffer, const void *data, size_t size);
/* `count` floats without a length. */
void wire_put_f32s(struct buffer *buffer, const float *values, size_t count);

struct wire_reader {
    const uint8_t *data;
    size_t size;
    size_t offset;
    const char *problem; /* NULL while all is well; the first mistake otherwise */
};

void wire_reader_init(struct wire_reader *reader, struct text bytes);

uint8_t wire_get_u8(struct wire_reader *reader);
bool wire_get_bool(struct wire_reader *reader); /* any byte but 0 and 1 is a mistake */
uint16_t wire_get_u16(struct wire_reader *reader);
uint32_t wire_get_u32(struct wire_reader *reader);
uint64_t wire_get_u64(struct wire_reader *reader);
int64_t wire_get_i64(struct wire_reader *reader);
float wire_get_f32(struct wire_reader *reader);
double wire_get_f64(struct wire_reader *reader);
/* Borrowed from the bytes read; longer than `size_max` is a mistake. */
struct text wire_get_text(struct wire_reader *reader, size_t size_max);
struct text wire_get_bytes(struct wire_reader *reader, size_t size_max);
/* Copies exactly `size` bytes; zeroes on failure. */
void wire_get_raw(struct wire_reader *reader, void *out, size_t size);
void wire_get_f32s(struct wire_reader *reader, float *out, size_t count);
/* Borrows exactly `size` bytes; NULL on failure. */
const uint8_t *wire_get_raw_in_place(struct wire_reader *reader, size_t size);
/*
 * A u32 count of items that take at least `item_size_min` bytes each: more than `count_max`, or
 * more than the bytes left could hold, is a mistake. So what is allocated by it is bounded by what
 * came.
 */
uint32_t wire_get_count(struct wire_reader *reader, uint32_t count_max, size_t item_size_min);

/* For a decoder that finds a value out of its range: keeps the first problem. `problem` is a
 * literal. */
void wire_reader_fail(struct wire_reader *reader, const char *problem);
bool wire_reader_is_failed(const struct wire_reader *reader);
size_t wire_reader_left(const struct wire_reader *reader);

/* CORRUPT, naming `what`, after any mistake or when bytes are left over. */
MUST_CHECK int wire_reader_finish(const struct wire_reader *reader, const char *what,
                                  struct error *error);
