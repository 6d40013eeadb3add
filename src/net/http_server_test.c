/* covers http_server.c, http_request.c, http_reply.c, http_stream.c, mhd_library.c, library.c */
#include "base/assert.h"
#include "net/http_server.h"
#include "net/tls_certificate.h"
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
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* --- handlers --- */

static void reply_hello(struct http_request *request, void *context __attribute__((unused)))
{
    http_reply_static(request, 200, "text/plain", TEXT("hello"));
}

static void reply_echo(struct http_request *request, void *context)
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

static void reply_later(struct http_request *request, void *context)
{
    struct fixture *fixture = context;
    fixture->waiting_id = http_request_id(request);
    ASSERT(http_server_find(fixture->server, fixture->waiting_id) == request);
    pthread_mutex_lock(&fixture->mutex);
    atomic_store(&fixture->is_waiting, true);
    pthread_cond_broadcast(&fixture->changed);
    pthread_mutex_unlock(&fixture->mutex);
}

static void reply_file(struct http_request *request, void *context __attribute__((unused)))
{
    const int fd = memfd_create("reply", MFD_CLOEXEC);
    ASSERT(fd >= 0 && ftruncate(fd, FILE_SIZE + 3) == 0);
    ASSERT(pwrite(fd, "abcdef", 6, 0) == 6);
    http_reply_file_take(request, 200, "application/octet-stream", fd, 3, FILE_SIZE);
}

static void on_stream_close(struct http_stream *stream, void *context)
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

static void open_stream(struct http_request *request, void *context)
{
    struct fixture *fixture = context;
    struct error error;
    const int index = atomic_load(&fixture->stream_count);
    ASSERT(index < STREAM_MAX);
    ASSERT(http_stream_open(request, on_stream_close, fixture, &fixture->streams[index], &error) ==
           0);
    atomic_fetch_add(&fixture->stream_count, 1);
}

static void refuse_without_token(struct http_request *request,
                                 void *context __attribute__((unused)))
{
    if (http_request_route(request)->flags == 9 &&
        !http_request_header(request, "Authorization").data)
        http_reply_problem(request, 401, "unauthorized", "a token is needed");
}

static void count_done(const struct http_request *request __attribute__((unused)), int status,
                       void *context)
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
    {"GET", "/later", 0, reply_later, 0},
    {"GET", "/file", 0, reply_file, 0},
    {"GET", "/events", 0, open_stream, 0},
};

static const struct http_header DEFAULT_HEADERS[] = {{"X-Default", "always"}};

/* --- the fixture --- */

static void *run_server(void *context)
{
    struct fixture *fixture = context;
    struct error error;
    ASSERT(loop_run(fixture->loop, &error) == 0);
    http_server_free(fixture->server);
    for (int i = 0; i < STREAM_MAX; i++)
        ASSERT(!fixture->streams[i]);
    return NULL;
}

static void fixture_init(struct fixture *fixture)
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

static void fixture_start(struct fixture *fixture)
{
    struct error error = {0};
    ASSERT_OK(http_server_open(&fixture->options, &fixture->server, &error));
    assert_int_equal(pthread_create(&fixture->thread, NULL, run_server, fixture), 0);
}

static void fixture_stop(struct fixture *fixture)
{
    loop_stop(fixture->loop);
    pthread_join(fixture->thread, NULL);
    loop_free(fixture->loop);
    pthread_mutex_destroy(&fixture->mutex);
    pthread_cond_destroy(&fixture->changed);
}

static void wait_for(struct fixture *fixture, atomic_int *counter, int value)
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

static void run_errand(void *context)
{
    const struct errand *errand = context;
    errand->function(errand->fixture);
    pthread_mutex_lock(&errand->fixture->mutex);
    errand->fixture->is_finished = true;
    pthread_cond_broadcast(&errand->fixture->changed);
    pthread_mutex_unlock(&errand->fixture->mutex);
}

static void on_server(struct fixture *fixture, void (*function)(struct fixture *fixture))
{
    struct errand errand = {fixture, function};
    fixture->is_finished = false;
    loop_post(fixture->loop, run_errand, &errand);
    pthread_mutex_lock(&fixture->mutex);
    while (!fixture->is_finished)
        pthread_cond_wait(&fixture->changed, &fixture->mutex);
    pthread_mutex_unlock(&fixture->mutex);
}

