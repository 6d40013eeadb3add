/*
 * Results: what a job left, put to S3 or HDFS instead of into a folder here.
 *
 * Each file is fetched into one without a name that stays behind, and put from there. Credentials
 * are those of the environment (docs/data.md). Ctrl-C ends it, and drops what was put in parts.
 */
#pragma once

#include "base/arena.h"
#include "client/api.h"
#include "client/client.h"

struct results_target {
    const char *address; /* of a folder: its files are ADDRESS/NAME; a slash behind it or not */
    /* Told of what takes long; may be NULL. */
    void (*on_note)(void *context, const char *what);
    void *context;
};

/* INVALID for an address that nothing can be put to. */
MUST_CHECK int results_check(const struct results_target *target, struct error *error);

/* *out_address, in the arena, is where it is then. */
MUST_CHECK int results_put(struct arena *arena, struct client *client, uint64_t job,
                           const struct api_artifact *artifact, const struct results_target *target,
                           const char **out_address, struct error *error);
