#include "market/price_meter.h"

#include "base/assert.h"
#include "market/fixed.h"

#include <stdlib.h>

static int64_t add_usage(int64_t left, int64_t right)
{
    const __int128 sum = (__int128)left + right;
    if (sum > PRICE_USAGE_MILLI_S_MAX)
        return PRICE_USAGE_MILLI_S_MAX;
    return sum < -PRICE_USAGE_MILLI_S_MAX ? -PRICE_USAGE_MILLI_S_MAX : (int64_t)sum;
}

/* Dividing 128 bits takes ten times as long, and hardly anything needs them. */
static int64_t milli_s_of(int64_t milli, int64_t ms)
{
    int64_t product;
    if (!__builtin_mul_overflow(milli, ms, &product))
        return product / 1000;
    const __int128 milli_s = (__int128)milli * ms / 1000;
    return milli_s > PRICE_USAGE_MILLI_S_MAX ? PRICE_USAGE_MILLI_S_MAX : (int64_t)milli_s;
}

struct price_usage price_usage_of(struct price_units units, int64_t ms)
{
    ASSERT(ms >= 0);
    struct price_usage usage;
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        usage.milli_s[r] = milli_s_of(price_units_get(&units, r), ms);
    return usage;
}

struct price_usage price_usage_add(struct price_usage left, struct price_usage right)
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        left.milli_s[r] = add_usage(left.milli_s[r], right.milli_s[r]);
    return left;
}

static struct price_usage negative(struct price_usage usage)
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        usage.milli_s[r] = -usage.milli_s[r];
    return usage;
}

static bool is_zero(const struct price_usage *usage)
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        if (usage->milli_s[r] != 0)
            return false;
    return true;
}

void price_meter_init(struct price_meter *meter)
{
    *meter = (struct price_meter){0};
    map_init(&meter->borrowers);
    map_init(&meter->spreads);
}

static void free_values(struct map *map)
{
    for (size_t i = 0; i < map->count; i++)
        free(map->entries[i].value);
    map_done(map);
    map_init(map);
}

void price_meter_done(struct price_meter *meter)
{
    free_values(&meter->borrowers);
    free_values(&meter->spreads);
}

void price_meter_copy(const struct price_meter *meter, struct price_meter *out_copy)
{
    price_meter_init(out_copy);
    out_copy->offered = meter->offered;
    for (size_t i = 0; i < meter->borrowers.count; i++) {
        const struct price_borrower *borrower = meter->borrowers.entries[i].value;
        price_meter_want(out_copy, borrower->id, borrower->wanted);
    }
    for (size_t i = 0; i < meter->spreads.count; i++)
        price_meter_restore_spread(out_copy, meter->spreads.entries[i].value);
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    ASSERT(memory);
    return memory;
}

void price_meter_want(struct price_meter *meter, uint64_t borrower, struct price_usage usage)
{
    if (is_zero(&usage))
        return;
    struct price_borrower *known = map_get(&meter->borrowers, borrower);
    if (!known) {
        known = allocate(sizeof(*known));
        known->id = borrower;
        map_put(&meter->borrowers, borrower, known);
    }
    known->wanted = price_usage_add(known->wanted, usage);
    if (is_zero(&known->wanted))
        free(map_remove(&meter->borrowers, borrower));
}

void price_meter_offer(struct price_meter *meter, struct price_usage usage)
{
    meter->offered = price_usage_add(meter->offered, usage);
}

void price_meter_unoffer(struct price_meter *meter, struct price_usage usage)
{
    meter->offered = price_usage_add(meter->offered, negative(usage));
}

/* Takes the part of the slot that starts out of what is to come, and counts it if the job would
 * pay this slot's price. */
static void take_next_part(struct price_meter *meter, struct price_spread *spread, bool would_pay)
{
    struct price_usage part;
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        part.milli_s[r] = spread->later.milli_s[r] / (spread->slots_left + 1);
        spread->later.milli_s[r] -= part.milli_s[r];
    }
    spread->now = would_pay ? part : (struct price_usage){0};
    if (would_pay)
        price_meter_want(meter, spread->borrower, part);
    else
        spread->before = price_usage_add(spread->before, part);
}

