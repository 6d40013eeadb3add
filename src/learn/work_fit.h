/*
 * Work fit: how far the loss of a real job falls in an epoch, by least squares over those seen.
 *
 *     loss' ^ (-1/bend) = loss ^ (-1/bend) + gain n ^ -spread
 *
 * The loss is a power of the work that went into the model; an epoch of n functions, whose updates
 * are averaged, is worth n^-spread of one. Where the loss stands changes nothing in that, so that
 * one number of functions is the best throughout.
 *
 * Sums are kept for a grid of bends and spreads, in place of epochs.
 */
#pragma once

#include <stdint.h>

enum { WORK_FIT_BENDS = 29, WORK_FIT_SPREADS = 25 };

struct work_sums {
    double rise_rise, rise_share, share_share; /* of loss^(-1/bend), and n^-spread; as shares */
};

struct work_fit {
    uint64_t seen_count;
    struct work_sums sums[WORK_FIT_BENDS][WORK_FIT_SPREADS];
};

struct work_fitted {
    double bend, spread, gain;
    double noise; /* deviation of the loss after an epoch, as a share */
};

/* Zero at first. */
void work_fit_add(struct work_fit *fit, double function_count, double loss_before,
                  double loss_after);
/* After at least one epoch. A gain of 0: the loss does not fall. */
struct work_fitted work_fit_solve(const struct work_fit *fit);
