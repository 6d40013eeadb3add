#include "client/api_internal.h"

static const struct json_field account_fields[] = {
    NEEDED("id", JSON_U64, api_account, id),
    NEEDED("name", JSON_TEXT, api_account, name),
    NEEDED("available_microcredits", JSON_I64, api_account, available_micro),
    FIELD("held_microcredits", JSON_I64, api_account, held_micro),
    FIELD("granted_microcredits", JSON_I64, api_account, granted_micro),
    FIELD("withheld_microcredits", JSON_I64, api_account, withheld_micro),
    FIELD("transferable_microcredits", JSON_I64, api_account, transferable_micro),
    FIELD("earned_microcredits", JSON_I64, api_account, earned_micro),
    FIELD("spent_microcredits", JSON_I64, api_account, spent_micro),
    FIELD("grant", JSON_TEXT, api_account, grant),
    FIELD("to_earn_microcredits", JSON_I64, api_account, to_earn_micro),
    FIELD("group", JSON_U64, api_account, group),
    FIELD("has_password", JSON_BOOL, api_account, has_password),
    FIELD("frozen", JSON_TEXT, api_account, frozen),
    FIELD("dormant_steps", JSON_I64, api_account, dormant_steps),
    FIELD("dormant_step_ms", JSON_I64, api_account, dormant_step_ms),
};
const struct json_schema api_account_schema =
    JSON_SCHEMA_LENIENT("account", account_fields, struct api_account);

static const struct json_field account_created_fields[] = {
    {"account", JSON_OBJECT, offsetof(struct api_account_created, account), .is_required = true,
     .schema = &api_account_schema},
    NEEDED("token", JSON_TEXT, api_account_created, token),
};
const struct json_schema api_account_created_schema =
    JSON_SCHEMA_LENIENT("account", account_created_fields, struct api_account_created);

static const struct json_field session_fields[] = {
    {"account", JSON_OBJECT, offsetof(struct api_session, account), .is_required = true,
     .schema = &api_account_schema},
    NEEDED("token", JSON_TEXT, api_session, token),
    FIELD("expires_ms", JSON_I64, api_session, expires_ms),
};
const struct json_schema api_session_schema =
    JSON_SCHEMA_LENIENT("session", session_fields, struct api_session);

static const struct json_field token_fields[] = {
    NEEDED("id", JSON_U64, api_token, id),
    FIELD("name", JSON_TEXT, api_token, name),
    FIELD("scopes", JSON_TEXTS, api_token, scopes),
    FIELD("created_ms", JSON_I64, api_token, created_ms),
    FIELD("expires_ms", JSON_I64, api_token, expires_ms),
    FIELD("last_used_ms", JSON_I64, api_token, last_used_ms),
    FIELD("is_current", JSON_BOOL, api_token, is_current),
    FIELD("token", JSON_TEXT, api_token, token),
};
const struct json_schema api_token_schema =
    JSON_SCHEMA_LENIENT("token", token_fields, struct api_token);

static const struct json_field member_fields[] = {
    NEEDED("id", JSON_U64, api_member, id),
    FIELD("name", JSON_TEXT, api_member, name),
};
static const struct json_schema member_schema =
    JSON_SCHEMA_LENIENT("member", member_fields, struct api_member);

static const struct json_field group_fields[] = {
    NEEDED("id", JSON_U64, api_group, id),
    FIELD("name", JSON_TEXT, api_group, name),
    FIELD("owner", JSON_U64, api_group, owner),
    LIST("members", api_group, members, &member_schema),
};
const struct json_schema api_group_schema =
    JSON_SCHEMA_LENIENT("group", group_fields, struct api_group);

static const struct json_field code_fields[] = {
    FIELD("code", JSON_TEXT, api_code, code),
    FIELD("invite", JSON_TEXT, api_code, invite),
    FIELD("expires_ms", JSON_I64, api_code, expires_ms),
};
const struct json_schema api_code_schema =
    JSON_SCHEMA_LENIENT("code", code_fields, struct api_code);

