#include "testing/testing.h"
#include "wire/frame.h"

#include <string.h>

static struct text text_from(const uint8_t *data, size_t size)
{
    return (struct text){(const char *)data, size};
}

TEST(a_frame_is_decoded_as_it_was_encoded)
{
    struct error error = {0};
    uint8_t bytes[FRAME_HEADER_SIZE + 3];
    frame_header_encode(3, 0x1234, bytes);
    memcpy(bytes + FRAME_HEADER_SIZE, "abc", 3);

    struct frame frame;
    size_t size;
    assert_int_equal(frame_decode(text_from(bytes, sizeof(bytes)), 3, &frame, &size, &error), 1);
    assert_int_equal(frame.type, 0x1234);
    assert_int_equal(size, sizeof(bytes));
    assert_true(text_equal(frame.payload, TEXT("abc")));
}

TEST(the_layout_is_little_endian)
{
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_header_encode(0x01020304, 0x0506, bytes);
    const uint8_t expected[FRAME_HEADER_SIZE] = {4, 3, 2, 1, 6, 5, 0, 0};
    assert_memory_equal(bytes, expected, sizeof(expected));
}

TEST(a_part_of_a_frame_asks_for_more_at_every_length)
{
    struct error error = {0};
    uint8_t bytes[FRAME_HEADER_SIZE + 3] = {0};
    frame_header_encode(3, 1, bytes);
    struct frame frame;
    size_t size;
    for (size_t length = 0; length < sizeof(bytes); length++) {
        assert_int_equal(frame_decode(text_from(bytes, length), 3, &frame, &size, &error), 0);
        assert_int_equal(size, length < FRAME_HEADER_SIZE ? 0 : sizeof(bytes));
    }
}

TEST(a_frame_over_the_maximum_is_refused_by_its_header)
{
    struct error error = {0};
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_header_encode(4, 1, bytes);
    struct frame frame;
    size_t size;
    ASSERT_FAILS(frame_decode(text_from(bytes, sizeof(bytes)), 3, &frame, &size, &error),
                 ERROR_CORRUPT);
}

TEST(reserved_bytes_must_be_zero)
{
    struct error error = {0};
    struct frame frame;
    size_t size;
    for (int i = 6; i < 8; i++) {
        uint8_t bytes[FRAME_HEADER_SIZE];
        frame_header_encode(0, 1, bytes);
        bytes[i] = 1;
        ASSERT_FAILS(frame_decode(text_from(bytes, sizeof(bytes)), 3, &frame, &size, &error),
                     ERROR_CORRUPT);
    }
}

TEST(a_stream_may_end_only_between_frames)
{
    struct error error = {0};
    ASSERT_OK(frame_decode_end(TEXT(""), &error));
    ASSERT_FAILS(frame_decode_end(TEXT("x"), &error), ERROR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_is_decoded_as_it_was_encoded),
        cmocka_unit_test(the_layout_is_little_endian),
        cmocka_unit_test(a_part_of_a_frame_asks_for_more_at_every_length),
        cmocka_unit_test(a_frame_over_the_maximum_is_refused_by_its_header),
        cmocka_unit_test(reserved_bytes_must_be_zero),
        cmocka_unit_test(a_stream_may_end_only_between_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
