#include "base/random.h"
#include "blob/blob_coding.h"
#include "blob/blob_store.h"
#include "testing/testing.h"

#include <zstd.h>

static void what_shrinks_travels_as_a_frame_and_comes_back(void **state)
{
    (void)state;
    struct error error;
    char bytes[5000];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)('a' + i % 7);
    struct buffer frame AUTO_BUFFER;
    struct buffer plain AUTO_BUFFER;
    buffer_init(&frame, BLOB_BYTES_MAX);
    buffer_init(&plain, BLOB_BYTES_MAX);
    const struct text text = {bytes, sizeof(bytes)};
    assert_true(blob_encode(text, &frame));
    assert_true(frame.size < 200);
    ASSERT_OK(blob_decode(buffer_text(&frame), &plain, &error));
    assert_true(text_equal(buffer_text(&plain), text));
}

static void what_does_not_shrink_stays_as_it_is(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 7);
    uint64_t bytes[1000];
    for (size_t i = 0; i < 1000; i++)
        bytes[i] = random_u64(&random);
    struct buffer frame AUTO_BUFFER;
    buffer_init(&frame, BLOB_BYTES_MAX);
    assert_false(blob_encode((struct text){(const char *)bytes, sizeof(bytes)}, &frame));
    assert_false(blob_encode(TEXT("short"), &frame));
    assert_false(blob_encode(TEXT(""), &frame));
    assert_int_equal(frame.size, 0);
}

/* A quarter of it is random: packing saves much; almost all is: less than it costs. */
static void a_long_one_is_packed_if_a_few_places_of_it_save_enough(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 8);
    uint8_t *bytes = malloc(BLOB_BYTES_MAX);
    struct buffer frame AUTO_BUFFER;
    buffer_init(&frame, BLOB_BYTES_MAX);
    for (size_t i = 0; i < BLOB_BYTES_MAX; i++)
        bytes[i] = i % 4096 < 1024 ? (uint8_t)random_u64(&random) : (uint8_t)'a';
    assert_true(blob_encode((struct text){(const char *)bytes, BLOB_BYTES_MAX}, &frame));
    assert_true(frame.size < BLOB_BYTES_MAX / 3);
    buffer_clear(&frame);
    for (size_t i = 0; i < BLOB_BYTES_MAX; i++)
        bytes[i] = i % 4096 < 3800 ? (uint8_t)random_u64(&random) : (uint8_t)'a';
    assert_false(blob_encode((struct text){(const char *)bytes, BLOB_BYTES_MAX}, &frame));
    assert_int_equal(frame.size, 0);
    free(bytes);
}

/* A frame of `size` zero bytes, made by `set_up`'s parameters. */
static struct text frame_of(struct buffer *out, size_t size, bool has_size)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, has_size);
    void *zeros = calloc(1, size);
    const size_t room = ZSTD_compressBound(size);
    const size_t got = ZSTD_compress2(context, buffer_reserve(out, room), room, zeros, size);
    assert_false(ZSTD_isError(got));
    buffer_advance(out, got);
    free(zeros);
    ZSTD_freeCCtx(context);
    return buffer_text(out);
}

static void bombs_and_odd_frames_are_refused(void **state)
{
    (void)state;
    struct error error;
    struct buffer frame AUTO_BUFFER;
    struct buffer plain AUTO_BUFFER;
    buffer_init(&frame, 16 << 20);
    buffer_init(&plain, BLOB_BYTES_MAX);
    ASSERT_OK(blob_decode(frame_of(&frame, BLOB_BYTES_MAX, true), &plain, &error));
    assert_int_equal(plain.size, BLOB_BYTES_MAX);
    buffer_clear(&plain);

    buffer_clear(&frame);
    ASSERT_FAILS(blob_decode(frame_of(&frame, BLOB_BYTES_MAX + 1, true), &plain, &error),
                 ERROR_INVALID);
    assert_non_null(strstr(error.message, "4194305"));
    buffer_clear(&frame);
    ASSERT_FAILS(blob_decode(frame_of(&frame, 100000, false), &plain, &error), ERROR_INVALID);

    buffer_clear(&frame);
    frame_of(&frame, 100000, true);
    const struct text whole = buffer_text(&frame);
    ASSERT_FAILS(blob_decode((struct text){whole.data, whole.size - 1}, &plain, &error),
                 ERROR_INVALID);
    frame_of(&frame, 100000, true); /* two of them */
    ASSERT_FAILS(blob_decode(buffer_text(&frame), &plain, &error), ERROR_INVALID);
    ASSERT_FAILS(blob_decode(TEXT(""), &plain, &error), ERROR_INVALID);
    ASSERT_FAILS(blob_decode(TEXT("no frame at all"), &plain, &error), ERROR_INVALID);
    assert_int_equal(plain.size, 0);
}

static void codings_have_the_names_of_http(void **state)
{
    (void)state;
    struct error error;
    enum blob_coding coding;
    ASSERT_OK(blob_coding_parse(TEXT("zstd"), &coding, &error));
    assert_int_equal(coding, BLOB_CODING_ZSTD);
    ASSERT_OK(blob_coding_parse((struct text){0}, &coding, &error));
    assert_int_equal(coding, BLOB_CODING_PLAIN);
    ASSERT_FAILS(blob_coding_parse(TEXT("gzip"), &coding, &error), ERROR_INVALID);
    assert_string_equal(blob_coding_name(BLOB_CODING_PLAIN), "identity");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_shrinks_travels_as_a_frame_and_comes_back),
        cmocka_unit_test(what_does_not_shrink_stays_as_it_is),
        cmocka_unit_test(a_long_one_is_packed_if_a_few_places_of_it_save_enough),
        cmocka_unit_test(bombs_and_odd_frames_are_refused),
        cmocka_unit_test(codings_have_the_names_of_http),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
