/*
 * Grants and dormancy: how credits come from mint and go back to it.
 *
 * An account's first credits come at once if the day's grants leave room and nobody else of its
 * address block got some today; else it waits, and each new UTC day looks through those that do,
 * the oldest first. An invitation goes past both, and so does the operator's word later. The rest
 * of the grant is released at the end of each lease by what the lease earned, unless payer and
 * payee count as one.
 */
#include "core/core_internal.h"

#include <inttypes.h>

/* At least one account gets its grant each day, however small the limit. */
static bool has_room_today(const struct core *core, int64_t now_ms)
{
    const int64_t given_micro = core->grant_day == core_day(now_ms) ? core->grant_day_micro : 0;
    const int64_t supply_micro = -core_balance(core, ACCOUNT_MINT)->granted_micro;
    int64_t limit_micro = core->settings.grant_daily_micro;
    if (supply_micro / 100 > limit_micro)
        limit_micro = supply_micro / 100;
    return given_micro == 0 || core->settings.grant_micro <= limit_micro - given_micro;
}

static bool is_block_free_today(const struct core *core, const struct account *account,
                                int64_t now_ms)
{
    if (!account->address_block)
        return true;
    const struct account *last = map_get(&core->grants_by_block, account->address_block);
    return !last || core_day(last->granted_ms) != core_day(now_ms);
}

static bool has_mint_left(const struct core *core, int64_t amount_micro)
{
    return amount_micro <= LEDGER_SUPPLY_MAX + core_balance(core, ACCOUNT_MINT)->granted_micro;
}

static void give_grant(struct decision *decision, const struct account *account, bool is_invited)
{
    const struct core_settings *settings = &decision->core->settings;
    struct event event = {.kind = EVENT_GRANT_GIVEN,
                          .grant_given = {.account = account->id,
                                          .amount_micro = settings->grant_micro,
                                          .to_earn_micro = settings->grant_earned_micro,
                                          .is_invited = is_invited}};
    decision_emit(decision, &event);
    decision_emit_due(decision, "sign-up grant");
}

void decide_first_grant(struct decision *decision, const struct account *account, bool is_invited)
{
    const struct core *core = decision->core;
    if (account->grant != GRANT_STATE_WAITING || !has_mint_left(core, core->settings.grant_micro) ||
        core->settings.grant_micro == 0)
        return;
    if (is_invited ||
        (core->settings.grant_daily_micro > 0 && has_room_today(core, decision->now_ms) &&
         is_block_free_today(core, account, decision->now_ms)))
        give_grant(decision, account, is_invited);
}

/* As an invitation that comes later. */
int decide_give_grant(struct decision *decision, const struct command *command, struct error *error)
{
    const struct core *core = decision->core;
    const uint64_t id = command->give_grant.account;
    if (decide_find_active_account(core, id, error) < 0)
        return -1;
    const struct account *account = core_account(core, id);
    if (account->grant != GRANT_STATE_WAITING)
        return error_set(error, ERROR_CONFLICT,
                         account->grant == GRANT_STATE_GIVEN
                             ? "the account has had its grant: one is all it gets"
                             : "the account gets no grant");
    if (core->settings.grant_micro == 0)
        return error_set(error, ERROR_CONFLICT, "grants are 0 here: the settings say so");
    if (!has_mint_left(core, core->settings.grant_micro))
        return error_set(error, ERROR_EXHAUSTED, "mint has no credits left to give");
    decision->subject = id;
    give_grant(decision, account, /* is_invited= */ true);
    return 0;
}

void decide_waiting_grants(struct decision *decision)
{
    const struct id_list *waiting = &decision->core->waiting_grants;
    for (size_t i = 0; i < waiting->count;) {
        const struct account *account = waiting->items[i].value;
        decide_first_grant(decision, account, /* is_invited= */ false);
        if (account->grant == GRANT_STATE_WAITING)
            i++; /* else it left the list, and the next took its place */
        if (!has_room_today(decision->core, decision->now_ms))
            return;
    }
}

