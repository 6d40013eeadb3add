/*
 * Instance message: what a host and the process of one instance say to each other over their
 * socket: frames of wire/frame.h.
 *
 *     READY   from the instance, once: it takes calls
 *     CALL    to it: milliseconds it has and bytes of memory, 8 bytes each, little-endian, then the
 *             request
 *     ANSWER  from it: the answer
 *     FAILED  from it: {"errorType", "errorMessage"}
 *
 * One call at a time. A message fits into the socket's buffer, so that sending one is one call.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum instance_message_type {
    INSTANCE_READY = 1,
    INSTANCE_CALL,
    INSTANCE_ANSWER,
    INSTANCE_FAILED,
};

enum { INSTANCE_PAYLOAD_MAX = 96 << 10 };

struct instance_message {
    enum instance_message_type type;
    int64_t time_ms, memory_bytes; /* of a call */
    struct text json;              /* of a call and its end; lies in the bytes that were read */
};

/* Both ends, non-blocking none of them; the caller closes them. */
MUST_CHECK int instance_socket_pair(int out_fds[2], struct error *error);

/* UNAVAILABLE when the other end is gone or takes nothing. */
MUST_CHECK int instance_message_send(int fd, const struct instance_message *message,
                                     struct error *error);

/* Reads what is there onto `buffer` once, waiting for it unless `is_waiting` is false.
 * *out_has_ended: the other end is gone; then and when nothing is there it fails with UNAVAILABLE.
 */
MUST_CHECK int instance_message_receive(int fd, bool is_waiting, struct buffer *buffer,
                                        bool *out_has_ended, struct error *error);
/* The message at the start of the buffer and its size: 1; 0: there is no whole one; -1: CORRUPT. */
MUST_CHECK int instance_message_decode(struct text bytes, struct instance_message *out_message,
                                       size_t *out_size, struct error *error);
