#include "learn/work_fit.h"

#include "base/assert.h"

#include <math.h>

static const double bend_least = 0.1, bend_step = 0.05;
static const double spread_step = 0.05;
/* Until epochs tell: seen of LeNet-5, a text CNN and hashed rows; each weighs as a noisy epoch. */
static const double bend_assumed = 0.5, bend_deviation = 0.3;
static const double spread_assumed = 0.75, spread_deviation = 0.25;
static const double noise_least = 1e-4;

static double bend_at(int index)
{
    return bend_least + bend_step * index;
}

static double spread_at(int index)
{
    return spread_step * index;
}

void work_fit_add(struct work_fit *fit, double function_count, double loss_before,
                  double loss_after)
{
    fit->seen_count++;
    for (int i = 0; i < WORK_FIT_BENDS; i++) {
        const double bend = bend_at(i);
        const double after = pow(loss_after, -1 / bend);
        const double rise = after - pow(loss_before, -1 / bend);
        /* What is off by a share of `after` is off by bend times that of the loss. */
        const double weight = bend / after;
        for (int k = 0; k < WORK_FIT_SPREADS; k++) {
            struct work_sums *sums = &fit->sums[i][k];
            const double share = weight * pow(function_count, -spread_at(k));
            sums->rise_rise += weight * rise * weight * rise;
            sums->rise_share += weight * rise * share;
            sums->share_share += share * share;
        }
    }
}

static struct work_fitted fitted_at(const struct work_fit *fit, int i, int k)
{
    const struct work_sums *sums = &fit->sums[i][k];
    const double gain = fmax(sums->rise_share / sums->share_share, 0);
    const double squares =
        sums->rise_rise - 2 * gain * sums->rise_share + gain * gain * sums->share_share;
    const double free = fmax((double)fit->seen_count - 3, 1);
    return (struct work_fitted){bend_at(i), spread_at(k), gain,
                                fmax(sqrt(fmax(squares, 0) / free), noise_least)};
}

static double misfit(const struct work_fit *fit, const struct work_fitted *fitted,
                     double noise_squared)
{
    const double bend_off = (fitted->bend - bend_assumed) / bend_deviation;
    const double spread_off = (fitted->spread - spread_assumed) / spread_deviation;
    const double free = fmax((double)fit->seen_count - 3, 1);
    return fitted->noise * fitted->noise * free +
           noise_squared * (bend_off * bend_off + spread_off * spread_off);
}

struct work_fitted work_fit_solve(const struct work_fit *fit)
{
    ASSERT(fit->seen_count > 0);
    struct work_fitted best = {0};
    double noise_squared = 1e-4;
    /* The noise is what is left over, and says how much what is assumed weighs. */
    for (int round = 0; round < 3; round++) {
        double least = HUGE_VAL;
        for (int i = 0; i < WORK_FIT_BENDS; i++)
            for (int k = 0; k < WORK_FIT_SPREADS; k++) {
                const struct work_fitted tried = fitted_at(fit, i, k);
                const double value = misfit(fit, &tried, noise_squared);
                if (value < least) {
                    least = value;
                    best = tried;
                }
            }
        noise_squared = best.noise * best.noise;
    }
    return best;
}
