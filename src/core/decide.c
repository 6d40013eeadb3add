/*
 * The way every command goes: check all, then emit events that must apply, then match what may
 * have waited for them.
 */
#include "core/core_internal.h"
#include "core/schema.h"

void decision_emit(struct decision *decision, struct event *event)
{
    if (event->kind != EVENT_SLOT_CLOSED)
        decide_close_slots(decision);
    event->sequence = decision->core->sequence + 1;
    event->time_ms = decision->now_ms;
    /* Appended first: its texts may be of the very state that it changes. */
    event_list_append(decision->out, event);
    struct error error = {0};
    const struct event *appended = &decision->out->items[decision->out->count - 1];
    if (core_apply(decision->core, appended, &error) < 0)
        assert_failed(error.message, __FILE__, __LINE__, __func__);
}

/* More accounts than there is room for: as if prices had changed. */
static void note_credited(struct decision *decision, uint64_t account)
{
    for (size_t i = 0; i < decision->credited_count; i++)
        if (decision->credited[i] == account)
            return;
    if (decision->credited_count < DECISION_CREDITED_MAX)
        decision->credited[decision->credited_count++] = account;
    else
        decision->is_repriced = true;
}

void decision_emit_plan(struct decision *decision, const struct ledger_plan *plan, const char *memo)
{
    for (size_t i = 0; i < plan->entry_count; i++) {
        struct event event = {.kind = EVENT_ENTRY_POSTED, .entry_posted = plan->entries[i]};
        if (memo && plan->entries[i].kind != LEDGER_ENTRY_FEE)
            snprintf(event.entry_posted.memo, LEDGER_MEMO_SIZE, "%s", memo);
        decision_emit(decision, &event);
        decide_spare_for(decision, event.entry_posted.from_account);
        if (event.entry_posted.kind != LEDGER_ENTRY_HOLD)
            note_credited(decision, event.entry_posted.to_account);
    }
}

void decision_emit_due(struct decision *decision, const char *memo)
{
    const struct ledger_plan due = decision->core->due;
    decision_emit_plan(decision, &due, memo);
}

