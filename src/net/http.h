/*
 * HTTP: what server and client share.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

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
