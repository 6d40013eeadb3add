#include "recommend/observation.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

static const double sane_least = 1e-9, sane_most = 1e15;
static const double shape_tolerance = 0.1; /* of the number of parameters */

const char *likeness_name(enum likeness likeness)
{
    static const char *const names[LIKENESS_COUNT] = {
        [LIKENESS_SAME] = "same",   [LIKENESS_VARIED] = "varied",     [LIKENESS_MODEL] = "model",
        [LIKENESS_SHAPE] = "shape", [LIKENESS_STRANGER] = "stranger",
    };
    ASSERT(likeness < LIKENESS_COUNT);
    return names[likeness];
}

bool observed_is_sane(double value)
{
    return value >= sane_least && value <= sane_most;
}

static bool is_near(double left, double right)
{
    return fabs(left - right) <= 1e-9 * fmax(fabs(left), fabs(right));
}

enum likeness signature_likeness(const struct signature *left, const struct signature *right)
{
    const bool is_model =
        strcmp(left->model, right->model) == 0 && left->parameter_count == right->parameter_count;
    if (is_model && strcmp(left->data, right->data) == 0) {
        const bool is_same =
            strcmp(left->policy, right->policy) == 0 && left->batch == right->batch &&
            left->local_steps == right->local_steps && is_near(left->rate, right->rate) &&
            is_near(left->momentum, right->momentum);
        return is_same ? LIKENESS_SAME : LIKENESS_VARIED;
    }
    if (is_model)
        return LIKENESS_MODEL;
    const double most =
        (double)(left->parameter_count > right->parameter_count ? left->parameter_count
                                                                : right->parameter_count);
    const double apart = fabs((double)left->parameter_count - (double)right->parameter_count);
    const bool is_shape = left->layers[0] && strcmp(left->layers, right->layers) == 0;
    return is_shape && apart <= shape_tolerance * most ? LIKENESS_SHAPE : LIKENESS_STRANGER;
}

static bool is_on(const struct observation *observation, const char *kind)
{
    for (uint32_t i = 0; i < observation->kind_count; i++)
        if (strcmp(observation->kinds[i].name, kind) == 0 &&
            observed_is_sane(observation->kinds[i].step_s))
            return true;
    return false;
}

uint32_t observations_on(const struct observation *observations, size_t count,
                         const struct signature *signature, const char *kind)
{
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += signature_likeness(&observations[i].signature, signature) <= LIKENESS_MODEL &&
                 is_on(&observations[i], kind);
    return found;
}

double observation_samples_at(const struct observation *observation, double loss)
{
    for (uint32_t i = 0; i < observation->point_count; i++) {
        const struct observed_point *point = &observation->points[i];
        if (!(point->loss <= loss))
            continue;
        if (i == 0)
            return (double)point->samples;
        const struct observed_point *before = point - 1;
        if (!isfinite(before->loss) || !isfinite(point->loss))
            return (double)point->samples;
        const double share = (before->loss - loss) / (before->loss - point->loss);
        return (double)before->samples + share * ((double)point->samples - (double)before->samples);
    }
    return 0;
}
