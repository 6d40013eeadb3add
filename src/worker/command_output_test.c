#include "base/scope.h"
#include "testing/testing.h"
#include "worker/checkpoint_folder.h"
#include "worker/command_output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct scene {
    char folder[64];
    struct arena *arena;
    struct output output;
};

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    if (!scene)
        return -1;
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/souk-output-XXXXXX");
    scene->arena = arena_new(0);
    *state = scene;
    return mkdtemp(scene->folder) ? 0 : -1;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    struct error error;
    const int result = checkpoint_clear(scene->folder, &error);
    rmdir(scene->folder);
    output_done(&scene->output);
    arena_free(scene->arena);
    free(scene);
    return result;
}

static const char *path_of(const struct scene *scene, const char *name)
{
    return arena_format(scene->arena, "%s/%s", scene->folder, name);
}

static void put(const struct scene *scene, const char *name)
{
    AUTO_FD int fd = open(path_of(scene, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
}

static void gather(struct scene *scene)
{
    struct error error;
    ASSERT_OK(output_gather(scene->arena, scene->folder, &scene->output, &error));
}

static void assert_left(const struct scene *scene, size_t index, const char *path,
                        const char *reason)
{
    const struct output_left *left = (const void *)scene->output.left.data;
    assert_true(index < scene->output.left_count);
    assert_string_equal(left[index].path, path);
    assert_string_equal(left[index].reason, reason);
}

TEST(files_are_kept_with_their_folders_in_order)
{
    struct scene *scene = *state;
    assert_int_equal(mkdir(path_of(scene, "deep"), 0755), 0);
    assert_int_equal(mkdir(path_of(scene, "deep/er"), 0755), 0);
    put(scene, "zuletzt è.txt");
    put(scene, "epoch=3.ckpt");
    put(scene, "deep/er/file");
    put(scene, LEASE_JOB_CHECKPOINT_NAME);
    gather(scene);
    assert_int_equal(scene->output.count, 3);
    assert_string_equal(scene->output.paths[0], "deep/er/file");
    assert_string_equal(scene->output.paths[1], "epoch=3.ckpt");
    assert_string_equal(scene->output.paths[2], "zuletzt è.txt");
    assert_int_equal(scene->output.left_count, 0);
}

TEST(what_is_not_kept_has_its_reason)
{
    struct scene *scene = *state;
    put(scene, "line\nend");
    put(scene, "good");
    put(scene, "large");
    assert_int_equal(truncate(path_of(scene, "large"), (off_t)RESULT_BYTES_MAX + 1), 0);
    assert_int_equal(mkdir(path_of(scene, ".cache"), 0755), 0);
    put(scene, ".cache/file");
    assert_int_equal(symlink("/etc/passwd", path_of(scene, "p-link")), 0);
    assert_int_equal(mkfifo(path_of(scene, "pipe"), 0644), 0);
    gather(scene);
    assert_int_equal(scene->output.count, 1);
    assert_int_equal(scene->output.left_count, 5);
    assert_left(scene, 0, ".cache", "its name begins with a dot");
    assert_left(scene, 1, "large", "it is larger than 1 GiB");
    assert_left(scene, 2, "line\nend", "its name has a character that no terminal shows");
    assert_left(scene, 3, "p-link", "it is a link");
    assert_left(scene, 4, "pipe", "it is no plain file");
}

TEST(more_files_than_are_kept_are_named)
{
    struct scene *scene = *state;
    for (int i = 0; i < RESULT_FILES_MAX + 3; i++)
        put(scene, arena_format(scene->arena, "file-%04d", i));
    gather(scene);
    assert_int_equal(scene->output.count, RESULT_FILES_MAX);
    assert_int_equal(scene->output.left_count, 3);
    assert_left(scene, 0, "file-1000", "1000 files are kept already");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_kept_with_their_folders_in_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_not_kept_has_its_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(more_files_than_are_kept_are_named, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
