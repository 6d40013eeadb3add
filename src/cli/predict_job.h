/*
 * Predict job: a model asked about all records of a file on several lent machines. Model and data
 * go to each, as the files of a run; each tells every Nth record, a successor those of one that was
 * lost; and what they told comes back as one.
 */
#pragma once

#include "cli/cli.h"
#include "cli/run_spec.h"

struct predict_job_options {
    const char *model, *data; /* paths */
    const char *format;       /* NULL: found out */
    bool has_probabilities, is_raw, fills_means;
    const struct run_options *run; /* without files and command, which are these */
    const struct command *command; /* in whose flags to advise */
    /* Whole lines, in the records' order. */
    int (*write)(void *context, struct text lines, struct error *error);
    void *context;
};

/* Shows what it may cost and asks first. 0, the exit status of a rank that failed,
 * CLI_EXIT_DECLINED, or -1. */
MUST_CHECK int predict_job(struct cli *cli, const struct predict_job_options *options,
                           struct error *error);
