/* What plan.c and plan_phases.c share. */
#pragma once

#include "learn/plan.h"

struct candidate {
    uint32_t function_count;
    double floor;
    double time_s, cost; /* at the memory that is best for lambda */
    double value;        /* time + lambda cost */
    uint32_t level;      /* of that memory */
};

struct plan {
    struct epoch_task task;
    struct plan_options options;
    struct epoch_model model;
    struct plan_risk risk;
    uint32_t candidate_count, level_count;
    uint32_t *counts; /* being sorted */
    struct candidate *candidates;
    double *time_s; /* [candidate, level] */
    double *cost;
    double lambda;      /* of the last plan */
    double reserve_max; /* of the one being made */
};
