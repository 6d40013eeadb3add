/*
 * Fit, the speed: log step = work + growth log(batch / job's batch) - log weight
 *                            - efficiency log cores + kind + other job
 *
 * `kind` is what machines of that name differ by from what their speed would give, on any job;
 * `other job` by how much another job's steps differ from this one's: 0 for the same, nearly 0 for
 * another batch of it, anything for a stranger. So a stranger's run tells of kinds and cores only.
 */
#include "base/assert.h"
#include "recommend/fit_internal.h"

#include <math.h>
#include <string.h>

enum { WORK, EFFICIENCY, GROWTH, COMMON_TERMS };
enum { TERMS_MAX = COMMON_TERMS + 2 };

/* Deviations of priors. Before anything is measured a sample takes six operations a parameter, or,
 * where convolutions use each often, many times that. */
static const double operations_per_s = 1e10, operations_each = 60, step_least_s = 1e-3;
static const double work_deviation = 2;
static const double efficiency_prior = 0.85, efficiency_deviation = 0.1;
static const double growth_prior = 0.95, growth_deviation = 0.06;
static const double kind_deviation = 0.12, gpu_deviation = 1.0, gpu_weight_prior = 20000;
static const double job_deviations[LIKENESS_COUNT] = {
    [LIKENESS_SAME] = 0,     [LIKENESS_VARIED] = 0.03, [LIKENESS_MODEL] = 0.15,
    [LIKENESS_SHAPE] = 0.35, [LIKENESS_STRANGER] = 5,
};
static const double surprise_most = 3;    /* deviations: what is farther out was no usual run */
static const double run_deviation = 0.03; /* of a run's mean step, besides its steps' own */

/* What machines are told apart by. */
struct power {
    double weight; /* thousandths of the reference, of one core or all GPUs */
    double cores;  /* 1 with GPUs */
    bool is_guess;
};

static struct power power_of(uint32_t speed_weight, uint32_t cores_milli, uint32_t gpu_count,
                             uint32_t gpu_weight)
{
    if (gpu_count == 0)
        return (struct power){speed_weight > 0 ? speed_weight : 1000,
                              cores_milli > 0 ? cores_milli / 1000.0 : 1,
                              speed_weight == 0 || cores_milli == 0};
    return (struct power){gpu_count * (gpu_weight > 0 ? gpu_weight : gpu_weight_prior), 1,
                          gpu_weight == 0};
}

static uint32_t kind_find(const struct fit *fit, const char *name)
{
    for (uint32_t i = 0; i < fit->kind_count; i++)
        if (strcmp(fit->kinds[i], name) == 0)
            return fit->kind_terms[i];
    return UINT32_MAX;
}

/* UINT32_MAX when there is no room for one more. */
static uint32_t kind_term(struct fit *fit, const struct observed_kind *kind)
{
    const uint32_t known = kind_find(fit, kind->name);
    if (known != UINT32_MAX || fit->kind_count == FIT_KINDS_MAX || kind->name[0] == '\0')
        return known;
    const double deviation = kind->gpu_count > 0 ? gpu_deviation : kind_deviation;
    const uint32_t index = fit->kind_count++;
    memcpy(fit->kinds[index], kind->name, sizeof(fit->kinds[index]));
    fit->kind_terms[index] = belief_add(&fit->speed, (struct estimate){0, deviation * deviation});
    return fit->kind_terms[index];
}

static uint32_t common_terms(const struct fit *fit, double batch, const struct power *power,
                             struct belief_term *terms, double *out_known)
{
    const double batches = fmax(batch, 1) / fit->job.signature.batch;
    *out_known = -log(power->weight / 1000);
    terms[0] = (struct belief_term){WORK, 1};
    terms[1] = (struct belief_term){EFFICIENCY, -log(power->cores)};
    terms[2] = (struct belief_term){GROWTH, log(batches)};
    return COMMON_TERMS;
}

static void observe_kind(struct fit *fit, const struct observation *observation,
                         const struct observed_kind *kind, uint32_t job_term)
{
    struct belief_term terms[TERMS_MAX];
    double known;
    if (!observed_is_sane(kind->step_s) || kind->steps == 0)
        return;
    const struct power power = power_of(kind->speed_weight, kind->cores_milli, kind->gpu_count, 0);
    const double batch = kind->samples > 0 ? (double)kind->samples / (double)kind->steps
                                           : observation->signature.batch;
    uint32_t count = common_terms(fit, batch, &power, terms, &known);
    const uint32_t own = kind_term(fit, kind);
    double variance = run_deviation * run_deviation;
    if (observed_is_sane(kind->step_deviation))
        variance += kind->step_deviation * kind->step_deviation / (double)kind->steps;
    if (own != UINT32_MAX)
        terms[count++] = (struct belief_term){own, 1};
    else
        variance += kind_deviation * kind_deviation;
    if (job_term != UINT32_MAX)
        terms[count++] = (struct belief_term){job_term, 1};
    const double value = log(kind->step_s) - known;
    const struct estimate told = belief_estimate(&fit->speed, terms, count);
    const double surprise = (value - told.mean) / surprise_most;
    variance = fmax(variance, surprise * surprise - told.variance);
    belief_observe(&fit->speed, terms, count, value, variance);
}

