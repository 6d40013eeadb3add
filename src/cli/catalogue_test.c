/* What job files may name is what the parts below can do: the tables lie on floors of their own. */
#include "base/arena.h"
#include "runtime/job_spec.h"
#include "sync/policy.h"
#include "testing/testing.h"
#include "train/dataset_catalogue.h"
#include "train/model_spec.h"

#include <string.h>

static void assert_taken(const char *model, const char *data, const char *search)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    const char *json = arena_format(arena,
                                    "{\"name\":\"j\",\"train\":{\"model\":\"%s\",\"data\":\"%s\"},"
                                    "\"sync\":{\"search\":\"%s\"}}",
                                    model, data, search);
    ASSERT_OK(job_spec_read(arena, text_of(json), &spec, &error));
}

TEST(every_built_in_model_can_be_named)
{
    assert_non_null(model_kind_names[0]);
    /* A file's shape is not known yet, so that no model is too much for it but one of images. */
    for (size_t i = 0; model_kind_names[i]; i++)
        if (i != MODEL_LAYERS)
            assert_taken(model_kind_names[i], i == MODEL_LENET5 ? "mnist" : "rows.csv", "auto");
}

TEST(data_sets_that_can_be_named_are_those_of_the_catalogue)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    const struct text unknown =
        TEXT("{\"name\":\"j\",\"train\":{\"model\":\"mlp\",\"data\":\"zzzzzzzzzzzz\"}}");
    ASSERT_FAILS(job_spec_read(arena, unknown, &spec, &error), ERROR_INVALID);
    const char *names = strstr(error.message, "one of ");
    assert_non_null(names);
    struct text rest = text_of(names + strlen("one of ")), name;
    size_t count = 0;
    for (bool has_more = true; has_more; count++) {
        has_more = text_cut(rest, ',', &name, &rest);
        name = text_trim(name);
        const struct dataset_entry *entry;
        ASSERT_OK(dataset_entry_find(name, &entry, &error));
        assert_taken("mlp", entry->name, "auto");
    }
    assert_int_equal(count, dataset_entry_count());
}

TEST(every_search_of_adsp_can_be_named)
{
    for (int i = 0; i < SYNC_SEARCH_COUNT; i++)
        assert_taken("mlp", "mnist", sync_search_name((enum sync_search)i));
}

TEST(policies_that_can_be_named_are_those_of_sync)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    const char *name;
    for (uint32_t i = 0; (name = sync_policy_name_at(i)); i++) {
        const char *json = arena_format(arena,
                                        "{\"name\":\"j\",\"train\":{\"model\":\"mlp\",\"data\":"
                                        "\"mnist\"},\"sync\":{\"policy\":\"%s\"}}",
                                        name);
        ASSERT_OK(job_spec_read(arena, text_of(json), &spec, &error));
        struct sync_policy *policy = NULL;
        ASSERT_OK(sync_policy_new(spec.sync.policy, &(struct sync_settings){.gamma_ms = 1}, &policy,
                                  &error));
        sync_policy_free(policy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_built_in_model_can_be_named),
        cmocka_unit_test(data_sets_that_can_be_named_are_those_of_the_catalogue),
        cmocka_unit_test(every_search_of_adsp_can_be_named),
        cmocka_unit_test(policies_that_can_be_named_are_those_of_sync),
    };
    return cmocka_run_group_tests_name("catalogue", tests, NULL, NULL);
}
