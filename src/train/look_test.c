#include "base/file.h"
#include "testing/testing.h"
#include "train/look.h"

#include <stdlib.h>

/* As the JSON that the market answers with. */
static const char *look_json(struct arena *arena, const char *ending, struct text bytes,
                             bool is_whole)
{
    struct error error = {0};
    struct look look;
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    char folder[] = "/tmp/souk-look-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *path = arena_format(arena, "%s/file%s", folder, ending);
    ASSERT_OK(file_replace(path, &bytes, 1, 0600, &error));
    const int result = look_at(arena, path, is_whole, &look, &error);
    unlink(path);
    rmdir(folder);
    if (result < 0)
        return arena_format(arena, "%s", error.message);
    buffer_init(&json, 1 << 20);
    json_writer_init(&writer, &json);
    json_write(&writer, &look_schema, &look);
    struct look told = {0};
    ASSERT_OK(json_read(arena, buffer_text(&json), &look_schema, &told, &error));
    buffer_clear(&json);
    json_writer_init(&writer, &json);
    look_write(&writer, &told);
    return arena_copy_string(arena, buffer_text(&json));
}

TEST(a_table_shows_its_columns_and_first_rows)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_string_equal(look_json(arena, ".csv", TEXT("size,kind\n1,a\n2,b\n"), true),
                        "{\"format\":\"csv\",\"columns\":[\"size\",\"kind\"],\"rows\":[[\"1\","
                        "\"a\"],[\"2\",\"b\"]]}");
    assert_string_equal(look_json(arena, ".csv", TEXT("1,a\n2,b\n"), true),
                        "{\"format\":\"csv\",\"columns\":[\"1\",\"2\"],\"rows\":[[\"1\",\"a\"],"
                        "[\"2\",\"b\"]]}");
}

TEST(the_last_row_of_a_file_that_goes_on_is_not_shown)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_string_equal(look_json(arena, ".csv", TEXT("size,kind\n1,a\n2,\"b"), false),
                        "{\"format\":\"csv\",\"columns\":[\"size\",\"kind\"],\"rows\":[[\"1\","
                        "\"a\"]]}");
    assert_non_null(strstr(look_json(arena, ".csv", TEXT("size,kind\n1,a\n2,\"b"), true), "line"));
}

TEST(lines_of_text_and_sparse_rows_are_shown_as_they_are)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_string_equal(look_json(arena, ".txt", TEXT("good\tfine film\nbad\tdull\n"), true),
                        "{\"format\":\"text\",\"columns\":[],\"rows\":[[\"good\",\"fine film\"],"
                        "[\"bad\",\"dull\"]]}");
    assert_string_equal(look_json(arena, ".svm", TEXT("+1 3:1 7:0.5\n"), true),
                        "{\"format\":\"libsvm\",\"columns\":[],\"rows\":[[\"+1 3:1 7:0.5\"]]}");
}

TEST(an_archive_is_a_folder_and_what_nothing_tells_is_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_string_equal(look_json(arena, ".tar.gz", TEXT("anything"), true),
                        "{\"format\":\"folder\",\"columns\":[],\"rows\":[]}");
    assert_non_null(strstr(look_json(arena, ".xyz", TEXT("\x01\x02"), true), "nothing tells"));
    assert_true(look_is_archive(TEXT("faces.tgz")));
    assert_false(look_is_archive(TEXT("faces.npz")));
}

TEST(long_values_are_cut_between_characters)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct buffer line AUTO_BUFFER;
    buffer_init(&line, 4096);
    buffer_append_string(&line, "kind,text\na,x");
    for (int i = 0; i < 100; i++)
        buffer_append_string(&line, "\xc3\xa4");
    buffer_append_string(&line, "\n");
    const char *json = look_json(arena, ".csv", buffer_text(&line), true);
    assert_null(strstr(json, "\xef\xbf\xbd"));
    assert_true(strlen(json) < 160);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_shows_its_columns_and_first_rows),
        cmocka_unit_test(the_last_row_of_a_file_that_goes_on_is_not_shown),
        cmocka_unit_test(lines_of_text_and_sparse_rows_are_shown_as_they_are),
        cmocka_unit_test(an_archive_is_a_folder_and_what_nothing_tells_is_refused),
        cmocka_unit_test(long_values_are_cut_between_characters),
    };
    return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
