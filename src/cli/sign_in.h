/*
 * Sign-in: which token and key go to the market that a command speaks to. A token goes to no other
 * than the one it was made for.
 *
 * The market signed in to last is in the files `config` (server, fingerprint) and `secrets`
 * (token); those before it in `markets` (client/markets.h).
 */
#pragma once

#include "cli/cli.h"

/* Leaves cli->common's token and fingerprint where they are for its server, and puts those kept for
 * it in their place otherwise. A token of the command line is for the server it names; one of the
 * environment for SOUK_SERVER, or for any when that is not set. */
MUST_CHECK int sign_in_find(struct cli *cli, struct error *error);

/* The token kept for cli->common's server from before another was signed in to; NULL: none. */
MUST_CHECK int sign_in_find_before(const struct cli *cli, const char **out_token,
                                   struct error *error);

/* Makes cli->common's server the one signed in to, with this token; what was before is kept for its
 * own market. */
MUST_CHECK int sign_in_keep(const struct cli *cli, const char *token, struct error *error);

/* Signs out of cli->common's server. */
MUST_CHECK int sign_in_forget(const struct cli *cli, struct error *error);
