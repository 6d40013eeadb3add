#include "cli/api.h"

#include <math.h>

enum { WORDS_MAX = 2048, LIST_MAX = 1000, LOG_MAX = 1 << 20 };

#define FIELD(name_, kind_, struct_, member_)                                                      \
    {                                                                                              \
        (name_), (kind_), offsetof(struct struct_, member_)                                        \
    }
#define LONG_TEXT(name_, struct_, member_)                                                         \
    {                                                                                              \
        (name_), JSON_TEXT, offsetof(struct struct_, member_), .size_max = WORDS_MAX               \
    }
#define NEEDED(name_, kind_, struct_, member_)                                                     \
    {                                                                                              \
        (name_), (kind_), offsetof(struct struct_, member_), .is_required = true                   \
    }
#define LIST(name_, struct_, member_, schema_)                                                     \
    {                                                                                              \
        (name_), JSON_ARRAY, offsetof(struct struct_, member_), .size_max = LIST_MAX,              \
                                                                .schema = (schema_)                \
    }
#define PART(name_, struct_, member_, schema_)                                                     \
    {                                                                                              \
        (name_), JSON_OBJECT, offsetof(struct struct_, member_), .schema = (schema_)               \
    }

static const struct json_field account_fields[] = {
    NEEDED("id", JSON_U64, api_account, id),
    NEEDED("name", JSON_TEXT, api_account, name),
    NEEDED("available_microcredits", JSON_I64, api_account, available_micro),
    FIELD("held_microcredits", JSON_I64, api_account, held_micro),
    FIELD("granted_microcredits", JSON_I64, api_account, granted_micro),
    FIELD("withheld_microcredits", JSON_I64, api_account, withheld_micro),
    FIELD("transferable_microcredits", JSON_I64, api_account, transferable_micro),
    FIELD("earned_microcredits", JSON_I64, api_account, earned_micro),
    FIELD("spent_microcredits", JSON_I64, api_account, spent_micro),
    FIELD("grant", JSON_TEXT, api_account, grant),
    FIELD("to_earn_microcredits", JSON_I64, api_account, to_earn_micro),
    FIELD("group", JSON_U64, api_account, group),
    FIELD("has_password", JSON_BOOL, api_account, has_password),
    FIELD("frozen", JSON_TEXT, api_account, frozen),
    FIELD("dormant_steps", JSON_I64, api_account, dormant_steps),
    FIELD("dormant_step_ms", JSON_I64, api_account, dormant_step_ms),
};
const struct json_schema api_account_schema =
    JSON_SCHEMA_LENIENT("account", account_fields, struct api_account);

static const struct json_field account_created_fields[] = {
    {"account", JSON_OBJECT, offsetof(struct api_account_created, account), .is_required = true,
     .schema = &api_account_schema},
    NEEDED("token", JSON_TEXT, api_account_created, token),
};
const struct json_schema api_account_created_schema =
    JSON_SCHEMA_LENIENT("account", account_created_fields, struct api_account_created);

static const struct json_field session_fields[] = {
    {"account", JSON_OBJECT, offsetof(struct api_session, account), .is_required = true,
     .schema = &api_account_schema},
    NEEDED("token", JSON_TEXT, api_session, token),
    FIELD("expires_ms", JSON_I64, api_session, expires_ms),
};
const struct json_schema api_session_schema =
    JSON_SCHEMA_LENIENT("session", session_fields, struct api_session);

static const struct json_field token_fields[] = {
    NEEDED("id", JSON_U64, api_token, id),
    FIELD("name", JSON_TEXT, api_token, name),
    FIELD("scopes", JSON_TEXTS, api_token, scopes),
    FIELD("created_ms", JSON_I64, api_token, created_ms),
    FIELD("expires_ms", JSON_I64, api_token, expires_ms),
    FIELD("last_used_ms", JSON_I64, api_token, last_used_ms),
    FIELD("is_current", JSON_BOOL, api_token, is_current),
    FIELD("token", JSON_TEXT, api_token, token),
};
const struct json_schema api_token_schema =
    JSON_SCHEMA_LENIENT("token", token_fields, struct api_token);

