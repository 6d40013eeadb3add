/* covers remote.c, remote_fetch.c, remote_folder.c, remote_http.c, remote_run.c */
#include "base/assert.h"
#include "source/remote.h"
#include "testing/scripted_server.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>

#define OK(size) "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " size "\r\n"
#define PART(range)                                                                                \
    "HTTP/1.1 206 Partial Content\r\nConnection: close\r\nContent-Range: bytes " range "\r\n"
#define ETAG(tag)     "ETag: \"" tag "\"\r\n"
#define STATUS(words) "HTTP/1.1 " words "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

/* ---- One fetch against one script -------------------------------------------------------------
 */

struct scene {
    struct scripted_server server;
    struct remote_options options;
    char address[256];
    int fd;
    uint32_t retries;
    uint64_t done_bytes;
    struct error last_reason;
    int64_t pauses_ms[SCRIPT_MAX];
    const char *followed;
    bool is_stopped;
};

static void on_retry(void *context, const struct error *reason, int64_t pause_ms)
{
    struct scene *scene = context;
    scene->last_reason = *reason;
    scene->pauses_ms[scene->retries++] = pause_ms;
}

static void on_progress(void *context, uint64_t done_bytes,
                        uint64_t total_bytes __attribute__((unused)))
{
    ((struct scene *)context)->done_bytes = done_bytes;
}

static bool is_stopped(void *context)
{
    return ((struct scene *)context)->is_stopped;
}

static void open_scene(struct scene *scene, const struct scripted_answer *answers, size_t count,
                       const char *suffix)
{
    memset(scene, 0, sizeof(*scene));
    scripted_start(&scene->server, answers, count);
    snprintf(scene->address, sizeof(scene->address), "http://127.0.0.1:%u/rows.csv%s",
             scene->server.port, suffix);
    scene->fd = memfd_create("rows", MFD_CLOEXEC);
    ASSERT(scene->fd >= 0);
    scene->options = (struct remote_options){.address = scene->address,
                                             .pause_ms = 2,
                                             .slow_ms = 1000,
                                             .on_retry = on_retry,
                                             .on_progress = on_progress,
                                             .is_stopped = is_stopped,
                                             .context = scene};
}

static void close_scene(struct scene *scene)
{
    scripted_stop(&scene->server);
    close(scene->fd);
}

static int fetch(struct scene *scene, struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    return remote_open(&scene->options, &remote, error) < 0
               ? -1
               : remote_fetch(remote, scene->fd, error);
}

static void assert_fetched(const struct scene *scene, const char *expected)
{
    char bytes[256] = "";
    assert_int_equal(lseek(scene->fd, 0, SEEK_END), (off_t)strlen(expected));
    assert_int_equal(pread(scene->fd, bytes, sizeof(bytes) - 1, 0), (ssize_t)strlen(expected));
    assert_string_equal(bytes, expected);
}

#define OPEN(scene, suffix, ...)                                                                   \
    const struct scripted_answer answers[] = {__VA_ARGS__};                                        \
    struct error error = {0};                                                                      \
    struct scene scene;                                                                            \
    open_scene(&(scene), answers, sizeof(answers) / sizeof(*answers), (suffix))

/* ---- What works ------------------------------------------------------------------------------ */

TEST(a_file_is_fetched_and_its_hash_checked)
{
    OPEN(scene, "?token=x#sha256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
         {OK("3") "\r\nabc"});
    ASSERT_OK(fetch(&scene, &error));
    assert_fetched(&scene, "abc");
    assert_int_equal(scene.done_bytes, 3);
    assert_non_null(strstr(scene.server.asked[0], "GET /rows.csv?token=x HTTP/1.1"));
    assert_null(strstr(scene.server.asked[0], "Range"));
    close_scene(&scene);
}

TEST(an_empty_file_is_a_file)
{
    OPEN(scene, "", {OK("0") "\r\n"});
    ASSERT_OK(fetch(&scene, &error));
    assert_fetched(&scene, "");
    close_scene(&scene);
}

