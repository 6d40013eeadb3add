/*
 * `souk rank-launch HOST COMMAND...`: in place of ssh for a framework's own launcher on rank 0: has
 * the shell of another rank run the command, and ends as it does.
 *
 * Words are joined by blanks and read by that shell, as ssh does it.
 */
#include "base/error.h"
#include "base/log.h"
#include "runtime/muster_message.h"
#include "worker/worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* To the supervisor of this sandbox. */
static int dial(struct error *error)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(MUSTER_PORT),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return error_set_errno(error, errno, "reach the rank's supervisor");
    return TAKE_FD(fd);
}

static int send_all(int fd, struct text bytes, struct error *error)
{
    while (bytes.size > 0) {
        const ssize_t sent = send(fd, bytes.data, bytes.size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return error_set_errno(error, errno, "ask the rank's supervisor");
        if (sent > 0)
            bytes = (struct text){bytes.data + sent, bytes.size - (size_t)sent};
    }
    return 0;
}

/* The one line that is the answer. */
static int receive(struct arena *arena, int fd, struct muster_message *out, struct error *error)
{
    char line[1024];
    size_t size = 0;
    while (size < sizeof(line)) {
        const ssize_t got = recv(fd, line + size, sizeof(line) - size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return error_set(error, ERROR_UNAVAILABLE,
                             "no such rank, it is gone, or the secret is not this round's");
        size += (size_t)got;
        if (line[size - 1] == '\n')
            return muster_message_decode(arena, (struct text){line, size - 1}, out, error);
    }
    return error_set(error, ERROR_INVALID, "the rank's supervisor says too much");
}

static int launch(struct arena *arena, const char *host, struct text command, int *out_status,
                  struct error *error)
{
    struct muster_message message = {
        .kind = MUSTER_MESSAGE_LAUNCH, .host = text_of(host), .command = command};
    const char *secret = getenv(MUSTER_SECRET_NAME); // NOLINT(concurrency-mt-unsafe): one thread
    if (!secret || text_hex_decode(text_of(secret), message.secret, MUSTER_SECRET_SIZE, error) < 0)
        return error_set(error, ERROR_REFUSED,
                         MUSTER_SECRET_NAME " is not set: only what rank 0 runs may launch");
    struct buffer line AUTO_BUFFER;
    buffer_init(&line, MUSTER_LINE_MAX);
    muster_message_encode(&message, &line);
    AUTO_FD int fd = dial(error);
    if (fd < 0 || buffer_check(&line, error) < 0 || send_all(fd, buffer_text(&line), error) < 0 ||
        receive(arena, fd, &message, error) < 0)
        return -1;
    if (message.kind != MUSTER_MESSAGE_LAUNCHED)
        return error_set(error, ERROR_INVALID, "the rank's supervisor answers something else");
    *out_status = (int)message.status;
    return 0;
}

/* A launcher of mpirun's is left waiting when that is done: the round ends then, and with it all
 * that was launched. Nobody is there to be told. */
static bool is_left_behind(pid_t caller, const struct error *why)
{
    return why->code == ERROR_UNAVAILABLE && getppid() != caller;
}

int rank_launch_main(int argc, char **argv)
{
    const pid_t caller = getppid();
    AUTO(arena) struct arena *arena = arena_new(0);
    struct buffer command AUTO_BUFFER;
    struct error error;
    int status = 0;
    buffer_init(&command, MUSTER_COMMAND_MAX);
    for (int i = 2; i < argc; i++)
        buffer_append_format(&command, "%s%s", i > 2 ? " " : "", argv[i]);
    if (argc < 3)
        error_set(&error, ERROR_INVALID, "usage: souk rank-launch HOST COMMAND...");
    else if (buffer_check(&command, &error) == 0 &&
             launch(arena, argv[1], buffer_text(&command), &status, &error) == 0)
        return status;
    if (!is_left_behind(caller, &error))
        log_event(LOG_ERROR, "launch_failed", "host=%s error=\"%s\"", argc > 1 ? argv[1] : "",
                  error.message);
    return error_exit_code(error.code);
}
