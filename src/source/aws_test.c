#include "source/aws.h"
#include "testing/testing.h"

TEST(bytes_that_are_not_names_are_encoded)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 256);
    aws_encode(TEXT("a/b c+d~é"), "/", &out);
    assert_true(text_equal(buffer_text(&out), TEXT("a/b%20c%2Bd~%C3%A9")));
}

TEST(the_region_has_a_default)
{
    struct remote_credentials credentials = {0};
    assert_string_equal(aws_region(&credentials), "us-east-1");
    struct error error;
    ASSERT_OK(remote_credentials_set(&credentials, TEXT("AWS_REGION"), TEXT("eu-west-1"), &error));
    const struct http_signing signing = aws_signing(&credentials, "ec2");
    assert_string_equal(signing.region, "eu-west-1");
    assert_string_equal(signing.service, "ec2");
}

TEST(known_refusals_are_said_in_words)
{
    struct error error = {0};
    assert_true(aws_explain(TEXT("AuthFailure"), &error));
    assert_int_equal(error.code, ERROR_REFUSED);
    assert_false(aws_explain(TEXT("NoSuchKey"), &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_are_not_names_are_encoded),
        cmocka_unit_test(the_region_has_a_default),
        cmocka_unit_test(known_refusals_are_said_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
