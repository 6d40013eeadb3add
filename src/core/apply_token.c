/*
 * Events about tokens and codes.
 */
#include "base/memory.h"
#include "core/core_internal.h"

int apply_token_added(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->token_added) *added = &event->token_added;
    if (!apply_is_next_id(core, added->token) || core_token_by_hash(core, added->hash) ||
        !core_account(core, added->account))
        return apply_misfit(event, "the id or the hash is taken, or there is no such account",
                            error);
    struct token *token = memory_zeroed(1, sizeof(*token));
    *token = (struct token){.id = added->token,
                            .account = added->account,
                            .scopes = added->scopes,
                            .expires_ms = added->expires_ms,
                            .added_ms = event->time_ms,
                            .is_session = added->is_session};
    memcpy(token->hash, added->hash, sizeof(token->hash));
    memcpy(token->label, added->label, sizeof(token->label));
    core->last_id = token->id;
    map_put(&core->tokens, token->id, token);
    map_put_text(&core->tokens_by_hash, core_bytes(token->hash, sizeof(token->hash)), token);
    core_attach_token(map_get(&core->accounts, token->account), token);
    apply_see_account(core, token->account, event->time_ms);
    return 0;
}

int apply_token_revoked(struct core *core, const struct event *event, struct error *error)
{
    struct token *token = map_get(&core->tokens, event->token_revoked.token);
    if (!token || token->is_revoked)
        return apply_misfit(event, "there is no such token to revoke", error);
    token->is_revoked = true;
    core_detach_token(map_get(&core->accounts, token->account), token);
    return 0;
}

int apply_code_added(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->code_added) *added = &event->code_added;
    if (!apply_is_next_id(core, added->code) || core_code_by_hash(core, added->hash) ||
        !core_account(core, added->account))
        return apply_misfit(event, "the id or the hash is taken, or there is no such account",
                            error);
    if ((added->code_kind == CODE_KIND_GROUP) != (core_group(core, added->group) != NULL))
        return apply_misfit(event, "a code for a group names one, and no other does", error);
    struct code *code = memory_zeroed(1, sizeof(*code));
    *code = (struct code){.id = added->code,
                          .kind = added->code_kind,
                          .account = added->account,
                          .expires_ms = added->expires_ms,
                          .group = added->group};
    memcpy(code->hash, added->hash, sizeof(code->hash));
    core->last_id = code->id;
    ((struct account *)map_get(&core->accounts, code->account))->code_count++;
    map_put(&core->codes, code->id, code);
    id_list_add(&core->code_list, code->id, code);
    core_wake_code(core, code);
    map_put_text(&core->codes_by_hash, core_bytes(code->hash, sizeof(code->hash)), code);
    return 0;
}

int apply_code_removed(struct core *core, const struct event *event, struct error *error)
{
    struct code *code = map_remove(&core->codes, event->code_removed.code);
    if (!code)
        return apply_misfit(event, "there is no such code", error);
    id_list_remove(&core->code_list, code->id);
    ((struct account *)map_get(&core->accounts, code->account))->code_count--;
    map_remove_text(&core->codes_by_hash, core_bytes(code->hash, sizeof(code->hash)));
    free(code);
    return 0;
}
