/*
 * Earlier runs of a job on functions, as `souk function train --json` printed them: epochs for a
 * scheduler to begin with, and the best constant that was found so far.
 */
#pragma once

#include "base/json_schema.h"
#include "learn/epoch_fit.h"
#include "learn/scheduler.h"

enum { EARLIER_BYTES_MAX = 8 << 20 };

/* An epoch of a run, as it is printed and read. */
struct run_epoch {
    uint64_t epoch;
    bool is_cut_short;
    uint64_t functions, memory_mb;
    double seconds;
    double fetch_s, compute_s, update_s; /* means of its calls */
    double memory_use, cpu_use;
    uint64_t calls, failures, staleness;
    double test_loss, test_accuracy;
    int64_t cost_micro;
};
extern const struct json_schema run_epoch_schema;

struct earlier {
    struct epoch_fit history;
    uint32_t run_count;
    /* The constant that reached the target soonest, of those that the budget pays for. */
    struct epoch_state constant_run[EPOCH_COUNT_MAX];
    uint32_t constant_epochs; /* 0: there is none */
};

void earlier_init(struct earlier *earlier, const struct epoch_task *task);
/* Epochs with another memory than the task has are left out. `job` is the name of
 * the run that begins, which has as many characters by chance at its end as theirs. INVALID: it is
 * no result of a run, or another job's. */
MUST_CHECK int earlier_add(struct earlier *earlier, struct text json, struct text job,
                           struct error *error);
/* What a scheduler that is guarded is held to. */
struct scheduler_guard earlier_guard(const struct earlier *earlier, const struct epoch_task *task,
                                     double margin);
