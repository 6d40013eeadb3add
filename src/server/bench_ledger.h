/*
 * Bench of the ledger: transfers by many clients through the engine onto a real disk, and beside
 * it, in the same minute, what SQLite alone does with the same rows.
 *
 * The clients live on one loop's thread, as the server's do; each keeps so many transfers in
 * flight. CPU is the whole process's (user and system) less that thread's own.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct bench_ledger_options {
    const char *dir; /* on the disk to measure; a folder is made in it and removed */
    uint64_t client_count;
    uint64_t in_flight; /* of each client */
    int64_t round_ms;
    uint64_t round_count;
};

/* Of one round; the command shows the median round of each. */
struct bench_ledger_result {
    uint64_t transfer_count;
    double transfers_per_s;
    double cpu_us_per_transfer;
    double p50_ms, p99_ms; /* from submit to the durable answer */
    double batch_mean;     /* transfers in a commit */
    double raw_transfers_per_s;
    double raw_cpu_us_per_transfer;
    double ratio_to_raw_sqlite;
    double audit_entries_per_s; /* the whole audit of the round's store */
    double audit_cpu_us_per_entry;
};

/* Calls back after each round. */
typedef void bench_ledger_each(void *context, const struct bench_ledger_result *result);
MUST_CHECK int bench_ledger_run(const struct bench_ledger_options *options, bench_ledger_each *each,
                                void *context, struct error *error);
