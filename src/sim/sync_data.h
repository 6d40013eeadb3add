/*
 * Sync data: the records a simulated training learns from and is measured on.
 *
 * Training records are shuffled by the seed and dealt out evenly, one shard to each machine. With a
 * skew of s each shard takes that share of its records from a pool sorted by label: at 1 a machine
 * sees one or two classes only. Measured are two fixed parts of the test records: one gives the
 * curve and the target, the other answers the policy.
 *
 * Read-only once it is open: threads share it.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "train/dataset.h"

#include <stdint.h>

enum { SYNC_CURVE_RECORDS = 1000, SYNC_POLICY_RECORDS = 1000 };

struct sync_data_options {
    const struct dataset *train, *test; /* borrowed */
    uint32_t shard_count;
    uint64_t seed;
    double skew; /* 0 to 1 */
};

struct sync_range {
    uint32_t first, count;
};

struct sync_data {
    const struct dataset *train, *test;
    uint32_t *records;         /* [train's count] */
    struct sync_range *shards; /* of `records`, [shard_count] */
    uint32_t shard_count;
    struct sync_range curve, policy; /* of test's records */
};

/* INVALID when there are fewer records than shards, or too few to measure on. */
MUST_CHECK int sync_data_open(const struct sync_data_options *options, struct sync_data **out_data,
                              struct error *error);
void sync_data_free(struct sync_data *data); /* NULL is fine */
DEFINE_AUTO(sync_data);
