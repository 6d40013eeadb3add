/*
 * Commands about the settings, accounts, tokens and codes.
 */
#include "core/core_internal.h"
#include "core/schema.h"

#include <inttypes.h>

int decide_find_account(const struct core *core, uint64_t account, struct error *error)
{
    if (!core_account(core, account) || account == ACCOUNT_MINT)
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " does not exist", account);
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
    if (core_settings_check(&command->change_settings, error) < 0)
        return -1;
    struct event event = {.kind = EVENT_SETTINGS_CHANGED,
                          .settings_changed = command->change_settings};
    decision_emit(decision, &event);
    return 0;
}

int decide_open_account(struct decision *decision, const struct command *command,
                        struct error *error)
{
    struct core *core = decision->core;
    const struct text name = command->open_account.name;
    if (name_check(name, "account", error) < 0)
        return -1;
    if (name_is_reserved(name) || core_account_by_name(core, name))
        return error_set(error, ERROR_CONFLICT, "the account name \"" TEXT_FORMAT "\" is taken",
                         TEXT_ARGS(name));
    const uint64_t block = command->open_account.address_block;
    if (block && !(block & ACCOUNT_BLOCK_BIT))
        return error_set(error, ERROR_INVALID, "an address block is marked by its highest bit");
    const int64_t grant_micro = core->settings.grant_micro;
    if (grant_micro > LEDGER_SUPPLY_MAX + core_balance(core, ACCOUNT_MINT)->granted_micro)
        return error_set(error, ERROR_EXHAUSTED, "mint has given out all there can be");
    struct event event = {.kind = EVENT_ACCOUNT_OPENED,
                          .account_opened = {.account = core->last_id + 1, .address_block = block}};
    decide_copy(name, event.account_opened.name, sizeof(event.account_opened.name));
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

int decide_add_token(struct decision *decision, const struct command *command, struct error *error)
{
    struct core *core = decision->core;
    const __typeof__(command->add_token) *add = &command->add_token;
    if (decide_find_account(core, add->account, error) < 0 ||
        name_check_text(add->label, "label", MARKET_LABEL_SIZE - 1, error) < 0 ||
        decide_check_instant(add->expires_ms, "expires_ms", error) < 0)
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
    decide_copy(add->label, event.token_added.label, sizeof(event.token_added.label));
    decision->subject = event.token_added.token;
    decision_emit(decision, &event);
    return 0;
}

int decide_revoke_token(struct decision *decision, const struct command *command,
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

int decide_add_code(struct decision *decision, const struct command *command, struct error *error)
{
    struct core *core = decision->core;
    const __typeof__(command->add_code) *add = &command->add_code;
    if (decide_find_account(core, add->account, error) < 0 ||
        decide_check_instant(add->expires_ms, "expires_ms", error) < 0)
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
int decide_find_code(const struct decision *decision, enum code_kind kind, const uint8_t *hash,
                     const struct code **out_code, struct error *error)
{
    const struct code *code = core_code_by_hash(decision->core, hash);
    if (!code || code->kind != kind || code->expires_ms <= decision->now_ms)
        return error_set(error, ERROR_REFUSED, "the code is wrong, used or expired");
    *out_code = code;
    return 0;
}

void decide_remove_code(struct decision *decision, uint64_t code, bool is_used)
{
    struct event event = {.kind = EVENT_CODE_REMOVED,
                          .code_removed = {.code = code, .is_used = is_used}};
    decision_emit(decision, &event);
}

int decide_use_code(struct decision *decision, const struct command *command, struct error *error)
{
    const struct code *code;
    if (command->use_code.kind == CODE_KIND_ENROL)
        return error_set(error, ERROR_INVALID, "an enrolment code is used by enrolling a machine");
    if (decide_find_code(decision, command->use_code.kind, command->use_code.hash, &code, error) <
        0)
        return -1;
    decision->subject = code->account;
    decide_remove_code(decision, code->id, /* is_used= */ true);
    return 0;
}

void decide_expire_codes(struct decision *decision)
{
    const struct id_list *codes = &decision->core->code_list;
    for (size_t i = codes->count; i-- > 0;) {
        const struct code *code = codes->items[i].value;
        if (code->expires_ms <= decision->now_ms)
            decide_remove_code(decision, code->id, /* is_used= */ false);
    }
}
