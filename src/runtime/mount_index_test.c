#include "runtime/mount_index.h"
#include "testing/testing.h"
#include "wire/wire.h"

#include <string.h>

static struct mount_file files[] = {
    {TEXT("a"), 10, false}, {TEXT("b/c"), 0, true}, {TEXT("b/d"), 5, false}, {TEXT("e"), 7, false}};
static uint64_t cuts[] = {0, 40, 60};

static int read_back(struct arena *arena, const struct mount_index *index,
                     struct mount_index *out_index, struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, MOUNT_INDEX_SIZE_MAX + 1);
    if (mount_index_encode(index, &bytes, error) < 0)
        return -1;
    return mount_index_decode(arena, arena_copy_text(arena, buffer_text(&bytes)), out_index, error);
}

TEST(an_index_reads_back)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct mount_file none[4] = {0};
    struct mount_index got = {.files = none};
    ASSERT_OK(
        read_back(arena, &(struct mount_index){.files = files, .file_count = 4}, &got, &error));
    assert_int_equal(got.file_count, 4);
    assert_true(text_is(got.files[1].path, "b/c"));
    assert_true(got.files[1].is_program);
    assert_int_equal(mount_index_bytes(&got), 22);
    uint8_t header[MOUNT_HEADER_SIZE];
    uint64_t size;
    mount_header_write(77, header);
    ASSERT_OK(mount_header_read(header, sizeof(header), &size, &error));
    assert_int_equal(size, 77);
    header[0] = 'S';
    ASSERT_FAILS(mount_header_read(header, sizeof(header), &size, &error), ERROR_CORRUPT);
}

TEST(files_are_shared_whole_and_each_is_somebodys)
{
    const struct mount_index index = {.files = files, .file_count = 4};
    const struct mount_part first = mount_index_part(&index, 0, 3);
    const struct mount_part second = mount_index_part(&index, 1, 3);
    const struct mount_part third = mount_index_part(&index, 2, 3);
    assert_int_equal(first.file_count, 1);
    assert_int_equal(first.size_bytes, 10);
    assert_int_equal(second.first_file, 1);
    assert_int_equal(second.file_count, 1);
    assert_int_equal(third.first_file, 2);
    assert_int_equal(third.file_count, 2);
    assert_int_equal(third.offset_bytes, 10);
    assert_int_equal(third.size_bytes, 12);
    const struct mount_part later = mount_index_part(&index, 5, 3);
    assert_int_equal(later.first_file, third.first_file);
    const struct mount_part whole = mount_index_part(&index, 2, 1);
    assert_int_equal(whole.size_bytes, 22);
}

TEST(lines_are_cut_where_the_index_says)
{
    struct mount_file one = {TEXT("rows"), 100, false};
    const struct mount_index index = {
        .is_single = true, .files = &one, .file_count = 1, .cuts = cuts, .cut_count = 3};
    const struct mount_part first = mount_index_part(&index, 0, 2);
    const struct mount_part second = mount_index_part(&index, 1, 2);
    assert_int_equal(first.offset_bytes, 0);
    assert_int_equal(first.size_bytes, 40);
    assert_int_equal(second.offset_bytes, 40);
    assert_int_equal(second.size_bytes, 60);
    assert_int_equal(second.file_count, 1);
    assert_int_equal(mount_index_part(&index, 4, 5).size_bytes, 40);
    assert_int_equal(mount_index_part(&index, 0, 5).size_bytes, 0); /* fewer parts than ranks */
}

TEST(paths_that_lead_elsewhere_are_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct mount_index got = {0};
    static const char *const wrong[] = {"",     "/etc/passwd", "..", "a/../b",
                                        "a//b", "./a",         "a/", "a\nb"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct mount_file file = {text_of(wrong[i]), 1, false};
        ASSERT_FAILS(
            read_back(arena, &(struct mount_index){.files = &file, .file_count = 1}, &got, &error),
            ERROR_CORRUPT);
    }
    struct mount_file twice[] = {{TEXT("a"), 1, false}, {TEXT("a"), 1, false}};
    ASSERT_FAILS(
        read_back(arena, &(struct mount_index){.files = twice, .file_count = 2}, &got, &error),
        ERROR_CORRUPT);
    struct mount_file both[] = {{TEXT("a"), 1, false}, {TEXT("a/b"), 1, false}};
    ASSERT_FAILS(
        read_back(arena, &(struct mount_index){.files = both, .file_count = 2}, &got, &error),
        ERROR_CORRUPT);
    struct mount_file short_one = {TEXT("rows"), 50, false};
    ASSERT_FAILS(read_back(arena,
                           &(struct mount_index){.is_single = true,
                                                 .files = &short_one,
                                                 .file_count = 1,
                                                 .cuts = cuts,
                                                 .cut_count = 3},
                           &got, &error),
                 ERROR_CORRUPT);
}

TEST(folders_are_counted_once_and_have_a_maximum)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct mount_file nested[] = {{TEXT("a-/b"), 0, false},
                                  {TEXT("a/b/c"), 0, false},
                                  {TEXT("a/b/d/e"), 0, false},
                                  {TEXT("a/bc/d"), 0, false},
                                  {TEXT("z"), 0, false}};
    const struct mount_index five = {.files = nested, .file_count = 5};
    assert_int_equal(mount_index_folders(&five, &(struct mount_part){.file_count = 5}), 5);
    assert_int_equal(
        mount_index_folders(&five, &(struct mount_part){.first_file = 2, .file_count = 2}), 4);

    enum { DEEP = 1000, DEPTH = MOUNT_FOLDERS_MAX / DEEP };
    struct mount_file *many = arena_alloc(arena, (DEEP + 1) * sizeof(*many));
    for (int i = 0; i <= DEEP; i++) {
        char path[8 + 2 * DEPTH];
        int size = snprintf(path, sizeof(path), "%04d", i);
        for (int depth = 0; depth < DEPTH; depth++)
            size += snprintf(path + size, sizeof(path) - (size_t)size, "/x");
        many[i] = (struct mount_file){.path = arena_copy_text(arena, text_of(path))};
    }
    struct mount_index got;
    ASSERT_OK(
        read_back(arena, &(struct mount_index){.files = many, .file_count = DEEP}, &got, &error));
    ASSERT_FAILS(read_back(arena, &(struct mount_index){.files = many, .file_count = DEEP + 1},
                           &got, &error),
                 ERROR_EXHAUSTED);
    struct buffer bytes AUTO_BUFFER; /* as somebody else may write it */
    buffer_init(&bytes, MOUNT_INDEX_SIZE_MAX);
    wire_put_u8(&bytes, 1);
    wire_put_bool(&bytes, false);
    wire_put_u32(&bytes, DEEP + 1);
    for (int i = 0; i <= DEEP; i++) {
        wire_put_text(&bytes, many[i].path);
        wire_put_u64(&bytes, 0);
        wire_put_bool(&bytes, false);
    }
    wire_put_u32(&bytes, 0);
    ASSERT_FAILS(mount_index_decode(arena, buffer_text(&bytes), &got, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "too many folders"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_reads_back),
        cmocka_unit_test(files_are_shared_whole_and_each_is_somebodys),
        cmocka_unit_test(lines_are_cut_where_the_index_says),
        cmocka_unit_test(folders_are_counted_once_and_have_a_maximum),
        cmocka_unit_test(paths_that_lead_elsewhere_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
