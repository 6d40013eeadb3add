/* covers link.c, link_tls.c */
#include "base/assert.h"
#include "base/buffer.h"
#include "net/address.h"
#include "net/link.h"
#include "net/link_tls_internal.h"
#include "net/tls_certificate.h"
#include "testing/testing.h"
#include "wire/frame.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAYLOAD_MAX = 32 << 20, BULK_SIZE = 20 << 20 };

static const uint8_t KEY[LINK_KEY_SIZE] = "0123456789abcdef0123456789abcde";
static const uint8_t OTHER_KEY[LINK_KEY_SIZE] = "another key that is not the same";

struct end {
    struct link *link;
    bool is_open;
    bool is_closed;
    bool frees_itself_on_frame;
    bool finishes_on_frame;
    struct error reason; /* code NONE: in good order */
    char identity[64];
    int frames;
    uint16_t last_type;
    struct buffer received;
    int drained;
};

static void on_open(struct link *link, struct text identity, void *context)
{
    struct end *end = context;
    assert_ptr_equal(link, end->link);
    assert_false(end->is_open);
    end->is_open = true;
    snprintf(end->identity, sizeof(end->identity), TEXT_FORMAT, TEXT_ARGS(identity));
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct end *end = context;
    end->frames++;
    end->last_type = type;
    buffer_append_text(&end->received, payload);
    if (end->finishes_on_frame)
        link_finish(link);
    if (end->frees_itself_on_frame) {
        link_free(link);
        end->link = NULL;
    }
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    struct end *end = context;
    assert_ptr_equal(link, end->link);
    assert_false(end->is_closed);
    end->is_closed = true;
    if (reason)
        end->reason = *reason;
    link_free(link);
    end->link = NULL;
}

static void on_drained(struct link *link __attribute__((unused)), void *context)
{
    struct end *end = context;
    end->drained++;
}

static int find_key(void *context __attribute__((unused)), struct text identity,
                    uint8_t out_key[LINK_KEY_SIZE])
{
    if (!text_equal(identity, TEXT("machine:7:1")))
        return -1;
    memcpy(out_key, KEY, LINK_KEY_SIZE);
    return 0;
}

struct fixture {
    struct loop *loop;
    struct end client;
    struct end server;
};

static void fixture_open(struct fixture *fixture)
{
    struct error error = {0};
    *fixture = (struct fixture){0};
    buffer_init(&fixture->client.received, 64 << 20);
    buffer_init(&fixture->server.received, 64 << 20);
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
}

static void fixture_close(struct fixture *fixture)
{
    link_free(fixture->client.link);
    link_free(fixture->server.link);
    buffer_done(&fixture->client.received);
    buffer_done(&fixture->server.received);
    loop_free(fixture->loop);
}

static struct link_options options_of(struct fixture *fixture, struct end *end)
{
    return (struct link_options){
        .loop = fixture->loop,
        .is_server = end == &fixture->server,
        .identity = "machine:7:1",
        .key = KEY,
        .find_key = find_key,
        .payload_max = PAYLOAD_MAX,
        .callbacks = {on_open, on_frame, on_close, on_drained},
        .context = end,
    };
}

static void make_socketpair(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

static void make_tcp(int fds[2])
{
    struct error error = {0};
    const struct host_port host_port = {.host = "127.0.0.1"};
    struct address address;
    ASSERT_OK(address_resolve(&host_port, &address, &error));
    AUTO_FD int listen_fd = -1;
    uint16_t port;
    ASSERT_OK(tcp_listen(&address, "--listen", &listen_fd, &port, &error));
    address.size = sizeof(address.storage);
    assert_int_equal(getsockname(listen_fd, (struct sockaddr *)&address.storage, &address.size), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&address.storage, address.size), 0);
    assert_int_equal(tcp_accept(listen_fd, &fds[1], NULL, &error), 1);
}

static void open_ends(struct fixture *fixture, const struct link_options *client,
                      const struct link_options *server, void (*make_pair)(int fds[2]))
{
    struct error error = {0};
    int fds[2];
    make_pair(fds);
    ASSERT_OK(link_open_take(client, fds[0], &fixture->client.link, &error));
    ASSERT_OK(link_open_take(server, fds[1], &fixture->server.link, &error));
}