static const struct json_field member_fields[] = {
    NEEDED("id", JSON_U64, api_member, id),
    FIELD("name", JSON_TEXT, api_member, name),
};
static const struct json_schema member_schema =
    JSON_SCHEMA_LENIENT("member", member_fields, struct api_member);

static const struct json_field group_fields[] = {
    NEEDED("id", JSON_U64, api_group, id),
    FIELD("name", JSON_TEXT, api_group, name),
    FIELD("owner", JSON_U64, api_group, owner),
    LIST("members", api_group, members, &member_schema),
};
const struct json_schema api_group_schema =
    JSON_SCHEMA_LENIENT("group", group_fields, struct api_group);

static const struct json_field code_fields[] = {
    FIELD("code", JSON_TEXT, api_code, code),
    FIELD("invite", JSON_TEXT, api_code, invite),
    FIELD("expires_ms", JSON_I64, api_code, expires_ms),
};
const struct json_schema api_code_schema =
    JSON_SCHEMA_LENIENT("code", code_fields, struct api_code);

static const struct json_field page_code_fields[] = {
    NEEDED("code", JSON_TEXT, api_page_code, code),
    LONG_TEXT("url", api_page_code, url),
};
const struct json_schema api_page_code_schema =
    JSON_SCHEMA_LENIENT("page code", page_code_fields, struct api_page_code);

static const struct json_field server_fields[] = {
    FIELD("name", JSON_TEXT, api_server, name),
    FIELD("version", JSON_TEXT, api_server, version),
    LONG_TEXT("url", api_server, url),
    FIELD("fingerprint", JSON_TEXT, api_server, fingerprint),
    FIELD("economy", JSON_TEXT, api_server, economy),
    FIELD("proving_microcredits", JSON_I64, api_server, proving_micro),
    FIELD("withheld_basis_points", JSON_I64, api_server, withheld_basis_points),
};
const struct json_schema api_server_schema =
    JSON_SCHEMA_LENIENT("server", server_fields, struct api_server);

static const struct json_field machine_code_fields[] = {
    NEEDED("code", JSON_TEXT, api_machine_code, code),
    FIELD("expires_ms", JSON_I64, api_machine_code, expires_ms),
    FIELD("fingerprint", JSON_TEXT, api_machine_code, fingerprint),
};
const struct json_schema api_machine_code_schema =
    JSON_SCHEMA_LENIENT("machine code", machine_code_fields, struct api_machine_code);

static const struct json_field share_fields[] = {
    FIELD("cores_milli", JSON_I64, api_share, cores_milli),
    FIELD("ram_bytes", JSON_I64, api_share, ram_bytes),
    FIELD("disk_bytes", JSON_I64, api_share, disk_bytes),
    FIELD("gpus_milli", JSON_I64, api_share, gpus_milli),
    FIELD("speed_weight_milli", JSON_I64, api_share, speed_weight_milli),
    FIELD("cpu_model", JSON_TEXT, api_share, cpu_model),
    FIELD("gpu_model", JSON_TEXT, api_share, gpu_model),
    LONG_TEXT("labels", api_share, labels),
    FIELD("gpu_ram_bytes", JSON_I64, api_share, gpu_ram_bytes),
    FIELD("bandwidth_kbit", JSON_I64, api_share, bandwidth_kbit),
    FIELD("rtt_us", JSON_I64, api_share, rtt_us),
    FIELD("ram_bytes_per_s", JSON_I64, api_share, ram_bytes_per_s),
    FIELD("paused", JSON_BOOL, api_share, is_paused),
};
static const struct json_schema share_schema =
    JSON_SCHEMA_LENIENT("share", share_fields, struct api_share);

