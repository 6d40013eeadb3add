/*
 * Control: messages of the daemon become calls; SIGTERM is one more way to be told to stop.
 */
#include "worker/control.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/log.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEND_WAIT_MS = 10000, SIGNAL_GRACE_MS = 2000, GONE_GRACE_MS = 500 };

struct control {
    struct control_callbacks callbacks;
    void *context;
    int socket;
    struct arena *arena; /* of one message */
    struct loop_watch *watch;
    struct loop_signal *signal;
};

static void stop(struct control *control, const char *reason, int64_t grace_ms)
{
    control->callbacks.on_stop(control->context, reason, grace_ms);
}

static void message_take(struct control *control, const struct child_message *message)
{
    char reason[CHILD_TEXT_MAX + 1];
    struct error error;
    switch (message->kind) {
    case CHILD_STREAM:
        control->callbacks.on_stream(control->context, &message->stream);
        return;
    case CHILD_PEER:
        if (control->callbacks.on_peer)
            control->callbacks.on_peer(control->context, &message->peer);
        return;
    case CHILD_STOP:
        if (text_copy(message->stop.reason, reason, sizeof reason, &error) < 0)
            reason[0] = '\0';
        if (message->stop.is_handover && control->callbacks.on_handover)
            control->callbacks.on_handover(control->context, reason, message->stop.grace_ms);
        else
            stop(control, reason, message->stop.grace_ms);
        return;
    case CHILD_CHECKPOINTS:
    case CHILD_KEPT:
        if (control->callbacks.on_checkpoint)
            control->callbacks.on_checkpoint(control->context, message);
        return;
    case CHILD_CALLED:
        if (control->callbacks.on_called)
            control->callbacks.on_called(control->context, message);
        return;
    case CHILD_CALL:
    case CHILD_WANTED:
    case CHILD_CONFIG:
    case CHILD_READY:
    case CHILD_REPORT:
    case CHILD_ARTIFACT:
    case CHILD_DONE:
        break;
    }
    log_event(LOG_WARN, "control_message_ignored", "kind=%d", (int)message->kind);
}

static void on_readable(void *context, uint32_t events)
{
    (void)events;
    struct control *control = context;
    struct child_message message;
    struct error error;
    bool has_ended;
    arena_clear(control->arena);
    if (child_message_receive(control->socket, control->arena, &message, &has_ended, &error) == 0) {
        message_take(control, &message);
        return;
    }
    if (!has_ended && error.code == ERROR_UNAVAILABLE)
        return;
    /* Without its daemon nobody pays for or collects this work. */
    loop_watch_free(TAKE(control->watch));
    log_event(LOG_ERROR, "control_lost", "error=\"%s\"", error.message);
    stop(control, "the daemon is gone", GONE_GRACE_MS);
}

static void on_signal(void *context)
{
    stop(context, "terminated", SIGNAL_GRACE_MS);
}

int control_open(struct loop *loop, int socket, const struct control_callbacks *callbacks,
                 void *context, struct control **out_control, struct error *error)
{
    AUTO(control) struct control *control = calloc(1, sizeof *control);
    ASSERT(control);
    control->callbacks = *callbacks;
    control->context = context;
    control->socket = socket;
    control->arena = arena_new(0);
    if (loop_signal_open(loop, SIGTERM, on_signal, control, &control->signal, error) < 0)
        return -1;
    if (loop_watch_open(loop, socket, LOOP_READ, on_readable, control, &control->watch, error) < 0)
        return error_wrap(error, "control socket");
    *out_control = TAKE(control);
    return 0;
}

void control_free(struct control *control)
{
    if (!control)
        return;
    loop_watch_free(control->watch);
    loop_signal_free(control->signal);
    arena_free(control->arena);
    free(control);
}

int control_report(int socket, const struct json_schema *schema, const void *report, int timeout_ms,
                   struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, CHILD_REPORT_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write(&writer, schema, report);
    if (buffer_check(&json, error) < 0)
        return error_wrap(error, "%s", schema->name);
    const struct child_message message = {.kind = CHILD_REPORT,
                                          .report = {.json = buffer_text(&json)}};
    return child_message_send(socket, &message, timeout_ms, error);
}

int control_send(int socket, const struct child_message *message, struct error *error)
{
    return child_message_send(socket, message, SEND_WAIT_MS, error);
}
