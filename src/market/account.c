#include "market/account.h"

#include "base/assert.h"

static const char *const code_kind_names[CODE_KIND_COUNT] = {
    [CODE_KIND_ENROL] = "enrol",
    [CODE_KIND_PAGE] = "page",
    [CODE_KIND_GROUP] = "group",
    [CODE_KIND_INVITE] = "invite",
};

static const char *const grant_state_names[GRANT_STATE_COUNT] = {
    [GRANT_STATE_NONE] = "none",
    [GRANT_STATE_WAITING] = "waiting",
    [GRANT_STATE_GIVEN] = "given",
};

const char *grant_state_name(enum grant_state state)
{
    ASSERT(state < GRANT_STATE_COUNT);
    return grant_state_names[state];
}

const char *code_kind_name(enum code_kind kind)
{
    ASSERT(kind < CODE_KIND_COUNT);
    return code_kind_names[kind];
}

bool token_allows(const struct token *token, uint64_t scopes, int64_t now_ms)
{
    return !token->is_revoked && (token->expires_ms == 0 || now_ms < token->expires_ms) &&
           (token->scopes & scopes) == scopes;
}
