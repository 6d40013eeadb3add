#include "base/buffer.h"
#include "base/file.h"
#include "base/scope.h"
#include "runtime/mount_pack.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/souk-mount-pack-XXXXXX";

static const char *path_of(struct arena *arena, const char *name)
{
    return arena_format(arena, "%s/%s", folder, name);
}

static void write_file(struct arena *arena, const char *name, const char *bytes, mode_t mode)
{
    struct error error;
    const struct text text = text_of(bytes);
    ASSERT_OK(file_replace(path_of(arena, name), &text, 1, mode, &error));
}

static int make_files(void **state)
{
    (void)state;
    AUTO(arena) struct arena *arena = arena_new(0);
    if (!mkdtemp(folder) || mkdir(path_of(arena, "set"), 0755) < 0 ||
        mkdir(path_of(arena, "set/b"), 0755) < 0 || mkdir(path_of(arena, "empty"), 0755) < 0)
        return -1;
    write_file(arena, "set/z.txt", "last", 0644);
    write_file(arena, "set/b/run.sh", "echo", 0755);
    write_file(arena, "set/a.txt", "", 0644);
    write_file(arena, "rows.csv", "one\ntwo\n\nfour", 0644);
    write_file(arena, "rows.csv.gz", "packed", 0644);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    AUTO(arena) struct arena *arena = arena_new(0);
    static const char *const names[] = {"set/z.txt", "set/b/run.sh", "set/a.txt",
                                        "rows.csv",  "rows.csv.gz",  "packed"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(path_of(arena, names[i]));
    rmdir(path_of(arena, "set/b"));
    rmdir(path_of(arena, "set"));
    rmdir(path_of(arena, "empty"));
    return rmdir(folder);
}

/* Writes it, and reads the index and what is behind it. */
static struct text written(struct arena *arena, const char *path, const struct mount_index *index,
                           struct mount_index *out_index)
{
    struct error error;
    struct buffer bytes AUTO_BUFFER;
    uint64_t size = 0;
    buffer_init(&bytes, 1 << 20);
    AUTO_FD int fd = open(path_of(arena, "packed"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    ASSERT_OK(mount_pack_write(path, index, fd, &error));
    ASSERT_OK(file_read(path_of(arena, "packed"), &bytes, &error));
    const struct text all = arena_copy_text(arena, buffer_text(&bytes));
    ASSERT_OK(mount_header_read((const uint8_t *)all.data, MOUNT_HEADER_SIZE, &size, &error));
    ASSERT_OK(mount_index_decode(arena, (struct text){all.data + MOUNT_HEADER_SIZE, size},
                                 out_index, &error));
    return (struct text){all.data + MOUNT_HEADER_SIZE + size, all.size - MOUNT_HEADER_SIZE - size};
}

TEST(a_folder_travels_in_the_order_of_its_paths)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct mount_index index, got;
    const char *path = mount_pack_path(arena, path_of(arena, "set//"));
    ASSERT_OK(mount_pack_gather(arena, path, &index, &error));
    assert_int_equal(mount_index_part_count(&index), 3);
    const struct text bytes = written(arena, path, &index, &got);
    assert_true(text_is(bytes, "echolast"));
    assert_false(got.is_single);
    assert_true(text_is(got.files[0].path, "a.txt"));
    assert_true(text_is(got.files[1].path, "b/run.sh"));
    assert_true(got.files[1].is_program);
    assert_false(got.files[2].is_program);
}

TEST(a_files_lines_can_be_shared_unless_it_is_compressed)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct mount_index index, got;
    const char *path = path_of(arena, "rows.csv");
    ASSERT_OK(mount_pack_gather(arena, path, &index, &error));
    ASSERT_OK(mount_pack_cut(arena, path, &index, &error));
    assert_true(text_is(written(arena, path, &index, &got), "one\ntwo\n\nfour"));
    assert_true(got.is_single);
    assert_int_equal(mount_index_part_count(&got), 4);
    assert_int_equal(got.cuts[0], 0);
    assert_int_equal(got.cuts[3], 9);
    path = path_of(arena, "rows.csv.gz");
    assert_true(mount_pack_is_compressed(path));
    ASSERT_OK(mount_pack_gather(arena, path, &index, &error));
    ASSERT_FAILS(mount_pack_cut(arena, path, &index, &error), ERROR_INVALID);
}

TEST(what_is_not_there_or_empty_is_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct mount_index index;
    ASSERT_FAILS(mount_pack_gather(arena, path_of(arena, "none"), &index, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(mount_pack_gather(arena, path_of(arena, "empty"), &index, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_travels_in_the_order_of_its_paths),
        cmocka_unit_test(a_files_lines_can_be_shared_unless_it_is_compressed),
        cmocka_unit_test(what_is_not_there_or_empty_is_refused),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