static const struct json_field reputation_fields[] = {
    FIELD("reliability_milli", JSON_I64, api_reputation, reliability_milli),
    FIELD("completed", JSON_I64, api_reputation, completed),
    FIELD("lost", JSON_I64, api_reputation, lost),
    FIELD("reclaimed", JSON_I64, api_reputation, reclaimed),
    FIELD("failed", JSON_I64, api_reputation, failed),
    FIELD("completed_milli", JSON_I64, api_reputation, completed_milli),
    FIELD("lost_milli", JSON_I64, api_reputation, lost_milli),
    FIELD("reclaimed_milli", JSON_I64, api_reputation, reclaimed_milli),
    FIELD("leased_ms", JSON_I64, api_reputation, leased_ms),
    FIELD("delivered_ms", JSON_I64, api_reputation, delivered_ms),
    FIELD("ticks", JSON_I64, api_reputation, ticks),
    FIELD("is_proven", JSON_BOOL, api_reputation, is_proven),
    FIELD("verified_microcredits", JSON_I64, api_reputation, verified_micro),
    FIELD("withheld_microcredits", JSON_I64, api_reputation, withheld_micro),
};
static const struct json_schema reputation_schema =
    JSON_SCHEMA_LENIENT("reputation", reputation_fields, struct api_reputation);

static const struct json_field live_fields[] = {
    FIELD("heard_ms", JSON_I64, api_live, heard_ms),
    FIELD("load_milli", JSON_I64, api_live, load_milli),
    FIELD("free_ram_bytes", JSON_I64, api_live, free_ram_bytes),
    FIELD("temperature_c", JSON_I64, api_live, temperature_c),
    FIELD("power", JSON_TEXT, api_live, power),
    FIELD("battery_percent", JSON_I64, api_live, battery_percent),
};
static const struct json_schema live_schema =
    JSON_SCHEMA_LENIENT("live", live_fields, struct api_live);

static const struct json_field machine_fields[] = {
    NEEDED("id", JSON_U64, api_machine, id),
    NEEDED("name", JSON_TEXT, api_machine, name),
    FIELD("account_name", JSON_TEXT, api_machine, account_name),
    FIELD("is_mine", JSON_BOOL, api_machine, is_mine),
    FIELD("state", JSON_TEXT, api_machine, state),
    FIELD("yield", JSON_TEXT, api_machine, yield),
    FIELD("availability", JSON_TEXT, api_machine, availability),
    FIELD("fresh_s", JSON_ANY, api_machine, fresh_s),
    PART("probe", api_machine, probe, &share_schema),
    PART("offer", api_machine, offer, &share_schema),
    PART("live", api_machine, live, &live_schema),
    PART("free", api_machine, free, &share_schema),
    {"offer_labels", JSON_TEXT, offsetof(struct api_machine, offer_labels), .size_max = 8192},
    FIELD("offer_state", JSON_TEXT, api_machine, offer_state),
    FIELD("offer_state_until_ms", JSON_I64, api_machine, offer_state_until_ms),
    FIELD("leased_cores_milli", JSON_I64, api_machine, leased_cores_milli),
    {"reputation", JSON_OBJECT, offsetof(struct api_machine, reputation),
     .schema = &reputation_schema},
    FIELD("lease_count", JSON_U64, api_machine, lease_count),
    FIELD("earned_microcredits", JSON_I64, api_machine, earned_micro),
};
const struct json_schema api_machine_schema =
    JSON_SCHEMA_LENIENT("machine", machine_fields, struct api_machine);

static const struct json_field minimum_fields[] = {
    FIELD("core_micro", JSON_I64, api_minimum, core_micro),
    FIELD("ram_micro", JSON_I64, api_minimum, ram_micro),
    FIELD("gpu_micro", JSON_I64, api_minimum, gpu_micro),
    FIELD("disk_micro", JSON_I64, api_minimum, disk_micro),
};
static const struct json_schema minimum_schema =
    JSON_SCHEMA_LENIENT("minimum", minimum_fields, struct api_minimum);

