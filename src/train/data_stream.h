/*
 * Data stream: the bytes of a file from its first to its last, decompressed where it begins with
 * the magic of gzip or zstd, with little memory however large it is.
 *
 * Offsets and limits are of the decompressed bytes: a small file that grows without end is refused
 * at `size_max`, a zstd window above 128 MiB at once. Every refusal says at which byte.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_LINE_MAX = 16 << 20, DATA_PEEK_MAX = 4096 };

struct data_stream;

/* NOT_FOUND, REFUSED and so on as open(2); CORRUPT: bad or cut compression. Messages do not name
 * the path, except that of opening it. */
MUST_CHECK int data_stream_open(const char *path, uint64_t size_max,
                                struct data_stream **out_stream, struct error *error);
/* The same from memory, which must stay. */
MUST_CHECK int data_stream_open_bytes(struct text bytes, uint64_t size_max,
                                      struct data_stream **out_stream, struct error *error);
/* The same of bytes that are a raw deflate stream, as a zip file has them. */
MUST_CHECK int data_stream_open_deflate(struct text bytes, uint64_t size_max,
                                        struct data_stream **out_stream, struct error *error);
void data_stream_free(struct data_stream *stream); /* NULL is fine */
DEFINE_AUTO(data_stream);

/* Fewer than `size` bytes only at the end. EXHAUSTED past `size_max`. */
MUST_CHECK int data_stream_read(struct data_stream *stream, void *out, size_t size,
                                size_t *out_read, struct error *error);
/* All of `size`, or CORRUPT: truncated, with the offset and what was being read. */
MUST_CHECK int data_stream_read_all(struct data_stream *stream, void *out, size_t size,
                                    const char *what, struct error *error);
/* CORRUPT when anything follows. */
MUST_CHECK int data_stream_expect_end(struct data_stream *stream, struct error *error);

/* What comes next, DATA_PEEK_MAX bytes at most and fewer only at the end; nothing is taken. */
MUST_CHECK int data_stream_peek(struct data_stream *stream, struct text *out_bytes,
                                struct error *error);

/* The next line without its end ("\n" or "\r\n"), until the next call; false at the end. INVALID
 * when it is longer than DATA_LINE_MAX. */
MUST_CHECK int data_stream_line(struct data_stream *stream, struct text *out_line,
                                bool *out_has_line, struct error *error);

uint64_t data_stream_offset(const struct data_stream *stream); /* of the next byte */
uint64_t data_stream_line_number(
    const struct data_stream *stream); /* of the line data_stream_line gave, from 1 */
