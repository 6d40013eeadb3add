#include "cloud/config.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL "\"image\":\"ami-1\",\"instances_max\":4,\"usd_per_hour_max\":1.5"
#define KEYS  "\"access_key_id\":\"AKID\",\"secret_access_key\":\"very-secret\""

static char path[] = "/tmp/config_test_XXXXXX";

static void write_file(const char *json, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(json, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void forget_environment(void)
{
    for (size_t i = 0; remote_credential_name(i); i++)
        unsetenv(remote_credential_name(i)); /* NOLINT(concurrency-mt-unsafe): no threads */
}

static void set_environment(const char *name, const char *value)
{
    setenv(name, value, 1); /* NOLINT(concurrency-mt-unsafe): no threads */
}

TEST(the_least_that_is_needed_is_enough)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct cloud_config config;
    struct error error;
    write_file("{" SMALL "," KEYS "}", 0600);
    ASSERT_OK(cloud_config_read(arena, path, &config, &error));
    assert_true(text_equal(config.region, TEXT("us-east-1")));
    assert_int_equal(config.usd_micro_per_hour_max, 1500000);
    assert_int_equal(config.instances_max, 4);
    assert_int_equal(config.idle_ms, 600000);
    assert_int_equal(config.hours_max, 24);
    assert_string_equal(config.credentials.access_key, "AKID");
    assert_false(config.is_for_jobs);
    remote_credentials_wipe(&config.credentials);
}

TEST(keys_that_others_may_read_are_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct cloud_config config;
    struct error error;
    write_file("{" SMALL "," KEYS "}", 0640);
    ASSERT_FAILS(cloud_config_read(arena, path, &config, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "chmod 600"));
    assert_null(strstr(error.message, "very-secret"));
    write_file("{" SMALL "}", 0644);
    ASSERT_FAILS(cloud_config_read(arena, path, &config, &error), ERROR_REFUSED);
    assert_non_null(strstr(error.message, "AWS_ACCESS_KEY_ID"));
}

TEST(keys_may_be_the_environment_s)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct cloud_config config;
    struct error error;
    set_environment("AWS_ACCESS_KEY_ID", "other");
    set_environment("AWS_SECRET_ACCESS_KEY", "other-secret");
    set_environment("AWS_SESSION_TOKEN", "token");
    set_environment("AWS_REGION", "eu-west-1");
    write_file("{" SMALL "}", 0644);
    ASSERT_OK(cloud_config_read(arena, path, &config, &error));
    assert_string_equal(config.credentials.access_key, "other");
    assert_string_equal(config.credentials.session_token, "token");
    assert_true(text_equal(config.region, TEXT("eu-west-1")));
    /* The file's count more, and are not mixed with them. */
    write_file("{\"region\":\"us-west-2\"," SMALL "," KEYS "}", 0600);
    ASSERT_OK(cloud_config_read(arena, path, &config, &error));
    assert_string_equal(config.credentials.access_key, "AKID");
    assert_string_equal(config.credentials.session_token, "");
    assert_string_equal(config.credentials.region, "us-west-2");
    remote_credentials_wipe(&config.credentials);
    forget_environment();
}

TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"{\"image\":\"ami-1\",\"usd_per_hour_max\":1," KEYS "}", "instances_max"},
        {"{\"instances_max\":1,\"usd_per_hour_max\":1," KEYS "}", "cloud.image"},
        {"{\"image\":\"ami-1\",\"instances_max\":1,\"usd_per_hour_max\":0," KEYS "}",
         "usd_per_hour_max"},
        {"{\"image\":\"ami-1\",\"instances_max\":0,\"usd_per_hour_max\":1," KEYS "}",
         "instances_max"},
        {"{" SMALL ",\"image\":\"a'b\"," KEYS "}", "image"},
        {"{" SMALL ",\"zones\":[\"us east\"]," KEYS "}", "cloud.zones"},
        {"{" SMALL ",\"package_url\":\"http://example.org/x.deb\"," KEYS "}", "package_url"},
        {"{" SMALL ",\"endpoint_url\":\"https://a'b\"," KEYS "}", "endpoint_url"},
        {"{" SMALL ",\"package_sha256\":\"abc\"," KEYS "}", "package_sha256"},
        {"{" SMALL ",\"credits_per_usd\":-1," KEYS "}", "credits_per_usd"},
        {"{" SMALL ",\"regoin\":\"x\"," KEYS "}", "regoin"},
        {"[]", "cloud"},
    };
    struct error error;
    struct cloud_config config;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        AUTO(arena) struct arena *arena = arena_new(0);
        write_file(cases[i].json, 0600);
        assert_int_equal(cloud_config_read(arena, path, &config, &error), -1);
        if (!strstr(error.message, cases[i].message) || strstr(error.message, "very-secret"))
            fail_msg("case %zu: \"%s\" has no \"%s\"", i, error.message, cases[i].message);
    }
}

int main(void)
{
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    forget_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_that_is_needed_is_enough),
        cmocka_unit_test(keys_that_others_may_read_are_refused),
        cmocka_unit_test(keys_may_be_the_environment_s),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