/* Opens both ends with the usual options and waits until they stand. */
static void open_pair(struct fixture *fixture, void (*make_pair)(int fds[2]))
{
    struct error error = {0};
    fixture_open(fixture);
    const struct link_options client = options_of(fixture, &fixture->client);
    const struct link_options server = options_of(fixture, &fixture->server);
    open_ends(fixture, &client, &server, make_pair);
    while (!fixture->client.is_open || !fixture->server.is_open) {
        ASSERT_OK(loop_step(fixture->loop, -1, &error));
        assert_false(fixture->client.is_closed || fixture->server.is_closed);
    }
}

static void run_until_closed(struct fixture *fixture, const struct end *end)
{
    struct error error = {0};
    while (!end->is_closed)
        ASSERT_OK(loop_step(fixture->loop, -1, &error));
}

TEST(both_ends_open_and_know_the_identity)
{
    struct fixture fixture;
    open_pair(&fixture, make_socketpair);
    assert_string_equal(fixture.client.identity, "machine:7:1");
    assert_string_equal(fixture.server.identity, "machine:7:1");
    assert_true(link_is_open(fixture.client.link));
    fixture_close(&fixture);
}

TEST(frames_arrive_whole_and_in_order)
{
    struct error error = {0};
    struct fixture fixture;
    open_pair(&fixture, make_socketpair);
    const struct text parts[] = {TEXT("ab"), TEXT(""), TEXT("cd")};
    ASSERT_OK(link_send(fixture.client.link, 5, parts, 3, &error));
    ASSERT_OK(link_send_text(fixture.client.link, 6, TEXT("ef"), &error));
    ASSERT_OK(link_send(fixture.client.link, 7, NULL, 0, &error));
    while (fixture.server.frames < 3)
        ASSERT_OK(loop_step(fixture.loop, -1, &error));
    assert_true(text_equal(buffer_text(&fixture.server.received), TEXT("abcdef")));
    assert_int_equal(fixture.server.last_type, 7);
    assert_int_equal(link_received_bytes(fixture.server.link), 3 * FRAME_HEADER_SIZE + 6);
    assert_int_equal(link_sent_bytes(fixture.client.link), 3 * FRAME_HEADER_SIZE + 6);
    fixture_close(&fixture);
}

TEST(frames_sent_before_the_handshake_wait_for_it)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture);
    const struct link_options client = options_of(&fixture, &fixture.client);
    const struct link_options server = options_of(&fixture, &fixture.server);
    open_ends(&fixture, &client, &server, make_socketpair);
    ASSERT_OK(link_send_text(fixture.client.link, 1, TEXT("early"), &error));
    ASSERT_OK(link_send_text(fixture.server.link, 1, TEXT("early too"), &error));
    while (fixture.server.frames < 1 || fixture.client.frames < 1)
        ASSERT_OK(loop_step(fixture.loop, -1, &error));
    fixture_close(&fixture);
}

static void exchange_bulk(void (*make_pair)(int fds[2]))
{
    struct error error = {0};
    struct fixture fixture;
    open_pair(&fixture, make_pair);
    char *bulk = malloc(BULK_SIZE);
    assert_non_null(bulk);
    for (size_t i = 0; i < BULK_SIZE; i++)
        bulk[i] = (char)(i * 2654435761U >> 13);
    const struct text half[2] = {{bulk, BULK_SIZE / 2}, {bulk + BULK_SIZE / 2, BULK_SIZE / 2}};
    ASSERT_OK(link_send(fixture.client.link, 1, half, 2, &error));
    ASSERT_OK(link_send(fixture.server.link, 2, half, 2, &error));
    while (fixture.server.frames < 1 || fixture.client.frames < 1)
        ASSERT_OK(loop_step(fixture.loop, -1, &error));
    assert_int_equal(fixture.server.received.size, BULK_SIZE);
    assert_memory_equal(fixture.server.received.data, bulk, BULK_SIZE);
    assert_int_equal(fixture.client.received.size, BULK_SIZE);
    assert_memory_equal(fixture.client.received.data, bulk, BULK_SIZE);
    assert_int_equal(fixture.client.drained, 1);
    free(bulk);
    fixture_close(&fixture);
}

