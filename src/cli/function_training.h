/*
 * Function training: a job of `souk function train` while it runs: what was wanted, what is open
 * for it, and what it shows.
 */
#pragma once

#include "base/options.h"
#include "cli/cli.h"
#include "cli/function_here.h"
#include "cli/function_market.h"
#include "cli/function_schedule.h"
#include "client/bring.h"
#include "function/driver.h"
#include "function/lesson.h"
#include "runtime/job_model.h"
#include "source/remote.h"
#include "train/evaluation.h"

struct train_command {
    const char *file, *output, *dataset_dir, *store, *state_dir, *url, *name, *token_file, *resume;
    const char *agent, *save_agent;
    struct option_list earlier;
    bool is_lambda, keeps_updates;
    uint64_t functions, functions_last, memory_mb, memory_least_mb, memory_last_mb, staleness, span;
    int64_t time_ms, cpu_milli, budget_micro, core_micro, ram_micro, rate_milli, margin_milli;
    int schedule;
};

struct training {
    struct cli *cli;
    const struct train_command *wanted;
    struct job_spec spec;
    struct model_spec model_spec;
    struct train_data *data;
    struct work_job job;
    struct remote_credentials credentials;
    const char *store_place; /* that calls are told of; NULL: the host's own */
    struct object_store *store;
    struct function_market *market; /* NULL: the store is not the market's */
    struct kernel_set *kernels;
    struct model *model; /* measured with */
    struct evaluation_target target;
    struct loop *loop;
    struct function_here *here;
    struct invoker *invoker;
    struct lead *lead;
    struct driver *driver;
    struct function_schedule *schedule;
    double loss_start;
    struct buffer epochs; /* JSON of each */
    int64_t begun_ns;
};

/* The job of the file and its data; where functions run and where they meet; the lead, the schedule
 * and the driver. In this order. */
MUST_CHECK int function_training_open(struct training *training, struct error *error);
/* What runs is ended before what it runs on. */
void function_training_done(struct training *training);

MUST_CHECK int function_training_measure(void *context, const float *parameters,
                                         struct driver_measure *out_measure, struct error *error);
MUST_CHECK int function_training_save(const struct training *training,
                                      const struct driver_outcome *outcome, double seconds,
                                      struct error *error);

/* The context of both is the training. An epoch is over: shown, and kept for the JSON; functions
 * get a token anew. */
void function_training_on_epoch(void *context, const struct driver_report *report);
void function_training_print(const struct training *training, const struct driver_outcome *outcome,
                             double seconds);
