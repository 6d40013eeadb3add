#include "source/xml_element.h"
#include "testing/testing.h"

TEST(an_element_ends_where_it_is_closed_not_those_within_it)
{
    struct text content, rest;
    const struct text xml = TEXT("<a><item>1<item>2</item>3</item><item>4</item></a>");
    assert_true(xml_element_cut(xml, "item", &content, &rest));
    assert_true(text_equal(content, TEXT("1<item>2</item>3")));
    assert_true(xml_element_cut(rest, "item", &content, &rest));
    assert_true(text_equal(content, TEXT("4")));
    assert_true(text_equal(rest, TEXT("</a>")));
    assert_false(xml_element_cut(rest, "item", &content, &rest));
}

TEST(what_is_cut_off_is_not_found)
{
    struct text content;
    assert_false(xml_element_find(TEXT("<item>1<item>2</item>"), "item", &content));
    assert_false(xml_element_find(TEXT("<item>1"), "item", &content));
    assert_false(xml_element_find(TEXT("</item><item>"), "item", &content));
    assert_false(xml_element_find(TEXT(""), "item", &content));
    assert_true(xml_element_find(TEXT("<item></item>"), "item", &content));
    assert_int_equal(content.size, 0);
}

TEST(a_copy_is_plain_and_short_enough)
{
    char out[16];
    assert_string_equal(
        xml_element_copy(TEXT("<m> a &lt;b&gt; &amp;&quot;&apos; </m>"), "m", out, sizeof(out)),
        "a <b> &\"'");
    assert_string_equal(xml_element_copy(TEXT("<m>\x1b[1m</m>"), "m", out, sizeof(out)), "?[1m");
    assert_string_equal(xml_element_copy(TEXT("<m>0123456789</m>"), "m", out, 5), "0123");
    assert_string_equal(xml_element_copy(TEXT("<n>1</n>"), "m", out, sizeof(out)), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_element_ends_where_it_is_closed_not_those_within_it),
        cmocka_unit_test(what_is_cut_off_is_not_found),
        cmocka_unit_test(a_copy_is_plain_and_short_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
