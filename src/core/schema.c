#include "core/schema.h"

#include "market/slot.h"

/* In the order of the enums; event_test compares them with the name functions. */
const char *const schema_code_kinds[] = {"enrol", "page", "group", "invite", NULL};
const char *const schema_economies[] = {"credits", "karma", NULL};
const char *const schema_grant_states[] = {"none", "waiting", "given", NULL};
const char *const schema_machine_states[] = {"offline", "online", "unreachable", NULL};
const char *const schema_machine_yields[] = {
    "none", "low", "frozen", "paused", "draining", "paused_remotely", NULL};
const char *const schema_job_states[] = {"pending",   "starting", "running",   "stopping",
                                         "succeeded", "failed",   "cancelled", NULL};
const char *const schema_lease_states[] = {"offered", "running", "ended", NULL};
const char *const schema_lease_outcomes[] = {"none",      "succeeded", "failed", "stopped", "lost",
                                             "reclaimed", "preempted", "faulty", NULL};
const char *const schema_lease_roles[] = {"worker", "server", NULL};
const char *const schema_networks[] = {"none", "job", "open", NULL};
const char *const schema_installs[] = {"none", "wheels", "index", NULL};
const char *const schema_audiences[] = {"anyone", "accounts", "group", NULL};
const char *const schema_starts[] = {"now", "deadline", "cheapest", NULL};
const char *const schema_entry_kinds[] = {"grant",  "hold",    "post",     "fee",
                                          "void",   "release", "transfer", "reclaim",
                                          "refund", "fund",    "cost",     NULL};

/* The exact ranges are core_settings_check's; these keep sums of times from overflowing. */
static const struct json_field settings_fields[] = {
    SCHEMA_CHOICE("economy", struct core_settings, economy, schema_economies),
    SCHEMA_RANGE("karma_guarantee_basis_points", struct core_settings, karma_guarantee_basis_points,
                 0, 10000),
    SCHEMA_MICRO("grant_micro", struct core_settings, grant_micro),
    SCHEMA_MICRO("grant_earned_micro", struct core_settings, grant_earned_micro),
    SCHEMA_MICRO("grant_daily_micro", struct core_settings, grant_daily_micro),
    SCHEMA_TIME("dormant_ms", struct core_settings, dormant_ms),
    SCHEMA_TIME("dormant_step_ms", struct core_settings, dormant_step_ms),
    SCHEMA_RANGE("dormant_basis_points", struct core_settings, dormant_basis_points, 0, 10000),
    SCHEMA_RANGE("fee_basis_points", struct core_settings, fee_basis_points, 0, 10000),
    SCHEMA_MICRO("proving_micro", struct core_settings, proving_micro),
    SCHEMA_RANGE("withheld_basis_points", struct core_settings, withheld_basis_points, 0, 10000),
    SCHEMA_TIME("silence_ms", struct core_settings, silence_ms),
    SCHEMA_TIME("lost_ms", struct core_settings, lost_ms),
    SCHEMA_TIME("start_ms", struct core_settings, start_ms),
    SCHEMA_TIME("grace_ms", struct core_settings, grace_ms),
    SCHEMA_RANGE("slot_offset_ms", struct core_settings, slot_offset_ms, -SLOT_OFFSET_MS_MAX,
                 SLOT_OFFSET_MS_MAX),
};
const struct json_schema schema_settings =
    JSON_SCHEMA("settings", settings_fields, struct core_settings);

