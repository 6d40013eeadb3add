#include "base/text.h"
#include "testing/testing.h"

TEST(numbers_must_fill_the_whole_text_and_fit)
{
    struct error error = {0};
    uint64_t natural;
    int64_t integer;
    ASSERT_OK(text_parse_u64(TEXT("18446744073709551615"), &natural, &error));
    assert_true(natural == UINT64_MAX);
    ASSERT_FAILS(text_parse_u64(TEXT("18446744073709551616"), &natural, &error), ERROR_INVALID);
    ASSERT_FAILS(text_parse_u64(TEXT(""), &natural, &error), ERROR_INVALID);
    ASSERT_FAILS(text_parse_u64(TEXT("12 "), &natural, &error), ERROR_INVALID);
    ASSERT_OK(text_parse_i64(TEXT("-9223372036854775808"), &integer, &error));
    assert_true(integer == INT64_MIN);
    ASSERT_FAILS(text_parse_i64(TEXT("9223372036854775808"), &integer, &error), ERROR_INVALID);
    ASSERT_FAILS(text_parse_i64(TEXT("-"), &integer, &error), ERROR_INVALID);
}

TEST(a_real_number_is_finite)
{
    struct error error = {0};
    double value;
    ASSERT_OK(text_parse_double(TEXT("2.5e-3"), &value, &error));
    assert_true(value == 2.5e-3);
    ASSERT_FAILS(text_parse_double(TEXT("nan"), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(text_parse_double(TEXT("1e999"), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(text_parse_double(TEXT("1x"), &value, &error), ERROR_INVALID);
}

TEST(cut_gives_head_and_tail_or_all)
{
    struct text head, tail;
    assert_true(text_cut(TEXT("host:7600"), ':', &head, &tail));
    assert_true(text_equal(head, TEXT("host")));
    assert_true(text_equal(tail, TEXT("7600")));
    assert_false(text_cut(TEXT("host"), ':', &head, &tail));
    assert_true(text_equal(head, TEXT("host")));
    assert_int_equal(tail.size, 0);
}

TEST(hex_goes_there_and_back_and_refuses_the_rest)
{
    struct error error = {0};
    const uint8_t bytes[4] = {0x00, 0x7f, 0xa5, 0xff};
    char hex[9];
    text_hex_encode(bytes, sizeof(bytes), hex);
    assert_string_equal(hex, "007fa5ff");
    uint8_t back[4];
    ASSERT_OK(text_hex_decode(text_of(hex), back, sizeof(back), &error));
    assert_memory_equal(back, bytes, sizeof(bytes));
    ASSERT_FAILS(text_hex_decode(TEXT("007FA5FF"), back, sizeof(back), &error), ERROR_INVALID);
    ASSERT_FAILS(text_hex_decode(TEXT("007fa5"), back, sizeof(back), &error), ERROR_INVALID);
}

TEST(copy_refuses_what_does_not_fit_or_hides_a_zero)
{
    struct error error = {0};
    char field[5];
    ASSERT_OK(text_copy(TEXT("four"), field, sizeof(field), &error));
    assert_string_equal(field, "four");
    ASSERT_FAILS(text_copy(TEXT("fives"), field, sizeof(field), &error), ERROR_INVALID);
    ASSERT_FAILS(text_copy((struct text){"a\0b", 3}, field, sizeof(field), &error), ERROR_INVALID);
}

TEST(comparison_orders_prefixes_first)
{
    assert_true(text_compare(TEXT("ab"), TEXT("abc")) < 0);
    assert_true(text_compare(TEXT("b"), TEXT("abc")) > 0);
    assert_int_equal(text_compare(TEXT(""), TEXT("")), 0);
    assert_true(text_equal_secret(TEXT("token"), TEXT("token")));
    assert_false(text_equal_secret(TEXT("token"), TEXT("tokem")));
    assert_true(text_starts_with(TEXT("souk_x"), TEXT("souk_")));
    assert_true(text_ends_with(TEXT("a.gz"), TEXT(".gz")));
    assert_true(text_equal(text_trim(TEXT(" \ta b\n")), TEXT("a b")));
}

TEST(utf8_is_told_from_what_only_looks_like_it)
{
    assert_true(text_is_utf8(TEXT("")));
    assert_true(text_is_utf8(TEXT("souk \xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xaa")));
    assert_false(text_is_utf8(TEXT("cut \xe2\x82")));
    assert_false(text_is_utf8(TEXT("overlong \xc0\xaf")));
    assert_false(text_is_utf8(TEXT("surrogate \xed\xa0\x80")));
    assert_int_equal(text_utf8_length(TEXT("\xe2\x82\xac!")), 3);
}

TEST(a_text_is_a_string_when_all_of_it_is)
{
    assert_true(text_is(TEXT("owl"), "owl"));
    assert_false(text_is(TEXT("owl"), "owls"));
    assert_false(text_is(TEXT("owls"), "owl"));
    assert_false(text_is(TEXT("own"), "owl"));
    const char *const word = "owl\0owls"; /* what lies behind a string is not looked at */
    assert_false(text_is(TEXT("owl\0"), word));
    assert_false(text_is(TEXT("owl\0owls"), word));
    assert_false(text_is(TEXT(""), ""));
    assert_false(text_is((struct text){"owl", 2}, "owl"));
}

TEST(plain_text_moves_no_cursor_and_turns_no_line)
{
    const char *const plain[] = {"", "souk \xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xaa", "=1+2 \"q\" ~"};
    const struct {
        const char *text, *made;
    } others[] = {
        {"\x1b[2Jgone", "?[2Jgone"},
        {"two\nlines\r\tx", "two?lines??x"},
        {"\x7f", "?"},
        {"csi \xc2\x9b"
         "2J",
         "csi ?2J"},
        {"\xc2\x80 \xc2\x9f \xc2\xa0", "? ? \xc2\xa0"},
        {"exe\xe2\x80\xaetxt.c", "exe?txt.c"},
        {"\xe2\x81\xa6 \xe2\x80\xa8 \xd8\x9c", "? ? ?"},
        {"no \x9b utf8 \xe2\x82", "no ? utf8 ??"},
    };
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        assert_true(text_is_plain(text_of(plain[i])));
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        char text[40];
        snprintf(text, sizeof(text), "%s", others[i].text);
        assert_false(text_is_plain(text_of(text)));
        text_make_plain(text);
        assert_string_equal(text, others[i].made);
        assert_true(text_is_plain(text_of(text)));
    }
    assert_false(text_is_plain((struct text){"a\0b", 3}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_must_fill_the_whole_text_and_fit),
        cmocka_unit_test(a_real_number_is_finite),
        cmocka_unit_test(cut_gives_head_and_tail_or_all),
        cmocka_unit_test(hex_goes_there_and_back_and_refuses_the_rest),
        cmocka_unit_test(copy_refuses_what_does_not_fit_or_hides_a_zero),
        cmocka_unit_test(comparison_orders_prefixes_first),
        cmocka_unit_test(utf8_is_told_from_what_only_looks_like_it),
        cmocka_unit_test(plain_text_moves_no_cursor_and_turns_no_line),
        cmocka_unit_test(a_text_is_a_string_when_all_of_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
