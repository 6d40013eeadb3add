#include "base/options.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fixture {
    struct arena *arena;
    char etc[64];
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    if (!fixture)
        return -1;
    fixture->arena = arena_new(0);
    snprintf(fixture->etc, sizeof(fixture->etc), "/tmp/souk-zone-test-XXXXXX");
    *state = fixture;
    return mkdtemp(fixture->etc) ? 0 : -1;
}

static const char *path(struct fixture *fixture, const char *name)
{
    return arena_format(fixture->arena, "%s/%s", fixture->etc, name);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    unlink(path(fixture, "timezone"));
    unlink(path(fixture, "localtime"));
    rmdir(fixture->etc);
    arena_free(fixture->arena);
    free(fixture);
    return 0;
}

static const char *zone_with(struct fixture *fixture, const char *variable)
{
    char *environment[] = {variable ? arena_format(fixture->arena, "TZ=%s", variable) : NULL, NULL};
    return options_time_zone(fixture->arena, environment, fixture->etc);
}

static void write_file(struct fixture *fixture, const char *text)
{
    FILE *file = fopen(path(fixture, "timezone"), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void the_variable_comes_first(void **state)
{
    write_file(*state, "Asia/Kolkata\n");
    assert_string_equal(zone_with(*state, "Europe/Berlin"), "Europe/Berlin");
    assert_string_equal(zone_with(*state, ":Europe/Berlin"), "Europe/Berlin");
    /* A rule is not a name. */
    assert_string_equal(zone_with(*state, "CET-1CEST,M3.5.0,M10.5.0"), "Asia/Kolkata");
}

static void then_the_file_then_the_link(void **state)
{
    struct fixture *fixture = *state;
    assert_string_equal(zone_with(fixture, NULL), "UTC");
    assert_int_equal(symlink("/usr/share/zoneinfo/America/New_York", path(fixture, "localtime")),
                     0);
    assert_string_equal(zone_with(fixture, NULL), "America/New_York");
    write_file(fixture, "Asia/Kolkata\n");
    assert_string_equal(zone_with(fixture, NULL), "Asia/Kolkata");
    write_file(fixture, "../../etc/passwd\n");
    assert_string_equal(zone_with(fixture, NULL), "America/New_York");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_variable_comes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(then_the_file_then_the_link, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
