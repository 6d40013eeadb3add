/*
 * LSTM and GRU over time: one matrix product for the inputs of all steps, one small product and the
 * gates for each step, then two large products for the gradients of the weights.
 *
 * T steps, B batch, I inputs, H units, G gates (4 or 3). Inside, time is outermost, so that a step
 * of the whole batch lies together: input [T, B, I], gates [T, B, G, H], states [T + 1, B, H].
 */
#include "tensor/kernel_math.h"

#include <stdlib.h>
#include <string.h>

struct recurrent {
    struct operation operation;
    struct kernel_math math;
    struct recurrent_shape shape;
    uint32_t gates;
    bool needs_input_gradient;
    float *input;          /* [T, B, I] */
    float *gate;           /* [T, B, G, H] */
    float *side;           /* of a GRU: [T, B, G, H] */
    float *state, *cell;   /* [T + 1, B, H], the first is zero; cell of an LSTM only */
    float *state_gradient; /* [B, H] */
    float *cell_gradient;  /* [B, H] */
    float *input_gradient; /* [T, B, I] */
};

static void recurrent_free(struct operation *operation)
{
    struct recurrent *recurrent = AS(recurrent, operation);
    free(recurrent->input);
    free(recurrent->gate);
    free(recurrent->side);
    free(recurrent->state);
    free(recurrent->cell);
    free(recurrent->state_gradient);
    free(recurrent->cell_gradient);
    free(recurrent->input_gradient);
    free(recurrent);
}

/* to [outer, inner, size] from [inner, outer, size] */
static void swap_outer(const float *from, float *to, size_t outer, size_t inner, size_t size)
{
    for (size_t i = 0; i < outer; i++)
        for (size_t k = 0; k < inner; k++)
            memcpy(to + (i * inner + k) * size, from + (k * outer + i) * size,
                   sizeof(float) * size);
}

static struct gate_step step_at(const struct recurrent *r, const struct operation_tensors *t,
                                size_t step)
{
    const size_t wide = (size_t)r->shape.batch * r->gates * r->shape.units;
    const size_t narrow = (size_t)r->shape.batch * r->shape.units;
    return (struct gate_step){
        .batch = r->shape.batch,
        .units = r->shape.units,
        .gates = r->gate + step * wide,
        .side = r->side ? r->side + step * wide : NULL,
        .bias = t->bias,
        .recurrent_bias = t->recurrent_bias,
        .state_before = r->state + step * narrow,
        .state = r->state + (step + 1) * narrow,
        .cell_before = r->cell ? r->cell + step * narrow : NULL,
        .cell = r->cell ? r->cell + (step + 1) * narrow : NULL,
        .state_gradient = r->state_gradient,
        .cell_gradient = r->cell_gradient,
    };
}

static void recurrent_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct recurrent *r = AS(recurrent, operation);
    const struct recurrent_shape s = r->shape;
    const uint32_t wide = r->gates * s.units;
    swap_outer(t->input, r->input, s.steps, s.batch, s.inputs);
    const struct gemm inputs = {.m = s.steps * s.batch,
                                .n = wide,
                                .k = s.inputs,
                                .is_b_transposed = true,
                                .a = r->input,
                                .b = t->weights,
                                .c = r->gate};
    r->math.gemm(r->math.gemm_state, &inputs);
    const bool is_lstm = s.kind == RECURRENT_LSTM;
    for (size_t step = 0; step < s.steps; step++) {
        const struct gate_step at = step_at(r, t, step);
        const struct gemm past = {.m = s.batch,
                                  .n = wide,
                                  .k = s.units,
                                  .is_b_transposed = true,
                                  .a = at.state_before,
                                  .b = t->recurrent_weights,
                                  .c = is_lstm ? at.gates : at.side,
                                  .beta = is_lstm ? 1 : 0};
        r->math.gemm(r->math.gemm_state, &past);
        if (is_lstm)
            r->math.lstm_forward(&at);
        else
            r->math.gru_forward(&at);
    }
    const size_t narrow = (size_t)s.batch * s.units;
    if (s.gives_every_step)
        swap_outer(r->state + narrow, t->output, s.batch, s.steps, s.units);
    else
        memcpy(t->output, r->state + s.steps * narrow, sizeof(float) * narrow);
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

