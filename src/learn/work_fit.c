#include "learn/work_fit.h"

#include "base/assert.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { BENDS = 16, SPREADS = 10, NOISES = 12, GAIN_ROUNDS = 6 };
static const double bend_least = 0.02, bend_factor = 1.33;
static const double spread_least = 0.6, spread_step = 0.05;
static const double noise_shares[NOISES] = {0,    0.005, 0.01, 0.02, 0.04, 0.08,
                                            0.16, 0.3,   0.45, 0.6,  0.75, 0.9};
/* Until epochs tell: each weighs as one epoch whose loss is off by a share, as others are. */
static const double share_least = 0.01, share_most = 0.05;
static const double bend_assumed = 0.4, bend_deviation = 1; /* e-folds */
static const double spread_assumed = 0.9, spread_deviation = 0.1;
static const double noise_assumed = 0.015, noise_deviation = 0.02; /* of the scale */
static const double deviation_least = 1e-4;
static const double gain_least = 1e-9, gain_most = 1e15;
static const double step_most = 2;       /* e-folds */
static const double signal_least = 0.02; /* of a loss, however much of it is noise */

double work_of_signal(const struct work_fitted *fitted, double signal)
{
    return signal > 0 ? pow(signal / fitted->start, -1 / fitted->bend) : HUGE_VAL;
}

double work_of_epoch(const struct work_fitted *fitted, double function_count)
{
    return fitted->gain * pow(function_count, -fitted->spread);
}

double work_signal(const struct work_fitted *fitted, double work)
{
    return fitted->start * pow(work, -fitted->bend);
}

double work_noise(const struct work_fitted *fitted, double function_count)
{
    return function_count > 0 ? fitted->noise / sqrt(function_count) : 0;
}

double work_signal_in(const struct work_fitted *fitted, double loss, double function_count)
{
    return fmax(loss - work_noise(fitted, function_count), signal_least * loss);
}

/* ---- What was seen --------------------------------------------------------------------------- */

/* The oldest run, or its first half where there is no other. */
static void forget(struct work_fit *fit)
{
    uint32_t first = 1;
    while (first < fit->count && fit->epochs[first].start <= 0)
        first++;
    if (first == fit->count) {
        first = fit->count / 2;
        fit->epochs[first].start = fit->epochs[first - 1].loss;
    }
    fit->count -= first;
    memmove(fit->epochs, fit->epochs + first, fit->count * sizeof(*fit->epochs));
}

void work_fit_add(struct work_fit *fit, double function_count, double loss_before,
                  double loss_after)
{
    const bool goes_on = fit->count > 0 && fit->epochs[fit->count - 1].loss == loss_before;
    if (fit->count == WORK_FIT_EPOCHS_MAX)
        forget(fit);
    fit->epochs[fit->count++] =
        (struct work_epoch){function_count, loss_after, goes_on ? 0 : loss_before};
}

/* ---- The fit --------------------------------------------------------------------------------- */

/* Squares of what is off in the logarithm of the loss, and how they change with that of the gain.
 */
struct misfit {
    double squares, slope, curve;
};

static struct misfit look(const struct work_fit *fit, const struct work_fitted *fitted)
{
    struct misfit sums = {0};
    double begun = 1, work = 0;
    for (uint32_t i = 0; i < fit->count; i++) {
        const struct work_epoch *epoch = &fit->epochs[i];
        if (epoch->start > 0) {
            begun = work_of_signal(fitted, epoch->start);
            work = 0;
        }
        work += work_of_epoch(fitted, epoch->function_count);
        const double signal = work_signal(fitted, begun + work);
        const double loss = signal + work_noise(fitted, epoch->function_count);
        const double off = log(loss / epoch->loss);
        const double moves = -fitted->bend * signal / loss * work / (begun + work);
        sums.squares += off * off;
        sums.slope += off * moves;
        sums.curve += moves * moves;
    }
    return sums;
}

/* The gain that fits best, by Gauss and Newton in its logarithm. */
static double fit_gain(const struct work_fit *fit, struct work_fitted *fitted)
{
    fitted->gain = 1;
    struct misfit sums = look(fit, fitted);
    for (int i = 0; i < GAIN_ROUNDS && sums.curve > 0; i++) {
        const double step = fmin(fmax(-sums.slope / sums.curve, -step_most), step_most);
        fitted->gain = fmin(fmax(fitted->gain * exp(step), gain_least), gain_most);
        sums = look(fit, fitted);
    }
    return sums.squares;
}

static double off_assumed(const struct work_fit *fit, const struct work_fitted *fitted,
                          double share)
{
    const double bend = log(fitted->bend / bend_assumed) / bend_deviation;
    const double spread = (fitted->spread - spread_assumed) / spread_deviation;
    const double noise = (fitted->noise / fit->loss_scale - noise_assumed) / noise_deviation;
    return share * share * (bend * bend + spread * spread + noise * noise);
}

/* No loss that was seen is below the noise. */
static double noise_most(const struct work_fit *fit)
{
    double most = HUGE_VAL;
    for (uint32_t i = 0; i < fit->count; i++)
        most = fmin(most, fit->epochs[i].loss * sqrt(fit->epochs[i].function_count));
    return most;
}

static struct work_fitted solve(const struct work_fit *fit, double share)
{
    const double most = noise_most(fit);
    struct work_fitted best = {0};
    double least = HUGE_VAL;
    for (int i = 0; i < BENDS * SPREADS * NOISES; i++) {
        struct work_fitted tried = {
            .bend = bend_least * pow(bend_factor, i % BENDS),
            .spread = spread_least + spread_step * (i / BENDS % SPREADS),
            .noise = most * noise_shares[i / BENDS / SPREADS],
            .start = fit->epochs[0].start,
        };
        const double squares = fit_gain(fit, &tried);
        const double value = squares + off_assumed(fit, &tried, share);
        if (!(value < least))
            continue;
        least = value;
        best = tried;
        best.deviation = fmax(sqrt(squares / fmax((double)fit->count - 3, 1)), deviation_least);
    }
    return best;
}

struct work_fitted work_fit_solve(const struct work_fit *fit)
{
    ASSERT(fit->count > 0 && fit->loss_scale > 0 && fit->epochs[0].start > 0);
    struct work_fitted best = solve(fit, share_most);
    /* Few epochs seem exacter than they are. */
    const double share = best.deviation * (1 + 3.0 / fit->count);
    if (share < share_most)
        best = solve(fit, fmax(share, share_least));
    if (work_signal(&best, 1 + best.gain) > 0.999 * best.start)
        best.gain = 0;
    return best;
}

double work_fit_reached(const struct work_fit *fit, const struct work_fitted *fitted)
{
    double work = 1;
    for (uint32_t i = 0; i < fit->count; i++) {
        if (fit->epochs[i].start > 0)
            work = work_of_signal(fitted, fit->epochs[i].start);
        work += work_of_epoch(fitted, fit->epochs[i].function_count);
    }
    if (fit->count == 0)
        return work;
    const struct work_epoch *last = &fit->epochs[fit->count - 1];
    const double noise = fmin(work_noise(fitted, last->function_count) / last->loss, 1);
    const double seen =
        work_of_signal(fitted, work_signal_in(fitted, last->loss, last->function_count));
    return exp((1 - noise) * log(seen) + noise * log(work));
}
