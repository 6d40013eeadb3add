#include "peer/folder.h"
#include "testing/testing.h"

#include <sys/stat.h>
#include <unistd.h>

static void make_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    for (size_t i = 0; i < size; i++)
        fputc('x', file);
    fclose(file);
}

TEST(folder_goes_with_all_in_it_and_links_are_not_followed)
{
    struct error error = {0};
    char folder[] = "/tmp/souk-folder-test-XXXXXX", outside[] = "/tmp/souk-folder-kept-XXXXXX";
    char path[128];
    assert_non_null(mkdtemp(folder));
    assert_non_null(mkdtemp(outside));
    snprintf(path, sizeof(path), "%s/kept", outside);
    make_file(path, 10);
    char link[128], inner[128], closed[128];
    snprintf(link, sizeof(link), "%s/link", folder);
    assert_int_equal(symlink(outside, link), 0);
    snprintf(inner, sizeof(inner), "%s/a", folder);
    ASSERT_OK(folder_make(inner, 0755, &error));
    ASSERT_OK(folder_make(inner, 0755, &error));
    snprintf(closed, sizeof(closed), "%s/a/closed", folder);
    ASSERT_OK(folder_make(closed, 0755, &error));
    snprintf(inner, sizeof(inner), "%s/a/closed/file", folder);
    make_file(inner, 100000);
    assert_int_equal(chmod(closed, 0), 0);

    ASSERT_OK(folder_remove(folder, &error));
    assert_int_not_equal(access(folder, F_OK), 0);
    assert_int_equal(access(path, F_OK), 0);
    ASSERT_OK(folder_remove(outside, &error));
    ASSERT_OK(folder_remove(outside, &error)); /* not there any more */
}

TEST(size_counts_files_at_any_depth)
{
    struct error error = {0};
    char folder[] = "/tmp/souk-folder-test-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    assert_true(folder_bytes(folder) < 100000);
    snprintf(path, sizeof(path), "%s/a", folder);
    ASSERT_OK(folder_make(path, 0755, &error));
    snprintf(path, sizeof(path), "%s/a/file", folder);
    make_file(path, 300000);
    assert_true(folder_bytes(folder) >= 300000);
    assert_true(folder_bytes(folder) < 400000);
    ASSERT_OK(folder_remove(folder, &error));
    assert_int_equal(folder_bytes(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_goes_with_all_in_it_and_links_are_not_followed),
        cmocka_unit_test(size_counts_files_at_any_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
