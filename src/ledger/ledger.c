#include "ledger/ledger.h"

#include "base/assert.h"
#include "ledger/ledger_internal.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *const kind_names[LEDGER_ENTRY_KIND_COUNT] = {
    [LEDGER_ENTRY_GRANT] = "grant",       [LEDGER_ENTRY_HOLD] = "hold",
    [LEDGER_ENTRY_POST] = "post",         [LEDGER_ENTRY_FEE] = "fee",
    [LEDGER_ENTRY_VOID] = "void",         [LEDGER_ENTRY_RELEASE] = "release",
    [LEDGER_ENTRY_TRANSFER] = "transfer", [LEDGER_ENTRY_RECLAIM] = "reclaim",
    [LEDGER_ENTRY_REFUND] = "refund",     [LEDGER_ENTRY_FUND] = "fund",
    [LEDGER_ENTRY_COST] = "cost",
};

const char *ledger_entry_kind_name(enum ledger_entry_kind kind)
{
    ASSERT(kind < LEDGER_ENTRY_KIND_COUNT);
    return kind_names[kind];
}

void ledger_return_own(struct ledger *ledger)
{
    ledger->returns_own = true;
}

bool ledger_returns_own(const struct ledger *ledger)
{
    return ledger->returns_own;
}

struct ledger *ledger_new(uint64_t mint_account, uint64_t operator_account)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    ASSERT(ledger && mint_account != operator_account);
    ledger->mint = mint_account;
    ledger->operator_account = operator_account;
    struct error error;
    ASSERT(ledger_open_account(ledger, mint_account, &error) == 0);
    ASSERT(ledger_open_account(ledger, operator_account, &error) == 0);
    return ledger;
}

void ledger_free(struct ledger *ledger)
{
    if (!ledger)
        return;
    for (size_t i = 0; i < ledger->accounts.count; i++)
        free(ledger->accounts.entries[i].value);
    for (size_t i = 0; i < ledger->holds.count; i++)
        free(ledger->holds.entries[i].value);
    map_done(&ledger->accounts);
    map_done(&ledger->holds);
    free(ledger);
}

int ledger_open_account(struct ledger *ledger, uint64_t account, struct error *error)
{
    if (map_get(&ledger->accounts, account))
        return error_set(error, ERROR_CONFLICT, "account %" PRIu64 " is open already", account);
    struct ledger_account *opened = calloc(1, sizeof(*opened));
    ASSERT(opened);
    opened->id = account;
    map_put(&ledger->accounts, account, opened);
    return 0;
}

static int find_member(struct ledger *ledger, uint64_t account, struct ledger_account **out_account,
                       struct error *error)
{
    struct ledger_account *found = map_get(&ledger->accounts, account);
    if (!found)
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " does not exist", account);
    if (account == ledger->mint || account == ledger->operator_account)
        return error_set(error, ERROR_INVALID, "account %" PRIu64 " is the market's own", account);
    if (found->is_closed)
        return error_set(error, ERROR_CONFLICT, "account %" PRIu64 " is closed", account);
    *out_account = found;
    return 0;
}

int ledger_set_frozen(struct ledger *ledger, uint64_t account, bool is_frozen, struct error *error)
{
    struct ledger_account *found;
    if (find_member(ledger, account, &found, error) < 0)
        return -1;
    if (found->is_frozen == is_frozen)
        return error_set(error, ERROR_CONFLICT, "account %" PRIu64 " is %s", account,
                         is_frozen ? "frozen already" : "not frozen");
    found->is_frozen = is_frozen;
    return 0;
}