static const struct json_field resources_fields[] = {
    SCHEMA_RANGE("cores_milli", struct resources, cores_milli, 0, RESOURCES_CORES_MILLI_MAX),
    SCHEMA_RANGE("ram_bytes", struct resources, ram_bytes, 0, RESOURCES_BYTES_MAX),
    SCHEMA_RANGE("gpus_milli", struct resources, gpus_milli, 0, RESOURCES_GPUS_MILLI_MAX),
    SCHEMA_RANGE("disk_bytes", struct resources, disk_bytes, 0, RESOURCES_BYTES_MAX),
    SCHEMA_RANGE("bandwidth_kbit", struct resources, bandwidth_kbit, 0, RESOURCES_KBIT_MAX),
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

static const struct json_field lock_fields[] = {
    SCHEMA_RANGE("first_slot", struct price_lock, first_slot, SLOT_INDEX_MIN, SLOT_INDEX_MAX),
    SCHEMA_RANGE("offset_ms", struct price_lock, offset_ms, -SLOT_OFFSET_MS_MAX,
                 SLOT_OFFSET_MS_MAX),
    {.name = "slots",
     .kind = JSON_LIST,
     .offset = offsetof(struct price_lock, slot_count),
     .is_required = true,
     .size_max = PRICE_LOCK_SLOTS,
     .schema = &schema_price},
    SCHEMA_TIME("rush_ms", struct price_lock, rush_ms),
    SCHEMA_OR_NONE("from_ms", struct price_lock, from_ms, SCHEMA_TIME_MS_MAX),
    SCHEMA_OR_NONE("before_micro", struct price_lock, before_micro, PRICE_MICRO_MAX),
    SCHEMA_OR_NONE("before_rest", struct price_lock, before_rest, PRICE_REST_PER_MICRO - 1),
};
const struct json_schema schema_lock = JSON_SCHEMA("lock", lock_fields, struct price_lock);
_Static_assert(offsetof(struct price_lock, slots) ==
                   offsetof(struct price_lock, slot_count) + sizeof(int64_t),
               "a JSON_LIST has its items right after their count");

static const struct json_field price_inputs_fields[] = {
    SCHEMA_RANGE("wanted_milli_s", struct price_inputs, wanted_milli_s, 0, PRICE_USAGE_MILLI_S_MAX),
    SCHEMA_RANGE("offered_milli_s", struct price_inputs, offered_milli_s, 0,
                 PRICE_USAGE_MILLI_S_MAX),
    SCHEMA_RANGE("borrower_count", struct price_inputs, borrower_count, 0, PRICE_BORROWERS_MAX),
    SCHEMA_RANGE("effective_q16", struct price_inputs, effective_q16, 1, INT64_MAX),
};
const struct json_schema schema_price_inputs =
    JSON_SCHEMA("inputs", price_inputs_fields, struct price_inputs);

/* Far more than prices reach; price_board_is_valid has the exact ranges. */
#define LOG2_Q32_MAX (INT64_C(64) << 32)
static const struct json_field price_curve_fields[] = {
    SCHEMA_RANGE("level_q32", struct price_curve, level_q32, -LOG2_Q32_MAX, LOG2_Q32_MAX),
    SCHEMA_RANGE("night_q32", struct price_curve, factor_q32[0], -LOG2_Q32_MAX, LOG2_Q32_MAX),
    SCHEMA_RANGE("morning_q32", struct price_curve, factor_q32[1], -LOG2_Q32_MAX, LOG2_Q32_MAX),
    SCHEMA_RANGE("afternoon_q32", struct price_curve, factor_q32[2], -LOG2_Q32_MAX, LOG2_Q32_MAX),
    SCHEMA_RANGE("evening_q32", struct price_curve, factor_q32[3], -LOG2_Q32_MAX, LOG2_Q32_MAX),
};
const struct json_schema schema_price_curve =
    JSON_SCHEMA("curve", price_curve_fields, struct price_curve);

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
    SCHEMA_CHARS("gpu_model", struct probe, gpu_model),
    SCHEMA_RANGE("gpu_ram_bytes", struct probe, gpu_ram_bytes, 0, RESOURCES_BYTES_MAX),
    SCHEMA_RANGE("rtt_us", struct probe, rtt_us, 0, MACHINE_RTT_US_MAX),
    /* Logs of before it was measured do not have it. */
    {JSON_NAME("ram_bytes_per_s"), .kind = JSON_I64,
     .offset = offsetof(struct probe, ram_bytes_per_s), .minimum = 0,
     .maximum = MACHINE_RAM_BYTES_PER_S_MAX},
    SCHEMA_FLAG("forbids_job_network", struct probe, forbids_job_network),
    SCHEMA_FLAG("allows_open_network", struct probe, allows_open_network),
    SCHEMA_FLAG("allows_images", struct probe, allows_images),
    SCHEMA_FLAG("forbids_install", struct probe, forbids_install),
    SCHEMA_FLAG("allows_index", struct probe, allows_index),
    SCHEMA_FLAG("forbids_programs", struct probe, forbids_programs),
};
const struct json_schema schema_probe = JSON_SCHEMA("probe", probe_fields, struct probe);

static const struct json_field span_fields[] = {
    SCHEMA_TIME("open_ms", struct span, open_ms),
    SCHEMA_TIME("close_ms", struct span, close_ms),
};
const struct json_schema schema_span = JSON_SCHEMA("span", span_fields, struct span);

static const struct json_field offer_account_fields[] = {
    SCHEMA_ID("account", struct offer_account, account),
};
static const struct json_schema schema_offer_account =
    JSON_SCHEMA("account", offer_account_fields, struct offer_account);

