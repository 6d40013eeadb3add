/*
 * HTTP fixture, for tests: a server on a thread of its own with a few routes, and a client that is
 * told what to send, byte by byte.
 */
#pragma once

#include "base/assert.h"
#include "net/http_server.h"
#include "testing/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STREAM_MAX = 8, BODY_MAX = 64 * 1024, FILE_SIZE = 4 << 20 };

/* The server runs on its own thread; tests talk to it by sockets and by what is posted. */
struct fixture {
    struct loop *loop;
    struct http_server *server;
    struct http_server_options options;
    pthread_t thread;
    uint64_t waiting_id; /* loop's thread, read by tests after the request has been seen */
    struct http_stream *streams[STREAM_MAX];
    atomic_int stream_count;
    atomic_int closed_stream_count;
    atomic_int dropped_count;
    atomic_int handler_count;
    atomic_int done_count;
    atomic_int last_status;
    atomic_bool is_waiting;
    bool is_finished; /* guarded by mutex */
    uint32_t connection_count;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* --- handlers --- */

static inline void reply_hello(struct http_request *request, void *context __attribute__((unused)))
{
    http_reply_static(request, 200, "text/plain", TEXT("hello"));
}

/* Two replies share one body; its owner lets go of it before they are sent. */
static inline void reply_shared(struct http_request *request, void *context __attribute__((unused)))
{
    struct buffer target AUTO_BUFFER;
    buffer_init(&target, 1000);
    http_request_target(request, &target);
    struct http_body *body = http_body_new(buffer_text(&target));
    http_reply_body(request, 200, "text/plain", body);
    http_reply_body(request, 500, "text/plain", body); /* ignored, and released */
    http_body_unref(body);
}

static inline void reply_echo(struct http_request *request, void *context)
{
    struct fixture *fixture = context;
    atomic_fetch_add(&fixture->handler_count, 1);
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, BODY_MAX + 1024);
    const struct text id = http_request_parameter(request, "id");
    const struct text query = http_request_query(request, "q");
    const struct text header = http_request_header(request, "x-test");
    const struct text cookie = http_request_cookie(request, "session");
    buffer_append_format(&body,
                         TEXT_FORMAT " id=" TEXT_FORMAT " q=" TEXT_FORMAT " x=" TEXT_FORMAT
                                     " c=" TEXT_FORMAT " local=%d flags=%u size=%zu ",
                         TEXT_ARGS(http_request_method(request)), TEXT_ARGS(id), TEXT_ARGS(query),
                         TEXT_ARGS(header), TEXT_ARGS(cookie),
                         address_is_loopback(http_request_remote(request)),
                         http_request_route(request)->flags, http_request_body(request).size);
    buffer_append_text(&body, http_request_body(request));
    struct error error;
    ASSERT(http_reply_header(request, "X-Extra", "yes", &error) == 0);
    ASSERT(http_reply_header(request, "X-Bad", "a\r\nb", &error) < 0);
    http_reply_take(request, 201, "text/plain", &body);
    http_reply(request, 500, "text/plain", TEXT("a second reply is ignored"));
}

static inline void reply_later(struct http_request *request, void *context)
{
    struct fixture *fixture = context;
    fixture->waiting_id = http_request_id(request);
    ASSERT(http_server_find(fixture->server, fixture->waiting_id) == request);
    pthread_mutex_lock(&fixture->mutex);
    atomic_store(&fixture->is_waiting, true);
    pthread_cond_broadcast(&fixture->changed);
    pthread_mutex_unlock(&fixture->mutex);
}

static inline void reply_file(struct http_request *request, void *context __attribute__((unused)))
{
    const int fd = memfd_create("reply", MFD_CLOEXEC);
    ASSERT(fd >= 0 && ftruncate(fd, FILE_SIZE + 3) == 0);
    ASSERT(pwrite(fd, "abcdef", 6, 0) == 6);
    http_reply_file_take(request, 200, "application/octet-stream", fd, 3, FILE_SIZE);
}

static inline void on_stream_close(struct http_stream *stream, void *context)
{
    struct fixture *fixture = context;
    for (int i = 0; i < STREAM_MAX; i++)
        if (fixture->streams[i] == stream)
            fixture->streams[i] = NULL;
    http_stream_free(stream);
    pthread_mutex_lock(&fixture->mutex);
    atomic_fetch_add(&fixture->closed_stream_count, 1);
    pthread_cond_broadcast(&fixture->changed);
    pthread_mutex_unlock(&fixture->mutex);
}

static inline void open_stream(struct http_request *request, void *context)
{
    struct fixture *fixture = context;
    struct error error;
    const int index = atomic_load(&fixture->stream_count);
    ASSERT(index < STREAM_MAX);
    ASSERT(http_stream_open(request, on_stream_close, fixture, &fixture->streams[index], &error) ==
           0);
    atomic_fetch_add(&fixture->stream_count, 1);
}

static inline void refuse_without_token(struct http_request *request,
                                        void *context __attribute__((unused)))
{
    if (http_request_route(request)->flags == 9 &&
        !http_request_header(request, "Authorization").data)
        http_reply_problem(request, 401, "unauthorized", "a token is needed");
}

static inline void count_done(const struct http_request *request __attribute__((unused)),
                              int status, void *context)
{
    struct fixture *fixture = context;
    pthread_mutex_lock(&fixture->mutex);
    atomic_store(&fixture->last_status, status);
    atomic_fetch_add(&fixture->done_count, 1);
    pthread_cond_broadcast(&fixture->changed);
    pthread_mutex_unlock(&fixture->mutex);
}

