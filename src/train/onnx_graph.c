#include "train/onnx_graph.h"

#include "base/assert.h"

#include <string.h>

enum { DECLARED_MAX = 4 };

void onnx_graph_init(struct onnx_graph *graph, struct arena *arena, const char *name,
                     size_t node_max, size_t initializer_max)
{
    *graph = (struct onnx_graph){
        .arena = arena, .node_max = node_max, .initializer_max = initializer_max};
    Onnx__GraphProto *proto = &graph->proto;
    onnx__graph_proto__init(proto);
    proto->name = arena_copy_string(arena, text_of(name));
    proto->node = arena_alloc(arena, node_max * sizeof(*proto->node));
    proto->initializer = arena_alloc(arena, initializer_max * sizeof(*proto->initializer));
    proto->input = arena_alloc(arena, DECLARED_MAX * sizeof(*proto->input));
    proto->output = arena_alloc(arena, DECLARED_MAX * sizeof(*proto->output));
}

static char *value_new(struct onnx_graph *graph, const char *what)
{
    return arena_format(graph->arena, "%s_%u", what, ++graph->value_count);
}

static char *copy(struct onnx_graph *graph, const char *string)
{
    return arena_copy_string(graph->arena, text_of(string));
}

static Onnx__AttributeProto *attribute_new(struct onnx_graph *graph,
                                           const struct onnx_attribute *attribute)
{
    Onnx__AttributeProto *proto = arena_alloc(graph->arena, sizeof(*proto));
    onnx__attribute_proto__init(proto);
    proto->name = copy(graph, attribute->name);
    proto->has_type = true;
    switch (attribute->kind) {
    case ONNX_INT:
        proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        proto->has_i = true;
        proto->i = attribute->number;
        break;
    case ONNX_FLOAT:
        proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        proto->has_f = true;
        proto->f = (float)attribute->real;
        break;
    case ONNX_INTS:
        proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        proto->n_ints = attribute->list_count;
        proto->ints = arena_alloc(graph->arena, sizeof(attribute->list));
        memcpy(proto->ints, attribute->list, sizeof(attribute->list));
        break;
    }
    return proto;
}

const char *onnx_graph_node(struct onnx_graph *graph, const struct onnx_node *node)
{
    enum { INPUTS_MAX = sizeof(node->inputs) / sizeof(*node->inputs) };
    enum { ATTRIBUTES_MAX = sizeof(node->attributes) / sizeof(*node->attributes) };
    ASSERT(graph->proto.n_node < graph->node_max);
    Onnx__NodeProto *proto = arena_alloc(graph->arena, sizeof(*proto));
    onnx__node_proto__init(proto);
    proto->op_type = copy(graph, node->type);
    proto->input = arena_alloc(graph->arena, INPUTS_MAX * sizeof(*proto->input));
    while (proto->n_input < INPUTS_MAX && node->inputs[proto->n_input]) {
        proto->input[proto->n_input] = copy(graph, node->inputs[proto->n_input]);
        proto->n_input++;
    }
    proto->n_output = node->output_place + 1;
    proto->output = arena_alloc(graph->arena, proto->n_output * sizeof(*proto->output));
    for (size_t i = 0; i < node->output_place; i++)
        proto->output[i] = copy(graph, "");
    char *output = node->output ? copy(graph, node->output) : value_new(graph, node->type);
    proto->output[node->output_place] = output;
    proto->name = arena_format(graph->arena, "node_%s", output);
    proto->attribute = arena_alloc(graph->arena, ATTRIBUTES_MAX * sizeof(*proto->attribute));
    while (proto->n_attribute < ATTRIBUTES_MAX && node->attributes[proto->n_attribute].name) {
        proto->attribute[proto->n_attribute] =
            attribute_new(graph, &node->attributes[proto->n_attribute]);
        proto->n_attribute++;
    }
    graph->proto.node[graph->proto.n_node++] = proto;
    return output;
}

