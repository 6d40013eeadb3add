/* covers http_server.c, http_body.c, http_pace.c, http_request.c, http_reply.c
   covers mhd_library.c */
#include "net/http_fixture_internal.h"

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

TEST(a_shared_body_lives_until_its_last_reply)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    exchange(&fixture, "GET /shared/1?a=b%20c HTTP/1.1\r\n" CLOSE, &reply);
    assert_contains(&reply, "HTTP/1.1 200");
    const char *body = strstr(buffer_string(&reply), "\r\n\r\n");
    assert_non_null(body);
    assert_memory_equal(body + 4, "/shared/1\0a\0b c", sizeof("/shared/1\0a\0b c"));
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

/* Sends a byte every 20 ms until the server has had enough; how many it took. */
static int drip(int fd)
{
    const struct timespec pause = {0, 20000000};
    int sent = 0;
    char byte;
    while (sent < 1000 && send(fd, "a", 1, MSG_NOSIGNAL) == 1) {
        sent++;
        nanosleep(&pause, NULL); /* clock: tests the pace */
        if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
            break;
    }
    return sent;
}

TEST(a_client_that_drips_is_cut_off)
{
    static const char *const starts[] = {
        "GET /hello HTTP/1.1\r\nX: ",
        "POST /echo/1 HTTP/1.1\r\nContent-Length: 60000\r\n" CLOSE,
        "PUT /guarded HTTP/1.1\r\nContent-Length: 60000\r\n" CLOSE,
        "GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nX: ",
    };
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.send_grace_ms = 300;
    fixture_start(&fixture);
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        const int fd = client_connect(&fixture);
        client_send(fd, starts[i]);
        assert_in_range(drip(fd), 2, 999);
        close(fd);
    }
    fixture_stop(&fixture);
}

TEST(a_body_that_keeps_its_pace_may_take_longer_than_the_grace)
{
    enum { PIECES = 30, PIECE_SIZE = 2000 };
    const struct timespec pause = {0, 20000000};
    char piece[PIECE_SIZE + 1];
    memset(piece, 'b', PIECE_SIZE);
    piece[PIECE_SIZE] = '\0';
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.send_grace_ms = 100;
    fixture_start(&fixture);
    const int fd = client_connect(&fixture);
    client_send(fd, "POST /echo/1 HTTP/1.1\r\nContent-Length: 60000\r\n" CLOSE);
    for (int i = 0; i < PIECES; i++) {
        client_send(fd, piece);
        nanosleep(&pause, NULL); /* clock: tests the pace */
    }
    struct buffer reply AUTO_BUFFER;
    buffer_init(&reply, 1 << 20);
    client_read_to_end(fd, &reply);
    assert_contains(&reply, "size=60000");
    close(fd);
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

TEST(two_thousand_clients_at_the_same_time_are_all_served)
{
    enum { COUNT = 2000 };
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.connection_max = COUNT + 10;
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
        cmocka_unit_test(a_shared_body_lives_until_its_last_reply),
        cmocka_unit_test(a_body_at_its_maximum_is_taken_and_one_over_it_is_not),
        cmocka_unit_test(a_huge_body_is_refused_before_it_is_sent),
        cmocka_unit_test(an_endless_body_is_cut_off),
        cmocka_unit_test(a_slow_body_is_gathered_piece_by_piece),
        cmocka_unit_test(a_client_that_stalls_is_dropped_after_the_idle_time),
        cmocka_unit_test(a_client_that_drips_is_cut_off),
        cmocka_unit_test(a_body_that_keeps_its_pace_may_take_longer_than_the_grace),
        cmocka_unit_test(pipelined_requests_are_answered_in_order_and_then_closed),
        cmocka_unit_test(a_reply_may_come_later),
        cmocka_unit_test(a_reply_that_comes_after_its_client_left_does_no_harm),
        cmocka_unit_test(requests_still_waiting_when_the_server_stops_are_told),
        cmocka_unit_test(a_file_is_sent_from_its_offset),
        cmocka_unit_test(two_thousand_clients_at_the_same_time_are_all_served),
        cmocka_unit_test(connections_over_the_limit_of_one_address_are_closed),
        cmocka_unit_test(a_bad_certificate_is_an_error_and_leaves_no_descriptor_behind),
        cmocka_unit_test(a_taken_port_is_a_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
