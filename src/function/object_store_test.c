/* covers object_store_folder.c, object_store_market.c, object_store_s3.c, parcel.c, work.c: what
 * every kind of store does, and what lies in it.
 *
 * The kind is a folder, or the place in SOUK_STORE, with SOUK_SERVER and SOUK_TOKEN of a market or
 * the AWS_* variables: tests/system/test_function_market.py runs it on a market, tests/sources on
 * S3. What servers should not say is scripted here. */
#include "function/object_store.h"
#include "function/parcel.h"
#include "function/work.h"
#include "source/remote.h"
#include "testing/scripted_server.h"
#include "testing/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/souk-object-store-XXXXXX";

static const char *variable(const char *name)
{
    return getenv(name); /* NOLINT(concurrency-mt-unsafe): nobody sets any */
}

static struct object_store *open_store(void)
{
    struct error error = {0};
    struct object_store *store = NULL;
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    const char *place = variable("SOUK_STORE");
    const struct object_market market = {.server = variable("SOUK_SERVER"),
                                         .token = variable("SOUK_TOKEN")};
    ASSERT_OK(remote_credentials_take_environment(&credentials, &error));
    const struct object_store_options options = {
        .place = place ? place : folder, .credentials = &credentials, .market = &market};
    ASSERT_OK(object_store_open(&options, &store, &error));
    return store;
}

static int set_up(void **state __attribute__((unused)))
{
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state __attribute__((unused)))
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command); /* NOLINT(concurrency-mt-unsafe,cert-env33-c) */
}

TEST(an_object_is_put_read_replaced_and_deleted)
{
    AUTO(object_store) struct object_store *store = open_store();
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    char part[3] = "";
    buffer_init(&out, 16);
    ASSERT_FAILS(object_store_read(store, "a/b/c", &out, &error), ERROR_NOT_FOUND);
    ASSERT_OK(object_store_put(store, "a/b/c", TEXT("hello"), true, &error));
    ASSERT_FAILS(object_store_put(store, "a/b/c", TEXT("other"), true, &error), ERROR_CONFLICT);
    ASSERT_OK(object_store_read(store, "a/b/c", &out, &error));
    assert_true(text_equal(buffer_text(&out), TEXT("hello")));
    ASSERT_OK(object_store_read_part(store, "a/b/c", 3, part, 2, &error));
    assert_string_equal(part, "lo");
    ASSERT_FAILS(object_store_read_part(store, "a/b/c", 4, part, 2, &error), ERROR_CORRUPT);
    ASSERT_OK(object_store_put(store, "a/b/c", TEXT("more"), false, &error));
    ASSERT_OK(object_store_read(store, "a/b/c", &out, &error));
    assert_true(text_equal(buffer_text(&out), TEXT("more")));
    ASSERT_OK(object_store_delete(store, "a/b/c", &error));
    ASSERT_OK(object_store_delete(store, "a/b/c", &error));
    ASSERT_FAILS(object_store_read(store, "a/b/c", &out, &error), ERROR_NOT_FOUND);
}

TEST(an_object_goes_from_store_to_store_by_a_file)
{
    AUTO(object_store) struct object_store *store = open_store();
    struct error error = {0};
    enum { SIZE = 600000 }; /* more than is copied at a time */
    char *bytes = malloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 31 + i / 256);
    AUTO_FD int fd = memfd_create("object", MFD_CLOEXEC);
    AUTO_FD int other_fd = memfd_create("object", MFD_CLOEXEC);
    assert_true(fd >= 0 && other_fd >= 0);
    ASSERT_FAILS(object_store_fetch(store, "a/b", fd, SIZE, &error), ERROR_NOT_FOUND);
    ASSERT_OK(object_store_put(store, "a/b", (struct text){bytes, SIZE}, true, &error));
    ASSERT_FAILS(object_store_fetch(store, "a/b", other_fd, SIZE - 1, &error), ERROR_EXHAUSTED);
    ASSERT_OK(object_store_fetch(store, "a/b", fd, SIZE, &error));
    ASSERT_OK(object_store_put_file(store, "a/c", fd, &error));
    ASSERT_OK(object_store_put_file(store, "a/c", fd, &error)); /* in place of what is there */
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, SIZE);
    ASSERT_OK(object_store_read(store, "a/c", &out, &error));
    assert_int_equal(out.size, SIZE);
    assert_memory_equal(out.data, bytes, SIZE);
    ASSERT_FAILS(object_store_put_file(store, "../c", fd, &error), ERROR_INVALID);
    ASSERT_OK(object_store_delete(store, "a/b", &error));
    ASSERT_OK(object_store_delete(store, "a/c", &error));
    free(bytes);
}

