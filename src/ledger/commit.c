/*
 * To add a kind of entry: its enumerator in ledger.h and name in ledger.c, a ledger_plan_ function
 * in plan.c, and here how it changes copies of what it touches, with a row in the table of rules.
 */
#include "base/assert.h"
#include "ledger/ledger_internal.h"

#include <inttypes.h>
#include <stdlib.h>

static int misfit(const struct ledger_entry *entry, const char *what, struct error *error)
{
    return error_set(error, ERROR_CORRUPT, "entry %" PRIu64 " (%s): %s", entry->sequence,
                     ledger_entry_kind_name(entry->kind), what);
}

/* Copies of what an entry touches; written back only when every check has passed. */
struct change {
    struct ledger_account from;
    struct ledger_account to; /* unused when both are the same */
    struct ledger_hold hold;
    struct ledger_account *from_place; /* where the copies came from */
    struct ledger_account *to_place;
    struct ledger_hold *hold_place; /* NULL: there was none */
    bool is_same;
};

/* ---- What each kind does --------------------------------------------------------------------- */

/* Sums stay in range: all parts of all accounts but mint add up to what mint gave out. */
typedef int compute_function(const struct ledger *ledger, const struct ledger_entry *entry,
                             struct change *change, struct error *error);

static int compute_grant(const struct ledger *ledger, const struct ledger_entry *entry,
                         struct change *change, struct error *error)
{
    if (change->from.id != ledger->mint || change->is_same ||
        entry->granted_micro != entry->amount_micro)
        return misfit(entry, "only mint grants, and only granted credits", error);
    change->from.granted_micro -= entry->amount_micro;
    change->to.granted_micro += entry->amount_micro;
    return 0;
}

static int compute_hold(const struct ledger *ledger, const struct ledger_entry *entry,
                        struct change *change, struct error *error)
{
    const int64_t earned_micro = entry->amount_micro - entry->granted_micro;
    if (!change->is_same || change->from.id == ledger->mint)
        return misfit(entry, "a hold stays within an account", error);
    if (change->from.is_frozen)
        return misfit(entry, "nothing is held while an account is frozen", error);
    change->from.granted_micro -= entry->granted_micro;
    change->from.earned_micro -= earned_micro;
    change->from.held_micro += entry->amount_micro;
    change->hold.granted_micro += entry->granted_micro;
    change->hold.earned_micro += earned_micro;
    return 0;
}

static void take_from_hold(struct change *change, const struct ledger_entry *entry)
{
    change->hold.granted_micro -= entry->granted_micro;
    change->hold.earned_micro -= entry->amount_micro - entry->granted_micro;
    change->from.held_micro -= entry->amount_micro;
}

/* A post, or the operator's fee. */
static int compute_post(const struct ledger *ledger, const struct ledger_entry *entry,
                        struct change *change, struct error *error)
{
    if (entry->to_account == ledger->mint)
        return misfit(entry, "mint cannot earn", error);
    take_from_hold(change, entry);
    struct ledger_account *payee = change->is_same ? &change->from : &change->to;
    const int64_t returned_micro =
        change->is_same && ledger->returns_own ? entry->granted_micro : 0;
    payee->granted_micro += returned_micro;
    payee->earned_micro += entry->amount_micro - returned_micro;
    payee->withheld_micro += entry->withheld_micro;
    if (__builtin_add_overflow(payee->earned_total_micro, entry->amount_micro,
                               &payee->earned_total_micro) ||
        __builtin_add_overflow(change->from.spent_total_micro, entry->amount_micro,
                               &change->from.spent_total_micro))
        return misfit(entry, "a total is too large", error);
    return 0;
}

static int compute_void(const struct ledger *ledger, const struct ledger_entry *entry,
                        struct change *change, struct error *error)
{
    (void)ledger;
    if (!change->is_same)
        return misfit(entry, "a void stays within an account", error);
    take_from_hold(change, entry);
    change->from.granted_micro += entry->granted_micro;
    change->from.earned_micro += entry->amount_micro - entry->granted_micro;
    return 0;
}

static int compute_release(const struct ledger *ledger, const struct ledger_entry *entry,
                           struct change *change, struct error *error)
{
    (void)ledger;
    if (!change->is_same || entry->granted_micro != 0)
        return misfit(entry, "a release stays within an account", error);
    change->from.withheld_micro -= entry->amount_micro;
    return 0;
}

/* And of a refund, which names a lease. */
static int compute_transfer(const struct ledger *ledger, const struct ledger_entry *entry,
                            struct change *change, struct error *error)
{
    if (change->is_same || change->from.id == ledger->mint || change->to.id == ledger->mint)
        return misfit(entry, "a transfer goes from one member to another", error);
    if (entry->granted_micro != 0)
        return misfit(entry, "granted credits cannot be transferred", error);
    if (change->from.is_frozen)
        return misfit(entry, "nothing is transferred from a frozen account", error);
    change->from.earned_micro -= entry->amount_micro;
    change->to.earned_micro += entry->amount_micro;
    return 0;
}

static int compute_reclaim(const struct ledger *ledger, const struct ledger_entry *entry,
                           struct change *change, struct error *error)
{
    if (change->is_same || change->to.id != ledger->mint)
        return misfit(entry, "a reclaim goes to mint", error);
    if (change->from.is_frozen)
        return misfit(entry, "nothing is reclaimed from a frozen account", error);
    change->from.granted_micro -= entry->granted_micro;
    change->from.earned_micro -= entry->amount_micro - entry->granted_micro;
    change->from.withheld_micro -= entry->withheld_micro;
    change->to.granted_micro += entry->amount_micro;
    return 0;
}

