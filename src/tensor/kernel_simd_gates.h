/*
 * Kernel simd, one instruction set: gates of LSTM and GRU.
 *
 * Included by kernel_simd_isa.h. Loops are plain and without branches, so that the compiler makes
 * vectors of them; exp is a polynomial because no library's is inlined.
 */

/* Cephes' expf: 2^k times a polynomial on [-ln 2 / 2, ln 2 / 2], within 2 units in the last place.
 * Adding 1.5 * 2^23 rounds to a whole number that lies in the low bits. */
INLINE float gate_exp(float x)
{
    const float magic = 12582912.0F;
    x = x < -87.0F ? -87.0F : x;
    x = x > 88.0F ? 88.0F : x;
    const float shifted = x * 1.44269504F + magic;
    const float k = shifted - magic;
    const float r = x - k * 0.693359375F - k * -2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    const float mantissa = p * r * r + r + 1;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (int32_t)((uint32_t)(bits + 127) << 23); /* the magic's own bits are shifted out */
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    return mantissa * scale;
}

INLINE float gate_sigmoid(float x)
{
    return 1 / (1 + gate_exp(-x));
}

INLINE float gate_tanh(float x)
{
    return 2 / (1 + gate_exp(-2 * x)) - 1;
}

static void isa_lstm_forward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++) {
        float *restrict i = s->gates + n * 4 * H, *restrict f = i + H, *restrict g = f + H,
                        *restrict o = g + H;
        const float *restrict before = s->cell_before + n * H;
        const float *restrict b = s->bias, *restrict rb = s->recurrent_bias;
        float *restrict cell = s->cell + n * H, *restrict state = s->state + n * H;
        for (size_t j = 0; j < H; j++) {
            i[j] = gate_sigmoid(i[j] + b[j] + rb[j]);
            f[j] = gate_sigmoid(f[j] + b[H + j] + rb[H + j]);
            g[j] = gate_tanh(g[j] + b[2 * H + j] + rb[2 * H + j]);
            o[j] = gate_sigmoid(o[j] + b[3 * H + j] + rb[3 * H + j]);
            cell[j] = f[j] * before[j] + i[j] * g[j];
            state[j] = o[j] * gate_tanh(cell[j]);
        }
    }
}

static void isa_lstm_backward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++) {
        float *restrict i = s->gates + n * 4 * H, *restrict f = i + H, *restrict g = f + H,
                        *restrict o = g + H;
        const float *restrict before = s->cell_before + n * H, *restrict cell = s->cell + n * H;
        float *restrict dh = s->state_gradient + n * H, *restrict dc = s->cell_gradient + n * H;
        for (size_t j = 0; j < H; j++) {
            const float squashed = gate_tanh(cell[j]);
            const float d = dc[j] + dh[j] * o[j] * (1 - squashed * squashed);
            const float input = i[j], forget = f[j], fresh = g[j];
            i[j] = d * fresh * input * (1 - input);
            f[j] = d * before[j] * forget * (1 - forget);
            g[j] = d * input * (1 - fresh * fresh);
            o[j] = dh[j] * squashed * o[j] * (1 - o[j]);
            dc[j] = d * forget;
            dh[j] = 0;
        }
    }
}

static void isa_gru_forward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++) {
        float *restrict r = s->gates + n * 3 * H, *restrict z = r + H, *restrict g = z + H;
        float *restrict side = s->side + n * 3 * H, *restrict state = s->state + n * H;
        const float *restrict b = s->bias, *restrict rb = s->recurrent_bias;
        const float *restrict before = s->state_before + n * H;
        for (size_t j = 0; j < H; j++) {
            const float past = side[2 * H + j] + rb[2 * H + j];
            r[j] = gate_sigmoid(r[j] + b[j] + side[j] + rb[j]);
            z[j] = gate_sigmoid(z[j] + b[H + j] + side[H + j] + rb[H + j]);
            g[j] = gate_tanh(g[j] + b[2 * H + j] + r[j] * past);
            state[j] = (1 - z[j]) * g[j] + z[j] * before[j];
            side[2 * H + j] = past;
        }
    }
}

static void isa_gru_backward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++) {
        float *restrict r = s->gates + n * 3 * H, *restrict z = r + H, *restrict g = z + H;
        float *restrict side = s->side + n * 3 * H, *restrict dh = s->state_gradient + n * H;
        const float *restrict before = s->state_before + n * H;
        for (size_t j = 0; j < H; j++) {
            const float reset = r[j], keep = z[j], fresh = g[j], past = side[2 * H + j];
            const float d_fresh = dh[j] * (1 - keep) * (1 - fresh * fresh);
            z[j] = side[H + j] = dh[j] * (before[j] - fresh) * keep * (1 - keep);
            r[j] = side[j] = d_fresh * past * reset * (1 - reset);
            g[j] = d_fresh;
            side[2 * H + j] = d_fresh * reset;
            dh[j] = dh[j] * keep;
        }
    }
}
