/*
 * Fit, the learning: how many samples all workers together need until the target.
 *
 *     log samples(n) = S + log(1 + n batch / B) - log gain(policy, n) + learning(policy)
 *                      + growth(policy) log n - faster log(rate / the job's rate)
 *
 * B is the critical batch: below it samples count in full, above it twice the batch needs nearly
 * twice the samples, for steps do not get longer by themselves. The sum is linear in all but B;
 * for each B of a grid it is solved exactly, and the grid weighed by how likely it made what was
 * seen (McCandlish et al. 2018 have the form).
 */
#include "base/assert.h"
#include "recommend/fit_internal.h"

#include <math.h>
#include <string.h>

enum { SAMPLES, FASTER, COMMON_TERMS };
enum { GRID = 23, POLICIES_MAX = 24 };

static const double samples_prior = 11, samples_deviation = 2.5; /* e^11 is 60,000 */
static const double faster_prior = 0.9, faster_deviation = 0.15;
static const double critical_prior = 2.3, critical_deviation = 1.5; /* e^2.3: 10 samples */
static const double learning_deviation = 0.15, growth_deviation = 0.08;
static const double run_deviation = 0.1;     /* from seed to seed */
static const double guess_deviation = 0.8;   /* of a curve that is prolonged */
static const double untried_deviation = 0.6; /* of a policy that never reached the target here */
static const double slope_least = 0.03, slope_most = 1;
static const double prolonged_most = 1000; /* times what was seen */

struct learning {
    struct belief belief;
    double critical; /* its logarithm */
    double likelihood;
};

static uint32_t policy_term(uint32_t policy)
{
    return COMMON_TERMS + 2 * policy;
}

static void begin(struct learning *learning, double critical)
{
    *learning = (struct learning){.critical = critical};
    belief_add(&learning->belief,
               (struct estimate){samples_prior, samples_deviation * samples_deviation});
    belief_add(&learning->belief,
               (struct estimate){faster_prior, faster_deviation * faster_deviation});
    _Static_assert(COMMON_TERMS + 2 * POLICIES_MAX <= BELIEF_MAX, "room for all policies");
    ASSERT(policy_traits_count() <= POLICIES_MAX);
    /* bsp is what the others are compared with. */
    for (uint32_t i = 0; i < policy_traits_count(); i++) {
        const double own = i > 0 ? 1 : 1e-6;
        const double growth = policy_traits_at(i)->growth;
        belief_add(&learning->belief,
                   (struct estimate){0, own * learning_deviation * learning_deviation});
        belief_add(&learning->belief,
                   (struct estimate){growth, own * growth_deviation * growth_deviation});
    }
    const double apart = (critical - critical_prior) / critical_deviation;
    learning->likelihood = -0.5 * apart * apart;
}

/* The terms of so many workers, and what of the sum is known. */
static uint32_t terms_of(const struct learning *learning, const struct signature *run,
                         const struct recommend_job *job, double workers, struct belief_term *terms,
                         double *out_known)
{
    const struct policy_traits *policy = policy_traits_find(run->policy);
    const uint32_t own = policy_term(policy_traits_index(policy));
    *out_known = log1p(workers * run->batch / exp(learning->critical)) -
                 log(policy_traits_gain(policy, workers));
    uint32_t count = 0;
    terms[count++] = (struct belief_term){SAMPLES, 1};
    terms[count++] = (struct belief_term){own, 1};
    terms[count++] = (struct belief_term){own + 1, log(workers)};
    const double left = run->rate / (1 - run->momentum);
    const double right = job->signature.rate / (1 - job->signature.momentum);
    if (observed_is_sane(left) && observed_is_sane(right))
        terms[count++] = (struct belief_term){FASTER, -log(left / right)};
    return count;
}

/* Slope of log loss against log samples over the later half of the curve, prolonged to the
 * target: only where nothing better is known. 0: the curve does not fall. */
static double prolong(const struct observation *observation, double target)
{
    const uint32_t count = observation->point_count;
    if (count < 3)
        return 0;
    const struct observed_point *half = &observation->points[count / 2];
    const struct observed_point *last = &observation->points[count - 1];
    if (half->samples == 0 || last->samples <= half->samples || !(last->loss < half->loss) ||
        !observed_is_sane(last->loss) || !observed_is_sane(half->loss))
        return 0;
    const double slope =
        log(half->loss / last->loss) / log((double)last->samples / (double)half->samples);
    const double bounded = fmin(fmax(slope, slope_least), slope_most);
    const double times = pow(last->loss / target, 1 / bounded);
    return (double)last->samples * fmin(times, prolonged_most);
}