static const struct json_field offer_fields[] = {
    NEEDED("id", JSON_U64, api_offer, id),
    FIELD("machine", JSON_U64, api_offer, machine),
    FIELD("machine_name", JSON_TEXT, api_offer, machine_name),
    FIELD("machine_state", JSON_TEXT, api_offer, machine_state),
    FIELD("state", JSON_TEXT, api_offer, state),
    FIELD("state_until_ms", JSON_I64, api_offer, state_until_ms),
    FIELD("cores_milli", JSON_I64, api_offer, cores_milli),
    FIELD("ram_bytes", JSON_I64, api_offer, ram_bytes),
    FIELD("gpus_milli", JSON_I64, api_offer, gpus_milli),
    FIELD("gpu_model", JSON_TEXT, api_offer, gpu_model),
    FIELD("gpu_ram_bytes", JSON_I64, api_offer, gpu_ram_bytes),
    FIELD("disk_bytes", JSON_I64, api_offer, disk_bytes),
    FIELD("bandwidth_kbit", JSON_I64, api_offer, bandwidth_kbit),
    FIELD("roles", JSON_TEXTS, api_offer, roles),
    PART("minimum", api_offer, minimum, &minimum_schema),
    FIELD("max_lease_ms", JSON_I64, api_offer, max_lease_ms),
    FIELD("spare", JSON_BOOL, api_offer, spare),
    LONG_TEXT("when", api_offer, when),
    FIELD("zone", JSON_TEXT, api_offer, zone),
    FIELD("audience", JSON_TEXT, api_offer, audience),
    FIELD("accounts", JSON_TEXTS, api_offer, accounts),
    FIELD("group", JSON_TEXT, api_offer, group),
    FIELD("network", JSON_TEXT, api_offer, network),
    FIELD("install", JSON_TEXT, api_offer, install),
    FIELD("labels", JSON_TEXT, api_offer, labels),
    FIELD("leased_cores_milli", JSON_I64, api_offer, leased_cores_milli),
    FIELD("lease_count", JSON_U64, api_offer, lease_count),
};
const struct json_schema api_offer_schema =
    JSON_SCHEMA_LENIENT("offer", offer_fields, struct api_offer);

static const struct json_field health_resource_fields[] = {
    NEEDED("resource", JSON_TEXT, api_health_resource, resource),
    FIELD("lent_milli", JSON_I64, api_health_resource, lent_milli),
    FIELD("leased_milli", JSON_I64, api_health_resource, leased_milli),
    FIELD("largest_lender_basis_points", JSON_I64, api_health_resource,
          largest_lender_basis_points),
};
static const struct json_schema health_resource_schema =
    JSON_SCHEMA_LENIENT("resource", health_resource_fields, struct api_health_resource);

static const struct json_field health_fields[] = {
    NEEDED("credits_microcredits", JSON_I64, api_health, credits_micro),
    FIELD("member_count", JSON_I64, api_health, member_count),
    FIELD("active_count", JSON_I64, api_health, active_count),
    FIELD("poor_count", JSON_I64, api_health, poor_count),
    FIELD("weekly_spend_microcredits", JSON_I64, api_health, weekly_spend_micro),
    FIELD("weeks_of_spend_milli", JSON_I64, api_health, weeks_of_spend_milli),
    FIELD("price_index_milli", JSON_I64, api_health, price_index_milli),
    {"resources", JSON_ARRAY, offsetof(struct api_health, resources),
     .schema = &health_resource_schema},
};
const struct json_schema api_health_schema =
    JSON_SCHEMA_LENIENT("market", health_fields, struct api_health);

#define PRICE_FIELDS(struct_, member_)                                                             \
    FIELD("core_hour_microcredits", JSON_I64, struct_, member_ core_hour_micro),                   \
        FIELD("ram_gib_hour_microcredits", JSON_I64, struct_, member_ ram_gib_hour_micro),         \
        FIELD("gpu_hour_microcredits", JSON_I64, struct_, member_ gpu_hour_micro),                 \
        FIELD("disk_gib_hour_microcredits", JSON_I64, struct_, member_ disk_gib_hour_micro)

static const struct json_field price_fields[] = {PRICE_FIELDS(api_price, )};
static const struct json_schema price_schema =
    JSON_SCHEMA_LENIENT("price", price_fields, struct api_price);

