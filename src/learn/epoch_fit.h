/*
 * Epoch fit: the constants of the epoch model, by least squares over the epochs that were seen.
 *
 * Sums are kept in place of epochs, so that any number of runs may be added. Epochs whose memory
 * was short tell of their updates, their loss and of paging only. What the epochs do not tell yet,
 * weak assumptions do (epoch_fit.c names them), which weigh as much as one noisy epoch.
 */
#pragma once

#include "learn/epoch_model.h"

#include <stdbool.h>

enum { EPOCH_FIT_POWERS = 81 };

/* y ~ a + b x, weighted. */
struct line_sums {
    double weight, x, xx, y, xy, yy;
};

struct epoch_fit {
    struct epoch_task task;
    uint64_t seen_count;
    double function_least, function_most;           /* of those seen */
    double start, start_squares;                    /* seconds */
    double cost_seen, cost_formed;                  /* as billed, and for the whole of the time */
    double fetch_weight, fetch;                     /* n x fetch, weighted by the epochs */
    struct line_sums update;                        /* n x update against sqrt(n) */
    struct line_sums fetch_line;                    /* of real jobs: fetch against 1/n, */
    struct line_sums update_line, start_line;       /* update and start against n */
    struct line_sums memory;                        /* need against 1/n */
    double paging_xx, paging_xy;                    /* h - 1 against need/m - 1 */
    double compute_weight[EPOCH_MEMORY_LEVELS_MAX]; /* n x compute at each memory */
    double compute[EPOCH_MEMORY_LEVELS_MAX];
    struct line_sums loss[EPOCH_FIT_POWERS]; /* 1 - loss'/loss against n^power / loss */
    struct work_fit work;                    /* in place of it, by the task's form */
};

void epoch_fit_init(struct epoch_fit *fit, const struct epoch_task *task);
void epoch_fit_add(struct epoch_fit *fit, const struct epoch_seen *seen);

/* The choice of the next epoch while too little is seen to fit; false once enough is. */
bool epoch_fit_probe(const struct epoch_fit *fit, struct epoch_choice *out_choice);

/* Credits for a GiB-second of an epoch's time, as epochs were billed: functions that wait for the
 * others cost nothing. The task's while none was. */
double epoch_fit_price(const struct epoch_fit *fit);

struct epoch_fitted {
    struct epoch_model model;
    /* Deviations, as shares: of an epoch's time, and of the loss it ends with. */
    double time_noise, loss_noise;
};

/* After at least one epoch. */
struct epoch_fitted epoch_fit_solve(const struct epoch_fit *fit);
