#include "client/pip_report.h"
#include "testing/testing.h"

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define ITEM(url, archive, direct, name)                                                           \
    "{\"download_info\":{\"url\":\"" url "\",\"archive_info\":" archive "},\"is_direct\":" direct  \
    ",\"requested\":true,\"metadata\":{\"metadata_version\":\"2.1\",\"name\":\"" name              \
    "\",\"version\":\"1.0\",\"requires_dist\":[\"x\"]}}"
#define REPORT(items)                                                                              \
    "{\"version\":\"1\",\"pip_version\":\"23.0.1\",\"install\":[" items "],\"environment\":{}}"

static void what_an_index_has_is_locked_and_what_lies_here_is_named(void **state)
{
    (void)state;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct pip_report report;
    ASSERT_OK(pip_report_read(
        arena,
        TEXT(REPORT(ITEM(
            "https://files.example/two-1.0-py3-none-any.whl",
            "{\"hash\":\"sha256=" HASH "\",\"hashes\":{\"sha256\":\"" HASH "\"}}", "false",
            "two") "," ITEM("file:///srv/my%20wheels/mine-1.0-py3-none-any.whl", "{}", "false",
                            "mine") "," ITEM("http://127.0.0.1/one-1.0-py3-none-any.whl",
                                             "{\"hash\":\"sha256=" HASH "\"}", "false", "one"))),
        &report, &error));
    const struct locked_package *packages = report.lock.packages.items;
    assert_int_equal(report.lock.packages.count, 2);
    assert_string_equal(packages[0].name, "one");
    assert_string_equal(packages[1].name, "two");
    assert_string_equal(packages[1].version, "1.0");
    assert_int_equal(packages[0].sha256[1], 0x11);
    assert_memory_equal(packages[0].sha256, packages[1].sha256, PACKAGE_HASH_SIZE);
    assert_int_equal(report.file_count, 1);
    assert_string_equal(report.files[0], "/srv/my wheels/mine-1.0-py3-none-any.whl");
}

static void what_no_index_has_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{}",
        "[",
        REPORT(ITEM("https://host/a.whl", "{\"hashes\":{\"sha256\":\"" HASH "\"}}", "true", "a")),
        REPORT(ITEM("https://host/a.whl", "{}", "false", "a")),
        REPORT(ITEM("https://host/a.whl", "{\"hashes\":{\"sha256\":\"12\"}}", "false", "a")),
        REPORT(ITEM("git+ssh://host/a", "{}", "true", "a")),
        REPORT(ITEM("file:///srv/a", "{}", "true", "a")),
        REPORT(
            ITEM("https://host/a.whl", "{\"hashes\":{\"sha256\":\"" HASH "\"}}", "false", "--pre")),
    };
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct pip_report report;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(pip_report_read(arena, text_of(wrong[i]), &report, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_index_has_is_locked_and_what_lies_here_is_named),
        cmocka_unit_test(what_no_index_has_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
