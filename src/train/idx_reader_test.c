#include "base/file.h"
#include "testing/testing.h"
#include "train/idx_reader.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Two images of 1 x 3. */
static const uint8_t whole[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

static void assert_corrupt(const uint8_t *bytes, size_t size, const char *word)
{
    struct error error;
    struct idx *none = NULL;
    ASSERT_FAILS(idx_open_bytes(bytes, size, &none, &error), ERROR_CORRUPT);
    if (!strstr(error.message, word))
        fail_msg("\"%s\" does not say \"%s\"", error.message, word);
}

TEST(records_are_found_where_the_header_says)
{
    struct error error;
    AUTO(idx) struct idx *idx = NULL;
    ASSERT_OK(idx_open_bytes(whole, sizeof(whole), &idx, &error));
    assert_int_equal(idx->header.rank, 3);
    assert_int_equal(idx->header.sizes[0], 2);
    assert_int_equal(idx->header.record_size, 3);
    assert_memory_equal(idx_record(idx, 1), whole + 19, 3);
}

TEST(each_kind_of_damage_is_named)
{
    uint8_t bytes[sizeof(whole) + 1] = {0};
    memcpy(bytes, whole, sizeof(whole));
    assert_corrupt(bytes, 3, "too few");
    assert_corrupt(bytes, 10, "header of rank 3");
    assert_corrupt(bytes, sizeof(whole) - 1, "truncated: 21 of 22");
    assert_corrupt(bytes, sizeof(whole) + 1, "1 bytes follow");
    bytes[0] = 1;
    assert_corrupt(bytes, sizeof(whole), "magic 01000803");
    bytes[0] = 0;
    bytes[2] = 0x0e;
    assert_corrupt(bytes, sizeof(whole), "type 0x0e");
    bytes[2] = 8;
    bytes[3] = 5;
    assert_corrupt(bytes, sizeof(whole), "rank 5");
    bytes[3] = 3;
    bytes[11] = 0;
    assert_corrupt(bytes, sizeof(whole), "dimension 2 is empty");
    memset(bytes + 8, 0xff, 8);
    assert_corrupt(bytes, sizeof(whole), "larger than 1 GiB");
}

TEST(ints_and_floats_are_read_from_their_big_end)
{
    static const uint8_t ints[] = {0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe};
    static const uint8_t floats[] = {0, 0, 0x0d, 1, 0, 0, 0, 1, 0xbf, 0x80, 0, 0};
    struct error error;
    AUTO(idx) struct idx *some = NULL;
    AUTO(idx) struct idx *others = NULL;
    ASSERT_OK(idx_open_bytes(ints, sizeof(ints), &some, &error));
    assert_int_equal(some->header.record_size, 4);
    assert_int_equal(idx_int(idx_record(some, 0)), 258);
    assert_int_equal(idx_int(idx_record(some, 1)), -2);
    ASSERT_OK(idx_open_bytes(floats, sizeof(floats), &others, &error));
    assert_float_equal(idx_float(idx_record(others, 0)), -1.0F, 0);
}

TEST(a_shard_gets_a_header_of_its_own)
{
    struct error error;
    struct idx_header header, shard;
    ASSERT_OK(idx_parse_header(whole, sizeof(whole), &header, &error));
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 64);
    idx_append_header(&buffer, &header, 1);
    ASSERT_OK(idx_parse_header(buffer.data, buffer.size, &shard, &error));
    assert_int_equal(shard.sizes[0], 1);
    assert_int_equal(shard.record_size, 3);
    assert_int_equal(buffer.size, header.header_size);
}

struct scratch {
    char folder[64];
    char path[80];
};

static void scratch_init(struct scratch *scratch)
{
    snprintf(scratch->folder, sizeof(scratch->folder), "/tmp/idx_test.XXXXXX");
    assert_non_null(mkdtemp(scratch->folder));
    snprintf(scratch->path, sizeof(scratch->path), "%s/file", scratch->folder);
}

static void scratch_done(struct scratch *scratch)
{
    unlink(scratch->path);
    rmdir(scratch->folder);
}

static void scratch_write(struct scratch *scratch, const void *data, size_t size)
{
    struct error error;
    const struct text part = {data, size};
    ASSERT_OK(file_replace(scratch->path, &part, 1, 0600, &error));
}

static size_t scratch_write_gzip(struct scratch *scratch)
{
    gzFile file = gzopen(scratch->path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, whole, sizeof(whole)), sizeof(whole));
    assert_int_equal(gzclose(file), Z_OK);
    struct error error;
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1024);
    ASSERT_OK(file_read(scratch->path, &buffer, &error));
    return buffer.size;
}

TEST(files_are_read_raw_and_compressed)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    scratch_write(&scratch, whole, sizeof(whole));
    AUTO(idx) struct idx *raw = NULL;
    ASSERT_OK(idx_open(scratch.path, 100, &raw, &error));
    assert_int_equal(raw->size, sizeof(whole));
    assert_memory_equal(raw->bytes, whole, sizeof(whole));
    unlink(scratch.path); /* it stays mapped */
    scratch_write_gzip(&scratch);
    AUTO(idx) struct idx *unpacked = NULL;
    ASSERT_OK(idx_open(scratch.path, 100, &unpacked, &error));
    assert_int_equal(unpacked->size, sizeof(whole));
    assert_memory_equal(unpacked->bytes, whole, sizeof(whole));
    scratch_done(&scratch);
}

TEST(a_file_too_large_missing_or_cut_is_refused)
{
    struct error error;
    struct idx *none = NULL;
    struct scratch scratch;
    scratch_init(&scratch);
    ASSERT_FAILS(idx_open(scratch.path, 100, &none, &error), ERROR_NOT_FOUND);
    const size_t size = scratch_write_gzip(&scratch);
    ASSERT_FAILS(idx_open(scratch.path, 21, &none, &error), ERROR_EXHAUSTED);
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1024);
    ASSERT_OK(file_read(scratch.path, &buffer, &error));
    scratch_write(&scratch, buffer.data, size - 6);
    ASSERT_FAILS(idx_open(scratch.path, 100, &none, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "gzip"));
    assert_non_null(strstr(error.message, scratch.path));
    buffer.data[size / 2] ^= 0x55;
    scratch_write(&scratch, buffer.data, size);
    ASSERT_FAILS(idx_open(scratch.path, 100, &none, &error), ERROR_CORRUPT);
    scratch_done(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_found_where_the_header_says),
        cmocka_unit_test(each_kind_of_damage_is_named),
        cmocka_unit_test(ints_and_floats_are_read_from_their_big_end),
        cmocka_unit_test(a_shard_gets_a_header_of_its_own),
        cmocka_unit_test(files_are_read_raw_and_compressed),
        cmocka_unit_test(a_file_too_large_missing_or_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
