/*
 * Leases that were faulty: by whose word, and all they were paid goes back to the borrower, the
 * lender's part as far as the lender has it still, and the operator's fee.
 *
 * Whoever has two workers in a job could name a third with them. So two leases have to agree that
 * are of different lenders, neither of them the accused's; and a parameter server of somebody else
 * than the market may be its borrower's own, so by its word nobody pays back. It is the one that
 * said so which counts: another may lead the job by now.
 */
#include "core/core_internal.h"

#include <inttypes.h>

/* The payee of a lease of that role beside the accused's; 0: there is no such lease. */
static uint64_t payee_of(const struct core *core, const struct lease *accused, enum lease_role role,
                         uint64_t id)
{
    const struct lease *lease = core_lease(core, id);
    return lease && lease->job == accused->job && lease->role == role ? lease->payee : 0;
}

bool fault_is_proven(const struct core *core, const struct lease *accused, uint64_t accuser,
                     const uint64_t agreeing[2])
{
    const uint64_t first = payee_of(core, accused, LEASE_ROLE_WORKER, agreeing[0]);
    const uint64_t second = payee_of(core, accused, LEASE_ROLE_WORKER, agreeing[1]);
    return payee_of(core, accused, LEASE_ROLE_SERVER, accuser) == ACCOUNT_OPERATOR && first > 0 &&
           second > 0 && first != second && first != accused->payee && second != accused->payee;
}

void decide_pay_back(struct decision *decision, const struct lease *lease)
{
    char memo[LEDGER_MEMO_SIZE];
    snprintf(memo, sizeof(memo), "lease %" PRIu64 " was faulty", lease->id);
    decision_emit_due(decision, memo);
}
