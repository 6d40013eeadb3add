/*
 * Demo market: the programs of `souk demo`: a market, its lenders and the accounts at it.
 *
 * Everything lies in one temporary folder, which is removed at the end.
 */
#pragma once

#include "cli/cli.h"
#include "cli/demo_process.h"
#include "client/client.h"

#include <stdint.h>

enum { DEMO_LENDER_COUNT = 3 };

struct demo_lender {
    const char *name;
    const char *cores;   /* as the flag says it */
    int64_t share_milli; /* the same, in thousandths of a core */
    struct demo_process process;
};

struct demo_market {
    struct cli *cli;
    const char *program; /* the souk binary */
    const char *temporary_dir;
    const char *folder; /* NULL until it is made */
    const char *listen;
    int signal_fd;
    bool is_interrupted; /* a signal came while it was being opened */
    struct demo_process server;
    struct demo_lender lenders[DEMO_LENDER_COUNT];
    const char *url;
    const char *page_url; /* works once, for the borrower */
    struct client *borrower;
};

/* Starts all of it and waits until every lender is enlisted. What was started is ended by
 * demo_market_close, after a failure too. */
MUST_CHECK int demo_market_open(struct demo_market *market, struct error *error);

/* Makes a new page_url: each works once, for a minute. */
MUST_CHECK int demo_market_open_page(struct demo_market *market, struct error *error);

/* Ends the lenders, then the market, then removes the folder. */
void demo_market_close(struct demo_market *market);
