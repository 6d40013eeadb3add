/* covers http_client.c, http_call.c, http_exchange.c, curl_library.c */
#include "net/http_client.h"
#include "net/http_fixture_internal.h"
#include "net/tls_certificate.h"

static void open_fixture(struct fixture *fixture, const struct tls_certificate *certificate)
{
    fixture_init(fixture);
    if (certificate) {
        fixture->options.certificate_pem = (const char *)certificate->certificate_pem.data;
        fixture->options.key_pem = (const char *)certificate->key_pem.data;
    }
    fixture_start(fixture);
}

static const char *url_of(const struct fixture *fixture, const char *path, char out[128])
{
    snprintf(out, 128, "%s://127.0.0.1:%u%s", fixture->options.certificate_pem ? "https" : "http",
             http_server_port(fixture->server), path);
    return out;
}

/* --- blocking --- */

TEST(a_call_gives_status_type_and_body)
{
    struct error error = {0};
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    char url[128];
    const struct http_header headers[] = {{"X-Test", "v"}, {"Content-Type", "text/plain"}};
    const struct http_call_options options = {.url = url_of(&fixture, "/echo/a%2Fb?q=1", url),
                                              .headers = headers,
                                              .header_count = 2,
                                              .body = TEXT("payload")};
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    ASSERT_OK(http_call(&options, &response, &error));
    assert_int_equal(response.status, 201);
    assert_string_equal(response.content_type, "text/plain");
    assert_int_equal(response.retry_after_s, -1);
    assert_string_equal(buffer_string(&response.body),
                        "POST id=a/b q=1 x=v c= local=1 flags=4 size=7 payload");
    fixture_stop(&fixture);
}

TEST(a_session_keeps_its_connection_and_forgets_the_last_call)
{
    struct error error = {0};
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    char url[128];
    AUTO(http_session) struct http_session *session = http_session_new();
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    const struct http_call_options post = {.url = url_of(&fixture, "/echo/1", url),
                                           .body = TEXT("x")};
    ASSERT_OK(http_session_call(session, &post, &response, &error));
    const struct http_call_options get = {.url = url};
    ASSERT_OK(http_session_call(session, &get, &response, &error));
    assert_string_equal(buffer_string(&response.body), "GET id=1 q= x= c= local=1 flags=3 size=0 ");
    const struct http_call_options head = {.method = "HEAD", .url = url};
    ASSERT_OK(http_session_call(session, &head, &response, &error));
    assert_int_equal(response.status, 201);
    assert_int_equal(response.body.size, 0);
    const struct http_call_options wrong = {.method = "PUT", .url = url, .body = TEXT("y")};
    ASSERT_OK(http_session_call(session, &wrong, &response, &error));
    assert_int_equal(response.status, 405);
    assert_string_equal(response.content_type, "application/problem+json");
    assert_int_equal(connection_count(&fixture), 1);
    fixture_stop(&fixture);
}

TEST(a_response_over_its_maximum_is_refused)
{
    struct error error = {0};
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    char url[128];
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    const struct http_call_options options = {.url = url_of(&fixture, "/file", url),
                                              .response_max = 1000};
    ASSERT_FAILS(http_call(&options, &response, &error), ERROR_EXHAUSTED);
    fixture_stop(&fixture);
}

static int count_chunk(void *context, struct text chunk)
{
    size_t *total = context;
    *total += chunk.size;
    return 0;
}

static int stop_at_once(void *context __attribute__((unused)),
                        struct text chunk __attribute__((unused)))
{
    return 1;
}

TEST(a_body_may_be_taken_in_chunks_and_stopped)
{
    struct error error = {0};
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    char url[128];
    size_t total = 0;
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    struct http_call_options options = {.url = url_of(&fixture, "/file", url),
                                        .response_max = 1000,
                                        .on_chunk = count_chunk,
                                        .context = &total};
    ASSERT_OK(http_call(&options, &response, &error));
    assert_int_equal(total, FILE_SIZE);
    assert_int_equal(response.body.size, 0);

    options.on_chunk = stop_at_once;
    ASSERT_FAILS(http_call(&options, &response, &error), ERROR_CONFLICT);

    /* The body of an error is not what the chunks were wanted for. */
    options.on_chunk = count_chunk;
    options.url = url_of(&fixture, "/nowhere", url);
    total = 0;
    ASSERT_OK(http_call(&options, &response, &error));
    assert_int_equal(total, 0);
    assert_non_null(strstr(buffer_string(&response.body), "not_found"));
    fixture_stop(&fixture);
}

TEST(no_server_and_no_answer_are_unavailable)
{
    struct error error = {0};
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    char url[128];
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    const struct http_call_options late = {.url = url_of(&fixture, "/later", url),
                                           .timeout_ms = 50};
    ASSERT_FAILS(http_call(&late, &response, &error), ERROR_UNAVAILABLE);
    const struct http_call_options options = {.url = url_of(&fixture, "/hello", url)};
    fixture_stop(&fixture);
    ASSERT_FAILS(http_call(&options, &response, &error), ERROR_UNAVAILABLE);
}

