/* What is known of orders and instances, as JSON. */
#include "server/cloud_internal.h"

static void write_member(const struct cloud *cloud, const struct fleet_member *member,
                         struct json_writer *writer)
{
    const struct fleet_candidate *candidate = fleet_member_candidate(cloud->fleet, member);
    const int64_t now_ms = clock_utc_ms(cloud->server->clock);
    json_object_begin(writer);
    json_field_u64(writer, "id", member->id);
    json_field_string(writer, "state", fleet_state_name(member->state));
    json_field_string(writer, "instance", member->instance[0] ? member->instance : NULL);
    json_field_string(writer, "type", candidate->type);
    json_field_string(writer, "zone", candidate->zone[0] ? candidate->zone : NULL);
    json_field_i64(writer, "usd_micro_per_hour", candidate->usd_micro_per_hour);
    json_field_i64(writer, "usd_micro", fleet_member_cost(cloud->fleet, member, now_ms));
    json_field_u64(writer, "machine", member->machine);
    json_field_u64(writer, "leases", member->lease_count);
    json_field_i64(writer, "started_ms", member->asked_ms);
    json_field_i64(writer, "ends_ms", member->ends_ms);
    json_field_i64(writer, "gone_ms", member->gone_ms);
    json_field_string(writer, "reason", member->reason);
    json_object_end(writer);
}

static void write_order(const struct cloud *cloud, const struct fleet_order *order,
                        struct json_writer *writer)
{
    const int64_t now_ms = clock_utc_ms(cloud->server->clock);
    int64_t cost = order->spent_usd_micro;
    json_object_begin(writer);
    json_field_u64(writer, "id", order->id);
    json_field_string(writer, "state",
                      order->is_done       ? "done"
                      : order->is_stopping ? "stopping"
                                           : "running");
    json_field_u64(writer, "count", order->wish.count);
    json_field_bool(writer, "spot", order->wish.is_spot);
    json_field_u64(writer, "job", order->wish.job);
    json_field_u64(writer, "account", order->wish.account);
    json_field_i64(writer, "usd_micro_per_hour_max", order->wish.usd_micro_per_hour_max);
    json_field_i64(writer, "usd_micro_max", order->wish.usd_micro_max);
    json_field_i64(writer, "made_ms", order->made_ms);
    json_field_string(writer, "reason", order->reason);
    json_key(writer, "instances");
    json_array_begin(writer);
    for (size_t i = 0; i < fleet_member_count(cloud->fleet); i++) {
        const struct fleet_member *member = fleet_member_at(cloud->fleet, i);
        if (member->order != order->id)
            continue;
        write_member(cloud, member, writer);
        cost += member->gone_ms ? 0 : fleet_member_cost(cloud->fleet, member, now_ms);
    }
    json_array_end(writer);
    json_field_i64(writer, "usd_micro", cost);
    json_object_end(writer);
}

void cloud_write_order(const struct cloud *cloud, uint64_t order, struct json_writer *writer)
{
    write_order(cloud, fleet_find_order(cloud->fleet, order), writer);
}

static void write_catalogue(const struct cloud *cloud, struct json_writer *writer)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    char notice[CATALOGUE_NOTICE_SIZE];
    struct error error;
    json_key(writer, "catalogue");
    json_object_begin(writer);
    if (catalogue_shelf_take(cloud->server->catalogue, &catalogue, &error) < 0) {
        json_field_string(writer, "date", NULL);
        json_field_string(writer, "notice", error.message);
    } else {
        json_field_string(writer, "date", catalogue_date(catalogue));
        json_field_string(writer, "notice",
                          catalogue_notice(catalogue, clock_utc_ms(cloud->server->clock),
                                           cloud->config.catalogue_age_days_max, notice));
    }
    json_object_end(writer);
}

void cloud_write(const struct cloud *cloud, struct json_writer *writer)
{
    const struct cloud_config *config = &cloud->config;
    json_object_begin(writer);
    json_field_text(writer, "region", config->region);
    json_field_i64(writer, "instances_max", config->instances_max);
    json_field_i64(writer, "usd_micro_per_hour_max", config->usd_micro_per_hour_max);
    json_field_i64(writer, "usd_micro_per_hour", fleet_rate(cloud->fleet));
    json_field_i64(writer, "hours_max", config->hours_max);
    json_field_i64(writer, "credits_micro_per_usd", cloud_credits_micro(cloud, 1000000));
    json_field_bool(writer, "jobs", config->is_for_jobs);
    json_field_i64(writer, "listed_ms", fleet_listed_ms(cloud->fleet));
    json_field_u64(writer, "strays", fleet_stray_count(cloud->fleet));
    json_field_string(writer, "problem",
                      cloud->problem.code == ERROR_NONE ? "" : cloud->problem.message);
    write_catalogue(cloud, writer);
    json_key(writer, "orders");
    json_array_begin(writer);
    for (size_t i = 0; i < fleet_order_count(cloud->fleet); i++)
        write_order(cloud, fleet_order_at(cloud->fleet, i), writer);
    json_array_end(writer);
    json_object_end(writer);
}