static const struct http_route ROUTES[] = {
    {"GET", "/hello", 0, reply_hello, 0},
    {"GET", "/echo/{id}", 0, reply_echo, 3},
    {"POST", "/echo/{id}", BODY_MAX, reply_echo, 4},
    {"PUT", "/guarded", BODY_MAX, reply_echo, 9},
    {"GET", "/shared/{id}", 0, reply_shared, 0},
    {"GET", "/later", 0, reply_later, 0},
    {"GET", "/file", 0, reply_file, 0},
    {"GET", "/events", 0, open_stream, 0},
};

static const struct http_header DEFAULT_HEADERS[] = {{"X-Default", "always"}};

/* --- the fixture --- */

static inline void *run_server(void *context)
{
    struct fixture *fixture = context;
    struct error error;
    ASSERT(loop_run(fixture->loop, &error) == 0);
    http_server_free(fixture->server);
    for (int i = 0; i < STREAM_MAX; i++)
        ASSERT(!fixture->streams[i]);
    return NULL;
}

static inline void fixture_init(struct fixture *fixture)
{
    struct error error = {0};
    memset(fixture, 0, sizeof(*fixture));
    pthread_mutex_init(&fixture->mutex, NULL);
    pthread_cond_init(&fixture->changed, NULL);
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
    const struct host_port host_port = {.host = "127.0.0.1"};
    fixture->options = (struct http_server_options){
        .loop = fixture->loop,
        .routes = ROUTES,
        .route_count = sizeof(ROUTES) / sizeof(*ROUTES),
        .context = fixture,
        .default_headers = DEFAULT_HEADERS,
        .default_header_count = 1,
        .on_headers = refuse_without_token,
        .on_done = count_done,
    };
    ASSERT_OK(address_resolve(&host_port, &fixture->options.listen, &error));
}

static inline void fixture_start(struct fixture *fixture)
{
    struct error error = {0};
    ASSERT_OK(http_server_open(&fixture->options, &fixture->server, &error));
    assert_int_equal(pthread_create(&fixture->thread, NULL, run_server, fixture), 0);
}

static inline void fixture_stop(struct fixture *fixture)
{
    loop_stop(fixture->loop);
    pthread_join(fixture->thread, NULL);
    loop_free(fixture->loop);
    pthread_mutex_destroy(&fixture->mutex);
    pthread_cond_destroy(&fixture->changed);
}

static inline void wait_for(struct fixture *fixture, atomic_int *counter, int value)
{
    pthread_mutex_lock(&fixture->mutex);
    while (atomic_load(counter) < value)
        pthread_cond_wait(&fixture->changed, &fixture->mutex);
    pthread_mutex_unlock(&fixture->mutex);
}

/* Runs a function on the server's thread and waits for it. */
struct errand {
    struct fixture *fixture;
    void (*function)(struct fixture *fixture);
};

static inline void run_errand(void *context)
{
    const struct errand *errand = context;
    errand->function(errand->fixture);
    pthread_mutex_lock(&errand->fixture->mutex);
    errand->fixture->is_finished = true;
    pthread_cond_broadcast(&errand->fixture->changed);
    pthread_mutex_unlock(&errand->fixture->mutex);
}

static inline void on_server(struct fixture *fixture, void (*function)(struct fixture *fixture))
{
    struct errand errand = {fixture, function};
    fixture->is_finished = false;
    loop_post(fixture->loop, run_errand, &errand);
    pthread_mutex_lock(&fixture->mutex);
    while (!fixture->is_finished)
        pthread_cond_wait(&fixture->changed, &fixture->mutex);
    pthread_mutex_unlock(&fixture->mutex);
}

static inline void note_connections(struct fixture *fixture)
{
    fixture->connection_count = http_server_connection_count(fixture->server);
}

static inline uint32_t connection_count(struct fixture *fixture)
{
    on_server(fixture, note_connections);
    return fixture->connection_count;
}

/* --- a client that is told what to send, byte by byte --- */

static inline int client_connect(const struct fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(fixture->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline void client_send(int fd, const char *text)
{
    const size_t size = strlen(text);
    assert_int_equal(send(fd, text, size, MSG_NOSIGNAL), size);
}

/* Reads until the text is in what came. */
static inline void client_read_until(int fd, struct buffer *reply, const char *text)
{
    while (!strstr(buffer_string(reply), text)) {
        uint8_t piece[4096];
        const ssize_t got = recv(fd, piece, sizeof(piece), 0);
        if (got <= 0)
            fail_msg("closed before \"%s\" came: %s", text, buffer_string(reply));
        buffer_append(reply, piece, (size_t)got);
    }
}

static inline void client_read_to_end(int fd, struct buffer *reply)
{
    uint8_t piece[16384];
    ssize_t got;
    while ((got = recv(fd, piece, sizeof(piece), 0)) > 0)
        buffer_append(reply, piece, (size_t)got);
}

/* The whole reply to a request that closes its connection; `reply` was not initialised. */
static inline void exchange(const struct fixture *fixture, const char *request,
                            struct buffer *reply)
{
    buffer_init(reply, 16 << 20);
    const int fd = client_connect(fixture);
    client_send(fd, request);
    client_read_to_end(fd, reply);
    close(fd);
}

static inline void assert_contains(struct buffer *reply, const char *text)
{
    if (!strcasestr(buffer_string(reply), text))
        fail_msg("no \"%s\" in: %s", text, buffer_string(reply));
}

#define CLOSE "Host: x\r\nConnection: close\r\n\r\n"
