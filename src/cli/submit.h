/*
 * Submit: the way of a job from this machine into the market: the plan and what it may cost, the
 * question, the upload of what the market lacks, the job itself.
 */
#pragma once

#include "cli/cli.h"
#include "client/api.h"
#include "client/client.h"
#include "client/submission.h"
#include "runtime/job_spec.h"

struct submit_wish {
    const char *question;    /* "Submit this job?" */
    const char *dataset_dir; /* of train.data's files; NULL: where their package puts them */
    const char *resume;      /* a checkpoint to go on from; NULL: none */
    const struct option_list *secrets; /* NAME or NAME=VALUE */
    bool is_yes;                       /* does not ask */
    bool expects_room;                 /* refuses when it could not start now */
    bool is_serving;                   /* stays until the job ends: its data can be had from here */
    /* In whose flags to advise; NULL: in the fields of a job file. */
    const struct command *command;
};

/* Fills spec->inputs. *out_submission is to be released whatever the outcome. 0; CLI_EXIT_DECLINED
 * when the person said no; -1 with *error. */
MUST_CHECK int submit_job(struct cli *cli, struct client *client, struct job_spec *spec,
                          const struct submit_wish *wanted, struct submission *out_submission,
                          struct error *error);
