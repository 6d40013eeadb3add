#include "market/income.h"

#include "base/assert.h"

/* Of the whole, what belongs to its first `done_ms`. */
static int64_t part(int64_t earned_micro, int64_t done_ms, int64_t paid_ms)
{
    return (int64_t)((__int128)earned_micro * done_ms / paid_ms);
}

void income_spread(const struct income_axis *axis, int64_t started_ms, int64_t paid_ms,
                   int64_t earned_micro, struct income_bucket *buckets)
{
    ASSERT(axis->step_ms > 0);
    const int64_t end_ms = axis->from_ms + axis->step_ms * (int64_t)axis->count;
    if (paid_ms <= 0 || started_ms >= end_ms || started_ms + paid_ms <= axis->from_ms)
        return;
    const int64_t first =
        started_ms > axis->from_ms ? (started_ms - axis->from_ms) / axis->step_ms : 0;
    for (size_t i = (size_t)first; i < axis->count; i++) {
        const int64_t open_ms = axis->from_ms + axis->step_ms * (int64_t)i - started_ms;
        const int64_t close_ms = open_ms + axis->step_ms;
        const int64_t begin = open_ms > 0 ? open_ms : 0;
        const int64_t end = close_ms < paid_ms ? close_ms : paid_ms;
        if (begin >= paid_ms)
            return;
        buckets[i].busy_ms += end - begin;
        buckets[i].earned_micro +=
            part(earned_micro, end, paid_ms) - part(earned_micro, begin, paid_ms);
    }
}

static void count_open(const struct income_wish *wish, int64_t out_open_ms[SLOT_PER_DAY])
{
    int64_t at_ms = wish->from_ms;
    while (at_ms < wish->until_ms) {
        const int64_t slot = slot_index(at_ms, wish->slot_offset_ms);
        const int64_t next_ms = slot_start_ms(slot + 1, wish->slot_offset_ms);
        const int64_t end_ms = next_ms < wish->until_ms ? next_ms : wish->until_ms;
        out_open_ms[slot_of_day(slot)] += window_open_ms(wish->window, at_ms, end_ms);
        at_ms = end_ms;
    }
}

/* What is leased of each on the average: whole units times the share that others had leased. */
static struct price_units used_units(struct price_units units, const struct income_past *past)
{
    return (struct price_units){
        .core_milli = units.core_milli * past->used_milli[PRICE_CORE] / 1000,
        .ram_milli = units.ram_milli * past->used_milli[PRICE_RAM] / 1000,
        .gpu_milli = units.gpu_milli * past->used_milli[PRICE_GPU] / 1000,
        .disk_milli = units.disk_milli * past->used_milli[PRICE_DISK] / 1000,
    };
}

static int64_t less_fee(int64_t bill_micro, int64_t fee_basis_points)
{
    return bill_micro - price_part_micro(bill_micro, fee_basis_points);
}

struct income_estimate income_estimate(const struct income_wish *wish,
                                       const struct income_past *past)
{
    struct income_estimate estimate = {.is_likely_known = true};
    count_open(wish, estimate.open_ms);
    for (int s = 0; s < SLOT_PER_DAY; s++) {
        const int64_t ms = estimate.open_ms[s];
        const int64_t full = price_bill_micro(wish->units, past[s].price, ms);
        estimate.is_dear[s] = price_bill_micro(wish->units, wish->minimum, ms) > full;
        estimate.is_likely_known = estimate.is_likely_known && past[s].is_used_known;
        if (estimate.is_dear[s])
            continue;
        const int64_t likely =
            price_bill_micro(used_units(wish->units, &past[s]), past[s].price, ms);
        estimate.full_micro =
            price_add_micro(estimate.full_micro, less_fee(full, wish->fee_basis_points));
        estimate.likely_micro =
            price_add_micro(estimate.likely_micro, less_fee(likely, wish->fee_basis_points));
    }
    return estimate;
}
