#include "cli/lend_settings.h"
#include "testing/testing.h"

#include <string.h>

static const char *find(const struct option_setting *settings, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(settings[i].key, key))
            return settings[i].value;
    fail_msg("no setting \"%s\"", key);
    return NULL;
}

TEST(nodes_are_told_what_the_partition_was)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *labels[] = {"infiniband", "scratch"};
    const struct lend_options wanted = {.cores = "50%",
                                        .gpus_max = -1,
                                        .network = 1,
                                        .images = 1,
                                        .log_level = 2,
                                        .labels = {labels, 2},
                                        .is_direct = true};
    struct option_setting settings[LEND_SETTING_MAX];
    size_t count = 0;
    struct error error = {0};
    ASSERT_OK(lend_settings_of_nodes(arena, &wanted, settings, &count, &error));
    assert_string_equal(find(settings, count, "cores"), "50%");
    assert_string_equal(find(settings, count, "memory"), "90%");
    assert_string_equal(find(settings, count, "gpus"), "-1");
    assert_string_equal(find(settings, count, "network"), "job");
    assert_string_equal(find(settings, count, "images"), "yes");
    assert_string_equal(find(settings, count, "labels"), "infiniband,scratch");
    assert_string_equal(find(settings, count, "direct"), "true");
    assert_string_equal(find(settings, count, "log_level"), "info");
    assert_null(find(settings, count, "disk"));
    assert_null(find(settings, count, "roles"));
}

TEST(what_is_of_one_machine_alone_is_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct lend_options cases[] = {{.code = "x"},    {.when = "always"}, {.zone = "UTC"},
                                         {.is_new = true}, {.is_same = true},  {.is_doctor = true}};
    struct option_setting settings[LEND_SETTING_MAX];
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t count = 0;
        struct error error = {0};
        ASSERT_FAILS(lend_settings_of_nodes(arena, &cases[i], settings, &count, &error),
                     ERROR_INVALID);
        assert_non_null(strstr(error.message, "is for one machine"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_told_what_the_partition_was),
        cmocka_unit_test(what_is_of_one_machine_alone_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
