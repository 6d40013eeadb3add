/* What the files of matching share. */
#pragma once

#include "market/match.h"

/* What is free at the offer for a lease that goes on beyond the reservation's start, so that it
 * leaves the reserved room free then; every lease may run as long as it may. */
struct resources match_free_beside(const struct match_reservation *reservation,
                                   const struct offer *offer);
