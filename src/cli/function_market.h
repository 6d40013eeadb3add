/*
 * Function market: the store of the market that this command is signed in to, for the lead of a
 * job, and the token by which the job's functions, and nobody else's, meet it there.
 */
#pragma once

#include "base/scope.h"
#include "cli/cli.h"
#include "function/object_store.h"

/* What the lead and commands like it are there; texts are the cli's. REFUSED: not signed in. */
MUST_CHECK int function_market_find(const struct cli *cli, struct object_market *out_market,
                                    struct error *error);

struct function_market;

/* Makes a token for the functions of the job. */
MUST_CHECK int function_market_open(const struct cli *cli, const char *job,
                                    struct function_market **out_market, struct error *error);
/* Revokes it; one that cannot be revoked ends by itself, which is noted. NULL is fine. */
void function_market_close(struct function_market *market);

/* A token that goes on for half its life at least. It is a new one where the last has less left;
 * that one is good no longer. */
MUST_CHECK int function_market_token(struct function_market *market, const char **out_token,
                                     struct error *error);
