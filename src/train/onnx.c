#include "train/onnx.h"

#include "base/assert.h"
#include "base/file.h"
#include "train/onnx_layers.h"

#include <stdlib.h>
#include <string.h>

enum { IR_VERSION = 8, OPSET_VERSION = 17, OWN_NODES = 4, OWN_CONSTANTS = 4 };
#define ONNX_SIZE_MAX ((size_t)1 << 31) /* protobuf's own */

/* Layer by layer; the last value is named "output". */
static int layers_write(struct onnx_graph *graph, const struct model_spec *spec,
                        const struct parameter_table *table, const float *parameters,
                        struct onnx_value *out_value, struct error *error)
{
    struct layer_plan plans[LAYERS_MAX];
    struct onnx_value inputs[LAYERS_MAX];
    uint32_t count, next_parameter = 0;
    int bad_layer;
    if (layer_plan_all(spec, plans, &count, &bad_layer, error) < 0)
        return -1;
    uint64_t shape[MODEL_INPUT_RANK_MAX];
    const uint32_t rank = model_spec_input_shape(spec, shape);
    onnx_graph_declare(graph, ONNX_INPUT, "input", spec->vocabulary > 0 && rank == 1, shape, rank);
    struct onnx_value value = {"input",
                               rank == 3   ? ONNX_IMAGE
                               : rank == 2 ? ONNX_SEQUENCE
                                           : ONNX_ROW,
                               plans[0].input};
    for (uint32_t i = 0; i < count; i++) {
        inputs[i] = value;
        value = onnx_layer(graph, &plans[i], &table->items[next_parameter], parameters, value,
                           inputs[plans[i].from]);
        struct parameter described[LAYER_PARAMETERS_MAX];
        if (plans[i].kind->describe)
            next_parameter += plans[i].kind->describe(&plans[i], described);
    }
    ASSERT(next_parameter == table->count);
    *out_value = value.form == ONNX_SEQUENCE ? value : onnx_as(graph, value, ONNX_ROW);
    return 0;
}

static void outputs_write(struct onnx_graph *graph, const struct model_spec *spec,
                          struct onnx_value value)
{
    const struct layer_shape s = value.shape;
    const bool is_sequence = value.form == ONNX_SEQUENCE;
    const uint64_t sequence[] = {s.height, s.width}, row[] = {layer_shape_size(s)};
    const uint64_t *shape = is_sequence ? sequence : row;
    const size_t rank = is_sequence ? 2 : 1;
    onnx_graph_node(
        graph, &(struct onnx_node){.type = "Identity", .inputs = {value.name}, .output = "output"});
    onnx_graph_declare(graph, ONNX_OUTPUT, "output", false, shape, rank);
    if (spec->loss != LOSS_CROSS_ENTROPY && spec->loss != LOSS_LOGISTIC)
        return;
    struct onnx_node node = {.type = "Sigmoid", .inputs = {value.name}, .output = "probabilities"};
    if (spec->loss == LOSS_CROSS_ENTROPY) {
        node.type = "Softmax";
        node.attributes[0] = ONNX_ATTRIBUTE_INT("axis", -1);
    }
    onnx_graph_node(graph, &node);
    onnx_graph_declare(graph, ONNX_OUTPUT, "probabilities", false, shape, rank);
}

static void metadata_write(struct arena *arena, Onnx__ModelProto *model,
                           const struct safetensors_metadata *metadata, uint32_t count)
{
    model->metadata_props = arena_alloc(arena, (count + 1) * sizeof(*model->metadata_props));
    for (uint32_t i = 0; i < count; i++) {
        Onnx__StringStringEntryProto *entry = arena_alloc(arena, sizeof(*entry));
        onnx__string_string_entry_proto__init(entry);
        entry->key = arena_copy_string(arena, text_of(metadata[i].key));
        entry->value = arena_copy_string(arena, text_of(metadata[i].value));
        model->metadata_props[model->n_metadata_props++] = entry;
    }
}

static int model_save(const char *path, const Onnx__ModelProto *model, struct error *error)
{
    const size_t size = onnx__model_proto__get_packed_size(model);
    if (size > ONNX_SIZE_MAX)
        return error_set(error, ERROR_EXHAUSTED, "%zu bytes are more than a file may have", size);
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return error_set(error, ERROR_EXHAUSTED, "no memory for %zu bytes", size);
    const struct text part = {(const char *)bytes, onnx__model_proto__pack(model, bytes)};
    const int result = file_replace(path, &part, 1, 0644, error);
    free(bytes);
    return result;
}

int onnx_write(const char *path, const struct model_spec *spec, const float *parameters,
               const struct safetensors_metadata *metadata, uint32_t metadata_count,
               struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct parameter_table *table = arena_alloc(arena, sizeof(*table));
    struct onnx_graph graph;
    struct onnx_value value;
    if (model_spec_layout(spec, table, error) < 0)
        return error_wrap(error, "onnx");
    const size_t layers = (size_t)spec->layer_count;
    onnx_graph_init(&graph, arena, model_kind_name(spec->kind),
                    layers * ONNX_LAYER_NODES_MAX + OWN_NODES,
                    layers * ONNX_LAYER_CONSTANTS_MAX + OWN_CONSTANTS);
    if (layers_write(&graph, spec, table, parameters, &value, error) < 0)
        return error_wrap(error, "onnx");
    outputs_write(&graph, spec, value);

    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *opsets[] = {&opset};
    opset.domain = arena_copy_string(arena, TEXT(""));
    opset.has_version = true;
    opset.version = OPSET_VERSION;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    model.has_ir_version = true;
    model.ir_version = IR_VERSION;
    model.producer_name = arena_copy_string(arena, TEXT("souk"));
    model.graph = &graph.proto;
    model.n_opset_import = 1;
    model.opset_import = opsets;
    metadata_write(arena, &model, metadata, metadata_count);
    if (model_save(path, &model, error) < 0)
        return error_wrap(error, "onnx");
    return 0;
}