/* --- a client that is told what to send, byte by byte --- */

static int client_connect(const struct fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(fixture->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void client_send(int fd, const char *text)
{
    const size_t size = strlen(text);
    assert_int_equal(send(fd, text, size, MSG_NOSIGNAL), size);
}

/* Reads until the text is in what came. */
static void client_read_until(int fd, struct buffer *reply, const char *text)
{
    while (!strstr(buffer_string(reply), text)) {
        uint8_t piece[4096];
        const ssize_t got = recv(fd, piece, sizeof(piece), 0);
        if (got <= 0)
            fail_msg("closed before \"%s\" came: %s", text, buffer_string(reply));
        buffer_append(reply, piece, (size_t)got);
    }
}

static void client_read_to_end(int fd, struct buffer *reply)
{
    uint8_t piece[16384];
    ssize_t got;
    while ((got = recv(fd, piece, sizeof(piece), 0)) > 0)
        buffer_append(reply, piece, (size_t)got);
}

/* The whole reply to a request that closes its connection; `reply` was not initialised. */
static void exchange(const struct fixture *fixture, const char *request, struct buffer *reply)
{
    buffer_init(reply, 16 << 20);
    const int fd = client_connect(fixture);
    client_send(fd, request);
    client_read_to_end(fd, reply);
    close(fd);
}

static void assert_contains(struct buffer *reply, const char *text)
{
    if (!strcasestr(buffer_string(reply), text))
        fail_msg("no \"%s\" in: %s", text, buffer_string(reply));
}

#define CLOSE "Host: x\r\nConnection: close\r\n\r\n"

/* --- tests --- */

TEST(a_request_reaches_its_handler_with_all_its_parts)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    exchange(&fixture,
             "POST /echo/a%2Fb?q=x%20y+z&other HTTP/1.1\r\nHost: x\r\nX-Test: v\r\n"
             "Cookie: session=s3\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody",
             &reply);
    assert_contains(&reply, "HTTP/1.1 201");
    assert_contains(&reply, "POST id=a/b q=x y z x=v c=s3 local=1 flags=4 size=4 body");
    assert_contains(&reply, "X-Default: always");
    assert_contains(&reply, "X-Extra: yes");
    assert_null(strstr(buffer_string(&reply), "X-Bad"));
    assert_null(strstr(buffer_string(&reply), "second reply"));
    wait_for(&fixture, &fixture.done_count, 1);
    assert_int_equal(atomic_load(&fixture.last_status), 201);
    fixture_stop(&fixture);
}

TEST(head_gives_the_headers_alone)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    exchange(&fixture, "HEAD /hello HTTP/1.1\r\n" CLOSE, &reply);
    assert_contains(&reply, "HTTP/1.1 200");
    assert_contains(&reply, "Content-Length: 5");
    assert_null(strstr(buffer_string(&reply), "hello"));
    fixture_stop(&fixture);
}

TEST(mistakes_are_answered_by_problems)
{
    static const struct {
        const char *request;
        const char *parts[3];
    } cases[] = {
        {"GET /nowhere HTTP/1.1\r\n" CLOSE, {"HTTP/1.1 404", "problem+json", "not_found"}},
        {"DELETE /echo/1 HTTP/1.1\r\n" CLOSE,
         {"HTTP/1.1 405", "Allow: GET, HEAD, POST", "method_not_allowed"}},
        {"GET /echo/%zz HTTP/1.1\r\n" CLOSE, {"HTTP/1.1 400", "problem+json", "X-Default"}},
        {"GET /hello?a=%f HTTP/1.1\r\n" CLOSE, {"HTTP/1.1 400", "problem+json", "query"}},
        {"GET /hello%00x HTTP/1.1\r\n" CLOSE, {"HTTP/1.1 404", "problem+json", ""}},
        {"GET /hello HTTP/1.1\r\nContent-Length: 1\r\n" CLOSE "x",
         {"HTTP/1.1 413", "problem+json", "too_large"}},
        {"PUT /guarded HTTP/1.1\r\nContent-Length: 1\r\n" CLOSE "x",
         {"HTTP/1.1 401", "problem+json", "unauthorized"}},
    };
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buffer reply AUTO_BUFFER;
        exchange(&fixture, cases[i].request, &reply);
        for (int k = 0; k < 3; k++)
            assert_contains(&reply, cases[i].parts[k]);
    }
    assert_int_equal(atomic_load(&fixture.handler_count), 0);
    fixture_stop(&fixture);
}