int ledger_close_account(struct ledger *ledger, uint64_t account, struct error *error)
{
    struct ledger_account *found;
    if (find_member(ledger, account, &found, error) < 0)
        return -1;
    if (ledger_balance_micro(found) != 0)
        return error_set(error, ERROR_CONFLICT,
                         "account %" PRIu64 " still has %" PRId64 " microcredits, %" PRId64
                         " of them held",
                         account, ledger_balance_micro(found), found->held_micro);
    found->is_frozen = false;
    found->is_closed = true;
    return 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

const struct ledger_account *ledger_account(const struct ledger *ledger, uint64_t account)
{
    return map_get(&ledger->accounts, account);
}

const struct ledger_hold *ledger_hold(const struct ledger *ledger, uint64_t job)
{
    return map_get(&ledger->holds, job);
}

int64_t ledger_balance_micro(const struct ledger_account *account)
{
    return account->granted_micro + account->earned_micro + account->held_micro;
}

int64_t ledger_available_micro(const struct ledger_account *account)
{
    return account->granted_micro + account->earned_micro - account->withheld_micro;
}

int64_t ledger_holdable_micro(const struct ledger_account *account)
{
    return account->is_frozen || account->is_closed ? 0 : ledger_available_micro(account);
}

int64_t ledger_transferable_micro(const struct ledger_account *account)
{
    return account->is_frozen || account->is_closed
               ? 0
               : account->earned_micro - account->withheld_micro;
}

int64_t ledger_hold_micro(const struct ledger_hold *hold)
{
    return hold ? hold->granted_micro + hold->earned_micro : 0;
}

size_t ledger_account_count(const struct ledger *ledger)
{
    return ledger->accounts.count;
}

const struct ledger_account *ledger_account_at(const struct ledger *ledger, size_t index)
{
    ASSERT(index < ledger->accounts.count);
    return ledger->accounts.entries[index].value;
}

size_t ledger_hold_count(const struct ledger *ledger)
{
    return ledger->holds.count;
}

const struct ledger_hold *ledger_hold_at(const struct ledger *ledger, size_t index)
{
    ASSERT(index < ledger->holds.count);
    return ledger->holds.entries[index].value;
}

uint64_t ledger_entry_count(const struct ledger *ledger)
{
    return ledger->entry_count;
}

int64_t ledger_sum_micro(const struct ledger *ledger)
{
    __int128 sum = 0;
    for (size_t i = 0; i < ledger->accounts.count; i++)
        sum += ledger_balance_micro(ledger->accounts.entries[i].value);
    ASSERT(sum >= INT64_MIN && sum <= INT64_MAX);
    return (int64_t)sum;
}

bool ledger_parts_are_sound(const struct ledger *ledger, const struct ledger_account *account)
{
    const int64_t granted_min = account->id == ledger->mint ? -LEDGER_SUPPLY_MAX : 0;
    const bool is_own = account->id == ledger->mint || account->id == ledger->operator_account;
    if (is_own && (account->is_frozen || account->is_closed))
        return false;
    return account->granted_micro >= granted_min && account->granted_micro <= LEDGER_SUPPLY_MAX &&
           account->earned_micro >= 0 && account->earned_micro <= LEDGER_SUPPLY_MAX &&
           account->held_micro <= LEDGER_SUPPLY_MAX && account->withheld_micro >= 0 &&
           account->withheld_micro <= account->earned_micro && account->held_micro >= 0 &&
           !(account->is_closed && (account->is_frozen || ledger_balance_micro(account) != 0));
}

void ledger_add_hold(struct ledger *ledger, const struct ledger_hold *hold)
{
    struct ledger_hold *added = malloc(sizeof(*added));
    ASSERT(added);
    *added = *hold;
    map_put(&ledger->holds, hold->job, added);
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

int ledger_restore_account(struct ledger *ledger, const struct ledger_account *account,
                           struct error *error)
{
    if (!ledger_parts_are_sound(ledger, account))
        return error_set(error, ERROR_CORRUPT, "account %" PRIu64 " has impossible parts",
                         account->id);
    struct ledger_account *restored = map_get(&ledger->accounts, account->id);
    if (!restored) {
        restored = calloc(1, sizeof(*restored));
        ASSERT(restored);
        map_put(&ledger->accounts, account->id, restored);
    }
    *restored = *account;
    return 0;
}

int ledger_restore_hold(struct ledger *ledger, const struct ledger_hold *hold, struct error *error)
{
    if (hold->job == 0 || map_get(&ledger->holds, hold->job) || hold->granted_micro < 0 ||
        hold->earned_micro < 0 || !ledger_account(ledger, hold->account) ||
        hold->earned_micro > INT64_MAX - hold->granted_micro || ledger_hold_micro(hold) == 0)
        return error_set(error, ERROR_CORRUPT, "the hold of job %" PRIu64 " cannot be", hold->job);
    ledger_add_hold(ledger, hold);
    return 0;
}

void ledger_restore_entry_count(struct ledger *ledger, uint64_t entry_count)
{
    ledger->entry_count = entry_count;
}

/* CORRUPT unless each account's held part is what the holds on it come to. */
static int check_holds(const struct ledger *ledger, struct error *error)
{
    struct map rests; /* account -> what of its held part no hold has explained yet */
    map_init(&rests);
    int64_t *values = calloc(ledger->accounts.count + 1, sizeof(*values));
    ASSERT(values);
    for (size_t i = 0; i < ledger->accounts.count; i++) {
        const struct ledger_account *account = ledger->accounts.entries[i].value;
        values[i] = account->held_micro;
        map_put(&rests, account->id, &values[i]);
    }
    bool is_sound = true;
    for (size_t i = 0; i < ledger->holds.count && is_sound; i++) {
        const struct ledger_hold *hold = ledger->holds.entries[i].value;
        int64_t *rest = map_get(&rests, hold->account);
        is_sound = rest && *rest >= ledger_hold_micro(hold);
        if (is_sound)
            *rest -= ledger_hold_micro(hold);
    }
    for (size_t i = 0; i < ledger->accounts.count && is_sound; i++)
        is_sound = values[i] == 0;
    map_done(&rests);
    free(values);
    return is_sound
               ? 0
               : error_set(error, ERROR_CORRUPT, "the holds differ from what the accounts hold");
}

int ledger_check(const struct ledger *ledger, struct error *error)
{
    __int128 sum = 0;
    for (size_t i = 0; i < ledger->accounts.count; i++) {
        const struct ledger_account *account = ledger->accounts.entries[i].value;
        if (!ledger_parts_are_sound(ledger, account))
            return error_set(error, ERROR_CORRUPT, "account %" PRIu64 " has impossible parts",
                             account->id);
        sum += ledger_balance_micro(account);
    }
    if (sum != 0)
        return error_set(error, ERROR_CORRUPT, "the accounts do not sum to zero");
    return check_holds(ledger, error);
}
