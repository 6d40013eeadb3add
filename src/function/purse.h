/*
 * Purse: the money of a job of functions. Pure.
 *
 * Before a call its most is held: its time limit and the longest start at its price. So what is
 * spent and held together never passes the budget. A call costs what it is billed for, of the
 * memory that it had; one of which nothing is known costs all that was held for it. Calls are
 * short: what all of them used is rounded up to a microcredit once, not each of them.
 */
#pragma once

#include "function/bill.h"
#include "function/invoker.h"

#include <stdint.h>

enum { PURSE_START_MS_MAX = 10000 }; /* billed before a call at most, as Lambda's own bound is */

struct purse {
    struct bill_price price;
    int64_t budget_micro; /* 0: there is none */
    int64_t spent_micro, held_micro;
    uint64_t used_mb_ms; /* of what is spent: what is billed by use, */
    int64_t other_micro; /* and the rest */
};

/* What was spent before is spent. */
struct purse purse_begin(struct bill_price price, int64_t budget_micro, int64_t spent_micro);

/* INT64_MAX: there is no budget. */
int64_t purse_left(const struct purse *purse);
/* What a call of this limit costs at the most. */
int64_t purse_most(const struct purse *purse, uint32_t memory_mb, int64_t time_ms);
/* At most what is left. */
void purse_hold(struct purse *purse, int64_t held_micro);
void purse_release(struct purse *purse, int64_t held_micro); /* nothing was called */

struct purse_call {
    int64_t held_micro;
    uint32_t memory_mb; /* that it was to have */
    int64_t time_ms;    /* its limit */
    int64_t passed_ms;  /* from asking to answer */
};

struct purse_paid {
    int64_t cost_micro;
    int64_t billed_ms;
};

/* Of a call that was made, in place of what was held for it. */
struct purse_paid purse_pay(struct purse *purse, const struct purse_call *call,
                            const struct invoke_result *result);
