#include "client/api_internal.h"

#include <math.h>

enum { LOG_MAX = 1 << 20 };

static const struct json_field quote_fields[] = {
    NEEDED("wish_microcredits", JSON_I64, api_quote, wish_micro),
    FIELD("wish_hourly_microcredits", JSON_I64, api_quote, wish_hourly_micro),
    FIELD("can_start", JSON_BOOL, api_quote, can_start),
    LONG_TEXT("reason", api_quote, reason),
    LONG_TEXT("warning", api_quote, warning),
    FIELD("is_lacking", JSON_BOOL, api_quote, is_lacking),
    FIELD("is_measuring", JSON_BOOL, api_quote, is_measuring),
    LONG_TEXT("nearest", api_quote, nearest),
    FIELD("expected_start_ms", JSON_I64, api_quote, expected_start_ms),
    FIELD("placed_microcredits", JSON_I64, api_quote, placed_micro),
    FIELD("placed_hourly_microcredits", JSON_I64, api_quote, placed_hourly_micro),
    FIELD("expected_microcredits", JSON_I64, api_quote, expected_micro),
    FIELD("server_machines", JSON_U64, api_quote, server_machines),
    FIELD("has_replica_room", JSON_BOOL, api_quote, has_replica_room),
    FIELD("max_run_ms", JSON_I64, api_quote, max_run_ms),
    FIELD("credits_micro_per_usd", JSON_I64, api_quote, credits_micro_per_usd),
    FIELD("available_microcredits", JSON_I64, api_quote, available_micro),
};
const struct json_schema api_quote_schema =
    JSON_SCHEMA_LENIENT("quote", quote_fields, struct api_quote);

static const struct json_field lease_fields[] = {
    NEEDED("id", JSON_U64, api_lease, id),
    FIELD("machine_name", JSON_TEXT, api_lease, machine_name),
    FIELD("role", JSON_TEXT, api_lease, role),
    FIELD("rank", JSON_U64, api_lease, rank),
    FIELD("replica", JSON_BOOL, api_lease, is_replica),
    FIELD("state", JSON_TEXT, api_lease, state),
    FIELD("outcome", JSON_TEXT, api_lease, outcome),
    FIELD("exit_code", JSON_U64, api_lease, exit_code),
    LONG_TEXT("reason", api_lease, reason),
    FIELD("unreachable", JSON_BOOL, api_lease, is_unreachable),
    FIELD("yield", JSON_TEXT, api_lease, yield),
    FIELD("cores_milli", JSON_I64, api_lease, cores_milli),
    FIELD("started_ms", JSON_I64, api_lease, started_ms),
    FIELD("ended_ms", JSON_I64, api_lease, ended_ms),
    FIELD("expires_ms", JSON_I64, api_lease, expires_ms),
    FIELD("ticks", JSON_U64, api_lease, ticks),
    FIELD("posted_microcredits", JSON_I64, api_lease, posted_micro),
    FIELD("earned_microcredits", JSON_I64, api_lease, earned_micro),
    FIELD("steps", JSON_U64, api_lease, steps),
    FIELD("cpu_ms", JSON_I64, api_lease, cpu_ms),
    FIELD("gpu_ms", JSON_I64, api_lease, gpu_ms),
    FIELD("codec", JSON_TEXT, api_lease, codec),
    FIELD("compute_ms", JSON_I64, api_lease, compute_ms),
    FIELD("transfer_ms", JSON_I64, api_lease, transfer_ms),
    FIELD("wait_ms", JSON_I64, api_lease, wait_ms),
    FIELD("clipped", JSON_U64, api_lease, clipped),
    FIELD("refused", JSON_U64, api_lease, refused),
    FIELD("commits", JSON_U64, api_lease, commits),
    FIELD("samples", JSON_U64, api_lease, samples),
    FIELD("steps_per_second", JSON_DOUBLE, api_lease, steps_per_second),
    FIELD("loss", JSON_DOUBLE, api_lease, loss),
};
static const struct json_schema lease_schema =
    JSON_SCHEMA_LENIENT("lease", lease_fields, struct api_lease);

