/*
 * Commands that move credits outside of jobs.
 */
#include "base/units.h"
#include "core/core_internal.h"

#include <inttypes.h>

static int check_transferable(const struct ledger_account *payer, int64_t amount_micro,
                              struct error *error)
{
    char amount[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];
    if (amount_micro <= 0 || amount_micro <= ledger_transferable_micro(payer))
        return 0; /* the ledger says what else is wrong */
    return error_set(error, ERROR_EXHAUSTED,
                     "%s are more than the %s that can be transferred: granted and withheld "
                     "credits are for jobs",
                     units_format_credits(amount_micro, amount),
                     units_format_credits(ledger_transferable_micro(payer), most));
}

int decide_transfer(struct decision *decision, const struct command *command, struct error *error)
{
    const struct core *core = decision->core;
    const __typeof__(command->transfer) *wanted = &command->transfer;
    if (decide_find_active_account(core, wanted->from, error) < 0 ||
        decide_find_account(core, wanted->to, error) < 0 ||
        name_check_line(wanted->memo, "memo", LEDGER_MEMO_SIZE - 1, error) < 0 ||
        check_transferable(core_balance(core, wanted->from), wanted->amount_micro, error) < 0)
        return -1;
    struct ledger_plan plan;
    if (ledger_plan_transfer(core->ledger, wanted->from, wanted->to, wanted->amount_micro, &plan,
                             error) < 0)
        return -1;
    char memo[LEDGER_MEMO_SIZE];
    decide_copy(wanted->memo, memo, sizeof(memo));
    decision_emit_plan(decision, &plan, wanted->memo.size ? memo : NULL);
    decision->subject = core->sequence;
    return 0;
}

int decide_bill_cost(struct decision *decision, const struct command *command, struct error *error)
{
    const struct core *core = decision->core;
    const __typeof__(command->bill_cost) *wanted = &command->bill_cost;
    const struct machine *machine = wanted->machine ? core_machine(core, wanted->machine) : NULL;
    struct ledger_plan plan;
    if (decide_find_account(core, wanted->account, error) < 0 ||
        name_check_line(wanted->bill, "bill", LEDGER_MEMO_SIZE - 1, error) < 0)
        return -1;
    if (core->settings.economy == ECONOMY_KARMA)
        return error_set(error, ERROR_CONFLICT, "a market of karma has no costs in money");
    if (wanted->usd_micro <= 0)
        return error_set(error, ERROR_INVALID, "a bill of no dollars is none");
    if (wanted->machine && (!machine || machine->owner != wanted->account))
        return error_set(error, ERROR_NOT_FOUND, "the account has no such machine");
    if (ledger_plan_cost(core->ledger, wanted->account, wanted->amount_micro, &plan, error) < 0)
        return -1;
    struct event event = {.kind = EVENT_COST_BILLED,
                          .cost_billed = {.account = wanted->account,
                                          .machine = wanted->machine,
                                          .usd_micro = wanted->usd_micro,
                                          .amount_micro = wanted->amount_micro}};
    decide_copy(wanted->bill, event.cost_billed.bill, sizeof(event.cost_billed.bill));
    decision_emit(decision, &event);
    decision_emit_due(decision, event.cost_billed.bill);
    decision->subject = core->sequence;
    return 0;
}
