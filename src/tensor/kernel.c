#include "tensor/kernel.h"

#include "base/assert.h"
#include "tensor/kernel_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct kernel_set {
    const struct kernel_ops *ops;
    void *state;
    char note[256];
};

static const struct kernel_ops *const all_sets[] = {&kernel_simd, &kernel_onednn, &kernel_plain};
enum { SET_COUNT = sizeof(all_sets) / sizeof(*all_sets) };

const char *const kernel_set_names[] = {"simd", "onednn", "plain", NULL};

void *kernel_alloc(size_t size)
{
    enum { LINE = 64 };
    const size_t rounded = (size + LINE - 1) / LINE * LINE;
    void *memory = aligned_alloc(LINE, rounded ? rounded : LINE);
    ASSERT(memory != NULL);
    memset(memory, 0, rounded);
    return memory;
}

static int set_try(const struct kernel_ops *ops, struct kernel_set **out_set, struct error *error)
{
    void *state = NULL;
    if (ops->open && ops->open(&state, error) < 0)
        return error_wrap(error, "kernel set \"%s\"", ops->name);
    struct kernel_set *set = kernel_alloc(sizeof(*set));
    set->ops = ops;
    set->state = state;
    *out_set = set;
    return 0;
}

static int set_open_best(struct kernel_set **out_set, struct error *error)
{
    struct error passed = {0};
    for (size_t i = 0; i < SET_COUNT; i++) {
        struct error reason = {0};
        if (set_try(all_sets[i], out_set, &reason) == 0) {
            memcpy((*out_set)->note, passed.message, sizeof(passed.message));
            return 0;
        }
        if (!passed.code)
            passed = reason;
    }
    *error = passed;
    return -1;
}

int kernel_set_open(const char *name, struct kernel_set **out_set, struct error *error)
{
    if (!name || strcmp(name, "auto") == 0)
        return set_open_best(out_set, error);
    for (size_t i = 0; i < SET_COUNT; i++)
        if (strcmp(name, all_sets[i]->name) == 0)
            return set_try(all_sets[i], out_set, error);
    return error_set(error, ERROR_NOT_FOUND,
                     "kernel set \"%s\" does not exist: take auto, simd, onednn or plain", name);
}

void kernel_set_free(struct kernel_set *set)
{
    if (!set)
        return;
    if (set->ops->close)
        set->ops->close(set->state);
    free(set);
}

const char *kernel_set_name(const struct kernel_set *set)
{
    return set->ops->name;
}

const char *kernel_set_note(const struct kernel_set *set)
{
    return set->note;
}

void operation_forward(struct operation *operation, const struct operation_tensors *tensors)
{
    operation->forward(operation, tensors);
}

void operation_backward(struct operation *operation, const struct operation_tensors *tensors)
{
    ASSERT(operation->backward != NULL); /* opened for training */
    operation->backward(operation, tensors);
}

const char *operation_describe(const struct operation *operation)
{
    return operation->description;
}

void operation_free(struct operation *operation)
{
    if (operation)
        operation->free(operation);
}

/* Multiplies sizes that came from outside; 0 when one is 0 or the product is too large. */
static size_t element_count(const uint32_t *sizes, size_t size_count)
{
    size_t product = 1;
    for (size_t i = 0; i < size_count; i++) {
        if (sizes[i] == 0 || sizes[i] > TENSOR_ELEMENTS_MAX)
            return 0;
        product *= sizes[i];
        if (product > TENSOR_ELEMENTS_MAX)
            return 0;
    }
    return product;
}