TEST(what_was_cut_off_is_gone_on_with)
{
    OPEN(scene, "", {OK("9") ETAG("1") "\r\nabc"}, {STATUS("503 Busy")},
         {PART("3-8/9") ETAG("1") "Content-Length: 6\r\n\r\nde", SCRIPTED_RESETS},
         {PART("5-8/9") ETAG("1") "Content-Length: 4\r\n\r\nfghi"});
    scene.options.seed = 7;
    ASSERT_OK(fetch(&scene, &error));
    assert_fetched(&scene, "abcdefghi");
    assert_int_equal(scene.retries, 3);
    assert_non_null(strstr(scene.server.asked[1], "Range: bytes=3-\r\n"));
    assert_non_null(strstr(scene.server.asked[1], "If-Range: \"1\"\r\n"));
    assert_non_null(strstr(scene.server.asked[3], "Range: bytes=5-\r\n"));
    close_scene(&scene);
}

TEST(without_an_etag_the_date_tells_whether_it_is_the_same)
{
    OPEN(scene, "",
         {OK("6") "ETag: W/\"1\"\r\nLast-Modified: Sun, 01 Nov 2026 08:00:00 GMT\r\n\r\nabc"},
         {PART("3-5/6") "ETag: W/\"1\"\r\nLast-Modified: Sun, 01 Nov 2026 08:00:00 GMT\r\n"
                        "Content-Length: 3\r\n\r\ndef"});
    ASSERT_OK(fetch(&scene, &error));
    assert_fetched(&scene, "abcdef");
    assert_non_null(strstr(scene.server.asked[1], "If-Range: Sun, 01 Nov 2026 08:00:00 GMT\r\n"));
    close_scene(&scene);
}

TEST(a_file_that_changed_is_begun_anew)
{
    OPEN(scene, "", {OK("6") ETAG("1") "\r\nabc"}, {OK("4") ETAG("2") "\r\nWXYZ"});
    ASSERT_OK(fetch(&scene, &error));
    assert_fetched(&scene, "WXYZ");
    close_scene(&scene);
}

TEST(so_it_is_where_the_server_does_not_look_at_the_condition)
{
    OPEN(scene, "", {OK("6") ETAG("1") "\r\nabc"},
         {PART("3-5/6") ETAG("2") "Content-Length: 3\r\n\r\nXYZ"},
         {OK("6") ETAG("2") "\r\nUVWXYZ"});
    ASSERT_OK(fetch(&scene, &error));
    assert_fetched(&scene, "UVWXYZ");
    assert_null(strstr(scene.server.asked[2], "Range"));
    close_scene(&scene);
}

TEST(a_part_is_read_and_a_size_asked_for)
{
    OPEN(scene, "", {PART("0-0/9") ETAG("1") "Content-Length: 1\r\n\r\na"},
         {PART("4-6/9") ETAG("1") "Content-Length: 3\r\n\r\nef"},
         {PART("6-6/9") ETAG("1") "Content-Length: 1\r\n\r\ng"},
         {PART("4-6/9") ETAG("2") "Content-Length: 3\r\n\r\nEFG"});
    AUTO(remote) struct remote *remote = NULL;
    uint64_t size = 0;
    char bytes[4] = "";
    ASSERT_OK(remote_open(&scene.options, &remote, &error));
    ASSERT_OK(remote_size(remote, &size, &error));
    assert_int_equal(size, 9);
    ASSERT_OK(remote_read(remote, 4, bytes, 3, &error));
    assert_string_equal(bytes, "efg");
    assert_non_null(strstr(scene.server.asked[1], "Range: bytes=4-6\r\n"));
    assert_non_null(strstr(scene.server.asked[2], "Range: bytes=6-6\r\n"));
    ASSERT_FAILS(remote_read(remote, 4, bytes, 3, &error), ERROR_CONFLICT);
    close_scene(&scene);
}

