/*
 * Account, token, code: who may ask the market for what. Credits are in ledger/.
 *
 * Tokens and codes are kept as hashes only; the secrets are made and hashed by the shell.
 */
#pragma once

#include "market/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MARKET_HASH_SIZE = 32, MARKET_LABEL_SIZE = 64 };

/* Opened with every market. */
#define ACCOUNT_MINT     UINT64_C(1) /* the only one that may be negative */
#define ACCOUNT_OPERATOR UINT64_C(2) /* owns the machine `market`, gets the fees */

/* Set in every address block that is known: none is ever equal to an id. */
#define ACCOUNT_BLOCK_BIT (UINT64_C(1) << 63)

enum {
    ACCOUNT_PASSWORD_SIZE = 128, /* argon2id's own string, with the zero byte */
    ACCOUNT_REASON_SIZE = 128,
    ACCOUNT_TOKENS_MAX = 200, /* that are neither revoked nor expired */
    ACCOUNT_CODES_MAX = 100,
    OPERATOR_CODES_MAX = 10000,
    GROUP_MEMBERS_MAX = 1000,
    ACCOUNT_SPENT_WEEKS = 4,
};

/* The first credits of an account. */
enum grant_state {
    GRANT_STATE_NONE,    /* it gets none */
    GRANT_STATE_WAITING, /* until the day's grants or its address block allow it */
    GRANT_STATE_GIVEN,
    GRANT_STATE_COUNT,
};

const char *grant_state_name(enum grant_state state);

struct token;

struct account {
    uint64_t id;
    char name[MARKET_NAME_SIZE];        /* "deleted-ID" once it is */
    char former_name[MARKET_NAME_SIZE]; /* of a deleted one, so that nobody takes it over */
    int64_t opened_ms;
    int64_t deleted_ms; /* 0: it is open */
    uint64_t
        address_block; /* where it was opened, as a keyed hash; 0: not known, or a private one */
    uint64_t group;    /* it belongs to; 0: none */
    char password[ACCOUNT_PASSWORD_SIZE];    /* "": it has none */
    char freeze_reason[ACCOUNT_REASON_SIZE]; /* "": it is not frozen */

    enum grant_state grant;
    int64_t granted_ms;
    int64_t to_earn_micro; /* more of the grant, released credit for credit against lending */

    int64_t seen_ms;         /* the owner or one of its machines; to the day */
    int64_t dormant_steps;   /* since: two notices, then parts going back to mint */
    int64_t dormant_step_ms; /* the last one ever; 0: none */

    /* What it ever spent, as of the start of this week and of those before. */
    int64_t spent_marks_micro[ACCOUNT_SPENT_WEEKS];
    int64_t karma_spent_micro; /* of what it ever spent, when the last hour was shared */

    struct token **tokens; /* that are not revoked, in the order of ids; owned by the core */
    size_t token_count, token_capacity;
    size_t code_count;          /* made for it and not used */
    size_t short_count;         /* jobs of it that wait for credits or a lower price */
    size_t short_handed_count;  /* that are under way and would take more workers */
    size_t spare_waiting_count; /* that wait for spare time */
    size_t spare_active_count;  /* that have leases of it: one at a time */

    int64_t queue_finish_tag; /* of its last job: where its next one stands (queue.h) */
};

static inline bool account_is_frozen(const struct account *account)
{
    return account->freeze_reason[0] != '\0';
}

/* Accounts that belong together: one voice in prices, and an audience for offers. */
struct group {
    uint64_t id;
    char name[MARKET_NAME_SIZE];
    uint64_t owner; /* invites others; the longest there when the one before left; 0: nobody is */
    int64_t created_ms;
    uint64_t member_count;
};

/* Bits of struct token's scopes. */
enum token_scope {
    TOKEN_SCOPE_READ = 1,
    TOKEN_SCOPE_LEND = 2,
    TOKEN_SCOPE_BORROW = 4,
    TOKEN_SCOPE_OPERATE = 8,
    TOKEN_SCOPE_ALL = 15,
    /* Not among them, and of a token that has no other: what functions of one job need of its
     * objects; the job is the token's label. */
    TOKEN_SCOPE_OBJECTS = 16,
    TOKEN_SCOPE_ANY = 31,
};

struct token {
    uint64_t id;
    uint64_t account;
    uint8_t hash[MARKET_HASH_SIZE];
    uint64_t scopes;    /* of enum token_scope */
    int64_t expires_ms; /* 0: never */
    int64_t added_ms;
    bool is_revoked;
    bool is_session; /* of a signed-in page */
    char label[MARKET_LABEL_SIZE];
};

enum code_kind {
    CODE_KIND_ENROL,  /* a machine, for the account */
    CODE_KIND_PAGE,   /* signs a browser in to the account */
    CODE_KIND_GROUP,  /* joins the account's group */
    CODE_KIND_INVITE, /* opens an account with a grant at once */
    CODE_KIND_COUNT,
};

const char *code_kind_name(enum code_kind kind);

/* Good for one use before it expires, then gone. */
struct code {
    uint64_t id;
    enum code_kind kind;
    uint64_t account;
    uint8_t hash[MARKET_HASH_SIZE];
    int64_t expires_ms;
    uint64_t group; /* of kind group: which one */
};

/* Not revoked, not expired, and carrying every scope asked for. */
bool token_allows(const struct token *token, uint64_t scopes, int64_t now_ms);
