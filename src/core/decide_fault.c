/*
 * Leases that were faulty: all they were paid goes back to the borrower, the lender's part as far
 * as the lender has it still, and the operator's fee.
 */
#include "core/core_internal.h"

#include <inttypes.h>

void decide_pay_back(struct decision *decision, const struct lease *lease)
{
    char memo[LEDGER_MEMO_SIZE];
    snprintf(memo, sizeof(memo), "lease %" PRIu64 " was faulty", lease->id);
    decision_emit_due(decision, memo);
}