void decide_release_grant(struct decision *decision, const struct lease *lease)
{
    struct core *core = decision->core;
    const struct account *payee = core_account(core, lease->payee);
    int64_t amount_micro = lease->posted_micro - lease->fee_micro;
    if (amount_micro > payee->to_earn_micro)
        amount_micro = payee->to_earn_micro;
    if (amount_micro <= 0 || payee->deleted_ms || !has_mint_left(core, amount_micro) ||
        lease->is_self_trade)
        return;
    struct event event = {
        .kind = EVENT_GRANT_RELEASED,
        .grant_released = {.account = payee->id, .lease = lease->id, .amount_micro = amount_micro}};
    decision_emit(decision, &event);
    char memo[LEDGER_MEMO_SIZE];
    snprintf(memo, sizeof(memo), "grant earned by lease %" PRIu64, lease->id);
    decision_emit_due(decision, memo);
}

/* The operator pays itself each fee of its own jobs. */
void decide_own_pay(struct decision *decision, uint64_t payer, uint64_t payee)
{
    if (decision->core->rules >= CORE_RULES_OWN_PAY ||
        (payer != payee && payer != ACCOUNT_OPERATOR))
        return;
    struct event event = {.kind = EVENT_RULES_CHANGED,
                          .rules_changed = {.rules = CORE_RULES_OWN_PAY}};
    decision_emit(decision, &event);
}

/* ---- Dormancy -------------------------------------------------------------------------------- */

enum { NOTICE_COUNT = 2, BASIS_POINTS = 10000 };

static bool is_step_due(const struct core *core, const struct account *account, int64_t now_ms)
{
    const struct core_settings *settings = &core->settings;
    if (account->id == ACCOUNT_MINT || account->id == ACCOUNT_OPERATOR || account->deleted_ms ||
        account_is_frozen(account) || now_ms - account->seen_ms < settings->dormant_ms)
        return false;
    if (account->dormant_steps > 0 && now_ms - account->dormant_step_ms < settings->dormant_step_ms)
        return false;
    return ledger_available_micro(core_balance(core, account->id)) > 0;
}

static void advance_dormancy(struct decision *decision, const struct account *account)
{
    const struct core *core = decision->core;
    int64_t amount_micro = 0;
    if (account->dormant_steps >= NOTICE_COUNT) {
        const __int128 whole = ledger_available_micro(core_balance(core, account->id));
        amount_micro = (int64_t)(whole * core->settings.dormant_basis_points / BASIS_POINTS);
    }
    struct event event = {.kind = EVENT_DORMANCY_ADVANCED,
                          .dormancy_advanced = {.account = account->id,
                                                .step = account->dormant_steps + 1,
                                                .amount_micro = amount_micro}};
    decision_emit(decision, &event);
    if (amount_micro == 0)
        return;
    struct ledger_plan plan;
    struct error error;
    ASSERT(ledger_plan_reclaim(core->ledger, account->id, amount_micro, &plan, &error) == 0);
    decision_emit_plan(decision, &plan, "not seen for long");
}

/* ---- Days ------------------------------------------------------------------------------------ */

int64_t core_day(int64_t instant_ms)
{
    return instant_ms / CORE_DAY_MS;
}

int64_t core_day_wake_ms(const struct core *core)
{
    return core->day > 0 ? (core->day + 1) * CORE_DAY_MS : INT64_MAX;
}

void decide_new_day(struct decision *decision)
{
    struct core *core = decision->core;
    if (decision->now_ms < core_day_wake_ms(core))
        return;
    struct event event = {.kind = EVENT_DAY_BEGAN,
                          .day_began = {.day = core_day(decision->now_ms)}};
    decision_emit(decision, &event);
    decide_waiting_grants(decision);
    for (size_t i = 0; i < core->accounts.count; i++)
        if (is_step_due(core, core->accounts.entries[i].value, decision->now_ms))
            advance_dormancy(decision, core->accounts.entries[i].value);
}
