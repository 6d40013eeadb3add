/*
 * Events about the settings and accounts.
 */
#include "base/memory.h"
#include "core/core_internal.h"

#include <inttypes.h>

int apply_settings_changed(struct core *core, const struct event *event, struct error *error)
{
    if (core_settings_check(&event->settings_changed, error) < 0)
        return apply_unfit(event, error);
    const bool moves_slots =
        event->settings_changed.slot_offset_ms != core->settings.slot_offset_ms;
    if (moves_slots && core->prices.close_count > 0)
        return apply_misfit(event, "slots that have ended cannot be moved", error);
    const bool changes_economy = event->settings_changed.economy != core->settings.economy;
    if (changes_economy && ledger_entry_count(core->ledger) > 0)
        return apply_misfit(event, "credits were given out under another economy", error);
    core->settings = event->settings_changed;
    for (size_t i = 0; i < core->active.count; i++) /* they say how long a lease takes to stop */
        core_set_lease_ends(core, core->active.items[i].value);
    if (changes_economy)
        core_set_economy(core, event->time_ms);
    if (moves_slots)
        core_prices_begin(core, event->time_ms);
    return 0;
}

int apply_account_opened(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->account_opened) *opened = &event->account_opened;
    const struct text name = text_of(opened->name);
    if (name_check(name, "account", error) < 0)
        return apply_unfit(event, error);
    if (opened->address_block && !(opened->address_block & ACCOUNT_BLOCK_BIT))
        return apply_misfit(event, "its address block may be an id", error);
    if (!apply_is_next_id(core, opened->account) || core_account_by_name(core, name))
        return apply_misfit(event, "the id or the name is taken", error);
    if (ledger_open_account(core->ledger, opened->account, error) < 0)
        return apply_unfit(event, error);
    struct account *account = memory_zeroed(1, sizeof(*account));
    account->id = core->last_id = opened->account;
    account->opened_ms = account->seen_ms = event->time_ms;
    account->address_block = opened->address_block;
    account->grant = opened->is_grant_due ? GRANT_STATE_WAITING : GRANT_STATE_NONE;
    snprintf(account->name, sizeof(account->name), "%s", opened->name);
    map_put(&core->accounts, account->id, account);
    map_put_text(&core->accounts_by_name, name, account);
    core_index_account(core, account);
    if (core->day == 0)
        core->day = core_day(event->time_ms);
    return 0;
}

int apply_password_set(struct core *core, const struct event *event, struct error *error)
{
    struct account *account = NULL;
    if (apply_find_account(core, event, event->password_set.account, &account, error) < 0)
        return -1;
    memcpy(account->password, event->password_set.password, sizeof(account->password));
    return 0;
}

/* Jobs of a frozen account wait, and its machines get none: both as long as it is frozen. */
static void bar_machines(struct core *core, uint64_t owner, bool is_barred, int64_t now_ms)
{
    for (size_t i = 0; i < core->machine_list.count; i++) {
        struct machine *machine = core->machine_list.items[i].value;
        if (machine->owner != owner)
            continue;
        core_count_machine(core, machine, now_ms);
        machine->is_barred = is_barred;
        core_index_machine(core, machine, now_ms);
    }
}

int apply_account_frozen(struct core *core, const struct event *event, struct error *error)
{
    struct account *account = NULL;
    if (apply_find_account(core, event, event->account_frozen.account, &account, error) < 0)
        return -1;
    if (!event->account_frozen.reason[0])
        return apply_misfit(event, "it does not say why", error);
    if (ledger_set_frozen(core->ledger, account->id, true, error) < 0)
        return apply_unfit(event, error);
    memcpy(account->freeze_reason, event->account_frozen.reason, sizeof(account->freeze_reason));
    bar_machines(core, account->id, true, event->time_ms);
    return 0;
}

int apply_account_unfrozen(struct core *core, const struct event *event, struct error *error)
{
    struct account *account = NULL;
    if (apply_find_account(core, event, event->account_unfrozen.account, &account, error) < 0)
        return -1;
    if (ledger_set_frozen(core->ledger, account->id, false, error) < 0)
        return apply_unfit(event, error);
    memset(account->freeze_reason, 0, sizeof(account->freeze_reason));
    bar_machines(core, account->id, false, event->time_ms);
    return 0;
}

int apply_account_deleted(struct core *core, const struct event *event, struct error *error)
{
    struct account *account = NULL;
    if (apply_find_account(core, event, event->account_deleted.account, &account, error) < 0)
        return -1;
    if (account->token_count > 0 || account->code_count > 0 || account->group)
        return apply_misfit(event, "it has tokens, codes or a group", error);
    if (ledger_close_account(core->ledger, account->id, error) < 0)
        return apply_unfit(event, error);
    account->deleted_ms = event->time_ms;
    memcpy(account->former_name, account->name, sizeof(account->name));
    memset(account->name, 0, sizeof(account->name));
    snprintf(account->name, sizeof(account->name), "deleted-%" PRIu64, account->id);
    account->to_earn_micro = 0;
    for (size_t i = 0; i < core->machines.count; i++) {
        struct machine *machine = core->machines.entries[i].value;
        if (machine->owner == account->id)
            machine->withheld_micro = 0; /* it went back to mint with the rest */
    }
    if (account->grant == GRANT_STATE_WAITING)
        account->grant = GRANT_STATE_NONE;
    memset(account->password, 0, sizeof(account->password));
    core_index_account(core, account);
    return 0;
}

