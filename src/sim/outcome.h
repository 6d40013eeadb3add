/*
 * Outcome: what a simulated market made of its workload, whatever rule and engine ran it.
 */
#pragma once

#include "sim/workload.h"

enum { OUTCOME_RESOURCES = 3 }; /* cores, GiB of RAM, GPUs */

/* One job's fate. */
struct job_fate {
    bool is_finished; /* in time: it was worth its price */
    bool has_started;
    double wait_h; /* until it first ran, or until it left */
    double paid_micro;
    double run_h; /* for which lenders were used, finished or not */
};

struct outcome {
    double worth_micro;                   /* of all jobs finished in time */
    double cost_micro;                    /* of lenders, for everything that ran */
    double used_hours[OUTCOME_RESOURCES]; /* unit-hours */
    double there_hours[OUTCOME_RESOURCES];
    struct job_fate *fates; /* by job */
    size_t fate_count;
    double *lent_micro;          /* by member: what it was paid */
    double *spent_micro;         /* by member */
    double *lender_income_micro; /* by lender */
    double *lender_cost_micro;
    size_t member_count, lender_count;
    double *slot_price; /* of the scarce resource, as multiples of cold start, slot by slot */
    size_t slot_count;
};

void outcome_init(struct outcome *outcome, const struct workload *workload);
void outcome_done(struct outcome *outcome);
#define AUTO_OUTCOME __attribute__((cleanup(outcome_done)))

/* ---- Figures --------------------------------------------------------------------------------- */

double outcome_gain_micro(const struct outcome *outcome);
double outcome_utilisation(const struct outcome *outcome, const struct workload *workload);
/* Mean wait of start-now jobs that ran, in hours. */
double outcome_wait_now_h(const struct outcome *outcome, const struct workload *workload);
/* Share of the fifth of jobs worth most per cold-start price that did not finish. */
double outcome_top_unserved(const struct outcome *outcome, const struct workload *workload);
/* Median over slots of how far the price is from that of the same slot a day before; 0.1: 10 %. */
double outcome_day_move(const double *slot_price, size_t slot_count);
/* Of a list that is sorted in place. */
double outcome_gini(double *values, size_t count);
double outcome_quantile(double *values, size_t count, double share);