#define ELEMENTS(...)                                                                              \
    element_count((const uint32_t[]){__VA_ARGS__},                                                 \
                  sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

int operation_open_dense(struct kernel_set *set, const struct dense_shape *shape,
                         const struct operation_options *options, struct operation **out_operation,
                         struct error *error)
{
    if (!ELEMENTS(shape->batch, shape->inputs) || !ELEMENTS(shape->batch, shape->outputs) ||
        !ELEMENTS(shape->inputs, shape->outputs))
        return error_set(error, ERROR_INVALID, "dense layer %u x %u to %u: empty or too large",
                         shape->batch, shape->inputs, shape->outputs);
    return set->ops->open_dense(set->state, shape, options, out_operation, error);
}

uint32_t conv_output_size(const struct conv_shape *shape, uint32_t input_size)
{
    const uint32_t stride = shape->stride ? shape->stride : 1;
    return (input_size + 2 * shape->pad - shape->kernel) / stride + 1;
}

static int conv_check(const struct conv_shape *shape, struct error *error)
{
    enum { KERNEL_MAX = 64 };
    if (shape->stride > KERNEL_MAX)
        return error_set(error, ERROR_INVALID, "convolution: stride %u is above %d", shape->stride,
                         KERNEL_MAX);
    if (shape->kernel == 0 || shape->kernel > KERNEL_MAX || shape->pad >= shape->kernel)
        return error_set(error, ERROR_INVALID, "convolution: kernel %u with padding %u",
                         shape->kernel, shape->pad);
    if (!ELEMENTS(shape->batch, shape->channels_in, shape->height, shape->width) ||
        !ELEMENTS(shape->channels_out, shape->channels_in, shape->kernel, shape->kernel))
        return error_set(error, ERROR_INVALID,
                         "convolution of %u x %u x %u x %u: empty or too large", shape->batch,
                         shape->channels_in, shape->height, shape->width);
    if (shape->height + 2 * shape->pad < shape->kernel ||
        shape->width + 2 * shape->pad < shape->kernel)
        return error_set(error, ERROR_INVALID, "convolution: kernel %u does not fit into %u x %u",
                         shape->kernel, shape->height, shape->width);
    if (!ELEMENTS(shape->batch, shape->channels_out, conv_output_size(shape, shape->height),
                  conv_output_size(shape, shape->width)))
        return error_set(error, ERROR_INVALID, "convolution: its output is too large");
    return 0;
}

int operation_open_conv(struct kernel_set *set, const struct conv_shape *shape,
                        const struct operation_options *options, struct operation **out_operation,
                        struct error *error)
{
    if (conv_check(shape, error) < 0)
        return -1;
    struct conv_shape whole = *shape;
    whole.stride = shape->stride ? shape->stride : 1;
    return set->ops->open_conv(set->state, &whole, options, out_operation, error);
}

static uint32_t pool_output_size(uint32_t size, uint32_t window, uint32_t stride, bool is_partial)
{
    if (is_partial && size > window)
        return (size - window + stride - 1) / stride + 1;
    return (size - window) / stride + 1;
}

uint32_t pool_output_height(const struct pool_shape *shape)
{
    return pool_output_size(shape->height, shape->window_height,
                            shape->stride_height ? shape->stride_height : shape->window_height,
                            shape->is_partial);
}

uint32_t pool_output_width(const struct pool_shape *shape)
{
    return pool_output_size(shape->width, shape->window_width,
                            shape->stride_width ? shape->stride_width : shape->window_width,
                            shape->is_partial);
}

int operation_open_pool(struct kernel_set *set, const struct pool_shape *shape,
                        const struct operation_options *options, struct operation **out_operation,
                        struct error *error)
{
    if (!ELEMENTS(shape->batch, shape->channels, shape->height, shape->width))
        return error_set(error, ERROR_INVALID, "pooling of %u x %u x %u x %u: empty or too large",
                         shape->batch, shape->channels, shape->height, shape->width);
    struct pool_shape whole = *shape;
    whole.stride_height = shape->stride_height ? shape->stride_height : shape->window_height;
    whole.stride_width = shape->stride_width ? shape->stride_width : shape->window_width;
    if (whole.window_height == 0 || whole.window_width == 0 || whole.window_height > whole.height ||
        whole.window_width > whole.width)
        return error_set(error, ERROR_INVALID, "pooling: window %u x %u does not fit into %u x %u",
                         whole.window_height, whole.window_width, whole.height, whole.width);
    if (whole.stride_height > whole.window_height || whole.stride_width > whole.window_width)
        return error_set(error, ERROR_INVALID,
                         "pooling: stride %u x %u is above the window %u x %u", whole.stride_height,
                         whole.stride_width, whole.window_height, whole.window_width);
    return set->ops->open_pool(set->state, &whole, options, out_operation, error);
}

int operation_open_activation(struct kernel_set *set, const struct activation_shape *shape,
                              const struct operation_options *options,
                              struct operation **out_operation, struct error *error)
{
    if (shape->count == 0 || shape->count > TENSOR_ELEMENTS_MAX)
        return error_set(error, ERROR_INVALID, "activation of %zu elements: empty or too large",
                         shape->count);
    return set->ops->open_activation(set->state, shape, options, out_operation, error);
}

int operation_open_norm(struct kernel_set *set, const struct norm_shape *shape,
                        const struct operation_options *options, struct operation **out_operation,
                        struct error *error)
{
    if (!ELEMENTS(shape->outer, shape->features, shape->inner))
        return error_set(error, ERROR_INVALID, "norm of %u x %u x %u: empty or too large",
                         shape->outer, shape->features, shape->inner);
    if (shape->kind == NORM_LAYER && shape->inner != 1)
        return error_set(error, ERROR_INVALID, "layer norm: %u values of each feature",
                         shape->inner);
    if (shape->kind == NORM_LOCAL && shape->window % 2 == 0)
        return error_set(error, ERROR_INVALID, "local norm: a window of %u is not odd",
                         shape->window);
    return set->ops->open_norm(set->state, shape, options, out_operation, error);
}

int operation_open_dropout(struct kernel_set *set, const struct dropout_shape *shape,
                           const struct operation_options *options,
                           struct operation **out_operation, struct error *error)
{
    if (shape->count == 0 || shape->count > TENSOR_ELEMENTS_MAX ||
        !(shape->rate >= 0 && shape->rate < 1))
        return error_set(error, ERROR_INVALID, "dropout of %zu elements at rate %g", shape->count,
                         (double)shape->rate);
    return set->ops->open_dropout(set->state, shape, options, out_operation, error);
}

int operation_open_embedding(struct kernel_set *set, const struct embedding_shape *shape,
                             const struct operation_options *options,
                             struct operation **out_operation, struct error *error)
{
    if (!ELEMENTS(shape->count, shape->width) || !ELEMENTS(shape->vocabulary, shape->width))
        return error_set(error, ERROR_INVALID, "embedding of %u of %u in %u: empty or too large",
                         shape->count, shape->vocabulary, shape->width);
    return set->ops->open_embedding(set->state, shape, options, out_operation, error);
}

int operation_open_sequence_conv(struct kernel_set *set, const struct sequence_conv_shape *shape,
                                 const struct operation_options *options,
                                 struct operation **out_operation, struct error *error)
{
    if (!ELEMENTS(shape->batch, shape->steps, shape->features) ||
        !ELEMENTS(shape->outputs, shape->kernel, shape->features) || shape->pad >= shape->kernel ||
        shape->steps + 2 * shape->pad < shape->kernel ||
        !ELEMENTS(shape->batch, shape->steps + 2 * shape->pad, shape->outputs))
        return error_set(error, ERROR_INVALID,
                         "convolution over %u steps of %u with a kernel of %u, padded by %u: empty "
                         "or too large",
                         shape->steps, shape->features, shape->kernel, shape->pad);
    return set->ops->open_sequence_conv(set->state, shape, options, out_operation, error);
}

int operation_open_recurrent(struct kernel_set *set, const struct recurrent_shape *shape,
                             const struct operation_options *options,
                             struct operation **out_operation, struct error *error)
{
    if (!ELEMENTS(shape->batch, shape->steps, shape->inputs) ||
        !ELEMENTS(shape->batch, shape->steps, shape->units, 4) ||
        !ELEMENTS(shape->units, shape->units, 4) || !ELEMENTS(shape->units, shape->inputs, 4))
        return error_set(error, ERROR_INVALID,
                         "recurrent layer of %u units over %u x %u x %u: empty or too large",
                         shape->units, shape->batch, shape->steps, shape->inputs);
    return set->ops->open_recurrent(set->state, shape, options, out_operation, error);
}

bool kernel_set_prefers_channels_last(struct kernel_set *set)
{
    return set->ops->prefers_channels_last && set->ops->prefers_channels_last(set->state);
}

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

struct transposed {
    const float *in;
    size_t in_stride;
    float *out;
    size_t out_stride;
};

/* Four rows of four numbers at `row` and `column`. */
static void transpose_four(const struct transposed *t, size_t row, size_t column)
{
    const float *in = t->in + row * t->in_stride + column;
    float *out = t->out + column * t->out_stride + row;
    const four a = *(const four *)in, b = *(const four *)(in + t->in_stride);
    const four c = *(const four *)(in + 2 * t->in_stride);
    const four d = *(const four *)(in + 3 * t->in_stride);
    const four ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5);
    const four ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    const four bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5);
    const four bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    *(four *)out = __builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5);
    *(four *)(out + t->out_stride) = __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7);
    *(four *)(out + 2 * t->out_stride) = __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5);
    *(four *)(out + 3 * t->out_stride) = __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7);
}

