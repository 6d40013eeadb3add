#include "client/api_recommend.h"

#include "client/api_internal.h"

static const struct json_field seconds_fields[] = {
    FIELD("low", JSON_DOUBLE, api_seconds_range, low),
    FIELD("expected", JSON_DOUBLE, api_seconds_range, expected),
    FIELD("high", JSON_DOUBLE, api_seconds_range, high),
};
static const struct json_schema seconds_schema =
    JSON_SCHEMA_LENIENT("range", seconds_fields, struct api_seconds_range);

static const struct json_field micro_fields[] = {
    FIELD("low", JSON_I64, api_range, low),
    FIELD("expected", JSON_I64, api_range, expected),
    FIELD("high", JSON_I64, api_range, high),
};
static const struct json_schema micro_schema =
    JSON_SCHEMA_LENIENT("range", micro_fields, struct api_range);

static const struct json_field workers_fields[] = {
    FIELD("type", JSON_TEXT, api_cluster_workers, type),
    FIELD("kind", JSON_TEXT, api_cluster_workers, kind),
    FIELD("count", JSON_U64, api_cluster_workers, count),
    FIELD("price_micro_per_hour", JSON_I64, api_cluster_workers, price_micro_per_hour),
    FIELD("step_s", JSON_DOUBLE, api_cluster_workers, step_s),
    FIELD("push_s", JSON_DOUBLE, api_cluster_workers, push_s),
    FIELD("runs", JSON_U64, api_cluster_workers, runs),
};
static const struct json_schema workers_schema =
    JSON_SCHEMA_LENIENT("workers", workers_fields, struct api_cluster_workers);

static const struct json_field resources_fields[] = {
    FIELD("cpus", JSON_TEXT, api_job_resources, cpus),
};
static const struct json_schema resources_schema =
    JSON_SCHEMA_LENIENT("resources", resources_fields, struct api_job_resources);

static const struct json_field market_fields[] = {
    FIELD("max_hourly_cost", JSON_TEXT, api_job_market, max_hourly_cost),
    FIELD("max_total_cost", JSON_TEXT, api_job_market, max_total_cost),
    FIELD("max_run_time", JSON_TEXT, api_job_market, max_run_time),
    FIELD("min_speed", JSON_DOUBLE, api_job_market, min_speed),
};
static const struct json_schema market_schema =
    JSON_SCHEMA_LENIENT("market", market_fields, struct api_job_market);

static const struct json_field sync_fields[] = {
    FIELD("policy", JSON_TEXT, api_job_sync, policy),
};
static const struct json_schema sync_schema =
    JSON_SCHEMA_LENIENT("sync", sync_fields, struct api_job_sync);

static const struct json_field job_fields[] = {
    FIELD("num_nodes", JSON_U64, api_job_fields, num_nodes),
    PART("resources", api_job_fields, resources, &resources_schema),
    PART("market", api_job_fields, market, &market_schema),
    PART("sync", api_job_fields, sync, &sync_schema),
};
static const struct json_schema job_schema =
    JSON_SCHEMA_LENIENT("job", job_fields, struct api_job_fields);

static const struct json_field server_fields[] = {
    FIELD("type", JSON_TEXT, api_cluster_server, type),
    FIELD("price_micro_per_hour", JSON_I64, api_cluster_server, price_micro_per_hour),
};
static const struct json_schema server_schema =
    JSON_SCHEMA_LENIENT("server", server_fields, struct api_cluster_server);

static const struct json_field figures_fields[] = {
    FIELD("samples", JSON_DOUBLE, api_cluster_figures, samples),
    FIELD("batch", JSON_U64, api_cluster_figures, batch),
    FIELD("steps_per_push", JSON_DOUBLE, api_cluster_figures, steps_per_push),
    FIELD("compute_steps_per_s", JSON_DOUBLE, api_cluster_figures, compute_steps_per_s),
    FIELD("steps_per_s", JSON_DOUBLE, api_cluster_figures, steps_per_s),
    FIELD("loss_factor", JSON_DOUBLE, api_cluster_figures, loss_factor),
    FIELD("correction", JSON_DOUBLE, api_cluster_figures, correction),
    FIELD("least_s", JSON_DOUBLE, api_cluster_figures, least_s),
    FIELD("start_s", JSON_DOUBLE, api_cluster_figures, start_s),
    FIELD("work_s", JSON_DOUBLE, api_cluster_figures, work_s),
};
static const struct json_schema figures_schema =
    JSON_SCHEMA_LENIENT("figures", figures_fields, struct api_cluster_figures);

static const struct json_field cluster_fields[] = {
    LIST("workers", api_cluster, workers, &workers_schema),
    PART("server", api_cluster, server, &server_schema),
    FIELD("policy", JSON_TEXT, api_cluster, policy),
    FIELD("cost_micro_per_hour", JSON_I64, api_cluster, cost_micro_per_hour),
    PART("time_s", api_cluster, time_s, &seconds_schema),
    PART("cost_micro", api_cluster, cost_micro, &micro_schema),
    FIELD("risk_milli", JSON_I64, api_cluster, risk_milli),
    FIELD("wait_milli", JSON_I64, api_cluster, wait_milli),
    FIELD("link_milli", JSON_I64, api_cluster, link_milli),
    PART("figures", api_cluster, figures, &figures_schema),
    LONG_TEXT("why", api_cluster, why),
    PART("job", api_cluster, job, &job_schema),
};
static const struct json_schema cluster_schema =
    JSON_SCHEMA_LENIENT("cluster", cluster_fields, struct api_cluster);

static const struct json_field error_fields[] = {
    FIELD("count", JSON_U64, api_past_error, count),
    FIELD("typical", JSON_DOUBLE, api_past_error, typical),
};
static const struct json_schema error_schema =
    JSON_SCHEMA_LENIENT("error", error_fields, struct api_past_error);

static const struct json_field trial_fields[] = {
    FIELD("needed", JSON_BOOL, api_trial, is_needed),
    FIELD("cost_micro", JSON_I64, api_trial, cost_micro),
    FIELD("seconds", JSON_DOUBLE, api_trial, seconds),
    FIELD("steps", JSON_U64, api_trial, steps),
    PART("job", api_trial, job, &job_schema),
};
static const struct json_schema trial_schema =
    JSON_SCHEMA_LENIENT("trial", trial_fields, struct api_trial);

static const struct json_field advice_fields[] = {
    FIELD("code", JSON_TEXT, api_advice, code),
    LONG_TEXT("text", api_advice, text),
};
static const struct json_schema advice_schema =
    JSON_SCHEMA_LENIENT("advice", advice_fields, struct api_advice);

static const struct json_field recommendation_fields[] = {
    NEEDED("rule", JSON_TEXT, api_recommendation, rule),
    FIELD("signature", JSON_TEXT, api_recommendation, signature),
    FIELD("observations", JSON_U64, api_recommendation, observations),
    FIELD("considered", JSON_U64, api_recommendation, considered),
    PART("error", api_recommendation, error, &error_schema),
    PART("trial", api_recommendation, trial, &trial_schema),
    FIELD("chosen_index", JSON_U64, api_recommendation, chosen_index),
    PART("chosen", api_recommendation, chosen, &cluster_schema),
    LIST("frontier", api_recommendation, frontier, &cluster_schema),
    LIST("advice", api_recommendation, advice, &advice_schema),
    FIELD("catalogue_date", JSON_TEXT, api_recommendation, catalogue_date),
};
const struct json_schema api_recommendation_schema =
    JSON_SCHEMA_LENIENT("recommendation", recommendation_fields, struct api_recommendation);
