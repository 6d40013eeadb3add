/*
 * Commands about accounts, tokens, codes and machines; and the way every command goes: check all,
 * then emit events that must apply, then match what may have waited for them.
 */
#include "core/core_internal.h"
#include "core/schema.h"

#include <inttypes.h>

void decision_emit(struct decision *decision, struct event *event)
{
    event->sequence = decision->core->sequence + 1;
    event->time_ms = decision->now_ms;
    struct error error = {0};
    if (core_apply(decision->core, event, &error) < 0)
        assert_failed(error.message, __FILE__, __LINE__, __func__);
    event_list_append(decision->out, event);
}

void decision_emit_plan(struct decision *decision, const struct ledger_plan *plan, const char *memo)
{
    for (size_t i = 0; i < plan->entry_count; i++) {
        struct event event = {.kind = EVENT_ENTRY_POSTED, .entry_posted = plan->entries[i]};
        if (memo && plan->entries[i].kind != LEDGER_ENTRY_FEE)
            snprintf(event.entry_posted.memo, LEDGER_MEMO_SIZE, "%s", memo);
        decision_emit(decision, &event);
    }
}

static int find_account(const struct core *core, uint64_t account, struct error *error)
{
    if (!core_account(core, account) || account == ACCOUNT_MINT)
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " does not exist", account);
    return 0;
}

static int check_instant(int64_t instant_ms, const char *noun, struct error *error)
{
    if (instant_ms < 0 || instant_ms > SCHEMA_TIME_MS_MAX)
        return error_set(error, ERROR_INVALID, "%s is out of range", noun);
    return 0;
}

static void copy(struct text text, char *out, size_t out_size)
{
    struct error error;
    ASSERT(text_copy(text, out, out_size, &error) == 0);
}

static int change_settings(struct decision *decision, const struct command *command,
                           struct error *error)
{
    if (core_settings_check(&command->change_settings, error) < 0)
        return -1;
    struct event event = {.kind = EVENT_SETTINGS_CHANGED,
                          .settings_changed = command->change_settings};
    decision_emit(decision, &event);
    return 0;
}

/* ---- Accounts, tokens, codes ----------------------------------------------------------------- */

static int open_account(struct decision *decision, const struct command *command,
                        struct error *error)
{
    struct core *core = decision->core;
    const struct text name = command->open_account.name;
    if (name_check(name, "account", error) < 0)
        return -1;
    if (name_is_reserved(name) || core_account_by_name(core, name))
        return error_set(error, ERROR_CONFLICT, "the account name \"" TEXT_FORMAT "\" is taken",
                         TEXT_ARGS(name));
    const int64_t grant_micro = core->settings.grant_micro;
    if (grant_micro > LEDGER_SUPPLY_MAX + core_balance(core, ACCOUNT_MINT)->granted_micro)
        return error_set(error, ERROR_EXHAUSTED, "mint has given out all there can be");
    struct event event = {.kind = EVENT_ACCOUNT_OPENED,
                          .account_opened = {.account = core->last_id + 1}};
    copy(name, event.account_opened.name, sizeof(event.account_opened.name));
    decision->subject = event.account_opened.account;
    decision_emit(decision, &event);
    if (grant_micro > 0) {
        struct ledger_plan plan;
        struct error ignored;
        ASSERT(ledger_plan_grant(core->ledger, decision->subject, grant_micro, &plan, &ignored) ==
               0);
        decision_emit_plan(decision, &plan, "sign-up grant");
    }
    return 0;
}

static int add_token(struct decision *decision, const struct command *command, struct error *error)
{
    struct core *core = decision->core;
    const __typeof__(command->add_token) *add = &command->add_token;
    if (find_account(core, add->account, error) < 0 ||
        name_check_text(add->label, "label", MARKET_LABEL_SIZE - 1, error) < 0 ||
        check_instant(add->expires_ms, "expires_ms", error) < 0)
        return -1;
    if (add->scopes == 0 || (add->scopes & ~(uint64_t)TOKEN_SCOPE_ALL))
        return error_set(error, ERROR_INVALID, "a token needs scopes that exist");
    if (core_token_by_hash(core, add->hash))
        return error_set(error, ERROR_CONFLICT, "the token exists already");
    struct event event = {.kind = EVENT_TOKEN_ADDED,
                          .token_added = {.token = core->last_id + 1,
                                          .account = add->account,
                                          .scopes = add->scopes,
                                          .expires_ms = add->expires_ms}};
    memcpy(event.token_added.hash, add->hash, MARKET_HASH_SIZE);
    copy(add->label, event.token_added.label, sizeof(event.token_added.label));
    decision->subject = event.token_added.token;
    decision_emit(decision, &event);
    return 0;
}

