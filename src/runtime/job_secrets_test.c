#include "runtime/job_file.h"
#include "runtime/job_secrets.h"
#include "testing/testing.h"

#include <string.h>

static int read_yaml(struct arena *arena, const char *yaml, struct job_spec *out_spec,
                     struct error *error)
{
    return job_file_parse(arena, text_of(yaml), "job.yaml", out_spec, NULL, error);
}

TEST(values_are_written_for_the_market_and_nowhere_else)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec, again;
    ASSERT_OK(read_yaml(arena, "name: j\nrun: env\nsecrets: {TOKEN: hush-1, KEY: 'a\"b'}\n", &spec,
                        &error));
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    job_spec_write(&spec, &json);
    assert_null(strstr(buffer_string(&json), "hush-1"));
    assert_null(strstr(buffer_string(&json), "TOKEN"));
    buffer_clear(&json);
    ASSERT_OK(job_secrets_write_spec(&spec, &json, &error));
    assert_non_null(strstr(buffer_string(&json), "\"TOKEN\":\"hush-1\""));
    ASSERT_OK(job_spec_read(arena, buffer_text(&json), &again, &error));
    assert_int_equal(again.secret_count, 2);
    assert_true(text_is(again.secrets[0].value, "a\"b"));
    assert_true(text_is(again.secrets[1].value, "hush-1"));
    assert_true(text_is(job_secrets_names(arena, &again), "KEY,TOKEN"));
}

TEST(what_the_leases_get_reads_back)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec, got = {0};
    ASSERT_OK(read_yaml(arena, "name: j\nrun: env\nsecrets: {TOKEN: \"x\\ny\"}\n", &spec, &error));
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    ASSERT_OK(job_secrets_write(&spec, &json, &error));
    ASSERT_OK(job_secrets_read(arena, buffer_text(&json), &got, &error));
    assert_int_equal(got.secret_count, 1);
    assert_true(text_is(got.secrets[0].value, "x\ny"));
    ASSERT_FAILS(job_secrets_read(arena, TEXT("{\"secrets\":{\"A B\":\"c\"}}"), &got, &error),
                 ERROR_INVALID);
}

TEST(a_secret_without_a_value_names_the_variable_that_has_it)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_OK(read_yaml(arena,
                        "name: j\nrun: env\nsecrets: {A: null, B: , C: \"${OTHER}\", D: \"\", "
                        "E: \"null\"}\n",
                        &spec, &error));
    assert_true(text_is(spec.secrets[0].source, "A"));
    assert_true(text_is(spec.secrets[1].source, "B"));
    assert_true(text_is(spec.secrets[2].source, "OTHER"));
    assert_int_equal(spec.secrets[3].source.size, 0);
    assert_int_equal(spec.secrets[4].source.size, 0);
    assert_true(text_is(spec.secrets[4].value, "null"));
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    ASSERT_FAILS(job_secrets_write(&spec, &json, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "\"A\" has no value"));
}

TEST(a_value_that_looks_like_a_variable_goes_through_the_market)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_OK(job_spec_read(
        arena, TEXT("{\"name\":\"j\",\"run\":\"env\",\"secrets\":{\"TOKEN\":\"${WORD}\"}}"), &spec,
        &error));
    assert_int_equal(spec.secrets[0].source.size, 0);
    assert_true(text_is(spec.secrets[0].value, "${WORD}"));
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    ASSERT_OK(job_secrets_write(&spec, &json, &error));
    ASSERT_OK(job_spec_read(
        arena, TEXT("{\"name\":\"j\",\"run\":\"env\",\"secrets\":{\"A\":null}}"), &spec, &error));
    ASSERT_FAILS(job_secrets_write(&spec, &json, &error), ERROR_INVALID);
}

TEST(secrets_have_a_maximum_and_are_of_programs_alone)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    struct job_env many[12];
    char value[4001];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    for (int i = 0; i < 12; i++)
        many[i] = (struct job_env){.name = text_of(arena_format(arena, "N%d", i)),
                                   .value = text_of(value)};
    ASSERT_OK(read_yaml(arena, "name: j\nrun: env\n", &spec, &error));
    assert_false(job_spec_has_secrets(&spec));
    spec.secrets = many;
    spec.secret_count = 12;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    ASSERT_FAILS(job_secrets_write(&spec, &json, &error), ERROR_INVALID);
    spec.secret_count = 1;
    assert_true(job_spec_has_secrets(&spec));
    spec.runtime = TEXT("native");
    assert_false(job_spec_has_secrets(&spec));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_written_for_the_market_and_nowhere_else),
        cmocka_unit_test(what_the_leases_get_reads_back),
        cmocka_unit_test(a_secret_without_a_value_names_the_variable_that_has_it),
        cmocka_unit_test(a_value_that_looks_like_a_variable_goes_through_the_market),
        cmocka_unit_test(secrets_have_a_maximum_and_are_of_programs_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