TEST(a_server_without_ranges_tells_its_size_and_gives_no_part)
{
    OPEN(scene, "", {OK("9") "\r\nabcdefghi"}, {OK("9") "\r\nabcdefghi"});
    AUTO(remote) struct remote *remote = NULL;
    uint64_t size = 0;
    char bytes[4] = "";
    ASSERT_OK(remote_open(&scene.options, &remote, &error));
    ASSERT_OK(remote_size(remote, &size, &error));
    assert_int_equal(size, 9);
    ASSERT_FAILS(remote_read(remote, 0, bytes, 3, &error), ERROR_UNAVAILABLE);
    close_scene(&scene);
}

/* ---- What does not --------------------------------------------------------------------------- */

TEST(a_refusal_is_one_sentence)
{
    static const struct {
        const char *answer;
        enum error_code code;
        const char *sentence;
    } cases[] = {
        {STATUS("404 Not Found"), ERROR_NOT_FOUND, "there is no such file"},
        {STATUS("403 Forbidden"), ERROR_REFUSED, "the server does not let it be read (status 403)"},
        {STATUS("418 Teapot"), ERROR_REFUSED, "the server answered with status 418"},
        {STATUS("302 Found"), ERROR_CORRUPT, "it redirects without saying where to"},
        {OK("101") "\r\na", ERROR_EXHAUSTED, "it has 101 bytes, and 100 are the most"},
        {"HTTP/1.0 200 OK\r\n\r\n"
         "0123456789012345678901234567890123456789012345678901234567890123456789"
         "0123456789012345678901234567890123456789",
         ERROR_EXHAUSTED, "it is larger than 100 bytes"},
        {PART("5-8/9") "Content-Length: 4\r\n\r\nfghi", ERROR_CORRUPT,
         "it sent another part than it was asked for"},
        {OK("3") "\r\nabd", ERROR_CORRUPT,
         "its SHA-256 is a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9, not "
         "what the address says"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        OPEN(scene,
             "?secret=1#sha256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
             {cases[i].answer});
        char expected[256];
        scene.options.size_max = 100;
        ASSERT_FAILS(fetch(&scene, &error), cases[i].code);
        snprintf(expected, sizeof(expected), "http://127.0.0.1:%u/rows.csv: %s", scene.server.port,
                 cases[i].sentence);
        assert_string_equal(error.message, expected);
        close_scene(&scene);
    }
}

TEST(it_gives_up_after_some_attempts_that_bring_nothing)
{
    OPEN(scene, "", {STATUS("500 Oops")}, {"", SCRIPTED_RESETS}, {STATUS("502 Oops")});
    scene.options.attempts_max = 3;
    ASSERT_FAILS(fetch(&scene, &error), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error.message, "gave up after 3 attempts: the server answered with "
                                          "status 502"));
    assert_int_equal(scene.retries, 2);
    close_scene(&scene);
}

TEST(pauses_double_and_their_jitter_is_seeded)
{
    int64_t pauses_ms[2][3];
    for (int round = 0; round < 2; round++) {
        OPEN(scene, "", {STATUS("500 Oops")}, {STATUS("500 Oops")}, {STATUS("500 Oops")},
             {STATUS("500 Oops")});
        scene.options.attempts_max = 4;
        scene.options.pause_ms = 8;
        scene.options.seed = 42;
        ASSERT_FAILS(fetch(&scene, &error), ERROR_UNAVAILABLE);
        memcpy(pauses_ms[round], scene.pauses_ms, sizeof(pauses_ms[round]));
        close_scene(&scene);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pauses_ms[0][i], pauses_ms[1][i]);
        assert_in_range(pauses_ms[0][i], 4 << i, 8 << i);
    }
}

