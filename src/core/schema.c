#include "core/schema.h"

/* In the order of the enums; event_test compares them with the name functions. */
const char *const schema_code_kinds[] = {"enrol", "page", NULL};
const char *const schema_machine_states[] = {"offline", "online", "unreachable", NULL};
const char *const schema_job_states[] = {"pending",   "starting", "running",   "stopping",
                                         "succeeded", "failed",   "cancelled", NULL};
const char *const schema_lease_states[] = {"offered", "running", "ended", NULL};
const char *const schema_lease_outcomes[] = {"none",    "succeeded", "failed",
                                             "stopped", "lost",      NULL};
const char *const schema_lease_roles[] = {"worker", "server", NULL};
const char *const schema_entry_kinds[] = {"grant",   "hold",     "post",    "fee", "void",
                                          "release", "transfer", "reclaim", NULL};

/* The exact ranges are core_settings_check's; these keep sums of times from overflowing. */
static const struct json_field settings_fields[] = {
    SCHEMA_MICRO("grant_micro", struct core_settings, grant_micro),
    SCHEMA_RANGE("fee_basis_points", struct core_settings, fee_basis_points, 0, 10000),
    SCHEMA_TIME("silence_ms", struct core_settings, silence_ms),
    SCHEMA_TIME("lost_ms", struct core_settings, lost_ms),
    SCHEMA_TIME("start_ms", struct core_settings, start_ms),
    SCHEMA_TIME("grace_ms", struct core_settings, grace_ms),
};
const struct json_schema schema_settings =
    JSON_SCHEMA("settings", settings_fields, struct core_settings);

static const struct json_field resources_fields[] = {
    SCHEMA_RANGE("cores_milli", struct resources, cores_milli, 0, RESOURCES_CORES_MILLI_MAX),
    SCHEMA_RANGE("ram_bytes", struct resources, ram_bytes, 0, RESOURCES_BYTES_MAX),
    SCHEMA_RANGE("gpus_milli", struct resources, gpus_milli, 0, RESOURCES_GPUS_MILLI_MAX),
    SCHEMA_RANGE("disk_bytes", struct resources, disk_bytes, 0, RESOURCES_BYTES_MAX),
};
const struct json_schema schema_resources =
    JSON_SCHEMA("resources", resources_fields, struct resources);

static const struct json_field price_fields[] = {
    SCHEMA_RANGE("core_micro", struct price_vector, core_micro, 0, PRICE_PER_HOUR_MAX),
    SCHEMA_RANGE("ram_micro", struct price_vector, ram_micro, 0, PRICE_PER_HOUR_MAX),
    SCHEMA_RANGE("gpu_micro", struct price_vector, gpu_micro, 0, PRICE_PER_HOUR_MAX),
    SCHEMA_RANGE("disk_micro", struct price_vector, disk_micro, 0, PRICE_PER_HOUR_MAX),
};
const struct json_schema schema_price = JSON_SCHEMA("price", price_fields, struct price_vector);

/* Each at most what the largest resources come to. */
#define UNITS_MILLI_MAX (RESOURCES_CORES_MILLI_MAX * PRICE_SPEED_MILLI_MAX / 1000)
static const struct json_field units_fields[] = {
    SCHEMA_RANGE("core_milli", struct price_units, core_milli, 0, UNITS_MILLI_MAX),
    SCHEMA_RANGE("ram_milli", struct price_units, ram_milli, 0, UNITS_MILLI_MAX),
    SCHEMA_RANGE("gpu_milli", struct price_units, gpu_milli, 0, UNITS_MILLI_MAX),
    SCHEMA_RANGE("disk_milli", struct price_units, disk_milli, 0, UNITS_MILLI_MAX),
};
const struct json_schema schema_units = JSON_SCHEMA("units", units_fields, struct price_units);

static const struct json_field probe_fields[] = {
    SCHEMA_OBJECT("resources", struct probe, resources, schema_resources),
    SCHEMA_RANGE("speed_weight_milli", struct probe, speed_weight_milli, PRICE_SPEED_MILLI_MIN,
                 PRICE_SPEED_MILLI_MAX),
    SCHEMA_CHARS("cpu_model", struct probe, cpu_model),
    SCHEMA_CHARS("labels", struct probe, labels),
};
const struct json_schema schema_probe = JSON_SCHEMA("probe", probe_fields, struct probe);

static const struct json_field offer_fields[] = {
    SCHEMA_OBJECT("resources", struct offer, resources, schema_resources),
    SCHEMA_RANGE("roles", struct offer, roles, 0, MACHINE_ROLE_ALL),
    SCHEMA_OBJECT("minimum", struct offer, minimum, schema_price),
    SCHEMA_BOOL("is_paused", struct offer, is_paused),
};
const struct json_schema schema_offer = JSON_SCHEMA("offer", offer_fields, struct offer);

static const struct json_field job_request_fields[] = {
    SCHEMA_ID("account", struct job_request, account),
    SCHEMA_CHARS("name", struct job_request, name),
    {.name = "spec",
     .kind = JSON_TEXT,
     .offset = offsetof(struct job_request, spec),
     .is_required = true,
     .size_max = JOB_SPEC_MAX},
    SCHEMA_RANGE("num_nodes", struct job_request, num_nodes, 1, JOB_NODES_MAX),
    SCHEMA_OBJECT("worker", struct job_request, worker, schema_resources),
    SCHEMA_BOOL("takes_more_cores", struct job_request, takes_more_cores),
    SCHEMA_OBJECT("server", struct job_request, server, schema_resources),
    SCHEMA_MICRO("max_total_micro", struct job_request, max_total_micro),
    SCHEMA_MICRO("max_hourly_micro", struct job_request, max_hourly_micro),
    SCHEMA_RANGE("max_run_ms", struct job_request, max_run_ms, 1, PRICE_RUN_MS_MAX),
    SCHEMA_RANGE("expected_run_ms", struct job_request, expected_run_ms, 0, PRICE_RUN_MS_MAX),
    SCHEMA_RANGE("tick_ms", struct job_request, tick_ms, 1, PRICE_RUN_MS_MAX),
    SCHEMA_HEX("idempotency_hash", struct job_request, idempotency_hash),
};
const struct json_schema schema_job_request =
    JSON_SCHEMA("request", job_request_fields, struct job_request);
