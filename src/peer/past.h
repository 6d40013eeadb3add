/*
 * Past: which leases have ended on this machine, so that none is run a second time.
 *
 * A market that was restarted, or whose link broke at the wrong moment, may send the START of a
 * lease whose end it has not heard of yet. The newest PAST_MAX are remembered.
 */
#pragma once

#include "runtime/lease_message.h"

#include <stdbool.h>
#include <stddef.h>

enum { PAST_MAX = 512 };

struct past {
    struct lease_fence leases[PAST_MAX];
    size_t count; /* ever noted */
};

void past_note(struct past *past, struct lease_fence lease);
/* Whether this holder of the lease, or a later one, has ended here. */
bool past_has(const struct past *past, struct lease_fence lease);
