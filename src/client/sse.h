/*
 * SSE: reads a stream of server-sent events (WHATWG HTML, "event stream interpretation") as its
 * bytes come.
 *
 * Only `event` and `data` are used. An event whose data passes SSE_DATA_MAX is skipped whole.
 */
#pragma once

#include "base/buffer.h"
#include "base/text.h"

#include <stdbool.h>

enum { SSE_DATA_MAX = 256 << 10, SSE_NAME_SIZE = 32 };

/* `name` is "message" unless the event has one. */
typedef void sse_function(void *context, const char *name, struct text data);

struct sse_reader {
    sse_function *callback;
    void *context;
    struct buffer line;
    struct buffer data;
    char name[SSE_NAME_SIZE];
    bool has_data;
    bool is_after_return; /* the last byte was CR: a LF now belongs to it */
};

void sse_reader_init(struct sse_reader *reader, sse_function *callback, void *context);
void sse_reader_done(struct sse_reader *reader);
void sse_reader_feed(struct sse_reader *reader, struct text bytes);
