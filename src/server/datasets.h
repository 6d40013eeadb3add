/*
 * Datasets: the built-in data sets that lie on the market's own machine, as chunks for jobs.
 *
 * A set is read when a job first asks for it, on a thread of its own, and its chunks go into the
 * market's store; they become holdings of the account whose job it is, as if it had sent them.
 * Files are looked for where their package puts them, or in DIR/NAME with --datasets DIR.
 *
 * Main thread, but for the reading.
 */
#pragma once

#include "base/error.h"
#include "runtime/job_spec.h"
#include "train/dataset_catalogue.h"

#include <stdbool.h>

struct server;
struct datasets;

struct datasets *datasets_new(struct server *server);
/* Waits for what is being read; whoever waits for it hears of it from the loop. NULL is fine. */
void datasets_stop(struct datasets *datasets);
/* Once the loop is gone. NULL is fine. */
void datasets_free(struct datasets *datasets);

/* Whether the job's data are of the catalogue and its files are here. */
bool datasets_has(struct datasets *datasets, const struct job_train *train);
/* The same of one of the catalogue. */
bool datasets_has_entry(struct datasets *datasets, const struct dataset_entry *entry);

/* `inputs` of a job, DATASET_PART_COUNT of them; NULL with *error. Once, perhaps at once. */
typedef void datasets_done(void *context, const struct job_input *inputs,
                           const struct error *error);
/* Gives the account the job's data. NOT_FOUND when they are not here; EXHAUSTED: no room. */
void datasets_give(struct datasets *datasets, uint64_t account, const struct job_train *train,
                   datasets_done *done, void *context);
