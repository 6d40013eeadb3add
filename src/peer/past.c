#include "peer/past.h"

void past_note(struct past *past, struct lease_fence lease)
{
    past->leases[past->count++ % PAST_MAX] = lease;
}

bool past_has(const struct past *past, struct lease_fence lease)
{
    const size_t kept = past->count < PAST_MAX ? past->count : PAST_MAX;
    for (size_t i = 0; i < kept; i++)
        if (past->leases[i].lease == lease.lease && past->leases[i].fence >= lease.fence)
            return true;
    return false;
}
