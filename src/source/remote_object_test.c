/* covers remote_object.c: what is asked of S3 for one object, and what its answers mean. A real S3
 * is asked in tests/sources. */
#include "source/remote.h"
#include "testing/scripted_server.h"

#define ANSWER(status)                                                                             \
    {                                                                                              \
        "HTTP/1.1 " status "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", SCRIPTED_CLOSES   \
    }

static void open_at(const struct scripted_server *server, struct remote **out_remote)
{
    struct error error = {0};
    struct remote_credentials credentials = {.access_key = "key", .secret_key = "secret"};
    snprintf(credentials.endpoint_url, sizeof(credentials.endpoint_url), "http://127.0.0.1:%u",
             server->port);
    const struct remote_options options = {.address = "s3://bucket/a b/c",
                                           .credentials = &credentials,
                                           .pause_ms = 1,
                                           .attempts_max = 3};
    ASSERT_OK(remote_open(&options, out_remote, &error));
}

TEST(put_once_lets_one_in_and_tells_the_others)
{
    AUTO(remote) struct remote *remote = NULL;
    struct error error = {0};
    struct scripted_server server;
    const struct scripted_answer answers[] = {ANSWER("200 OK"), ANSWER("412 No")};
    scripted_start(&server, answers, 2);
    open_at(&server, &remote);
    ASSERT_OK(remote_put_bytes(remote, TEXT("abc"), /* is_once= */ true, &error));
    ASSERT_FAILS(remote_put_bytes(remote, TEXT("abc"), true, &error), ERROR_CONFLICT);
    scripted_stop(&server);
    assert_non_null(strstr(server.asked[0], "PUT /bucket/a%20b/c HTTP/1.1\r\n"));
    assert_non_null(strstr(server.asked[0], "If-None-Match: *\r\n"));
    assert_non_null(strstr(server.asked[0], "Content-Length: 3\r\n"));
    assert_non_null(strstr(server.asked[0], "Authorization: AWS4-HMAC-SHA256 "));
}

TEST(a_put_that_meets_another_under_way_is_tried_again)
{
    AUTO(remote) struct remote *remote = NULL;
    struct error error = {0};
    struct scripted_server server;
    const struct scripted_answer answers[] = {ANSWER("409 Both"), ANSWER("503 Busy"),
                                              ANSWER("412 No")};
    scripted_start(&server, answers, 3);
    open_at(&server, &remote);
    ASSERT_FAILS(remote_put_bytes(remote, TEXT("abc"), true, &error), ERROR_CONFLICT);
    scripted_stop(&server);
}

TEST(a_plain_put_asks_for_nothing_and_a_refusal_is_one)
{
    AUTO(remote) struct remote *remote = NULL;
    struct error error = {0};
    struct scripted_server server;
    const struct scripted_answer answers[] = {ANSWER("200 OK"), ANSWER("403 No")};
    scripted_start(&server, answers, 2);
    open_at(&server, &remote);
    ASSERT_OK(remote_put_bytes(remote, TEXT(""), false, &error));
    ASSERT_FAILS(remote_put_bytes(remote, TEXT(""), false, &error), ERROR_REFUSED);
    scripted_stop(&server);
    assert_null(strstr(server.asked[0], "If-None-Match"));
}

TEST(an_object_is_read_whole_and_taken_away)
{
    AUTO(remote) struct remote *remote = NULL;
    struct error error = {0};
    struct scripted_server server;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 16);
    const struct scripted_answer answers[] = {
        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhel", SCRIPTED_CLOSES},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", SCRIPTED_CLOSES},
        ANSWER("204 Gone")};
    scripted_start(&server, answers, 3);
    open_at(&server, &remote);
    ASSERT_OK(remote_read_all(remote, &out, &error));
    assert_true(text_equal(buffer_text(&out), TEXT("hello")));
    ASSERT_OK(remote_delete(remote, &error));
    scripted_stop(&server);
    assert_non_null(strstr(server.asked[2], "DELETE /bucket/a%20b/c HTTP/1.1\r\n"));
}

TEST(other_places_have_no_objects)
{
    AUTO(remote) struct remote *remote = NULL;
    struct error error = {0};
    const struct remote_options options = {.address = "https://host/x"};
    ASSERT_OK(remote_open(&options, &remote, &error));
    ASSERT_FAILS(remote_put_bytes(remote, TEXT("a"), true, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_once_lets_one_in_and_tells_the_others),
        cmocka_unit_test(a_put_that_meets_another_under_way_is_tried_again),
        cmocka_unit_test(a_plain_put_asks_for_nothing_and_a_refusal_is_one),
        cmocka_unit_test(an_object_is_read_whole_and_taken_away),
        cmocka_unit_test(other_places_have_no_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
