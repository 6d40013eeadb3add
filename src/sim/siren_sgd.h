/*
 * Siren SGD: the loss of a simulated job by real training, the epochs' order in virtual time.
 *
 * A small network (784-32-10) learns Fashion-MNIST, or whatever images are given, by plain SGD. An
 * epoch is 6,000 records, which the next epoch goes on from; they are cut into spans of a quarter
 * of a function's share, as `souk function train` does. Each function takes a span, starts from the
 * newest model W, makes a step for each of the span's batches and leaves what came of it, U:
 *
 *     W += U / n
 *
 * at the virtual time at which it is done, and takes the next. Times of spans differ by a
 * log-normal of deviation 5 %, so that updates are as late as those times make them. Between epochs
 * all wait. What an epoch ends with is the loss on held-out records.
 *
 * The same run gives the same losses for the same numbers of functions, on one machine.
 * One run at a time; belongs to one thread.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "train/dataset.h"

#include <stdint.h>

struct siren_sgd;

struct siren_sgd_data {
    const struct dataset *train, *test; /* borrowed */
};

/* INVALID when the records do not fit together, or are too few. */
MUST_CHECK int siren_sgd_open(struct siren_sgd_data data, struct siren_sgd **out_sgd,
                              struct error *error);
void siren_sgd_free(struct siren_sgd *sgd); /* NULL is fine */
DEFINE_AUTO(siren_sgd);

/* A new model and order of records, both the run's own; its loss. */
double siren_sgd_begin(struct siren_sgd *sgd, uint64_t run);

struct siren_sgd_epoch {
    double loss;
    double longer;    /* the epoch's time over what an even share for each function takes */
    double staleness; /* updates between a function's start and its own, mean */
};
struct siren_sgd_epoch siren_sgd_epoch(struct siren_sgd *sgd, uint32_t function_count);
