#include "base/file.h"
#include "base/scope.h"
#include "testing/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[64];
    char file[80];
};

static struct folder *folder_new(void)
{
    static struct folder folder;
    snprintf(folder.path, sizeof(folder.path), "/tmp/file_test.XXXXXX");
    assert_non_null(mkdtemp(folder.path));
    snprintf(folder.file, sizeof(folder.file), "%s/file", folder.path);
    return &folder;
}

static int folder_entry_count(const struct folder *folder)
{
    struct dirent **names = NULL;
    const int count = scandir(folder->path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return count - 2; /* . and .. */
}

static void folder_remove(const struct folder *folder)
{
    unlink(folder->file);
    rmdir(folder->path);
}

TEST(what_is_written_is_read_back)
{
    struct error error;
    const struct folder *folder = folder_new();
    const struct text parts[] = {TEXT("one "), TEXT(""), TEXT("two")};
    ASSERT_OK(file_replace(folder->file, parts, 3, 0600, &error));
    struct stat status;
    assert_int_equal(stat(folder->file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(folder_entry_count(folder), 1);
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 7);
    ASSERT_OK(file_read(folder->file, &buffer, &error));
    assert_int_equal(buffer.size, 7);
    assert_memory_equal(buffer.data, "one two", 7);
    folder_remove(folder);
}

TEST(a_file_past_the_maximum_is_refused)
{
    struct error error;
    const struct folder *folder = folder_new();
    const struct text part = TEXT("12345678");
    ASSERT_OK(file_replace(folder->file, &part, 1, 0644, &error));
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 7);
    ASSERT_FAILS(file_read(folder->file, &buffer, &error), ERROR_EXHAUSTED);
    folder_remove(folder);
}

TEST(a_write_that_fails_keeps_the_old_file_and_leaves_nothing)
{
    struct error error;
    const struct folder *folder = folder_new();
    assert_int_equal(mkdir(folder->file, 0700), 0); /* a folder cannot be renamed over */
    const struct text part = TEXT("new");
    assert_int_equal(file_replace(folder->file, &part, 1, 0644, &error), -1);
    assert_int_equal(folder_entry_count(folder), 1);
    rmdir(folder->file);
    folder_remove(folder);
    ASSERT_FAILS(file_replace(folder->file, &part, 1, 0644, &error), ERROR_NOT_FOUND);
}

TEST(a_missing_file_is_named)
{
    struct error error;
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 10);
    ASSERT_FAILS(file_read("/nowhere/at/all", &buffer, &error), ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "/nowhere/at/all"));
}

TEST(what_is_left_of_a_file_is_copied)
{
    struct error error;
    const struct folder *folder = folder_new();
    const struct text part = TEXT("all of it");
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 100);
    ASSERT_OK(file_replace(folder->file, &part, 1, 0644, &error));
    AUTO_FD int from = open(folder->file, O_RDONLY | O_CLOEXEC);
    AUTO_FD int to = memfd_create("copy", MFD_CLOEXEC); /* of another file system */
    assert_int_equal(lseek(from, 4, SEEK_SET), 4);
    ASSERT_OK(file_copy(from, to, &error));
    char copied[16] = "";
    assert_int_equal(pread(to, copied, sizeof(copied), 0), 5);
    assert_string_equal(copied, "of it");
    ASSERT_FAILS(file_copy(-1, to, &error), ERROR_UNAVAILABLE);
    folder_remove(folder);
}

TEST(a_folder_is_made_with_those_above_it)
{
    struct error error;
    const struct folder *folder = folder_new();
    char inner[96], deep[96], below_file[112];
    snprintf(inner, sizeof(inner), "%s/a", folder->path);
    snprintf(deep, sizeof(deep), "%s/a/b", folder->path);
    ASSERT_OK(file_make_folders(deep, 0700, &error));
    ASSERT_OK(file_make_folders(deep, 0700, &error));
    struct stat status;
    assert_int_equal(stat(deep, &status), 0);
    assert_true(S_ISDIR(status.st_mode) && (status.st_mode & 0777) == 0700);
    ASSERT_OK(file_replace(folder->file, NULL, 0, 0600, &error));
    snprintf(below_file, sizeof(below_file), "%s/c", folder->file);
    assert_int_equal(file_make_folders(below_file, 0700, &error), -1);
    ASSERT_FAILS(file_make_folders("", 0700, &error), ERROR_INVALID);
    rmdir(deep);
    rmdir(inner);
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_file_past_the_maximum_is_refused),
        cmocka_unit_test(a_write_that_fails_keeps_the_old_file_and_leaves_nothing),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(what_is_left_of_a_file_is_copied),
        cmocka_unit_test(a_folder_is_made_with_those_above_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