/* What is brought in for a bill outside, and then the bill. */
static int compute_fund(const struct ledger *ledger, const struct ledger_entry *entry,
                        struct change *change, struct error *error)
{
    if (change->from.id != ledger->mint || change->is_same || entry->granted_micro != 0)
        return misfit(entry, "only mint stands for what is outside", error);
    change->from.granted_micro -= entry->amount_micro;
    change->to.earned_micro += entry->amount_micro;
    return 0;
}

static int compute_cost(const struct ledger *ledger, const struct ledger_entry *entry,
                        struct change *change, struct error *error)
{
    if (change->to.id != ledger->mint || change->is_same || entry->granted_micro != 0)
        return misfit(entry, "a cost goes to mint", error);
    change->from.earned_micro -= entry->amount_micro;
    change->to.granted_micro += entry->amount_micro;
    return 0;
}

static const struct rule {
    compute_function *compute;
    bool uses_hold;
    bool may_withhold;
} rules[LEDGER_ENTRY_KIND_COUNT] = {
    [LEDGER_ENTRY_GRANT] = {compute_grant},
    [LEDGER_ENTRY_HOLD] = {compute_hold, .uses_hold = true},
    [LEDGER_ENTRY_POST] = {compute_post, .uses_hold = true, .may_withhold = true},
    [LEDGER_ENTRY_FEE] = {compute_post, .uses_hold = true},
    [LEDGER_ENTRY_VOID] = {compute_void, .uses_hold = true},
    [LEDGER_ENTRY_RELEASE] = {compute_release},
    [LEDGER_ENTRY_TRANSFER] = {compute_transfer},
    [LEDGER_ENTRY_RECLAIM] = {compute_reclaim, .may_withhold = true},
    [LEDGER_ENTRY_REFUND] = {compute_transfer},
    [LEDGER_ENTRY_FUND] = {compute_fund},
    [LEDGER_ENTRY_COST] = {compute_cost},
};

/* ---- Committing ------------------------------------------------------------------------------ */

static int check_amounts(const struct ledger_entry *entry, struct error *error)
{
    if (entry->amount_micro <= 0 || entry->amount_micro > LEDGER_SUPPLY_MAX ||
        entry->granted_micro < 0 || entry->granted_micro > entry->amount_micro ||
        entry->withheld_micro < 0 || entry->withheld_micro > entry->amount_micro ||
        (entry->withheld_micro > 0 && !rules[entry->kind].may_withhold))
        return misfit(entry, "amounts out of range", error);
    return 0;
}

static int begin_change(const struct ledger *ledger, const struct ledger_entry *entry,
                        struct change *out_change, struct error *error)
{
    if (entry->kind >= LEDGER_ENTRY_KIND_COUNT)
        return error_set(error, ERROR_CORRUPT, "an entry of an unknown kind");
    struct ledger_account *from = map_get(&ledger->accounts, entry->from_account);
    struct ledger_account *to = entry->to_account == entry->from_account
                                    ? from
                                    : map_get(&ledger->accounts, entry->to_account);
    if (entry->sequence != ledger->entry_count + 1 || !from || !to || from->is_closed ||
        to->is_closed)
        return misfit(entry, "out of order, or between accounts that are not there", error);
    if (check_amounts(entry, error) < 0)
        return -1;
    const bool uses_hold = rules[entry->kind].uses_hold;
    if (uses_hold != (entry->job != 0))
        return misfit(entry, "a job is named if and only if a hold is used", error);
    struct ledger_hold *hold = uses_hold ? map_get(&ledger->holds, entry->job) : NULL;
    if (uses_hold && (hold ? hold->account != from->id : entry->kind != LEDGER_ENTRY_HOLD))
        return misfit(entry, "no such hold", error);
    *out_change = (struct change){
        .from = *from,
        .to = *to,
        .hold = hold ? *hold : (struct ledger_hold){.job = entry->job, .account = from->id},
        .from_place = from,
        .to_place = to,
        .hold_place = hold,
        .is_same = from == to};
    return 0;
}

static int64_t touched_micro(const struct change *change)
{
    return ledger_balance_micro(&change->from) +
           (change->is_same ? 0 : ledger_balance_micro(&change->to));
}

static void write_change(struct ledger *ledger, const struct change *change)
{
    *change->from_place = change->from;
    if (!change->is_same)
        *change->to_place = change->to;
    if (change->hold.job == 0)
        return;
    if (ledger_hold_micro(&change->hold) == 0)
        free(map_remove(&ledger->holds, change->hold.job));
    else if (change->hold_place)
        *change->hold_place = change->hold;
    else
        ledger_add_hold(ledger, &change->hold);
}

int ledger_commit(struct ledger *ledger, const struct ledger_entry *entry, struct error *error)
{
    struct change change;
    if (begin_change(ledger, entry, &change, error) < 0)
        return -1;
    const int64_t before_micro = touched_micro(&change);
    if (rules[entry->kind].compute(ledger, entry, &change, error) < 0)
        return -1;
    if (!ledger_parts_are_sound(ledger, &change.from) ||
        (!change.is_same && !ledger_parts_are_sound(ledger, &change.to)) ||
        change.hold.granted_micro < 0 || change.hold.earned_micro < 0)
        return misfit(entry, "more than there is", error);
    ASSERT(touched_micro(&change) == before_micro);
    write_change(ledger, &change);
    ledger->entry_count++;
    return 0;
}
