/*
 * Predict error: how past predictions of time compared with what happened.
 *
 * Of each the logarithm of actual over expected is kept as a running mean and square, older ones
 * fading. The mean corrects the next prediction, the spread widens or narrows its range.
 *
 * Predictions are added as they were told, in the order they were made: each is taken to have been
 * corrected by this record as it was then, which is taken off again. So the record may be kept, or
 * made anew from all predictions and outcomes.
 */
#pragma once

#include <stdint.h>

struct predict_error {
    double weight; /* predictions, older ones counting less */
    double mean;   /* of log(actual / expected), corrections taken off */
    double square; /* mean of its squares, in deviations before they were scaled */
    double spread; /* mean of log(actual / expected) squared, as told */
    uint32_t count;
};

/* `deviation` is that of the logarithm, as the prediction told it. */
void predict_error_add(struct predict_error *errors, double expected_s, double deviation,
                       double actual_s);
/* The median of |actual / expected - 1| that such errors mean; for people. */
double predict_error_typical(const struct predict_error *errors);
/* To add to a prediction's logarithm; shrunk to 0 while there are few. */
double predict_error_bias(const struct predict_error *errors);
/* A prediction's deviation is to be multiplied with; shrunk to 1 while there are few. */
double predict_error_scale(const struct predict_error *errors);