static const struct json_field price_slot_fields[] = {
    NEEDED("slot", JSON_TEXT, api_price_slot, slot),
    FIELD("state", JSON_TEXT, api_price_slot, state),
    PRICE_FIELDS(api_price_slot, price.),
};
static const struct json_schema price_slot_schema =
    JSON_SCHEMA_LENIENT("slot", price_slot_fields, struct api_price_slot);

static const struct json_field prices_fields[] = {
    PRICE_FIELDS(api_prices, price.),
    FIELD("slot", JSON_TEXT, api_prices, slot),
    FIELD("fee_basis_points", JSON_I64, api_prices, fee_basis_points),
    FIELD("slot_offset_ms", JSON_I64, api_prices, slot_offset_ms),
    LIST("slots", api_prices, slots, &price_slot_schema),
    PART("average_7_days", api_prices, week, &price_schema),
};
const struct json_schema api_prices_schema =
    JSON_SCHEMA_LENIENT("prices", prices_fields, struct api_prices);

static const struct json_field price_part_fields[] = {
    NEEDED("resource", JSON_TEXT, api_price_part, resource),
    {"explanation", JSON_TEXT, offsetof(struct api_price_part, explanation), .is_required = true,
     .size_max = 8 << 10},
};
static const struct json_schema price_part_schema =
    JSON_SCHEMA_LENIENT("resource", price_part_fields, struct api_price_part);

static const struct json_field price_story_fields[] = {
    NEEDED("slot", JSON_TEXT, api_price_story, slot),
    FIELD("state", JSON_TEXT, api_price_story, state),
    LIST("resources", api_price_story, resources, &price_part_schema),
};
const struct json_schema api_price_story_schema =
    JSON_SCHEMA_LENIENT("prices", price_story_fields, struct api_price_story);

static const struct json_field entry_fields[] = {
    NEEDED("id", JSON_U64, api_entry, id),
    FIELD("at_ms", JSON_I64, api_entry, at_ms),
    FIELD("kind", JSON_TEXT, api_entry, kind),
    FIELD("amount_microcredits", JSON_I64, api_entry, amount_micro),
    FIELD("direction", JSON_TEXT, api_entry, direction),
    FIELD("job", JSON_U64, api_entry, job),
    FIELD("job_name", JSON_TEXT, api_entry, job_name),
    FIELD("lease", JSON_U64, api_entry, lease),
    FIELD("machine", JSON_U64, api_entry, machine),
    FIELD("machine_name", JSON_TEXT, api_entry, machine_name),
    FIELD("other_account", JSON_U64, api_entry, other_account),
    FIELD("withheld_microcredits", JSON_I64, api_entry, withheld_micro),
    FIELD("other_account_name", JSON_TEXT, api_entry, other_account_name),
    LONG_TEXT("memo", api_entry, memo),
};
const struct json_schema api_entry_schema =
    JSON_SCHEMA_LENIENT("entry", entry_fields, struct api_entry);

static const struct json_field quote_fields[] = {
    NEEDED("wish_microcredits", JSON_I64, api_quote, wish_micro),
    FIELD("wish_hourly_microcredits", JSON_I64, api_quote, wish_hourly_micro),
    FIELD("can_start", JSON_BOOL, api_quote, can_start),
    LONG_TEXT("reason", api_quote, reason),
    FIELD("is_lacking", JSON_BOOL, api_quote, is_lacking),
    LONG_TEXT("nearest", api_quote, nearest),
    FIELD("expected_start_ms", JSON_I64, api_quote, expected_start_ms),
    FIELD("placed_microcredits", JSON_I64, api_quote, placed_micro),
    FIELD("placed_hourly_microcredits", JSON_I64, api_quote, placed_hourly_micro),
    FIELD("expected_microcredits", JSON_I64, api_quote, expected_micro),
    FIELD("max_run_ms", JSON_I64, api_quote, max_run_ms),
    FIELD("available_microcredits", JSON_I64, api_quote, available_micro),
};
const struct json_schema api_quote_schema =
    JSON_SCHEMA_LENIENT("quote", quote_fields, struct api_quote);