TEST(twenty_megabytes_go_both_ways_over_a_socketpair)
{
    exchange_bulk(make_socketpair);
}

TEST(twenty_megabytes_go_both_ways_over_tcp)
{
    exchange_bulk(make_tcp);
}

static void expect_refusal(struct fixture *fixture)
{
    run_until_closed(fixture, &fixture->client);
    run_until_closed(fixture, &fixture->server);
    assert_false(fixture->client.is_open);
    assert_false(fixture->server.is_open);
    assert_int_equal(fixture->client.reason.code, ERROR_REFUSED);
    assert_int_equal(fixture->server.reason.code, ERROR_REFUSED);
}

TEST(a_wrong_key_is_refused_on_both_ends)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct link_options client = options_of(&fixture, &fixture.client);
    const struct link_options server = options_of(&fixture, &fixture.server);
    client.key = OTHER_KEY;
    open_ends(&fixture, &client, &server, make_socketpair);
    expect_refusal(&fixture);
    assert_string_equal(fixture.server.reason.message,
                        "the peer does not hold the key of \"machine:7:1\"");
    fixture_close(&fixture);
}

TEST(an_unknown_identity_is_refused_on_both_ends)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct link_options client = options_of(&fixture, &fixture.client);
    const struct link_options server = options_of(&fixture, &fixture.server);
    client.identity = "machine:8:1";
    open_ends(&fixture, &client, &server, make_tcp);
    expect_refusal(&fixture);
    assert_string_equal(fixture.server.reason.message, "the peer's identity is unknown");
    fixture_close(&fixture);
}

/* --- peers that do not keep to the rules, each on a thread with a blocking socket --- */

struct rogue {
    int fd;
    const uint8_t *bytes;
    size_t size;
    bool says_farewell;
    struct link_tls_keys keys;
    void *no_context;
};

static void *run_rogue_client(void *context)
{
    struct rogue *rogue = context;
    struct error error;
    SSL *ssl = NULL;
    ASSERT(link_tls_new(false, rogue->fd, &rogue->keys, &ssl, &error) == 0);
    if (SSL_do_handshake(ssl) == 1 &&
        SSL_write(ssl, rogue->bytes, (int)rogue->size) == (int)rogue->size && rogue->says_farewell)
        SSL_shutdown(ssl);
    SSL_free(ssl);
    shutdown(rogue->fd, SHUT_WR);
    char rest[256];
    while (read(rogue->fd, rest, sizeof(rest)) > 0)
        continue;
    close(rogue->fd);
    return NULL;
}

/* The server's end after the rogue client has sent these bytes. */
static struct end end_after(const uint8_t *bytes, size_t size, bool says_farewell)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture);
    struct link_options server = options_of(&fixture, &fixture.server);
    server.payload_max = 100;
    int fds[2];
    make_socketpair(fds);
    struct rogue rogue = {
        .fd = fds[0], .bytes = bytes, .size = size, .says_farewell = says_farewell};
    rogue.keys.context = &rogue.no_context;
    memcpy(rogue.keys.key, KEY, LINK_KEY_SIZE);
    memcpy(rogue.keys.identity, "machine:7:1", 12);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_rogue_client, &rogue), 0);
    ASSERT_OK(link_open_take(&server, fds[1], &fixture.server.link, &error));
    run_until_closed(&fixture, &fixture.server);
    pthread_join(thread, NULL);
    const struct end end = fixture.server;
    fixture_close(&fixture);
    return end;
}

TEST(a_frame_over_the_maximum_closes_the_link)
{
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_header_encode(101, 1, bytes);
    const struct end end = end_after(bytes, sizeof(bytes), false);
    assert_int_equal(end.frames, 0);
    assert_int_equal(end.reason.code, ERROR_CORRUPT);
    assert_non_null(strstr(end.reason.message, "over the maximum"));
}

