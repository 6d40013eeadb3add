#include "runtime/job_signature.h"
#include "testing/testing.h"

#include <string.h>

static struct job_signature signature_of(const char *rest)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_signature signature;
    struct job_spec spec;
    struct error error;
    ASSERT_OK(job_spec_read(arena, text_of(arena_format(arena, "{\"name\":\"x\",%s}", rest)), &spec,
                            &error));
    job_signature(&spec, &signature);
    return signature;
}

#define TRAIN "\"train\":{\"model\":\"mlp\",\"data\":\"mnist\",\"batch\":32}"

static void assert_alike(const char *one, const char *other, bool are_equal, bool has_one_task)
{
    const struct job_signature left = signature_of(one), right = signature_of(other);
    assert_int_equal(strlen(left.whole), JOB_SIGNATURE_SIZE - 1);
    assert_int_equal(strcmp(left.whole, right.whole) == 0, are_equal);
    assert_int_equal(strcmp(left.task, right.task) == 0, has_one_task);
}

TEST(where_how_long_and_for_how_much_a_job_runs_does_not_matter)
{
    assert_alike(TRAIN,
                 "\"num_nodes\":4,\"resources\":{\"cpus\":2},\"market\":{\"max_total_cost\":3},"
                 "\"train\":{\"model\":\"mlp\",\"data\":\"mnist\",\"batch\":32,\"epochs\":9,"
                 "\"seed\":7,\"target\":{\"accuracy\":0.9}}",
                 true, true);
}

TEST(batch_and_policy_are_another_way_of_the_same_task)
{
    assert_alike(TRAIN, "\"train\":{\"model\":\"mlp\",\"data\":\"mnist\",\"batch\":64}", false,
                 true);
    assert_alike(TRAIN, TRAIN ",\"sync\":{\"policy\":\"bsp\"}", false, true);
}

TEST(another_model_or_other_data_are_another_task)
{
    assert_alike(TRAIN, "\"train\":{\"model\":\"logistic\",\"data\":\"mnist\",\"batch\":32}", false,
                 false);
    assert_alike(TRAIN, "\"train\":{\"model\":\"mlp\",\"data\":\"fashion-mnist\",\"batch\":32}",
                 false, false);
    assert_alike("\"train\":{\"data\":\"mnist\",\"layers\":[{\"type\":\"dense\"}]}",
                 "\"train\":{\"data\":\"mnist\",\"layers\":[{\"type\":\"dense\",\"outputs\":9},"
                 "{\"type\":\"relu\"},{\"type\":\"dense\"}]}",
                 false, false);
}

TEST(a_program_of_the_borrowers_is_known_by_what_it_runs)
{
    assert_alike("\"run\":\"train.py --fast\"", "\"num_nodes\":3,\"run\":\"train.py --fast\"", true,
                 true);
    assert_alike("\"run\":\"train.py --fast\"", "\"run\":\"train.py --slow\"", false, false);
}

/* What was learnt is found by it: it must not change by itself. */
TEST(a_signature_stays_the_same_from_one_release_to_the_next)
{
    const struct job_signature signature = signature_of(TRAIN ",\"sync\":{\"policy\":\"bsp\"}");
    assert_string_equal(signature.task, "3d112f786511762a30bdcaa627c3f065");
    assert_string_equal(signature.whole, "5c7f4f16021f2889cdd41d80314bf397");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_how_long_and_for_how_much_a_job_runs_does_not_matter),
        cmocka_unit_test(batch_and_policy_are_another_way_of_the_same_task),
        cmocka_unit_test(another_model_or_other_data_are_another_task),
        cmocka_unit_test(a_program_of_the_borrowers_is_known_by_what_it_runs),
        cmocka_unit_test(a_signature_stays_the_same_from_one_release_to_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
