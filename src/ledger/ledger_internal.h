/*
 * Ledger, inside: the state that ledger.c keeps, plan.c reads and commit.c changes.
 */
#pragma once

#include "base/map.h"
#include "ledger/ledger.h"

struct ledger {
    struct map accounts; /* id -> struct ledger_account, owned */
    struct map holds;    /* job -> struct ledger_hold, owned */
    uint64_t mint;
    uint64_t operator_account;
    uint64_t entry_count;
    bool returns_own; /* what an account pays itself stays what it was */
};

/* No part out of range, and nothing negative but mint. */
bool ledger_parts_are_sound(const struct ledger *ledger, const struct ledger_account *account);

/* Puts a hold that is not there yet. */
void ledger_add_hold(struct ledger *ledger, const struct ledger_hold *hold);
