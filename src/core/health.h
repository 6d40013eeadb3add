/*
 * Health: whether the market has the right amount of credits, and whether anybody is too large.
 *
 * What matters is credits per active member in weeks of spending: with too few, trade halves; with
 * too many, nobody lends. Healthy are 2 to 8 weeks, and fewer than 5 % of the active under one
 * credit. Outside of these for four weeks the grant for newcomers should change; balances never.
 */
#pragma once

#include "core/core.h"

enum { HEALTH_ACTIVE_DAYS = 28 };

struct core_health_resource {
    int64_t lent_milli;                  /* units in open offers, speed weighed in */
    int64_t leased_milli;                /* of them */
    int64_t largest_lender_basis_points; /* its part of what is lent; who counts as one is one */
};

struct core_health {
    int64_t credits_micro; /* all that mint gave out and did not get back */
    int64_t member_count;
    int64_t active_count;         /* members seen in the last HEALTH_ACTIVE_DAYS */
    int64_t poor_count;           /* active, with less than one credit */
    int64_t weekly_spend_micro;   /* the median of the active that spent, over four weeks */
    int64_t weeks_of_spend_milli; /* credits per active member over that; 0: nobody spent */
    int64_t price_index_milli;    /* a core-hour over the day against the cold start */
    int64_t waiting_machines;     /* that jobs which would pay for them lack */
    struct core_health_resource resources[PRICE_RESOURCE_COUNT];
};

/* Walks the whole state: once in a while. */
void core_health(const struct core *core, struct core_health *out);