static int revoke_token(struct decision *decision, const struct command *command,
                        struct error *error)
{
    const struct token *token = core_token(decision->core, command->revoke_token.token);
    if (!token || token->account != command->revoke_token.account)
        return error_set(error, ERROR_NOT_FOUND, "token %" PRIu64 " does not exist",
                         command->revoke_token.token);
    decision->subject = token->id;
    if (token->is_revoked)
        return 0;
    struct event event = {.kind = EVENT_TOKEN_REVOKED, .token_revoked = {.token = token->id}};
    decision_emit(decision, &event);
    return 0;
}

static int add_code(struct decision *decision, const struct command *command, struct error *error)
{
    struct core *core = decision->core;
    const __typeof__(command->add_code) *add = &command->add_code;
    if (find_account(core, add->account, error) < 0 ||
        check_instant(add->expires_ms, "expires_ms", error) < 0)
        return -1;
    if (add->kind >= CODE_KIND_COUNT || add->expires_ms <= decision->now_ms)
        return error_set(error, ERROR_INVALID, "a code needs a kind and some time to live");
    if (core_code_by_hash(core, add->hash))
        return error_set(error, ERROR_CONFLICT, "the code exists already");
    struct event event = {.kind = EVENT_CODE_ADDED,
                          .code_added = {.code = core->last_id + 1,
                                         .code_kind = add->kind,
                                         .account = add->account,
                                         .expires_ms = add->expires_ms}};
    memcpy(event.code_added.hash, add->hash, MARKET_HASH_SIZE);
    decision->subject = event.code_added.code;
    decision_emit(decision, &event);
    return 0;
}

/* One message for wrong, used and expired: a guess learns nothing. */
static int find_code(const struct decision *decision, enum code_kind kind, const uint8_t *hash,
                     const struct code **out_code, struct error *error)
{
    const struct code *code = core_code_by_hash(decision->core, hash);
    if (!code || code->kind != kind || code->expires_ms <= decision->now_ms)
        return error_set(error, ERROR_REFUSED, "the code is wrong, used or expired");
    *out_code = code;
    return 0;
}

static void remove_code(struct decision *decision, uint64_t code, bool is_used)
{
    struct event event = {.kind = EVENT_CODE_REMOVED,
                          .code_removed = {.code = code, .is_used = is_used}};
    decision_emit(decision, &event);
}

static int use_code(struct decision *decision, const struct command *command, struct error *error)
{
    const struct code *code;
    if (command->use_code.kind == CODE_KIND_ENROL)
        return error_set(error, ERROR_INVALID, "an enrolment code is used by enrolling a machine");
    if (find_code(decision, command->use_code.kind, command->use_code.hash, &code, error) < 0)
        return -1;
    decision->subject = code->account;
    remove_code(decision, code->id, /* is_used= */ true);
    return 0;
}

/* ---- Machines -------------------------------------------------------------------------------- */

/* The name `market` is the operator's own; the other reserved names are nobody's. */
static bool may_name_machine(uint64_t owner, struct text name)
{
    return !name_is_reserved(name) ||
           (owner == ACCOUNT_OPERATOR && text_equal(name, TEXT("market")));
}

static int enrol_machine(struct decision *decision, const struct command *command,
                         struct error *error)
{
    struct core *core = decision->core;
    const __typeof__(command->enrol_machine) *enrol = &command->enrol_machine;
    const struct code *code;
    if (find_code(decision, CODE_KIND_ENROL, enrol->code_hash, &code, error) < 0 ||
        probe_check(&enrol->probe, error) < 0 ||
        offer_check(&enrol->offer, &enrol->probe, error) < 0)
        return -1;
    struct machine *known =
        map_get_text(&core->machines_by_key, core_bytes(enrol->public_key, MACHINE_KEY_SIZE));
    if (known && known->owner != code->account)
        return error_set(error, ERROR_REFUSED, "the machine belongs to another account");
    const struct text name = known && enrol->name.size == 0 ? text_of(known->name) : enrol->name;
    if (name_check(name, "machine", error) < 0)
        return -1;
    const struct machine *namesake = core_machine_by_name(core, name);
    if (!may_name_machine(code->account, name) || (namesake && namesake != known))
        return error_set(error, ERROR_CONFLICT, "the machine name \"" TEXT_FORMAT "\" is taken",
                         TEXT_ARGS(name));

