#include "market/resources.h"

static bool is_within(int64_t value, int64_t maximum)
{
    return value >= 0 && value <= maximum;
}

bool resources_are_valid(struct resources resources)
{
    return is_within(resources.cores_milli, RESOURCES_CORES_MILLI_MAX) &&
           is_within(resources.ram_bytes, RESOURCES_BYTES_MAX) &&
           is_within(resources.gpus_milli, RESOURCES_GPUS_MILLI_MAX) &&
           is_within(resources.disk_bytes, RESOURCES_BYTES_MAX) &&
           is_within(resources.bandwidth_kbit, RESOURCES_KBIT_MAX);
}

struct resources resources_add(struct resources left, struct resources right)
{
    return (struct resources){.cores_milli = left.cores_milli + right.cores_milli,
                              .ram_bytes = left.ram_bytes + right.ram_bytes,
                              .gpus_milli = left.gpus_milli + right.gpus_milli,
                              .disk_bytes = left.disk_bytes + right.disk_bytes,
                              .bandwidth_kbit = left.bandwidth_kbit + right.bandwidth_kbit};
}

struct resources resources_subtract(struct resources left, struct resources right)
{
    return (struct resources){.cores_milli = left.cores_milli - right.cores_milli,
                              .ram_bytes = left.ram_bytes - right.ram_bytes,
                              .gpus_milli = left.gpus_milli - right.gpus_milli,
                              .disk_bytes = left.disk_bytes - right.disk_bytes,
                              .bandwidth_kbit = left.bandwidth_kbit - right.bandwidth_kbit};
}

bool resources_fit(struct resources wanted, struct resources free)
{
    return wanted.cores_milli <= free.cores_milli && wanted.ram_bytes <= free.ram_bytes &&
           wanted.gpus_milli <= free.gpus_milli && wanted.disk_bytes <= free.disk_bytes &&
           wanted.bandwidth_kbit <= free.bandwidth_kbit;
}

bool resources_equal(struct resources left, struct resources right)
{
    return resources_fit(left, right) && resources_fit(right, left);
}

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

struct resources resources_smaller(struct resources left, struct resources right)
{
    return (struct resources){.cores_milli = smaller(left.cores_milli, right.cores_milli),
                              .ram_bytes = smaller(left.ram_bytes, right.ram_bytes),
                              .gpus_milli = smaller(left.gpus_milli, right.gpus_milli),
                              .disk_bytes = smaller(left.disk_bytes, right.disk_bytes),
                              .bandwidth_kbit = smaller(left.bandwidth_kbit, right.bandwidth_kbit)};
}

struct resources resources_larger(struct resources left, struct resources right)
{
    return resources_subtract(resources_add(left, right), resources_smaller(left, right));
}
