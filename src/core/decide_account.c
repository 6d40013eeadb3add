/*
 * Commands about the settings and accounts.
 */
#include "core/core_internal.h"
#include "core/schema.h"

#include <inttypes.h>

int decide_find_account(const struct core *core, uint64_t account, struct error *error)
{
    const struct account *found = core_account(core, account);
    if (!found || account == ACCOUNT_MINT)
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " does not exist", account);
    if (found->deleted_ms)
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " was deleted", account);
    return 0;
}

int decide_find_active_account(const struct core *core, uint64_t account, struct error *error)
{
    if (decide_find_account(core, account, error) < 0)
        return -1;
    const struct account *found = core_account(core, account);
    if (account_is_frozen(found))
        return error_set(error, ERROR_REFUSED,
                         "the account \"%s\" is frozen: %s; its credits stay, ask the operator",
                         found->name, found->freeze_reason);
    return 0;
}

int decide_check_instant(int64_t instant_ms, const char *noun, struct error *error)
{
    if (instant_ms < 0 || instant_ms > SCHEMA_TIME_MS_MAX)
        return error_set(error, ERROR_INVALID, "%s is out of range", noun);
    return 0;
}

void decide_copy(struct text text, char *out, size_t out_size)
{
    struct error error;
    ASSERT(text_copy(text, out, out_size, &error) == 0);
}

int decide_change_settings(struct decision *decision, const struct command *command,
                           struct error *error)
{
    const struct core *core = decision->core;
    if (core_settings_check(&command->change_settings, error) < 0)
        return -1;
    if (command->change_settings.slot_offset_ms != core->settings.slot_offset_ms &&
        core_slots_are_fixed(core, decision->now_ms))
        return error_set(error, ERROR_CONFLICT,
                         "slot_offset_ms cannot change once prices have been set by it");
    if (command->change_settings.economy != core->settings.economy &&
        ledger_entry_count(core->ledger) > 0)
        return error_set(error, ERROR_CONFLICT,
                         "economy cannot change once an account has credits: open a new market");
    struct event event = {.kind = EVENT_SETTINGS_CHANGED,
                          .settings_changed = command->change_settings};
    decision_emit(decision, &event);
    decide_waiting_grants(decision);
    for (size_t i = 0; i < core->machine_list.count; i++)
        decide_prove_machine(decision, core->machine_list.items[i].value);
    /* By when leases start, how long they may take to stop: what jobs wait for may be there. */
    core_unstick_all(decision->core);
    match_rounds_sweep_all(core->rounds);
    return 0;
}

int decide_open_account(struct decision *decision, const struct command *command,
                        struct error *error)
{
    struct core *core = decision->core;
    const __typeof__(command->open_account) *open = &command->open_account;
    if (name_check(open->name, "account", error) < 0)
        return -1;
    if (name_is_reserved(open->name) || core_account_by_name(core, open->name))
        return error_set(error, ERROR_CONFLICT, "the account name \"" TEXT_FORMAT "\" is taken",
                         TEXT_ARGS(open->name));
    if (open->address_block && !(open->address_block & ACCOUNT_BLOCK_BIT))
        return error_set(error, ERROR_INVALID, "an address block is marked by its highest bit");
    const struct code *invite = NULL;
    if (open->has_invite &&
        decide_find_code(decision, CODE_KIND_INVITE, open->invite_hash, &invite, error) < 0)
        return error_wrap(error, "invite");
    if (invite)
        decide_remove_code(decision, invite->id, /* is_used= */ true);
    const bool is_grant_due =
        core->settings.grant_micro > 0 && (invite || core->settings.grant_daily_micro > 0);
    struct event event = {.kind = EVENT_ACCOUNT_OPENED,
                          .account_opened = {.account = core->last_id + 1,
                                             .address_block = open->address_block,
                                             .is_grant_due = is_grant_due}};
    decide_copy(open->name, event.account_opened.name, sizeof(event.account_opened.name));
    decision->subject = event.account_opened.account;
    decision_emit(decision, &event);
    decide_first_grant(decision, core_account(core, decision->subject), invite != NULL);
    return 0;
}

/* Whoever learnt the old password may have signed in with it: sessions end but the one that asks.
 * Tokens were made on purpose and stay. */
int decide_set_password(struct decision *decision, const struct command *command,
                        struct error *error)
{
    const __typeof__(command->set_password) *set = &command->set_password;
    if (decide_find_account(decision->core, set->account, error) < 0)
        return -1;
    if (!text_starts_with(set->password, TEXT("$argon2id$")) ||
        set->password.size >= ACCOUNT_PASSWORD_SIZE || !text_is_utf8(set->password))
        return error_set(error, ERROR_INVALID, "a password is kept as an argon2id hash");
    struct event event = {.kind = EVENT_PASSWORD_SET, .password_set = {.account = set->account}};
    decide_copy(set->password, event.password_set.password, sizeof(event.password_set.password));
    decision->subject = set->account;
    const struct account *account = core_account(decision->core, set->account);
    for (size_t i = account->token_count; i-- > 0;)
        if (account->tokens[i]->is_session && account->tokens[i]->id != set->token)
            decision_revoke_token(decision, account->tokens[i]->id);
    decision_emit(decision, &event);
    return 0;
}

