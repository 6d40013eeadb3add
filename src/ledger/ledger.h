/*
 * Ledger: who has how many credits; every entry moves an amount from one place to another, so all
 * accounts sum to zero at every commit.
 *
 * Amounts are int64 microcredits. An account's credits lie in four parts:
 *
 *     granted    came from mint; can pay for jobs, and is spent first
 *     earned     was posted to the account and is not spent or held, withheld included
 *     withheld   the part of earned that cannot be spent yet
 *     held       reserved by holds; each hold remembers how much of it was granted and how much
 *                earned, and gives back to where it took from
 *
 * balance = granted + earned + held; available = granted + earned - withheld. Only mint is
 * negative. Only earned credits that are not withheld can be transferred: what mint gave is for
 * jobs.
 *
 * A frozen account keeps every credit: it may receive, and its holds go on to post and void, but
 * nothing more is held, transferred out or reclaimed. A closed account has nothing and takes part
 * in nothing; it is never opened again.
 *
 * An operation is planned (validated and computed into entries, nothing changes) and then each of
 * its entries is committed. Committing checks the entry against the accounts again, because a
 * replayed log is data from outside: what does not fit is CORRUPT and changes nothing.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEDGER_MEMO_SIZE = 64 };

/* Most that mint gives out; it bounds what all others have, so no sum of parts can overflow. */
#define LEDGER_SUPPLY_MAX (INT64_MAX / 4)

enum ledger_entry_kind {
    LEDGER_ENTRY_GRANT,    /* mint -> an account's granted part */
    LEDGER_ENTRY_HOLD,     /* an account's available part -> its hold for a job */
    LEDGER_ENTRY_POST,     /* a job's hold -> the payee's earned part */
    LEDGER_ENTRY_FEE,      /* a job's hold -> the operator's earned part */
    LEDGER_ENTRY_VOID,     /* a job's hold -> back to the parts it came from */
    LEDGER_ENTRY_RELEASE,  /* an account's withheld part -> spendable */
    LEDGER_ENTRY_TRANSFER, /* spendable earned credits -> another account's earned part */
    LEDGER_ENTRY_RECLAIM,  /* what an account has -> back to mint */
    LEDGER_ENTRY_REFUND,   /* what a lease was paid -> the earned part of whoever paid */
    LEDGER_ENTRY_FUND,     /* mint -> the earned part of whoever pays a bill outside for it */
    LEDGER_ENTRY_COST,     /* an account's earned part -> mint: that bill */
    LEDGER_ENTRY_KIND_COUNT,
};

const char *ledger_entry_kind_name(enum ledger_entry_kind kind);

struct ledger_entry {
    uint64_t sequence; /* 1, 2, 3 ... over the whole ledger */
    enum ledger_entry_kind kind;
    uint64_t from_account;
    uint64_t to_account;
    int64_t amount_micro;   /* > 0 */
    int64_t granted_micro;  /* the part of the amount that is granted credit, on the paying side */
    int64_t withheld_micro; /* post: the part the payee cannot spend yet; reclaim: the part that was
                               withheld */
    uint64_t job;           /* whose hold it is; 0: none */
    uint64_t lease;         /* what is paid for; 0: none */
    char memo[LEDGER_MEMO_SIZE];
};

struct ledger_account {
    uint64_t id;
    int64_t granted_micro;
    int64_t earned_micro; /* withheld included */
    int64_t withheld_micro;
    int64_t held_micro;
    int64_t earned_total_micro; /* ever posted to it: what a lender's page calls earned */
    int64_t spent_total_micro;  /* ever posted from its holds, fees included */
    bool is_frozen;
    bool is_closed;
};

/* One per job. A hold with nothing left does not exist. */
struct ledger_hold {
    uint64_t job;
    uint64_t account;
    int64_t granted_micro; /* what is left of each part */
    int64_t earned_micro;
};

enum { LEDGER_PLAN_ENTRIES_MAX = 3 };

/* What one operation comes to. */
struct ledger_plan {
    struct ledger_entry entries[LEDGER_PLAN_ENTRIES_MAX];
    size_t entry_count;
};

struct ledger;

/* `mint_account` may be negative, and may not hold or earn. Both accounts are opened. */
struct ledger *ledger_new(uint64_t mint_account, uint64_t operator_account);
void ledger_free(struct ledger *ledger); /* NULL is fine */
DEFINE_AUTO(ledger);

/*
 * From now on what an account pays itself comes back as what it was: granted credits stay granted,
 * as nobody else gave anything for them. Before, they became earned.
 */
void ledger_return_own(struct ledger *ledger);
bool ledger_returns_own(const struct ledger *ledger);

/* CONFLICT when the account is open already, or was. */
MUST_CHECK int ledger_open_account(struct ledger *ledger, uint64_t account, struct error *error);

/* INVALID for mint and the operator: a market cannot go on without them. CONFLICT when it is so
 * already. */
MUST_CHECK int ledger_set_frozen(struct ledger *ledger, uint64_t account, bool is_frozen,
                                 struct error *error);

/* CONFLICT while it has a credit, held or not: see ledger_plan_reclaim. No lease may be left that
 * pays it: that is the caller's to know. */
MUST_CHECK int ledger_close_account(struct ledger *ledger, uint64_t account, struct error *error);

