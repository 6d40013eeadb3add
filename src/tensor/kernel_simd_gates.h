/*
 * Kernel simd, one instruction set: gates of LSTM and GRU.
 *
 * Included by kernel_simd_isa.h. Units are taken a vector at a time, of which the last may be part
 * empty; exp is a polynomial because no library's is inlined.
 */

/* Cephes' expf: 2^k times a polynomial on [-ln 2 / 2, ln 2 / 2], within 2 units in the last place.
 * Adding 1.5 * 2^23 rounds to a whole number that lies in the low bits. */
INLINE vec gate_exp(vec x)
{
    const vec magic = broadcast(12582912.0F);
    x = at_most(at_least(x, -87), 88);
    const vec shifted = x * 1.44269504F + magic;
    const vec k = shifted - magic;
    const vec r = x - k * 0.693359375F - k * -2.12194440e-4F;
    vec p = broadcast(1.9875691500e-4F);
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    const vec mantissa = p * r * r + r + 1;
    /* The magic's own bits are shifted out. */
    return mantissa * (vec)(((ivec)shifted + 127) << 23);
}

INLINE vec gate_tanh(vec x)
{
    return 2 * reciprocal(1 + gate_exp(-2 * x)) - 1;
}

/* The sigmoids of two vectors by one division, which takes longer than all the rest. Below
 * -40 they are nothing beside 1, and held there the product of the two stays finite. */
INLINE void gate_sigmoids(vec *x, vec *y)
{
    const vec left = 1 + gate_exp(-at_least(*x, -40));
    const vec right = 1 + gate_exp(-at_least(*y, -40));
    const vec both = reciprocal(left * right);
    *x = both * right;
    *y = both * left;
}

/* Of `count` that are left, or a whole vector. */
INLINE vec load_left(const float *from, size_t count)
{
    if (count >= LANES)
        return load(from);
    float room[LANES] = {0};
    memcpy(room, from, sizeof(float) * count);
    return load(room);
}

INLINE void store_left(float *to, vec value, size_t count)
{
    if (count >= LANES) {
        store(to, value);
        return;
    }
    float room[LANES];
    store(room, value);
    memcpy(to, room, sizeof(float) * count);
}

/* e^x in place; 0 where e^x is below what a float of full precision can be. */
static void isa_exp(float *x, size_t count)
{
    for (size_t i = 0; i < count; i += LANES) {
        const vec value = load_left(x + i, count - i);
        store_left(x + i, choose(value < -87, (vec){0}, gate_exp(value)), count - i);
    }
}

static void isa_lstm_forward(const struct gate_step *s)
{
    const size_t H = s->units;
    const float *b = s->bias, *rb = s->recurrent_bias;
    for (size_t n = 0; n < s->batch; n++)
        for (size_t j = 0; j < H; j += LANES) {
            const size_t left = H - j;
            float *gates = s->gates + n * 4 * H + j;
            vec sums[4];
            for (size_t gate = 0; gate < 4; gate++)
                sums[gate] =
                    load_left(gates + gate * H, left) +
                    (load_left(b + gate * H + j, left) + load_left(rb + gate * H + j, left));
            sums[2] *= 2; /* tanh(x) = 2 sigmoid(2 x) - 1 */
            gate_sigmoids(&sums[0], &sums[1]);
            gate_sigmoids(&sums[2], &sums[3]);
            const vec i = sums[0], f = sums[1], g = 2 * sums[2] - 1, o = sums[3];
            const vec cell = f * load_left(s->cell_before + n * H + j, left) + i * g;
            store_left(gates, i, left);
            store_left(gates + H, f, left);
            store_left(gates + 2 * H, g, left);
            store_left(gates + 3 * H, o, left);
            store_left(s->cell + n * H + j, cell, left);
            store_left(s->state + n * s->state_stride + j, o * gate_tanh(cell), left);
        }
}

static void isa_lstm_backward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++)
        for (size_t j = 0; j < H; j += LANES) {
            const size_t left = H - j, at = n * H + j;
            float *gates = s->gates + n * 4 * H + j;
            const vec i = load_left(gates, left), f = load_left(gates + H, left);
            const vec g = load_left(gates + 2 * H, left), o = load_left(gates + 3 * H, left);
            const vec dh = load_left(s->state_gradient + at, left);
            const vec squashed = gate_tanh(load_left(s->cell + at, left));
            const vec d =
                load_left(s->cell_gradient + at, left) + dh * o * (1 - squashed * squashed);
            const vec before = load_left(s->cell_before + at, left);
            store_left(gates, d * g * i * (1 - i), left);
            store_left(gates + H, d * before * f * (1 - f), left);
            store_left(gates + 2 * H, d * i * (1 - g * g), left);
            store_left(gates + 3 * H, dh * squashed * o * (1 - o), left);
            store_left(s->cell_gradient + at, d * f, left);
            store_left(s->state_gradient + at, (vec){0}, left);
        }
}

static void isa_gru_forward(const struct gate_step *s)
{
    const size_t H = s->units;
    const float *b = s->bias, *rb = s->recurrent_bias;
    for (size_t n = 0; n < s->batch; n++)
        for (size_t j = 0; j < H; j += LANES) {
            const size_t left = H - j;
            float *gates = s->gates + n * 3 * H + j, *side = s->side + n * 3 * H + j;
            vec inputs[3], pasts[3];
            for (size_t gate = 0; gate < 3; gate++) {
                inputs[gate] =
                    load_left(gates + gate * H, left) + load_left(b + gate * H + j, left);
                pasts[gate] = load_left(side + gate * H, left) + load_left(rb + gate * H + j, left);
            }
            vec r = inputs[0] + pasts[0], z = inputs[1] + pasts[1];
            gate_sigmoids(&r, &z);
            const vec g = gate_tanh(inputs[2] + r * pasts[2]);
            const vec before = load_left(s->state_before + n * s->state_stride + j, left);
            store_left(gates, r, left);
            store_left(gates + H, z, left);
            store_left(gates + 2 * H, g, left);
            store_left(side + 2 * H, pasts[2], left);
            store_left(s->state + n * s->state_stride + j, (1 - z) * g + z * before, left);
        }
}

static void isa_gru_backward(const struct gate_step *s)
{
    const size_t H = s->units;
    for (size_t n = 0; n < s->batch; n++)
        for (size_t j = 0; j < H; j += LANES) {
            const size_t left = H - j, at = n * H + j;
            float *gates = s->gates + n * 3 * H + j, *side = s->side + n * 3 * H + j;
            const vec r = load_left(gates, left), z = load_left(gates + H, left);
            const vec g = load_left(gates + 2 * H, left);
            const vec past = load_left(side + 2 * H, left);
            const vec dh = load_left(s->state_gradient + at, left);
            const vec before = load_left(s->state_before + n * s->state_stride + j, left);
            const vec d_fresh = dh * (1 - z) * (1 - g * g);
            const vec d_keep = dh * (before - g) * z * (1 - z);
            const vec d_reset = d_fresh * past * r * (1 - r);
            store_left(gates, d_reset, left);
            store_left(side, d_reset, left);
            store_left(gates + H, d_keep, left);
            store_left(side + H, d_keep, left);
            store_left(gates + 2 * H, d_fresh, left);
            store_left(side + 2 * H, d_fresh * r, left);
            store_left(s->state_gradient + at, dh * z, left);
        }
}