static int decide_kind(struct decision *decision, const struct command *command,
                       struct error *error)
{
    switch (command->kind) {
    case COMMAND_CHANGE_SETTINGS:
        return decide_change_settings(decision, command, error);
    case COMMAND_OPEN_ACCOUNT:
        return decide_open_account(decision, command, error);
    case COMMAND_SET_PASSWORD:
        return decide_set_password(decision, command, error);
    case COMMAND_FREEZE_ACCOUNT:
        return decide_freeze_account(decision, command, error);
    case COMMAND_UNFREEZE_ACCOUNT:
        return decide_unfreeze_account(decision, command, error);
    case COMMAND_GIVE_GRANT:
        return decide_give_grant(decision, command, error);
    case COMMAND_DELETE_ACCOUNT:
        return decide_delete_account(decision, command, error);
    case COMMAND_SEE_ACCOUNT:
        return decide_see_account(decision, command, error);
    case COMMAND_CREATE_GROUP:
        return decide_create_group(decision, command, error);
    case COMMAND_JOIN_GROUP:
        return decide_join_group(decision, command, error);
    case COMMAND_LEAVE_GROUP:
        return decide_leave_group(decision, command, error);
    case COMMAND_ADD_TOKEN:
        return decide_add_token(decision, command, error);
    case COMMAND_REVOKE_TOKEN:
        return decide_revoke_token(decision, command, error);
    case COMMAND_ADD_CODE:
        return decide_add_code(decision, command, error);
    case COMMAND_USE_CODE:
        return decide_use_code(decision, command, error);
    case COMMAND_ENROL_MACHINE:
        return decide_enrol_machine(decision, command, error);
    case COMMAND_SET_OFFER:
        return decide_set_offer(decision, command, error);
    case COMMAND_PAUSE_OFFER:
        return decide_pause_offer(decision, command, error);
    case COMMAND_RENEW_OFFER:
        return decide_renew_offer(decision, command, error);
    case COMMAND_WITHDRAW_OFFER:
        return decide_withdraw_offer(decision, command, error);
    case COMMAND_REPORT_PROBE:
        return decide_report_probe(decision, command, error);
    case COMMAND_REPORT_PAIR:
        return decide_report_pair(decision, command, error);
    case COMMAND_MACHINE_CONNECTED:
        return decide_machine_connected(decision, command, error);
    case COMMAND_MACHINE_SILENT:
        return decide_machine_silent(decision, command, error);
    case COMMAND_MACHINE_YIELDS:
        return decide_machine_yields(decision, command, error);
    case COMMAND_MACHINE_GONE:
        return decide_machine_gone(decision, command, error);
    case COMMAND_SUBMIT_JOB:
        return decide_submit_job(decision, command, error);
    case COMMAND_LEASE_RUNNING:
        return decide_lease_running(decision, command, error);
    case COMMAND_TICK_LEASE:
        return decide_tick_lease(decision, command, error);
    case COMMAND_END_LEASE:
        return decide_end_lease(decision, command, error);
    case COMMAND_CANCEL_JOB:
        return decide_cancel_job(decision, command, error);
    case COMMAND_EXTEND_JOB:
        return decide_extend_job(decision, command, error);
    case COMMAND_RELEASE_LEASE:
        return decide_release_lease(decision, command, error);
    case COMMAND_RESIZE_JOB:
        return decide_resize_job(decision, command, error);
    case COMMAND_RECLAIM_LEASES:
        return decide_reclaim_leases(decision, command, error);
    case COMMAND_TRANSFER:
        return decide_transfer(decision, command, error);
    case COMMAND_BILL_COST:
        return decide_bill_cost(decision, command, error);
    case COMMAND_TIME_PASSED:
        decide_close_slots(decision);
        decide_expire_codes(decision);
        decide_new_day(decision);
        decide_share_karma(decision);
        decide_lose_machines(decision);
        decide_turn_offers(decision);
        decide_job_times(decision);
        decide_job_starts(decision);
        return 0;
    case COMMAND_KIND_COUNT:
        break;
    }
    return error_set(error, ERROR_INVALID, "a command of an unknown kind");
}

/* Whoever waits is placed at the prices of the slot that runs. */
static void close_slots_for_who_waits(struct decision *decision)
{
    const struct core *core = decision->core;
    if (book_count(core->waiting.book) > 0 || core->short_handed.count > 0 ||
        core->spare_waiting.count > 0)
        decide_close_slots(decision);
}

static bool can_have_more_workers(const struct decision *decision)
{
    const struct core *core = decision->core;
    if (decision->should_match || match_rounds_is_better(core->rounds))
        return true;
    for (size_t i = 0; i < decision->credited_count; i++)
        if (core_account(core, decision->credited[i])->short_handed_count > 0)
            return true;
    return false;
}

int core_decide(struct core *core, const struct command *command, int64_t now_ms,
                struct event_list *out, struct error *error)
{
    if (now_ms <= 0 || now_ms > SCHEMA_TIME_MS_MAX)
        return error_set(error, ERROR_INVALID, "the time is out of range");
    struct decision decision = {
        .core = core, .now_ms = now_ms > core->time_ms ? now_ms : core->time_ms, .out = out};
    const size_t count = out->count;
    match_rounds_begin(core->rounds);
    if (decide_kind(&decision, command, error) < 0) {
        ASSERT(out->count == count);
        match_rounds_end(core->rounds);
        return -1;
    }
    close_slots_for_who_waits(&decision);
    if (decision.is_repriced)
        decide_renewals(&decision);
    const bool is_better = can_have_more_workers(&decision);
    decide_successors(&decision, is_better);
    decide_match(&decision);
    decide_growth(&decision, is_better);
    decide_touched(&decision); /* it may have given up a reservation */
    decide_spare(&decision);
    match_rounds_end(core->rounds);
    out->subject = decision.subject;
    return 0;
}
