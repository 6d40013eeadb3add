/*
 * Function schedule: how many functions a job has in every epoch, as the command line asks for it,
 * by the schedulers of learn/.
 */
#pragma once

#include "base/options.h"
#include "cli/cli.h"
#include "function/chooser.h"

enum function_schedule_kind {
    FUNCTION_SCHEDULE_AUTO, /* the planner where the job has a target, else constant */
    FUNCTION_SCHEDULE_CONSTANT,
    FUNCTION_SCHEDULE_DECAY,
    FUNCTION_SCHEDULE_GROW,
    FUNCTION_SCHEDULE_PLANNER,
    FUNCTION_SCHEDULE_AGENT,
};
extern const char *const function_schedule_names[];

struct function_schedule_options {
    struct cli *cli;
    enum function_schedule_kind kind;
    struct function_choice first, last; /* the first is the most, but for a decay */
    uint32_t memory_least_mb;           /* that may be chosen; 0: the first's */
    const char *job;                    /* the run's name */
    uint64_t epochs;
    uint64_t seed;
    double loss_start, loss_target; /* the target is 0: there is none */
    double price;                   /* credits for a GiB-second */
    int64_t budget_micro;           /* 0: there is none */
    double margin;                  /* of the guard */
    const char *agent_file;         /* or NULL */
    struct option_list earlier;     /* files */
};

struct function_schedule;

/* INVALID: what the kind needs is not there, or a file is none. */
MUST_CHECK int function_schedule_open(const struct function_schedule_options *options,
                                      struct function_schedule **out_schedule, struct error *error);
void function_schedule_free(struct function_schedule *schedule); /* NULL is fine */
DEFINE_AUTO(function_schedule);

/* What it will do, in a sentence. */
const char *function_schedule_plan(const struct function_schedule *schedule);
struct function_choice function_schedule_choose(void *context, const struct function_state *state);
/* The agent with what it has learned. */
MUST_CHECK int function_schedule_save_agent(const struct function_schedule *schedule,
                                            const char *path, struct error *error);
