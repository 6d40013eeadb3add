/*
 * Kernel simd, one instruction set: products with a factor of which much is zero, as ReLU leaves
 * activations and their gradients, and as the background of pictures is.
 *
 * Included by kernel_simd_isa.h. A row of A costs as many multiply-adds as it has numbers that are
 * not zero. Each of them reads vectors of B for itself, which a tile of product_run shares, so B is
 * copied to panels that stay in the nearest cache.
 */

enum { PANEL_STRIDE = SPARSE_VECTORS * LANES };

/* As struct product, with B [n, k] where it is turned. C starts from a row, or from zeros. */
struct sparse_product {
    struct product of;
    bool is_b_turned;
    const float *start; /* [n] or NULL */
    const struct simd_sparse *room;
};

/* Appends what is not zero and where in the panel its row begins; writes a vector's worth. */
#if defined(__AVX512F__)
INLINE uint32_t take_numbers(vec values, uint32_t first, uint32_t *at, float *value)
{
    const __mmask16 mask = _mm512_cmp_ps_mask((__m512)values, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    const ivec lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const ivec places = (lanes + (int32_t)first) * PANEL_STRIDE;
    _mm512_storeu_ps(value, _mm512_maskz_compress_ps(mask, (__m512)values));
    _mm512_storeu_si512(at, _mm512_maskz_compress_epi32(mask, (__m512i)places));
    return (uint32_t)__builtin_popcount(mask);
}
#else
INLINE uint32_t take_numbers(vec values, uint32_t first, uint32_t *at, float *value)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < LANES; i++) {
        at[count] = (first + i) * PANEL_STRIDE;
        value[count] = values[i];
        count += values[i] != 0;
    }
    return count;
}
#endif

/* Rows of A whose numbers lie side by side. */
static void list_rows(const struct simd_sparse *room, const float *a, size_t a_row, uint32_t rows,
                      uint32_t depth)
{
    for (size_t m = 0; m < rows; m++, a += a_row) {
        uint32_t *at = room->at + m * SPARSE_DEPTH, count = 0;
        float *value = room->value + m * SPARSE_DEPTH;
        for (uint32_t k = 0; k < depth; k += LANES)
            count += take_numbers(load_left(a + k, depth - k), k, at + count, value + count);
        room->counts[m] = count;
    }
}

/* Rows of A that lie side by side. */
static void list_columns(const struct simd_sparse *room, const float *a, size_t a_step,
                         uint32_t rows, uint32_t depth)
{
    for (uint32_t m = 0; m < rows; m += LANES) {
        uint32_t counts[LANES] = {0};
        for (uint32_t k = 0; k < depth; k += LANES) {
            vec tile[LANES];
            for (uint32_t i = 0; i < LANES; i++)
                tile[i] = k + i < depth ? load_left(a + (k + i) * a_step + m, rows - m) : (vec){0};
            transpose(tile);
            for (uint32_t i = 0; i < LANES && m + i < rows; i++) {
                const size_t end = (size_t)(m + i) * SPARSE_DEPTH + counts[i];
                counts[i] += take_numbers(tile[i], k, room->at + end, room->value + end);
            }
        }
        for (uint32_t i = 0; i < LANES && m + i < rows; i++)
            room->counts[m + i] = counts[i];
    }
}

/* `depth` rows of B from `first`, a few vectors of each, of which the last may be part empty. */
static void fill_panel(const struct sparse_product *p, uint32_t first, uint32_t depth,
                       uint32_t column, uint32_t vectors)
{
    float *panel = p->room->panel;
    const size_t n = p->of.n, stride = p->of.k;
    for (uint32_t k = 0; !p->is_b_turned && k < depth; k++, panel += PANEL_STRIDE)
        for (uint32_t j = 0, at = column; j < vectors; j++, at += LANES)
            store(panel + (size_t)j * LANES, load_left(p->of.b + (first + k) * n + at, n - at));
    for (uint32_t k = 0; p->is_b_turned && k < depth; k += LANES)
        for (uint32_t j = 0, at = column; j < vectors; j++, at += LANES) {
            vec tile[LANES];
            for (uint32_t i = 0; i < LANES; i++)
                tile[i] = at + i < n ? load_left(p->of.b + (at + i) * stride + first + k, depth - k)
                                     : (vec){0};
            transpose(tile);
            for (uint32_t i = 0; i < LANES; i++)
                store(panel + (size_t)(k + i) * PANEL_STRIDE + (size_t)j * LANES, tile[i]);
        }
}

/* Some vectors of rows of C; `left` numbers of the last. Adds to what is there unless `is_first`.
 */
