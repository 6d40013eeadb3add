#include "ledger/ledger.h"

#include "base/assert.h"
#include "base/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct ledger {
    struct map accounts; /* id -> struct ledger_account, owned */
    struct map holds;    /* job -> struct ledger_hold, owned */
    uint64_t mint;
    uint64_t operator_account;
    uint64_t entry_count;
};

static const char *const kind_names[LEDGER_ENTRY_KIND_COUNT] = {
    [LEDGER_ENTRY_GRANT] = "grant", [LEDGER_ENTRY_HOLD] = "hold",
    [LEDGER_ENTRY_POST] = "post",   [LEDGER_ENTRY_FEE] = "fee",
    [LEDGER_ENTRY_VOID] = "void",   [LEDGER_ENTRY_RELEASE] = "release",
};

const char *ledger_entry_kind_name(enum ledger_entry_kind kind)
{
    ASSERT(kind < LEDGER_ENTRY_KIND_COUNT);
    return kind_names[kind];
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

/* ---- Planning -------------------------------------------------------------------------------- */

static int find_account(const struct ledger *ledger, uint64_t account,
                        const struct ledger_account **out_account, struct error *error)
{
    const struct ledger_account *found = ledger_account(ledger, account);
    if (!found)
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " does not exist", account);
    *out_account = found;
    return 0;
}

static int check_amount(int64_t amount_micro, struct error *error)
{
    if (amount_micro <= 0)
        return error_set(error, ERROR_INVALID, "an amount of %" PRId64 " is not positive",
                         amount_micro);
    return 0;
}