TEST(who_drips_is_left)
{
    OPEN(scene, "", {OK("9") ETAG("1") "\r\nab", SCRIPTED_WAITS},
         {PART("2-8/9") ETAG("1") "Content-Length: 7\r\n\r\nc", SCRIPTED_WAITS});
    scene.options.attempts_max = 2;
    scene.options.bytes_per_s_min = 1000;
    ASSERT_FAILS(fetch(&scene, &error), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error.message, "too slow"));
    close_scene(&scene);
}

static bool stop_in_pause(void *context)
{
    return ((struct scene *)context)->retries > 0;
}

TEST(it_can_be_stopped_in_a_pause)
{
    OPEN(scene, "",
         {"HTTP/1.1 503 Busy\r\nConnection: close\r\nRetry-After: 50\r\n"
          "Content-Length: 0\r\n\r\n"});
    scene.options.is_stopped = stop_in_pause;
    ASSERT_FAILS(fetch(&scene, &error), ERROR_CONFLICT);
    assert_int_equal(scene.pauses_ms[0], 50000);
    close_scene(&scene);
}

/* ---- Where it may go ------------------------------------------------------------------------- */

static bool may_dial_public(void *context __attribute__((unused)), const struct address *address)
{
    return address_is_public(address);
}

TEST(an_address_that_is_not_approved_is_not_dialled)
{
    OPEN(scene, "", {STATUS("404 Not Found")});
    scene.options.may_dial = may_dial_public;
    ASSERT_FAILS(fetch(&scene, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "its address 127.0.0.1 may not be dialled"));
    char named[64];
    snprintf(named, sizeof(named), "http://localhost:%u/", scene.server.port);
    scene.options.address = named;
    ASSERT_FAILS(fetch(&scene, &error), ERROR_REFUSED);
    assert_int_equal(atomic_load(&scene.server.asked_count), 0);
    scene.options.may_dial = NULL;
    ASSERT_FAILS(fetch(&scene, &error), ERROR_NOT_FOUND);
    close_scene(&scene);
}

static bool may_not_follow(void *context, const char *url)
{
    ((struct scene *)context)->followed = strstr(url, "/elsewhere") ? "/elsewhere" : url;
    return false;
}

TEST(a_redirect_is_followed_where_it_may_be)
{
    OPEN(scene, "",
         {"HTTP/1.1 307 Over there\r\nConnection: close\r\nLocation: /elsewhere?x=1\r\n"
          "Content-Length: 0\r\n\r\n"},
         {OK("3") "\r\nabc"},
         {"HTTP/1.1 302 Over there\r\nConnection: close\r\nLocation: /elsewhere\r\n"
          "Content-Length: 0\r\n\r\n"},
         {"HTTP/1.1 302 Over there\r\nConnection: close\r\nLocation: file:///etc/passwd\r\n"
          "Content-Length: 0\r\n\r\n"});
    ASSERT_OK(fetch(&scene, &error));
    assert_fetched(&scene, "abc");
    assert_non_null(strstr(scene.server.asked[1], "GET /elsewhere?x=1 "));
    scene.options.may_follow = may_not_follow;
    ASSERT_FAILS(fetch(&scene, &error), ERROR_REFUSED);
    assert_string_equal(scene.followed, "/elsewhere");
    scene.options.may_follow = NULL;
    ASSERT_FAILS(fetch(&scene, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "it redirects to what is not HTTP"));
    close_scene(&scene);
}

TEST(a_circle_of_redirects_ends)
{
    const char *const round = "HTTP/1.1 302 Round\r\nConnection: close\r\nLocation: /rows.csv\r\n"
                              "Content-Length: 0\r\n\r\n";
    OPEN(scene, "", {round}, {round}, {round}, {round}, {round}, {round}, {round}, {round},
         {round});
    ASSERT_FAILS(fetch(&scene, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "redirects more than 8 times"));
    close_scene(&scene);
}

/* ---- Folders --------------------------------------------------------------------------------- */

