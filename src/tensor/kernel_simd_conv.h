/*
 * Kernel simd, one instruction set: convolution, pooling and ReLU in one, batch innermost.
 *
 * Included by kernel_simd_isa.h; struct simd_block says how things lie in memory. Four outputs (the
 * window that will be pooled) times a few channels are summed in registers; the same sums turned
 * round (weights flipped, channels swapped) give the input's gradient.
 */

/* Channels summed at a time, largest first. */
#if REGISTERS >= 32
#define EACH_CHANNEL_BLOCK(X) X(6) X(4) X(2) X(1)
#define EACH_WEIGHT_BLOCK(X)  X(4) X(2) X(1)
enum { CHANNEL_BLOCK_MAX = 6, WEIGHT_BLOCK_MAX = 4 };
#else
#define EACH_CHANNEL_BLOCK(X) X(2) X(1)
#define EACH_WEIGHT_BLOCK(X)  X(2) X(1)
enum { CHANNEL_BLOCK_MAX = 2, WEIGHT_BLOCK_MAX = 2 };
#endif

/* [count, lane] <- [sample, count], for the samples there are; the other lanes get 0. */
static void lanes_in(const float *samples, size_t stride, uint32_t sample_count, size_t count,
                     float *out)
{
    size_t i = 0;
    for (; sample_count == LANES && i + LANES <= count; i += LANES) {
        vec rows[LANES];
        for (int n = 0; n < LANES; n++)
            rows[n] = load(samples + (size_t)n * stride + i);
        transpose(rows);
        for (int n = 0; n < LANES; n++)
            store(out + (i + (size_t)n) * LANES, rows[n]);
    }
    for (; i < count; i++)
        for (uint32_t n = 0; n < LANES; n++)
            out[i * LANES + n] = n < sample_count ? samples[n * stride + i] : 0;
}

static void lanes_out(const float *lanes, size_t stride, uint32_t sample_count, size_t count,
                      float *samples)
{
    size_t i = 0;
    for (; sample_count == LANES && i + LANES <= count; i += LANES) {
        vec rows[LANES];
        for (int n = 0; n < LANES; n++)
            rows[n] = load(lanes + (i + (size_t)n) * LANES);
        transpose(rows);
        for (int n = 0; n < LANES; n++)
            store(samples + (size_t)n * stride + i, rows[n]);
    }
    for (; i < count; i++)
        for (uint32_t n = 0; n < sample_count; n++)
            samples[n * stride + i] = lanes[i * LANES + n];
}

/* The samples of one group. */
INLINE uint32_t group_size(const struct simd_block *block, uint32_t group)
{
    const uint32_t left = block->shape.batch - group * LANES;
    return left < LANES ? left : LANES;
}

/* An image of one group with a border of zeros. */
struct field {
    const float *data;
    uint32_t channels, height, width; /* without the border */
    uint32_t border;
};

INLINE size_t field_row(const struct field *field)
{
    return (size_t)(field->width + 2 * field->border) * LANES;
}

INLINE size_t field_channel(const struct field *field)
{
    return field_row(field) * (field->height + 2 * field->border);
}

/* Kernel rows (or columns) that meet more than border for two outputs from `first` on. */
struct span {
    uint32_t begin, end;
};

INLINE struct span kernel_span(uint32_t first, uint32_t border, uint32_t size, uint32_t kernel)
{
    const uint32_t last = border + size - first;
    return (struct span){.begin = border > first + 1 ? border - 1 - first : 0,
                         .end = last < kernel ? last : kernel};
}

/* sum[channel][window] for the 2 x 2 outputs at (y, x), from weights [C, R, R, channels]. */
INLINE void window_sums(const struct field *field, const float *weights, uint32_t kernel,
                        uint32_t y, uint32_t x, int channels, vec sum[CHANNEL_BLOCK_MAX][4])
{
    for (int k = 0; k < channels; k++)
        for (int i = 0; i < 4; i++)
            sum[k][i] = (vec){0};
    const size_t row = field_row(field), channel = field_channel(field);
    const struct span rows = kernel_span(y, field->border, field->height, kernel);
    const struct span columns = kernel_span(x, field->border, field->width, kernel);
    const float *corner = field->data + y * row + (size_t)x * LANES;
    for (uint32_t c = 0; c < field->channels; c++)
        for (uint32_t r = rows.begin; r < rows.end; r++) {
            const float *upper = corner + c * channel + r * row + (size_t)columns.begin * LANES;
            const float *weight =
                weights + (((size_t)c * kernel + r) * kernel + columns.begin) * (size_t)channels;
            for (uint32_t s = columns.begin; s < columns.end;
                 s++, upper += LANES, weight += channels) {
                const vec x00 = load(upper), x01 = load(upper + LANES);
                const vec x10 = load(upper + row), x11 = load(upper + row + LANES);
                for (int k = 0; k < channels; k++) {
                    const vec factor = broadcast(weight[k]);
                    sum[k][0] += factor * x00;
                    sum[k][1] += factor * x01;
                    sum[k][2] += factor * x10;
                    sum[k][3] += factor * x11;
                }
            }
        }
}