static void sum_rows(const float *rows, size_t row_count, size_t size, float *out)
{
    memset(out, 0, sizeof(float) * size);
    for (size_t row = 0; row < row_count; row++)
        for (size_t i = 0; i < size; i++)
            out[i] += rows[row * size + i];
}

/* From the gradients before the gates of all steps to those of the parameters and the input. */
static void recurrent_collect(const struct recurrent *r, const struct operation_tensors *t)
{
    const struct recurrent_shape s = r->shape;
    const uint32_t wide = r->gates * s.units, rows = s.steps * s.batch;
    const float *side = r->side ? r->side : r->gate;
    const struct gemm weights = {.m = wide,
                                 .n = s.inputs,
                                 .k = rows,
                                 .is_a_transposed = true,
                                 .a = r->gate,
                                 .b = r->input,
                                 .c = t->weights_gradient};
    const struct gemm recurrent = {.m = wide,
                                   .n = s.units,
                                   .k = rows,
                                   .is_a_transposed = true,
                                   .a = side,
                                   .b = r->state,
                                   .c = t->recurrent_weights_gradient};
    r->math.gemm(r->math.gemm_state, &weights);
    r->math.gemm(r->math.gemm_state, &recurrent);
    sum_rows(r->gate, rows, wide, t->bias_gradient);
    if (r->side)
        sum_rows(side, rows, wide, t->recurrent_bias_gradient);
    else
        memcpy(t->recurrent_bias_gradient, t->bias_gradient, sizeof(float) * wide);
    if (!r->needs_input_gradient)
        return;
    const struct gemm input = {
        .m = rows, .n = s.inputs, .k = wide, .a = r->gate, .b = t->weights, .c = r->input_gradient};
    r->math.gemm(r->math.gemm_state, &input);
    swap_outer(r->input_gradient, t->input_gradient, s.batch, s.steps, s.inputs);
}

static void recurrent_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct recurrent *r = AS(recurrent, operation);
    const struct recurrent_shape s = r->shape;
    const size_t narrow = (size_t)s.batch * s.units;
    const bool is_lstm = s.kind == RECURRENT_LSTM;
    memset(r->state_gradient, 0, sizeof(float) * narrow);
    memset(r->cell_gradient, 0, sizeof(float) * narrow);
    for (size_t step = s.steps; step-- > 0;) {
        const struct gate_step at = step_at(r, t, step);
        if (s.gives_every_step || step + 1 == s.steps)
            add_output_gradient(r, t->output_gradient, step);
        if (is_lstm)
            r->math.lstm_backward(&at);
        else
            r->math.gru_backward(&at);
        const struct gemm past = {.m = s.batch,
                                  .n = s.units,
                                  .k = r->gates * s.units,
                                  .a = is_lstm ? at.gates : at.side,
                                  .b = t->recurrent_weights,
                                  .c = r->state_gradient,
                                  .beta = 1};
        if (step > 0)
            r->math.gemm(r->math.gemm_state, &past);
    }
    recurrent_collect(r, t);
}

int recurrent_open(const struct kernel_math *math, const struct recurrent_shape *shape,
                   const struct operation_options *options, struct operation **out_operation,
                   struct error *error)
{
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
    r->gates = shape->kind == RECURRENT_LSTM ? 4 : 3;
    r->needs_input_gradient = options->is_training && options->needs_input_gradient;
    const size_t rows = (size_t)shape->steps * shape->batch, size = sizeof(float);
    const size_t states = (rows + shape->batch) * shape->units;
    r->input = kernel_alloc(size * rows * shape->inputs);
    r->gate = kernel_alloc(size * rows * r->gates * shape->units);
    r->state = kernel_alloc(size * states);
    if (shape->kind == RECURRENT_LSTM)
        r->cell = kernel_alloc(size * states);
    else
        r->side = kernel_alloc(size * rows * r->gates * shape->units);
    r->state_gradient = kernel_alloc(size * shape->batch * shape->units);
    r->cell_gradient = kernel_alloc(size * shape->batch * shape->units);
    if (r->needs_input_gradient)
        r->input_gradient = kernel_alloc(size * rows * shape->inputs);
    *out_operation = &r->operation;
    return 0;
}