static const struct json_field job_fields[] = {
    NEEDED("id", JSON_U64, api_job, id),
    NEEDED("name", JSON_TEXT, api_job, name),
    NEEDED("state", JSON_TEXT, api_job, state),
    LONG_TEXT("reason", api_job, reason),
    FIELD("runtime", JSON_TEXT, api_job, runtime),
    FIELD("num_nodes", JSON_U64, api_job, num_nodes),
    FIELD("num_nodes_max", JSON_U64, api_job, num_nodes_max),
    FIELD("worker_count", JSON_U64, api_job, worker_count),
    FIELD("workers_wanted", JSON_U64, api_job, workers_wanted),
    FIELD("policy", JSON_TEXT, api_job, policy),
    FIELD("model", JSON_TEXT, api_job, model),
    FIELD("predict", JSON_TEXT, api_job, predict),
    FIELD("created_ms", JSON_I64, api_job, created_ms),
    FIELD("started_ms", JSON_I64, api_job, started_ms),
    FIELD("first_step_ms", JSON_I64, api_job, first_step_ms),
    FIELD("ended_ms", JSON_I64, api_job, ended_ms),
    FIELD("held_microcredits", JSON_I64, api_job, held_micro),
    FIELD("spent_microcredits", JSON_I64, api_job, spent_micro),
    FIELD("quoted_microcredits", JSON_I64, api_job, quoted_micro),
    FIELD("max_total_microcredits", JSON_I64, api_job, max_total_micro),
    FIELD("not_before_ms", JSON_I64, api_job, not_before_ms),
    FIELD("ticks", JSON_U64, api_job, ticks),
    FIELD("loss", JSON_DOUBLE, api_job, loss),
    FIELD("test_accuracy", JSON_DOUBLE, api_job, test_accuracy),
    FIELD("samples", JSON_U64, api_job, samples),
    FIELD("policy_in_force", JSON_TEXT, api_job, policy_in_force),
    FIELD("policy_reason", JSON_TEXT, api_job, policy_reason),
    FIELD("checks", JSON_U64, api_job, checks),
    FIELD("checks_undecided", JSON_U64, api_job, checks_undecided),
    FIELD("spec", JSON_ANY, api_job, spec),
    LIST("leases", api_job, leases, &lease_schema),
};
const struct json_schema api_job_schema = JSON_SCHEMA_LENIENT("job", job_fields, struct api_job);

static const struct json_field log_part_fields[] = {
    FIELD("offset", JSON_U64, api_log_part, offset),
    NEEDED("next_offset", JSON_U64, api_log_part, next_offset),
    {"text", JSON_TEXT, offsetof(struct api_log_part, text), .is_required = true,
     .size_max = LOG_MAX},
    FIELD("is_end", JSON_BOOL, api_log_part, is_end),
};
const struct json_schema api_log_part_schema =
    JSON_SCHEMA_LENIENT("log", log_part_fields, struct api_log_part);

static const struct json_field log_place_fields[] = {
    NEEDED("lease", JSON_U64, api_log_place, lease),
    NEEDED("identity", JSON_TEXT, api_log_place, identity),
    NEEDED("key", JSON_TEXT, api_log_place, key),
    FIELD("addresses", JSON_TEXTS, api_log_place, addresses),
};
static const struct json_schema log_place_schema =
    JSON_SCHEMA_LENIENT("log place", log_place_fields, struct api_log_place);
static const struct json_field log_place_page_fields[] = PAGE_FIELDS(&log_place_schema);
const struct json_schema api_log_place_page_schema =
    JSON_SCHEMA_LENIENT("log places", log_place_page_fields, struct api_page);

static const struct json_field artifact_fields[] = {
    NEEDED("name", JSON_TEXT, api_artifact, name),
    FIELD("size", JSON_U64, api_artifact, size),
    FIELD("manifest", JSON_TEXT, api_artifact, manifest),
};
static const struct json_schema artifact_schema =
    JSON_SCHEMA_LENIENT("artifact", artifact_fields, struct api_artifact);

static const struct json_field bill_line_fields[] = {
    FIELD("machine_name", JSON_TEXT, api_bill_line, machine_name),
    FIELD("role", JSON_TEXT, api_bill_line, role),
    FIELD("rank", JSON_U64, api_bill_line, rank),
    FIELD("replica", JSON_BOOL, api_bill_line, is_replica),
    FIELD("ticks", JSON_U64, api_bill_line, ticks),
    FIELD("billed_ms", JSON_I64, api_bill_line, billed_ms),
    FIELD("posted_microcredits", JSON_I64, api_bill_line, posted_micro),
    FIELD("earned_microcredits", JSON_I64, api_bill_line, earned_micro),
    FIELD("fee_microcredits", JSON_I64, api_bill_line, fee_micro),
};
static const struct json_schema bill_line_schema =
    JSON_SCHEMA_LENIENT("line", bill_line_fields, struct api_bill_line);