TEST(an_object_of_any_size_comes_back_as_it_was)
{
    enum { SIZE = 9000001, EDGE = 4000000 };
    AUTO(object_store) struct object_store *store = open_store();
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    char *bytes = malloc(SIZE), part[64];
    assert_non_null(bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 2654435761U >> 13);
    static const size_t sizes[] = {0, 1, EDGE, EDGE + 1, SIZE};
    buffer_init(&out, SIZE);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const struct text whole = {bytes, sizes[i]};
        ASSERT_OK(object_store_put(store, "data/sizes", whole, true, &error));
        ASSERT_FAILS(object_store_put(store, "data/sizes", whole, true, &error), ERROR_CONFLICT);
        ASSERT_OK(object_store_put(store, "data/sizes", whole, false, &error));
        ASSERT_OK(object_store_read(store, "data/sizes", &out, &error));
        assert_true(text_equal(buffer_text(&out), whole));
        if (i + 1 < sizeof(sizes) / sizeof(*sizes))
            ASSERT_OK(object_store_delete(store, "data/sizes", &error));
    }
    ASSERT_OK(object_store_read_part(store, "data/sizes", EDGE - 30, part, 60, &error));
    assert_memory_equal(part, bytes + EDGE - 30, 60);
    ASSERT_OK(object_store_read_part(store, "data/sizes", SIZE - 1, part, 1, &error));
    ASSERT_FAILS(object_store_read_part(store, "data/sizes", SIZE - 1, part, 2, &error),
                 ERROR_CORRUPT);
    ASSERT_FAILS(object_store_read_part(store, "data/sizes", SIZE, part, 1, &error), ERROR_CORRUPT);
    ASSERT_OK(object_store_delete(store, "data/sizes", &error));
    free(bytes);
}

TEST(what_is_longer_than_may_be_is_not_read)
{
    AUTO(object_store) struct object_store *store = open_store();
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 16);
    ASSERT_OK(object_store_put(store, "updates/long", TEXT("seventeen letters"), true, &error));
    ASSERT_FAILS(object_store_read(store, "updates/long", &out, &error), ERROR_EXHAUSTED);
    assert_int_equal(out.size, 0);
    ASSERT_OK(object_store_put(store, "updates/long", TEXT("sixteen letters."), false, &error));
    ASSERT_OK(object_store_read(store, "updates/long", &out, &error));
    assert_int_equal(out.size, 16);
    ASSERT_OK(object_store_delete(store, "updates/long", &error));
}

