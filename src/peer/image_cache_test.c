#include "base/file.h"
#include "peer/image_cache.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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
    return image_cache_keep(corner->cache, hash, IMAGE_KIND_IMAGE, make_image(corner, bytes), ROOM,
                            hold, error);
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

static void set_used(const struct image_hold *hold, int64_t ago_s)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct timespec times[] = {{.tv_sec = now.tv_sec - ago_s},
                                     {.tv_sec = now.tv_sec - ago_s}};
    assert_int_equal(futimens(hold->fd, times), 0);
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
        set_used(&hold, 1000 - i);
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
    ASSERT_FAILS(
        image_cache_keep(corner.cache, hash, IMAGE_KIND_IMAGE, folder, ROOM, &hold, &error),
        ERROR_CORRUPT);
}

TEST(packages_are_a_folder_alone)
{
    AUTO_CORNER struct corner corner;
    struct error error = {0};
    char path[128];
    corner_init(&corner);
    const char *folder = make_image(&corner, 10);
    snprintf(path, sizeof(path), "%s/start.json", folder);
    assert_int_equal(unlink(path), 0);
    const uint8_t hash[IMAGE_HASH_SIZE] = {1};
    AUTO_HOLD struct image_hold hold = {.fd = -1};
    ASSERT_OK(
        image_cache_keep(corner.cache, hash, IMAGE_KIND_PACKAGES, folder, ROOM, &hold, &error));
    assert_true(is_there(&corner, 1));
}

TEST(what_nobody_has_used_for_a_month_goes_unless_it_is_in_use)
{
    AUTO_CORNER struct corner corner;
    struct error error = {0};
    corner_init(&corner);
    AUTO_HOLD struct image_hold first = {.fd = -1};
    AUTO_HOLD struct image_hold second = {.fd = -1};
    ASSERT_OK(keep(&corner, 1, 1000, &first, &error));
    ASSERT_OK(keep(&corner, 2, 1000, &second, &error));
    set_used(&first, IMAGE_UNUSED_MAX_S + 60);
    set_used(&second, IMAGE_UNUSED_MAX_S + 60);
    image_hold_release(&second);
    assert_false(is_there(&corner, 3)); /* whoever looks clears up */
    assert_int_equal(access(first.folder, F_OK), 0);
    assert_int_equal(access(second.folder, F_OK), -1);
}

TEST(one_makes_what_is_not_there_and_all_others_wait)
{
    AUTO_CORNER struct corner corner;
    struct error error = {0};
    const uint8_t hash[IMAGE_HASH_SIZE] = {1}, other[IMAGE_HASH_SIZE] = {2};
    AUTO_FD int first = -1;
    AUTO_FD int second = -1;
    AUTO_FD int third = -1;
    corner_init(&corner);
    ASSERT_OK(image_cache_reserve(corner.cache, hash, &first, &error));
    assert_true(first >= 0);
    ASSERT_OK(image_cache_reserve(corner.cache, hash, &second, &error));
    assert_int_equal(second, -1);
    ASSERT_OK(image_cache_reserve(corner.cache, other, &third, &error));
    assert_true(third >= 0);
    close(TAKE_FD(first)); /* also by the end of its process */
    ASSERT_OK(image_cache_reserve(corner.cache, hash, &second, &error));
    assert_true(second >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_power_cut_left_of_a_removed_image_goes),
        cmocka_unit_test(an_image_is_found_again_and_shared),
        cmocka_unit_test(what_was_used_longest_ago_makes_way),
        cmocka_unit_test(what_is_in_use_stays),
        cmocka_unit_test(a_folder_that_is_no_image_is_refused),
        cmocka_unit_test(packages_are_a_folder_alone),
        cmocka_unit_test(what_nobody_has_used_for_a_month_goes_unless_it_is_in_use),
        cmocka_unit_test(one_makes_what_is_not_there_and_all_others_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
