/*
 * CSV: rows of RFC 4180 onto a buffer: fields with a comma, a quote or a line break in quotes, rows
 * ended by CRLF.
 *
 * A text that a spreadsheet would take for a formula (it begins with = + - @ or a tab) gets an
 * apostrophe in front: whoever wrote it may be a stranger to whoever opens the file.
 */
#pragma once

#include "base/buffer.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct csv_writer {
    struct buffer *buffer;
    bool needs_comma;
};

void csv_writer_init(struct csv_writer *writer, struct buffer *buffer);
void csv_text(struct csv_writer *writer, struct text value);
void csv_string(struct csv_writer *writer, const char *value);
void csv_i64(struct csv_writer *writer, int64_t value);
/* A number in the digits it was written with: never taken for a formula. */
void csv_number(struct csv_writer *writer, const char *digits);
/* Millionths as a decimal number with all six places: "-0.250000". */
void csv_micro(struct csv_writer *writer, int64_t value);
void csv_row_end(struct csv_writer *writer);
