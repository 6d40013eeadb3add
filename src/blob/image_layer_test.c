/* covers image.c: whole images are unpacked by tests/system/test_image.py */
#include "base/buffer.h"
#include "base/scope.h"
#include "blob/blob_testing.h"
#include "blob/image_layer.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A root of its own, and a layer that is being written (POSIX.1-1988, ustar). */
struct corner {
    char folder[64];
    int root_fd;
    int layer_fd;
    struct image_room room;
    struct error error;
};

static void corner_init(struct corner *corner)
{
    *corner = (struct corner){.room = {1 << 20, 100}};
    snprintf(corner->folder, sizeof(corner->folder), "/tmp/souk-layer-XXXXXX");
    assert_non_null(mkdtemp(corner->folder));
    corner->root_fd = open(corner->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    corner->layer_fd = memfd_create("layer", MFD_CLOEXEC);
    assert_true(corner->root_fd >= 0 && corner->layer_fd >= 0);
}

static void corner_done(struct corner *corner)
{
    close(corner->root_fd);
    close(corner->layer_fd);
    place_remove_folder(corner->folder);
}
#define AUTO_CORNER __attribute__((cleanup(corner_done)))

static void add(struct corner *corner, char kind, unsigned mode, const char *name, const char *rest)
{
    struct {
        char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], kind, link[100];
        char magic[8], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
    } header = {.uid = "0000000", .gid = "0000000", .kind = kind, .magic = "ustar\00000"};
    char block[512] = "";
    const size_t size = kind == '0' ? strlen(rest) : 0;
    snprintf(header.name, sizeof(header.name), "%s", name);
    snprintf(header.mode, sizeof(header.mode), "%07o", mode);
    snprintf(header.size, sizeof(header.size), "%011o", (unsigned)size & 0777);
    snprintf(header.mtime, sizeof(header.mtime), "%011o", 7u);
    if (kind == '1' || kind == '2')
        snprintf(header.link, sizeof(header.link), "%s", rest);
    memset(header.sum, ' ', sizeof(header.sum));
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof(header); i++)
        sum += ((const unsigned char *)&header)[i];
    snprintf(header.sum, sizeof(header.sum), "%06o", sum);
    assert_int_equal(write(corner->layer_fd, &header, sizeof(header)), 512);
    if (size > 0) {
        memcpy(block, rest, size);
        assert_int_equal(write(corner->layer_fd, block, sizeof(block)), 512);
    }
}

static int apply(struct corner *corner)
{
    static const char end[1024];
    assert_int_equal(write(corner->layer_fd, end, sizeof(end)), 1024);
    const int result =
        image_layer_apply(corner->layer_fd, corner->root_fd, &corner->room, &corner->error);
    assert_int_equal(ftruncate(corner->layer_fd, 0), 0);
    assert_int_equal(lseek(corner->layer_fd, 0, SEEK_SET), 0);
    return result;
}

static void apply_ok(struct corner *corner)
{
    if (apply(corner) < 0)
        fail_msg("%s", corner->error.message);
}

static void apply_fails(struct corner *corner, enum error_code code)
{
    assert_int_equal(apply(corner), -1);
    assert_int_equal(corner->error.code, code);
}

static bool has(const struct corner *corner, const char *name)
{
    struct stat status;
    return fstatat(corner->root_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static unsigned mode_of(const struct corner *corner, const char *name)
{
    struct stat status;
    assert_int_equal(fstatat(corner->root_fd, name, &status, AT_SYMLINK_NOFOLLOW), 0);
    return status.st_mode & 07777;
}

TEST(files_lose_what_makes_them_mighty)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    add(&corner, '0', 06755, "./bin/su", "x");
    add(&corner, '0', 0000, "closed", "x");
    add(&corner, '5', 01555, "folder/", "");
    add(&corner, '3', 0666, "mem", "");
    add(&corner, '4', 0666, "disk", "");
    add(&corner, '6', 0666, "pipe", "");
    apply_ok(&corner);
    assert_int_equal(mode_of(&corner, "bin/su"), 0755);
    assert_int_equal(mode_of(&corner, "closed"), 0600);
    assert_int_equal(mode_of(&corner, "folder"), 0755);
    assert_false(has(&corner, "mem") || has(&corner, "disk") || has(&corner, "pipe"));
}

TEST(names_that_lead_outside_are_refused)
{
    static const char *const names[] = {"../x", "a/../../x", "/../x", "a/.."};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        AUTO_CORNER struct corner corner;
        corner_init(&corner);
        add(&corner, '0', 0644, names[i], "x");
        apply_fails(&corner, ERROR_CORRUPT);
    }
}

TEST(links_are_taken_below_the_root)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    add(&corner, '5', 0755, "real", "");
    add(&corner, '2', 0777, "there", "/real");
    add(&corner, '2', 0777, "up", "../../../../real");
    add(&corner, '0', 0644, "there/one", "x");
    add(&corner, '0', 0644, "up/two", "x");
    apply_ok(&corner);
    assert_true(has(&corner, "real/one") && has(&corner, "real/two"));
    assert_false(access("/real", F_OK) == 0);
    add(&corner, '1', 0644, "stolen", "../../etc/passwd");
    apply_fails(&corner, ERROR_CORRUPT);
    add(&corner, '1', 0644, "stolen", "/etc/passwd");
    apply_fails(&corner, ERROR_CORRUPT);
    add(&corner, '2', 0777, "out", "/etc");
    add(&corner, '0', 0644, "out/x", "x");
    apply_fails(&corner, ERROR_CORRUPT);
}

TEST(whiteouts_are_of_the_layers_below)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    add(&corner, '0', 0644, "a/old", "x");
    add(&corner, '0', 0644, "a/deep/older", "x");
    add(&corner, '0', 0644, "b/gone", "x");
    add(&corner, '0', 0644, "b/kept", "x");
    apply_ok(&corner);
    add(&corner, '0', 0644, "a/new", "x");
    add(&corner, '0', 0644, "a/.wh..wh..opq", "");
    add(&corner, '0', 0644, "b/.wh.gone", "");
    add(&corner, '0', 0644, "b/.wh..wh.plnk", "");
    add(&corner, '0', 0644, "none/.wh.x", "");
    apply_ok(&corner);
    assert_true(has(&corner, "a/new") && has(&corner, "b/kept"));
    assert_false(has(&corner, "a/old") || has(&corner, "a/deep") || has(&corner, "b/gone"));
    add(&corner, '0', 0644, "b/.wh...", "");
    apply_fails(&corner, ERROR_CORRUPT);
    assert_true(has(&corner, "b/kept"));
}

TEST(room_is_bounded)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    corner.room = (struct image_room){3, 100};
    add(&corner, '0', 0644, "a", "1234");
    apply_fails(&corner, ERROR_EXHAUSTED);
    corner.room = (struct image_room){100, 2};
    add(&corner, '0', 0644, "x/y/z", "1");
    apply_fails(&corner, ERROR_EXHAUSTED);
}

TEST(what_is_no_layer_is_refused)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    assert_int_equal(write(corner.layer_fd, "this is no tar file at all", 26), 26);
    apply_fails(&corner, ERROR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_lose_what_makes_them_mighty),
        cmocka_unit_test(names_that_lead_outside_are_refused),
        cmocka_unit_test(links_are_taken_below_the_root),
        cmocka_unit_test(whiteouts_are_of_the_layers_below),
        cmocka_unit_test(room_is_bounded),
        cmocka_unit_test(what_is_no_layer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
