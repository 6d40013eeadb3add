#include "function/instance_message.h"

#include "wire/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { CALL_HEAD_SIZE = 16, READ_SIZE = 16 << 10, SOCKET_BYTES = 4 * INSTANCE_PAYLOAD_MAX };

int instance_socket_pair(int out_fds[2], struct error *error)
{
    const int size = SOCKET_BYTES;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out_fds) < 0)
        return error_set_errno(error, errno, "make a socket for a function");
    for (int i = 0; i < 2; i++) {
        setsockopt(out_fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        setsockopt(out_fds[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
    return 0;
}

int instance_message_send(int fd, const struct instance_message *message, struct error *error)
{
    uint8_t header[FRAME_HEADER_SIZE];
    const int64_t head[2] = {message->time_ms, message->memory_bytes};
    const size_t head_size = message->type == INSTANCE_CALL ? CALL_HEAD_SIZE : 0;
    struct buffer whole AUTO_BUFFER;
    buffer_init(&whole, INSTANCE_PAYLOAD_MAX + FRAME_HEADER_SIZE);
    frame_header_encode((uint32_t)(head_size + message->json.size), (uint16_t)message->type,
                        header);
    buffer_append(&whole, header, sizeof(header));
    buffer_append(&whole, head, head_size);
    buffer_append_text(&whole, message->json);
    if (buffer_check(&whole, error) < 0)
        return -1;
    ssize_t sent;
    do
        sent = send(fd, whole.data, whole.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)whole.size
               ? 0
               : error_set(error, ERROR_UNAVAILABLE, "the other end does not take the message");
}

int instance_message_receive(int fd, bool is_waiting, struct buffer *buffer, bool *out_has_ended,
                             struct error *error)
{
    uint8_t *room = buffer_reserve(buffer, READ_SIZE);
    *out_has_ended = false;
    if (!room)
        return error_set(error, ERROR_CORRUPT, "the message is too long");
    ssize_t got;
    do
        got = recv(fd, room, READ_SIZE, is_waiting ? 0 : MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
        buffer_advance(buffer, (size_t)got);
        return 0;
    }
    *out_has_ended = got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    return error_set(error, ERROR_UNAVAILABLE, "nothing is there");
}

int instance_message_decode(struct text bytes, struct instance_message *out_message,
                            size_t *out_size, struct error *error)
{
    struct frame frame;
    const int result = frame_decode(bytes, INSTANCE_PAYLOAD_MAX, &frame, out_size, error);
    if (result <= 0)
        return result;
    if (frame.type < INSTANCE_READY || frame.type > INSTANCE_FAILED ||
        (frame.type == INSTANCE_CALL && frame.payload.size < CALL_HEAD_SIZE))
        return error_set(error, ERROR_CORRUPT, "it is no message of a function");
    struct instance_message message = {.type = (enum instance_message_type)frame.type,
                                       .json = frame.payload};
    if (frame.type == INSTANCE_CALL) {
        memcpy(&message.time_ms, frame.payload.data, sizeof(message.time_ms));
        memcpy(&message.memory_bytes, frame.payload.data + sizeof(message.time_ms),
               sizeof(message.memory_bytes));
        message.json.data += CALL_HEAD_SIZE;
        message.json.size -= CALL_HEAD_SIZE;
    }
    *out_message = message;
    return 1;
}
