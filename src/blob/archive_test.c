/* covers archive_library.c, archive_pack.c, archive_unpack.c */
#include "base/buffer.h"
#include "base/scope.h"
#include "blob/archive.h"
#include "blob/blob_testing.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct archive_limits roomy = {1 << 20, 100};

/* Tests run in a folder of their own, with in/ and out/ in it, and stand in out/. */
struct corner {
    char folder[64];
    int home_fd;
};

static void corner_init(struct corner *corner)
{
    snprintf(corner->folder, sizeof(corner->folder), "/tmp/souk-archive-XXXXXX");
    assert_non_null(mkdtemp(corner->folder));
    corner->home_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(corner->home_fd >= 0);
    assert_int_equal(chdir(corner->folder), 0);
    assert_int_equal(mkdir("in", 0755), 0);
    assert_int_equal(mkdir("out", 0755), 0);
    assert_int_equal(chdir("out"), 0);
}

static void corner_done(struct corner *corner)
{
    assert_int_equal(fchdir(corner->home_fd), 0);
    close(corner->home_fd);
    place_remove_folder(corner->folder);
}
#define AUTO_CORNER __attribute__((cleanup(corner_done)))

static void write_file(const char *path, const char *text, mode_t mode)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void assert_file(const char *path, const char *text)
{
    char bytes[64] = "";
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, sizeof(bytes) - 1), strlen(text));
    assert_string_equal(bytes, text);
}

