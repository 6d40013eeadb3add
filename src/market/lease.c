#include "market/lease.h"

#include "base/assert.h"

#include <inttypes.h>

static const char *const state_names[LEASE_STATE_COUNT] = {
    [LEASE_STATE_OFFERED] = "offered",
    [LEASE_STATE_RUNNING] = "running",
    [LEASE_STATE_ENDED] = "ended",
};

static const char *const outcome_names[LEASE_OUTCOME_COUNT] = {
    [LEASE_OUTCOME_NONE] = "none",           [LEASE_OUTCOME_SUCCEEDED] = "succeeded",
    [LEASE_OUTCOME_FAILED] = "failed",       [LEASE_OUTCOME_STOPPED] = "stopped",
    [LEASE_OUTCOME_LOST] = "lost",           [LEASE_OUTCOME_RECLAIMED] = "reclaimed",
    [LEASE_OUTCOME_PREEMPTED] = "preempted", [LEASE_OUTCOME_FAULTY] = "faulty",
};

static const char *const role_names[LEASE_ROLE_COUNT] = {
    [LEASE_ROLE_WORKER] = "worker",
    [LEASE_ROLE_SERVER] = "server",
};

const char *lease_state_name(enum lease_state state)
{
    ASSERT(state < LEASE_STATE_COUNT);
    return state_names[state];
}

const char *lease_outcome_name(enum lease_outcome outcome)
{
    ASSERT(outcome < LEASE_OUTCOME_COUNT);
    return outcome_names[outcome];
}

const char *lease_role_name(enum lease_role role)
{
    ASSERT(role < LEASE_ROLE_COUNT);
    return role_names[role];
}

const char *lease_reason(const struct lease *lease)
{
    return lease->reason ? lease->reason : "";
}

const char *lease_rank_name(enum lease_role role, uint64_t rank, char out[LEASE_RANK_NAME_SIZE])
{
    if (role == LEASE_ROLE_WORKER)
        snprintf(out, LEASE_RANK_NAME_SIZE, "%" PRIu64, rank);
    else if (rank == 0)
        snprintf(out, LEASE_RANK_NAME_SIZE, "server");
    else
        snprintf(out, LEASE_RANK_NAME_SIZE, "server-%" PRIu64, rank);
    return out;
}

bool lease_is_open(const struct lease *lease)
{
    return lease->state != LEASE_STATE_ENDED;
}

int lease_check_fence(const struct lease *lease, uint64_t fence, struct error *error)
{
    if (lease->fence != fence)
        return error_set(error, ERROR_CONFLICT,
                         "lease %" PRIu64 " is under fence %" PRIu64 ", not %" PRIu64, lease->id,
                         lease->fence, fence);
    if (!lease_is_open(lease))
        return error_set(error, ERROR_CONFLICT, "lease %" PRIu64 " has ended: %s", lease->id,
                         lease_outcome_name(lease->outcome));
    return 0;
}

bool lease_wants_successor(const struct lease *lease)
{
    if (lease->stop_wanted_ms > 0 && !lease->is_reclaimed)
        return false; /* however it stopped then */
    return lease->outcome == LEASE_OUTCOME_LOST || lease->outcome == LEASE_OUTCOME_FAILED ||
           lease->outcome == LEASE_OUTCOME_RECLAIMED || lease->outcome == LEASE_OUTCOME_PREEMPTED ||
           lease->outcome == LEASE_OUTCOME_FAULTY;
}

int64_t lease_billable_ms(const struct lease *lease, int64_t wall_ms, int64_t now_ms)
{
    int64_t billable_ms = wall_ms;
    if (billable_ms > now_ms - lease->started_ms)
        billable_ms = now_ms - lease->started_ms;
    if (billable_ms > lease->max_run_ms)
        billable_ms = lease->max_run_ms;
    return billable_ms < lease->wall_ms ? lease->wall_ms : billable_ms;
}

struct lease_bill lease_bill(const struct lease *lease, int64_t wall_ms)
{
    ASSERT(wall_ms >= lease->wall_ms);
    int64_t bill_micro =
        price_bill_lock_micro(lease->units, lease->lock, lease->started_ms, wall_ms);
    if (bill_micro > lease->quote_micro)
        bill_micro = lease->quote_micro;
    ASSERT(bill_micro >= lease->posted_micro);
    return (struct lease_bill){.bill_micro = bill_micro,
                               .amount_micro = bill_micro - lease->posted_micro,
                               .fee_micro = price_part_micro(bill_micro, lease->fee_basis_points) -
                                            lease->fee_micro};
}

int64_t lease_withholds_micro(const struct lease *lease, const struct machine *machine,
                              const struct lease_bill *bill)
{
    if (!machine->is_unproven)
        return 0;
    const int64_t earned_micro = bill->bill_micro - lease->fee_micro - bill->fee_micro;
    return price_part_micro(earned_micro, lease->withheld_basis_points) - lease->withheld_micro;
}
