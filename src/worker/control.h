/*
 * Control: this process's end of the daemon's control socket, on a loop.
 *
 * Sending is allowed from any thread: one packet is one message. Reports may be lost when the
 * daemon does not read; all else waits for it.
 */
#pragma once

#include "base/error.h"
#include "base/json_schema.h"
#include "base/scope.h"
#include "net/loop.h"
#include "runtime/child_message.h"

#include <stdint.h>

struct control_callbacks {
    /* The descriptor is the callee's. */
    void (*on_stream)(void *context, const struct child_stream *stream);
    void (*on_peer)(void *context, const struct child_peer *peer);
    /* STOP came, or SIGTERM, or the daemon is gone; perhaps more than once. */
    void (*on_stop)(void *context, const char *reason, int64_t grace_ms);
    /* As on_stop, but the job goes on elsewhere; NULL: it makes no difference. */
    void (*on_handover)(void *context, const char *reason, int64_t grace_ms);
    /* CHECKPOINTS or KEPT; NULL: none is asked for. */
    void (*on_checkpoint)(void *context, const struct child_message *message);
    /* CALLED; NULL: nothing is called. */
    void (*on_called)(void *context, const struct child_message *message);
};

struct control;

/* Watches the socket and SIGTERM: before other threads start. The socket stays the caller's. */
MUST_CHECK int control_open(struct loop *loop, int socket,
                            const struct control_callbacks *callbacks, void *context,
                            struct control **out_control, struct error *error);
void control_free(struct control *control); /* NULL is fine */
DEFINE_AUTO(control);

/* UNAVAILABLE when the daemon has no room for it within timeout_ms. */
MUST_CHECK int control_report(int socket, const struct json_schema *schema, const void *report,
                              int timeout_ms, struct error *error);
/* READY, ARTIFACT, DONE: waits up to ten seconds for room. */
MUST_CHECK int control_send(int socket, const struct child_message *message, struct error *error);
