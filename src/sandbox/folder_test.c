#include "sandbox/folder.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static int64_t measure(const char *folder)
{
    struct error error = {0};
    int64_t bytes = -1;
    ASSERT_OK(folder_measure(folder, 100, &bytes, &error));
    return bytes;
}

TEST(size_counts_files_at_any_depth)
{
    struct error error = {0};
    char folder[] = "/tmp/souk-folder-test-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    assert_true(measure(folder) < 100000);
    snprintf(path, sizeof(path), "%s/a", folder);
    ASSERT_OK(folder_make(path, 0755, &error));
    snprintf(path, sizeof(path), "%s/a/file", folder);
    make_file(path, 300000);
    assert_in_range(measure(folder), 300000, 400000);
    ASSERT_OK(folder_remove(folder, &error));
}

TEST(tree_deeper_than_any_path_is_removed_and_not_measured)
{
    struct error error = {0};
    char folder[] = "/tmp/souk-folder-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(mkdirat(fd, i == 500 ? "hoisted-0" : "deep", 0755), 0);
        const int inner = openat(fd, i == 500 ? "hoisted-0" : "deep", O_DIRECTORY | O_CLOEXEC);
        assert_true(inner >= 0);
        close(fd);
        fd = inner;
    }
    close(fd);
    int64_t bytes = 0;
    ASSERT_FAILS(folder_measure(folder, 10000, &bytes, &error), ERROR_EXHAUSTED);
    ASSERT_OK(folder_remove(folder, &error));
    assert_int_not_equal(access(folder, F_OK), 0);
}

TEST(more_files_than_allowed_are_not_measured)
{
    struct error error = {0};
    char folder[] = "/tmp/souk-folder-test-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof(path), "%s/%d", folder, i);
        make_file(path, 1);
    }
    int64_t bytes = 0;
    ASSERT_OK(folder_measure(folder, 5, &bytes, &error));
    ASSERT_FAILS(folder_measure(folder, 4, &bytes, &error), ERROR_EXHAUSTED);
    ASSERT_OK(folder_remove(folder, &error));
}

/* As a plain user: root looks into every folder. */
TEST(folder_that_hides_its_files_is_not_measured)
{
    char folder[] = "/tmp/souk-folder-test-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0777), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct error error = {0};
        int64_t bytes = 0;
        if (getuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(1);
        snprintf(path, sizeof(path), "%s/closed", folder);
        if (mkdir(path, 0000) < 0 || folder_measure(folder, 100, &bytes, &error) == 0)
            _exit(2);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct error error = {0};
    ASSERT_OK(folder_remove(folder, &error));
}

TEST(what_is_mounted_in_a_folder_is_taken_off_and_kept)
{
    struct error error = {0};
    char folder[] = "/tmp/souk-folder-test-XXXXXX", outside[] = "/tmp/souk-folder-kept-XXXXXX";
    char inner[128], kept[128];
    assert_non_null(mkdtemp(folder));
    assert_non_null(mkdtemp(outside));
    snprintf(inner, sizeof(inner), "%s/a b", folder);
    snprintf(kept, sizeof(kept), "%s/kept", outside);
    make_file(kept, 10);
    ASSERT_OK(folder_make(inner, 0755, &error));
    const bool is_mounted = mount(outside, inner, NULL, MS_BIND, NULL) == 0;
    ASSERT_OK(folder_remove(folder, &error));
    assert_int_not_equal(access(folder, F_OK), 0);
    assert_int_equal(access(kept, F_OK), 0);
    ASSERT_OK(folder_remove(outside, &error));
    if (!is_mounted)
        SKIP("only root can mount");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_goes_with_all_in_it_and_links_are_not_followed),
        cmocka_unit_test(size_counts_files_at_any_depth),
        cmocka_unit_test(tree_deeper_than_any_path_is_removed_and_not_measured),
        cmocka_unit_test(more_files_than_allowed_are_not_measured),
        cmocka_unit_test(folder_that_hides_its_files_is_not_measured),
        cmocka_unit_test(what_is_mounted_in_a_folder_is_taken_off_and_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
