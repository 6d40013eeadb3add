#include "train/onnx_layers.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

/* One layer being written down. */
struct writing {
    struct onnx_graph *graph;
    const struct layer_plan *plan;
    const struct parameter *table;
    const float *values;
};

static enum onnx_form form_of(struct layer_shape shape)
{
    if (shape.is_sequence)
        return ONNX_SEQUENCE;
    const bool is_row =
        shape.height * shape.width == 1 || (shape.channels == 1 && shape.height == 1);
    return is_row ? ONNX_ROW : ONNX_IMAGE;
}

static const char *reshape(struct onnx_graph *graph, const char *name, const int64_t *shape,
                           size_t rank)
{
    const char *wanted = onnx_graph_ints(graph, shape, rank);
    return onnx_graph_node(graph, &(struct onnx_node){.type = "Reshape", .inputs = {name, wanted}});
}

struct onnx_value onnx_as(struct onnx_graph *graph, struct onnx_value value, enum onnx_form form)
{
    if (value.form == form)
        return value;
    const struct layer_shape s = value.shape;
    const int64_t image[] = {-1, s.channels, s.height, s.width};
    const int64_t sequence[] = {-1, s.height, s.width};
    const int64_t row[] = {-1, layer_shape_size(s)};
    value.name = form == ONNX_IMAGE      ? reshape(graph, value.name, image, 4)
                 : form == ONNX_SEQUENCE ? reshape(graph, value.name, sequence, 3)
                                         : reshape(graph, value.name, row, 2);
    value.form = form;
    return value;
}

/* A parameter of the layer as it lies, under its own name. */
static const char *weight(const struct writing *writing, uint32_t index)
{
    const struct parameter *parameter = &writing->table[index];
    int64_t shape[4];
    for (uint32_t i = 0; i < parameter->rank; i++)
        shape[i] = parameter->shape[i];
    return onnx_graph_floats(writing->graph, parameter->name, writing->values + parameter->offset,
                             shape, parameter->rank);
}

static const char *simple(const struct writing *writing, const char *type, const char *left,
                          const char *right)
{
    return onnx_graph_node(writing->graph,
                           &(struct onnx_node){.type = type, .inputs = {left, right}});
}

