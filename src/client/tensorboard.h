/*
 * TensorBoard: a job's metrics as event files while it is followed.
 *
 * DIR/job-JOB/ gets the job's own curve (test/loss, test/accuracy over the samples seen) and each
 * worker's (lease-LEASE/loss, lease-LEASE/steps_per_second over its own). What was measured before
 * the following began is written first.
 */
#pragma once

#include "client/api.h"
#include "client/client.h"

struct tensorboard;

/* `folder` is DIR; the job is asked for what there is already. */
MUST_CHECK int tensorboard_open(struct client *client, const char *folder, uint64_t job,
                                struct tensorboard **out_board, struct error *error);
void tensorboard_free(struct tensorboard *board); /* NULL is fine */
DEFINE_AUTO(tensorboard);

const char *tensorboard_folder(const struct tensorboard *board); /* with the job's own */

/* A "metric" event of the job. */
void tensorboard_take(struct tensorboard *board, const struct api_event *event);
/* What events did not tell; fails with the first thing that could not be written, too. */
MUST_CHECK int tensorboard_finish(struct tensorboard *board, struct error *error);