static void send_body(int fd, size_t size, bool is_chunked)
{
    char piece[8192];
    memset(piece, 'b', sizeof(piece));
    for (size_t done = 0; done < size; done += sizeof(piece)) {
        if (is_chunked)
            client_send(fd, "2000\r\n");
        for (size_t sent = 0; sent < sizeof(piece);) {
            const ssize_t n = send(fd, piece + sent, sizeof(piece) - sent, MSG_NOSIGNAL);
            if (n <= 0)
                return; /* the server has had enough */
            sent += (size_t)n;
        }
        if (is_chunked && send(fd, "\r\n", 2, MSG_NOSIGNAL) != 2)
            return;
    }
    if (is_chunked)
        (void)send(fd, "0\r\n\r\n", 5, MSG_NOSIGNAL);
}

TEST(a_body_at_its_maximum_is_taken_and_one_over_it_is_not)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    for (int is_chunked = 0; is_chunked < 2; is_chunked++)
        for (int is_over = 0; is_over < 2; is_over++) {
            const size_t size = BODY_MAX + (is_over ? 8192 : 0);
            char head[256];
            char length[64];
            snprintf(length, sizeof(length), "Content-Length: %zu", size);
            snprintf(head, sizeof(head), "POST /echo/1 HTTP/1.1\r\n%s\r\n" CLOSE,
                     is_chunked ? "Transfer-Encoding: chunked" : length);
            const int fd = client_connect(&fixture);
            client_send(fd, head);
            send_body(fd, size, is_chunked);
            struct buffer reply AUTO_BUFFER;
            buffer_init(&reply, 1 << 20);
            client_read_to_end(fd, &reply);
            close(fd);
            assert_contains(&reply, is_over ? "HTTP/1.1 413" : "size=65536");
        }
    assert_int_equal(atomic_load(&fixture.handler_count), 2);
    fixture_stop(&fixture);
}

TEST(a_huge_body_is_refused_before_it_is_sent)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    exchange(&fixture, "POST /echo/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n",
             &reply);
    assert_contains(&reply, "HTTP/1.1 413");
    buffer_done(&reply);
    exchange(&fixture,
             "POST /echo/1 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
             "Content-Length: 70000\r\n\r\n",
             &reply);
    assert_contains(&reply, "HTTP/1.1 413");
    assert_null(strstr(buffer_string(&reply), "100 Continue"));
    fixture_stop(&fixture);
}

TEST(an_endless_body_is_cut_off)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    const int fd = client_connect(&fixture);
    client_send(fd, "POST /echo/1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" CLOSE);
    char piece[8200];
    memset(piece, 'b', sizeof(piece));
    memcpy(piece, "2000\r\n", 6);
    memcpy(piece + 8198, "\r\n", 2);
    size_t sent = 0;
    for (ssize_t n; (n = send(fd, piece, sizeof(piece), MSG_NOSIGNAL)) > 0; sent += (size_t)n)
        assert_true(sent < 64 << 20);
    close(fd);
    wait_for(&fixture, &fixture.done_count, 1);
    assert_int_equal(atomic_load(&fixture.last_status), 0);
    fixture_stop(&fixture);
}

TEST(a_slow_body_is_gathered_piece_by_piece)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    const int slow = client_connect(&fixture);
    client_send(slow, "POST /echo/1 HTTP/1.1\r\nContent-Length: 6\r\n" CLOSE);
    for (int i = 0; i < 6; i++) {
        /* Another client is served between any two bytes: by then the byte before has arrived. */
        struct buffer other AUTO_BUFFER;
        client_send(slow, "z");
        exchange(&fixture, "GET /hello HTTP/1.1\r\n" CLOSE, &other);
        assert_contains(&other, "hello");
    }
    struct buffer reply AUTO_BUFFER;
    buffer_init(&reply, 65536);
    client_read_to_end(slow, &reply);
    assert_contains(&reply, "size=6 zzzzzz");
    close(slow);
    fixture_stop(&fixture);
}

