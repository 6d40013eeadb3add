#include "base/file.h"
#include "base/scope.h"
#include "testing/testing.h"
#include "worker/checkpoint_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scene {
    char root[64], folder[128], file[128];
};

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    snprintf(scene->root, sizeof(scene->root), "/tmp/souk-checkpoint-XXXXXX");
    if (!scene || !mkdtemp(scene->root))
        return -1;
    snprintf(scene->folder, sizeof(scene->folder), "%s/folder", scene->root);
    snprintf(scene->file, sizeof(scene->file), "%s/file", scene->root);
    *state = scene;
    return mkdir(scene->folder, 0755);
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    struct error error;
    const int result = checkpoint_clear(scene->root, &error);
    rmdir(scene->root);
    free(scene);
    return result;
}

static void put(const struct scene *scene, const char *name, const char *words)
{
    char path[PATH_MAX];
    const struct text text = text_of(words);
    struct error error;
    snprintf(path, sizeof(path), "%s/%s", scene->folder, name);
    ASSERT_OK(file_replace(path, &text, 1, 0644, &error));
}

static uint64_t signature_of(const struct scene *scene)
{
    struct checkpoint_scan scan;
    struct error error;
    ASSERT_OK(checkpoint_scan(scene->folder, false, &scan, &error));
    return scan.signature;
}

TEST(what_is_not_finished_is_no_part_of_it)
{
    const struct scene *scene = *state;
    assert_int_equal(signature_of(scene), 0);
    put(scene, "model.tmp", "half");
    put(scene, ".hidden", "half");
    assert_int_equal(signature_of(scene), 0);
    put(scene, "model", "whole");
    const uint64_t first = signature_of(scene);
    assert_int_not_equal(first, 0);
    put(scene, "next.part", "half");
    assert_int_equal(signature_of(scene), first);
    put(scene, "model", "other");
    assert_int_not_equal(signature_of(scene), first);
}

/* Some file systems grant no leases at all: there nobody can tell who writes. */
static bool has_leases(const char *path)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
}

TEST(a_file_that_is_open_for_writing_is_named)
{
    const struct scene *scene = *state;
    struct checkpoint_scan scan;
    struct error error;
    char path[PATH_MAX];
    put(scene, "model", "whole");
    snprintf(path, sizeof(path), "%s/model", scene->folder);
    const bool is_told = has_leases(path);
    AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ASSERT_OK(checkpoint_scan(scene->folder, true, &scan, &error));
    assert_string_equal(scan.open_path, is_told ? "model" : "");
    close(TAKE_FD(fd));
    ASSERT_OK(checkpoint_scan(scene->folder, true, &scan, &error));
    assert_string_equal(scan.open_path, "");
}

TEST(what_is_packed_comes_back_alone)
{
    const struct scene *scene = *state;
    char path[PATH_MAX];
    struct buffer found AUTO_BUFFER;
    buffer_init(&found, 64);
    struct error error;
    put(scene, "model", "whole");
    put(scene, "model.tmp", "half");
    const uint64_t signature = signature_of(scene);
    ASSERT_FAILS(checkpoint_pack(scene->folder, scene->file, 1000, signature + 2, &error),
                 ERROR_CONFLICT);
    ASSERT_FAILS(checkpoint_pack(scene->folder, scene->file, 3, signature, &error),
                 ERROR_EXHAUSTED);
    assert_int_not_equal(access(scene->file, F_OK), 0);
    ASSERT_OK(checkpoint_pack(scene->folder, scene->file, 1000, signature, &error));
    put(scene, "model", "later");
    put(scene, "second", "later");
    ASSERT_OK(checkpoint_unpack(scene->file, scene->folder, 1000, &error));
    snprintf(path, sizeof(path), "%s/model", scene->folder);
    ASSERT_OK(file_read(path, &found, &error));
    assert_true(text_is(buffer_text(&found), "whole"));
    snprintf(path, sizeof(path), "%s/second", scene->folder);
    assert_int_not_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/model.tmp", scene->folder);
    assert_int_not_equal(access(path, F_OK), 0);
    ASSERT_OK(checkpoint_clear(scene->folder, &error));
    assert_int_equal(signature_of(scene), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_finished_is_no_part_of_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_open_for_writing_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_packed_comes_back_alone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