static const struct json_field offer_terms_fields[] = {
    SCHEMA_OBJECT("resources", struct offer_terms, resources, schema_resources),
    SCHEMA_RANGE("roles", struct offer_terms, roles, 0, MACHINE_ROLE_ALL),
    SCHEMA_OBJECT("minimum", struct offer_terms, minimum, schema_price),
    SCHEMA_RANGE("max_lease_ms", struct offer_terms, max_lease_ms, 0, PRICE_RUN_MS_MAX),
    SCHEMA_TIME("paused_until_ms", struct offer_terms, paused_until_ms),
    SCHEMA_CHOICE("network", struct offer_terms, network, schema_networks),
    SCHEMA_CHOICE("install", struct offer_terms, install, schema_installs),
    SCHEMA_CHOICE("audience", struct offer_terms, audience, schema_audiences),
    SCHEMA_ID("group", struct offer_terms, group),
    SCHEMA_RANGE("gpu_ram_bytes", struct offer_terms, gpu_ram_bytes, 0, RESOURCES_BYTES_MAX),
    SCHEMA_TEXT("gpu_model", struct offer_terms, gpu_model, OFFER_GPU_MODEL_MAX),
    SCHEMA_TEXT("labels", struct offer_terms, labels, OFFER_LABELS_MAX),
    SCHEMA_TEXT("schedule", struct offer_terms, schedule, OFFER_SCHEDULE_MAX),
    SCHEMA_ARRAY("accounts", struct offer_terms, accounts, schema_offer_account,
                 OFFER_ACCOUNTS_MAX),
    SCHEMA_ARRAY("spans", struct offer_terms, spans, schema_span, WINDOW_SPANS_MAX),
    SCHEMA_FLAG("is_spare", struct offer_terms, is_spare),
};
const struct json_schema schema_offer_terms =
    JSON_SCHEMA("terms", offer_terms_fields, struct offer_terms);

static const struct json_field wishes_fields[] = {
    SCHEMA_CHARS("gpu_model", struct job_wishes, gpu_model),
    SCHEMA_RANGE("gpu_ram_bytes", struct job_wishes, gpu_ram_bytes, 0, RESOURCES_BYTES_MAX),
    SCHEMA_CHARS("labels", struct job_wishes, labels),
    SCHEMA_CHOICE("network", struct job_wishes, network, schema_networks),
    SCHEMA_CHOICE("install", struct job_wishes, install, schema_installs),
    SCHEMA_RANGE("max_rtt_us", struct job_wishes, max_rtt_us, 0, MACHINE_RTT_US_MAX),
    SCHEMA_RANGE("min_reliability_milli", struct job_wishes, min_reliability_milli, 0, 1000),
    SCHEMA_RANGE("min_speed_milli", struct job_wishes, min_speed_milli, 0, PRICE_SPEED_MILLI_MAX),
    SCHEMA_FLAG("has_image", struct job_wishes, has_image),
    SCHEMA_FLAG("has_program", struct job_wishes, has_program),
};
const struct json_schema schema_wishes = JSON_SCHEMA("wishes", wishes_fields, struct job_wishes);

static const struct json_field job_request_fields[] = {
    SCHEMA_ID("account", struct job_request, account),
    SCHEMA_CHARS("name", struct job_request, name),
    {.name = "spec",
     .kind = JSON_TEXT,
     .offset = offsetof(struct job_request, spec),
     .is_required = true,
     .size_max = JOB_SPEC_MAX},
    SCHEMA_RANGE("num_nodes", struct job_request, num_nodes, 1, JOB_NODES_MAX),
    SCHEMA_RANGE("num_nodes_max", struct job_request, num_nodes_max, 0, JOB_NODES_MAX),
    SCHEMA_OBJECT("worker", struct job_request, worker, schema_resources),
    SCHEMA_BOOL("takes_more_cores", struct job_request, takes_more_cores),
    SCHEMA_OBJECT("server", struct job_request, server, schema_resources),
    SCHEMA_MICRO("max_total_micro", struct job_request, max_total_micro),
    SCHEMA_MICRO("max_hourly_micro", struct job_request, max_hourly_micro),
    SCHEMA_RANGE("max_run_ms", struct job_request, max_run_ms, 1, PRICE_RUN_MS_MAX),
    SCHEMA_RANGE("expected_run_ms", struct job_request, expected_run_ms, 0, PRICE_RUN_MS_MAX),
    SCHEMA_RANGE("tick_ms", struct job_request, tick_ms, 1, PRICE_RUN_MS_MAX),
    SCHEMA_OBJECT("wishes", struct job_request, wishes, schema_wishes),
    SCHEMA_CHOICE("start", struct job_request, start, schema_starts),
    SCHEMA_TIME("deadline_ms", struct job_request, deadline_ms),
    SCHEMA_BOOL("is_rush", struct job_request, is_rush),
    SCHEMA_BOOL("replaces_lost", struct job_request, replaces_lost),
    SCHEMA_HEX("idempotency_hash", struct job_request, idempotency_hash),
    SCHEMA_FLAG("is_spare", struct job_request, is_spare),
    SCHEMA_OR_NONE("server_count", struct job_request, server_count, JOB_SERVERS_MAX),
    SCHEMA_FLAG("has_replica", struct job_request, has_replica),
    SCHEMA_FLAG("is_gathered", struct job_request, is_gathered),
    SCHEMA_OR_NONE("workers_first", struct job_request, workers_first, JOB_NODES_MAX),
};
const struct json_schema schema_job_request =
    JSON_SCHEMA("request", job_request_fields, struct job_request);