TEST(a_key_leads_nowhere_else)
{
    AUTO(object_store) struct object_store *store = open_store();
    struct error error = {0};
    static const char *const keys[] = {"",   "/a",   "a/",     "a//b", "../a",
                                       ".a", "a/.b", "a/../b", "a b",  "a\nb"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        ASSERT_FAILS(object_store_put(store, keys[i], TEXT("x"), false, &error), ERROR_INVALID);
    const struct object_store_options none = {.place = "/nowhere/at/all"};
    struct object_store *other = NULL;
    ASSERT_FAILS(object_store_open(&none, &other, &error), ERROR_NOT_FOUND);
    const struct object_store_options odd = {.place = "s3://"};
    ASSERT_FAILS(object_store_open(&odd, &other, &error), ERROR_INVALID);
}

TEST(a_store_that_is_away_is_unavailable)
{
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    char byte;
    buffer_init(&out, 16);
    const struct remote_credentials credentials = {.endpoint_url = "http://127.0.0.1:1"};
    const struct object_store_options options = {
        .place = "s3://bucket/souk/", .credentials = &credentials, .attempts_max = 1};
    AUTO(object_store) struct object_store *store = NULL;
    ASSERT_OK(object_store_open(&options, &store, &error));
    ASSERT_FAILS(object_store_read(store, "a", &out, &error), ERROR_UNAVAILABLE);
    ASSERT_FAILS(object_store_put(store, "a", TEXT("x"), true, &error), ERROR_UNAVAILABLE);
    ASSERT_FAILS(object_store_read_part(store, "a", 0, &byte, 1, &error), ERROR_UNAVAILABLE);
    ASSERT_FAILS(object_store_delete(store, "a", &error), ERROR_UNAVAILABLE);
    AUTO_FD int fd = memfd_create("object", MFD_CLOEXEC);
    ASSERT_FAILS(object_store_fetch(store, "a", fd, 16, &error), ERROR_UNAVAILABLE);
    ASSERT_FAILS(object_store_put_file(store, "a", fd, &error), ERROR_UNAVAILABLE);
}

static struct object_store *open_market(const char *server, const char *token, uint32_t attempts)
{
    struct error error = {0};
    struct object_store *store = NULL;
    const struct object_market market = {.server = server, .token = token};
    const struct object_store_options options = {
        .place = OBJECT_STORE_MARKET, .market = &market, .attempts_max = attempts};
    ASSERT_OK(object_store_open(&options, &store, &error));
    return store;
}

TEST(a_market_is_known_by_its_address_and_a_token)
{
    struct error error = {0};
    struct object_store *store = NULL;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 16);
    struct object_market market = {.server = NULL, .token = "t"};
    const struct object_store_options options = {.place = OBJECT_STORE_MARKET, .market = &market};
    ASSERT_FAILS(object_store_open(&options, &store, &error), ERROR_INVALID);
    market = (struct object_market){.server = "http://127.0.0.1:1", .token = ""};
    ASSERT_FAILS(object_store_open(&options, &store, &error), ERROR_REFUSED);
    AUTO(object_store) struct object_store *away = open_market("http://127.0.0.1:1", "t", 1);
    ASSERT_FAILS(object_store_read(away, "a", &out, &error), ERROR_UNAVAILABLE);
    ASSERT_FAILS(object_store_put(away, "a", TEXT("x"), true, &error), ERROR_UNAVAILABLE);
    ASSERT_FAILS(object_store_delete(away, "a", &error), ERROR_UNAVAILABLE);
}

#define ANSWER(status_, body_)                                                                     \
    {                                                                                              \
        "HTTP/1.1 " status_ "\r\nConnection: close\r\n\r\n" body_, SCRIPTED_CLOSES                 \
    }

TEST(a_market_that_is_busy_or_cut_off_is_asked_again)
{
    struct scripted_server server;
    const struct scripted_answer answers[] = {
        ANSWER("503 Busy", "{\"detail\":\"later\"}"),
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", SCRIPTED_CLOSES},
        ANSWER("200 OK", "whole"),
        {"", SCRIPTED_RESETS},
        ANSWER("412 Exists", "{}"),
    };
    scripted_start(&server, answers, 5);
    char url[64];
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 16);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server.port);
    AUTO(object_store) struct object_store *store = open_market(url, "secret", 0);
    ASSERT_OK(object_store_read(store, "models/a/1", &out, &error));
    assert_true(text_equal(buffer_text(&out), TEXT("whole"))); /* and nothing of the half */
    /* It may be the first attempt's own: that is for the caller to find out. */
    ASSERT_FAILS(object_store_put(store, "updates/a/1", TEXT("x"), true, &error), ERROR_CONFLICT);
    scripted_stop(&server);
    assert_non_null(strstr(server.asked[0], "GET /v1/objects/models/a/1 "));
    assert_non_null(strstr(server.asked[4], "PUT /v1/objects/updates/a/1 "));
    assert_non_null(strstr(server.asked[4], "If-None-Match: *"));
    assert_non_null(strstr(server.asked[4], "Authorization: Bearer secret"));
}

