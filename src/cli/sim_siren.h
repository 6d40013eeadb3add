/*
 * Sim siren: what `souk sim siren` was asked for, how it is shown, and the world served epoch by
 * epoch to another program.
 */
#pragma once

#include "cli/cli.h"
#include "sim/siren_compare.h"

enum { SIM_SIREN_CELLS_MAX = 256 }; /* seeds x budgets */

struct sim_siren_options {
    int mode;
    struct option_list budgets, seeds, schedulers;
    bool noise, typical, serve;
    uint64_t episodes, rehearsals, evaluations;
    const char *agent, *save, *inspect, *folder;
};

struct sim_siren_cell {
    uint64_t seed;
    int64_t budget_micro;
    struct siren_result result;
};

struct sim_siren {
    struct cli *cli;
    const struct sim_siren_options *wanted;
    uint64_t seeds[SIM_SIREN_CELLS_MAX];
    int64_t budgets_micro[SIM_SIREN_CELLS_MAX];
    size_t seed_count, budget_count;
    uint32_t wanted_mask;
    struct agent *agent;          /* read from a file; or NULL */
    struct dataset *train, *test; /* of `sgd`, as the next; or NULL */
    struct siren_sgd *sgd;
    struct sim_siren_cell *cells; /* budget by budget */
    size_t cell_count;
};

struct siren_world sim_siren_world(const struct sim_siren *plan, uint64_t seed);

/* A table for each budget, means over the seeds; then what was published. */
void sim_siren_print(const struct sim_siren *plan);
/* Every seed and budget. */
MUST_CHECK int sim_siren_print_json(const struct sim_siren *plan, struct error *error);
/* What an agent is made of, and what it chooses on its way. */
MUST_CHECK int sim_siren_inspect(struct cli *cli, const struct agent *agent, struct error *error);

/* Until standard input ends; the protocol is described in sim_siren_serve.c. */
MUST_CHECK int sim_siren_serve(const struct sim_siren *plan, struct error *error);
