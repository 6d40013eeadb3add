#include "runtime/result_name.h"
#include "testing/testing.h"

#include <string.h>

TEST(ordinary_names_and_folders_are_good)
{
    static const char *const good[] = {
        "model.safetensors",
        "epoch=3-loss=0.1.ckpt",
        "two words",
        "perché.txt",
        "checkpoint-100/model/weights.bin",
        "a..b",
        "100%",
        "it's \"quoted\" \\ here",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        assert_null(result_name_trouble(text_of(good[i])));
        assert_true(result_name_is_fetchable(text_of(good[i])));
    }
}

TEST(no_name_leaves_its_folder_or_a_terminal_line)
{
    static const char *const bad[] = {
        "",
        "/",
        "/etc/passwd",
        "..",
        "../up",
        "a/../../up",
        "a//b",
        "a/",
        ".bashrc",
        "a/.hidden",
        "a\nb",
        "a\x1b[2J",
        "a\x7f",
        "\xff\xfe",
        "./a",
        "a/.",
        "\xe2\x80\xae"
        "txt.exe",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_false(result_name_is_good(text_of(bad[i])));
        assert_false(result_name_is_fetchable(text_of(bad[i])));
    }
    assert_false(result_name_is_good((struct text){"a\0b", 3}));
}

TEST(a_name_has_a_longest_part_and_path)
{
    char name[RESULT_NAME_SIZE_MAX + RESULT_PREFIX_SIZE_MAX + 2];
    memset(name, 'x', sizeof(name));
    assert_true(result_name_is_good((struct text){name, RESULT_PART_SIZE_MAX}));
    assert_false(result_name_is_good((struct text){name, RESULT_PART_SIZE_MAX + 1}));
    assert_true(result_name_is_fetchable((struct text){name, RESULT_PART_SIZE_MAX + 8}));
    for (size_t i = 100; i < sizeof(name); i += 100)
        name[i] = '/';
    assert_true(result_name_is_good((struct text){name, RESULT_NAME_SIZE_MAX}));
    assert_false(result_name_is_good((struct text){name, RESULT_NAME_SIZE_MAX + 1}));
    assert_false(result_name_is_fetchable((struct text){name, sizeof(name)}));
}

TEST(the_list_of_what_was_left_out_is_known_by_its_name)
{
    assert_true(result_name_is_left_out(TEXT("rank3-souk-left-out.txt")));
    assert_false(result_name_is_left_out(TEXT("rank3-left-out.txt")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_names_and_folders_are_good),
        cmocka_unit_test(no_name_leaves_its_folder_or_a_terminal_line),
        cmocka_unit_test(a_name_has_a_longest_part_and_path),
        cmocka_unit_test(the_list_of_what_was_left_out_is_known_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
