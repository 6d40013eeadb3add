#include "recommend/predict_error.h"

#include <math.h>

static const double fading = 0.97;    /* of the weight of those before, at each new one */
static const double weight_prior = 8; /* predictions without an error, in the average */
static const double log_most = 1.6;   /* one prediction that was far out is not believed whole */
static const double quartile_normal = 0.6745;
static const double scale_least = 0.5, scale_most = 3;

static double clamped(double value, double least, double most)
{
    return fmin(fmax(value, least), most);
}

void predict_error_add(struct predict_error *errors, double expected_s, double deviation,
                       double actual_s)
{
    if (!(expected_s > 0 && actual_s > 0 && deviation > 0))
        return;
    const double error = clamped(log(actual_s / expected_s), -log_most, log_most);
    const double own = error + predict_error_bias(errors);
    const double apart = error / (deviation / predict_error_scale(errors));
    const double weight = fading * errors->weight;
    errors->mean = (weight * errors->mean + own) / (weight + 1);
    errors->square = (weight * errors->square + apart * apart) / (weight + 1);
    errors->spread = (weight * errors->spread + error * error) / (weight + 1);
    errors->weight = weight + 1;
    errors->count++;
}

double predict_error_typical(const struct predict_error *errors)
{
    return errors->count > 0 ? exp(quartile_normal * sqrt(errors->spread)) - 1 : 0;
}

double predict_error_bias(const struct predict_error *errors)
{
    return errors->weight * errors->mean / (errors->weight + weight_prior);
}

double predict_error_scale(const struct predict_error *errors)
{
    const double square =
        (errors->weight * errors->square + weight_prior) / (errors->weight + weight_prior);
    return clamped(sqrt(square), scale_least, scale_most);
}
