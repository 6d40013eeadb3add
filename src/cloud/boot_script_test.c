#include "cloud/boot_script.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static const struct boot_script plain = {
    .life_minutes = 57,
    .server_url = "http://127.0.0.1:7600",
    .code = "enrol_abc",
    .name = "cloud-1",
};

TEST(it_ends_by_itself_before_it_does_anything)
{
    struct buffer out AUTO_BUFFER;
    struct error error;
    buffer_init(&out, 1 << 16);
    ASSERT_OK(boot_script_write(&plain, &out, &error));
    const char *text = buffer_string(&out);
    const char *end = strstr(text, "shutdown -P +57\n");
    assert_non_null(end);
    /* If that cannot be set it ends at once. */
    assert_true(strstr(text, "trap 'shutdown -P now' EXIT\n") < end);
    assert_true(
        end <
        strstr(text, "souk lend --server 'http://127.0.0.1:7600' --name 'cloud-1' --memory 85%"));
    assert_non_null(strstr(text, "export SOUK_LEND_CODE='enrol_abc'\n"));
    assert_null(strstr(text, "FINGERPRINT"));
    assert_null(strstr(text, "curl"));
}

/* Of arguments everybody may read on the instance, the code is none. */
TEST(the_package_is_checked_and_the_key_pinned)
{
    struct boot_script script = plain;
    struct buffer out AUTO_BUFFER;
    struct error error;
    script.package_url = TEXT("https://example.org/souk.deb?a=1&b=2");
    script.package_sha256 =
        TEXT("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    script.fingerprint = "ab12";
    buffer_init(&out, 1 << 16);
    ASSERT_OK(boot_script_write(&script, &out, &error));
    const char *text = buffer_string(&out);
    assert_non_null(strstr(text, "'https://example.org/souk.deb?a=1&b=2'"));
    assert_non_null(strstr(text, "e3b0c44298fc"));
    assert_non_null(strstr(text, "export SOUK_FINGERPRINT='ab12'\n"));
    assert_null(strstr(text, "--code"));
    FILE *shell = popen("sh -n", "w"); /* NOLINT(cert-env33-c): the shell is what reads it */
    assert_non_null(shell);
    fwrite(out.data, 1, out.size, shell);
    assert_int_equal(pclose(shell), 0);
}

TEST(what_would_leave_its_quotes_is_refused)
{
    struct boot_script script = plain;
    struct buffer out AUTO_BUFFER;
    struct error error;
    buffer_init(&out, 1 << 16);
    script.name = "a'; reboot; '";
    ASSERT_FAILS(boot_script_write(&script, &out, &error), ERROR_INVALID);
    script.name = "a\nreboot";
    ASSERT_FAILS(boot_script_write(&script, &out, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_by_itself_before_it_does_anything),
        cmocka_unit_test(the_package_is_checked_and_the_key_pinned),
        cmocka_unit_test(what_would_leave_its_quotes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
