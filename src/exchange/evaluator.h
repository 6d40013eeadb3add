/*
 * Evaluator: measures models on a thread of its own, so that pushes are answered meanwhile.
 *
 * Everything here is called on the loop's thread; `measure` alone runs on the evaluator's. At most
 * one measurement runs. What is asked for meanwhile waits, once per kind, and is measured on the
 * model of the moment it starts.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum evaluation_kind {
    EVALUATION_SAMPLE, /* loss on a fixed part of the test data: quick, for policies */
    EVALUATION_FULL,   /* loss and accuracy on all of it */
    EVALUATION_KIND_COUNT,
};

enum { EVALUATION_REACHED_SIZE = 96 };

struct evaluation_report {
    enum evaluation_kind kind;
    int64_t at_ns;           /* monotonic time of the model measured */
    uint64_t version;        /* of that model */
    const float *parameters; /* that model; valid during the call */
    double loss;
    /* EVALUATION_FULL only: */
    double accuracy;
    bool is_target_reached;
    char reached[EVALUATION_REACHED_SIZE]; /* what of, then: "the test accuracy reached 0.9" */
};

struct evaluator_options {
    struct loop *loop;
    size_t parameter_count;
    /* On the evaluator's thread. Fills loss and the rest. */
    int (*measure)(void *context, struct evaluation_report *report, struct error *error);
    void *measure_context;
    /* The newest model: fills `out_parameters`, returns its version; may set an earlier time. */
    uint64_t (*snapshot)(void *context, float *out_parameters, int64_t *at_ns);
    /* `error` is NULL, or says why there is no result; then only `kind` of the report counts. */
    void (*on_report)(void *context, const struct evaluation_report *report,
                      const struct error *error);
    void *context;
};

struct evaluator;

MUST_CHECK int evaluator_open(const struct evaluator_options *options,
                              struct evaluator **out_evaluator, struct error *error);
/* Waits for the measurement that runs; no report follows. NULL is fine. */
void evaluator_free(struct evaluator *evaluator);
DEFINE_AUTO(evaluator);

void evaluator_ask(struct evaluator *evaluator, enum evaluation_kind kind);
bool evaluator_is_busy(const struct evaluator *evaluator); /* running or waiting */
