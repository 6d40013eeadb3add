/* The offline reference: all jobs are known, the best per hour of the pool go first. */
#include "base/assert.h"
#include "sim/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
    double eagerness;
    uint32_t job;
};

static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->eagerness != b->eagerness)
        return a->eagerness > b->eagerness ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

struct calendar {
    double (*free)[OUTCOME_RESOURCES]; /* by hour */
    int64_t hour_count;
};

static void open_calendar(struct calendar *calendar, const struct workload *workload,
                          double *out_mean_cost)
{
    calendar->hour_count = workload->hour_count;
    calendar->free = calloc((size_t)workload->hour_count + 1, sizeof(*calendar->free));
    ASSERT(calendar->free);
    double cost = 0, hours = 0;
    for (size_t i = 0; i < workload->lender_count; i++) {
        const struct sim_lender *lender = &workload->lenders[i];
        for (int64_t hour = 0; hour < workload->hour_count; hour++) {
            if (!sim_lender_is_online(lender, hour))
                continue;
            calendar->free[hour][0] += (double)lender->resources.cores_milli / 1000;
            calendar->free[hour][1] +=
                (double)lender->resources.ram_bytes / (double)(INT64_C(1) << 30);
            calendar->free[hour][2] += (double)lender->resources.gpus_milli / 1000;
            cost += (double)lender->cost_milli / 1000;
            hours++;
        }
    }
    *out_mean_cost = hours > 0 ? cost / hours : 0;
}

static bool has_room(const struct calendar *calendar, int64_t hour,
                     const double units[OUTCOME_RESOURCES], double share)
{
    for (int i = 0; i < OUTCOME_RESOURCES; i++)
        if (units[i] * share > calendar->free[hour][i] + 1e-9)
            return false;
    return true;
}

/* The earliest hours with room before it is too late; all of them or none. */
static bool place(struct calendar *calendar, const struct sim_job *job)
{
    const struct resources width = sim_job_resources(job);
    const double units[OUTCOME_RESOURCES] = {(double)width.cores_milli / 1000,
                                             (double)width.ram_bytes / (double)(INT64_C(1) << 30),
                                             (double)width.gpus_milli / 1000};
    const double whole_h = (double)job->run_s / 3600;
    for (int is_taking = 0; is_taking < 2; is_taking++) {
        double left_h = whole_h;
        for (int64_t hour = job->arrival_s / 3600;
             left_h > 1e-9 && hour < calendar->hour_count && hour * 3600 < job->latest_s; hour++) {
            const double share = fmin(1, left_h);
            if (left_h == whole_h && hour * 3600 > job->start_s)
                return false;
            if (!has_room(calendar, hour, units, share))
                continue;
            left_h -= share;
            for (int i = 0; i < OUTCOME_RESOURCES && is_taking; i++)
                calendar->free[hour][i] -= units[i] * share;
        }
        if (left_h > 1e-9)
            return false;
    }
    return true;
}

void pool_run_offline(const struct workload *workload, struct outcome *out_outcome)
{
    outcome_init(out_outcome, workload);
    struct calendar calendar;
    double mean_cost = 0;
    open_calendar(&calendar, workload, &mean_cost);
    struct candidate *order = calloc(workload->job_count + 1, sizeof(*order));
    ASSERT(order);
    for (size_t i = 0; i < workload->job_count; i++)
        order[i] = (struct candidate){(double)workload->jobs[i].worth_micro /
                                          (double)workload->jobs[i].cold_micro,
                                      (uint32_t)i};
    qsort(order, workload->job_count, sizeof(*order), compare_candidates);
    for (size_t i = 0; i < workload->job_count && order[i].eagerness > mean_cost; i++) {
        const struct sim_job *job = &workload->jobs[order[i].job];
        if (!place(&calendar, job))
            continue;
        const double hours = (double)job->run_s / 3600;
        out_outcome->fates[order[i].job] =
            (struct job_fate){.is_finished = true, .has_started = true, .run_h = hours};
        out_outcome->worth_micro += (double)job->worth_micro * hours;
        out_outcome->cost_micro += (double)job->cold_micro * mean_cost * hours;
    }
    free(order);
    free(calendar.free);
}
