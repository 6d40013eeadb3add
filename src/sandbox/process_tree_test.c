#include "sandbox/process_tree.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(own_process_is_read_with_its_parent_and_threads)
{
    struct error error = {0};
    struct process_info info;
    ASSERT_OK(process_read(getpid(), &info, &error));
    assert_int_equal(info.parent, getppid());
    assert_true(info.thread_count >= 1);
    assert_true(info.start_ticks > 0);
}

TEST(memory_is_what_is_held_not_what_is_mapped_from_a_file)
{
    /* The kernel counts pages in batches on each core: the file is larger than those. It lies
     * beside this program, since /tmp may be memory. */
    const size_t size = 64 << 20;
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 8);
    assert_true(length > 0);
    memcpy(path + length, "-XXXXXX", sizeof("-XXXXXX"));
    const int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    struct statfs system;
    assert_int_equal(fstatfs(fd, &system), 0);
    assert_int_equal(unlink(path), 0);
    if (system.f_type == TMPFS_MAGIC)
        SKIP("files are memory where this program lies");
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    const int64_t before = process_memory_bytes(getpid());
    assert_true(before > 0);
    unsigned char *mapped = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    assert_true(mapped != MAP_FAILED);
    assert_true(process_memory_bytes(getpid()) < before + (int64_t)size / 2);
    unsigned char *held =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_true(held != MAP_FAILED);
    assert_true(process_memory_bytes(getpid()) > before + (int64_t)size / 2);
    munmap(held, size);
    munmap(mapped, size);
    close(fd);
    assert_int_equal(process_memory_bytes(0x3fffffff), 0);
}

TEST(absent_process_is_not_found)
{
    struct error error = {0};
    struct process_info info;
    ASSERT_FAILS(process_read(0x3fffffff, &info, &error), ERROR_NOT_FOUND);
}

TEST(tree_holds_children_and_grandchildren_and_no_others)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        const pid_t grandchild = fork();
        if (grandchild == 0)
            for (;;)
                pause();
        if (write(ready[1], &grandchild, sizeof(grandchild)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    pid_t grandchild = 0;
    assert_int_equal(read(ready[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));

    struct process_info tree[16];
    const size_t count = process_tree_list(getpid(), tree, 16);
    assert_int_equal(count, 2);
    assert_int_equal(tree[0].pid, child);
    assert_int_equal(tree[1].pid, grandchild);
    assert_int_equal(process_tree_list(child, tree, 16), 1);
    assert_int_equal(process_tree_list(getpid(), tree, 1), 1);
    assert_true(process_count_of_user(getuid()) >= 3);

    kill(grandchild, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

TEST(stopped_process_is_told_from_one_that_runs)
{
    struct error error = {0};
    struct process_info info;
    const pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    int status;
    ASSERT_OK(process_read(child, &info, &error));
    assert_false(info.is_stopped);
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    ASSERT_OK(process_read(child, &info, &error));
    assert_true(info.is_stopped);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(ticks_become_milliseconds)
{
    assert_int_equal(process_ticks_to_ms(sysconf(_SC_CLK_TCK)), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_process_is_read_with_its_parent_and_threads),
        cmocka_unit_test(memory_is_what_is_held_not_what_is_mapped_from_a_file),
        cmocka_unit_test(absent_process_is_not_found),
        cmocka_unit_test(tree_holds_children_and_grandchildren_and_no_others),
        cmocka_unit_test(stopped_process_is_told_from_one_that_runs),
        cmocka_unit_test(ticks_become_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
