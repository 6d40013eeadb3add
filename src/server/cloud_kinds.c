#include "server/cloud_kinds.h"

#include "market/price.h"

#include <math.h>

enum {
    SPEED_MILLI = 1000,
    CORES_MILLI_PER_VCPU = 500, /* two threads share a core */
    INSTANCES_MAX = 64,
    FUNCTIONS_MAX = 256,
    FUNCTION_SIZES = 3,
};
/* What a vCPU of a usual machine costs an hour, against the cold price of a core. */
#define USD_MICRO_PER_CORE_HOUR INT64_C(48000)

static const double rtt_s = 0.02, instance_start_s = 60, function_start_s = 3;
static const double function_bytes_per_s = 40e6, function_lifetime_s = 900;
static const double hours_per_month = 720;

int64_t cloud_kinds_micro_per_usd(void)
{
    return price_cold_start().core_micro * 1000000 / USD_MICRO_PER_CORE_HOUR;
}

int64_t cloud_kinds_credits_micro(int64_t usd_micro, int64_t micro_per_usd)
{
    const __int128 credits = ((__int128)usd_micro * micro_per_usd + 999999) / 1000000;
    return credits < PRICE_MICRO_MAX ? (int64_t)credits : PRICE_MICRO_MAX;
}

/* Of a band of how many in a hundred are taken back within a month: the middle, as a rate. */
static double losses_per_hour(const struct catalogue_type *type)
{
    const double share =
        (double)(type->interruption_percent_min + type->interruption_percent_max) / 200;
    return -log1p(-fmin(share, 0.99)) / hours_per_month;
}

bool cloud_kinds_is_gpu(const char *gpu, struct text model)
{
    return model.size == 0 || (strncmp(gpu, model.data, model.size) == 0 &&
                               (gpu[model.size] == '\0' || gpu[model.size] == '-'));
}

static bool suits(const struct catalogue_type *type, const struct cloud_kinds_wish *wish)
{
    return type->vcpus > 0 && type->memory_mib << 20 >= wish->memory_bytes;
}

static struct candidate instance_of(const struct catalogue_type *type,
                                    const struct cloud_kinds_wish *wish, bool is_spot)
{
    const int64_t usd_micro =
        is_spot ? (type->spot_usd_micro_per_hour_min + type->spot_usd_micro_per_hour_max) / 2
                : type->usd_micro_per_hour;
    return (struct candidate){
        .name = type->name,
        .source = is_spot ? CANDIDATE_SPOT : CANDIDATE_ON_DEMAND,
        .speed_weight = SPEED_MILLI,
        .cores_milli = (uint32_t)(type->vcpus * CORES_MILLI_PER_VCPU),
        .price_micro_per_hour = cloud_kinds_credits_micro(usd_micro, wish->micro_per_usd),
        .count_max = INSTANCES_MAX,
        .bytes_per_s = 125e3 * (double)type->bandwidth_mbps,
        .rtt_s = rtt_s,
        .start_s = instance_start_s,
        .losses_per_hour = is_spot ? losses_per_hour(type) : 0,
    };
}

/* A core's worth of memory, twice that, and all there is. */
static size_t functions_of(struct arena *arena, const struct catalogue_function *function,
                           const struct cloud_kinds_wish *wish, struct candidate *out)
{
    const int64_t core_mib = function->memory_mib_per_vcpu;
    const int64_t sizes[FUNCTION_SIZES] = {core_mib, 2 * core_mib, function->memory_mib_max};
    const double usd_per_gib_s = (double)function->usd_micro_per_million_gib_s / 1e6;
    size_t count = 0;
    for (int i = 0; i < FUNCTION_SIZES; i++) {
        if (sizes[i] <= 0 || sizes[i] > function->memory_mib_max ||
            sizes[i] << 20 < wish->memory_bytes || (i > 0 && sizes[i] == sizes[i - 1]))
            continue;
        out[count++] = candidate_of_function(&(struct candidate_function){
            .name = arena_format(arena, "%s-%lldMiB", function->name, (long long)sizes[i]),
            .memory_mb = (uint32_t)sizes[i],
            .speed_weight = SPEED_MILLI / 2, /* of a virtual processor */
            .price_micro_per_gb_s = usd_per_gib_s * (double)wish->micro_per_usd / 1e6,
            .lifetime_s = function_lifetime_s,
            .start_s = function_start_s,
            .bytes_per_s = function_bytes_per_s,
            .rtt_s = rtt_s,
            .concurrent_max = FUNCTIONS_MAX});
    }
    return count;
}

static struct text region_of(const struct catalogue *catalogue, struct text wished)
{
    if (wished.size)
        return wished;
    if (catalogue_type_count(catalogue))
        return text_of(catalogue_type_at(catalogue, 0)->region);
    return catalogue_function_count(catalogue)
               ? text_of(catalogue_function_at(catalogue, 0)->region)
               : TEXT("");
}

size_t cloud_kinds(struct arena *arena, const struct catalogue *catalogue,
                   const struct cloud_kinds_wish *wish, struct candidate **out_candidates)
{
    const size_t types = catalogue_type_count(catalogue),
                 functions = catalogue_function_count(catalogue);
    struct candidate *candidates =
        arena_alloc(arena, (2 * types + FUNCTION_SIZES * functions + 1) * sizeof(*candidates));
    const struct text region = region_of(catalogue, wish->region);
    size_t count = 0;
    for (size_t i = 0; i < types; i++) {
        const struct catalogue_type *type = catalogue_type_at(catalogue, i);
        if (!text_is(region, type->region) || !suits(type, wish))
            continue;
        if (wish->wants_on_demand && type->usd_micro_per_hour > 0)
            candidates[count++] = instance_of(type, wish, false);
        if (wish->wants_spot && type->spot_usd_micro_per_hour_max > 0)
            candidates[count++] = instance_of(type, wish, true);
    }
    for (size_t i = 0; i < functions && wish->wants_functions; i++) {
        const struct catalogue_function *function = catalogue_function_at(catalogue, i);
        if (text_is(region, function->region) && function->architecture == CLOUD_X86_64)
            count += functions_of(arena, function, wish, &candidates[count]);
    }
    *out_candidates = candidates;
    return count;
}
