/*
 * Kernel oneDNN: convolution.
 *
 * The input's gradient is itself a convolution of the output's gradient, with every kernel turned
 * round and its channels swapped. With channels last oneDNN's forward is up to twice as fast as its
 * backward-data, so that it is computed so where the stride is 1.
 */
#include "base/assert.h"
#include "tensor/kernel_internal.h"
#include "tensor/onednn_library.h"
#include "tensor/onednn_step.h"

#include <stdlib.h>

struct onednn_conv {
    struct operation operation;
    struct conv_shape shape;
    struct step forward, weights, data;
    bool needs_input_gradient;
    float *turned;  /* [channels_in, channels_out, kernel, kernel]; NULL: oneDNN's backward-data */
    float *no_bias; /* [channels_in] zeros, beside it */
};

/* The plain layouts of a convolution's tensors and what oneDNN may make of them. */
struct conv_descriptors {
    dnnl_memory_desc_t input, weights, bias, output;
    dnnl_memory_desc_t input_any, weights_any, output_any;
    dnnl_dims_t strides, pad, pad_end;
};

/* What a stride leaves over of the padding behind is not padded: oneDNN wants sizes to agree. */
static dnnl_dim_t pad_end(const struct conv_shape *s, uint32_t size)
{
    return (dnnl_dim_t)(conv_output_size(s, size) - 1) * s->stride + s->kernel - size - s->pad;
}

static struct conv_descriptors conv_describe(const struct onednn_library *library,
                                             const struct conv_shape *s)
{
    const dnnl_dim_t input[] = {s->batch, s->channels_in, s->height, s->width};
    const dnnl_dim_t weights[] = {s->channels_out, s->channels_in, s->kernel, s->kernel};
    const dnnl_dim_t bias[] = {s->channels_out};
    const dnnl_dim_t output[] = {s->batch, s->channels_out, conv_output_size(s, s->height),
                                 conv_output_size(s, s->width)};
    const dnnl_format_tag_t layout = s->is_channels_last ? dnnl_nhwc : dnnl_nchw;
    /* Asked for any layout, oneDNN takes a blocked one; held to nhwc it is faster. */
    const dnnl_format_tag_t any = s->is_channels_last ? dnnl_nhwc : dnnl_format_tag_any;
    return (struct conv_descriptors){
        .input = onednn_descriptor(library, 4, input, layout),
        .weights = onednn_descriptor(library, 4, weights, dnnl_oihw),
        .bias = onednn_descriptor(library, 1, bias, dnnl_x),
        .output = onednn_descriptor(library, 4, output, layout),
        .input_any = onednn_descriptor(library, 4, input, any),
        .weights_any = onednn_descriptor(library, 4, weights, dnnl_format_tag_any),
        .output_any = onednn_descriptor(library, 4, output, any),
        .strides = {s->stride, s->stride},
        .pad = {s->pad, s->pad},
        .pad_end = {pad_end(s, s->height), pad_end(s, s->width)},
    };
}

static int conv_open_forward(struct step *step, const struct onednn_library *library,
                             const struct conv_descriptors *d, bool is_training,
                             struct error *error)
{
    dnnl_convolution_desc_t operation;
    const dnnl_status_t status = library->dnnl_convolution_forward_desc_init(
        &operation, is_training ? dnnl_forward_training : dnnl_forward_inference,
        dnnl_convolution_direct, &d->input_any, &d->weights_any, &d->bias, &d->output_any,
        d->strides, d->pad, d->pad_end);
    ASSERT(status == dnnl_success);
    if (step_init(step, library, &operation, NULL, error) < 0 ||
        step_add_port(step, DNNL_ARG_SRC, dnnl_query_src_md, &d->input, error) < 0 ||
        step_add_port(step, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, &d->weights, error) < 0 ||
        step_add_port(step, DNNL_ARG_DST, dnnl_query_dst_md, &d->output, error) < 0)
        return -1;
    return step_add_bias(step, DNNL_ARG_BIAS, &d->bias, error);
}

static int conv_open_weights(struct onednn_conv *conv, const struct onednn_library *library,
                             const struct conv_descriptors *d, struct error *error)
{
    dnnl_convolution_desc_t operation;
    const dnnl_status_t status = library->dnnl_convolution_backward_weights_desc_init(
        &operation, dnnl_convolution_direct, &d->input_any, &d->weights_any, &d->bias,
        &d->output_any, d->strides, d->pad, d->pad_end);
    ASSERT(status == dnnl_success);
    struct step *step = &conv->weights;
    if (step_init(step, library, &operation, &conv->forward, error) < 0 ||
        step_add_port(step, DNNL_ARG_SRC, dnnl_query_src_md, &d->input, error) < 0 ||
        step_add_port(step, DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, &d->output, error) < 0 ||
        step_add_port(step, DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, &d->weights, error) <
            0)
        return -1;
    return step_add_bias(step, DNNL_ARG_DIFF_BIAS, &d->bias, error);
}

