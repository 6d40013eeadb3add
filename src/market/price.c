#include "market/price.h"

#include "base/assert.h"

#define GIB (INT64_C(1) << 30)

struct price_vector price_cold_start(void)
{
    return (struct price_vector){
        .core_micro = 20000, .ram_micro = 2000, .gpu_micro = 180000, .disk_micro = 60};
}

static int64_t clamp(int64_t value, int64_t minimum, int64_t maximum)
{
    return value < minimum ? minimum : value > maximum ? maximum : value;
}

struct price_units price_units(struct resources resources, int64_t speed_weight_milli)
{
    ASSERT(resources_are_valid(resources));
    const int64_t weight = clamp(speed_weight_milli, PRICE_SPEED_MILLI_MIN, PRICE_SPEED_MILLI_MAX);
    return (struct price_units){
        .core_milli = resources.cores_milli * weight / 1000,
        .ram_milli = (int64_t)((__int128)resources.ram_bytes * 1000 / GIB),
        .gpu_milli = resources.gpus_milli,
        .disk_milli = (int64_t)((__int128)resources.disk_bytes * 1000 / GIB),
    };
}

int64_t price_bill_micro(struct price_units units, struct price_vector price, int64_t ms)
{
    ASSERT(ms >= 0 && ms <= PRICE_RUN_MS_MAX);
    const __int128 rate = (__int128)units.core_milli * price.core_micro +
                          (__int128)units.ram_milli * price.ram_micro +
                          (__int128)units.gpu_milli * price.gpu_micro +
                          (__int128)units.disk_milli * price.disk_micro;
    /* At most 4 x 2e10 x 1e12 x 3.2e10: within 128 bits. */
    const __int128 bill = rate * ms / 3600000000;
    return bill > PRICE_MICRO_MAX ? PRICE_MICRO_MAX : (int64_t)bill;
}

int64_t price_hourly_micro(struct price_units units, struct price_vector price)
{
    return price_bill_micro(units, price, 3600000);
}

int64_t price_add_micro(int64_t left, int64_t right)
{
    ASSERT(left >= 0 && left <= PRICE_MICRO_MAX && right >= 0 && right <= PRICE_MICRO_MAX);
    return left + right > PRICE_MICRO_MAX ? PRICE_MICRO_MAX : left + right;
}
