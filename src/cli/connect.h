/*
 * Connect: a client for the market this command was told about.
 */
#pragma once

#include "cli/cli.h"
#include "client/client.h"

/* INVALID when no market is known; REFUSED when a token is needed and there is none. */
MUST_CHECK int cli_connect(const struct cli *cli, bool needs_token, struct client **out_client,
                           struct error *error);

/* Whether the market is one of karma, without money: it changes words and screens. */
MUST_CHECK int cli_has_karma(const struct cli *cli, struct client *client, bool *out_has_karma,
                             struct error *error);

/* The same for words alone: what output_unit says from then on. Nothing with --json, which has
 * none.
 */
MUST_CHECK int cli_learn_unit(struct cli *cli, struct client *client, struct error *error);

/* A GET whose answer is shown as it came with --json: *out_is_done is true then. */
MUST_CHECK int cli_get(const struct cli *cli, struct client *client, const char *path,
                       const struct json_schema *schema, void *value, bool *out_is_done,
                       struct error *error);

/* A POST without a body, likewise. */
MUST_CHECK int cli_post(const struct cli *cli, struct client *client, const char *path,
                        const struct json_schema *schema, void *value, bool *out_is_done,
                        struct error *error);

/* All items of a list, or the first `count_max`, into *out_items; shown as they came with --json:
 * *out_is_done is true then. */
MUST_CHECK int cli_list(const struct cli *cli, struct client *client, const char *path,
                        const struct json_schema *schema, size_t count_max,
                        struct json_array *out_items, bool *out_is_done, struct error *error);
