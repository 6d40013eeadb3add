/*
 * LSTM and GRU over time: for each step one product of its input and the state before, and the
 * gates; going back the same for the state's gradient, and every few steps, while these are still
 * in the cache, a product for the gradients of the weights.
 *
 * T steps, B batch, I inputs, H units, G gates (4 or 3), W = I + H. Inside, time is outermost, so
 * that a step of the whole batch lies together, and each input lies beside the state before it:
 * joined [T + 1, B, W], gates [T, B, G, H].
 */
#include "tensor/kernel_math.h"

#include <stdlib.h>
#include <string.h>

struct recurrent {
    struct operation operation;
    struct kernel_math math;
    struct recurrent_shape shape;
    uint32_t wide, width; /* G H, W */
    uint32_t chunk;       /* steps whose weight gradients are computed at a time */
    bool is_lstm;
    bool needs_input_gradient;
    float *joined;          /* [T + 1, B, W]; the first state is zero, the last input unused */
    float *turned;          /* [W, G H]: the weights, then the recurrent ones */
    float *turned_gradient; /* [W, G H] */
    float *gate;            /* [T, B, G, H] */
    float *side;            /* of a GRU: [T, B, G, H] */
    float *cell;            /* of an LSTM: [T + 1, B, H], the first is zero */
    float *state_gradient;  /* [B, H] */
    float *cell_gradient;   /* [B, H] */
    float *input_gradient;  /* [T, B, I] */
};

static void recurrent_free(struct operation *operation)
{
    struct recurrent *recurrent = AS(recurrent, operation);
    free(recurrent->joined);
    free(recurrent->turned);
    free(recurrent->turned_gradient);
    free(recurrent->gate);
    free(recurrent->side);
    free(recurrent->cell);
    free(recurrent->state_gradient);
    free(recurrent->cell_gradient);
    free(recurrent->input_gradient);
    free(recurrent);
}

static void multiply(const struct recurrent *r, const struct gemm *gemm)
{
    r->math.gemm(r->math.gemm_state, gemm);
}

/* The input of one sample at one step; the state before that step lies behind it. */
static float *joined_at(const struct recurrent *r, size_t step, size_t sample)
{
    return r->joined + (step * r->shape.batch + sample) * r->width;
}

static struct gate_step step_at(const struct recurrent *r, const struct operation_tensors *t,
                                size_t step)
{
    const size_t wide = (size_t)r->shape.batch * r->wide;
    const size_t narrow = (size_t)r->shape.batch * r->shape.units;
    return (struct gate_step){
        .batch = r->shape.batch,
        .units = r->shape.units,
        .gates = r->gate + step * wide,
        .side = r->side ? r->side + step * wide : NULL,
        .bias = t->bias,
        .recurrent_bias = t->recurrent_bias,
        .state_stride = r->width,
        .state_before = joined_at(r, step, 0) + r->shape.inputs,
        .state = joined_at(r, step + 1, 0) + r->shape.inputs,
        .cell_before = r->cell ? r->cell + step * narrow : NULL,
        .cell = r->cell ? r->cell + (step + 1) * narrow : NULL,
        .state_gradient = r->state_gradient,
        .cell_gradient = r->cell_gradient,
    };
}

static void take_inputs(const struct recurrent *r, const struct operation_tensors *t)
{
    const struct recurrent_shape s = r->shape;
    for (size_t step = 0; step < s.steps; step++)
        for (size_t n = 0; n < s.batch; n++)
            memcpy(joined_at(r, step, n), t->input + (n * s.steps + step) * s.inputs,
                   sizeof(float) * s.inputs);
    kernel_transpose(t->weights, r->turned, 1, r->wide, s.inputs);
    kernel_transpose(t->recurrent_weights, r->turned + (size_t)s.inputs * r->wide, 1, r->wide,
                     s.units);
}

static void give_outputs(const struct recurrent *r, float *output)
{
    const struct recurrent_shape s = r->shape;
    const size_t first = s.gives_every_step ? 0 : s.steps - 1;
    for (size_t n = 0; n < s.batch; n++)
        for (size_t step = first; step < s.steps; step++, output += s.units)
            memcpy(output, joined_at(r, step + 1, n) + s.inputs, sizeof(float) * s.units);
}