TEST(what_a_market_refuses_is_told_in_its_words_and_not_asked_again)
{
    struct scripted_server server;
    const struct scripted_answer answers[] = {
        ANSWER("507 Full", "{\"detail\":\"this account has used up all\"}"),
        ANSWER("401 Who", "{\"detail\":\"this token is not known here\"}"),
        ANSWER("403 No", "not JSON"),
        {"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nbytes", SCRIPTED_WAITS},
        ANSWER("200 OK", "more than sixteen bytes"),
        ANSWER("206 Part", "xy"),
    };
    scripted_start(&server, answers, 6);
    char url[64], part[4];
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 16);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", server.port);
    AUTO(object_store) struct object_store *store = open_market(url, "secret", 0);
    ASSERT_FAILS(object_store_put(store, "a", TEXT("x"), true, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "used up all"));
    ASSERT_FAILS(object_store_read(store, "a", &out, &error), ERROR_REFUSED);
    assert_null(strstr(error.message, "secret"));
    ASSERT_FAILS(object_store_read(store, "a", &out, &error), ERROR_REFUSED);
    ASSERT_FAILS(object_store_read(store, "a", &out, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(object_store_read(store, "a", &out, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(object_store_read_part(store, "a", 0, part, 4, &error), ERROR_CORRUPT);
    scripted_stop(&server);
}

TEST(what_is_too_long_in_s3_is_not_read_to_its_end)
{
    struct scripted_server server;
    const struct scripted_answer answers[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nmore than sixteen bytes",
         SCRIPTED_WAITS}};
    scripted_start(&server, answers, 1);
    struct remote_credentials credentials = {.access_key = "key", .secret_key = "secret"};
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 16);
    snprintf(credentials.endpoint_url, sizeof(credentials.endpoint_url), "http://127.0.0.1:%d",
             server.port);
    const struct object_store_options options = {
        .place = "s3://bucket/souk", .credentials = &credentials, .attempts_max = 1};
    struct object_store *store = NULL;
    ASSERT_OK(object_store_open(&options, &store, &error));
    ASSERT_FAILS(object_store_read(store, "updates/a", &out, &error), ERROR_EXHAUSTED);
    object_store_free(store);
    scripted_stop(&server);
}

TEST(of_many_who_put_once_one_is_let_in)
{
    enum { CHILDREN = 40 };
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct error error = {0};
            struct object_store *store = open_store();
            const struct text mine = {(const char *)&i, sizeof(i)};
            _exit(object_store_put(store, "updates/race", mine, true, &error) == 0 ? 0
                  : error.code == ERROR_CONFLICT                                   ? 1
                                                                                   : 2);
        }
    }
    int winner = -1, status;
    for (int i = 0; i < CHILDREN; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        if (WEXITSTATUS(status) == 0) {
            assert_int_equal(winner, -1);
            winner = i;
        }
    }
    AUTO(object_store) struct object_store *store = open_store();
    struct error error = {0};
    int found = -1;
    ASSERT_OK(object_store_read_part(store, "updates/race", 0, &found, sizeof(found), &error));
    assert_int_equal(found, winner);
    ASSERT_OK(object_store_delete(store, "updates/race", &error));
}

static void make_link(const char *target, const char *name)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(symlink(target, path), 0);
}

