/*
 * Account, token, code: who may ask the market for what. Credits are in ledger/.
 *
 * Tokens and codes are kept as hashes only; the secrets are made and hashed by the shell.
 */
#pragma once

#include "market/name.h"

#include <stdbool.h>
#include <stdint.h>

enum { MARKET_HASH_SIZE = 32, MARKET_LABEL_SIZE = 64 };

/* Opened with every market. */
#define ACCOUNT_MINT     UINT64_C(1) /* the only one that may be negative */
#define ACCOUNT_OPERATOR UINT64_C(2) /* owns the machine `market`, gets the fees */

/* Set in every address block that is known: none is ever equal to an id. */
#define ACCOUNT_BLOCK_BIT (UINT64_C(1) << 63)

struct account {
    uint64_t id;
    char name[MARKET_NAME_SIZE];
    int64_t opened_ms;
    uint64_t
        address_block; /* where it was opened, as a keyed hash; 0: not known, or a private one */
    uint64_t group;    /* it belongs to; 0: none */
};

/* Bits of struct token's scopes. */
enum token_scope {
    TOKEN_SCOPE_READ = 1,
    TOKEN_SCOPE_LEND = 2,
    TOKEN_SCOPE_BORROW = 4,
    TOKEN_SCOPE_OPERATE = 8,
    TOKEN_SCOPE_ALL = 15,
};

struct token {
    uint64_t id;
    uint64_t account;
    uint8_t hash[MARKET_HASH_SIZE];
    uint64_t scopes;    /* of enum token_scope */
    int64_t expires_ms; /* 0: never */
    int64_t added_ms;
    bool is_revoked;
    char label[MARKET_LABEL_SIZE];
};

enum code_kind { CODE_KIND_ENROL, CODE_KIND_PAGE, CODE_KIND_COUNT };

const char *code_kind_name(enum code_kind kind);

/* Good for one use before it expires, then gone. */
struct code {
    uint64_t id;
    enum code_kind kind;
    uint64_t account;
    uint8_t hash[MARKET_HASH_SIZE];
    int64_t expires_ms;
};

/* Not revoked, not expired, and carrying every scope asked for. */
bool token_allows(const struct token *token, uint64_t scopes, int64_t now_ms);
