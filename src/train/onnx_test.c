/*
 * What an ONNX file holds, as protobuf reads it back. That other runtimes compute the same from it
 * is tests/reference/test_export.py.
 *
 * covers onnx.c, onnx_graph.c, onnx_layers.c
 */
#include "base/file.h"
#include "onnx.pb-c.h"
#include "testing/testing.h"
#include "train/onnx.h"

#include <stdlib.h>
#include <string.h>

enum { GELU_CONSTANTS = 3 };

struct exported {
    Onnx__ModelProto *model;
    float *parameters;
    struct parameter_table table;
};

static void exported_free(struct exported *exported)
{
    onnx__model_proto__free_unpacked(exported->model, NULL);
    free(exported->parameters);
}

static void export(const struct model_spec *spec, struct exported *out)
{
    struct error error;
    char path[] = "/tmp/onnx_test.XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    ASSERT_OK(model_spec_layout(spec, &out->table, &error));
    out->parameters = malloc(out->table.float_count * sizeof(float));
    assert_non_null(out->parameters);
    for (size_t i = 0; i < out->table.float_count; i++)
        out->parameters[i] = (float)i;
    const struct safetensors_metadata metadata[] = {{"data", "mnist"}};
    ASSERT_OK(onnx_write(path, spec, out->parameters, metadata, 1, &error));
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 64 << 20);
    ASSERT_OK(file_read(path, &bytes, &error));
    unlink(path);
    out->model = onnx__model_proto__unpack(NULL, bytes.size, bytes.data);
    assert_non_null(out->model);
}

static bool is_made_before(const Onnx__GraphProto *graph, size_t node, const char *name)
{
    for (size_t i = 0; i < graph->n_input; i++)
        if (strcmp(graph->input[i]->name, name) == 0)
            return true;
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(graph->initializer[i]->name, name) == 0)
            return true;
    for (size_t i = 0; i < node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            if (strcmp(graph->node[i]->output[k], name) == 0)
                return true;
    return false;
}

/* Values are made before they are used, under names of their own, and weights are all there. */
static void assert_whole(const struct model_spec *spec, size_t constants)
{
    static struct exported exported;
    export(spec, &exported);
    const Onnx__GraphProto *graph = exported.model->graph;
    assert_int_equal(exported.model->opset_import[0]->version, 17);
    assert_string_equal(exported.model->metadata_props[0]->value, "mnist");
    size_t floats = 0;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = graph->initializer[i];
        size_t count = 1;
        for (size_t d = 0; d < tensor->n_dims; d++)
            count *= (size_t)tensor->dims[d];
        const bool is_float = tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
        assert_int_equal(tensor->raw_data.len, count * (is_float ? 4 : 8));
        floats += is_float ? count : 0;
    }
    assert_int_equal(floats, exported.table.float_count + constants);
    for (size_t i = 0; i < graph->n_node; i++) {
        for (size_t k = 0; k < graph->node[i]->n_input; k++)
            assert_true(is_made_before(graph, i, graph->node[i]->input[k]));
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            assert_false(graph->node[i]->output[k][0] &&
                         is_made_before(graph, i, graph->node[i]->output[k]));
    }
    for (size_t i = 0; i < graph->n_output; i++)
        assert_true(is_made_before(graph, graph->n_node, graph->output[i]->name));
    exported_free(&exported);
}

TEST(every_built_in_model_is_a_whole_graph)
{
    for (enum model_kind kind = 0; kind < MODEL_LAYERS; kind++) {
        struct model_spec spec;
        model_spec_default(kind, &spec);
        assert_whole(&spec, 0);
    }
}