TEST(bad_requests_are_refused_before_they_are_sent)
{
    struct error error = {0};
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    const struct http_header header = {"X-Test", "a\r\nX-Forged: b"};
    const struct http_call_options cases[] = {
        {.url = "file:///etc/hostname"},
        {.url = "not a url"},
        {.url = "http://127.0.0.1:1/", .headers = &header, .header_count = 1},
        {.url = "http://127.0.0.1:1/", .pinned_fingerprint = "00"},
        {.url = "https://127.0.0.1:1/", .pinned_fingerprint = "00"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        ASSERT_FAILS(http_call(&cases[i], &response, &error), ERROR_INVALID);
}

TEST(a_self_signed_server_is_trusted_by_its_pinned_key_only)
{
    struct error error = {0};
    const char *const names[] = {"localhost"};
    struct tls_certificate certificate AUTO_TLS_CERTIFICATE;
    tls_certificate_init(&certificate);
    ASSERT_OK(tls_certificate_make(names, 1, &certificate, &error));
    struct fixture fixture;
    open_fixture(&fixture, &certificate);
    char url[128];
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    struct http_call_options options = {.url = url_of(&fixture, "/hello", url),
                                        .pinned_fingerprint = certificate.fingerprint};
    ASSERT_OK(http_call(&options, &response, &error));
    assert_string_equal(buffer_string(&response.body), "hello");

    options.pinned_fingerprint = NULL;
    ASSERT_FAILS(http_call(&options, &response, &error), ERROR_REFUSED);
    char other[TLS_FINGERPRINT_SIZE];
    memcpy(other, certificate.fingerprint, sizeof(other));
    other[0] = other[0] == '0' ? '1' : '0';
    options.pinned_fingerprint = other;
    ASSERT_FAILS(http_call(&options, &response, &error), ERROR_REFUSED);
    assert_string_equal(error.message, "the server's key is not the pinned one");
    fixture_stop(&fixture);
}

/* --- in the loop --- */

struct async {
    struct loop *loop;
    struct http_client *client;
    struct fixture *fixture;
    int done;
    int failed;
    int last_status;
    size_t chunk_bytes;
    struct http_transfer *victim;
    struct error reason;
    bool frees_client;
    bool starts_another;
};

static void async_open(struct async *async, struct fixture *fixture, uint32_t concurrent_max,
                       uint32_t waiting_max)
{
    struct error error = {0};
    *async = (struct async){.fixture = fixture};
    ASSERT_OK(loop_open(&clock_system, &async->loop, &error));
    const struct http_client_options options = {
        .loop = async->loop, .concurrent_max = concurrent_max, .waiting_max = waiting_max};
    async->client = http_client_new(&options);
}

static void async_close(struct async *async)
{
    http_client_free(async->client);
    loop_free(async->loop);
}

static void async_wait(struct async *async, int done)
{
    struct error error = {0};
    while (async->done < done)
        ASSERT_OK(loop_step(async->loop, -1, &error));
}

static void note_response(void *context, struct http_response *response, const struct error *reason)
{
    struct async *async = context;
    assert_true((response == NULL) == (reason != NULL));
    async->done++;
    if (reason) {
        async->failed++;
        async->reason = *reason;
    } else if (response) {
        async->last_status = response->status;
    }
    if (async->starts_another) {
        struct error error = {0};
        char url[128];
        const struct http_call_options options = {.url = url_of(async->fixture, "/hello", url)};
        async->starts_another = false;
        ASSERT_OK(http_client_start(async->client, &options, note_response, async, NULL, &error));
    }
    if (async->frees_client) {
        http_client_free(async->client);
        async->client = NULL;
    }
}

static void start(struct async *async, const char *path, struct text body,
                  struct http_transfer **out_transfer)
{
    struct error error = {0};
    char url[128];
    const struct http_call_options options = {.url = url_of(async->fixture, path, url),
                                              .body = body};
    ASSERT_OK(
        http_client_start(async->client, &options, note_response, async, out_transfer, &error));
}

TEST(many_transfers_run_a_few_at_a_time)
{
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    struct async async;
    async_open(&async, &fixture, 3, 0);
    char body[16];
    for (int i = 0; i < 40; i++) {
        memset(body, 'a' + i % 20, sizeof(body));
        start(&async, "/echo/1", (struct text){body, sizeof(body)}, NULL);
    }
    assert_int_equal(async.done, 0);
    async_wait(&async, 40);
    assert_int_equal(async.failed, 0);
    assert_int_equal(async.last_status, 201);
    assert_true(connection_count(&fixture) <= 3);
    async_close(&async);
    fixture_stop(&fixture);
}

TEST(transfers_over_the_waiting_maximum_are_refused)
{
    struct error error = {0};
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    struct async async;
    async_open(&async, &fixture, 1, 2);
    for (int i = 0; i < 3; i++)
        start(&async, "/hello", (struct text){0}, NULL);
    char url[128];
    const struct http_call_options options = {.url = url_of(&fixture, "/hello", url)};
    ASSERT_FAILS(http_client_start(async.client, &options, note_response, &async, NULL, &error),
                 ERROR_EXHAUSTED);
    async_wait(&async, 3);
    async_close(&async);
    fixture_stop(&fixture);
}

TEST(a_cancelled_transfer_is_not_heard_of_again)
{
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    struct async async;
    async_open(&async, &fixture, 1, 0);
    struct http_transfer *running = NULL;
    struct http_transfer *waiting = NULL;
    start(&async, "/later", (struct text){0}, &running);
    start(&async, "/hello", (struct text){0}, &waiting);
    start(&async, "/hello", (struct text){0}, NULL);
    http_transfer_cancel(waiting);
    http_transfer_cancel(running);
    async_wait(&async, 1);
    assert_int_equal(async.last_status, 200);
    async_close(&async);
    fixture_stop(&fixture);
}

static int cancel_victim(void *context, struct text chunk)
{
    struct async *async = context;
    async->chunk_bytes += chunk.size;
    if (async->victim) {
        http_transfer_cancel(TAKE(async->victim));
        start(async, "/hello", (struct text){0}, NULL);
    }
    return 0;
}

TEST(a_transfer_may_be_cancelled_from_its_own_chunks)
{
    struct error error = {0};
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    struct async async;
    async_open(&async, &fixture, 1, 0);
    char url[128];
    const struct http_call_options options = {
        .url = url_of(&fixture, "/file", url), .on_chunk = cancel_victim, .context = &async};
    ASSERT_OK(
        http_client_start(async.client, &options, note_response, &async, &async.victim, &error));
    async_wait(&async, 1);
    assert_int_equal(async.last_status, 200);
    assert_true(async.chunk_bytes < FILE_SIZE);
    async_close(&async);
    fixture_stop(&fixture);
}

TEST(a_callback_may_start_the_next_transfer)
{
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    struct async async;
    async_open(&async, &fixture, 1, 0);
    async.starts_another = true;
    start(&async, "/hello", (struct text){0}, NULL);
    async_wait(&async, 2);
    async_close(&async);
    fixture_stop(&fixture);
}

TEST(a_callback_may_release_the_client)
{
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    struct async async;
    async_open(&async, &fixture, 2, 0);
    async.frees_client = true;
    start(&async, "/hello", (struct text){0}, NULL);
    start(&async, "/later", (struct text){0}, NULL);
    async_wait(&async, 1);
    async_close(&async);
    fixture_stop(&fixture);
}

TEST(a_refused_connection_is_reported_to_the_callback)
{
    struct fixture fixture;
    open_fixture(&fixture, NULL);
    struct async async;
    async_open(&async, &fixture, 1, 0);
    char url[128];
    const struct http_call_options options = {.url = url_of(&fixture, "/hello", url)};
    fixture_stop(&fixture);
    struct error error = {0};
    ASSERT_OK(http_client_start(async.client, &options, note_response, &async, NULL, &error));
    async_wait(&async, 1);
    assert_int_equal(async.failed, 1);
    assert_int_equal(async.reason.code, ERROR_UNAVAILABLE);
    async_close(&async);
}

TEST(transfers_by_tls_work_in_the_loop)
{
    struct error error = {0};
    const char *const names[] = {"localhost"};
    struct tls_certificate certificate AUTO_TLS_CERTIFICATE;
    tls_certificate_init(&certificate);
    ASSERT_OK(tls_certificate_make(names, 1, &certificate, &error));
    struct fixture fixture;
    open_fixture(&fixture, &certificate);
    struct async async;
    async_open(&async, &fixture, 2, 0);
    char url[128];
    size_t total = 0;
    const struct http_call_options options = {.url = url_of(&fixture, "/file", url),
                                              .pinned_fingerprint = certificate.fingerprint,
                                              .on_chunk = count_chunk,
                                              .context = &total};
    for (int i = 0; i < 4; i++)
        ASSERT_OK(http_client_start(async.client, &options, note_response, &async, NULL, &error));
    async_wait(&async, 4);
    assert_int_equal(async.failed, 0);
    assert_int_equal(total, 4 * FILE_SIZE);
    async_close(&async);
    fixture_stop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_gives_status_type_and_body),
        cmocka_unit_test(a_session_keeps_its_connection_and_forgets_the_last_call),
        cmocka_unit_test(a_response_over_its_maximum_is_refused),
        cmocka_unit_test(a_body_may_be_taken_in_chunks_and_stopped),
        cmocka_unit_test(no_server_and_no_answer_are_unavailable),
        cmocka_unit_test(bad_requests_are_refused_before_they_are_sent),
        cmocka_unit_test(a_self_signed_server_is_trusted_by_its_pinned_key_only),
        cmocka_unit_test(many_transfers_run_a_few_at_a_time),
        cmocka_unit_test(transfers_over_the_waiting_maximum_are_refused),
        cmocka_unit_test(a_cancelled_transfer_is_not_heard_of_again),
        cmocka_unit_test(a_transfer_may_be_cancelled_from_its_own_chunks),
        cmocka_unit_test(a_callback_may_start_the_next_transfer),
        cmocka_unit_test(a_callback_may_release_the_client),
        cmocka_unit_test(a_refused_connection_is_reported_to_the_callback),
        cmocka_unit_test(transfers_by_tls_work_in_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