static void transpose_tile(const struct transposed *t, uint32_t height, uint32_t width)
{
    for (uint32_t i = 0; i < height; i += 4)
        for (uint32_t j = 0; j < width; j += 4) {
            if (i + 4 <= height && j + 4 <= width) {
                transpose_four(t, i, j);
                continue;
            }
            for (uint32_t row = i; row < height && row < i + 4; row++)
                for (uint32_t column = j; column < width && column < j + 4; column++)
                    t->out[column * t->out_stride + row] = t->in[row * t->in_stride + column];
        }
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through struct transposed */
void kernel_transpose(const float *in, float *out, uint32_t batch, uint32_t rows, uint32_t columns)
{
    enum { TILE = 16 }; /* both sides of a tile stay in the nearest cache */
    for (size_t n = 0; n < batch; n++, in += (size_t)rows * columns, out += (size_t)rows * columns)
        for (uint32_t row = 0; row < rows; row += TILE)
            for (uint32_t column = 0; column < columns; column += TILE) {
                const struct transposed part = {in + (size_t)row * columns + column, columns,
                                                out + (size_t)column * rows + row, rows};
                const uint32_t height = rows - row < TILE ? rows - row : TILE;
                const uint32_t width = columns - column < TILE ? columns - column : TILE;
                transpose_tile(&part, height, width);
            }
}

bool kernel_set_has_conv_block(const struct kernel_set *set)
{
    return set->ops->open_conv_block != NULL;
}

int operation_open_conv_block(struct kernel_set *set, const struct conv_block_shape *shape,
                              const struct operation_options *options,
                              struct operation **out_operation, struct error *error)
{
    ASSERT(kernel_set_has_conv_block(set));
    if (conv_check(&shape->conv, error) < 0)
        return -1;
    const uint32_t height = conv_output_size(&shape->conv, shape->conv.height);
    const uint32_t width = conv_output_size(&shape->conv, shape->conv.width);
    if (shape->conv.stride > 1 || shape->conv.is_channels_last)
        return error_set(error, ERROR_INVALID, "convolution with pooling: a stride or a layout");
    if (shape->conv.kernel % 2 == 0)
        return error_set(error, ERROR_INVALID, "convolution with pooling: kernel %u is even",
                         shape->conv.kernel);
    if (height % 2 != 0 || width % 2 != 0)
        return error_set(error, ERROR_INVALID, "pooling of %u x %u by 2: a side is odd", height,
                         width);
    return set->ops->open_conv_block(set->state, shape, options, out_operation, error);
}

static uint32_t largest_of(const float *row, uint32_t classes)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < classes; c++)
        best = row[c] > row[best] ? c : best;
    return best;
}

