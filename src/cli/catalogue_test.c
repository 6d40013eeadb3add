/* What job files may name is what the parts below can do: the tables lie on floors of their own. */
#include "base/arena.h"
#include "runtime/job_spec.h"
#include "sync/policy.h"
#include "testing/testing.h"
#include "train/model_spec.h"

static void assert_taken(const char *model, const char *search)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    const char *json =
        arena_format(arena,
                     "{\"name\":\"j\",\"train\":{\"model\":\"%s\",\"data\":\"mnist\"},"
                     "\"sync\":{\"search\":\"%s\"}}",
                     model, search);
    ASSERT_OK(job_spec_read(arena, text_of(json), &spec, &error));
}

TEST(every_built_in_model_can_be_named)
{
    assert_non_null(model_kind_names[0]);
    for (size_t i = 0; model_kind_names[i]; i++)
        assert_taken(model_kind_names[i], "auto");
}

TEST(every_search_of_adsp_can_be_named)
{
    for (int i = 0; i < SYNC_SEARCH_COUNT; i++)
        assert_taken("mlp", sync_search_name((enum sync_search)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_built_in_model_can_be_named),
        cmocka_unit_test(every_search_of_adsp_can_be_named),
    };
    return cmocka_run_group_tests_name("catalogue", tests, NULL, NULL);
}