/* The weights at the row's places, [entries, outputs], times the numbers there, [1, entries]. */
static const char *sparse(const struct writing *writing, struct onnx_value input)
{
    struct onnx_graph *graph = writing->graph;
    const int64_t entries = writing->plan->input.width, outputs = writing->plan->output.channels;
    const int64_t flat[] = {-1, entries}, row[] = {-1, outputs}, first = 0, second = 1;
    struct onnx_node part = {.type = "Gather",
                             .inputs = {input.name, onnx_graph_ints(graph, &first, 1)},
                             .attributes = {ONNX_ATTRIBUTE_INT("axis", 1)}};
    const char *places = reshape(graph, onnx_graph_node(graph, &part), flat, 2);
    part.inputs[1] = onnx_graph_ints(graph, &second, 1);
    const char *numbers = onnx_graph_node(graph, &part);
    const char *whole = onnx_graph_node(
        graph, &(struct onnx_node){
                   .type = "Cast",
                   .inputs = {places},
                   .attributes = {ONNX_ATTRIBUTE_INT("to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64)}});
    const char *weights = simple(writing, "Gather", weight(writing, 0), whole);
    const char *sum = reshape(graph, simple(writing, "MatMul", numbers, weights), row, 2);
    return simple(writing, "Add", sum, weight(writing, 1));
}

static const char *dense(const struct writing *writing, struct onnx_value input)
{
    struct onnx_graph *graph = writing->graph;
    const struct layer_shape in = writing->plan->input, out = writing->plan->output;
    const int64_t flat[] = {-1, in.width}, back[] = {-1, out.height, out.width};
    const char *rows =
        in.is_sequence ? reshape(graph, input.name, flat, 2) : onnx_as(graph, input, ONNX_ROW).name;
    const char *given = onnx_graph_node(
        graph, &(struct onnx_node){.type = "Gemm",
                                   .inputs = {rows, weight(writing, 0), weight(writing, 1)},
                                   .attributes = {ONNX_ATTRIBUTE_INT("transB", 1)}});
    return in.is_sequence ? reshape(graph, given, back, 3) : given;
}

static const char *conv_node(struct onnx_graph *graph, const char *input, const char *weights,
                             const char *bias, const int64_t kernel[2], int64_t pad_steps,
                             int64_t pad_width, int64_t stride)
{
    const struct onnx_node node = {
        .type = "Conv",
        .inputs = {input, weights, bias},
        .attributes = {ONNX_ATTRIBUTE_INTS("kernel_shape", 2, kernel[0], kernel[1]),
                       ONNX_ATTRIBUTE_INTS("pads", 4, pad_steps, pad_width, pad_steps, pad_width),
                       ONNX_ATTRIBUTE_INTS("strides", 2, stride, stride)},
    };
    return onnx_graph_node(graph, &node);
}

static const char *transpose(struct onnx_graph *graph, const char *input, int64_t first,
                             int64_t second, int64_t third)
{
    const struct onnx_node node = {
        .type = "Transpose",
        .inputs = {input},
        .attributes = {ONNX_ATTRIBUTE_INTS("perm", 3, first, second, third)}};
    return onnx_graph_node(graph, &node);
}

/* Over steps: an image of one channel under kernels as wide as it, [outputs, 1, kernel, features],
 * which is how the weights lie already. */
static const char *sequence_conv(const struct writing *writing, struct onnx_value input)
{
    struct onnx_graph *graph = writing->graph;
    const struct layer_spec *spec = &writing->plan->spec;
    const struct layer_shape in = writing->plan->input, out = writing->plan->output;
    const int64_t image[] = {-1, 1, in.height, in.width};
    const int64_t shape[] = {(int64_t)spec->outputs, 1, (int64_t)spec->kernel, in.width};
    const int64_t kernel[] = {shape[2], shape[3]}, flat[] = {-1, out.width, out.height};
    const char *weights = onnx_graph_floats(graph, writing->table[0].name,
                                            writing->values + writing->table[0].offset, shape, 4);
    const char *given = conv_node(graph, reshape(graph, input.name, image, 4), weights,
                                  weight(writing, 1), kernel, (int64_t)spec->pad, 0, 1);
    return transpose(graph, reshape(graph, given, flat, 3), 0, 2, 1);
}

static const char *conv(const struct writing *writing, struct onnx_value input)
{
    const struct layer_spec *spec = &writing->plan->spec;
    if (writing->plan->input.is_sequence)
        return sequence_conv(writing, input);
    const int64_t kernel[] = {(int64_t)spec->kernel, (int64_t)spec->kernel};
    const char *image = onnx_as(writing->graph, input, ONNX_IMAGE).name;
    return conv_node(writing->graph, image, weight(writing, 0), weight(writing, 1), kernel,
                     (int64_t)spec->pad, (int64_t)spec->pad, (int64_t)spec->stride);
}

static const char *pool_whole(const struct writing *writing, struct onnx_value input)
{
    struct onnx_graph *graph = writing->graph;
    const bool is_max = writing->plan->spec.type == LAYER_MAX_POOL;
    if (writing->plan->input.is_sequence)
        return onnx_graph_node(
            graph, &(struct onnx_node){.type = is_max ? "ReduceMax" : "ReduceMean",
                                       .inputs = {input.name},
                                       .attributes = {ONNX_ATTRIBUTE_INTS("axes", 1, 1),
                                                      ONNX_ATTRIBUTE_INT("keepdims", 0)}});
    return onnx_graph_node(
        graph, &(struct onnx_node){.type = is_max ? "GlobalMaxPool" : "GlobalAveragePool",
                                   .inputs = {onnx_as(graph, input, ONNX_IMAGE).name}});
}

/* How far the last window hangs over the edge. */
static int64_t overhang(uint32_t size, uint32_t out, int64_t kernel, int64_t stride)
{
    const int64_t reach = (out - 1) * stride + kernel - size;
    return reach > 0 ? reach : 0;
}

/* Windows that hang over the edge are windows over padding, which counts for nothing. */
static const char *pool(const struct writing *writing, struct onnx_value input)
{
    struct onnx_graph *graph = writing->graph;
    const struct layer_spec *spec = &writing->plan->spec;
    const struct layer_shape in = writing->plan->input, out = writing->plan->output;
    if (spec->kernel == 0)
        return pool_whole(writing, input);
    const int64_t kernel = (int64_t)spec->kernel, stride = (int64_t)spec->stride;
    const int64_t pad_height = overhang(in.height, out.height, kernel, stride);
    const int64_t pad_width = in.is_sequence ? 0 : overhang(in.width, out.width, kernel, stride);
    ASSERT(pad_height < kernel && pad_width < kernel); /* no stride is above its kernel */
    const int64_t image[] = {-1, 1, in.height, in.width}, back[] = {-1, out.height, out.width};
    const char *from = in.is_sequence ? reshape(graph, input.name, image, 4)
                                      : onnx_as(graph, input, ONNX_IMAGE).name;
    const bool is_max = spec->type == LAYER_MAX_POOL;
    const int64_t wide = in.is_sequence ? 1 : kernel, wide_stride = in.is_sequence ? 1 : stride;
    struct onnx_node node = {
        .type = is_max ? "MaxPool" : "AveragePool",
        .inputs = {from},
        .attributes = {ONNX_ATTRIBUTE_INTS("kernel_shape", 2, kernel, wide),
                       ONNX_ATTRIBUTE_INTS("strides", 2, stride, wide_stride),
                       ONNX_ATTRIBUTE_INTS("pads", 4, 0, 0, pad_height, pad_width)},
    };
    if (!is_max)
        node.attributes[3] = ONNX_ATTRIBUTE_INT("count_include_pad", 0);
    const char *given = onnx_graph_node(graph, &node);
    return in.is_sequence ? reshape(graph, given, back, 3) : given;
}

static const char *batch_norm(const struct writing *writing, struct onnx_value input)
{
    struct onnx_graph *graph = writing->graph;
    const struct layer_shape in = writing->plan->input;
    const int64_t flat[] = {-1, in.width}, back[] = {-1, in.height, in.width};
    const char *from = in.is_sequence ? reshape(graph, input.name, flat, 2) : input.name;
    const struct onnx_node node = {
        .type = "BatchNormalization",
        .inputs = {from, weight(writing, 0), weight(writing, 1), weight(writing, 2),
                   weight(writing, 3)},
        .attributes = {ONNX_ATTRIBUTE_FLOAT("epsilon", (double)NORM_EPSILON)}};
    const char *given = onnx_graph_node(graph, &node);
    return in.is_sequence ? reshape(graph, given, back, 3) : given;
}

/* Of an image as a whole; then it is a row. */
static const char *layer_norm(const struct writing *writing, struct onnx_value *input)
{
    if (input->form == ONNX_IMAGE)
        *input = onnx_as(writing->graph, *input, ONNX_ROW);
    const struct onnx_node node = {
        .type = "LayerNormalization",
        .inputs = {input->name, weight(writing, 0), weight(writing, 1)},
        .attributes = {ONNX_ATTRIBUTE_INT("axis", -1),
                       ONNX_ATTRIBUTE_FLOAT("epsilon", (double)NORM_EPSILON)}};
    return onnx_graph_node(writing->graph, &node);
}

static const char *local_norm(const struct writing *writing, struct onnx_value input)
{
    const struct layer_spec *spec = &writing->plan->spec;
    const struct onnx_node node = {.type = "LRN",
                                   .inputs = {onnx_as(writing->graph, input, ONNX_IMAGE).name},
                                   .attributes = {ONNX_ATTRIBUTE_INT("size", spec->kernel),
                                                  ONNX_ATTRIBUTE_FLOAT("alpha", spec->alpha),
                                                  ONNX_ATTRIBUTE_FLOAT("beta", spec->beta),
                                                  ONNX_ATTRIBUTE_FLOAT("bias", 1)}};
    return onnx_graph_node(writing->graph, &node);
}

/* The gates of `index`, in ONNX's order: i o f c for ours of i f g o, z r h for r z n. `count`
 * floats of each gate, `parts` such parameters behind each other. */
static const char *gates(const struct writing *writing, const char *name, const uint32_t *indices,
                         uint32_t parts, const int64_t *shape, size_t rank)
{
    static const uint32_t lstm_order[] = {0, 3, 1, 2}, gru_order[] = {1, 0, 2};
    const bool is_lstm = writing->plan->spec.type == LAYER_LSTM;
    const uint32_t gate_count = is_lstm ? 4 : 3, *order = is_lstm ? lstm_order : gru_order;
    const size_t each = writing->table[indices[0]].count / gate_count;
    float *reordered =
        arena_alloc(writing->graph->arena, (size_t)parts * gate_count * each * sizeof(*reordered));
    for (uint32_t part = 0; part < parts; part++) {
        const float *from = writing->values + writing->table[indices[part]].offset;
        for (uint32_t gate = 0; gate < gate_count; gate++)
            memcpy(reordered + (part * gate_count + gate) * each, from + order[gate] * each,
                   each * sizeof(*reordered));
    }
    return onnx_graph_floats(writing->graph, name, reordered, shape, rank);
}

static const char *recurrent(const struct writing *writing, struct onnx_value input)
{
    struct onnx_graph *graph = writing->graph;
    const struct layer_plan *plan = writing->plan;
    const bool is_lstm = plan->spec.type == LAYER_LSTM;
    const int64_t units = (int64_t)plan->spec.outputs, wide = units * (is_lstm ? 4 : 3);
    const int64_t w_shape[] = {1, wide, plan->input.width}, r_shape[] = {1, wide, units},
                  b_shape[] = {1, 2 * wide};
    const uint32_t w = 0, r = 1, biases[] = {2, 3};
    const char *name = plan->name;
    const char *sequence = onnx_as(graph, input, ONNX_SEQUENCE).name;
    struct onnx_node node = {
        .type = is_lstm ? "LSTM" : "GRU",
        .inputs = {transpose(graph, sequence, 1, 0, 2),
                   gates(writing, arena_format(graph->arena, "%s.W", name), &w, 1, w_shape, 3),
                   gates(writing, arena_format(graph->arena, "%s.R", name), &r, 1, r_shape, 3),
                   gates(writing, arena_format(graph->arena, "%s.B", name), biases, 2, b_shape, 2)},
        .output_place = plan->spec.steps ? 0 : 1,
        .attributes = {ONNX_ATTRIBUTE_INT("hidden_size", units)},
    };
    if (!is_lstm)
        node.attributes[1] = ONNX_ATTRIBUTE_INT("linear_before_reset", 1);
    const char *given = onnx_graph_node(graph, &node);
    const int64_t last[] = {-1, units}, every[] = {plan->input.height, -1, units};
    if (!plan->spec.steps)
        return reshape(graph, given, last, 2); /* [1, batch, units] */
    return transpose(graph, reshape(graph, given, every, 3), 1, 0, 2);
}

/* x (1 + erf(x / sqrt 2)) / 2 */
static const char *gelu(const struct writing *writing, const char *x)
{
    struct onnx_graph *graph = writing->graph;
    const char *scaled = simple(writing, "Mul", x, onnx_graph_float(graph, (float)M_SQRT1_2));
    const char *erf_of = simple(writing, "Erf", scaled, NULL);
    const char *sum = simple(writing, "Add", erf_of, onnx_graph_float(graph, 1));
    const char *half = simple(writing, "Mul", x, onnx_graph_float(graph, 0.5F));
    return simple(writing, "Mul", half, sum);
}

static const char *residual(const struct writing *writing, struct onnx_value *input,
                            struct onnx_value skip)
{
    struct onnx_graph *graph = writing->graph;
    const struct layer_plan *plan = writing->plan;
    struct parameter ignored[LAYER_PARAMETERS_MAX];
    if (plan->kind->describe(plan, ignored) == 0)
        return simple(writing, "Add", input->name, onnx_as(graph, skip, input->form).name);
    static const int64_t kernel[] = {1, 1};
    const int64_t stride = plan->skip.height > plan->input.height
                               ? (plan->skip.height + plan->input.height - 1) / plan->input.height
                               : 1;
    const char *projected = conv_node(graph, onnx_as(graph, skip, ONNX_IMAGE).name,
                                      weight(writing, 0), weight(writing, 1), kernel, 0, 0, stride);
    *input = onnx_as(graph, *input, ONNX_IMAGE);
    return simple(writing, "Add", input->name, projected);
}

struct onnx_value onnx_layer(struct onnx_graph *graph, const struct layer_plan *plan,
                             const struct parameter *table, const float *values,
                             struct onnx_value input, struct onnx_value skip)
{
    const struct writing writing = {graph, plan, table, values};
    struct onnx_value given = {NULL, form_of(plan->output), plan->output};
    switch ((enum layer_type)plan->spec.type) {
    case LAYER_DENSE:
        given.name = plan->kind == &layer_sparse ? sparse(&writing, input) : dense(&writing, input);
        break;
    case LAYER_CONV:
        given.name = conv(&writing, input);
        given.form = plan->output.is_sequence ? ONNX_SEQUENCE : ONNX_IMAGE;
        break;
    case LAYER_MAX_POOL:
    case LAYER_AVERAGE_POOL:
        given.name = pool(&writing, input);
        given.form = input.form == ONNX_SEQUENCE ? given.form : ONNX_IMAGE;
        break;
    case LAYER_BATCH_NORM:
        input = input.form == ONNX_SEQUENCE ? input : onnx_as(graph, input, given.form);
        given.name = batch_norm(&writing, input);
        break;
    case LAYER_LAYER_NORM:
        given.name = layer_norm(&writing, &input);
        given.form = input.form;
        break;
    case LAYER_LOCAL_NORM:
        given.name = local_norm(&writing, input);
        given.form = ONNX_IMAGE;
        break;
    case LAYER_DROPOUT:
        given = input;
        break;
    case LAYER_EMBEDDING:
        given.name = simple(&writing, "Gather", weight(&writing, 0), input.name);
        break;
    case LAYER_LSTM:
    case LAYER_GRU:
        given.name = recurrent(&writing, input);
        break;
    case LAYER_RESIDUAL:
        given.name = residual(&writing, &input, skip);
        given.form = input.form;
        break;
    case LAYER_RELU:
    case LAYER_TANH:
    case LAYER_SIGMOID:
        given.name = simple(&writing,
                            plan->spec.type == LAYER_RELU   ? "Relu"
                            : plan->spec.type == LAYER_TANH ? "Tanh"
                                                            : "Sigmoid",
                            input.name, NULL);
        given.form = input.form;
        break;
    case LAYER_GELU:
        given.name = gelu(&writing, input.name);
        given.form = input.form;
        break;
    case LAYER_FLATTEN:
        given.name = onnx_as(graph, input, ONNX_ROW).name;
        break;
    case LAYER_TYPE_COUNT:
        UNREACHABLE("a type of layer without nodes");
    }
    return given;
}
