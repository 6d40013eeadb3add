#include "market/fixed.h"

#include "base/assert.h"

/* round(2^62 x 2^(2^-i)) for i = 1 to 32. */
static const uint64_t root_q62[32] = {
    UINT64_C(6521908912666391106), UINT64_C(5484249825272419512), UINT64_C(5029079263719320435),
    UINT64_C(4815862801830788490), UINT64_C(4712668792719003884), UINT64_C(4661903986662671290),
    UINT64_C(4636727017470743990), UINT64_C(4624189567668517720), UINT64_C(4617933561212708776),
    UINT64_C(4614808732577250068), UINT64_C(4613247111281068008), UINT64_C(4612466498810092975),
    UINT64_C(4612076242109103707), UINT64_C(4611881126141011236), UINT64_C(4611783571252412754),
    UINT64_C(4611734794581956353), UINT64_C(4611710406440186476), UINT64_C(4611698212417665819),
    UINT64_C(4611692115418496524), UINT64_C(4611689066921934630), UINT64_C(4611687542674409371),
    UINT64_C(4611686780550835664), UINT64_C(4611686399489096040), UINT64_C(4611686208958238036),
    UINT64_C(4611686113692811986), UINT64_C(4611686066060099699), UINT64_C(4611686042243743740),
    UINT64_C(4611686030335565807), UINT64_C(4611686024381476851), UINT64_C(4611686021404432377),
    UINT64_C(4611686019915910140), UINT64_C(4611686019171649022),
};

static int highest_bit(unsigned __int128 value)
{
    const uint64_t high = (uint64_t)(value >> 64);
    return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll((uint64_t)value);
}

int64_t fixed_log2_q32(unsigned __int128 value)
{
    ASSERT(value > 0);
    const int whole = highest_bit(value);
    /* The mantissa in [1, 2) with 63 bits after the point. */
    uint64_t mantissa = (uint64_t)(whole > 63 ? value >> (whole - 63) : value << (63 - whole));
    int64_t fraction = 0;
    for (int bit = 0; bit < 32; bit++) {
        const unsigned __int128 square = (unsigned __int128)mantissa * mantissa >> 63;
        const int carry = (int)(square >> 64);
        mantissa = (uint64_t)(square >> carry);
        fraction = fraction << 1 | carry;
    }
    return ((int64_t)whole << 32) + fraction;
}

int64_t fixed_exp2(int64_t exponent_q32)
{
    const int64_t whole = exponent_q32 >> 32; /* rounds down */
    const uint32_t fraction = (uint32_t)exponent_q32;
    if (whole >= 63)
        return INT64_MAX;
    if (whole < -1)
        return 0; /* below one half */
    uint64_t mantissa = UINT64_C(1) << 62;
    for (int i = 0; i < 32; i++)
        if (fraction >> (31 - i) & 1)
            mantissa = (uint64_t)((unsigned __int128)mantissa * root_q62[i] >> 62);
    const int shift = (int)(62 - whole);
    return shift == 0 ? (int64_t)mantissa : (int64_t)(((mantissa >> (shift - 1)) + 1) >> 1);
}

int64_t fixed_exp2_q16(int64_t exponent_q32)
{
    return fixed_exp2(exponent_q32 + 16 * FIXED_Q32_ONE);
}

int64_t fixed_scale(int64_t value, int64_t numerator, int64_t denominator)
{
    const __int128 scaled = (__int128)value * numerator / denominator;
    ASSERT(scaled >= INT64_MIN && scaled <= INT64_MAX);
    return (int64_t)scaled;
}

int64_t fixed_clamp(int64_t value, int64_t minimum, int64_t maximum)
{
    return value < minimum ? minimum : value > maximum ? maximum : value;
}