int apply_account_seen(struct core *core, const struct event *event, struct error *error)
{
    struct account *account = NULL;
    if (apply_find_account(core, event, event->account_seen.account, &account, error) < 0)
        return -1;
    apply_see_account(core, account->id, event->time_ms);
    return 0;
}

void apply_see_account(struct core *core, uint64_t id, int64_t time_ms)
{
    struct account *account = map_get(&core->accounts, id);
    if (!account || account->deleted_ms)
        return;
    account->seen_ms = time_ms;
    account->dormant_steps = 0; /* when the last was, stays: its owner is told */
}

/* ---- Grants and dormancy --------------------------------------------------------------------- */

/* The entry that gives it must come next. */
static int expect_grant(struct core *core, const struct event *event, uint64_t account,
                        int64_t amount_micro, struct error *error)
{
    if (ledger_plan_grant(core->ledger, account, amount_micro, &core->due, error) < 0)
        return apply_unfit(event, error);
    return 0;
}

int apply_grant_given(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->grant_given) *given = &event->grant_given;
    struct account *account = NULL;
    if (apply_find_account(core, event, given->account, &account, error) < 0)
        return -1;
    const int64_t day = core_day(event->time_ms);
    const int64_t before_micro = core->grant_day == day ? core->grant_day_micro : 0;
    if (account->grant != GRANT_STATE_WAITING ||
        given->amount_micro > LEDGER_SUPPLY_MAX - before_micro)
        return apply_misfit(event, "the account does not wait for a grant, or for less", error);
    if (expect_grant(core, event, account->id, given->amount_micro, error) < 0)
        return -1;
    account->grant = GRANT_STATE_GIVEN;
    account->granted_ms = event->time_ms;
    account->to_earn_micro = given->to_earn_micro;
    core_index_account(core, account);
    if (given->is_invited)
        return 0;
    core->grant_day = day;
    core->grant_day_micro = before_micro + given->amount_micro;
    return 0;
}

int apply_grant_released(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->grant_released) *released = &event->grant_released;
    struct account *account = NULL;
    if (apply_find_account(core, event, released->account, &account, error) < 0)
        return -1;
    if (released->amount_micro > account->to_earn_micro)
        return apply_misfit(event, "more is released than there was to earn", error);
    const struct lease *lease = core_lease(core, released->lease);
    if (!lease || lease->payee != account->id || lease->is_self_trade || lease_is_open(lease) ||
        released->amount_micro > lease->posted_micro - lease->fee_micro)
        return apply_misfit(event, "no lease earned it", error);
    if (expect_grant(core, event, account->id, released->amount_micro, error) < 0)
        return -1;
    account->to_earn_micro -= released->amount_micro;
    return 0;
}

int apply_dormancy_advanced(struct core *core, const struct event *event, struct error *error)
{
    struct account *account = NULL;
    if (apply_find_account(core, event, event->dormancy_advanced.account, &account, error) < 0)
        return -1;
    if (event->dormancy_advanced.step != account->dormant_steps + 1)
        return apply_misfit(event, "it is not the next step", error);
    account->dormant_steps++;
    account->dormant_step_ms = event->time_ms;
    return 0;
}

int apply_rules_changed(struct core *core, const struct event *event, struct error *error)
{
    if (event->rules_changed.rules != core->rules + 1 ||
        event->rules_changed.rules > CORE_RULES_NEWEST)
        return apply_misfit(event, "they are not the next rules", error);
    core->rules = event->rules_changed.rules;
    ledger_return_own(core->ledger);
    return 0;
}

int64_t core_due_withheld_micro(const struct core *core)
{
    return core->due.entry_count > 0 ? core->due.entries[0].withheld_micro : 0;
}

/* A week without a day in it was one without spending: its mark is the next one's. */
static void mark_spent(const struct core *core, struct account *account, int64_t weeks)
{
    const int64_t spent_micro = core_balance(core, account->id)->spent_total_micro;
    for (; weeks > 0; weeks--) {
        memmove(account->spent_marks_micro + 1, account->spent_marks_micro,
                (ACCOUNT_SPENT_WEEKS - 1) * sizeof(*account->spent_marks_micro));
        account->spent_marks_micro[0] = spent_micro;
        if (account->spent_marks_micro[ACCOUNT_SPENT_WEEKS - 1] == spent_micro)
            return;
    }
}

int apply_day_began(struct core *core, const struct event *event, struct error *error)
{
    if (event->day_began.day <= core->day || event->day_began.day != core_day(event->time_ms))
        return apply_misfit(event, "it is not a later day", error);
    const int64_t weeks = event->day_began.day / 7 - core->day / 7;
    for (size_t i = 0; weeks > 0 && i < core->accounts.count; i++)
        mark_spent(core, core->accounts.entries[i].value, weeks);
    core->day = event->day_began.day;
    return 0;
}

/* ---- Costs ----------------------------------------------------------------------------------- */

int apply_cost_billed(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->cost_billed) *billed = &event->cost_billed;
    const struct machine *machine = billed->machine ? core_machine(core, billed->machine) : NULL;
    struct account *account = NULL;
    if (apply_find_account(core, event, billed->account, &account, error) < 0)
        return -1;
    if (billed->usd_micro < 1 || (billed->machine && (!machine || machine->owner != account->id)))
        return apply_misfit(event, "it is for no dollars, or for another's machine", error);
    if (ledger_plan_cost(core->ledger, account->id, billed->amount_micro, &core->due, error) < 0)
        return apply_unfit(event, error);
    return 0;
}
