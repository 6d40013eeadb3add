#include "base/random.h"

#include "base/assert.h"

#include <math.h>

/* splitmix64 and xoshiro256** by Blackman and Vigna; the constants are theirs. */
void random_init(struct random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15ULL;
        uint64_t z = seed;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
        random->state[i] = z ^ z >> 31;
    }
}

static uint64_t rotate(uint64_t value, int by)
{
    return value << by | value >> (64 - by);
}

uint64_t random_u64(struct random *random)
{
    uint64_t *s = random->state;
    const uint64_t result = rotate(s[1] * 5, 7) * 9;
    const uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    ASSERT(bound > 0);
    /* Values past the last whole multiple of the bound would favour the small ones. */
    const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t value;
    do
        value = random_u64(random);
    while (value >= limit);
    return value % bound;
}

double random_unit(struct random *random)
{
    return (double)(random_u64(random) >> 11) * 0x1.0p-53;
}

double random_normal(struct random *random)
{
    const double radius = sqrt(-2.0 * log(1.0 - random_unit(random)));
    return radius * cos(2.0 * 3.14159265358979323846 * random_unit(random));
}

void random_shuffle(struct random *random, uint32_t *indices, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t other = (uint32_t)random_below(random, i);
        const uint32_t kept = indices[i - 1];
        indices[i - 1] = indices[other];
        indices[other] = kept;
    }
}
