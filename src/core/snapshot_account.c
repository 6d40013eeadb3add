/* Groups, accounts, tokens and codes in snapshots. */
#include "core/snapshot_internal.h"

static const struct json_field group_fields[] = {
    SCHEMA_ID("id", struct group, id),
    SCHEMA_CHARS("name", struct group, name),
    SCHEMA_ID("owner", struct group, owner),
    SCHEMA_TIME("created_ms", struct group, created_ms),
};
const struct json_schema snapshot_group_schema = JSON_SCHEMA("group", group_fields, struct group);

struct account_record {
    struct account account;
    struct ledger_account parts;
};

static const struct json_field account_fields[] = {
    SCHEMA_ID("id", struct account_record, account.id),
    SCHEMA_CHARS("name", struct account_record, account.name),
    SCHEMA_TIME("opened_ms", struct account_record, account.opened_ms),
    SCHEMA_ID("address_block", struct account_record, account.address_block),
    SCHEMA_ID("group", struct account_record, account.group),
    SCHEMA_TIME("deleted_ms", struct account_record, account.deleted_ms),
    SCHEMA_CHARS("former_name", struct account_record, account.former_name),
    SCHEMA_CHARS("password", struct account_record, account.password),
    SCHEMA_CHARS("freeze_reason", struct account_record, account.freeze_reason),
    SCHEMA_CHOICE("grant", struct account_record, account.grant, schema_grant_states),
    SCHEMA_TIME("granted_ms", struct account_record, account.granted_ms),
    SCHEMA_MICRO("to_earn_micro", struct account_record, account.to_earn_micro),
    SCHEMA_TIME("seen_ms", struct account_record, account.seen_ms),
    SCHEMA_RANGE("dormant_steps", struct account_record, account.dormant_steps, 0, INT64_MAX),
    SCHEMA_RANGE("spent_mark_1_micro", struct account_record, account.spent_marks_micro[0], 0,
                 INT64_MAX),
    SCHEMA_RANGE("spent_mark_2_micro", struct account_record, account.spent_marks_micro[1], 0,
                 INT64_MAX),
    SCHEMA_RANGE("spent_mark_3_micro", struct account_record, account.spent_marks_micro[2], 0,
                 INT64_MAX),
    SCHEMA_RANGE("spent_mark_4_micro", struct account_record, account.spent_marks_micro[3], 0,
                 INT64_MAX),
    SCHEMA_RANGE("karma_spent_micro", struct account_record, account.karma_spent_micro, 0,
                 INT64_MAX),
    SCHEMA_TIME("dormant_step_ms", struct account_record, account.dormant_step_ms),
    SCHEMA_RANGE("queue_finish_tag", struct account_record, account.queue_finish_tag, 0,
                 QUEUE_TAG_MAX),
    SCHEMA_RANGE("granted_micro", struct account_record, parts.granted_micro, -LEDGER_SUPPLY_MAX,
                 LEDGER_SUPPLY_MAX),
    SCHEMA_MICRO("earned_micro", struct account_record, parts.earned_micro),
    SCHEMA_MICRO("withheld_micro", struct account_record, parts.withheld_micro),
    SCHEMA_MICRO("held_micro", struct account_record, parts.held_micro),
    SCHEMA_RANGE("earned_total_micro", struct account_record, parts.earned_total_micro, 0,
                 INT64_MAX),
    SCHEMA_RANGE("spent_total_micro", struct account_record, parts.spent_total_micro, 0, INT64_MAX),
    SCHEMA_BOOL("is_frozen", struct account_record, parts.is_frozen),
    SCHEMA_BOOL("is_closed", struct account_record, parts.is_closed),
};
const struct json_schema snapshot_account_schema =
    JSON_SCHEMA("account", account_fields, struct account_record);

static const struct json_field token_fields[] = {
    SCHEMA_ID("id", struct token, id),
    SCHEMA_ID("account", struct token, account),
    SCHEMA_HEX("hash", struct token, hash),
    SCHEMA_BITS("scopes", struct token, scopes, TOKEN_SCOPE_ANY),
    SCHEMA_TIME("expires_ms", struct token, expires_ms),
    SCHEMA_TIME("added_ms", struct token, added_ms),
    SCHEMA_BOOL("is_revoked", struct token, is_revoked),
    SCHEMA_BOOL("is_session", struct token, is_session),
    SCHEMA_CHARS("label", struct token, label),
};
const struct json_schema snapshot_token_schema = JSON_SCHEMA("token", token_fields, struct token);

static const struct json_field code_fields[] = {
    SCHEMA_ID("id", struct code, id),
    SCHEMA_CHOICE("kind", struct code, kind, schema_code_kinds),
    SCHEMA_ID("account", struct code, account),
    SCHEMA_HEX("hash", struct code, hash),
    SCHEMA_TIME("expires_ms", struct code, expires_ms),
    SCHEMA_ID("group", struct code, group),
};
const struct json_schema snapshot_code_schema = JSON_SCHEMA("code", code_fields, struct code);

