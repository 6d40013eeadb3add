/*
 * Bench of many lenders: machines that enrol, link, beat and take leases as `souk lend` does, all
 * from one process; only that nothing runs under their leases.
 *
 * Each has its own key, link and enrolment. A lease is verified, told as running, and metered tick
 * by tick with a line of log and a signature, until the market stops it. On demand it reports as
 * one that trains does, as often as asked (bench_reports.h).
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct bench_lenders_options {
    const char *state_dir; /* for their keys; a folder of its own, of mode 0700 */
    const char *server_url;
    const char *fingerprint; /* NULL: not pinned */
    uint64_t lender_count;
    int64_t cores_milli, ram_bytes, disk_bytes; /* each lends so much, whatever this machine has */
    uint64_t reports_per_second;                /* of each lease, at most 1000; 0: none */
    /* An enrolment code for the next one, which lives until the next call. */
    int (*new_code)(void *context, const char **out_code, struct error *error);
    /* All are linked. */
    void (*on_ready)(void *context);
    void *context;
};

struct bench_lenders_result {
    uint64_t heartbeats, leases, meters, pings, reports;
};

/* Until SIGTERM or SIGINT; fails when a link breaks. */
MUST_CHECK int bench_lenders_run(const struct bench_lenders_options *options,
                                 struct bench_lenders_result *out_result, struct error *error);