static const struct json_field bill_fields[] = {
    FIELD("quoted_microcredits", JSON_I64, api_bill, quoted_micro),
    NEEDED("spent_microcredits", JSON_I64, api_bill, spent_micro),
    FIELD("held_microcredits", JSON_I64, api_bill, held_micro),
    FIELD("fee_microcredits", JSON_I64, api_bill, fee_micro),
    FIELD("ticks", JSON_U64, api_bill, ticks),
    LIST("lines", api_bill, lines, &bill_line_schema),
    FIELD("ledger_sum_microcredits", JSON_I64, api_bill, ledger_sum_micro),
};
const struct json_schema api_bill_schema =
    JSON_SCHEMA_LENIENT("bill", bill_fields, struct api_bill);

static const struct json_field wish_fields[] = {
    FIELD("role", JSON_TEXT, api_wish, role),
    FIELD("wish", JSON_TEXT, api_wish, wish),
    FIELD("machines_left", JSON_U64, api_wish, machines_left),
};
static const struct json_schema wish_schema =
    JSON_SCHEMA_LENIENT("wish", wish_fields, struct api_wish);

static const struct json_field explain_fields[] = {
    FIELD("state", JSON_TEXT, api_explain, state),
    LONG_TEXT("reason", api_explain, reason),
    {"text", JSON_TEXT, offsetof(struct api_explain, text), .size_max = 65536},
    FIELD("machine_count", JSON_U64, api_explain, machine_count),
    LIST("wishes", api_explain, wishes, &wish_schema),
    LONG_TEXT("nearest", api_explain, nearest),
    LONG_TEXT("warning", api_explain, warning),
    FIELD("expected_start_ms", JSON_I64, api_explain, expected_start_ms),
};
const struct json_schema api_explain_schema =
    JSON_SCHEMA_LENIENT("explanation", explain_fields, struct api_explain);

static const struct json_field missing_fields[] = {
    {"hashes", JSON_TEXTS, offsetof(struct api_missing, hashes), .is_required = true,
     .size_max = 65536},
};
const struct json_schema api_missing_schema =
    JSON_SCHEMA_LENIENT("missing chunks", missing_fields, struct api_missing);

static const struct json_field job_page_fields[] = PAGE_FIELDS(&api_job_schema);
const struct json_schema api_job_page_schema =
    JSON_SCHEMA_LENIENT("jobs", job_page_fields, struct api_page);
static const struct json_field artifact_page_fields[] = PAGE_FIELDS(&artifact_schema);
const struct json_schema api_artifact_page_schema =
    JSON_SCHEMA_LENIENT("artifacts", artifact_page_fields, struct api_page);

static const struct json_field event_fields[] = {
    NEEDED("job", JSON_U64, api_event, job),
    FIELD("lease", JSON_U64, api_event, lease),
    FIELD("role", JSON_TEXT, api_event, role),
    FIELD("at_ms", JSON_I64, api_event, at_ms),
    FIELD("elapsed_ms", JSON_I64, api_event, elapsed_ms),
    FIELD("steps", JSON_U64, api_event, steps),
    FIELD("samples", JSON_U64, api_event, samples),
    FIELD("commits", JSON_U64, api_event, commits),
    FIELD("loss", JSON_DOUBLE, api_event, loss),
    FIELD("steps_per_second", JSON_DOUBLE, api_event, steps_per_second),
    FIELD("test_accuracy", JSON_DOUBLE, api_event, test_accuracy),
    FIELD("state", JSON_TEXT, api_event, state),
    LONG_TEXT("reason", api_event, reason),
    FIELD("spent_microcredits", JSON_I64, api_event, spent_micro),
    FIELD("held_microcredits", JSON_I64, api_event, held_micro),
};
const struct json_schema api_event_schema =
    JSON_SCHEMA_LENIENT("event", event_fields, struct api_event);

/* Its rank is a text, where that of others is a number. */
static const struct json_field log_event_fields[] = {
    NEEDED("job", JSON_U64, api_event, job),
    FIELD("lease", JSON_U64, api_event, lease),
    FIELD("at_ms", JSON_I64, api_event, at_ms),
    FIELD("rank", JSON_TEXT, api_event, rank),
    FIELD("offset", JSON_U64, api_event, offset),
    FIELD("next_offset", JSON_U64, api_event, next_offset),
    {"text", JSON_TEXT, offsetof(struct api_event, text), .size_max = 1 << 20},
};
const struct json_schema api_log_event_schema =
    JSON_SCHEMA_LENIENT("log event", log_event_fields, struct api_event);

struct api_job api_job_unknown(void)
{
    return (struct api_job){.loss = (double)NAN, .test_accuracy = (double)NAN};
}

struct api_event api_event_unknown(void)
{
    return (struct api_event){.loss = (double)NAN, .test_accuracy = (double)NAN, .spent_micro = -1};
}

bool api_job_is_final(struct text state)
{
    return text_equal(state, TEXT("succeeded")) || text_equal(state, TEXT("failed")) ||
           text_equal(state, TEXT("cancelled"));
}
