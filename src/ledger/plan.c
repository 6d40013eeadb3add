#include "ledger/ledger_internal.h"

#include <inttypes.h>
#include <stdio.h>

static int find_account(const struct ledger *ledger, uint64_t account,
                        const struct ledger_account **out_account, struct error *error)
{
    const struct ledger_account *found = ledger_account(ledger, account);
    if (!found)
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " does not exist", account);
    if (found->is_closed)
        return error_set(error, ERROR_CONFLICT, "account %" PRIu64 " is closed", account);
    *out_account = found;
    return 0;
}

static int check_not_frozen(const struct ledger_account *account, struct error *error)
{
    if (account->is_frozen)
        return error_set(error, ERROR_REFUSED,
                         "account %" PRIu64 " is frozen: it keeps its credits, and may not move "
                         "them until the operator lifts this",
                         account->id);
    return 0;
}

static int check_amount(int64_t amount_micro, struct error *error)
{
    if (amount_micro <= 0)
        return error_set(error, ERROR_INVALID, "an amount of %" PRId64 " is not positive",
                         amount_micro);
    return 0;
}

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

static struct ledger_entry *add_entry(const struct ledger *ledger, struct ledger_plan *plan,
                                      struct ledger_entry entry, const char *memo)
{
    struct ledger_entry *added = &plan->entries[plan->entry_count];
    *added = entry;
    added->sequence = ledger->entry_count + ++plan->entry_count;
    snprintf(added->memo, sizeof(added->memo), "%s", memo);
    return added;
}

int ledger_plan_grant(const struct ledger *ledger, uint64_t account, int64_t amount_micro,
                      struct ledger_plan *out_plan, struct error *error)
{
    const struct ledger_account *payee, *mint;
    if (check_amount(amount_micro, error) < 0 || find_account(ledger, account, &payee, error) < 0 ||
        find_account(ledger, ledger->mint, &mint, error) < 0)
        return -1;
    if (account == ledger->mint)
        return error_set(error, ERROR_INVALID, "mint cannot grant to itself");
    if (amount_micro > LEDGER_SUPPLY_MAX + mint->granted_micro)
        return error_set(error, ERROR_EXHAUSTED, "mint has given out all there can be");
    *out_plan = (struct ledger_plan){0};
    add_entry(ledger, out_plan,
              (struct ledger_entry){.kind = LEDGER_ENTRY_GRANT,
                                    .from_account = ledger->mint,
                                    .to_account = account,
                                    .amount_micro = amount_micro,
                                    .granted_micro = amount_micro},
              "grant");
    return 0;
}

int ledger_plan_hold(const struct ledger *ledger, uint64_t account, uint64_t job,
                     int64_t amount_micro, struct ledger_plan *out_plan, struct error *error)
{
    const struct ledger_account *payer;
    if (check_amount(amount_micro, error) < 0 || find_account(ledger, account, &payer, error) < 0)
        return -1;
    const struct ledger_hold *hold = ledger_hold(ledger, job);
    if (job == 0 || account == ledger->mint || (hold && hold->account != account))
        return error_set(error, ERROR_INVALID, "account %" PRIu64 " cannot hold for job %" PRIu64,
                         account, job);
    if (check_not_frozen(payer, error) < 0)
        return -1;
    if (ledger_available_micro(payer) < amount_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "%" PRId64 " microcredits are needed, %" PRId64 " are available",
                         amount_micro, ledger_available_micro(payer));
    *out_plan = (struct ledger_plan){0};
    add_entry(ledger, out_plan,
              (struct ledger_entry){.kind = LEDGER_ENTRY_HOLD,
                                    .from_account = account,
                                    .to_account = account,
                                    .amount_micro = amount_micro,
                                    .granted_micro = smaller(amount_micro, payer->granted_micro),
                                    .job = job},
              "hold");
    return 0;
}

static int find_hold(const struct ledger *ledger, uint64_t job, int64_t amount_micro,
                     const struct ledger_hold **out_hold, struct error *error)
{
    const struct ledger_hold *hold = ledger_hold(ledger, job);
    if (!hold)
        return error_set(error, ERROR_NOT_FOUND, "nothing is held for job %" PRIu64, job);
    if (ledger_hold_micro(hold) < amount_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "%" PRId64 " microcredits are more than the %" PRId64
                         " held for job %" PRIu64,
                         amount_micro, ledger_hold_micro(hold), job);
    *out_hold = hold;
    return 0;
}

