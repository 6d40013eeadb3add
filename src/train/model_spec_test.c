#include "testing/testing.h"
#include "train/model_spec.h"

#include <string.h>

TEST(the_built_in_models_have_their_published_sizes)
{
    struct error error;
    struct model_spec spec;
    struct parameter_table table;
    model_spec_default(MODEL_LENET5, &spec);
    ASSERT_OK(model_spec_layout(&spec, &table, &error));
    assert_int_equal(table.float_count, 61706);
    assert_int_equal(table.count, 10);
    assert_string_equal(table.items[0].name, "conv1.weight");
    assert_string_equal(table.items[9].name, "fc3.bias");
    assert_int_equal(table.items[9].offset + table.items[9].count, table.float_count);
    assert_int_equal(table.items[4].shape[1], 400); /* 16 channels of 5 x 5 into fc1 */
    model_spec_default(MODEL_MLP, &spec);
    ASSERT_OK(model_spec_layout(&spec, &table, &error));
    assert_int_equal(table.float_count, 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
    model_spec_default(MODEL_LOGISTIC, &spec);
    ASSERT_OK(model_spec_layout(&spec, &table, &error));
    assert_int_equal(table.float_count, 7850);
}

TEST(a_spec_survives_json)
{
    struct error error;
    struct model_spec spec, back;
    model_spec_default(MODEL_MLP, &spec);
    spec.channels = 3;
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1024);
    struct json_writer writer;
    json_writer_init(&writer, &buffer);
    model_spec_write(&writer, &spec);
    AUTO(arena) struct arena *arena = arena_new(0);
    ASSERT_OK(model_spec_read(arena, buffer_text(&buffer), &back, &error));
    assert_true(model_spec_equal(&spec, &back));
    back.hidden[1]++;
    assert_false(model_spec_equal(&spec, &back));
}

static void assert_json_refused(const char *json)
{
    struct error error;
    struct model_spec spec;
    AUTO(arena) struct arena *arena = arena_new(0);
    ASSERT_FAILS(model_spec_read(arena, text_of(json), &spec, &error), ERROR_INVALID);
}

TEST(specs_that_cannot_be_built_are_refused)
{
    const char *const head = "\"channels\":1,\"height\":28,\"width\":28,\"classes\":10";
    char json[512];
    snprintf(json, sizeof(json), "{\"kind\":\"mlp\",%s,\"hidden\":[1,2,3,4,5,6,7,8,9]}", head);
    assert_json_refused(json);
    snprintf(json, sizeof(json), "{\"kind\":\"mlp\",%s,\"hidden\":[0]}", head);
    assert_json_refused(json);
    snprintf(json, sizeof(json), "{\"kind\":\"mlp\",%s,\"hidden\":[\"a\"]}", head);
    assert_json_refused(json);
    snprintf(json, sizeof(json), "{\"kind\":\"mlp\",%s,\"hidden\":7}", head);
    assert_json_refused(json);
    snprintf(json, sizeof(json), "{\"kind\":\"mlp\",%s,\"hidden\":[65536,65536]}", head);
    assert_json_refused(json);
    snprintf(json, sizeof(json), "{\"kind\":\"mlp\",%s}", head);
    assert_json_refused(json);
    snprintf(json, sizeof(json), "{\"kind\":\"lenet5\",%s,\"hidden\":[5]}", head);
    assert_json_refused(json);
    assert_json_refused(
        "{\"kind\":\"lenet5\",\"channels\":1,\"height\":8,\"width\":8,\"classes\":10}");
    assert_json_refused(
        "{\"kind\":\"logistic\",\"channels\":1,\"height\":8,\"width\":8,\"classes\":1}");
}

TEST(model_names_are_parsed_and_unknown_ones_refused)
{
    struct error error;
    enum model_kind kind;
    ASSERT_OK(model_kind_parse(TEXT("mlp"), &kind, &error));
    assert_int_equal(kind, MODEL_MLP);
    ASSERT_FAILS(model_kind_parse(TEXT("alexnet"), &kind, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "alexnet"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_built_in_models_have_their_published_sizes),
        cmocka_unit_test(a_spec_survives_json),
        cmocka_unit_test(specs_that_cannot_be_built_are_refused),
        cmocka_unit_test(model_names_are_parsed_and_unknown_ones_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