/* mint -> account, granted. */
MUST_CHECK int ledger_plan_grant(const struct ledger *ledger, uint64_t account,
                                 int64_t amount_micro, struct ledger_plan *out_plan,
                                 struct error *error);

/* Reserves for a job, more if it has a hold already. EXHAUSTED when less is available. */
MUST_CHECK int ledger_plan_hold(const struct ledger *ledger, uint64_t account, uint64_t job,
                                int64_t amount_micro, struct ledger_plan *out_plan,
                                struct error *error);

struct ledger_post {
    uint64_t job; /* whose hold pays */
    uint64_t lease;
    uint64_t payee;
    int64_t amount_micro;   /* the payer's cost; the fee is taken out of it */
    int64_t fee_micro;      /* the operator's part */
    int64_t withheld_micro; /* of the rest: what the payee cannot spend yet; of what comes back
                               granted nothing is withheld */
    const char *memo;       /* NULL: "tick"; a fee for cancelling says so here */
};

/* A post to the payee, then the operator's fee if there is one. EXHAUSTED past the hold. */
MUST_CHECK int ledger_plan_post(const struct ledger *ledger, const struct ledger_post *post,
                                struct ledger_plan *out_plan, struct error *error);

/* Gives back part of a hold, earned credits first: the reverse of how they were taken. */
MUST_CHECK int ledger_plan_void(const struct ledger *ledger, uint64_t job, int64_t amount_micro,
                                struct ledger_plan *out_plan, struct error *error);

MUST_CHECK int ledger_plan_release(const struct ledger *ledger, uint64_t account,
                                   int64_t amount_micro, struct ledger_plan *out_plan,
                                   struct error *error);

/* Earned credits that are not withheld, to another account. EXHAUSTED when there are fewer, REFUSED
 * while the payer is frozen, CONFLICT when either is closed. */
MUST_CHECK int ledger_plan_transfer(const struct ledger *ledger, uint64_t from_account,
                                    uint64_t to_account, int64_t amount_micro,
                                    struct ledger_plan *out_plan, struct error *error);

struct ledger_refund {
    uint64_t lease;
    uint64_t payee, payer;
    int64_t amount_micro;   /* what the payee got */
    int64_t fee_micro;      /* what the operator got */
    int64_t withheld_micro; /* of the payee's: released first */
};

/* As far as they have it still: nobody goes below zero for it, and nothing leaves an account that
 * is frozen or closed. May come to nothing. */
void ledger_plan_refund(const struct ledger *ledger, const struct ledger_refund *refund,
                        struct ledger_plan *out_plan);

/*
 * A bill that the account pays outside of the market, in money: what it brings in for it, and what
 * it spends. Mint stands for all that is outside, so nothing is left of it but the two entries: the
 * account has as much as before, and its statement shows its costs beside what it earned.
 */
MUST_CHECK int ledger_plan_cost(const struct ledger *ledger, uint64_t account, int64_t amount_micro,
                                struct ledger_plan *out_plan, struct error *error);

/* Back to mint: granted credits first, then spendable ones, withheld ones last. Holds stay. REFUSED
 * while the account is frozen. An amount of 0 means all there is, which may be no entry. */
MUST_CHECK int ledger_plan_reclaim(const struct ledger *ledger, uint64_t account,
                                   int64_t amount_micro, struct ledger_plan *out_plan,
                                   struct error *error);

/* The only thing that changes balances. CORRUPT, changing nothing, when the entry does not fit. */
MUST_CHECK int ledger_commit(struct ledger *ledger, const struct ledger_entry *entry,
                             struct error *error);

/* NULL when there is none. */
const struct ledger_account *ledger_account(const struct ledger *ledger, uint64_t account);
const struct ledger_hold *ledger_hold(const struct ledger *ledger, uint64_t job);

int64_t ledger_balance_micro(const struct ledger_account *account);
int64_t ledger_available_micro(const struct ledger_account *account);
/* What can be held, and what can be transferred, now: nothing while frozen or closed. */
int64_t ledger_holdable_micro(const struct ledger_account *account);
int64_t ledger_transferable_micro(const struct ledger_account *account);
int64_t ledger_hold_micro(const struct ledger_hold *hold); /* what is left; NULL: 0 */

size_t ledger_account_count(const struct ledger *ledger);
const struct ledger_account *ledger_account_at(const struct ledger *ledger, size_t index);
size_t ledger_hold_count(const struct ledger *ledger);
const struct ledger_hold *ledger_hold_at(const struct ledger *ledger, size_t index);
uint64_t ledger_entry_count(const struct ledger *ledger);

/* Over all accounts: zero, always. Walks them all; each commit checks the accounts it touches. */
int64_t ledger_sum_micro(const struct ledger *ledger);

/* Puts back what a snapshot stored; ledger_check then says whether it hangs together. */
MUST_CHECK int ledger_restore_account(struct ledger *ledger, const struct ledger_account *account,
                                      struct error *error);
MUST_CHECK int ledger_restore_hold(struct ledger *ledger, const struct ledger_hold *hold,
                                   struct error *error);
void ledger_restore_entry_count(struct ledger *ledger, uint64_t entry_count);

/* CORRUPT unless all sums to zero, holds add up to the accounts' held parts, and only mint is
 * negative. */
MUST_CHECK int ledger_check(const struct ledger *ledger, struct error *error);
