/*
 * Auction: one hour's double auction over divisible supply, the reference other rules are held to.
 *
 * Jobs bid what an hour is worth to them and lenders ask what it costs them, both as multiples of
 * the cold-start price. Winners are the highest bids that the cheapest asks can serve with room in
 * every resource. k-DA clears at the middle of the marginal pair. McAfee's rule clears at the
 * middle of the first losing pair if the marginal pair agrees to that, else gives up the marginal
 * trade: then stating the truth is each side's best move.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AUCTION_CORE, AUCTION_RAM, AUCTION_GPU, AUCTION_RESOURCES };

struct auction_bid {
    double worth;                    /* per hour, as a multiple of the cold-start price */
    double units[AUCTION_RESOURCES]; /* unit-hours wanted in this hour */
    uint32_t tag;                    /* the caller's; equal bids win in its order */
    bool is_served;                  /* the result */
};

struct auction_ask {
    double cost; /* as a multiple of the cold-start price */
    double units[AUCTION_RESOURCES];
    uint32_t tag;    /* the caller's; of equal asks the lower one serves first */
    bool is_serving; /* the result */
};

enum auction_rule { AUCTION_KDA, AUCTION_MCAFEE };

struct auction_outcome {
    double price; /* as a multiple of the cold-start price; 0 when nothing is traded */
    size_t served_count;
    double mean_cost; /* of the lenders that serve */
    double used[AUCTION_RESOURCES];
};

/* Sorts both lists in place: bids from the highest, asks from the cheapest. */
struct auction_outcome auction_clear(enum auction_rule rule, struct auction_bid *bids,
                                     size_t bid_count, struct auction_ask *asks, size_t ask_count);
