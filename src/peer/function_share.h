/*
 * Function share: how a lease whose work functions do is split between them and its own process,
 * which is the job's worker and has their calls made.
 *
 * The process has a quarter of the memory, within bounds. On the machine of the functions that
 * comes off what they have: both together have the lease and no more. Of functions elsewhere
 * nothing is this machine's, and they have all of the lease. The processes of all leases share a
 * room on their machine then (peer/lent.h), and none has more than half of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct function_share_wish {
    int64_t ram_bytes, cores_milli; /* of the lease */
    uint32_t memory_mb;             /* of a function */
    bool is_elsewhere;
    int64_t room_bytes; /* of functions elsewhere: what all leases' processes have together */
};

struct function_share {
    int64_t own_bytes, own_milli; /* the process's */
    uint32_t count;               /* of functions, at least one */
    uint32_t memory_mb;           /* each; not more than was wished for */
};

struct function_share function_share(const struct function_share_wish *wish);

/* What the process of a lease of so much memory has of such a room. */
int64_t function_share_of_room(int64_t ram_bytes, int64_t room_bytes);
/* The least that any has: a room with less than that left has none left. */
int64_t function_share_least_bytes(void);

/* What is lent so that a lease of all of it has so many functions here, in MB. */
int64_t function_share_lent_mb(uint64_t count, uint64_t memory_mb);
