/*
 * API, profiles: what a job's run showed, as GET /v1/jobs/{id}/profile tells it.
 *
 * Figures that are not known are 0.
 */
#pragma once

#include "base/json_schema.h"

struct api_profile_worker {
    uint64_t lease;
    struct text role;
    uint64_t rank;
    bool is_replica;
    struct text machine_name;
    struct text cpu_model, gpu_model;
    int64_t cores_milli, gpus_milli;
    int64_t speed_weight_milli;
    int64_t posted_micro;
    uint64_t steps, samples, commits;
    double loss, step_ms;
    int64_t compute_ms, transfer_ms, wait_ms;
    double sent_bytes_per_s, received_bytes_per_s;
    double cores_used, gpus_used;
    int64_t memory_peak_bytes;
    struct text codec;
};

struct api_range {
    int64_t low, expected, high;
};

/* What was foretold, and how it turned out. */
struct api_prediction {
    struct text rule; /* empty: nothing was */
    bool is_bound;    /* it was the most it might be */
    struct api_range time_ms, cost_micro;
    bool is_over;
    int64_t actual_time_ms, actual_cost_micro;
    double time_error, cost_error; /* actual over expected, less 1 */
};

struct api_profile {
    uint64_t job;
    struct text signature;
    struct text model, data, policy, policy_in_force;
    uint64_t parameter_count, batch;
    struct text state;
    int64_t started_ms, first_step_ms, ended_ms, updated_ms, elapsed_ms;
    uint64_t steps, samples, pushes;
    double loss, test_accuracy;
    double loss_per_step, loss_per_second;
    int64_t spent_micro;
    uint64_t lease_count;
    struct json_array workers; /* struct api_profile_worker */
    struct api_prediction prediction;
};
extern const struct json_schema api_profile_schema;

/* Who learns from an account's runs. */
struct api_sharing {
    bool is_shared, does_market_share;
    int64_t keep_ms;
};
extern const struct json_schema api_sharing_schema;