static const struct json_field lease_fields[] = {
    NEEDED("id", JSON_U64, api_lease, id),
    FIELD("machine_name", JSON_TEXT, api_lease, machine_name),
    FIELD("role", JSON_TEXT, api_lease, role),
    FIELD("rank", JSON_U64, api_lease, rank),
    FIELD("state", JSON_TEXT, api_lease, state),
    FIELD("outcome", JSON_TEXT, api_lease, outcome),
    LONG_TEXT("reason", api_lease, reason),
    FIELD("unreachable", JSON_BOOL, api_lease, is_unreachable),
    FIELD("yield", JSON_TEXT, api_lease, yield),
    FIELD("cores_milli", JSON_I64, api_lease, cores_milli),
    FIELD("started_ms", JSON_I64, api_lease, started_ms),
    FIELD("expires_ms", JSON_I64, api_lease, expires_ms),
    FIELD("ticks", JSON_U64, api_lease, ticks),
    FIELD("posted_microcredits", JSON_I64, api_lease, posted_micro),
    FIELD("earned_microcredits", JSON_I64, api_lease, earned_micro),
    FIELD("steps", JSON_U64, api_lease, steps),
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
    FIELD("num_nodes", JSON_U64, api_job, num_nodes),
    FIELD("num_nodes_max", JSON_U64, api_job, num_nodes_max),
    FIELD("worker_count", JSON_U64, api_job, worker_count),
    FIELD("policy", JSON_TEXT, api_job, policy),
    FIELD("model", JSON_TEXT, api_job, model),
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

#define PAGE_FIELDS(schema_)                                                                       \
    {                                                                                              \
        LIST("items", api_page, items, (schema_)),                                                 \
            FIELD("next_cursor", JSON_TEXT, api_page, next_cursor),                                \
    }

static const struct json_field account_page_fields[] = PAGE_FIELDS(&api_account_schema);
const struct json_schema api_account_page_schema =
    JSON_SCHEMA_LENIENT("accounts", account_page_fields, struct api_page);
static const struct json_field token_page_fields[] = PAGE_FIELDS(&api_token_schema);
const struct json_schema api_token_page_schema =
    JSON_SCHEMA_LENIENT("tokens", token_page_fields, struct api_page);
static const struct json_field machine_page_fields[] = PAGE_FIELDS(&api_machine_schema);
const struct json_schema api_machine_page_schema =
    JSON_SCHEMA_LENIENT("machines", machine_page_fields, struct api_page);
static const struct json_field offer_page_fields[] = PAGE_FIELDS(&api_offer_schema);
const struct json_schema api_offer_page_schema =
    JSON_SCHEMA_LENIENT("offers", offer_page_fields, struct api_page);
static const struct json_field sums_fields[] = {
    FIELD("held_microcredits", JSON_I64, api_sums, held_micro),
    FIELD("posted_microcredits", JSON_I64, api_sums, posted_micro),
    FIELD("fee_microcredits", JSON_I64, api_sums, fee_micro),
    FIELD("voided_microcredits", JSON_I64, api_sums, voided_micro),
};
static const struct json_schema sums_schema =
    JSON_SCHEMA_LENIENT("sums", sums_fields, struct api_sums);
static const struct json_field entry_page_fields[] = {
    LIST("items", api_entry_page, page.items, &api_entry_schema),
    FIELD("next_cursor", JSON_TEXT, api_entry_page, page.next_cursor),
    FIELD("opening_microcredits", JSON_I64, api_entry_page, opening_micro),
    FIELD("closing_microcredits", JSON_I64, api_entry_page, closing_micro),
    {"sums", JSON_OBJECT, offsetof(struct api_entry_page, sums), .schema = &sums_schema},
};
const struct json_schema api_entry_page_schema =
    JSON_SCHEMA_LENIENT("entries", entry_page_fields, struct api_entry_page);
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
    FIELD("rank", JSON_TEXT, api_event, rank),
    FIELD("offset", JSON_U64, api_event, offset),
    {"text", JSON_TEXT, offsetof(struct api_event, text), .size_max = 1 << 20},
};
const struct json_schema api_event_schema =
    JSON_SCHEMA_LENIENT("event", event_fields, struct api_event);

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
