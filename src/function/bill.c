#include "function/bill.h"

#include "base/assert.h"

enum { MB_PER_GIB = 1024, MS_PER_HOUR = 3600000 };

struct bill_price bill_least(const struct bill_price *usual, int64_t gib_micro)
{
    const __int128 core = usual->core_micro_per_hour, ram = usual->ram_micro_per_hour;
    /* 1769 times what a GiB of function usually costs. */
    const __int128 whole = core * MB_PER_GIB + ram * BILL_MB_PER_CORE;
    ASSERT(gib_micro >= 0 && core >= 0 && ram >= 0 && whole > 0);
    const __int128 wanted = (__int128)gib_micro * BILL_MB_PER_CORE;
    return (struct bill_price){.core_micro_per_hour =
                                   (int64_t)((core * wanted + whole - 1) / whole),
                               .ram_micro_per_hour = (int64_t)((ram * wanted + whole - 1) / whole)};
}

int64_t bill_use_micro(const struct bill_price *price, uint64_t mb_ms)
{
    /* Over 1769 * 1024 MB, the least that both divide. */
    ASSERT(price->core_micro_per_hour >= 0 && price->ram_micro_per_hour >= 0);
    const __int128 rate = (__int128)price->core_micro_per_hour * MB_PER_GIB +
                          (__int128)price->ram_micro_per_hour * BILL_MB_PER_CORE;
    const __int128 unit = (__int128)BILL_MB_PER_CORE * MB_PER_GIB * MS_PER_HOUR;
    return (int64_t)((rate * mb_ms + unit - 1) / unit);
}

int64_t bill_call_micro(const struct bill_price *price, uint32_t memory_mb, int64_t billed_ms)
{
    ASSERT(billed_ms >= 0);
    return bill_use_micro(price, (uint64_t)memory_mb * (uint64_t)billed_ms);
}
