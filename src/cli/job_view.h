/*
 * Job view: a job, its leases and its bill for people; shared by `job submit`, `wait` and `show`.
 */
#pragma once

#include "cli/cli.h"
#include "client/api.h"
#include "client/client.h"
#include "client/follow.h"
#include "runtime/job_spec.h"

/* Reads a job file; "-" is standard input. When several things are wrong with it, each is a line on
 * standard error, and the error says how many. */
MUST_CHECK int job_view_read_file(const struct cli *cli, const char *path,
                                  struct job_spec *out_spec, struct error *error);

/* When the last of its leases expires that have not ended; 0: there is none. */
int64_t job_view_ends_by_ms(const struct api_job *job);

/* "3", "2–4", and of one that runs "2 of 2–4". */
const char *job_view_workers(struct arena *arena, const struct api_job *job);
/* "one parameter server", "3 parameter servers and a replica". */
const char *job_view_servers(struct arena *arena, const struct job_sync *sync);
/* "81.23 %"; of a job that predicts numbers "R^2 0.8123"; "-" before it was measured. */
const char *job_view_accuracy(struct arena *arena, const struct api_job *job);
/* Which of its pushes were not taken as they were, or made again; NULL: none. */
const char *job_view_pushes(struct arena *arena, const struct api_job *job);

/* "worker 1", "the parameter server", "parameter server 1", "the replica". */
const char *job_view_role(struct arena *arena, const struct api_lease *lease);
/* Whether it is the lease of "1", "server", "server-1" or "replica". */
bool job_view_has_rank(const struct api_lease *lease, struct text rank);
/* Why its training ended, in the lead's words; NULL: it goes on, came to nothing, or has none. */
const char *job_view_ending(struct arena *arena, const struct api_job *job);
/* How a lease ended that did not end well, and why; NULL: it did, or goes on. */
const char *job_view_misfortune(struct arena *arena, const struct api_lease *lease);

/* The rank whose program failed first (the lowest of several at once); NULL: none did. */
const struct api_lease *job_view_first_failed(const struct api_job *job);
/* What a command that waited for a job of the borrower's own command ends with: 0 when it
 * succeeded, the exit status of the rank that failed first (the lowest of several at once), or
 * else CLI_EXIT_FAILED. */
int job_view_exit_code(const struct api_job *job);

/* What is known about the job, and a table of its leases, on standard output. */
void job_view_print(const struct cli *cli, const struct api_job *job);

/* Fetches the bill and prints it as a table, with whether the market's books balance. */
MUST_CHECK int job_view_print_bill(const struct cli *cli, struct client *client, uint64_t job,
                                   struct error *error);

/* On standard error: what it left and how to get it, and what could not be kept; nothing where
 * there is none. */
void job_view_note_results(const struct cli *cli, struct client *client, const struct api_job *job);

/* Follows the job to its end with progress on standard error, then prints it (or its JSON). Returns
 * the exit code: 0 only when the job succeeded; -1 with *error. `timeout_ms` 0: no limit.
 * `tensorboard`: a folder for its metrics, as of --tensorboard; NULL: none. */
MUST_CHECK int job_view_follow(struct cli *cli, struct client *client, uint64_t job,
                               int64_t timeout_ms, const char *tensorboard, struct error *error);