TEST(a_frame_that_is_truncated_by_a_farewell_is_corrupt)
{
    uint8_t bytes[2 * FRAME_HEADER_SIZE + 5] = {0};
    frame_header_encode(0, 3, bytes);
    frame_header_encode(6, 1, bytes + FRAME_HEADER_SIZE);
    const struct end end = end_after(bytes, sizeof(bytes), true);
    assert_int_equal(end.frames, 1);
    assert_int_equal(end.reason.code, ERROR_CORRUPT);
}

TEST(a_peer_that_vanishes_inside_a_frame_is_an_error)
{
    uint8_t bytes[FRAME_HEADER_SIZE + 5] = {0};
    frame_header_encode(6, 1, bytes);
    const struct end end = end_after(bytes, sizeof(bytes), false);
    assert_int_equal(end.frames, 0);
    assert_int_equal(end.reason.code, ERROR_UNAVAILABLE);
    assert_non_null(strstr(end.reason.message, "inside a frame"));
}

TEST(a_peer_that_vanishes_without_a_farewell_is_an_error)
{
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_header_encode(0, 1, bytes);
    const struct end end = end_after(bytes, sizeof(bytes), false);
    assert_int_equal(end.frames, 1);
    assert_int_equal(end.reason.code, ERROR_UNAVAILABLE);
}

TEST(a_farewell_between_frames_is_in_good_order)
{
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_header_encode(0, 1, bytes);
    const struct end end = end_after(bytes, sizeof(bytes), true);
    assert_int_equal(end.frames, 1);
    assert_int_equal(end.reason.code, ERROR_NONE);
}

static void *run_impostor(void *context)
{
    const int fd = *(const int *)context;
    /* OpenSSL's own socket BIO, unlike ours, raises it when the client has left. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    struct error error;
    const char *const names[] = {"localhost"};
    struct tls_certificate certificate AUTO_TLS_CERTIFICATE;
    tls_certificate_init(&certificate);
    ASSERT(tls_certificate_make(names, 1, &certificate, &error) == 0);
    BIO *certificate_bio = BIO_new_mem_buf(certificate.certificate_pem.data, -1);
    BIO *key_bio = BIO_new_mem_buf(certificate.key_pem.data, -1);
    X509 *x509 = PEM_read_bio_X509(certificate_bio, NULL, NULL, NULL);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    ASSERT(SSL_CTX_use_certificate(tls, x509) == 1 && SSL_CTX_use_PrivateKey(tls, key) == 1);
    SSL *ssl = SSL_new(tls);
    SSL_set_fd(ssl, fd);
    /* Whether it succeeds on this end does not matter: the client decides. */
    if (SSL_accept(ssl) == 1) {
        char byte;
        (void)SSL_read(ssl, &byte, 1);
    }
    SSL_free(ssl);
    SSL_CTX_free(tls);
    EVP_PKEY_free(key);
    X509_free(x509);
    BIO_free(key_bio);
    BIO_free(certificate_bio);
    close(fd);
    return NULL;
}

TEST(an_impostor_with_a_certificate_instead_of_the_key_is_refused)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture);
    int fds[2];
    make_tcp(fds);
    pthread_t thread;
    const struct link_options client = options_of(&fixture, &fixture.client);
    ASSERT_OK(link_open_take(&client, fds[0], &fixture.client.link, &error));
    assert_int_equal(fcntl(fds[1], F_SETFL, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, run_impostor, &fds[1]), 0);
    while (!fixture.client.is_closed && !fixture.client.is_open)
        ASSERT_OK(loop_step(fixture.loop, -1, &error));
    assert_false(fixture.client.is_open);
    pthread_join(thread, NULL);
    assert_int_equal(fixture.client.reason.code, ERROR_REFUSED);
    fixture_close(&fixture);
}

/* --- limits and ends --- */