void price_meter_spread(struct price_meter *meter, uint64_t job, uint64_t borrower,
                        struct price_usage usage, int64_t slot_count, bool would_pay)
{
    ASSERT(slot_count >= 1 && !map_get(&meter->spreads, job));
    struct price_spread *spread = allocate(sizeof(*spread));
    *spread = (struct price_spread){
        .job = job, .borrower = borrower, .later = usage, .slots_left = slot_count - 1};
    map_put(&meter->spreads, job, spread);
    take_next_part(meter, spread, would_pay);
}

void price_meter_spread_ended(struct price_meter *meter, uint64_t job, struct price_usage usage)
{
    struct price_spread *spread = map_get(&meter->spreads, job);
    if (!spread)
        return;
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        const int64_t counted = add_usage(spread->before.milli_s[r], spread->now.milli_s[r]);
        const int64_t rest = add_usage(usage.milli_s[r], -counted);
        spread->later.milli_s[r] = rest > 0 ? rest : 0;
    }
}

void price_meter_spread_cancelled(struct price_meter *meter, uint64_t job)
{
    struct price_spread *spread = map_remove(&meter->spreads, job);
    if (!spread)
        return;
    price_meter_want(meter, spread->borrower, negative(spread->now));
    free(spread);
}

/*
 * n = (sum y)^2 / (sum of y^2) in Q16. When the sum has more than 55 bits every y is shifted right
 * until it has not, so that the square and its 16 bits after the point fit into 128.
 */
static int64_t effective_q16(const struct map *borrowers, enum price_resource resource,
                             unsigned __int128 total)
{
    int shift = 0;
    while (total >> shift >> 55)
        shift++;
    unsigned __int128 sum = 0, squares = 0;
    for (size_t i = 0; i < borrowers->count; i++) {
        const struct price_borrower *borrower = borrowers->entries[i].value;
        if (borrower->wanted.milli_s[resource] <= 0)
            continue;
        const uint64_t y = (uint64_t)borrower->wanted.milli_s[resource] >> shift;
        sum += y;
        squares += (unsigned __int128)y * y;
    }
    if (squares == 0)
        return FIXED_Q16_ONE;
    const unsigned __int128 n = (sum * sum << 16) / squares;
    return n < FIXED_Q16_ONE ? FIXED_Q16_ONE : (int64_t)n;
}

void price_meter_inputs(const struct price_meter *meter,
                        struct price_inputs out_inputs[PRICE_RESOURCE_COUNT])
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        unsigned __int128 total = 0;
        int64_t count = 0;
        for (size_t i = 0; i < meter->borrowers.count; i++) {
            const struct price_borrower *borrower = meter->borrowers.entries[i].value;
            if (borrower->wanted.milli_s[r] <= 0)
                continue;
            total += (uint64_t)borrower->wanted.milli_s[r];
            count++;
        }
        const int64_t offered = meter->offered.milli_s[r];
        out_inputs[r] = (struct price_inputs){
            .wanted_milli_s =
                total > PRICE_USAGE_MILLI_S_MAX ? PRICE_USAGE_MILLI_S_MAX : (int64_t)total,
            .offered_milli_s = offered > 0 ? offered : 0,
            .borrower_count = count,
            .effective_q16 = effective_q16(&meter->borrowers, r, total),
        };
    }
}

bool price_meter_is_empty(const struct price_meter *meter)
{
    return meter->borrowers.count == 0 && meter->spreads.count == 0 && is_zero(&meter->offered);
}

void price_meter_next_slot(struct price_meter *meter, price_would_pay *would_pay,
                           const void *context)
{
    free_values(&meter->borrowers);
    meter->offered = (struct price_usage){0};
    /* From the last on: removing one moves the last, which has had its turn, into its place. */
    for (size_t i = meter->spreads.count; i-- > 0;) {
        struct price_spread *spread = meter->spreads.entries[i].value;
        spread->before = price_usage_add(spread->before, spread->now);
        if (spread->slots_left == 0) {
            free(map_remove(&meter->spreads, spread->job));
            continue;
        }
        spread->slots_left--;
        take_next_part(meter, spread, !would_pay || would_pay(context, spread->job));
    }
}

void price_meter_restore_spread(struct price_meter *meter, const struct price_spread *spread)
{
    ASSERT(!map_get(&meter->spreads, spread->job));
    struct price_spread *copy = allocate(sizeof(*copy));
    *copy = *spread;
    map_put(&meter->spreads, spread->job, copy);
}