    struct event event = {.kind = EVENT_MACHINE_ENROLLED,
                          .machine_enrolled = {.owner = code->account,
                                               .generation = known ? known->generation + 1 : 1,
                                               .probe = enrol->probe,
                                               .offer = enrol->offer}};
    copy(name, event.machine_enrolled.name, sizeof(event.machine_enrolled.name));
    memcpy(event.machine_enrolled.public_key, enrol->public_key, MACHINE_KEY_SIZE);
    remove_code(decision, code->id, /* is_used= */ true);
    if (known)
        decide_lose_leases(decision, known, "its machine was enrolled again");
    event.machine_enrolled.machine = known ? known->id : core->last_id + 1;
    decision->subject = event.machine_enrolled.machine;
    decision_emit(decision, &event);
    return 0;
}

static int find_machine(const struct decision *decision, uint64_t id, struct machine **out_machine,
                        struct error *error)
{
    struct machine *machine = map_get(&decision->core->machines, id);
    if (!machine)
        return error_set(error, ERROR_NOT_FOUND, "machine %" PRIu64 " does not exist", id);
    *out_machine = machine;
    return 0;
}

static int find_own_machine(const struct decision *decision, uint64_t account, uint64_t id,
                            struct machine **out_machine, struct error *error)
{
    struct machine *machine;
    if (find_machine(decision, id, &machine, error) < 0)
        return -1;
    if (machine->owner != account)
        return error_set(error, ERROR_REFUSED, "machine %" PRIu64 " belongs to another account",
                         id);
    *out_machine = machine;
    return 0;
}

static void emit_offer(struct decision *decision, const struct machine *machine,
                       const struct offer *offer)
{
    struct event event = {.kind = EVENT_OFFER_SET,
                          .offer_set = {.machine = machine->id, .offer = *offer}};
    decision_emit(decision, &event);
    decision->should_match = true;
}

static void emit_withdrawal(struct decision *decision, const struct machine *machine)
{
    struct event event = {.kind = EVENT_OFFER_WITHDRAWN,
                          .offer_withdrawn = {.machine = machine->id}};
    decision_emit(decision, &event);
}

static int set_offer(struct decision *decision, const struct command *command, struct error *error)
{
    struct machine *machine;
    if (find_own_machine(decision, command->set_offer.account, command->set_offer.machine, &machine,
                         error) < 0 ||
        offer_check(&command->set_offer.offer, &machine->probe, error) < 0)
        return -1;
    decision->subject = machine->id;
    emit_offer(decision, machine, &command->set_offer.offer);
    return 0;
}

static int withdraw_offer(struct decision *decision, const struct command *command,
                          struct error *error)
{
    struct machine *machine;
    if (find_own_machine(decision, command->withdraw_offer.account, command->withdraw_offer.machine,
                         &machine, error) < 0)
        return -1;
    decision->subject = machine->id;
    if (machine->has_offer)
        emit_withdrawal(decision, machine);
    return 0;
}

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

/* An offer larger than the machine turned out to be shrinks to what there is. */
static void shrink_offer(struct decision *decision, const struct machine *machine,
                         struct resources found)
{
    if (!machine->has_offer || resources_fit(machine->offer.resources, found))
        return;
    struct offer offer = machine->offer;
    offer.resources =
        (struct resources){.cores_milli = smaller(offer.resources.cores_milli, found.cores_milli),
                           .ram_bytes = smaller(offer.resources.ram_bytes, found.ram_bytes),
                           .gpus_milli = smaller(offer.resources.gpus_milli, found.gpus_milli),
                           .disk_bytes = smaller(offer.resources.disk_bytes, found.disk_bytes)};
    emit_offer(decision, machine, &offer);
}

static int report_probe(struct decision *decision, const struct command *command,
                        struct error *error)
{
    struct machine *machine;
    if (find_machine(decision, command->report_probe.machine, &machine, error) < 0 ||
        probe_check(&command->report_probe.probe, error) < 0)
        return -1;
    decision->subject = machine->id;
    shrink_offer(decision, machine, command->report_probe.probe.resources);
    struct event event = {
        .kind = EVENT_MACHINE_PROBED,
        .machine_probed = {.machine = machine->id, .probe = command->report_probe.probe}};
    decision_emit(decision, &event);
    decision->should_match = true;
    return 0;
}

static void emit_machine_state(struct decision *decision, const struct machine *machine,
                               enum machine_state state)
{
    struct event event = {.kind = EVENT_MACHINE_STATE_CHANGED,
                          .machine_state_changed = {.machine = machine->id, .state = state}};
    decision_emit(decision, &event);
}

static int machine_connected(struct decision *decision, const struct command *command,
                             struct error *error)
{
    struct machine *machine;
    if (find_machine(decision, command->machine_connected.machine, &machine, error) < 0)
        return -1;
    if (machine->generation != command->machine_connected.generation)
        return error_set(error, ERROR_REFUSED,
                         "machine %" PRIu64 " was enrolled again: generation %" PRIu64
                         " is not %" PRIu64,
                         machine->id, command->machine_connected.generation, machine->generation);
    decision->subject = machine->id;
    if (machine->state == MACHINE_STATE_ONLINE)
        return 0;
    emit_machine_state(decision, machine, MACHINE_STATE_ONLINE);
    decision->should_match = true;
    return 0;
}

