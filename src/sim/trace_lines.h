/*
 * Trace lines: a text file, plain or gzipped, one line at a time.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_LINE_MAX = 64 * 1024 };

struct trace_lines;

MUST_CHECK int trace_lines_open(const char *path, struct trace_lines **out_lines,
                                struct error *error);
void trace_lines_free(struct trace_lines *lines); /* NULL is fine */
DEFINE_AUTO(trace_lines);

/* The next line without its end, valid until the next call; *out_is_end when there is none. */
MUST_CHECK int trace_lines_next(struct trace_lines *lines, struct text *out_line, bool *out_is_end,
                                struct error *error);

/* The line read last, from 1. */
uint64_t trace_lines_number(const struct trace_lines *lines);

/* CORRUPT, naming file and line. Always -1. */
int trace_lines_refuse(const struct trace_lines *lines, const char *reason, struct error *error);