TEST(neither_links_nor_pipes_are_objects)
{
    if (variable("SOUK_STORE")) /* a folder's alone */
        SKIP("of a folder alone, and this run is of SOUK_STORE");
    AUTO(object_store) struct object_store *store = open_store();
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    char path[96], byte, elsewhere[] = "/tmp/souk-elsewhere-XXXXXX", owned[64];
    buffer_init(&out, 16);
    assert_non_null(mkdtemp(elsewhere));
    snprintf(owned, sizeof(owned), "%s/x", elsewhere);
    assert_int_equal(close(open(owned, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    ASSERT_OK(object_store_put(store, "a/b", TEXT("hello"), true, &error));
    make_link("b", "a/inside");
    make_link("/etc/passwd", "a/outside");
    make_link(elsewhere, "c");
    snprintf(path, sizeof(path), "%s/a/pipe", folder);
    assert_int_equal(mkfifo(path, 0644), 0);
    static const char *const wrong[] = {"a/inside", "a/outside", "c/x", "a/pipe", "a"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_int_equal(object_store_read(store, wrong[i], &out, &error), -1);
        assert_int_not_equal(error.code, ERROR_NOT_FOUND);
        assert_int_equal(object_store_read_part(store, wrong[i], 0, &byte, 1, &error), -1);
    }
    assert_int_equal(object_store_put(store, "c/x", TEXT("hello"), false, &error), -1);
    assert_int_equal(object_store_delete(store, "c/x", &error), -1);
    struct stat status;
    assert_int_equal(stat(owned, &status), 0);
    assert_int_equal(status.st_size, 0);
    assert_int_equal(unlink(owned), 0);
    assert_int_equal(rmdir(elsewhere), 0);
    /* A link in an object's place goes, and not what it points to. */
    ASSERT_OK(object_store_put(store, "a/inside", TEXT("other"), false, &error));
    ASSERT_OK(object_store_read(store, "a/b", &out, &error));
    assert_true(text_equal(buffer_text(&out), TEXT("hello")));
    ASSERT_OK(object_store_delete(store, "a/pipe", &error));
}

TEST(a_parcel_comes_back_as_it_was_or_not_at_all)
{
    struct error error = {0};
    const float values[3] = {1, -2.5F, 3e30F};
    const struct parcel parcel = {TEXT("{\"a\":1}"), values, 3};
    struct parcel back;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 1 << 16);
    ASSERT_OK(parcel_encode(&parcel, &bytes, &error));
    ASSERT_OK(parcel_decode(buffer_text(&bytes), &back, &error));
    assert_true(text_equal(back.head, parcel.head));
    assert_int_equal(back.count, 3);
    assert_memory_equal(back.values, values, sizeof(values));
    for (size_t size = 0; size < bytes.size; size++)
        ASSERT_FAILS(parcel_decode((struct text){(char *)bytes.data, size}, &back, &error),
                     ERROR_CORRUPT);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= 4;
        ASSERT_FAILS(parcel_decode(buffer_text(&bytes), &back, &error), ERROR_CORRUPT);
        bytes.data[i] ^= 4;
    }
    const float bad[1] = {(float)NAN};
    buffer_clear(&bytes);
    ASSERT_OK(parcel_encode(&(struct parcel){TEXT("{}"), bad, 1}, &bytes, &error));
    ASSERT_FAILS(parcel_decode(buffer_text(&bytes), &back, &error), ERROR_CORRUPT);
}

TEST(a_request_is_read_and_refused_by_its_table)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct work_request request;
    char key[OBJECT_KEY_SIZE];
    ASSERT_OK(work_request_read(arena,
                                TEXT("{\"job\":\"digits-1\",\"epoch\":2,\"run\":7,\"first_batch\":"
                                     "40,\"batch_count\":8,\"version\":3}"),
                                &request, &error));
    work_update_key(&request, key);
    assert_string_equal(key, "updates/digits-1/2-7-40");
    static const char with_more[] = "{\"job\":\"a\",\"epoch\":0,\"run\":0,\"first_batch\":0,"
                                    "\"batch_count\":1,\"version\":0,\"x\":1}";
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"job\":\"a\"}",
        "{\"job\":\"a/b\",\"epoch\":0,\"run\":0,\"first_batch\":0,\"batch_count\":1,\"version\":0}",
        "{\"job\":\"a\",\"epoch\":0,\"run\":0,\"first_batch\":0,\"batch_count\":0,\"version\":0}",
        "{\"job\":\"a\",\"epoch\":-1,\"run\":0,\"first_batch\":0,\"batch_count\":1,\"version\":0}",
        with_more,
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(work_request_read(arena, text_of(wrong[i]), &request, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_object_goes_from_store_to_store_by_a_file, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_object_is_put_read_replaced_and_deleted, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_object_of_any_size_comes_back_as_it_was, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_longer_than_may_be_is_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_leads_nowhere_else, set_up, tear_down),
        cmocka_unit_test(a_store_that_is_away_is_unavailable),
        cmocka_unit_test(a_market_is_known_by_its_address_and_a_token),
        cmocka_unit_test(a_market_that_is_busy_or_cut_off_is_asked_again),
        cmocka_unit_test(what_a_market_refuses_is_told_in_its_words_and_not_asked_again),
        cmocka_unit_test(what_is_too_long_in_s3_is_not_read_to_its_end),
        cmocka_unit_test_setup_teardown(of_many_who_put_once_one_is_let_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(neither_links_nor_pipes_are_objects, set_up, tear_down),
        cmocka_unit_test(a_parcel_comes_back_as_it_was_or_not_at_all),
        cmocka_unit_test(a_request_is_read_and_refused_by_its_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
