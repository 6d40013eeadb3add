#include "client/api_internal.h"

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
    FIELD("network", JSON_TEXT, api_share, network),
    FIELD("images", JSON_BOOL, api_share, has_images),
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

static const struct json_field near_fields[] = {
    FIELD("machine_name", JSON_TEXT, api_near, machine_name),
    FIELD("rtt_us", JSON_I64, api_near, rtt_us),
};
static const struct json_schema near_schema =
    JSON_SCHEMA_LENIENT("near", near_fields, struct api_near);

static const struct json_field live_fields[] = {
    FIELD("heard_ms", JSON_I64, api_live, heard_ms),
    FIELD("load_milli", JSON_I64, api_live, load_milli),
    FIELD("free_ram_bytes", JSON_I64, api_live, free_ram_bytes),
    FIELD("temperature_c", JSON_I64, api_live, temperature_c),
    FIELD("power", JSON_TEXT, api_live, power),
    FIELD("battery_percent", JSON_I64, api_live, battery_percent),
    LIST("near", api_live, near, &near_schema),
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

static const struct json_field machine_page_fields[] = PAGE_FIELDS(&api_machine_schema);
const struct json_schema api_machine_page_schema =
    JSON_SCHEMA_LENIENT("machines", machine_page_fields, struct api_page);

static const struct json_field offer_page_fields[] = PAGE_FIELDS(&api_offer_schema);
const struct json_schema api_offer_page_schema =
    JSON_SCHEMA_LENIENT("offers", offer_page_fields, struct api_page);

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
    FIELD("waiting_machines", JSON_I64, api_health, waiting_machines),
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
