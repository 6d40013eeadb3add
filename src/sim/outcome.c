#include "sim/outcome.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

static double *zeroes(size_t count)
{
    return memory_zeroed(count, sizeof(double));
}

void outcome_init(struct outcome *outcome, const struct workload *workload)
{
    *outcome = (struct outcome){.fate_count = workload->job_count,
                                .member_count = workload->member_count,
                                .lender_count = workload->lender_count};
    outcome->fates = memory_zeroed(workload->job_count, sizeof(*outcome->fates));
    outcome->lent_micro = zeroes(outcome->member_count);
    outcome->spent_micro = zeroes(outcome->member_count);
    outcome->lender_income_micro = zeroes(outcome->lender_count);
    outcome->lender_cost_micro = zeroes(outcome->lender_count);
    outcome->slot_price = zeroes((size_t)workload->hour_count / 6 + 1);
}

void outcome_done(struct outcome *outcome)
{
    free(outcome->fates);
    free(outcome->lent_micro);
    free(outcome->spent_micro);
    free(outcome->lender_income_micro);
    free(outcome->lender_cost_micro);
    free(outcome->slot_price);
    *outcome = (struct outcome){0};
}

double outcome_gain_micro(const struct outcome *outcome)
{
    return outcome->worth_micro - outcome->cost_micro;
}

double outcome_utilisation(const struct outcome *outcome, const struct workload *workload)
{
    const int scarce = workload->kind == WORKLOAD_ALIBABA ? 2 : 0;
    return outcome->there_hours[scarce] > 0
               ? outcome->used_hours[scarce] / outcome->there_hours[scarce]
               : 0;
}

double outcome_wait_now_h(const struct outcome *outcome, const struct workload *workload)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < outcome->fate_count; i++) {
        if (workload->jobs[i].start != JOB_START_NOW || !outcome->fates[i].has_started)
            continue;
        sum += outcome->fates[i].wait_h;
        count++;
    }
    return count > 0 ? sum / count : 0;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double eagerness(const struct sim_job *job)
{
    return (double)job->worth_micro / (double)job->cold_micro;
}

double outcome_top_unserved(const struct outcome *outcome, const struct workload *workload)
{
    if (outcome->fate_count == 0)
        return 0;
    double *all = zeroes(outcome->fate_count);
    for (size_t i = 0; i < outcome->fate_count; i++)
        all[i] = eagerness(&workload->jobs[i]);
    const double least = outcome_quantile(all, outcome->fate_count, 0.8);
    free(all);
    double count = 0, missed = 0;
    for (size_t i = 0; i < outcome->fate_count; i++) {
        if (eagerness(&workload->jobs[i]) < least)
            continue;
        count++;
        missed += !outcome->fates[i].is_finished;
    }
    return missed / count;
}

double outcome_day_move(const double *slot_price, size_t slot_count)
{
    if (slot_count < 5)
        return 0;
    double *moves = zeroes(slot_count);
    size_t count = 0;
    for (size_t slot = 4; slot < slot_count; slot++)
        if (slot_price[slot - 4] > 0)
            moves[count++] = fabs(slot_price[slot] / slot_price[slot - 4] - 1);
    const double median = outcome_quantile(moves, count, 0.5);
    free(moves);
    return median;
}

double outcome_quantile(double *values, size_t count, double share)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof(*values), compare_doubles);
    const double at = share * (double)(count - 1);
    const size_t below = (size_t)at;
    const size_t above = below + 1 < count ? below + 1 : below;
    return values[below] + (at - (double)below) * (values[above] - values[below]);
}

double outcome_gini(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare_doubles);
    double sum = 0, weighted = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        weighted += (double)(i + 1) * values[i];
    }
    if (sum <= 0)
        return 0;
    const double n = (double)count;
    return 2 * weighted / (n * sum) - (n + 1) / n;
}
