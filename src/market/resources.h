/*
 * Resources: what a machine has, offers and leases out, in the smallest units used anywhere.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct resources {
    int64_t cores_milli; /* real cores, in thousandths */
    int64_t ram_bytes;
    int64_t gpus_milli;
    int64_t disk_bytes;
    int64_t bandwidth_kbit; /* per second; not billed. Of a probe, 0: not known */
};

/* Maxima of one machine or one wish. They keep every product of the bill within 128 bits. */
#define RESOURCES_CORES_MILLI_MAX INT64_C(1000000000)
#define RESOURCES_GPUS_MILLI_MAX  INT64_C(1000000)
#define RESOURCES_BYTES_MAX       (INT64_C(1) << 52)
#define RESOURCES_KBIT_MAX        INT64_C(1000000000)

/* Every part within 0 and its maximum. */
bool resources_are_valid(struct resources resources);
struct resources resources_add(struct resources left, struct resources right);
/* Parts may come out negative: an offer made smaller than what is leased. */
struct resources resources_subtract(struct resources left, struct resources right);
/* Whether `wanted` fits into `free`, part by part. */
bool resources_fit(struct resources wanted, struct resources free);
bool resources_equal(struct resources left, struct resources right);
/* The smaller, or the larger, of each part. */
struct resources resources_smaller(struct resources left, struct resources right);
struct resources resources_larger(struct resources left, struct resources right);