/* Floor of amount x points / 10000. */
static int64_t part_of(int64_t amount_micro, int64_t basis_points)
{
    return (int64_t)((__int128)amount_micro * basis_points / 10000);
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

static bool is_basis_points(int64_t points)
{
    return points >= 0 && points <= 10000;
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
    if (post->payee == ledger->mint || !is_basis_points(post->fee_basis_points) ||
        !is_basis_points(post->withheld_basis_points))
        return error_set(error, ERROR_INVALID,
                         "a post to account %" PRIu64 " with a fee of %" PRId64
                         " basis points cannot be",
                         post->payee, post->fee_basis_points);
    const int64_t fee = part_of(post->amount_micro, post->fee_basis_points);
    const int64_t paid = post->amount_micro - fee;
    const int64_t paid_granted = smaller(paid, hold->granted_micro);
    *out_plan = (struct ledger_plan){0};
    if (paid > 0)
        add_entry(
            ledger, out_plan,
            (struct ledger_entry){.kind = LEDGER_ENTRY_POST,
                                  .from_account = hold->account,
                                  .to_account = post->payee,
                                  .amount_micro = paid,
                                  .granted_micro = paid_granted,
                                  .withheld_micro = part_of(paid, post->withheld_basis_points),
                                  .job = post->job,
                                  .lease = post->lease},
            "tick");
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

/* ---- Committing ------------------------------------------------------------------------------ */

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
    bool is_same;
    bool had_hold;
};

static bool parts_are_sound(const struct ledger_account *account, uint64_t mint)
{
    const int64_t granted_min = account->id == mint ? -LEDGER_SUPPLY_MAX : 0;
    return account->granted_micro >= granted_min && account->granted_micro <= LEDGER_SUPPLY_MAX &&
           account->earned_micro >= 0 && account->earned_micro <= LEDGER_SUPPLY_MAX &&
           account->held_micro <= LEDGER_SUPPLY_MAX && account->withheld_micro >= 0 &&
           account->withheld_micro <= account->earned_micro && account->held_micro >= 0;
}

static void take_from_hold(struct change *change, const struct ledger_entry *entry)
{
    change->hold.granted_micro -= entry->granted_micro;
    change->hold.earned_micro -= entry->amount_micro - entry->granted_micro;
    change->from.held_micro -= entry->amount_micro;
}

static int add_earned(struct change *change, const struct ledger_entry *entry, struct error *error)
{
    struct ledger_account *payee = change->is_same ? &change->from : &change->to;
    payee->earned_micro += entry->amount_micro;
    payee->withheld_micro += entry->withheld_micro;
    if (__builtin_add_overflow(payee->earned_total_micro, entry->amount_micro,
                               &payee->earned_total_micro) ||
        __builtin_add_overflow(change->from.spent_total_micro, entry->amount_micro,
                               &change->from.spent_total_micro))
        return misfit(entry, "a total is too large", error);
    return 0;
}

/* Sums stay in range: all parts of all accounts but mint add up to what mint gave out. */
static int compute_change(const struct ledger *ledger, const struct ledger_entry *entry,
                          struct change *change, struct error *error)
{
    const int64_t rest = entry->amount_micro - entry->granted_micro;
    switch (entry->kind) {
    case LEDGER_ENTRY_GRANT:
        if (entry->from_account != ledger->mint || change->is_same || rest != 0)
            return misfit(entry, "only mint grants, and only granted credits", error);
        change->from.granted_micro -= entry->amount_micro;
        change->to.granted_micro += entry->amount_micro;
        return 0;
    case LEDGER_ENTRY_HOLD:
        if (!change->is_same || change->from.id == ledger->mint)
            return misfit(entry, "a hold stays within an account", error);
        change->from.granted_micro -= entry->granted_micro;
        change->from.earned_micro -= rest;
        change->from.held_micro += entry->amount_micro;
        change->hold.granted_micro += entry->granted_micro;
        change->hold.earned_micro += rest;
        return 0;
    case LEDGER_ENTRY_POST:
    case LEDGER_ENTRY_FEE:
        if (entry->to_account == ledger->mint)
            return misfit(entry, "mint cannot earn", error);
        take_from_hold(change, entry);
        return add_earned(change, entry, error);
    case LEDGER_ENTRY_VOID:
        if (!change->is_same)
            return misfit(entry, "a void stays within an account", error);
        take_from_hold(change, entry);
        change->from.granted_micro += entry->granted_micro;
        change->from.earned_micro += rest;
        return 0;
    case LEDGER_ENTRY_RELEASE:
        if (!change->is_same || entry->granted_micro != 0)
            return misfit(entry, "a release stays within an account", error);
        change->from.withheld_micro -= entry->amount_micro;
        return 0;
    case LEDGER_ENTRY_KIND_COUNT:
        break;
    }
    return error_set(error, ERROR_CORRUPT, "an entry of an unknown kind");
}

static bool uses_hold(enum ledger_entry_kind kind)
{
    return kind != LEDGER_ENTRY_GRANT && kind != LEDGER_ENTRY_RELEASE;
}

static int begin_change(const struct ledger *ledger, const struct ledger_entry *entry,
                        struct change *out_change, struct error *error)
{
    if (entry->kind >= LEDGER_ENTRY_KIND_COUNT)
        return error_set(error, ERROR_CORRUPT, "an entry of an unknown kind");
    const struct ledger_account *from = ledger_account(ledger, entry->from_account);
    const struct ledger_account *to = ledger_account(ledger, entry->to_account);
    if (entry->sequence != ledger->entry_count + 1 || !from || !to)
        return misfit(entry, "out of order, or between accounts that are not there", error);
    if (entry->amount_micro <= 0 || entry->amount_micro > LEDGER_SUPPLY_MAX ||
        entry->granted_micro < 0 || entry->granted_micro > entry->amount_micro ||
        entry->withheld_micro < 0 || entry->withheld_micro > entry->amount_micro ||
        (entry->withheld_micro > 0 && entry->kind != LEDGER_ENTRY_POST))
        return misfit(entry, "amounts out of range", error);
    const struct ledger_hold *hold = ledger_hold(ledger, entry->job);
    if (uses_hold(entry->kind) != (entry->job != 0))
        return misfit(entry, "a job is named if and only if a hold is used", error);
    if (hold ? hold->account != entry->from_account
             : uses_hold(entry->kind) && entry->kind != LEDGER_ENTRY_HOLD)
        return misfit(entry, "no such hold", error);
    *out_change = (struct change){
        .from = *from,
        .to = *to,
        .is_same = from == to,
        .had_hold = hold != NULL,
        .hold = hold ? *hold : (struct ledger_hold){.job = entry->job, .account = from->id}};
    return 0;
}

static int64_t touched_micro(const struct change *change)
{
    return ledger_balance_micro(&change->from) +
           (change->is_same ? 0 : ledger_balance_micro(&change->to));
}

static void write_change(struct ledger *ledger, const struct change *change)
{
    *(struct ledger_account *)map_get(&ledger->accounts, change->from.id) = change->from;
    if (!change->is_same)
        *(struct ledger_account *)map_get(&ledger->accounts, change->to.id) = change->to;
    if (change->hold.job == 0)
        return;
    if (ledger_hold_micro(&change->hold) == 0) {
        free(map_remove(&ledger->holds, change->hold.job));
        return;
    }
    struct ledger_hold *hold = map_get(&ledger->holds, change->hold.job);
    if (!hold) {
        hold = malloc(sizeof(*hold));
        ASSERT(hold);
        map_put(&ledger->holds, change->hold.job, hold);
    }
    *hold = change->hold;
}

int ledger_commit(struct ledger *ledger, const struct ledger_entry *entry, struct error *error)
{
    struct change change;
    if (begin_change(ledger, entry, &change, error) < 0)
        return -1;
    const int64_t before_micro = touched_micro(&change);
    if (compute_change(ledger, entry, &change, error) < 0)
        return -1;
    if (!parts_are_sound(&change.from, ledger->mint) ||
        (!change.is_same && !parts_are_sound(&change.to, ledger->mint)) ||
        change.hold.granted_micro < 0 || change.hold.earned_micro < 0)
        return misfit(entry, "more than there is", error);
    ASSERT(touched_micro(&change) == before_micro);
    write_change(ledger, &change);
    ledger->entry_count++;
    return 0;
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

int ledger_restore_account(struct ledger *ledger, const struct ledger_account *account,
                           struct error *error)
{
    if (!parts_are_sound(account, ledger->mint))
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
    struct ledger_hold *restored = malloc(sizeof(*restored));
    ASSERT(restored);
    *restored = *hold;
    map_put(&ledger->holds, hold->job, restored);
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
        if (!parts_are_sound(account, ledger->mint))
            return error_set(error, ERROR_CORRUPT, "account %" PRIu64 " has impossible parts",
                             account->id);
        sum += ledger_balance_micro(account);
    }
    if (sum != 0)
        return error_set(error, ERROR_CORRUPT, "the accounts do not sum to zero");
    return check_holds(ledger, error);
}
