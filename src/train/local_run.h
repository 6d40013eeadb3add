/*
 * Local run: trains a model on this machine alone, to its end.
 *
 *     while ((event = local_run_advance(run, 100, &error)) > LOCAL_RUN_ENDED)
 *         show(local_run_status(run));
 *
 * It measures at steps that follow from the options alone, so that the same seed ends at the same
 * model, bit for bit, with the same kernels; only a least time (min_time_ms) brings in the clock. A
 * run that goes on from its checkpoint ends where it would have without the break.
 */
#pragma once

#include "base/clock.h"
#include "train/evaluation.h"
#include "train/trainer.h"

enum local_run_event {
    LOCAL_RUN_FAILED = -1,
    LOCAL_RUN_ENDED,
    LOCAL_RUN_STEPPED,
    LOCAL_RUN_MEASURED,
};

enum local_run_end {
    LOCAL_RUN_EPOCHS,   /* all are done */
    LOCAL_RUN_TARGET,   /* what was aimed at was measured */
    LOCAL_RUN_DIVERGED, /* the loss is not finite any more */
    LOCAL_RUN_END_COUNT,
};
const char *local_run_end_name(enum local_run_end end); /* "epochs", "target", "diverged" */

struct local_run_options {
    struct trainer_options trainer;
    const struct dataset *train, *test; /* outlive the run */
    uint64_t epochs;
    struct evaluation_target target;
    int64_t min_time_ms;
    uint64_t measure_steps; /* between two measurements; 0: an epoch, or a tenth of the run */
    const struct clock *clock;
};

struct local_run_status {
    uint64_t steps, samples;
    double epochs;           /* passes over the data so far */
    double loss;             /* of the last steps, smoothed; NaN before the first */
    double steps_per_second; /* over the last moment; 0: not known */
    int64_t elapsed_ms;
    uint64_t measurements;
    struct evaluation_result test; /* the last one's */
    enum local_run_end end;        /* once it has ended */
    char reason[160];              /* of that: one sentence */
};

struct local_run;

/* INVALID when the data does not fit the model. */
MUST_CHECK int local_run_open(struct kernel_set *kernels, const struct local_run_options *options,
                              struct local_run **out_run, struct error *error);
void local_run_free(struct local_run *run); /* NULL is fine */
DEFINE_AUTO(local_run);

/* Steps until one of these happens, or `budget_ms` have passed. FAILED only for what cannot be
 * measured. */
MUST_CHECK enum local_run_event local_run_advance(struct local_run *run, int64_t budget_ms,
                                                  struct error *error);
const struct local_run_status *local_run_status(const struct local_run *run);

/* The model as it is; of a run that diverged the last good one, or NULL. */
const float *local_run_parameters(const struct local_run *run);

/* Whether it is worth going on from: the loss of its steps has not run away. */
bool local_run_is_sound(const struct local_run *run);
/* Whole on disk or not there at all. INVALID when it is not sound: the one before is kept. */
MUST_CHECK int local_run_save(struct local_run *run, const char *path, struct error *error);
/* Before the first step. INVALID, naming both, when it is of another model, seed or data. */
MUST_CHECK int local_run_resume(struct local_run *run, const char *path, struct error *error);
