/*
 * Machine find: a machine by what people call it.
 */
#pragma once

#include "cli/cli.h"
#include "client/api.h"
#include "client/client.h"

/* By name, else by number; with `is_mine` of those this account lends. NOT_FOUND says where to
 * look. */
MUST_CHECK int machine_find(const struct cli *cli, struct client *client, const char *name,
                            bool is_mine, struct api_machine *out_machine, struct error *error);
