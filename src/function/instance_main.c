#include "function/handler.h"
#include "function/instance.h"
#include "function/instance_message.h"
#include "sandbox/sandbox.h"
#include "source/remote.h"

#include <signal.h>
#include <stdio.h>

static int answer_call(struct handler *handler, const struct instance_message *call,
                       struct error *error)
{
    struct error refusal;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, INSTANCE_PAYLOAD_MAX);
    const struct handler_limits limits = {.deadline_ns = clock_monotonic_ns(&clock_system) +
                                                         call->time_ms * 1000000,
                                          .memory_bytes = call->memory_bytes};
    struct instance_message answer = {.type = INSTANCE_ANSWER};
    if (handler_call(handler, call->json, &limits, &json, &refusal) < 0) {
        buffer_clear(&json);
        handler_write_error(&refusal, &json);
        answer.type = INSTANCE_FAILED;
    }
    answer.json = buffer_text(&json);
    return instance_message_send(SANDBOX_CONTROL_FD, &answer, error);
}

/* One call after the other until the host is gone. */
static int serve(struct handler *handler, struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, (size_t)2 * INSTANCE_PAYLOAD_MAX);
    for (;;) {
        struct instance_message call;
        size_t size;
        bool has_ended;
        const int found = instance_message_decode(buffer_text(&bytes), &call, &size, error);
        if (found < 0)
            return -1;
        if (found > 0) {
            if (call.type != INSTANCE_CALL)
                return error_set(error, ERROR_CORRUPT, "it is not the host's to send");
            if (answer_call(handler, &call, error) < 0)
                return -1;
            buffer_consume(&bytes, size);
        } else if (instance_message_receive(SANDBOX_CONTROL_FD, true, &bytes, &has_ended, error) <
                   0) {
            return has_ended ? 0 : -1;
        }
    }
}

int instance_main(int argc, char **argv)
{
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    struct error error;
    signal(SIGPIPE, SIG_IGN);
    const struct instance_message ready = {.type = INSTANCE_READY};
    int result = remote_credentials_take_environment(&credentials, &error);
    AUTO(handler)
    struct handler *handler =
        handler_new(&(struct handler_options){.clock = &clock_system,
                                              .store = INSTANCE_STORE,
                                              .credentials = &credentials,
                                              .market_server = argc > 1 ? argv[1] : NULL,
                                              .market_fingerprint = argc > 2 ? argv[2] : NULL});
    if (result == 0)
        result = instance_message_send(SANDBOX_CONTROL_FD, &ready, &error);
    if (result == 0)
        result = serve(handler, &error);
    if (result < 0)
        fprintf(stderr, "souk: %s\n", error.message);
    return result < 0 ? 1 : 0;
}
