/* Kernel plain: embedding, and the loops that sequence operations are made of. */
#include "tensor/kernel_math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct plain_embedding {
    struct operation operation;
    struct embedding_shape shape;
};

/* A token that is none of the vocabulary's cannot come from a checked data set; it is clamped so
 * that no memory outside is ever read. */
static size_t token_at(const struct embedding_shape *s, const float *input, size_t i)
{
    const float token = input[i];
    if (!(token >= 0))
        return 0;
    return token < (float)s->vocabulary ? (size_t)token : s->vocabulary - 1;
}

static void embedding_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct embedding_shape s = AS(plain_embedding, operation)->shape;
    for (size_t i = 0; i < s.count; i++)
        memcpy(t->output + i * s.width, t->weights + token_at(&s, t->input, i) * s.width,
               sizeof(float) * s.width);
}

static void embedding_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct embedding_shape s = AS(plain_embedding, operation)->shape;
    memset(t->weights_gradient, 0, sizeof(float) * s.vocabulary * (size_t)s.width);
    for (size_t i = 0; i < s.count; i++) {
        float *row = t->weights_gradient + token_at(&s, t->input, i) * s.width;
        for (size_t j = 0; j < s.width; j++)
            row[j] += t->output_gradient[i * s.width + j];
    }
}

int plain_open_embedding(void *state, const struct embedding_shape *shape,
                         const struct operation_options *options, struct operation **out_operation,
                         struct error *error)
{
    (void)state;
    (void)error;
    *out_operation = plain_new(sizeof(struct plain_embedding), "embedding", embedding_forward,
                               options->is_training ? embedding_backward : NULL);
    AS(plain_embedding, *out_operation)->shape = *shape;
    return 0;
}

static void plain_gemm(void *state, const struct gemm *g)
{
    (void)state;
    const size_t lda = gemm_lda(g), ldb = gemm_ldb(g), ldc = gemm_ldc(g);
    for (size_t i = 0; i < g->m; i++)
        for (size_t j = 0; j < g->n; j++) {
            float sum = 0;
            for (size_t k = 0; k < g->k; k++)
                sum += (g->is_a_transposed ? g->a[k * lda + i] : g->a[i * lda + k]) *
                       (g->is_b_transposed ? g->b[j * ldb + k] : g->b[k * ldb + j]);
            float *c = &g->c[i * ldc + j];
            *c = g->beta != 0 ? *c + sum : sum;
        }
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

static void lstm_forward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++)
        for (size_t j = 0; j < H; j++) {
            float *gates = s->gates + n * 4 * H, gate[4];
            for (size_t k = 0; k < 4; k++)
                gate[k] = gates[k * H + j] + s->bias[k * H + j] + s->recurrent_bias[k * H + j];
            const float input = sigmoid(gate[0]), forget = sigmoid(gate[1]);
            const float fresh = tanhf(gate[2]), output = sigmoid(gate[3]);
            const float cell = forget * s->cell_before[n * H + j] + input * fresh;
            s->cell[n * H + j] = cell;
            s->state[n * s->state_stride + j] = output * tanhf(cell);
            gates[j] = input;
            gates[H + j] = forget;
            gates[2 * H + j] = fresh;
            gates[3 * H + j] = output;
        }
}

static void lstm_backward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++)
        for (size_t j = 0; j < H; j++) {
            float *gates = s->gates + n * 4 * H;
            const size_t at = n * H + j;
            const float input = gates[j], forget = gates[H + j];
            const float fresh = gates[2 * H + j], output = gates[3 * H + j];
            const float squashed = tanhf(s->cell[at]), dh = s->state_gradient[at];
            const float dc = s->cell_gradient[at] + dh * output * (1 - squashed * squashed);
            gates[j] = dc * fresh * input * (1 - input);
            gates[H + j] = dc * s->cell_before[at] * forget * (1 - forget);
            gates[2 * H + j] = dc * input * (1 - fresh * fresh);
            gates[3 * H + j] = dh * squashed * output * (1 - output);
            s->cell_gradient[at] = dc * forget;
            s->state_gradient[at] = 0;
        }
}

static void gru_forward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++)
        for (size_t j = 0; j < H; j++) {
            float *gates = s->gates + n * 3 * H, *side = s->side + n * 3 * H;
            float in[3], past[3];
            for (size_t k = 0; k < 3; k++) {
                in[k] = gates[k * H + j] + s->bias[k * H + j];
                past[k] = side[k * H + j] + s->recurrent_bias[k * H + j];
            }
            const float reset = sigmoid(in[0] + past[0]), keep = sigmoid(in[1] + past[1]);
            const float fresh = tanhf(in[2] + reset * past[2]);
            const size_t at = n * s->state_stride + j;
            s->state[at] = (1 - keep) * fresh + keep * s->state_before[at];
            gates[j] = reset;
            gates[H + j] = keep;
            gates[2 * H + j] = fresh;
            side[2 * H + j] = past[2];
        }
}

static void gru_backward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++)
        for (size_t j = 0; j < H; j++) {
            float *gates = s->gates + n * 3 * H, *side = s->side + n * 3 * H;
            const size_t at = n * H + j;
            const float reset = gates[j], keep = gates[H + j], fresh = gates[2 * H + j];
            const float past = side[2 * H + j], dh = s->state_gradient[at];
            const float d_fresh = dh * (1 - keep) * (1 - fresh * fresh);
            const float before = s->state_before[n * s->state_stride + j];
            const float d_keep = dh * (before - fresh) * keep * (1 - keep);
            const float d_reset = d_fresh * past * reset * (1 - reset);
            gates[j] = side[j] = d_reset;
            gates[H + j] = side[H + j] = d_keep;
            gates[2 * H + j] = d_fresh;
            side[2 * H + j] = d_fresh * reset;
            s->state_gradient[at] = dh * keep;
        }
}

const struct kernel_math kernel_math_plain = {
    .name = "plain",
    .gemm = plain_gemm,
    .lstm_forward = lstm_forward,
    .lstm_backward = lstm_backward,
    .gru_forward = gru_forward,
    .gru_backward = gru_backward,
};

int plain_open_sequence_conv(void *state, const struct sequence_conv_shape *shape,
                             const struct operation_options *options,
                             struct operation **out_operation, struct error *error)
{
    (void)state;
    return sequence_conv_open(&kernel_math_plain, shape, options, out_operation, error);
}

int plain_open_recurrent(void *state, const struct recurrent_shape *shape,
                         const struct operation_options *options, struct operation **out_operation,
                         struct error *error)
{
    (void)state;
    return recurrent_open(&kernel_math_plain, shape, options, out_operation, error);
}