TEST(a_silent_peer_is_dropped_at_the_handshake_deadline)
{
    struct error error = {0};
    struct virtual_clock clock;
    virtual_clock_init(&clock, 0);
    struct fixture fixture;
    fixture_open(&fixture);
    loop_free(fixture.loop);
    ASSERT_OK(loop_open(&clock.clock, &fixture.loop, &error));
    int fds[2];
    make_socketpair(fds);
    struct link_options server = options_of(&fixture, &fixture.server);
    server.handshake_timeout_ms = 1000;
    ASSERT_OK(link_open_take(&server, fds[1], &fixture.server.link, &error));
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_false(fixture.server.is_closed);
    virtual_clock_advance(&clock, 1001000000);
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_true(fixture.server.is_closed);
    assert_int_equal(fixture.server.reason.code, ERROR_UNAVAILABLE);
    close(fds[0]);
    fixture_close(&fixture);
}

TEST(a_peer_that_speaks_no_tls_is_dropped)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture);
    int fds[2];
    make_socketpair(fds);
    const struct link_options server = options_of(&fixture, &fixture.server);
    ASSERT_OK(link_open_take(&server, fds[1], &fixture.server.link, &error));
    assert_int_equal(write(fds[0], "GET / HTTP/1.1\r\n\r\n", 18), 18);
    run_until_closed(&fixture, &fixture.server);
    assert_int_equal(fixture.server.reason.code, ERROR_REFUSED);
    close(fds[0]);
    fixture_close(&fixture);
}

TEST(a_full_queue_refuses_more_and_says_when_it_is_drained)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture);
    struct link_options client = options_of(&fixture, &fixture.client);
    const struct link_options server = options_of(&fixture, &fixture.server);
    client.payload_max = 1000;
    client.queue_max_bytes = 3000;
    client.queue_low_bytes = 1000;
    open_ends(&fixture, &client, &server, make_socketpair);
    static const char payload[1000];
    const struct text part = {payload, sizeof(payload)};
    ASSERT_OK(link_send_text(fixture.client.link, 1, part, &error));
    ASSERT_OK(link_send_text(fixture.client.link, 1, part, &error));
    ASSERT_FAILS(link_send_text(fixture.client.link, 1, part, &error), ERROR_EXHAUSTED);
    assert_int_equal(link_queued_bytes(fixture.client.link), 2016);
    const struct text parts[2] = {part, TEXT("x")};
    ASSERT_FAILS(link_send(fixture.client.link, 1, parts, 2, &error), ERROR_INVALID);
    while (fixture.client.drained == 0)
        ASSERT_OK(loop_step(fixture.loop, -1, &error));
    ASSERT_OK(link_send_text(fixture.client.link, 1, part, &error));
    while (fixture.server.frames < 3)
        ASSERT_OK(loop_step(fixture.loop, -1, &error));
    fixture_close(&fixture);
}

TEST(a_paused_link_holds_its_frames_until_it_goes_on)
{
    struct error error = {0};
    struct fixture fixture;
    open_pair(&fixture, make_socketpair);
    link_set_paused(fixture.server.link, true);
    for (int i = 0; i < 10; i++)
        ASSERT_OK(link_send_text(fixture.client.link, 1, TEXT("x"), &error));
    while (link_queued_bytes(fixture.client.link) > 0)
        ASSERT_OK(loop_step(fixture.loop, -1, &error));
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_int_equal(fixture.server.frames, 0);
    link_set_paused(fixture.server.link, false);
    while (fixture.server.frames < 10)
        ASSERT_OK(loop_step(fixture.loop, -1, &error));
    fixture_close(&fixture);
}

TEST(finishing_sends_what_is_queued_and_ends_both_in_good_order)
{
    struct error error = {0};
    struct fixture fixture;
    open_pair(&fixture, make_tcp);
    char *bulk = calloc(1, BULK_SIZE);
    ASSERT_OK(link_send_text(fixture.client.link, 1, (struct text){bulk, BULK_SIZE}, &error));
    free(bulk);
    link_finish(fixture.client.link);
    ASSERT_FAILS(link_send_text(fixture.client.link, 1, TEXT("late"), &error), ERROR_UNAVAILABLE);
    run_until_closed(&fixture, &fixture.client);
    run_until_closed(&fixture, &fixture.server);
    assert_int_equal(fixture.server.frames, 1);
    assert_int_equal(fixture.client.reason.code, ERROR_NONE);
    assert_int_equal(fixture.server.reason.code, ERROR_NONE);
    fixture_close(&fixture);
}

