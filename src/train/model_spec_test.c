/* covers model_spec.c, model_builtin.c, layer_spec.c, layer_plan.c */
#include "testing/testing.h"
#include "train/model_spec.h"

#include <string.h>

static size_t float_count_of(enum model_kind kind)
{
    struct error error;
    struct model_spec spec;
    struct parameter_table table;
    model_spec_default(kind, &spec);
    ASSERT_OK(model_spec_layout(&spec, &table, &error));
    return table.float_count;
}

TEST(the_built_in_models_have_their_published_sizes)
{
    struct error error;
    struct model_spec spec;
    struct parameter_table table;
    model_spec_default(MODEL_LENET5, &spec);
    ASSERT_OK(model_spec_layout(&spec, &table, &error));
    assert_int_equal(table.float_count, 61706);
    assert_int_equal(table.learned_count, 61706);
    assert_int_equal(table.count, 10);
    assert_string_equal(table.items[0].name, "conv1.weight");
    assert_string_equal(table.items[9].name, "fc3.bias");
    assert_int_equal(table.items[9].offset + table.items[9].count, table.float_count);
    assert_int_equal(table.items[4].shape[1], 400); /* 16 channels of 5 x 5 into fc1 */
    assert_int_equal(float_count_of(MODEL_MLP), 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
    assert_int_equal(float_count_of(MODEL_LOGISTIC), 7850);
    assert_int_equal(float_count_of(MODEL_LINEAR), 9);
    assert_int_equal(float_count_of(MODEL_CIFAR_CNN), 148298); /* as ADSP's authors have it */
    assert_int_equal(float_count_of(MODEL_LSTM), 4 * 128 * (28 + 128 + 2) + 1290);
    assert_int_equal(float_count_of(MODEL_GRU), 3 * 128 * (28 + 128 + 2) + 1290);
    for (int kind = 0; kind < MODEL_LAYERS; kind++)
        assert_true(float_count_of((enum model_kind)kind) > 0);
}

TEST(running_statistics_lie_behind_all_that_is_learned)
{
    struct error error;
    struct model_spec spec;
    struct parameter_table table;
    model_spec_default(MODEL_RESNET, &spec);
    ASSERT_OK(model_spec_layout(&spec, &table, &error));
    size_t states = 0;
    for (uint32_t i = 0; i < table.count; i++) {
        const bool is_state = strstr(table.items[i].name, "running") != NULL;
        assert_int_equal(table.items[i].offset >= table.learned_count, is_state);
        states += is_state ? table.items[i].count : 0;
    }
    assert_int_equal(table.learned_count + states, table.float_count);
    assert_int_equal(states, 2 * (7 * 16 + 6 * 32 + 6 * 64));
}

TEST(every_built_in_survives_json)
{
    struct error error;
    for (int kind = 0; kind < MODEL_LAYERS; kind++) {
        struct model_spec spec, back;
        model_spec_default((enum model_kind)kind, &spec);
        struct buffer buffer AUTO_BUFFER;
        buffer_init(&buffer, MODEL_SPEC_JSON_MAX);
        struct json_writer writer;
        json_writer_init(&writer, &buffer);
        model_spec_write(&writer, &spec);
        ASSERT_OK(buffer_check(&buffer, &error));
        AUTO(arena) struct arena *arena = arena_new(0);
        ASSERT_OK(model_spec_read(arena, buffer_text(&buffer), &back, &error));
        assert_true(model_spec_equal(&spec, &back));
        back.layers[0].outputs++;
        assert_false(model_spec_equal(&spec, &back));
    }
}

static void assert_refused(const char *layers, const char *reason)
{
    struct error error;
    struct model_spec spec;
    char json[2048];
    snprintf(json, sizeof(json),
             "{\"kind\":\"layers\",\"loss\":\"cross_entropy\",\"channels\":1,\"height\":28,"
             "\"width\":28,\"classes\":10,\"layers\":[%s]}",
             layers);
    AUTO(arena) struct arena *arena = arena_new(0);
    ASSERT_FAILS(model_spec_read(arena, text_of(json), &spec, &error), ERROR_INVALID);
    if (!strstr(error.message, reason))
        fail_msg("\"%s\" does not say \"%s\"", error.message, reason);
}

TEST(networks_that_cannot_be_built_are_refused_with_layer_and_shape)
{
    assert_refused("", "0 layers");
    assert_refused("{\"type\":\"dense\",\"outputs\":0},{\"type\":\"dense\"}",
                   "layer 1 (dense, of 1 x 28 x 28): outputs is missing");
    assert_refused("{\"type\":\"conv\",\"outputs\":4,\"kernel\":31}",
                   "layer 1 (conv, of 1 x 28 x 28): a kernel of 31 does not fit");
    assert_refused("{\"type\":\"max_pool\",\"kernel\":14},{\"type\":\"max_pool\",\"kernel\":3}",
                   "layer 2 (max_pool, of 1 x 2 x 2): a window of 3 does not fit");
    assert_refused("{\"type\":\"dense\",\"outputs\":9}", "gives 9 outputs");
    assert_refused("{\"type\":\"dense\",\"outputs\":70000},{\"type\":\"dense\"}", "70000");
    assert_refused("{\"type\":\"dense\",\"kernel\":3}", "has no field kernel");
    assert_refused("{\"type\":\"relu\",\"outputs\":3},{\"type\":\"dense\"}", "no field outputs");
    assert_refused("{\"type\":\"conv\",\"outputs\":4,\"kernel\":3,\"pad\":3}", "pad 3");
    assert_refused("{\"type\":\"embedding\",\"outputs\":4},{\"type\":\"dense\"}", "tokens");
    assert_refused("{\"type\":\"residual\",\"back\":1},{\"type\":\"dense\"}", "before the first");
    assert_refused("{\"type\":\"dense\",\"outputs\":5},{\"type\":\"residual\",\"back\":1},"
                   "{\"type\":\"dense\"}",
                   "cannot be added");
    assert_refused("{\"type\":\"dropout\",\"rate\":1.5},{\"type\":\"dense\"}", "rate 1.5");
    assert_refused("{\"type\":\"conv\",\"outputs\":3,\"kernel\":3},"
                   "{\"type\":\"lstm\",\"outputs\":3},{\"type\":\"dense\"}",
                   "takes a sequence");
    assert_refused("{\"type\":\"dense\",\"outputs\":65536},{\"type\":\"dense\",\"outputs\":65536},"
                   "{\"type\":\"dense\"}",
                   "parameters");
    assert_refused("{\"type\":\"thick\"}", "layers[0].type");
}

TEST(tokens_need_an_embedding_and_a_loss_its_outputs)
{
    struct error error;
    struct model_spec spec;
    model_spec_default(MODEL_TEXT_CNN, &spec);
    memmove(spec.layers, spec.layers + 1, sizeof(*spec.layers) * 5);
    spec.layer_count = 5;
    ASSERT_FAILS(model_spec_check(&spec, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "embedding"));
    model_spec_default(MODEL_CHAR_LSTM, &spec);
    spec.loss = LOSS_HINGE;
    int layer;
    ASSERT_FAILS(model_spec_check_layers(&spec, &layer, &error), ERROR_INVALID);
    assert_int_equal(layer, 2);
    model_spec_default(MODEL_LOGISTIC, &spec);
    spec.classes = 1;
    ASSERT_FAILS(model_spec_check_layers(&spec, &layer, &error), ERROR_INVALID);
    assert_int_equal(layer, -1);
    spec.loss = LOSS_LOGISTIC;
    spec.classes = 2;
    ASSERT_OK(model_spec_check(&spec, &error));
}

TEST(model_names_are_parsed_and_unknown_ones_refused)
{
    struct error error;
    enum model_kind kind;
    for (int i = 0; i < MODEL_KIND_COUNT; i++) {
        ASSERT_OK(model_kind_parse(text_of(model_kind_names[i]), &kind, &error));
        assert_int_equal(kind, i);
    }
    ASSERT_FAILS(model_kind_parse(TEXT("alexnet"), &kind, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "alexnet"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_built_in_models_have_their_published_sizes),
        cmocka_unit_test(running_statistics_lie_behind_all_that_is_learned),
        cmocka_unit_test(every_built_in_survives_json),
        cmocka_unit_test(networks_that_cannot_be_built_are_refused_with_layer_and_shape),
        cmocka_unit_test(tokens_need_an_embedding_and_a_loss_its_outputs),
        cmocka_unit_test(model_names_are_parsed_and_unknown_ones_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
