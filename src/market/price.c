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
    _Static_assert(RESOURCES_BYTES_MAX < INT64_MAX / 1000, "thousandths of GiB fit");
    return (struct price_units){
        .core_milli = resources.cores_milli * weight / 1000,
        .ram_milli = resources.ram_bytes * 1000 / GIB,
        .gpu_milli = resources.gpus_milli,
        .disk_milli = resources.disk_bytes * 1000 / GIB,
    };
}

static const char *const resource_names[PRICE_RESOURCE_COUNT] = {"core", "ram", "gpu", "disk"};
static const char *const unit_hours[PRICE_RESOURCE_COUNT] = {"core-h", "GiB-h", "GPU-h", "GiB-h"};

const char *price_resource_name(enum price_resource resource)
{
    ASSERT(resource < PRICE_RESOURCE_COUNT);
    return resource_names[resource];
}

const char *price_resource_unit_hours(enum price_resource resource)
{
    ASSERT(resource < PRICE_RESOURCE_COUNT);
    return unit_hours[resource];
}

int64_t price_vector_get(const struct price_vector *price, enum price_resource resource)
{
    switch (resource) {
    case PRICE_CORE:
        return price->core_micro;
    case PRICE_RAM:
        return price->ram_micro;
    case PRICE_GPU:
        return price->gpu_micro;
    case PRICE_DISK:
        return price->disk_micro;
    case PRICE_RESOURCE_COUNT:
        break;
    }
    UNREACHABLE("no such resource");
}

void price_vector_set(struct price_vector *price, enum price_resource resource, int64_t micro)
{
    switch (resource) {
    case PRICE_CORE:
        price->core_micro = micro;
        return;
    case PRICE_RAM:
        price->ram_micro = micro;
        return;
    case PRICE_GPU:
        price->gpu_micro = micro;
        return;
    case PRICE_DISK:
        price->disk_micro = micro;
        return;
    case PRICE_RESOURCE_COUNT:
        break;
    }
    UNREACHABLE("no such resource");
}

int64_t price_units_get(const struct price_units *units, enum price_resource resource)
{
    switch (resource) {
    case PRICE_CORE:
        return units->core_milli;
    case PRICE_RAM:
        return units->ram_milli;
    case PRICE_GPU:
        return units->gpu_milli;
    case PRICE_DISK:
        return units->disk_milli;
    case PRICE_RESOURCE_COUNT:
        break;
    }
    UNREACHABLE("no such resource");
}

/* Thousandths of microcredits an hour. */
static __int128 rate_of(struct price_units units, struct price_vector price)
{
    return (__int128)units.core_milli * price.core_micro +
           (__int128)units.ram_milli * price.ram_micro +
           (__int128)units.gpu_milli * price.gpu_micro +
           (__int128)units.disk_milli * price.disk_micro;
}

/* Of a sum of rates x ms: at most 2 x 4 x 2e10 x 1e12 x 3.2e10, within 128 bits. */
static int64_t bill_of(__int128 rate_ms)
{
    const __int128 bill = rate_ms / PRICE_REST_PER_MICRO;
    return bill > PRICE_MICRO_MAX ? PRICE_MICRO_MAX : (int64_t)bill;
}

int64_t price_bill_micro(struct price_units units, struct price_vector price, int64_t ms)
{
    ASSERT(ms >= 0 && ms <= PRICE_RUN_MS_MAX);
    return bill_of(rate_of(units, price) * ms);
}

int64_t price_hourly_micro(struct price_units units, struct price_vector price)
{
    return price_bill_micro(units, price, 3600000);
}

int64_t price_part_micro(int64_t amount_micro, int64_t basis_points)
{
    ASSERT(amount_micro >= 0 && basis_points >= 0 && basis_points <= 10000);
    return (int64_t)((__int128)amount_micro * basis_points / 10000);
}

int64_t price_add_micro(int64_t left, int64_t right)
{
    ASSERT(left >= 0 && left <= PRICE_MICRO_MAX && right >= 0 && right <= PRICE_MICRO_MAX);
    return left + right > PRICE_MICRO_MAX ? PRICE_MICRO_MAX : left + right;
}

struct price_lock price_lock_flat(struct price_vector price)
{
    return (struct price_lock){.slot_count = 1, .slots = {price}};
}

bool price_vector_equal(const struct price_vector *left, const struct price_vector *right)
{
    return left->core_micro == right->core_micro && left->ram_micro == right->ram_micro &&
           left->gpu_micro == right->gpu_micro && left->disk_micro == right->disk_micro;
}

bool price_units_equal(const struct price_units *left, const struct price_units *right)
{
    return left->core_milli == right->core_milli && left->ram_milli == right->ram_milli &&
           left->gpu_milli == right->gpu_milli && left->disk_milli == right->disk_milli;
}

