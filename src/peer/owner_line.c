#include "peer/owner_line.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_NAME "owner.socket"

static const char *const verb_names[] = {"status", "pause", "resume", "drain", "stop", NULL};

const char *owner_verb_name(enum owner_verb verb)
{
    ASSERT(verb < OWNER_VERB_COUNT);
    return verb_names[verb];
}

static const struct json_field request_fields[] = {
    {"do", JSON_CHOICE, offsetof(struct owner_request, verb), .is_required = true,
     .choices = verb_names},
    {"for_ms", JSON_I64, offsetof(struct owner_request, for_ms), .minimum = 0,
     .maximum = INT64_C(366) * 24 * 3600 * 1000},
};
static const struct json_schema request_schema =
    JSON_SCHEMA("request", request_fields, struct owner_request);

int owner_request_read(struct arena *arena, struct text json, struct owner_request *out_request,
                       struct error *error)
{
    *out_request = (struct owner_request){0};
    return json_read(arena, json, &request_schema, out_request, error);
}

/* The address of the socket; a name longer than an address is reached through its open folder. */
static int line_address(const char *state_dir, int *out_folder_fd, struct sockaddr_un *out_address,
                        struct error *error)
{
    *out_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    AUTO_FD int fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", state_dir);
    snprintf(out_address->sun_path, sizeof(out_address->sun_path), "/proc/self/fd/%d/" SOCKET_NAME,
             fd);
    *out_folder_fd = TAKE_FD(fd);
    return 0;
}

/* ---- The daemon's end ------------------------------------------------------------------------ */

struct caller {
    struct list_node node;
    struct owner_line *line;
    int fd;
    struct loop_watch *watch;
    struct loop_timer *patience;
    struct buffer request, answer;
    bool is_answered;
    bool is_kept; /* until the daemon has ended */
};

struct owner_line {
    struct loop *loop;
    owner_line_function *callback;
    void *context;
    char path[PATH_MAX];
    int fd;
    struct loop_watch *watch;
    struct list callers;
    size_t caller_count;
};

static void caller_free(struct caller *caller)
{
    list_remove(&caller->node);
    caller->line->caller_count--;
    loop_watch_free(caller->watch);
    loop_timer_free(caller->patience);
    close(caller->fd);
    buffer_done(&caller->request);
    buffer_done(&caller->answer);
    free(caller);
}

static void caller_on_impatience(void *context)
{
    caller_free(context);
}

/* What does not fit into the socket's buffer is written as the caller takes it. */
static void caller_write(struct caller *caller)
{
    const ssize_t size =
        send(caller->fd, caller->answer.data, caller->answer.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0)
        buffer_consume(&caller->answer, (size_t)size);
    const bool is_failed = size < 0 && errno != EAGAIN && errno != EINTR;
    if (is_failed || (caller->answer.size == 0 && !caller->is_kept)) {
        caller_free(caller);
        return;
    }
    if (caller->answer.size == 0)
        loop_timer_stop(caller->patience);
    loop_watch_set(caller->watch, caller->answer.size > 0 ? LOOP_WRITE : 0);
}

static void caller_answer(struct caller *caller, struct text json)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct owner_request request;
    struct error error;
    struct json_writer writer;
    caller->is_answered = true;
    json_writer_init(&writer, &caller->answer);
    if (owner_request_read(arena, json, &request, &error) < 0) {
        json_object_begin(&writer);
        json_field_string(&writer, "error", error.message);
        json_object_end(&writer);
    } else {
        caller->is_kept = request.verb == OWNER_STOP;
        caller->line->callback(caller->line->context, &request, &writer);
    }
    if (buffer_check(&caller->answer, &error) < 0) {
        buffer_clear(&caller->answer);
        buffer_append_string(&caller->answer, "{\"error\":\"the answer is too long\"}");
    }
    buffer_append_byte(&caller->answer, '\n');
}

static void caller_read(struct caller *caller)
{
    char bytes[OWNER_LINE_REQUEST_MAX];
    const ssize_t size = recv(caller->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    struct text line, rest;
    struct error error;
    if (size > 0)
        buffer_append(&caller->request, bytes, (size_t)size);
    if (size <= 0 || buffer_check(&caller->request, &error) < 0) {
        caller_free(caller);
        return;
    }
    if (!text_cut(buffer_text(&caller->request), '\n', &line, &rest))
        return;
    caller_answer(caller, line);
    caller_write(caller);
}

static void caller_on_events(void *context, uint32_t events)
{
    struct caller *caller = context;
    if (caller->is_answered && (events & LOOP_HANGUP) && !(events & LOOP_WRITE))
        caller_free(caller);
    else if (caller->is_answered)
        caller_write(caller);
    else
        caller_read(caller);
}

static void line_on_caller(void *context, uint32_t events)
{
    struct owner_line *line = context;
    struct error error;
    (void)events;
    AUTO_FD int fd = accept4(line->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 || line->caller_count >= OWNER_LINE_CALLERS_MAX)
        return;
    struct caller *caller = calloc(1, sizeof(*caller));
    ASSERT(caller);
    caller->line = line;
    caller->fd = TAKE_FD(fd);
    buffer_init(&caller->request, OWNER_LINE_REQUEST_MAX);
    buffer_init(&caller->answer, OWNER_LINE_ANSWER_MAX);
    list_append(&line->callers, &caller->node);
    line->caller_count++;
    caller->patience = loop_timer_new(line->loop, caller_on_impatience, caller);
    loop_timer_start(caller->patience, OWNER_LINE_PATIENCE_MS);
    if (loop_watch_open(line->loop, caller->fd, LOOP_READ, caller_on_events, caller, &caller->watch,
                        &error) < 0) {
        log_event(LOG_WARN, "owner_line", "error=\"%s\"", error.message);
        caller_free(caller);
    }
}

int owner_line_open(struct loop *loop, const char *state_dir, owner_line_function *callback,
                    void *context, struct owner_line **out_line, struct error *error)
{
    AUTO(owner_line) struct owner_line *line = calloc(1, sizeof(*line));
    ASSERT(line);
    *line = (struct owner_line){.loop = loop, .callback = callback, .context = context, .fd = -1};
    list_init(&line->callers);
    if (snprintf(line->path, sizeof(line->path), "%s/" SOCKET_NAME, state_dir) >=
        (int)sizeof(line->path))
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    AUTO_FD int folder_fd = -1;
    struct sockaddr_un address;
    if (line_address(state_dir, &folder_fd, &address, error) < 0)
        return -1;
    if (unlink(line->path) < 0 && errno != ENOENT)
        return error_set_errno(error, errno, "replace \"%s\"", line->path);
    line->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Closed to others before it exists: bind takes the mode of the descriptor. */
    if (line->fd < 0 || fchmod(line->fd, 0600) < 0 ||
        bind(line->fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(line->fd, OWNER_LINE_CALLERS_MAX) < 0)
        return error_set_errno(error, errno, "listen at \"%s\"", line->path);
    if (loop_watch_open(loop, line->fd, LOOP_READ, line_on_caller, line, &line->watch, error) < 0)
        return -1;
    *out_line = TAKE(line);
    return 0;
}

void owner_line_free(struct owner_line *line)
{
    if (!line)
        return;
    LIST_EACH(&line->callers, node)
    caller_free(LIST_ITEM(node, struct caller, node));
    loop_watch_free(line->watch);
    if (line->fd >= 0) {
        close(line->fd);
        unlink(line->path);
    }
    free(line);
}