TEST(a_client_that_stalls_is_dropped_after_the_idle_time)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.idle_timeout_s = 1;
    fixture_start(&fixture);
    const int fd = client_connect(&fixture);
    client_send(fd, "POST /echo/1 HTTP/1.1\r\nContent-Length: 6\r\n" CLOSE "ab");
    struct buffer reply AUTO_BUFFER;
    buffer_init(&reply, 65536);
    client_read_to_end(fd, &reply);
    close(fd);
    wait_for(&fixture, &fixture.done_count, 1);
    assert_int_equal(atomic_load(&fixture.last_status), 0);
    fixture_stop(&fixture);
}

TEST(pipelined_requests_are_answered_in_order_and_then_closed)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    exchange(&fixture,
             "GET /echo/1 HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
             "GET /echo/2 HTTP/1.1\r\n" CLOSE "GET /echo/3 HTTP/1.1\r\n" CLOSE,
             &reply);
    const char *text = buffer_string(&reply);
    const char *first = strstr(text, "id=1");
    const char *second = strstr(text, "hello");
    const char *third = strstr(text, "id=2");
    assert_true(first && second && third && first < second && second < third);
    assert_null(strstr(text, "id=3"));
    fixture_stop(&fixture);
}

static void answer_waiting(struct fixture *fixture)
{
    struct http_request *request = http_server_find(fixture->server, fixture->waiting_id);
    ASSERT(request);
    http_reply(request, 202, "text/plain", TEXT("at last"));
    ASSERT(!http_server_find(fixture->server, fixture->waiting_id));
}

static void wait_until_waiting(struct fixture *fixture)
{
    pthread_mutex_lock(&fixture->mutex);
    while (!atomic_load(&fixture->is_waiting))
        pthread_cond_wait(&fixture->changed, &fixture->mutex);
    pthread_mutex_unlock(&fixture->mutex);
}

TEST(a_reply_may_come_later)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    const int fd = client_connect(&fixture);
    client_send(fd, "GET /later HTTP/1.1\r\n" CLOSE);
    wait_until_waiting(&fixture);
    on_server(&fixture, answer_waiting);
    struct buffer reply AUTO_BUFFER;
    buffer_init(&reply, 65536);
    client_read_to_end(fd, &reply);
    assert_contains(&reply, "HTTP/1.1 202");
    assert_contains(&reply, "at last");
    close(fd);
    fixture_stop(&fixture);
}

TEST(a_reply_that_comes_after_its_client_left_does_no_harm)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    const int fd = client_connect(&fixture);
    client_send(fd, "GET /later HTTP/1.1\r\n" CLOSE);
    wait_until_waiting(&fixture);
    const struct linger reset = {.l_onoff = 1};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    close(fd);
    on_server(&fixture, answer_waiting);
    wait_for(&fixture, &fixture.done_count, 1);
    fixture_stop(&fixture);
}

TEST(requests_still_waiting_when_the_server_stops_are_told)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    const int fd = client_connect(&fixture);
    client_send(fd, "GET /later HTTP/1.1\r\n" CLOSE);
    wait_until_waiting(&fixture);
    fixture_stop(&fixture);
    struct buffer reply AUTO_BUFFER;
    buffer_init(&reply, 65536);
    client_read_to_end(fd, &reply);
    assert_contains(&reply, "HTTP/1.1 503");
    close(fd);
}

TEST(a_file_is_sent_from_its_offset)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    exchange(&fixture, "GET /file HTTP/1.1\r\n" CLOSE, &reply);
    assert_contains(&reply, "Content-Length: 4194304");
    const char *body = strstr(buffer_string(&reply), "\r\n\r\n");
    assert_non_null(body);
    assert_memory_equal(body + 4, "def\0", 4);
    assert_int_equal(reply.size - (size_t)(body + 4 - (const char *)reply.data), FILE_SIZE);

    /* A client that leaves in the middle must not end the server by SIGPIPE. */
    const int fd = client_connect(&fixture);
    client_send(fd, "GET /file HTTP/1.1\r\n" CLOSE);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    close(fd);
    wait_for(&fixture, &fixture.done_count, 2);
    fixture_stop(&fixture);
}

