/*
 * Driver: trains a job on functions, epoch by epoch (HSP of Siren).
 *
 * Inside an epoch calls go out as others come back, each from the newest model, within a bound of
 * staleness (function/epoch_plan.h); between epochs all are waited for, the model is measured, and
 * a chooser says how many functions the next has and how large they are.
 *
 * Money (function/purse.h): what may have been spent is noted before calls are made, so that the
 * budget is the job's, whichever lead spends it, and however that ends. When no call can be held
 * for any more, the job ends with the best model so far; where none can from the start, it does not
 * begin.
 *
 * A span that fails is called again, FAILURES_MAX times before the job fails; then, too, the best
 * model is kept.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "function/chooser.h"
#include "function/invoker.h"
#include "function/lead.h"
#include "function/purse.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stdint.h>

enum { DRIVER_FUNCTIONS_MAX = 1000 };

enum driver_end {
    DRIVER_EPOCHS, /* all are done */
    DRIVER_TARGET, /* what was aimed at was measured */
    DRIVER_BUDGET, /* no further call may be made */
    DRIVER_FAILED, /* a span failed too often, the store is away, or the model cannot be kept */
    DRIVER_STOPPED,
    DRIVER_END_COUNT,
};
extern const char *const driver_end_names[]; /* "epochs", "target", "budget", "failed", "stopped" */

struct driver_measure {
    double loss, accuracy;
    bool is_target; /* it is what was aimed at */
};

struct driver_report {
    uint64_t epoch;    /* that has ended, from 0 */
    bool is_cut_short; /* it has not */
    struct function_seen seen;
    struct driver_measure measure;
    uint64_t staleness; /* the most of its updates */
    int64_t spent_micro;
};

struct driver_options {
    struct loop *loop;
    struct lead *lead; /* all outlive the driver */
    struct invoker *invoker;
    const char *store;    /* that calls are told of; NULL: the host's own */
    uint64_t batch_count; /* of an epoch */
    uint64_t epochs;
    uint64_t span_batches; /* of a call; 0: a quarter of a function's share of an epoch */
    uint64_t staleness;    /* 0: twice the number of functions */
    double rate;           /* W += rate / n U, with n functions: one learning rate serves all */
    uint64_t seed;
    int64_t time_ms; /* of a call, at most */
    struct bill_price price;
    int64_t budget_micro;     /* 0: none */
    int64_t throttled_ms_max; /* that no call is let in before the job fails; 0: five minutes */
    function_chooser *choose;
    void *choose_context;
    /* The model on the test data; the context is `context`. */
    int (*measure)(void *context, const float *parameters, struct driver_measure *out_measure,
                   struct error *error);
    void (*on_epoch)(void *context, const struct driver_report *report); /* may be NULL */
    void *context;
};

struct driver_outcome {
    enum driver_end end;
    char reason[256];
    uint64_t epochs; /* that are whole */
    uint64_t calls, failures, throttled, cold_starts;
    int64_t spent_micro; /* by all leads of the job */
    int64_t billed_ms;
    struct driver_measure best; /* of the model in `parameters` */
    const float *parameters;    /* the best so far; the driver's */
};

struct driver;

struct driver *driver_new(const struct driver_options *options);
/* Calls under way are given up. NULL is fine. */
void driver_free(struct driver *driver);
DEFINE_AUTO(driver);

/* Runs the loop until the job has ended and no call is under way. EXHAUSTED: the budget does not
 * hold a single call, and none was made. */
MUST_CHECK int driver_run(struct driver *driver, struct driver_outcome *out_outcome,
                          struct error *error);
/* Ends it once the calls under way are back; from a callback of the loop. */
void driver_stop(struct driver *driver);
