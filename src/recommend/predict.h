/*
 * Predict: how long a cluster takes for a job and what that costs, each as low, expected and high.
 *
 * Eight of ten runs are meant to lie between low and high. Costs are of all machines from their
 * start to the job's end, the parameter server's too.
 */
#pragma once

#include "recommend/candidate.h"
#include "recommend/fit.h"

struct range {
    double low, expected, high;
};

struct prediction {
    struct range seconds;
    struct range cost_micro;
    double deviation;           /* of the logarithm of the seconds */
    double start_s, work_s;     /* of the seconds that are expected */
    double steps_per_s;         /* of all workers */
    double compute_steps_per_s; /* the same if they did nothing else */
    double samples;             /* of all workers until the end */
    double loss_factor;         /* of the work, for workers that are lost meanwhile */
    double wait_share;          /* of workers' time: neither computing nor sending */
    double link_share;          /* of the server's link that is used; near 1: it is full */
    double losses;              /* expected, of workers */
    double risk;                /* that a worker is lost before the end, 0 to 1 */
};

void predict(const struct fit *fit, const struct cluster_plan *plan,
             const struct server_place *server, struct prediction *out_prediction);

/* One worker for itself: a step, and a push with its answer. */
struct worker_pace {
    double step_s, push_s;
};
struct worker_pace predict_pace(const struct fit *fit, const struct candidate *candidate);

/* Of a deadline, by the range: the share of outcomes that are later. */
double prediction_late_share(const struct prediction *prediction, double deadline_s);
