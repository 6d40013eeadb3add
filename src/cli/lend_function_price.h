/*
 * The least price of lent functions: what --function-price says, in credits or in dollars, or of
 * Lambda's functions what Lambda takes; dollars by the rate of the market.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "cloud/catalogue.h"
#include "peer/peer.h"

#include <stdbool.h>
#include <stdint.h>

/* For a GiB of functions in an hour. */
struct lend_function_price {
    int64_t micro; /* of a credit, or of a dollar */
    bool is_dollars;
};

/* "0.06" or "$0.06". INVALID below 0 or above a million. */
MUST_CHECK int lend_function_price_read(struct text text, struct lend_function_price *out_price,
                                        struct error *error);

/* What Lambda takes, in microdollars: for the seconds of a GiB of functions in an hour, and for
 * their calls, of half a second each, as a lease makes them. Rounded up. */
struct lend_function_cost {
    int64_t seconds_usd_micro, calls_usd_micro;
};
struct lend_function_cost lend_function_cost(const struct catalogue_function *function,
                                             uint32_t memory_mb);

/* Microcredits, rounded up; at most a million credits. */
int64_t lend_function_credits_micro(int64_t usd_micro, int64_t micro_per_usd);

/* What an offer has to have as its least so that a GiB of functions costs `gib_micro` an hour. */
void lend_function_price_set(int64_t gib_micro, struct peer_options *peer);

struct cli;
struct lend_options;

/*
 * Sets the least of the first offer where it takes the market's rate, and says what it is and
 * where it comes from. Only for a machine that is about to be enlisted; `wanted->code` becomes NULL
 * when the market is away and knows the machine: it is not enlisted again then. Blocks. INVALID
 * when the market tells no rate.
 */
MUST_CHECK int lend_function_price_choose(const struct cli *cli, bool is_arm64,
                                          struct lend_options *wanted, struct peer_options *peer,
                                          struct error *error);