int decide_freeze_account(struct decision *decision, const struct command *command,
                          struct error *error)
{
    const __typeof__(command->freeze_account) *freeze = &command->freeze_account;
    if (decide_find_account(decision->core, freeze->account, error) < 0 ||
        name_check_line(freeze->reason, "reason", ACCOUNT_REASON_SIZE - 1, error) < 0)
        return -1;
    if (freeze->account == ACCOUNT_OPERATOR)
        return error_set(error, ERROR_INVALID, "the operator's account cannot be frozen");
    if (freeze->reason.size == 0)
        return error_set(error, ERROR_INVALID, "reason: its owner is shown why; give one");
    if (account_is_frozen(core_account(decision->core, freeze->account)))
        return error_set(error, ERROR_CONFLICT, "the account is frozen already");
    struct event event = {.kind = EVENT_ACCOUNT_FROZEN,
                          .account_frozen = {.account = freeze->account}};
    decide_copy(freeze->reason, event.account_frozen.reason, sizeof(event.account_frozen.reason));
    decision->subject = freeze->account;
    decision_emit(decision, &event);
    return 0;
}

int decide_unfreeze_account(struct decision *decision, const struct command *command,
                            struct error *error)
{
    const uint64_t account = command->unfreeze_account.account;
    if (decide_find_account(decision->core, account, error) < 0)
        return -1;
    if (!account_is_frozen(core_account(decision->core, account)))
        return error_set(error, ERROR_CONFLICT, "the account is not frozen");
    struct event event = {.kind = EVENT_ACCOUNT_UNFROZEN, .account_unfrozen = {.account = account}};
    decision->subject = account;
    decision_emit(decision, &event);
    decision->should_match = true; /* its machines */
    decision->admitted = account;  /* its jobs */
    return 0;
}

int decide_see_account(struct decision *decision, const struct command *command,
                       struct error *error)
{
    const uint64_t id = command->see_account.account;
    if (decide_find_account(decision->core, id, error) < 0)
        return -1;
    decision->subject = id;
    const struct account *account = core_account(decision->core, id);
    if (core_day(decision->now_ms) == core_day(account->seen_ms))
        return 0;
    struct event event = {.kind = EVENT_ACCOUNT_SEEN, .account_seen = {.account = id}};
    decision_emit(decision, &event);
    return 0;
}

/* ---- Deleting -------------------------------------------------------------------------------- */

static const struct job *find_open_job(const struct core *core, uint64_t account)
{
    const struct id_list *lists[] = {&core->pending, &core->active};
    for (size_t list = 0; list < 2; list++)
        for (size_t i = 0; i < lists[list]->count; i++) {
            const struct job *job = lists[list]->items[i].value;
            if (job->request.account == account)
                return job;
        }
    return NULL;
}

/* An offline machine has no leases, and that of a deleted account does not come back. */
static const struct machine *find_lending_machine(const struct core *core, uint64_t account)
{
    for (size_t i = 0; i < core->machine_list.count; i++) {
        const struct machine *machine = core->machine_list.items[i].value;
        if (machine->owner == account && machine->state != MACHINE_STATE_OFFLINE)
            return machine;
    }
    return NULL;
}

static int check_idle(const struct core *core, uint64_t account, struct error *error)
{
    const struct job *job = find_open_job(core, account);
    if (job)
        return error_set(error, ERROR_CONFLICT,
                         "job %" PRIu64 " has not ended: cancel it, then delete the account",
                         job->id);
    const struct machine *machine = find_lending_machine(core, account);
    if (machine)
        return error_set(error, ERROR_CONFLICT,
                         "the machine \"%s\" lends: stop it, then delete the account",
                         machine->name);
    if (core_balance(core, account)->held_micro > 0)
        return error_set(error, ERROR_CONFLICT,
                         "credits are held for a job: wait until they are settled");
    return 0;
}

static void remove_codes(struct decision *decision, uint64_t account)
{
    const struct id_list *codes = &decision->core->code_list;
    for (size_t i = codes->count; i-- > 0;) {
        const struct code *code = codes->items[i].value;
        if (code->account == account)
            decide_remove_code(decision, code->id, /* is_used= */ false);
    }
}

int decide_delete_account(struct decision *decision, const struct command *command,
                          struct error *error)
{
    struct core *core = decision->core;
    const uint64_t id = command->delete_account.account;
    if (decide_find_active_account(core, id, error) < 0)
        return -1;
    if (id == ACCOUNT_OPERATOR)
        return error_set(error, ERROR_INVALID, "the operator's account cannot be deleted");
    struct ledger_plan plan;
    if (check_idle(core, id, error) < 0 ||
        ledger_plan_reclaim(core->ledger, id, 0, &plan, error) < 0)
        return -1;
    const struct account *account = core_account(core, id);
    decision->subject = id;
    decision_emit_plan(decision, &plan, "account deleted");
    remove_codes(decision, id);
    while (account->token_count > 0)
        decision_revoke_token(decision, account->tokens[account->token_count - 1]->id);
    if (account->group)
        decision_leave_group(decision, account);
    struct event event = {.kind = EVENT_ACCOUNT_DELETED, .account_deleted = {.account = id}};
    decision_emit(decision, &event);
    return 0;
}
