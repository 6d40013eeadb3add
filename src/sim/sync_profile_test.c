/* covers sync_presence.c, sync_profile.c */
#include "base/text.h"
#include "sim/sync_presence.h"
#include "sim/sync_profile.h"
#include "testing/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct sync_profile find(struct arena *arena, const char *name)
{
    struct error error;
    struct sync_profile profile;
    ASSERT_OK(sync_profile_find(arena, name, &profile, &error));
    return profile;
}

TEST(the_testbeds_have_the_heterogeneity_in_their_names)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct {
        const char *name;
        double heterogeneity;
        uint32_t count;
    } expected[] = {{"testbed-h1.45", 1.45, 18},
                    {"testbed-h2.0", 2.0, 18},
                    {"testbed-h2.6", 2.6, 18},
                    {"testbed-h3.2", 3.2, 18},
                    {"testbed36", 3.2, 36}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        const struct sync_profile profile = find(arena, expected[i].name);
        assert_int_equal(profile.machine_count, expected[i].count);
        assert_true(fabs(sync_profile_heterogeneity(&profile) - expected[i].heterogeneity) < 1e-6);
        assert_true(llabs(sync_profile_mean_step_ns(&profile) - 1000000000) < 1000);
        assert_string_equal(profile.machines[0].kind, "t2.large");
    }
    assert_int_equal(find(arena, "delay-5").machines[3].commit_ns, INT64_C(5000000000));
    for (uint32_t i = 0; sync_profile_name_at(i); i++)
        assert_true(find(arena, sync_profile_name_at(i)).machine_count > 0);
}

TEST(a_file_gives_machines_and_mistakes_are_told)
{
    struct error error;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct sync_profile profile;
    const char *good =
        "{\"name\":\"two\",\"machines\":[{\"kind\":\"fast\",\"step_ms\":500,"
        "\"commit_ms\":200,\"mbit\":8,\"cores\":0.4},{\"kind\":\"slow\",\"count\":2,\"step_ms\":"
        "2000}]}";
    ASSERT_OK(sync_profile_read(arena, text_of(good), &profile, &error));
    assert_int_equal(profile.machine_count, 3);
    assert_int_equal(profile.machines[0].step_ns, 500000000);
    assert_int_equal(profile.machines[0].bytes_per_s, 1000000);
    assert_true(fabs(profile.machines[0].cores - 0.4) < 1e-9);
    assert_int_equal(profile.machines[0].quota_ns, 100000000);
    assert_int_equal(profile.machines[2].step_ns, 2000000000);
    assert_true(fabs(sync_profile_heterogeneity(&profile) - 2.0) < 1e-9); /* (2 + .5 + .5)/3/.5 */

    const char *const wrong[] = {
        "{\"machines\":[]}",
        "{\"machines\":[{\"kind\":\"a\"}]}",
        "{\"machines\":[{\"kind\":\"a\",\"step_ms\":0}]}",
        "{\"machines\":[{\"kind\":\"a\",\"step_ms\":10,\"count\":2000}]}",
        "{\"heterogeneity\":2,\"machines\":[{\"kind\":\"a\",\"step_ms\":10,\"count\":2}]}",
        "{\"heterogeneity\":0.5,\"machines\":[{\"kind\":\"a\",\"step_ms\":10}]}",
        "{\"trace\":\"../x\",\"machines\":[{\"kind\":\"a\",\"step_ms\":10}]}",
        "{\"machines\":[{\"kind\":\"a\",\"step_ms\":10}],\"more\":1}",
        "{\"machines\":[{\"kind\":\"a\",\"step_ms\":10,\"cores\":1.5}]}",
        "{\"machines\":[{\"kind\":\"a\",\"step_ms\":10,\"cores\":0.0001}]}",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(sync_profile_read(arena, text_of(wrong[i]), &profile, &error), ERROR_INVALID);
    ASSERT_FAILS(sync_profile_find(arena, "no-such-profile", &profile, &error), ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "testbed-h3.2"));
}

TEST(stays_and_absences_take_as_long_as_asked_for)
{
    struct error error;
    const struct sync_presence_options options = {.machine_count = 40,
                                                  .seed = 2,
                                                  .end_ns = INT64_C(100000) * 1000000000,
                                                  .stay_ms = 300000,
                                                  .absence_ms = 100000};
    AUTO(sync_presence) struct sync_presence *presence = NULL;
    ASSERT_OK(sync_presence_open(&options, &presence, &error));
    double there_s = 0;
    for (uint32_t i = 0; i < options.machine_count; i++) {
        assert_true(sync_presence_at_start(presence, i));
        int64_t before = 0;
        for (uint32_t n = 0;; n++) {
            const int64_t at = sync_presence_change_ns(presence, i, n);
            const int64_t end = at < options.end_ns ? at : options.end_ns;
            assert_true(at > before);
            if (n % 2 == 0)
                there_s += 1e-9 * (double)(end - before);
            before = at;
            if (at == INT64_MAX)
                break;
        }
    }
    assert_true(fabs(there_s / (40 * 100000.0) - 0.75) < 0.02);

    struct sync_presence_options half = options;
    half.absence_ms = 0;
    struct sync_presence *none = NULL;
    ASSERT_FAILS(sync_presence_open(&half, &none, &error), ERROR_INVALID);
}

TEST(machines_follow_traces_at_their_speed)
{
    struct error error;
    char folder[] = "/tmp/souk-presence-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a_1.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"metadata\": {\"gap_seconds\": 100}, \"data\": [1, 1, 0, 0]}", file);
    fclose(file);
    const struct sync_presence_options options = {.machine_count = 3,
                                                  .seed = 1,
                                                  .end_ns = INT64_C(100) * 1000000000,
                                                  .folder = folder,
                                                  .trace_speed = 10};
    AUTO(sync_presence) struct sync_presence *presence = NULL;
    ASSERT_OK(sync_presence_open(&options, &presence, &error));
    for (uint32_t i = 0; i < 3; i++) {
        /* A sample of 100 s lasts 10: it comes or goes every 20 s. */
        const int64_t first = sync_presence_change_ns(presence, i, 0);
        const int64_t second = sync_presence_change_ns(presence, i, 1);
        assert_true(first <= INT64_C(20000000001));
        assert_int_equal(second - first, INT64_C(20000000000));
    }
    unlink(path);
    struct sync_presence *none = NULL;
    ASSERT_FAILS(sync_presence_open(&options, &none, &error), ERROR_NOT_FOUND);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_testbeds_have_the_heterogeneity_in_their_names),
        cmocka_unit_test(a_file_gives_machines_and_mistakes_are_told),
        cmocka_unit_test(stays_and_absences_take_as_long_as_asked_for),
        cmocka_unit_test(machines_follow_traces_at_their_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