static const struct json_field page_code_fields[] = {
    NEEDED("code", JSON_TEXT, api_page_code, code),
    LONG_TEXT("url", api_page_code, url),
};
const struct json_schema api_page_code_schema =
    JSON_SCHEMA_LENIENT("page code", page_code_fields, struct api_page_code);

static const struct json_field server_fields[] = {
    FIELD("name", JSON_TEXT, api_server, name),
    FIELD("version", JSON_TEXT, api_server, version),
    LONG_TEXT("url", api_server, url),
    FIELD("fingerprint", JSON_TEXT, api_server, fingerprint),
    FIELD("economy", JSON_TEXT, api_server, economy),
    FIELD("proving_microcredits", JSON_I64, api_server, proving_micro),
    FIELD("withheld_basis_points", JSON_I64, api_server, withheld_basis_points),
    FIELD("credits_micro_per_usd", JSON_I64, api_server, credits_micro_per_usd),
};
const struct json_schema api_server_schema =
    JSON_SCHEMA_LENIENT("server", server_fields, struct api_server);

static const struct json_field entry_fields[] = {
    NEEDED("id", JSON_U64, api_entry, id),
    FIELD("at_ms", JSON_I64, api_entry, at_ms),
    FIELD("kind", JSON_TEXT, api_entry, kind),
    FIELD("amount_microcredits", JSON_I64, api_entry, amount_micro),
    FIELD("direction", JSON_TEXT, api_entry, direction),
    FIELD("job", JSON_U64, api_entry, job),
    FIELD("job_name", JSON_TEXT, api_entry, job_name),
    FIELD("lease", JSON_U64, api_entry, lease),
    FIELD("machine", JSON_U64, api_entry, machine),
    FIELD("machine_name", JSON_TEXT, api_entry, machine_name),
    FIELD("other_account", JSON_U64, api_entry, other_account),
    FIELD("withheld_microcredits", JSON_I64, api_entry, withheld_micro),
    FIELD("other_account_name", JSON_TEXT, api_entry, other_account_name),
    LONG_TEXT("memo", api_entry, memo),
};
const struct json_schema api_entry_schema =
    JSON_SCHEMA_LENIENT("entry", entry_fields, struct api_entry);

static const struct json_field account_page_fields[] = PAGE_FIELDS(&api_account_schema);
const struct json_schema api_account_page_schema =
    JSON_SCHEMA_LENIENT("accounts", account_page_fields, struct api_page);

static const struct json_field token_page_fields[] = PAGE_FIELDS(&api_token_schema);
const struct json_schema api_token_page_schema =
    JSON_SCHEMA_LENIENT("tokens", token_page_fields, struct api_page);

static const struct json_field sums_fields[] = {
    FIELD("held_microcredits", JSON_I64, api_sums, held_micro),
    FIELD("posted_microcredits", JSON_I64, api_sums, posted_micro),
    FIELD("fee_microcredits", JSON_I64, api_sums, fee_micro),
    FIELD("voided_microcredits", JSON_I64, api_sums, voided_micro),
};
static const struct json_schema sums_schema =
    JSON_SCHEMA_LENIENT("sums", sums_fields, struct api_sums);
static const struct json_field entry_page_fields[] = {
    LIST("items", api_entry_page, page.items, &api_entry_schema),
    FIELD("next_cursor", JSON_TEXT, api_entry_page, page.next_cursor),
    FIELD("opening_microcredits", JSON_I64, api_entry_page, opening_micro),
    FIELD("closing_microcredits", JSON_I64, api_entry_page, closing_micro),
    {"sums", JSON_OBJECT, offsetof(struct api_entry_page, sums), .schema = &sums_schema},
};
const struct json_schema api_entry_page_schema =
    JSON_SCHEMA_LENIENT("entries", entry_page_fields, struct api_entry_page);