static Onnx__TensorProto *tensor_new(struct onnx_graph *graph, const char *name,
                                     const int64_t *shape, size_t rank)
{
    ASSERT(graph->proto.n_initializer < graph->initializer_max);
    Onnx__TensorProto *proto = arena_alloc(graph->arena, sizeof(*proto));
    onnx__tensor_proto__init(proto);
    proto->name = name ? copy(graph, name) : value_new(graph, "constant");
    proto->has_data_type = proto->has_raw_data = true;
    proto->n_dims = rank;
    proto->dims = arena_alloc(graph->arena, (rank + 1) * sizeof(*proto->dims));
    for (size_t i = 0; i < rank; i++)
        proto->dims[i] = shape[i];
    graph->proto.initializer[graph->proto.n_initializer++] = proto;
    return proto;
}

const char *onnx_graph_floats(struct onnx_graph *graph, const char *name, const float *values,
                              const int64_t *shape, size_t rank)
{
    Onnx__TensorProto *tensor = tensor_new(graph, name, shape, rank);
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= (size_t)shape[i];
    tensor->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    tensor->raw_data.len = count * sizeof(float);
    /* Only read, but the library's type has no const. */
    memcpy(&tensor->raw_data.data, &values, sizeof(values));
    return tensor->name;
}

const char *onnx_graph_float(struct onnx_graph *graph, float value)
{
    float *copied = arena_alloc(graph->arena, sizeof(*copied));
    *copied = value;
    return onnx_graph_floats(graph, NULL, copied, NULL, 0);
}

const char *onnx_graph_ints(struct onnx_graph *graph, const int64_t *values, size_t count)
{
    const int64_t shape[] = {(int64_t)count};
    Onnx__TensorProto *tensor = tensor_new(graph, NULL, shape, 1);
    tensor->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    tensor->raw_data.len = count * sizeof(*values);
    tensor->raw_data.data = arena_alloc(graph->arena, tensor->raw_data.len);
    memcpy(tensor->raw_data.data, values, tensor->raw_data.len);
    return tensor->name;
}

static Onnx__TensorShapeProto__Dimension *dimension_new(struct onnx_graph *graph)
{
    Onnx__TensorShapeProto__Dimension *dimension = arena_alloc(graph->arena, sizeof(*dimension));
    onnx__tensor_shape_proto__dimension__init(dimension);
    return dimension;
}

static Onnx__TensorShapeProto *shape_new(struct onnx_graph *graph, const uint64_t *shape,
                                         size_t rank)
{
    Onnx__TensorShapeProto *proto = arena_alloc(graph->arena, sizeof(*proto));
    onnx__tensor_shape_proto__init(proto);
    proto->dim = arena_alloc(graph->arena, (rank + 1) * sizeof(*proto->dim));
    proto->n_dim = rank + 1;
    proto->dim[0] = dimension_new(graph);
    proto->dim[0]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    proto->dim[0]->dim_param = copy(graph, "batch");
    for (size_t i = 0; i < rank; i++) {
        proto->dim[i + 1] = dimension_new(graph);
        proto->dim[i + 1]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        proto->dim[i + 1]->dim_value = (int64_t)shape[i];
    }
    return proto;
}

void onnx_graph_declare(struct onnx_graph *graph, enum onnx_side side, const char *name,
                        bool is_whole_numbers, const uint64_t *shape, size_t rank)
{
    Onnx__TypeProto__Tensor *tensor = arena_alloc(graph->arena, sizeof(*tensor));
    onnx__type_proto__tensor__init(tensor);
    tensor->has_elem_type = true;
    tensor->elem_type = is_whole_numbers ? (int)ONNX__TENSOR_PROTO__DATA_TYPE__INT64
                                         : (int)ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    tensor->shape = shape_new(graph, shape, rank);
    Onnx__TypeProto *type = arena_alloc(graph->arena, sizeof(*type));
    onnx__type_proto__init(type);
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    Onnx__ValueInfoProto *info = arena_alloc(graph->arena, sizeof(*info));
    onnx__value_info_proto__init(info);
    info->name = copy(graph, name);
    info->type = type;
    size_t *count = side == ONNX_INPUT ? &graph->proto.n_input : &graph->proto.n_output;
    ASSERT(*count < DECLARED_MAX);
    (side == ONNX_INPUT ? graph->proto.input : graph->proto.output)[(*count)++] = info;
}
