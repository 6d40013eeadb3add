#include "client/api_profile.h"

#include "client/api_internal.h"

static const struct json_field worker_fields[] = {
    NEEDED("lease", JSON_U64, api_profile_worker, lease),
    FIELD("role", JSON_TEXT, api_profile_worker, role),
    FIELD("rank", JSON_U64, api_profile_worker, rank),
    FIELD("replica", JSON_BOOL, api_profile_worker, is_replica),
    FIELD("machine_name", JSON_TEXT, api_profile_worker, machine_name),
    FIELD("cpu_model", JSON_TEXT, api_profile_worker, cpu_model),
    FIELD("gpu_model", JSON_TEXT, api_profile_worker, gpu_model),
    FIELD("cores_milli", JSON_I64, api_profile_worker, cores_milli),
    FIELD("gpus_milli", JSON_I64, api_profile_worker, gpus_milli),
    FIELD("speed_weight_milli", JSON_I64, api_profile_worker, speed_weight_milli),
    FIELD("posted_microcredits", JSON_I64, api_profile_worker, posted_micro),
    FIELD("steps", JSON_U64, api_profile_worker, steps),
    FIELD("samples", JSON_U64, api_profile_worker, samples),
    FIELD("commits", JSON_U64, api_profile_worker, commits),
    FIELD("loss", JSON_DOUBLE, api_profile_worker, loss),
    FIELD("step_ms", JSON_DOUBLE, api_profile_worker, step_ms),
    FIELD("compute_ms", JSON_I64, api_profile_worker, compute_ms),
    FIELD("transfer_ms", JSON_I64, api_profile_worker, transfer_ms),
    FIELD("wait_ms", JSON_I64, api_profile_worker, wait_ms),
    FIELD("sent_bytes_per_s", JSON_DOUBLE, api_profile_worker, sent_bytes_per_s),
    FIELD("received_bytes_per_s", JSON_DOUBLE, api_profile_worker, received_bytes_per_s),
    FIELD("cores_used", JSON_DOUBLE, api_profile_worker, cores_used),
    FIELD("gpus_used", JSON_DOUBLE, api_profile_worker, gpus_used),
    FIELD("memory_peak_bytes", JSON_I64, api_profile_worker, memory_peak_bytes),
    FIELD("codec", JSON_TEXT, api_profile_worker, codec),
};
static const struct json_schema worker_schema =
    JSON_SCHEMA_LENIENT("worker", worker_fields, struct api_profile_worker);

static const struct json_field range_fields[] = {
    FIELD("low", JSON_I64, api_range, low),
    FIELD("expected", JSON_I64, api_range, expected),
    FIELD("high", JSON_I64, api_range, high),
};
static const struct json_schema range_schema =
    JSON_SCHEMA_LENIENT("range", range_fields, struct api_range);

static const struct json_field prediction_fields[] = {
    FIELD("rule", JSON_TEXT, api_prediction, rule),
    FIELD("is_bound", JSON_BOOL, api_prediction, is_bound),
    PART("time_ms", api_prediction, time_ms, &range_schema),
    PART("cost_micro", api_prediction, cost_micro, &range_schema),
    FIELD("is_over", JSON_BOOL, api_prediction, is_over),
    FIELD("actual_time_ms", JSON_I64, api_prediction, actual_time_ms),
    FIELD("actual_cost_micro", JSON_I64, api_prediction, actual_cost_micro),
    FIELD("time_error", JSON_DOUBLE, api_prediction, time_error),
    FIELD("cost_error", JSON_DOUBLE, api_prediction, cost_error),
};
static const struct json_schema prediction_schema =
    JSON_SCHEMA_LENIENT("prediction", prediction_fields, struct api_prediction);

static const struct json_field profile_fields[] = {
    NEEDED("job", JSON_U64, api_profile, job),
    FIELD("signature", JSON_TEXT, api_profile, signature),
    FIELD("model", JSON_TEXT, api_profile, model),
    FIELD("data", JSON_TEXT, api_profile, data),
    FIELD("policy", JSON_TEXT, api_profile, policy),
    FIELD("policy_in_force", JSON_TEXT, api_profile, policy_in_force),
    FIELD("parameter_count", JSON_U64, api_profile, parameter_count),
    FIELD("batch", JSON_U64, api_profile, batch),
    FIELD("state", JSON_TEXT, api_profile, state),
    FIELD("started_ms", JSON_I64, api_profile, started_ms),
    FIELD("first_step_ms", JSON_I64, api_profile, first_step_ms),
    FIELD("ended_ms", JSON_I64, api_profile, ended_ms),
    FIELD("updated_ms", JSON_I64, api_profile, updated_ms),
    FIELD("elapsed_ms", JSON_I64, api_profile, elapsed_ms),
    FIELD("steps", JSON_U64, api_profile, steps),
    FIELD("samples", JSON_U64, api_profile, samples),
    FIELD("pushes", JSON_U64, api_profile, pushes),
    FIELD("loss", JSON_DOUBLE, api_profile, loss),
    FIELD("test_accuracy", JSON_DOUBLE, api_profile, test_accuracy),
    FIELD("loss_per_step", JSON_DOUBLE, api_profile, loss_per_step),
    FIELD("loss_per_second", JSON_DOUBLE, api_profile, loss_per_second),
    FIELD("spent_microcredits", JSON_I64, api_profile, spent_micro),
    FIELD("lease_count", JSON_U64, api_profile, lease_count),
    LIST("workers", api_profile, workers, &worker_schema),
    PART("prediction", api_profile, prediction, &prediction_schema),
};
const struct json_schema api_profile_schema =
    JSON_SCHEMA_LENIENT("profile", profile_fields, struct api_profile);

static const struct json_field sharing_fields[] = {
    NEEDED("shared", JSON_BOOL, api_sharing, is_shared),
    FIELD("market_shares", JSON_BOOL, api_sharing, does_market_share),
    FIELD("keep_ms", JSON_I64, api_sharing, keep_ms),
};
const struct json_schema api_sharing_schema =
    JSON_SCHEMA_LENIENT("profiles", sharing_fields, struct api_sharing);