static int conv_open_data(struct onednn_conv *conv, const struct onednn_library *library,
                          const struct conv_descriptors *d, struct error *error)
{
    dnnl_convolution_desc_t operation;
    const dnnl_status_t status = library->dnnl_convolution_backward_data_desc_init(
        &operation, dnnl_convolution_direct, &d->input_any, &d->weights_any, &d->output_any,
        d->strides, d->pad, d->pad_end);
    ASSERT(status == dnnl_success);
    struct step *step = &conv->data;
    if (step_init(step, library, &operation, &conv->forward, error) < 0 ||
        step_add_port(step, DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, &d->output, error) < 0 ||
        step_add_port(step, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, &d->weights, error) < 0 ||
        step_add_port(step, DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, &d->input, error) < 0)
        return -1;
    return 0;
}

/* The convolution that gives the input's gradient. */
static struct conv_shape conv_turned(const struct conv_shape *s)
{
    struct conv_shape turned = *s;
    turned.channels_in = s->channels_out;
    turned.channels_out = s->channels_in;
    turned.height = conv_output_size(s, s->height);
    turned.width = conv_output_size(s, s->width);
    turned.pad = s->kernel - 1 - s->pad;
    return turned;
}

static void turn_weights(const struct conv_shape *s, const float *weights, float *turned)
{
    const size_t window = (size_t)s->kernel * s->kernel;
    for (size_t o = 0; o < s->channels_out; o++)
        for (size_t c = 0; c < s->channels_in; c++) {
            const float *from = weights + (o * s->channels_in + c) * window;
            float *to = turned + (c * s->channels_out + o) * window;
            for (size_t i = 0; i < window; i++)
                to[window - 1 - i] = from[i];
        }
}

static int conv_open_turned(struct onednn_conv *conv, const struct onednn_library *library,
                            struct error *error)
{
    const struct conv_shape *s = &conv->shape, turned = conv_turned(s);
    const struct conv_descriptors descriptors = conv_describe(library, &turned);
    conv->turned = kernel_alloc(sizeof(float) * s->channels_out * s->channels_in * s->kernel *
                                (size_t)s->kernel);
    conv->no_bias = kernel_alloc(sizeof(float) * s->channels_in);
    return conv_open_forward(&conv->data, library, &descriptors, /* is_training= */ false, error);
}

static void conv_forward(struct operation *operation, const struct operation_tensors *t)
{
    const void *const data[] = {t->input, t->weights, t->output, t->bias};
    step_run(&AS(onednn_conv, operation)->forward, data, NULL);
}

static void conv_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct onednn_conv *conv = AS(onednn_conv, operation);
    const void *const weights[] = {t->input, t->output_gradient, t->weights_gradient,
                                   t->bias_gradient};
    step_run(&conv->weights, weights, NULL);
    if (!conv->needs_input_gradient)
        return;
    if (conv->turned) {
        turn_weights(&conv->shape, t->weights, conv->turned);
        const void *const data[] = {t->output_gradient, conv->turned, t->input_gradient,
                                    conv->no_bias};
        step_run(&conv->data, data, NULL);
        return;
    }
    const void *const data[] = {t->output_gradient, t->weights, t->input_gradient};
    step_run(&conv->data, data, NULL);
}

static void conv_free(struct operation *operation)
{
    struct onednn_conv *conv = AS(onednn_conv, operation);
    step_done(&conv->forward);
    step_done(&conv->weights);
    step_done(&conv->data);
    free(conv->turned);
    free(conv->no_bias);
    free(conv);
}

static int conv_open(void *state, const struct conv_shape *shape,
                     const struct operation_options *options, struct operation **out_operation,
                     struct error *error)
{
    const struct onednn_library *library = state;
    struct onednn_conv *conv = kernel_alloc(sizeof(*conv));
    AUTO(operation) struct operation *operation = &conv->operation;
    operation->forward = conv_forward;
    operation->backward = options->is_training ? conv_backward : NULL;
    operation->free = conv_free;
    conv->shape = *shape;
    conv->needs_input_gradient = options->needs_input_gradient;

    const struct conv_descriptors descriptors = conv_describe(library, shape);
    if (conv_open_forward(&conv->forward, library, &descriptors, options->is_training, error) < 0)
        return -1;
    if (options->is_training && conv_open_weights(conv, library, &descriptors, error) < 0)
        return -1;
    if (options->is_training && options->needs_input_gradient &&
        (shape->is_channels_last && shape->stride == 1
             ? conv_open_turned(conv, library, error)
             : conv_open_data(conv, library, &descriptors, error)) < 0)
        return -1;
    snprintf(operation->description, sizeof(operation->description), "onednn:%s",
             step_implementation(&conv->forward));
    *out_operation = TAKE(operation);
    return 0;
}

/* oneDNN 2.6 first packs what a wider stride leaves of a 1 x 1 convolution's input, and where the
 * channels do not fill its vectors it writes past the end of that. */
static bool is_sound(const struct conv_shape *shape)
{
    enum { VECTOR_LANES_MAX = 16 };
    return shape->kernel > 1 || shape->stride == 1 || shape->channels_in % VECTOR_LANES_MAX == 0;
}

int onednn_open_conv(void *state, const struct conv_shape *shape,
                     const struct operation_options *options, struct operation **out_operation,
                     struct error *error)
{
    struct error reason = {0};
    if (is_sound(shape) && conv_open(state, shape, options, out_operation, &reason) == 0)
        return 0;
    return kernel_plain.open_conv(NULL, shape, options, out_operation, error);
}
