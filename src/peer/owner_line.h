/*
 * Owner line: the socket in the state folder over which the owner's commands reach the daemon.
 *
 * A caller sends one request, {"do":"pause","for_ms":1800000} and a line break, and gets one answer
 * in a line: the daemon's status, or {"error":"..."}. "stop" closes the line when the daemon has
 * ended. The socket has mode 0600 in a folder of mode 0700: whoever may open it may also read the
 * machine's key.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/json_schema.h"
#include "base/scope.h"
#include "net/loop.h"

enum {
    OWNER_LINE_REQUEST_MAX = 512,
    OWNER_LINE_ANSWER_MAX = 256 << 10,
    OWNER_LINE_CALLERS_MAX = 16,
    OWNER_LINE_PATIENCE_MS = 5000, /* for a caller to say what it wants, and to take the answer */
};

enum owner_verb {
    OWNER_STATUS,
    OWNER_PAUSE,
    OWNER_RESUME,
    OWNER_DRAIN,
    OWNER_STOP,
    OWNER_VERB_COUNT,
};
const char *owner_verb_name(enum owner_verb verb);

struct owner_request {
    int verb;       /* enum owner_verb */
    int64_t for_ms; /* of a pause; 0: until resumed */
};

/* INVALID for whatever is no request. */
MUST_CHECK int owner_request_read(struct arena *arena, struct text json,
                                  struct owner_request *out_request, struct error *error);

struct owner_line;

/* Carries the request out and writes the answer, an object. */
typedef void owner_line_function(void *context, const struct owner_request *request,
                                 struct json_writer *writer);

/* A socket left behind by a daemon that died is replaced. */
MUST_CHECK int owner_line_open(struct loop *loop, const char *state_dir,
                               owner_line_function *callback, void *context,
                               struct owner_line **out_line, struct error *error);
void owner_line_free(struct owner_line *line); /* NULL is fine */
DEFINE_AUTO(owner_line);

/*
 * The other end, for commands: waits for the answer, and after OWNER_STOP for the daemon's end.
 * NOT_FOUND: no daemon runs there. The daemon's own error otherwise.
 */
MUST_CHECK int owner_line_call(const char *state_dir, const struct owner_request *request,
                               struct buffer *answer, struct error *error);