TEST(six_hundred_clients_at_the_same_time_are_all_served)
{
    enum { COUNT = 600 };
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    static int fds[COUNT];
    for (int i = 0; i < COUNT; i++)
        fds[i] = client_connect(&fixture);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++)
            client_send(fds[i], "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        for (int i = 0; i < COUNT; i++) {
            struct buffer reply AUTO_BUFFER;
            buffer_init(&reply, 65536);
            client_read_until(fds[i], &reply, "\r\n\r\nhello");
        }
    }
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    fixture_stop(&fixture);
}

TEST(connections_over_the_limit_of_one_address_are_closed)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.connection_per_ip_max = 2;
    fixture_start(&fixture);
    int fds[2];
    for (int i = 0; i < 2; i++) {
        fds[i] = client_connect(&fixture);
        client_send(fds[i], "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        struct buffer reply AUTO_BUFFER;
        buffer_init(&reply, 65536);
        client_read_until(fds[i], &reply, "hello");
    }
    const int third = client_connect(&fixture);
    char byte;
    assert_true(recv(third, &byte, 1, 0) <= 0);
    close(third);
    close(fds[0]);
    close(fds[1]);
    fixture_stop(&fixture);
}

/* --- events --- */

static int open_event_client(struct fixture *fixture, struct buffer *reply)
{
    buffer_init(reply, 1 << 20);
    const int fd = client_connect(fixture);
    client_send(fd, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    client_read_until(fd, reply, ":\n\n");
    assert_contains(reply, "Content-Type: text/event-stream");
    return fd;
}

static void send_event(struct fixture *fixture)
{
    for (int i = 0; i < STREAM_MAX; i++) {
        struct error error;
        if (fixture->streams[i] && http_stream_send(fixture->streams[i], TEXT("7"), TEXT("price"),
                                                    TEXT("one\ntwo"), &error) < 0)
            ASSERT(error.code == ERROR_EXHAUSTED || error.code == ERROR_UNAVAILABLE);
    }
}

TEST(events_reach_every_client_in_the_format_of_browsers)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer replies[3];
    int fds[3];
    for (int i = 0; i < 3; i++)
        fds[i] = open_event_client(&fixture, &replies[i]);
    on_server(&fixture, send_event);
    on_server(&fixture, send_event);
    for (int i = 0; i < 3; i++) {
        client_read_until(fds[i], &replies[i], "id: 7\nevent: price\ndata: one\ndata: two\n\n");
        close(fds[i]);
        buffer_done(&replies[i]);
    }
    fixture_stop(&fixture);
}

TEST(heartbeats_find_out_that_a_client_is_gone)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.stream_heartbeat_ms = 20;
    fixture_start(&fixture);
    struct buffer stays AUTO_BUFFER;
    struct buffer leaves AUTO_BUFFER;
    const int staying = open_event_client(&fixture, &stays);
    const int leaving = open_event_client(&fixture, &leaves);
    close(leaving);
    wait_for(&fixture, &fixture.closed_stream_count, 1);
    on_server(&fixture, send_event);
    client_read_until(staying, &stays, "data: two");
    close(staying);
    fixture_stop(&fixture);
}

static void send_large_events(struct fixture *fixture)
{
    static char data[8192];
    memset(data, 'e', sizeof(data));
    for (int i = 0; i < STREAM_MAX; i++) {
        struct error error;
        if (fixture->streams[i] &&
            http_stream_send(fixture->streams[i], TEXT(""), TEXT(""),
                             (struct text){data, sizeof(data)}, &error) < 0 &&
            error.code == ERROR_EXHAUSTED)
            atomic_fetch_add(&fixture->dropped_count, 1);
    }
}