void snapshot_write_accounts(const struct core *core, struct buffer *out)
{
    for (size_t i = 0; i < core->accounts.count; i++) {
        const struct account *account = core->accounts.entries[i].value;
        const struct account_record both = {*account, *ledger_account(core->ledger, account->id)};
        snapshot_write_line(out, &snapshot_account_schema, &both);
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

int snapshot_restore_group(struct core *core, const void *record, struct error *error)
{
    const struct group *stored = record;
    const struct text name = text_of(stored->name);
    const bool is_empty = stored->owner == 0; /* its name may be another's now */
    if (!snapshot_follows(core, &core->groups, stored->id) ||
        (!is_empty && core_group_by_name(core, name)) || name_check(name, "group", error) < 0)
        return snapshot_misfit(error, "group", stored->id);
    struct group *group = snapshot_copy(stored, sizeof(*stored));
    group->member_count = 0; /* counted by the accounts that follow */
    map_put(&core->groups, group->id, group);
    if (!is_empty)
        map_put_text(&core->groups_by_name, text_of(group->name), group);
    return 0;
}

/* What the market's own accounts can have beside their credits. */
static void restore_own_account(struct account *own, const struct account *stored)
{
    memcpy(own->password, stored->password, sizeof(own->password));
    own->seen_ms = stored->seen_ms;
    own->group = stored->group;
    memcpy(own->spent_marks_micro, stored->spent_marks_micro, sizeof(own->spent_marks_micro));
    own->karma_spent_micro = stored->karma_spent_micro;
}

int snapshot_restore_account(struct core *core, const void *record, struct error *error)
{
    struct account_record both = *(const struct account_record *)record;
    both.parts.id = both.account.id;
    struct group *group = map_get(&core->groups, both.account.group);
    if (both.account.group && !group)
        return snapshot_misfit(error, "account", both.account.id);
    if (group)
        group->member_count++;
    const struct text name =
        text_of(both.account.deleted_ms ? both.account.former_name : both.account.name);
    if (both.account.id == ACCOUNT_MINT || both.account.id == ACCOUNT_OPERATOR) {
        struct account *own = map_get(&core->accounts, both.account.id);
        ASSERT(own);
        if (!text_equal(name, text_of(own->name)) || both.account.opened_ms != 0)
            return snapshot_misfit(error, "account", both.account.id);
        restore_own_account(own, &both.account);
        own->queue_finish_tag = both.account.queue_finish_tag;
        return ledger_restore_account(core->ledger, &both.parts, error);
    }
    if (!snapshot_follows(core, &core->accounts, both.account.id) ||
        core_account_by_name(core, name) || name_check(name, "account", error) < 0)
        return snapshot_misfit(error, "account", both.account.id);
    if (ledger_restore_account(core->ledger, &both.parts, error) < 0)
        return -1;
    struct account *account = snapshot_copy(&both.account, sizeof(both.account));
    map_put(&core->accounts, account->id, account);
    map_put_text(&core->accounts_by_name, name, account);
    core_index_account(core, account);
    return 0;
}

int snapshot_restore_token(struct core *core, const void *record, struct error *error)
{
    const struct token *stored = record;
    if (!snapshot_follows(core, &core->tokens, stored->id) ||
        !core_account(core, stored->account) || core_token_by_hash(core, stored->hash))
        return snapshot_misfit(error, "token", stored->id);
    struct token *token = snapshot_copy(stored, sizeof(*stored));
    map_put(&core->tokens, token->id, token);
    map_put_text(&core->tokens_by_hash, core_bytes(token->hash, sizeof(token->hash)), token);
    if (!token->is_revoked)
        core_attach_token(map_get(&core->accounts, token->account), token);
    return 0;
}

int snapshot_restore_code(struct core *core, const void *record, struct error *error)
{
    const struct code *stored = record;
    if (!snapshot_follows(core, &core->codes, stored->id) || !core_account(core, stored->account) ||
        core_code_by_hash(core, stored->hash) ||
        (stored->kind == CODE_KIND_GROUP) != (core_group(core, stored->group) != NULL))
        return snapshot_misfit(error, "code", stored->id);
    struct code *code = snapshot_copy(stored, sizeof(*stored));
    map_put(&core->codes, code->id, code);
    map_put_text(&core->codes_by_hash, core_bytes(code->hash, sizeof(code->hash)), code);
    id_list_add(&core->code_list, code->id, code);
    core_wake_code(core, code);
    ((struct account *)map_get(&core->accounts, code->account))->code_count++;
    return 0;
}
