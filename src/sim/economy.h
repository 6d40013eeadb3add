/*
 * Economy: members who lend, borrow, join and leave for a year with the credits they have.
 *
 * Slot by slot: members want hours, each worth something to them, and buy those that cost less than
 * they are ready to pay while they can pay. How much of its worth a member is ready to pay follows
 * its purse: below four weeks of spending it bids less, above it more, up to the truth. A third
 * stop lending when they are rich. Prices are fixed, or moved by Souk's rule. All credits come from
 * grants; what is spent is earned by those whose hours were used.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct economy_options {
    int64_t grant_micro;        /* at once */
    int64_t earned_grant_micro; /* released credit for credit against what is earned */
    bool is_price_fixed;
    int64_t weeks;
    uint64_t seed;
};

struct economy_outcome {
    double served;      /* share of all wanted worth */
    double blocked;     /* share that was wanted at the price, but not affordable */
    double broke;       /* share of members under a tenth of a credit at the end */
    double gini;        /* of balances at the end */
    double price;       /* over the cold start, mean of the last four weeks */
    double utilisation; /* of hours offered */
    double ratio_p10, ratio_p50, ratio_p90; /* lent over spent, by member */
    double within_two;        /* share of members whose lent and spent are within a factor of two */
    int64_t unbalanced_micro; /* what was spent less what was earned: zero */
};

struct economy_outcome economy_run(const struct economy_options *options);
