/*
 * Commands about tokens and codes.
 */
#include "core/core_internal.h"

#include <inttypes.h>

void decision_revoke_token(struct decision *decision, uint64_t token)
{
    struct event event = {.kind = EVENT_TOKEN_REVOKED, .token_revoked = {.token = token}};
    decision_emit(decision, &event);
}

static bool is_expired(const struct token *token, int64_t now_ms)
{
    return token->expires_ms != 0 && token->expires_ms <= now_ms;
}

static size_t count_usable(const struct account *account, int64_t now_ms)
{
    size_t count = 0;
    for (size_t i = 0; i < account->token_count; i++)
        count += !is_expired(account->tokens[i], now_ms);
    return count;
}

static const struct token *oldest_session(const struct account *account)
{
    for (size_t i = 0; i < account->token_count; i++)
        if (account->tokens[i]->is_session)
            return account->tokens[i];
    return NULL;
}

static void revoke_expired(struct decision *decision, const struct account *account)
{
    for (size_t i = account->token_count; i-- > 0;)
        if (is_expired(account->tokens[i], decision->now_ms))
            decision_revoke_token(decision, account->tokens[i]->id);
}

int decide_add_token(struct decision *decision, const struct command *command, struct error *error)
{
    struct core *core = decision->core;
    const __typeof__(command->add_token) *add = &command->add_token;
    /* The owner of a frozen account may still look at it. */
    if ((add->is_session ? decide_find_account(core, add->account, error)
                         : decide_find_active_account(core, add->account, error)) < 0 ||
        name_check_line(add->label, "label", MARKET_LABEL_SIZE - 1, error) < 0 ||
        decide_check_instant(add->expires_ms, "expires_ms", error) < 0)
        return -1;
    if (add->scopes != TOKEN_SCOPE_OBJECTS &&
        (add->scopes == 0 || (add->scopes & ~(uint64_t)TOKEN_SCOPE_ALL)))
        return error_set(error, ERROR_INVALID, "a token needs scopes that exist");
    if (core_token_by_hash(core, add->hash))
        return error_set(error, ERROR_CONFLICT, "the token exists already");
    const struct account *account = core_account(core, add->account);
    const bool is_full = count_usable(account, decision->now_ms) >= ACCOUNT_TOKENS_MAX;
    const struct token *oldest = add->is_session ? oldest_session(account) : NULL;
    if (is_full && !oldest)
        return error_set(error, ERROR_EXHAUSTED,
                         "the account has %d tokens and sessions: revoke some first",
                         ACCOUNT_TOKENS_MAX);
    revoke_expired(decision, account);
    if (is_full && !oldest->is_revoked) /* signing in always works */
        decision_revoke_token(decision, oldest->id);
    struct event event = {.kind = EVENT_TOKEN_ADDED,
                          .token_added = {.token = core->last_id + 1,
                                          .account = add->account,
                                          .scopes = add->scopes,
                                          .expires_ms = add->expires_ms,
                                          .is_session = add->is_session}};
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
    decision_revoke_token(decision, token->id);
    return 0;
}

static int check_group_owner(const struct core *core, const struct account *account,
                             struct error *error)
{
    if (!account->group)
        return error_set(error, ERROR_CONFLICT, "this account is in no group to invite to");
    const struct group *group = core_group(core, account->group);
    if (group->owner != account->id)
        return error_set(error, ERROR_REFUSED, "the group's owner \"%s\" invites to it",
                         core_account(core, group->owner)->name);
    return 0;
}

int decide_add_code(struct decision *decision, const struct command *command, struct error *error)
{
    struct core *core = decision->core;
    const __typeof__(command->add_code) *add = &command->add_code;
    if ((add->kind == CODE_KIND_PAGE ? decide_find_account(core, add->account, error)
                                     : decide_find_active_account(core, add->account, error)) < 0 ||
        decide_check_instant(add->expires_ms, "expires_ms", error) < 0)
        return -1;
    if (add->kind >= CODE_KIND_COUNT || add->expires_ms <= decision->now_ms)
        return error_set(error, ERROR_INVALID, "a code needs a kind and some time to live");
    if (core_code_by_hash(core, add->hash))
        return error_set(error, ERROR_CONFLICT, "the code exists already");
    const struct account *account = core_account(core, add->account);
    const size_t code_max =
        add->account == ACCOUNT_OPERATOR ? OPERATOR_CODES_MAX : ACCOUNT_CODES_MAX;
    if (account->code_count >= code_max)
        return error_set(error, ERROR_EXHAUSTED,
                         "the account has %zu codes that were not used: wait until some expire",
                         account->code_count);
    if (add->kind == CODE_KIND_INVITE && add->account != ACCOUNT_OPERATOR)
        return error_set(error, ERROR_REFUSED, "the operator invites to the market");
    if (add->kind == CODE_KIND_GROUP && check_group_owner(core, account, error) < 0)
        return -1;
    struct event event = {
        .kind = EVENT_CODE_ADDED,
        .code_added = {.code = core->last_id + 1,
                       .code_kind = add->kind,
                       .account = add->account,
                       .expires_ms = add->expires_ms,
                       .group = add->kind == CODE_KIND_GROUP ? account->group : 0}};
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
    if (command->use_code.kind != CODE_KIND_PAGE)
        return error_set(error, ERROR_INVALID,
                         "a code of this kind is used by what it is for: enrolling, joining or "
                         "opening an account");
    if (decide_find_code(decision, command->use_code.kind, command->use_code.hash, &code, error) <
        0)
        return -1;
    decision->subject = code->account;
    decide_remove_code(decision, code->id, /* is_used= */ true);
    return 0;
}

void decide_expire_codes(struct decision *decision)
{
    for (const struct code *code; (code = core_due_code(decision->core, decision->now_ms));)
        decide_remove_code(decision, code->id, /* is_used= */ false);
}