static int machine_silent(struct decision *decision, const struct command *command,
                          struct error *error)
{
    struct machine *machine;
    if (find_machine(decision, command->machine_silent.machine, &machine, error) < 0)
        return -1;
    decision->subject = machine->id;
    if (machine->state == MACHINE_STATE_ONLINE)
        emit_machine_state(decision, machine, MACHINE_STATE_UNREACHABLE);
    return 0;
}

static void take_offline(struct decision *decision, struct machine *machine, const char *reason)
{
    emit_machine_state(decision, machine, MACHINE_STATE_OFFLINE);
    decide_lose_leases(decision, machine, reason);
}

static int machine_gone(struct decision *decision, const struct command *command,
                        struct error *error)
{
    struct machine *machine;
    if (find_machine(decision, command->machine_gone.machine, &machine, error) < 0)
        return -1;
    decision->subject = machine->id;
    if (machine->state != MACHINE_STATE_OFFLINE)
        take_offline(decision, machine, "its machine left the market");
    return 0;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void expire_codes(struct decision *decision)
{
    const struct id_list *codes = &decision->core->code_list;
    for (size_t i = codes->count; i-- > 0;) {
        const struct code *code = codes->items[i].value;
        if (code->expires_ms <= decision->now_ms)
            remove_code(decision, code->id, /* is_used= */ false);
    }
}

static void lose_machines(struct decision *decision)
{
    const struct id_list *unreachable = &decision->core->unreachable;
    for (size_t i = unreachable->count; i-- > 0;) {
        struct machine *machine = unreachable->items[i].value;
        if (machine->state_changed_ms + decision->core->settings.lost_ms <= decision->now_ms)
            take_offline(decision, machine, "its machine was silent for too long");
    }
}

static int decide_kind(struct decision *decision, const struct command *command,
                       struct error *error)
{
    switch (command->kind) {
    case COMMAND_CHANGE_SETTINGS:
        return change_settings(decision, command, error);
    case COMMAND_OPEN_ACCOUNT:
        return open_account(decision, command, error);
    case COMMAND_ADD_TOKEN:
        return add_token(decision, command, error);
    case COMMAND_REVOKE_TOKEN:
        return revoke_token(decision, command, error);
    case COMMAND_ADD_CODE:
        return add_code(decision, command, error);
    case COMMAND_USE_CODE:
        return use_code(decision, command, error);
    case COMMAND_ENROL_MACHINE:
        return enrol_machine(decision, command, error);
    case COMMAND_SET_OFFER:
        return set_offer(decision, command, error);
    case COMMAND_WITHDRAW_OFFER:
        return withdraw_offer(decision, command, error);
    case COMMAND_REPORT_PROBE:
        return report_probe(decision, command, error);
    case COMMAND_MACHINE_CONNECTED:
        return machine_connected(decision, command, error);
    case COMMAND_MACHINE_SILENT:
        return machine_silent(decision, command, error);
    case COMMAND_MACHINE_GONE:
        return machine_gone(decision, command, error);
    case COMMAND_SUBMIT_JOB:
        return decide_submit_job(decision, &command->submit_job, error);
    case COMMAND_LEASE_RUNNING:
        return decide_lease_running(decision, command, error);
    case COMMAND_TICK_LEASE:
        return decide_tick_lease(decision, command, error);
    case COMMAND_END_LEASE:
        return decide_end_lease(decision, command, error);
    case COMMAND_CANCEL_JOB:
        return decide_cancel_job(decision, command, error);
    case COMMAND_TIME_PASSED:
        expire_codes(decision);
        lose_machines(decision);
        decide_job_times(decision);
        return 0;
    case COMMAND_KIND_COUNT:
        break;
    }
    return error_set(error, ERROR_INVALID, "a command of an unknown kind");
}

int core_decide(struct core *core, const struct command *command, int64_t now_ms,
                struct event_list *out, struct error *error)
{
    if (now_ms <= 0 || now_ms > SCHEMA_TIME_MS_MAX)
        return error_set(error, ERROR_INVALID, "the time is out of range");
    struct decision decision = {
        .core = core, .now_ms = now_ms > core->time_ms ? now_ms : core->time_ms, .out = out};
    const size_t count = out->count;
    if (decide_kind(&decision, command, error) < 0) {
        ASSERT(out->count == count);
        return -1;
    }
    if (decision.should_match)
        decide_match(&decision);
    out->subject = decision.subject;
    return 0;
}
