/*
 * Leases that were faulty: what they were paid goes back to the borrower.
 *
 * Ticks are posted as work goes on, so a lease that sent garbage has been paid before it is found.
 * All of it is paid back: its lender's part, as far as the lender has it still (what is withheld of
 * a machine that is not proven is taken first), and the operator's fee. No account goes below zero
 * for it.
 */
#include "core/core_internal.h"

#include <inttypes.h>

static void pay(struct decision *decision, uint64_t from, uint64_t to, int64_t owed_micro,
                const char *memo)
{
    const struct ledger *ledger = decision->core->ledger;
    const int64_t has_micro = ledger_transferable_micro(ledger_account(ledger, from));
    const int64_t amount_micro = owed_micro < has_micro ? owed_micro : has_micro;
    struct ledger_plan plan;
    struct error error; /* a borrower that is closed has no open job */
    if (amount_micro > 0 && from != to &&
        ledger_plan_transfer(ledger, from, to, amount_micro, &plan, &error) == 0)
        decision_emit_plan(decision, &plan, memo);
}

void decide_pay_back(struct decision *decision, const struct lease *lease)
{
    const struct job *job = core_job(decision->core, lease->job);
    char memo[LEDGER_MEMO_SIZE];
    snprintf(memo, sizeof(memo), "lease %" PRIu64 " was faulty", lease->id);
    decision_emit_due(decision, memo);
    pay(decision, lease->payee, job->request.account, lease->posted_micro - lease->fee_micro, memo);
    pay(decision, ACCOUNT_OPERATOR, job->request.account, lease->fee_micro, memo);
}
