/*
 * Audit: proves the books of a stopped or running market from its first event.
 *
 * Reads only. The hash chain is verified, every event is replayed through core from nothing, and
 * the result is compared with the newest snapshot and with the query tables; all accounts must sum
 * to zero.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { AUDIT_FINDING_MAX = 32, AUDIT_FINDING_SIZE = 200 };

struct audit_report {
    uint64_t event_count;
    uint64_t account_count;
    uint64_t job_count;
    uint64_t lease_count;
    uint64_t entry_count;
    uint64_t price_count;    /* computed again: one for each resource of each slot that ended */
    uint64_t snapshot_event; /* the newest snapshot holds the events up to this; 0: none */
    int64_t minted_microcredits;
    int64_t sum_microcredits; /* 0 when the books balance */
    char head_hash[65];       /* of the chain's last event, hex */
    bool is_sound;            /* nothing was found */
    uint32_t finding_count;   /* at most AUDIT_FINDING_MAX are kept */
    char findings[AUDIT_FINDING_MAX][AUDIT_FINDING_SIZE];
};

/*
 * 0 when the audit could be done: whether the books are sound is in the report. -1 when the folder
 * or the store cannot be read.
 */
MUST_CHECK int audit_run(const char *data_dir, struct audit_report *out_report,
                         struct error *error);
