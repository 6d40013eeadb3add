#include "source/s3_answer.h"
#include "source/xml_element.h"
#include "testing/testing.h"

TEST(a_refusal_has_its_code)
{
    const struct text xml =
        TEXT("<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>x</Message></Error>");
    struct text code;
    assert_true(xml_element_find(xml, "Code", &code));
    assert_true(text_equal(code, TEXT("NoSuchKey")));
    assert_false(xml_element_find(xml, "Region", &code));
    assert_false(xml_element_find(TEXT("<Code>cut off"), "Code", &code));
    assert_false(xml_element_find(TEXT("</Code><Code>"), "Code", &code));
    assert_false(xml_element_find(TEXT(""), "Code", &code));
}

TEST(objects_come_one_after_the_other)
{
    struct text rest =
        TEXT("<ListBucketResult><IsTruncated>false</IsTruncated>"
             "<Contents><Key>a%2Fb.csv</Key><Size>12</Size></Contents>"
             "<Contents><Key>c</Key><Owner><ID>1</ID></Owner><Size>18446744073709551615</Size>"
             "</Contents></ListBucketResult>");
    struct s3_object object;
    assert_true(s3_answer_next(&rest, &object));
    assert_true(text_equal(object.key, TEXT("a%2Fb.csv")));
    assert_int_equal(object.size, 12);
    assert_true(s3_answer_next(&rest, &object));
    assert_true(text_equal(object.key, TEXT("c")));
    assert_true(object.size == UINT64_MAX);
    assert_false(s3_answer_next(&rest, &object));

    struct text strange = TEXT("<Contents><Key>a</Key><Size>-1</Size></Contents>");
    assert_false(s3_answer_next(&strange, &object));
    struct text nameless = TEXT("<Contents><Size>1</Size></Contents><Key>a</Key>");
    assert_false(s3_answer_next(&nameless, &object));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_has_its_code),
        cmocka_unit_test(objects_come_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