/* What a run tells of the samples until the target: 0 when nothing. */
static double samples_told(const struct fit *fit, const struct observation *observation,
                           bool may_prolong, double *out_variance)
{
    *out_variance = run_deviation * run_deviation;
    if (signature_likeness(&observation->signature, &fit->job.signature) > LIKENESS_VARIED)
        return 0;
    const double seen = observation_samples_at(observation, fit->job.target_loss);
    if (seen > 0 || !may_prolong)
        return seen;
    *out_variance = guess_deviation * guess_deviation;
    return prolong(observation, fit->job.target_loss);
}

static void learn(struct learning *learning, const struct fit *fit,
                  const struct observation *observations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct belief_term terms[COMMON_TERMS + 2];
        double known, variance;
        const double samples = samples_told(fit, &observations[i], !fit->has_samples, &variance);
        if (!observed_is_sane(samples) || observations[i].worker_count == 0)
            continue;
        const uint32_t term_count = terms_of(learning, &observations[i].signature, &fit->job,
                                             observations[i].worker_count, terms, &known);
        learning->likelihood +=
            belief_observe(&learning->belief, terms, term_count, log(samples) - known, variance);
    }
}

/* What one B of the grid makes of it, by number of workers. */
struct learned {
    double critical, likelihood;
    struct estimate samples[CLUSTER_WORKERS_MAX + 1];
};

static void learn_all(const struct fit *fit, const struct observation *observations, size_t count,
                      double critical, struct learned *out_learned)
{
    struct learning learning;
    begin(&learning, critical);
    learn(&learning, fit, observations, count);
    out_learned->critical = critical;
    out_learned->likelihood = learning.likelihood;
    for (uint32_t n = 1; n <= CLUSTER_WORKERS_MAX; n++) {
        struct belief_term terms[COMMON_TERMS + 2];
        double known;
        const uint32_t term_count =
            terms_of(&learning, &fit->job.signature, &fit->job, n, terms, &known);
        out_learned->samples[n] = belief_estimate(&learning.belief, terms, term_count);
        out_learned->samples[n].mean += known;
    }
}

/* Mean and variance of a mixture. */
static struct estimate mix(const struct learned *grid, const double *weights, uint32_t workers)
{
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < GRID; i++) {
        const struct estimate *told = &grid[i].samples[workers];
        mean += weights[i] * told->mean;
        square += weights[i] * (told->mean * told->mean + told->variance);
    }
    return (struct estimate){mean, fmax(square - mean * mean, 0)};
}

static void weigh(const struct learned *grid, double *weights)
{
    double most = (double)-HUGE_VAL, sum = 0;
    for (uint32_t i = 0; i < GRID; i++)
        most = fmax(most, grid[i].likelihood);
    for (uint32_t i = 0; i < GRID; i++)
        sum += weights[i] = exp(grid[i].likelihood - most);
    for (uint32_t i = 0; i < GRID; i++)
        weights[i] /= sum;
}

/* Under this policy, or any where it is NULL. */
static bool is_target_seen(const struct fit *fit, const struct observation *observations,
                           size_t count, const struct policy_traits *policy)
{
    double variance;
    for (size_t i = 0; i < count; i++)
        if ((!policy || policy_traits_find(observations[i].signature.policy) == policy) &&
            samples_told(fit, &observations[i], false, &variance) > 0)
            return true;
    return false;
}

/* Another policy reached the target: what this one gains over it here is hearsay. Of what is so
 * widely spread the mean lies above the middle, so what has worked is taken unless this one is
 * clearly better. */
static void doubt(struct fit *fit)
{
    const double variance = untried_deviation * untried_deviation;
    for (uint32_t n = 1; n <= CLUSTER_WORKERS_MAX; n++) {
        fit->samples[n].mean += variance / 2;
        fit->samples[n].variance += variance;
    }
}

void fit_learning(struct fit *fit, const struct observation *observations, size_t count)
{
    const double asked = fit->job.samples;
    fit->has_samples = asked > 0 || is_target_seen(fit, observations, count, NULL);
    if (asked > 0) {
        for (uint32_t n = 0; n <= CLUSTER_WORKERS_MAX; n++)
            fit->samples[n] = (struct estimate){log(asked), 0};
        return;
    }
    struct learned grid[GRID];
    double weights[GRID], critical = 0;
    for (uint32_t i = 0; i < GRID; i++)
        learn_all(fit, observations, count,
                  critical_prior + critical_deviation * (6.0 * i / (GRID - 1) - 3), &grid[i]);
    weigh(grid, weights);
    for (uint32_t i = 0; i < GRID; i++)
        critical += weights[i] * grid[i].critical;
    fit->critical_batch = exp(critical);
    for (uint32_t n = 1; n <= CLUSTER_WORKERS_MAX; n++)
        fit->samples[n] = mix(grid, weights, n);
    if (fit->has_samples && !is_target_seen(fit, observations, count, fit->policy))
        doubt(fit);
    fit->samples[0] = fit->samples[1];
}
