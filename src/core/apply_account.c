/*
 * Events about the settings, accounts, tokens and codes.
 */
#include "core/core_internal.h"

int apply_settings_changed(struct core *core, const struct event *event, struct error *error)
{
    if (core_settings_check(&event->settings_changed, error) < 0)
        return apply_unfit(event, error);
    core->settings = event->settings_changed;
    return 0;
}

int apply_account_opened(struct core *core, const struct event *event, struct error *error)
{
    const struct text name = text_of(event->account_opened.name);
    if (name_check(name, "account", error) < 0)
        return apply_unfit(event, error);
    const uint64_t block = event->account_opened.address_block;
    if (block && !(block & ACCOUNT_BLOCK_BIT))
        return apply_misfit(event, "its address block may be an id", error);
    if (!apply_is_next_id(core, event->account_opened.account) || core_account_by_name(core, name))
        return apply_misfit(event, "the id or the name is taken", error);
    if (ledger_open_account(core->ledger, event->account_opened.account, error) < 0)
        return apply_unfit(event, error);
    struct account *account = apply_allocate(sizeof(*account));
    account->id = core->last_id = event->account_opened.account;
    account->opened_ms = event->time_ms;
    account->address_block = event->account_opened.address_block;
    snprintf(account->name, sizeof(account->name), "%s", event->account_opened.name);
    map_put(&core->accounts, account->id, account);
    map_put_text(&core->accounts_by_name, name, account);
    return 0;
}

int apply_token_added(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->token_added) *added = &event->token_added;
    if (!apply_is_next_id(core, added->token) || core_token_by_hash(core, added->hash) ||
        !core_account(core, added->account))
        return apply_misfit(event, "the id or the hash is taken, or there is no such account",
                            error);
    struct token *token = apply_allocate(sizeof(*token));
    *token = (struct token){.id = added->token,
                            .account = added->account,
                            .scopes = added->scopes,
                            .expires_ms = added->expires_ms,
                            .added_ms = event->time_ms};
    memcpy(token->hash, added->hash, sizeof(token->hash));
    memcpy(token->label, added->label, sizeof(token->label));
    core->last_id = token->id;
    map_put(&core->tokens, token->id, token);
    map_put_text(&core->tokens_by_hash, core_bytes(token->hash, sizeof(token->hash)), token);
    return 0;
}

int apply_token_revoked(struct core *core, const struct event *event, struct error *error)
{
    struct token *token = map_get(&core->tokens, event->token_revoked.token);
    if (!token || token->is_revoked)
        return apply_misfit(event, "there is no such token to revoke", error);
    token->is_revoked = true;
    return 0;
}

int apply_code_added(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->code_added) *added = &event->code_added;
    if (!apply_is_next_id(core, added->code) || core_code_by_hash(core, added->hash) ||
        !core_account(core, added->account))
        return apply_misfit(event, "the id or the hash is taken, or there is no such account",
                            error);
    struct code *code = apply_allocate(sizeof(*code));
    *code = (struct code){.id = added->code,
                          .kind = added->code_kind,
                          .account = added->account,
                          .expires_ms = added->expires_ms};
    memcpy(code->hash, added->hash, sizeof(code->hash));
    core->last_id = code->id;
    map_put(&core->codes, code->id, code);
    id_list_add(&core->code_list, code->id, code);
    map_put_text(&core->codes_by_hash, core_bytes(code->hash, sizeof(code->hash)), code);
    return 0;
}

int apply_code_removed(struct core *core, const struct event *event, struct error *error)
{
    struct code *code = map_remove(&core->codes, event->code_removed.code);
    if (!code)
        return apply_misfit(event, "there is no such code", error);
    id_list_remove(&core->code_list, code->id);
    map_remove_text(&core->codes_by_hash, core_bytes(code->hash, sizeof(code->hash)));
    free(code);
    return 0;
}
