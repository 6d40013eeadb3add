#include "source/hdfs_answer.h"
#include "testing/testing.h"

TEST(a_status_says_how_large_and_how_old_a_file_is)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct hdfs_status status;
    ASSERT_OK(hdfs_answer_status(
        arena,
        TEXT("{\"FileStatus\":{\"accessTime\":1,\"blockSize\":134217728,\"length\":24930,"
             "\"modificationTime\":1320173277227,\"owner\":\"me\",\"pathSuffix\":\"\","
             "\"type\":\"FILE\"}}"),
        &status, &error));
    assert_int_equal(status.length, 24930);
    assert_int_equal(status.modification_time, 1320173277227);
    assert_false(status.is_folder);
    ASSERT_FAILS(hdfs_answer_status(arena, TEXT("<html>"), &status, &error), ERROR_CORRUPT);
    ASSERT_FAILS(
        hdfs_answer_status(arena, TEXT("{\"FileStatus\":{\"length\":-1}}"), &status, &error),
        ERROR_CORRUPT);
}

TEST(a_folder_is_listed)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct hdfs_status *list = NULL;
    size_t count = 0;
    ASSERT_OK(hdfs_answer_list(
        arena,
        TEXT("{\"FileStatuses\":{\"FileStatus\":["
             "{\"length\":3,\"modificationTime\":1,\"pathSuffix\":\"a.csv\",\"type\":\"FILE\"},"
             "{\"length\":0,\"modificationTime\":2,\"pathSuffix\":\"b\",\"type\":\"DIRECTORY\"}"
             "]}}"),
        &list, &count, &error));
    assert_int_equal(count, 2);
    assert_true(text_equal(list[0].name, TEXT("a.csv")));
    assert_true(list[1].is_folder);
}

TEST(a_refusal_names_its_exception)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_true(text_equal(
        hdfs_answer_exception(arena, TEXT("{\"RemoteException\":{\"exception\":"
                                          "\"FileNotFoundException\",\"javaClassName\":\"x\","
                                          "\"message\":\"y\"}}")),
        TEXT("FileNotFoundException")));
    assert_int_equal(hdfs_answer_exception(arena, TEXT("Authentication required")).size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_says_how_large_and_how_old_a_file_is),
        cmocka_unit_test(a_folder_is_listed),
        cmocka_unit_test(a_refusal_names_its_exception),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