/* The order window_sums reads them in: blocks of channels, then [in, R, R, channel of block]. */
static void pack_weights(const struct simd_block *block, const float *weights, bool is_backward)
{
    const uint32_t R = block->shape.kernel, area = R * R;
    const uint32_t C = block->shape.channels_in, K = block->shape.channels_out;
    const uint32_t out_count = is_backward ? C : K, in_count = is_backward ? K : C;
    float *to = block->packed;
    uint32_t first = 0;
#define X(size)                                                                                    \
    for (; first + (size) <= out_count; first += (size))                                           \
        for (uint32_t in = 0; in < in_count; in++)                                                 \
            for (uint32_t i = 0; i < area; i++)                                                    \
                for (uint32_t out = first; out < first + (size); out++)                            \
                    *to++ = is_backward ? weights[((size_t)in * C + out) * area + area - 1 - i]    \
                                        : weights[((size_t)out * C + in) * area + i];
    EACH_CHANNEL_BLOCK(X)
#undef X
}

/* Of four the largest (the first of equals), then bias and ReLU; remembers which it was. */
INLINE vec pool_and_cut(const vec window[4], vec bias, ivec *out_winner)
{
    vec best = window[0];
    ivec winner = {0};
    for (int i = 1; i < 4; i++) {
        const ivec is_larger = window[i] > best;
        best = choose(is_larger, window[i], best);
        winner = (is_larger & i) | (~is_larger & winner);
    }
    best += bias;
    const ivec is_positive = best > (vec){0};
    *out_winner = winner | ~is_positive; /* -1 where cut */
    return (vec)(is_positive & (ivec)best);
}

INLINE void pool_channels(const struct simd_block *block, const struct field *field,
                          const float *bias, int32_t *winner, uint32_t first, int channels)
{
    const uint32_t R = block->shape.kernel, rows = block->P / 2, columns = block->Q / 2;
    const float *weights = block->packed + (size_t)first * field->channels * R * R;
    for (uint32_t p = 0; p < rows; p++)
        for (uint32_t q = 0; q < columns; q++) {
            vec sum[CHANNEL_BLOCK_MAX][4];
            window_sums(field, weights, R, 2 * p, 2 * q, channels, sum);
            for (int k = 0; k < channels; k++) {
                const uint32_t channel = first + (uint32_t)k;
                const size_t place = (((size_t)channel * rows + p) * columns + q) * LANES;
                ivec which;
                store(block->pooled + place,
                      pool_and_cut(sum[k], broadcast(bias[channel]), &which));
                if (block->is_training)
                    memcpy(winner + place, &which, sizeof(which));
            }
        }
}

static struct field input_field(const struct simd_block *block, uint32_t group)
{
    const struct conv_shape *s = &block->shape;
    struct field field = {NULL, s->channels_in, s->height, s->width, s->pad};
    field.data = block->input + (size_t)group * field.channels * field_channel(&field);
    return field;
}

/* Row by row, because each row is followed by its border. */
static void fill_input(const struct simd_block *block, const struct operation_tensors *t,
                       uint32_t group)
{
    const struct conv_shape *s = &block->shape;
    const struct field field = input_field(block, group);
    const size_t size = (size_t)s->channels_in * s->height * s->width;
    const float *samples = t->input + (size_t)group * LANES * size;
    float *data = block->input + (field.data - block->input);
    for (uint32_t c = 0; c < s->channels_in; c++)
        for (uint32_t y = 0; y < s->height; y++)
            lanes_in(samples + ((size_t)c * s->height + y) * s->width, size,
                     group_size(block, group), s->width,
                     data + c * field_channel(&field) + (y + s->pad) * field_row(&field) +
                         (size_t)s->pad * LANES);
}