INLINE void sparse_rows(const struct sparse_product *p, float *c, uint32_t rows, uint32_t column,
                        bool is_first, int vectors, size_t left)
{
    const struct simd_sparse *room = p->room;
    const float *panel = room->panel;
    c += column;
    for (size_t m = 0; m < rows; m++, c += p->of.n) {
        const uint32_t *at = room->at + m * SPARSE_DEPTH, *end = at + room->counts[m];
        const float *value = room->value + m * SPARSE_DEPTH;
        const float *from = !is_first ? c : p->start ? p->start + column : NULL;
        vec sum[SPARSE_VECTORS];
        for (int j = 0; j < vectors; j++)
            sum[j] = from ? load_left(from + (size_t)j * LANES, left) : (vec){0};
        for (; at < end; at++, value++) {
            const float *b = panel + *at;
            const vec factor = broadcast(*value);
            for (int j = 0; j < vectors; j++)
                sum[j] += factor * load(b + (size_t)j * LANES);
        }
        for (int j = 0; j < vectors; j++)
            store_left(c + (size_t)j * LANES, sum[j], left);
    }
}

static void sparse_panel(const struct sparse_product *p, float *c, uint32_t rows, uint32_t column,
                         bool is_first, uint32_t vectors)
{
#define CASE(count)                                                                                \
    case count:                                                                                    \
        sparse_rows(p, c, rows, column, is_first, count, LANES);                                   \
        break;
    switch (vectors) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
    default:
        sparse_rows(p, c, rows, column, is_first, SPARSE_VECTORS, LANES);
        break;
    }
#undef CASE
}

/* What the listed rows and `depth` rows of B from `first` add to C. */
static void sparse_add(const struct sparse_product *p, float *c, uint32_t rows, uint32_t first,
                       uint32_t depth)
{
    /* Shared out evenly, as narrow panels read more of A for the same work. */
    const uint32_t vectors = p->of.n / LANES;
    const uint32_t tiles = (vectors + SPARSE_VECTORS - 1) / SPARSE_VECTORS;
    for (uint32_t tile = 0; tile < tiles; tile++) {
        const uint32_t from = vectors * tile / tiles, to = vectors * (tile + 1) / tiles;
        fill_panel(p, first, depth, from * LANES, to - from);
        sparse_panel(p, c, rows, from * LANES, first == 0, to - from);
    }
    const uint32_t rest = p->of.n % LANES;
    if (rest == 0)
        return;
    fill_panel(p, first, depth, p->of.n - rest, 1);
    sparse_rows(p, c, rows, p->of.n - rest, first == 0, 1, rest);
}

static void sparse_run(const struct sparse_product *p)
{
    for (uint32_t m = 0, rows; m < p->of.m; m += rows) {
        rows = p->of.m - m < SPARSE_ROWS ? p->of.m - m : SPARSE_ROWS;
        for (uint32_t k = 0, depth; k < p->of.k; k += depth) {
            depth = p->of.k - k < SPARSE_DEPTH ? p->of.k - k : SPARSE_DEPTH;
            const float *a = p->of.a + m * p->of.a_row + k * p->of.a_step;
            if (p->of.a_step == 1)
                list_rows(p->room, a, p->of.a_row, rows, depth);
            else
                list_columns(p->room, a, p->of.a_step, rows, depth);
            sparse_add(p, p->of.c + (size_t)m * p->of.n, rows, k, depth);
        }
    }
}

static size_t isa_count_zeros(const float *x, size_t count)
{
    size_t zeros = 0;
    for (size_t done = 0, end; done < count; done = end) {
        end = count - done > 4096 ? done + 4096 : count;
        int32_t part = 0;
        for (size_t i = done; i < end; i++)
            part += x[i] == 0;
        zeros += (size_t)part;
    }
    return zeros;
}

static void isa_sparse_forward(const struct simd_dense *dense, const struct operation_tensors *t)
{
    const struct dense_shape s = dense->shape;
    const struct sparse_product output = {.of = {.a = t->input,
                                                 .a_row = s.inputs,
                                                 .a_step = 1,
                                                 .b = t->weights,
                                                 .c = t->output,
                                                 .m = s.batch,
                                                 .n = s.outputs,
                                                 .k = s.inputs},
                                          .is_b_turned = true,
                                          .start = t->bias,
                                          .room = &dense->sparse};
    sparse_run(&output);
}

static void isa_sparse_backward(const struct simd_dense *dense, const struct operation_tensors *t)
{
    struct sparse_product weights = {.of = weights_product(dense, t), .room = &dense->sparse};
    sparse_run(&weights);
    add_bias_gradient(dense, t);
    if (!dense->needs_input_gradient)
        return;
    struct sparse_product input = {.of = input_product(dense, t), .room = &dense->sparse};
    sparse_run(&input);
}