TEST(a_file_of_a_folder_is_no_larger_than_the_list_says)
{
    OPEN(scene, "",
         {OK("88") "\r\n<IsTruncated>false</IsTruncated>"
                   "<Contents><Key>rows/a.csv</Key><Size>3</Size></Contents>"},
         {OK("10") "\r\nabcdefghij"});
    char folder[] = "/tmp/souk-remote-XXXXXX", path[64];
    struct remote_credentials credentials = {0};
    AUTO(remote) struct remote *remote = NULL;
    assert_non_null(mkdtemp(folder));
    snprintf(credentials.endpoint_url, sizeof(credentials.endpoint_url), "http://127.0.0.1:%u",
             scene.server.port);
    scene.options.address = "s3://bucket/rows/";
    scene.options.credentials = &credentials;
    scene.options.connections = 1;
    scene.options.size_max = 100;
    ASSERT_OK(remote_open(&scene.options, &remote, &error));
    ASSERT_FAILS(remote_fetch_folder(remote, folder, 5, &error), ERROR_EXHAUSTED);
    assert_string_equal(error.message,
                        "s3://bucket/rows/a.csv: it has 10 bytes, and 3 are the most");
    snprintf(path, sizeof(path), "%s/a.csv", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    close_scene(&scene);
}

/* ---- Credentials ----------------------------------------------------------------------------- */

TEST(credentials_are_known_by_name_and_wiped)
{
    struct error error = {0};
    struct remote_credentials credentials = {0};
    ASSERT_OK(remote_credentials_set(&credentials, TEXT("AWS_SECRET_ACCESS_KEY"), TEXT("abc/def"),
                                     &error));
    assert_string_equal(credentials.secret_key, "abc/def");
    ASSERT_FAILS(remote_credentials_set(&credentials, TEXT("AWS_SECRET_ACCESS_KEY"),
                                        TEXT("ab\r\nHost: x"), &error),
                 ERROR_INVALID);
    assert_null(strstr(error.message, "Host"));
    ASSERT_FAILS(remote_credentials_set(&credentials, TEXT("OTHER"), TEXT("hidden"), &error),
                 ERROR_INVALID);
    assert_null(strstr(error.message, "hidden"));
    bool has_secret = false;
    for (size_t i = 0; remote_credential_name(i); i++)
        has_secret = has_secret || strcmp(remote_credential_name(i), "AWS_SECRET_ACCESS_KEY") == 0;
    assert_true(has_secret);
    remote_credentials_wipe(&credentials);
    const struct remote_credentials zeros = {0};
    assert_memory_equal(&credentials, &zeros, sizeof(zeros));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_fetched_and_its_hash_checked),
        cmocka_unit_test(an_empty_file_is_a_file),
        cmocka_unit_test(what_was_cut_off_is_gone_on_with),
        cmocka_unit_test(without_an_etag_the_date_tells_whether_it_is_the_same),
        cmocka_unit_test(a_file_that_changed_is_begun_anew),
        cmocka_unit_test(so_it_is_where_the_server_does_not_look_at_the_condition),
        cmocka_unit_test(a_part_is_read_and_a_size_asked_for),
        cmocka_unit_test(a_server_without_ranges_tells_its_size_and_gives_no_part),
        cmocka_unit_test(a_refusal_is_one_sentence),
        cmocka_unit_test(it_gives_up_after_some_attempts_that_bring_nothing),
        cmocka_unit_test(pauses_double_and_their_jitter_is_seeded),
        cmocka_unit_test(who_drips_is_left),
        cmocka_unit_test(it_can_be_stopped_in_a_pause),
        cmocka_unit_test(an_address_that_is_not_approved_is_not_dialled),
        cmocka_unit_test(a_redirect_is_followed_where_it_may_be),
        cmocka_unit_test(a_circle_of_redirects_ends),
        cmocka_unit_test(a_file_of_a_folder_is_no_larger_than_the_list_says),
        cmocka_unit_test(credentials_are_known_by_name_and_wiped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
