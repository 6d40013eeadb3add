#include "recommend/candidate.h"

#include "base/assert.h"

#include <math.h>

/* AWS: a function of so many megabytes has one virtual processor. */
enum { FUNCTION_CORE_MB = 1769, MB_PER_GB = 1024 };

const char *candidate_source_name(enum candidate_source source)
{
    static const char *const names[CANDIDATE_SOURCE_COUNT] = {
        [CANDIDATE_MARKET] = "market",
        [CANDIDATE_ON_DEMAND] = "ec2",
        [CANDIDATE_SPOT] = "ec2-spot",
        [CANDIDATE_FUNCTION] = "function",
    };
    ASSERT(source < CANDIDATE_SOURCE_COUNT);
    return names[source];
}

struct candidate candidate_of_function(const struct candidate_function *function)
{
    const double gb = (double)function->memory_mb / MB_PER_GB;
    const double cores = (double)function->memory_mb / FUNCTION_CORE_MB;
    return (struct candidate){
        .name = function->name,
        .source = CANDIDATE_FUNCTION,
        .speed_weight = function->speed_weight,
        .cores_milli = (uint32_t)llround(fmax(1, 1000 * cores)),
        .price_micro_per_hour = llround(3600 * gb * function->price_micro_per_gb_s),
        .count_max = function->concurrent_max,
        .bytes_per_s = function->bytes_per_s,
        .rtt_s = function->rtt_s,
        .start_s = function->start_s,
        .lifetime_s = function->lifetime_s,
    };
}

uint32_t cluster_plan_workers(const struct cluster_plan *plan)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->part_count; i++)
        count += plan->parts[i].count;
    return count;
}

int64_t cluster_plan_price_micro_per_hour(const struct cluster_plan *plan)
{
    int64_t price = 0;
    for (uint32_t i = 0; i < plan->part_count; i++)
        price += plan->parts[i].candidate->price_micro_per_hour * plan->parts[i].count;
    return price;
}
