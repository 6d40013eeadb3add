/*
 * What leases that run come to cost: extended, or renewed because their price lock ran out.
 *
 * Both follow from the state and the time alone, so that a replay computes them again.
 */
#include "core/core_internal.h"

static int64_t latest_start_ms(const struct lease *lease)
{
    return lease->started_ms ? lease->started_ms : lease->start_by_ms;
}

static void raise_quote(const struct lease *lease, struct lease_terms *terms)
{
    const int64_t earliest_ms = lease->started_ms ? lease->started_ms : lease->offered_ms;
    terms->quote_micro = price_quote_lock_micro(lease->units, &terms->lock, earliest_ms,
                                                latest_start_ms(lease), terms->max_run_ms);
    if (terms->quote_micro < lease->quote_micro)
        terms->quote_micro = lease->quote_micro;
}

bool lease_terms_equal(const struct lease_terms *left, const struct lease_terms *right)
{
    return left->max_run_ms == right->max_run_ms && left->quote_micro == right->quote_micro &&
           price_lock_equal(&left->lock, &right->lock);
}

/* ---- Extended -------------------------------------------------------------------------------- */

struct core_forecast core_forecast(const struct core *core)
{
    struct core_forecast forecast = {.slot = core->prices.slot};
    memcpy(forecast.prices, core->prices.forecasts, sizeof(forecast.prices));
    return forecast;
}

/*
 * A lender who is paid its own minimum has a price that follows no slots. Time that has passed
 * costs what it did: where the lock ended before now, its last price goes on until the next slot.
 */
struct lease_terms core_extended_terms(const struct lease *lease, int64_t more_ms, int64_t now_ms,
                                       const struct core_forecast *forecast)
{
    struct lease_terms terms = {.lock = *lease->lock, .max_run_ms = lease->max_run_ms + more_ms};
    struct price_lock *lock = &terms.lock;
    const int64_t running = slot_index(now_ms, lock->offset_ms);
    const int64_t last = slot_index(latest_start_ms(lease) + terms.max_run_ms - 1, lock->offset_ms);
    while (!price_lock_is_flat(lock) && lock->slot_count < PRICE_LOCK_SLOTS &&
           lock->first_slot + lock->slot_count <= last) {
        const int64_t slot = lock->first_slot + lock->slot_count;
        const int64_t ahead = slot - forecast->slot;
        const bool is_forecast = slot > running && ahead >= 1 && ahead <= CORE_PRICE_FORECASTS;
        lock->slots[lock->slot_count] =
            is_forecast ? forecast->prices[ahead - 1] : lock->slots[lock->slot_count - 1];
        lock->slot_count++;
    }
    raise_quote(lease, &terms);
    return terms;
}

/* ---- Renewed --------------------------------------------------------------------------------- */

bool core_is_renewal_due(const struct lease *lease, int64_t now_ms)
{
    const struct price_lock *lock = lease->lock;
    const int64_t end_ms = slot_start_ms(lock->first_slot + lock->slot_count, lock->offset_ms);
    return lease->state == LEASE_STATE_RUNNING && lease->stop_wanted_ms == 0 &&
           lock->slot_count == PRICE_LOCK_SLOTS && end_ms <= now_ms &&
           end_ms < lease->started_ms + lease->max_run_ms;
}

bool core_renewed_terms(const struct core *core, const struct lease *lease,
                        struct lease_terms *out_terms)
{
    struct lease_terms terms = {.max_run_ms = lease->max_run_ms};
    terms.lock = price_lock_settle(lease->units, lease->lock, lease->started_ms, lease->wall_ms);
    struct price_lock *lock = &terms.lock;
    const int64_t last = slot_index(lease->started_ms + lease->max_run_ms - 1, lock->offset_ms);
    if (lock->slot_count == PRICE_LOCK_SLOTS)
        return false;
    while (lock->slot_count < PRICE_LOCK_SLOTS && lock->first_slot + lock->slot_count <= last) {
        lock->slots[lock->slot_count] =
            core_price_of_slot(core, lock->first_slot + lock->slot_count);
        lock->slot_count++;
    }
    raise_quote(lease, &terms);
    *out_terms = terms;
    return true;
}
