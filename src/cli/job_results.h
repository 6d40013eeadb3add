/*
 * Job results: what a job left and what it could not keep, in a few words for people.
 */
#pragma once

#include "base/json_schema.h"
#include "cli/cli.h"
#include "client/api.h"
#include "client/client.h"

/* Of the API's list: struct api_artifact. */
MUST_CHECK int job_results_list(const struct cli *cli, struct client *client, uint64_t job,
                                struct json_array *out_artifacts, struct text *out_json,
                                struct error *error);

/* How many files they are; NULL: none. */
const char *job_results_count(struct arena *arena, const struct json_array *artifacts);

/* The last lines that the lease printed, and how to see all, on standard error. */
void job_results_note_tail(const struct cli *cli, struct client *client, uint64_t job,
                           const struct api_lease *lease);

/* A line for each of the first files that were left out and why, on standard error; nothing where
 * all were kept. What cannot be fetched is said so. */
void job_results_note_left_out(const struct cli *cli, struct client *client, uint64_t job,
                               const struct json_array *artifacts);
