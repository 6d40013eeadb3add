/*
 * Work fit: how the loss of a real job falls, by least squares over the epochs seen.
 *
 *     signal  = start (1 + gain work)^-bend      work: the sum of n^-spread over the epochs
 *     loss    = signal + noise / sqrt(n)         n: functions of the last epoch
 *
 * The updates of n functions are averaged. An epoch of n therefore leads about as far as 1/n of an
 * epoch of one, and what steps of SGD leave in a model as noise is less the more are averaged: few
 * functions go far, and many at the end take the noise away. Seen of LeNet-5, a text CNN and hashed
 * rows: spreads of 0.8 to 1, and a noise from next to nothing to two thirds of the loss.
 *
 * Epochs are kept, since the signal of one depends on all before it in its run.
 */
#pragma once

#include <stdint.h>

enum { WORK_FIT_EPOCHS_MAX = 1024 };

struct work_epoch {
    double function_count;
    double loss;  /* after it */
    double start; /* of its run, in the run's first; else 0 */
};

struct work_fit {
    double loss_scale; /* what a noise is small beside: from the start to the target; > 0 */
    uint32_t count;
    struct work_epoch epochs[WORK_FIT_EPOCHS_MAX]; /* the oldest runs are forgotten */
};

struct work_fitted {
    double bend, spread, gain;
    double start;
    double noise;     /* of one function, as a loss */
    double deviation; /* of the loss after an epoch, as a share */
};

/* An epoch that begins with the loss that the last one ended with goes on with its run. */
void work_fit_add(struct work_fit *fit, double function_count, double loss_before,
                  double loss_after);
/* After at least one epoch. A gain of 0: the loss does not fall. */
struct work_fitted work_fit_solve(const struct work_fit *fit);
/* 1 + gain work where the last run stands: by its last loss, and the more of that is noise, by the
 * epochs before it. */
double work_fit_reached(const struct work_fit *fit, const struct work_fitted *fitted);

/* As 1 + gain work, of a signal; and what an epoch adds to it. */
double work_of_signal(const struct work_fitted *fitted, double signal);
double work_of_epoch(const struct work_fitted *fitted, double function_count);
double work_signal(const struct work_fitted *fitted, double work);
/* In the loss after an epoch of so many functions; 0 functions: before the first. */
double work_noise(const struct work_fitted *fitted, double function_count);
/* What is left of such a loss without it. */
double work_signal_in(const struct work_fitted *fitted, double loss, double function_count);
