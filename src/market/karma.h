/*
 * Karma: sharing without money (Vuppalapati et al., OSDI 2023), for a lab that wants none.
 *
 * A unit-hour costs one credit and earns one, always. Each hour what is lent is divided by the
 * members: a guaranteed part of the equal share is free, and the rest of it comes as new credits.
 * Who has most credits goes first, so what counts is the order of balances, not their sum.
 */
#pragma once

#include "market/price.h"

/* What a newcomer starts with: one who lent and borrowed nothing. */
#define KARMA_START_MICRO INT64_C(1000000000)

/* One credit for the reference core; the others in proportion to the cold prices. */
struct price_vector karma_price(void);

struct karma_dues {
    int64_t income_micro;     /* the pooled part of the share */
    int64_t guaranteed_micro; /* of what was used: given back */
};

/* What a member gets for the hours that passed: `share_micro` is its equal share of one. */
struct karma_dues karma_dues(int64_t share_micro, int64_t hours, int64_t used_micro,
                             int64_t guarantee_basis_points);