TEST(a_slow_client_is_dropped_and_the_others_go_on)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.stream_backlog_max = 64 * 1024;
    fixture_start(&fixture);
    struct buffer quick_reply AUTO_BUFFER;
    struct buffer slow_reply AUTO_BUFFER;
    const int slow = open_event_client(&fixture, &slow_reply);
    const int quick = open_event_client(&fixture, &quick_reply);
    uint8_t piece[65536];
    for (int i = 0; atomic_load(&fixture.dropped_count) == 0; i++) {
        assert_true(i < 100000);
        on_server(&fixture, send_large_events);
        /* Takes what has come so far, at least one event. */
        size_t taken = 0;
        while (taken < 8192) {
            const ssize_t got = recv(quick, piece, sizeof(piece), 0);
            assert_true(got > 0);
            taken += (size_t)got;
        }
    }
    wait_for(&fixture, &fixture.closed_stream_count, 1);
    assert_int_equal(atomic_load(&fixture.dropped_count), 1);
    on_server(&fixture, send_event);
    buffer_clear(&quick_reply);
    client_read_until(quick, &quick_reply, "data: two");
    close(quick);
    close(slow);
    fixture_stop(&fixture);
}

static void end_streams(struct fixture *fixture)
{
    for (int i = 0; i < STREAM_MAX; i++) {
        http_stream_free(fixture->streams[i]);
        fixture->streams[i] = NULL;
    }
}

TEST(a_stream_that_its_owner_ends_sends_what_was_queued)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    const int fd = open_event_client(&fixture, &reply);
    on_server(&fixture, send_event);
    on_server(&fixture, end_streams);
    client_read_until(fd, &reply, "data: two");
    client_read_until(fd, &reply, "\r\n0\r\n");
    assert_int_equal(atomic_load(&fixture.closed_stream_count), 0);
    close(fd);
    fixture_stop(&fixture);
}

TEST(open_streams_end_with_the_server)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    const int fd = open_event_client(&fixture, &reply);
    fixture_stop(&fixture);
    assert_int_equal(atomic_load(&fixture.closed_stream_count), 1);
    close(fd);
}

/* --- starting --- */

TEST(a_bad_certificate_is_an_error_and_leaves_no_descriptor_behind)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.certificate_pem = "nonsense";
    fixture.options.key_pem = "nonsense";
    const int before = dup(0);
    close(before);
    ASSERT_FAILS(http_server_open(&fixture.options, &fixture.server, &error), ERROR_INVALID);
    const int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    loop_free(fixture.loop);
}

TEST(a_taken_port_is_a_conflict)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct http_server_options options = fixture.options;
    struct sockaddr_in *address = (struct sockaddr_in *)(void *)&options.listen.storage;
    address->sin_port = htons(http_server_port(fixture.server));
    struct http_server *second = NULL;
    ASSERT_FAILS(http_server_open(&options, &second, &error), ERROR_CONFLICT);
    fixture_stop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_reaches_its_handler_with_all_its_parts),
        cmocka_unit_test(head_gives_the_headers_alone),
        cmocka_unit_test(mistakes_are_answered_by_problems),
        cmocka_unit_test(a_body_at_its_maximum_is_taken_and_one_over_it_is_not),
        cmocka_unit_test(a_huge_body_is_refused_before_it_is_sent),
        cmocka_unit_test(an_endless_body_is_cut_off),
        cmocka_unit_test(a_slow_body_is_gathered_piece_by_piece),
        cmocka_unit_test(a_client_that_stalls_is_dropped_after_the_idle_time),
        cmocka_unit_test(pipelined_requests_are_answered_in_order_and_then_closed),
        cmocka_unit_test(a_reply_may_come_later),
        cmocka_unit_test(a_reply_that_comes_after_its_client_left_does_no_harm),
        cmocka_unit_test(requests_still_waiting_when_the_server_stops_are_told),
        cmocka_unit_test(a_file_is_sent_from_its_offset),
        cmocka_unit_test(six_hundred_clients_at_the_same_time_are_all_served),
        cmocka_unit_test(connections_over_the_limit_of_one_address_are_closed),
        cmocka_unit_test(events_reach_every_client_in_the_format_of_browsers),
        cmocka_unit_test(heartbeats_find_out_that_a_client_is_gone),
        cmocka_unit_test(a_slow_client_is_dropped_and_the_others_go_on),
        cmocka_unit_test(a_stream_that_its_owner_ends_sends_what_was_queued),
        cmocka_unit_test(open_streams_end_with_the_server),
        cmocka_unit_test(a_bad_certificate_is_an_error_and_leaves_no_descriptor_behind),
        cmocka_unit_test(a_taken_port_is_a_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
