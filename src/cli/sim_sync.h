/*
 * Sim sync: the runs that `souk sim sync` was asked for, and how they are shown.
 */
#pragma once

#include "cli/cli.h"
#include "sim/sync_compare.h"
#include "train/import.h"

enum { SIM_SYNC_RUNS_MAX = 256 };

struct sim_sync_options {
    struct option_list policies, rates, seeds;
    const char *profile, *data, *folder, *traces, *svg, *delay;
    int model, search, overlap;
    const char *target_loss, *momentum, *weight_decay, *heterogeneity, *jitter, *skew, *compression;
    const char *outer_rate, *outer_momentum, *server_rate, *push_share;
    bool nesterov, curve;
    uint64_t batch, local_steps, slack, staleness, epoch_steps, threads, samples;
    int64_t stay_ms, absence_ms, gamma_ms, measure_ms, max_time_ms;
};

/* What a run is called: its place in the lists. */
struct sim_sync_run {
    const char *policy; /* as it was asked for */
    double rate;
    uint64_t seed;
};

struct sim_sync {
    struct cli *cli;
    const struct sim_sync_options *wanted;
    struct sync_profile profile;
    struct import import; /* what the data sets borrow, where a reader made them; else zeros */
    struct dataset *train, *test;
    size_t seed_count, run_count;
    struct sync_data *data[SIM_SYNC_RUNS_MAX];         /* by seed */
    struct sync_presence *presence[SIM_SYNC_RUNS_MAX]; /* by seed */
    struct sync_compare_options compare;
    struct sync_run_options runs[SIM_SYNC_RUNS_MAX];
    struct sim_sync_run names[SIM_SYNC_RUNS_MAX];
    struct sync_run_result results[SIM_SYNC_RUNS_MAX];
    size_t done_count;
    double target_loss;
};

/* Opens the data sets and sets the model's shape by them. */
MUST_CHECK int sim_sync_open_data(struct sim_sync *plan, struct error *error);
void sim_sync_close_data(struct sim_sync *plan);
/* The best rate of each policy and seed, for people. */
void sim_sync_print(const struct sim_sync *plan);
/* Every run. */
MUST_CHECK int sim_sync_print_json(const struct sim_sync *plan, struct error *error);
/* The best rate of each as curves, to the file asked for. */
MUST_CHECK int sim_sync_draw(const struct sim_sync *plan, struct error *error);
