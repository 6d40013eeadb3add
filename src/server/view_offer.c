/* Offers as the API's JSON. */
#include "base/assert.h"
#include "base/schedule.h"
#include "server/view.h"

static const char *const state_names[OFFER_STATE_COUNT] = {
    [OFFER_STATE_NONE] = "none",
    [OFFER_STATE_OPEN] = "open",
    [OFFER_STATE_CLOSED] = "closed",
    [OFFER_STATE_PAUSED] = "paused",
};

const char *view_offer_state_name(enum offer_state state)
{
    ASSERT(state < OFFER_STATE_COUNT);
    return state_names[state];
}

static void field(struct json_writer *writer, const char *key, const struct store_value *row,
                  size_t column)
{
    json_field_i64(writer, key, row[column].integer);
}

static void write_resources(struct json_writer *writer, const struct store_value *row)
{
    field(writer, "cores_milli", row, OFFERS_CORES_MILLI);
    field(writer, "ram_bytes", row, OFFERS_RAM_BYTES);
    field(writer, "gpus_milli", row, OFFERS_GPUS_MILLI);
    json_field_text(writer, "gpu_model", row[OFFERS_GPU_MODEL].bytes);
    field(writer, "gpu_ram_bytes", row, OFFERS_GPU_RAM_BYTES);
    field(writer, "disk_bytes", row, OFFERS_DISK_BYTES);
    field(writer, "bandwidth_kbit", row, OFFERS_BANDWIDTH_KBIT);
    json_key(writer, "roles");
    view_roles(writer, (uint64_t)row[OFFERS_ROLES].integer);
}

static void write_minimum(struct json_writer *writer, const struct store_value *row)
{
    json_key(writer, "minimum");
    json_object_begin(writer);
    field(writer, "core_micro", row, OFFERS_MINIMUM_CORE_MICRO);
    field(writer, "ram_micro", row, OFFERS_MINIMUM_RAM_MICRO);
    field(writer, "gpu_micro", row, OFFERS_MINIMUM_GPU_MICRO);
    field(writer, "disk_micro", row, OFFERS_MINIMUM_DISK_MICRO);
    json_object_end(writer);
}

/* A text for each day from Monday on, a digit for each hour of it. */
static void write_grid(struct json_writer *writer, const struct schedule *schedule)
{
    enum { DAY_HOURS = 24 };
    uint32_t hours[SCHEDULE_GRID_DAYS];
    json_key(writer, "grid");
    if (!schedule || !schedule_to_grid(schedule, hours)) {
        json_null(writer);
        return;
    }
    json_array_begin(writer);
    for (int day = 0; day < SCHEDULE_GRID_DAYS; day++) {
        char digits[DAY_HOURS + 1] = "";
        for (int hour = 0; hour < DAY_HOURS; hour++)
            digits[hour] = hours[day] >> hour & 1 ? '1' : '0';
        json_string(writer, digits);
    }
    json_array_end(writer);
}

/* The owner's words and the zone apart, as they were given. */
static void write_schedule(struct json_writer *writer, struct text words)
{
    struct schedule schedule = {0};
    struct error ignored;
    char text[SCHEDULE_TEXT_SIZE], zone[ZONE_NAME_SIZE];
    if (words.size > 0 && schedule_parse(words, &schedule, &ignored) < 0) {
        json_field_text(writer, "when", words);
        json_field_string(writer, "zone", "");
        write_grid(writer, NULL);
        return;
    }
    memcpy(zone, schedule.zone, sizeof(zone));
    schedule.zone[0] = '\0';
    json_field_string(writer, "when", schedule_format(&schedule, text));
    json_field_string(writer, "zone", zone);
    write_grid(writer, &schedule);
}

static void write_audience(struct json_writer *writer, const struct view_offer *offer)
{
    json_field_string(
        writer, "audience",
        offer_audience_name((enum offer_audience)offer->row[OFFERS_AUDIENCE].integer));
    json_key(writer, "accounts");
    json_array_begin(writer);
    for (size_t i = 0; i < offer->account_count; i++)
        json_text(writer, offer->accounts[i]);
    json_array_end(writer);
    json_field_text(writer, "group", offer->group_name);
}

void view_offer(struct json_writer *writer, const struct view_offer *offer)
{
    const struct store_value *row = offer->row;
    json_object_begin(writer);
    field(writer, "id", row, OFFERS_ID);
    field(writer, "machine", row, OFFERS_MACHINE);
    json_field_text(writer, "machine_name", offer->machine_name);
    json_field_string(writer, "machine_state", machine_state_name(offer->machine_state));
    field(writer, "account", row, OFFERS_OWNER);
    json_field_bool(writer, "is_mine", offer->is_mine);
    json_field_string(writer, "state",
                      view_offer_state_name((enum offer_state)row[OFFERS_STATE].integer));
    field(writer, "state_until_ms", row, OFFERS_TURNS_MS);
    write_resources(writer, row);
    write_minimum(writer, row);
    field(writer, "max_lease_ms", row, OFFERS_MAX_LEASE_MS);
    json_field_bool(writer, "spare", row[OFFERS_SPARE].integer != 0);
    write_schedule(writer, row[OFFERS_SCHEDULE].bytes);
    field(writer, "paused_until_ms", row, OFFERS_PAUSED_UNTIL_MS);
    write_audience(writer, offer);
    json_field_string(writer, "network",
                      offer_network_name((enum offer_network)row[OFFERS_NETWORK].integer));
    json_field_string(writer, "install",
                      offer_install_name((enum offer_install)row[OFFERS_INSTALL].integer));
    json_field_text(writer, "labels", row[OFFERS_LABELS].bytes);
    field(writer, "leased_cores_milli", row, OFFERS_LEASED_CORES_MILLI);
    field(writer, "lease_count", row, OFFERS_LEASE_COUNT);
    json_object_end(writer);
}