static void isa_block_forward(const struct simd_block *block, const struct operation_tensors *t)
{
    const uint32_t K = block->shape.channels_out;
    const size_t pooled_size = (size_t)K * (block->P / 2) * (block->Q / 2);
    pack_weights(block, t->weights, /* is_backward= */ false);
    for (uint32_t group = 0; group < block->group_count; group++) {
        fill_input(block, t, group);
        const struct field field = input_field(block, group);
        int32_t *winner = block->is_training ? block->winner + group * pooled_size * LANES : NULL;
        uint32_t first = 0;
#define X(size)                                                                                    \
    for (; first + (size) <= K; first += (size))                                                   \
        pool_channels(block, &field, t->bias, winner, first, size);
        EACH_CHANNEL_BLOCK(X)
#undef X
        lanes_out(block->pooled, pooled_size, group_size(block, group), pooled_size,
                  t->output + (size_t)group * LANES * pooled_size);
    }
}

static struct field gradient_field(const struct simd_block *block)
{
    return (struct field){block->gradient, block->shape.channels_out, block->P, block->Q,
                          block->border};
}

/* Spreads the pooled gradient over the convolution's outputs: all to the winner. */
static void fill_gradient(const struct simd_block *block, const int32_t *winner,
                          float *bias_gradient)
{
    const struct field field = gradient_field(block);
    const size_t row = field_row(&field);
    const float *from = block->pooled;
    for (uint32_t k = 0; k < field.channels; k++) {
        vec bias = {0};
        for (uint32_t p = 0; p < block->P; p += 2) {
            float *to = block->gradient + k * field_channel(&field) + (p + field.border) * row +
                        (size_t)field.border * LANES;
            for (uint32_t q = 0; q < block->Q; q += 2, to += (size_t)2 * LANES) {
                const vec value = load(from);
                ivec which;
                memcpy(&which, winner, sizeof(which));
                store(to, (vec)((which == 0) & (ivec)value));
                store(to + LANES, (vec)((which == 1) & (ivec)value));
                store(to + row, (vec)((which == 2) & (ivec)value));
                store(to + row + LANES, (vec)((which == 3) & (ivec)value));
                bias += (vec)((which >= 0) & (ivec)value);
                from += LANES;
                winner += LANES;
            }
        }
        bias_gradient[k] += sum_one(bias);
    }
}

/* Adds the products of `channels` gradients and `columns` neighbouring inputs of some rows. */
struct weight_rows {
    const float *input, *gradient; /* at the first row, channel and kernel column */
    size_t input_row, gradient_row, gradient_channel;
    uint32_t rows, width;
    float *sums; /* [channel, ..., column] */
    size_t sums_channel;
};

INLINE void weight_sums(const struct weight_rows *w, int channels, int columns)
{
    enum { COLUMNS_MAX = 5 };
    vec sum[WEIGHT_BLOCK_MAX][COLUMNS_MAX];
    for (int k = 0; k < channels; k++)
        for (int s = 0; s < columns; s++)
            sum[k][s] = load(w->sums + (size_t)k * w->sums_channel + (size_t)s * LANES);
    for (uint32_t p = 0; p < w->rows; p++) {
        const float *input = w->input + p * w->input_row;
        const float *gradient = w->gradient + p * w->gradient_row;
        for (uint32_t q = 0; q < w->width; q++, input += LANES, gradient += LANES) {
            vec values[COLUMNS_MAX];
            for (int s = 0; s < columns; s++)
                values[s] = load(input + (size_t)s * LANES);
            for (int k = 0; k < channels; k++) {
                const vec factor = load(gradient + (size_t)k * w->gradient_channel);
                for (int s = 0; s < columns; s++)
                    sum[k][s] += factor * values[s];
            }
        }
    }
    for (int k = 0; k < channels; k++)
        for (int s = 0; s < columns; s++)
            store(w->sums + (size_t)k * w->sums_channel + (size_t)s * LANES, sum[k][s]);
}

INLINE void weight_columns(struct weight_rows w, uint32_t kernel, int channels)
{
    uint32_t s = 0;
#define X(size)                                                                                    \
    for (; s + (size) <= kernel;                                                                   \
         s += (size), w.input += (size_t)(size)*LANES, w.sums += (size_t)(size)*LANES)             \
        weight_sums(&w, channels, size);
    X(5) X(3) X(1)
#undef X
}

