#include "base/file.h"
#include "peer/image_cache.h"
#include "peer/wheel_cache.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_BYTES_MAX = 64 << 10 };

struct corner {
    char folder[64], cache[96], fetched[96], given[96];
};

static void corner_init(struct corner *corner)
{
    struct error error = {0};
    snprintf(corner->folder, sizeof(corner->folder), "/tmp/souk-wheels-XXXXXX");
    assert_non_null(mkdtemp(corner->folder));
    snprintf(corner->cache, sizeof(corner->cache), "%s/images", corner->folder);
    snprintf(corner->fetched, sizeof(corner->fetched), "%s/fetched", corner->folder);
    snprintf(corner->given, sizeof(corner->given), "%s/given", corner->folder);
    ASSERT_OK(folder_make(corner->fetched, 0755, &error));
}

static void corner_done(struct corner *corner)
{
    struct error error;
    assert_int_equal(folder_remove(corner->folder, &error), 0);
}
#define AUTO_CORNER __attribute__((cleanup(corner_done)))

/* FOLDER/SHA256/root/NAME, of a hash whose bytes are all `byte`. */
static void wheel_path(const char *folder, uint8_t byte, const char *name, char out[PATH_MAX])
{
    uint8_t hash[PACKAGE_HASH_SIZE];
    char hex[2 * PACKAGE_HASH_SIZE + 1];
    memset(hash, byte, sizeof(hash));
    text_hex_encode(hash, sizeof(hash), hex);
    snprintf(out, PATH_MAX, "%s/%s%s%s", folder, hex, name ? "/root/" : "", name ? name : "");
}

static void fetch(const struct corner *corner, uint8_t byte, const char *name, size_t bytes)
{
    struct error error = {0};
    char path[PATH_MAX], root[PATH_MAX + 8];
    char *data = calloc(1, bytes + 1);
    assert_non_null(data);
    memset(data, byte, bytes);
    const struct text text = {data, bytes};
    wheel_path(corner->fetched, byte, NULL, path);
    ASSERT_OK(folder_make(path, 0755, &error));
    snprintf(root, sizeof(root), "%s/root", path);
    ASSERT_OK(folder_make(root, 0755, &error));
    wheel_path(corner->fetched, byte, name, path);
    ASSERT_OK(file_replace(path, &text, 1, 0644, &error));
    free(data);
}

/* Asks for the wheels of these hashes. */
static size_t give(const struct corner *corner, const uint8_t *bytes, size_t count)
{
    struct error error = {0};
    struct locked_package packages[4] = {0};
    const struct package_lock lock = {{packages, count}};
    size_t found = 0;
    assert_true(count <= 4);
    for (size_t i = 0; i < count; i++)
        memset(packages[i].sha256, bytes[i], sizeof(packages[i].sha256));
    ASSERT_OK(folder_remove(corner->given, &error));
    ASSERT_OK(wheel_cache_give(corner->cache, &lock, corner->given, &found, &error));
    return found;
}

TEST(a_wheel_that_was_fetched_once_is_given_to_every_list_that_names_it)
{
    struct corner corner AUTO_CORNER;
    char path[PATH_MAX];
    struct stat status;
    corner_init(&corner);
    assert_int_equal(give(&corner, (uint8_t[]){1, 2}, 2), 0);
    fetch(&corner, 1, "one-1.0-py3-none-any.whl", 100);
    fetch(&corner, 2, "two-1.0-py3-none-any.whl", 200);
    wheel_cache_keep(corner.cache, corner.fetched, KEPT_BYTES_MAX);
    for (int i = 0; i < 2; i++) { /* it stays */
        assert_int_equal(give(&corner, (uint8_t[]){2, 3}, 2), 1);
        wheel_path(corner.given, 2, "two-1.0-py3-none-any.whl", path);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size, 200);
    }
    wheel_path(corner.given, 1, NULL, path);
    assert_int_not_equal(access(path, F_OK), 0); /* nobody asked for it */
}

TEST(what_is_no_single_wheel_is_not_kept)
{
    struct corner corner AUTO_CORNER;
    struct error error = {0};
    char path[PATH_MAX];
    corner_init(&corner);
    fetch(&corner, 1, "one.tar.gz", 100);
    fetch(&corner, 2, "two.whl", 100);
    fetch(&corner, 2, "three.whl", 100);
    fetch(&corner, 3, "four", 100);
    wheel_path(corner.fetched, 3, "four.whl", path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    snprintf(path, sizeof(path), "%s/not-a-hash", corner.fetched);
    ASSERT_OK(folder_make(path, 0755, &error));
    wheel_cache_keep(corner.cache, corner.fetched, KEPT_BYTES_MAX);
    assert_int_equal(give(&corner, (uint8_t[]){1, 2, 3}, 3), 0);
}

TEST(the_least_used_wheel_goes_first_when_there_is_no_room)
{
    struct corner corner AUTO_CORNER;
    corner_init(&corner);
    fetch(&corner, 1, "one.whl", 20 << 10);
    wheel_cache_keep(corner.cache, corner.fetched, KEPT_BYTES_MAX);
    fetch(&corner, 2, "two.whl", 20 << 10);
    wheel_cache_keep(corner.cache, corner.fetched, KEPT_BYTES_MAX);
    assert_int_equal(give(&corner, (uint8_t[]){1}, 1), 1);
    fetch(&corner, 3, "three.whl", 20 << 10);
    fetch(&corner, 4, "too-large.whl", 80 << 10);
    wheel_cache_keep(corner.cache, corner.fetched, KEPT_BYTES_MAX);
    assert_int_equal(give(&corner, (uint8_t[]){2, 4}, 2), 0);
    assert_int_equal(give(&corner, (uint8_t[]){1, 3}, 2), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wheel_that_was_fetched_once_is_given_to_every_list_that_names_it),
        cmocka_unit_test(what_is_no_single_wheel_is_not_kept),
        cmocka_unit_test(the_least_used_wheel_goes_first_when_there_is_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
