/* Pool's own parts: the state of a run, and how each kind of rule fills an hour. */
#pragma once

#include "sim/pool.h"

struct pool_job {
    double units[OUTCOME_RESOURCES];
    double remaining_h;
    double rate_micro;    /* locked when it started, per hour */
    int64_t planned_hour; /* not before */
    uint64_t start_order; /* 0: does not run */
    bool has_left;        /* finished, or too late for it */
    bool ran;             /* in this hour */
    bool waited;          /* in this hour, for room, at a price it would pay */
};

struct pool {
    const struct workload *workload;
    struct pool_options options;
    struct outcome *outcome;
    struct pool_price price;
    struct pool_job *jobs;
    uint32_t *active; /* arrived and not left, by arrival */
    size_t active_count;
    uint32_t *flexible; /* of mode cheapest, until their windows end */
    size_t flexible_count;
    size_t arrived_count;
    uint64_t start_count;
    int64_t hour;
    double capacity[OUTCOME_RESOURCES]; /* of lenders that are online and willing */
    double free[OUTCOME_RESOURCES];
    double mean_cost; /* of those, weighed by size */
    bool *is_willing; /* by lender */
    double willing_cold_micro;
    double *karma_credits;  /* by member */
    double *karma_used;     /* in this hour */
    double *booked_micro;   /* by slot from the start: cold-start worth of planned work */
    double *supplied_micro; /* by slot */
    uint32_t *order;        /* room for a sorted copy of active */
};

/* How much of the hour the job needs: at most all of it. */
double pool_hour_share(const struct pool_job *job);
/* Takes the job's width for its share of the hour out of what is free, if there is room. */
bool pool_take(struct pool *pool, uint32_t job);
/* The job ran: bills, pays, counts cost, and finishes it if nothing is left. */
void pool_run_job(struct pool *pool, uint32_t job, double rate_micro, double cost);
/* Size and mean cost of the lenders that are willing. */
void pool_weigh_lenders(struct pool *pool);
double pool_rate_micro(const struct pool *pool, uint32_t job, int64_t hour);

void pool_hour_posted(struct pool *pool);
void pool_hour_auction(struct pool *pool);
void pool_hour_karma(struct pool *pool);
void pool_plan_cheapest(struct pool *pool, uint32_t job);