/* For rows [first, first + rows) of the convolution's output. */
INLINE void weight_channels(const struct simd_block *block, const struct field *input,
                            uint32_t first_row, uint32_t rows, uint32_t k, int channels)
{
    const struct field gradient = gradient_field(block);
    const uint32_t R = block->shape.kernel, C = input->channels;
    for (uint32_t c = 0; c < C; c++)
        for (uint32_t r = 0; r < R; r++) {
            const struct weight_rows w = {
                .input =
                    input->data + c * field_channel(input) + (first_row + r) * field_row(input),
                .gradient = gradient.data + k * field_channel(&gradient) +
                            (first_row + gradient.border) * field_row(&gradient) +
                            (size_t)gradient.border * LANES,
                .input_row = field_row(input),
                .gradient_row = field_row(&gradient),
                .gradient_channel = field_channel(&gradient),
                .rows = rows,
                .width = block->Q,
                .sums = block->weights_sums + (((size_t)k * C + c) * R + r) * R * LANES,
                .sums_channel = (size_t)C * R * R * LANES,
            };
            weight_columns(w, R, channels);
        }
}

static void add_weights_gradient(const struct simd_block *block, uint32_t group)
{
    /* Rows at a time such that their gradients stay in the first cache. */
    enum { CACHE_SIZE = 24 * 1024 };
    const uint32_t row_size = WEIGHT_BLOCK_MAX * block->Q * LANES * (uint32_t)sizeof(float);
    const uint32_t rows_max = row_size < CACHE_SIZE ? CACHE_SIZE / row_size : 1;
    const struct field input = input_field(block, group);
    const uint32_t K = block->shape.channels_out;
    for (uint32_t row = 0; row < block->P; row += rows_max) {
        const uint32_t rows = block->P - row < rows_max ? block->P - row : rows_max;
        uint32_t k = 0;
#define X(size)                                                                                    \
    for (; k + (size) <= K; k += (size))                                                           \
        weight_channels(block, &input, row, rows, k, size);
        EACH_WEIGHT_BLOCK(X)
#undef X
    }
}

INLINE void input_channels(const struct simd_block *block, const struct field *field,
                           uint32_t first, int channels)
{
    const struct conv_shape *s = &block->shape;
    const uint32_t R = s->kernel;
    const float *weights = block->packed + (size_t)first * field->channels * R * R;
    for (uint32_t y = 0; y < s->height; y += 2)
        for (uint32_t x = 0; x < s->width; x += 2) {
            vec sum[CHANNEL_BLOCK_MAX][4];
            window_sums(field, weights, R, y + s->pad, x + s->pad, channels, sum);
            for (int c = 0; c < channels; c++) {
                const size_t row = (size_t)s->width * LANES;
                float *to = block->input_gradient +
                            ((size_t)(first + (uint32_t)c) * s->height + y) * row +
                            (size_t)x * LANES;
                store(to, sum[c][0]);
                store(to + LANES, sum[c][1]);
                store(to + row, sum[c][2]);
                store(to + row + LANES, sum[c][3]);
            }
        }
}

static void write_input_gradient(const struct simd_block *block, uint32_t group, float *out)
{
    const struct conv_shape *s = &block->shape;
    const struct field field = gradient_field(block);
    const size_t size = (size_t)s->channels_in * s->height * s->width;
    uint32_t first = 0;
#define X(size)                                                                                    \
    for (; first + (size) <= s->channels_in; first += (size))                                      \
        input_channels(block, &field, first, size);
    EACH_CHANNEL_BLOCK(X)
#undef X
    lanes_out(block->input_gradient, size, group_size(block, group), size,
              out + (size_t)group * LANES * size);
}

static void isa_block_backward(const struct simd_block *block, const struct operation_tensors *t)
{
    const struct conv_shape *s = &block->shape;
    const size_t weights_count = (size_t)s->channels_out * s->channels_in * s->kernel * s->kernel;
    const size_t pooled_size = (size_t)s->channels_out * (block->P / 2) * (block->Q / 2);
    memset(block->weights_sums, 0, sizeof(float) * weights_count * LANES);
    memset(t->bias_gradient, 0, sizeof(float) * s->channels_out);
    if (block->needs_input_gradient)
        pack_weights(block, t->weights, /* is_backward= */ true);
    for (uint32_t group = 0; group < block->group_count; group++) {
        lanes_in(t->output_gradient + (size_t)group * LANES * pooled_size, pooled_size,
                 group_size(block, group), pooled_size, block->pooled);
        fill_gradient(block, block->winner + group * pooled_size * LANES, t->bias_gradient);
        add_weights_gradient(block, group);
        if (block->needs_input_gradient)
            write_input_gradient(block, group, t->input_gradient);
    }
    reduce_lanes(block->weights_sums, weights_count, t->weights_gradient);
}
