#include "runtime/job_file.h"
#include "testing/testing.h"

#include <string.h>

static void canonical(const struct job_spec *spec, struct buffer *json)
{
    buffer_init(json, JOB_SPEC_SIZE_MAX);
    job_spec_write(spec, json);
}

/* Read, written and read again it is the same. */
static const char *round_trip(struct arena *arena, const char *file)
{
    struct error error;
    struct job_spec spec, again;
    struct buffer yaml AUTO_BUFFER, before AUTO_BUFFER, after AUTO_BUFFER;
    buffer_init(&yaml, JOB_SPEC_SIZE_MAX);
    ASSERT_OK(job_file_parse(arena, text_of(file), "job", &spec, NULL, &error));
    ASSERT_OK(job_file_write(arena, &spec, &yaml, &error));
    ASSERT_OK(job_file_parse(arena, buffer_text(&yaml), "job", &again, NULL, &error));
    canonical(&spec, &before);
    canonical(&again, &after);
    assert_string_equal(buffer_string(&before), buffer_string(&after));
    return arena_copy_string(arena, buffer_text(&yaml));
}

TEST(a_job_is_written_as_people_would)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *yaml = round_trip(arena, "name: digits\n"
                                         "num_nodes: 2..4\n"
                                         "train: {model: lenet5, data: mnist, batch: 64}\n"
                                         "market: {max_total_cost: 1.5, max_run_time: 3m}\n");
    assert_non_null(strstr(yaml, "name: digits\n"));
    assert_non_null(strstr(yaml, "\ntrain:\n  model: lenet5\n  data: mnist\n"));
    assert_non_null(strstr(yaml, "  batch: 64\n"));
    assert_non_null(strstr(yaml, "  optimizer: {name: sgd, "));
}

TEST(layers_have_a_line_each)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *yaml =
        round_trip(arena, "name: own\n"
                          "train:\n"
                          "  data: mnist\n"
                          "  layers: [{type: conv, outputs: 16, kernel: 3, pad: 1}, {type: relu},\n"
                          "           {type: max_pool, kernel: 2}, {type: dropout, rate: 0.25},\n"
                          "           {type: dense}]\n");
    assert_non_null(strstr(yaml, "  layers:\n  - {type: conv, "));
    assert_non_null(strstr(yaml, "  - {type: relu}\n"));
}

TEST(scripts_stay_readable_and_strange_text_survives)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *yaml = round_trip(
        arena, "name: shell\n"
               "envs: {YES: \"yes\", EMPTY: \"\", HASH: \"a # b: c\",\n"
               "       UNICODE: \"caf\\u00e9\\t\\u0001\", NUMBER: \"12\",\n"
               "       BREAKS: \"a\\u0085b\\u2028c\\u2029d\", DELETE: \"a\\u007fb\\u0090\",\n"
               "       MARK: \"\\ufeffa\\ufffe\\uffff\", LAUGH: \"\\U0001f600\"}\n"
               "setup: \"  indented first\\n\\n\\n\"\n"
               "run: |\n"
               "  set -e\n"
               "\n"
               "  for i in 1 2; do\n"
               "    echo \"$i: #\"\n"
               "  done\n");
    assert_non_null(strstr(yaml, "\nrun: |\n  set -e\n\n  for i in 1 2; do\n    echo \"$i: #\"\n"));
    assert_non_null(strstr(yaml, "\"YES\": \"yes\""));
}

/* Written short and read again it is the same. */
static const char *short_trip(struct arena *arena, const char *file)
{
    struct error error;
    struct job_spec spec, again;
    struct buffer yaml AUTO_BUFFER, before AUTO_BUFFER, after AUTO_BUFFER;
    buffer_init(&yaml, JOB_SPEC_SIZE_MAX);
    ASSERT_OK(job_file_parse(arena, text_of(file), "job", &spec, NULL, &error));
    ASSERT_OK(job_file_write_short(arena, &spec, &yaml, &error));
    ASSERT_OK(job_file_parse(arena, buffer_text(&yaml), "job", &again, NULL, &error));
    canonical(&spec, &before);
    canonical(&again, &after);
    assert_string_equal(buffer_string(&before), buffer_string(&after));
    return arena_copy_string(arena, buffer_text(&yaml));
}

TEST(what_nobody_needs_to_say_is_left_out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *yaml = short_trip(arena, "name: digits\n"
                                         "runtime: native\n"
                                         "num_nodes: 1\n"
                                         "resources: {cpus: 1+}\n"
                                         "train: {model: lenet5, data: mnist, batch: 64,\n"
                                         "        optimizer: {name: adam}}\n"
                                         "sync: {policy: auto}\n");
    assert_string_equal(yaml, "name: digits\n"
                              "train:\n"
                              "  model: lenet5\n"
                              "  data: mnist\n"
                              "  optimizer: {name: adam}\n"
                              "  batch: 64\n");
}

TEST(what_was_said_stays_in_a_short_file)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *yaml = short_trip(arena, "name: own\n"
                                         "runtime: torch\n"
                                         "num_nodes: 2..4\n"
                                         "resources: {cpus: 2, labels: [a, b]}\n"
                                         "envs: {A: b}\n"
                                         "run: echo hello\n"
                                         "market: {max_run_time: 3m, start: now}\n");
    assert_non_null(strstr(yaml, "runtime: torch\n"));
    assert_non_null(strstr(yaml, "envs:\n  A: b\n"));
    assert_non_null(strstr(yaml, "max_run_time: "));
    assert_null(strstr(yaml, "train:"));
    assert_null(strstr(yaml, "start:"));
    yaml = short_trip(arena, "name: layers\n"
                             "train:\n"
                             "  data: mnist\n"
                             "  layers: [{type: relu}, {type: dense}]\n");
    assert_non_null(strstr(yaml, "{type: relu}"));
    assert_null(strstr(yaml, "sync:"));
}

TEST(mistakes_are_taken_apart)
{
    struct job_mistake mistake =
        job_mistake_read(TEXT("job:7:12: train.batch: must be from 1 to 65536"), "job");
    assert_int_equal(mistake.line, 7);
    assert_int_equal(mistake.column, 12);
    assert_true(text_equal(mistake.field, TEXT("train.batch")));
    assert_true(text_equal(mistake.text, TEXT("must be from 1 to 65536")));
    mistake = job_mistake_read(TEXT("job:2:1: train.layers[1]: layers: layer 2: no"), "job");
    assert_true(text_equal(mistake.field, TEXT("train.layers[1]")));
    mistake = job_mistake_read(TEXT("job:1:3: a tab may not indent; use spaces"), "job");
    assert_int_equal(mistake.column, 3);
    assert_int_equal(mistake.field.size, 0);
    assert_true(text_equal(mistake.text, TEXT("a tab may not indent; use spaces")));
    mistake = job_mistake_read(TEXT("job: is larger than 65536 bytes"), "job");
    assert_int_equal(mistake.line, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_written_as_people_would),
        cmocka_unit_test(layers_have_a_line_each),
        cmocka_unit_test(scripts_stay_readable_and_strange_text_survives),
        cmocka_unit_test(what_nobody_needs_to_say_is_left_out),
        cmocka_unit_test(what_was_said_stays_in_a_short_file),
        cmocka_unit_test(mistakes_are_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
