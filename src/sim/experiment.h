/*
 * Experiment: the questions asked of the market, each answered with tables and figures.
 *
 * Everything follows from the traces and the seed.
 */
#pragma once

#include "sim/report.h"
#include "sim/workload.h"

enum { EXPERIMENT_ROWS = 6 }; /* three workloads at two loads */

struct experiment_options {
    const struct workload_traces *traces;
    uint64_t seed;
    int64_t day_count;                                  /* of each workload; 0: all */
    uint32_t row_mask;                                  /* which of the rows; bit 0: the first */
    void (*progress)(void *context, const char *words); /* NULL is fine */
    void *context;
};

const char *experiment_row_name(int row); /* "nasa-0.8" */
struct workload *experiment_row_workload(const struct experiment_options *options, int row);
void experiment_say(const struct experiment_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What each rule makes of the rows, as a share of the truthful hourly auction's gain. */
MUST_CHECK int experiment_gain(const struct experiment_options *options, struct report *report,
                               struct error *error);
/* How fast the price finds its new level when demand doubles or halves. */
MUST_CHECK int experiment_step(const struct experiment_options *options, struct report *report,
                               struct error *error);
/* What becomes of the price when many chase the cheapest slot. */
MUST_CHECK int experiment_herding(const struct experiment_options *options, struct report *report,
                                  struct error *error);
/* What a gang of lenders gets by lending less. */
MUST_CHECK int experiment_withholding(const struct experiment_options *options,
                                      struct report *report, struct error *error);
/* What it gets by renting its own machines under another name. */
MUST_CHECK int experiment_self_rent(const struct experiment_options *options, struct report *report,
                                    struct error *error);
/* What the heaviest borrowers and lenders get by stating another maximum or minimum. */
MUST_CHECK int experiment_lying(const struct experiment_options *options, struct report *report,
                                struct error *error);
/* A closed economy over a year: who ends with how much under which grants. */
MUST_CHECK int experiment_months(const struct experiment_options *options, struct report *report,
                                 struct error *error);
