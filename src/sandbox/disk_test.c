/* Bounded folders; root and loop devices are needed for most of it. */
#include "sandbox/disk.h"
#include "testing/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, SIZE = 16 << 20, OWNER = 65534 };

static char folder[] = "/tmp/souk-disk-test-XXXXXX";

static void skip_without_disks(void)
{
    char reason[128];
    if (!disk_can_bound(reason, sizeof(reason)))
        SKIP("%s", reason);
}

/* How many bytes fit into one file there. */
static int64_t fill(const char *name)
{
    static char block[BLOCK];
    memset(block, 1, sizeof(block));
    char path[96];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    int64_t size = 0;
    ssize_t wrote;
    while (size < 4 * (int64_t)SIZE && (wrote = write(fd, block, sizeof(block))) > 0)
        size += wrote;
    close(fd);
    return size;
}

TEST(folder_takes_what_was_asked_for_and_little_more)
{
    skip_without_disks();
    struct error error = {0};
    ASSERT_OK(disk_open(folder, SIZE, OWNER, &error));
    struct stat status;
    assert_int_equal(stat(folder, &status), 0);
    assert_int_equal(status.st_uid, OWNER);
    const int64_t size = fill("x");
    assert_in_range(size, SIZE, SIZE + SIZE / 2);
    ASSERT_OK(disk_close(folder, &error));
    assert_int_equal(stat(folder, &status), 0);
    assert_int_not_equal(status.st_uid, OWNER);
}

TEST(files_without_contents_are_bounded_too)
{
    skip_without_disks();
    struct error error = {0};
    ASSERT_OK(disk_open(folder, SIZE, OWNER, &error));
    long count = 0;
    int fd = 0;
    for (; fd >= 0 && count < 100000; count++) {
        char path[96];
        snprintf(path, sizeof(path), "%s/%ld", folder, count);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
    const int failure = errno;
    ASSERT_OK(disk_close(folder, &error));
    assert_true(count < 100000);
    assert_int_equal(failure, ENOSPC);
}

TEST(closing_twice_or_what_was_never_bounded_is_fine)
{
    struct error error = {0};
    ASSERT_OK(disk_close(folder, &error));
    ASSERT_OK(disk_close(folder, &error));
}

/* A daemon that was killed leaves a mount and a file; the next one's disk_close finds them. */
TEST(disk_of_a_former_process_is_taken_away)
{
    skip_without_disks();
    struct error error = {0};
    char image[96], file[96];
    ASSERT_OK(disk_open(folder, SIZE, OWNER, &error));
    fill("kept-open");
    snprintf(file, sizeof(file), "%s/kept-open", folder);
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    ASSERT_OK(disk_close(folder, &error));
    snprintf(image, sizeof(image), "%s.disk", folder);
    assert_int_not_equal(access(image, F_OK), 0);
    assert_int_not_equal(access(file, F_OK), 0);
    close(fd);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
}

TEST(more_than_the_machine_has_is_refused)
{
    skip_without_disks();
    struct error error = {0};
    struct statfs status;
    assert_int_equal(statfs(folder, &status), 0);
    const int64_t all = (int64_t)status.f_blocks * (int64_t)status.f_bsize;
    ASSERT_FAILS(disk_open(folder, 2 * all, OWNER, &error), ERROR_EXHAUSTED);
    char image[96];
    snprintf(image, sizeof(image), "%s.disk", folder);
    assert_int_not_equal(access(image, F_OK), 0);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_takes_what_was_asked_for_and_little_more),
        cmocka_unit_test(files_without_contents_are_bounded_too),
        cmocka_unit_test(closing_twice_or_what_was_never_bounded_is_fine),
        cmocka_unit_test(disk_of_a_former_process_is_taken_away),
        cmocka_unit_test(more_than_the_machine_has_is_refused),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
