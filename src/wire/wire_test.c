#include "testing/testing.h"
#include "wire/wire.h"

TEST(every_primitive_comes_back)
{
    struct error error = {0};
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1024);
    const float floats[] = {1.5F, -2.25F};
    wire_put_u8(&buffer, 200);
    wire_put_bool(&buffer, true);
    wire_put_u16(&buffer, 60000);
    wire_put_u32(&buffer, 4000000000U);
    wire_put_u64(&buffer, UINT64_MAX);
    wire_put_i64(&buffer, INT64_MIN);
    wire_put_f32(&buffer, -0.5F);
    wire_put_f64(&buffer, 1e300);
    wire_put_text(&buffer, TEXT("souk"));
    wire_put_bytes(&buffer, "\0\1", 2);
    wire_put_raw(&buffer, "key", 3);
    wire_put_f32s(&buffer, floats, 2);

    struct wire_reader reader;
    wire_reader_init(&reader, buffer_text(&buffer));
    assert_int_equal(wire_get_u8(&reader), 200);
    assert_true(wire_get_bool(&reader));
    assert_int_equal(wire_get_u16(&reader), 60000);
    assert_int_equal(wire_get_u32(&reader), 4000000000U);
    assert_true(wire_get_u64(&reader) == UINT64_MAX);
    assert_true(wire_get_i64(&reader) == INT64_MIN);
    assert_true(wire_get_f32(&reader) == -0.5F);
    assert_true(wire_get_f64(&reader) == 1e300);
    assert_true(text_equal(wire_get_text(&reader, 4), TEXT("souk")));
    assert_true(text_equal(wire_get_bytes(&reader, 2), TEXT("\0\1")));
    char key[3];
    wire_get_raw(&reader, key, 3);
    assert_memory_equal(key, "key", 3);
    float back[2];
    wire_get_f32s(&reader, back, 2);
    assert_memory_equal(back, floats, sizeof(floats));
    ASSERT_OK(wire_reader_finish(&reader, "message", &error));
}

TEST(integers_are_little_endian)
{
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 64);
    wire_put_u32(&buffer, 0x01020304);
    assert_memory_equal(buffer.data, "\4\3\2\1", 4);
}

TEST(the_first_mistake_sticks_and_later_reads_give_zero)
{
    struct error error = {0};
    struct wire_reader reader;
    wire_reader_init(&reader, TEXT("\1\2\3"));
    assert_int_equal(wire_get_u32(&reader), 0);
    assert_int_equal(wire_get_u8(&reader), 0);
    assert_int_equal(wire_reader_left(&reader), 0);
    assert_int_equal(wire_get_text(&reader, 10).size, 0);
    ASSERT_FAILS(wire_reader_finish(&reader, "hello", &error), ERROR_CORRUPT);
    assert_string_equal(error.message, "hello is malformed: it is cut short");
}

TEST(bytes_left_over_are_refused)
{
    struct error error = {0};
    struct wire_reader reader;
    wire_reader_init(&reader, TEXT("\1\2"));
    assert_int_equal(wire_get_u8(&reader), 1);
    ASSERT_FAILS(wire_reader_finish(&reader, "hello", &error), ERROR_CORRUPT);
}

TEST(text_over_its_maximum_is_refused)
{
    struct error error = {0};
    struct wire_reader reader;
    wire_reader_init(&reader, TEXT("\3\0\0\0abc"));
    assert_int_equal(wire_get_text(&reader, 2).size, 0);
    ASSERT_FAILS(wire_reader_finish(&reader, "name", &error), ERROR_CORRUPT);
}

TEST(a_count_that_the_message_cannot_hold_is_refused)
{
    struct wire_reader reader;
    wire_reader_init(&reader, TEXT("\2\0\0\0abcdefgh"));
    assert_int_equal(wire_get_count(&reader, 10, 4), 2);
    wire_reader_init(&reader, TEXT("\3\0\0\0abcdefgh"));
    assert_int_equal(wire_get_count(&reader, 10, 4), 0);
    assert_true(wire_reader_is_failed(&reader));
    wire_reader_init(&reader, TEXT("\3\0\0\0abcdefgh"));
    assert_int_equal(wire_get_count(&reader, 2, 1), 0);
    assert_true(wire_reader_is_failed(&reader));
}

TEST(a_yes_or_no_is_one_of_two_bytes)
{
    struct wire_reader reader;
    wire_reader_init(&reader, TEXT("\2"));
    wire_get_bool(&reader);
    assert_true(wire_reader_is_failed(&reader));
}

TEST(an_empty_message_reads_as_empty)
{
    struct error error = {0};
    struct wire_reader reader;
    wire_reader_init(&reader, (struct text){NULL, 0});
    assert_non_null(wire_get_raw_in_place(&reader, 0));
    ASSERT_OK(wire_reader_finish(&reader, "ping", &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_primitive_comes_back),
        cmocka_unit_test(integers_are_little_endian),
        cmocka_unit_test(the_first_mistake_sticks_and_later_reads_give_zero),
        cmocka_unit_test(bytes_left_over_are_refused),
        cmocka_unit_test(text_over_its_maximum_is_refused),
        cmocka_unit_test(a_count_that_the_message_cannot_hold_is_refused),
        cmocka_unit_test(a_yes_or_no_is_one_of_two_bytes),
        cmocka_unit_test(an_empty_message_reads_as_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