TEST(a_link_may_be_finished_in_its_own_callback)
{
    struct error error = {0};
    struct fixture fixture;
    open_pair(&fixture, make_socketpair);
    fixture.server.finishes_on_frame = true;
    ASSERT_OK(link_send_text(fixture.client.link, 1, TEXT("a"), &error));
    ASSERT_OK(link_send_text(fixture.client.link, 1, TEXT("b"), &error));
    run_until_closed(&fixture, &fixture.client);
    run_until_closed(&fixture, &fixture.server);
    assert_int_equal(fixture.server.frames, 1);
    assert_int_equal(fixture.client.reason.code, ERROR_NONE);
    fixture_close(&fixture);
}

TEST(a_link_may_be_released_in_its_own_callback)
{
    struct error error = {0};
    struct fixture fixture;
    open_pair(&fixture, make_socketpair);
    fixture.server.frees_itself_on_frame = true;
    ASSERT_OK(link_send_text(fixture.client.link, 1, TEXT("a"), &error));
    ASSERT_OK(link_send_text(fixture.client.link, 1, TEXT("b"), &error));
    run_until_closed(&fixture, &fixture.client);
    assert_int_equal(fixture.server.frames, 1);
    assert_false(fixture.server.is_closed);
    assert_int_equal(fixture.client.reason.code, ERROR_UNAVAILABLE);
    fixture_close(&fixture);
}

TEST(an_identity_that_is_too_long_is_refused_at_once)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture);
    int fds[2];
    make_socketpair(fds);
    char identity[LINK_IDENTITY_SIZE_MAX + 1];
    memset(identity, 'a', sizeof(identity) - 1);
    identity[sizeof(identity) - 1] = '\0';
    struct link_options client = options_of(&fixture, &fixture.client);
    client.identity = identity;
    assert_int_equal(link_open_take(&client, fds[0], &fixture.client.link, &error), -1);
    close(fds[0]);
    close(fds[1]);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_open_and_know_the_identity),
        cmocka_unit_test(frames_arrive_whole_and_in_order),
        cmocka_unit_test(frames_sent_before_the_handshake_wait_for_it),
        cmocka_unit_test(twenty_megabytes_go_both_ways_over_a_socketpair),
        cmocka_unit_test(twenty_megabytes_go_both_ways_over_tcp),
        cmocka_unit_test(a_wrong_key_is_refused_on_both_ends),
        cmocka_unit_test(an_unknown_identity_is_refused_on_both_ends),
        cmocka_unit_test(a_frame_over_the_maximum_closes_the_link),
        cmocka_unit_test(a_frame_that_is_truncated_by_a_farewell_is_corrupt),
        cmocka_unit_test(a_peer_that_vanishes_inside_a_frame_is_an_error),
        cmocka_unit_test(a_peer_that_vanishes_without_a_farewell_is_an_error),
        cmocka_unit_test(a_farewell_between_frames_is_in_good_order),
        cmocka_unit_test(an_impostor_with_a_certificate_instead_of_the_key_is_refused),
        cmocka_unit_test(a_silent_peer_is_dropped_at_the_handshake_deadline),
        cmocka_unit_test(a_peer_that_speaks_no_tls_is_dropped),
        cmocka_unit_test(a_full_queue_refuses_more_and_says_when_it_is_drained),
        cmocka_unit_test(a_paused_link_holds_its_frames_until_it_goes_on),
        cmocka_unit_test(finishing_sends_what_is_queued_and_ends_both_in_good_order),
        cmocka_unit_test(a_link_may_be_finished_in_its_own_callback),
        cmocka_unit_test(a_link_may_be_released_in_its_own_callback),
        cmocka_unit_test(an_identity_that_is_too_long_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
