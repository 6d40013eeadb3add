/* Owner line, the caller's end: blocking, for one command. */
#include "peer/owner_line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Leases get their grace before the daemon ends. */
enum { STOP_SECONDS_MAX = 30, ANSWER_SECONDS_MAX = 5 };

struct refusal {
    struct text error;
};

static const struct json_field refusal_fields[] = {
    {"error", JSON_TEXT, offsetof(struct refusal, error), .size_max = 256},
};
static const struct json_schema refusal_schema =
    JSON_SCHEMA_LENIENT("answer", refusal_fields, struct refusal);

static int call_connect(const char *state_dir, int *out_fd, struct error *error)
{
    AUTO_FD int folder_fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set_errno(error, errno, "make a socket");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/owner.socket",
             folder_fd);
    if (folder_fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        *out_fd = TAKE_FD(fd);
        return 0;
    }
    if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
        return error_set(error, ERROR_NOT_FOUND,
                         "no \"souk lend\" runs with the state folder \"%s\"; is it another "
                         "--state-dir?",
                         state_dir);
    if (errno == EACCES)
        return error_set(error, ERROR_REFUSED,
                         "\"%s\" belongs to another user; run this as the one who lends",
                         state_dir);
    return error_set_errno(error, errno, "reach the daemon of \"%s\"", state_dir);
}

static int call_send(int fd, const struct owner_request *request, struct error *error)
{
    char line[OWNER_LINE_REQUEST_MAX];
    const int size =
        snprintf(line, sizeof(line), "{\"do\":\"%s\",\"for_ms\":%lld}\n",
                 owner_verb_name((enum owner_verb)request->verb), (long long)request->for_ms);
    if (send(fd, line, (size_t)size, MSG_NOSIGNAL) != size)
        return error_set_errno(error, errno, "ask the daemon");
    return 0;
}

/* Up to the end of the line, or of the daemon. */
static int call_receive(int fd, bool is_to_end, struct buffer *answer, struct error *error)
{
    const struct timeval patience = {.tv_sec = is_to_end ? STOP_SECONDS_MAX : ANSWER_SECONDS_MAX};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
        return error_set_errno(error, errno, "set up the socket");
    for (;;) {
        char bytes[4096];
        const ssize_t size = recv(fd, bytes, sizeof(bytes), 0);
        if (size < 0 && errno == EINTR)
            continue;
        /* A daemon that ends closes the line, perhaps with what it had not read yet. */
        if (size == 0 || (size < 0 && errno == ECONNRESET && is_to_end))
            break;
        if (size < 0 && errno == EAGAIN)
            return error_set(error, ERROR_UNAVAILABLE, "the daemon does not %s",
                             is_to_end ? "end; its leases are still stopping" : "answer");
        if (size < 0)
            return error_set_errno(error, errno, "hear from the daemon");
        buffer_append(answer, bytes, (size_t)size);
        if (buffer_check(answer, error) < 0)
            return error_wrap(error, "the daemon's answer");
        if (!is_to_end && bytes[size - 1] == '\n')
            break;
    }
    if (answer->size == 0)
        return error_set(error, ERROR_UNAVAILABLE, "the daemon ended before it answered");
    return 0;
}

int owner_line_call(const char *state_dir, const struct owner_request *request,
                    struct buffer *answer, struct error *error)
{
    AUTO_FD int fd = -1;
    if (call_connect(state_dir, &fd, error) < 0 || call_send(fd, request, error) < 0 ||
        call_receive(fd, request->verb == OWNER_STOP, answer, error) < 0)
        return -1;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct refusal refusal = {0};
    if (json_read(arena, buffer_text(answer), &refusal_schema, &refusal, error) < 0)
        return error_wrap(error, "the daemon's answer");
    if (refusal.error.size > 0)
        return error_set(error, ERROR_REFUSED, TEXT_FORMAT, TEXT_ARGS(refusal.error));
    return 0;
}
