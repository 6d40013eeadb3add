/*
 * Kernel simd, one instruction set: norms of rows of features (channels last), and ReLU.
 *
 * Included by kernel_simd_isa.h. A row's features lie side by side, so that loops over them are
 * plain and become vectors. Sums over many rows are floats within a few rows and doubles over all.
 */

enum { SUMMED_ROWS = 16 };

static void isa_relu_forward(const float *input, float *output, size_t count)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const vec x = load(input + i);
        store(output + i, choose(x > 0, x, (vec){0}));
    }
    for (; i < count; i++)
        output[i] = input[i] > 0 ? input[i] : 0;
}

static void isa_relu_backward(const float *output, const float *output_gradient,
                              float *input_gradient, size_t count)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store(input_gradient + i,
              choose(load(output + i) > 0, load(output_gradient + i), (vec){0}));
    for (; i < count; i++)
        input_gradient[i] = output[i] > 0 ? output_gradient[i] : 0;
}

static void add_part(float *restrict part, double *restrict sums, size_t features)
{
    for (size_t f = 0; f < features; f++) {
        sums[f] += (double)part[f];
        part[f] = 0;
    }
}

/* first = sums of x, or second = sums of (x - mean)^2 */
static void isa_batch_first(const struct simd_norm *norm, const float *input)
{
    const size_t F = norm->shape.features, rows = norm->shape.outer;
    float *restrict part = norm->part;
    memset(norm->first, 0, sizeof(double) * F);
    for (size_t row = 0; row < rows; row++) {
        const float *restrict x = input + row * F;
        for (size_t f = 0; f < F; f++)
            part[f] += x[f];
        if (row % SUMMED_ROWS == SUMMED_ROWS - 1 || row + 1 == rows)
            add_part(part, norm->first, F);
    }
}

static void isa_batch_second(const struct simd_norm *norm, const float *input)
{
    const size_t F = norm->shape.features, rows = norm->shape.outer;
    float *restrict part = norm->part;
    const float *restrict mean = norm->mean;
    memset(norm->second, 0, sizeof(double) * F);
    for (size_t row = 0; row < rows; row++) {
        const float *restrict x = input + row * F;
        for (size_t f = 0; f < F; f++) {
            const float off = x[f] - mean[f];
            part[f] += off * off;
        }
        if (row % SUMMED_ROWS == SUMMED_ROWS - 1 || row + 1 == rows)
            add_part(part, norm->second, F);
    }
}

static void isa_batch_apply(const struct simd_norm *norm, const struct operation_tensors *t)
{
    const size_t F = norm->shape.features;
    const float *restrict mean = norm->mean, *restrict scale = norm->scale;
    const float *restrict w = t->weights, *restrict b = t->bias;
    for (size_t row = 0; row < norm->shape.outer; row++) {
        const float *restrict x = t->input + row * F;
        float *restrict y = t->output + row * F;
        for (size_t f = 0; f < F; f++)
            y[f] = (x[f] - mean[f]) * scale[f] * w[f] + b[f];
    }
}

/* first = sums of dy, second = sums of dy times the normed x */
static void isa_batch_sums(const struct simd_norm *norm, const struct operation_tensors *t)
{
    const size_t F = norm->shape.features, rows = norm->shape.outer;
    const float *restrict mean = norm->mean, *restrict scale = norm->scale;
    float *restrict sum = norm->part, *restrict dot = norm->part + F;
    memset(norm->first, 0, sizeof(double) * F);
    memset(norm->second, 0, sizeof(double) * F);
    for (size_t row = 0; row < rows; row++) {
        const float *restrict x = t->input + row * F, *restrict dy = t->output_gradient + row * F;
        for (size_t f = 0; f < F; f++) {
            sum[f] += dy[f];
            dot[f] += dy[f] * ((x[f] - mean[f]) * scale[f]);
        }
        if (row % SUMMED_ROWS == SUMMED_ROWS - 1 || row + 1 == rows) {
            add_part(sum, norm->first, F);
            add_part(dot, norm->second, F);
        }
    }
}

/* `part` holds the two means that the rows share: of dy, and of dy times the normed x. */
static void isa_batch_spread(const struct simd_norm *norm, const struct operation_tensors *t)
{
    const size_t F = norm->shape.features;
    const float *restrict mean = norm->mean, *restrict scale = norm->scale;
    const float *restrict w = t->weights, *restrict sum = norm->part, *restrict dot = sum + F;
    for (size_t row = 0; row < norm->shape.outer; row++) {
        const float *restrict x = t->input + row * F, *restrict dy = t->output_gradient + row * F;
        float *restrict dx = t->input_gradient + row * F;
        for (size_t f = 0; f < F; f++)
            dx[f] = scale[f] * w[f] * (dy[f] - sum[f] - (x[f] - mean[f]) * scale[f] * dot[f]);
    }
}

/* out[f] = the sum of `window` values around f; `padded` has half a window of zeros on each side.
 * Windows differ little, so the size is not a constant of the loop. */
INLINE void around_sums(const float *restrict padded, float *restrict out, size_t features,
                        size_t window)
{
    for (size_t f = 0; f < features; f++)
        out[f] = padded[f];
    for (size_t near = 1; near < window; near++)
        for (size_t f = 0; f < features; f++)
            out[f] += padded[near + f];
}

/* 1 + alpha / window * the sum of squares around, and that to the power of -3/4. */
INLINE void local_powers(const struct simd_norm *norm, const float *restrict x)
{
    const size_t F = norm->shape.features;
    const float share = norm->shape.alpha / (float)norm->shape.window;
    float *restrict middle = norm->padded + norm->shape.window / 2;
    float *restrict base = norm->base, *restrict power = norm->power;
    for (size_t f = 0; f < F; f++)
        middle[f] = x[f] * x[f];
    around_sums(norm->padded, base, F, norm->shape.window);
    for (size_t f = 0; f < F; f++) {
        base[f] = 1 + share * base[f];
        const float root = sqrtf(base[f]);
        power[f] = 1 / (root * sqrtf(root));
    }
}

static void isa_local_forward(const struct simd_norm *norm, const struct operation_tensors *t)
{
    const size_t F = norm->shape.features;
    const float *restrict power = norm->power;
    for (size_t row = 0; row < norm->shape.outer; row++) {
        const float *restrict x = t->input + row * F;
        float *restrict y = t->output + row * F;
        local_powers(norm, x);
        for (size_t f = 0; f < F; f++)
            y[f] = x[f] * power[f];
    }
}

static void isa_local_backward(const struct simd_norm *norm, const struct operation_tensors *t)
{
    const size_t F = norm->shape.features;
    const float factor = 2 * norm->shape.beta * norm->shape.alpha / (float)norm->shape.window;
    float *restrict middle = norm->padded + norm->shape.window / 2;
    float *restrict base = norm->base, *restrict power = norm->power;
    for (size_t row = 0; row < norm->shape.outer; row++) {
        const float *restrict x = t->input + row * F, *restrict dy = t->output_gradient + row * F;
        float *restrict dx = t->input_gradient + row * F;
        local_powers(norm, x);
        for (size_t f = 0; f < F; f++)
            middle[f] = dy[f] * x[f] * power[f] / base[f];
        around_sums(norm->padded, base, F, norm->shape.window);
        for (size_t f = 0; f < F; f++)
            dx[f] = dy[f] * power[f] - factor * x[f] * base[f];
    }
}
