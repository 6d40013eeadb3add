/*
 * Price rule: how prices follow what is wanted and what is lent (docs/prices.md).
 *
 * For each resource one level and four factors, one for each slot of the day, as base-2 logarithms
 * in Q32. A slot's price is 2^(level + factor). When slot k ends:
 *
 *     c = n / (n + 10)
 *     e = log2(wanted / (0.9 x lent)), within -2 and +2; +2 when nothing is lent
 *     level     += 0.6 x c x e, by at most log2(1.5) either way
 *     factor[k] += 0.1 x c x e, then the mean of the four is taken off each, within log2(4)
 *     price      = 2^(level + factor), within cold / 64 and cold x 64, and at least the lowest
 *                  minimum among the open offers
 *
 * The level itself stays within cold / 64 and cold x 64: without that a market that lay idle for
 * months would answer its first demand only after as many months. When nothing was wanted and
 * nothing lent, nothing changes. Divisions truncate; n and c have 16 bits after the point.
 */
#pragma once

#include "market/price.h"

#include <stdbool.h>

/* What was wanted and lent of one resource during one slot. */
struct price_inputs {
    int64_t wanted_milli_s;  /* thousandths of a unit x seconds */
    int64_t offered_milli_s; /* the same */
    int64_t borrower_count;
    int64_t effective_q16; /* n: as many borrowers of equal size; at least 1 */
};

/* Limits of inputs that came from a log. */
#define PRICE_USAGE_MILLI_S_MAX (INT64_MAX / 16)
#define PRICE_BORROWERS_MAX     INT64_C(1000000000)

/* Of one resource: where its prices stand. */
struct price_curve {
    int64_t level_q32;
    int64_t factor_q32[SLOT_PER_DAY];
};

struct price_board {
    struct price_curve curves[PRICE_RESOURCE_COUNT];
};

/* Levels at the cold prices, all factors 1. */
void price_board_init(struct price_board *board);

/* One update with every number on its way. */
struct price_working {
    enum price_resource resource;
    int of_day; /* of the slot that ended */
    struct price_inputs inputs;
    bool is_still; /* nothing wanted, nothing lent: the rest says what stayed */
    int64_t credibility_q16;
    int64_t error_q32;
    int64_t level_step_q32;
    int64_t factor_step_q32;
    struct price_curve before;
    struct price_curve after;
};

struct price_working price_work(const struct price_board *board, enum price_resource resource,
                                int of_day, const struct price_inputs *inputs);

/* The update of all resources for the slot that ended. */
void price_board_close(struct price_board *board, int of_day,
                       const struct price_inputs inputs[PRICE_RESOURCE_COUNT]);

/* `floor` is the lowest minimum among the offers open in that slot. */
struct price_vector price_board_price(const struct price_board *board, int of_day,
                                      const struct price_vector *floor);

bool price_board_equal(const struct price_board *left, const struct price_board *right);

/* Within what the rule can reach: for what was read from a file. */
bool price_board_is_valid(const struct price_board *board);
bool price_inputs_are_valid(const struct price_inputs *inputs);
