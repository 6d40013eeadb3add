/* Accounts, tokens and names; covers account.c, name.c. */
#include "market/account.h"
#include "testing/testing.h"

TEST(a_name_is_short_and_plain)
{
    struct error error = {0};
    ASSERT_OK(name_check(TEXT("heron-2"), "machine", &error));
    ASSERT_OK(name_check(TEXT("a123456789012345678901234567890123456789"), "account", &error));
    ASSERT_FAILS(name_check(TEXT("a1234567890123456789012345678901234567890"), "account", &error),
                 ERROR_INVALID);
    ASSERT_FAILS(name_check(TEXT(""), "account", &error), ERROR_INVALID);
    ASSERT_FAILS(name_check(TEXT("Heron"), "account", &error), ERROR_INVALID);
    ASSERT_FAILS(name_check(TEXT("a b"), "account", &error), ERROR_INVALID);
    assert_true(name_is_reserved(TEXT("mint")));
    assert_false(name_is_reserved(TEXT("mints")));
}

TEST(text_for_people_is_utf8_without_control_characters)
{
    struct error error = {0};
    ASSERT_OK(name_check_text(TEXT("caf\xc3\xa9\n"), "label", 10, &error));
    ASSERT_FAILS(name_check_line(TEXT("caf\xc3\xa9\n"), "label", 10, &error), ERROR_INVALID);
    ASSERT_FAILS(name_check_line(TEXT("caf\xc2\x9b"), "label", 10, &error), ERROR_INVALID);
    ASSERT_FAILS(name_check_line(TEXT("eleven byte"), "label", 10, &error), ERROR_INVALID);
    ASSERT_OK(name_check_line(TEXT("caf\xc3\xa9"), "label", 10, &error));
    ASSERT_FAILS(name_check_text(TEXT("caf\xe9"), "label", 10, &error), ERROR_INVALID);
    ASSERT_FAILS(name_check_text(TEXT("\x1b[2J"), "label", 10, &error), ERROR_INVALID);
    ASSERT_FAILS(name_check_text(TEXT("eleven byte"), "label", 10, &error), ERROR_INVALID);
    ASSERT_FAILS(name_check_text((struct text){"a\0b", 3}, "label", 10, &error), ERROR_INVALID);
}

TEST(a_token_allows_its_scopes_until_it_expires_or_is_revoked)
{
    struct token token = {.scopes = TOKEN_SCOPE_READ | TOKEN_SCOPE_LEND, .expires_ms = 1000};
    assert_true(token_allows(&token, TOKEN_SCOPE_LEND, 999));
    assert_false(token_allows(&token, TOKEN_SCOPE_LEND, 1000));
    assert_false(token_allows(&token, TOKEN_SCOPE_READ | TOKEN_SCOPE_BORROW, 999));
    token.expires_ms = 0;
    assert_true(token_allows(&token, TOKEN_SCOPE_READ, INT64_MAX));
    token.is_revoked = true;
    assert_false(token_allows(&token, TOKEN_SCOPE_READ, 0));
    assert_string_equal(code_kind_name(CODE_KIND_ENROL), "enrol");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_short_and_plain),
        cmocka_unit_test(text_for_people_is_utf8_without_control_characters),
        cmocka_unit_test(a_token_allows_its_scopes_until_it_expires_or_is_revoked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