/* Of one row, the sum of e to the power of each logit less the largest, which cannot overflow. */
static double sum_powers(const float *logits, uint32_t classes, float largest)
{
    double sum = 0;
    for (uint32_t c = 0; c < classes; c++)
        sum += (double)expf(logits[c] - largest);
    return sum;
}

/* From a row of such powers to the gradient. Returns their sum. */
static double turn_to_gradient(float *row, uint32_t classes, uint32_t label, float scale)
{
    double sum = 0;
    for (uint32_t c = 0; c < classes; c++)
        sum += (double)row[c];
    const float share = scale / (float)sum;
    for (uint32_t c = 0; c < classes; c++)
        row[c] *= share;
    row[label] -= scale;
    return sum;
}

/* The losses of some rows added up. */
static double loss_of_rows(struct kernel_set *set, const struct cross_entropy *arguments,
                           uint32_t first, uint32_t end, uint32_t *correct)
{
    const uint32_t classes = arguments->classes;
    const int32_t *labels = arguments->labels;
    float *gradient = arguments->logits_gradient;
    double loss = 0;
    for (uint32_t n = first; n < end; n++) {
        const float *logits = arguments->logits + (size_t)n * classes;
        DEBUG_ASSERT((uint32_t)labels[n] < classes);
        const uint32_t best = largest_of(logits, classes);
        const float largest = logits[best];
        *correct += best == (uint32_t)labels[n];
        loss -= (double)(logits[labels[n]] - largest);
        if (!gradient)
            loss += log(sum_powers(logits, classes, largest));
        for (uint32_t c = 0; gradient && c < classes; c++)
            gradient[(size_t)n * classes + c] = logits[c] - largest;
    }
    if (!gradient)
        return loss;
    gradient += (size_t)first * classes;
    set->ops->exp(set->state, gradient, (size_t)(end - first) * classes);
    for (uint32_t n = first; n < end; n++, gradient += classes)
        loss += log(turn_to_gradient(gradient, classes, (uint32_t)labels[n],
                                     1.0F / (float)arguments->batch));
    return loss;
}

