/*
 * Local lender: the market's own machine as the lender `market`, for parameter servers only.
 *
 * It is an ordinary `souk lend` process of the same program with a state folder of its own below
 * the data folder, enlisted for the operator's account through an ordinary one-time code, once:
 * later it is only told where the market is now. It is started again when it dies, after a pause
 * that grows to a minute. It ends with the market, and its leases do not: a market that is started
 * again finds its parameter servers where they were, as it does those of other lenders.
 *
 * Main thread.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>

struct server;
struct local_lender;

/* Starts in the loop's next turn. */
struct local_lender *local_lender_new(struct server *server);
/* Kills what is left. NULL is fine. */
void local_lender_free(struct local_lender *lender);
DEFINE_AUTO(local_lender);

/* Asks it to end, with its leases or without; `on_stopped` is called once it has, or at once when
 * it does not run. */
void local_lender_stop(struct local_lender *lender, bool stops_leases,
                       void (*on_stopped)(void *context), void *context);