int ledger_plan_post(const struct ledger *ledger, const struct ledger_post *post,
                     struct ledger_plan *out_plan, struct error *error)
{
    const struct ledger_account *payee;
    const struct ledger_hold *hold;
    if (check_amount(post->amount_micro, error) < 0 ||
        find_account(ledger, post->payee, &payee, error) < 0 ||
        find_hold(ledger, post->job, post->amount_micro, &hold, error) < 0)
        return -1;
    const int64_t fee = post->fee_micro;
    const int64_t paid = post->amount_micro - fee;
    if (post->payee == ledger->mint || fee < 0 || paid < 0 || post->withheld_micro < 0 ||
        post->withheld_micro > paid)
        return error_set(error, ERROR_INVALID,
                         "a post of %" PRId64 " to account %" PRIu64 " with a fee of %" PRId64
                         ", %" PRId64 " withheld, cannot be",
                         post->amount_micro, post->payee, fee, post->withheld_micro);
    const int64_t paid_granted = smaller(paid, hold->granted_micro);
    const bool comes_back = ledger->returns_own && post->payee == hold->account;
    const int64_t earned_micro = comes_back ? paid - paid_granted : paid;
    *out_plan = (struct ledger_plan){0};
    if (paid > 0)
        add_entry(
            ledger, out_plan,
            (struct ledger_entry){.kind = LEDGER_ENTRY_POST,
                                  .from_account = hold->account,
                                  .to_account = post->payee,
                                  .amount_micro = paid,
                                  .granted_micro = paid_granted,
                                  .withheld_micro = smaller(post->withheld_micro, earned_micro),
                                  .job = post->job,
                                  .lease = post->lease},
            post->memo ? post->memo : "tick");
    if (fee > 0)
        add_entry(
            ledger, out_plan,
            (struct ledger_entry){.kind = LEDGER_ENTRY_FEE,
                                  .from_account = hold->account,
                                  .to_account = ledger->operator_account,
                                  .amount_micro = fee,
                                  .granted_micro = smaller(fee, hold->granted_micro - paid_granted),
                                  .job = post->job,
                                  .lease = post->lease},
            "fee");
    return 0;
}

int ledger_plan_void(const struct ledger *ledger, uint64_t job, int64_t amount_micro,
                     struct ledger_plan *out_plan, struct error *error)
{
    const struct ledger_hold *hold;
    if (check_amount(amount_micro, error) < 0 ||
        find_hold(ledger, job, amount_micro, &hold, error) < 0)
        return -1;
    *out_plan = (struct ledger_plan){0};
    add_entry(ledger, out_plan,
              (struct ledger_entry){.kind = LEDGER_ENTRY_VOID,
                                    .from_account = hold->account,
                                    .to_account = hold->account,
                                    .amount_micro = amount_micro,
                                    .granted_micro =
                                        amount_micro - smaller(amount_micro, hold->earned_micro),
                                    .job = job},
              "void");
    return 0;
}

int ledger_plan_release(const struct ledger *ledger, uint64_t account, int64_t amount_micro,
                        struct ledger_plan *out_plan, struct error *error)
{
    const struct ledger_account *payee;
    if (check_amount(amount_micro, error) < 0 || find_account(ledger, account, &payee, error) < 0)
        return -1;
    if (payee->withheld_micro < amount_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "%" PRId64 " microcredits are more than the %" PRId64 " withheld",
                         amount_micro, payee->withheld_micro);
    *out_plan = (struct ledger_plan){0};
    add_entry(ledger, out_plan,
              (struct ledger_entry){.kind = LEDGER_ENTRY_RELEASE,
                                    .from_account = account,
                                    .to_account = account,
                                    .amount_micro = amount_micro},
              "release");
    return 0;
}

int ledger_plan_transfer(const struct ledger *ledger, uint64_t from_account, uint64_t to_account,
                         int64_t amount_micro, struct ledger_plan *out_plan, struct error *error)
{
    const struct ledger_account *payer, *payee;
    if (check_amount(amount_micro, error) < 0 ||
        find_account(ledger, from_account, &payer, error) < 0 ||
        find_account(ledger, to_account, &payee, error) < 0)
        return -1;
    if (payer == payee || from_account == ledger->mint || to_account == ledger->mint)
        return error_set(error, ERROR_INVALID,
                         "credits cannot be transferred from account %" PRIu64
                         " to account %" PRIu64,
                         from_account, to_account);
    if (check_not_frozen(payer, error) < 0)
        return -1;
    if (ledger_transferable_micro(payer) < amount_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "%" PRId64 " microcredits are more than the %" PRId64
                         " that can be transferred: granted and withheld credits cannot",
                         amount_micro, ledger_transferable_micro(payer));
    *out_plan = (struct ledger_plan){0};
    add_entry(ledger, out_plan,
              (struct ledger_entry){.kind = LEDGER_ENTRY_TRANSFER,
                                    .from_account = from_account,
                                    .to_account = to_account,
                                    .amount_micro = amount_micro},
              "transfer");
    return 0;
}

