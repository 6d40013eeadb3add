/*
 * Kernel simd, one instruction set: vectors, dense layers and updates.
 *
 * Included once per instruction set by kernel_simd_NAME.c, which defines LANES (floats in a
 * vector), REGISTERS (vector registers) and ISA (the name). Everything here is static.
 */
#include "tensor/kernel_simd_internal.h"

#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef float vec_unaligned __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const float *from)
{
    return *(const vec_unaligned *)from;
}

INLINE void store(float *to, vec value)
{
    *(vec_unaligned *)to = value;
}

INLINE vec broadcast(float value)
{
    return value - (vec){0};
}

/* Lanes of `yes` where the mask's bits are all set, of `no` where none are. */
INLINE vec choose(ivec mask, vec yes, vec no)
{
    return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

/* What compilers do not find by themselves; what is not a number stays so. A reciprocal is within 2
 * units in the last place and may be 0 where it is below 2^-126. */
#if defined(__AVX512F__)
INLINE vec at_least(vec x, float low)
{
    return (vec)_mm512_max_ps((__m512)broadcast(low), (__m512)x);
}

INLINE vec at_most(vec x, float high)
{
    return (vec)_mm512_min_ps((__m512)broadcast(high), (__m512)x);
}

INLINE vec reciprocal(vec x)
{
    const vec guess =
        (vec)_mm512_rcp14_ps((__m512)x); /* 14 bits; one step of Newton's doubles them */
    return guess * (2 - x * guess);
}
#elif defined(__AVX2__)
INLINE vec at_least(vec x, float low)
{
    return (vec)_mm256_max_ps((__m256)broadcast(low), (__m256)x);
}

INLINE vec at_most(vec x, float high)
{
    return (vec)_mm256_min_ps((__m256)broadcast(high), (__m256)x);
}

INLINE vec reciprocal(vec x)
{
    return 1 / x;
}
#else
INLINE vec at_least(vec x, float low)
{
    return choose(x < low, broadcast(low), x);
}

INLINE vec at_most(vec x, float high)
{
    return choose(x > high, broadcast(high), x);
}

INLINE vec reciprocal(vec x)
{
    return 1 / x;
}
#endif

/* a0 b0 a1 b1 ... of the lower and of the upper halves. */
#if LANES == 16
#define LOWER(a, b)                                                                                \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define UPPER(a, b)                                                                                \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif LANES == 8
#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define UPPER(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* rows[i][j] becomes rows[j][i]: each round of interleaving turns one bit of the index over. */
INLINE void transpose(vec rows[LANES])
{
    for (int round = 1; round < LANES; round *= 2) {
        vec next[LANES];
        for (size_t i = 0; i < LANES / 2; i++) {
            next[2 * i] = LOWER(rows[i], rows[i + LANES / 2]);
            next[2 * i + 1] = UPPER(rows[i], rows[i + LANES / 2]);
        }
        for (int i = 0; i < LANES; i++)
            rows[i] = next[i];
    }
}

/* Lane i of the result is the sum of all lanes of rows[i]. */
INLINE vec sum_lanes(vec rows[LANES])
{
    for (int left = LANES / 2; left > 0; left /= 2)
        for (int i = 0; i < left; i++)
            rows[i] = LOWER(rows[i], rows[i + left]) + UPPER(rows[i], rows[i + left]);
    return rows[0];
}

INLINE float sum_one(vec value)
{
    float sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += value[i];
    return sum;
}

/* Adds up the lanes of `count` vectors that lie one after the other. */
static void reduce_lanes(const float *vectors, size_t count, float *out)
{
    size_t done = 0;
    for (; done + LANES <= count; done += LANES) {
        vec rows[LANES];
        for (int i = 0; i < LANES; i++)
            rows[i] = load(vectors + (done + (size_t)i) * LANES);
        store(out + done, sum_lanes(rows));
    }
    for (; done < count; done++)
        out[done] = sum_one(load(vectors + done * LANES));
}

/* Sums live in registers: as many as leave room for what they are made of. */
#if REGISTERS >= 32
enum { TILE_ROWS = 6, TILE_VECTORS = 4, DOT_ROWS = 4, DOT_COLUMNS = LANES < 8 ? 4 : LANES / 4 };
#else
enum { TILE_ROWS = 4, TILE_VECTORS = 2, DOT_ROWS = 2, DOT_COLUMNS = LANES < 8 ? 2 : LANES / 2 };
#endif

/* C [m, n] = A B with B [k, n] row-major and A at a[m * row + k * step]. */
struct product {
    const float *a;
    size_t a_row, a_step;
    const float *b;
    float *c;
    uint32_t m, n, k;
};

INLINE void product_tile(const struct product *p, uint32_t row, uint32_t column, int rows,
                         int vectors)
{
    vec sum[TILE_ROWS][TILE_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            sum[i][j] = (vec){0};
    const float *a = p->a + row * p->a_row, *b = p->b + column;
    for (uint32_t k = 0; k < p->k; k++, a += p->a_step, b += p->n) {
        vec values[TILE_VECTORS];
        for (int j = 0; j < vectors; j++)
            values[j] = load(b + (size_t)j * LANES);
        for (int i = 0; i < rows; i++) {
            const vec factor = broadcast(a[(size_t)i * p->a_row]);
            for (int j = 0; j < vectors; j++)
                sum[i][j] += factor * values[j];
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            store(p->c + (row + (size_t)i) * p->n + column + (size_t)j * LANES, sum[i][j]);
}

INLINE void product_columns(const struct product *p, uint32_t column, int vectors)
{
    /* Shared out evenly: no tile is left with one row, which would wait for itself. */
    const uint32_t tiles = (p->m + TILE_ROWS - 1) / TILE_ROWS;
    for (uint32_t tile = 0; tile < tiles; tile++) {
        const uint32_t row = (uint32_t)((size_t)p->m * tile / tiles);
        const uint32_t end = (uint32_t)((size_t)p->m * (tile + 1) / tiles);
        switch (end - row) {
        case 1:
            product_tile(p, row, column, 1, vectors);
            break;
        case 2:
            product_tile(p, row, column, 2, vectors);
            break;
        case 3:
            product_tile(p, row, column, 3, vectors);
            break;
#if REGISTERS >= 32
        case 4:
            product_tile(p, row, column, 4, vectors);
            break;
        case 5:
            product_tile(p, row, column, 5, vectors);
            break;
#endif
        default:
            product_tile(p, row, column, TILE_ROWS, vectors);
            break;
        }
    }
}

static void product_run(const struct product *p)
{
    uint32_t column = 0;
    for (; column + TILE_VECTORS * LANES <= p->n; column += TILE_VECTORS * LANES)
        product_columns(p, column, TILE_VECTORS);
    for (; column + LANES <= p->n; column += LANES)
        product_columns(p, column, 1);
    if (column == p->n)
        return;
    /* The rest is computed again from where it fills a vector: same values, same place. */
    if (p->n >= LANES) {
        product_columns(p, p->n - LANES, 1);
        return;
    }
    for (uint32_t row = 0; row < p->m; row++)
        for (uint32_t n = 0; n < p->n; n++) {
            float sum = 0;
            for (uint32_t k = 0; k < p->k; k++)
                sum += p->a[row * p->a_row + k * p->a_step] * p->b[(size_t)k * p->n + n];
            p->c[(size_t)row * p->n + n] = sum;
        }
}

/* Lanes that the last, overlapping vector of a row has not seen yet. */
INLINE ivec tail_mask(uint32_t count)
{
    const uint32_t fresh = count % LANES;
    ivec mask;
    for (int i = 0; i < LANES; i++)
        mask[i] = i >= LANES - (int)fresh ? -1 : 0;
    return mask;
}

/* Adds to `sum` the products of one vector's worth of rows x columns. */
INLINE void dot_step(vec sum[LANES], const float *x, const float *w, size_t stride, int rows,
                     int columns, ivec mask)
{
    vec left[DOT_ROWS];
    for (int i = 0; i < rows; i++)
        left[i] = (vec)((ivec)load(x + (size_t)i * stride) & mask);
    for (int j = 0; j < columns; j++) {
        const vec right = load(w + (size_t)j * stride);
        for (int i = 0; i < rows; i++)
            sum[i * DOT_COLUMNS + j] += left[i] * right;
    }
}

/* output[n, o] = bias[o] + input[n] . weights[o] for a few n and o; inputs >= LANES. */
INLINE void dot_tile(const struct dense_shape *s, const struct operation_tensors *t, uint32_t n,
                     uint32_t o, int rows, int columns)
{
    _Static_assert(DOT_ROWS * DOT_COLUMNS <= LANES || LANES < 8, "one sum per lane");
    const size_t stride = s->inputs;
    const float *x = t->input + n * stride, *w = t->weights + o * stride;
    const ivec all = ~(ivec){0};
    vec sum[DOT_ROWS * DOT_COLUMNS > LANES ? DOT_ROWS * DOT_COLUMNS : LANES];
    for (int i = 0; i < (int)(sizeof(sum) / sizeof(*sum)); i++)
        sum[i] = (vec){0};
    uint32_t i = 0;
    for (; i + LANES <= s->inputs; i += LANES)
        dot_step(sum, x + i, w + i, stride, rows, columns, all);
    if (i < s->inputs)
        dot_step(sum, x + s->inputs - LANES, w + s->inputs - LANES, stride, rows, columns,
                 tail_mask(s->inputs));
#if LANES >= 8
    const vec sums = sum_lanes(sum);
#define SUM_AT(i, j) sums[(i)*DOT_COLUMNS + (j)]
#else
#define SUM_AT(i, j) sum_one(sum[(i)*DOT_COLUMNS + (j)])
#endif
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            t->output[(n + (size_t)row) * s->outputs + o + (size_t)column] =
                SUM_AT(row, column) + t->bias[o + (size_t)column];
#undef SUM_AT
}

INLINE void dot_rows(const struct dense_shape *s, const struct operation_tensors *t, uint32_t n,
                     int rows)
{
    uint32_t o = 0;
    for (; o + DOT_COLUMNS <= s->outputs; o += DOT_COLUMNS)
        dot_tile(s, t, n, o, rows, DOT_COLUMNS);
    for (; o + 2 <= s->outputs; o += 2)
        dot_tile(s, t, n, o, rows, 2);
    for (; o < s->outputs; o++)
        dot_tile(s, t, n, o, rows, 1);
}

static void isa_dense_forward(const struct simd_dense *dense, const struct operation_tensors *t)
{
    const struct dense_shape s = dense->shape;
    if (s.inputs < LANES) {
        for (uint32_t n = 0; n < s.batch; n++)
            for (uint32_t o = 0; o < s.outputs; o++) {
                float sum = t->bias[o];
                for (uint32_t i = 0; i < s.inputs; i++)
                    sum += t->input[n * s.inputs + i] * t->weights[o * s.inputs + i];
                t->output[n * s.outputs + o] = sum;
            }
        return;
    }
    uint32_t n = 0;
    for (; n + DOT_ROWS <= s.batch; n += DOT_ROWS)
        dot_rows(&s, t, n, DOT_ROWS);
    for (; n < s.batch; n++)
        dot_rows(&s, t, n, 1);
}

static struct product weights_product(const struct simd_dense *dense,
                                      const struct operation_tensors *t)
{
    const struct dense_shape s = dense->shape;
    return (struct product){.a = t->output_gradient,
                            .a_row = 1,
                            .a_step = s.outputs,
                            .b = t->input,
                            .c = t->weights_gradient,
                            .m = s.outputs,
                            .n = s.inputs,
                            .k = s.batch};
}

static struct product input_product(const struct simd_dense *dense,
                                    const struct operation_tensors *t)
{
    const struct dense_shape s = dense->shape;
    return (struct product){.a = t->output_gradient,
                            .a_row = s.outputs,
                            .a_step = 1,
                            .b = t->weights,
                            .c = t->input_gradient,
                            .m = s.batch,
                            .n = s.inputs,
                            .k = s.outputs};
}

static void add_bias_gradient(const struct simd_dense *dense, const struct operation_tensors *t)
{
    const struct dense_shape s = dense->shape;
    memset(t->bias_gradient, 0, sizeof(float) * s.outputs);
    for (uint32_t n = 0; n < s.batch; n++)
        for (uint32_t o = 0; o < s.outputs; o++)
            t->bias_gradient[o] += t->output_gradient[(size_t)n * s.outputs + o];
}

static void isa_dense_backward(const struct simd_dense *dense, const struct operation_tensors *t)
{
    const struct product weights = weights_product(dense, t);
    product_run(&weights);
    add_bias_gradient(dense, t);
    if (!dense->needs_input_gradient)
        return;
    const struct product input = input_product(dense, t);
    product_run(&input);
}

static void isa_sgd(const struct sgd_rule *rule, float *restrict weights, float *restrict velocity,
                    const float *restrict gradient, size_t count)
{
    const struct sgd_rule r = *rule;
    const float ahead = r.is_nesterov ? r.momentum : 1, now = r.is_nesterov ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        const float step = gradient[i] + r.weight_decay * weights[i];
        velocity[i] = r.momentum * velocity[i] + step;
        weights[i] -= r.lr * (now * step + ahead * velocity[i]);
    }
}

static void isa_adam(const struct adam_rule *rule, float *restrict weights, float *restrict first,
                     float *restrict second, const float *restrict gradient, size_t count)
{
    const struct adam_rule r = *rule;
    for (size_t i = 0; i < count; i++) {
        const float g = gradient[i] + r.weight_decay * weights[i];
        first[i] = r.beta1 * first[i] + (1 - r.beta1) * g;
        second[i] = r.beta2 * second[i] + (1 - r.beta2) * g * g;
        weights[i] = r.shrink * weights[i] -
                     r.lr * first[i] / (r.second_scale * sqrtf(second[i]) + r.epsilon);
    }
}

static void isa_axpy(float a, const float *restrict x, float *restrict y, size_t count)
{
    for (size_t i = 0; i < count; i++)
        y[i] += a * x[i];
}

static void isa_scale(float a, float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] *= a;
}

#include "tensor/kernel_simd_conv.h"
#include "tensor/kernel_simd_gates.h"
#include "tensor/kernel_simd_norm.h"
#include "tensor/kernel_simd_sparse.h"

const struct simd_isa ISA = {
    .name = ISA_NAME,
    .width = LANES,
    .dense_forward = isa_dense_forward,
    .dense_backward = isa_dense_backward,
    .count_zeros = isa_count_zeros,
    .sparse_forward = isa_sparse_forward,
    .sparse_backward = isa_sparse_backward,
    .block_forward = isa_block_forward,
    .block_backward = isa_block_backward,
    .lstm_forward = isa_lstm_forward,
    .lstm_backward = isa_lstm_backward,
    .gru_forward = isa_gru_forward,
    .gru_backward = isa_gru_backward,
    .relu_forward = isa_relu_forward,
    .relu_backward = isa_relu_backward,
    .batch_first = isa_batch_first,
    .batch_second = isa_batch_second,
    .batch_apply = isa_batch_apply,
    .batch_sums = isa_batch_sums,
    .batch_spread = isa_batch_spread,
    .local_forward = isa_local_forward,
    .local_backward = isa_local_backward,
    .sgd = isa_sgd,
    .adam = isa_adam,
    .axpy = isa_axpy,
    .scale = isa_scale,
    .exp = isa_exp,
};
