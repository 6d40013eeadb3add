#include "base/library.h"
#include "testing/testing.h"
#include "train/data_stream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { ROOM = 1 << 20 };

static struct text gzip(const void *data, size_t size, uint8_t *out)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = without_const(data);
    stream.avail_in = (uInt)size;
    stream.next_out = out;
    stream.avail_out = ROOM;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    const size_t written = stream.total_out;
    deflateEnd(&stream);
    return (struct text){(char *)out, written};
}

static struct text zstd(const void *data, size_t size, uint8_t *out)
{
    const size_t written = ZSTD_compress(out, ROOM, data, size, 3);
    assert_false(ZSTD_isError(written));
    return (struct text){(char *)out, written};
}

static void assert_says(const struct error *error, const char *word)
{
    if (!strstr(error->message, word))
        fail_msg("\"%s\" does not say \"%s\"", error->message, word);
}

static void assert_reads(struct text file, const char *expected)
{
    struct error error;
    AUTO(data_stream) struct data_stream *stream = NULL;
    ASSERT_OK(data_stream_open_bytes(file, 100, &stream, &error));
    char bytes[100];
    size_t got = 0;
    ASSERT_OK(data_stream_read(stream, bytes, sizeof(bytes), &got, &error));
    assert_int_equal(got, strlen(expected));
    assert_memory_equal(bytes, expected, got);
    assert_int_equal(data_stream_offset(stream), got);
    ASSERT_OK(data_stream_expect_end(stream, &error));
}

TEST(raw_gzip_and_zstd_read_the_same)
{
    uint8_t *packed = malloc(ROOM), *twice = malloc(ROOM);
    assert_true(packed && twice);
    assert_reads(TEXT("one two"), "one two");
    assert_reads(TEXT(""), "");
    const struct text gz = gzip("one two", 7, packed);
    assert_reads(gz, "one two");
    memcpy(twice, gz.data, gz.size);
    memcpy(twice + gz.size, gz.data, gz.size);
    assert_reads((struct text){(char *)twice, 2 * gz.size}, "one twoone two");
    const struct text zs = zstd("one two", 7, packed);
    assert_reads(zs, "one two");
    memcpy(twice, zs.data, zs.size);
    memcpy(twice + zs.size, zs.data, zs.size);
    assert_reads((struct text){(char *)twice, 2 * zs.size}, "one twoone two");
    free(packed);
    free(twice);
}

static void assert_line(struct data_stream *stream, uint64_t number, const char *expected)
{
    struct error error;
    struct text line;
    bool has_line = false;
    ASSERT_OK(data_stream_line(stream, &line, &has_line, &error));
    assert_true(has_line);
    assert_int_equal(line.size, strlen(expected));
    assert_memory_equal(line.data, expected, line.size);
    assert_int_equal(data_stream_line_number(stream), number);
}

TEST(lines_come_without_their_ends)
{
    struct error error;
    AUTO(data_stream) struct data_stream *stream = NULL;
    ASSERT_OK(data_stream_open_bytes(TEXT("a\r\n\nlast"), 100, &stream, &error));
    assert_line(stream, 1, "a");
    assert_line(stream, 2, "");
    assert_line(stream, 3, "last");
    struct text line;
    bool has_line = true;
    ASSERT_OK(data_stream_line(stream, &line, &has_line, &error));
    assert_false(has_line);
}

TEST(what_is_cut_or_damaged_is_refused_with_its_place)
{
    struct error error;
    uint8_t *packed = malloc(ROOM);
    char bytes[100];
    size_t got;
    assert_non_null(packed);
    const struct text gz = gzip("one two three", 13, packed);
    AUTO(data_stream) struct data_stream *cut = NULL;
    ASSERT_OK(data_stream_open_bytes((struct text){gz.data, gz.size - 3}, 100, &cut, &error));
    ASSERT_FAILS(data_stream_read(cut, bytes, sizeof(bytes), &got, &error), ERROR_CORRUPT);
    assert_says(&error, "ends in the middle, at byte 13");
    packed[12] ^= 0x5a;
    AUTO(data_stream) struct data_stream *bad = NULL;
    ASSERT_OK(data_stream_open_bytes(gz, 100, &bad, &error));
    ASSERT_FAILS(data_stream_read(bad, bytes, sizeof(bytes), &got, &error), ERROR_CORRUPT);
    assert_says(&error, "gzip data is damaged at byte");
    const struct text zs = zstd("one two three", 13, packed);
    AUTO(data_stream) struct data_stream *short_zstd = NULL;
    ASSERT_OK(
        data_stream_open_bytes((struct text){zs.data, zs.size - 1}, 100, &short_zstd, &error));
    ASSERT_FAILS(data_stream_read(short_zstd, bytes, sizeof(bytes), &got, &error), ERROR_CORRUPT);
    AUTO(data_stream) struct data_stream *few = NULL;
    ASSERT_OK(data_stream_open_bytes(TEXT("abc"), 100, &few, &error));
    ASSERT_FAILS(data_stream_read_all(few, bytes, 8, "the header", &error), ERROR_CORRUPT);
    assert_says(&error, "truncated at byte 3: 3 of the 8 bytes of the header");
    free(packed);
}

TEST(a_file_that_grows_without_end_is_stopped_at_its_limit)
{
    struct error error;
    enum { MUCH = 64 << 20 };
    uint8_t *zeros = calloc(1, MUCH), *packed = malloc(ROOM);
    assert_true(zeros && packed);
    const struct text bombs[] = {gzip(zeros, MUCH, packed)};
    char *bytes = malloc(MUCH);
    size_t got;
    AUTO(data_stream) struct data_stream *stream = NULL;
    ASSERT_OK(data_stream_open_bytes(bombs[0], 1 << 20, &stream, &error));
    ASSERT_FAILS(data_stream_read(stream, bytes, MUCH, &got, &error), ERROR_EXHAUSTED);
    assert_says(&error, "larger than the 1048576 bytes allowed, decompressed");
    AUTO(data_stream) struct data_stream *other = NULL;
    ASSERT_OK(data_stream_open_bytes(zstd(zeros, MUCH, packed), 1 << 20, &other, &error));
    ASSERT_FAILS(data_stream_read(other, bytes, MUCH, &got, &error), ERROR_EXHAUSTED);
    /* A line without end too. */
    AUTO(data_stream) struct data_stream *line = NULL;
    struct text text;
    bool has_line;
    ASSERT_OK(data_stream_open_bytes((struct text){(char *)zeros, MUCH}, MUCH, &line, &error));
    ASSERT_FAILS(data_stream_line(line, &text, &has_line, &error), ERROR_INVALID);
    assert_says(&error, "line 1: longer than");
    free(zeros);
    free(packed);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_gzip_and_zstd_read_the_same),
        cmocka_unit_test(lines_come_without_their_ends),
        cmocka_unit_test(what_is_cut_or_damaged_is_refused_with_its_place),
        cmocka_unit_test(a_file_that_grows_without_end_is_stopped_at_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
