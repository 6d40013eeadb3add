#include "market/reputation.h"

#include "base/assert.h"

enum { FADE = 64, ONE_LEASE_MILLI = 1000, FAULT_LOSSES = 8 };

static void fade(int64_t *count_milli)
{
    *count_milli -= *count_milli / FADE;
}

static void fade_all(struct reputation *reputation)
{
    fade(&reputation->completed_milli);
    fade(&reputation->lost_milli);
    fade(&reputation->reclaimed_milli);
}

void reputation_earn(struct reputation *reputation, int64_t amount_micro)
{
    ASSERT(amount_micro >= 0);
    if (__builtin_add_overflow(reputation->earned_micro, amount_micro, &reputation->earned_micro))
        reputation->earned_micro = INT64_MAX;
}

void reputation_count(struct reputation *reputation, const struct reputation_lease *lease)
{
    ASSERT(lease->delivered_ms >= 0 && lease->leased_ms >= 0 && lease->ticks >= 0);
    switch (lease->outcome) {
    case LEASE_OUTCOME_SUCCEEDED:
    case LEASE_OUTCOME_STOPPED:
        if (!lease->has_started)
            break; /* nothing was asked of it yet */
        fade_all(reputation);
        reputation->completed++;
        reputation->completed_milli += ONE_LEASE_MILLI;
        break;
    case LEASE_OUTCOME_LOST:
        fade_all(reputation);
        reputation->lost++;
        reputation->lost_milli += ONE_LEASE_MILLI;
        break;
    case LEASE_OUTCOME_FAULTY: /* worse than one that is gone: its borrower relied on it */
        fade_all(reputation);
        reputation->lost++;
        reputation->lost_milli += (int64_t)FAULT_LOSSES * ONE_LEASE_MILLI;
        break;
    case LEASE_OUTCOME_RECLAIMED:
        fade_all(reputation);
        reputation->reclaimed++;
        reputation->reclaimed_milli += ONE_LEASE_MILLI;
        break;
    case LEASE_OUTCOME_FAILED:
        reputation->failed++;
        break;
    case LEASE_OUTCOME_PREEMPTED:
        break; /* the market's doing */
    case LEASE_OUTCOME_NONE:
    case LEASE_OUTCOME_COUNT:
        UNREACHABLE("a lease that has not ended");
    }
    reputation->leased_ms += lease->leased_ms;
    reputation->delivered_ms += lease->delivered_ms;
    reputation->ticks += lease->ticks;
}

int64_t reputation_reliability_milli(const struct reputation *reputation)
{
    const int64_t good = reputation->completed_milli + ONE_LEASE_MILLI;
    return 1000 * good /
           (good + ONE_LEASE_MILLI + 2 * reputation->lost_milli + reputation->reclaimed_milli / 2);
}

int64_t reputation_delivered_milli(const struct reputation *reputation)
{
    if (reputation->leased_ms == 0)
        return 1000;
    return (int64_t)((__int128)1000 * reputation->delivered_ms / reputation->leased_ms);
}