TEST(layers_that_no_built_in_model_has_make_whole_graphs)
{
    assert_whole(
        &(struct model_spec){
            .kind = MODEL_LAYERS,
            .channels = 3,
            .height = 8,
            .width = 8,
            .classes = 4,
            .layer_count = 9,
            .layers = {{.type = LAYER_CONV, .outputs = 8, .kernel = 3, .pad = 1},
                       {.type = LAYER_TANH},
                       {.type = LAYER_CONV, .outputs = 8, .kernel = 5, .pad = 2, .stride = 2},
                       {.type = LAYER_SIGMOID},
                       {.type = LAYER_RESIDUAL, .back = 2},
                       {.type = LAYER_AVERAGE_POOL, .kernel = 2, .stride = 1},
                       {.type = LAYER_LAYER_NORM},
                       {.type = LAYER_GELU},
                       {.type = LAYER_DENSE}}},
        GELU_CONSTANTS);
    assert_whole(&(struct model_spec){.kind = MODEL_LAYERS,
                                      .channels = 1,
                                      .height = 2,
                                      .width = 5,
                                      .vocabulary = 3,
                                      .classes = 3,
                                      .layer_count = 3,
                                      .layers = {{.type = LAYER_DENSE, .outputs = 4},
                                                 {.type = LAYER_DROPOUT, .rate = 0.3},
                                                 {.type = LAYER_DENSE}}},
                 0);
    assert_whole(&(struct model_spec){.kind = MODEL_LAYERS,
                                      .channels = 1,
                                      .height = 1,
                                      .width = 9,
                                      .vocabulary = 11,
                                      .classes = 2,
                                      .layer_count = 5,
                                      .layers = {{.type = LAYER_EMBEDDING, .outputs = 6},
                                                 {.type = LAYER_CONV, .outputs = 5, .kernel = 4},
                                                 {.type = LAYER_MAX_POOL, .kernel = 2},
                                                 {.type = LAYER_FLATTEN},
                                                 {.type = LAYER_DENSE}}},
                 0);
}

TEST(inputs_and_outputs_are_as_declared)
{
    struct model_spec spec;
    struct exported exported;
    model_spec_default(MODEL_LENET5, &spec);
    export(&spec, &exported);
    const Onnx__GraphProto *graph = exported.model->graph;
    assert_int_equal(graph->n_input, 1);
    const Onnx__TypeProto__Tensor *input = graph->input[0]->type->tensor_type;
    assert_int_equal(input->shape->n_dim, 4);
    assert_string_equal(input->shape->dim[0]->dim_param, "batch");
    assert_int_equal(input->shape->dim[3]->dim_value, 28);
    assert_int_equal(graph->n_output, 2);
    assert_string_equal(graph->output[1]->name, "probabilities");
    exported_free(&exported);

    model_spec_default(MODEL_CHAR_LSTM, &spec);
    export(&spec, &exported);
    graph = exported.model->graph;
    assert_int_equal(graph->input[0]->type->tensor_type->elem_type,
                     ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
    assert_int_equal(graph->output[0]->type->tensor_type->shape->n_dim, 3);
    exported_free(&exported);

    model_spec_default(MODEL_LINEAR, &spec);
    export(&spec, &exported);
    assert_int_equal(exported.model->graph->n_output, 1);
    exported_free(&exported);
}

TEST(gates_are_in_the_order_of_the_format)
{
    struct model_spec spec;
    struct exported exported;
    model_spec_default(MODEL_LSTM, &spec);
    export(&spec, &exported);
    const Onnx__GraphProto *graph = exported.model->graph;
    const Onnx__TensorProto *w = NULL;
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(graph->initializer[i]->name, "lstm1.W") == 0)
            w = graph->initializer[i];
    assert_non_null(w);
    const size_t gate = (size_t)(w->dims[1] * w->dims[2]) / 4;
    float values[4];
    for (size_t i = 0; i < 4; i++)
        memcpy(&values[i], w->raw_data.data + i * gate * sizeof(float), sizeof(float));
    /* i o f c, of i f g o. */
    assert_true(values[0] == 0 && values[1] == (float)(3 * gate) && values[2] == (float)gate &&
                values[3] == (float)(2 * gate));
    exported_free(&exported);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_built_in_model_is_a_whole_graph),
        cmocka_unit_test(layers_that_no_built_in_model_has_make_whole_graphs),
        cmocka_unit_test(inputs_and_outputs_are_as_declared),
        cmocka_unit_test(gates_are_in_the_order_of_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
