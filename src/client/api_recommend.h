/*
 * API, recommendations: which machines for a job, as POST /v1/recommendations answers.
 */
#pragma once

#include "client/api_profile.h"

struct api_seconds_range {
    double low, expected, high;
};

struct api_cluster_workers {
    struct text type, kind;
    uint64_t count;
    int64_t price_micro_per_hour;
    double step_s, push_s; /* of one */
    uint64_t runs;         /* of this model that showed the former on this type */
};

/* Fields to set in the job; num_nodes 0: there are none, it cannot have these machines by itself.
 */
struct api_job_resources {
    struct text cpus;
};
struct api_job_market {
    struct text max_hourly_cost, max_total_cost, max_run_time; /* empty: as it is */
    double min_speed;
};
struct api_job_sync {
    struct text policy;
};
struct api_job_fields {
    uint64_t num_nodes;
    struct api_job_resources resources;
    struct api_job_market market;
    struct api_job_sync sync;
};

struct api_cluster_server {
    struct text type;
    int64_t price_micro_per_hour;
};

/* start_s + work_s is the time that is expected; docs/recommend.md has the rest. */
struct api_cluster_figures {
    double samples;
    uint64_t batch;
    double steps_per_push;
    double compute_steps_per_s, steps_per_s;
    double loss_factor, correction;
    double least_s, start_s, work_s;
};

struct api_cluster {
    struct json_array workers; /* struct api_cluster_workers */
    struct api_cluster_server server;
    struct text policy;
    int64_t cost_micro_per_hour;
    struct api_seconds_range time_s;
    struct api_range cost_micro;
    int64_t risk_milli, wait_milli, link_milli;
    struct api_cluster_figures figures;
    struct text why;
    struct api_job_fields job;
};

struct api_past_error {
    uint64_t count;
    double typical;
};

struct api_trial {
    bool is_needed;
    int64_t cost_micro;
    double seconds;
    uint64_t steps;
    struct api_job_fields job;
};

struct api_advice {
    struct text code, text;
};

struct api_recommendation {
    struct text rule, signature;
    uint64_t observations, considered;
    struct api_past_error error;
    struct api_trial trial;
    uint64_t chosen_index;
    struct api_cluster chosen;
    struct json_array frontier; /* struct api_cluster */
    struct json_array advice;   /* struct api_advice */
    struct text catalogue_date; /* empty: none */
};
extern const struct json_schema api_recommendation_schema;
