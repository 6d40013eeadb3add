/*
 * Run follow: shows what the ranks of a run print until it ends, from the market and, where they
 * can be reached, from their machines: whichever has the next byte of a rank first.
 */
#pragma once

#include "cli/cli.h"
#include "client/client.h"

#include <stdbool.h>
#include <stdint.h>

struct run_follow_options {
    uint64_t job;
    bool is_single;  /* it has one rank */
    bool is_relayed; /* the machines are not dialled */
    bool is_aside;   /* what the ranks print goes to standard error, which alone is written to */
};

/* Returns the run's exit status, or -1. */
MUST_CHECK int run_follow(struct cli *cli, struct client *client,
                          const struct run_follow_options *options, struct error *error);
