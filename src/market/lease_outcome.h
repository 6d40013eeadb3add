/*
 * Lease outcome: how a lease ended.
 */
#pragma once

enum lease_outcome {
    LEASE_OUTCOME_NONE, /* not ended */
    LEASE_OUTCOME_SUCCEEDED,
    LEASE_OUTCOME_FAILED,
    LEASE_OUTCOME_STOPPED,   /* because the market asked */
    LEASE_OUTCOME_LOST,      /* the machine was gone too long, or never started it */
    LEASE_OUTCOME_RECLAIMED, /* its owner took the machine back */
    LEASE_OUTCOME_PREEMPTED, /* of spare time: one who pays needed the machine */
    LEASE_OUTCOME_FAULTY, /* what it sent was garbage: others of its job computed the same anew */
    LEASE_OUTCOME_COUNT,
};

const char *lease_outcome_name(enum lease_outcome outcome);