static void recurrent_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct recurrent *r = AS(recurrent, operation);
    const struct recurrent_shape s = r->shape;
    take_inputs(r, t);
    for (size_t step = 0; step < s.steps; step++) {
        const struct gate_step at = step_at(r, t, step);
        const struct gemm inputs = {.m = s.batch,
                                    .n = r->wide,
                                    .k = r->is_lstm ? r->width : s.inputs,
                                    .a = joined_at(r, step, 0),
                                    .lda = r->width,
                                    .b = r->turned,
                                    .c = at.gates};
        multiply(r, &inputs);
        if (r->is_lstm) {
            r->math.lstm_forward(&at);
            continue;
        }
        const struct gemm past = {.m = s.batch,
                                  .n = r->wide,
                                  .k = s.units,
                                  .a = at.state_before,
                                  .lda = r->width,
                                  .b = r->turned + (size_t)s.inputs * r->wide,
                                  .c = at.side};
        multiply(r, &past);
        r->math.gru_forward(&at);
    }
    give_outputs(r, t->output);
}

/* What the layer behind says about the state of one step. */
static void add_output_gradient(const struct recurrent *r, const float *gradient, size_t step)
{
    const struct recurrent_shape s = r->shape;
    const size_t apart = s.gives_every_step ? (size_t)s.steps * s.units : s.units;
    const float *first = gradient + (s.gives_every_step ? step * s.units : 0);
    for (size_t n = 0; n < s.batch; n++)
        for (size_t j = 0; j < s.units; j++)
            r->state_gradient[n * s.units + j] += first[n * apart + j];
}

static void add_rows(const float *rows, size_t row_count, size_t size, float *restrict out)
{
    size_t row = 0;
    for (; row + 4 <= row_count; row += 4) {
        const float *four = rows + row * size;
        for (size_t i = 0; i < size; i++)
            out[i] += (four[i] + four[size + i]) + (four[2 * size + i] + four[3 * size + i]);
    }
    for (; row < row_count; row++)
        for (size_t i = 0; i < size; i++)
            out[i] += rows[row * size + i];
}

/* From the gradients before the gates of some steps to those of weights, biases and input. */
static void add_gradients(const struct recurrent *r, const struct operation_tensors *t,
                          uint32_t begin, uint32_t end)
{
    const struct recurrent_shape s = r->shape;
    const uint32_t rows = (end - begin) * s.batch;
    const size_t offset = (size_t)begin * s.batch * r->wide;
    struct gemm weights = {.m = r->is_lstm ? r->width : s.inputs,
                           .n = r->wide,
                           .k = rows,
                           .is_a_transposed = true,
                           .a = joined_at(r, begin, 0),
                           .lda = r->width,
                           .b = r->gate + offset,
                           .c = r->turned_gradient,
                           .beta = end < s.steps ? 1 : 0};
    multiply(r, &weights);
    add_rows(r->gate + offset, rows, r->wide, t->bias_gradient);
    if (!r->is_lstm) {
        weights.m = s.units;
        weights.a += s.inputs;
        weights.b = r->side + offset;
        weights.c += (size_t)s.inputs * r->wide;
        multiply(r, &weights);
        add_rows(r->side + offset, rows, r->wide, t->recurrent_bias_gradient);
    }
    if (!r->needs_input_gradient)
        return;
    const struct gemm input = {.m = rows,
                               .n = s.inputs,
                               .k = r->wide,
                               .a = r->gate + offset,
                               .b = t->weights,
                               .c = r->input_gradient + (size_t)begin * s.batch * s.inputs};
    multiply(r, &input);
}

