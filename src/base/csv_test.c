#include "base/csv.h"
#include "testing/testing.h"

TEST(fields_are_quoted_where_they_must_be)
{
    (void)state;
    struct buffer buffer AUTO_BUFFER;
    struct csv_writer writer;
    buffer_init(&buffer, 1000);
    csv_writer_init(&writer, &buffer);
    csv_string(&writer, "plain");
    csv_string(&writer, "a,b");
    csv_string(&writer, "say \"so\"");
    csv_string(&writer, "two\r\nlines");
    csv_string(&writer, "");
    csv_row_end(&writer);
    csv_i64(&writer, INT64_MIN);
    csv_row_end(&writer);
    assert_string_equal(buffer_string(&buffer),
                        "plain,\"a,b\",\"say \"\"so\"\"\",\"two\r\nlines\",\r\n"
                        "-9223372036854775808\r\n");
}

TEST(credits_keep_their_six_places)
{
    (void)state;
    struct buffer buffer AUTO_BUFFER;
    struct csv_writer writer;
    buffer_init(&buffer, 1000);
    csv_writer_init(&writer, &buffer);
    csv_micro(&writer, 0);
    csv_micro(&writer, 1);
    csv_micro(&writer, -250000);
    csv_micro(&writer, 12000000);
    csv_micro(&writer, INT64_MIN);
    assert_string_equal(buffer_string(&buffer),
                        "0.000000,0.000001,-0.250000,12.000000,-9223372036854.775808");
}

TEST(no_text_is_a_formula)
{
    (void)state;
    struct buffer buffer AUTO_BUFFER;
    struct csv_writer writer;
    buffer_init(&buffer, 1000);
    csv_writer_init(&writer, &buffer);
    csv_string(&writer, "=1+1");
    csv_string(&writer, "@x, y");
    csv_string(&writer, "a=b");
    csv_i64(&writer, -4);
    assert_string_equal(buffer_string(&buffer), "'=1+1,\"'@x, y\",a=b,-4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_quoted_where_they_must_be),
        cmocka_unit_test(credits_keep_their_six_places),
        cmocka_unit_test(no_text_is_a_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