/* `freed_micro` of it is withheld until the entry before this one. */
static void add_refund(const struct ledger *ledger, struct ledger_plan *plan,
                       struct ledger_entry entry, int64_t owed_micro, int64_t freed_micro)
{
    const struct ledger_account *from = ledger_account(ledger, entry.from_account);
    const struct ledger_account *to = ledger_account(ledger, entry.to_account);
    if (from == to || from->is_frozen || from->is_closed || to->is_closed)
        return;
    entry.kind = LEDGER_ENTRY_REFUND;
    entry.amount_micro = smaller(owed_micro, ledger_transferable_micro(from) + freed_micro);
    if (entry.amount_micro > 0)
        add_entry(ledger, plan, entry, "refund");
}

void ledger_plan_refund(const struct ledger *ledger, const struct ledger_refund *refund,
                        struct ledger_plan *out_plan)
{
    const struct ledger_account *payee = ledger_account(ledger, refund->payee);
    const int64_t freed_micro =
        payee->is_closed ? 0 : smaller(refund->withheld_micro, payee->withheld_micro);
    *out_plan = (struct ledger_plan){0};
    if (freed_micro > 0)
        add_entry(ledger, out_plan,
                  (struct ledger_entry){.kind = LEDGER_ENTRY_RELEASE,
                                        .from_account = refund->payee,
                                        .to_account = refund->payee,
                                        .amount_micro = freed_micro},
                  "release");
    struct ledger_entry entry = {
        .from_account = refund->payee, .to_account = refund->payer, .lease = refund->lease};
    add_refund(ledger, out_plan, entry, refund->amount_micro, freed_micro);
    entry.from_account = ledger->operator_account;
    add_refund(ledger, out_plan, entry, refund->fee_micro, /* freed_micro= */ 0);
}

int ledger_plan_cost(const struct ledger *ledger, uint64_t account, int64_t amount_micro,
                     struct ledger_plan *out_plan, struct error *error)
{
    const struct ledger_account *payer, *mint;
    if (check_amount(amount_micro, error) < 0 || find_account(ledger, account, &payer, error) < 0 ||
        find_account(ledger, ledger->mint, &mint, error) < 0)
        return -1;
    if (account == ledger->mint)
        return error_set(error, ERROR_INVALID, "mint has no costs");
    if (amount_micro > LEDGER_SUPPLY_MAX + mint->granted_micro)
        return error_set(error, ERROR_EXHAUSTED, "mint has given out all there can be");
    *out_plan = (struct ledger_plan){0};
    add_entry(ledger, out_plan,
              (struct ledger_entry){.kind = LEDGER_ENTRY_FUND,
                                    .from_account = ledger->mint,
                                    .to_account = account,
                                    .amount_micro = amount_micro},
              "fund");
    add_entry(ledger, out_plan,
              (struct ledger_entry){.kind = LEDGER_ENTRY_COST,
                                    .from_account = account,
                                    .to_account = ledger->mint,
                                    .amount_micro = amount_micro},
              "cost");
    return 0;
}

int ledger_plan_reclaim(const struct ledger *ledger, uint64_t account, int64_t amount_micro,
                        struct ledger_plan *out_plan, struct error *error)
{
    const struct ledger_account *payer;
    if (find_account(ledger, account, &payer, error) < 0)
        return -1;
    if (account == ledger->mint || account == ledger->operator_account)
        return error_set(error, ERROR_INVALID, "account %" PRIu64 " is the market's own", account);
    if (check_not_frozen(payer, error) < 0)
        return -1;
    const int64_t most_micro = payer->granted_micro + payer->earned_micro;
    const int64_t taken_micro = amount_micro == 0 ? most_micro : amount_micro;
    if (taken_micro < 0 || taken_micro > most_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "%" PRId64 " microcredits cannot be reclaimed where %" PRId64 " are free",
                         amount_micro, most_micro);
    *out_plan = (struct ledger_plan){0};
    if (taken_micro == 0)
        return 0;
    const int64_t spared_micro = most_micro - taken_micro; /* withheld credits go last */
    add_entry(ledger, out_plan,
              (struct ledger_entry){.kind = LEDGER_ENTRY_RECLAIM,
                                    .from_account = account,
                                    .to_account = ledger->mint,
                                    .amount_micro = taken_micro,
                                    .granted_micro = smaller(taken_micro, payer->granted_micro),
                                    .withheld_micro = payer->withheld_micro -
                                                      smaller(spared_micro, payer->withheld_micro)},
              "reclaim");
    return 0;
}