double kernel_cross_entropy(struct kernel_set *set, const struct cross_entropy *arguments)
{
    enum { AT_ONCE = 4096 }; /* numbers that stay in the nearest cache from one pass to the next */
    const uint32_t rows = arguments->classes < AT_ONCE ? AT_ONCE / arguments->classes : 1;
    double sum = 0;
    uint32_t correct = 0;
    for (uint32_t first = 0, end; first < arguments->batch; first = end) {
        end = arguments->batch - first > rows ? first + rows : arguments->batch;
        sum += loss_of_rows(set, arguments, first, end, &correct);
    }
    if (arguments->out_correct)
        *arguments->out_correct = correct;
    return sum / (double)arguments->batch;
}

struct sgd_rule sgd_rule_plain(const struct sgd_rule *rule)
{
    return (struct sgd_rule){
        .lr = rule->lr / (1 - rule->momentum),
        .weight_decay = rule->weight_decay,
    };
}

void kernel_sgd(struct kernel_set *set, const struct sgd_rule *rule, float *weights,
                float *velocity, const float *gradient, size_t count)
{
    set->ops->sgd(set->state, rule, weights, velocity, gradient, count);
}

void kernel_adam(struct kernel_set *set, const struct adam_rule *rule, float *weights, float *first,
                 float *second, const float *gradient, size_t count)
{
    set->ops->adam(set->state, rule, weights, first, second, gradient, count);
}

void kernel_axpy(struct kernel_set *set, float a, const float *x, float *y, size_t count)
{
    set->ops->axpy(set->state, a, x, y, count);
}

void kernel_scale(struct kernel_set *set, float a, float *x, size_t count)
{
    set->ops->scale(set->state, a, x, count);
}