static void give_gradients(const struct recurrent *r, const struct operation_tensors *t)
{
    const struct recurrent_shape s = r->shape;
    kernel_transpose(r->turned_gradient, t->weights_gradient, 1, s.inputs, r->wide);
    kernel_transpose(r->turned_gradient + (size_t)s.inputs * r->wide, t->recurrent_weights_gradient,
                     1, s.units, r->wide);
    if (r->is_lstm)
        memcpy(t->recurrent_bias_gradient, t->bias_gradient, sizeof(float) * r->wide);
    for (size_t n = 0; r->needs_input_gradient && n < s.batch; n++)
        for (size_t step = 0; step < s.steps; step++)
            memcpy(t->input_gradient + (n * s.steps + step) * s.inputs,
                   r->input_gradient + (step * s.batch + n) * s.inputs, sizeof(float) * s.inputs);
}

static void recurrent_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct recurrent *r = AS(recurrent, operation);
    const struct recurrent_shape s = r->shape;
    const size_t narrow = (size_t)s.batch * s.units;
    memset(r->state_gradient, 0, sizeof(float) * narrow);
    memset(r->cell_gradient, 0, sizeof(float) * narrow);
    memset(t->bias_gradient, 0, sizeof(float) * r->wide);
    memset(t->recurrent_bias_gradient, 0, sizeof(float) * r->wide);
    uint32_t end = s.steps;
    for (uint32_t step = s.steps; step-- > 0;) {
        const struct gate_step at = step_at(r, t, step);
        if (s.gives_every_step || step + 1 == s.steps)
            add_output_gradient(r, t->output_gradient, step);
        if (r->is_lstm)
            r->math.lstm_backward(&at);
        else
            r->math.gru_backward(&at);
        const struct gemm past = {.m = s.batch,
                                  .n = s.units,
                                  .k = r->wide,
                                  .a = r->is_lstm ? at.gates : at.side,
                                  .b = t->recurrent_weights,
                                  .c = r->state_gradient,
                                  .beta = 1};
        if (step > 0)
            multiply(r, &past);
        if (step == 0 || end - step == r->chunk) {
            add_gradients(r, t, step, end);
            end = step;
        }
    }
    give_gradients(r, t);
}

static void recurrent_alloc(struct recurrent *r)
{
    const struct recurrent_shape *s = &r->shape;
    const size_t rows = (size_t)s->steps * s->batch, size = sizeof(float);
    r->joined = kernel_alloc(size * (rows + s->batch) * r->width);
    r->turned = kernel_alloc(size * r->width * r->wide);
    r->gate = kernel_alloc(size * rows * r->wide);
    if (r->is_lstm)
        r->cell = kernel_alloc(size * (rows + s->batch) * s->units);
    else
        r->side = kernel_alloc(size * rows * r->wide);
    if (!r->operation.backward)
        return;
    r->turned_gradient = kernel_alloc(size * r->width * r->wide);
    r->state_gradient = kernel_alloc(size * s->batch * s->units);
    r->cell_gradient = kernel_alloc(size * s->batch * s->units);
    if (r->needs_input_gradient)
        r->input_gradient = kernel_alloc(size * rows * s->inputs);
}

int recurrent_open(const struct kernel_math *math, const struct recurrent_shape *shape,
                   const struct operation_options *options, struct operation **out_operation,
                   struct error *error)
{
    enum { CHUNK_ROWS = 256 }; /* measured: fewer make thin products, more leave the cache */
    (void)error;
    struct recurrent *r = kernel_alloc(sizeof(*r));
    r->operation = (struct operation){
        .forward = recurrent_forward,
        .backward = options->is_training ? recurrent_backward : NULL,
        .free = recurrent_free,
    };
    snprintf(r->operation.description, sizeof(r->operation.description), "%s:%s", math->name,
             shape->kind == RECURRENT_LSTM ? "lstm" : "gru");
    r->math = *math;
    r->shape = *shape;
    r->is_lstm = shape->kind == RECURRENT_LSTM;
    r->wide = (r->is_lstm ? 4 : 3) * shape->units;
    r->width = shape->inputs + shape->units;
    r->chunk = (CHUNK_ROWS + shape->batch - 1) / shape->batch;
    r->needs_input_gradient = options->is_training && options->needs_input_gradient;
    recurrent_alloc(r);
    *out_operation = &r->operation;
    return 0;
}
