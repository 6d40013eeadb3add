#include "recommend/fit.h"

#include "base/assert.h"
#include "recommend/fit_internal.h"

#include <math.h>

static const double transfer_deviation = 0.25, commit_deviation = 0.1, commit_least_s = 1e-3;
static const double step_deviation_prior = 0.1, step_deviation_most = 1.5, weight_prior = 1;
static const double replace_prior_s = 30;
enum { BYTES_PER_PARAMETER = 4 };

/* An average that begins at a prior. */
struct average {
    double sum, weight;
};

static void average_add(struct average *average, double value, double weight)
{
    average->sum += weight * value;
    average->weight += weight;
}

static bool has_model_of(const struct fit *fit, const struct observation *observation)
{
    return observation->signature.parameter_count == fit->job.signature.parameter_count;
}

static bool has_policy_of(const struct fit *fit, const struct observation *observation)
{
    return policy_traits_find(observation->signature.policy) == fit->policy;
}

/* Bytes of one push: of the nearest run, else the whole model each way. */
static void fit_bytes(struct fit *fit, const struct observation *observations, size_t count)
{
    enum likeness nearest = LIKENESS_STRANGER;
    fit->bytes_up = fit->bytes_down =
        BYTES_PER_PARAMETER * (double)fit->job.signature.parameter_count;
    for (size_t i = 0; i < count; i++) {
        const struct observation *seen = &observations[i];
        const enum likeness likeness = signature_likeness(&seen->signature, &fit->job.signature);
        if (!has_model_of(fit, seen) || likeness > nearest || !observed_is_sane(seen->bytes_up))
            continue;
        nearest = likeness;
        fit->bytes_up = seen->bytes_up;
        fit->bytes_down = observed_is_sane(seen->bytes_down) ? seen->bytes_down : seen->bytes_up;
    }
}

static void fit_pushes(struct fit *fit, const struct observation *observations, size_t count)
{
    const uint32_t given = fit->job.signature.local_steps;
    struct average steps = {weight_prior * log(fit->policy->steps_per_push), weight_prior};
    if (given > 0 || fit->policy->steps_per_push <= 1) {
        fit->steps_per_push = given > 0 ? given : 1;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double made = 0;
        for (uint32_t k = 0; k < observations[i].kind_count; k++)
            made += (double)observations[i].kinds[k].steps;
        if (has_policy_of(fit, &observations[i]) && observations[i].pushes > 0 && made > 0)
            average_add(&steps, log(made / (double)observations[i].pushes), 1);
    }
    fit->steps_per_push = fmax(1, exp(steps.sum / steps.weight));
}

/* How a kind's commits compare with what its link would give; where one worker at a time used the
 * server's, for a crowd is in the model itself. */
static void observe_commit(struct fit *fit, struct belief *transfer,
                           const struct observation *observation, const struct observed_kind *kind)
{
    const double bytes = observation->bytes_up + observation->bytes_down;
    double told_s = kind->rtt_s;
    double bytes_per_s = kind->bytes_per_s;
    const double shared = observation->server_bytes_per_s;
    if (shared > 0 && (shared < bytes_per_s || bytes_per_s == 0))
        bytes_per_s = shared;
    if (bytes_per_s > 0)
        told_s += bytes / bytes_per_s;
    if (!observed_is_sane(kind->commit_s) || !observed_is_sane(told_s) || told_s < commit_least_s ||
        observation->worker_count > 2)
        return;
    const struct belief_term term = {0, 1};
    const double likeness =
        1 + (double)signature_likeness(&observation->signature, &fit->job.signature);
    belief_observe(transfer, &term, 1, log(kind->commit_s / told_s),
                   commit_deviation * commit_deviation * likeness);
}

static void fit_transfer(struct fit *fit, const struct observation *observations, size_t count)
{
    struct belief transfer = {.count = 0};
    const struct belief_term term = {0, 1};
    belief_add(&transfer, (struct estimate){0, transfer_deviation * transfer_deviation});
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < observations[i].kind_count; k++)
            observe_commit(fit, &transfer, &observations[i], &observations[i].kinds[k]);
    fit->transfer = belief_estimate(&transfer, &term, 1);
}

static void fit_steadiness(struct fit *fit, const struct observation *observations, size_t count)
{
    struct average deviation = {weight_prior * step_deviation_prior, weight_prior};
    struct average replace = {weight_prior * replace_prior_s, weight_prior};
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < observations[i].kind_count; k++)
            if (observed_is_sane(observations[i].kinds[k].step_deviation))
                average_add(&deviation,
                            fmin(observations[i].kinds[k].step_deviation, step_deviation_most), 1);
        if (observations[i].losses > 0 && observed_is_sane(observations[i].replace_s))
            average_add(&replace, observations[i].replace_s, observations[i].losses);
    }
    fit->step_deviation = deviation.sum / deviation.weight;
    fit->replace_s = replace.sum / replace.weight;
}

bool fit_has_job(const struct fit *fit)
{
    return fit->observation_count[LIKENESS_SAME] + fit->observation_count[LIKENESS_VARIED] > 0;
}

bool fit_has_model(const struct fit *fit)
{
    return fit_has_job(fit) || fit->observation_count[LIKENESS_MODEL] > 0;
}

/* The mean of a normal's largest of n, by Blom. */
static double largest_normal(double n)
{
    /* Hastings' quantile (Abramowitz and Stegun 26.2.23), within 4.5e-4 from a half on. */
    const double p = (n - 0.375) / (n + 0.25);
    const double t = sqrt(-2 * log(1 - p));
    return t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                   (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
}

/* Step times are log-normal; the steps between two pushes average out. */
static void fit_slowest(struct fit *fit)
{
    const double deviation = fit->step_deviation / sqrt(fit->steps_per_push);
    fit->slowest[0] = fit->slowest[1] = 1;
    for (uint32_t n = 2; n <= CLUSTER_WORKERS_MAX; n++)
        fit->slowest[n] = exp(deviation * largest_normal(n) - deviation * deviation / 2);
}

void fit_observations(const struct recommend_job *job, const struct observation *observations,
                      size_t count, const struct predict_error *errors, struct fit *out_fit)
{
    ASSERT(job->signature.batch > 0);
    ASSERT(job->samples > 0 || job->target_loss > 0);
    *out_fit = (struct fit){
        .job = *job,
        .policy = policy_traits_find(job->signature.policy),
        .bias_factor = errors ? exp(predict_error_bias(errors)) : 1,
        .scale = errors ? predict_error_scale(errors) : 1,
    };
    for (size_t i = 0; i < count; i++)
        out_fit
            ->observation_count[signature_likeness(&observations[i].signature, &job->signature)]++;
    fit_speed(out_fit, observations, count);
    fit_learning(out_fit, observations, count);
    for (uint32_t n = 0; n <= CLUSTER_WORKERS_MAX; n++)
        out_fit->samples_expected[n] = exp(out_fit->samples[n].mean);
    fit_bytes(out_fit, observations, count);
    fit_pushes(out_fit, observations, count);
    fit_transfer(out_fit, observations, count);
    fit_steadiness(out_fit, observations, count);
    fit_slowest(out_fit);
}
