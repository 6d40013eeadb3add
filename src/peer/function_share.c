#include "peer/function_share.h"

#include "function/host.h"

enum {
    OWN_PART = 4,  /* of the lease's memory */
    ROOM_PART = 2, /* of the room at most */
    OWN_MB_LEAST = 128,
    OWN_MB_MAX = 2048,
    OWN_MILLI_LEAST = 250, /* it works while functions do not: little of it is on top of theirs */
    OWN_MILLI_MAX = 1000,
};

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : least_of(value, most);
}

static int64_t part_of_lease_mb(int64_t ram_mb)
{
    return within(ram_mb / OWN_PART, OWN_MB_LEAST, OWN_MB_MAX);
}

int64_t function_share_of_room(int64_t ram_bytes, int64_t room_bytes)
{
    const int64_t most_mb = within((room_bytes >> 20) / ROOM_PART, OWN_MB_LEAST, OWN_MB_MAX);
    return least_of(part_of_lease_mb(ram_bytes >> 20), most_mb) << 20;
}

int64_t function_share_least_bytes(void)
{
    return (int64_t)OWN_MB_LEAST << 20;
}

struct function_share function_share(const struct function_share_wish *wish)
{
    const int64_t ram_mb = wish->ram_bytes >> 20;
    const int64_t own_mb = wish->is_elsewhere
                               ? function_share_of_room(wish->ram_bytes, wish->room_bytes) >> 20
                               : least_of(part_of_lease_mb(ram_mb), ram_mb);
    /* A lease that is too small for both has a function of the least size all the same. */
    const int64_t left_mb = wish->is_elsewhere ? ram_mb : ram_mb - own_mb;
    const int64_t cores_milli =
        ram_mb > 0 ? (wish->cores_milli + 1) * left_mb / ram_mb : wish->cores_milli;
    const int64_t memory_mb =
        within(wish->is_elsewhere ? wish->memory_mb : left_mb, HOST_MEMORY_MB_MIN, wish->memory_mb);
    /* Shares of a core are whole thousandths: one that is a little short counts. */
    const int64_t by_cores = (cores_milli + 1) * HOST_MB_PER_CORE / 1000 / memory_mb;
    const int64_t count = least_of(left_mb / memory_mb, by_cores);
    return (struct function_share){
        .own_bytes = own_mb << 20,
        .own_milli = least_of(within(wish->cores_milli / OWN_PART, OWN_MILLI_LEAST, OWN_MILLI_MAX),
                              wish->cores_milli),
        .count = (uint32_t)within(count, 1, HOST_CONCURRENCY_MAX),
        .memory_mb = (uint32_t)memory_mb,
    };
}

int64_t function_share_lent_mb(uint64_t count, uint64_t memory_mb)
{
    const int64_t functions_mb = (int64_t)(count * memory_mb);
    return functions_mb +
           within((functions_mb + OWN_PART - 2) / (OWN_PART - 1), OWN_MB_LEAST, OWN_MB_MAX);
}
