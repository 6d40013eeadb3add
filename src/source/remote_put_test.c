/* covers remote_put.c, remote_hdfs_put.c: what is refused before any byte is sent. What servers
 * take is in tests/system/test_results.py. */
#include "source/remote.h"
#include "testing/scripted_server.h"

#include <sys/mman.h>

#define REDIRECT(place)                                                                            \
    "HTTP/1.1 307 There\r\nConnection: close\r\n" place "Content-Length: 0\r\n\r\n"

struct way {
    const char *followed;
};

static bool may_follow(void *context, const char *url)
{
    return strstr(url, ((const struct way *)context)->followed) != NULL;
}

/* Puts three bytes to a name node that gives this answer. */
static int put(const char *answer, const char *followed, struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    struct way way = {followed};
    const struct scripted_answer answers[] = {{answer, SCRIPTED_CLOSES}};
    struct scripted_server server;
    char address[96];
    scripted_start(&server, answers, 1);
    snprintf(address, sizeof(address), "webhdfs://127.0.0.1:%u/out/a b", server.port);
    const struct remote_options options = {.address = address,
                                           .attempts_max = 1,
                                           .may_follow = followed ? may_follow : NULL,
                                           .context = &way};
    const int fd = memfd_create("result", MFD_CLOEXEC);
    assert_int_equal(write(fd, "abc", 3), 3);
    assert_int_equal(remote_open(&options, &remote, error), 0);
    const int result = remote_put(remote, fd, error);
    close(fd);
    scripted_stop(&server);
    assert_non_null(
        strstr(server.asked[0], "PUT /webhdfs/v1/out/a%20b?op=CREATE&overwrite=true HTTP/1.1\r\n"));
    assert_non_null(strstr(server.asked[0], "Content-Length: 0\r\n"));
    return result;
}

TEST(bytes_follow_a_name_node_only_to_where_they_may)
{
    struct error error = {0};
    ASSERT_FAILS(put(REDIRECT(""), NULL, &error), ERROR_CORRUPT);
    ASSERT_FAILS(put(REDIRECT("Location: ftp://127.0.0.1/x\r\n"), NULL, &error), ERROR_REFUSED);
    ASSERT_FAILS(put(REDIRECT("Location: http://127.0.0.1:1/x\r\n"), "another", &error),
                 ERROR_REFUSED);
    ASSERT_FAILS(
        put("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", NULL, &error),
        ERROR_CORRUPT);
    ASSERT_FAILS(
        put("HTTP/1.1 403 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", NULL, &error),
        ERROR_REFUSED);
    assert_non_null(strstr(error.message, "does not let it be written"));
}

TEST(a_web_server_and_a_folder_take_nothing)
{
    struct error error = {0};
    static const char *const addresses[] = {"https://host/x", "s3://bucket/folder/"};
    for (int i = 0; i < 2; i++) {
        AUTO(remote) struct remote *remote = NULL;
        const struct remote_options options = {.address = addresses[i]};
        ASSERT_OK(remote_open(&options, &remote, &error));
        ASSERT_FAILS(remote_put(remote, -1, &error), ERROR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_follow_a_name_node_only_to_where_they_may),
        cmocka_unit_test(a_web_server_and_a_folder_take_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
