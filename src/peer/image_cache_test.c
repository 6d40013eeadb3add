#include "base/file.h"
#include "peer/image_cache.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct corner {
    char folder[64], cache[96];
};

static void corner_init(struct corner *corner)
{
    snprintf(corner->folder, sizeof(corner->folder), "/tmp/souk-images-XXXXXX");
    assert_non_null(mkdtemp(corner->folder));
    snprintf(corner->cache, sizeof(corner->cache), "%s/images", corner->folder);
}

static void corner_done(struct corner *corner)
{
    struct error error;
    assert_int_equal(folder_remove(corner->folder, &error), 0);
}
#define AUTO_CORNER __attribute__((cleanup(corner_done)))
#define AUTO_HOLD   __attribute__((cleanup(image_hold_release)))

static const char *make_image(const struct corner *corner, size_t bytes)
{
    static char folder[96];
    char path[128];
    struct error error = {0};
    snprintf(folder, sizeof(folder), "%s/new", corner->folder);
    ASSERT_OK(folder_make(folder, 0755, &error));
    snprintf(path, sizeof(path), "%s/root", folder);
    ASSERT_OK(folder_make(path, 0755, &error));
    snprintf(path, sizeof(path), "%s/root/data", folder);
    char *data = calloc(1, bytes);
    assert_non_null(data);
    memset(data, 'x', bytes);
    const struct text text = {data, bytes}, start = TEXT("{}");
    ASSERT_OK(file_replace(path, &text, 1, 0644, &error));
    free(data);
    snprintf(path, sizeof(path), "%s/start.json", folder);
    ASSERT_OK(file_replace(path, &start, 1, 0644, &error));
    return folder;
}

enum { ROOM = 300 << 10 };

static int keep(const struct corner *corner, uint8_t number, size_t bytes, struct image_hold *hold,
                struct error *error)
{
    const uint8_t hash[IMAGE_HASH_SIZE] = {number};
    return image_cache_keep(corner->cache, hash, make_image(corner, bytes), ROOM, hold, error);
}

static bool is_there(const struct corner *corner, uint8_t number)
{
    const uint8_t hash[IMAGE_HASH_SIZE] = {number};
    struct error error = {0};
    AUTO_HOLD struct image_hold hold = {.fd = -1};
    bool is_found = false;
    ASSERT_OK(image_cache_take(corner->cache, hash, &hold, &is_found, &error));
    return is_found;
}

TEST(what_a_power_cut_left_of_a_removed_image_goes)
{
    AUTO_CORNER struct corner corner;
    struct error error = {0};
    char left[160];
    corner_init(&corner);
    ASSERT_OK(folder_make(corner.cache, 0700, &error));
    snprintf(left, sizeof(left), "%s/.gone-left", corner.cache);
    assert_int_equal(rename(make_image(&corner, 1000), left), 0);
    AUTO_HOLD struct image_hold hold = {.fd = -1};
    ASSERT_OK(keep(&corner, 1, 1000, &hold, &error));
    assert_int_equal(access(left, F_OK), -1);
}

TEST(an_image_is_found_again_and_shared)
{
    AUTO_CORNER struct corner corner;
    struct error error = {0};
    corner_init(&corner);
    assert_false(is_there(&corner, 1));
    AUTO_HOLD struct image_hold first = {.fd = -1};
    AUTO_HOLD struct image_hold second = {.fd = -1};
    ASSERT_OK(keep(&corner, 1, 1000, &first, &error));
    assert_true(is_there(&corner, 1));
    assert_false(is_there(&corner, 2));
    ASSERT_OK(keep(&corner, 1, 1000, &second, &error)); /* another lease unpacked it as well */
    assert_string_equal(first.folder, second.folder);
}

TEST(what_was_used_longest_ago_makes_way)
{
    AUTO_CORNER struct corner corner;
    struct error error = {0};
    corner_init(&corner);
    for (uint8_t i = 1; i <= 2; i++) {
        AUTO_HOLD struct image_hold hold = {.fd = -1};
        ASSERT_OK(keep(&corner, i, 100 << 10, &hold, &error));
        /* Times of the file system are coarse. */
        const struct timespec times[] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        assert_int_equal(futimens(hold.fd, times), 0);
    }
    AUTO_HOLD struct image_hold hold = {.fd = -1};
    ASSERT_OK(keep(&corner, 3, 150 << 10, &hold, &error));
    assert_false(is_there(&corner, 1));
    assert_true(is_there(&corner, 2));
    assert_true(is_there(&corner, 3));
}

TEST(what_is_in_use_stays)
{
    AUTO_CORNER struct corner corner;
    struct error error = {0};
    corner_init(&corner);
    AUTO_HOLD struct image_hold used = {.fd = -1};
    AUTO_HOLD struct image_hold hold = {.fd = -1};
    ASSERT_OK(keep(&corner, 1, 200 << 10, &used, &error));
    ASSERT_FAILS(keep(&corner, 2, 200 << 10, &hold, &error), ERROR_EXHAUSTED);
    assert_true(is_there(&corner, 1));
    image_hold_release(&used);
    ASSERT_OK(keep(&corner, 2, 200 << 10, &hold, &error));
    assert_false(is_there(&corner, 1));
    ASSERT_FAILS(keep(&corner, 3, 400 << 10, &hold, &error), ERROR_EXHAUSTED);
}

TEST(a_folder_that_is_no_image_is_refused)
{
    AUTO_CORNER struct corner corner;
    struct error error = {0};
    char path[128];
    corner_init(&corner);
    const char *folder = make_image(&corner, 10);
    snprintf(path, sizeof(path), "%s/start.json", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/shadow", path), 0);
    const uint8_t hash[IMAGE_HASH_SIZE] = {1};
    AUTO_HOLD struct image_hold hold = {.fd = -1};
    ASSERT_FAILS(image_cache_keep(corner.cache, hash, folder, ROOM, &hold, &error), ERROR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_power_cut_left_of_a_removed_image_goes),
        cmocka_unit_test(an_image_is_found_again_and_shared),
        cmocka_unit_test(what_was_used_longest_ago_makes_way),
        cmocka_unit_test(what_is_in_use_stays),
        cmocka_unit_test(a_folder_that_is_no_image_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
