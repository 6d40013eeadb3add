/*
 * Reward: the closed form of the fit, and the cases that must not use it.
 */
#include "sync/reward.h"

#include "base/assert.h"

#include <math.h>

struct sync_reward sync_reward_of(const struct sync_loss points[3], double target_loss)
{
    const double t1 = 1e-9 * (double)(points[1].at_ns - points[0].at_ns);
    const double t2 = 1e-9 * (double)(points[2].at_ns - points[0].at_ns);
    const double l0 = points[0].loss, l1 = points[1].loss, l2 = points[2].loss;
    ASSERT(t1 > 0 && t2 > t1);

    struct sync_reward reward = {.slope = (l0 - l2) / t2 / fmax(fabs(l0), 1e-12)};
    if (!(l0 > l1 && l1 > l2))
        return reward;
    const double f = t1 / t2;
    const double m = (1 - f) * l2 + f * l0;
    const double divisor = l0 + l2 - l1 - m;
    if (fabs(divisor) < 1e-12)
        return reward; /* on one straight line: no asymptote to speak of */
    const double a3 = (l0 * l2 - l1 * m) / divisor;
    if (!(a3 < l2) || !(target_loss > a3) || !(target_loss < l0))
        return reward;
    const double a = (1 / (l2 - a3) - 1 / (l0 - a3)) / t2;
    const double a2 = 1 / (l0 - a3);
    const double fit = a / (1 / (target_loss - a3) - a2);
    if (!(a > 0) || !isfinite(fit) || !(fit > 0))
        return reward;
    reward.has_fit = true;
    reward.fit = fit;
    return reward;
}

bool sync_reward_is_better(const struct sync_reward *left, const struct sync_reward *right,
                           double margin)
{
    const bool use_fit = left->has_fit && right->has_fit;
    const double l = use_fit ? left->fit : left->slope;
    const double r = use_fit ? right->fit : right->slope;
    return l > r + margin * fabs(r);
}