bool price_lock_equal(const struct price_lock *left, const struct price_lock *right)
{
    if (left->first_slot != right->first_slot || left->offset_ms != right->offset_ms ||
        left->slot_count != right->slot_count || left->rush_ms != right->rush_ms ||
        left->from_ms != right->from_ms || left->before_micro != right->before_micro ||
        left->before_rest != right->before_rest)
        return false;
    for (int64_t i = 0; i < left->slot_count; i++)
        if (!price_vector_equal(&left->slots[i], &right->slots[i]))
            return false;
    return true;
}

static __int128 rate_ms_of(struct price_units units, const struct price_lock *lock,
                           int64_t started_ms, int64_t wall_ms)
{
    const int64_t until_ms = started_ms + wall_ms;
    __int128 sum = 0;
    for (int64_t i = 0; i < lock->slot_count; i++) {
        const int64_t slot_ms = slot_start_ms(lock->first_slot + i, lock->offset_ms);
        const int64_t from = i == 0 || slot_ms < started_ms ? started_ms : slot_ms;
        const int64_t to = i == lock->slot_count - 1 || slot_ms + SLOT_MS > until_ms
                               ? until_ms
                               : slot_ms + SLOT_MS;
        if (to > from)
            sum += rate_of(units, lock->slots[i]) * (to - from);
    }
    return sum;
}

/* Of a run since the lock holds, in rates x ms; what came before is not in it. */
static __int128 held_rate_ms(struct price_units units, const struct price_lock *lock,
                             int64_t started_ms, int64_t wall_ms)
{
    const int64_t from_ms = lock->from_ms > started_ms ? lock->from_ms : started_ms;
    const int64_t run_ms = started_ms + wall_ms - from_ms;
    int64_t rush_ms = started_ms + lock->rush_ms - from_ms;
    if (rush_ms > run_ms)
        rush_ms = run_ms;
    __int128 sum = run_ms > 0 ? rate_ms_of(units, lock, from_ms, run_ms) : 0;
    if (rush_ms > 0)
        sum += rate_ms_of(units, lock, from_ms, rush_ms);
    return sum + lock->before_rest;
}

int64_t price_bill_lock_micro(struct price_units units, const struct price_lock *lock,
                              int64_t started_ms, int64_t wall_ms)
{
    ASSERT(lock->slot_count >= 1 && lock->slot_count <= PRICE_LOCK_SLOTS);
    ASSERT(wall_ms >= 0 && wall_ms <= PRICE_RUN_MS_MAX && lock->rush_ms >= 0);
    return price_add_micro(lock->before_micro,
                           bill_of(held_rate_ms(units, lock, started_ms, wall_ms)));
}

bool price_lock_is_flat(const struct price_lock *lock)
{
    return lock->slot_count == 1 && lock->first_slot == 0 && lock->offset_ms == 0;
}

struct price_lock price_lock_settle(struct price_units units, const struct price_lock *lock,
                                    int64_t started_ms, int64_t wall_ms)
{
    struct price_lock settled = {
        .first_slot = slot_index(started_ms + wall_ms, lock->offset_ms),
        .offset_ms = lock->offset_ms,
        .rush_ms = wall_ms < lock->rush_ms ? lock->rush_ms : 0,
        .from_ms = started_ms + wall_ms,
        .before_micro = price_bill_lock_micro(units, lock, started_ms, wall_ms),
        .before_rest =
            (int64_t)(held_rate_ms(units, lock, started_ms, wall_ms) % PRICE_REST_PER_MICRO)};
    const int64_t dropped = settled.first_slot - lock->first_slot;
    for (int64_t i = dropped > 0 ? dropped : 0; i < lock->slot_count; i++)
        settled.slots[settled.slot_count++] = lock->slots[i];
    return settled;
}

int64_t price_quote_lock_micro(struct price_units units, const struct price_lock *lock,
                               int64_t earliest_ms, int64_t latest_ms, int64_t run_ms)
{
    ASSERT(earliest_ms <= latest_ms);
    int64_t most = price_bill_lock_micro(units, lock, latest_ms, run_ms);
    /* The bill is linear in the start but for where the start, the rush's end or the run's end
     * crosses into another slot: one of those is the dearest start. */
    const int64_t lengths[] = {0, lock->rush_ms, run_ms};
    int64_t last_start = latest_ms; /* most crossings lie outside: their starts are the same */
    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
        for (int64_t i = 0; i <= lock->slot_count; i++) {
            const int64_t crossing =
                slot_start_ms(lock->first_slot + i, lock->offset_ms) - lengths[l];
            const int64_t start = clamp(crossing, earliest_ms, latest_ms);
            if (start == latest_ms || start == last_start)
                continue;
            const int64_t bill = price_bill_lock_micro(units, lock, start, run_ms);
            most = bill > most ? bill : most;
            last_start = start;
        }
    return most;
}

int64_t price_hourly_lock_micro(struct price_units units, const struct price_lock *lock)
{
    int64_t dearest = 0;
    for (int64_t i = 0; i < lock->slot_count; i++) {
        const __int128 rate = rate_of(units, lock->slots[i]) * (lock->rush_ms ? 2 : 1);
        const int64_t hourly = bill_of(rate * 3600000);
        dearest = hourly > dearest ? hourly : dearest;
    }
    return dearest;
}
