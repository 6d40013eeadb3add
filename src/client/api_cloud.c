#include "client/api_internal.h"

static const struct json_field instance_fields[] = {
    NEEDED("id", JSON_U64, api_cloud_instance, id),
    FIELD("state", JSON_TEXT, api_cloud_instance, state),
    FIELD("instance", JSON_TEXT, api_cloud_instance, instance),
    FIELD("type", JSON_TEXT, api_cloud_instance, type),
    FIELD("zone", JSON_TEXT, api_cloud_instance, zone),
    FIELD("usd_micro_per_hour", JSON_I64, api_cloud_instance, usd_micro_per_hour),
    FIELD("usd_micro", JSON_I64, api_cloud_instance, usd_micro),
    FIELD("machine", JSON_U64, api_cloud_instance, machine),
    FIELD("leases", JSON_U64, api_cloud_instance, leases),
    FIELD("ends_ms", JSON_I64, api_cloud_instance, ends_ms),
    LONG_TEXT("reason", api_cloud_instance, reason),
};
static const struct json_schema instance_schema =
    JSON_SCHEMA_LENIENT("instance", instance_fields, struct api_cloud_instance);

static const struct json_field order_fields[] = {
    NEEDED("id", JSON_U64, api_cloud_order, id),
    FIELD("state", JSON_TEXT, api_cloud_order, state),
    FIELD("count", JSON_U64, api_cloud_order, count),
    FIELD("spot", JSON_BOOL, api_cloud_order, is_spot),
    FIELD("job", JSON_U64, api_cloud_order, job),
    FIELD("usd_micro", JSON_I64, api_cloud_order, usd_micro),
    FIELD("usd_micro_max", JSON_I64, api_cloud_order, usd_micro_max),
    FIELD("usd_micro_per_hour_max", JSON_I64, api_cloud_order, usd_micro_per_hour_max),
    LONG_TEXT("reason", api_cloud_order, reason),
    LIST("instances", api_cloud_order, instances, &instance_schema),
};
const struct json_schema api_cloud_order_schema =
    JSON_SCHEMA_LENIENT("order", order_fields, struct api_cloud_order);

static const struct json_field catalogue_fields[] = {
    FIELD("date", JSON_TEXT, api_cloud, catalogue_date),
    LONG_TEXT("notice", api_cloud, catalogue_notice),
};
static const struct json_schema catalogue_schema =
    JSON_SCHEMA_LENIENT("catalogue", catalogue_fields, struct api_cloud);

static const struct json_field cloud_fields[] = {
    FIELD("region", JSON_TEXT, api_cloud, region),
    FIELD("instances_max", JSON_I64, api_cloud, instances_max),
    FIELD("usd_micro_per_hour_max", JSON_I64, api_cloud, usd_micro_per_hour_max),
    FIELD("usd_micro_per_hour", JSON_I64, api_cloud, usd_micro_per_hour),
    FIELD("hours_max", JSON_I64, api_cloud, hours_max),
    FIELD("credits_micro_per_usd", JSON_I64, api_cloud, credits_micro_per_usd),
    FIELD("listed_ms", JSON_I64, api_cloud, listed_ms),
    FIELD("strays", JSON_U64, api_cloud, strays),
    LONG_TEXT("problem", api_cloud, problem),
    {"catalogue", JSON_OBJECT, 0, .schema = &catalogue_schema}, /* into the same struct */
    LIST("orders", api_cloud, orders, &api_cloud_order_schema),
};
const struct json_schema api_cloud_schema =
    JSON_SCHEMA_LENIENT("cloud", cloud_fields, struct api_cloud);