static int memory_file(void)
{
    const int fd = memfd_create("archive", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void fill_folder(void)
{
    write_file("../in/b.txt", "second", 0644);
    write_file("../in/run.sh", "#!/bin/sh\n", 0755);
    assert_int_equal(mkdir("../in/a", 0755), 0);
    assert_int_equal(mkdir("../in/empty", 0755), 0);
    assert_int_equal(mkdir("../in/.git", 0755), 0);
    write_file("../in/.git/HEAD", "x", 0644);
    write_file("../in/a/first", "", 0600);
    assert_int_equal(symlink("a/first", "../in/link"), 0);
}

TEST(a_folder_comes_back_as_it_was)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    fill_folder();
    struct error error;
    struct archive_summary packed, unpacked;
    AUTO_FD int fd = memory_file();
    ASSERT_OK(archive_pack("../in/", fd, &roomy, &packed, &error));
    assert_int_equal(packed.files, 6);
    assert_int_equal(packed.bytes, 16);

    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    ASSERT_OK(archive_unpack(fd, &roomy, &unpacked, &error));
    assert_int_equal(unpacked.files, 6);
    assert_int_equal(unpacked.bytes, 16);
    assert_file("b.txt", "second");
    assert_file("a/first", "");
    struct stat before, after;
    assert_int_equal(stat("../in/run.sh", &before), 0);
    assert_int_equal(stat("run.sh", &after), 0);
    assert_true(after.st_mode & S_IXUSR);
    assert_int_equal(before.st_mtime, after.st_mtime);
    assert_int_equal(lstat("link", &after), 0);
    assert_true(S_ISLNK(after.st_mode));
    assert_int_equal(stat("empty", &after), 0);
    assert_int_not_equal(stat(".git", &after), 0);
}

TEST(names_are_bytes_and_come_back_as_they_were)
{
    static const char *const names[] = {"with space", "new\nline", "quote'\"$(x)",
                                        "\xc3\xbc \xe2\x98\x83", "latin \xe9"};
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    assert_int_equal(chdir("../in"), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        write_file(names[i], names[i], 0644);
    assert_int_equal(symlink(names[3], "link"), 0);
    assert_int_equal(chdir("../out"), 0);
    struct error error;
    struct archive_summary packed, unpacked;
    AUTO_FD int fd = memory_file();
    ASSERT_OK(archive_pack("../in", fd, &roomy, &packed, &error));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    ASSERT_OK(archive_unpack(fd, &roomy, &unpacked, &error));
    assert_int_equal(unpacked.files, sizeof(names) / sizeof(*names) + 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_file(names[i], names[i]);
    assert_file("link", names[3]);
}

TEST(the_same_folder_gives_the_same_bytes)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    fill_folder();
    struct error error;
    struct archive_summary summary;
    AUTO_FD int left = memory_file();
    AUTO_FD int right = memory_file();
    ASSERT_OK(archive_pack("../in", left, &roomy, &summary, &error));
    ASSERT_OK(archive_pack("../in", right, &roomy, &summary, &error));
    char left_bytes[8192], right_bytes[8192];
    const ssize_t size = pread(left, left_bytes, sizeof(left_bytes), 0);
    assert_true(size > 0);
    assert_int_equal(pread(right, right_bytes, sizeof(right_bytes), 0), size);
    assert_memory_equal(left_bytes, right_bytes, (size_t)size);
}

TEST(what_is_no_folder_or_too_much_is_not_packed)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    struct error error;
    struct archive_summary summary;
    AUTO_FD int fd = memory_file();
    ASSERT_FAILS(archive_pack("../absent", fd, &roomy, &summary, &error), ERROR_NOT_FOUND);
    write_file("../in/b.txt", "second", 0644);
    ASSERT_FAILS(archive_pack("../in/b.txt", fd, &roomy, &summary, &error), ERROR_INVALID);
    const struct archive_limits few_bytes = {5, 10}, few_files = {100, 0};
    ASSERT_FAILS(archive_pack("../in", fd, &few_bytes, &summary, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(archive_pack("../in", fd, &few_files, &summary, &error), ERROR_EXHAUSTED);
    assert_int_equal(mkfifo("../in/pipe", 0600), 0);
    ASSERT_FAILS(archive_pack("../in", fd, &roomy, &summary, &error), ERROR_INVALID);
    assert_string_equal(error.message, "\"pipe\": it is neither a file, a folder nor a link");
}

/* ---- Archives that nobody should have made ----------------------------------------------------
 */

/* One member of a tar file, by hand: packers refuse to make these. */
static void append_member(int fd, const char *name, char kind, const char *target,
                          unsigned long long size, const char *data)
{
    char block[512] = {0};
    snprintf(block, 100, "%s", name);
    memcpy(block + 100, "0000644", 8);
    memcpy(block + 108, "0000000", 8);
    memcpy(block + 116, "0000000", 8);
    snprintf(block + 124, 12, "%011llo", size);
    memcpy(block + 136, "00000000000", 12);
    memset(block + 148, ' ', 8);
    block[156] = kind;
    snprintf(block + 157, 100, "%s", target);
    memcpy(block + 257, "ustar", 6);
    memcpy(block + 263, "00", 2);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof(block); i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
    if (data) {
        char padded[512] = {0};
        snprintf(padded, sizeof(padded), "%s", data);
        assert_int_equal(write(fd, padded, sizeof(padded)), sizeof(padded));
    }
}

static void append_end(int fd)
{
    const char zeroes[1024] = {0};
    assert_int_equal(write(fd, zeroes, sizeof(zeroes)), sizeof(zeroes));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

static void assert_refused(int fd, enum error_code code)
{
    struct error error;
    struct archive_summary summary;
    append_end(fd);
    ASSERT_FAILS(archive_unpack(fd, &roomy, &summary, &error), code);
    struct stat status;
    assert_int_not_equal(lstat("../escaped", &status), 0);
    assert_int_not_equal(lstat("/tmp/souk-archive-escaped", &status), 0);
}

TEST(nothing_leaves_the_folder)
{
    static const struct {
        const char *name;
        char kind;
        const char *target;
    } members[] = {
        {"../escaped", '0', ""},
        {"a/../../escaped", '0', ""},
        {"/tmp/souk-archive-escaped", '0', ""},
        {"hard", '1', "../in/b.txt"},
        {"device", '3', ""},
        {"block", '4', ""},
        {"pipe", '6', ""},
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        AUTO_CORNER struct corner corner;
        corner_init(&corner);
        AUTO_FD int fd = memory_file();
        append_member(fd, members[i].name, members[i].kind, members[i].target, 0, NULL);
        assert_refused(fd, ERROR_CORRUPT);
    }
}

TEST(nothing_is_written_through_a_link)
{
    static const char *const targets[] = {"..", "/tmp", "../in"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
        AUTO_CORNER struct corner corner;
        corner_init(&corner);
        AUTO_FD int fd = memory_file();
        append_member(fd, "door", '2', targets[i], 0, NULL);
        append_member(fd, "door/escaped", '0', "", 1, "x");
        append_end(fd);
        struct error error;
        struct archive_summary summary;
        /* The link goes, the folder comes: what matters is where the file lies. */
        if (archive_unpack(fd, &roomy, &summary, &error) == 0) {
            struct stat status;
            assert_int_equal(lstat("door", &status), 0);
            assert_true(S_ISDIR(status.st_mode));
        }
        assert_int_not_equal(access("../escaped", F_OK), 0);
        assert_int_not_equal(access("../in/escaped", F_OK), 0);
        assert_int_not_equal(access("/tmp/escaped", F_OK), 0);
    }
}

TEST(limits_hold_and_broken_archives_are_refused)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    AUTO_FD int claims = memory_file();
    append_member(claims, "huge", '0', "", 8589934591ULL, NULL);
    assert_refused(claims, ERROR_EXHAUSTED);

    struct error error;
    struct archive_summary summary;
    AUTO_FD int many = memory_file();
    append_member(many, "one", '0', "", 1, "x");
    append_member(many, "two", '0', "", 1, "y");
    append_end(many);
    const struct archive_limits one_file = {100, 1}, one_byte = {1, 100};
    ASSERT_FAILS(archive_unpack(many, &one_file, &summary, &error), ERROR_EXHAUSTED);
    assert_int_equal(lseek(many, 0, SEEK_SET), 0);
    ASSERT_FAILS(archive_unpack(many, &one_byte, &summary, &error), ERROR_EXHAUSTED);

    AUTO_FD int noise = memory_file();
    assert_int_equal(write(noise, "this is no archive", 18), 18);
    assert_int_equal(lseek(noise, 0, SEEK_SET), 0);
    ASSERT_FAILS(archive_unpack(noise, &roomy, &summary, &error), ERROR_CORRUPT);

    AUTO_FD int cut = memory_file();
    append_member(cut, "cut", '0', "", 4096, "x");
    assert_int_equal(lseek(cut, 0, SEEK_SET), 0);
    ASSERT_FAILS(archive_unpack(cut, &roomy, &summary, &error), ERROR_CORRUPT);
}

TEST(links_are_refused_where_only_files_and_folders_are_read)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    AUTO_FD int fd = memory_file();
    append_member(fd, "link", '2', "inside", 0, NULL);
    append_end(fd);
    struct error error;
    struct archive_summary summary;
    struct archive_limits no_links = roomy;
    no_links.refuses_links = true;
    ASSERT_FAILS(archive_unpack(fd, &no_links, &summary, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "link"));
    assert_int_not_equal(access("link", F_OK), 0);
}

/* ---- Zip --------------------------------------------------------------------------------------
 */

static uint32_t crc_of(const char *text)
{
    uint32_t crc = UINT32_MAX;
    for (; *text; text++) {
        crc ^= (uint8_t)*text;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
    }
    return ~crc;
}

/* What a member's local and central header both have: version to method, times 0, sizes, name. */
static void append_zip_common(struct buffer *zip, const char *name, const char *text)
{
    const uint16_t name_size = (uint16_t)strlen(name);
    const uint32_t crc = crc_of(text), size = (uint32_t)strlen(text);
    static const uint8_t start[10] = {20};
    buffer_append(zip, start, sizeof(start)); /* version, flags, method 0: stored, time, date */
    buffer_append(zip, &crc, 4);
    buffer_append(zip, &size, 4);
    buffer_append(zip, &size, 4);
    buffer_append(zip, &name_size, 2);
    buffer_append(zip, "\0\0", 2); /* no extra field */
}

static int zip_of(const char *name, const char *text)
{
    struct buffer zip AUTO_BUFFER;
    static const uint8_t zeroes[14];
    buffer_init(&zip, 4096);
    buffer_append(&zip, "PK\3\4", 4);
    append_zip_common(&zip, name, text);
    buffer_append_string(&zip, name);
    buffer_append_string(&zip, text);
    const uint32_t central = (uint32_t)zip.size;
    buffer_append(&zip, "PK\1\2\24\0", 6);
    append_zip_common(&zip, name, text);
    buffer_append(&zip, zeroes, 14); /* comment, disk, attributes, offset 0 */
    buffer_append_string(&zip, name);
    const uint32_t central_size = (uint32_t)zip.size - central;
    buffer_append(&zip, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    buffer_append(&zip, &central_size, 4);
    buffer_append(&zip, &central, 4);
    buffer_append(&zip, zeroes, 2);
    const int fd = memory_file();
    assert_int_equal(write(fd, zip.data, zip.size), zip.size);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

TEST(a_zip_file_is_unpacked_where_that_is_asked_for)
{
    AUTO_CORNER struct corner corner;
    corner_init(&corner);
    AUTO_FD int fd = zip_of("inner/a.txt", "hello");
    AUTO_FD int outside = zip_of("../escaped", "hello");
    struct error error = {0};
    struct archive_summary summary;
    struct archive_limits with_zip = roomy;
    with_zip.takes_zip = true;
    ASSERT_FAILS(archive_unpack(fd, &roomy, &summary, &error), ERROR_CORRUPT);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    ASSERT_OK(archive_unpack(fd, &with_zip, &summary, &error));
    assert_file("inner/a.txt", "hello");
    assert_int_equal(summary.bytes, 5);
    ASSERT_FAILS(archive_unpack(outside, &with_zip, &summary, &error), ERROR_CORRUPT);
    assert_int_not_equal(access("../escaped", F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_comes_back_as_it_was),
        cmocka_unit_test(names_are_bytes_and_come_back_as_they_were),
        cmocka_unit_test(the_same_folder_gives_the_same_bytes),
        cmocka_unit_test(what_is_no_folder_or_too_much_is_not_packed),
        cmocka_unit_test(nothing_leaves_the_folder),
        cmocka_unit_test(nothing_is_written_through_a_link),
        cmocka_unit_test(limits_hold_and_broken_archives_are_refused),
        cmocka_unit_test(links_are_refused_where_only_files_and_folders_are_read),
        cmocka_unit_test(a_zip_file_is_unpacked_where_that_is_asked_for),
    };
    return cmocka_run_group_tests_name("archive", tests, NULL, NULL);
}