/* One term for each job other than this one; UINT32_MAX for this one. */
struct other_jobs {
    const struct signature *jobs[FIT_JOBS_MAX];
    uint32_t terms[FIT_JOBS_MAX];
    uint32_t count;
};

static bool job_find(struct fit *fit, struct other_jobs *others, const struct signature *job,
                     uint32_t *out_term)
{
    const enum likeness likeness = signature_likeness(job, &fit->job.signature);
    *out_term = UINT32_MAX;
    if (likeness == LIKENESS_SAME)
        return true;
    for (uint32_t i = 0; i < others->count; i++)
        if (signature_likeness(others->jobs[i], job) <= LIKENESS_VARIED) {
            *out_term = others->terms[i];
            return true;
        }
    if (others->count == FIT_JOBS_MAX)
        return false;
    const double deviation = job_deviations[likeness];
    others->jobs[others->count] = job;
    others->terms[others->count] =
        belief_add(&fit->speed, (struct estimate){0, deviation * deviation});
    *out_term = others->terms[others->count++];
    return true;
}

void fit_speed(struct fit *fit, const struct observation *observations, size_t count)
{
    const struct signature *job = &fit->job.signature;
    const double guess_s = step_least_s + operations_each * (double)job->parameter_count *
                                              job->batch / operations_per_s;
    const struct estimate priors[COMMON_TERMS] = {
        [WORK] = {log(guess_s), work_deviation * work_deviation},
        [EFFICIENCY] = {efficiency_prior, efficiency_deviation * efficiency_deviation},
        [GROWTH] = {growth_prior, growth_deviation * growth_deviation},
    };
    _Static_assert(COMMON_TERMS + FIT_KINDS_MAX + FIT_JOBS_MAX <= BELIEF_MAX, "room for all terms");
    for (uint32_t i = 0; i < COMMON_TERMS; i++)
        belief_add(&fit->speed, priors[i]);
    struct other_jobs others = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        uint32_t job_term;
        if (!job_find(fit, &others, &observations[i].signature, &job_term))
            continue;
        for (uint32_t k = 0; k < observations[i].kind_count; k++)
            observe_kind(fit, &observations[i], &observations[i].kinds[k], job_term);
    }
}

/* ---- What follows from it -------------------------------------------------------------------- */

struct estimate fit_steps(const struct fit *fit, const struct fit_weight *weights, uint32_t count)
{
    struct belief_term terms[COMMON_TERMS + CLUSTER_KINDS_MAX];
    double known_sum = 0, unknown_variance = 0;
    uint32_t term_count = COMMON_TERMS;
    ASSERT(count <= CLUSTER_KINDS_MAX);
    for (uint32_t i = 0; i < COMMON_TERMS; i++)
        terms[i] = (struct belief_term){i, 0};
    for (uint32_t i = 0; i < count; i++) {
        const struct candidate *candidate = weights[i].candidate;
        const double weight = weights[i].weight;
        const struct power power = power_of(candidate->speed_weight, candidate->cores_milli,
                                            candidate->gpu_count, candidate->gpu_weight);
        struct belief_term own[COMMON_TERMS];
        double known;
        common_terms(fit, fit->job.signature.batch, &power, own, &known);
        for (uint32_t n = 0; n < COMMON_TERMS; n++)
            terms[n].factor += weight * own[n].factor;
        known_sum += weight * known;
        const uint32_t kind = kind_find(fit, candidate->name);
        const double deviation = power.is_guess ? gpu_deviation : kind_deviation;
        if (kind != UINT32_MAX)
            terms[term_count++] = (struct belief_term){kind, weight};
        else
            unknown_variance += weight * weight * deviation * deviation;
    }
    const struct estimate told = belief_estimate(&fit->speed, terms, term_count);
    return (struct estimate){told.mean + known_sum, told.variance + unknown_variance};
}

struct estimate fit_step(const struct fit *fit, const struct candidate *candidate)
{
    const struct fit_weight weight = {candidate, 1};
    return fit_steps(fit, &weight, 1);
}
