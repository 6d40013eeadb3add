/*
 * HTTP: what server and client share.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct http_header {
    const char *name;
    const char *value;
};

/* "Not Found"; "Unknown" for a status without a name. */
const char *http_status_title(int status);

/* Writes an RFC 9457 problem: {"type","title","status","detail","code"}. `code` is a stable word.
 */
void http_problem_write(struct buffer *buffer, int status, const char *code, const char *detail);

/* Decodes %XX into `out` (at least text.size + 1 bytes). INVALID for broken escapes and zero bytes.
 */
MUST_CHECK int http_percent_decode(struct text text, char *out, size_t *out_size,
                                   struct error *error);

/* Everything but letters, digits and "-._~" as %XX: one part of a path, also where it has a '/'. */
void http_percent_encode(struct text text, struct buffer *buffer);

/* Whether an Accept-Encoding header names `coding` and does not forbid it (";q=0"). */
bool http_accepts_coding(struct text header, struct text coding);

struct http_range {
    uint64_t first;
    uint64_t size;
};

enum http_range_kind { HTTP_RANGE_WHOLE, HTTP_RANGE_PART, HTTP_RANGE_OUTSIDE };

/* What a Range header asks of `size` bytes: "bytes=FIRST-" or "bytes=FIRST-LAST". Anything else is
 * answered by the whole, as RFC 9110 allows. */
enum http_range_kind http_range_read(struct text header, uint64_t size,
                                     struct http_range *out_range);
/* The first byte a Content-Range header ("bytes 7-20/21") tells of; -1: none. */
int64_t http_content_range_first(struct text header);
