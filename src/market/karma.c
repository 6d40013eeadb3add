#include "market/karma.h"

#include "base/assert.h"

enum { BASIS_POINTS = 10000 };

struct price_vector karma_price(void)
{
    const struct price_vector cold = price_cold_start();
    const int64_t core_micro = 1000000;
    struct price_vector price = {0};
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        price_vector_set(&price, r, price_vector_get(&cold, r) * core_micro / cold.core_micro);
    return price;
}

struct karma_dues karma_dues(int64_t share_micro, int64_t hours, int64_t used_micro,
                             int64_t guarantee_basis_points)
{
    ASSERT(share_micro >= 0 && hours >= 0 && used_micro >= 0);
    __int128 share = (__int128)share_micro * hours;
    if (share > PRICE_MICRO_MAX)
        share = PRICE_MICRO_MAX;
    const int64_t guarantee_micro = (int64_t)(share * guarantee_basis_points / BASIS_POINTS);
    return (struct karma_dues){
        .income_micro = (int64_t)share - guarantee_micro,
        .guaranteed_micro = used_micro < guarantee_micro ? used_micro : guarantee_micro,
    };
}
